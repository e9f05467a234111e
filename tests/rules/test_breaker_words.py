"""What broke the law once: persons' words, what comes after a result, and traces that no table can live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.replay import INSTANT_MAX, ReplayError, replay, write
from rules.decisions import (
    AlarmRaised,
    BetsClosed,
    Breach,
    Phase,
    Refused,
    Severity,
    Status,
)
from rules.facts import DeviceLost
from rules.game import load
from rules.limits import Limits, above_maximum
from rules.money import from_wire
from tests.rules.playbook import CW
from tests.rules.wheels import (
    Wheel,
    faits,
    francaise,
    lying,
    played,
    roue,
    spun,
)

# --- a person's word -------------------------------------------------------------------------------------------------


def test_choices_of_a_settlement_that_was_undone_are_forgotten() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    played(game, 0)
    game.choose("zero", "prison")
    game.read(5, "console")
    game.command("resolve", role="chef", outcome=0, **{"as": "valid"})
    game.choose("zero", "retire")
    assert game.paid() == [("rouge", "partial", -500)]


def test_choices_made_before_a_contradiction_are_forgotten() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    game.chip("noir", 1000, player="J2")
    played(game, 0)
    game.choose("zero", "prison")
    game.read(5, "console")
    game.command("resolve", role="chef", outcome=0, **{"as": "valid"})
    game.choose("zero", "retire")
    game.choose("zero", "prison", player="J2")
    assert [status for _, status, _ in game.paid()] == ["partial", "prison"]


@pytest.mark.parametrize("value", [True, False, 3.0, None, [3]])
def test_a_result_that_is_no_result_is_refused(value: object) -> None:
    game = faits(francaise())
    game.command("outcome", role="chef", value=value, second="M. Bon")
    assert game.one(Refused).code == "resultat_requis"
    game.read(17)
    game.read(18, "console")
    game.command("resolve", role="chef", outcome=value, **{"as": "valid"})
    assert game.one(Refused).code == "resultat_requis"


def test_a_result_typed_by_hand_is_the_value_that_sources_read() -> None:
    game = faits(francaise())
    game.read(17)
    game.command("outcome", role="chef", value="17", second="M. Bon")
    assert (game.ended().status, game.ended().sources) == (Status.VALID, {"wheel_sensor": 17, "manuel": 17})


def test_a_manual_result_against_an_instrument_that_reads_is_held() -> None:
    game = faits(francaise())
    game.read(17)
    game.command("outcome", role="chef", value=5, second="M. Bon")
    assert (game.ended().status, game.ended().outcome) == (Status.HELD, None)
    assert "sources_en_desaccord" in game.reasons


@pytest.mark.parametrize("typed", [True, False])
def test_closed_bets_without_a_launch_that_anybody_saw_can_be_decided(typed: bool) -> None:
    game = francaise()
    for device in ("wheel_sensor", "console"):
        game.do(DeviceLost(at_ns=game.at(), source=device, device=device, why="unplugged"))
    game.chip("noir", 500)
    game.spin(CW)
    game.call()  # the ball runs, unseen
    if typed:
        game.read(17, "console")
    assert game.is_in(Phase.RESULTAT if typed else Phase.JEUX_FAITS)
    game.command("outcome", role="chef", value=17, second="M. Bon")
    assert game.ended().status is Status.VALID
    codes = {"appareil_perdu", "resultat_manuel"} | ({"lancer_non_vu"} if typed else set())
    assert {(b.code, b.severity) for b in game.ended().reasons} == {(code, Severity.NOTED) for code in codes}
    assert "wheel_sensor" in game.ended().reasons[0].text  # the console draws nothing
    assert game.paid() == [("noir", "win", 500)]


def test_bets_closed_by_mistake_can_be_annulled() -> None:
    for start in (roue, francaise):
        game = start()
        game.chip("rouge", 500)
        game.call()
        game.command("void", role="chef", why="annoncé trop tôt")
        assert game.ended().status is Status.VOID
        assert game.is_in(Phase.MISES_OUVERTES)
        assert lying(game) == [("J1", "rouge", 500, "")]
        game.command("void", role="chef", why="encore")
        assert game.one(Refused).code == "pas_de_coup"


def test_an_unseen_draw_at_a_whole_table_can_be_decided_too() -> None:
    game = roue()
    game.call()
    game.command("outcome", role="chef", value="vert", second="M. Bon")
    assert (game.ended().status, game.reasons) == (Status.VALID, ["resultat_manuel"])


def test_a_held_draw_closes_the_bets_that_nobody_closed() -> None:
    game = roue()
    game.chip("rouge", 400)
    game.spin(CW)
    game.elapse("tirage")
    assert game.one(BetsClosed).how == "absent"
    game.take("rouge", 400)
    assert game.one(Breach).code == "mise_retiree_apres_cloture"
    game.command("resolve", role="chef", outcome="rouge", **{"as": "valid"})
    assert game.paid() == [("rouge", "win", 4000)]


# --- what comes after the result -------------------------------------------------------------------------------------


def test_r_rf_10_a_jeton_announced_after_the_result_puts_it_in_question() -> None:
    game = francaise(sources=("wheel_sensor",))
    game.chip("plein:8", 500)
    faits(game).drop()
    game.read(8)
    assert game.ended().status is Status.VALID
    game.say("jeton_dans_le_cylindre")
    ended = game.ended()
    assert (ended.kind, ended.status) == ("revision", Status.HELD)
    assert [(b.code, b.requirement, b.severity) for b in ended.reasons] == [
        ("jeton_dit_apres", "R-RF-10", Severity.HELD)
    ]
    assert game.one(AlarmRaised).name == "litige"
    game.command("resolve", role="chef", **{"as": "void"})
    assert game.paid() == [("plein", "push", 0)]
    assert lying(game) == [("J1", "plein", 500, "")]


def test_r_rc_09_an_obstruction_announced_after_the_result_puts_it_in_question() -> None:
    game = roue()
    game.chip("rouge", 400)
    spun(game)
    assert game.paid() == [("rouge", "win", 4000)]
    game.say("coup_nul")
    ended = game.ended()
    assert (ended.kind, ended.status, ended.reasons[0].requirement) == ("revision", Status.HELD, "R-RC-09")
    assert ended.outcome is not None
    game.command("resolve", role="chef", **{"as": "valid"})
    assert game.paid() == [("rouge", "win", 4000)]


def test_what_a_source_had_already_said_does_not_reopen_a_decided_coup() -> None:
    game = faits(francaise())
    game.drop()
    game.read(17)
    game.read(18, "console")
    game.command("resolve", role="chef", outcome=18, **{"as": "valid"})
    game.read(17)
    assert game.ignored
    assert game.is_in(Phase.REGLEMENT)
    game.read(19)
    assert game.is_in(Phase.LITIGE)


def test_the_moment_of_a_draw_is_the_first_one() -> None:
    game = roue()
    game.spin(CW)
    game.slow()
    first = game.now
    game.call()
    game.slow()
    assert game.ignored
    assert game.state.coup is not None
    assert game.state.coup.times["slowed"] == first
    game = faits(francaise())
    assert game.state.coup is not None
    before = game.state.coup.times["drop_due"]
    game.due()
    assert game.state.coup.times["drop_due"] == before


def test_an_unknown_maximum_is_answered_with_a_sentence() -> None:
    game = Wheel(francaise().table)
    game.command("limits", maxima={"bidon": 5})
    assert game.one(Refused).code == "combinaison_inexistante"
    assert "bidon" in game.one(Refused).text
    assert load("roulette_francaise").contests["jeton_dans_le_cylindre"].requirement == "R-RF-10"
    assert load("roulette_anglaise").contests["jeton_dans_le_cylindre"].requirement == "R-AN-13"


def test_amounts_and_limits_at_their_edges() -> None:
    for wrong in (True, "1/0x", "half"):
        with pytest.raises(ValueError, match=r"."):
            from_wire(wrong)
    lay = load("roulette_francaise").layout(None)
    spot = lay.find("plein", (17,))
    assert spot is not None
    free = Limits(minimum=1, minima={}, maxima={}, requirements={})
    assert above_maximum(spot, 10**9, (), frozenset({"J1"}), free) is None


# --- traces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "line", "says"),
    [
        ({}, {"in": "Edge", "source": ["wheel.a"], "level": 1, "at_ns": 1}, r"2: source: no line \['wheel.a'\]"),
        ({}, {"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": 1, "seq": True}, "2: seq: "),
        ({}, {"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": INSTANT_MAX + 1}, "2: at_ns: "),
        (
            {},
            {"in": "SpinStarted", "source": "wheel", "at_ns": 1, "direction": "up"},
            "2: direction: .*: cw, ccw$",
        ),
        (
            {},
            {"in": "SpinSlowed", "source": "w", "at_ns": 1, "origin": "dieu"},
            "2: origin: .*sensor, person",
        ),
        ({"state": {"phase": "mises_ouvertes"}}, {}, "1: state: phase mises_ouvertes needs coup and limits"),
        ({"state": {"phase": "litige", "coup": {"no": 1}}}, {}, "1: state: phase litige needs coup and limits"),
    ],
)
def test_a_trace_that_no_table_can_live(header: Any, line: Any, says: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = ({"v": 1, "game": "roulette_francaise", "config": {}, **header}, line)
    trace.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    with pytest.raises(ReplayError, match=says):
        list(replay(trace))


def test_the_end_of_time_is_no_hang(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines: list[Any] = [{"v": 1, "game": "roulette_francaise", "config": {}}]
    lines += [{"in": "Edge", "source": f"wheel.{line}", "level": 1, "at_ns": INSTANT_MAX} for line in ("a", "b")]
    trace.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    assert list(write(replay(trace))) == list(write(replay(trace)))
