"""The vertical wheel: actuated by hand, run out over its pegs, or turned exactly so far for a scripted border."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hil.apparatus.base import Apparatus, Drawn
from hil.physics.motion import drawn_spin, move_by_hand
from hil.physics.wheel import FortuneWheel, Launch, Spin
from hil.scenario import touches


class Wheel(Apparatus):
    """`spin`, `drawn`, `hand`; an encoder on the shaft."""

    what = "vertical wheel"

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        super().__init__(table, rng, seed=seed, noise=noise)
        self.wheel = FortuneWheel(seed=seed, angle=self.half_count)
        self.spun: Spin | None = None
        """The truth of the last spin."""
        self.kinds |= {"spin": self.spin, "drawn": self.exactly, "hand": self.by_hand}

    @property
    def angle(self) -> float:
        """Of the wheel."""
        return self.wheel.angle

    def spin(self, how: Mapping[str, Any]) -> Drawn:
        """By its physics."""
        launch = Launch(
            sense=self.sense(how["direction"]),
            speed=float(how["speed"]),
            push_s=how.get("push_ms", 700) / 1000,
            wind_up=float(how.get("wind_up", 0.0)),
            first_share=float(how.get("first_share", 1.0)),
            touches=touches(how),
        )
        spin = self.spun = self.wheel.spin(launch, self.rng)
        moments = {"start": 0.0, "pushed": spin.forward_s, "released": spin.released_s, "rest": spin.rest_s}
        if spin.touched_s is not None:
            moments["touched"] = spin.touched_s
        return Drawn(moments, spin.motion)

    def exactly(self, how: Mapping[str, Any]) -> Drawn:
        """Exactly so many counts."""
        push_s = how.get("push_ms", 700) / 1000
        motion = drawn_spin(self.angle, self.radians(how["direction"], how["counts"]), push_s)
        self.wheel.place(motion.angles[-1])
        return Drawn({"start": 0.0, "pushed": 0.0, "released": push_s, "rest": motion.ends}, motion)

    def by_hand(self, how: Mapping[str, Any]) -> Drawn:
        """Held all the way."""
        motion = self.at_rest()
        move_by_hand(motion, self.angle, self.radians(how["direction"], how["counts"]), how["ms"] / 1000)
        self.wheel.place(motion.angles[-1])
        return Drawn({"start": 0.0, "released": motion.ends}, motion)
