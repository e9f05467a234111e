"""The console line: the croupier's keypad and a chip reader on one serial line (PROTOCOL.md)."""

from __future__ import annotations

from drivers.base import Family
from drivers.console.decoder import Console, Options

FAMILY = Family(name="console", kind="bytes", options=Options, baud=115200, decoder=Console)
