"""How the ball slows on this rim and when it leaves it, learned from the throws (physics README sections 2.1, 2.3).

dw/dt = -(a w^2 + b): over the angle w^2 + b/a decays as exp(-2 a th), and the time from one speed to another is a
difference of two arc tangents. The ball leaves the rim at the speed wc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from drivers.rim.options import Options

LEARNED: Final = 5
"""Throws from which on the learned law is believed."""
SETTLED: Final = 10
"""Throws after which what was learned is what later drift is measured against (commissioning, section 8)."""
DRIFT: Final = 0.15
_MEMORY: Final = 0.75
"""Weight of what was known when one more throw is learned: about the last four count."""
_RIDGE: Final = 0.02
"""How strongly the fit is held to the factory's shape where the speeds of a throw say little."""


class RimLaw:
    """a, b and wc of one track."""

    __slots__ = ("_factory", "_sums", "a", "b", "reference", "spins", "wc")

    def __init__(self, options: Options) -> None:
        self._factory = (options.air_ppm / 1e6, options.rolling_mrad_s2 / 1e3)
        self.a, self.b = self._factory
        self.wc = options.leaves_mrad_s / 1e3
        self.spins = 0
        self._sums = [0.0] * 7
        self.reference: list[float] | None = None
        """Slowing at the drop and speed of the drop when `SETTLED` throws were learned."""

    @property
    def believed(self) -> bool:
        """Enough throws are learned."""
        return self.spins >= LEARNED

    def slowing(self, speed: float) -> float:
        """Deceleration at this speed, rad/s2."""
        return self.a * speed * speed + self.b

    def seconds(self, before: float, after: float) -> float:
        """Time in which the ball slows from one speed to another; 0 when it is slower already."""
        if before <= after:
            return 0.0
        s = math.sqrt(self.a / self.b)
        return (math.atan(before * s) - math.atan(after * s)) / math.sqrt(self.a * self.b)

    def further(self, speed: float, angle: float) -> float:
        """Speed after so many radians more (less, where negative), never under 0.1 rad/s."""
        rest = self.b / self.a
        return math.sqrt(max(0.01, (speed * speed + rest) * math.exp(-2 * self.a * angle) - rest))

    def left(self, speed: float) -> float:
        """Seconds until the ball leaves the rim."""
        return self.seconds(speed, self.wc)

    def drift(self) -> float:
        """Largest relative departure from what the commissioning had learned; 0 before its end."""
        if self.reference is None:
            return 0.0
        now = self._state()
        return max(abs(value / before - 1) for value, before in zip(now, self.reference, strict=True))

    def learn(self, laps: Sequence[tuple[float, float]], left_at: float) -> None:
        """One more throw: (speed, deceleration) between its laps, and the speed at which it left the rim."""
        sums = [_MEMORY * value for value in self._sums]
        share = 1 / len(laps)
        for speed, slowing in laps:
            square = speed * speed
            for n, value in enumerate((1.0, square, square * square, slowing, slowing * square)):
                sums[n] += share * value
        sums[5] += 1.0
        sums[6] += left_at
        self.spins += 1
        self._sums = sums
        self.wc = sums[6] / sums[5]
        ones, x, xx, y, xy = sums[:5]
        a0, b0 = self._factory
        scale = y / (a0 * x + b0 * ones)
        xx, more = xx * (1 + _RIDGE), ones * (1 + _RIDGE)
        xy, y = xy + _RIDGE * sums[2] * scale * a0, y + _RIDGE * ones * scale * b0
        bottom = xx * more - x * x
        a, b = (xy * more - x * y) / bottom, (xx * y - x * xy) / bottom
        shaped = 0.2 * a0 * scale < a < 5 * a0 * scale and 0.2 * b0 * scale < b < 5 * b0 * scale
        self.a, self.b = (a, b) if shaped else (scale * a0, scale * b0)
        if self.spins == SETTLED:
            self.reference = self._state()

    def _state(self) -> list[float]:
        return [self.slowing(self.wc), self.wc]

    def snapshot(self) -> dict[str, Any]:
        """JSON-able: what the state folder keeps."""
        return {"spins": self.spins, "sums": list(self._sums), "a": self.a, "b": self.b, "wc": self.wc,
                "reference": self.reference}  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take what was learned before."""
        self.spins, self.a, self.b, self.wc = state["spins"], state["a"], state["b"], state["wc"]
        self._sums, self.reference = list(state["sums"]), state["reference"]
