"""Every outcome of the wheel games in the words of the settle format, as often as its cell is on the apparatus.

Written from the spec alone: the tests judge the rules by it, so no outcome is made of them.
"""

from __future__ import annotations

from typing import Any, Final

from rules.game import load

CELLS: Final = {"orange": 24, "vert": 12, "bleu": 8, "rouge": 4, "violet": 2, "blanc": 1, "noir": 1}
"""Cells of the roue by colour (R-RC-04)."""
PLATE: Final[tuple[tuple[int, str], ...]] = (
    *((n, "rouge" if n % 2 else "noir") for n in (1, 2, 3, 4)),
    *((n, colour) for n in range(5, 12) for colour in ("rouge", "noir")),
    *((12, colour) for colour in ("rouge", "rouge", "noir")),
    *((13, "neutre") for _ in range(3)),
    *((14, colour) for colour in ("rouge", "noir", "noir")),
)
"""The 27 cells of a plate of vingt-trois (R-VT-16; the convention of the trade, spec §10)."""

OUTCOMES: Final[dict[str, list[dict[str, Any]]]] = {
    "boule": [{"number": n} for n in range(1, 10)],
    "vingt_trois": [{"number": number, "colour": colour} for number, colour in PLATE],
    "roue_de_la_chance": [{"colour": colour, "turns": 4} for colour, cells in CELLS.items() for _ in range(cells)],
    "roulette_francaise": [{"numbers": [n]} for n in range(37)],
    "roulette_americaine": [{"numbers": [n]} for n in (*range(37), "00")],
    "roulette_anglaise": [{"numbers": [n]} for n in range(37)],
}


def found(game_id: str) -> list[dict[str, Any]]:
    """The same outcomes as a game's `settle` takes them from a table: one number, and whether the draw is valid."""
    return [
        {"valid": True, "number": given.get("number", given.get("numbers", [None])[0]), **given}
        for given in OUTCOMES[game_id]
    ]


def plain_options(game_id: str) -> Any:
    """House options with nothing fixed by the house, in games that need none."""
    return load(game_id).options() if game_id.startswith("roulette") else None
