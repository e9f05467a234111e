"""What the house decides for a seance: limits in the ranges of the text, public options, who counts as one player."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rules.bets import BetKind, Layout, Refusal, Spot
from rules.decisions import Announce, Breach, Phase, Refused, StakeAccepted, StakeRefused
from rules.facts import Origin, PocketRead
from rules.game import House, always, groups_of_players
from rules.installation import Installation
from rules.limits import Limits, by_the_text
from rules.table import Table
from tests.rules.playbook import Play
from tests.rules.toy import HOUSE, TOY

BOULE = Installation(
    decision="R-BO-04",
    chef="R-BO-05",
    notice="R-BO-06",
    change="R-BO-07",
    minimum="R-BO-14",
    cylinder="R-BO-20",
    associations="R-BO-21",
    plein=(5, 10),
    plein_limit="R-BO-18",
    simple=(15, 20),
    simple_limit="R-BO-19",
)
SIGNED = {False: ("affiche", "comite"), True: ("chef_de_table", "chef")}


def table(**changes: Any) -> Play:
    """A toy whose seance begins with a decision and whose minimum is frozen for the seance."""
    game = replace(TOY, needs=BOULE.needs, public_options=BOULE.public_options, minimum_change=("seance", "R-BO-16"))
    return Play(Table(game, replace(HOUSE, **{"max_players": None, **changes})))


def opened(**asked: Any) -> Play:
    game = table()
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open", **asked)
    assert game.state.phase is Phase.MISES_OUVERTES
    return game


# --- a decision before the opening -----------------------------------------------------------------------------------


def test_r_bo_04_the_table_stays_closed_until_it_is_decided() -> None:
    game = table()
    game.command("open")
    refused = game.one(Refused)
    assert (refused.code, refused.requirement) == ("option_a_decider", "R-BO-04")
    assert "plus_de_douze_joueurs" in refused.text
    game.command("options", plus_de_douze_joueurs="oui")
    assert game.one(Refused).code == "option_impossible"
    game.command("options")
    assert game.one(Refused).code == "argument_manquant"
    assert "plus_de_douze_joueurs" in game.one(Refused).text
    game.command("options", plus_de_douze_joueurs=False)
    assert game.codes() == ["options", "douze_joueurs_au_plus"]
    game.command("open")
    assert game.one(Refused).code == "attestation_manquante"
    assert "affiche (comite)" in game.one(Refused).text


def test_r_bo_05_another_decision_needs_another_signature() -> None:
    game = table()
    game.command("attest", what="tapis")  # nothing is needed as long as nothing is decided
    assert is_in(game, Phase.FERME)
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    assert is_in(game, Phase.VERIFIEE)
    game.command("options", plus_de_douze_joueurs=True)
    assert game.codes() == ["options", "plus_de_douze_joueurs"]
    assert is_in(game, Phase.FERME)
    game.command("open")
    assert "chef_de_table (chef)" in game.one(Refused).text
    game.command("attest", what="chef_de_table", role="chef")
    game.command("open")
    assert game.state.phase is Phase.MISES_OUVERTES


def test_r_bo_04_it_cannot_be_changed_in_the_seance_and_is_decided_anew_for_the_next() -> None:
    game = opened()
    game.command("options", plus_de_douze_joueurs=True)
    assert (game.one(Refused).code, game.one(Refused).requirement) == ("option_figee", "R-BO-04")
    game.command("close")
    game.command("options", plus_de_douze_joueurs=True)
    assert game.one(Refused).code == "option_figee"
    game.command("open")
    game.command("close", end_of_seance=True)
    game.command("open")
    assert game.one(Refused).code == "option_a_decider"


def is_in(game: Play, phase: Phase) -> bool:
    return game.state.phase is phase


def players(game: Play, many: int) -> list[str]:
    """So many players stake; the codes of what was found."""
    found: list[str] = []
    for number in range(many):
        game.chip("plein:3", 100, player=f"J{number}")
        found += [breach.code for breach in game.told(Breach)]
    return found


@pytest.mark.parametrize(
    ("more", "house", "many", "found"),
    [
        (False, None, 12, []),
        (False, None, 13, ["trop_de_joueurs"]),
        (False, 5, 6, ["trop_de_joueurs"]),
        (True, None, 40, []),
        (True, 30, 30, []),
        (True, 30, 31, ["trop_de_joueurs"]),
    ],
)
def test_r_bo_06_how_many_may_play_follows_from_the_decision(
    more: bool, house: int | None, many: int, found: list[str]
) -> None:
    game = table(max_players=house)
    game.command("options", plus_de_douze_joueurs=more)
    game.command("attest", what=SIGNED[more][0], role=SIGNED[more][1])
    game.command("open")
    assert players(game, many) == found


# --- presumed association --------------------------------------------------------------------------------------------


def test_r_bo_21_players_presumed_to_play_together_are_one_for_the_maximum() -> None:
    game = opened()
    game.chip("plein:3", 600, player="A")
    game.chip("plein:3", 600, player="B")
    assert game.told(StakeAccepted)
    game.command("options", associations_presumees=[["A", "B"], ["C", "D"]])
    assert game.codes() == ["options"]
    assert game.one(Announce).text == 'Décidé par Mme Roux : associations_presumees = [["A", "B"], ["C", "D"]]'
    game.chip("plein:3", 100, player="A", tableau=2)
    assert "300 de trop" in game.one(StakeRefused).text
    game.chip("plein:4", 1000, player="B")
    assert game.told(StakeAccepted)  # another chance
    game.chip("plein:4", 1000, player="C")
    assert game.told(StakeAccepted)  # another group
    game.chip("plein:4", 1000, player="E")
    assert game.told(StakeAccepted)


@pytest.mark.parametrize(
    "groups", ["A, B", [["A"]], [["A", "B"], ["B", "C"]], [["A", "A"]], ["A", "B"], [["A", ""]], [["A", 3]]]
)
def test_r_bo_21_what_is_no_list_of_groups(groups: object) -> None:
    game = opened()
    game.command("options", associations_presumees=groups)
    assert game.one(Refused).code == "option_impossible"


def test_groups_of_players_as_the_journal_gives_them_back() -> None:
    assert groups_of_players((("A", "B"), ("C", "D", "E")))
    assert groups_of_players([])
    assert not groups_of_players(None)


# --- limits in a range -----------------------------------------------------------------------------------------------


def kind(bet: str, low: int, high: int, limited_with: str = "") -> BetKind:
    return BetKind(
        type=bet,
        pays=TOY.layout(None).kinds["plein"].pays,
        max_multiple=high,
        least_max_multiple=low,
        limited_with=limited_with,
        requirement="T-1",
        limit_requirement=f"T-{bet}",
    )


LAYOUT = Layout(
    {
        "plein_bas": kind("plein", 20, 50),
        "plein_haut": kind("plein", 20, 50),
        "rouge": kind("rouge", 100, 250, "chances_simples"),
        "noir": kind("noir", 100, 250, "chances_simples"),
        "fixe": kind("fixe", 0, 30),
    },
    {"plein:1": Spot(id="plein:1", type="plein", on=(1,), wins=frozenset({1}), row="plein_bas")},
)


def limits(minimum: int = 200, usual: Any = None, **maxima: int) -> Limits:
    asked = by_the_text(LAYOUT, 100, minimum, maxima, usual=usual)
    assert isinstance(asked, Limits), asked
    return asked


def refused(minimum: int = 200, **maxima: int) -> Refusal:
    asked = by_the_text(LAYOUT, 100, minimum, maxima)
    assert isinstance(asked, Refusal), asked
    return asked


def test_a_spot_knows_its_row_of_the_table_of_bets() -> None:
    assert LAYOUT.kind(LAYOUT.spots["plein:1"]) is LAYOUT.kinds["plein_bas"]


def test_nothing_asked_is_what_the_house_usually_has_or_the_highest() -> None:
    assert limits().maxima == {"plein": 10_000, "rouge": 50_000, "noir": 50_000, "fixe": 6000}
    usual = {"plein": 20, "chances_simples": 100}
    assert limits(usual=usual).maxima == {"plein": 4000, "rouge": 20_000, "noir": 20_000, "fixe": 6000}


def test_r_vt_20_21_any_maximum_of_the_range_reckoned_from_the_raised_minimum() -> None:
    assert limits(plein=4000, rouge=20_000).maxima == {"plein": 4000, "rouge": 20_000, "noir": 20_000, "fixe": 6000}
    assert limits(chances_simples=50_000, fixe=6000, plein=10_000) == limits()
    assert limits(rouge=30_000, noir=30_000) == limits(chances_simples=30_000)


@pytest.mark.parametrize(
    ("maxima", "code", "requirement", "told"),
    [
        ({"plein": 3999}, "maximum_hors_fourchette", "T-plein", "de 4000 à 10000 (20 à 50 fois le minimum)"),
        ({"plein": 10_001}, "maximum_hors_fourchette", "T-plein", "10001"),
        ({"noir": 19_999}, "maximum_hors_fourchette", "T-rouge", "noir : il va de 20000 à 50000"),
        ({"chances_simples": 50_001}, "maximum_hors_fourchette", "T-rouge", "chances_simples"),
        ({"rouge": 30_000, "noir": 30_001}, "maximum_en_double", "T-rouge", "chances_simples"),
        ({"fixe": 5999}, "maximum_fixe", "T-fixe", "6000"),
        ({"cheval": 6000}, "combinaison_inexistante", "R-GEN-10", "cheval"),
    ],
)
def test_a_maximum_that_the_text_does_not_allow_is_refused_with_what_it_allows(
    maxima: dict[str, int], code: str, requirement: str, told: str
) -> None:
    answer = refused(**maxima)
    assert (answer.code, answer.requirement) == (code, requirement)
    assert told in answer.text


def test_r_bo_15_17_limits_are_frozen_until_the_next_seance() -> None:
    game = opened(minimum_cents=200, maxima={"haut": 3200})
    frozen = game.state.limits
    assert frozen is not None
    assert (frozen.minimum, frozen.maxima) == (200, {"plein": 2000, "haut": 3200})
    asked: dict[str, Any]
    for asked in ({"minimum_cents": 100}, {"minimum_cents": 300}, {"maxima": {"haut": 3300}}):
        game.command("limits", **asked)
        assert game.one(Refused).code == "minimum_fige"
    game.command("close")
    game.command("open", maxima={"haut": 3300})
    assert game.one(Refused).code == "minimum_fige"
    game.command("open")  # nothing asked: what stands
    assert (game.state.phase, game.state.limits) == (Phase.MISES_OUVERTES, frozen)
    game.command("close", end_of_seance=True)
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open", minimum_cents=100)
    assert game.state.limits != frozen


def test_limits_fixed_before_the_opening_stand_unless_the_minimum_is_another() -> None:
    game = table()
    game.command("limits", maxima={"haut": 1600})
    game.command("limits", maxima={"plein": 1000})
    assert game.state.limits is not None
    assert game.state.limits.maxima == {"plein": 1000, "haut": 1600}
    game.command("limits", minimum_cents=200)
    assert game.state.limits.maxima == {"plein": 2000, "haut": 4000}
    game.command("limits", minimum_cents=99)
    assert game.one(Refused).code == "minimum_sous_le_declare"
    game.command("limits", maxima=["haut"])
    assert game.one(Refused).code == "montant_impossible"


def test_r_bo_18_19_the_usual_maxima_of_a_house_are_options_in_the_ranges() -> None:
    BOULE.check(5, 20)
    with pytest.raises(ValueError, match="max_plein: 11; allowed: 5 to 10 times the minimum"):
        BOULE.check(11, 20)
    with pytest.raises(ValueError, match="max_chances_simples: 14; allowed: 15 to 20"):
        BOULE.check(10, 14)
    for options, most in ((None, 2000), (SimpleNamespace(max_plein=6, max_chances_simples=15), 1200)):
        asked = BOULE.limits(TOY.layout(None), House(declared_minimum_cents=100, options=options), 200, {})
        assert isinstance(asked, Limits)
        assert (asked.maxima["plein"], asked.minimum_requirement) == (most, "R-BO-14")


# --- a game whose call comes first -----------------------------------------------------------------------------------


def test_where_the_call_comes_first_it_begins_a_coup_after_the_payment() -> None:
    for begins, phase in ((frozenset[str](), Phase.REGLEMENT), (frozenset({"rien_ne_va_plus"}), Phase.JEUX_FAITS)):
        game = Play(Table(replace(TOY, needs=always(), begins=begins), HOUSE))
        game.command("open")
        game.say("rien_ne_va_plus")
        game.command("outcome", value=3, second="M. Bon", role="chef")
        assert game.state.phase is Phase.REGLEMENT
        game.say("rien_ne_va_plus")
        assert game.state.phase is phase


# --- value and cell --------------------------------------------------------------------------------------------------


EIGHT: dict[int | None, Any] = {place: {"number": place + 1, "cell": place} for place in range(8)}


@pytest.mark.parametrize(
    ("value", "cell", "meant"),
    [
        (None, 2, {"number": 3, "cell": 2}),
        (None, 9, None),
        (3, None, {"number": 3}),
        (3, 2, {"number": 3, "cell": 2}),  # the cell tells more
        (3, 1, {"number": 3}),  # and nothing where it says another number
        (7, 6, {"number": 7, "cell": 6}),  # a number that leaves it open
        ("7", 6, {"number": 7, "cell": 6}),  # as it is typed
        (7, 2, None),
        (8, 9, None),
    ],
)
def test_what_a_reading_means(value: int | str | None, cell: int | None, meant: Any) -> None:
    game = replace(
        TOY,
        read=lambda given, options: {"number": given} if given in (1, 2, 3, 4) else None,
        cell=lambda place, options: EIGHT.get(place),
    )
    fact = PocketRead(at_ns=1, source="cups", origin=Origin.SENSOR, value=value, cell=cell)
    assert game.meant(fact, None) == meant
