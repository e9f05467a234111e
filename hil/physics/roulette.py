"""The horizontal wheel: a rotor that hands turn, and a ball that slows on the rim, leaves it and settles.

Ball on the rim, angle th in its own sense (physics README section 2; form of Small & Tse and of Eichberger)::

    w' = -(a w^2 + b) k - (5/7) (g/R) tilt cos(th - th_t)
    it leaves the rim when  w^2 < wc^2 + (g/R) tilt cos(th - th_t)

`a` is air and rim friction, `b` rolling friction, `wc` the speed at which the rim no longer holds it. In the first
seconds the ball slides and rattles (k > 1). Over the angle, w^2 obeys a linear equation, so it is known exactly from
arc to arc, and the time is the integral of 1/w. What happens after the drop (deflectors, frets) is not modelled but
drawn from the measured quantiles of the README. The rotor runs down almost in a straight line: w' = -(b0 + b1 w).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hil.physics.motion import TURN, Motion, push_profile

GRAVITY = 9.81
ARC = TURN / 16
"""The friction of a sliding ball is constant so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RimModel:
    """SI units; defaults of physics README section 6. The spreads are from throw to throw."""

    radius_m: float = 0.37
    ball_m: float = 0.020
    air: float = 0.009
    rolling: float = 0.060
    leaves: float = 3.0
    tilt_rad: float = 0.0
    tilt_at: float = 0.0
    air_spread: float = 0.04
    rolling_spread: float = 0.08
    leaves_spread: float = 0.015
    jostle: float = 0.0006
    """Random walk of the speed, share per root second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throw:
    """One throw with its truth; seconds from the moment the ball leaves the hand."""

    sense: int
    """As the rotor's angle."""
    model: RimModel
    angles: array[float] = field(default_factory=lambda: array("d"))
    """At the ends of the arcs, in the ball's own sense, so that they rise; the last is where it dropped."""
    times: array[float] = field(default_factory=lambda: array("d"))
    speeds: array[float] = field(default_factory=lambda: array("d"))
    on_rotor_s: float = 0.0
    settled_s: float = 0.0

    @property
    def dropped_s(self) -> float:
        """When the ball left the rim."""
        return self.times[-1]

    @property
    def turns(self) -> float:
        """How far it ran on the rim."""
        return (self.angles[-1] - self.angles[0]) / TURN

    def passages(self, at: float) -> list[tuple[float, float]]:
        """(time, speed) of every passage of the ball's middle over this angle of the rim, as the rotor's angle."""
        found = []
        angle = self.angles[0] + (self.sense * at - self.angles[0]) % TURN
        while angle < self.angles[-1]:
            found.append(self._at(angle))
            angle += TURN
        return found

    def _at(self, angle: float) -> tuple[float, float]:
        """Time and speed at this angle: between two knots a cubic in the angle, whose slopes are 1/w."""
        n = max(1, bisect_left(self.angles, angle))
        a0, a1 = self.angles[n - 1], self.angles[n]
        t0, t1, w0, w1 = self.times[n - 1], self.times[n], self.speeds[n - 1], self.speeds[n]
        width = a1 - a0
        if not width:
            return t1, w1
        x = (angle - a0) / width
        y = 1 - x
        time = t0 * y * y * (1 + 2 * x) + t1 * x * x * (1 + 2 * y) + width * x * y * (y / w0 - x / w1)
        return time, math.sqrt(y * w0 * w0 + x * w1 * w1)

    def lap_slower_than(self, seconds: float) -> float:
        """When a lap of at least this length is complete for the first time (the drop, if none is)."""
        before = 0.0
        for time in self._laps():
            if time - before >= seconds:
                return time
            before = time
        return self.dropped_s

    @property
    def first_lap_s(self) -> float:
        """When the ball has gone once round (the drop, if it never does)."""
        return next(iter(self._laps()), self.dropped_s)

    def _laps(self) -> list[float]:
        start = self.angles[0]
        return [self._at(start + n * TURN)[0] for n in range(1, int(self.turns) + 1)]


def throw_ball(speed: float, sense: int, rng: Random, model: RimModel | None = None) -> Throw:
    """Throw the ball at `speed` rad/s; `sense` as the rotor's angle."""
    m = model or RimModel()
    air = m.air * _near_one(rng, m.air_spread)
    rolling = m.rolling * _near_one(rng, m.rolling_spread)
    leaves2 = (m.leaves * _near_one(rng, m.leaves_spread)) ** 2
    skid_s, skid = rng.uniform(1.0, 4.0), rng.uniform(0.0, 0.8)
    lean = GRAVITY / m.radius_m * m.tilt_rad
    angle = rng.uniform(0.0, TURN)
    angles, times, speeds = array("d", [angle]), array("d", [0.0]), array("d", [speed])
    time, energy = 0.0, speed * speed
    uphill = sense * m.tilt_at

    def excess(at: float, energy: float) -> float:
        """Above 0 the rim holds the ball."""
        return energy - leaves2 - lean * math.cos(at - uphill)

    held = excess(angle, energy) > 0
    while held:
        later = _along(angle, energy, air, rolling, 1 + skid * max(0.0, 1 - time / skid_s), 10 / 7 * lean, uphill)
        width = ARC
        held = excess(angle + ARC, later(ARC)) > 0
        if not held:
            low, width = 0.0, ARC
            while width - low > 1e-9:
                middle = (low + width) / 2
                low, width = (middle, width) if excess(angle + middle, later(middle)) > 0 else (low, middle)
        first, half, last = (math.sqrt(energy), math.sqrt(later(width / 2)), math.sqrt(later(width)))
        seconds = width / 6 * (1 / first + 4 / half + 1 / last)
        time += seconds
        angle += width
        last *= 1 + m.jostle * math.sqrt(seconds) * rng.gauss(0.0, 1.0)
        energy = last * last
        angles.append(angle)
        times.append(time)
        speeds.append(last)
    on_rotor = time + _skewed(rng.gauss(0.0, 1.0), 0.4, 0.8, 5.4)
    settled = on_rotor + _skewed(rng.gauss(0.0, 1.0), 0.5, 1.6, 3.3)
    return Throw(
        sense=sense, model=m, angles=angles, times=times, speeds=speeds, on_rotor_s=on_rotor, settled_s=settled
    )


def _along(
    angle: float, energy: float, air: float, rolling: float, slide: float, slope: float, uphill: float
) -> Callable[[float], float]:
    """w^2 so many radians on: the solution of u' = -2 a k u - 2 b k - slope cos(th - uphill), exact for constant k."""
    decay = 2 * air * slide
    rest = -rolling / air
    across = slope / (decay * decay + 1)

    def forced(at: float) -> float:
        return rest - across * (decay * math.cos(at - uphill) + math.sin(at - uphill)) if slope else rest

    free = energy - forced(angle)
    return lambda on: free * math.exp(-decay * on) + forced(angle + on)


class Rotor:
    """The cylinder, always turning a little; keeps its angle and speed from coup to coup."""

    def __init__(self, *, angle: float = 0.0, drag: float = 0.004, viscous: float = 0.002) -> None:
        self.angle, self.speed = angle, 0.0
        self.drag, self.viscous = drag, viscous

    def actuate(self, motion: Motion, time: float, sense: int, speed: float, push_s: float = 0.8) -> float:
        """A hand stops the rotor and pushes it to `speed`; returns the moment of release."""
        if self.speed:
            brake_s = 0.4 + 0.2 * abs(self.speed)
            self.angle = push_profile(motion, time, self.angle, brake_s, self.speed, 0.0)
            time += brake_s + 0.3
            motion.add(time, self.angle)
        self.speed = sense * speed
        self.angle = push_profile(motion, time, self.angle, push_s, 0.0, self.speed)
        return time + push_s

    def place(self, angle: float) -> None:
        """Somebody holds the rotor and lets it rest at this angle."""
        self.angle, self.speed = angle, 0.0

    def coast(self, motion: Motion, time: float, until: float, *, step: float = 0.01) -> None:
        """Run down freely from `time` to `until`, a knot every `step` seconds; it may come to rest."""
        terminal = self.drag / self.viscous
        start, speed, sense = self.angle, abs(self.speed), math.copysign(1.0, self.speed)
        rests = math.log1p(speed / terminal) / self.viscous
        span = until - time
        for n in range(1, max(1, math.ceil(span / step)) + 1):
            passed = min(span, n * step)
            free = min(passed, rests)
            gone = (speed + terminal) * -math.expm1(-self.viscous * free) / self.viscous - terminal * free
            self.angle = start + sense * gone
            motion.add(time + passed, self.angle)
        left = (speed + terminal) * math.exp(-self.viscous * min(span, rests)) - terminal
        self.speed = sense * left if span < rests else 0.0


def _skewed(z: float, low: float, middle: float, high: float) -> float:
    """A log-normal value at `z` standard deviations whose 1, 50 and 99 % quantiles are as given."""
    edge = high if z > 0 else middle * middle / low
    return middle * math.exp(z / 2.326 * math.log(edge / middle))


def _near_one(rng: Random, spread: float) -> float:
    return 1 + spread * max(-3.0, min(3.0, rng.gauss(0.0, 1.0)))
