"""The law: pure functions over facts. No I/O, no clock, no randomness, no float for money (ARCHITECTURE.md)."""
