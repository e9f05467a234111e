"""A fixed head over a roulette's rotor (index, pocket marks, ball): `PROTOCOL.md`."""

from __future__ import annotations

from drivers.base import Family
from drivers.rotor_head.decoder import LINES, Options, RotorHead

FAMILY = Family(name="rotor_head", kind="edges", options=Options, lines=LINES, decoder=RotorHead)
