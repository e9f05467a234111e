"""What the config says about the beams across a ball track."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

NEAR: Final = 45
FAR: Final = 135
"""Degrees between two beams that tell the sense: nearer, timing decides too little; further, both senses look alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Two to four beams on a rim (physics README sections 2 and 6; the defaults are its table)."""

    beams_deg: tuple[int, ...] = (0, 120)
    """Where the beams stand, clockwise from above, beam 0 first; two beams best 120 degrees apart."""
    ball_mm: int = 20
    """Diameter of the ball."""
    track_mm: int = 740
    """Diameter of the circle that the ball's middle runs on."""
    lead_ms: int = 4500
    """How long before the expected drop it is told to be due."""
    lap_ms: int | None = None
    """While fewer than 5 spins are learned: due at the first lap of at least so long; without it, 3.5 turns before."""
    air_ppm: int = 9000
    """Factory value of `a` in dw/dt = -(a w^2 + b), 1e-6 per radian."""
    rolling_mrad_s2: int = 60
    """Factory value of `b`."""
    leaves_mrad_s: int = 3000
    """Factory value of the speed at which the ball leaves the rim."""

    def __post_init__(self) -> None:
        numbers = (
            ("ball_mm", self.ball_mm, 10, 40),
            ("track_mm", self.track_mm, 200, 2000),
            ("lead_ms", self.lead_ms, 500, 15_000),
            ("lap_ms", 1000 if self.lap_ms is None else self.lap_ms, 400, 5000),
            ("air_ppm", self.air_ppm, 1000, 40_000),
            ("rolling_mrad_s2", self.rolling_mrad_s2, 5, 300),
            ("leaves_mrad_s", self.leaves_mrad_s, 1500, 5000),
        )
        for key, value, low, high in numbers:
            if not low <= value <= high:
                raise ValueError(f"{key} = {value!r}: allowed is {low} to {high}")
        beams = self.beams_deg
        if not 2 <= len(beams) <= 4 or len(set(beams)) < len(beams) or not all(0 <= beam < 360 for beam in beams):
            raise ValueError(f"beams_deg = {list(beams)!r}: allowed are two to four different angles, 0 to 359")
        apart = [min((a - b) % 360, (b - a) % 360) for a in beams for b in beams if a < b]
        if min(apart) < 30:
            raise ValueError(f"beams_deg = {list(beams)!r}: allowed are beams at least 30 degrees apart")
        if not any(NEAR <= angle <= FAR for angle in apart):
            why = f"two beams {NEAR} to {FAR} degrees apart, best 120: 180 degrees look the same in both senses"
            raise ValueError(f"beams_deg = {list(beams)!r}: allowed are {why}")

    @property
    def beams(self) -> tuple[float, ...]:
        """Angles of the beams, radians clockwise."""
        return tuple(math.radians(beam) for beam in self.beams_deg)

    @property
    def chord(self) -> float:
        """The ball's diameter as an angle of the track."""
        return 2 * self.ball_mm / self.track_mm
