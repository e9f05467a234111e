"""The wheel law on the roue and on a roulette: alternation, and who closes the bets when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rules.decisions import BetsClosed, CancelTimer, Phase, PhaseChanged, SetTimer, Severity, StakeRefused, Status
from rules.facts import TimerElapsed
from rules.game import RnvpMode
from tests.rules.playbook import CCW, CW, MS
from tests.rules.wheels import PER_TURN, Wheel, francaise, roue

TOLERANCE, LATE_MAX = 1000, 2500


def spun(**changes: object) -> Wheel:
    """A roue that turns clockwise, for the first time ever."""
    game = roue(**changes)
    game.spin(CW)
    return game


def rolling(**changes: object) -> Wheel:
    """A roulette whose ball runs against the cylinder."""
    game = francaise(**changes)
    game.spin(CW)
    game.ball(CCW)
    return game


def due(game: Wheel) -> None:
    game.slow(2000) if game.table.game.id == "roue_de_la_chance" else game.due(2000)


STARTS = pytest.mark.parametrize("start", [spun, rolling])


# --- alternation -----------------------------------------------------------------------------------------------------


def test_r_gen_07_first_actuation_ever_is_accepted_in_either_sense_and_announced() -> None:
    for sense in (CW, CCW):
        game = roue()
        game.spin(sense)
        assert game.said("premier_actionnement")
        assert (game.reasons, game.lit, game.state.last_direction) == ([], set(), sense)


@STARTS
def test_wrong_sense_is_signalled_at_the_start_of_the_turn(start: Callable[[], Wheel]) -> None:
    game = start()
    game.call()
    if game.table.game.id == "roue_de_la_chance":
        game.stop(4 * PER_TURN)
    else:
        game.chance(17)
    game.spin(CW)
    assert game.breach().severity is Severity.HELD
    assert game.breach().code == "direction_non_alternee"
    assert game.signals == [("sens", True), ("buzzer", True)]
    assert game.state.coup is not None
    assert game.state.coup.no == 2


@STARTS
def test_a_wheel_pushed_once_more_in_its_sense_is_still_the_same_actuation(start: Callable[[], Wheel]) -> None:
    game = start()
    game.spin(CW)
    assert game.ignored
    assert (game.reasons, game.lit) == ([], set())


def test_lamps_of_a_wrong_sense_go_out_when_it_is_put_right() -> None:
    game = francaise()
    game.state = replace(game.state, last_direction=CW)
    game.spin(CW)
    assert game.lit == {"sens", "buzzer"}
    game.spin(CCW)
    assert (game.lit, game.reasons) == (set(), [])


def test_lamps_of_a_wrong_sense_go_out_with_the_draw() -> None:
    game = spun()
    game.call()
    game.stop(4 * PER_TURN)
    game.spin(CW)
    game.call()
    game.stop(4 * PER_TURN)
    assert game.ended().status is Status.HELD
    assert game.lit == {"litige"}


def test_lamps_go_out_when_the_draw_ends_without_the_wheel() -> None:
    game = rolling()
    game.elapse("tirage")
    game.command("resolve", **{"as": "void"})
    game.spin(CW)
    game.ball(CCW)
    assert "sens" in game.lit
    game.command("void", why="panne")
    assert game.lit == set()


# --- the croupier calls ----------------------------------------------------------------------------------------------


@STARTS
@pytest.mark.parametrize("mode", [RnvpMode.CROUPIER, RnvpMode.SIGNAL])
@pytest.mark.parametrize(
    ("after_ms", "severity"),
    [
        (0, None),
        (TOLERANCE, None),
        (TOLERANCE + 1, Severity.NOTED),
        (LATE_MAX, Severity.NOTED),
        (LATE_MAX + 1, Severity.HELD),
    ],
)
def test_a_call_after_its_moment(
    start: Callable[..., Wheel], mode: RnvpMode, after_ms: int, severity: Severity | None
) -> None:
    game = start(rien_ne_va_plus=mode)
    due(game)
    game.say("rien_ne_va_plus", at_ns=game.now + after_ms * MS)
    assert game.one(BetsClosed).how == "croupier"
    assert game.said("rien_ne_va_plus")  # the floor hears of every announcement
    assert game.is_in(Phase.JEUX_FAITS)
    found = [] if severity is None else [("rnvp_en_retard", severity)]
    assert [(b.code, b.severity) for b in game.state.coup.breaches] == found  # type: ignore[union-attr]


@STARTS
@pytest.mark.parametrize(("before_ms", "noted"), [(TOLERANCE, False), (TOLERANCE + 1, True), (60_000, True)])
def test_a_call_before_its_moment_closes_and_is_judged_when_the_moment_comes(
    start: Callable[..., Wheel], before_ms: int, noted: bool
) -> None:
    game = start(draw_max_ms=200_000)
    game.call()
    assert game.one(BetsClosed).at_ns == game.now
    game.now += (before_ms - 2000) * MS
    due(game)
    assert game.reasons == (["rnvp_en_avance"] if noted else [])
    assert not game.told(SetTimer)


@STARTS
def test_a_call_before_any_launch_closes_the_bets_early(start: Callable[..., Wheel]) -> None:
    game = roue() if start is spun else francaise()
    game.call()
    assert game.is_in(Phase.JEUX_FAITS)
    game.chip("rouge", 1000)
    assert game.one(StakeRefused).code == "mise_tardive"
    game.spin(CW)
    if start is rolling:
        game.ball(CCW)
    assert not game.told(PhaseChanged)
    due(game)
    assert game.reasons == ["rnvp_en_avance"]


@STARTS
def test_a_second_call_changes_nothing(start: Callable[..., Wheel]) -> None:
    game = start()
    game.call()
    closed = game.state.coup.closed_at_ns  # type: ignore[union-attr]
    game.call(500)
    assert game.ignored
    assert game.state.coup.closed_at_ns == closed  # type: ignore[union-attr]


@STARTS
def test_nobody_calls_people_are_told_and_the_bets_stay_open(start: Callable[..., Wheel]) -> None:
    game = start()
    due(game)
    armed = game.one(SetTimer)
    assert (armed.name, armed.at_ns, armed.on_restart) == ("rnvp", game.now + LATE_MAX * MS, "fire")
    assert game.lit == set()
    game.elapse("rnvp")
    assert game.said("rien_ne_va_plus_attendu")
    assert game.lit == {"rien_ne_va_plus", "buzzer"}
    game.chip("rouge", 1000)
    assert not game.told(StakeRefused)
    game.call(1)
    assert game.lit == set()
    assert [b.severity for b in game.state.coup.breaches] == [Severity.HELD]  # type: ignore[union-attr]


@STARTS
def test_a_call_in_time_disarms_its_timer(start: Callable[..., Wheel]) -> None:
    game = start()
    due(game)
    game.call(10)
    assert [timer.name for timer in game.told(CancelTimer)] == ["rnvp"]
    game.do(TimerElapsed(at_ns=game.at(), source="timer", name="rnvp"))
    assert game.ignored


@STARTS
def test_the_moment_comes_once(start: Callable[..., Wheel]) -> None:
    game = start()
    due(game)
    first = game.now
    due(game)
    assert game.ignored
    assert game.state.coup.due_at_ns == first  # type: ignore[union-attr]


def test_no_moment_without_a_draw() -> None:
    for game in (roue(), francaise()):
        due(game)
        assert game.ignored


# --- the controller signals ------------------------------------------------------------------------------------------


@STARTS
def test_signal_mode_lights_the_lamp_and_the_call_acknowledges(start: Callable[..., Wheel]) -> None:
    game = start(rien_ne_va_plus=RnvpMode.SIGNAL)
    due(game)
    assert game.said("rien_ne_va_plus_du")
    assert game.signals == [("rien_ne_va_plus", True)]
    assert not game.told(BetsClosed)
    game.call(900)
    assert game.signals == [("rien_ne_va_plus", False)]
    assert game.reasons == []


def test_signal_mode_unheeded_adds_the_buzzer() -> None:
    game = spun(rien_ne_va_plus=RnvpMode.SIGNAL)
    due(game)
    game.elapse("rnvp")
    assert game.signals == [("buzzer", True)]


# --- the controller closes -------------------------------------------------------------------------------------------


@STARTS
def test_automatic_mode_closes_at_the_moment(start: Callable[..., Wheel]) -> None:
    game = start(rien_ne_va_plus=RnvpMode.AUTOMATIQUE)
    due(game)
    closed = game.one(BetsClosed)
    assert (closed.how, closed.at_ns) == ("automatique", game.now)
    assert game.said("rien_ne_va_plus")
    assert game.signals == [("rien_ne_va_plus", True)]
    assert not game.told(SetTimer)
    game.call()
    assert game.ignored
    if start is spun:
        game.stop(4 * PER_TURN)
    else:
        game.drop()
        game.chance(17)
    assert (game.ended().status, game.ended().reasons, game.lit) == (Status.VALID, (), set())


@STARTS
def test_automatic_mode_does_not_take_the_word_from_the_croupier(start: Callable[..., Wheel]) -> None:
    game = start(rien_ne_va_plus=RnvpMode.AUTOMATIQUE)
    game.call()
    assert game.one(BetsClosed).how == "croupier"
    due(game)
    assert not game.told(BetsClosed)
    assert game.reasons == ["rnvp_en_avance"]


# --- nobody closes ---------------------------------------------------------------------------------------------------


@STARTS
@pytest.mark.parametrize("mode", list(RnvpMode))
def test_the_draw_itself_closes_bets_that_nobody_closed(start: Callable[..., Wheel], mode: RnvpMode) -> None:
    game = start(rien_ne_va_plus=mode)
    if start is spun:
        game.stop(4 * PER_TURN)
    else:
        game.drop()
    closed = game.one(BetsClosed)
    assert (closed.how, closed.at_ns) == ("absent", game.now)
    assert game.reasons == ["rnvp_absent"]
    if start is rolling:
        game.call()
        assert game.ignored
        game.chance(17)
    assert game.ended().status is Status.HELD
    requirement = "R-RC-10" if start is spun else "R-RF-11"
    assert [(b.code, b.requirement) for b in game.ended().reasons] == [("rnvp_absent", requirement)]


def test_lamps_for_a_missing_call_go_out_when_the_draw_closes_the_bets() -> None:
    game = rolling()
    due(game)
    game.elapse("rnvp")
    game.drop()
    assert set(game.signals) == {("rien_ne_va_plus", False), ("buzzer", False)}
