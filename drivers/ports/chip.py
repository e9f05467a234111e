"""The task of one chip: opens it, hands every edge to the device whose line it is, switches outputs.

    absent ──► open: read, feed, tick ──► lost ──► (pause) ──► absent ...

A stream of edges is gathered for a few milliseconds, for waking up costs more than decoding; the first edge after a
rest is read at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from drivers.base import Edge, EdgeDecoder, Emit, Tap
from drivers.feeder import Backoff, Feeder, readable
from drivers.ports.lines import FALLING, RISING, Event, LineError, LinePort, LineSpec, OutputSpec, open_port

log = logging.getLogger(__name__)

GATHER_S: Final = 0.005
"""A stream of edges is read this often and not at each edge; the first edge after a pause is read at once."""
SLACKEN_S: Final = 0.00001
"""The pauses begin with none and grow by this: a turn in the wrong sense is to be told while it can be stopped."""
REST_NS: Final = 500_000_000
"""After so long without an edge the pauses begin anew; something that trembles is no beginning."""
CHECK_NS: Final = 1_000_000_000
"""Contacts are asked for their level this often, where the chip can be asked: a lost edge is found (case 55)."""


@dataclass(frozen=True, slots=True)
class EdgeDevice:
    """A device on lines of a chip: its decoder and its lines by their roles."""

    decoder: EdgeDecoder
    lines: Mapping[str, LineSpec]
    contacts: bool = False
    """Its lines are asked for their level."""


class LineChip:
    """The task of one chip; `run` never ends by itself."""

    def __init__(
        self,
        path: str,
        devices: Mapping[str, EdgeDevice],
        outputs: Mapping[str, OutputSpec],
        emit: Emit,
        tap: Tap | None = None,
    ) -> None:
        """`devices` by role, `outputs` by name; `path` as `drivers.ports.lines.open_port` takes it."""
        self.path = path
        self.state: Literal["lost", "ok"] = "lost"
        self.why = "not opened yet"
        """What keeps the chip from us, for people; empty while it is open."""
        self.counts = {"edges": 0, "reads": 0, "foreign": 0, "opens": 0, "made_up": 0}
        self._inputs = {name: line for device in devices.values() for name, line in device.lines.items()}
        self._outputs = dict(outputs)
        self._wanted = dict.fromkeys(outputs, False)
        self.devices = {role: device.decoder for role, device in devices.items()}
        self._feeders = {role: Feeder(role, device.decoder, emit, tap) for role, device in devices.items()}
        self._of_offset = {
            line.offset: (self._feeders[role], name)
            for role, device in devices.items()
            for name, line in device.lines.items()
        }
        self._contacts = {
            line.offset: 0 for device in devices.values() if device.contacts for line in device.lines.values()
        }
        """The level of every contact after its newest edge."""
        self._port: LinePort | None = None
        self._check_ns = 0
        self._streaming = False
        self._gather_s = 0.0
        self._edges_ns = 0
        """When edges were last read."""
        self._backoff = Backoff()

    async def run(self) -> None:
        """Serve the chip for ever; an absent or lost one is opened again after a pause."""
        while True:
            await self.serve_once()
            await asyncio.sleep(self._backoff.next_s())

    async def serve_once(self) -> None:
        """Open the chip and serve it until it is lost."""
        try:
            self._port = await open_port(self.path, self._inputs, self._outputs)
        except LineError as error:
            await self._lose(str(error), "cannot_open")
            return
        log.info("lines %s: open", self.path)
        self.state, self.why = "ok", ""
        self.counts["opens"] += 1
        self._backoff.reset()
        try:
            self._switch(self._wanted)
            now = time.monotonic_ns()
            self._check_ns = now + CHECK_NS
            self._streaming = False
            self._contacts = dict.fromkeys(self._contacts, 0)
            for feeder in self._feeders.values():
                await feeder.opened(now)
            await self._make_up(self._port.levels(), now)
            while True:
                await self._turn(self._port)
        except LineError as error:
            await self._lose(str(error), "unplugged")
        finally:
            with contextlib.suppress(LineError):  # dark when we are not there to mean it
                self._port.write({output.offset: False for output in self._outputs.values()})
            self._port.close()
            self._port = None

    def set_output(self, name: str, on: bool) -> None:
        """Switch an output now, or as soon as the chip is back. Raises KeyError for an unknown name."""
        self._wanted[name] = on
        if self._port is not None:
            try:
                self._switch({name: on})
            except LineError as error:
                log.warning("lines %s: output %s not switched: %s", self.path, name, error)

    def output(self, name: str) -> bool:
        """What an output is meant to be."""
        return self._wanted[name]

    def health(self) -> dict[str, int | str]:
        """State, reason and counters of the chip."""
        return {"state": self.state, "why": self.why, **self.counts}

    async def _turn(self, port: LinePort) -> None:
        """Wait for edges or for a decoder that is due; read, feed, then tick."""
        if self._streaming:
            await asyncio.sleep(self._gather_s)
        else:
            await self._wait(port)
        now = time.monotonic_ns()
        self._streaming = bool(await self._read(port))
        if self._streaming:
            rested = now - self._edges_ns > REST_NS
            self._gather_s = 0.0 if rested else min(self._gather_s + SLACKEN_S, GATHER_S)
            self._edges_ns = now
        if now >= self._check_ns:
            self._check_ns = now + CHECK_NS
            await self._check(port)
        for feeder in self._feeders.values():
            await feeder.tick(now)

    async def _wait(self, port: LinePort) -> None:
        dues = [due for feeder in self._feeders.values() if (due := feeder.due_ns()) is not None]
        if self._contacts:
            dues.append(self._check_ns)
        due = min(dues, default=None)
        if port.fd >= 0:
            await readable(port.fd, due)
        else:
            await asyncio.sleep(3600 if due is None else max(0, due - time.monotonic_ns()) / 1e9)

    async def _read(self, port: LinePort) -> list[Event]:
        """Feed what has come."""
        events = port.read()
        if events:
            await self._dispatch(events)
        return events

    async def _check(self, port: LinePort) -> None:
        """Ask for the levels of the contacts; one on which an edge comes meanwhile needs no answer."""
        levels, now = port.levels(), time.monotonic_ns()
        moved = {offset for _, _, offset, _, _ in await self._read(port)}
        await self._make_up({offset: level for offset, level in levels.items() if offset not in moved}, now)

    async def _make_up(self, levels: Mapping[int, int], now_ns: int) -> None:
        """Feed an edge for every contact that is not as its newest edge left it."""
        for offset, before in list(self._contacts.items()):
            if levels.get(offset, before) != before:
                self.counts["made_up"] += 1
                await self._dispatch([(now_ns, RISING if levels[offset] else FALLING, offset, 0, 0)])

    async def _dispatch(self, events: Sequence[Event]) -> None:
        """Feed runs of edges of one device at a time, so that the order between devices is kept."""
        self.counts["reads"] += 1
        self.counts["edges"] += len(events)
        whose: Feeder[EdgeDecoder] | None = None
        run: list[Edge] = []
        for at_ns, kind, offset, _, line_seqno in events:
            known = self._of_offset.get(offset)
            if known is None:
                self.counts["foreign"] += 1
                continue
            feeder, line = known
            if whose is not None and whose is not feeder:
                await whose.edges(run)
                run = []
            whose = feeder
            level = int(kind == RISING)
            if offset in self._contacts:
                self._contacts[offset] = level
            run.append(Edge(line, level, at_ns, line_seqno))
        if whose is not None:
            await whose.edges(run)

    def _switch(self, wanted: Mapping[str, bool]) -> None:
        if self._port is not None and wanted:
            self._port.write({self._outputs[name].offset: on for name, on in wanted.items()})

    async def _lose(self, text: str, code: str) -> None:
        """Tell the loss to every device, and log it once per kind of trouble."""
        if self.why != text:
            log.warning("lines %s: %s", self.path, text)
        self.state, self.why = "lost", text
        now = time.monotonic_ns()
        for feeder in self._feeders.values():
            await feeder.lost(now, code)
