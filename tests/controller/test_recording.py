"""A real wheel's evening through the very pipeline in virtual time: what a table would have decided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from controller import replay as module
from controller.replay import Out, Pipeline, replay
from rules.decisions import (
    AlarmCleared,
    AlarmRaised,
    Announce,
    BetsClosed,
    CoupEnded,
    Phase,
    PhaseChanged,
    Settled,
    Status,
)
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
