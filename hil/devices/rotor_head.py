"""A head over the rotor: from the rotor's angle and the ball's cell over time to the edges that a kernel would stamp.

A mark stands between every two pockets, the index a quarter of a pocket clockwise behind the mark before cell 0, the
ball in the middle of its cell, give or take. All three pass the same place (drivers/rotor_head/PROTOCOL.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from hil.devices.lines import Pulse
from hil.physics.basin import Visit
from hil.physics.motion import TURN, Motion

SECOND = 1_000_000_000
Edges = list[tuple[float, int]]
MARK = 0.2
"""Width of a mark, and of the index, in pockets."""
BALL = 20 / (math.pi * 500) * TURN
"""Width of the ball under the head, radians: 20 mm on a circle of 500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong between the rotor and the reader."""

    missed: float = 0.001
    """Share of marks, and of indices, that are not seen."""
    false: float = 0.001
    """Marks seen that are none, per mark."""
    ball_missed: float = 0.01
    ball_false_per_s: float = 0.005
    late_us: float = 200.0
    """Mean delay of a stamp."""
    off: float = 0.075
    """Spread of the ball's place in its cell, in pockets."""


NOISY = Faults(missed=0.005, false=0.005, ball_missed=0.05, ball_false_per_s=0.05)
LEVELS: Mapping[str, Faults] = {
    "clean": Faults(missed=0.0, false=0.0, ball_missed=0.0, ball_false_per_s=0.0, late_us=0.0, off=0.0),
    "L0": Faults(),
    "L1": Faults(),
    "L2": Faults(missed=0.002, false=0.002, ball_missed=0.02, ball_false_per_s=0.02),
    "L3": NOISY,
    "L4": NOISY,
}


class RotorHead:
    """The head of role `role`; `clockwise` is +1 where the rotor's angle rises clockwise."""

    def __init__(
        self, role: str, pockets: int, *, faults: Faults = LEVELS["L0"], seed: object = 0, clockwise: int = 1
    ) -> None:
        self.role, self.pitch, self.faults, self.clockwise = role, TURN / pockets, faults, clockwise
        self._rng = Random(f"rotor head {role} {seed}")
        self._off: dict[Visit, float] = {}

    def levels_at(self, angle: float, cell: int | None) -> dict[str, int]:
        """Levels of the lines with the rotor at rest at this angle and the ball in this cell."""
        under = -self.clockwise * angle / self.pitch
        pockets = round(TURN / self.pitch)
        ball = math.inf if cell is None else abs((under - cell - 0.5 + pockets / 2) % pockets - pockets / 2)
        return {
            f"{self.role}.index": int(abs((under - 0.25 + pockets / 2) % pockets - pockets / 2) < MARK / 2),
            f"{self.role}.mark": int(abs((under + 0.5) % 1 - 0.5) < MARK / 2),
            f"{self.role}.ball": int(ball * self.pitch < BALL / 2),
        }

    def play(self, motion: Motion, start_ns: int, visits: Iterable[Visit]) -> list[Pulse]:
        """The edges of this motion of the rotor, with the ball in these cells meanwhile."""
        f = self.faults
        turned = Motion(motion.times, type(motion.angles)("d", (-self.clockwise * angle for angle in motion.angles)))
        lines: dict[str, Edges] = {
            "index": self._seen(_passing(turned, TURN, 0.25 * self.pitch, MARK * self.pitch), f.missed),
            "mark": self._seen(_passing(turned, self.pitch, 0.0, MARK * self.pitch), f.missed),
            "ball": [],
        }
        marks = len(lines["mark"]) // 2
        lines["mark"] += self._false(f.false * marks / motion.ends if motion.ends else 0.0, motion.ends, 0.002)
        lines["ball"] += self._false(f.ball_false_per_s, motion.ends, 0.02)
        for visit in visits:
            place = (visit.cell + 0.5 + self._place(visit)) * self.pitch
            passing = _passing(turned, TURN, place, BALL)
            lines["ball"] += self._seen(passing, f.ball_missed, visit.begins, visit.ends)
        stamped = (self._stamped(line, _together(edges), start_ns) for line, edges in lines.items())
        return sorted(pulse for pulses in stamped for pulse in pulses)

    def _place(self, visit: Visit) -> float:
        """Where in its cell the ball lies, off the middle, in pockets; the same as long as it lies there."""
        if visit.ends < math.inf:
            return self._rng.uniform(-0.3, 0.3)
        if visit not in self._off:
            self._off = {visit: max(-0.22, min(0.22, self._rng.gauss(0.0, self.faults.off)))}
        return self._off[visit]

    def _seen(self, edges: Edges, missed: float, begins: float = -math.inf, ends: float = math.inf) -> Edges:
        """The passings that begin between these times, without those that nobody saw."""
        kept, seen = begins < 0, []
        for time, level in edges:
            if level:
                kept = begins <= time < ends and (not missed or self._rng.random() >= missed)
            if kept:
                seen.append((time, level))
        return seen

    def _stamped(self, line: str, edges: Edges, start_ns: int) -> Iterator[Pulse]:
        """As the kernel stamps them: both edges of a passing as late as each other."""
        late_s = 0.0
        for time, level in edges:
            if level and self.faults.late_us:
                late_s = self._rng.expovariate(1e6 / self.faults.late_us)
            yield Pulse(start_ns + round((time + late_s) * SECOND), f"{self.role}.{line}", level)

    def _false(self, per_s: float, seconds: float, long: float) -> Edges:
        edges: Edges = []
        time = self._rng.expovariate(per_s) if per_s else math.inf
        while time < seconds:
            edges += [(time, 1), (time + self._rng.uniform(0.2, 1.0) * long, 0)]
            time += self._rng.expovariate(per_s)
        return edges


def _passing(under: Motion, spacing: float, place: float, width: float) -> Edges:
    """(time, level) while what stands at `place + k * spacing` of the rotor passes the head."""
    enters = ((time, 1 if sense > 0 else 0) for time, sense in under.crossings(spacing, place - width / 2))
    leaves = ((time, 0 if sense > 0 else 1) for time, sense in under.crossings(spacing, place + width / 2))
    return sorted([*enters, *leaves])


def _together(edges: Edges) -> Edges:
    """Passings that overlap are one; the first may have begun before."""
    edges = sorted(edges)
    inside = int(bool(edges) and not edges[0][1])
    seen: Edges = []
    for time, level in edges:
        before, inside = inside, inside + (1 if level else -1)
        if 0 in (before, inside):
            seen.append((time, level))
    return seen
