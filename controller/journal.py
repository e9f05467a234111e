"""The journal: what happened at the table, chained and synced, with the state to go on from.

One process per state folder (a lock), one thread that touches the file (`controller.journal_thread`), one transaction
per batch: rows, state, results and messages for the floor are on the disk together or not at all, and nothing is told
to anybody before. Rows and results are never deleted; a file that has grown is closed and kept whole while a short one
goes on (`controller.journal_rotation`). What a start does with a missing, damaged or older file is told in
`controller.journal_start`; the file itself in `controller.journal_file`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from controller.clock import Clock
from controller.highwater import HighWater, Mark
from controller.journal_file import (
    NAME,
    JournalError,
    Message,
    Result,
    Row,
    append,
    connect,
    name_of,
    of_the_surroundings,
    put_messages,
    put_snapshot,
    read_head,
    transaction,
    unsent_messages,
)
from controller.journal_rotation import shorten
from controller.journal_start import Owner, Start, fresh_file, name_for_kept, own_row, swap_in
from controller.signing import SigningKey

log = logging.getLogger(__name__)

LOCK: Final = "lock"
LATENCIES: Final = 512
"""Commits over which the latency figures are taken."""
WAL_BYTES: Final = 1_000_000
"""Write-ahead log beyond which an idle moment is used to move it into the file."""
DELETED_AT_ONCE: Final = 500
"""Messages that the floor has, removed per commit."""
BYTES_MAX: Final = 500_000_000


class JournalUnavailableError(JournalError):
    """Nothing can be written now (`reason`: `disk_full`, `read_only`, `locked`); the same batch may be tried again."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason


class JournalBrokenError(JournalError):
    """Nobody knows what is on the disk: the process must end, and the next start will look (never retry a sync)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is committed together; numbers (`seq`, `result_no`, message `id`) continue those of the journal."""

    rows: tuple[Row, ...]
    results: tuple[Result, ...] = ()
    messages: tuple[Message, ...] = ()
    snapshot: bytes | None = None
    """The state's body after the last row; None leaves the stored one."""
    epoch: str = ""
    """A new epoch that begins with this batch; its `messages` then stand for all that were unsent."""


class Journal:
    """The journal, open for writing; one thread at a time. Methods raise JournalError and its kinds."""

    def __init__(
        self, folder: Path, owner: Owner, key: SigningKey, clock: Clock, *, bytes_max: int = BYTES_MAX
    ) -> None:
        """Open it, mend it if need be, and begin: `found` says what was there. Rotated beyond `bytes_max`."""
        self.folder, self.path = folder, folder / NAME
        self.trouble = ""
        """Why the last attempt to write failed; empty when it did not."""
        self._key, self._clock, self._bytes_max = key, clock, bytes_max
        self._batches = 0
        self._short_bytes = 0
        """Size after the last rotation: what is carried on (a long outbox) does not cause the next one."""
        self._took_us: deque[int] = deque(maxlen=LATENCIES)
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(mode=0o750, parents=True, exist_ok=True)
                opened.enter_context(_locked(folder))
                self._high = opened.enter_context(contextlib.closing(HighWater(folder)))
                start = Start(folder, owner, key, clock, self._high.mark, self._high.damaged)
                self._connection, self.found = start.open()
                opened.callback(lambda: self._connection.close())  # noqa: PLW0108 - a rotation opens another one
                self.head = self.found.head
                self._sent = self.head.sent
                self._ahead: set[int] = set()
                """Messages beyond `_sent` that the floor has and the disk still holds."""
                self._high.note(self._mark())
                self._high.settle()
                self._deleted = self._first_message() - 1
            except sqlite3.Error as error:
                raise self._judged(error) from error
            except OSError as error:
                raise self._unwritable(error) from error
            self._open = opened.pop_all()

    # --- writing ---

    def commit(self, batch: Batch) -> None:
        """Put a batch on the disk: when this returns, no power cut undoes it."""
        started = time.perf_counter_ns()
        connection, head = self._connection, self.head
        try:
            with transaction(connection):
                if batch.epoch:
                    head = replace(head, epoch=batch.epoch, previous=head.epoch, result_no=0)
                    connection.execute("DELETE FROM outbox WHERE id > ?", (self._sent,))
                connection.executemany(
                    "INSERT INTO results(epoch, result_no, seq, coup, payload) VALUES(?, ?, ?, ?, ?)",
                    [(r.epoch, r.result_no, r.seq, r.coup, r.payload.decode()) for r in batch.results],
                )
                put_messages(connection, batch.messages)
                if batch.snapshot is not None:
                    put_snapshot(connection, batch.snapshot)
                head = replace(
                    head,
                    result_no=batch.results[-1].result_no if batch.results else head.result_no,
                    last_outbox=batch.messages[-1].id if batch.messages else head.last_outbox,
                    sent=self._sent,
                )
                head = append(connection, head, batch.rows, self._key)
                deleted = self._delete_sent()
                self._delete_ahead()
        except sqlite3.Error as error:
            raise self._judged(error) from error
        self.head, self._deleted, self.trouble = head, deleted, ""
        self._ahead.clear()
        self._took_us.append((time.perf_counter_ns() - started) // 1000)
        self._batches += 1
        self._note_mark()

    def mark_sent(self, message_id: int, *, alone: bool = False) -> None:
        """The floor has this message and every one before it, or this one `alone`.

        Written without a sync, so that it delays no result: the death of the process does not undo it, a power cut may,
        and then messages are sent again, byte for byte. When nothing can be written, the next commit does it.
        """
        if alone:
            self._ahead.add(message_id)
        else:
            self._sent = max(self._sent, message_id)
        try:
            self._connection.execute("PRAGMA synchronous=NORMAL")
            try:
                with transaction(self._connection):
                    self._connection.execute("UPDATE head SET sent = ?", (self._sent,))
                    self._delete_ahead()
                self._ahead.clear()
            finally:
                self._connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error as error:
            judged = self._judged(error)
            if not isinstance(judged, JournalUnavailableError):
                raise judged from error

    def tidy(self) -> None:
        """Work for an idle moment: settle the high-water mark, drop what the floor has, keep the files short."""
        try:
            self._high.settle()
            if self._deleted < self._sent:
                with transaction(self._connection):
                    deleted = self._delete_sent()
                self._deleted = deleted
            if self._size("-wal") > WAL_BYTES:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            if self._size() + self._size("-wal") - self._short_bytes > self._bytes_max:
                self._rotate()
        except sqlite3.Error as error:
            raise self._judged(error) from error
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self, reason: str = "stopped") -> None:
        """Say that the run ended as it should, and close; it is closed too when that cannot be written."""
        try:
            with transaction(self._connection):
                row = own_row(self._clock, self.head.seq + 1, "closed", {"reason": reason})
                head = replace(self.head, sent=self._sent, clean=True)
                self.head = append(self._connection, head, [row], self._key)
            self._note_mark()
        except sqlite3.Error as error:
            raise self._judged(error) from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files without a word, as the death of the process would."""
        with contextlib.suppress(sqlite3.Error, OSError):
            self._open.close()

    def _rotate(self) -> None:
        """Close the file, keep it under another name, and go on with a short one."""
        fresh = fresh_file(self.folder)
        try:
            if not shorten(self._connection, self.path, fresh, self._key):
                return
        except BaseException:
            fresh_file(self.folder)  # what is half written takes room, perhaps the last
            raise
        kept = name_for_kept(self.folder, self.head.epoch, self._clock)
        self._connection.close()
        try:
            swap_in(self.path, fresh, kept)
        finally:
            self._connection = connect(self.path)
            self.head = replace(self.head, anchor=read_head(self._connection).anchor)
            self._short_bytes = self._size()
        log.info("the journal has grown: it is kept as %s; archive it, a short one goes on", self.folder / kept)

    def _delete_sent(self) -> int:
        """Remove some of what the floor has; answers the last id that is gone."""
        through = min(self._sent, self._deleted + DELETED_AT_ONCE)
        if through > self._deleted:
            self._connection.execute("DELETE FROM outbox WHERE id <= ?", (through,))
        return through

    def _delete_ahead(self) -> None:
        self._connection.executemany("DELETE FROM outbox WHERE id = ?", [(message_id,) for message_id in self._ahead])

    def _mark(self) -> Mark:
        return Mark(epoch=self.head.epoch, seq=self.head.seq, result_no=self.head.result_no)

    def _note_mark(self) -> None:
        """The mark may lag behind; that it cannot be written is no reason to doubt a commit that is."""
        try:
            self._high.note(self._mark())
        except OSError as error:
            self.trouble = f"high-water mark: {error.strerror}"

    def _judged(self, error: sqlite3.Error) -> JournalError:
        """What a failure to write means for the daemon."""
        name = name_of(error)
        what = f"journal {self.path}: {error} ({name})"
        if name.startswith("SQLITE_READONLY") or (of_the_surroundings(error) and _read_only(self.folder)):
            return self._unavailable("read_only", f"{what}; the state folder is read-only: check the card")
        if name == "SQLITE_FULL":
            return self._unavailable("disk_full", f"{what}; free space on the file system of {self.folder}")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return self._unavailable("locked", f"{what}; another program holds the journal")
        self.trouble = what
        return JournalBrokenError(what)

    def _unwritable(self, error: OSError) -> JournalError:
        what = f"state folder {self.folder}: {error.strerror or error}"
        if error.errno == errno.EROFS:
            return self._unavailable("read_only", f"{what}; check the card")
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return self._unavailable("disk_full", f"{what}; free space there")
        self.trouble = what
        return JournalBrokenError(what)

    def _unavailable(self, reason: str, what: str) -> JournalUnavailableError:
        self.trouble = what
        return JournalUnavailableError(reason, what)

    # --- reading ---

    def unsent(self, after: int = 0, limit: int = 64, without: Iterable[str] = ()) -> list[Message]:
        """Messages that the floor does not have, in order, beyond the id `after`, but none of the topics `without`."""
        messages: list[Message] = []
        most = limit + len(self._ahead)
        for message, sound in unsent_messages(self._connection, max(after, self._sent), most, without):
            if message.id in self._ahead or len(messages) == limit:
                continue
            if not sound:
                raise JournalBrokenError(f"journal {self.path}: message {message.id} in the outbox was altered")
            messages.append(message)
        return messages

    def unsent_count(self) -> int:
        """How many messages the floor does not have."""
        found = self._connection.execute("SELECT count(*) FROM outbox WHERE id > ?", (self._sent,)).fetchone()
        return int(found[0])

    def results_after(self, seq: int, limit: int = 1000) -> list[bytes]:
        """Bodies of the results of later rows, in order; one issued again under a new epoch counts once."""
        sql = (
            "SELECT payload FROM results AS r WHERE seq > ? AND NOT EXISTS"
            " (SELECT 1 FROM results AS later WHERE later.seq = r.seq AND later.epoch <> r.epoch AND later.n > r.n)"
            " ORDER BY n LIMIT ?"
        )
        return [payload for (payload,) in self._connection.execute(sql, (seq, limit))]

    def last_coups(self, count: int = 50) -> list[bytes]:
        """The last result of each of the last coups, the newest first."""
        last: dict[bytes, bytes] = {}
        for coup, payload in self._connection.execute("SELECT coup, payload FROM results ORDER BY n DESC"):
            if coup not in last and len(last) == count:
                break
            last.setdefault(coup, payload)
        return list(last.values())

    def figures(self) -> dict[str, int | str | bool | None]:
        """Gauges for `health.journal`."""
        took = sorted(self._took_us)
        return {
            "epoch": self.head.epoch,
            "seq": self.head.seq,
            "result_no": self.head.result_no,
            "commits": self._batches,
            "commit_p50_us": took[len(took) // 2] if took else None,
            "commit_p99_us": took[len(took) * 99 // 100] if took else None,
            "commit_max_us": took[-1] if took else None,
            "file_bytes": self._size(),
            "wal_bytes": self._size("-wal"),
            "trouble": self.trouble or None,
        }

    def _first_message(self) -> int:
        found = self._connection.execute("SELECT coalesce(min(id), ?) FROM outbox", (self._sent + 1,)).fetchone()
        return int(found[0])

    def _size(self, suffix: str = "") -> int:
        try:
            return self.path.with_name(NAME + suffix).stat().st_size
        except OSError:
            return 0


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; raises JournalError naming the other one."""
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            raise JournalError(
                f"state folder {folder} is in use by another table-controller, process {other}"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def _read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False
