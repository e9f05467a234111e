"""Beams across the ball track: from a throw to the edges that a kernel would stamp, with the faults of real beams.

A beam is interrupted from the moment the ball's edge reaches it until the other edge leaves: its chord at that height
over its speed (physics README section 2.2). Levels are logical: 1 = interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hil.devices.lines import Pulse
from hil.physics.roulette import Throw

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong between the ball and the reader."""

    missed: float = 0.003
    """Share of passages that no beam reports."""
    split: float = 0.01
    """Share of passages in two parts."""
    false_per_s: float = 0.01
    """Interruptions by something else, from half a millisecond to a third of a second."""
    late_us: float = 30.0
    """Mean delay of a stamp."""
    off_rad: float = 0.017
    """Largest error of where a beam was mounted."""
    narrow: float = 0.2
    """The beam meets up to this much less than the ball's diameter."""


NOISY = Faults(missed=0.02, split=0.05, false_per_s=0.1)
LEVELS: Mapping[str, Faults] = {
    "clean": Faults(missed=0.0, split=0.0, false_per_s=0.0, late_us=0.0, off_rad=0.0, narrow=0.0),
    "L0": Faults(),
    "L1": Faults(),
    "L2": Faults(missed=0.01, split=0.02, false_per_s=0.03),
    "L3": NOISY,
    "L4": NOISY,
}


class Rim:
    """The beams of role `role`, at these degrees; `clockwise` is +1 where the rotor's angle rises clockwise."""

    def __init__(
        self,
        role: str,
        beams_deg: Sequence[float],
        *,
        faults: Faults = LEVELS["L0"],
        seed: object = 0,
        clockwise: int = 1,
    ) -> None:
        self.role, self.faults, self._rng = role, faults, Random(f"rim {role} {seed}")
        self._lines = [f"{role}.{n}" for n in range(len(beams_deg))]
        self._angles = [
            clockwise * (math.radians(beam) + self._rng.uniform(-faults.off_rad, faults.off_rad)) for beam in beams_deg
        ]
        self.dead: set[int] = set()
        """Beams that report nothing."""

    def levels(self) -> dict[str, int]:
        """Levels of all lines while no ball is in a beam."""
        return dict.fromkeys(self._lines, 0)

    def play(self, throw: Throw, start_ns: int, *, taken_s: float = math.inf, after_s: float = 0.0) -> list[Pulse]:
        """The edges of a throw that begins at `start_ns`; a hand takes the ball at `taken_s`.

        What else comes by does so until `after_s` later.
        """
        faults, ends = self.faults, min(throw.dropped_s, taken_s)
        edges: list[tuple[float, int, int]] = []
        for beam, angle in enumerate(self._angles):
            for time, speed in throw.passages(angle):
                if time < ends:
                    met = throw.model.ball_m * (1 - self._rng.uniform(0.0, faults.narrow))
                    half = met / (throw.model.radius_m * speed) / 2
                    edges += self._passage(beam, time, half)
        time = self._false(0.0)
        while time < ends + after_s:
            long = 10 ** self._rng.uniform(-3.3, -0.5)
            beam = self._rng.randrange(len(self._angles))
            edges += [(time, beam, 1), (time + long, beam, 0)]
            time = self._false(time)
        return self._as_seen(edges, start_ns)

    def _passage(self, beam: int, time: float, half: float) -> list[tuple[float, int, int]]:
        f, rng = self.faults, self._rng
        if rng.random() < f.missed:
            return []
        first, last = (time + side * half + self._late() for side in (-1, 1))
        if rng.random() >= f.split:
            return [(first, beam, 1), (last, beam, 0)]
        middle = time + rng.uniform(-0.3, 0.3) * half
        return [(first, beam, 1), (middle, beam, 0), (middle + 0.0002, beam, 1), (last, beam, 0)]

    def _late(self) -> float:
        return self._rng.expovariate(1e6 / self.faults.late_us) if self.faults.late_us else 0.0

    def _false(self, time: float) -> float:
        return time + self._rng.expovariate(self.faults.false_per_s) if self.faults.false_per_s else math.inf

    def _as_seen(self, edges: list[tuple[float, int, int]], start_ns: int) -> list[Pulse]:
        """Interruptions that overlap are one; a dead beam shows none."""
        inside = [0] * len(self._angles)
        seen = []
        for time, beam, level in sorted(edges):
            before = inside[beam]
            inside[beam] += 1 if level else -1
            if beam not in self.dead and (before == 0 or inside[beam] == 0):
                seen.append(Pulse(start_ns + round(time * SECOND), self._lines[beam], level))
        return seen
