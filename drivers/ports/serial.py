"""Serial ports: one owner of a tty's file descriptor, and the task that joins it with its decoder.

    absent ──► opening ──► open: feed, tick, write ──► lost ──► (pause) ──► absent ...

A pulled plug shows as an empty read on a pseudo-terminal, as EIO or ENODEV on USB, and as something else on the next
kernel: every error and every empty read is the same loss (field case 70). The port is closed on every path out (79),
nothing ever blocks the loop (78), and no attempt follows another without a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

import serial

from drivers.base import Answer, Asked, ByteDecoder, Emit, Tap
from drivers.feeder import Backoff, Feeder
from drivers.ports.udev import AmbiguousError, Hotplug

log = logging.getLogger(__name__)

SECOND_NS: Final = 1_000_000_000
READ_BYTES: Final = 4096
OUTPUT_MAX: Final = 8192
"""Bytes that may wait for a device; more means that it does not read."""
STUCK_NS: Final = SECOND_NS
"""A device that takes no byte for so long has stopped reading (field case 78)."""
CHECK_NS: Final = SECOND_NS
"""How often an open port is compared with what its name means now (field case 72)."""
LOOK_S: Final = 0.25
"""How often a missing path is looked for; udev wakes the others earlier."""
SETTLE_TRIES: Final = 6
SETTLE_S: Final = 0.4
"""A node may exist before udev has given it its rights: six looks within 2 s (field case 82)."""

_SETTLING: Final = (errno.EACCES, errno.EPERM, errno.ENOENT)


class PortError(OSError):
    """A port could not be opened or was lost; `why` is the code for DeviceLost, the text is for people."""

    def __init__(self, why: str, text: str, number: int | None = None) -> None:
        super().__init__(number, text)
        self.why = why
        self.text = text

    def __str__(self) -> str:
        return self.text


class Port:
    """An open tty: exclusive, raw, 8N1, no flow control, never blocking.

    DTR and RTS are up while it is open, and HUPCL is off so that closing does not drop them: a keypad that resets on
    DTR is reset by the first opening after its power-up at most, not by every start of the daemon (field case 75).
    """

    def __init__(self, path: str, baud: int) -> None:
        """Open `path`; raises PortError."""
        try:
            self._serial = serial.Serial(path, baud, timeout=0, write_timeout=0, exclusive=True)
        except serial.SerialException as error:
            raise _open_error(path, error.errno or errno.EIO, str(error)) from error
        except (OSError, termios.error) as error:
            raise _open_error(path, error.args[0], str(error)) from error
        self.path = path
        self.fd: int = self._serial.fileno()
        self.device = os.fstat(self.fd).st_rdev
        self._waiting = bytearray()
        self._since_ns: int | None = None
        self._wake: Callable[[], None] | None = None
        try:
            self._configure()
        except termios.error as error:
            self.close()
            raise _open_error(path, error.args[0], str(error)) from error

    def _configure(self) -> None:
        """With VMIN = 1 a read without data is EAGAIN, and an empty read means the line is hung up."""
        mode = termios.tcgetattr(self.fd)
        mode[2] &= ~termios.HUPCL
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self.fd, termios.TCSANOW, mode)

    def read(self) -> bytes:
        """What has arrived, empty when nothing has; raises PortError when the line is hung up."""
        try:
            data = os.read(self.fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError as error:
            raise PortError("unplugged", f"{self.path}: {error.strerror}", error.errno) from error
        if not data:
            raise PortError("unplugged", f"{self.path}: hung up", errno.EIO)
        return data

    def write(self, data: bytes, now_ns: int) -> None:
        """Write what the device takes now and keep the rest; raises PortError when it has stopped reading."""
        self._waiting += data
        if self._waiting:
            try:
                written = os.write(self.fd, self._waiting)
            except (BlockingIOError, InterruptedError):
                written = 0
            except OSError as error:
                raise PortError("unplugged", f"{self.path}: {error.strerror}", error.errno) from error
            if written:
                del self._waiting[:written]
                self._since_ns = None
        if not self._waiting:
            return
        self._since_ns = now_ns if self._since_ns is None else self._since_ns
        if len(self._waiting) > OUTPUT_MAX or now_ns - self._since_ns >= STUCK_NS:
            text = f"{self.path}: the device does not read, {len(self._waiting)} bytes wait for it"
            raise PortError("not_reading", text, errno.ETIMEDOUT)

    def write_due_ns(self) -> int | None:
        """When a device that takes nothing counts as stuck."""
        return None if self._since_ns is None else self._since_ns + STUCK_NS

    async def wait(self, until_ns: int) -> None:
        """Return when bytes can be read, waiting ones written, `wake` is called, or `until_ns` is reached."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not ready.done():
                ready.set_result(None)

        self._wake = settle
        timer = loop.call_at(until_ns / SECOND_NS, settle)
        loop.add_reader(self.fd, settle)
        if self._waiting:
            loop.add_writer(self.fd, settle)
        try:
            await ready
        finally:
            self._wake = None
            loop.remove_reader(self.fd)
            loop.remove_writer(self.fd)
            timer.cancel()

    def wake(self) -> None:
        """End a `wait`."""
        if self._wake is not None:
            self._wake()

    def still_there(self) -> bool:
        """The path still names the device that was opened."""
        try:
            return Path(self.path).stat().st_rdev == self.device
        except OSError:
            return False

    def close(self) -> None:
        """Close; output that waits is thrown away, for a close that drains it can hang (field case 78)."""
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(self.fd, termios.TCOFLUSH)
        with contextlib.suppress(OSError, serial.SerialException):
            self._serial.close()


class SerialDevice:
    """The task of one byte device; `run` never ends by itself."""

    def __init__(
        self,
        role: str,
        decoder: ByteDecoder,
        emit: Emit,
        *,
        baud: int,
        path: str = "",
        match: Mapping[str, str] | None = None,
        hotplug: Hotplug | None = None,
        tap: Tap | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
        open_port: Callable[[str, int], Port] = Port,
    ) -> None:
        """Either `path` (a fixed tty) or `match` (udev properties) together with the daemon's one `hotplug`."""
        if bool(path) == bool(match) or (match and hotplug is None):
            raise ValueError(f"{role}: a serial device needs either path or match, and match needs the hotplug watch")
        self.role = role
        self._decoder = decoder
        self._feeder = Feeder(role, decoder, emit, tap)
        self._baud = baud
        self._path = path
        self._match = dict(match or {})
        self._hotplug = hotplug
        self._now_ns = now_ns
        self._open_port = open_port
        self._port: Port | None = None
        self._wake = asyncio.Event()
        self._reopen = False
        self._problem: PortError | None = None
        self._opened = 0
        self._asker: asyncio.Future[Answer] | None = None
        """Who waits for the device's answer to his command."""
        self.turns = 0
        """How often the task woke up: the proof that an absent device costs nothing."""

    async def run(self) -> NoReturn:
        """Find, open, talk, lose, pause, for ever."""
        backoff = Backoff()
        with self._hotplug.watched(self._wake) if self._hotplug else contextlib.nullcontext():
            while True:
                self._wake.clear()  # before the look: a plug that goes in meanwhile is not missed
                self.turns += 1
                try:
                    await self._session(backoff)
                except PortError as error:
                    await self._trouble(error)
                    absent = error.why in ("absent", "ambiguous")
                    await self._pause(LOOK_S if absent and self._path else backoff.next_s())

    def command(self, name: str, args: Mapping[str, object]) -> Asked:
        """Queue a technician's command; raises ValueError (no such command) or PortError (no device)."""
        if name == "reopen" and not args:
            self.reopen()
            return Asked("port will be closed and opened again")
        if self._port is None:
            raise PortError("absent", f"{self.role}: {self._problem or 'the port is not open yet'}")
        asked = self._decoder.command(name, args)
        self._port.wake()
        return asked

    async def ask(self, name: str, args: Mapping[str, object]) -> Answer:
        """A technician's command and the device's answer, one at a time.

        Raises as `command` does, PortError also when the device goes meanwhile, TimeoutError when it does not answer.
        """
        if self._asker is not None:
            raise PortError("busy", f"{self.role}: another command waits for its answer")
        asked = self.command(name, args)
        if not asked.answer_s:
            return Answer(True, asked.text)
        self._asker = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(asked.answer_s):
                return await self._asker
        finally:
            self._asker = None

    def reopen(self) -> None:
        """Close the port and begin anew."""
        self._reopen = True
        self._wake.set()
        if self._port is not None:
            self._port.wake()

    def health(self) -> dict[str, int | str | None]:
        """The decoder's counters and the port's."""
        return {
            **self._decoder.health(),
            "port": self._port.path if self._port is not None else None,
            "opened": self._opened,
            "reopens": max(self._opened - 1, 0),
            "problem": None if self._problem is None else str(self._problem),
        }

    async def _session(self, backoff: Backoff) -> NoReturn:
        """From looking for the device to its loss; raises PortError."""
        port = await self._open(self._find())
        try:
            self._port, self._reopen, self._problem = port, False, None
            self._opened += 1
            log.info("%s: open at %s", self.role, port.path)
            await self._feeder.opened(self._now_ns())
            await self._talk(port, backoff)
        finally:
            self._port = None
            if self._asker is not None and not self._asker.done():
                self._asker.set_exception(PortError("unplugged", f"{self.role}: gone before it answered"))
            port.close()

    async def _talk(self, port: Port, backoff: Backoff) -> NoReturn:
        """Feed what comes, tick what is due, write what is to be said; raises PortError on the loss of the port."""
        check_ns = self._now_ns() + CHECK_NS
        while True:
            self.turns += 1
            port.write(self._decoder.take_output(), self._now_ns())
            due = [check_ns, self._feeder.due_ns(), port.write_due_ns()]
            await port.wait(min(at for at in due if at is not None))
            while data := port.read():
                await self._feeder.received(data, self._now_ns())
                self._answered()
                backoff.reset()
                if len(data) < READ_BYTES:
                    break
            now_ns = self._now_ns()
            await self._feeder.tick(now_ns)
            if self._reopen:
                raise PortError("reopened", f"{port.path}: closed on request")
            if now_ns >= check_ns:
                self._check(port)
                check_ns = now_ns + CHECK_NS

    def _answered(self) -> None:
        answer = self._decoder.take_answer()
        if answer is not None and self._asker is not None and not self._asker.done():
            self._asker.set_result(answer)

    def _check(self, port: Port) -> None:
        """The name may mean another device by now: then ours is the wrong one, however well it talks."""
        if not port.still_there():
            raise PortError("unplugged", f"{port.path} is no longer the device that was opened")
        if self._hotplug is not None and self._match:
            found = self._hotplug.find(self._match)
            if found is not None and found != port.path:
                raise PortError("unplugged", f"{self.role} is at {found} now, not at {port.path}")

    def _find(self) -> str:
        """Where the device is now; raises PortError."""
        if self._path:
            if Path(self._path).exists():
                return self._path
            raise PortError("absent", f"{self._path} does not exist")
        assert self._hotplug is not None
        try:
            found = self._hotplug.find(self._match)
        except AmbiguousError as error:
            raise PortError("ambiguous", f"{self.role}: {error}") from error
        if found is None:
            wanted = ", ".join(f"{key}={value}" for key, value in self._match.items())
            raise PortError("absent", f"no tty with {wanted}")
        return found

    async def _open(self, path: str) -> Port:
        """Open `path`, patient with a node whose rights are not yet set; raises PortError."""
        for _ in range(SETTLE_TRIES - 1):
            try:
                return self._open_port(path, self._baud)
            except PortError as error:
                if error.errno not in _SETTLING:
                    raise
            await asyncio.sleep(SETTLE_S)
        return self._open_port(path, self._baud)

    async def _trouble(self, error: PortError) -> None:
        """Tell the loss, and log it once per kind of trouble."""
        if self._problem is not None and self._problem.why == error.why:
            return
        self._problem = error
        log.warning("%s: %s", self.role, error)
        await self._feeder.lost(self._now_ns(), error.why)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until udev says that something was plugged in."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


def _open_error(path: str, number: int, text: str) -> PortError:
    """What to tell people when `path` does not open."""
    if number in (errno.EAGAIN, errno.EBUSY):
        return PortError("in_use", f"{path} is in use by {users_of(path) or 'another program'}", number)
    if number in (errno.EACCES, errno.EPERM):
        text = f"{path}: permission denied; the service needs the group of the node (udev rule, group dialout)"
        return PortError("no_permission", text, number)
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return PortError("absent", f"{path}: {os.strerror(number)}", number)
    return PortError("unplugged", f"{path}: {text}", number)


def users_of(path: str) -> str:
    """Programs that have `path` open, as far as we may look: `name (pid 123), ...`."""
    target = os.path.realpath(path)
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(link.readlink()) == target for link in (process / "fd").iterdir()):
                users.append(f"{(process / 'comm').read_text().strip()} (pid {process.name})")
    return ", ".join(users)
