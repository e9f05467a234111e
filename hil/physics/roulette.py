"""The horizontal wheel: a rotor that hands turn, and a ball that slows on the rim, leaves it and settles.

Ball on the rim, angle th in its own sense (physics README section 2; form of Small & Tse and of Eichberger)::

    w' = -(a w^2 + b) (1 + skid(t)) - (5/7) (g/R) tilt cos(th - th_t)
    it leaves the rim when  w^2 < wc^2 + (g/R) tilt cos(th - th_t)

`a` is air and rim friction, `b` rolling friction, `wc` the speed at which the rim no longer holds it. In the first
seconds the ball slides and rattles. What happens after the drop (deflectors, frets) is not modelled but drawn from the
measured quantiles of the README. The rotor runs down almost in a straight line: w' = -(b0 + b1 w).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from hil.physics.motion import TURN, Motion, push_profile

GRAVITY = 9.81


@dataclass(frozen=True, slots=True, kw_only=True)
class RimModel:
    """SI units; defaults of physics README section 6. The spreads are from throw to throw."""

    radius_m: float = 0.37
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

    motion: Motion
    """The ball's angle on the rim, signed by its sense; ends when it leaves the rim."""
    dropped_s: float
    on_rotor_s: float
    settled_s: float

    def lap_slower_than(self, seconds: float) -> float:
        """When a lap of at least this length is complete for the first time (the drop, if none is)."""
        passages = [time for time, _ in self.motion.crossings(TURN, self.motion.angles[0] + 0.001)]
        for before, after in pairwise(passages):
            if after - before >= seconds:
                return after
        return self.dropped_s

    @property
    def first_lap_s(self) -> float:
        """When the ball has gone once round (the drop, if it never does)."""
        return next((time for time, _ in self.motion.crossings(TURN, self.motion.angles[0] + TURN)), self.dropped_s)


def throw_ball(speed: float, sense: int, rng: Random, model: RimModel | None = None) -> Throw:
    """Throw the ball at `speed` rad/s; `sense` as the rotor's angle."""
    m = model or RimModel()
    air = m.air * _near_one(rng, m.air_spread)
    rolling = m.rolling * _near_one(rng, m.rolling_spread)
    leaves = m.leaves * _near_one(rng, m.leaves_spread)
    skid_s, skid = rng.uniform(1.0, 4.0), rng.uniform(0.0, 0.8)
    lean = GRAVITY / m.radius_m * m.tilt_rad
    angle = rng.uniform(0.0, TURN)
    motion = Motion()
    motion.add(0.0, sense * angle)
    time, step = 0.0, 0.002
    while True:
        downhill = lean * math.cos(angle - m.tilt_at)
        if speed * speed < leaves * leaves + downhill:
            break
        drag = (air * speed * speed + rolling) * (1 + skid * max(0.0, 1 - time / skid_s))
        speed -= (drag + 5 / 7 * downhill) * step
        speed *= 1 + m.jostle * math.sqrt(step) * rng.gauss(0.0, 1.0)
        angle += speed * step
        time += step
        motion.add(time, sense * angle)
    luck = rng.gauss(0.0, 1.0)
    on_rotor = time + _skewed(luck, 0.4, 0.8, 5.4)
    settled = on_rotor + _skewed(rng.gauss(0.0, 1.0), 0.5, 1.6, 3.3)
    return Throw(motion=motion, dropped_s=time, on_rotor_s=on_rotor, settled_s=settled)


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

    def coast(self, motion: Motion, time: float, until: float) -> None:
        """Run down freely from `time` to `until`; it may come to rest."""
        terminal = self.drag / self.viscous
        start, speed, sense = self.angle, abs(self.speed), math.copysign(1.0, self.speed)
        rests = math.log1p(speed / terminal) / self.viscous
        span = until - time
        for n in range(1, max(1, math.ceil(span / 0.01)) + 1):
            passed = min(span, n * 0.01)
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
