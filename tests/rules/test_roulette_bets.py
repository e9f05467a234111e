"""Layouts and money of the three roulettes; means and payouts stand in test_returns and test_payouts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from rules.bets import Layout, Refusal, Spot, Stake
from rules.game import House
from rules.games.roulette import GAMES
from rules.games.roulette.tapis import CHANCES, chances
from rules.games.roulette.variants import (
    AMERICAINE,
    AMERICAN_CYLINDER,
    ANGLAISE,
    FRANCAISE,
    RED,
    AmericaineOptions,
    AnglaiseOptions,
    Variant,
)
from rules.limits import Limits
from rules.wheel import WheelCoup

VARIANTS = pytest.mark.parametrize("variant", [FRANCAISE, AMERICAINE, ANGLAISE], ids=lambda variant: variant.id)


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
