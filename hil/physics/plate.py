"""The plate of the vingt-trois under its dome: a crown turns it, pinions reverse the sense, a ball is flung up inside.

The plate slows by w' = -w/tau - drag (physics README sections 3 and 6: w0 6 to 14 rad/s, tau 3 to 4.5 s; `drag` is
chosen so that launch to rest takes some fifteen seconds). The ball comes down when 8 to 14 seconds have passed, or the
plate rests; it hops over some of the cells, which turn with the plate, and stays in one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from hil.physics.basin import Visit, rocking
from hil.physics.motion import Motion, push_profile

DRAG = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class Whirl:
    """One actuation with its truth; seconds from the moment the hand begins to push."""

    motion: Motion
    """The plate's angle."""
    released_s: float
    rest_s: float
    """The plate stands."""
    visits: list[Visit]
    """The ball over the cells; the last one does not end."""

    @property
    def settled_s(self) -> float:
        """The ball moves no more in its cell."""
        return self.visits[-1].begins


class Plate:
    """Keeps its angle from coup to coup."""

    def __init__(self, *, cells: int = 27, angle: float = 0.0) -> None:
        self.cells, self.angle = cells, angle

    def whirl(self, sense: int, speed: float, rng: Random, *, push_s: float = 0.4, cell: int | None = None) -> Whirl:
        """A hand at the crown brings the plate to `speed` rad/s; the ball stays in `cell` where that is wanted."""
        tau = rng.uniform(3.0, 4.5)
        motion = Motion()
        motion.add(0.0, self.angle)
        released = push_profile(motion, 0.0, self.angle, push_s, 0.0, sense * speed)
        free = tau * math.log1p(speed / (DRAG * tau))
        steps = math.ceil(free / 0.005)
        for n in range(1, steps + 1):
            time = free * n / steps
            gone = (speed + DRAG * tau) * tau * -math.expm1(-time / tau) - DRAG * tau * time
            motion.add(push_s + time, released + sense * gone)
        self.angle = motion.angles[-1]
        down = min(rng.uniform(8.0, 14.0), motion.ends)
        return Whirl(motion=motion, released_s=push_s, rest_s=motion.ends, visits=self._hops(down, rng, cell))

    def place(self, angle: float) -> None:
        """Somebody holds the plate and lets it rest at this angle."""
        self.angle = angle

    def _hops(self, time: float, rng: Random, cell: int | None) -> list[Visit]:
        last = rng.randrange(self.cells) if cell is None else cell
        hops = [rng.randrange(self.cells) for _ in range(rng.randint(1, 5))]
        visits = []
        for over in hops:
            stays = rng.uniform(0.02, 0.25)
            visits.append(Visit(time, time + stays, over))
            time += stays + rng.uniform(0.05, 0.30)
        return visits + rocking(last, time, rng)
