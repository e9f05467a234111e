"""An angle over time, and motions drawn by hand instead of by a model."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

TURN = 2 * math.pi


@dataclass(slots=True)
class Motion:
    """A polyline: `angles[i]` radians at `times[i]` seconds; times rise; between knots the angle is linear.

    The models place knots so densely that the chord error stays under a hundredth of an encoder count.
    """

    times: array[float] = field(default_factory=lambda: array("d"))
    angles: array[float] = field(default_factory=lambda: array("d"))

    def add(self, time: float, angle: float) -> None:
        """Append a knot."""
        self.times.append(time)
        self.angles.append(angle)

    def extend(self, other: Motion, delay: float) -> None:
        """Append another motion, `delay` seconds later on its own clock."""
        self.times.extend(time + delay for time in other.times)
        self.angles.extend(other.angles)

    def at(self, time: float) -> float:
        """The angle at this time; before the first and after the last knot the thing is at rest."""
        after = bisect_right(self.times, time)
        if after == 0:
            return self.angles[0]
        if after == len(self.times):
            return self.angles[-1]
        t0, t1 = self.times[after - 1], self.times[after]
        a0, a1 = self.angles[after - 1], self.angles[after]
        return a0 + (a1 - a0) * (time - t0) / (t1 - t0)

    def until(self, time: float) -> Motion:
        """The part up to this time."""
        keep = bisect_right(self.times, time)
        cut = Motion(self.times[:keep], self.angles[:keep])
        if keep and cut.times[-1] < time:
            cut.add(time, self.at(time))
        return cut

    def crossings(self, spacing: float, offset: float) -> Iterator[tuple[float, int]]:
        """(time, +1 or -1) of every passage over `offset + k * spacing` for whole k, in order of time."""
        if not self.angles:
            return
        last_time, last = self.times[0], (self.angles[0] - offset) / spacing
        cell = math.floor(last)
        for time, angle in zip(self.times, self.angles, strict=True):
            now = (angle - offset) / spacing
            target = math.floor(now)
            if target != cell:
                slope = (time - last_time) / (now - last)
                while cell < target:
                    cell += 1
                    yield last_time + (cell - last) * slope, 1
                while cell > target:
                    yield last_time + (cell - last) * slope, -1
                    cell -= 1
            last_time, last = time, now

    @property
    def ends(self) -> float:
        """Time of the last knot."""
        return self.times[-1]


def push_profile(motion: Motion, start: float, angle: float, seconds: float, before: float, speed: float) -> float:
    """A hand brings the thing from speed `before` to `speed` without jerk (squared sine); returns the angle reached."""
    steps = max(20, round(seconds / 0.002))
    for n in range(1, steps + 1):
        share = n / steps
        # integral of before + (speed - before) * sin^2(pi/2 * x)
        gone = seconds * (before * share + (speed - before) * (share / 2 - math.sin(math.pi * share) / TURN))
        motion.add(start + seconds * share, angle + gone)
    return angle + seconds * (before + speed) / 2


def move_by_hand(motion: Motion, angle: float, by: float, seconds: float) -> None:
    """From time 0 a hand turns the thing by `by` radians, from rest to rest."""
    steps = max(10, round(seconds / 0.002))
    for n in range(1, steps + 1):
        motion.add(seconds * n / steps, angle + by * (1 - math.cos(math.pi * n / steps)) / 2)


def drawn_spin(angle: float, travel: float, push_s: float, drag: float = 0.21, viscous: float = 0.02) -> Motion:
    """A launch from rest that covers exactly `travel` radians (signed); released after `push_s` seconds.

    The thing then slows by `drag + viscous * speed` (rad/s2), whose run-out has a closed form; the launch speed is what
    the distance needs.
    """
    sense = math.copysign(1.0, travel)
    low, high = 0.0, 60.0
    for _ in range(50):
        speed = (low + high) / 2
        run_out = speed / viscous - drag / viscous**2 * math.log1p(viscous * speed / drag)
        low, high = (speed, high) if speed * push_s / 2 + run_out < abs(travel) else (low, speed)
    motion = Motion()
    motion.add(0.0, angle)
    released = push_profile(motion, 0.0, angle, push_s, 0.0, sense * low)
    seconds = math.log1p(viscous * low / drag) / viscous
    steps = round(seconds / 0.002)
    terminal = drag / viscous
    for n in range(1, steps):
        time = seconds * n / steps
        gone = (low + terminal) * -math.expm1(-viscous * time) / viscous - terminal * time
        motion.add(push_s + time, released + sense * gone)
    motion.add(push_s + seconds, angle + travel)
    return motion
