"""What the config says about a turning thing with an encoder, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One encoder (A, B, index) on a wheel with pegs (`pegs`) or on a cylinder (not `pegs`).

    Thresholds and their measured margins: physics README sections 1.3, 1.4, 4.3; the defaults are its recommendations.
    """

    counts_per_turn: int
    """After x4 decoding: four times the pulses of one line in a turn."""
    cells: int
    direction: Literal["cw", "ccw"] = "cw"
    """The sense in which A leads B: turned clockwise by hand, the count of `tablectl diag` must rise."""
    first_cell_mdeg: int = 0
    """How far the thing turns clockwise from the index mark until the first peg touches the marker (1/1000 degree)."""
    pegs: bool = True
    """False: no marker and no rest to wait for: neither cell nor obstruction is told, and a push makes a new spin."""
    start_mrad_s: int | None = None
    """Mean speed over the last 30 degrees that makes a start; default 1000 with pegs, 500 without."""
    slow_permille: int = 970
    """Slowing: below this part of the peak speed ..."""
    slow_hold_ms: int = 1000
    """... for so long without a new peak."""
    stop_ms: int = 1500
    """Standstill: so long without motion (longest pause of a moving wheel 0.93 s at 360 pulses or more)."""
    glitch_us: int = 60
    """Two opposite edges of one line closer than this are an electrical pulse."""
    index_tolerance: int = 24
    """Counts by which the index may correct the position; more is a fault."""
    hysteresis_mdeg: int = 1800
    """The marker snaps over a peg so far behind the touch (0.8 of the true snap angle)."""
    doubt_mdeg: int = 300
    """So close to a snap the eye must decide between two cells."""
    obstruction_mrad_s: int = 80
    """Departure from the natural run-out that is no longer natural."""

    def __post_init__(self) -> None:
        half = 180_000 // max(self.cells, 1)  # of a cell, mdeg
        check = (
            (16 <= self.counts_per_turn <= 1_000_000 and self.counts_per_turn % 4 == 0,
             "counts_per_turn", self.counts_per_turn, "a multiple of 4 from 16 to 1000000 (pulses of one line x 4)"),
            (2 <= self.cells <= self.counts_per_turn // 8,
             "cells", self.cells, "2 to counts_per_turn / 8"),
            (self.direction in ("cw", "ccw"), "direction", self.direction, "cw or ccw"),
            (0 <= self.first_cell_mdeg < 360_000, "first_cell_mdeg", self.first_cell_mdeg, "0 to 359999"),
            (self.start_mrad_s is None or 50 <= self.start_mrad_s <= 10_000,
             "start_mrad_s", self.start_mrad_s, "50 to 10000"),
            (500 <= self.slow_permille <= 999, "slow_permille", self.slow_permille, "500 to 999"),
            (10 <= self.slow_hold_ms <= 10_000, "slow_hold_ms", self.slow_hold_ms, "10 to 10000"),
            (200 <= self.stop_ms <= 10_000, "stop_ms", self.stop_ms, "200 to 10000"),
            (0 <= self.glitch_us <= 1000, "glitch_us", self.glitch_us, "0 to 1000"),
            (3 <= self.index_tolerance < self.counts_per_turn // 4,
             "index_tolerance", self.index_tolerance, "3 to a quarter of counts_per_turn"),
            (0 < self.hysteresis_mdeg < half,
             "hysteresis_mdeg", self.hysteresis_mdeg, f"1 to less than half a cell ({half})"),
            (0 <= self.doubt_mdeg < half,
             "doubt_mdeg", self.doubt_mdeg, f"0 to less than half a cell ({half})"),
            (10 <= self.obstruction_mrad_s <= 10_000, "obstruction_mrad_s", self.obstruction_mrad_s, "10 to 10000"),
        )  # fmt: skip
        for good, key, value, allowed in check:
            if not good:
                raise ValueError(f"{key} = {value!r}: allowed is {allowed}")

    @property
    def start_rad_s(self) -> float:
        """Speed that makes a start."""
        return (self.start_mrad_s or (1000 if self.pegs else 500)) / 1000
