"""The floor with its outbox and journal, on a real broker over a line that breaks (field cases by number)."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller import command_path, mqtt, wire
from controller import floor as floor_module
from controller.clock import Clock
from controller.commands import BURST, COMMANDS, Authorised, Authoriser, Commands, Heard
from controller.connection import Broker
from controller.floor import Floor
from controller.journal import Journal
from controller.journal_file import result_hash
from controller.journal_start import Owner
from controller.journal_thread import JournalThread
from controller.outbox import Outbox
from controller.results import first_fault
from controller.scribe import Scribe, restored
from controller.signing import SigningKey
from controller.standing import table_state
from rules import game
from rules.decisions import Announce, CoupEnded, Status
from rules.facts import Announced
from rules.state import TableState
from tests import people
from tests.broker import DEADLINE_S, Consumer, Proxy, running
from tests.broker import Broker as Mosquitto
from tests.people import COMITE, CROUPIER, seconds_ago

BASE = "casino/demo/t-1"
STANDING = {"status", "state", "result/last", "health"}
KEY = SigningKey(Ed25519PrivateKey.generate())
SECRET = {"table": "table-secret", "floor": "floor-secret"}


class Wall(Clock):
    """The machine's time, vouched for."""

    def synchronised(self) -> bool:
        return True


@dataclass
class House:
    """A table without instruments: results by hand, everything after them for real."""

    folder: Path
    port: int
    boot: str = field(default_factory=lambda: secrets.token_hex(4))
    username: str = ""
    obeyed: list[Authorised] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    alarms: dict[str, str] = field(default_factory=dict)
    older: list[str] = field(default_factory=list)
    also: list[tuple[str, bytes]] = field(default_factory=list)
    coups: int = 0
    remembered: dict[str, str] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def open(self, *, leave: str = "stop") -> AsyncIterator["House"]:
        """The daemon's part from the journal to the broker; `leave` is how it ends: `stop`, or `die` (no goodbye)."""
        clock = self.clock = Wall()
        owner = Owner(table="demo/t-1", game="roue_de_la_chance", version="1", boot="b")
        journal = Journal(self.folder / "state", owner, KEY, clock)
        kept = restored(journal.found, game.load("roue_de_la_chance"))
        self.scribe = Scribe(
            table="demo/t-1", game="roue_de_la_chance", found=journal.found, restored=kept, key=KEY, clock=clock
        )
        self.thread = JournalThread(journal)
        password = self.folder / "password"
        password.write_text(SECRET.get(self.username, ""))
        self.authoriser = Authoriser(table="demo/t-1", keys=people.KEYS, clock=clock, remembered=self.remembered)
        commands = Commands(authoriser=self.authoriser, execute=self.execute, record=self.heard.append, clock=clock)
        self.floor = Floor(
            Broker.at(
                f"mqtt://127.0.0.1:{self.port}",
                "t-1",
                username=self.username,
                password_file=str(password),
                connect_timeout_s=2.0,
                ack_timeout_s=2.0,
            ),
            base=BASE,
            boot=self.boot,
            version="1",
            epoch=self.scribe.epoch,
            public_key=KEY.public,
            clock=clock,
            handle=lambda payload, name, retained: commands.handle(payload, name=name, retained=retained),
            health=self.health,
            older=self.older.append,
            alarm=lambda name, _code, text: self.alarms.update({name: text}),
            clear=lambda name: self.alarms.update() if self.alarms.pop(name, None) is None else None,
            also=lambda suffix, payload: self.also.append((suffix, payload)),
        )
        self.outbox = Outbox(self.thread, publish=self.floor.publish, ready=self.floor.ready, clock=clock)
        self.say_state()
        last = journal.last_coups(1)
        if last:
            self.floor.tell_last(last[-1])
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self.floor.run()), loop.create_task(self.outbox.run())]
        try:
            yield self
            for task in tasks:
                assert not task.done(), task.exception()
            if leave == "stop":
                await self.floor.stop()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if leave == "stop":
                await self.thread.close()
            else:
                await self.thread.call(journal.abandon)
                self.thread._pool.shutdown()

    async def execute(self, command: Authorised) -> wire.Reply:
        self.obeyed.append(command)
        return wire.Reply(id=None, ok=True, code="ok", text="fait")

    def health(self) -> wire.Health:
        now = self.clock.mono_ns()
        return wire.Health(
            at=self.clock.utc(now), at_ns=now, clock_synchronised=True, table="demo/t-1", boot=self.boot,
            epoch=self.scribe.epoch, version="1", uptime_s=0, maintenance=False, devices={}, tasks={}, loop_lag_ms=0,
            unsent=self.outbox.unsent(), oldest_unsent_ms=self.outbox.oldest_unsent_ms(), last_result=None,
            command_path=self.floor.command_path, mqtt=self.floor.health(), journal={}, disk={}, clock={}, cpu={},
            statistics=wire.Statistics(wheel="", since=None, level="ok", series={}),
        )  # fmt: skip

    def say_state(self) -> None:
        message = table_state(
            TableState(coup_no=self.coups), table="demo/t-1", game="roue_de_la_chance", epoch=self.scribe.epoch,
            seq=self.scribe.seq, alarms=[], nonce=self.authoriser.nonce, maintenance=False, clock=self.clock,
        )  # fmt: skip
        self.floor.tell_state(wire.encode(message))

    async def coup(self) -> None:
        """A finished coup: committed, then told."""
        self.coups += 1
        ended = CoupEnded(
            coup=self.coups, partie=1, seance=1, kind="first", status=Status.VALID, reasons=(),
            outcome={"colour": "vert"}, times={"ended": self.clock.mono_ns()}, sources={"wheel": "vert"},
        )  # fmt: skip
        said = Announce(code="resultat", text="Vert")
        fact = Announced(at_ns=self.clock.mono_ns(), source="command", code="x")
        state = TableState(seance=1, partie=1, coup_no=self.coups)
        self.scribe.step(fact, [ended, said], state)
        batch = self.scribe.batch(state, {})
        await self.thread.commit(batch)
        self.outbox.added(batch.messages)
        self.floor.tell_last(batch.results[-1].payload)
        self.say_state()

    async def until(self, condition: Callable[[], object], what: str = "condition") -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():  # noqa: ASYNC110  # the condition is the caller's
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{what} did not come; {self.alarms} {self.floor.health()}") from None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with running(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def proxy(broker: Mosquitto) -> Iterator[Proxy]:
    with Proxy(broker.port) as proxy:
        yield proxy


def booked(consumer: Consumer) -> list[int]:
    """The coups as a consumer books them: once per id, in order of arrival."""
    seen: dict[str, bytes] = {}
    for message in consumer.of("result"):
        assert seen.setdefault(message.body["id"], message.payload) == message.payload
    return [json.loads(payload)["coup"] for payload in seen.values()]


async def kept(broker: Mosquitto, names: Set[str] = frozenset({"status", "state", "health"})) -> dict[str, Any]:
    """What a fresh subscriber finds: the retained values by address, once these stand; till then they come live."""
    found: dict[str, Any] = {}
    while not set(found) >= names:
        async with Consumer(broker.port, BASE) as fresh:
            await fresh.until(lambda: {m.topic.removeprefix(f"{BASE}/") for m in fresh.seen} >= names)
            found = {m.topic.removeprefix(f"{BASE}/"): m.body for m in fresh.seen if m.retain}
            assert len(found) == len([m for m in fresh.seen if m.retain])
    return found


async def test_what_stands_is_said_in_order_and_what_happened_follows(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with Consumer(broker.port, BASE) as floor:
        async with house.open():
            await house.coup()
            await floor.until(lambda: floor.of("result"), "result")
            await floor.until(lambda: floor.of("event"), "event")
            await floor.until(lambda: floor.of("health"), "health")
        topics = [m.topic.removeprefix(f"{BASE}/") for m in floor.seen]
        assert topics[0] == "status"
        assert topics.index("state") < topics.index("result")
        assert floor.of("result/last")[-1].payload == floor.of("result")[0].payload
        assert first_fault([m.payload for m in floor.of("result")], KEY.public) == ""
        assert [m.body["kind"] for m in floor.of("event")] == ["annonce"]
        assert {suffix for suffix, _ in house.also} == {"state", "result/last", "health"}


async def test_case_01_nothing_that_is_sent_to_a_command_topic_stops_the_floor(
    broker: Mosquitto, tmp_path: Path
) -> None:
    house = House(tmp_path, broker.port)
    rubbish = (b"{", b"\xff\xfe", b"x" * 900_000, b'{"cmd": {"id": 1, "name": []}}', b"")
    async with house.open(), Consumer(broker.port, BASE, ("reply/#",)) as floor:
        await house.floor.ready()
        for name in COMMANDS:
            for payload in rubbish:
                await floor.publish(f"{BASE}/cmd/{name}", payload)
        await house.until(lambda: len(house.heard) >= BURST, "records")
        assert {heard.code for heard in house.heard} == {"malformed"}
        await floor.publish(f"{BASE}/cmd/open", COMITE.envelope("open", id="good"))
        await floor.until(lambda: "good" in [m.body["id"] for m in floor.of("reply/open")], "the next good command")
        assert [m.body["code"] for m in floor.of("reply/open")] == ["malformed"] * len(rubbish) + ["ok"]
        assert house.floor.health()["connects"] == 1


async def test_case_02_the_order_holds_around_a_cut_with_slow_replies(
    broker: Mosquitto, proxy: Proxy, tmp_path: Path
) -> None:
    house = House(tmp_path, proxy.port)
    async with Consumer(broker.port, BASE, ("result",)) as floor, house.open():
        proxy.delay_replies_s = 0.05
        for number in range(30):
            await house.coup()
            if number == 10:
                await floor.until(lambda: len(booked(floor)) >= 3, "first results")
                proxy.hold_replies = True
            if number == 20:
                proxy.cut()
                proxy.hold_replies = False
        await floor.until(lambda: len(booked(floor)) == 30, "all results")
        assert booked(floor) == list(range(1, 31))
        assert first_fault([m.payload for m in floor.of("result")], KEY.public) == ""


async def test_case_03_a_death_before_the_mark_loses_nothing(broker: Mosquitto, proxy: Proxy, tmp_path: Path) -> None:
    proxy.refuse = True
    house = House(tmp_path, proxy.port)
    async with Consumer(broker.port, BASE, ("result",)) as floor:
        async with house.open(leave="die"):
            for _ in range(50):
                await house.coup()
        assert floor.of("result") == []
        proxy.refuse = False
        async with house.open(leave="die"):
            await floor.until(lambda: len(booked(floor)) >= 20, "some")
        async with house.open():
            await floor.until(lambda: len(booked(floor)) == 50, "all results")
            await house.until(lambda: house.outbox.unsent() == 0, "the mark")
        assert booked(floor) == list(range(1, 51))
        assert len(floor.of("result")) <= 51, "only the one in doubt may come twice"


async def test_case_04_a_redelivery_is_the_same_message_again(broker: Mosquitto, proxy: Proxy, tmp_path: Path) -> None:
    house = House(tmp_path, proxy.port)
    async with Consumer(broker.port, BASE, ("result",)) as floor, house.open():
        await asyncio.wait_for(house.floor.ready(), DEADLINE_S)  # noqa: TID251  # nothing cancels a test
        proxy.hold_replies = True
        for _ in range(3):
            await house.coup()
        await floor.until(lambda: floor.of("result"), "the one whose acknowledgement is held")
        proxy.cut()
        proxy.hold_replies = False
        await floor.until(lambda: len(booked(floor)) == 3, "all results")
        assert booked(floor) == [1, 2, 3]
        assert [m.body["coup"] for m in floor.of("result")] == [1, 1, 2, 3]


async def test_case_07_commands_work_after_each_cut_and_a_restart(
    broker: Mosquitto, proxy: Proxy, tmp_path: Path
) -> None:
    house = House(tmp_path, proxy.port)
    async with house.open():
        for turn in range(4):
            await house.until(lambda: house.floor.command_path == "verified", "command path")
            async with Consumer(broker.port, BASE, ("reply/#",)) as floor:
                await floor.publish(f"{BASE}/cmd/open", COMITE.envelope("open"))
                await floor.until(lambda floor=floor: floor.last("reply/open"), "reply")  # type: ignore[misc]
                assert floor.last("reply/open")["code"] == "ok"
            if turn == 2:
                broker.stop()
                await house.until(lambda: house.floor.command_path == "untested", "loss")
                broker.start()
            else:
                proxy.cut()
                await house.until(lambda: house.floor.command_path == "untested", "loss")
        assert len(house.obeyed) == 4


async def test_case_23_only_the_newest_state_and_no_old_sample_goes_out_after_an_outage(
    broker: Mosquitto, proxy: Proxy, tmp_path: Path
) -> None:
    proxy.refuse = True
    house = House(tmp_path, proxy.port)
    async with Consumer(broker.port, BASE) as floor, house.open():
        for house.coups in range(1, 101):
            house.say_state()
        await house.until(lambda: "health" in dict(house.also), "start")
        assert house.floor.sample("wheel", lambda: {"speed": 1}, for_s=0.5, every_ms=100)
        await house.until(house.floor._samples["wheel"].done, "end of the samples")
        assert "diag/wheel" in dict(house.also), "local watchers have them"
        proxy.refuse = False
        await floor.until(lambda: floor.of("state"), "state")
        await house.until(lambda: house.floor.command_path == "verified", "command path")
        assert [m.body["coup"] for m in floor.of("state")] == [100]
        assert floor.of("diag/wheel") == []


async def test_samples_end_by_themselves_and_a_new_request_replaces_the_old(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with Consumer(broker.port, BASE, ("diag/+",)) as floor, house.open():
        await house.floor.ready()
        assert house.floor.sample("wheel", lambda: {"of": "first"}, for_s=300, every_ms=100)
        await floor.until(lambda: floor.last("diag/wheel"), "sample")
        assert house.floor.sample("wheel", lambda: {"of": "second"}, for_s=1, every_ms=100)
        await floor.until(lambda: floor.last("diag/wheel")["sample"] == {"of": "second"}, "second request")
        running = house.floor._samples["wheel"]
        await house.until(running.done, "end of the samples")
        assert len(floor.of("diag/wheel")) <= 25


ACL = "user table\ntopic readwrite casino/demo/t-1/{rights}\nuser floor\ntopic readwrite casino/#\n"
TOPICS = ("status", "state", "result", "result/last", "event", "health", "settlement/+", "cmd/+", "reply/+", "diag/+")


def without(*refused: str) -> str:
    """Rights by which the table may say everything but this."""
    may = "".join(f"topic readwrite {BASE}/{suffix}\n" for suffix in TOPICS if suffix not in refused)
    return f"user table\n{may}user floor\ntopic readwrite casino/#\ntopic readwrite floor/#\n"


WITHOUT_COMMANDS = "user table\n" + "".join(
    f"topic readwrite {BASE}/{suffix}\n" for suffix in ("status", "state", "result", "result/last", "event", "health")
) + "user floor\ntopic readwrite casino/#\n"  # fmt: skip


@contextlib.asynccontextmanager
async def refusing(folder: Path, suffix: str) -> AsyncIterator[tuple[Mosquitto, House, Consumer]]:
    """A table with three coups that may say everything but this, and somebody of the floor."""
    with running(folder / "broker", acl=without(suffix), passwords=SECRET) as broker:
        house = House(folder, broker.port, username="table")
        async with (
            Consumer(broker.port, BASE, ("result", "event"), username="floor", password=SECRET["floor"]) as floor,
            house.open(),
        ):
            for _ in range(3):
                await house.coup()
            yield broker, house, floor


async def test_case_30_a_refused_result_stays_unsent_and_flows_once_the_rights_are_mended(tmp_path: Path) -> None:
    async with refusing(tmp_path, "result") as (broker, house, floor):
        await house.until(lambda: "mqtt:publish:result" in house.alarms, "alarm")
        assert f"{BASE}/result" in house.alarms["mqtt:publish:result"]
        assert "Not authorized (135)" in house.alarms["mqtt:publish:result"]
        assert house.floor.health()["refused_topics"] == "result"
        await house.until(lambda: house.outbox.unsent() == 3, "the events")
        await floor.until(lambda: len(floor.of("event")) == 3, "events, which the broker takes")
        assert floor.of("result") == []
        broker.set_acl(ACL.format(rights="#"))
        broker.reload()
        await floor.until(lambda: len(booked(floor)) == 3, "results")
        await house.until(lambda: house.outbox.unsent() == 0, "marks")
        assert "mqtt:publish:result" not in house.alarms
        assert booked(floor) == [1, 2, 3]


async def test_case_30_a_refused_presence_is_told_and_said_once_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor_module, "REFUSED_S", 0.2)
    with running(tmp_path / "broker", acl=ACL.format(rights="cmd/#"), passwords=SECRET) as broker:
        house = House(tmp_path, broker.port, username="table")
        async with (
            Consumer(broker.port, BASE, username="floor", password=SECRET["floor"]) as floor,
            house.open(),
        ):
            standing = {"mqtt:publish:status", "mqtt:publish:state", "mqtt:publish:health"}
            await house.until(lambda: standing <= set(house.alarms), "alarms")
            broker.set_acl(ACL.format(rights="#"))
            broker.reload()
            await floor.until(lambda: floor.last("status") and floor.last("state"), "what stands")
            await house.until(lambda: not house.alarms, "end of the alarms")


async def test_case_30_a_refused_event_holds_up_no_result(tmp_path: Path) -> None:
    async with refusing(tmp_path, "event") as (broker, house, floor):
        await floor.until(lambda: booked(floor) == [1, 2, 3], "results")
        await house.until(lambda: "mqtt:publish:event" in house.alarms, "alarm")
        await house.until(lambda: house.outbox.unsent() == 3, "marks")
        broker.set_acl(ACL.format(rights="#"))
        broker.reload()
        await floor.until(lambda: len(floor.of("event")) == 3, "events")
        seqs = [message.body["seq"] for message in floor.of("event")]
        assert seqs == sorted(set(seqs))
        await house.until(lambda: not house.alarms, "end of the alarm")


async def test_case_30_a_refused_reply_is_told_and_where_the_asker_wants_it_is_tried_first(tmp_path: Path) -> None:
    with running(tmp_path / "broker", acl=without("reply/+"), passwords=SECRET) as broker:
        house = House(tmp_path, broker.port, username="table")
        async with (
            Consumer(broker.port, BASE, ("reply/+",), username="floor", password=SECRET["floor"]) as floor,
            house.open(),
        ):
            await house.floor.ready()
            for asked in ("open", "dance"):
                await floor.publish(f"{BASE}/cmd/{asked}", b"{")
            await house.until(lambda: "mqtt:publish:reply" in house.alarms, "alarm")
            assert f"{BASE}/reply/" in house.alarms["mqtt:publish:reply"]
            assert [name for name in house.alarms if "publish" in name] == ["mqtt:publish:reply"]
            assert house.floor.health()["refused_topics"] == "reply"
            broker.set_acl(without())
            broker.reload()
            await floor.publish(f"{BASE}/cmd/open", b"{", respond="floor/not-for-the-table")
            await floor.until(lambda: floor.of("reply/open"), "the reply, where the table may speak")
            await house.until(lambda: not house.alarms, "end of the alarm")


async def test_case_31_a_command_path_that_is_granted_and_dead_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_path, "PROBE_WAIT_S", 0.2)
    with running(tmp_path / "broker", acl=WITHOUT_COMMANDS, passwords=SECRET) as broker:
        house = House(tmp_path, broker.port, username="table")
        async with house.open():
            await house.until(lambda: house.floor.command_path == "not_verified", "verdict")
            assert f"{BASE}/cmd/#" in house.alarms["mqtt:command_path"]
            assert json.loads(wire.encode(house.health()))["command_path"] == "not_verified"
            broker.set_acl(ACL.format(rights="#"))
            broker.reload()
            await house.until(lambda: house.floor.command_path == "verified", "verdict")
            assert "mqtt:command_path" not in house.alarms
            assert house.heard == [], "a probe is no command"


async def test_case_32_with_a_twin_about_nothing_is_lost(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "REFUSED_S", 2.0)
    house = House(tmp_path, broker.port)
    async with Consumer(broker.port, BASE, ("result",)) as floor, house.open():
        await house.floor.ready()
        async with Consumer(broker.port, BASE, (), client_id="t-1"):
            await house.until(lambda: "mqtt:client_id" in house.alarms, "alarm")
            for _ in range(5):
                await house.coup()
        await floor.until(lambda: len(booked(floor)) == 5, "results")
        assert booked(floor) == [1, 2, 3, 4, 5]
        await house.until(lambda: "mqtt:client_id" not in house.alarms, "end of the alarm")


async def test_case_33_a_late_will_does_not_leave_a_live_table_offline(
    broker: Mosquitto, proxy: Proxy, tmp_path: Path
) -> None:
    house = House(tmp_path, proxy.port)
    async with Consumer(broker.port, BASE, ("status",)) as floor, house.open():
        await house.floor.ready()
        proxy.freeze()  # half-open: the broker still believes in the old connection
        await house.coup()
        await house.until(lambda: house.floor.health()["connects"] == 2, "second connection")
        await house.floor.ready()
        await floor.until(lambda: floor.last("status")["reason"] == "reconnected", "presence")
        await floor.publish(f"{BASE}/status", house.floor._presence("offline", "connection_lost"), retain=True)
        await house.until(lambda: house.floor.counters["presence_corrected"] == 1, "correction")
        await floor.until(lambda: floor.last("status")["state"] == "online", "online again")
        assert (await kept(broker))["status"]["boot"] == house.boot

        stale = wire.Presence(state="offline", boot="dead", epoch="e", version="1", reason="connection_lost")
        await floor.publish(f"{BASE}/status", wire.encode(stale), retain=True)
        await house.until(lambda: house.floor.counters["presence_corrected"] == 2, "correction")
        await floor.until(lambda: floor.last("status")["state"] == "online", "online again")
        await floor.publish(f"{BASE}/status", b"", retain=True)
        floor.problems.clear()  # an emptied topic is no message of ours
        await floor.until(lambda: floor.seen[-1].payload and floor.last("status")["state"] == "online", "online again")
        floor.problems.clear()


async def test_case_32_another_controller_in_our_name_is_an_alarm(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with Consumer(broker.port, BASE, ("status",)) as floor, house.open():
        await house.floor.ready()
        other = wire.Presence(state="online", boot="other", epoch="e", version="1", reason="started")
        await floor.publish(f"{BASE}/status", wire.encode(other), retain=True)
        await house.until(lambda: "mqtt:double" in house.alarms, "alarm")
        assert "other" in house.alarms["mqtt:double"]


async def test_case_34_35_birth_will_and_goodbye_have_one_shape(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with Consumer(broker.port, BASE, ("status",)) as floor:
        async with house.open():
            await house.floor.ready()
            assert (await kept(broker))["status"]["state"] == "online"
        async with house.open(leave="die"):
            await house.floor.ready()
        await floor.until(lambda: floor.last("status")["reason"] == "connection_lost", "will")
        said = [(m.body["state"], m.body["reason"]) for m in floor.of("status")]
        assert said == [
            ("online", "started"),
            ("offline", "stopped"),
            ("online", "started"),
            ("offline", "connection_lost"),
        ]
        assert {m.body["boot"] for m in floor.of("status")} == {house.boot}
    assert (await kept(broker))["status"]["state"] == "offline"


async def test_case_34_a_stop_without_broker_ends(tmp_path: Path) -> None:
    with Proxy(1) as nowhere:
        nowhere.silent = True
        async with House(tmp_path, nowhere.port).open():
            pass


async def test_case_40_no_late_command_acts_and_each_is_told_why(
    broker: Mosquitto, proxy: Proxy, tmp_path: Path
) -> None:
    house = House(tmp_path, proxy.port)
    async with house.open(), Consumer(broker.port, BASE, ("reply/#",)) as floor:
        await house.until(lambda: house.floor.command_path == "verified", "command path")
        proxy.refuse = True
        proxy.cut()
        await house.until(lambda: house.floor.command_path == "untested", "outage")
        late = COMITE.envelope("close", id="late", issued_at=seconds_ago(10), valid_s=5)
        fresh = COMITE.envelope("interrupt", id="fresh")
        await floor.publish(f"{BASE}/cmd/close", late)
        await floor.publish(f"{BASE}/cmd/interrupt", fresh)
        proxy.refuse = False
        await floor.until(
            lambda: floor.last("reply/close") and floor.last("reply/interrupt"), "replies after the outage"
        )
        future = COMITE.envelope("resume", id="future", issued_at=seconds_ago(-3600))
        await floor.publish(f"{BASE}/cmd/resume", future)
        await floor.publish(f"{BASE}/cmd/interrupt", fresh)
        await floor.until(lambda: len(floor.of("reply/interrupt")) == 2 and floor.last("reply/resume"), "replies")
        assert [command.id for command in house.obeyed] == ["fresh"]
    async with Consumer(broker.port, BASE, ("reply/#",)) as floor:
        await floor.publish(f"{BASE}/cmd/open", COMITE.envelope("open", id="kept"), retain=True)
        broker.stop()  # a broker that has forgotten our session sends what it kept
        broker.start()
    async with Consumer(broker.port, BASE, ("reply/#",)) as again:
        await again.publish(f"{BASE}/cmd/open", COMITE.envelope("open", id="kept"), retain=True)
        async with house.open():
            await again.until(lambda: again.last("reply/open"), "reply")
            await again.publish(f"{BASE}/cmd/open", COMITE.envelope("open", id="live"), retain=True)
            await again.publish(f"{BASE}/cmd/open", b"", retain=True)
            await again.until(lambda: len(again.of("reply/open")) == 3, "reply")
    codes = {(heard.id, heard.code) for heard in house.heard}
    assert codes == {
        ("late", "stale"), ("fresh", "ok"), ("fresh", "repeated"), ("future", "stale"), ("kept", "retained"),
        ("live", "retained"), (None, "retained"),
    }  # fmt: skip
    assert [command.id for command in house.obeyed] == ["fresh"]


async def test_a_reply_goes_where_it_is_asked_for_with_its_correlation(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with (
        house.open(),
        Consumer(broker.port, BASE) as floor,
        Consumer(broker.port, "clients/desk", ("#",)) as desk,
    ):
        await house.floor.ready()
        for respond in (f"{BASE}/reply/desk-7", "clients/desk/answers"):
            await floor.publish(f"{BASE}/cmd/open", COMITE.envelope("open"), respond=respond, correlation=b"c\x00")
        await desk.until(lambda: desk.of("answers"), "reply elsewhere")
        await floor.until(lambda: floor.of("reply/desk-7"), "reply")
        desk.problems.clear()  # not an address of the contract
        assert [m.correlation for m in (*floor.of("reply/desk-7"), *desk.of("answers"))] == [b"c\x00", b"c\x00"]
        assert floor.of("reply/open") == []


@pytest.mark.parametrize("respond", [f"{BASE}/result", "casino/demo/t-2/cmd/open", "$SYS/x", f"{BASE}/status"])
async def test_a_response_topic_cannot_make_us_speak_as_a_table(
    broker: Mosquitto, tmp_path: Path, respond: str
) -> None:
    house = House(tmp_path, broker.port)
    async with house.open(), Consumer(broker.port, BASE, ("reply/#", "result", "status")) as floor:
        await house.floor.ready()
        await floor.publish(f"{BASE}/cmd/open", CROUPIER.envelope("open"), respond=respond)
        await floor.until(lambda: floor.of("reply/open"), "reply")
        assert floor.last("reply/open")["code"] == "unauthorised"
        assert floor.of("result") == []


async def test_case_44_a_fresh_subscriber_gets_what_stands_and_nothing_that_happened(
    broker: Mosquitto, tmp_path: Path
) -> None:
    house = House(tmp_path, broker.port)
    async with house.open():
        await house.coup()
        await house.until(lambda: house.outbox.unsent() == 0, "sending")
        for _ in range(5):
            found = await kept(broker, STANDING)
            assert set(found) == STANDING
            assert found["result/last"]["coup"] == 1


async def test_case_46_everything_that_stands_is_said_again_after_a_broker_restart(
    broker: Mosquitto, tmp_path: Path
) -> None:
    house = House(tmp_path, broker.port)
    async with house.open():
        await house.coup()
        await house.until(lambda: house.outbox.unsent() == 0, "sending")
        for turn in range(3):
            broker.kill() if turn == 1 else broker.stop()
            await house.until(lambda: not house.floor.health()["connected"], "loss")
            broker.start()
            await house.floor.ready()
            found = await kept(broker, STANDING)
            assert set(found) == STANDING
            assert (found["status"]["state"], found["status"]["boot"]) == ("online", house.boot)
            assert found["result/last"]["coup"] == 1


async def test_case_48_a_broker_that_knows_more_than_the_journal_is_heard(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with house.open():
        await house.coup()
        await house.until(lambda: house.outbox.unsent() == 0, "sending")
    async with Consumer(broker.port, BASE, ("result/last", "status")) as floor:
        await floor.until(lambda: floor.last("result/last"), "the last result")
        newer = {**floor.last("result/last"), "seq": 10_000}
        newer["hash"] = result_hash(newer)
        newer["sig"] = KEY.sign(bytes.fromhex(newer["hash"]))
        payload = json.dumps(newer).encode()
        await floor.publish(f"{BASE}/result/last", payload, retain=True)
        async with house.open():
            await house.until(lambda: house.older, "the broker's word")
            assert house.older == [f"{house.scribe.epoch}/10000"]
            await house.floor.ready()
            assert floor.of("result/last")[-1].payload == payload, "never put an older one in its place"
            house.floor.change_epoch("another")
            await floor.until(lambda: floor.last("status")["epoch"] == "another", "the new epoch")
            assert floor.last("status")["state"] == "online"


async def test_what_another_key_has_signed_is_not_our_result(broker: Mosquitto, tmp_path: Path) -> None:
    house = House(tmp_path, broker.port)
    async with house.open():
        await house.coup()
        await house.until(lambda: house.outbox.unsent() == 0, "sending")
    async with Consumer(broker.port, BASE, ("result/last",)) as floor:
        true = await floor.until(lambda: floor.last("result/last"), "the last result")
        forged = {**true, "seq": 10_000}
        forged["hash"] = result_hash(forged)
        forged["sig"] = SigningKey(Ed25519PrivateKey.generate()).sign(bytes.fromhex(forged["hash"]))
        await floor.publish(f"{BASE}/result/last", json.dumps(forged).encode(), retain=True)
        async with house.open():
            await house.floor.ready()
            await floor.until(lambda: floor.last("result/last") == true, "the true one in its place")
            assert house.older == []


@pytest.mark.parametrize(
    "strange", [b"{", b"[]", b'{"epoch": 1}', b'{"epoch": "other", "seq": 99999}', b"[" * 100_000, b'{"seq": 1e999}']
)
async def test_what_else_may_stand_on_the_broker_is_replaced(broker: Mosquitto, tmp_path: Path, strange: bytes) -> None:
    house = House(tmp_path, broker.port)
    async with Consumer(broker.port, BASE, ()) as other:
        await other.publish(f"{BASE}/result/last", strange, retain=True)
    async with house.open():
        await house.coup()
        await house.floor.ready()
        await house.until(lambda: house.outbox.unsent() == 0, "sending")
        assert (await kept(broker, STANDING))["result/last"]["coup"] == 1
        assert house.older == []
