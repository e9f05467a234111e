"""How a start finds the journal: sound, missing, damaged or older than it should be, and what it does about it.

    no file, no high-water mark             first start            new file
    no file, but a mark                     it was deleted         new file; the table starts empty
    file damaged (`journal_file.examine`)   set aside, kept        new file; state and unsent messages are carried over
                                                                   where their digest holds
    file older than the mark                a copy was restored    same file goes on, new epoch
    another signing key                     every epoch has one    same file goes on, new epoch

Both copies of the state damaged in a file that is sound otherwise: refused, a person decides (R2). The reason is a row
of kind `epoch`, the first of the new epoch.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from controller.canonical import canonical
from controller.clock import Clock
from controller.files import sync_folder
from controller.highwater import Mark
from controller.journal_file import (
    FORMAT,
    NAME,
    SCHEMA,
    Head,
    JournalError,
    Message,
    Row,
    append,
    connect,
    examine,
    name_of,
    of_the_surroundings,
    put_messages,
    put_snapshot,
    read_about,
    read_head,
    read_snapshot,
    reader,
    stored_rows,
    transaction,
    unsent_messages,
)
from controller.signing import SigningKey

Reason = Literal["", "first", "deleted", "damaged", "older", "key"]
"""Why a start began a new epoch; empty when it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose journal it is."""

    table: str
    """`<site>/<table>`."""
    game: str
    version: str
    """Of the program."""
    boot: str
    """The kernel's boot id: monotonic times are comparable within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a start found, after it has written what it had to."""

    head: Head
    snapshot: bytes | None
    """The state's body; None: the table starts empty."""
    reason: Reason
    earlier: tuple[int, str] | None
    """After a reboot: instant and wall label of the last row before it, to label older instants by; else None."""


@dataclass(slots=True, kw_only=True)
class _Beginning:
    """Why and with what a new file begins."""

    reason: Reason
    previous: str
    detail: str = ""
    kept: str = ""
    snapshot: bytes | None = None
    messages: list[Message] = field(default_factory=list)
    spoilt: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """One start of the daemon on a state folder that nobody else uses."""

    folder: Path
    owner: Owner
    key: SigningKey
    clock: Clock
    mark: Mark | None
    mark_damaged: bool

    def open(self) -> tuple[sqlite3.Connection, Found]:
        """The journal's connection and what stands in it. Raises JournalError, sqlite3.Error, OSError."""
        connection, reason = self._sound_file()
        try:
            return connection, self._begin(connection, reason)
        except BaseException:
            connection.close()
            raise

    # --- the file ---

    def _sound_file(self) -> tuple[sqlite3.Connection, Reason]:
        path = self.folder / NAME
        if not path.exists():
            if self.mark is None and not self.mark_damaged:
                beginning = _Beginning(reason="first", previous="")
            else:
                beginning = _Beginning(reason="deleted", previous=self.mark.epoch if self.mark else "")
        else:
            try:
                with contextlib.ExitStack() as opened:
                    connection = opened.enter_context(contextlib.closing(connect(path)))
                    self._check_format(connection)
                    damage = examine(connection)
                    if not damage:
                        opened.pop_all()
                        return connection, ""
            except sqlite3.Error as error:
                if of_the_surroundings(error):
                    raise
                damage = f"{error} ({name_of(error) or type(error).__name__})"
            beginning = self._salvaged(path, damage)
        self._swap_in(path, beginning)
        return connect(path), beginning.reason

    def _salvaged(self, path: Path, damage: str) -> _Beginning:
        """What a damaged file still proves by itself: the state and the messages whose digests hold."""
        beginning = _Beginning(reason="damaged", previous=self.mark.epoch if self.mark else "", detail=damage)
        unreadable = (sqlite3.Error, JournalError, LookupError, ValueError, TypeError, AttributeError)
        with contextlib.suppress(*unreadable), contextlib.closing(reader(path)) as connection:
            with contextlib.suppress(*unreadable):
                beginning.snapshot, _ = read_snapshot(connection)
            head = read_head(connection)
            beginning.previous = beginning.previous or head.epoch
            for message, sound in unsent_messages(connection, head.sent, 2**31):
                if sound:
                    beginning.messages.append(message)
                else:
                    beginning.spoilt += 1
        return beginning

    def _swap_in(self, path: Path, beginning: _Beginning) -> None:
        """Write a whole new file beside the old one, keep the old one under a name that says when, and swap."""
        fresh = fresh_file(self.folder)
        if path.exists():
            beginning.kept = name_for_kept(self.folder, beginning.previous, self.clock)
        with contextlib.closing(connect(fresh)) as connection:
            self._create(connection, beginning)
        swap_in(path, fresh, beginning.kept)

    def _create(self, connection: sqlite3.Connection, beginning: _Beginning) -> None:
        messages = [replace(message, id=n) for n, message in enumerate(beginning.messages, start=1)]
        head = Head(
            epoch=secrets.token_hex(6),
            previous=beginning.previous,
            public_key=self.key.public,
            last_outbox=len(messages),
            boot=self.owner.boot,
            clean=True,
        )
        body = {
            "epoch": head.epoch,
            "previous": beginning.previous,
            "reason": beginning.reason,
            "detail": beginning.detail,
            "public_key": head.public_key,
            "kept": beginning.kept,
            "state_carried": beginning.snapshot is not None,
            "messages_carried": len(messages),
            "messages_spoilt": beginning.spoilt,
        }
        about = {"format": str(FORMAT), "table": self.owner.table, "game": self.owner.game}
        with transaction(connection):
            for statement in SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.executemany("INSERT INTO about VALUES(?, ?)", about.items())
            if beginning.snapshot is not None:
                put_snapshot(connection, beginning.snapshot)
            put_messages(connection, messages)
            append(connection, head, [own_row(self.clock, 1, "epoch", body)], self.key)

    # --- what every start writes ---

    def _begin(self, connection: sqlite3.Connection, reason: Reason) -> Found:
        self._check_owner(connection)
        head = was = read_head(connection)
        snapshot, bad = read_snapshot(connection)
        if snapshot is None and bad:
            raise JournalError(
                f"both copies of the state in {self.folder / NAME} are damaged: restore a backup, or move the file away"
                " to start with an empty table (a new epoch begins; consumers are told)"
            )
        (last,) = stored_rows(connection, first=was.seq)
        rows: list[Row] = []

        def say(kind: str, body: Mapping[str, Any]) -> None:
            rows.append(own_row(self.clock, was.seq + len(rows) + 1, kind, body))

        if not reason and (change := self._change(head)):
            reason, detail = change
            head = replace(
                head, epoch=secrets.token_hex(6), previous=was.epoch, public_key=self.key.public, result_no=0
            )
            body = {"epoch": head.epoch, "previous": was.epoch, "reason": reason, "detail": detail}
            say("epoch", {**body, "public_key": head.public_key})
        with transaction(connection):
            if snapshot is not None and bad:
                put_snapshot(connection, snapshot)
                say("repaired", {"copies": bad})
            opened = {"boot": self.owner.boot, "version": self.owner.version, "unclean": not was.clean}
            say("opened", {**opened, "high_water_damaged": self.mark_damaged})
            if was.boot != self.owner.boot:
                connection.execute("UPDATE outbox SET at_ns = ?", (self.clock.mono_ns(),))
            head = append(connection, replace(head, boot=self.owner.boot, clean=False), rows, self.key)
        return Found(
            head=head,
            snapshot=snapshot,
            reason=reason,
            earlier=(last.row.at_ns, last.row.time) if was.boot != self.owner.boot else None,
        )

    def _check_format(self, connection: sqlite3.Connection) -> None:
        """A file of another format is not damaged: whoever wrote it can read it."""
        written = read_about(connection).get("format", str(FORMAT))
        if written.isdigit() and written != str(FORMAT):
            raise JournalError(
                f"{self.folder / NAME} has format {written}, this program reads {FORMAT}: use the version that wrote it"
            )

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        about, path = read_about(connection), self.folder / NAME
        for name, ours in (("table", self.owner.table), ("game", self.owner.game)):
            if about.get(name) != ours:
                raise JournalError(
                    f"{path} is the journal of {name} {about.get(name)!r}, the configuration says {ours!r}: choose"
                    " another state folder, or move the file away"
                )

    def _change(self, head: Head) -> tuple[Reason, str] | None:
        """Must a sound file go on under a new epoch, and why."""
        mark = self.mark
        if mark is not None and mark.epoch not in {head.epoch, head.previous}:
            return "older", f"the high-water mark is of epoch {mark.epoch}"
        if mark is not None and mark.epoch == head.epoch and (mark.seq, mark.result_no) > (head.seq, head.result_no):
            return "older", f"the high-water mark is row {mark.seq}, the journal ends at {head.seq}"
        if head.public_key != self.key.public:
            return "key", f"the signing key was {head.public_key}"
        return None


def fresh_file(folder: Path) -> Path:
    """Where a new journal is written before it takes its place; nothing of an earlier attempt is left there."""
    for leftover in folder.glob(f".{NAME}.new*"):
        leftover.unlink()
    return folder / f".{NAME}.new"


def name_for_kept(folder: Path, epoch: str, clock: Clock) -> str:
    """A name for a journal that is kept; it says when."""
    label = clock.utc().replace("-", "").replace(":", "")
    names = (f"journal-{epoch or 'unknown'}-{label}{n}.sqlite3" for n in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not (folder / name).exists())


def swap_in(path: Path, fresh: Path, kept: str) -> None:
    """Put `fresh` in the place of the journal at `path`, which is kept under the name `kept` (empty: there is none)."""
    folder, wal = path.parent, path.with_name(NAME + "-wal")
    if kept:
        # Both names until the swap: a power cut in between must find a file, or the state would be lost with it.
        try:
            (folder / kept).hardlink_to(path)
        except OSError:  # a file system without links
            path.rename(folder / kept)
        if wal.exists():
            wal.rename(folder / (kept + "-wal"))
    wal.unlink(missing_ok=True)  # of a file that is no more; it must not be replayed into another
    path.with_name(NAME + "-shm").unlink(missing_ok=True)
    fresh.rename(path)
    sync_folder(folder)


def own_row(clock: Clock, seq: int, kind: str, body: Mapping[str, Any]) -> Row:
    """A row about the journal itself, of now."""
    at_ns = clock.mono_ns()
    return Row(
        seq=seq,
        kind=kind,
        at_ns=at_ns,
        time=clock.utc(at_ns),
        clock_synchronised=clock.synchronised(),
        body=canonical(body),
    )
