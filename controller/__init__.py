"""The controller: wires drivers and law together, keeps the journal, speaks to the floor (ARCHITECTURE.md)."""
