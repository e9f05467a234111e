"""A journal that has grown is kept whole, a short one goes on: same epoch, numbers, chains, state."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import journal as journal_module
from controller import journal_rotation
from controller.audit import export, show, verify, verify_export
from controller.journal_file import NAME, TAIL, connect, read_head
from controller.signing import key_of
from tests.controller.journals import Table, opened, rows


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few results are enough to leave some behind."""
    monkeypatch.setattr(journal_rotation, "RESULTS_KEPT", 3)


def grow(table: Table, coups: int = 5) -> None:
    """Coups, then as many rows as a short journal keeps."""
    for _ in range(coups):
        table.coup()
    for number in range(TAIL):
        table.scribe.note("note", {"number": number})
    table.commit()


def rotate(table: Table) -> None:
    """What an idle moment does with a journal that is too large."""
    table.journal._bytes_max = 0
    table.journal.tidy()
    table.journal._bytes_max = journal_module.BYTES_MAX


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("journal-*.sqlite3"))


@contextlib.contextmanager
def changed(path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(path)
    yield connection
    connection.close()


def public(folder: Path) -> str:
    return key_of(folder).public


def test_the_short_journal_goes_on_and_both_prove_themselves(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        grow(table)
        before, coups = table.journal.head, table.journal.last_coups(3)
        unsent = table.journal.unsent()
        rotate(table)
        (whole,) = kept(tmp_path)
        assert table.journal._size() < whole.stat().st_size
        assert (table.journal.head.seq, table.journal.head.hash) == (before.seq, before.hash)
        assert (table.journal.last_coups(9), table.journal.unsent()) == (coups, unsent)
        table.coup()
        assert verify(tmp_path / NAME, public(tmp_path)) is None  # beside the running daemon
        first = rows(table.journal)[0]
        assert first.row.seq == before.seq - TAIL + 1
    assert verify(whole, public(tmp_path)) is None
    assert not list(tmp_path.glob(".journal*"))
    last = [line for line in show(whole) if f'"hash": "{first.prev_hash}"' in line]
    assert len(last) == 1  # the short one is chained to a row of the whole one
    with opened(tmp_path, boot="boot-2") as table:
        assert table.journal.found.reason == ""
        assert table.journal.head.epoch == before.epoch
        assert table.journal.head.result_no == 6
        assert table.coup().results[0].result_no == 7
    assert verify(tmp_path / NAME, public(tmp_path)) is None


def test_a_journal_is_shortened_again_and_again_and_its_export_too(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for number in range(1, 4):
            grow(table, coups=1 if number == 2 else 5)
            rotate(table)
            assert len(kept(tmp_path)) == number
        rotate(table)
        assert len(kept(tmp_path)) == 3  # there is nothing to leave behind
        assert table.journal.head.result_no == 11
    for path in [*kept(tmp_path), tmp_path / NAME]:
        assert verify(path, public(tmp_path)) is None
        lines = list(export(path, key_of(tmp_path)))
        assert verify_export(lines, public(tmp_path)) is None
    cut = verify_export(lines[:1] + lines[2:])
    assert cut is not None
    assert cut.reason == "missing"
    bare = verify_export([lines[0].replace("anchor", "rohcna"), *lines[1:]])
    assert (bare and (bare.row, bare.reason)) == (1, "missing")


def test_what_is_carried_on_does_not_cause_the_next_rotation(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        grow(table)
        table.journal._bytes_max = 1
        table.journal.tidy()
        table.journal.tidy()
        assert len(kept(tmp_path)) == 1
        grow(table)
        table.journal.tidy()
        assert len(kept(tmp_path)) == 2


def test_a_new_epoch_after_it_knows_the_keys_before_it(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        grow(table)
        rotate(table)
        old = table.journal.head.epoch
    (tmp_path / "signing.key").unlink()
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "key"
        table.coup()
        rotate(table)
    assert verify(tmp_path / NAME, public(tmp_path)) is None
    with contextlib.closing(connect(tmp_path / NAME)) as connection:
        assert list(read_head(connection).begins.keys) == [old]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE FROM rows WHERE seq = (SELECT min(seq) FROM rows)", "missing"),
        ("UPDATE head SET anchor = ''", "missing"),
        ("UPDATE head SET anchor = 'x'", "missing"),
        ('UPDATE head SET anchor = replace(anchor, \'"results"\', \'"x":1,"results"\')', "seal"),
        ("DELETE FROM results WHERE n = (SELECT min(n) FROM results)", "result_chain"),
    ],
)
def test_a_beginning_that_was_cut_off_or_moved_is_found(sql: str, reason: str, tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        grow(table)
        rotate(table)
    with changed(tmp_path / NAME) as connection:
        connection.execute(sql)
    bad = verify(tmp_path / NAME, public(tmp_path))
    assert bad is not None
    assert bad.reason == reason


def test_whoever_reads_is_not_disturbed(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        grow(table)
        with contextlib.closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM rows").fetchone()
            table.coup()
            rotate(table)
            assert kept(tmp_path) == []
            reader.execute("ROLLBACK")
        table.coup()
        rotate(table)
        assert len(kept(tmp_path)) == 1
        table.coup()
    assert verify(tmp_path / NAME, public(tmp_path)) is None


@pytest.mark.parametrize("step", ["shorten", "swap_in"])
def test_a_disk_that_refuses_leaves_the_journal_as_it_was(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as table:
        grow(table)
        monkeypatch.setattr(journal_module, step, refuse)
        with pytest.raises(journal_module.JournalUnavailableError, match="No space left"):
            rotate(table)
        monkeypatch.undo()
        table.coup()
        assert verify(tmp_path / NAME, public(tmp_path)) is None
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""
        rotate(table)
        table.coup()
        assert not list(tmp_path.glob(".journal*"))
    assert verify(tmp_path / NAME, public(tmp_path)) is None


def test_a_power_cut_between_the_two_names_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        grow(table)
        table.journal._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (tmp_path / "journal-x-1.sqlite3").hardlink_to(tmp_path / NAME)
        (tmp_path / f".{NAME}.new").write_bytes(b"half written")
    with opened(tmp_path) as table:
        assert (table.journal.found.reason, table.journal.head.result_no) == ("", 5)
        rotate(table)
        table.coup()
        assert not list(tmp_path.glob(".journal*"))
    assert verify(tmp_path / NAME, public(tmp_path)) is None
