"""The basin of the boule: no part of it turns; a ball is thrown along its rim and comes to rest in a cup."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hil.apparatus.base import Drawn
from hil.apparatus.cells import READ_S, Cells
from hil.physics.basin import roll_ball

THROWN_S = 2.0
"""The croupier says rien ne va plus, takes the ball out of its cup, and throws it."""


class Basin(Cells):
    """`throw`."""

    what = "basin"

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        super().__init__(table, rng, seed=seed, noise=noise, numbers=table["options"]["cuvettes"])
        self.kinds |= {"throw": self.throw}

    def throw(self, how: Mapping[str, Any]) -> Drawn:
        """Once round the rim or seven times, then from cup to cup."""
        speed = float(how.get("ball", {}).get("speed", 3.3))
        roll = roll_ball(len(self.numbers), speed, 1, self.rng, cell=self.wanted(how))
        drawn = Drawn({"start": 0.0, "thrown": THROWN_S}, number=self.numbers[roll.cell])
        ends = how["picked_up_ms"] / 1000 if "picked_up_ms" in how else None
        truth = {"dropped": roll.dropped_s, "settled": roll.settled_s, "read": roll.settled_s + READ_S}
        drawn.moments |= {name: THROWN_S + time for name, time in truth.items() if ends is None or time < ends}
        self.roll(drawn, how, roll.visits, THROWN_S)
        return drawn
