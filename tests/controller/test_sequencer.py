"""One order for all facts, lamps before the disk, timers at their time, nothing dropped (style 4.6, field case 113)."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from controller import sequencer as module
from controller.audit import verify
from controller.clock import Clock
from controller.journal_file import NAME
from controller.timers import after_restart, due
from rules.decisions import (
    BetsClosed,
    CoupEnded,
    Decision,
    OnRestart,
    Phase,
    PhaseChanged,
    Refused,
    Signal,
    StakeDoubtful,
    StakeRefused,
    Status,
)
from rules.facts import ChipPlaced, Direction, Fact, Origin, SpinSlowed, TimerElapsed
from rules.state import Armed, TableState
from rules.table import Table
from tests.controller.journals import Wall
from tests.controller.parts import SECOND, Desk, config, desk, opening, spin


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Desk]:
    made = desk(tmp_path / "state")
    yield made
    made.close()


@contextlib.asynccontextmanager
async def running(made: Desk) -> AsyncIterator[None]:
    """The sequencer's task, closed in order at the end."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made.sequencer.run())
        try:
            yield
        finally:
            made.sequencer.close()
            await task


async def test_facts_are_stepped_in_order_of_arrival_and_numbered(table: Desk) -> None:
    first = table.scribe.seq
    async with running(table):
        await table.sequencer.put(opening(1))
        await table.sequencer.put(spin(2, Direction.CW, 3.2))
        await table.rows(7)
        rows = table.commit()
    assert [row["seq"] for row in rows] == list(range(first + 1, first + 1 + len(rows)))
    names = [json.loads(row["body"])["fact"]["in"] for row in rows]
    assert names[:4] == ["Commanded", "Commanded", "Commanded", "SpinStarted"]
    assert table.journal.head.seq == rows[-1]["seq"]
    assert Phase.LANCE in [decision.phase for decision in table.reacted if isinstance(decision, PhaseChanged)]


STEPS = (timedelta(days=-1), timedelta(days=400), timedelta(seconds=-3))
"""How the wall clock jumps before each fact (field case 106)."""


async def test_case_106_a_wall_clock_that_steps_changes_nothing_but_labels(tmp_path: Path) -> None:
    """The same evening under a good clock and under one that jumps in mid-spin: same rows, same order, same results."""
    evenings, labels = [], []
    for name, steps in (("good", ()), ("stepped", STEPS)):
        wall = Wall()
        made = desk(tmp_path / name, clock=wall)
        rows: list[tuple[int, str, Any]] = []
        facts = opening(SECOND) + spin(10 * SECOND, Direction.CW, 3.2) + spin(60 * SECOND, Direction.CCW, 3.4)
        async with running(made):
            for n, fact in enumerate(facts):
                wall.ahead = steps[n % len(steps)] if steps else timedelta()
                await made.sequencer.put([fact])
                await made.rows(1)
                batch = made.sequencer.take().batch
                made.journal.commit(batch)
                rows += [(row.seq, row.kind, json.loads(row.body)) for row in batch.rows]
                labels += [(name, row.time) for row in batch.rows]
        ended = [decision for decision in made.reacted if isinstance(decision, CoupEnded)]
        evenings.append(
            (
                rows[-len(facts) :],
                ended,
                made.sequencer.state,
                [json.loads(payload)["result_no"] for payload in made.journal.last_coups(9)],
            )
        )
        made.close()
        assert verify(tmp_path / name / NAME) is None
    assert evenings[0] == evenings[1]
    stepped = [label for name, label in labels if name == "stepped"]
    assert stepped != sorted(stepped), "the labels do follow the clock"


async def test_decisions_act_before_the_commit_and_alarms_after_the_row(table: Desk) -> None:
    async with running(table):
        await table.sequencer.put(opening(1) + spin(2, Direction.CW, 3.2) + spin(10**12, Direction.CW, 3.2))
        await table.rows(11)
        assert any(isinstance(decision, Signal) for decision in table.reacted)
        assert table.reacted == table.told
        assert table.journal.head.seq < table.scribe.seq  # nothing is on the disk yet
        table.commit()


async def test_a_command_is_answered_once_it_is_on_the_disk(table: Desk) -> None:
    async with running(table), asyncio.TaskGroup() as group:
        asked = group.create_task(table.sequencer.ask(opening(1)[2]))
        await table.rows(1)
        assert not asked.done()
        table.commit()
        decisions = await asked
    assert [type(decision) for decision in decisions] == [Refused]


async def test_a_full_inbox_makes_ports_wait_and_loses_nothing(table: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INBOX_MAX", 10)
    facts: list[Fact] = [SpinSlowed(at_ns=n, source="wheel") for n in range(100)]
    async with asyncio.TaskGroup() as group:
        # ten ports of ten facts, before anybody steps
        waiting = [group.create_task(table.sequencer.put(facts[n : n + 10])) for n in range(0, 100, 10)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True] + [False] * 9
        assert table.sequencer.full()
        async with running(table):
            await table.rows(100)
            rows = table.commit()
    assert [json.loads(row["body"])["fact"]["at_ns"] for row in rows] == list(range(100))
    assert table.sequencer.inbox_peak == 10


async def test_stepping_waits_for_the_disk_when_too_many_rows_do(table: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PENDING_MAX", 4)
    facts: list[Fact] = [SpinSlowed(at_ns=n, source="wheel") for n in range(10)]
    rows: list[dict[str, Any]] = []
    async with running(table):
        await table.sequencer.put(facts)
        while len(rows) < 10:
            assert await table.sequencer.something_to_commit()
            for _ in range(20):
                await asyncio.sleep(0)
            assert table.sequencer.pending_peak <= 4
            rows += table.commit()
    assert [json.loads(row["body"])["fact"]["at_ns"] for row in rows] == list(range(10))


async def test_what_waits_at_the_close_is_still_stepped(table: Desk) -> None:
    async with asyncio.TaskGroup() as group:
        await table.sequencer.put([SpinSlowed(at_ns=n, source="wheel") for n in range(200)])
        table.sequencer.close()
        group.create_task(table.sequencer.run())
    assert await table.sequencer.something_to_commit()
    assert len(table.commit()) == 200
    assert not await table.sequencer.something_to_commit()


async def test_a_timer_that_comes_late_lets_what_waits_in_the_ports_be_read_first(table: Desk) -> None:
    now = Clock().mono_ns()
    late = Armed(name="tirage", at_ns=now - 2 * SECOND, length_ns=SECOND, on_restart="restart")
    table.sequencer.state = replace(table.sequencer.state, timers=(late,))
    async with running(table):
        await asyncio.sleep(0)  # armed, and due at once
        await asyncio.sleep(0)
        await table.sequencer.put([SpinSlowed(at_ns=now - 3 * SECOND, source="wheel")])
        await table.rows(2)
        rows = [json.loads(row["body"])["fact"] for row in table.commit()]
    assert [(fact["in"], fact["at_ns"]) for fact in rows] == [
        ("SpinSlowed", now - 3 * SECOND),
        ("TimerElapsed", now - 2 * SECOND),
    ]


async def test_the_law_timer_comes_back_at_its_due_time(table: Desk) -> None:
    clock = Clock()
    now = clock.mono_ns()
    length = 60 * 10**9
    soon = Armed(name="tirage", at_ns=now + 20_000_000, length_ns=length, on_restart="restart")
    later = Armed(name="accord", at_ns=now + length, length_ns=length, on_restart="fire")
    table.sequencer.state = replace(table.sequencer.state, timers=(later, soon))
    async with running(table):
        async with asyncio.timeout(10):
            await table.sequencer.something_to_commit()
        rows = table.commit()
    fact = json.loads(rows[0]["body"])["fact"]
    assert (fact["in"], fact["name"], fact["at_ns"]) == ("TimerElapsed", "tirage", soon.at_ns)
    assert [timer.name for timer in table.sequencer.state.timers] == ["accord"]


async def test_an_elapsing_that_was_overtaken_is_passed_over(table: Desk) -> None:
    now = Clock().mono_ns()
    armed = Armed(name="tirage", at_ns=now + 10**12, length_ns=10**12, on_restart="restart")
    table.sequencer.state = replace(table.sequencer.state, timers=(armed,))
    async with running(table):
        table.sequencer.tell(TimerElapsed(name="tirage", at_ns=now, source="timer"))  # of before it was re-armed
        await table.sequencer.put([SpinSlowed(at_ns=1, source="wheel")])
        await table.rows(1)
        assert table.sequencer.state.timers == (armed,)
    assert [json.loads(row["body"])["fact"]["in"] for row in table.commit()] == ["SpinSlowed"]


async def test_an_idle_sequencer_says_that_it_lives(table: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.001)
    beaten, beats = asyncio.Event(), 0

    def beat() -> None:
        nonlocal beats
        beats += 1
        if beats > 3:
            beaten.set()

    table.sequencer._beat = beat
    async with running(table), asyncio.timeout(10):
        await beaten.wait()


async def test_a_law_that_raises_ends_the_task_loudly(table: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("bug")

    monkeypatch.setattr("rules.table.Table.step", broken)
    await table.sequencer.put([SpinSlowed(at_ns=1, source="wheel")])
    with pytest.raises(AssertionError, match="bug"):
        await table.sequencer.run()


async def test_notes_take_their_place_between_the_facts(table: Desk) -> None:
    async with running(table):
        await table.sequencer.put([SpinSlowed(at_ns=1, source="wheel")])
        await table.rows(1)
        table.sequencer.note("clock", {"moved_ms": 5})
        await table.sequencer.put([SpinSlowed(at_ns=2, source="wheel")])
        await table.rows(3)
        assert [row["kind"] for row in table.commit()] == ["step", "clock", "step"]


async def test_what_was_noted_can_be_waited_for_until_it_is_on_the_disk(table: Desk) -> None:
    await table.sequencer.written()  # nothing waits
    table.sequencer.note("alarm", {"name": "x"})
    async with asyncio.TaskGroup() as group:
        written = group.create_task(table.sequencer.written())
        await asyncio.sleep(0)
        assert not written.done()
        table.commit()


async def test_a_held_coup_asks_for_a_flight_record_at_the_next_quiet_moment(table: Desk) -> None:
    async with running(table):
        await asyncio.sleep(0)  # the first checkpoint
        await table.sequencer.put(opening(1) + spin(2, Direction.CW, 3.2) + spin(10**12, Direction.CW, 3.2))
        await table.rows(11)
        await asyncio.sleep(0)
        ended = [decision for decision in table.told if isinstance(decision, CoupEnded)]
        assert [decision.status for decision in ended] == [Status.VALID, Status.HELD]
        assert [(record.reason, record.until_seq) for record in table.records] == [("held", table.scribe.seq)]
        table.commit()


def test_timers_after_a_reboot_go_by_their_own_rule() -> None:
    timers = tuple(Armed(name=rule, at_ns=10**15, length_ns=7, on_restart=rule) for rule in get_args(OnRestart))
    state = after_restart(TableState(timers=timers), 1000, 10**15)
    assert [(timer.name, timer.at_ns, timer.length_ns) for timer in state.timers] == [
        ("fire", 1000, 7), ("restart", 1007, 7),
    ]  # fmt: skip
    assert due(state, TimerElapsed(name="fire", at_ns=1000, source="timer"))
    assert not due(state, TimerElapsed(name="fire", at_ns=10**15, source="timer"))


def played(state: TableState, facts: list[Fact]) -> tuple[TableState, list[Decision]]:
    """The law's answers to these facts."""
    law = Table(config().game, config().house)
    said: list[Decision] = []
    for fact in facts:
        state, decisions = law.step(state, fact)
        said += decisions
    return state, said


def chips(at_ns: int) -> ChipPlaced:
    return ChipPlaced(at_ns=at_ns, source="console", origin=Origin.PERSON, spot="vert", cents=500, player="Anne")


def test_a_stake_of_before_the_reboot_was_in_time() -> None:
    """The clock of the new boot is behind that of the old one: what was first stays first."""
    old, new = 4000 * SECOND, 200 * SECOND
    state, _ = played(TableState(), [*opening(old), chips(old + 1)])
    state = after_restart(state, new, old + 1)
    state, said = played(state, spin(new, Direction.CW, 3.2))
    assert [stake.cents for stake in state.before] == [500]
    assert not [decision for decision in said if isinstance(decision, StakeRefused | StakeDoubtful)]


def test_bets_that_were_closed_before_the_reboot_stay_closed() -> None:
    old, new = 4000 * SECOND, 200 * SECOND
    state, said = played(TableState(), [*opening(old), *spin(old, Direction.CW, 3.2)[:3]])
    assert any(isinstance(decision, BetsClosed) for decision in said)
    state = after_restart(state, new, old + 5 * SECOND)
    assert state.coup is not None
    assert state.coup.times["closed"] == old + 5 * SECOND  # the scribe has its wall time by this key
    _, said = played(state, [chips(new)])
    assert [type(decision) for decision in said] == [StakeRefused]
