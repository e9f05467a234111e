"""The basin of the boule: a ball runs on the rim, rolls down to a ring of cups, calls at some of them and stays in one.

On the rim the ball, v0 2.2 to 4 m/s, loses a constant deceleration until the banked rim carries it no longer,
v^2 < g R tan(bank) (physics README sections 3 and 6). What follows is not a true path but a chance walk that has the
README's figures: cup by cup the ball slows, rocks on a lip now and then, and is the likelier caught the slower it is;
in its cup it rocks a last few times, so that a sensor sees it leave for some hundredths of a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from hil.physics.motion import TURN, Motion

GRAVITY = 9.81


class Visit(NamedTuple):
    """The ball is over the sensor of `cell` from `begins` to `ends` seconds (infinity: it lies there)."""

    begins: float
    ends: float
    cell: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BasinModel:
    """SI units; defaults of physics README section 6."""

    rim_m: float = 0.72
    bank_rad: float = math.radians(13)
    bank_spread: float = 0.10
    """Largest deviation, of one throw, of the speed at which the rim is left."""
    deceleration: tuple[float, float] = (0.20, 0.35)
    ring_m: float = 0.36
    cup_m: float = 0.075
    caught_below: float = 0.45
    """At this speed a cup catches the ball one time out of e."""
    rocks: float = 0.12
    """Share of the calls in which the ball rocks on the lip before it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """One throw with its truth; seconds from the moment the ball leaves the hand."""

    rim: Motion
    """The ball's angle on the rim, signed by its sense; ends when it leaves the rim."""
    dropped_s: float
    visits: list[Visit]
    """In order; the last one does not end."""

    @property
    def settled_s(self) -> float:
        """The ball moves no more."""
        return self.visits[-1].begins

    @property
    def cell(self) -> int:
        """The cup in which it lies."""
        return self.visits[-1].cell


def roll_ball(
    cups: int, speed: float, sense: int, rng: Random, *, cell: int | None = None, model: BasinModel | None = None
) -> Roll:
    """Throw the ball along the rim at `speed` rad/s; where a `cell` is wanted, the ring is turned until it is that."""
    m = model or BasinModel()
    slowing = rng.uniform(*m.deceleration)
    leaves = math.sqrt(GRAVITY * m.rim_m * math.tan(m.bank_rad)) * rng.uniform(1 - m.bank_spread, 1 + m.bank_spread)
    metres, dropped = speed * m.rim_m, max(0.0, (speed * m.rim_m - leaves) / slowing)
    rim, begins = Motion(), rng.uniform(0, TURN)
    for n in range(math.ceil(dropped / 0.01) + 1):
        time = min(dropped, n * 0.01)
        rim.add(time, sense * (begins + (metres * time - slowing * time * time / 2) / m.rim_m))
    visits = _walk(cups, 0.8 * min(metres, leaves), dropped + rng.uniform(0.5, 1.2), sense, rng, m)
    turned = 0 if cell is None else cell - visits[-1].cell
    return Roll(rim=rim, dropped_s=dropped, visits=[Visit(b, e, (at + turned) % cups) for b, e, at in visits])


def _walk(cups: int, speed: float, time: float, sense: int, rng: Random, m: BasinModel) -> list[Visit]:
    """Cup by cup from the first call until one keeps the ball."""
    visits: list[Visit] = []
    at, between = rng.randrange(cups), TURN * m.ring_m / cups
    while speed > 0.12 and rng.random() > math.exp(-((speed / m.caught_below) ** 2)):
        stays = m.cup_m / max(speed, 0.15) * rng.uniform(0.5, 1.5)
        if rng.random() < m.rocks:
            stays += rng.lognormvariate(math.log(0.25), 0.4)
        visits.append(Visit(time, time + stays, at))
        time += stays + between / max(speed, 0.15) * rng.uniform(0.3, 2.0)
        at = (at + sense * rng.choice((1, 1, 1, 2, cups // 2))) % cups
        speed *= rng.uniform(0.75, 0.97)
    visits += rocking(at, time, rng)
    return visits


def rocking(at: int, time: float, rng: Random) -> list[Visit]:
    """The ball comes to rest in a cup: none to three short absences, then it lies."""
    visits = []
    for _ in range(rng.randrange(4)):
        stays = rng.uniform(0.05, 0.35)
        visits.append(Visit(time, time + stays, at))
        time += stays + rng.uniform(0.01, 0.05)
    return [*visits, Visit(time, math.inf, at)]
