"""The auditor's view of a journal: is it whole, what does it say, a copy that proves itself. Works without the daemon.

Everything here only reads. `verify` finds the first row that is not as it was written; `export` writes JSON lines that
end with a signed trailer, so that the copy can be checked with nothing but the public key (`verify_export`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.canonical import CanonicalError, canonical, parse
from controller.journal_file import (
    SNAPSHOTS,
    ZEROS,
    Anchor,
    DamagedError,
    Row,
    Stored,
    decoded,
    digest,
    name_of,
    read_about,
    read_head,
    reader,
    result_hash,
    row_hash,
    stored_rows,
    unsent_messages,
)
from controller.signing import SigningKey
from controller.signing import verify as signature_holds


@dataclass(frozen=True, slots=True)
class BadRow:
    """The first row that is not as it was written."""

    row: int
    reason: str
    """`missing` `chain` `altered` `unreadable` `result_missing` `result_altered` `result_chain` `result_hash`
    `result_sig` `head` `key` `seal` `snapshot_a` `snapshot_b` `message` `file`; of an export also `line` `trailer`."""
    detail: str

    def __str__(self) -> str:
        return f"row={self.row} reason={self.reason} {self.detail}"


class _Bad(Exception):  # noqa: N818
    def __init__(self, row: int, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.found = BadRow(row, reason, detail)


def verify(path: Path, public_key: str | None = None) -> BadRow | None:
    """The first bad row of a journal, None when it is whole; raises JournalError when it may not be read.

    `public_key` is the table's key as the auditor knows it; without it the journal's own is used, which proves only
    that the journal agrees with itself.
    """
    try:
        opened = reader(path)
    except DamagedError as error:
        return BadRow(1, "unreadable", str(error))
    with contextlib.closing(opened) as connection:
        connection.execute("BEGIN")  # one moment of a file that a daemon goes on writing
        rows = _anchored(connection)
        row = _tried(lambda: _verify_rows(connection, rows), rows)
        result = _tried(lambda: _verify_results(connection, rows, whole=row is None), rows)
        if row is not None and result is not None:
            return min(row, result, key=lambda bad: bad.row)
        return row or result or _tried(lambda: _verify_end(connection, rows, public_key), rows)


@dataclass(slots=True)
class _Rows:
    """What the rows said so far."""

    seq: int = 0
    hash: str = ZEROS
    keys: dict[str, str] = field(default_factory=dict)
    """Public key by epoch."""
    epoch_rows: dict[str, int] = field(default_factory=dict)
    results: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Number and hash of the last result that lies before, by epoch."""
    before: int = 0
    """Rows that lie before, in the journal that was kept when this one was shortened."""

    @classmethod
    def after(cls, anchor: Anchor) -> _Rows:
        """Nothing read yet of a journal that begins there."""
        return cls(seq=anchor.seq, hash=anchor.hash, keys=anchor.keys, results=anchor.results, before=anchor.seq)

    def take(self, stored: Stored) -> None:
        """Check the next row against those before; raises _Bad."""
        row, expected = stored.row, self.seq + 1
        if row.seq != expected:
            raise _Bad(expected, "missing", f"the next row is {row.seq}")
        if stored.prev_hash != self.hash:
            raise _Bad(row.seq, "chain", "it is not chained to the row before")
        if row_hash(stored.prev_hash, row, stored.boot) != stored.hash:
            raise _Bad(row.seq, "altered", "its hash does not hold")
        self.seq, self.hash = row.seq, stored.hash
        if row.kind == "epoch":
            body = parse(row.body)
            assert isinstance(body, dict)
            self.keys[body["epoch"]] = body["public_key"]
            self.epoch_rows[body["epoch"]] = row.seq


def _anchored(connection: sqlite3.Connection) -> _Rows:
    """Where the journal begins; a head that cannot be read is told when its turn comes."""
    with contextlib.suppress(sqlite3.Error, CanonicalError, LookupError, ValueError, TypeError, AttributeError):
        return _Rows.after(read_head(connection).begins)
    return _Rows()


def _tried(check: Callable[[], None], rows: _Rows) -> BadRow | None:
    try:
        check()
    except _Bad as bad:
        return bad.found
    except sqlite3.Error as error:
        return BadRow(rows.seq + 1, "unreadable", f"{error} ({name_of(error)})")
    except (CanonicalError, LookupError, ValueError, TypeError) as error:
        return BadRow(rows.seq + 1, "unreadable", f"{type(error).__name__}: {error}")
    return None


def _verify_rows(connection: sqlite3.Connection, rows: _Rows) -> None:
    for stored in stored_rows(connection):
        rows.take(stored)
        ended = _coups_ended(stored.row)
        if not ended:
            continue
        (there,) = connection.execute("SELECT count(*) FROM results WHERE seq = ?", (stored.row.seq,)).fetchone()
        if there < ended:
            raise _Bad(stored.row.seq, "result_missing", f"{ended} coups ended here, {there} results are there")


def _coups_ended(row: Row) -> int:
    if row.kind != "step" or b'"CoupEnded"' not in row.body:
        return 0
    body = parse(row.body)
    assert isinstance(body, dict)
    return sum(decision["out"] == "CoupEnded" for decision in body["decisions"])


def _verify_results(connection: sqlite3.Connection, rows: _Rows, *, whole: bool) -> None:
    """`whole`: all rows were read, so that every epoch is known."""
    chain = dict(rows.results)
    sql = "SELECT epoch, result_no, seq, payload FROM results ORDER BY n"
    for epoch_raw, result_no, seq, payload in connection.execute(sql):
        epoch = decoded(epoch_raw)
        if epoch not in rows.keys and not whole:
            continue
        before, prev_hash = chain.get(epoch, (0, ZEROS))
        try:
            body = parse(payload)
            assert isinstance(body, dict)
            _check_result(body, rows.keys.get(epoch, ""), seq)
            columns = (body["epoch"], body["result_no"], body["seq"])
        except (CanonicalError, KeyError, ValueError, TypeError, AttributeError, AssertionError) as error:
            raise _Bad(seq, "result_altered", f"{type(error).__name__}: {error}") from None
        if columns != (epoch, result_no, seq):
            raise _Bad(seq, "result_altered", f"its columns are not those of the body: {columns}")
        if result_no != before + 1 or body["prev_hash"] != prev_hash:
            raise _Bad(seq, "result_chain", f"result {result_no} of epoch {epoch} does not follow {before}")
        chain[epoch] = (result_no, body["hash"])


def _check_result(body: Mapping[str, Any], key: str, row: int) -> None:
    if body["hash"] != result_hash(body):
        raise _Bad(row, "result_hash", f"the hash of {body['id']} does not hold")
    if not signature_holds(key, bytes.fromhex(body["hash"]), body["sig"]):
        raise _Bad(row, "result_sig", f"the signature of {body['id']} does not verify")


def _verify_end(connection: sqlite3.Connection, rows: _Rows, public_key: str | None) -> None:
    head = read_head(connection)
    if head.seq > rows.seq:
        raise _Bad(rows.seq + 1, "missing", f"the journal once ended at row {head.seq}")
    if (head.seq, head.hash) != (rows.seq, rows.hash):
        raise _Bad(rows.seq, "head", f"the head says row {head.seq}")
    known = rows.keys.get(head.epoch, "")
    if public_key is not None and known != public_key:
        raise _Bad(rows.epoch_rows.get(head.epoch, rows.seq), "key", f"the key of epoch {head.epoch} is {known!r}")
    if not signature_holds(known, head.sealed, head.seal):
        raise _Bad(rows.seq, "seal", "the seal on the last row does not verify")
    for table in SNAPSHOTS:
        found = connection.execute(f"SELECT digest, body FROM {table}").fetchone()  # noqa: S608
        if found is not None and decoded(found[0]) != digest(found[1]):
            raise _Bad(rows.seq, table, "the digest of this copy of the state does not hold")
    for message, sound in unsent_messages(connection, head.sent, 2**31):
        if not sound:
            raise _Bad(message.seq, "message", f"message {message.id}, which the floor does not have yet, was altered")
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != b"ok":
        raise _Bad(rows.seq, "file", f"every row holds, but the file is damaged: {decoded(said)}")


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(reader(path)) as connection:
        try:
            yield connection
        except (sqlite3.Error, LookupError) as error:
            raise DamagedError(f"journal {path} cannot be read to its end: {error}; see `journal verify`") from error


def show(path: Path, first: int = 0, last: int = 2**63 - 1) -> Iterator[str]:
    """Rows as JSON lines; raises JournalError."""
    with _reading(path) as connection:
        for stored in stored_rows(connection, first, last):
            yield _line(stored)


def export(path: Path, key: SigningKey) -> Iterator[str]:
    """A whole journal as JSON lines: a header, every row, every result, and the signed trailer."""
    with _reading(path) as connection:
        connection.execute("BEGIN")
        about, head = read_about(connection), read_head(connection)
        sha, count, results = hashlib.sha256(), 0, 0
        for line in _content(connection, about, head.anchor):
            sha.update(line.encode() + b"\n")
            count += line.startswith('{"seq"')
            results += line.startswith('{"result"')
            yield line
        trailer = {
            "table": about["table"],
            "game": about["game"],
            "epoch": head.epoch,
            "count": count,
            "results": results,
            "last_hash": head.hash,
            "sha256": sha.hexdigest(),
            "key": key.public,
        }
        yield json.dumps({"trailer": trailer, "sig": key.sign(canonical(trailer))}, ensure_ascii=False)


def _content(connection: sqlite3.Connection, about: Mapping[str, str], anchor: str) -> Iterator[str]:
    header = {"export": "table-controller journal", "v": 1, **about}
    yield json.dumps({**header, "anchor": anchor} if anchor else header, ensure_ascii=False)
    for stored in stored_rows(connection):
        yield _line(stored)
    for (payload,) in connection.execute("SELECT payload FROM results ORDER BY n"):
        yield f'{{"result": {decoded(payload)}}}'


def verify_export(lines: Iterable[str], public_key: str | None = None) -> BadRow | None:
    """The first bad row of an export, None when it is whole and signed by `public_key` (or by the key it names)."""
    rows, sha = _Rows(), hashlib.sha256()
    trailer: dict[str, Any] | None = None
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\n")
        try:
            if trailer is not None:
                raise _Bad(rows.seq + 1, "line", f"line {number} comes after the trailer")
            body = parse(text)
            assert isinstance(body, dict)
            if "trailer" in body:
                trailer = body
                continue
            sha.update(text.encode() + b"\n")
            if "export" in body and number == 1:
                rows = _Rows.after(Anchor.of(body.get("anchor", "")))
            elif "seq" in body:
                rows.take(_stored(body))
            elif "result" in body:
                result = body["result"]
                _check_result(result, rows.keys.get(result["epoch"], ""), result["seq"])
        except _Bad as bad:
            return bad.found
        except (CanonicalError, KeyError, ValueError, TypeError, AttributeError, AssertionError) as error:
            return BadRow(rows.seq + 1, "line", f"line {number}: {type(error).__name__}: {error}")
    if trailer is None:
        return BadRow(rows.seq + 1, "trailer", "the signed trailer is missing")
    try:
        said = trailer["trailer"]
        if not signature_holds(public_key or said["key"], canonical(said), trailer["sig"]):
            return BadRow(rows.seq, "trailer", "the signature on the trailer does not verify")
        if (rows.before + said["count"], said["last_hash"]) != (rows.seq, rows.hash):
            return BadRow(rows.seq + 1, "missing", f"the trailer says {said['count']} rows")
        if said["sha256"] != sha.hexdigest():
            return BadRow(rows.seq, "line", "the lines are not those that were signed")
    except (KeyError, TypeError, AttributeError) as error:
        return BadRow(rows.seq, "trailer", f"{type(error).__name__}: {error}")
    return None


def _line(stored: Stored) -> str:
    row = stored.row
    body: object = decoded(row.body)
    with contextlib.suppress(CanonicalError):
        body = parse(row.body)
    said = {
        "seq": row.seq,
        "kind": row.kind,
        "at_ns": row.at_ns,
        "time": row.time,
        "clock_synchronised": row.clock_synchronised,
        "boot": stored.boot,
        "body": body,
        "prev_hash": stored.prev_hash,
        "hash": stored.hash,
    }
    return json.dumps(said, ensure_ascii=False)


def _stored(body: Mapping[str, Any]) -> Stored:
    row = Row(
        seq=body["seq"],
        kind=body["kind"],
        at_ns=body["at_ns"],
        time=body["time"],
        clock_synchronised=body["clock_synchronised"],
        body=canonical(body["body"]),
    )
    return Stored(row, body["boot"], body["prev_hash"], body["hash"])
