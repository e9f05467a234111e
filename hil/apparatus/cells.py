"""What a basin and a plate have in common: a ball that comes to rest in a cell, and perhaps a sensor at each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from hil.apparatus.base import Apparatus, Drawn, Levels
from hil.devices.cups import LEVELS, CupSensors
from hil.devices.lines import Pulse
from hil.physics.basin import Visit
from hil.scenario import ScenarioError

READ_S = 1.5
"""A ball that has lain so long is read by people."""


class Cells(Apparatus):
    """Keeps what lies in the cells from play to play."""

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str, numbers: Sequence[int]) -> None:
        super().__init__(table, rng, seed=seed, noise=noise)
        self.numbers = tuple(numbers)
        """Number of each cell."""
        self.cups: CupSensors | None = None
        for role, device in table["devices"].items():
            if device["family"] == "cups":
                self.cups = CupSensors(role, len(self.numbers), faults=LEVELS[noise], seed=seed)
        self.lying: list[int] = []
        """Cells that are seen to be occupied now."""

    def wanted(self, how: Mapping[str, Any]) -> int | None:
        """Where a play wants the ball: `cell` itself, or the first with its `number`; None = left to chance."""
        cell, number = how.get("cell"), how.get("number")
        if cell is None and number is not None:
            cell = self.numbers.index(number) if number in self.numbers else -1
        if cell is not None and not (0 <= cell < len(self.numbers) and number in (None, self.numbers[cell])):
            raise ScenarioError(f"number {number!r}, cell {cell!r}: this {self.what} has no such cell")
        return cell

    def roll(self, drawn: Drawn, how: Mapping[str, Any], visits: Sequence[Visit], thrown_s: float) -> None:
        """The ball leaves where it lies at the moment it is thrown, and makes these visits, seconds from there.

        `hops` and `picked_up_ms` are what becomes of it then, `sensor` what its sensors make of that.
        """
        before = [Visit(-1.0, thrown_s, cell) for cell in self.lying]
        *calls, rest = (Visit(thrown_s + begins, thrown_s + ends, cell) for begins, ends, cell in visits)
        seen = list(calls)
        if hop := how.get("hops"):
            leaves = rest.begins + hop["ms"] / 1000
            seen.append(rest._replace(ends=leaves))
            rest = Visit(leaves + 0.4, math.inf, hop["cell"])
        seen.append(rest)
        sensor = how.get("sensor", {})
        if "cup" in sensor.get("misses", ()):
            seen = [visit for visit in seen if visit.cell != rest.cell]
        if "also" in sensor:
            seen.append(Visit(rest.begins, math.inf, sensor["also"]))
        if "picked_up_ms" in how:
            ends = thrown_s + how["picked_up_ms"] / 1000
            seen = [visit._replace(ends=min(visit.ends, ends)) for visit in seen if visit.begins < ends]
        drawn.visits = before + seen
        self.lying = [visit.cell for visit in seen if visit.ends == math.inf]

    def nothing(self, how: Mapping[str, Any]) -> Drawn:
        """The ball stays where it lies."""
        drawn = super().nothing(how)
        drawn.visits = [Visit(-1.0, math.inf, cell) for cell in self.lying]
        return drawn

    def levels(self) -> dict[str, Levels]:
        """Of the encoder and of every cell."""
        return super().levels() | ({self.cups.role: self.cups.levels(self.lying)} if self.cups else {})

    def sensed(self, drawn: Drawn, start_ns: int) -> dict[str, list[Pulse]]:
        """By the encoder and by every cell."""
        seen = super().sensed(drawn, start_ns)
        if self.cups:
            seen[self.cups.role] = self.cups.play(drawn.visits, start_ns, drawn.ends_s)
        return seen
