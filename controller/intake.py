"""Between the ports and the flight recorder: who was looked for, what waited unread, how much came, what last."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from controller.flight import Flight
from drivers.base import Edge

READS_KEPT: Final = 8
"""Last reads of a serial device that a sample shows in hex."""
RATE_NS: Final = 100_000_000
"""Edges a second are counted over at least so long."""


class Intake:
    """A `drivers.base.Tap` that passes everything on and notes what the flight recorder does not ask."""

    def __init__(self, roles: set[str], flight: Flight, unread_ns: Callable[[int], int]) -> None:
        """`unread_ns` says how long bytes that are read at this instant may have waited."""
        self._missing = set(roles)
        self._flight = flight
        self._unread_ns = unread_ns
        self._edges: dict[str, int] = {}
        self._rates: dict[str, tuple[int, int, int | None]] = {}
        """When they were counted last, how many there were, and edges a second until then."""
        self._reads: dict[str, deque[bytes]] = {}
        self.looked_for = asyncio.Event()
        """Every device was looked for once."""
        if not roles:
            self.looked_for.set()

    def edges(self, role: str, edges: Sequence[Edge]) -> None:
        """Count them."""
        self._edges[role] = self._edges.get(role, 0) + len(edges)
        self._flight.edges(role, edges)

    def received(self, role: str, data: bytes, at_ns: int) -> int:
        """Keep the last ones; how long these may have waited."""
        self._reads.setdefault(role, deque(maxlen=READS_KEPT)).append(data)
        return self._flight.received(role, data, at_ns, self._unread_ns(at_ns))

    def ticked(self, role: str, now_ns: int) -> None:
        """Passed on."""
        self._flight.ticked(role, now_ns)

    def opened(self, role: str, at_ns: int) -> None:
        """Looked for, and there."""
        self._flight.opened(role, at_ns)
        self._seen(role)

    def lost(self, role: str, at_ns: int, why: str) -> None:
        """Looked for, and not there."""
        self._flight.lost(role, at_ns, why)
        self._seen(role)

    def reads(self, role: str) -> list[str]:
        """What a serial device said last, in hex."""
        return [data.hex(" ") for data in self._reads.get(role, ())]

    def edges_s(self, role: str, now_ns: int) -> int | None:
        """Edges a second of a device of lines since somebody asked before; None for the first who asks."""
        count = self._edges.get(role, 0)
        at_ns, before, rate = self._rates.setdefault(role, (now_ns, count, None))
        if now_ns - at_ns >= RATE_NS:
            rate = (count - before) * 1_000_000_000 // (now_ns - at_ns)
            self._rates[role] = (now_ns, count, rate)
        return rate

    def _seen(self, role: str) -> None:
        self._missing.discard(role)
        if not self._missing:
            self.looked_for.set()
