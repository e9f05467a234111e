"""The layout of a roulette: every combination that exists on it, worked out from its grid.

Twelve rows of three (1 2 3, 4 5 6, ...); columns n = 1, 2, 0 modulo 3. Cheval: neighbours across or down; carré: four
around a corner; transversale: a row; sixain: two rows that touch; 24 numbers: two dozens, or columns, that touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from rules.bets import Layout, On, Spot, spot_id
from rules.games.roulette.variants import RED, Variant

ROWS: Final = tuple((n, n + 1, n + 2) for n in range(1, 37, 3))
COLUMNS: Final = tuple(tuple(range(first, 37, 3)) for first in (1, 2, 3))
DOZENS: Final = tuple(tuple(range(first, first + 12)) for first in (1, 13, 25))

CHANCES: Final[Mapping[str, frozenset[int | str]]] = {
    "rouge": frozenset(RED),
    "noir": frozenset(range(1, 37)) - RED,
    "impair": frozenset(range(1, 37, 2)),
    "pair": frozenset(range(2, 37, 2)),
    "passe": frozenset(range(19, 37)),
    "manque": frozenset(range(1, 19)),
}
"""Numbers of each even chance; a zero is in none (R-RF-02, R-RA-01)."""
NAMED: Final = (("noir", "rouge"), ("impair", "pair"), ("manque", "passe"))
"""Pairs in the order in which they are announced."""


def combinations() -> Iterator[tuple[str, On]]:
    """Every combination of 1 to 36 that some roulette has, with its numbers in layout order."""
    for n in range(1, 37):
        across, down = n % 3 != 0, n + 3 <= 36
        if across:
            yield "cheval", (n, n + 1)
        if down:
            yield "cheval", (n, n + 3)
        if across and down:
            yield "carre", (n, n + 1, n + 3, n + 4)
    for row in ROWS:
        yield "transversale", row
        if row != ROWS[-1]:
            yield "sixain", tuple(range(row[0], row[0] + 6))
    for bet, twice, groups in (("douzaine", "deux_douzaines", DOZENS), ("colonne", "deux_colonnes", COLUMNS)):
        for group in groups:
            yield bet, group
        for group, beside in pairwise(groups):
            yield twice, tuple(sorted((*group, *beside)))


def layout(variant: Variant) -> Layout:
    """The layout of one tableau of this roulette."""
    kinds = {kind.type: kind for kind in variant.kinds}
    bets: list[tuple[str, On]] = [("plein", (pocket,)) for pocket in variant.pockets]
    bets += variant.with_zero
    bets += combinations()
    spots = [Spot(id=spot_id(bet, on), type=bet, on=on, wins=frozenset(on)) for bet, on in bets if bet in kinds]
    spots += [Spot(id=chance, type=chance, on=(), wins=numbers) for chance, numbers in CHANCES.items()]
    return Layout(kinds, {spot.id: spot for spot in spots})


def chances(number: int | str) -> list[str]:
    """The even chances that this number makes win, as announced: `["noir", "impair", "manque"]`."""
    return [chance for pair in NAMED for chance in pair if number in CHANCES[chance]]
