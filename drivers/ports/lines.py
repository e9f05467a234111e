"""The lines of one chip: one connection that owns the file descriptor, whoever is at its other end.

Either the kernel (gpiod: every input of the chip in one request, so that one numbering orders them all) or a rig's Unix
socket that carries the kernel's own records: PROTOCOL.md. Everything above it is the same code.

Times are the kernel's, CLOCK_MONOTONIC, taken in the interrupt. Its debounce stays off: it is quantised to jiffies and
would spoil beams and encoders (physics README 4.2). Levels are logical: `active_low` is undone by the kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from gpiod import LineSettings

CONSUMER: Final = "table-controller"
"""The name under which the kernel shows our lines (`gpioinfo`)."""
BUFFER: Final = 1024
"""Edges that the kernel keeps while nobody reads: 0.4 s at 2,400 edges/s; its default holds 20 ms."""
CONNECT_S: Final = 2.0
EVENT: Final = struct.Struct("=QIIII24x")
VALUES: Final = struct.Struct("=QQ")
RISING: Final = 1
FALLING: Final = 2
READ_BYTES: Final = EVENT.size * BUFFER
_BY_TIME: Final = itemgetter(0, 3)


class LineError(OSError):
    """The chip cannot be opened, or is gone; the text is for people."""

    def __str__(self) -> str:
        return str(self.args[-1])


Event = tuple[int, int, int, int, int]
"""One edge as it came: timestamp_ns, id, offset, seqno, line_seqno."""


class LineSpec(Protocol):
    """What is known of an input line: `controller.config.Line` is one."""

    @property
    def offset(self) -> int:
        """Number of the line on its chip."""
        ...

    @property
    def active_low(self) -> bool:
        """A low level means 1."""
        ...

    @property
    def bias(self) -> Literal["as_is", "pull_up", "pull_down", "disabled"]:
        """The resistor inside the chip."""
        ...


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """An output line."""

    offset: int
    active_low: bool = False


class LinePort(Protocol):
    """An open chip."""

    @property
    def fd(self) -> int:
        """Readable when edges wait."""
        ...

    def read(self) -> list[Event]:
        """All edges that wait, without blocking, in the order of time; raises LineError when the chip is gone."""
        ...

    def levels(self) -> Mapping[int, int]:
        """Levels of the inputs now, by offset; empty where the far end cannot be asked. Raises LineError."""
        ...

    def write(self, values: Mapping[int, bool]) -> None:
        """Set outputs by offset, at once; raises LineError when the chip is gone."""
        ...

    def close(self) -> None:
        """Give the lines back."""
        ...


def events_in(records: bytes) -> list[Event]:
    """Whole records of the kernel, put in the order of their time stamps, which the interrupt takes.

    Of two lines it may queue the later edge first, for each has a thread of its own, and a thread that is late gives
    the number of the next interrupt: in a VM 19 of 1,600 edges had their neighbour's `seqno`, none a wrong time.
    """
    return sorted(EVENT.iter_unpack(records), key=_BY_TIME)


async def open_port(path: str, inputs: Mapping[str, LineSpec], outputs: Mapping[str, OutputSpec]) -> LinePort:
    """Open the chip at `path`: a device under /dev is the kernel's, anything else a rig's socket; never another one.

    Raises LineError.
    """
    if path.startswith("/dev/"):
        return KernelPort(path, inputs, outputs)
    return await connect(path)


# --- a rig's socket --------------------------------------------------------------------------------------------------


class SocketPort:
    """The far end is a rig: it sends and takes the kernel's records."""

    def __init__(self, path: str, connection: socket.socket) -> None:
        self._path = path
        self._socket = connection
        self._rest = b""

    @property
    def fd(self) -> int:
        """The socket."""
        return self._socket.fileno()

    def read(self) -> list[Event]:
        """Whole records that have come, all of them; the rest of one waits for its end."""
        data = self._rest
        try:
            while True:
                more = self._socket.recv(READ_BYTES)
                data += more
                if not more and len(data) < EVENT.size:
                    raise LineError(f"{self._path}: the other end has closed")
                if len(more) < READ_BYTES:
                    break
        except BlockingIOError:
            pass
        except LineError:
            raise
        except OSError as error:
            raise LineError(f"{self._path}: {error.strerror}") from error
        whole = len(data) - len(data) % EVENT.size
        self._rest = data[whole:]
        return events_in(data[:whole])

    def levels(self) -> Mapping[int, int]:
        """A rig cannot be asked."""
        return {}

    def write(self, values: Mapping[int, bool]) -> None:
        """One record for all outputs of the call; a peer that takes nothing any more is a lost chip."""
        bits = sum(1 << offset for offset, on in values.items() if on)
        mask = sum(1 << offset for offset in values)
        try:
            self._socket.sendall(VALUES.pack(bits, mask))
        except OSError as error:
            raise LineError(f"{self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


async def connect(path: str) -> SocketPort:
    """Connect to a rig's socket; raises LineError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(CONNECT_S):
            await asyncio.get_running_loop().sock_connect(connection, path)
    except TimeoutError as error:
        connection.close()
        raise LineError(f"{path}: nobody accepts the connection") from error
    except OSError as error:
        connection.close()
        raise LineError(f"{path}: {error.strerror}") from error
    except BaseException:
        connection.close()
        raise
    return SocketPort(path, connection)


# --- the kernel ------------------------------------------------------------------------------------------------------


class KernelPort:
    """The far end is the kernel's GPIO character device, through libgpiod 2."""

    def __init__(self, path: str, inputs: Mapping[str, LineSpec], outputs: Mapping[str, OutputSpec]) -> None:
        import gpiod  # noqa: PLC0415 - a rig on a machine without GPIO never needs it
        from gpiod.line import Bias, Clock, Direction, Edge, Value  # noqa: PLC0415

        self._path = path
        self._on, self._off = Value.ACTIVE, Value.INACTIVE
        bias = {
            "as_is": Bias.AS_IS,
            "pull_up": Bias.PULL_UP,
            "pull_down": Bias.PULL_DOWN,
            "disabled": Bias.DISABLED,
        }
        edges: dict[Iterable[int | str] | int | str, LineSettings | None] = {
            line.offset: gpiod.LineSettings(
                direction=Direction.INPUT,
                edge_detection=Edge.BOTH,
                bias=bias[line.bias],
                active_low=line.active_low,
                event_clock=Clock.MONOTONIC,
            )
            for line in inputs.values()
        }
        lamps: dict[Iterable[int | str] | int | str, LineSettings | None] = {
            lamp.offset: gpiod.LineSettings(direction=Direction.OUTPUT, active_low=lamp.active_low)
            for lamp in outputs.values()
        }
        with contextlib.ExitStack() as undo:
            try:
                chip = undo.enter_context(gpiod.Chip(path))
                _exist(path, chip.get_info().num_lines, [*inputs.values(), *outputs.values()])
                self._inputs = chip.request_lines(edges, CONSUMER, BUFFER) if edges else None
                if self._inputs is not None:
                    undo.callback(self._inputs.release)
                self._outputs = chip.request_lines(lamps, CONSUMER) if lamps else None
            except LineError:
                raise
            except OSError as error:
                raise LineError(f"{path}: {why_not(error, path, [*inputs.values(), *outputs.values()])}") from error
            undo.pop_all()
        chip.close()
        if self._inputs is not None:
            os.set_blocking(self._inputs.fd, False)

    @property
    def fd(self) -> int:
        """The request for all inputs; -1 where there is none."""
        return self._inputs.fd if self._inputs is not None else -1

    def read(self) -> list[Event]:
        """Drain the request: its descriptor gives whole records (linux/gpio.h), gpiod's objects cost far more."""
        data = b""
        try:
            while self._inputs is not None:
                more = os.read(self._inputs.fd, READ_BYTES)
                data += more
                if len(more) < READ_BYTES:
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            raise LineError(f"{self._path}: {error.strerror}") from error
        return events_in(data)

    def levels(self) -> Mapping[int, int]:
        """Ask the kernel for every input."""
        if self._inputs is None:
            return {}
        try:
            values = self._inputs.get_values()
        except OSError as error:
            raise LineError(f"{self._path}: {error.strerror}") from error
        return {offset: int(value is self._on) for offset, value in zip(self._inputs.offsets, values, strict=True)}

    def write(self, values: Mapping[int, bool]) -> None:
        """Set the lines."""
        try:
            if self._outputs is not None:
                self._outputs.set_values({offset: self._on if on else self._off for offset, on in values.items()})
        except OSError as error:
            raise LineError(f"{self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Release both requests."""
        for request in (self._inputs, self._outputs):
            if request is not None:
                request.release()


def _exist(path: str, count: int, lines: Sequence[LineSpec | OutputSpec]) -> None:
    beyond = sorted({line.offset for line in lines if not 0 <= line.offset < count})
    if beyond:
        raise LineError(f"{path}: there is no line {', '.join(map(str, beyond))} (this chip has 0 to {count - 1})")


def why_not(error: OSError, path: str, lines: Sequence[LineSpec | OutputSpec]) -> str:
    """What keeps us from a chip, in words for a technician: who holds a busy line, what right is missing."""
    if error.errno == errno.EBUSY:
        return "; ".join(holders(path, [line.offset for line in lines])) or "a line is in use by another program"
    if error.errno == errno.ENOENT:
        found = ", ".join(sorted(str(chip) for chip in Path("/dev").glob("gpiochip*"))) or "none"
        return f"there is no such chip (found: {found})"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "no permission: the service user must be in the group gpio (systemd/90-table.rules)"
    return error.strerror or str(error)


def holders(path: str, offsets: list[int]) -> list[str]:
    """Which of our lines are taken, and by whom (field case 60)."""
    import gpiod  # noqa: PLC0415

    taken = []
    with contextlib.suppress(OSError), gpiod.Chip(path) as chip:
        for offset in offsets:
            info = chip.get_line_info(offset)
            if info.used:
                taken.append(f"line {offset} is in use by {info.consumer!r}")
    return taken
