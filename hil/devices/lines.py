"""The far end of a chip's line socket: it sends what the kernel would send for a GPIO line request, and takes outputs.

Records, numbering and who connects are those of drivers/ports/PROTOCOL.md. As in the kernel, edges that happen while
nobody is connected are lost without a trace.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

EVENT = struct.Struct("=QIIII24x")
VALUES = struct.Struct("=QQ")
RISING, FALLING = 1, 2


class Pulse(NamedTuple):
    """One level change that the kernel saw on a line; `gap` records of this line were lost just before it."""

    at_ns: int
    line: str
    """Role: `wheel.a`, `button.rien_ne_va_plus`."""
    level: int
    gap: int = 0


class Numbering:
    """Sequence numbers of one line request."""

    def __init__(self) -> None:
        self.all = 0
        self.lines: dict[str, int] = {}

    def next(self, pulse: Pulse) -> tuple[int, int]:
        """(seqno, line_seqno) of this record, after the lost ones before it."""
        self.all += 1 + pulse.gap
        own = self.lines.get(pulse.line, 0) + 1 + pulse.gap
        self.lines[pulse.line] = own
        return self.all, own


def record(pulse: Pulse, offset: int, seqno: int, line_seqno: int) -> bytes:
    """The kernel's record for one edge."""
    return EVENT.pack(pulse.at_ns, RISING if pulse.level else FALLING, offset, seqno, line_seqno)


class LineChip:
    """One simulated chip: a listening Unix socket; at most one connection is served, the newest."""

    def __init__(self, path: Path, offsets: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        self.path = path
        self.offsets, self.outputs = dict(offsets), dict(outputs)
        self.levels: dict[str, int] = dict.fromkeys(outputs, 0)
        """What the daemon has switched on, by role."""
        self.on_output: Callable[[str, int], None] = lambda role, level: None
        self.dropped = 0
        """Edges that nobody was connected to see."""
        self.connected = asyncio.Event()
        self._numbering = Numbering()
        self._writer: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_unix_server(self._serve, path=str(self.path))

    async def close(self) -> None:
        """Cut the connection and remove the socket."""
        if self._server is not None:
            self._server.close()
        if self._writer is not None:
            self._writer.close()
        if self._server is not None:
            await self._server.wait_closed()
        self.path.unlink(missing_ok=True)

    def play(self, pulses: Iterable[Pulse]) -> None:
        """Deliver edges now, with the times they carry."""
        writer = self._writer
        if writer is None or writer.is_closing():
            self.dropped += sum(1 for _ in pulses)
            return
        out = bytearray()
        for pulse in pulses:
            out += record(pulse, self.offsets[pulse.line], *self._numbering.next(pulse))
        if out:
            writer.write(out)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer, self._numbering = writer, Numbering()
        self.connected.set()
        try:
            while True:
                bits, mask = VALUES.unpack(await reader.readexactly(VALUES.size))
                for role, offset in self.outputs.items():
                    level = bits >> offset & 1
                    if mask >> offset & 1 and level != self.levels[role]:
                        self.levels[role] = level
                        self.on_output(role, level)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            if self._writer is writer:
                self._writer = None
                self.connected.clear()
            writer.close()
