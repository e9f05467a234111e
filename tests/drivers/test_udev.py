"""Finding ttys by their properties, and a watch that no storm of events makes deaf."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pyudev

from drivers.ports.udev import AmbiguousError, Hotplug, Tty, find, open_monitor, scan

DEADLINE_S = 20
UEVENT = Path("/sys/class/tty/ttyS0/uevent")

CHEAP = {"ID_BUS": "usb", "ID_MODEL": "CH340"}
TTYS = [
    Tty("/dev/ttyUSB0", {**CHEAP, "ID_PATH": "pci-0:1.1", "ID_USB_INTERFACE_NUM": "00"}),
    Tty("/dev/ttyUSB1", {**CHEAP, "ID_PATH": "pci-0:1.2", "ID_USB_INTERFACE_NUM": "00"}),
    Tty("/dev/ttyUSB2", {**CHEAP, "ID_PATH": "pci-0:1.2", "ID_USB_INTERFACE_NUM": "01"}),
    Tty("/dev/ttyACM0", {"ID_BUS": "usb", "ID_SERIAL_SHORT": "TC-KEYPAD-1"}),
    Tty("/dev/ttyS0", {}),
]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the kernel
            await asyncio.sleep(0.01)


def test_a_device_is_found_by_what_stays_the_same() -> None:
    assert find({"ID_SERIAL_SHORT": "TC-KEYPAD-1"}, TTYS) == "/dev/ttyACM0"
    assert find({"ID_PATH": "pci-0:1.2", "ID_USB_INTERFACE_NUM": "01"}, TTYS) == "/dev/ttyUSB2"
    assert find({"ID_SERIAL_SHORT": "TC-KEYPAD-2"}, TTYS) is None
    assert find({"ID_PATH": "pci-0:1.1"}, []) is None


def test_two_that_fit_are_a_fault_and_both_are_named() -> None:
    with pytest.raises(AmbiguousError, match=r"ID_PATH=pci-0:1.2 fits /dev/ttyUSB1 and /dev/ttyUSB2; add ID_PATH or"):
        find({"ID_PATH": "pci-0:1.2"}, TTYS)


def test_scan_lists_hardware_and_no_virtual_terminals() -> None:
    found = [tty.path for tty in scan()]
    assert not any(path.startswith(("/dev/pts", "/dev/tty0", "/dev/console", "/dev/ptmx")) for path in found)
    assert all(Path(path).exists() for path in found)


def test_scan_survives_a_device_that_vanishes_or_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 87."""

    class Device:
        def __init__(self, path: str, node: object) -> None:
            self.sys_path = path
            self._node = node
            self.properties = {"ID_BUS": "usb"}

        @property
        def device_node(self) -> object:
            if isinstance(self._node, Exception):
                raise self._node
            return self._node

    class Context:
        def list_devices(self, subsystem: str) -> Iterator[Device]:
            assert subsystem == "tty"
            yield Device("/sys/devices/usb1/ttyUSB0", OSError(errno.ENODEV, "gone"))
            yield Device("/sys/devices/usb1/ttyUSB1", None)
            yield Device("/sys/devices/virtual/tty/tty9", "/dev/tty9")
            yield Device("/sys/devices/usb1/ttyUSB2", "/dev/ttyUSB2")

    monkeypatch.setattr(pyudev, "Context", Context)
    assert scan() == [Tty("/dev/ttyUSB2", {"ID_BUS": "usb"})]


class Monitor:
    """A monitor whose events a test pushes through a pipe, with the faults of the real one."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.deaf = False

    def fileno(self) -> int:
        return self.reading

    def poll(self, timeout: float) -> object:
        assert timeout == 0
        if self.deaf:
            raise OSError(errno.ENOBUFS, "Error while polling")
        os.set_blocking(self.reading, False)
        try:
            return os.read(self.reading, 1)
        except BlockingIOError:
            return None

    def push(self, events: int = 1) -> None:
        os.write(self.writing, b"x" * events)

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


class World:
    """What is plugged in, and the monitors that were opened to watch it."""

    def __init__(self) -> None:
        self.ttys: list[Tty] = list(TTYS[:1])
        self.monitors: list[Monitor] = []
        self.refuse = 0
        self.broken = False

    def look(self) -> list[Tty]:
        if self.broken:
            raise OSError(errno.EMFILE, "too many open files")
        return list(self.ttys)

    def monitor(self) -> Monitor:
        if self.refuse:
            self.refuse -= 1
            raise OSError(errno.EAFNOSUPPORT, "no netlink")
        self.monitors.append(Monitor())
        return self.monitors[-1]


async def watch(hotplug: Hotplug) -> tuple[asyncio.Task[Any], asyncio.Event]:
    return asyncio.get_running_loop().create_task(hotplug.run()), asyncio.Event()


async def stop(task: asyncio.Task[Any], world: World) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for monitor in world.monitors:
        monitor.close()


async def test_an_event_makes_the_scan_happen_at_once() -> None:
    world = World()
    hotplug = Hotplug(look=world.look, monitor=world.monitor, rescan_s=3600)
    task, wake = await watch(hotplug)
    with hotplug.watched(wake):
        await until(lambda: world.monitors)
        assert hotplug.find({"ID_SERIAL_SHORT": "TC-KEYPAD-1"}) is None
        world.ttys = TTYS
        world.monitors[0].push(3)
        await until(wake.is_set)
        assert hotplug.find({"ID_SERIAL_SHORT": "TC-KEYPAD-1"}) == "/dev/ttyACM0"
    assert hotplug.health()["events"] == 3
    await stop(task, world)


async def test_without_events_a_scan_every_few_seconds_is_the_truth() -> None:
    world = World()
    world.refuse = 10_000
    hotplug = Hotplug(look=world.look, monitor=world.monitor, rescan_s=0.02)
    task, wake = await watch(hotplug)
    with hotplug.watched(wake):
        await until(lambda: hotplug.scans > 2)
        assert not wake.is_set()
        world.ttys = []
        await until(wake.is_set)
    world.refuse = 0
    await until(lambda: world.monitors)
    await stop(task, world)


async def test_field_case_86_an_overflowed_monitor_is_rebuilt_and_a_scan_follows() -> None:
    world = World()
    hotplug = Hotplug(look=world.look, monitor=world.monitor, rescan_s=3600)
    task, wake = await watch(hotplug)
    with hotplug.watched(wake):
        await until(lambda: world.monitors)
        world.ttys = TTYS
        world.monitors[0].deaf = True
        world.monitors[0].push()
        await until(wake.is_set)
        await until(lambda: len(world.monitors) == 2)
        wake.clear()
        world.ttys = []
        world.monitors[1].push()
        await until(wake.is_set)
    assert hotplug.health()["rebuilds"] == 2
    await stop(task, world)


async def test_a_storm_of_events_is_no_storm_of_scans() -> None:
    world = World()
    hotplug = Hotplug(look=world.look, monitor=world.monitor, rescan_s=3600)
    task, _ = await watch(hotplug)
    await until(lambda: world.monitors)
    for _ in range(20):
        world.monitors[0].push(100)
    await until(lambda: hotplug.events == 2000)
    assert hotplug.scans < 20
    await stop(task, world)


async def test_a_list_that_cannot_be_read_is_tried_again() -> None:
    world = World()
    hotplug = Hotplug(look=world.look, monitor=world.monitor, rescan_s=0.02)
    assert hotplug.find({"ID_PATH": "pci-0:1.1"}) == "/dev/ttyUSB0"
    world.broken = True
    task, _ = await watch(hotplug)
    await until(lambda: hotplug.scans > 3)
    assert hotplug.find({"ID_PATH": "pci-0:1.1"}) == "/dev/ttyUSB0"
    await stop(task, world)


def real_monitor() -> Any:
    """As `open_monitor`, but of the kernel's own events, for no udev daemon runs here; with hardly any buffer."""
    monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
    monitor.filter_by("tty")
    monitor.set_receive_buffer_size(4096)
    monitor.start()
    return monitor


@pytest.mark.skipif(not os.access(UEVENT, os.W_OK), reason="needs root and a writable /sys to make real kernel events")
async def test_field_case_86_a_real_netlink_queue_overflows_and_the_watch_lives_on() -> None:
    world = World()
    hotplug = Hotplug(look=world.look, monitor=real_monitor, rescan_s=3600)
    task, wake = await watch(hotplug)
    with hotplug.watched(wake):
        await until(lambda: hotplug.scans == 1)
        counts = []
        for rebuilds in range(2, 6):
            storm(300)
            await until(partial(was_rebuilt, hotplug, rebuilds))
            counts.append(descriptors())
        assert counts[-1] <= counts[0]
        world.ttys = TTYS
        storm(1)
        await until(wake.is_set)
    await stop(task, world)


def was_rebuilt(hotplug: Hotplug, times: int) -> bool:
    return hotplug.rebuilds == times


def descriptors() -> int:
    gc.collect()  # a monitor closes its socket when it goes
    return len(list(Path("/proc/self/fd").iterdir()))


def storm(events: int) -> None:
    for _ in range(events):
        UEVENT.write_text("change")


def test_the_real_monitor_listens_to_udev_and_only_to_ttys() -> None:
    monitor = open_monitor()
    assert monitor.started
    assert monitor.fileno() >= 0
