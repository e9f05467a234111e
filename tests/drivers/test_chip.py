"""The task of a chip with real sockets: order, gathering, back-pressure, ticks, contacts that are asked for."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from drivers.base import Edge, EdgeDecoder
from drivers.buttons.decoder import Contact
from drivers.buttons.decoder import Options as ContactOptions
from drivers.encoder.decoder import Encoder
from drivers.encoder.options import Options
from drivers.feeder import Backoff, Feeder, readable
from drivers.ports import chip as chip_module
from drivers.ports.chip import GATHER_S, EdgeDevice, LineChip
from drivers.ports.lines import EVENT, RISING, Event, LinePort, LineSpec, OutputSpec, SocketPort
from rules.facts import Announced, DeviceLost, Fact, SpinSlowed, SpinStarted, SpinStopped
from tests.drivers.signals import SECOND, TURN, edges, launch

MS = 1_000_000
RNVP = "button.rien_ne_va_plus"
OFFSETS = {"wheel.a": 17, "wheel.b": 27, "wheel.index": 22, RNVP: 23}


@dataclass(frozen=True)
class Line:
    offset: int
    active_low: bool = False
    bias: Literal["as_is", "pull_up", "pull_down", "disabled"] = "as_is"


def records(found: Sequence[Edge]) -> bytes:
    return b"".join(
        EVENT.pack(edge.at_ns, 1 if edge.level else 2, OFFSETS[edge.line], n, edge.seq)
        for n, edge in enumerate(found, 1)
    )


@dataclass
class Inbox:
    """What was told; closed, it takes nothing."""

    facts: list[Fact] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    asked: bool = False
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def emit(self, facts: list[Fact]) -> None:
        self.asked = True
        await self.open.wait()
        self.facts += facts
        self.told.set()

    async def until(self, *kinds: type[Fact]) -> None:
        async with asyncio.timeout(20):
            while not {type(fact) for fact in self.facts} >= set(kinds):
                self.told.clear()
                await self.told.wait()


class Ear:
    """A tap that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def edges(self, role: str, edges: Sequence[Edge]) -> None:
        self.heard.append(f"edges {role} {len(edges)}")

    def received(self, role: str, data: bytes, at_ns: int) -> int:
        raise AssertionError(role)

    def ticked(self, role: str, now_ns: int) -> None:
        self.heard.append(f"tick {role}")

    def opened(self, role: str, at_ns: int) -> None:
        self.heard.append(f"opened {role}")

    def lost(self, role: str, at_ns: int, why: str) -> None:
        self.heard.append(f"lost {role} {why}")


class AskedPort(SocketPort):
    """A rig that can be asked for its levels, as the kernel can."""

    def __init__(self, connection: socket.socket, now: dict[int, int]) -> None:
        super().__init__("asked", connection)
        self.now = now

    def levels(self) -> Mapping[int, int]:
        return dict(self.now)


@asynccontextmanager
async def serving(chip: LineChip, port: LinePort, patch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    async def open_port(path: str, inputs: Mapping[str, LineSpec], outputs: Mapping[str, OutputSpec]) -> LinePort:
        return port

    patch.setattr(chip_module, "open_port", open_port)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(chip.serve_once())
        yield
        task.cancel()


@dataclass
class Ends:
    """Both ends of a chip's connection."""

    port: AskedPort
    peer: socket.socket
    levels: dict[int, int]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5)
    levels: dict[int, int] = {}
    with ours, theirs:
        yield Ends(AskedPort(ours, levels), theirs, levels)


async def happens(check: Callable[[], object]) -> None:
    """Wait until it is so; the chip's counters have no event of their own."""
    async with asyncio.timeout(20):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def encoder_chip(inbox: Inbox, tap: Ear | None = None) -> tuple[LineChip, Encoder]:
    wheel = Encoder("wheel", Options(counts_per_turn=TURN, cells=52))
    lines = {name: Line(offset) for name, offset in OFFSETS.items() if name.startswith("wheel")}
    return LineChip("pair", {"wheel": EdgeDevice(wheel, lines)}, {}, inbox.emit, tap), wheel


async def test_a_spin_comes_through_the_port(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it waits when the chip is opened: everything that came is read before anything is due."""
    inbox, tap = Inbox(), Ear()
    inbox.open.set()
    chip, wheel = encoder_chip(inbox, tap)
    found = edges(launch([(0.0, 0.5)], 3000), start_ns=time.monotonic_ns() - 60 * SECOND)
    ends.peer.sendall(records(found))
    async with serving(chip, ends.port, monkeypatch):
        await inbox.until(SpinStarted, SpinSlowed, SpinStopped)
        ends.peer.close()
        await inbox.until(DeviceLost)
    assert [type(fact).__name__ for fact in inbox.facts] == ["SpinStarted", "SpinSlowed", "SpinStopped", "DeviceLost"]
    assert chip.counts["edges"] == wheel.health()["edges"] == len(found)
    assert tap.heard[0] == "opened wheel"
    assert tap.heard[-1] == "lost wheel unplugged"
    assert "tick wheel" in tap.heard


class Stream(AskedPort):
    """An edge whenever it is looked at, each millisecond; once a moment without any, then a rest."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, {})
        self.looks, self.now_ns = 0, 10 * SECOND

    def monotonic_ns(self) -> int:
        return self.now_ns

    def read(self) -> list[Event]:
        self.looks += 1
        self.now_ns += {700: 100 * MS, 1000: 501 * MS}.get(self.looks, MS)
        return [] if self.looks in (700, 1000) else [(self.now_ns, RISING, 23, self.looks, self.looks)]


async def test_a_stream_is_read_at_once_at_first_and_in_the_end_each_5_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 edges a second must not cost 2,000 turns of the loop; how one begins must be known at once."""
    pauses: list[float] = []
    enough, sleep = asyncio.Event(), asyncio.sleep

    async def pause(delay: float) -> None:
        pauses.append(delay)
        if len(pauses) == 1200:
            enough.set()
        await sleep(0)

    inbox = Inbox()
    inbox.open.set()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")  # readable for ever
        port = Stream(ours)
        monkeypatch.setattr(chip_module, "time", port)
        monkeypatch.setattr(asyncio, "sleep", pause)
        async with serving(contact_chip(inbox), port, monkeypatch):
            async with asyncio.timeout(20):
                await enough.wait()
    assert pauses[0] == 0
    before, after = pauses[: pauses.index(0, 1)], pauses[pauses.index(0, 1) :]
    assert before == sorted(before)  # a moment without edges is no beginning
    assert before.index(GATHER_S) in (500, 501)
    assert after == sorted(after)  # a rest is one
    assert 0 < max(after) < GATHER_S


async def test_a_full_inbox_stops_the_reading(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox()
    chip, _ = encoder_chip(inbox)
    first = edges(launch([(0.0, 0.5)], 7200), start_ns=time.monotonic_ns() - 60 * SECOND)
    async with serving(chip, ends.port, monkeypatch):
        ends.peer.sendall(records(first[:800]))
        await happens(lambda: inbox.asked)  # the start is among them, and nobody takes it
        read = chip.counts["edges"]
        ends.peer.sendall(records(first[800:900]))
        await asyncio.sleep(0.05)
        assert chip.counts["edges"] == read <= 800
        inbox.open.set()
        await happens(lambda: chip.counts["edges"] == 900)
        await inbox.until(SpinStarted)
        ends.peer.close()
        await inbox.until(DeviceLost)


# --- contacts that are asked for (field case 55) ---


def settled(chip: LineChip) -> bool:
    """The contact has nothing pending but its own stuck time."""
    return bool(chip.devices[RNVP].sample()["settled"] == 0)


def contact_chip(inbox: Inbox) -> LineChip:
    contact = Contact(RNVP, ContactOptions())
    return LineChip("asked", {RNVP: EdgeDevice(contact, {RNVP: Line(23)}, contacts=True)}, {}, inbox.emit)


async def test_case_55_a_lost_release_is_found(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chip_module, "CHECK_NS", 50 * MS)
    inbox = Inbox()
    inbox.open.set()
    chip = contact_chip(inbox)
    ends.levels[23] = 0
    async with serving(chip, ends.port, monkeypatch):
        await happens(lambda: chip.counts["opens"])
        ends.levels[23] = 1
        ends.peer.sendall(records([Edge(RNVP, 1, time.monotonic_ns(), 1)]))
        await happens(lambda: chip.counts["edges"])
        await inbox.until(Announced)
        made_up = chip.counts["made_up"]
        ends.levels[23] = 0  # the edge of the release was lost
        await happens(lambda: chip.counts["made_up"] > made_up)
        await happens(lambda: settled(chip))
        inbox.facts.clear()
        ends.levels[23] = 1
        ends.peer.sendall(records([Edge(RNVP, 1, time.monotonic_ns(), 3)]))
        await inbox.until(Announced)
        ends.peer.close()
        await inbox.until(DeviceLost)


async def test_a_button_that_was_down_when_the_chip_opened_was_not_pressed(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox()
    inbox.open.set()
    chip = contact_chip(inbox)
    ends.levels[23] = 1
    async with serving(chip, ends.port, monkeypatch):
        await happens(lambda: chip.counts["made_up"] == 1)
        now = time.monotonic_ns()
        pressed = Edge(RNVP, 1, now + 200 * MS, 2)
        ends.peer.sendall(records([Edge(RNVP, 0, now + 100 * MS, 1), pressed]))
        await inbox.until(Announced)
        ends.peer.close()
        await inbox.until(DeviceLost)
    assert [fact for fact in inbox.facts if isinstance(fact, Announced)] == [
        Announced(at_ns=pressed.at_ns, source=RNVP, code="rien_ne_va_plus")
    ]


# --- the small pieces ---


async def test_a_feeder_tells_the_recorder_before_the_decoder() -> None:
    order: list[str] = []

    class Listening(Ear):
        def edges(self, role: str, edges: Sequence[Edge]) -> None:
            order.append("recorder")

        def ticked(self, role: str, now_ns: int) -> None:
            order.append("recorder")

    class Decoding(Contact):
        def feed(self, edges: Sequence[Edge]) -> list[Fact]:
            order.append("decoder")
            return super().feed(edges)

        def tick(self, now_ns: int) -> list[Fact]:
            order.append("decoder")
            return super().tick(now_ns)

    async def emit(facts: list[Fact]) -> None:
        order.append("inbox")

    decoder: EdgeDecoder = Decoding("button.x", ContactOptions())
    feeder = Feeder("button.x", decoder, emit, Listening())
    await feeder.tick(10**9)  # nothing is due: nobody is told
    assert order == []
    await feeder.edges([Edge("button.x", 1, 10**9)])
    assert order == ["recorder", "decoder", "decoder"]  # a decoder ticks itself before each edge
    order.clear()
    await feeder.tick(2 * 10**9)
    assert order == ["recorder", "decoder", "inbox"]


async def test_readable_waits_for_bytes_or_for_its_time() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert await readable(ours.fileno(), time.monotonic_ns() + 5 * MS) is False
        assert await readable(ours.fileno(), 0) is False
        theirs.send(b"x")
        assert await readable(ours.fileno()) is True
        assert await readable(ours.fileno(), time.monotonic_ns() + 3600 * SECOND) is True
        assert ours.recv(1) == b"x"


def test_the_pauses_between_attempts_grow_to_five_seconds() -> None:
    backoff = Backoff()
    for ceiling in (0.5, 1.0, 2.0, 4.0, 5.0, 5.0):
        assert 0.05 <= backoff.next_s() <= ceiling
    backoff.reset()
    assert backoff.next_s() <= 0.5


async def test_a_chip_without_inputs_still_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Outputs:
        fd = -1
        written: list[Mapping[int, bool]] = []  # noqa: RUF012 - one test, one port

        def read(self) -> list[object]:
            return []

        def levels(self) -> Mapping[int, int]:
            return {}

        def write(self, values: Mapping[int, bool]) -> None:
            self.written.append(dict(values))

        def close(self) -> None:
            self.written.append({})

    port = Outputs()
    chip = LineChip("outputs", {}, {"sens": OutputSpec(6)}, Inbox().emit)
    async with serving(chip, port, monkeypatch):  # type: ignore[arg-type]
        await happens(lambda: port.written)
        chip.set_output("sens", True)
    assert port.written == [{6: False}, {6: True}, {6: False}, {}]  # dark at the end, then closed
