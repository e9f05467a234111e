"""Incremental encoder with index (A, B, Z) on a wheel or a cylinder: `PROTOCOL.md`."""

from __future__ import annotations

from drivers.base import Family
from drivers.encoder.decoder import Encoder
from drivers.encoder.options import Options

FAMILY = Family(
    name="encoder",
    kind="edges",
    options=Options,
    lines=("a", "b", "index"),
    reads=lambda options: options.pegs,
    decoder=Encoder,
)
