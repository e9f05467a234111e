"""The rig: physics, simulated devices, scenarios, and the bench that plays them to the product."""
