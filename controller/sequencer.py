"""The sequencer: facts from everywhere become one order; each is stepped through the law, and lamps act at once.

    ports ────┐                          ┌─► lamps (now)
    timers ───┼─► inbox ─► step ─► row ──┼─► timers armed
    commands ─┘  (bounded)               └─► pending (bounded) ─► journal task: one commit of all that wait ─► floor

Stepping never waits for the disk: rows pile up while a commit runs, and the journal task takes all that wait as one
transaction. Order is the order of arrival, numbered by the scribe's `seq`, never a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controller.clock import Clock
from controller.flight import Flight
from controller.journal import Batch
from controller.lag import FROZEN_NS
from controller.results import Told
from controller.scribe import Scribe
from controller.timers import TIMER, due
from rules.decisions import CoupEnded, Decision, Status
from rules.facts import Fact, TimerElapsed
from rules.state import Armed, TableState
from rules.table import Table
from rules.verdict import exchanged

log = logging.getLogger(__name__)

INBOX_MAX: Final = 4096
"""Facts that may wait to be stepped. Policy: the port that has more waits and is not read meanwhile."""
PENDING_MAX: Final = 4096
"""Rows that may wait for the disk. Policy: stepping waits."""
TURN: Final = 64
"""Facts stepped before the other tasks get their turn."""
BEAT_S: Final = 1.0
"""An idle sequencer says this often that it is alive."""
READ_S: Final = 0.1
"""So long a timer that comes late (`FROZEN_NS`) lets the ports be read first: what they hold was there before it."""

Answer = asyncio.Future[tuple[Decision, ...]]


@dataclass(frozen=True, slots=True)
class Commit:
    """What is to be put on the disk together, and whom to tell then."""

    batch: Batch
    state: TableState
    answers: tuple[tuple[Answer, tuple[Decision, ...]], ...]

    def done(self) -> None:
        """It is on the disk: whoever asked gets his answer."""
        for answer, decisions in self.answers:
            if not answer.done():
                answer.set_result(decisions)


class Sequencer:
    """Owns the state of the table; every method runs in the loop's thread."""

    def __init__(
        self,
        *,
        table: Table,
        state: TableState,
        scribe: Scribe,
        react: Callable[[Decision], None],
        told: Callable[[Fact | None, Sequence[Decision]], None],
        controller: Callable[[], Mapping[str, Any]],
        flight: Flight,
        snapshots: Callable[[], Mapping[str, Any]],
        clock: Clock,
        beat: Callable[[], None],
    ) -> None:
        """`react` acts on a decision at once (lamps), `told` hears a whole step once it has its row (alarms).

        Its fact is None when the state was exchanged. `controller` is what is stored beside the state with each commit;
        `snapshots` freezes every decoder.
        """
        self.state = state
        self.scribe = scribe
        self.inbox_peak = self.pending_peak = 0
        self._table = table
        self._react = react
        self._told = told
        self._controller = controller
        self._flight = flight
        self._snapshots = snapshots
        self._clock = clock
        self._beat = beat
        self._inbox: deque[tuple[Fact, Answer | None]] = deque()
        self._entrance = asyncio.Lock()
        self._pending = 0
        self._answers: list[tuple[Answer, tuple[Decision, ...]]] = []
        self._timers: dict[str, tuple[Armed, asyncio.TimerHandle]] = {}
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._to_commit = asyncio.Event()
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
        self._take(fact, None)

    async def ask(self, fact: Fact) -> tuple[Decision, ...]:
        """Take a command; its decisions, once they are on the disk."""
        answer: Answer = asyncio.get_running_loop().create_future()
        self._take(fact, answer)
        return await answer

    def _take(self, fact: Fact, answer: Answer | None) -> None:
        self._flight.fact(fact)
        self._inbox.append((fact, answer))
        self._arrived()

    def note(self, kind: str, body: Mapping[str, Any], *told: Told) -> None:
        """Have something of the controller's own journalled after the facts stepped so far."""
        self.scribe.note(kind, body, *told)
        self._row()

    async def written(self) -> None:
        """Return once every row so far is on the disk."""
        if self._pending:
            answer: Answer = asyncio.get_running_loop().create_future()
            self._answers.append((answer, ()))
            await answer

    def replace(self, state: TableState, kind: str, body: Mapping[str, Any]) -> None:
        """Go on from another state (maintenance): no fact says why, so the flight recorder begins anew."""
        decisions = exchanged(self.state, state)
        self.state = state
        self._flight.forget()
        self._arm()
        self.note(kind, body)
        for decision in decisions:
            self._react(decision)
        self._told(None, decisions)

    def wake(self) -> None:
        """Look for what to do, although nothing came in (a flight record is wanted)."""
        self._something.set()

    def full(self) -> bool:
        """Is there no room for a command."""
        return len(self._inbox) >= INBOX_MAX or self._pending >= PENDING_MAX

    def _arrived(self) -> None:
        self.inbox_peak = max(self.inbox_peak, len(self._inbox))
        self._something.set()

    # the one order

    async def run(self) -> None:
        """Step what comes in; after `close`, return as soon as nothing waits."""
        self._arm()
        while True:
            self._beat()
            for _ in range(min(TURN, len(self._inbox), PENDING_MAX - self._pending)):
                self._step(*self._inbox.popleft())
            self._room.set()
            if self._inbox and self._pending < PENDING_MAX:
                await asyncio.sleep(0)
                continue
            if not self._inbox:
                self._quiet()
                if self._closing:
                    self._to_commit.set()
                    return
            self._something.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._something.wait()

    def close(self) -> None:
        """Nothing more will come in."""
        self._closing = True
        for _, handle in self._timers.values():
            handle.cancel()
        self._something.set()

    def _step(self, fact: Fact, answer: Answer | None) -> None:
        if isinstance(fact, TimerElapsed) and not due(self.state, fact):
            return  # re-armed or cancelled while it waited in the inbox
        try:
            self.state, decisions = self._table.step(self.state, fact)
        except Exception:
            log.critical("the law raised on %s", fact)
            raise
        for decision in decisions:
            self._react(decision)
        self._arm()
        self.scribe.step(fact, decisions, self.state)
        self._told(fact, decisions)
        for decision in decisions:
            if isinstance(decision, CoupEnded) and decision.status is not Status.VALID:
                self._flight.want(decision.status.value)
        if answer is not None:
            self._answers.append((answer, decisions))
        self._row()

    def _row(self) -> None:
        self._pending += 1
        self.pending_peak = max(self.pending_peak, self._pending)
        self._to_commit.set()

    # what goes out

    async def something_to_commit(self) -> bool:
        """Wait until a row is pending, or the sequencer has ended, at most `BEAT_S`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT_S):
                await self._to_commit.wait()
        return self._pending > 0

    def take(self) -> Commit:
        """Everything that waits for the disk."""
        commit = Commit(self.scribe.batch(self.state, self._controller()), self.state, tuple(self._answers))
        self._pending, self._answers = 0, []
        self._to_commit.clear()
        self._something.set()  # stepping may have waited for room
        return commit

    def pending_now(self) -> int:
        """How many rows wait for the disk."""
        return self._pending

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
        if not self._closing and self._clock.mono_ns() - timer.at_ns > FROZEN_NS:
            later = asyncio.get_running_loop().call_later(READ_S, self._tell_elapsed, timer)
            self._timers[timer.name] = (timer, later)
        else:
            self._tell_elapsed(timer)

    def _tell_elapsed(self, timer: Armed) -> None:
        if not self._closing:
            self.tell(TimerElapsed(name=timer.name, at_ns=timer.at_ns, source=TIMER))

    # the flight recorder

    def _quiet(self) -> None:
        """Nothing waits: state and decoders are of the same moment, the time for checkpoints and records."""
        if not self._entrance.locked():
            self._flight.quiet(self.scribe.seq, self.state, self._snapshots)
