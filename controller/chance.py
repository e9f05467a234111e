"""Do results look like chance? The tests of a wheel, on counts alone: pure, no game, no clock, no verdict.

    pockets    is every cell as frequent as the others            chi-squared over the cells
    values     is every result as frequent as its cells           chi-squared over the results, where cells share one
    sector     is a quarter of the wheel favoured                 largest z of all its places, for as many looks
    distance   is the next cell independent of the one before     chi-squared over the steps around the wheel
    zone       does the ball leave the rim everywhere             chi-squared over arcs, by their length
    runs       do the two colours follow each other by chance     Wald and Wolfowitz, zero left out

Each gives the probability that a fair wheel does worse. None is made before every cell is expected `LEAST` times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, takewhile
from typing import Any, Final

from rules.game import Game, Outcome

LEAST: Final = 5
"""So often each cell must be expected before chi-squared means anything: 185 spins of 37 pockets."""
RUNS_LEAST: Final = 25
"""So often each of the two colours must have come before its runs are judged by a normal law."""
CELLS_MAX: Final = 1000
COLOURS: Final = ("rouge", "noir")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """What one draw adds: its result; its cell, its colour (0, 1) and the arc of the drop where they are known."""

    value: str
    cell: int | None
    side: int | None
    arc: tuple[int, int] | None = None
    """Where it begins and how long it is, degrees."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """The cells of a wheel in their order around it, and what each of them means."""

    values: tuple[str, ...]
    two_sided: bool
    """As many cells of the one colour as of the other."""

    @classmethod
    def of(cls, game: Game, options: Any) -> Wheel:
        """The wheel of a game as the house has set it up."""
        found = takewhile(lambda outcome: outcome is not None, (game.cell(cell, options) for cell in count()))
        outcomes = [outcome for outcome in islice(found, CELLS_MAX) if outcome is not None]
        sides = [_side(outcome) for outcome in outcomes]
        return cls(tuple(str(game.value(outcome)) for outcome in outcomes), 0 < sides.count(0) == sides.count(1))

    def spin(self, game: Game, outcome: Outcome, arc: tuple[int, int] | None = None) -> Spin:
        """An outcome of the game as a spin of this wheel."""
        value, cell = str(game.value(outcome)), outcome.get("cell")
        if not isinstance(cell, int):
            cell = self.values.index(value) if self.values.count(value) == 1 else None
        return Spin(value=value, cell=cell, side=_side(outcome) if self.two_sided else None, arc=arc)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of so many spins; plain numbers, so that it is kept as it is."""

    cells: list[int]
    steps: list[int]
    """How far around the wheel the next result was."""
    values: dict[str, int] = field(default_factory=dict)
    sides: list[int] = field(default_factory=lambda: [0, 0])
    runs: int = 0
    arcs: dict[str, int] = field(default_factory=dict)
    """Drops by arc, `begin+length`."""
    spins: int = 0
    cell: int | None = None
    """The last one."""
    side: int | None = None

    @classmethod
    def empty(cls, wheel: Wheel) -> Tally:
        """Before the first spin."""
        return cls(cells=[0] * len(wheel.values), steps=[0] * len(wheel.values))

    def add(self, spin: Spin) -> None:
        """One more."""
        self.spins += 1
        self.values[spin.value] = self.values.get(spin.value, 0) + 1
        if spin.cell is not None:
            self.cells[spin.cell] += 1
            if self.cell is not None:
                self.steps[(spin.cell - self.cell) % len(self.cells)] += 1
        self.cell = spin.cell
        if spin.arc is not None:
            name = "{}+{}".format(*spin.arc)
            self.arcs[name] = self.arcs.get(name, 0) + 1
        if spin.side is not None:
            self.sides[spin.side] += 1
            self.runs += spin.side != self.side
            self.side = spin.side

    def tests(self, wheel: Wheel) -> dict[str, float]:
        """The probability of each test that these counts are enough for."""
        even = dict.fromkeys(range(len(self.cells)), 1)
        shares = {value: wheel.values.count(value) for value in wheel.values}
        made = {"pockets": chi_squared(dict(enumerate(self.cells)), even)}
        if len(shares) < len(wheel.values):
            made["values"] = chi_squared(self.values, shares)
        made["sector"] = None if made["pockets"] is None else sector(self.cells)
        made["distance"] = chi_squared(dict(enumerate(self.steps)), even)
        made["zone"] = zone(self.arcs)
        made["runs"] = runs(self.sides[0], self.sides[1], self.runs)
        return {test: chance for test, chance in made.items() if chance is not None}


def chi_squared(counts: Mapping[Any, int], shares: Mapping[Any, int]) -> float | None:
    """Chance of counts at least this uneven; None where a class is expected less than `LEAST` times."""
    total, whole = sum(counts.values()), sum(shares.values())
    if total * min(shares.values()) < LEAST * whole:
        return None
    expected = {entry: total * share / whole for entry, share in shares.items()}
    found = sum((counts.get(entry, 0) - mean) ** 2 / mean for entry, mean in expected.items())
    return tail(found, len(shares) - 1)


def sector(cells: Sequence[int]) -> float:
    """Chance that some quarter of a fair wheel is this much favoured or avoided (Bonferroni over its places)."""
    size, total, width = len(cells), sum(cells), len(cells) // 4
    share = width / size
    sums = [sum(cells[(start + step) % size] for step in range(width)) for start in range(size)]
    furthest = max(abs(found - total * share) for found in sums)
    return min(1.0, size * two_sided(furthest / math.sqrt(total * share * (1 - share))))


def zone(arcs: Mapping[str, int]) -> float | None:
    """Chance that a level rim is left so unevenly; None without arcs, or with those of beams that were moved."""
    shares = {name: int(name.partition("+")[2]) for name in arcs}
    rest = 360 - sum(shares.values())
    if rest > 0:
        shares["rest"] = rest
    return chi_squared(arcs, shares) if rest >= 0 and len(shares) > 1 and arcs else None


def runs(first: int, second: int, found: int) -> float | None:
    """Chance of so many, or so few, runs of two colours (Wald and Wolfowitz)."""
    total, pairs = first + second, 2 * first * second
    if min(first, second) < RUNS_LEAST:
        return None
    mean = pairs / total + 1
    return two_sided((found - mean) / math.sqrt(pairs * (pairs - total) / (total * total * (total - 1))))


def two_sided(z: float) -> float:
    """Chance that a normal figure lies at least this far from its mean."""
    return math.erfc(abs(z) / math.sqrt(2))


def tail(x: float, freedom: int) -> float:
    """Chance that chi-squared with so many degrees of freedom is at least x, by recurrence."""
    half, order = x / 2, 0.5 if freedom % 2 else 1.0
    chance = math.erfc(math.sqrt(half)) if freedom % 2 else math.exp(-half)
    while order < freedom / 2 and half > 0:
        chance += math.exp(order * math.log(half) - half - math.lgamma(order + 1))
        order += 1
    return min(1.0, chance) if half > 0 else 1.0


def _side(outcome: Outcome) -> int | None:
    chances = outcome.get("chances")
    named = [colour in chances for colour in COLOURS] if isinstance(chances, list | tuple) else []
    return named.index(True) if any(named) else None
