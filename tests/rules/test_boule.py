"""Boule: every E, C and D requirement of its spec, the draw, the bets, the money.

| requirement | where it is shown, when not in a test below that bears its name |
|---|---|
| R-BO-03 | attested by people, nothing to decide |
| R-BO-04 to R-BO-07 | the decision and its signatures: test_seance, with the law of this very game |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import config_file
from controller.config_check import from_data
from controller.errors import ConfigError
from rules.bets import Stake
from rules.cases import CaseError, answer
from rules.decisions import Announce, BetsClosed, Ignored, Phase, Refused, Severity, StakeAccepted, StakeRefused, Status
from rules.facts import Announced, BallLaunched, DeviceLost, Direction, Doubtful, Fact, Origin, PocketRead, SpinStarted
from rules.game import Context, Coup
from rules.games.boule import COULEURS, GAME, BouleOptions, announce, at_cup, chances, read, settle
from rules.wheel import WheelCoup
from tests.rules.playbook import CCW, CW, MS
from tests.rules.wheels import BOULE, Wheel, boule, table

EVERY = ("rouge", "noir", "pair", "impair", "manque", "passe")


def called(**changes: Any) -> Wheel:
    """Anne has ten euros on the even numbers, and rien ne va plus was called."""
    game = boule(**changes)
    game.chip("pair", 1000, player="Anne")
    game.call()
    assert game.is_in(Phase.JEUX_FAITS)
    return game


# --- equipment and options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_plein": 39}, "max_plein: 39; allowed: 40 to 100 times the minimum"),
        ({"max_plein": 101}, "max_plein: 101"),
        ({"max_chances_simples": 199}, "max_chances_simples: 199; allowed: 200 to 500"),
        ({"max_chances_simples": 501}, "max_chances_simples: 501"),
        ({"couleurs": {**COULEURS, "5": "rouge"}}, "couleurs: .*; each number but 5, four rouge and four noir"),
        ({"couleurs": {**COULEURS, "1": "vert"}}, "couleurs"),
        ({"couleurs": {**COULEURS, "1": "rouge"}}, "couleurs"),
        ({"couleurs": {}}, "couleurs"),
        (
            {"cuvettes": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)},
            r"cuvettes: .*; numbers 1 to 9, each in as many cups \(R-BO-01\)",
        ),
        ({"cuvettes": (1, 2, 3, 4, 5, 6, 7, 8)}, "cuvettes"),
        ({"cuvettes": (1, 2, 3, 4, 5, 6, 7, 8, 9, 9)}, "cuvettes"),
    ],
)
def test_r_bo_01_impossible_options_are_refused(options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(BOULE.options, **options)


@pytest.mark.parametrize("cups", [9, 18, 36])
def test_r_bo_01_a_basin_has_as_many_cups_as_it_likes_and_nine_numbers(cups: int) -> None:
    options = replace(BOULE.options, cuvettes=tuple(range(1, 10)) * (cups // 9))
    outcomes = [at_cup(cup, options) for cup in range(cups)]
    assert [outcome["number"] for outcome in outcomes if outcome] == list(range(1, 10)) * (cups // 9)
    for cup in (-1, cups, None):
        assert at_cup(cup, options) is None
    assert at_cup(0, None) is None


def test_r_bo_02_as_many_tableaux_as_the_house_has() -> None:
    game = boule(tableaux=3)
    for tableau in (1, 2, 3):
        game.chip("plein:7", 100, player=f"J{tableau}", tableau=tableau)
        assert game.one(StakeAccepted).tableau == tableau
    game.chip("plein:7", 100, tableau=4)
    assert game.one(StakeRefused).code == "tableau_inconnu"


@pytest.mark.parametrize("name", ["boule", "vingt-trois"])
def test_the_call_can_only_be_the_croupiers(name: str) -> None:
    data = config_file.read_toml(config_file.shipped_tables()[name])
    data["house"]["rien_ne_va_plus"] = "automatique"
    with pytest.raises(ConfigError, match=r"(?s)house.rien_ne_va_plus.*croupier only: at this game"):
        from_data(data, "test")


# --- the draw --------------------------------------------------------------------------------------------------------


def test_a_draw_from_the_call_to_the_payment() -> None:
    game = boule()
    game.say("faites_vos_jeux")
    game.chip("plein:8", 500, player="Anne")
    game.chip("noir", 1000, player="Bruno", tableau=2)
    game.call()
    assert game.one(BetsClosed).how == "croupier"
    game.say("boule_lancee")
    assert game.said("boule_lancee")
    assert game.state.coup is not None
    assert game.state.coup.step == "thrown"
    game.read(None, cell=7, source="cups")
    assert game.is_in(Phase.RESULTAT)
    game.read(8, "console")
    result = game.ended()
    assert (result.status, result.reasons, result.direction) == (Status.VALID, (), None)
    assert result.outcome == {"number": 8, "cell": 7, "chances": ["noir", "pair", "passe"]}
    assert result.sources == {"cups": 8, "console": 8}
    assert list(result.times) == ["faites_vos_jeux", "closed", "thrown", "ended"]
    assert game.one(Announce).text == "8, noir, pair et passe"
    assert game.paid() == [("plein", "win", 3500), ("noir", "win", 1000)]
    assert game.is_in(Phase.REGLEMENT)


def test_t02_r_bo_09_no_sense_and_no_turns() -> None:
    """Thrown twice in the same sense; nothing turns, and what turns is nobody's."""
    for sense in (CW, CW, CCW):
        game = called(sources=("console",))
        game.do(SpinStarted(at_ns=game.at(), source="wheel", direction=sense))
        game.ball(sense)
        game.ball(sense)
        assert game.ignored
        game.read(3, "console")
        assert (game.ended().status, game.ended().reasons) == (Status.VALID, ())


@pytest.mark.parametrize("sensor", [True, False])
def test_a_throw_before_the_call_closes_the_bets_at_once_and_is_held(sensor: bool) -> None:
    game = boule(sources=("console",))
    game.chip("pair", 1000, player="Anne")
    if sensor:
        game.ball(CW)
    else:
        game.say("boule_lancee")
    assert (game.breach().code, game.breach().severity) == ("tirage_avant_rnvp", Severity.HELD)
    assert (game.one(BetsClosed).how, game.lit) == ("absent", {"rien_ne_va_plus", "buzzer"})
    game.chip("plein:4", 1000, player="Bruno")
    assert game.one(StakeRefused).code == "mise_tardive"
    game.call()
    assert game.ignored
    game.read(4, "console")
    assert (game.ended().status, game.lit) == (Status.HELD, {"litige"})
    game.command("resolve", role="chef", **{"as": "valid"})
    assert game.paid() == [("pair", "win", 1000)]


def test_a_throw_told_after_the_call_that_was_before_it_moves_the_close_back() -> None:
    game = boule(sources=("console",))
    game.chip("pair", 1000, player="Anne", at_ns=game.at(1000))
    game.chip("pair", 500, player="Anne", at_ns=game.at(1000))
    thrown = game.now - 500 * MS
    game.call()
    game.do(BallLaunched(at_ns=thrown, source="rim", direction=CW))
    assert (game.breach().code, game.one(BetsClosed).at_ns) == ("tirage_avant_rnvp", thrown)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).cents) == ("mise_tardive", 500)
    game.read(4, "console")
    assert game.ended().times["closed"] == thrown
    game.command("resolve", role="chef", **{"as": "valid"})
    assert game.paid() == [("pair", "win", 1000)]


def test_a_number_that_nobody_called_for_is_held() -> None:
    game = boule()
    game.chip("pair", 1000, player="Anne")
    game.read(None, cell=3, source="cups")
    assert game.one(BetsClosed).how == "absent"
    game.read(4, "console")
    assert [(b.code, b.requirement) for b in game.ended().reasons] == [("rnvp_absent", "R-GEN-08")]
    assert game.ended().status is Status.HELD


def test_a_number_without_a_call_is_held_after_another_coup_too() -> None:
    game = called()
    game.read(None, cell=3, source="cups")
    game.read(4, "console")
    game.chip("pair", 1000, player="Bruno")
    game.read(None, cell=4, source="cups")
    game.read(5, "console")
    assert (game.ended().coup, game.ended().status) == (2, Status.HELD)


@pytest.mark.parametrize("value", [0, 10, "05", "00", "rouge", "²", ""])
def test_what_is_no_number_of_the_apparatus(value: int | str) -> None:
    game = called()
    game.read(value, "console")
    assert game.ignored
    assert game.is_in(Phase.JEUX_FAITS)
    assert read(value, BOULE.options) is None


def test_a_number_is_read_as_it_is_typed() -> None:
    assert read("7", BOULE.options) == read(7, None) == {"number": 7, "chances": ["rouge", "impair", "passe"]}


def test_cups_in_doubt_leave_it_to_a_person() -> None:
    game = called(draw_devices=("cups",))
    game.do(Doubtful(at_ns=game.at(), source="cups", device="cups", why="two_at_once"))
    game.read(4, "console")
    game.elapse("accord")
    assert {b.code: b.severity for b in game.ended().reasons} == {
        "appareil_douteux": Severity.NOTED,
        "source_manquante": Severity.HELD,
    }


def test_a_restart_after_the_call_is_held() -> None:
    game = called(draw_devices=("cups",))
    game.do(Doubtful(at_ns=game.at(), source="controller", device="cups", why="not_observed"))
    game.read(None, cell=3, source="cups")
    game.read(4, "console")
    assert [b.code for b in game.ended().reasons] == ["tirage_non_observe"]
    assert game.ended().status is Status.HELD


def test_sources_that_disagree_are_held() -> None:
    game = called()
    game.read(None, cell=3, source="cups")
    game.read(5, "console")
    assert (game.ended().status, game.ended().outcome) == (Status.HELD, None)


def test_a_ball_that_never_comes_to_rest_is_held() -> None:
    game = called()
    game.elapse("tirage")
    assert [b.code for b in game.ended().reasons] == ["tirage_sans_resultat"]


def test_a_throw_before_the_call_must_end_some_day_too() -> None:
    game = boule()
    game.ball(CW)
    game.elapse("tirage")
    assert [b.code for b in game.ended().reasons] == ["tirage_avant_rnvp", "tirage_sans_resultat"]


def test_a_number_that_nobody_called_for_needs_its_instruments_like_any_draw() -> None:
    game = boule()
    game.do(DeviceLost(at_ns=game.at(), source="cups", device="cups", why="unplugged"))
    game.read(5, "console")
    assert "appareil_perdu" in game.reasons


def test_a_call_after_the_payment_begins_the_next_coup() -> None:
    game = called(sources=("console",))
    game.read(4, "console")
    game.call()
    assert (game.state.coup_no, game.state.phase) == (2, Phase.JEUX_FAITS)
    game.read(4, "console")
    assert game.paid() == [("pair", "win", 1000)]  # R-BO-08: the winner's stake played on


def test_the_ball_of_an_annulled_throw_comes_to_rest_and_decides_nothing() -> None:
    game = boule()
    game.chip("rouge", 1000)
    game.call()
    game.say("boule_lancee")
    game.command("void", role="chef", why="fumée")
    game.read(None, cell=3, source="cups")
    assert game.told(Ignored)
    game.chip("pair", 500)  # bets are open
    assert game.told(StakeAccepted)
    game.read(None, cell=3, source="cups")  # a second one is a draw that nobody called
    assert game.told(BetsClosed)
    game.read(4, "console")
    assert game.ended().status is Status.HELD


def test_the_ball_of_a_throw_that_was_read_is_not_waited_for() -> None:
    game = boule()
    game.call()
    game.say("boule_lancee")
    game.read(None, cell=3, source="cups")
    game.command("void", role="chef", why="fumée")
    game.read(None, cell=4, source="cups")
    assert game.told(BetsClosed)


@pytest.mark.parametrize("by_command", [True, False])
def test_the_last_coup(by_command: bool) -> None:
    game = boule()
    if by_command:
        game.command("last_coup", role="chef")
    else:
        game.say("dernier_coup")
    assert game.said("dernier_coup")
    game.call()
    game.read(None, cell=3, source="cups")
    game.read(4, "console")
    assert game.ended().status is Status.VALID
    game.command("close", end_of_seance=True)
    assert game.is_in(Phase.FERME)


@pytest.mark.parametrize("more", [True, False])
def test_r_bo_07_money_changed_at_the_table(more: bool) -> None:
    game = table("boule", BOULE)
    game.command("options", plus_de_douze_joueurs=more)
    game.command("attest", what="chef_de_table" if more else "affiche", role="chef" if more else "comite")
    game.command("open")
    game.say("change_a_table")
    if more:
        assert game.ignored
    else:
        breach = game.breach()
        assert (breach.code, breach.requirement, breach.severity) == ("change_interdit", "R-BO-07", Severity.NOTED)


# --- bets and money --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spot", ["plein:0", "plein:10", "plein", "cheval:1-2", "plein:1-2", "douzaine:1", "vert"])
def test_r_bo_10_only_pleins_and_even_chances(spot: str) -> None:
    game = boule()
    game.chip(spot, 100)
    refused = game.one(StakeRefused)
    assert (refused.code, refused.requirement) == ("combinaison_inexistante", "R-BO-10")


def net(bet: str, number: int, on: tuple[int, ...] = ()) -> Fraction:
    stake = Stake(id="a", player="J", type=bet, on=on, cents=700)
    settled = settle((stake,), {"number": number}, WheelCoup(no=1), BOULE.options)
    entry = settled.lines[0]
    assert entry.net is not None
    assert settled.stay == ((stake,) if entry.status == "win" else ())
    assert (settled.order, settled.player_order) == ((), ())  # the text has none
    return entry.net / 700


def test_r_bo_11_12_every_bet_on_every_number() -> None:
    wins = {
        "rouge": {2, 4, 7, 9},
        "noir": {1, 3, 6, 8},
        "pair": {2, 4, 6, 8},
        "impair": {1, 3, 7, 9},
        "manque": {1, 2, 3, 4},
        "passe": {6, 7, 8, 9},
    }
    for number in range(1, 10):
        for chance, numbers in wins.items():
            assert net(chance, number) == (1 if number in numbers else -1)
        for on in range(1, 10):
            assert net("plein", number, (on,)) == (7 if on == number else -1)
    for chance in wins:
        assert sum(net(chance, number) for number in range(1, 10)) / 9 == Fraction(-1, 9)
    assert sum(net("plein", number, (5,)) for number in range(1, 10)) / 9 == Fraction(-1, 9)


def test_r_bo_12_the_house_paints_the_numbers() -> None:
    painted = replace(BOULE.options, couleurs={n: "noir" if c == "rouge" else "rouge" for n, c in COULEURS.items()})
    assert chances(1, painted.couleurs) == ["rouge", "impair", "manque"]
    game = boule(options=painted, sources=("console",))
    game.chip("rouge", 100)
    game.call()
    game.read(1, "console")
    assert game.paid() == [("rouge", "win", 100)]


def test_t01_r_bo_13_five_kills_every_even_chance() -> None:
    game = boule(sources=("console",))
    for chance in EVERY:
        game.chip(chance, 1000)
    game.chip("plein:5", 1000)
    game.call()
    game.read(5, "console")
    assert game.paid() == [*((chance, "lose", -1000) for chance in EVERY), ("plein", "win", 7000)]
    assert game.ended().outcome == {"number": 5, "chances": []}
    assert announce({"number": 5, "chances": []}) == "5, les chances simples perdent"


def test_r_bo_08_the_winner_keeps_his_stake_and_may_take_it() -> None:
    game = called(sources=("console",))
    game.chip("plein:3", 500, player="Bruno")
    game.read(4, "console")
    game.take("pair", 400, player="Anne")
    assert game.one(StakeAccepted).cents == 600
    game.chip("plein:1", 100, player="Bruno")  # the next coup is open
    game.take("pair", 600, player="Anne")
    assert game.one(StakeAccepted).cents == 0


# --- minimum and maximum ---------------------------------------------------------------------------------------------


def opening(**asked: Any) -> Wheel:
    game = table("boule", BOULE)
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open", **asked)
    return game


@pytest.mark.parametrize(
    ("asked", "requirement"),
    [
        ({"maxima": {"plein": 7999}}, "R-BO-18"),
        ({"maxima": {"plein": 20_001}}, "R-BO-18"),
        ({"maxima": {"rouge": 39_999}}, "R-BO-19"),
        ({"maxima": {"chances_simples": 100_001}}, "R-BO-19"),
    ],
)
def test_r_bo_18_19_maxima_are_reckoned_from_the_raised_minimum(asked: Any, requirement: str) -> None:
    game = opening(minimum_cents=200, **asked)
    assert (game.one(Refused).code, game.one(Refused).requirement) == ("maximum_hors_fourchette", requirement)


def test_r_bo_14_never_below_the_declared_minimum() -> None:
    game = opening(minimum_cents=99)
    assert (game.one(Refused).code, game.one(Refused).requirement) == ("minimum_sous_le_declare", "R-GEN-10")
    game = boule()
    game.command("stake", role="croupier", spot="plein:4", cents=99, player="Anne")
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("sous_le_minimum", "R-BO-14")


def test_t07_r_bo_15_16_17_raised_at_the_opening_and_frozen() -> None:
    game = opening(minimum_cents=200, maxima={"plein": 8000, "chances_simples": 40_000})
    assert game.state.limits is not None
    assert game.state.limits.maxima == {"plein": 8000, **dict.fromkeys(EVERY, 40_000)}
    game.command("limits", minimum_cents=100)
    assert (game.one(Refused).code, game.one(Refused).requirement) == ("minimum_fige", "R-BO-16")
    game.command("limits", maxima={"plein": 9000})
    assert game.one(Refused).code == "minimum_fige"


def test_r_bo_17_without_a_word_the_maxima_are_those_of_the_house() -> None:
    game = table("boule", BOULE, options=BouleOptions(max_plein=40, max_chances_simples=200))
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open", minimum_cents=200)
    assert game.state.limits is not None
    assert game.state.limits.maxima == {"plein": 8000, **dict.fromkeys(EVERY, 40_000)}
    assert game.state.limits.minimum_requirement == "R-BO-14"


@pytest.mark.parametrize("tableaux", [2, 3])
def test_t08_r_bo_20_the_maximum_is_per_player_and_cylinder(tableaux: int) -> None:
    """T-08: 60 + 50 on the same number at two tables of one apparatus is 10 too much; two players may have 100 each."""
    game = boule(tableaux=tableaux)
    game.chip("plein:4", 6000, player="Anne")
    game.chip("plein:4", 5000, player="Anne", tableau=2)
    assert "1000 de trop" in game.one(StakeRefused).text
    assert game.one(StakeRefused).requirement == "R-BO-20"
    game.chip("plein:5", 10_001, player="Anne")
    assert game.one(StakeRefused).requirement == "R-BO-18"
    game.chip("plein:4", 10_000, player="Bruno", tableau=tableaux)
    assert game.told(StakeAccepted)
    game.chip("plein:4", 4000, player="Anne", tableau=tableaux)
    assert game.told(StakeAccepted)
    game.chip("plein:4", 100, player="Anne", tableau=1)
    assert game.told(StakeRefused)
    game.chip("plein:5", 10_000, player="Anne", tableau=2)
    assert game.told(StakeAccepted)


def test_r_bo_21_of_chips_that_are_anybodys_only_single_stacks_are_judged() -> None:
    game = boule()
    game.chip("plein:4", 10_001, player="-")
    assert game.one(StakeRefused).requirement == "R-BO-18"
    for tableau in (1, 1, 2):
        game.chip("plein:4", 10_000, player="-", tableau=tableau)
        assert game.told(StakeAccepted)
    game.chip("plein:4", 10_000, player="Anne")
    assert game.told(StakeAccepted)
    assert [stake.cents for stake in game.state.stakes] == [20_000, 10_000, 10_000]


# --- totality --------------------------------------------------------------------------------------------------------

FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(
        Announced,
        at_ns=st.integers(0, 10**10),
        source=st.just("console"),
        code=st.sampled_from(["rien_ne_va_plus", "faites_vos_jeux", "boule_lancee", "change_a_table", "bonjour"]),
    ),
    st.builds(BallLaunched, at_ns=st.integers(0, 10**10), source=st.just("rim"), direction=st.sampled_from(Direction)),
    st.builds(
        PocketRead,
        at_ns=st.integers(0, 10**10),
        source=st.sampled_from(["cups", "console"]),
        origin=st.sampled_from([Origin.SENSOR, Origin.PERSON]),
        value=st.one_of(st.none(), st.integers(-1, 11), st.sampled_from(["5", "00", "rouge"])),
        cell=st.one_of(st.none(), st.integers(-1, 20)),
    ),
    st.builds(SpinStarted, at_ns=st.integers(0, 10**10), source=st.just("wheel"), direction=st.sampled_from(Direction)),
)


@given(st.lists(FACTS, max_size=12))
@settings(max_examples=150)
def test_no_fact_makes_the_game_raise(facts: list[Fact]) -> None:
    """Heard in any order by the game, each also by a table that pays and goes on."""
    game = called()
    coup: Coup = WheelCoup(no=1)
    for fact in facts:
        coup = GAME.hear(coup, fact, Context(house=BOULE, phase=Phase.MISES_OUVERTES, last_direction=None)).coup
        game.do(fact)


# --- tablectl settle -------------------------------------------------------------------------------------------------


def test_a_case_of_settle() -> None:
    bets = [
        {"id": "a", "player": "J1", "type": "impair", "stake": 1000},
        {"id": "b", "player": "J1", "type": "plein", "on": [5], "stake": 1000},
        {"id": "c", "player": "J2", "type": "cheval", "on": [4, 5], "stake": 1000},
        {"id": "d", "player": "J2", "type": "plein", "on": [4], "stake": 10_001},
    ]
    case = {"game": "boule", "kind": "settlement", "config": {"min": 100}, "bets": bets, "outcome": {"number": 5}}
    assert answer(case) == {
        "net": {"a": -1000, "b": 7000, "c": 0, "d": 0},
        "status": {"a": "lose", "b": "win", "c": "refused", "d": "refused"},
        "net_by_player": {"J1": 6000, "J2": 0},
    }
    for outcome, pointer in (({}, "/outcome/number"), ({"number": 10}, "/outcome/number")):
        with pytest.raises(CaseError) as error:
            answer({**case, "outcome": outcome})
        assert error.value.pointer.startswith(pointer)


def test_a_case_of_settle_may_fix_what_the_house_fixes() -> None:
    def accepted(stake: int, **config: Any) -> Any:
        bet = {"type": "plein", "on": [4], "stake": stake}
        return answer({"game": "boule", "kind": "validation", "config": {"min": 100, **config}, "bet": bet})

    assert accepted(10_000)["accepted"]
    assert accepted(4001, max_plein=40)["reason"]["requirement"] == "R-BO-18"
    swapped = {number: "noir" if colour == "rouge" else "rouge" for number, colour in COULEURS.items()}
    bets = [{"id": "a", "player": "J1", "type": "rouge", "stake": 200}]
    case = {"game": "boule", "kind": "settlement", "bets": bets, "outcome": {"number": 1}}
    assert answer({**case, "config": {"couleurs": swapped}})["net"] == {"a": 200}
    assert answer(case)["net"] == {"a": -200}
    for config, pointer in (
        ({"max_plein": 39}, "/config"),
        ({"max_plein": "40"}, "/config/max_plein"),
        ({"couleurs": {"1": 3}}, "/config/couleurs/1"),
        ({"couleurs": []}, "/config/couleurs"),
        ({"couleurs": {"1": "rouge"}}, "/config"),
    ):
        with pytest.raises(CaseError) as error:
            answer({**case, "config": config})
        assert error.value.pointer == pointer
