"""The pump over a real journal, with a floor that answers as the test says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from controller import outbox as outbox_module
from controller.connection import Acked, Disconnected
from controller.journal_thread import JournalThread
from controller.outbox import PAGE, Outbox
from controller.scribe import Scribe
from tests.controller.journals import Table, opened

DEADLINE_S = 15.0
NOT_AUTHORISED = Acked(135, "Not authorized")


@dataclass
class Broker:
    """What the floor does with each message, in order of its coming."""

    got: list[tuple[str, bytes]] = field(default_factory=list)
    """Every message that was sent, acknowledged or not."""
    script: list[Acked | type[Disconnected]] = field(default_factory=list)
    """Answers to the next messages; afterwards every one is taken."""
    refuse: Callable[[str], bool] = lambda _suffix: False
    in_flight: int = 0
    up: asyncio.Event = field(default_factory=asyncio.Event)
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared: acknowledgements wait."""

    def __post_init__(self) -> None:
        self.up.set()
        self.hold.set()

    async def ready(self) -> None:
        await self.up.wait()

    async def publish(self, suffix: str, payload: bytes) -> Acked:
        assert self.in_flight == 0, "one in flight"
        if not self.up.is_set():
            raise Disconnected("no link")
        self.in_flight += 1
        try:
            self.got.append((suffix, payload))
            await self.hold.wait()
            if self.refuse(suffix):
                return NOT_AUTHORISED
            answer = self.script.pop(0) if self.script else Acked(0, "Success")
            if not isinstance(answer, Acked):
                raise answer("lost")
            return answer
        finally:
            self.in_flight -= 1

    def ids(self) -> list[str]:
        return [json.loads(payload)["id"] for _, payload in self.got]


@dataclass
class Pump:
    table: Table
    thread: JournalThread
    outbox: Outbox
    broker: Broker
    beats: list[int]

    @property
    def scribe(self) -> Scribe:
        return self.table.scribe

    async def coup(self) -> None:
        """One more coup, committed and handed over as the daemon does."""
        self.table.play()
        batch = self.table.batch()
        await self.thread.commit(batch)
        self.outbox.added(batch.messages)

    async def until(self, condition: Callable[[], object], what: str = "condition") -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():  # noqa: ASYNC110  # the condition is the caller's
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"{what} did not come; {len(self.broker.got)} messages") from None

    async def all_sent(self) -> None:
        await self.until(lambda: self.outbox.unsent() == 0, "the last acknowledgement")
        assert await self.thread.call(self.table.journal.unsent_count) == 0


@contextlib.asynccontextmanager
async def pumping(folder: Path, broker: Broker | None = None) -> AsyncIterator[Pump]:
    """The pump runs until the block ends; then its process dies without a word."""
    broker = broker or Broker()
    with opened(folder, crash=True) as table:
        thread = JournalThread(table.journal)
        beats: list[int] = []
        outbox = Outbox(
            thread, publish=broker.publish, ready=broker.ready, clock=table.clock, beat=lambda: beats.append(1)
        )
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(outbox.run())
                yield Pump(table, thread, outbox, broker, beats)
                running.cancel()
        finally:
            thread._pool.shutdown()


def got(broker: Broker, topic: str) -> list[bytes]:
    """What came on one topic, whether it was taken or not."""
    return [payload for suffix, payload in broker.got if suffix == topic]


async def test_in_order_and_each_once(tmp_path: Path) -> None:
    async with pumping(tmp_path) as pump:
        for _ in range(20):
            await pump.coup()
        await pump.all_sent()
        assert [suffix for suffix, _ in pump.broker.got] == ["result", "settlement/1", "event"] * 20
        assert len(set(pump.broker.ids())) == 60
        seqs = [json.loads(payload)["seq"] for _, payload in pump.broker.got]
        assert seqs == sorted(seqs)
        assert pump.outbox.sent == 60
        assert pump.outbox.oldest_unsent_ms() is None


async def test_a_lost_acknowledgement_sends_the_same_bytes_again(tmp_path: Path) -> None:
    broker = Broker(script=[Acked(0, "Success"), Disconnected, Disconnected])
    async with pumping(tmp_path, broker) as pump:
        await pump.coup()
        await pump.all_sent()
        first, second, third, fourth, fifth = broker.got
        assert second == third == fourth
        assert [suffix for suffix, _ in (first, second, fifth)] == ["result", "settlement/1", "event"]


async def test_nothing_goes_out_while_the_floor_is_not_ready(tmp_path: Path) -> None:
    broker = Broker()
    broker.up.clear()
    async with pumping(tmp_path, broker) as pump:
        await pump.coup()
        beats = len(pump.beats)
        await pump.until(lambda: len(pump.beats) > beats + 1, "signs of life while waiting")
        assert broker.got == []
        assert pump.outbox.unsent() == 3
        age = pump.outbox.oldest_unsent_ms()
        assert age is not None
        await pump.until(lambda: (pump.outbox.oldest_unsent_ms() or 0) > age, "a growing age")
        broker.up.set()
        await pump.all_sent()


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "PAUSE_MIN_S", 0.01)
    monkeypatch.setattr(outbox_module, "PAUSE_MAX_S", 0.02)
    monkeypatch.setattr(outbox_module, "BEAT_S", 0.01)


@pytest.mark.usefixtures("short_rests")
async def test_a_refused_message_is_tried_again_and_holds_up_its_own_topic_only(tmp_path: Path) -> None:
    broker = Broker(refuse=lambda suffix: suffix == "settlement/1")
    async with pumping(tmp_path, broker) as pump:
        for _ in range(2):
            await pump.coup()
        await pump.until(lambda: pump.outbox.unsent() == 2 and pump.outbox.refusals >= 4, "the others, and refusals")
        assert len({payload for suffix, payload in broker.got if suffix == "settlement/1"}) == 1
        assert [suffix for suffix, _ in broker.got if suffix != "settlement/1"] == ["result", "event"] * 2
        waiting = await pump.thread.call(pump.table.journal.unsent)
        assert [message.suffix for message in waiting] == ["settlement/1"] * 2
        age = pump.outbox.oldest_unsent_ms()
        assert age is not None
        assert age < 60_000
        broker.refuse = lambda _suffix: False
        await pump.coup()
        await pump.all_sent()
        assert pump.outbox.sent == len(set(broker.ids())) == 9
        for topic in ("result", "settlement/1", "event"):
            seqs = [json.loads(payload)["seq"] for suffix, payload in broker.got if suffix == topic]
            assert seqs == sorted(seqs)


@pytest.mark.usefixtures("short_rests")
async def test_a_long_queue_of_refused_messages_lets_the_results_pass_also_after_a_death(tmp_path: Path) -> None:
    broker = Broker(refuse=lambda suffix: suffix != "result")
    for after in (0, PAGE):
        async with pumping(tmp_path, broker) as pump:
            for _ in range(PAGE):
                await pump.coup()
            await pump.until(lambda: len(set(got(broker, "result"))) == after + PAGE, "the results")  # noqa: B023
            await pump.until(lambda: pump.outbox.unsent() == 2 * (after + PAGE), "their marks")  # noqa: B023
            assert len(pump.outbox._held) <= PAGE
    broker.refuse = lambda _suffix: False
    async with pumping(tmp_path, broker) as pump:
        assert pump.outbox.unsent() - 4 * PAGE in {0, 1}  # the mark that was being written at the death
        await pump.all_sent()
    numbers = [json.loads(payload)["result_no"] for payload in dict.fromkeys(got(broker, "result"))]
    assert numbers == list(range(1, 2 * PAGE + 1))
    for topic in ("settlement/1", "event"):
        seqs = list(dict.fromkeys(json.loads(payload)["seq"] for payload in got(broker, topic)))
        assert len(seqs) == 2 * PAGE
        assert seqs == sorted(seqs)


@pytest.mark.usefixtures("short_rests")
async def test_what_is_refused_is_told_under_a_new_epoch_too(tmp_path: Path) -> None:
    broker = Broker(refuse=lambda suffix: suffix == "event")
    async with pumping(tmp_path, broker) as pump:
        await pump.coup()
        await pump.until(lambda: pump.outbox.unsent() == 1, "all but the event")
        unsent = await pump.thread.call(pump.table.journal.unsent)
        epoch = pump.scribe.change_epoch("older", "test", unsent)
        batch = pump.table.batch()
        await pump.thread.commit(batch)
        pump.outbox.restart(batch.messages)
        await pump.coup()
        await pump.until(lambda: pump.outbox.unsent() == 2, "all but the events")
        broker.refuse = lambda _suffix: False
        await pump.all_sent()
        taken = [json.loads(payload) for payload in got(broker, "event")][-2:]
        assert [body["epoch"] for body in taken] == [epoch] * 2


async def test_a_code_without_subscribers_is_a_good_one(tmp_path: Path) -> None:
    async with pumping(tmp_path, Broker(script=[Acked(16, "No matching subscribers")] * 3)) as pump:
        await pump.coup()
        await pump.all_sent()
        assert len(pump.broker.got) == 3


async def test_only_the_one_in_doubt_comes_twice_after_a_death(tmp_path: Path) -> None:
    """Case 3, also in the middle of a long backlog."""
    broker = Broker()
    broker.up.clear()
    async with pumping(tmp_path, broker) as pump:
        for _ in range(50):
            await pump.coup()
    broker.up.set()
    for kill_after in (31, 64, 100):
        async with pumping(tmp_path, broker) as pump:
            await pump.until(lambda: len(broker.got) >= kill_after, "some messages")  # noqa: B023
            broker.hold.clear()
            await pump.until(lambda: broker.in_flight == 1, "one in flight")
        broker.hold.set()
        broker.in_flight = 0
    async with pumping(tmp_path, broker) as pump:
        await pump.all_sent()
    ids = broker.ids()
    assert len(set(ids)) == 150
    assert len(ids) <= 153
    first_seen = list(dict.fromkeys(ids))
    numbers = [json.loads(payload) for suffix, payload in broker.got if suffix == "result"]
    assert sorted({body["result_no"] for body in numbers}) == list(range(1, 51))
    assert [first_seen.index(name) for name in ids] == sorted(first_seen.index(name) for name in ids)
    by_id: dict[str, bytes] = {}
    for name, (_, payload) in zip(ids, broker.got, strict=True):
        assert by_id.setdefault(name, payload) == payload


async def test_memory_is_bounded_over_a_long_outage(tmp_path: Path) -> None:
    broker = Broker()
    broker.up.clear()
    async with pumping(tmp_path, broker) as pump:
        for _ in range(20):
            for _ in range(20):
                pump.table.play()
            batch = pump.table.batch()
            await pump.thread.commit(batch)
            pump.outbox.added(batch.messages)
            assert len(pump.outbox._held) <= PAGE
        assert pump.outbox.unsent() == 1200
        broker.up.set()
        while pump.outbox.unsent():
            assert len(pump.outbox._held) <= PAGE
            await pump.coup() if len(broker.got) % 10 == 0 and len(broker.got) < 300 else await asyncio.sleep(0)
        await pump.all_sent()
        results = [json.loads(payload)["result_no"] for suffix, payload in broker.got if suffix == "result"]
        assert results == list(range(1, pump.table.state.coup_no + 1))


async def test_a_new_epoch_replaces_what_waits(tmp_path: Path) -> None:
    broker = Broker()
    broker.up.clear()
    async with pumping(tmp_path, broker) as pump:
        for _ in range(30):
            await pump.coup()
        unsent = await pump.thread.call(pump.table.journal.unsent, 0, 10**6)
        assert len(unsent) == 90
        epoch = pump.scribe.change_epoch("older", "test", unsent)
        batch = pump.table.batch()
        await pump.thread.commit(batch)
        pump.outbox.restart(batch.messages)
        assert pump.outbox.unsent() == 90
        await pump.coup()
        broker.up.set()
        await pump.all_sent()
        assert len(broker.got) == 93
        assert {json.loads(payload)["epoch"] for _, payload in broker.got} == {epoch}


async def test_a_new_epoch_without_anything_unsent(tmp_path: Path) -> None:
    async with pumping(tmp_path) as pump:
        await pump.coup()
        await pump.all_sent()
        pump.scribe.change_epoch("older", "test", [])
        batch = pump.table.batch()
        await pump.thread.commit(batch)
        pump.outbox.restart(batch.messages)
        await pump.coup()
        await pump.all_sent()
        assert len(pump.broker.got) == 6


async def test_an_acknowledgement_that_comes_after_a_new_epoch_counts_for_nothing(tmp_path: Path) -> None:
    broker = Broker()
    broker.hold.clear()
    async with pumping(tmp_path, broker) as pump:
        await pump.coup()
        await pump.until(lambda: broker.in_flight == 1, "one in flight")
        unsent = await pump.thread.call(pump.table.journal.unsent)
        pump.scribe.change_epoch("older", "test", unsent)
        batch = pump.table.batch()
        await pump.thread.commit(batch)
        pump.outbox.restart(batch.messages)
        broker.hold.set()
        await pump.all_sent()
        assert len(broker.got) == 4
        assert pump.outbox.unsent() == 0


async def test_the_age_is_of_this_boot(tmp_path: Path) -> None:
    broker = Broker()
    broker.up.clear()
    async with pumping(tmp_path, broker) as pump:
        await pump.coup()
    with opened(tmp_path, boot="boot-2", crash=True) as table:
        thread = JournalThread(table.journal)
        outbox = Outbox(thread, publish=broker.publish, ready=broker.ready, clock=table.clock)
        assert outbox.unsent() == 3
        age = outbox.oldest_unsent_ms()
        assert age is not None
        assert age < 60_000
        thread._pool.shutdown()
