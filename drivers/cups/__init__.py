"""Cups of a basin, or cells of a plate, each with a line that says whether something lies in it: `PROTOCOL.md`."""

from __future__ import annotations

from drivers.base import Family
from drivers.cups.decoder import Cups, Options

FAMILY = Family(
    name="cups",
    kind="edges",
    options=Options,
    numbered=lambda options: int(options.cells),
    contacts=True,
    decoder=Cups,
)
