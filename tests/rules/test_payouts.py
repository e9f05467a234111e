"""Every bet of the payout file that the text gives whole, against what the code pays, covers and allows at most."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.bets import Spot
from rules.cases import answer
from rules.game import load
from tests.rules.outcomes import PLATE

FILE = Path(__file__).parents[1] / "data/payouts.yaml"
PAYOUTS = yaml.safe_load(FILE.read_text("utf-8"))["games"]
OURS = {
    "verte": "vert",
    "bleue": "bleu",
    "violette": "violet",
    "blanche": "blanc",
    "noire": "noir",
    "cinq_numeros": "cinq",
    "plein_1_4": "plein",
    "plein_5_11": "plein",
    "plein_12_14": "plein",
}
"""Ids of the payout file that are called otherwise in the settle format."""
GAMES = ("boule", "vingt_trois", "roue_de_la_chance", "roulette_francaise", "roulette_americaine", "roulette_anglaise")
ROWS = [pytest.param(game, row, id=f"{game}-{row['id']}") for game in GAMES for row in PAYOUTS[game]["bets"]]
LIMITS = {"boule": ("R-BO-18", "R-BO-19"), "vingt_trois": ("R-VT-20", "R-VT-21")}
"""Requirements of the maxima, where the rows of the file do not name them."""
STAKE = 200


def numbers_of(covers: dict[str, Any]) -> set[str] | None:
    """The numbers that a row names, as words; None where it only counts them."""
    if "any_one_of" in covers:
        named = covers["any_one_of"]
        if isinstance(named, list):
            return {str(n) for n in named}
        found: set[str] = set()
        for part in named.split(","):
            first, dash, last = part.partition("-")
            found |= {str(n) for n in range(int(first), int(last) + 1)} if dash else {part}
        return found
    named = covers.get("numbers", covers.get("numbers_industry_convention"))
    return None if named is None else {str(n) for n in named}


def winning(game: str, spot: Spot) -> list[dict[str, Any]]:
    """The outcomes at which a bet on this spot wins."""
    match game:
        case "boule":
            return [{"number": n} for n in spot.wins]
        case "vingt_trois":
            here = [cell for cell in PLATE if cell[0] in spot.on or cell[1] == spot.type]
            return [{"number": number, "colour": colour} for number, colour in here]
        case "roue_de_la_chance":
            return [{"colour": spot.type}]
        case _:
            return [{"numbers": [n]} for n in spot.wins]


def pays(game: str, spot: Spot, outcome: dict[str, Any]) -> Fraction:
    """Net gain per unit of one bet that wins, as `settle` tells it."""
    bet = {"id": "a", "player": "J1", "type": spot.type, "on": list(spot.on), "stake": STAKE}
    told: Any = answer({"game": game, "kind": "settlement", "bets": [bet], "outcome": outcome})
    assert told["status"] == {"a": "win"}
    return Fraction(told["net"]["a"], STAKE)


def accepted(game: str, bet: str, on: tuple[int | str, ...], cents: int) -> Any:
    """The answer to a stake at a table with a minimum of one euro."""
    asked = {"type": bet, "on": list(on), "stake": cents}
    return answer({"game": game, "kind": "validation", "config": {"min": 100}, "bet": asked})


def test_the_file_is_the_one_of_the_spec() -> None:
    """A copy; who changes a payout here changes the law, and must change this line with it."""
    assert hashlib.sha256(FILE.read_bytes()).hexdigest()[:16] == "f238af76a4da9c6f"


@pytest.mark.parametrize(("game", "row"), ROWS)
def test_the_bet_pays_covers_and_is_limited_as_the_file_says(game: str, row: dict[str, Any]) -> None:
    assert row["status"] == "ok"  # nothing of the six wheels is lost: test_every_row_... counts what is
    bet, lay = OURS.get(row["id"], row["id"]), load(game).layout(None)
    gain, staked = row["payout"].split(":")
    spots = [spot for spot in lay.spots.values() if spot.type == bet]
    covers = row["covers"] if isinstance(row["covers"], dict) else {}  # in words: cells of a colour
    numbers = numbers_of(covers)
    if numbers is not None and bet != "plein":
        assert [{str(n) for n in spot.wins} for spot in spots] == [numbers]
    elif numbers is not None:
        spots = [spot for spot in spots if str(spot.on[0]) in numbers]
        assert {str(spot.on[0]) for spot in spots} == numbers
    if "count" in covers:
        assert {len(spot.wins) for spot in spots} == {covers["count"]}
    for sets in (covers.get("sets"), covers.get("sets_reading")):
        if sets and bet != "deux_colonnes":
            assert [f"{min(spot.on)}-{max(spot.on)}" for spot in spots] == sets
    assert spots
    for spot in spots:
        assert lay.kind(spot).requirement in row["req"]
        for outcome in winning(game, spot):
            assert pays(game, spot, outcome) == Fraction(int(gain), int(staked))
        most = highest(row) * 100
        assert accepted(game, bet, spot.on, most) == {"accepted": True}
        over = accepted(game, bet, spot.on, most + 1)
        assert over["reason"]["requirement"] in {*row["req"], *LIMITS.get(game, ())}


def highest(row: dict[str, Any]) -> int:
    """The maximum in minima, the highest where the house chooses it."""
    most = row["max_multiple"]
    return int(most["range"][1] if isinstance(most, dict) else most)


@pytest.mark.parametrize(("game", "row"), [row for row in ROWS if isinstance(row.values[1]["max_multiple"], dict)])  # type: ignore[index]
def test_the_house_chooses_its_maximum_in_the_range_of_the_file(game: str, row: dict[str, Any]) -> None:
    bet, (least, most) = OURS.get(row["id"], row["id"]), row["max_multiple"]["range"]
    for cents, allowed in ((100 * least - 1, False), (100 * least, True), (100 * most, True), (100 * most + 1, False)):
        asked = {"type": bet, "amount": cents, "table_maximum": True}
        told: Any = answer({"game": game, "kind": "validation", "config": {"min": 100}, "bet": asked})
        assert told["accepted"] is allowed
        assert allowed or told["reason"]["requirement"] in LIMITS[game]


@pytest.mark.parametrize("game", GAMES)
def test_the_layout_has_no_bet_that_the_file_has_not(game: str) -> None:
    rows = {OURS.get(row["id"], row["id"]) for row in PAYOUTS[game]["bets"]}
    assert {kind.type for kind in load(game).layout(None).kinds.values()} == rows


def test_every_row_that_is_not_whole_says_why() -> None:
    """What the text announces and does not contain has no number here and a note that says so (R-GEN-06)."""
    for game, table in PAYOUTS.items():
        for row in table["bets"]:
            if row["status"] != "ok":
                assert (row["status"], row["payout"]) == ("lost", None), (game, row["id"])
                assert row["notes"], (game, row["id"])
