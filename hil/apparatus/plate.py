"""The plate of the vingt-trois: actuated at its crown, with the ball under the dome and the cells on what turns."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hil.apparatus.base import Apparatus, Drawn, cell_wanted
from hil.physics import plate
from hil.physics.motion import Motion, move_by_hand

PUSHED_S = 2.0
"""The croupier says rien ne va plus and takes the crown."""
READ_S = 1.5
"""A ball that has lain so long is read."""


class Plate(Apparatus):
    """`spin`, `hand`; an encoder on the plate or, with `direction = "ccw"`, on the crown that turns against it."""

    what = "plate"

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        super().__init__(table, rng, seed=seed, noise=noise)
        self.numbers: tuple[int, ...] = tuple(number for number, _ in table["options"]["plateau"])
        """Number of each cell."""
        self.plate = plate.Plate(cells=len(self.numbers), angle=self.half_count)
        self.kinds |= {"spin": self.spin, "hand": self.by_hand}

    @property
    def angle(self) -> float:
        """Of the plate."""
        return self.plate.angle

    def spin(self, how: Mapping[str, Any]) -> Drawn:
        """The plate whirls, the ball comes down and stays in a cell."""
        cell = cell_wanted(how, self.numbers, self.what)
        push_s = how.get("push_ms", 400) / 1000
        motion = Motion()
        motion.add(0.0, self.angle)
        whirl = self.plate.whirl(self.sense(how["direction"]), float(how["speed"]), self.rng, push_s=push_s, cell=cell)
        motion.extend(whirl.motion, PUSHED_S)
        lies = whirl.visits[-1].cell
        moments = {"start": 0.0, "pushed": PUSHED_S}
        truth = {
            "released": whirl.released_s,
            "settled": whirl.settled_s,
            "rest": whirl.rest_s,
            "read": max(whirl.settled_s, whirl.rest_s) + READ_S,
        }
        moments |= {name: PUSHED_S + time for name, time in truth.items()}
        return Drawn(moments, motion, number=f"{self.numbers[lies]} {lies}")

    def by_hand(self, how: Mapping[str, Any]) -> Drawn:
        """The plate held all the way."""
        motion = self.at_rest()
        move_by_hand(motion, self.angle, self.radians(how["direction"], how["counts"]), how["ms"] / 1000)
        self.plate.place(motion.angles[-1])
        return Drawn({"start": 0.0, "released": motion.ends}, motion)
