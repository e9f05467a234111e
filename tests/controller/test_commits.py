"""Nothing is told before it is on the disk; a disk that refuses is told and tried again; a new epoch renames."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from controller import commits as module
from controller.alarms import AlarmBook
from controller.clock import Clock
from controller.commands import Authoriser
from controller.commits import Commits
from controller.connection import Acked, Disconnected
from controller.floor import Floor
from controller.journal import Batch, JournalBrokenError, JournalUnavailableError
from controller.journal_file import Message
from controller.journal_thread import JournalThread
from controller.local_socket import LocalSocket
from controller.outbox import Outbox
from controller.standing import Standing
from rules.decisions import AlarmCleared, AlarmRaised
from rules.facts import Direction, SpinSlowed
from tests.controller.parts import Desk, desk, opening, spin


@dataclass
class Outside:
    """Floor, outbox and local socket, as far as commits speak to them; notes what was told, and when."""

    made: Desk
    states: list[dict[str, Any]] = field(default_factory=list)
    last: list[dict[str, Any]] = field(default_factory=list)
    added_messages: list[Message] = field(default_factory=list)
    restarted: list[Message] = field(default_factory=list)
    epochs: list[str] = field(default_factory=list)
    local: list[str] = field(default_factory=list)
    published: list[bytes] = field(default_factory=list)
    up: asyncio.Event = field(default_factory=asyncio.Event)
    ahead: list[str] = field(default_factory=list)
    """Whatever was told before it was on the disk."""

    def tell_state(self, payload: bytes) -> None:
        self.states.append(json.loads(payload))
        self._only_what_is_written(self.states[-1]["seq"])

    def tell_last(self, payload: bytes) -> None:
        self.last.append(json.loads(payload))
        self._only_what_is_written(self.last[-1]["seq"])

    def _only_what_is_written(self, seq: int) -> None:
        if seq > self.made.journal.head.seq:
            self.ahead.append(f"seq {seq}")

    def added(self, messages: tuple[Message, ...]) -> None:
        self.added_messages += messages
        for message in messages:
            self._only_what_is_written(message.seq)

    def restart(self, messages: tuple[Message, ...]) -> None:
        self.restarted += messages

    def change_epoch(self, epoch: str) -> None:
        self.epochs.append(epoch)

    def tell(self, suffix: str, payload: bytes) -> None:
        del payload
        self.local.append(suffix)

    async def ready(self) -> None:
        await self.up.wait()

    async def publish(self, suffix: str, payload: bytes) -> Acked:
        del suffix
        if len(self.published) == 2:
            raise Disconnected("gone")
        self.published.append(payload)
        return Acked(0, "ok")


@dataclass
class Bench:
    made: Desk
    commits: Commits
    standing: Standing
    outside: Outside
    thread: JournalThread
    ended: bool = False

    async def until(self, true: Any) -> None:
        async with asyncio.timeout(20):
            while not true():  # noqa: ASYNC110 - turn by turn
                await asyncio.sleep(0.001)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made, clock = desk(tmp_path / "state"), Clock()
    standing = Standing(
        table="demo/roue-1", game="roue_de_la_chance", sequencer=made.sequencer, alarms=AlarmBook(),
        authoriser=Authoriser("demo/roue-1", (), clock), before_maintenance=None,
        committed_seq=made.journal.head.seq, last_result=None, clock=clock,
    )  # fmt: skip
    made.sequencer._told = lambda _fact, decisions: standing.told(decisions)
    thread = JournalThread(made.journal)
    commits = Commits(sequencer=made.sequencer, thread=thread, standing=standing, clock=clock, beat=made.beat)
    outside = Outside(made)
    commits.connect(cast(Floor, outside), cast(Outbox, outside), cast(LocalSocket, outside))
    yield Bench(made, commits, standing, outside, thread)
    thread._pool.shutdown()
    made.journal.abandon()


@contextlib.asynccontextmanager
async def running(bench: Bench) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        sequencer = group.create_task(bench.made.sequencer.run())
        commits = group.create_task(bench.commits.run(sequencer.done))
        yield
        bench.made.sequencer.close()
        await sequencer
        await commits


async def test_what_is_told_is_on_the_disk(bench: Bench) -> None:
    outside = bench.outside
    async with running(bench):
        decisions = await bench.made.sequencer.ask(opening(1)[0])
        assert decisions
        await bench.made.sequencer.put(opening(1)[1:] + spin(2, Direction.CW, 3.2))
        await bench.until(lambda: outside.last)
    assert outside.ahead == []
    assert outside.states[-1]["seq"] == bench.made.journal.head.seq
    assert [result["status"] for result in outside.last] == ["valid"]
    assert bench.standing.last_result_id() == outside.last[-1]["id"]
    assert [message.suffix for message in outside.added_messages] == outside.local
    assert {"event", "result", "settlement/1"} <= set(outside.local)
    assert bench.commits.since_ns() is None


async def test_a_disk_that_refuses_is_told_and_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    real, refusals = bench.made.journal.commit, 3

    def commit(batch: Batch) -> None:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise JournalUnavailableError("disk_full", "no room")
        real(batch)

    monkeypatch.setattr(bench.made.journal, "commit", commit)
    outside = bench.outside
    async with running(bench):
        await bench.made.sequencer.ask(opening(1)[0])  # answered only when it is written at last
        await bench.until(lambda: outside.states[-1]["alarms"] and not outside.states[-1]["alarms"][0]["active"])
    told = [(state["seq"], [alarm["active"] for alarm in state["alarms"]]) for state in outside.states]
    assert told[0] == (2, [True])  # people see it although nothing can be written
    assert outside.ahead == []
    assert bench.made.beats > 3


async def test_a_journal_that_is_broken_ends_the_task(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def commit(batch: Batch) -> None:
        raise JournalBrokenError("nobody knows")

    monkeypatch.setattr(bench.made.journal, "commit", commit)
    bench.made.sequencer.note("clock", {"moved_ms": 1})
    with pytest.raises(JournalBrokenError):
        await bench.commits.run(lambda: False)


async def test_a_commit_that_hangs_has_an_age(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(batch: Batch) -> None:
        begun.set()
        await go.wait()
        bench.made.journal.commit(batch)

    monkeypatch.setattr(bench.thread, "commit", slow)
    async with running(bench):
        bench.made.sequencer.note("clock", {"moved_ms": 1})
        await begun.wait()
        since = bench.commits.since_ns()
        assert since is not None
        assert since <= Clock().mono_ns()
        go.set()


async def test_a_broker_that_knows_more_makes_a_new_epoch_and_new_names(bench: Bench) -> None:
    outside, first = bench.outside, bench.made.journal.head.epoch
    async with running(bench):
        await bench.made.sequencer.put(opening(1) + spin(2, Direction.CW, 3.2))
        await bench.until(lambda: outside.last)
        bench.commits.older(f"{first}/999")
        outside.up.set()
        ready = asyncio.get_running_loop().create_task(bench.commits.outbox_ready())
        await asyncio.sleep(0)
        assert not ready.done()  # nothing goes out under the old name any more
        await ready
        second = bench.made.journal.head.epoch
        assert second != first
        await bench.until(lambda: bench.standing.epoch == second)
        await bench.made.sequencer.put([SpinSlowed(at_ns=10**12, source="wheel")])
    assert outside.epochs == [second]
    names = [json.loads(message.payload)["id"] for message in outside.restarted]
    assert names
    assert all(name.startswith(f"{second}/") for name in names)
    renamed = [json.loads(message.payload) for message in outside.restarted if message.suffix == "result"]
    assert [(body["result_no"], body["prev_hash"]) for body in renamed] == [(1, "0" * 64)]
    assert [alarm.name for alarm in bench.standing.alarms.listed()] == ["journal:epoch"]
    assert outside.states[-1]["epoch"] == second


async def test_results_are_sent_again_as_far_as_the_broker_takes_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPLAY_READY_S", 0.01)
    async with running(bench):
        await bench.made.sequencer.put(opening(1))
        for n in range(3):
            direction = (Direction.CW, Direction.CCW)[n % 2]
            await bench.made.sequencer.put(spin(2 + n * 10**12, direction, 3.2))
        await bench.until(lambda: bench.outside.last and bench.outside.last[-1]["result_no"] == 3)
        bodies, sent = await bench.commits.replay(0, 10)
        assert (len(bodies), sent) == (3, 0)  # the link is down
        bench.outside.up.set()
        bodies, sent = await bench.commits.replay(0, 10)
        assert (len(bodies), sent, bench.outside.published) == (3, 2, list(bodies[:2]))
        assert len((await bench.commits.replay(json.loads(bodies[0])["seq"], 1))[0]) == 1


async def test_alarms_of_the_law_are_told_with_their_row(bench: Bench) -> None:
    standing, made = bench.standing, bench.made
    made.scribe.note("x", {})
    standing.told([AlarmRaised(name="device:wheel", code="appareil_perdu", text="perdu")])
    standing.told([AlarmRaised(name="device:wheel", code="appareil_perdu", text="perdu")])  # nothing new
    standing.told([AlarmCleared(name="device:wheel")])
    standing.told([AlarmCleared(name="device:rail")])
    standing.ack("device:wheel", "Mme Chef")
    with pytest.raises(LookupError, match="no alarm 'device:wheel'; there are: none"):
        standing.ack("device:wheel", "Mme Chef")
    batch = made.sequencer.take().batch
    events = [json.loads(message.payload) for message in batch.messages]
    assert [(event["data"]["active"], event["data"]["acked"]) for event in events] == [
        (True, False), (False, False), (False, True),
    ]  # fmt: skip
    assert [row.kind for row in batch.rows] == ["x", "alarm"]
