"""Sensors of cups or cells: from where the ball is over time to the edges that a kernel would stamp.

A line is 1 while its cup is occupied (drivers/cups/PROTOCOL.md). A sensor chatters for a millisecond or two where the
ball's edge passes it; worse ones see the lying ball vanish for a moment, catch pulses from the wiring, or lose edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from hil.devices.encoder import SECOND
from hil.devices.lines import Pulse
from hil.physics.basin import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong between a ball and its line."""

    latency_us: float = 20.0
    """Mean of the exponential part of the stamp's delay; 5 us come on top."""
    chatter: int = 2
    """Most bounces at an edge, within 2 ms."""
    breaks_per_s: float = 0.0
    """How often a lying ball vanishes for 5 to 45 ms."""
    pulses_per_s: float = 0.0
    """Pulses of 2 us to 2 ms on any line."""
    lost: float = 0.0
    """Share of edges that are lost and leave a hole in the line's numbers."""


LEVELS: Mapping[str, Faults] = {
    "clean": Faults(latency_us=0.0, chatter=0),
    "L0": Faults(),
    "L1": Faults(breaks_per_s=0.05, pulses_per_s=0.1),
    "L2": Faults(breaks_per_s=0.5, pulses_per_s=1.0),
    "L3": Faults(breaks_per_s=1.0, pulses_per_s=10.0, lost=1e-3),
    "L4": Faults(breaks_per_s=1.0, pulses_per_s=10.0, lost=1e-2),
}


class CupSensors:
    """The sensors of role `role`; `play` may be called with one play after the other."""

    def __init__(self, role: str, cells: int, *, faults: Faults = LEVELS["L0"], seed: int | str = 0) -> None:
        self.role, self.cells, self.faults = role, cells, faults
        self._rng, self._losses = Random(f"cups {role} {seed}"), Random(f"lost {role} {seed}")

    def levels(self, occupied: Iterable[int]) -> dict[str, int]:
        """Levels of all lines while these cups are occupied."""
        return {f"{self.role}.{cell}": int(cell in set(occupied)) for cell in range(self.cells)}

    def play(self, visits: Iterable[Visit], start_ns: int, ends_s: float) -> list[Pulse]:
        """The edges of these visits until `ends_s`; one that began before time 0 has been told already."""
        f, rng = self.faults, self._rng
        edges: list[tuple[float, int, int]] = []
        busy: dict[int, list[tuple[float, float]]] = {}
        for begins, ends, cell in visits:
            busy.setdefault(cell, []).append((begins, ends))
            for time, level in ((begins, 1), (ends, 0)):
                if 0 <= time < ends_s:
                    edges += self._chattering(time, cell, level)
            edges += self._breaks(max(begins, 0.0), min(ends, ends_s), cell)
        time = rng.expovariate(f.pulses_per_s) if f.pulses_per_s else math.inf
        while time < ends_s:
            cell = rng.randrange(self.cells)
            level = int(any(begins <= time < ends for begins, ends in busy.get(cell, ())))
            edges += [(time, cell, 1 - level), (time + rng.uniform(2e-6, 2e-3), cell, level)]
            time += rng.expovariate(f.pulses_per_s)
        return self._stamped(sorted(edges), start_ns)

    def _chattering(self, time: float, cell: int, level: int) -> list[tuple[float, int, int]]:
        edges = [(time, cell, level)]
        for _ in range(self._rng.randint(0, self.faults.chatter)):
            for bounced in (1 - level, level):
                time += self._rng.uniform(2e-5, 5e-4)
                edges.append((time, cell, bounced))
        return edges

    def _breaks(self, begins: float, ends: float, cell: int) -> list[tuple[float, int, int]]:
        edges: list[tuple[float, int, int]] = []
        rate = self.faults.breaks_per_s
        time = begins + self._rng.expovariate(rate) if rate else math.inf
        while time + 0.05 < ends:
            back = time + self._rng.uniform(0.005, 0.045)
            edges += [(time, cell, 0), (back, cell, 1)]
            time = back + 0.1 + self._rng.expovariate(rate)
        return edges

    def _stamped(self, edges: list[tuple[float, int, int]], start_ns: int) -> list[Pulse]:
        """As the kernel stamps them; what is lost leaves a hole before the next edge of its line."""
        pulses: list[Pulse] = []
        holes: dict[int, int] = {}
        mean, rng = self.faults.latency_us, self._rng
        last_ns = 0
        for time, cell, level in edges:
            late_us = 5.0 + rng.expovariate(1 / mean) if mean else 0.0
            if self.faults.lost and self._losses.random() < self.faults.lost:  # the others are as without losses
                holes[cell] = holes.get(cell, 0) + 1
                continue
            last_ns = max(last_ns, start_ns + round(time * SECOND + late_us * 1000))
            pulses.append(Pulse(last_ns, f"{self.role}.{cell}", level, holes.pop(cell, 0)))
        return pulses
