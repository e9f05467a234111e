"""The basin of the boule: no part of it turns; a ball is thrown along its rim and comes to rest in a cup."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hil.apparatus.base import Apparatus, Drawn, cell_wanted
from hil.physics.basin import roll_ball

THROWN_S = 2.0
"""The croupier says rien ne va plus, takes the ball out of its cup, and throws it."""
READ_S = 1.5
"""A ball that has lain so long is read."""


class Basin(Apparatus):
    """`throw`."""

    what = "basin"

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        super().__init__(table, rng, seed=seed, noise=noise)
        self.numbers: tuple[int, ...] = tuple(table["options"]["cuvettes"])
        """Number of each cup."""
        self.kinds |= {"throw": self.throw}

    def throw(self, how: Mapping[str, Any]) -> Drawn:
        """Once round the rim or seven times, then from cup to cup."""
        cell = cell_wanted(how, self.numbers, self.what)
        ball = how.get("ball", {})
        roll = roll_ball(len(self.numbers), float(ball.get("speed", 3.3)), 1, self.rng, cell=cell)
        drawn = Drawn({"start": 0.0, "thrown": THROWN_S}, number=self.numbers[roll.cell])
        ends = how["picked_up_ms"] / 1000 if "picked_up_ms" in how else None
        truth = {"dropped": roll.dropped_s, "settled": roll.settled_s, "read": roll.settled_s + READ_S}
        drawn.moments |= {name: THROWN_S + time for name, time in truth.items() if ends is None or time < ends}
        return drawn
