"""Plausible evenings with everything that goes wrong in between: nothing is lost, nobody is ever stuck."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.codec import decode_state, encode_state
from rules.decisions import BetsClosed, CoupEnded, Phase, Settled, Severity, StakeDoubtful, Status
from rules.facts import (
    Announced,
    BallDropped,
    BallLaunched,
    BallLost,
    ChipPlaced,
    ChipRemoved,
    Chosen,
    Commanded,
    DeviceBack,
    DeviceLost,
    Direction,
    Doubtful,
    DropDue,
    Fact,
    LidClosed,
    Origin,
    Overrun,
    PocketRead,
    SpinObstructed,
    SpinSlowed,
    SpinStarted,
    SpinStopped,
    TimerElapsed,
)
from rules.game import RnvpMode
from rules.games.roulette.variants import FrancaiseOptions
from rules.state import TableState
from rules.table import Table
from tests.rules.playbook import MS
from tests.rules.wheels import FRANCAISE, PER_TURN, ROUE, table

SIZES: dict[str, dict[str, list[Any]]] = {
    "roue_de_la_chance": {"colour": ["rouge", "orange", "blanc"], "spots": ["rouge", "orange", "blanc", "rose"]},
    "roulette_francaise": {
        "colour": [0, 0, 17, 18],
        "spots": ["rouge", "noir", "pair", "plein:17", "plein:0", "cheval:14-17", "cheval:1-5"],
    },
}


@st.composite
def moves(draw: st.DrawFn, game: str) -> Any:
    """One move: a name and the fields that go with it; times are given when it is made."""
    wheel: list[str] = ["spin", "slow", "stop", "stop", "touch"]
    ball = ["spin", "ball", "ball", "due", "drop", "lost_ball", "jeton", "rest"]
    people = ["call", "call", "fvj", "coup_nul", "dernier_coup", "choix_clos", "confirme", "choose", "choose"]
    money = ["chip", "chip", "chip", "unclear", "take"]
    reading = ["read", "read", "read_second", "other"]
    trouble = ["device_lost", "device_back", "restart", "overrun", "timer"]
    orders = ["void", "valid", "resolve_void", "by_hand", "doubt", "interrupt", "resume", "close", "open", "end"]
    kind = draw(
        st.sampled_from(
            [*(wheel if game == "roue_de_la_chance" else ball) * 3, *people, *money * 2, *reading, *trouble, *orders]
        )
    )
    size = SIZES[game]
    return {
        "kind": kind,
        "after": draw(st.sampled_from([1, 50, 700, 3000])),
        "direction": draw(st.sampled_from([*Direction])),
        "value": draw(st.sampled_from(size["colour"])),
        "spot": draw(st.sampled_from(size["spots"])),
        "cents": draw(st.sampled_from([100, 500, 501, 1000, 20_000])),
        "player": draw(st.sampled_from(["J1", "J2"])),
        "word": draw(st.sampled_from(["retire", "prison", "accepted", "refused"])),
        "turns": draw(st.sampled_from([1, 4, 4, 4])),
        "cell": draw(st.sampled_from([0, 7, None])),
    }


def fact_of(move: dict[str, Any], state: TableState, now: int) -> Fact | None:
    """The fact of a move as the table stands."""
    at: dict[str, Any] = {"at_ns": now, "source": "console"}
    chip = {"spot": move["spot"], "cents": move["cents"], "player": move["player"]}

    def order(name: str, **args: Any) -> Fact:
        return Commanded(at_ns=now, source="command", name=name, by="Mme Roux", role="chef", args=args)

    def said(code: str) -> Fact:
        return Announced(code=code, **at)

    match move["kind"]:
        case "spin":
            return SpinStarted(at_ns=now, source="wheel", direction=move["direction"])
        case "slow":
            return SpinSlowed(at_ns=now, source="wheel")
        case "stop":
            travel = move["turns"] * PER_TURN
            return SpinStopped(
                at_ns=now,
                source="wheel",
                direction=move["direction"],
                travel=travel,
                per_turn=PER_TURN,
                cell=move["cell"],
                or_cell=8 if move["cents"] == 100 else None,
            )
        case "rest":
            return SpinStopped(at_ns=now, source="wheel", direction=move["direction"], travel=999, per_turn=PER_TURN)
        case "touch":
            return SpinObstructed(at_ns=now, source="wheel", why="brake")
        case "ball":
            return BallLaunched(at_ns=now, source="wheel_sensor", direction=move["direction"])
        case "due":
            return DropDue(at_ns=now, source="wheel_sensor", drop_at_ns=now + 5)
        case "drop":
            return BallDropped(at_ns=now, source="wheel_sensor")
        case "lost_ball":
            return BallLost(at_ns=now, source="wheel_sensor", why="not_detected")
        case "call":
            return said("rien_ne_va_plus")
        case "fvj":
            return said("faites_vos_jeux")
        case "jeton":
            return said("jeton_dans_le_cylindre")
        case "coup_nul" | "dernier_coup" | "choix_clos" | "confirme":
            return said(move["kind"])
        case "choose":
            return Chosen(player=move["player"], what="zero", value=move["word"], **at)
        case "chip":
            return ChipPlaced(**chip, **at)
        case "unclear":
            closed = state.coup.closed_at_ns if state.coup else None
            around = now if closed is None else closed
            return ChipPlaced(**chip, at_ns=around - 1, until_ns=around + 1, source="console")
        case "take":
            return ChipRemoved(**chip, **at)
        case "read":
            return PocketRead(at_ns=now, source="wheel_sensor", value=move["value"])
        case "read_second":
            known = state.coup.readings[0].value if state.coup and state.coup.readings else move["value"]
            return PocketRead(origin=Origin.PERSON, value=known, **at)
        case "other":
            return PocketRead(origin=Origin.PERSON, value=move["value"], **at)
        case "device_lost" | "device_back" | "restart" | "overrun":
            kinds: dict[str, Any] = {
                "device_lost": lambda: DeviceLost(at_ns=now, source="wheel", device="wheel", why="unplugged"),
                "device_back": lambda: DeviceBack(at_ns=now, source="wheel", device="wheel"),
                "restart": lambda: Doubtful(at_ns=now, source="controller", device="wheel", why="not_observed"),
                "overrun": lambda: Overrun(at_ns=now, source="wheel", device="wheel", lost=3),
            }
            made: Fact = kinds[move["kind"]]()
            return made
        case "timer":
            due = min(state.timers, key=lambda timer: timer.at_ns, default=None)
            return None if due is None else TimerElapsed(at_ns=due.at_ns, source="timer", name=due.name)
        case "valid":
            return order("resolve", outcome=move["value"], **{"as": "valid"})
        case "resolve_void":
            return order("resolve", **{"as": "void"})
        case "by_hand":
            return order("outcome", value=move["value"], second="M. Bon")
        case "doubt":
            stake = state.doubts[0].stake.id if state.doubts else "m0"
            return order("resolve", stake=stake, **{"as": move["word"]})
        case "end":
            return order("close", end_of_seance=True)
        case _:
            return order(move["kind"])


def holds(before: TableState, state: TableState, decisions: Any) -> None:
    """What is true after every step."""
    for stake in state.stakes:
        assert 0 < sum(chips.cents for chips in stake.placed) + 1 <= stake.cents + 1
        assert len(stake.choices) <= stake.zeros + 1
        assert bool(stake.carried) == bool(stake.zeros)
    assert len({stake.id for stake in state.stakes}) == len(state.stakes)
    for doubt in state.doubts:
        assert doubt.outcome is not None or (state.coup is not None and state.coup.no == doubt.coup)
    open_doubts = {doubt.stake.id for doubt in (*before.doubts, *state.doubts)}
    for decision in decisions:
        match decision:
            case CoupEnded(kind="first"):
                worst = {reason.severity for reason in decision.reasons}
                status = (
                    Status.VOID if Severity.VOID in worst else Status.HELD if Severity.HELD in worst else Status.VALID
                )
                assert decision.status is status
            case CoupEnded(kind="revision"):
                assert decision.status is Status.HELD
            case Settled():
                moved = sum((t.cents if t.target == "table" else -t.cents) for t in decision.transfers)
                assert moved == -sum((line.net or Fraction() for line in decision.lines), Fraction())
            case StakeDoubtful():
                assert decision.id in open_doubts
            case BetsClosed():
                assert state.coup is None or state.coup.closed_at_ns is not None or state.coup.no > before.coup_no
            case _:
                pass
    if state.phase in {Phase.LANCE, Phase.MISES_OUVERTES}:
        assert state.coup is not None
        assert state.coup.closed_at_ns is None
    if state.phase is Phase.LITIGE or state.phase is Phase.REGLEMENT:
        assert state.coup is not None
        assert not state.coup.launched
    assert (state.phase is Phase.CHOIX) == bool(state.offers)
    names = [timer.name for timer in state.timers]
    assert len(names) == len(set(names))


def way_out(at: Table, state: TableState, now: int) -> None:
    """Whatever happened, persons can bring the table to a proper end."""

    def order(name: str, **args: Any) -> Fact:
        return Commanded(at_ns=now, source="command", name=name, by="Mme Roux", role="chef", args=args)

    for _ in range(12):
        match state.phase:
            case Phase.FERME | Phase.VERIFIEE:
                return
            case _ if state.interrupted:
                fact = order("resume")
            case Phase.LITIGE:
                fact = order("resolve", **{"as": "void"})
            case Phase.CHOIX:
                fact = Announced(at_ns=now, source="console", code="choix_clos")
            case Phase.LANCE | Phase.JEUX_FAITS | Phase.RESULTAT:
                fact = order("void", why="fin")
            case _:
                state = at.step(state, LidClosed(at_ns=now, source="lid")).state
                fact = order("close")
        state = at.step(state, fact).state
    raise AssertionError(f"stuck in {state.phase}")


@pytest.mark.parametrize("mode", list(RnvpMode))
@pytest.mark.parametrize("game", SIZES)
@settings(max_examples=60)
@given(data=st.data())
def test_an_evening(game: str, mode: RnvpMode, data: st.DataObject) -> None:
    house = ROUE if game == "roue_de_la_chance" else replace(FRANCAISE, options=FrancaiseOptions(rota_lanceurs=("A",)))
    if game == "roue_de_la_chance" and data.draw(st.booleans()):
        house = replace(house, sources=("wheel", "console"))
    elif data.draw(st.booleans()):
        house = replace(house, sources=house.sources[:1], raise_to_held=("rnvp_en_avance", "lanceur_inconnu"))
    play = table(game, house, rien_ne_va_plus=mode)
    for role, by in (("comite", "Mme Roux"), ("croupier", "M. Bon")):
        play.command("attest", what="verification", role=role, by=by)
    play.command("open")
    state, now = play.state, play.now
    for move in data.draw(st.lists(moves(game), max_size=50)):
        now += move["after"] * MS
        fact = fact_of(move, state, now)
        if fact is None:
            continue
        step = play.table.step(state, fact)
        assert step == play.table.step(state, fact)
        holds(state, step.state, step.decisions)
        stored = encode_state(step.state)
        state = decode_state(stored, play.table.game)  # a restart after every step
        assert encode_state(state) == stored
        if move["cents"] == 501:
            way_out(play.table, state, now)
