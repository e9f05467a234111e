"""The outbox pump: what was committed goes to the floor in order, one message at a time, until the broker has it.

A message is done on the acknowledgement of that very message with a good reason code (field cases 3, 30); the mark is
written before the next one goes out, so that the death of the process leaves one in doubt and no more. Whatever is sent
again is byte-identical. A refused message stays the next one of its topic: that topic rests, then the same message is
tried again and never skipped, while those of other topics go on in their order. After a rest everything unsent is read
anew from the journal, which alone knows the order.

Memory is bounded: at most `PAGE` messages are held, the rest is read from the journal when their turn comes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from controller.clock import Clock
from controller.connection import Acked, Disconnected
from controller.journal_file import Message
from controller.journal_thread import JournalThread

PAGE: Final = 64
"""Messages in memory. Policy: the others wait in the journal."""
BEAT_S: Final = 1.0
RETRY_S: Final = 0.02
PAUSE_MIN_S: Final = 0.5
PAUSE_MAX_S: Final = 30.0
"""After a refusal: rights that are mended need no restart."""


class Publish(Protocol):
    """Send at QoS 1 and answer with the broker's reason for this message (`controller.floor.Floor.publish`)."""

    async def __call__(self, suffix: str, payload: bytes) -> Acked:
        """Raises Disconnected; a refusal raises the alarm that names the topic."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """A topic whose next message the broker does not take."""

    at_ns: int
    """When that message was made."""
    pause: float
    until: float
    """When it is tried again."""


class Outbox:
    """The pump. `run` is its task; `added` is called after each commit, `restart` after a change of epoch."""

    def __init__(
        self,
        thread: JournalThread,
        *,
        publish: Publish,
        ready: Callable[[], Awaitable[None]],
        clock: Clock,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`ready` waits until the floor has said what stands. Make it before anybody uses the thread."""
        self.sent = self.refusals = 0
        self._thread, self._publish, self._ready = thread, publish, ready
        self._clock, self._beat = clock, beat
        self._changed = asyncio.Event()
        self._held = deque(thread.journal.unsent(limit=PAGE))
        self._last = thread.journal.head.last_outbox
        self._through = self._held[-1].id if self._held else self._last
        """The last id that was held; those beyond, up to `_last`, are in the journal only."""
        self._unsent = thread.journal.unsent_count()
        self._done_ns = 0
        self._restarts = 0
        self._refused: dict[str, _Refused] = {}
        """Topics that are refused, until a message of theirs is taken."""
        self._resting: set[str] = set()
        """Of these, the ones that are not tried now: none of their messages is held."""

    def added(self, messages: Sequence[Message]) -> None:
        """These have been committed."""
        self._unsent += len(messages)
        fresh = [message for message in messages if message.id > self._through]
        if not fresh:
            return
        if self._last <= self._through and len(self._held) + len(fresh) <= PAGE:
            self._held.extend(message for message in fresh if message.suffix not in self._resting)
            self._through = fresh[-1].id
        self._last = fresh[-1].id
        self._changed.set()

    def restart(self, messages: Sequence[Message]) -> None:
        """All that were unsent are these now (`Batch.epoch` has been committed)."""
        self._held.clear()
        self._unsent = 0
        self._restarts += 1
        self._through = self._last = messages[0].id - 1 if messages else self._last
        self.added(messages)

    async def run(self) -> None:
        """Send, for ever."""
        while True:
            message = await self._next()
            await self._up()
            if not self._held or self._held[0] is not message:
                continue  # another epoch began meanwhile
            try:
                acked = await self._publish(message.suffix, message.payload)
            except Disconnected:
                await asyncio.sleep(RETRY_S)  # `ready` holds us until the next connection
                continue
            if acked.ok:
                self._refused.pop(message.suffix, None)
                await self._done(message)
            else:
                self.refusals += 1
                self._rest(message)

    async def _next(self) -> Message:
        """The next message to send; waits for one."""
        while True:
            self._wake()
            if self._held:
                return self._held[0]
            self._beat()
            if self._through < self._last:
                restarts, resting = self._restarts, set(self._resting)
                page = await self._thread.call(self._thread.journal.unsent, self._through, PAGE, resting)
                if restarts == self._restarts:
                    self._held.extend(page)
                    self._through = page[-1].id if page else self._last
                continue
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._changed.wait()

    def _rest(self, message: Message) -> None:
        """Let the topic of a refused message rest, each time longer."""
        before = self._refused.get(message.suffix)
        pause = PAUSE_MIN_S if before is None else min(2 * before.pause, PAUSE_MAX_S)
        until = asyncio.get_running_loop().time() + pause
        self._refused[message.suffix] = _Refused(at_ns=message.at_ns, pause=pause, until=until)
        self._resting.add(message.suffix)
        self._held = deque(held for held in self._held if held.suffix != message.suffix)

    def _wake(self) -> None:
        """Once a topic has rested, read what is unsent from the journal again, from the oldest on."""
        now = asyncio.get_running_loop().time()
        resting = {suffix for suffix in self._resting if self._refused[suffix].until > now}
        if resting != self._resting:
            self._resting = resting
            self._held.clear()
            self._through = 0

    async def _up(self) -> None:
        """Wait until messages may go out."""
        while True:
            self._beat()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._ready()
                    return

    async def _done(self, message: Message) -> None:
        if self._held and self._held[0] is message:
            self._held.popleft()
            self._unsent -= 1
        self.sent += 1
        self._done_ns = message.at_ns
        await self._thread.mark_sent(message.id, alone=bool(self._resting))

    def unsent(self) -> int:
        """How many messages the floor does not have."""
        return self._unsent

    def oldest_unsent_ms(self) -> int | None:
        """Age of the oldest of them; None when there is none."""
        if not self._unsent:
            return None
        refused = [entry.at_ns for entry in self._refused.values()]
        made_ns = min([self._held[0].at_ns if self._held else self._done_ns, *refused])
        return max(0, self._clock.mono_ns() - made_ns) // 1_000_000
