"""The journal's file: its tables, its row chain, and how it is opened and examined. Writer and auditor share this.

    rows       seq, what happened, chained: hash = SHA-256(prev_hash LF head LF body), head = canonical [seq, kind, ...]
    results    the signed bodies as published; their chain is another one (`controller.results`)
    outbox     messages the broker has not acknowledged; those up to `head.sent` are done, others that are done are gone
    snapshot_a, snapshot_b   the state, twice, each with its digest
    head       one line: epoch, last seq and hash, what is sent, the anchor, and the seal (a signature over these)
    about      whose journal this is, and the number of its format

Why SQLite and why `synchronous=FULL`: DECISIONS.md. The setting is per connection (field case 98), so `connect` is the
only place that opens for writing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from controller.canonical import canonical, parse
from controller.errors import ControllerError
from controller.signing import SigningKey, verify

NAME: Final = "journal.sqlite3"
FORMAT: Final = 2
ZEROS: Final = "0" * 64
"""What the first row and the first result are chained to."""
SNAPSHOTS: Final = ("snapshot_a", "snapshot_b")
TAIL: Final = 1000
"""Rows whose chain is checked at each start; the whole chain is checked by `tablectl journal verify`."""
TAIL_RESULTS: Final = 100
"""Results whose hashes are."""
EXAMINE_NS: Final = 5_000_000_000
"""A start spends at most about this long on the examination, however large the file."""

SCHEMA: Final = """
CREATE TABLE about(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE rows(
  seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, at_ns INTEGER NOT NULL, time TEXT NOT NULL,
  clock_synchronised INTEGER NOT NULL, boot TEXT NOT NULL, body TEXT NOT NULL,
  prev_hash TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE INDEX rows_epoch ON rows(seq) WHERE kind = 'epoch';
CREATE TABLE results(
  n INTEGER PRIMARY KEY, epoch TEXT NOT NULL, result_no INTEGER NOT NULL, seq INTEGER NOT NULL,
  coup TEXT NOT NULL, payload TEXT NOT NULL, UNIQUE(epoch, result_no)) STRICT;
CREATE INDEX results_seq ON results(seq);
CREATE TABLE outbox(
  id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, suffix TEXT NOT NULL, at_ns INTEGER NOT NULL,
  payload TEXT NOT NULL, digest TEXT NOT NULL) STRICT;
CREATE TABLE snapshot_a(one INTEGER PRIMARY KEY CHECK(one = 1), digest TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE snapshot_b(one INTEGER PRIMARY KEY CHECK(one = 1), digest TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE head(
  one INTEGER PRIMARY KEY CHECK(one = 1), epoch TEXT NOT NULL, previous TEXT NOT NULL, public_key TEXT NOT NULL,
  seq INTEGER NOT NULL, hash TEXT NOT NULL, seal TEXT NOT NULL, result_no INTEGER NOT NULL,
  last_outbox INTEGER NOT NULL, sent INTEGER NOT NULL, boot TEXT NOT NULL, clean INTEGER NOT NULL,
  anchor TEXT NOT NULL) STRICT;
"""

BUSY_S: Final = 5.0
"""How long another program may hold the file before we say so."""

SURROUNDINGS: Final = ("BUSY", "LOCKED", "READONLY", "FULL", "CANTOPEN", "PERM", "AUTH", "NOMEM", "IOERR_WRITE")
"""Errors that say nothing against the file itself."""


class JournalError(ControllerError):
    """The journal cannot be used; the message says why and what to do."""


class DamagedError(JournalError):
    """The file is no journal any more, or never was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the journal before it is chained; `body` is canonical JSON."""

    seq: int
    kind: str
    """`step` (a fact and what the law answered), the journal's own `epoch` `opened` `closed` `repaired`, or a note."""
    at_ns: int
    time: str
    """Wall time as a label (RFC 3339), trusted only when the clock was synchronised."""
    clock_synchronised: bool
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A published result: `payload` is the canonical signed body; `coup` is that of `results.Coup.key`."""

    epoch: str
    result_no: int
    seq: int
    coup: str
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message for the floor: `suffix` is the topic below the table's base."""

    id: int
    seq: int
    suffix: str
    at_ns: int
    """When it was made; of this boot."""
    payload: bytes


@dataclass(slots=True, kw_only=True)
class Anchor:
    """What lies before the first row of a journal; without arguments: nothing."""

    seq: int = 0
    hash: str = ZEROS
    keys: dict[str, str] = field(default_factory=dict)
    """Public key by epoch."""
    results: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Number and hash of the last result left behind, by epoch."""

    @classmethod
    def of(cls, text: str) -> Anchor:
        """As it stands in a head; raises ValueError and its kinds when it is none."""
        if not text:
            return cls()
        said: Any = parse(text)
        results = {epoch: (number, last_hash) for epoch, (number, last_hash) in said["results"].items()}
        return cls(seq=said["seq"], hash=said["hash"], keys=dict(said["keys"]), results=results)

    def __str__(self) -> str:
        said = {"seq": self.seq, "hash": self.hash, "keys": self.keys, "results": self.results}
        return canonical(said).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where the journal stands."""

    epoch: str
    previous: str
    """The epoch before; empty for the first."""
    public_key: str
    seq: int = 0
    hash: str = ZEROS
    seal: str = ""
    result_no: int = 0
    last_outbox: int = 0
    sent: int = 0
    boot: str = ""
    clean: bool = False
    anchor: str = ""
    """What lies before the first row (`controller.journal_rotation`); empty for a journal that begins with row 1."""

    @property
    def sealed(self) -> bytes:
        """What the seal signs: whoever rewrites the chain cannot sign its new end, nor cut off its beginning."""
        return canonical([self.epoch, self.seq, self.hash, self.anchor])

    @property
    def begins(self) -> Anchor:
        """The anchor; raises ValueError and its kinds when it cannot be read."""
        return Anchor.of(self.anchor)


def row_hash(prev_hash: str, row: Row, boot: str) -> str:
    """The hash of a row, over every column and the hash before."""
    head = canonical([row.seq, row.kind, row.at_ns, row.time, row.clock_synchronised, boot])
    return hashlib.sha256(b"\n".join((prev_hash.encode(), head, row.body))).hexdigest()


def result_hash(body: Mapping[str, Any]) -> str:
    """The hash that a result's body must carry (design: the floor contract)."""
    plain = {key: value for key, value in body.items() if key not in {"hash", "sig"}}
    return hashlib.sha256(body["prev_hash"].encode() + b"\n" + canonical(plain)).hexdigest()


def digest(body: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(body).hexdigest()


def connect(path: Path) -> sqlite3.Connection:
    """A connection for writing, as every one of them must be (field cases 98, 105). Raises sqlite3.Error."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_S)
    try:
        connection.text_factory = bytes
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != b"wal":
            raise JournalError(f"{path}: this file system cannot keep a write-ahead log (journal mode {mode.decode()})")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint=8000")  # `Journal.tidy` does it earlier, while nobody waits
        connection.execute("PRAGMA journal_size_limit=4194304")
        connection.execute("PRAGMA trusted_schema=OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also beside a running daemon; raises JournalError when there is none to be had.

    A copy without its `-wal` is read as it is, so that nothing is written beside it (field case 89).
    """
    if not path.is_file():
        raise JournalError(f"no journal {path}")
    lone = not path.with_name(path.name + "-wal").exists()
    options = "mode=ro&immutable=1" if lone else "mode=ro"
    connection = sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True, isolation_level=None, timeout=BUSY_S)
    connection.text_factory = bytes
    try:
        connection.execute("SELECT * FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        what = f"journal {path} cannot be read: {error} ({name_of(error)})"
        if of_the_surroundings(error):
            raise JournalError(f"{what}; its -wal wants a reader who may write to the folder, or copy both") from error
        raise DamagedError(what) from error
    return connection


def name_of(error: BaseException | None) -> str:
    """SQLite's own name of an error, `` for one of the Python module."""
    return str(getattr(error, "sqlite_errorname", ""))


def of_the_surroundings(error: sqlite3.Error) -> bool:
    """Is it the disk, the rights or another process, and not the file."""
    return name_of(error).removeprefix("SQLITE_").startswith(SURROUNDINGS)


def read_head(connection: sqlite3.Connection) -> Head:
    """Where the journal stands; raises sqlite3.Error, or LookupError when nothing stands there."""
    columns = "epoch, previous, public_key, seq, hash, seal, result_no, last_outbox, sent, boot, clean, anchor"
    found = connection.execute(f"SELECT {columns} FROM head").fetchone()  # noqa: S608
    if found is None:
        raise LookupError("no head")
    epoch, previous, public_key, seq, last_hash, seal, result_no, last_outbox, sent, boot, clean, anchor = found
    return Head(
        epoch=decoded(epoch), previous=decoded(previous), public_key=decoded(public_key),
        seq=seq, hash=decoded(last_hash), seal=decoded(seal), result_no=result_no,
        last_outbox=last_outbox, sent=sent, boot=decoded(boot), clean=bool(clean), anchor=decoded(anchor),
    )  # fmt: skip


def read_about(connection: sqlite3.Connection) -> dict[str, str]:
    """Whose journal this is."""
    return {decoded(key): decoded(value) for key, value in connection.execute("SELECT key, value FROM about")}


@dataclass(frozen=True, slots=True)
class Stored:
    """A row as it lies in the file, with what it is chained by."""

    row: Row
    boot: str
    prev_hash: str
    hash: str


def stored_rows(connection: sqlite3.Connection, first: int = 0, last: int = 2**63 - 1) -> Iterator[Stored]:
    """Rows in order of `seq`; undecodable bytes are kept visible, so that their hash cannot hold."""
    sql = (
        "SELECT seq, kind, at_ns, time, clock_synchronised, boot, body, prev_hash, hash FROM rows"
        " WHERE seq BETWEEN ? AND ? ORDER BY seq"
    )
    for seq, kind, at_ns, label, synchronised, boot, body, prev_hash, row_hash_ in connection.execute(
        sql, (first, last)
    ):
        row = Row(
            seq=seq,
            kind=decoded(kind),
            at_ns=at_ns,
            time=decoded(label),
            clock_synchronised=bool(synchronised),
            body=body,
        )
        yield Stored(row, decoded(boot), decoded(prev_hash), decoded(row_hash_))


def unsent_messages(
    connection: sqlite3.Connection, after: int, limit: int, without: Iterable[str] = ()
) -> Iterator[tuple[Message, bool]]:
    """Outbox rows with a larger id but of none of these topics, in order, each with whether its digest holds."""
    sql = (
        "SELECT id, seq, suffix, at_ns, payload, digest FROM outbox"
        " WHERE id > ? AND suffix NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?"
    )
    bound = (after, json.dumps(list(without)), limit)
    for number, seq, suffix, at_ns, payload, stored in connection.execute(sql, bound):
        message = Message(id=number, seq=seq, suffix=decoded(suffix), at_ns=at_ns, payload=payload)
        yield message, decoded(stored) == digest(payload)


def read_snapshot(connection: sqlite3.Connection) -> tuple[bytes | None, list[str]]:
    """The state's body from the first copy whose digest holds, and the copies that are damaged.

    `(None, [])` when none was ever written.
    """
    body: bytes | None = None
    bad: list[str] = []
    absent: list[str] = []
    for table in SNAPSHOTS:
        try:
            found = connection.execute(f"SELECT digest, body FROM {table}").fetchone()  # noqa: S608
        except sqlite3.Error as error:
            if of_the_surroundings(error):
                raise
            found = (b"", b"")
        if found is None:
            absent.append(table)
        elif decoded(found[0]) != digest(found[1]):
            bad.append(table)
        elif body is None:
            body = found[1]
    return body, bad if len(absent) == len(SNAPSHOTS) else bad + absent


def put_snapshot(connection: sqlite3.Connection, body: bytes) -> None:
    """Both copies."""
    for table in SNAPSHOTS:
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES(1, ?, ?)", (digest(body), body.decode()))


def put_messages(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Into the outbox."""
    connection.executemany(
        "INSERT INTO outbox VALUES(?, ?, ?, ?, ?, ?)",
        [(m.id, m.seq, m.suffix, m.at_ns, m.payload.decode(), digest(m.payload)) for m in messages],
    )


def append(connection: sqlite3.Connection, head: Head, rows: Iterable[Row], key: SigningKey) -> Head:
    """Chain rows to the head, seal the new one and store both; answers the new head."""
    entries = []
    for row in rows:
        assert row.seq == head.seq + 1, f"row {row.seq} cannot follow {head.seq}"
        prev_hash = head.hash
        head = replace(head, seq=row.seq, hash=row_hash(prev_hash, row, head.boot))
        entries.append(
            (row.seq, row.kind, row.at_ns, row.time, row.clock_synchronised, head.boot, row.body.decode(),
             prev_hash, head.hash)
        )  # fmt: skip
    head = replace(head, seal=key.sign(head.sealed))
    connection.executemany("INSERT INTO rows VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", entries)
    connection.execute(
        "INSERT OR REPLACE INTO head VALUES(1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (head.epoch, head.previous, head.public_key, head.seq, head.hash, head.seal, head.result_no,
         head.last_outbox, head.sent, head.boot, head.clean, head.anchor),
    )  # fmt: skip
    return head


def examine(connection: sqlite3.Connection) -> str:
    """Why this file cannot be trusted to go on with; empty when it can. Raises sqlite3.Error of the surroundings.

    Bounded in time; sound parts that were not reached are taken as sound.
    """
    deadline = time.monotonic_ns() + EXAMINE_NS
    connection.set_progress_handler(lambda: time.monotonic_ns() > deadline, 20_000)
    try:
        return _examine(connection)
    except sqlite3.Error as error:
        if name_of(error) == "SQLITE_INTERRUPT":
            return ""
        if of_the_surroundings(error):
            raise
        return f"{error} ({name_of(error) or type(error).__name__})"
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
        return f"unreadable: {error}"
    finally:
        connection.set_progress_handler(None, 0)


def _examine(connection: sqlite3.Connection) -> str:
    head = read_head(connection)
    read_about(connection)["format"]
    for table in SNAPSHOTS:
        connection.execute(f"SELECT one FROM {table}").fetchone()  # noqa: S608
    if problem := _examine_rows(connection, head) or _examine_results(connection, head):
        return problem
    for message, sound in unsent_messages(connection, head.sent, 2**31):
        if not sound:
            return f"message {message.id} in the outbox was altered"
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return "" if said == b"ok" else f"quick check: {decoded(said)}"


def _examine_rows(connection: sqlite3.Connection, head: Head) -> str:
    prev_hash, expected = "", max(head.begins.seq, head.seq - TAIL) + 1
    for stored in stored_rows(connection, first=expected):
        if stored.row.seq != expected:
            return f"row {expected} is missing"
        if prev_hash and stored.prev_hash != prev_hash:
            return f"row {expected} is not chained to the row before"
        if row_hash(stored.prev_hash, stored.row, stored.boot) != stored.hash:
            return f"row {expected} was altered"
        prev_hash, expected = stored.hash, expected + 1
    if (expected - 1, prev_hash or ZEROS) != (head.seq, head.hash):
        return f"the last row is {expected - 1}, the head says {head.seq}"
    return "" if verify(head.public_key, head.sealed, head.seal) else "the seal on the last row does not verify"


def _examine_results(connection: sqlite3.Connection, head: Head) -> str:
    sql = "SELECT result_no, payload FROM results WHERE epoch = ? AND result_no > ? ORDER BY result_no"
    before, _ = head.begins.results.get(head.epoch, (0, ""))
    expected = max(before, head.result_no - TAIL_RESULTS)
    for result_no, payload in connection.execute(sql, (head.epoch, expected)):
        expected += 1
        body = parse(payload)
        assert isinstance(body, dict)
        if (result_no, body["result_no"], body["hash"]) != (expected, expected, result_hash(body)):
            return f"result {expected} is missing or was altered"
    return "" if expected == head.result_no else f"the last result is {expected}, the head says {head.result_no}"


def decoded(raw: bytes | str) -> str:
    """A text column; bytes that are no UTF-8 stay visible."""
    return raw if isinstance(raw, str) else raw.decode(errors="backslashreplace")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; whatever fails, no transaction stays open."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
