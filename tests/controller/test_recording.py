"""A real wheel's evening through the very pipeline in virtual time: what a table would have decided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from controller import replay as module
from controller.replay import Out, Pipeline, replay
from hil.devices.slingshot2 import SlingShot2Wheel
from rules.decisions import (
    AlarmCleared,
    AlarmRaised,
    Announce,
    BetsClosed,
    CoupEnded,
    Phase,
    PhaseChanged,
    Settled,
    Severity,
    Status,
)
from rules.facts import Direction
from tests.recording import SECOND, recording

ROLE = "wheel_sensor"
LAUNCHES_S = (126, 364, 550, 1179, 2583)
HOUSE = {
    "sources": [ROLE],
    "draw_devices": [ROLE],
    "rien_ne_va_plus": "automatique",
    "draw_max_ms": 60_000,
}


def command(name: str, at_ns: int, role: str = "comite", **args: Any) -> tuple[int, dict[str, Any]]:
    body = {"name": name, "by": role, "role": role, "args": args}
    return at_ns, {"in": "Commanded", "source": "command", "at_ns": at_ns, **body}


def evening(folder: Path, house: Mapping[str, Any]) -> Path:
    """The trace: the table opens before the first line, a chef voids each coup a minute after it is held."""
    said = [(at_ns, {"in": "Bytes", "source": ROLE, "hex": line.hex(), "at_ns": at_ns}) for at_ns, line in recording()]
    people = [
        command("attest", 0, what="verification"), command("attest", 0, role="croupier", what="verification"),
        command("open", 0),
        *(command("resolve", (s + 120) * SECOND, role="chef", **{"as": "void"}) for s in LAUNCHES_S),
    ]  # fmt: skip
    header = {"v": 1, "game": "roulette_francaise", "config": {"house": house}}
    trace = folder / "evening.jsonl"
    rows = [header, *(row for _, row in sorted([*people, *said], key=lambda entry: entry[0]))]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return trace


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Out], Pipeline]:
    """What was decided, and the pipeline at the end."""
    made: list[Pipeline] = []

    class Kept(Pipeline):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Pipeline", Kept)
        outs = list(replay(evening(tmp_path_factory.mktemp("evening"), HOUSE)))
    return outs, made[0]


def test_each_of_the_five_launched_coups_ends_without_outcome_by_the_flag_that_stood(
    played: tuple[list[Out], Pipeline],
) -> None:
    outs, _ = played
    first = [out.decision for out in outs if isinstance(out.decision, CoupEnded) and out.decision.kind == "first"]
    assert [ended.coup for ended in first] == [1, 2, 3, 4, 5]
    assert [ended.times["launched"] // SECOND for ended in first] == list(LAUNCHES_S)
    assert {(ended.status, ended.outcome, ended.manual) for ended in first} == {(Status.HELD, None, None)}
    for ended in first:
        texts = {breach.code: breach.text for breach in ended.reasons}
        assert texts["bille_perdue"] == "Bille perdue après « Rien ne va plus » (capteur bloqué)"
    assert Counter(type(out.decision) for out in outs)[BetsClosed] == 5
    assert not [out for out in outs if isinstance(out.decision, Settled) and out.decision.lines]
    ended_again = [out.decision for out in outs if isinstance(out.decision, CoupEnded)]
    assert {ended.outcome for ended in ended_again} == {None}
    assert len(ended_again) == 10  # each held, and then void by the chef


def test_five_silences_are_five_alarms_that_go_by_themselves(played: tuple[list[Out], Pipeline]) -> None:
    outs, pipeline = played
    alarms = [out.decision for out in outs if isinstance(out.decision, AlarmRaised | AlarmCleared)]
    silent = [type(alarm) for alarm in alarms if alarm.name == f"device:{ROLE}"]
    assert silent == [AlarmRaised, AlarmCleared] * 5
    assert {alarm.name for alarm in alarms} == {f"device:{ROLE}", "litige"}  # none because the wheel is closed
    assert pipeline.role(ROLE).decoder.health()["rejects"] == 1


def test_a_launch_that_is_lost_before_rien_ne_va_plus_is_launched_again_and_says_why(tmp_path: Path) -> None:
    outs = list(replay(evening(tmp_path, {**HOUSE, "rien_ne_va_plus": "croupier"})))
    said = [out.decision.text for out in outs if isinstance(out.decision, Announce)]
    assert said.count("Bille perdue avant « Rien ne va plus » (capteur bloqué) : à relancer") == 5
    assert not [out for out in outs if isinstance(out.decision, CoupEnded)]
    assert [out.decision.phase for out in outs if isinstance(out.decision, PhaseChanged)].count(Phase.LANCE) == 5


# --- sessions of a simulated wheel -----------------------------------------------------------------------------------


def session(
    folder: Path, games: Sequence[tuple[int, bool]], typed: Mapping[int, int] | None = None, **house: Any
) -> Path:
    """A trace of games (number, is state 5 seen); `typed` is what a croupier types 2 s after the n-th result."""
    wheel, at_ns, rows = SlingShot2Wheel(start_ns=SECOND), SECOND, []
    for n, (number, shown) in enumerate(games):
        end_ns = wheel.game(at_ns, str(number), rotor=("cw", "ccw")[n % 2], shown=shown)
        if n in (typed or {}):
            read_ns = (end_ns - 11 * SECOND // 2 if shown else end_ns) + 2 * SECOND
            entry = {"in": "PocketRead", "source": "console", "at_ns": read_ns, "value": (typed or {})[n]}
            rows.append((read_ns, entry | {"origin": "person"}))
        at_ns = end_ns + (0 if shown else SECOND // 2)  # state 2 must be seen before the next game leaves it
    while wheel.due_ns() <= at_ns + 5 * SECOND:
        now_ns = wheel.due_ns()
        wheel.tick(now_ns)
        if said := wheel.take_output():
            rows.append((now_ns, {"in": "Bytes", "source": ROLE, "hex": said.hex(), "at_ns": now_ns}))
    people = [
        command("attest", 0, what="verification"), command("attest", 0, role="croupier", what="verification"),
        command("open", 0),
    ]  # fmt: skip
    device = {"family": "slingshot2", "path": "/dev/ttyUSB0", "rotor": True}
    console = {"family": "console", "path": "/dev/ttyACM0"}
    config = {"house": {**HOUSE, **house}, "devices": {ROLE: device, "console": console}}
    header = {"v": 1, "game": "roulette_francaise", "config": config}
    trace = folder / "session.jsonl"
    ordered = [header, *(row for _, row in sorted([*people, *rows], key=lambda entry: entry[0]))]
    trace.write_text("".join(json.dumps(row) + "\n" for row in ordered))
    return trace


def ended(trace: Path) -> list[CoupEnded]:
    return [out.decision for out in replay(trace) if isinstance(out.decision, CoupEnded)]


def test_three_hundred_games_give_their_numbers_over_the_wrap_of_the_spin_counter(tmp_path: Path) -> None:
    games = [(n * 7 % 37, True) for n in range(300)]
    told = ended(session(tmp_path, games))
    assert [(e.status, e.recovered) for e in told] == [(Status.VALID, False)] * 300
    assert [e.outcome["number"] for e in told if e.outcome] == [number for number, _ in games]
    assert {e.direction for e in told} == {Direction.CW, Direction.CCW}


def test_a_number_that_was_missed_is_recovered_marked_and_held(tmp_path: Path) -> None:
    first, missed = ended(session(tmp_path, [(17, True), (31, False)]))
    assert (first.status, first.recovered) == (Status.VALID, False)
    assert (missed.status, missed.recovered) == (Status.HELD, True)
    assert missed.outcome is not None
    assert missed.outcome["number"] == 31
    assert [reason.code for reason in missed.reasons if reason.severity is Severity.HELD] == ["resultat_recupere"]


@pytest.mark.parametrize(("typed", "status"), [(31, Status.VALID), (30, Status.HELD)])
def test_a_second_source_makes_a_recovered_number_good_or_holds_it(tmp_path: Path, typed: int, status: Status) -> None:
    trace = session(tmp_path, [(17, True), (31, False)], {0: 17, 1: typed}, sources=[ROLE, "console"])
    first, missed = ended(trace)
    assert first.status is Status.VALID
    assert (missed.status, missed.recovered, missed.sources) == (status, True, {ROLE: 31, "console": typed})
