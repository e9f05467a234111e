"""Encoder signals for tests: motions drawn by hand or by a small model of a wheel with pegs, and the edges they make.

Written from the physics, not from the decoder. Angles are in counts (one count = one boundary crossed), rising
clockwise; a path is a list of (seconds, counts).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random

from drivers.base import Edge

TURN = 2400
RAD = TURN / (2 * math.pi)
"""Counts of one radian."""
SECOND = 1_000_000_000
MS = 1_000_000
STEP = 0.002

Path = list[tuple[float, float]]


def to(path: Path, counts: float, seconds: float) -> Path:
    """A hand moves the thing to this angle, from rest to rest."""
    start_s, start = path[-1]
    steps = max(2, round(seconds / STEP))
    for n in range(1, steps + 1):
        share = (1 - math.cos(math.pi * n / steps)) / 2
        path.append((start_s + seconds * n / steps, start + (counts - start) * share))
    return path


def still(path: Path, seconds: float) -> Path:
    """Nothing moves."""
    path.append((path[-1][0] + seconds, path[-1][1]))
    return path


def push(path: Path, speed: float, seconds: float, before: float = 0.0) -> Path:
    """A hand brings the thing from speed `before` to `speed` (counts/s, signed) without jerk."""
    start_s, start = path[-1]
    steps = max(20, round(seconds / STEP))
    for n in range(1, steps + 1):
        x = n / steps
        gone = seconds * (before * x + (speed - before) * (x / 2 - math.sin(math.pi * x) / (2 * math.pi)))
        path.append((start_s + seconds * x, start + gone))
    return path


def coast(path: Path, speed: float, drag: float, seconds: float) -> tuple[Path, float]:
    """Runs on from `speed` (counts/s, signed) with a constant deceleration, until rest or so long; the speed then."""
    start_s, start = path[-1]
    sense = math.copysign(1.0, speed)
    ends = min(seconds, abs(speed) / drag)
    steps = max(2, round(ends / STEP))
    for n in range(1, steps + 1):
        t = ends * n / steps
        path.append((start_s + t, start + speed * t - sense * drag * t * t / 2))
    return path, speed - sense * drag * ends


def launch(path: Path, travel: float, *, push_s: float = 0.6, drag: float = 0.22 * RAD) -> Path:
    """One push and a run-out that together cover exactly `travel` counts (signed)."""
    sense, length = math.copysign(1.0, travel), abs(travel)
    # speed * push_s / 2 + speed^2 / (2 drag) = length
    speed = drag * (math.sqrt(push_s * push_s / 4 + 2 * length / drag) - push_s / 2)
    end = path[-1][1] + travel
    push(path, sense * speed, push_s)
    coast(path, sense * speed, drag, math.inf)
    path[-1] = (path[-1][0], end)
    return path


def rebound(path: Path, counts: float) -> Path:
    """The strap throws the wheel back (sign tells the sense) and half forward again."""
    at = path[-1][1]
    to(path, at + counts, 0.5)
    to(path, at + counts / 2, 0.4)
    return path


class Wheel:
    """Wheel with pegs (physics README 1.1): strap, snap-over, giveback, friction; radians inside."""

    def __init__(self, seed: int, pegs: int = 52) -> None:
        self.random = Random(seed)
        self.pitch = 2 * math.pi / pegs
        self.pegs = pegs
        self.angle = self.random.uniform(0.4, 0.9) * self.pitch
        self.gap = 0

    def spin(self, path: Path, speed: float, touch: tuple[float, float, float] | None = None) -> tuple[Path, float]:
        """Push to `speed` rad/s (signed) and run out; `touch` = newtons, seconds, speed at which it begins.

        Returns the path and the time of the release.
        """
        push(path, speed * RAD, 0.7)
        time, angle = path[-1][0], path[-1][1] / RAD
        released, touched = time, math.inf
        self.gap = math.floor(angle / self.pitch)
        hit, snapped, step, standing = 1.0, -1.0, 0.0005, 0.0
        friction = 0.3 * (1 + 0.08 * self.random.gauss(0, 1))
        while standing < 0.5:
            ahead, behind = angle - (self.gap + 1) * self.pitch, angle - self.gap * self.pitch
            bent = ahead if ahead > 0 else min(behind, 0.0)
            stiff = 225.0 * hit * min(1.0, (time - snapped) / 0.025) * (0.5 if bent * speed <= 0 else 1.0)
            brake = friction + 0.05 * abs(speed) + 0.02 * speed * speed
            if touch is not None:
                if touched == math.inf and abs(speed) < touch[2]:
                    touched = time
                brake += touch[0] * 0.75 * (touched <= time < touched + touch[1])
            speed += -stiff * bent / 8.0 * step
            loss = brake / 8.0 * step
            speed = 0.0 if abs(speed) <= loss else speed - loss * math.copysign(1.0, speed)
            standing = standing + step if not speed else 0.0
            angle += speed * step
            time += step
            path.append((time, angle * RAD))
            if ahead > 0.04 or behind < -0.04:
                self.gap += 1 if ahead > 0.04 else -1
                hit, snapped = 1 + 0.05 * self.random.gauss(0, 1), time
        self.angle = angle
        return path, released


def edges(path: Path, role: str = "wheel", start_ns: int = SECOND, turn: int = TURN) -> list[Edge]:
    """What the kernel reports of this path: A leads B clockwise, the index is up from count 0.5 to 2.5 of a turn."""
    seqs = dict.fromkeys("abi", 0)
    found: list[Edge] = []
    points = iter(path)
    last_s, last = next(points)
    for time, now in points:
        if now != last:
            forward = now > last
            low, high = (last, now) if forward else (now, last)
            crossed = [
                (float(m), "ab"[m & 1], int((m % 4 < 2) == forward))
                for m in range(math.floor(low) + 1, math.floor(high) + 1)
            ]
            crossed += [
                (at + k * turn, "i", int(rises == forward))
                for at, rises in ((0.5, True), (2.5, False))
                for k in range(math.floor((low - at) / turn) + 1, math.floor((high - at) / turn) + 1)
            ]
            for where, line, level in sorted(crossed, reverse=not forward):
                at_ns = start_ns + round((last_s + (where - last) / (now - last) * (time - last_s)) * SECOND)
                seqs[line] += 1
                name = "index" if line == "i" else line
                found.append(Edge(f"{role}.{name}", level, at_ns, seqs[line]))
        last_s, last = time, now
    return found


def renumbered(found: Iterable[Edge]) -> list[Edge]:
    """The same edges as a kernel without losses would number them."""
    seqs: dict[str, int] = {}
    out = []
    for edge in found:
        seqs[edge.line] = seqs.get(edge.line, 0) + 1
        out.append(edge._replace(seq=seqs[edge.line]))
    return out
