"""The auditor: which row is the first bad one, in the file, in an export, beside a running daemon, in a lone copy."""

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.audit import export, show, verify, verify_export
from controller.canonical import canonical
from controller.journal_file import NAME, ZEROS, JournalError, Row, row_hash
from controller.signing import SigningKey, key_of
from tests.controller.journals import opened


@pytest.fixture(name="journal")
def _journal(tmp_path: Path) -> tuple[Path, SigningKey]:
    """Rows 1 epoch, 2 opened, 3 to 8 coups, 9 a note, 10 closed."""
    with opened(tmp_path) as table:
        for _ in range(6):
            table.coup()
        table.note()
    return tmp_path / NAME, table.key


def meddle(path: Path, statement: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def test_a_whole_journal(journal: tuple[Path, SigningKey]) -> None:
    path, key = journal
    assert verify(path, key.public) is None
    assert verify(path) is None


@pytest.mark.parametrize("column", ["kind", "at_ns", "time", "clock_synchronised", "boot", "body"])
def test_every_column_of_a_row_is_in_its_hash(journal: tuple[Path, SigningKey], column: str) -> None:
    path, key = journal
    change = {"at_ns": "at_ns + 1", "clock_synchronised": "1 - clock_synchronised"}.get(column, f"{column} || ' '")
    meddle(path, f"UPDATE rows SET {column} = {change} WHERE seq = 5")
    bad = verify(path, key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (5, "altered")
    assert str(bad).startswith("row=5 reason=altered ")


@pytest.mark.parametrize(
    ("statement", "row", "reason"),
    [
        ("UPDATE rows SET prev_hash = hash WHERE seq = 4", 4, "chain"),
        ("UPDATE rows SET hash = prev_hash WHERE seq = 4", 4, "altered"),
        ("DELETE FROM rows WHERE seq = 6", 6, "missing"),
        ("DELETE FROM rows WHERE seq = 1", 1, "missing"),
        ("DELETE FROM rows WHERE seq >= 9", 9, "missing"),
        ("UPDATE rows SET seq = 99 WHERE seq = 10", 10, "missing"),
        ("DELETE FROM results WHERE result_no = 3", 5, "result_missing"),
        ("DELETE FROM results WHERE result_no = 6", 8, "result_missing"),
        ("UPDATE results SET payload = replace(payload, 'vert', 'bleu') WHERE result_no = 2", 4, "result_hash"),
        ("UPDATE results SET payload = '{' WHERE result_no = 2", 4, "result_altered"),
        ("UPDATE results SET payload = '[]' WHERE result_no = 2", 4, "result_altered"),
        ("UPDATE results SET epoch = 'other' WHERE result_no = 2", 4, "result_sig"),
        ("UPDATE results SET seq = 5 WHERE result_no = 2", 4, "result_missing"),
        ("UPDATE results SET coup = '1', result_no = 9 WHERE result_no = 6", 8, "result_altered"),
        ("UPDATE snapshot_a SET body = '{}'", 10, "snapshot_a"),
        ("UPDATE snapshot_b SET digest = ''", 10, "snapshot_b"),
        ("UPDATE outbox SET payload = replace(payload, 'vert', 'bleu') WHERE seq = 4", 4, "message"),
        ("UPDATE head SET hash = ''", 10, "head"),
        ("UPDATE head SET seal = ''", 10, "seal"),
        ("DELETE FROM head", 11, "unreadable"),
        ("UPDATE rows SET body = CAST(x'7bff7d' AS TEXT) WHERE seq = 7", 7, "altered"),
    ],
)
def test_the_first_bad_row(journal: tuple[Path, SigningKey], statement: str, row: int, reason: str) -> None:
    path, key = journal
    meddle(path, statement)
    bad = verify(path, key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (row, reason), bad


def test_a_file_whose_pages_are_damaged_although_every_row_can_be_read(journal: tuple[Path, SigningKey]) -> None:
    path, key = journal
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'results_seq'")  # its pages belong to nothing now
        connection.commit()
    bad = verify(path, key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (10, "file")


def test_of_two_bad_rows_the_first(journal: tuple[Path, SigningKey]) -> None:
    path, key = journal
    meddle(path, "UPDATE rows SET body = '{}' WHERE seq = 7")
    meddle(path, "UPDATE results SET payload = replace(payload, 'vert', 'bleu') WHERE result_no = 2")
    bad = verify(path, key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (4, "result_hash")


def test_a_chain_that_was_written_anew_has_no_seal(journal: tuple[Path, SigningKey]) -> None:
    """Somebody who can compute hashes but has no key changes what happened and chains everything after it."""
    path, _ = journal
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.text_factory = bytes
        before = ZEROS
        for seq, kind, at_ns, time, good, boot, body in connection.execute(
            "SELECT seq, kind, at_ns, time, clock_synchronised, boot, body FROM rows ORDER BY seq"
        ).fetchall():
            forged = body.replace(b'"travel":7300', b'"travel":7100')
            row = Row(
                seq=seq, kind=kind.decode(), at_ns=at_ns, time=time.decode(), clock_synchronised=bool(good), body=forged
            )
            after = row_hash(before, row, boot.decode())
            connection.execute(
                "UPDATE rows SET body = ?, prev_hash = ?, hash = ? WHERE seq = ?", (forged.decode(), before, after, seq)
            )
            before = after
        connection.execute("UPDATE head SET hash = ?", (before,))
    bad = verify(path)
    assert bad is not None
    assert bad.reason == "seal"


def test_a_result_signed_by_a_stranger(journal: tuple[Path, SigningKey], tmp_path: Path) -> None:
    path, key = journal
    (tmp_path / "other").mkdir()
    stranger = key_of(tmp_path / "other")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (payload,) = connection.execute("SELECT payload FROM results WHERE result_no = 6").fetchone()
    body = json.loads(payload)
    body["sig"] = stranger.sign(bytes.fromhex(body["hash"]))
    meddle(path, "UPDATE results SET payload = ? WHERE result_no = 6", canonical(body).decode())
    bad = verify(path, key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (8, "result_sig")
    bad = verify(path, stranger.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (8, "result_sig")


def test_the_wrong_key_is_said(journal: tuple[Path, SigningKey], tmp_path: Path) -> None:
    path, _ = journal
    (tmp_path / "other").mkdir()
    bad = verify(path, key_of(tmp_path / "other").public)
    assert bad is not None
    assert (bad.row, bad.reason) == (1, "key")


def test_a_flipped_byte_of_the_file(journal: tuple[Path, SigningKey]) -> None:
    """At the row whose text it hits, whatever page it lies on."""
    path, key = journal
    data = path.read_bytes()
    for seq in (3, 6, 8):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            (stored,) = connection.execute("SELECT body FROM rows WHERE seq = ?", (seq,)).fetchone()
        at = data.index(stored[:200].encode()) + 50
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        bad = verify(path, key.public)
        assert bad is not None
        assert (bad.row, bad.reason) == (seq, "altered")
    path.write_bytes(data[: len(data) // 2])
    bad = verify(path, key.public)
    assert bad is not None
    assert bad.reason == "unreadable"


def test_beside_a_running_daemon(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for _ in range(3):
            table.coup()
            assert verify(tmp_path / NAME, table.key.public) is None
        lines = [json.loads(line) for line in show(tmp_path / NAME)]
        assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
        assert [json.loads(line)["seq"] for line in show(tmp_path / NAME, 2, 3)] == [2, 3]
        assert lines[2]["kind"] == "step"
        assert lines[2]["body"]["fact"]["in"] == "SpinStopped"
        assert [decision["out"] for decision in lines[2]["body"]["decisions"]] == ["CoupEnded", "Settled", "Announce"]
        table.coup()


def test_a_lone_copy_is_read_and_nothing_is_written_beside_it(journal: tuple[Path, SigningKey], tmp_path: Path) -> None:
    path, key = journal
    copy = tmp_path / "copy" / "any name.db"
    copy.parent.mkdir()
    shutil.copy(path, copy)
    copy.chmod(0o444)
    assert verify(copy, key.public) is None
    assert [entry.name for entry in copy.parent.iterdir()] == ["any name.db"]


@pytest.mark.parametrize("content", [None, b"", b"not a database"])
def test_what_is_no_journal_gets_a_clear_answer(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "journal.sqlite3"
    if content is not None:
        path.write_bytes(content)
    if content is not None:
        bad = verify(path)
        assert bad is not None
        assert (bad.row, bad.reason) == (1, "unreadable")
    with pytest.raises(JournalError, match=r"no journal|cannot be read"):
        list(show(path))


# --- exports ---------------------------------------------------------------------------------------------------------


def test_an_export_proves_itself(journal: tuple[Path, SigningKey]) -> None:
    path, key = journal
    lines = list(export(path, key))
    assert verify_export(lines, key.public) is None
    assert verify_export(line + "\n" for line in lines) is None
    trailer = json.loads(lines[-1])["trailer"]
    assert {name: trailer[name] for name in ("count", "results", "table", "game")} == {
        "count": 10, "results": 6, "table": "demo/t-1", "game": "roue_de_la_chance",
    }  # fmt: skip
    assert trailer["key"] == key.public
    assert trailer["last_hash"] == json.loads(lines[10])["hash"]
    assert trailer["epoch"] == json.loads(lines[1])["body"]["epoch"]


@pytest.mark.parametrize(
    ("change", "row", "reason"),
    [
        (lambda lines: [*lines[:5], *lines[6:]], 5, "missing"),
        (lambda lines: [*lines[:4], lines[4].replace("7300", "7100"), *lines[5:]], 4, "altered"),
        (lambda lines: [*lines[:12], lines[12].replace("vert", "bleu"), *lines[13:]], 4, "result_hash"),
        (lambda lines: [*lines[:12], *lines[13:]], 10, "line"),
        (lambda lines: lines[:-1], 11, "trailer"),
        (lambda lines: [*lines, lines[3]], 11, "line"),
        (lambda lines: [*lines[:10], *lines[11:]], 10, "missing"),
        (lambda lines: [*lines[:-1], lines[-1].replace('"count": 10', '"count": 9')], 10, "trailer"),
        (lambda lines: [*lines[:-1], '{"trailer": {}, "sig": ""}'], 10, "trailer"),
        (lambda lines: [*lines[:4], "{", *lines[5:]], 4, "line"),
        (lambda lines: [*lines[:4], '{"seq": 4}', *lines[5:]], 4, "line"),
        (lambda lines: [*lines[:4], "[]", *lines[5:]], 4, "line"),
        (lambda lines: [lines[0].replace('"v": 1', '"v": 2'), *lines[1:]], 10, "line"),
        (lambda lines: [], 1, "trailer"),
    ],
)
def test_an_altered_export(
    journal: tuple[Path, SigningKey], change: Callable[[list[str]], list[str]], row: int, reason: str
) -> None:
    path, key = journal
    bad = verify_export(change(list(export(path, key))), key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (row, reason), bad


@pytest.mark.parametrize(
    "trailer", ['{"trailer": {}, "sig": ""}', '{"trailer": [], "sig": ""}', '{"trailer": {"key": ""}}']
)
def test_a_trailer_that_is_none(journal: tuple[Path, SigningKey], trailer: str) -> None:
    path, key = journal
    bad = verify_export([*list(export(path, key))[:-1], trailer])
    assert bad is not None
    assert bad.reason == "trailer"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_reader_without_rights_gets_a_clear_answer() -> None:
    """Field case 89: a write-ahead log wants a reader who may write to the folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with opened(folder / "state", crash=True) as table:
            table.coup()
            shutil.copytree(folder / "state", folder / "copy")
        (folder / "copy" / f"{NAME}-shm").unlink()
        for path in (folder / "copy", *(folder / "copy").iterdir()):
            path.chmod(0o755)
        os.seteuid(65534)
        try:
            with pytest.raises(JournalError, match="-wal wants a reader who may write"):
                verify(folder / "copy" / NAME)
        finally:
            os.seteuid(0)


def test_an_export_signed_by_a_stranger(journal: tuple[Path, SigningKey], tmp_path: Path) -> None:
    path, key = journal
    (tmp_path / "other").mkdir()
    stranger = key_of(tmp_path / "other")
    bad = verify_export(export(path, stranger), key.public)
    assert bad is not None
    assert bad.reason == "trailer"
    assert verify_export(export(path, stranger)) is None  # it agrees with itself: only the known key proves more


def test_a_row_that_is_no_json_is_shown_as_it_is(journal: tuple[Path, SigningKey]) -> None:
    path, key = journal
    meddle(path, "UPDATE rows SET body = 'not json' WHERE seq = 4")
    lines: list[Any] = [json.loads(line) for line in show(path)]
    assert lines[3]["body"] == "not json"
    bad = verify_export(export(path, key), key.public)
    assert bad is not None
    assert (bad.row, bad.reason) == (4, "altered")


def test_an_export_of_very_many_rows_needs_no_temporary_space(tmp_path: Path) -> None:
    """Field case 105: rows come in the order in which they lie; nothing is sorted."""
    with opened(tmp_path) as table:
        for number in range(3000):
            table.scribe.note("note", {"number": number})
        table.commit()
    with contextlib.closing(sqlite3.connect(tmp_path / NAME)) as connection:
        for query in ("SELECT * FROM rows WHERE seq BETWEEN 1 AND 9 ORDER BY seq", "SELECT * FROM results ORDER BY n"):
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert not any("TEMP" in step for step in plan)
    assert verify_export(export(tmp_path / NAME, table.key), table.key.public) is None
