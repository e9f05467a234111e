"""Two to four beams across the ball track: `PROTOCOL.md`."""

from __future__ import annotations

from drivers.base import Family
from drivers.rim.decoder import Rim
from drivers.rim.options import Options

FAMILY = Family(
    name="rim",
    kind="edges",
    options=Options,
    numbered=lambda options: len(options.beams_deg),
    reads=lambda options: False,
    decoder=Rim,
)
