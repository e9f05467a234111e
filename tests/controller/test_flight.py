"""A flight record replays to exactly what was decided live; ring and folder stay within their bounds."""

import asyncio
import contextlib
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.codec import decode_fact, encode_decision
from controller.config import Config
from controller.config_check import from_data
from controller.flight import SEGMENTS, Flight, Recording, prune
from controller.replay import replay
from drivers.base import Edge
from drivers.feeder import Feeder
from hil import scenario, virtual
from rules.facts import TimerElapsed
from rules.state import TableState
from tests.controller.parts import Desk, desk

SCENARIOS = ("roue-sens-repete", "roue-cable", "roue-main", "rf-17-18", "rf-slingshot-debranche", "rf-resultat-manque")
DAY_NS = 86_400 * 10**9


def recorded(recording: Recording, table: Config, folder: Path) -> list[dict[str, Any]]:
    """The decisions that a record replays to."""
    header = {"v": 1, "game": table.game.id, "config": table.resolved()}
    path = recording.write(folder / "flight" / "record.jsonl", header, 10, 10**9)
    return [encode_decision(out.decision) for out in replay(path)]


class Live:
    """Plays a trace into feeders and the sequencer as the devices' tasks would, in batches and with late ticks."""

    def __init__(self, made: Desk, table: Config, seed: int) -> None:
        self.made, self.random = made, random.Random(seed)
        made.drivers |= {role: d.family.decoder(role, d.options) for role, d in table.devices.items()}
        self.feeders: dict[str, Feeder[Any]] = {
            role: Feeder(role, decoder, made.sequencer.put, made.flight) for role, decoder in made.drivers.items()
        }
        self.roles = {line: role for role, device in table.devices.items() for line in device.lines}
        self.ahead_ns = made.sequencer._clock.mono_ns() + DAY_NS
        """So far ahead that the loop's own timers never come: the law's are elapsed by hand."""
        self.edges: list[Edge] = []

    async def play(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            at_ns = line["at_ns"] + self.ahead_ns
            if line["in"] == "Edge":
                if self.edges and (self.roles[line["source"]] != self._role() or self.random.random() < 0.02):
                    await self._flush()
                self.edges.append(Edge(line["source"], line["level"], at_ns, line.get("seq", 0)))
                continue
            await self._flush()
            await self._elapse(at_ns)
            await self._other(line, at_ns)
        await self._flush()

    def _role(self) -> str:
        return self.roles[self.edges[0].line]

    async def _flush(self) -> None:
        edges, self.edges = self.edges, []
        if edges:
            await self._elapse(edges[0].at_ns)
            await self.feeders[self.roles[edges[0].line]].edges(edges)

    async def _elapse(self, now_ns: int) -> None:
        """What became due before this input, told as late as tasks and timers are."""
        for feeder in self.feeders.values():
            await feeder.tick(now_ns)
        await asyncio.sleep(0)
        for timer in self.made.sequencer.state.timers:
            if timer.at_ns <= now_ns:
                self.made.sequencer.tell(TimerElapsed(name=timer.name, at_ns=timer.at_ns, source="timer"))
        if self.random.random() < 0.5:
            await asyncio.sleep(0)  # else the sequencer gets several inputs at once

    async def _other(self, line: dict[str, Any], at_ns: int) -> None:
        kind, role = line["in"], line["source"]
        match kind:
            case "Bytes":
                await self.feeders[role].received(bytes.fromhex(line["hex"]), at_ns)
                self.made.drivers[role].take_output()
            case "Opened":
                await self.feeders[role].opened(at_ns)
            case "Lost":
                await self.feeders[role].lost(at_ns, line["why"])
            case _:
                self.made.sequencer.tell(decode_fact({**line, "at_ns": at_ns}))


def lines_of(name: str) -> tuple[Config, list[dict[str, Any]]]:
    found = next(path for path in scenario.all_scenarios() if path.stem == name)
    header, *lines = virtual.trace(scenario.load(found))
    return from_data(header["config"], name), lines


@contextlib.contextmanager
def made_for(folder: Path, table: Config, **bounds: int) -> Iterator[Desk]:
    made = desk(folder / "state", table, None, **bounds)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    ("name", "ring_bytes"),
    [*((name, 10_000_000) for name in SCENARIOS), ("roue-sens-repete", 60_000), ("rf-slingshot-debranche", 60_000)],
)
async def test_a_record_replays_to_the_decisions_of_the_live_run(name: str, ring_bytes: int, tmp_path: Path) -> None:
    table, lines = lines_of(name)
    rows: list[dict[str, Any]] = []
    with made_for(tmp_path, table, ring_bytes=ring_bytes, seconds=3600) as made:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(made.sequencer.run())
            await asyncio.sleep(0)
            await Live(made, table, seed=7).play(lines)
            made.flight.want("end")
            made.sequencer.close()
            await task
        rows = made.commit()
        records = made.records
    decided = {row["seq"]: json.loads(row["body"])["decisions"] for row in rows}
    assert records[-1].reason == "end"
    for record in records:
        live = [d for seq, told in decided.items() if record.first.seq < seq <= record.until_seq for d in told]
        again = recorded(record, table, tmp_path)
        assert json.loads(json.dumps(again)) == [{k: v for k, v in d.items() if k != "after"} for d in live]
    if ring_bytes < 100_000:
        assert records[-1].first.seq > min(decided)  # the ring has forgotten the beginning, and still replays
    whole = [d["out"] for told in decided.values() for d in told]
    assert "CoupEnded" in whole
    assert {"void", "held"} & {record.reason for record in records}


# --- the ring --------------------------------------------------------------------------------------------------------


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def ring(
    sink: Callable[[Recording], None], *, seconds: int = 80, ring_bytes: int = 8_000, clock: Hand | None = None
) -> Flight:
    return Flight(seconds=seconds, ring_bytes=ring_bytes, lines=["wheel.a"], mono_ns=clock or Hand(), sink=sink)


def lines_in(record: Recording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.trace({"v": 1})]


def test_every_kind_of_input_comes_out_as_it_went_in() -> None:
    records: list[Recording] = []
    flight = ring(records.append)
    flight.received("console", b"lost: nobody has a state to begin with", 1)
    flight.quiet(5, TableState(), lambda: {"console": {"x": 1}})
    flight.edges("wheel", [Edge("wheel.a", 1, 10, 3), Edge("wheel.a", 0, 11)])
    flight.received("console", b"\x00\xff", 12)
    flight.ticked("wheel", 13)
    flight.opened("console", 14)
    flight.lost("console", 15, "unplugged")
    flight.fact(TimerElapsed(name="accord", at_ns=16, source="timer"))
    flight.want("held")
    flight.quiet(9, TableState(), dict)
    head, *lines = lines_in(records[0])
    assert (head["seq"], head["until_seq"], head["reason"], head["clock"]) == (5, 9, "held", "recorded")
    assert head["drivers"] == {"console": {"x": 1}}
    assert head["state"]["phase"] == "ferme"
    assert lines == [
        {"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": 10, "seq": 3},
        {"in": "Edge", "source": "wheel.a", "level": 0, "at_ns": 11},
        {"in": "Bytes", "source": "console", "hex": "00ff", "at_ns": 12},
        {"in": "Tick", "source": "wheel", "at_ns": 13},
        {"in": "Opened", "source": "console", "at_ns": 14},
        {"in": "Lost", "source": "console", "why": "unplugged", "at_ns": 15},
        {"in": "TimerElapsed", "name": "accord", "at_ns": 16, "source": "timer"},
    ]


def test_a_record_is_made_once_and_only_when_wanted() -> None:
    records: list[Recording] = []
    flight = ring(records.append)
    flight.want("void")
    flight.quiet(1, TableState(), dict)  # nothing to begin with: nothing is recorded, and not later by surprise
    flight.quiet(2, TableState(), dict)
    assert records == []
    flight.want("void")
    flight.quiet(3, TableState(), dict)
    flight.quiet(4, TableState(), dict)
    assert [record.until_seq for record in records] == [3]


def test_the_ring_forgets_by_size_and_by_age_and_always_begins_at_a_checkpoint() -> None:
    records: list[Recording] = []
    clock = Hand()
    flight = ring(records.append, clock=clock)
    for n in range(100):
        flight.received("console", bytes(400), n)
        flight.quiet(n, TableState(), dict)
    flight.want("size")
    flight.quiet(100, TableState(), dict)
    head, *lines = lines_in(records[-1])
    assert lines[0]["at_ns"] == head["seq"] + 1  # the first input after the checkpoint's row
    assert 8 <= len(lines) <= 8_000 // 496
    for n in range(100, 200):
        clock.ns += 4 * 10**9
        flight.received("console", b"", n)
        flight.quiet(n, TableState(), dict)
    flight.want("age")
    flight.quiet(200, TableState(), dict)
    head, *lines = lines_in(records[-1])
    assert clock.ns - head["at_ns"] <= 80 * 10**9 * (1 + 2 / SEGMENTS)
    assert [line["at_ns"] for line in lines] == list(range(head["seq"] + 1, 200))


def test_what_came_before_a_change_without_a_fact_is_forgotten() -> None:
    records: list[Recording] = []
    flight = ring(records.append)
    flight.quiet(1, TableState(), dict)
    flight.received("console", b"a", 1)
    flight.forget()
    flight.quiet(2, TableState(coup_no=7), dict)
    flight.want("x")
    flight.quiet(2, TableState(coup_no=7), dict)
    head, *lines = lines_in(records[0])
    assert (head["state"]["coup_no"], lines) == (7, [])


# --- the folder ------------------------------------------------------------------------------------------------------


def test_the_oldest_records_go_first_by_number_and_by_size(tmp_path: Path) -> None:
    names = [f"{n}.jsonl" for n in range(6)]
    for age, name in enumerate(names):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (age, age))
    (tmp_path / "notes.txt").write_text("not a record")
    prune(tmp_path, tmp_path / names[-1], 4, 10**6)
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == names[2:]
    prune(tmp_path, tmp_path / names[-1], 4, 250)
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == names[4:]
    prune(tmp_path, tmp_path / names[-1], 1, 1)
    assert [path.name for path in tmp_path.glob("*.jsonl")] == [names[-1]]
    assert (tmp_path / "notes.txt").exists()
