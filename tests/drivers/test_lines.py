"""The line port and the task of a chip, against a real Unix socket and against a kernel chip that is not there."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, Literal

import gpiod
import pytest
from gpiod.line import Value

from drivers.buttons.decoder import Contact, Options
from drivers.ports.chip import EdgeDevice, LineChip
from drivers.ports.lines import (
    EVENT,
    FALLING,
    RISING,
    VALUES,
    LineError,
    LinePort,
    OutputSpec,
    SocketPort,
    events_in,
    open_port,
    why_not,
)
from rules.facts import Announced, DeviceBack, DeviceLost, Fact
from tests.drivers.documents import examples, fields

MS = 1_000_000
RNVP = "button.rien_ne_va_plus"


@dataclass(frozen=True)
class Line:
    offset: int
    active_low: bool = False
    bias: Literal["as_is", "pull_up", "pull_down", "disabled"] = "as_is"


INPUTS = {RNVP: Line(23), "button.coup_nul": Line(24)}
LAMPS = {"buzzer": OutputSpec(13), "sens": OutputSpec(6)}


def record(at_ns: int, level: int, offset: int, seqno: int, line_seqno: int) -> bytes:
    return EVENT.pack(at_ns, 1 if level else 2, offset, seqno, line_seqno)


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """The rig's end, before anybody connects."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(5)
        yield listener


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def write_for_ever(port: LinePort) -> None:
    while True:
        port.write({13: True})


class Chip:
    """A running chip task and what it told."""

    def __init__(self, path: Path) -> None:
        self.facts: list[Fact] = []
        self.told = asyncio.Event()
        devices = {
            role: EdgeDevice(Contact(role, Options()), {role: line}, contacts=True) for role, line in INPUTS.items()
        }
        self.chip = LineChip(str(path), devices, LAMPS, self.emit)

    async def emit(self, facts: list[Fact]) -> None:
        self.facts += facts
        self.told.set()

    async def until(self, kind: type[Fact], count: int = 1) -> None:
        """Wait for the fact that the test is about."""
        async with asyncio.timeout(10):
            while sum(isinstance(fact, kind) for fact in self.facts) < count:
                self.told.clear()
                await self.told.wait()


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Chip]:
    chip = Chip(path)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(chip.chip.run())
        yield chip
        task.cancel()


async def accept(listener: socket.socket) -> socket.socket:
    peer, _ = await asyncio.to_thread(listener.accept)
    peer.settimeout(5)
    return peer


async def outputs(peer: socket.socket) -> tuple[int, int]:
    bits, mask = VALUES.unpack(await asyncio.to_thread(peer.recv, VALUES.size, socket.MSG_WAITALL))
    return bits, mask


def test_the_document_says_what_the_port_reads() -> None:
    told = [example for example in examples("ports") if example.direction == "<"]
    events = [tuple(map(int, fields(example.meaning).values())) for example in told]
    records = [example.raw + bytes(24) for example in told]
    assert [events_in(record) for record in records] == [[event] for event in events]
    late, early = events[6], events[5]
    assert late < early
    assert events_in(b"".join(records)) == [*events[:5], late, early, *events[7:]]


def test_the_document_says_what_the_port_writes() -> None:
    port_end, rig_end = socket.socketpair()
    with rig_end:
        port = SocketPort("chip", port_end)
        for example in examples("ports"):
            if example.direction == ">":
                port.write({int(line): on == "1" for line, on in fields(example.meaning).items()})
                assert rig_end.recv(64) == example.raw, example.meaning
        port.close()


async def test_edges_reach_the_device_whose_line_it_is(tmp_path: Path) -> None:
    with listening(tmp_path / "chip") as listener:
        async with running(tmp_path / "chip") as chip:
            with await accept(listener) as peer:
                assert await outputs(peer) == (0, 1 << 13 | 1 << 6)  # every lamp is put where it must be
                now = 5_000 * MS
                whole = record(now, 1, 23, 1, 1) + record(now + MS, 1, 24, 2, 1) + record(now, 1, 9, 3, 1)
                peer.sendall(whole[:50])
                peer.sendall(whole[50:])
                await chip.until(Announced, 2)
                assert [fact for fact in chip.facts if isinstance(fact, Announced)] == [
                    Announced(at_ns=now, source=RNVP, code="rien_ne_va_plus"),
                    Announced(at_ns=now + MS, source="button.coup_nul", code="coup_nul"),
                ]
                assert chip.chip.health()["foreign"] == 1
                assert chip.chip.health()["state"] == "ok"


async def test_records_in_the_wrong_order_are_put_right(tmp_path: Path) -> None:
    with listening(tmp_path / "chip") as listener:
        port = await open_port(str(tmp_path / "chip"), INPUTS, LAMPS)
        with await accept(listener) as peer:
            peer.sendall(record(20, 0, 23, 2, 2) + record(10, 1, 23, 1, 1) + record(30, 1, 24, 3, 1)[:20])
            await wait_readable(port.fd)
            assert [(seqno, kind) for _, kind, _, seqno, _ in port.read()] == [(1, RISING), (2, FALLING)]
            assert port.read() == []
            peer.sendall(record(30, 1, 24, 3, 1)[20:])
            await wait_readable(port.fd)
            assert [offset for _, _, offset, _, _ in port.read()] == [24]
        await wait_readable(port.fd)
        with pytest.raises(LineError, match="the other end has closed"):
            port.read()
        port.close()


async def wait_readable(fd: int) -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().add_reader(fd, ready.set)
    async with asyncio.timeout(5):
        await ready.wait()
    asyncio.get_running_loop().remove_reader(fd)


async def test_a_lost_chip_is_told_once_and_comes_back_with_its_lamps(tmp_path: Path) -> None:
    with listening(tmp_path / "chip") as listener:
        async with running(tmp_path / "chip") as chip:
            with await accept(listener) as peer:
                await outputs(peer)
                chip.chip.set_output("buzzer", True)
                assert await outputs(peer) == (1 << 13, 1 << 13)
                fds = open_files()
            await chip.until(DeviceLost, 2)
            chip.chip.set_output("sens", True)  # nobody is there: kept
            with await accept(listener) as peer:
                assert await outputs(peer) == (1 << 13 | 1 << 6, 1 << 13 | 1 << 6)
                await chip.until(DeviceBack, 2)
                assert open_files() == fds
            lost = [fact for fact in chip.facts if isinstance(fact, DeviceLost)]
            assert [fact.device for fact in lost] == list(INPUTS)
            assert chip.chip.counts["opens"] == 2


async def test_an_absent_chip_is_waited_for(tmp_path: Path) -> None:
    async with running(tmp_path / "chip") as chip:
        await chip.until(DeviceLost, 2)
        assert "No such file" in chip.chip.why
        with listening(tmp_path / "chip") as listener, await accept(listener) as peer:
            await outputs(peer)
            await chip.until(DeviceBack, 2)


async def test_case_58_a_kernel_chip_is_never_replaced_by_another(tmp_path: Path) -> None:
    for path, said in (("/dev/gpiochip99", "there is no such chip"), (str(tmp_path / "none"), "No such file")):
        with pytest.raises(LineError, match=said) as caught:
            await open_port(path, INPUTS, LAMPS)
        assert path in str(caught.value)


def test_case_60_the_reason_is_in_words() -> None:
    def reason(number: int) -> str:
        return why_not(OSError(number, os.strerror(number)), "/dev/gpiochip99", [Line(5)])

    assert "in use" in reason(errno.EBUSY)
    assert "group gpio" in reason(errno.EACCES)
    assert reason(errno.EINVAL) == "Invalid argument"


async def test_a_peer_that_takes_no_output_is_a_lost_chip(tmp_path: Path) -> None:
    with listening(tmp_path / "chip") as listener:
        port = await open_port(str(tmp_path / "chip"), INPUTS, LAMPS)
        with await accept(listener), pytest.raises(LineError):
            write_for_ever(port)
        port.close()


async def test_an_output_that_cannot_be_switched_does_not_raise(tmp_path: Path) -> None:
    with listening(tmp_path / "chip") as listener:
        async with running(tmp_path / "chip") as chip:
            with await accept(listener) as peer:
                await outputs(peer)
            chip.chip.set_output("buzzer", True)
            with pytest.raises(KeyError):
                chip.chip.output("horn")
            assert chip.chip.output("buzzer")


# --- the kernel's side, with a chip of ours behind gpiod's own classes (the rig's VM has a real one) ---


class FakeRequest:
    """A line request whose descriptor is a pipe."""

    def __init__(self, offsets: list[int]) -> None:
        self.offsets = offsets
        self.fd, self.kernel = os.pipe()
        self.values: dict[int, Value] = dict.fromkeys(offsets, Value.INACTIVE)

    def get_values(self) -> list[Value]:
        return [self.values[offset] for offset in self.offsets]

    def set_values(self, values: dict[int, Value]) -> None:
        if self.kernel < 0:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        self.values |= values

    def unplug(self) -> None:
        os.close(self.kernel)
        self.kernel = -1

    def release(self) -> None:
        os.close(self.fd)
        if self.kernel >= 0:
            self.unplug()


class FakeChip:
    """The chip; `taken` lines belong to somebody else."""

    taken: ClassVar[dict[int, str]] = {}
    asked: ClassVar[list[tuple[dict[int, gpiod.LineSettings], str, int | None]]] = []
    requests: ClassVar[list[FakeRequest]] = []

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> FakeChip:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def get_info(self) -> SimpleNamespace:
        return SimpleNamespace(num_lines=58)

    def get_line_info(self, offset: int) -> SimpleNamespace:
        return SimpleNamespace(used=offset in self.taken, consumer=self.taken.get(offset, ""))

    def request_lines(
        self, config: dict[int, gpiod.LineSettings], consumer: str, event_buffer_size: int | None = None
    ) -> FakeRequest:
        if set(config) & set(self.taken):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        self.asked.append((config, consumer, event_buffer_size))
        self.requests.append(FakeRequest(list(config)))
        return self.requests[-1]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> type[FakeChip]:
    monkeypatch.setattr(gpiod, "Chip", FakeChip)
    monkeypatch.setattr(FakeChip, "taken", {})
    monkeypatch.setattr(FakeChip, "asked", [])
    monkeypatch.setattr(FakeChip, "requests", [])
    return FakeChip


async def test_all_inputs_are_one_request_as_the_encoder_needs_it(kernel: type[FakeChip]) -> None:
    """Field cases 52 and 66: room for a burst, and the monotonic clock."""
    port = await open_port("/dev/gpiochip0", {"wheel.a": Line(17), RNVP: Line(23, True, "pull_up")}, LAMPS)
    (inputs, consumer, buffer), (outputs, _, _) = kernel.asked
    assert (consumer, buffer) == ("table-controller", 1024)
    assert list(inputs) == [17, 23]
    assert list(outputs) == [13, 6]
    for settings in inputs.values():
        assert settings.edge_detection is gpiod.line.Edge.BOTH
        assert settings.event_clock is gpiod.line.Clock.MONOTONIC
        assert not settings.debounce_period
    assert inputs[23].active_low
    assert inputs[23].bias is gpiod.line.Bias.PULL_UP
    assert outputs[6].direction is gpiod.line.Direction.OUTPUT
    request, lamps = kernel.requests
    assert port.read() == []
    # The first is queued late and carries the number of its line's next edge: its time is right.
    os.write(request.kernel, record(20, 1, 23, 1, 1) + record(30, 0, 17, 3, 2) + record(10, 1, 17, 3, 1))
    assert [(at_ns, offset, kind) for at_ns, kind, offset, _, _ in port.read()] == [
        (10, 17, RISING),
        (20, 23, RISING),
        (30, 17, FALLING),
    ]
    request.values[23] = Value.ACTIVE
    assert port.levels() == {17: 0, 23: 1}
    port.write({6: True, 13: False})
    assert lamps.values == {6: Value.ACTIVE, 13: Value.INACTIVE}
    lamps.unplug()
    with pytest.raises(LineError, match="No such device"):
        port.write({6: False})
    port.close()


async def test_a_chip_with_only_outputs_has_nothing_to_read(kernel: type[FakeChip]) -> None:
    port = await open_port("/dev/gpiochip0", {}, LAMPS)
    assert (port.fd, port.read(), port.levels()) == (-1, [], {})
    port.close()
    assert len(kernel.requests) == 1


async def test_case_60_a_busy_line_is_named_with_its_owner(kernel: type[FakeChip]) -> None:
    kernel.taken[23] = "spi0 CS0"
    with pytest.raises(LineError, match=re.escape("/dev/gpiochip0: line 23 is in use by 'spi0 CS0'")):
        await open_port("/dev/gpiochip0", INPUTS, LAMPS)
    kernel.taken.clear()
    kernel.taken[13] = "other"
    with pytest.raises(LineError, match="line 13 is in use by 'other'"):
        await open_port("/dev/gpiochip0", INPUTS, LAMPS)
    assert not [request for request in kernel.requests if request.kernel >= 0]  # what was granted was given back


async def test_a_line_that_the_chip_does_not_have_is_named(kernel: type[FakeChip]) -> None:
    with pytest.raises(LineError, match=re.escape("there is no line 58, 99 (this chip has 0 to 57)")):
        await open_port("/dev/gpiochip0", {RNVP: Line(58)}, {"buzzer": OutputSpec(99)})
    assert kernel.requests == []
