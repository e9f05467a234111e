"""The one thread that touches the journal, seen from the event loop: a sync never stops the loop (field case 102)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from controller.journal import Batch, Journal, JournalUnavailableError

P = ParamSpec("P")
T = TypeVar("T")

IDLE_S: Final = 0.2
"""Without work for so long the thread tidies."""
BEAT_S: Final = 1.0
WAITING_MAX: Final = 16
"""Calls that may wait for the thread. Policy: the caller waits."""


class JournalThread:
    """Calls are carried out in order. `run` is a task that tidies in idle moments."""

    def __init__(self, journal: Journal, beat: Callable[[], None] = lambda: None) -> None:
        self.journal = journal
        self.waiting_peak = 0
        self._beat = beat
        self._pool = ThreadPoolExecutor(1, "journal")
        self._room = asyncio.Semaphore(WAITING_MAX)
        self._waiting = 0
        self._worked = asyncio.Event()

    async def commit(self, batch: Batch) -> None:
        """`Journal.commit`; when it raises JournalUnavailableError the batch may be given again."""
        await self.call(self.journal.commit, batch)

    async def mark_sent(self, message_id: int, *, alone: bool = False) -> None:
        """`Journal.mark_sent`."""
        await self.call(self.journal.mark_sent, message_id, alone=alone)

    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have the thread do anything with the journal (`thread.call(thread.journal.results_after, 7)`)."""
        async with self._room:
            self._waiting += 1
            self.waiting_peak = max(self.waiting_peak, self._waiting)
            try:
                return await asyncio.wrap_future(self._pool.submit(work, *args, **kwargs))
            finally:
                self._waiting -= 1
                self._worked.set()

    async def run(self) -> None:
        """Tidy whenever there was work and then none; a disk that cannot be written to is tried again later."""
        while True:
            self._beat()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._worked.wait()
            if not self._worked.is_set():
                continue
            for _ in range(10):  # not for ever while there is no idle moment
                if not self._worked.is_set():
                    break
                self._worked.clear()
                await asyncio.sleep(IDLE_S)
                self._beat()
            with contextlib.suppress(JournalUnavailableError):
                await asyncio.wrap_future(self._pool.submit(self.journal.tidy))

    def abandon(self) -> None:
        """`Journal.abandon` once the thread is idle: a file that is closed under a commit crashes the process."""
        self._pool.shutdown(cancel_futures=True)
        self.journal.abandon()

    async def close(self, reason: str = "stopped") -> None:
        """Do what still waits, close the journal and end the thread."""
        try:
            await self.call(self.journal.close, reason)
        finally:
            self._pool.shutdown()
