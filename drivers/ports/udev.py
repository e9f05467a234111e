"""Which tty is which device: by the stable properties that udev keeps, never by the kernel's numbering.

The scan every few seconds is the truth; udev's events only make it happen at once (field cases 72, 86, 87). They are
taken from the `udev` stage, after the rules have set rights (82), and whatever is wrong with one of them (no name, no
properties, queue overflow) costs a scan, never the watch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pyudev

from drivers.feeder import readable

log = logging.getLogger(__name__)

RESCAN_S: Final = 3.0
BURST_MAX: Final = 256
"""Events read at one wake-up before others get their turn."""
RECEIVE_BYTES: Final = 1 << 20
GATHER_S: Final = 0.1
"""One plug makes several events, and a storm of them must not become a storm of scans."""


@dataclass(frozen=True, slots=True)
class Tty:
    """A serial port with the properties that udev knows of it."""

    path: str
    properties: Mapping[str, str]


class AmbiguousError(Exception):
    """More than one device fits: a fault of the configuration, for guessing would be talking to the wrong one."""


def scan() -> list[Tty]:
    """The ttys behind which there is hardware, now."""
    found = []
    for device in pyudev.Context().list_devices(subsystem="tty"):
        if "/virtual/" in device.sys_path:
            continue
        with contextlib.suppress(OSError, KeyError, ValueError):  # it may vanish while we look
            if device.device_node:
                found.append(Tty(device.device_node, dict(device.properties)))
    return found


def find(match: Mapping[str, str], ttys: Sequence[Tty]) -> str | None:
    """Path of the one tty that has all properties of `match`, None when there is none; raises AmbiguousError."""
    fitting = [tty.path for tty in ttys if all(tty.properties.get(key) == value for key, value in match.items())]
    if len(fitting) > 1:
        wanted = ", ".join(f"{key}={value}" for key, value in match.items())
        hint = "add ID_PATH or ID_USB_INTERFACE_NUM to match"
        raise AmbiguousError(f"{wanted} fits {' and '.join(sorted(fitting))}; {hint}")
    return fitting[0] if fitting else None


def open_monitor() -> Any:
    """A started pyudev monitor of the tty subsystem; raises OSError where netlink is not to be had."""
    monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="udev")
    monitor.filter_by("tty")
    with contextlib.suppress(OSError):  # more than the default needs CAP_NET_ADMIN
        monitor.set_receive_buffer_size(RECEIVE_BYTES)
    monitor.start()
    return monitor


class Hotplug:
    """The daemon's one watch over ttys that come and go."""

    def __init__(
        self,
        *,
        look: Callable[[], list[Tty]] = scan,
        monitor: Callable[[], Any] = open_monitor,
        rescan_s: float = RESCAN_S,
    ) -> None:
        self._look = look
        self._monitor = monitor
        self._rescan_s = rescan_s
        self._ttys: list[Tty] | None = None
        self._watchers: list[asyncio.Event] = []
        self.events = 0
        self.scans = 0
        self.rebuilds = 0

    def find(self, match: Mapping[str, str]) -> str | None:
        """Path of the device with these properties as of the last scan; raises AmbiguousError."""
        if self._ttys is None:
            self._scan()
        return find(match, self._ttys or [])

    @contextlib.contextmanager
    def watched(self, wake: asyncio.Event) -> Iterator[None]:
        """Set `wake` whenever the set of ttys has changed."""
        self._watchers.append(wake)
        try:
            yield
        finally:
            self._watchers.remove(wake)

    async def run(self) -> NoReturn:
        """Scan now, on every event and every few seconds."""
        monitor = None
        while True:
            if monitor is None:
                monitor = self._open()
            self._scan()
            until_ns = time.monotonic_ns() + int(self._rescan_s * 1e9)
            if monitor is None:
                await asyncio.sleep(self._rescan_s)
            elif await readable(monitor.fileno(), until_ns):
                await asyncio.sleep(GATHER_S)
                monitor = self._drain(monitor)

    def _open(self) -> Any:
        self.rebuilds += 1
        try:
            return self._monitor()
        except OSError as error:
            if self.rebuilds == 1:
                log.warning("no udev events, ttys are looked for every %s s: %s", self._rescan_s, error)
            return None

    def _drain(self, monitor: Any) -> Any:
        """Take what waits; an event is only a hint, so it is counted and thrown away. None: begin anew."""
        try:
            for _ in range(BURST_MAX):
                if monitor.poll(timeout=0) is None:
                    break
                self.events += 1
        except (OSError, ValueError, KeyError) as error:
            log.info("udev monitor is rebuilt: %s", error)
            return None
        return monitor

    def _scan(self) -> None:
        self.scans += 1
        before = self._ttys
        try:
            self._ttys = self._look()
        except OSError as error:
            log.warning("ttys could not be listed: %s", error)
            return
        if before is not None and before != self._ttys:
            for wake in self._watchers:
                wake.set()

    def health(self) -> dict[str, int]:
        """Counters."""
        return {"events": self.events, "scans": self.scans, "rebuilds": self.rebuilds}
