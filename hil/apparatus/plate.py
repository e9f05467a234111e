"""The plate of the vingt-trois: actuated at its crown, with the ball under the dome and the cells on what turns."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hil.apparatus.base import Drawn
from hil.apparatus.cells import READ_S, Cells
from hil.physics import plate
from hil.physics.motion import move_by_hand

PUSHED_S = 2.0
"""The croupier says rien ne va plus and takes the crown."""


class Plate(Cells):
    """`spin`, `hand`; an encoder on the plate or, with `direction = "ccw"`, on the crown that turns against it."""

    what = "plate"

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        numbers = [number for number, _ in table["options"]["plateau"]]
        super().__init__(table, rng, seed=seed, noise=noise, numbers=numbers)
        self.plate = plate.Plate(cells=len(self.numbers), angle=self.half_count)
        self.kinds |= {"spin": self.spin, "hand": self.by_hand}

    @property
    def angle(self) -> float:
        """Of the plate."""
        return self.plate.angle

    def spin(self, how: Mapping[str, Any]) -> Drawn:
        """The plate whirls, the ball comes down and stays in a cell."""
        drawn = self.nothing({})
        push_s = how.get("push_ms", 400) / 1000
        whirl = self.plate.whirl(
            self.sense(how["direction"]), float(how["speed"]), self.rng, push_s=push_s, cell=self.wanted(how)
        )
        drawn.motion.extend(whirl.motion, PUSHED_S)
        lies = whirl.visits[-1].cell
        drawn.number = f"{self.numbers[lies]} {lies}"
        truth = {
            "pushed": 0.0,
            "released": whirl.released_s,
            "settled": whirl.settled_s,
            "rest": whirl.rest_s,
            "read": max(whirl.settled_s, whirl.rest_s) + READ_S,
        }
        drawn.moments |= {name: PUSHED_S + time for name, time in truth.items()}
        self.roll(drawn, how, whirl.visits, PUSHED_S)
        return drawn

    def by_hand(self, how: Mapping[str, Any]) -> Drawn:
        """The plate held all the way."""
        drawn = self.nothing({})
        move_by_hand(drawn.motion, self.angle, self.radians(how["direction"], how["counts"]), how["ms"] / 1000)
        self.plate.place(drawn.motion.angles[-1])
        drawn.moments["released"] = drawn.motion.ends
        return drawn
