"""The sequencer: facts from everywhere become one order; each is stepped through the law, and lamps act at once.

    ports ────┐                          ┌─► lamps (now)
    timers ───┼─► inbox ─► step ─► seq ──┼─► timers armed
    commands ─┘  (bounded)               └─► rows (bounded) ─► journal task: one commit of all that wait ─► floor

Stepping never waits for the disk: rows pile up while a commit runs, and the journal task takes all that wait as one
transaction. Order is the order of arrival, numbered by `seq`, never a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controller.clock import Clock
from controller.flight import Flight
from controller.timers import TIMER, due
from rules.decisions import CoupEnded, Decision, Signal, Status
from rules.facts import Fact, TimerElapsed
from rules.state import Armed, TableState
from rules.table import Table

INBOX_MAX: Final = 4096
"""Facts that may wait to be stepped. Policy: the port that has more waits and is not read meanwhile."""
ROWS_MAX: Final = 4096
"""Rows that may wait for the disk. Policy: stepping waits."""
BEAT_S: Final = 1.0
"""An idle sequencer says this often that it is alive."""
BATCH: Final = 64
"""Facts stepped before the other tasks get their turn."""


@dataclass(frozen=True, slots=True)
class Row:
    """A fact, what the law answered, and the state afterwards: one row of the journal."""

    fact: Fact
    decisions: tuple[Decision, ...]
    state: TableState
    asked: asyncio.Future[tuple[Decision, ...]] | None = None
    """Whoever waits for the commit of this row."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something of the controller's own that goes into the journal between the facts, in order."""

    kind: str
    body: Mapping[str, Any]


Entry = Row | Note


class Sequencer:
    """Owns the state of the table; every method runs in the loop's thread."""

    def __init__(
        self,
        *,
        table: Table,
        state: TableState,
        signal: Callable[[Signal], None],
        flight: Flight,
        snapshots: Callable[[], Mapping[str, Any]],
        clock: Clock,
        beat: Callable[[], None],
    ) -> None:
        """`signal` switches a lamp at once; `snapshots` freezes every decoder for the flight recorder."""
        self.state = state
        self.entered = 0
        """How many entries were made: the flight recorder's `seq` is counted from the journal's at the start."""
        self.inbox_peak = self.rows_peak = 0
        self._table = table
        self._signal = signal
        self._flight = flight
        self._snapshots = snapshots
        self._clock = clock
        self._beat = beat
        self._inbox: deque[tuple[Fact, asyncio.Future[tuple[Decision, ...]] | None]] = deque()
        self._entrance = asyncio.Lock()
        self._rows: list[Entry] = []
        self._timers: dict[str, tuple[Armed, asyncio.TimerHandle]] = {}
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._something_to_commit = asyncio.Event()
        self._closing = False

    # who comes in

    async def put(self, facts: Sequence[Fact]) -> None:
        """Take facts of a device in order (`drivers.base.Emit`); waits, first come first served, while it is full."""
        async with self._entrance:
            while len(self._inbox) >= INBOX_MAX:
                self._room.clear()
                await self._room.wait()
            self._inbox.extend((fact, None) for fact in facts)
            self._arrived()

    def tell(self, fact: Fact) -> None:
        """Take a fact of the controller itself; there are few, so none is made to wait."""
        self._flight.fact(fact)
        self._inbox.append((fact, None))
        self._arrived()

    async def ask(self, fact: Fact) -> tuple[Decision, ...]:
        """Take a command; its decisions, once they are on the disk."""
        answer: asyncio.Future[tuple[Decision, ...]] = asyncio.get_running_loop().create_future()
        self._flight.fact(fact)
        self._inbox.append((fact, answer))
        self._arrived()
        return await answer

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        """Have something of the controller's own journalled after the facts stepped so far."""
        self._enter(Note(kind, body))

    def waiting(self) -> int:
        """How many facts wait to be stepped."""
        return len(self._inbox)

    def _arrived(self) -> None:
        self.inbox_peak = max(self.inbox_peak, len(self._inbox))
        self._something.set()

    # the one order

    async def run(self) -> None:
        """Step what comes in; after `close`, return as soon as nothing waits."""
        self._arm()
        while True:
            self._beat()
            self._step_some()
            self._room.set()
            if self._inbox and len(self._rows) < ROWS_MAX:
                await asyncio.sleep(0)
                continue
            if not self._inbox:
                self._quiet()
                if self._closing:
                    return
            self._something.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._something.wait()

    def _step_some(self) -> None:
        for _ in range(min(BATCH, len(self._inbox), ROWS_MAX - len(self._rows))):
            self._step(*self._inbox.popleft())

    def close(self) -> None:
        """Nothing more will come in."""
        self._closing = True
        for _, handle in self._timers.values():
            handle.cancel()
        self._something.set()

    def _step(self, fact: Fact, asked: asyncio.Future[tuple[Decision, ...]] | None) -> None:
        if isinstance(fact, TimerElapsed) and not due(self.state, fact):
            return  # re-armed or cancelled while it waited in the inbox
        self.state, decisions = self._table.step(self.state, fact)
        for decision in decisions:
            if isinstance(decision, Signal):
                self._signal(decision)
            elif isinstance(decision, CoupEnded) and decision.status is not Status.VALID:
                self._flight.want(decision.status.value)
        self._arm()
        self._enter(Row(fact, decisions, self.state, asked))

    def _enter(self, entry: Entry) -> None:
        self._rows.append(entry)
        self.entered += 1
        self.rows_peak = max(self.rows_peak, len(self._rows))
        self._something_to_commit.set()

    # what goes out

    async def entries(self) -> None:
        """Wait until something is to be committed, at most `BEAT_S`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT_S):
                await self._something_to_commit.wait()

    def take(self) -> list[Entry]:
        """All entries that wait for the disk, in order."""
        rows, self._rows = self._rows, []
        self._something_to_commit.clear()
        self._something.set()  # stepping may have waited for room
        return rows

    # timers

    def _arm(self) -> None:
        """Make the loop's timers those of the state."""
        armed = {timer.name: timer for timer in self.state.timers}
        for name in [name for name, (timer, _) in self._timers.items() if armed.get(name) != timer]:
            self._timers.pop(name)[1].cancel()
        loop = asyncio.get_running_loop()
        for name, timer in armed.items():
            if name not in self._timers:
                self._timers[name] = (timer, loop.call_at(timer.at_ns / 1e9, self._elapsed, timer))

    def _elapsed(self, timer: Armed) -> None:
        if not self._closing:
            self.tell(TimerElapsed(name=timer.name, at_ns=timer.at_ns, source=TIMER))

    # the flight recorder

    def _quiet(self) -> None:
        """Nothing waits: state and decoders are of the same moment, the time for checkpoints and records."""
        if not self._entrance.locked():
            self._flight.quiet(self.entered, self.state, self._snapshots)
