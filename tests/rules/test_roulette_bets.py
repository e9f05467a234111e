"""Layouts and money of the three roulettes, by enumeration: every bet on every result."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.bets import Layout, Refusal, Spot, Stake
from rules.game import Game, House, load
from rules.games.roulette import GAMES
from rules.games.roulette.tapis import CHANCES, chances
from rules.games.roulette.variants import (
    AMERICAINE,
    AMERICAN_CYLINDER,
    ANGLAISE,
    FRANCAISE,
    RED,
    SIMPLE,
    AmericaineOptions,
    AnglaiseOptions,
    Variant,
    ZeroRule,
)
from rules.limits import Limits
from rules.wheel import WheelCoup

VARIANTS = pytest.mark.parametrize("variant", [FRANCAISE, AMERICAINE, ANGLAISE], ids=lambda variant: variant.id)
PAYOUTS = yaml.safe_load((Path(__file__).parents[1] / "data/payouts.yaml").read_text("utf-8"))["games"]
OURS = {
    "verte": "vert",
    "bleue": "bleu",
    "violette": "violet",
    "blanche": "blanc",
    "noire": "noir",
    "cinq_numeros": "cinq",
}
"""Ids of the payout file that are called otherwise in the settle format."""


def layout(variant: Variant) -> Layout:
    return GAMES[variant.id].layout(variant.options())


def settle(variant: Variant, spot: Spot, number: int | str, **stake: Any) -> Any:
    game = GAMES[variant.id]
    bet = Stake(id="a", player="J1", type=spot.type, on=spot.on, **{"cents": 300, **stake})
    result = game.settle([bet], {"number": number, "chances": chances(number)}, WheelCoup(no=1), variant.options())
    (line,) = result.lines
    money = {"player:J1": Fraction(), "table": Fraction()}
    for moved in result.transfers:
        money[moved.source] -= moved.cents
        money[moved.target] += moved.cents
    assert money == {"player:J1": line.net or 0, "table": -(line.net or 0)}
    return result


@pytest.mark.parametrize(
    ("variant", "counts"),
    [
        (FRANCAISE, {"plein": 37, "cheval": 60, "transversale": 14, "carre": 23}),
        (ANGLAISE, {"plein": 37, "cheval": 60, "transversale": 14, "carre": 23}),
        (AMERICAINE, {"plein": 38, "cheval": 58, "transversale": 15, "carre": 22, "cinq": 1}),
    ],
    ids=lambda value: getattr(value, "id", ""),
)
def test_the_layout_has_every_combination_once(variant: Variant, counts: dict[str, int]) -> None:
    lay = layout(variant)
    found = Counter(spot.type for spot in lay.spots.values())
    twice = {} if variant is AMERICAINE else {"deux_douzaines": 2, "deux_colonnes": 2}
    assert found == counts | {"sixain": 11, "douzaine": 3, "colonne": 3} | twice | dict.fromkeys(SIMPLE, 1)
    assert len(lay.by_bet) == len(lay.spots)
    sizes = {
        "plein": 1,
        "cheval": 2,
        "transversale": 3,
        "carre": 4,
        "cinq": 5,
        "sixain": 6,
        "douzaine": 12,
        "colonne": 12,
        "deux_douzaines": 24,
        "deux_colonnes": 24,
    }
    for spot in lay.spots.values():
        assert len(spot.wins) == sizes.get(spot.type, 18)
        if spot.type not in SIMPLE:
            assert spot.wins == frozenset(spot.on)
            assert lay.find(spot.type, reversed(spot.on)) is spot  # the order of the numbers is free


def test_neighbours_on_the_layout() -> None:
    lay = layout(FRANCAISE)

    def on(bet: str, *numbers: int | str) -> bool:
        return lay.find(bet, numbers) is not None

    assert all(on("cheval", *pair) for pair in ((1, 2), (2, 3), (1, 4), (33, 36), (35, 36), (0, 1), (0, 2), (0, 3)))
    assert not any(on("cheval", *pair) for pair in ((3, 4), (1, 3), (1, 5), (36, 39), (0, 4), (17, 17), (0, "00")))
    assert on("carre", 32, 33, 35, 36)
    assert not any(on("carre", *four) for four in ((3, 4, 6, 7), (34, 35, 37, 38), (0, 1, 2, 4)))
    assert on("transversale", 34, 35, 36)
    assert not any(on("transversale", *row) for row in ((2, 3, 4), (1, 4, 7), (0, 1, 3)))
    assert on("sixain", 31, 32, 33, 34, 35, 36)
    assert not on("sixain", 34, 35, 36, 37, 38, 39)
    assert on("deux_douzaines", *range(13, 37))
    assert not on("deux_douzaines", *range(1, 13), *range(25, 37))  # à cheval needs neighbours
    assert not on("deux_colonnes", *range(1, 37, 3), *range(3, 37, 3))


def test_the_colours_of_the_numbers() -> None:
    assert len(RED) == 18
    assert CHANCES["noir"] == frozenset(range(1, 37)) - RED
    assert chances(17) == ["noir", "impair", "manque"]
    assert chances(36) == ["rouge", "pair", "passe"]
    assert chances(0) == chances("00") == []


@VARIANTS
def test_every_bet_on_every_result_and_its_exact_mean(variant: Variant) -> None:
    """Mean return of a bet over all results, a zero taken as half where the player may take half."""
    lay = layout(variant)
    pockets = len(variant.pockets)
    means: dict[str, set[Fraction]] = {}
    for spot in lay.spots.values():
        nets = [settle(variant, spot, number).lines[0].net for number in variant.pockets]
        pays = lay.kinds[spot.type].pays
        for number, net in zip(variant.pockets, nets, strict=True):
            if number in variant.zeros and spot.type in SIMPLE and variant.zero_rule is not ZeroRule.PERDU:
                assert net == -150
            else:
                assert net == (300 * pays if number in spot.wins else -300)
        means.setdefault(spot.type, set()).add(Fraction(sum(nets), 300 * pockets))
    simple = {ZeroRule.CHOIX: Fraction(-1, 74), ZeroRule.MOITIE: Fraction(-1, 74), ZeroRule.PERDU: Fraction(-1, 19)}
    expected = {bet: {Fraction(-1, 37) if pockets == 37 else Fraction(-1, 19)} for bet in lay.kinds}
    expected |= {bet: {simple[variant.zero_rule]} for bet in SIMPLE}
    if variant is AMERICAINE:
        expected["cinq"] = {Fraction(-3, 38)}
    assert means == expected


def test_r_rf_21_half_a_cent_moves_exactly_and_the_right_way() -> None:
    spot = next(spot for spot in layout(FRANCAISE).spots.values() if spot.type == "deux_douzaines")
    (moved,) = settle(FRANCAISE, spot, 17, cents=1).transfers
    assert (moved.source, moved.target, moved.cents) == ("table", "player:J1", Fraction(1, 2))


@VARIANTS
def test_winners_stay_and_losers_go(variant: Variant) -> None:
    for spot in layout(variant).spots.values():
        for number in variant.pockets:
            result = settle(variant, spot, number)
            assert bool(result.stay) is (result.lines[0].status == "win")


@pytest.mark.parametrize("variant", [AMERICAINE, ANGLAISE], ids=lambda variant: variant.id)
def test_prison_exists_at_the_francaise_only(variant: Variant) -> None:
    game = GAMES[variant.id]
    spot = layout(variant).spots["rouge"]
    stake = Stake(id="a", player="J1", type="rouge", cents=300, choices=("prison",))
    assert game.offers([stake], {"number": 0}, WheelCoup(no=1)) == {}
    assert settle(variant, spot, 0, choices=("prison",)).stay == ()


@pytest.mark.parametrize("game_id", ["roue_de_la_chance", *GAMES])
def test_payouts_and_maxima_agree_with_the_payout_file(game_id: str) -> None:
    game: Game = load(game_id)
    lay = game.layout(None)
    rows = [row for row in PAYOUTS[game_id]["bets"] if row["status"] == "ok"]
    assert {OURS.get(row["id"], row["id"]) for row in rows} == set(lay.kinds)
    for row in rows:
        kind = lay.kinds[OURS.get(row["id"], row["id"])]
        gain, staked = row["payout"].split(":")
        assert kind.pays == Fraction(int(gain), int(staked))
        assert kind.max_multiple == row["max_multiple"]
        assert {kind.requirement, kind.limit_requirement} <= set(row["req"])
        covers = row["covers"]
        numbers = covers.get("numbers", covers.get("numbers_industry_convention"))
        spots = [spot for spot in lay.spots.values() if spot.type == kind.type]
        if numbers is not None:
            assert [{str(n) for n in spot.wins} for spot in spots] == [{str(n) for n in numbers}]
        if "count" in covers:
            assert {len(spot.wins) for spot in spots} == {covers["count"]}


@VARIANTS
def test_limits_follow_the_minimum_in_force(variant: Variant) -> None:
    game = GAMES[variant.id]
    house = House(declared_minimum_cents=500, options=variant.options())
    limits = game.limits(layout(variant), house, 700, {})
    assert isinstance(limits, Limits)
    assert limits.maxima == {kind.type: 700 * kind.max_multiple for kind in variant.kinds}
    refused = game.limits(layout(variant), house, 499, {})
    assert isinstance(refused, Refusal)
    assert refused.requirement == "R-GEN-10"


def test_r_ra_01_the_zeros_are_opposite() -> None:
    assert AmericaineOptions().cylindre == AMERICAN_CYLINDER
    red, black = sorted(RED), sorted(CHANCES["noir"])
    alternating = [number for pair in zip(red, black, strict=True) for number in pair]
    with pytest.raises(ValueError, match="0 and 00 must be diametrically opposite"):
        AmericaineOptions(cylindre=(0, alternating[0], "00", *alternating[1:]))
    with pytest.raises(ValueError, match="38 pockets"):
        AnglaiseOptions(cylindre=AMERICAN_CYLINDER)


def test_a_double_zero_is_read_and_announced_only_where_it_exists() -> None:
    game = GAMES["roulette_americaine"]
    outcome = game.read("00", None)
    assert outcome == {"number": "00", "numbers": ["00"], "chances": []}
    assert (game.value(outcome), game.announce(outcome)) == ("00", "Double zéro")
    assert GAMES["roulette_anglaise"].read("00", None) is None
