"""The senses: one folder per device family. Drivers know physics and protocols, never a game (ARCHITECTURE.md)."""
