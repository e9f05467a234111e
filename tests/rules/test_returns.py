"""What players get back: every bet of every layout on every outcome, and the exact mean of each bet.

The layouts are enumerated a second time from the grid of the table, which is drawn here anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import pytest

from rules.bets import Spot, Stake
from rules.cases import answer
from rules.game import load
from rules.money import from_wire
from tests.rules.outcomes import OUTCOMES, found, plain_options

STAKE = 300
SIMPLE = ("rouge", "noir", "pair", "impair", "manque", "passe")
MEANS: dict[str, dict[str, Fraction]] = {
    "boule": {},
    "vingt_trois": {},
    "roue_de_la_chance": {
        "orange": Fraction(-1, 13),
        "vert": Fraction(-1, 13),
        "bleu": Fraction(-1, 13),
        "rouge": Fraction(-2, 13),
        "violet": Fraction(-5, 26),
        "blanc": Fraction(-1, 52),
        "noir": Fraction(-1, 52),
    },
    "roulette_francaise": dict.fromkeys(SIMPLE, Fraction(-1, 74)),  # who takes half back
    "roulette_americaine": {"cinq": Fraction(-3, 38)},
    "roulette_anglaise": dict.fromkeys(SIMPLE, Fraction(-1, 74)),
}
OTHERS = {
    "boule": Fraction(-1, 9),
    "vingt_trois": Fraction(-1, 9),
    "roulette_francaise": Fraction(-1, 37),
    "roulette_americaine": Fraction(-1, 19),
    "roulette_anglaise": Fraction(-1, 37),
}
"""Mean of every bet that `MEANS` does not name."""


def told(game: str, outcome: dict[str, Any], *spots: Spot, **more: Any) -> dict[str, Any]:
    """`settle` asked about one bet on each of these spots."""
    bets = [
        {"id": spot.id, "player": "J1", "type": spot.type, "on": list(spot.on), "stake": STAKE, **more}
        for spot in spots
    ]
    return answer({"game": game, "kind": "settlement", "bets": bets, "outcome": outcome})


@pytest.mark.parametrize("game", MEANS)
def test_every_bet_on_every_outcome_has_its_exact_mean(game: str) -> None:
    spots = list(load(game).layout(None).spots.values())
    total: defaultdict[str, Fraction] = defaultdict(Fraction)
    for outcome in OUTCOMES[game]:
        nets: Any = told(game, outcome, *spots)["net"]
        for spot in spots:
            total[spot.id] += from_wire(nets[spot.id])
    means: defaultdict[str, set[Fraction]] = defaultdict(set)
    for spot in spots:
        means[spot.type].add(total[spot.id] / STAKE / len(OUTCOMES[game]))
    assert means == {bet: {MEANS[game].get(bet, OTHERS.get(game))} for bet in means}
    assert means.keys() >= MEANS[game].keys()


# --- prison ----------------------------------------------------------------------------------------------------------


def after_zeros(zeros: int, **config: Any) -> tuple[Fraction, Fraction]:
    """Mean of what comes back per unit from the result that follows `zeros` zeros, for who always stays in prison.

    The first part is what the 36 numbers give back, the second what a further zero leaves for who takes it then.
    """
    lost, back = Fraction(), Fraction()
    for number in range(37):
        for choice in ("prison", "retire"):
            bet = {"id": "a", "player": "J1", "type": "rouge", "stake": STAKE, "choices": ["prison"] * zeros + [choice]}
            asked = {"game": "roulette_francaise", "kind": "settlement", "config": config, "bets": [bet]}
            net: Any = answer(asked | {"outcome": {"numbers": [0] * zeros + [number]}})["net"]["a"]  # type: ignore[index]
            if number:
                assert net is not None
                back += (1 + from_wire(net) / STAKE) / 2  # the choice is never made: both say the same
            elif choice == "prison":
                assert net is None
            else:
                lost += 1 + from_wire(net) / STAKE
    return back / 37, lost / 37


def test_what_prison_is_worth() -> None:
    """Exactly 1/73 of the stake for who never takes half back: a little more than the 1/74 of who always does."""
    freed = [after_zeros(zeros)[0] for zeros in range(1, 7)]
    assert freed == [Fraction(18, 37) / 2 ** (zeros - 1) for zeros in range(1, 7)]
    # each further zero (1/37) halves what comes back: a geometric series of ratio 1/74
    in_prison = freed[0] / (1 - Fraction(1, 74))
    assert (in_prison, Fraction(18, 37) * 1 - Fraction(18, 37) + Fraction(1, 37) * (in_prison - 1)) == (
        Fraction(36, 73),
        Fraction(-1, 73),
    )


def test_what_prison_is_worth_once_then_half_back() -> None:
    freed, half = after_zeros(1)
    assert half == Fraction(1, 37) / 4
    assert Fraction(1, 37) * (freed + half - 1) == Fraction(-75, 5476)


def test_what_prison_is_worth_where_the_whole_stake_is_freed() -> None:
    """The other reading (spec §10): as good as half back, -1/74."""
    freed = [after_zeros(zeros, valeur_liberee="totalite")[0] for zeros in range(1, 5)]
    assert freed == [Fraction(18, 37)] * 4
    assert Fraction(1, 37) * (freed[0] / (1 - Fraction(1, 37)) - 1) == Fraction(-1, 74)


# --- money -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game_id", MEANS)
def test_transfers_sum_to_zero_and_reproduce_the_lines(game_id: str) -> None:
    """All bets at once, odd cents, two players and tableaux, stakes in prison: accounts move as the lines say."""
    game = load(game_id)
    statuses = set()
    stakes = [
        Stake(
            id=f"{place}.{zeros}.{player}",
            player=player,
            tableau=tableau,
            type=spot.type,
            on=spot.on,
            cents=1 + place,
            zeros=zeros,
            carried="prison" if zeros else "",
            choices=("prison",) * zeros + (choice,),
        )
        for place, spot in enumerate(game.layout(None).spots.values())
        for player, tableau, choice in (("J1", 1, "prison"), ("J2", 2, "retire"))
        for zeros in range(4 if game_id == "roulette_francaise" and spot.type in SIMPLE else 1)
    ]
    void = [{"valid": False}] if game_id == "roue_de_la_chance" else []
    for outcome in [*found(game_id), *void]:
        for last in (False, True):
            settled = game.settle(stakes, outcome, game.coup(no=1, last=last), plain_options(game_id))
            money: defaultdict[str, Fraction] = defaultdict(Fraction)
            for moved in settled.transfers:
                assert moved.cents > 0
                money[moved.source] -= moved.cents
                money[moved.target] += moved.cents
            assert sum(money.values()) == 0
            for player in ("J1", "J2"):
                mine = [line for line in settled.lines if line.player == player]
                assert money[f"player:{player}"] == sum(line.net or 0 for line in mine)
            for line, stake in zip(settled.lines, stakes, strict=True):
                statuses.add(line.status)
                assert (line.id, line.stake, line.tableau) == (stake.id, stake.cents, stake.tableau)
                assert (line.returned is None) is (line.net is None) is (line.status == "prison")
                assert line.net is None or line.returned == line.stake + line.net
            paid = {(moved.why, moved.tableau, moved.cents) for moved in settled.transfers}
            assert paid == {(f"{e.status} {e.id}", e.tableau, abs(e.net)) for e in settled.lines if e.net}
    assert statuses == STATUSES[game_id]


STATUSES = {
    "boule": {"win", "lose"},
    "vingt_trois": {"win", "lose"},
    "roue_de_la_chance": {"win", "lose", "push"},
    "roulette_francaise": {"win", "lose", "partial", "prison", "freed"},
    "roulette_americaine": {"win", "lose"},
    "roulette_anglaise": {"win", "lose", "partial"},
}


# --- layouts ---------------------------------------------------------------------------------------------------------

AT = {n: ((n - 1) // 3, (n - 1) % 3) for n in range(1, 37)}
"""Row and column of each number on the grid of the table."""
ZEROS: dict[str, tuple[int | str, ...]] = {
    "roulette_francaise": (0,),
    "roulette_americaine": (0, "00"),
    "roulette_anglaise": (0,),
}
FRENCH = [{0, 1}, {0, 2}, {0, 3}, {0, 1, 2}, {0, 2, 3}, {0, 1, 2, 3}]
WITH_ZERO: dict[str, list[set[Any]]] = {
    "roulette_francaise": FRENCH,
    "roulette_americaine": [{0, "00"}, {0, 1, 2}, {"00", 2, 3}, {0, "00", 2}],
    "roulette_anglaise": FRENCH,
}
"""Combinations of two to four numbers with a zero (the convention of the trade, spec §10)."""
NAMES = {1: "plein", 2: "cheval", 3: "transversale", 4: "carre"}


def is_a_figure(numbers: tuple[Any, ...]) -> bool:
    """Do these numbers lie together on the grid: side by side, a row, a square?"""
    rows, columns = zip(*(AT[n] for n in numbers), strict=True)
    height, width = max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
    if len(numbers) == 3:
        return (height, width) == (1, 3)
    return bool(height * width == len(numbers) and max(height, width) <= 2)


@pytest.mark.parametrize("game_id", ZEROS)
def test_every_set_of_up_to_four_numbers_is_on_the_layout_or_is_not(game_id: str) -> None:
    lay = load(game_id).layout(None)
    pockets: list[Any] = [*ZEROS[game_id], *range(1, 37)]
    counts: Counter[str] = Counter()
    for size, bet in NAMES.items():
        for numbers in combinations(pockets, size):
            with_zero = set(numbers) & set(ZEROS[game_id])
            wanted = set(numbers) in WITH_ZERO[game_id] or size == 1 if with_zero else is_a_figure(numbers)
            spot = lay.find(bet, numbers)
            assert (spot is not None) is wanted, numbers
            if spot is not None:
                counts[bet] += 1
                assert spot.wins == frozenset(numbers)
    french = {"plein": 37, "cheval": 57 + 3, "transversale": 12 + 2, "carre": 22 + 1}
    american = {"plein": 38, "cheval": 57 + 1, "transversale": 12 + 3, "carre": 22}
    assert counts == (american if game_id == "roulette_americaine" else french)
    assert counts == Counter(spot.type for spot in lay.spots.values() if spot.type in counts)  # and no spot more


@pytest.mark.parametrize("game_id", ZEROS)
def test_bets_on_five_numbers_and_more(game_id: str) -> None:
    lay = load(game_id).layout(None)
    there: defaultdict[str, set[frozenset[Any]]] = defaultdict(set)
    for spot in lay.spots.values():
        if spot.type not in NAMES.values():
            assert spot.wins not in there[spot.type]
            there[spot.type].add(spot.wins)
            assert frozenset(spot.on) == (frozenset() if spot.type in SIMPLE else spot.wins)
    rows = [frozenset(range(first, first + 3)) for first in range(1, 37, 3)]
    columns = [frozenset(n for n in AT if AT[n][1] == column) for column in range(3)]
    dozens = [frozenset(range(first, first + 12)) for first in (1, 13, 25)]
    wanted: dict[str, set[frozenset[Any]]] = {
        "sixain": {a | b for a, b in pairwise(rows)},
        "douzaine": set(dozens),
        "colonne": set(columns),
        "manque": {frozenset(range(1, 19))},
        "passe": {frozenset(range(19, 37))},
        "pair": {frozenset(range(2, 37, 2))},
        "impair": {frozenset(range(1, 37, 2))},
        "rouge": {frozenset({1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36})},
        "noir": {frozenset({2, 4, 6, 8, 10, 11, 13, 15, 17, 20, 22, 24, 26, 28, 29, 31, 33, 35})},
    }
    if game_id == "roulette_americaine":
        wanted["cinq"] = {frozenset((0, "00", 1, 2, 3))}
    else:
        wanted["deux_douzaines"] = {dozens[0] | dozens[1], dozens[1] | dozens[2]}
        wanted["deux_colonnes"] = {columns[0] | columns[1], columns[1] | columns[2]}
    assert there == wanted
    assert len(wanted["sixain"]) == 11


def test_the_layout_of_boule() -> None:
    spots = load("boule").layout(None).spots.values()
    pleins = {("plein", frozenset({n})) for n in range(1, 10)}
    simple = {
        ("rouge", frozenset({2, 4, 7, 9})),
        ("noir", frozenset({1, 3, 6, 8})),
        ("pair", frozenset({2, 4, 6, 8})),
        ("impair", frozenset({1, 3, 7, 9})),
        ("passe", frozenset({6, 7, 8, 9})),
        ("manque", frozenset({1, 2, 3, 4})),
    }
    assert sorted((spot.type, sorted(spot.wins)) for spot in spots) == sorted(
        (b, sorted(n)) for b, n in pleins | simple
    )


def test_the_layout_of_vingt_trois() -> None:
    spots = load("vingt_trois").layout(None).spots.values()
    assert {(spot.type, *spot.on) for spot in spots} == {("noir",), ("rouge",), *(("plein", n) for n in range(1, 15))}
    assert len(spots) == 16


def test_the_layout_of_the_roue() -> None:
    assert {spot.id for spot in load("roue_de_la_chance").layout(None).spots.values()} == set(
        MEANS["roue_de_la_chance"]
    )
