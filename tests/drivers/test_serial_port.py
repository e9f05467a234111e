"""The serial port and its task on real pseudo-terminals: unplugged, stuck, shared, swapped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import gc
import os
import select
import termios
import time
from binascii import crc_hqx
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import serial

from drivers.base import Edge
from drivers.console.decoder import Console
from drivers.console.decoder import Options as ConsoleOptions
from drivers.ports.serial import OUTPUT_MAX, SETTLE_TRIES, Port, PortError, SerialDevice, users_of
from drivers.ports.udev import Hotplug
from drivers.ports.udev import Tty as FoundTty
from drivers.slingshot2 import codes
from drivers.slingshot2.decoder import Options as WheelOptions
from drivers.slingshot2.decoder import SlingShot2
from hil.tty import Tty
from rules.facts import Announced, DeviceBack, DeviceLost, Fact

ROLE = "wheel_sensor"
LINE = b"*X;6;001;  ;0;000;0\r\n"
DEADLINE_S = 20


def descriptors() -> int:
    gc.collect()  # what another test of this process left behind must not be closed between two counts
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition, with the test's deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the kernel
            await asyncio.sleep(0.01)


def frame(body: str) -> bytes:
    return b"$%s*%04X\r\n" % (body.encode(), crc_hqx(body.encode(), 0xFFFF))


def reached(device: SerialDevice, counter: str, least: int) -> bool:
    return int(device.health()[counter] or 0) >= least


def calm(device: SerialDevice, turns: int, begin: float) -> bool:
    """It woke up fewer than 25 times a second since then, a tenth of what costs a percent of a core."""
    return device.turns - turns <= 25 * (time.monotonic() - begin) + 3


class Recorder:
    """The inbox and the flight recorder of a test."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.heard: list[tuple[str, object]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def emit(self, facts: list[Fact]) -> None:
        await self.gate.wait()
        self.facts += facts

    def edges(self, role: str, edges: Sequence[Edge]) -> None:
        raise AssertionError(role)

    def received(self, role: str, data: bytes, at_ns: int) -> int:
        self.heard.append((role, data))
        return 0

    def ticked(self, role: str, now_ns: int) -> None:
        self.heard.append((role, "tick"))

    def opened(self, role: str, at_ns: int) -> None:
        self.heard.append((role, "opened"))

    def lost(self, role: str, at_ns: int, why: str) -> None:
        self.heard.append((role, why))

    def whys(self) -> list[str]:
        return [fact.why for fact in self.facts if isinstance(fact, DeviceLost)]

    def lost_times(self, times: int) -> bool:
        return len(self.whys()) == times

    def back(self) -> int:
        return sum(isinstance(fact, DeviceBack) for fact in self.facts)


class Rig:
    """A cable and the task at our end of it."""

    def __init__(self, folder: Path) -> None:
        self.tty = Tty(folder / "tty-wheel")
        self.seen = Recorder()
        self.tasks: list[asyncio.Task[Any]] = []
        self.ttys = [self.tty]

    def wheel(self, **how: Any) -> SerialDevice:
        decoder = how.pop("decoder", None) or SlingShot2(ROLE, WheelOptions(silence_ms=60_000))
        where = how or {"path": str(self.tty.path)}
        device = SerialDevice(ROLE, decoder, self.seen.emit, baud=9600, tap=self.seen, **where)
        self.start(device.run())
        return device

    def start(self, run: Any) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(run))

    async def received(self, length: int) -> bytes:
        """The next bytes that the daemon's end wrote."""
        got = bytearray()
        async with asyncio.timeout(DEADLINE_S):
            while len(got) < length:
                got += self.tty.receive()
                await asyncio.sleep(0.01)
        return bytes(got)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        results = await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()
        for tty in self.ttys:
            tty.unplug()
        for result in results:
            assert isinstance(result, asyncio.CancelledError), result


@pytest_asyncio.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    before = descriptors()
    made = Rig(tmp_path)
    try:
        yield made
    finally:
        await made.stop()
    assert descriptors() == before


# --- the task --------------------------------------------------------------------------------------------------------


async def test_bytes_arrive_stamped_and_commands_leave(rig: Rig) -> None:
    rig.tty.plug()
    before_ns = time.monotonic_ns()
    device = rig.wheel()
    await until(rig.tty.opened)
    rig.tty.send(LINE)
    await until(lambda: device.health()["frames"] == 1)
    stamp = device.health()["last_fact_ns"]
    assert isinstance(stamp, int)
    assert before_ns < stamp <= time.monotonic_ns()
    assert "*O" in device.command("settings", {})
    assert await rig.received(4) == b"*O\r\n"
    assert rig.seen.facts == []
    assert rig.seen.heard[:2] == [(ROLE, "opened"), (ROLE, LINE)]
    assert (device.health()["port"], device.health()["problem"]) == (str(rig.tty.path), None)


async def test_absent_at_the_start_is_told_once_and_costs_nothing(rig: Rig) -> None:
    device = rig.wheel()
    await until(lambda: rig.seen.whys() == ["absent"])
    with pytest.raises(PortError, match="does not exist"):
        device.command("settings", {})
    begin, turns = time.monotonic(), device.turns
    await until(lambda: device.turns >= turns + 4)
    assert calm(device, turns, begin)
    assert rig.seen.whys() == ["absent"]
    rig.tty.plug()
    await until(rig.tty.opened)
    rig.tty.send(LINE)
    await until(lambda: rig.seen.back() == 1)


@pytest.mark.parametrize("moment", ["idle", "mid-frame", "mid-write"])
async def test_field_case_70_a_pulled_cable_is_no_busy_loop(rig: Rig, moment: str) -> None:
    """Field case 81 too: a motor that throws the adapter off the bus, twenty times."""
    device = rig.wheel()
    counts: list[int] = []
    for plug in range(1, 21):
        rig.tty.plug()
        await until(rig.tty.opened)
        rig.tty.send(LINE)
        await until(partial(reached, device, "frames", plug))
        counts.append(descriptors())
        if moment == "mid-frame":
            rig.tty.send(LINE[:9])
            await until(lambda: rig.seen.heard[-1] == (ROLE, LINE[:9]))
        if moment == "mid-write":
            device.command("settings", {})
        turns = device.turns
        rig.tty.unplug()
        await until(partial(rig.seen.lost_times, plug))
        assert device.turns - turns < 10
    assert device.health()["rejects"] == 0
    assert counts == [counts[0]] * 20
    assert rig.seen.whys()[-1] == "unplugged"


async def test_field_case_70_a_hung_up_line_that_stays_is_tried_with_pauses(rig: Rig) -> None:
    """The name stays but the other end is gone: every open succeeds or fails at once, and so must not spin."""
    master, slave = os.openpty()
    rig.tty.path.symlink_to(os.ttyname(slave))
    device = rig.wheel()
    await until(lambda: device.health()["opened"] == 1)
    os.close(master)
    await until(lambda: rig.seen.whys() == ["unplugged"])
    begin, turns = time.monotonic(), device.turns
    await until(lambda: device.turns >= turns + 4)
    assert calm(device, turns, begin)
    os.close(slave)


async def test_field_case_72_a_port_that_means_another_device_is_left(rig: Rig, tmp_path: Path) -> None:
    other = Tty(tmp_path / "other")
    rig.ttys.append(other)
    rig.tty.plug()
    other.plug()
    console = Console("console", ConsoleOptions(device="TC-KEYPAD-1"))
    device = rig.wheel(decoder=console, path=str(rig.tty.path))
    await until(rig.tty.opened)
    rig.tty.send(frame("0 K 0 HELLO 1 TC-KEYPAD-2 b1 1") + frame("1 K 0 ANN coup_nul Eve"))
    await until(lambda: rig.seen.whys() == ["wrong_device"])
    assert "TC-KEYPAD-2" in str(device.health()["advice"])
    target = other.path.readlink()
    rig.tty.path.unlink()
    rig.tty.path.symlink_to(target)
    await until(other.opened)
    other.send(frame("0 K 0 HELLO 1 TC-KEYPAD-1 b1 1") + frame("1 K 0 ANN coup_nul Anne"))
    await until(lambda: rig.seen.back() == 1)
    assert [fact.by for fact in rig.seen.facts if isinstance(fact, Announced)] == ["Anne"]


async def test_field_case_72_a_device_that_moved_is_followed_by_its_properties(rig: Rig, tmp_path: Path) -> None:
    other = Tty(tmp_path / "other")
    rig.ttys.append(other)
    rig.tty.plug()
    other.plug()
    serials = {"A": str(rig.tty.path), "B": str(other.path)}

    def look() -> list[FoundTty]:
        return [FoundTty(path, {"ID_SERIAL_SHORT": name}) for name, path in serials.items()]

    hotplug = Hotplug(look=look, monitor=no_monitor, rescan_s=0.05)
    rig.start(hotplug.run())
    device = rig.wheel(match={"ID_SERIAL_SHORT": "A"}, hotplug=hotplug)
    await until(rig.tty.opened)
    serials["A"], serials["B"] = serials["B"], serials["A"]
    await until(other.opened)
    await until(lambda: device.health()["port"] == str(other.path))
    serials["C"] = serials.pop("A")
    other.unplug()
    await until(lambda: "no tty with ID_SERIAL_SHORT=A" in str(device.health()["problem"]))


def no_monitor() -> Any:
    raise OSError(errno.EAFNOSUPPORT, "no netlink here")


async def test_two_devices_for_one_role_are_a_fault_that_is_told(rig: Rig, tmp_path: Path) -> None:
    rig.tty.plug()
    twins = [FoundTty(str(rig.tty.path), {"ID_MODEL": "X"}), FoundTty("/dev/ttyUSB7", {"ID_MODEL": "X"})]
    hotplug = Hotplug(look=lambda: twins, monitor=no_monitor, rescan_s=0.05)
    rig.start(hotplug.run())
    device = rig.wheel(match={"ID_MODEL": "X"}, hotplug=hotplug)
    await until(lambda: rig.seen.whys() == ["ambiguous"])
    assert "/dev/ttyUSB7" in str(device.health()["problem"])
    assert not rig.tty.opened()
    del twins[1]
    await until(rig.tty.opened)


async def test_field_case_73_a_port_in_use_is_named_and_tried_again(rig: Rig) -> None:
    rig.tty.plug()
    holder = serial.Serial(str(rig.tty.path), exclusive=True)
    device = rig.wheel()
    await until(lambda: rig.seen.whys() == ["in_use"])
    assert f"(pid {os.getpid()})" in str(device.health()["problem"])
    holder.close()
    rig.seen.facts.clear()
    await until(lambda: device.health()["opened"] == 1)
    rig.tty.send(LINE)
    await until(lambda: rig.seen.back() == 1)


async def test_field_case_78_a_device_that_does_not_read_never_blocks_the_loop(rig: Rig) -> None:
    rig.tty.plug()
    console = Console("console", ConsoleOptions())
    device = rig.wheel(decoder=console, path=str(rig.tty.path))
    await until(rig.tty.opened)
    async with asyncio.timeout(DEADLINE_S):  # a write that blocks would stop this loop too, and for ever
        while "not_reading" not in rig.seen.whys():
            rig.tty.send(frame("0 K 0 HELLO 1 TC-KEYPAD-1 b1 1") * 40)
            await asyncio.sleep(0)
    await until(partial(reached, device, "opened", 2))


async def test_a_command_waits_for_the_answer_of_its_device_one_at_a_time(rig: Rig) -> None:
    rig.tty.plug()
    device = rig.wheel()
    await until(lambda: device.health()["opened"] == 1)
    asked = asyncio.get_running_loop().create_task(device.ask("selftest", {}))
    assert await rig.received(4) == b"*F\r\n"
    with pytest.raises(PortError, match="another command waits"):
        await device.ask("settings", {})
    rig.tty.send(LINE + b"*F 12\r\n")
    assert not (await asked).ok
    assert (await device.ask("poll", {})).text == "*X"  # it is answered by a status line
    lost = asyncio.get_running_loop().create_task(device.ask("settings", {}))
    await rig.received(8)
    rig.tty.unplug()
    with pytest.raises(PortError, match="gone before it answered"):
        await lost


async def test_a_device_that_does_not_answer_is_told_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codes.COMMANDS, "settings", codes.COMMANDS["settings"]._replace(answer_s=0.01))
    rig.tty.plug()
    device = rig.wheel()
    await until(lambda: device.health()["opened"] == 1)
    with pytest.raises(TimeoutError):
        await device.ask("settings", {})


async def test_field_case_79_reconnecting_leaks_no_descriptor(rig: Rig) -> None:
    rig.tty.plug()
    device = rig.wheel()
    await until(rig.tty.opened)
    expected = descriptors()
    for n in range(2, 302):
        assert device.command("reopen", {}).text
        await until(partial(reached, device, "opened", n))
    assert descriptors() == expected
    assert device.health()["reopens"] == 300


async def test_field_case_82_rights_that_come_late_are_waited_for(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.tty.plug()
    refused: list[str] = []

    def opener(path: str, baud: int) -> Port:
        if len(refused) < 2:
            refused.append(path)
            raise PortError("no_permission", f"{path}: permission denied", errno.EACCES)
        return Port(path, baud)

    device = rig.wheel(path=str(rig.tty.path), open_port=opener)
    await until(lambda: device.health()["opened"] == 1)
    assert rig.seen.whys() == []
    assert [record.levelname for record in caplog.records if record.levelname != "INFO"] == []


async def test_a_port_without_rights_is_told_after_its_last_try(rig: Rig) -> None:
    tries: list[str] = []

    def opener(path: str, baud: int) -> Port:
        if not rig.seen.whys():
            tries.append(path)
        raise PortError("no_permission", f"{path}: permission denied", errno.EACCES)

    rig.tty.plug()
    rig.wheel(path=str(rig.tty.path), open_port=opener)
    await until(lambda: rig.seen.whys() == ["no_permission"])
    assert len(tries) == SETTLE_TRIES


async def test_a_full_inbox_stops_the_reading(rig: Rig) -> None:
    rig.tty.plug()
    rig.seen.gate.clear()
    rig.wheel()
    await until(rig.tty.opened)
    rig.tty.send(b"*X;3;001;  ;0;165;0\r\n")
    await until(lambda: len(rig.seen.heard) == 2)
    rig.tty.send(LINE)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(rig.seen.heard) == 2
    rig.seen.gate.set()
    await until(lambda: len(rig.seen.heard) == 3)


async def test_silence_is_ticked_in_real_time(rig: Rig) -> None:
    rig.tty.plug()
    rig.wheel(decoder=SlingShot2(ROLE, WheelOptions(silence_ms=1200)), path=str(rig.tty.path))
    await until(lambda: rig.seen.whys() == ["silence"])
    rig.tty.send(LINE)
    await until(lambda: rig.seen.back() == 1)


@pytest.mark.parametrize("where", [{}, {"path": "/dev/x", "match": {"a": "b"}}, {"match": {"a": "b"}}])
def test_a_device_has_one_way_to_be_found(where: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either path or match"):
        SerialDevice(ROLE, SlingShot2(ROLE, WheelOptions()), Recorder().emit, baud=9600, **where)


# --- the port --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def plugged(folder: Path) -> Any:
    tty = Tty(folder / "tty")
    tty.plug()
    try:
        yield tty
    finally:
        tty.unplug()


def choke(fd: int) -> None:
    """Fill the line until it takes nothing more; the kernel moves what is in it on for a while."""
    room, refused = select.poll(), 0
    room.register(fd, select.POLLOUT)
    while refused < 8:
        try:
            os.write(fd, b"x" * 512)
            refused = 0
        except BlockingIOError:
            refused += 1
            room.poll(20)


def test_port_is_exclusive_raw_and_keeps_dtr_over_a_close(tmp_path: Path) -> None:
    with plugged(tmp_path) as tty:
        port = Port(str(tty.path), 115200)
        mode = termios.tcgetattr(port.fd)
        assert mode[3] & (termios.ECHO | termios.ICANON | termios.ISIG) == 0
        assert mode[2] & termios.HUPCL == 0
        assert mode[4] == mode[5] == termios.B115200
        assert fcntl.fcntl(port.fd, fcntl.F_GETFL) & os.O_NONBLOCK
        with pytest.raises(PortError, match="in use by") as refused:
            Port(str(tty.path), 115200)
        assert refused.value.why == "in_use"
        assert port.read() == b""
        port.close()
        port.close()


def test_port_without_a_device_says_why(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="No such file") as absent:
        Port(str(tmp_path / "nothing"), 9600)
    assert absent.value.why == "absent"
    (tmp_path / "file").write_text("")
    with pytest.raises(PortError) as no_tty:
        Port(str(tmp_path / "file"), 9600)
    assert no_tty.value.why == "unplugged"


def test_port_keeps_what_is_not_taken_and_gives_up_at_its_bound(tmp_path: Path) -> None:
    with plugged(tmp_path) as tty:
        port = Port(str(tty.path), 9600)
        port.write(b"hello", 1)
        assert tty.receive() == b"hello"
        assert port.write_due_ns() is None
        choke(port.fd)
        port.write(b"x" * OUTPUT_MAX, 1)
        with pytest.raises(PortError, match="does not read") as stuck:
            port.write(b"x", 1)
        assert stuck.value.why == "not_reading"
        port.close()


def test_port_that_is_stuck_for_a_second_is_given_up(tmp_path: Path) -> None:
    with plugged(tmp_path) as tty:
        port = Port(str(tty.path), 9600)
        choke(port.fd)
        port.write(b"more", 1_000)
        assert port.write_due_ns() == 1_000 + 1_000_000_000
        port.write(b"", 1_000_000_999)
        with pytest.raises(PortError, match="4 bytes wait"):
            port.write(b"", 1_000_001_000)
        port.close()


def test_port_hung_up_in_reading_and_writing(tmp_path: Path) -> None:
    with plugged(tmp_path) as tty:
        port = Port(str(tty.path), 9600)
        assert port.still_there()
        tty.unplug()
        assert not port.still_there()
        with pytest.raises(PortError) as read:
            port.read()
        with pytest.raises(PortError) as write:
            port.write(b"x", 1)
        assert read.value.why == write.value.why == "unplugged"
        port.close()


@pytest.mark.parametrize("call", ["tcgetattr", "tcflush"])
def test_a_terminal_error_in_opening_or_closing_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*args: object) -> Any:
        raise termios.error(errno.EIO, "Input/output error")

    with plugged(tmp_path) as tty:
        before = descriptors()
        monkeypatch.setattr(termios, call, fail)
        with contextlib.suppress(PortError):
            Port(str(tty.path), 9600).close()
        assert descriptors() == before


def test_a_terminal_error_in_our_own_settings_closes_the_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(port: Port) -> None:
        raise termios.error(errno.EIO, "Input/output error")

    monkeypatch.setattr(Port, "_configure", fail)
    with plugged(tmp_path) as tty:
        before = descriptors()
        with pytest.raises(PortError, match="Input/output"):
            Port(str(tty.path), 9600)
        assert descriptors() == before


def test_rights_are_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise serial.SerialException(errno.EACCES, "could not open port")

    monkeypatch.setattr(serial, "Serial", refuse)
    with pytest.raises(PortError, match="dialout") as refused:
        Port("/dev/ttyUSB0", 9600)
    assert refused.value.why == "no_permission"


def test_users_of_a_file_that_nobody_has(tmp_path: Path) -> None:
    assert users_of(str(tmp_path / "nothing")) == ""
