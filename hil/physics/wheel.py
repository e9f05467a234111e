"""The vertical wheel: inertia, friction, pegs that bend a strap, and the hands that drive or touch it.

Equation of motion of the free wheel, angle th in the sense of the launch (physics README section 1)::

    I th'' = -(tau + c1 |th'| + c2 th'^2) sgn th'  -  strap(x)  -  u sin(th - th_u)  -  touch

A peg sits every pitch P. The hanging strap touches the peg ahead; while th is `x` past that peg the strap is bent and
pushes back with k x. At x = d it snaps over, its energy k d^2 / 2 is gone, and it hangs in the next gap. Where the
wheel has no such energy left it turns round: the unbending strap gives back only the share eta, the wheel may bend it
against the peg behind, and friction ends it. Which gap the strap hangs in is therefore history, not a function of the
angle.

Peg forces and snap angles differ from peg to peg (a property of this wheel) and from hit to hit (leather).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from hil.physics.motion import TURN, Motion, move_by_hand, push_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelModel:
    """SI units; defaults of physics README section 6."""

    pegs: int = 52
    radius_m: float = 0.75
    inertia: float = 8.0
    friction_nm: float = 0.30
    viscous: float = 0.05
    air: float = 0.02
    strap_nm: float = 225.0
    snap_rad: float = 0.040
    giveback: float = 0.5
    fall_back_s: float = 0.025
    """The strap needs this long after a snap until it pushes with full force again."""
    unbalance_nm: float = 0.04
    peg_force_spread: float = 0.08
    peg_snap_spread: float = 0.04
    hit_spread: float = 0.05
    spin_spread: float = 0.10
    """Spin to spin spread of the frictions (temperature, grease)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A force at the rim for a time.

    It begins when the wheel has slowed to `at_share` of its launch speed, or `after_s` seconds after the release.
    """

    newtons: float
    seconds: float
    at_share: float = 0.0
    after_s: float | None = None
    pushes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the croupier's hand does: wind up backwards, push forwards to `speed`, perhaps push again, let go."""

    sense: int
    """+1 raises the encoder's angle, -1 lowers it."""
    speed: float
    push_s: float = 0.7
    wind_up: float = 0.0
    """Radians drawn back before the push."""
    first_share: float = 1.0
    """Below 1 there are two pushes: the first reaches this share of `speed`."""
    pause_s: float = 0.6
    touches: tuple[Touch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """One launch with its truth; seconds from the start of the hand's movement."""

    motion: Motion
    forward_s: float
    """The hand begins to push forwards (the last reversal before the launch)."""
    released_s: float
    rest_s: float
    travel: float
    """Radians from the last reversal before the launch to the furthest point."""
    gap: int
    """The gap in which the strap hangs at rest, 0 .. pegs-1, counted with rising angle from the peg at angle 0."""
    lean: float
    """How far the strap is still bent at rest, radians."""
    touched_s: float | None


class FortuneWheel:
    """A wheel that keeps its angle from spin to spin; `seed` fixes the wheel itself (its pegs and its unbalance)."""

    def __init__(self, model: WheelModel | None = None, *, seed: int | str = 0, angle: float | None = None) -> None:
        self.model = model or WheelModel()
        own = Random(f"wheel {seed}")
        m = self.model
        self.pitch = TURN / m.pegs
        self._force = [_near_one(own, m.peg_force_spread) for _ in range(m.pegs)]
        self._snap = [_near_one(own, m.peg_snap_spread) for _ in range(m.pegs)]
        self._heavy = own.uniform(0, TURN)
        self.angle = own.uniform(0, TURN) if angle is None else angle
        self.gap = math.floor(self.angle / self.pitch)

    def spin(self, launch: Launch, rng: Random) -> Spin:
        """Play one launch to rest; the wheel stays where it stops."""
        motion = Motion()
        motion.add(0.0, self.angle)
        time = angle = 0.0
        if launch.wind_up:
            back_s = 0.35 + 0.5 * launch.wind_up
            move_by_hand(motion, self.angle, -launch.sense * launch.wind_up, back_s)
            time = back_s
        angle = self.angle - launch.sense * launch.wind_up
        forward_s, turned_at = time, angle
        speed = launch.sense * launch.speed * launch.first_share
        angle = push_profile(motion, time, angle, launch.push_s, 0.0, speed)
        time += launch.push_s
        self._follow(angle)
        run = _Run(self, rng, time, angle, speed)
        if launch.first_share < 1:
            run.free(motion, time + launch.pause_s, None, ())
            again_s = 0.4
            speed = launch.sense * launch.speed
            angle = push_profile(motion, run.time, run.angle, again_s, run.speed, speed)
            self._follow(angle)
            run.time, run.angle, run.speed = run.time + again_s, angle, speed
        released = run.time
        run.free(motion, math.inf, launch, launch.touches)
        self.angle, self.gap = run.angle, run.gap
        far = max(launch.sense * angle for angle in motion.angles)
        return Spin(
            motion=motion,
            forward_s=forward_s,
            released_s=released,
            rest_s=run.moved_s,
            travel=far - launch.sense * turned_at,
            gap=run.gap % self.model.pegs,
            lean=_bent(run.angle, run.gap, self.pitch),
            touched_s=run.touched_s,
        )

    def place(self, angle: float) -> None:
        """Somebody holds the wheel and lets it rest at this angle."""
        self.angle = angle
        self._follow(angle)

    def _follow(self, angle: float) -> None:
        """While a hand holds the wheel the strap is dragged over every peg it meets."""
        self.gap = math.floor(angle / self.pitch)


class _Run:
    """The free wheel between two holds, with the spread of this spin drawn once."""

    def __init__(self, wheel: FortuneWheel, rng: Random, time: float, angle: float, speed: float) -> None:
        m = wheel.model
        self.wheel, self.rng = wheel, rng
        self.time, self.angle, self.speed = time, angle, speed
        self.gap = wheel.gap
        self.moved_s = time
        self.touched_s: float | None = None
        self.friction = m.friction_nm * _near_one(rng, m.spin_spread)
        self.viscous = m.viscous * _near_one(rng, m.spin_spread)
        self.air = m.air * _near_one(rng, m.spin_spread)
        self.hit = _near_one(rng, m.hit_spread)
        self.snapped_s = -1.0

    def free(self, motion: Motion, until: float, launch: Launch | None, touches: tuple[Touch, ...]) -> None:
        """Integrate until `until`, or until the wheel rests for good."""
        m, wheel, rng = self.wheel.model, self.wheel, self.rng
        pitch, inertia, giveback = wheel.pitch, m.inertia, m.giveback
        forces, snaps, pegs = wheel._force, wheel._snap, m.pegs
        time, angle, speed, gap = self.time, self.angle, self.speed, self.gap
        waiting = list(touches)
        acting: list[tuple[float, Touch]] = []
        released = time
        while time < until:
            ahead, behind = angle - (gap + 1) * pitch, angle - gap * pitch
            fast = abs(speed)
            bent = ahead if ahead > 0 else min(behind, 0.0)
            torque = -m.unbalance_nm * math.sin(angle - wheel._heavy)
            if bent:
                peg = (gap + 1 if bent > 0 else gap) % pegs
                step = min(0.002, max(0.0002, 0.003 / (fast + 0.1)))
                rise = min(1.0, (time - self.snapped_s) / m.fall_back_s)
                stiff = m.strap_nm * forces[peg] * self.hit * rise
                torque -= stiff * bent * (giveback if bent * speed <= 0 else 1.0)
            else:
                room = -ahead if speed >= 0 else behind
                step = min(0.003, max(0.0002, room / (fast + 0.1)))
            braking = self.friction + self.viscous * fast + self.air * fast * fast
            for touch in waiting:
                if _begins(touch, launch, fast, time - released):
                    acting.append((time, touch))
                    if self.touched_s is None:
                        self.touched_s = time
            if acting:
                waiting = [touch for touch in waiting if all(touch is not begun for _, begun in acting)]
                acting = [(since, touch) for since, touch in acting if time - since < touch.seconds]
                for since, touch in acting:
                    force = touch.newtons * m.radius_m * min(1.0, (time - since) / 0.03)
                    if touch.pushes:
                        torque += math.copysign(force, speed)
                    else:
                        braking += force
                step = min(step, 0.001)
            speed += torque / inertia * step
            loss = braking / inertia * step
            speed = 0.0 if abs(speed) <= loss else speed - math.copysign(loss, speed)
            angle += speed * step
            time += step
            motion.add(time, angle)
            if speed:
                self.moved_s = time
            elif time - self.moved_s > (3.0 if acting else 0.1):
                break
            if bent:
                reach = m.snap_rad * snaps[peg]
                if bent > 0 and angle - (gap + 1) * pitch >= reach:
                    gap += 1
                elif bent < 0 and angle - gap * pitch <= -reach:
                    gap -= 1
                else:
                    continue
                self.snapped_s, self.hit = time, _near_one(rng, m.hit_spread)
        self.time, self.angle, self.speed, self.gap = time, angle, speed, gap


def _begins(touch: Touch, launch: Launch | None, fast: float, since_release: float) -> bool:
    if touch.after_s is not None:
        return since_release >= touch.after_s
    return launch is not None and fast < touch.at_share * launch.speed and fast > 0.15


def _bent(angle: float, gap: int, pitch: float) -> float:
    ahead, behind = angle - (gap + 1) * pitch, angle - gap * pitch
    return ahead if ahead > 0 else min(behind, 0.0)


def _near_one(rng: Random, spread: float) -> float:
    """A factor around 1, clipped at three spreads so that no parameter leaves its physical range."""
    return 1 + spread * max(-3.0, min(3.0, rng.gauss(0.0, 1.0)))
