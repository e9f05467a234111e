"""A journal that has grown is closed and kept whole; a short one goes on in its place, chained to what it left behind.

    journal.sqlite3 ──► journal-<epoch>-<time>.sqlite3    all of it, verified like any other journal
                        journal.sqlite3                   its last rows and results, and everything to go on from

Epoch, numbers and both chains go on. What the short one has left behind stands in its *anchor*: number and hash of the
last row, the keys of the epochs, the last result of each epoch that goes on. The seal on the head signs the anchor too.
"""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from controller.canonical import parse
from controller.journal_file import (
    BUSY_S,
    SCHEMA,
    TAIL,
    Anchor,
    append,
    connect,
    decoded,
    read_head,
    transaction,
)
from controller.signing import SigningKey

RESULTS_KEPT: Final = 2000
"""Results that the short journal still has at least, for `replay` and `last_coup`."""


def shorten(connection: sqlite3.Connection, path: Path, fresh: Path, key: SigningKey) -> bool:
    """Write the short journal beside the whole one; False when there is nothing to leave behind, or a reader is there.

    Raises sqlite3.Error. Afterwards everything of the whole one is in its main file.
    """
    connection.execute("PRAGMA busy_timeout=0")  # whoever reads is not waited for: another idle moment will come
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout={round(BUSY_S * 1000)}")
    head = read_head(connection)
    anchor, last = head.begins, head.seq - TAIL
    if busy or last <= anchor.seq:
        return False
    (old,) = connection.execute("SELECT coalesce(max(n), 0) - ? FROM results", (RESULTS_KEPT,)).fetchone()
    (of_kept_rows,) = connection.execute("SELECT min(n) FROM results WHERE seq > ?", (last,)).fetchone()
    cut = old if of_kept_rows is None else min(old, of_kept_rows - 1)
    anchor = _moved(connection, anchor, last, cut)
    with contextlib.closing(connect(fresh)) as short:
        short.execute("ATTACH ? AS whole", (str(path),))
        with transaction(short):
            for statement in SCHEMA.split(";\n"):
                short.execute(statement)
            for table in ("about", "outbox", "snapshot_a", "snapshot_b"):
                short.execute(f"INSERT INTO main.{table} SELECT * FROM whole.{table}")  # noqa: S608
            short.execute("INSERT INTO main.rows SELECT * FROM whole.rows WHERE seq > ?", (last,))
            short.execute("INSERT INTO main.results SELECT * FROM whole.results WHERE n > ?", (cut,))
            append(short, replace(head, anchor=str(anchor)), (), key)
    return True


def _moved(connection: sqlite3.Connection, anchor: Anchor, last: int, cut: int) -> Anchor:
    """The anchor when rows up to `last` and results up to `cut` are left behind."""
    (last_hash,) = connection.execute("SELECT hash FROM rows WHERE seq = ?", (last,)).fetchone()
    keys = dict(anchor.keys)
    for (text,) in connection.execute("SELECT body FROM rows WHERE kind = 'epoch' AND seq <= ?", (last,)):
        body: Any = parse(text)
        keys[body["epoch"]] = body["public_key"]
    results = {}
    for (epoch,) in connection.execute("SELECT DISTINCT epoch FROM results WHERE n > ?", (cut,)).fetchall():
        found = connection.execute(
            "SELECT result_no, payload FROM results WHERE epoch = ? AND n <= ? ORDER BY result_no DESC LIMIT 1",
            (decoded(epoch), cut),
        ).fetchone()
        if found is not None:
            left: Any = parse(found[1])
            results[decoded(epoch)] = (found[0], left["hash"])
        elif decoded(epoch) in anchor.results:
            results[decoded(epoch)] = anchor.results[decoded(epoch)]
    return Anchor(seq=last, hash=decoded(last_hash), keys=keys, results=results)
