"""The in-wheel sensor Cammegh SlingShot 2: its line protocol (PROTOCOL.md) as facts of a ball and a number."""

from __future__ import annotations

from drivers.base import Family
from drivers.slingshot2.decoder import Options, SlingShot2

FAMILY = Family(name="slingshot2", kind="bytes", options=Options, baud=9600, decoder=SlingShot2)
