"""The journal task: puts what the sequencer stepped on the disk, and only then tells the floor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from controller import wire
from controller.clock import Clock
from controller.connection import Disconnected
from controller.floor import Floor
from controller.journal import JournalUnavailableError
from controller.journal_file import Message
from controller.journal_thread import JournalThread
from controller.local_socket import LocalSocket
from controller.outbox import Outbox
from controller.sequencer import Commit, Sequencer
from controller.standing import Standing
from rules.words import text

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""Between attempts to write while the disk refuses."""
REPLAY_READY_S: Final = 2.0


class Commits:
    """`run` is the critical task `journal`."""

    def __init__(
        self, *, sequencer: Sequencer, thread: JournalThread, standing: Standing, clock: Clock, beat: Callable[[], None]
    ) -> None:
        self._sequencer, self._thread, self._standing = sequencer, thread, standing
        self._clock, self._beat = clock, beat
        self._known_newer: str | None = None
        """A result that the broker knows and our journal does not: a new epoch is due."""
        self._named = asyncio.Event()
        self._named.set()
        """Cleared while messages wait for the name of a new epoch."""
        self._since_ns: int | None = None

    def connect(self, floor: Floor, outbox: Outbox, local: LocalSocket) -> None:
        """Who is told after a commit."""
        self._floor, self._outbox, self._local = floor, outbox, local

    def since_ns(self) -> int | None:
        """Since when a commit has been under way; None when none is, or the disk is known to refuse."""
        return self._since_ns

    async def run(self, ended: Callable[[], bool]) -> None:
        """Commit what waits, until `ended` and nothing waits any more."""
        while True:
            self._beat()
            if await self._sequencer.something_to_commit():
                await self._commit(self._sequencer.take())
            elif self._known_newer is not None:
                await self._rename(self._known_newer)
            elif ended():
                return

    async def _commit(self, commit: Commit) -> None:
        while not await self._written(commit):
            self._beat()
            await asyncio.sleep(RETRY_S)
        commit.done()
        batch = commit.batch
        last_result = batch.results[-1].payload if batch.results else None
        epoch = self._sequencer.scribe.epoch
        self._standing.committed(commit.state, batch.rows[-1].seq, epoch, last_result)
        if batch.epoch:
            self._outbox.restart(batch.messages)
        else:
            self._outbox.added(batch.messages)
        self._standing.clear("journal:unavailable")
        for message in batch.messages:
            self._local.tell(message.suffix, message.payload)
        self.tell()
        if last_result is not None:
            self._floor.tell_last(last_result)

    async def _written(self, commit: Commit) -> bool:
        """Is it on the disk; False while the disk refuses, and people are told."""
        self._since_ns = self._clock.mono_ns()
        try:
            await self._thread.commit(commit.batch)
        except JournalUnavailableError as error:
            log.error("commit refused: %s", error)
            self._standing.alarm("journal:unavailable", "journal_muet", text("journal_muet", why=error.reason))
            self.tell()  # so that people see the alarm although it has no row yet
            return False
        finally:
            self._since_ns = None
        return True

    def tell(self) -> None:
        """Say what stands as of the last commit."""
        self._floor.tell_state(wire.encode(self._standing.wire_state()))

    # --- a new epoch ---

    def older(self, known: str) -> None:
        """The broker knows a result of our epoch that our journal does not: go on under a new one."""
        ours = f"{self._standing.epoch}/{self._standing.seq}"
        self._standing.alarm("journal:epoch", "journal_ancien", text("journal_ancien", known=known, ours=ours))
        self._standing.clear("journal:epoch")
        self._known_newer = known
        self._named.clear()

    async def _rename(self, known: str) -> None:
        unsent: Sequence[Message] = await self._thread.call(self._thread.journal.unsent, 0, 2**31)
        if self._sequencer.pending_now():
            return  # commit that first, then look again
        epoch = self._sequencer.scribe.change_epoch("older", f"the broker knows {known}", unsent)
        self._known_newer = None
        await self._commit(self._sequencer.take())
        self._floor.change_epoch(epoch)
        self._named.set()

    async def outbox_ready(self) -> None:
        """Wait until messages may go out: never under an epoch that is about to be left."""
        await self._floor.ready()
        while not self._named.is_set():
            await self._named.wait()
            await self._floor.ready()

    # --- results once more ---

    async def replay(self, after_seq: int, limit: int) -> tuple[Sequence[bytes], int]:
        """Results after `seq`, sent again in order; their bodies and how many the broker has taken."""
        results = await self._thread.call(self._thread.journal.results_after, after_seq, limit)
        sent = 0
        try:
            async with asyncio.timeout(REPLAY_READY_S):
                await self.outbox_ready()
            for payload in results:
                acked = await self._floor.publish("result", payload)
                if not acked.ok:
                    break
                sent += 1
        except (Disconnected, TimeoutError):
            log.warning("replay: the broker has taken %d of %d results", sent, len(results))
        return results, sent
