"""The things that draw: what a scenario's play makes of each, and what their sensors on lines see of it."""
