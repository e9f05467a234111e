"""How this wheel slows down when nobody touches it, and what is not that (physics README section 1.4).

Above 0.6 rad/s a leaky observer follows the measured speed with the natural deceleration, which is learned from good
spins; until some are learned, the last second of the same spin stands in for it, with a wider threshold. Below, the
strap makes the speed jump from peg to peg and the energy lost per peg is compared with that of the same spin.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median
from typing import Any, Final

LEARNED: Final = 5
"""Good spins from which on the learned law is believed."""
_UNLEARNED: Final = 0.08
"""rad/s: threshold until then, plus a tenth of the deceleration. Model wheels of all kinds stay under 0.03 while nobody
touches them, a touch of 2 N.s makes 0.14."""
LEAK_S: Final = 1.0
SLOW: Final = 0.6
"""rad/s below which the observer is blind and the late tests watch."""
_LATE: Final = 0.75
"""rad/s below which a peg's share of the energy is watched."""
BLOCK_S: Final = 0.25
"""Length of one measurement of the deceleration."""
COMMISSIONED: Final = 20
"""Free spins of a commissioning: what is learned then is what later drift is measured by."""
DRIFT_SPEEDS: Final = (1.0, 3.0)
"""rad/s at which the deceleration is compared."""
_MEMORY: Final = 0.95
"""Weight of what was known when one more spin is learned: about the last 20 spins count."""
_FACTORY: Final = (0.210, 0.022, -0.001)
"""Deceleration of the model wheel, rad/s2 at w: f0 + f1 w + f2 w^2."""
_RIDGE: Final = (0.01, 0.05, 0.5)
"""How strongly the fit is held to the factory's shape where the data say little."""


class NaturalLaw:
    """The deceleration of the free wheel as a function of its speed, learned from spins that nobody disturbed."""

    __slots__ = ("_sums", "fastest", "fit", "reference", "spins", "worst")

    def __init__(self) -> None:
        self.spins = 0
        self._sums = [0.0] * 8
        self.fit = list(_FACTORY)
        self.fastest = 0.0
        self.worst = 0.0
        """Largest natural departure in the learned spins, rad/s: the margin to the threshold."""
        self.reference: list[float] | None = None
        """Deceleration at `DRIFT_SPEEDS` when the wheel was commissioned."""

    def __call__(self, speed: float) -> float:
        """Natural deceleration, rad/s2, never negative."""
        speed = min(speed, 1.2 * self.fastest) if self.fastest else speed
        f0, f1, f2 = self.fit
        return max(0.0, f0 + speed * (f1 + speed * f2))

    def per_peg(self, pitch: float) -> float | None:
        """Squared speed that a peg and its gap of `pitch` radians take at 0.9 rad/s; None until it is learned."""
        return 2 * self(0.9) * pitch if self.spins >= LEARNED else None

    def learn(self, blocks: list[tuple[float, float]], departure: float) -> None:
        """One more good spin: (speed, deceleration) measured one after the other, and its largest departure."""
        sums = [_MEMORY * value for value in self._sums]
        for speed, slowing in blocks:
            power = 1.0
            for n in range(5):
                sums[n] += power
                if n < 3:
                    sums[5 + n] += slowing * power
                power *= speed
        self.spins += 1
        self._sums = sums
        self.fastest = max(_MEMORY * self.fastest, *(speed for speed, _ in blocks))
        self.worst = max(_MEMORY * self.worst, departure)
        s0, s1, s2, s3, s4, t0, t1, t2 = sums
        factory = sum(f * s for f, s in zip(_FACTORY, (s0, s1, s2), strict=True))
        scale = t0 / factory if factory > 0 else 1.0
        ridge = [r * s0 for r in _RIDGE]
        self.fit = _solve3(
            [[s0 + ridge[0], s1, s2], [s1, s2 + ridge[1], s3], [s2, s3, s4 + ridge[2]]],
            [t + r * f * scale for t, r, f in zip((t0, t1, t2), ridge, _FACTORY, strict=True)],
        )
        if self.spins == COMMISSIONED:
            self.reference = [self(speed) for speed in DRIFT_SPEEDS]

    @property
    def drift(self) -> float:
        """By what share the wheel slows otherwise than when it was commissioned, where that differs most."""
        if not self.reference:
            return 0.0
        drifts = [self(w) / before - 1 for w, before in zip(DRIFT_SPEEDS, self.reference, strict=True) if before]
        return max(drifts, key=abs, default=0.0)

    def snapshot(self) -> dict[str, Any]:
        """JSON-able: what the state folder keeps."""
        return {"spins": self.spins, "sums": list(self._sums), "fit": list(self.fit), "fastest": self.fastest,
                "worst": self.worst, "reference": self.reference}  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take what was learned before."""
        self.spins, self.fastest, self.worst = state["spins"], state["fastest"], state["worst"]
        self._sums, self.fit = list(state["sums"]), list(state["fit"])
        self.reference = state.get("reference")


class RunOut:
    """One spin from the onset of slowing to rest."""

    __slots__ = ("_at_ns", "_block", "_energies", "_expected", "_late_blind", "blocks", "departure", "passed")

    def __init__(self) -> None:
        self.blocks: list[tuple[float, float]] = []
        self.departure = 0.0
        self.passed = False
        """The marker has snapped over a peg since the last gap was timed."""
        self._expected: float | None = None
        self._at_ns = 0
        self._block: tuple[int, float] | None = None
        self._energies: list[tuple[int, float]] = []
        """(gap, squared speed in its free stretch)."""
        self._late_blind = False
        """Edges were wrong in the last pegs."""

    def speed(self, at_ns: int, speed: float, law: NaturalLaw, threshold: float) -> float:
        """Excess of the departure over its threshold: above 0 the wheel is braked, below 0 pushed, 0 = natural."""
        self._measure(at_ns, speed)
        natural: float
        if law.spins >= LEARNED:
            natural = law(self._expected or speed)
        elif len(self.blocks) >= 2:
            natural = max(0.0, median(slowing for _, slowing in self.blocks[-5:]))
            threshold = max(threshold, _UNLEARNED + 0.1 * natural)
        else:
            return 0.0
        if self._expected is None:
            self._expected, self._at_ns = speed, at_ns
            return 0.0
        if speed < SLOW and self._expected < SLOW + 0.15:
            return 0.0
        seconds = (at_ns - self._at_ns) / 1e9
        expected = self._expected - natural * seconds
        departure = expected - speed
        self.departure = max(self.departure, abs(departure))
        self._expected = expected - departure * -math.expm1(-seconds / LEAK_S)
        self._at_ns = at_ns
        return max(0.0, departure - threshold) + min(0.0, departure + threshold)

    def free_stretch(self, gap: int, speed: float, learned: float | None) -> bool:
        """The strap hung free in this gap at this speed; true when the peg before took more than pegs take.

        `learned`: squared speed that a peg takes of this wheel, where that is known.
        """
        self.passed = False
        energies = self._energies
        energies.append((gap, speed * speed))
        del energies[:-200]
        per_peg = self._per_peg(learned)
        if per_peg is None or len(energies) < 2 or self._late_blind:
            return False
        (before, more), (after, less) = energies[-2:]
        return after - before == 1 and 0.2 < math.sqrt(more) < _LATE and more - less > 1.7 * per_peg

    def rest_is_early(self, learned: float | None) -> bool:
        """At rest: the wheel had energy in hand for a peg or a gap more, or ran too few pegs after 0.6 rad/s."""
        per_peg = self._per_peg(learned)
        if per_peg is None or not self._energies or self._late_blind:
            return False
        if self._energies[-1][1] > (1.85 if self.passed else 1.6) * per_peg:
            return True
        slow = [gap for gap, energy in self._energies if energy < SLOW * SLOW]
        run = slow[-1] - slow[0] + 2 if slow else 1
        return run < 0.5 * SLOW * SLOW / per_peg

    def interrupt(self) -> None:
        """Speeds before and after this must not be compared."""
        self._expected = self._block = None
        if self._energies and self._energies[-1][1] < _LATE * _LATE:
            self._late_blind = True
        self._energies.clear()

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "blocks": [list(block) for block in self.blocks],
            "departure": self.departure,
            "passed": self.passed,
            "expected": self._expected,
            "at_ns": self._at_ns,
            "block": None if self._block is None else list(self._block),
            "energies": [list(energy) for energy in self._energies],
            "late_blind": self._late_blind,
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> RunOut:
        """Continue from a snapshot."""
        run = cls()
        run.blocks = [(speed, slowing) for speed, slowing in state["blocks"]]
        run.departure, run.passed = state["departure"], state["passed"]
        run._expected, run._at_ns = state["expected"], state["at_ns"]
        run._block = None if state["block"] is None else (state["block"][0], state["block"][1])
        run._energies = [(gap, energy) for gap, energy in state["energies"]]
        run._late_blind = state["late_blind"]
        return run

    def _measure(self, at_ns: int, speed: float) -> None:
        if self._block is None:
            self._block = at_ns, speed
            return
        since_ns, before = self._block
        seconds = (at_ns - since_ns) / 1e9
        if seconds >= BLOCK_S and speed >= SLOW:
            self.blocks.append(((before + speed) / 2, (before - speed) / seconds))
            del self.blocks[:-400]
            self._block = at_ns, speed

    def _per_peg(self, learned: float | None) -> float | None:
        """Squared speed that one peg takes, from the gaps between 1.3 and 0.6 rad/s of this spin, or as learned."""
        energies = self._energies
        drops = [
            more - less
            for (before, more), (after, less) in pairwise(energies)
            if after - before == 1 and more < 1.69 and less > SLOW * SLOW
        ]
        middle = median(drops) if len(drops) >= 4 else 0.0
        return middle if middle > 0 else learned


def _solve3(a: list[list[float]], b: list[float]) -> list[float]:
    """Solve a symmetric positive system of three equations (no pivoting needed)."""
    rows = [[*row, right] for row, right in zip(a, b, strict=True)]
    for i in range(3):
        for j in range(i + 1, 3):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [y - factor * x for x, y in zip(rows[i], rows[j], strict=True)]
    z = rows[2][3] / rows[2][2]
    y = (rows[1][3] - rows[1][2] * z) / rows[1][1]
    x = (rows[0][3] - rows[0][2] * z - rows[0][1] * y) / rows[0][0]
    return [x, y, z]
