"""The journal on its folder: one owner, one transaction, what survives, and what each kind of damage leads to."""

import asyncio
import contextlib
import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller import journal_file
from controller.audit import verify
from controller.highwater import NAME as HIGH
from controller.highwater import HighWater, Mark
from controller.journal import (
    DELETED_AT_ONCE,
    Batch,
    Journal,
    JournalBrokenError,
    JournalUnavailableError,
)
from controller.journal_file import NAME, JournalError, Message, Row
from controller.journal_start import Owner
from controller.journal_thread import JournalThread
from controller.results import first_fault
from controller.signing import KEY_FILE, key_of
from rules.decisions import Status
from tests.controller.journals import TABLE, Table, Wall, opened, rows


def facts(table: Table) -> list[tuple[int, bytes]]:
    return [(stored.row.seq, stored.row.body) for stored in rows(table.journal)]


def last_row(table: Table, kind: str) -> dict[str, Any]:
    found = [stored.row.body for stored in rows(table.journal) if stored.row.kind == kind]
    body: dict[str, Any] = json.loads(found[-1])
    return body


def sql(folder: Path, *statements: str) -> None:
    """Meddle with the file as somebody with a tool would."""
    with contextlib.closing(sqlite3.connect(folder / NAME)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("journal-*.sqlite3"))


# --- an ordinary life ------------------------------------------------------------------------------------------------


def test_a_first_start_begins_an_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "first"
        assert table.journal.found.snapshot is None
        assert not last_row(table, "opened")["unclean"]
        epoch = last_row(table, "epoch")
        assert epoch["epoch"] == table.scribe.epoch
        assert epoch["public_key"] == table.key.public
    assert verify(tmp_path / NAME, table.key.public) is None
    assert kept(tmp_path) == []


def test_everything_comes_back(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for _ in range(3):
            table.coup()
        table.note(7)
        table.journal.mark_sent(2)
        before, head = facts(table), table.journal.head
        unsent = table.journal.unsent()
    with opened(tmp_path, version="2") as table:
        assert table.journal.found.reason == ""
        assert not last_row(table, "opened")["unclean"]
        assert table.state.coup_no == 3
        assert facts(table)[: len(before)] == before
        assert [stored.row.kind for stored in rows(table.journal, head.seq + 1)] == ["closed", "opened"]
        assert last_row(table, "opened") == {
            "boot": "boot-1", "version": "2", "unclean": False, "high_water_damaged": False,
        }  # fmt: skip
        assert table.journal.unsent() == unsent
        assert table.journal.unsent()[0].id == 3
        assert table.journal.head.epoch == head.epoch
    assert verify(tmp_path / NAME, table.key.public) is None


def test_a_crash_is_told_by_the_next_start(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        table.coup()
    with opened(tmp_path) as table:
        assert last_row(table, "opened")["unclean"]
        assert table.journal.found.reason == ""
        assert table.state.coup_no == 1
        assert last_row(table, "opened")["unclean"] is True


def test_the_last_fifty_coups_each_with_its_last_result(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for no in range(1, 61):
            table.play(Status.HELD if no % 10 == 0 else Status.VALID)
            if no % 10 == 0:
                resolved = {"kind": "resolution", "coup": no}
                table.state = replace(table.state, coup_no=no - 1)
                table.play(Status.VOID, **resolved)
        table.commit()
    with opened(tmp_path) as table:
        coups = [json.loads(payload) for payload in table.journal.last_coups()]
        assert [body["coup"] for body in coups] == list(range(60, 10, -1))
        assert [body["status"] for body in coups if body["coup"] % 10 == 0] == ["void"] * 5
        later = table.journal.results_after(coups[9]["seq"])
        assert [json.loads(payload)["result_no"] for payload in later][-1] == 66
        assert all(json.loads(payload)["seq"] > coups[9]["seq"] for payload in later)
        assert len(table.journal.results_after(0, limit=7)) == 7
        assert len(table.journal.last_coups(3)) == 3


def test_nothing_of_a_batch_stays_when_a_part_of_it_fails(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        before, head = facts(table), table.journal.head
        table.play()
        batch = table.batch()
        twice = replace(batch, messages=(batch.messages[0], batch.messages[0]))
        with pytest.raises(JournalBrokenError, match="UNIQUE constraint"):
            table.journal.commit(twice)
        assert facts(table) == before
        assert table.journal.head == head
        with pytest.raises(AssertionError, match="cannot follow"):
            table.journal.commit(replace(batch, rows=(replace(batch.rows[0], seq=99),)))
        assert facts(table) == before
        table.journal.commit(batch)
    assert verify(tmp_path / NAME, table.key.public) is None


def test_sent_messages_go_and_the_mark_survives_a_crash(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        for _ in range(4):
            table.coup()
        assert table.journal.unsent_count() == 12
        table.journal.mark_sent(5)
        table.journal.mark_sent(3)  # an older acknowledgement takes nothing back
    with opened(tmp_path, crash=True) as table:
        assert table.journal.unsent(limit=2)[0].id == 6
        assert [message.id for message in table.journal.unsent(after=9, limit=2)] == [10, 11]
        assert table.journal.unsent_count() == 7
        table.journal.mark_sent(12)
        table.journal.tidy()
        assert table.journal.unsent() == []
    with contextlib.closing(sqlite3.connect(tmp_path / NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    with opened(tmp_path) as table:
        table.coup()
        assert table.journal.unsent()[0].id == 13


def test_a_message_that_is_sent_before_another_topic_may_is_gone_by_itself(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        for _ in range(2):
            table.coup()
        table.journal.mark_sent(1)
        for message_id in (3, 4):
            table.journal.mark_sent(message_id, alone=True)
    with opened(tmp_path) as table:
        assert [message.id for message in table.journal.unsent()] == [2, 5, 6]
        assert table.journal.unsent_count() == 3
        assert [message.id for message in table.journal.unsent(without=["event"])] == [2, 5]
        assert [message.id for message in table.journal.unsent(without=["settlement/1"], limit=1)] == [6]
        table.journal.mark_sent(6)
        assert table.journal.unsent() == []


def test_many_sent_messages_are_removed_bit_by_bit(tmp_path: Path) -> None:
    """After a long outage the clearing up must not hold up the next result."""
    with opened(tmp_path) as table:
        many = 2 * DELETED_AT_ONCE + 10
        table.scribe.note("note", {})
        batch = table.batch()
        messages = tuple(
            Message(id=n, seq=batch.rows[0].seq, suffix="event", at_ns=1, payload=b"{}") for n in range(1, many + 1)
        )
        table.journal.commit(replace(batch, messages=messages))
        table.journal.mark_sent(many)
        left = []
        for _ in range(3):
            table.journal.tidy()
            left.append(table.journal._connection.execute("SELECT count(*) FROM outbox").fetchone()[0])
        assert left == [510, 10, 0]


def test_a_long_write_ahead_log_is_moved_into_the_file(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        while table.journal.figures()["wal_bytes"] <= 1_000_000:  # type: ignore[operator]
            for _ in range(20):
                table.play()
            table.commit()
        size = table.journal.figures()["file_bytes"]
        table.journal.tidy()
        assert table.journal.figures()["file_bytes"] > size  # type: ignore[operator]
        grown = table.journal.figures()["wal_bytes"]
        table.coup()
        assert table.journal.figures()["wal_bytes"] == grown  # written over from its start


def test_figures(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        assert table.journal.figures()["commit_p50_us"] is None
        for _ in range(5):
            table.coup()
        figures = table.journal.figures()
    assert figures["commits"] == 5
    assert figures["result_no"] == 5
    assert figures["seq"] == 7
    assert 0 < figures["commit_p50_us"] <= figures["commit_p99_us"] <= figures["commit_max_us"]  # type: ignore[operator]
    assert figures["trouble"] is None


def test_case_98_every_writer_is_synced(tmp_path: Path) -> None:
    """Field case 98: also after an acknowledgement was marked without one."""
    with opened(tmp_path) as table:
        table.coup()
        table.journal.mark_sent(1)
        connection = table.journal._connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
        assert connection.execute("PRAGMA temp_store").fetchone() == (2,)


def test_a_plain_tool_that_reads_in_between_changes_nothing(tmp_path: Path) -> None:
    """It moves the write-ahead log into the file and removes it, after a kill as well."""
    with opened(tmp_path, crash=True) as table:
        table.coup()
        epoch = table.scribe.epoch
        shutil.copytree(tmp_path, tmp_path / "copy")
    copy = tmp_path / "copy"
    assert (copy / f"{NAME}-wal").exists()
    sql(copy, "UPDATE head SET one = 1")
    assert not (copy / f"{NAME}-wal").exists()
    with opened(copy) as table:
        assert (table.scribe.epoch, table.state.coup_no) == (epoch, 1)


# --- whose folder ----------------------------------------------------------------------------------------------------


def test_a_second_daemon_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        with pytest.raises(JournalError, match=f"in use by another table-controller, process {os.getpid()}"):
            Journal(tmp_path, Owner(table=TABLE, game="g", version="1", boot="b"), table.key, Wall())
        code = (
            "import sys; from pathlib import Path\n"
            "from tests.controller.journals import opened\n"
            "with opened(Path(sys.argv[1])): pass\n"
        )
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
        assert other.returncode != 0
        assert f"process {os.getpid()}" in other.stderr
        table.coup()
    with opened(tmp_path) as table:
        assert table.state.coup_no == 2


@pytest.mark.parametrize("changes", [{"table": "demo/other"}, {"game": "boule"}])
def test_the_journal_of_another_table_is_refused(tmp_path: Path, changes: dict[str, str]) -> None:
    with opened(tmp_path) as table:
        owner = Owner(table=TABLE, game="roue_de_la_chance", version="1", boot="b")
    with pytest.raises(JournalError, match="choose another state folder"):
        Journal(tmp_path, replace(owner, **changes), table.key, Wall())
    with opened(tmp_path):
        pass


@pytest.mark.parametrize(
    ("written", "how"), [("3", "DROP TABLE snapshot_b"), ("1", "ALTER TABLE head DROP COLUMN anchor")]
)
def test_a_journal_of_another_format_is_refused_and_left_alone(written: str, how: str, tmp_path: Path) -> None:
    """However strange it looks to this version, it is not damaged."""
    with opened(tmp_path):
        pass
    sql(tmp_path, f"UPDATE about SET value = '{written}' WHERE key = 'format'")
    sql(tmp_path, how)
    with pytest.raises(JournalError, match=f"format {written}, this program reads 2"), opened(tmp_path):
        pass
    assert kept(tmp_path) == []


# --- lost, damaged, older --------------------------------------------------------------------------------------------


def remove(*names: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return act


def test_a_deleted_journal_begins_a_new_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        epoch = table.scribe.epoch
    (tmp_path / NAME).unlink()
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "deleted"
        assert table.scribe.epoch != epoch
        assert last_row(table, "epoch")["previous"] == epoch
        assert table.state.coup_no == 0
        table.coup()
        assert json.loads(table.journal.last_coups()[0])["result_no"] == 1
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""


def test_a_write_ahead_log_without_its_file_is_not_replayed(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        table.coup()
        shutil.copytree(tmp_path, tmp_path / "copy")
    (tmp_path / "copy" / NAME).unlink()
    with opened(tmp_path / "copy") as table:
        assert table.journal.found.reason == "deleted"
        assert table.state.coup_no == 0


def test_a_deleted_write_ahead_log_is_an_older_journal(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        epoch = table.scribe.epoch
    with opened(tmp_path, crash=True) as table:
        table.coup()
        shutil.copytree(tmp_path, tmp_path / "copy")
    copy = tmp_path / "copy"
    (copy / f"{NAME}-wal").unlink()
    with opened(copy) as table:
        assert table.journal.found.reason == "older"
        assert table.scribe.epoch != epoch
        assert table.state.coup_no == 1
        assert last_row(table, "epoch")["previous"] == epoch
    with opened(copy) as table:
        assert table.journal.found.reason == ""


def test_an_older_copy_goes_on_under_a_new_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        table.journal.mark_sent(2)
        unsent = table.journal.unsent()
    shutil.copy(tmp_path / NAME, tmp_path / "backup")
    with opened(tmp_path) as table:
        table.coup()
        epoch, seq = table.scribe.epoch, table.scribe.seq
    shutil.copy(tmp_path / "backup", tmp_path / NAME)
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "older"
        assert f"row {seq + 1}, the journal ends at" in last_row(table, "epoch")["detail"]
        assert table.state.coup_no == 1
        assert table.journal.unsent() == unsent  # what the copy has not sent is sent as it was
        table.coup()
        body = json.loads(table.journal.last_coups()[0])
        assert body["epoch"] == table.scribe.epoch != epoch
        assert body["result_no"] == 1
        assert body["prev_hash"] == "0" * 64
        assert len(table.journal.results_after(0)) == 2
    assert verify(tmp_path / NAME, table.key.public) is None
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""


def test_a_copy_from_before_the_last_epoch_is_older_too(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
    shutil.copy(tmp_path / NAME, tmp_path / "backup")
    for _ in range(2):
        with opened(tmp_path) as table:
            table.scribe.change_epoch("older", "test", table.journal.unsent())
            table.commit()
    shutil.copy(tmp_path / "backup", tmp_path / NAME)
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "older"


def test_a_crash_right_after_a_change_of_epoch_is_no_second_one(tmp_path: Path) -> None:
    """The high-water mark may still be of the epoch before."""
    with opened(tmp_path) as table:
        table.coup()
        mark = (tmp_path / HIGH).read_bytes()
        table.scribe.change_epoch("older", "test", table.journal.unsent())
        table.commit()
        epoch = table.scribe.epoch
    (tmp_path / HIGH).write_bytes(mark)
    with opened(tmp_path) as table:
        assert (table.journal.found.reason, table.scribe.epoch) == ("", epoch)


def test_another_key_is_another_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        first = table.key.public
    (tmp_path / KEY_FILE).unlink()
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "key"
        table.coup()
        assert len(table.journal.last_coups()) == 2
    assert verify(tmp_path / NAME, table.key.public) is None
    bad = verify(tmp_path / NAME, first)
    assert bad is not None
    assert bad.reason == "key"


def test_the_floor_knows_more_than_we_do(tmp_path: Path) -> None:
    """What was not sent may bear ids that are taken: it is issued again, in order, under the new epoch."""
    with opened(tmp_path) as table:
        table.coup()
        table.coup(Status.HELD)
        table.journal.mark_sent(3)  # all of the first coup
        table.state = replace(table.state, coup_no=1)
        table.coup(Status.VALID, kind="resolution", coup=2)
        old = table.scribe.epoch
        before = table.journal.unsent()
        new = table.scribe.change_epoch("older", "the broker has result 9", before)
        batch = table.commit()
        assert batch.epoch == new == table.journal.head.epoch
        assert table.journal.head.previous == old
        told = [(message.suffix, json.loads(message.payload)) for message in table.journal.unsent()]
        assert [suffix for suffix, _ in told] == [message.suffix for message in before]
        assert all(body["epoch"] == new and body["id"].startswith(f"{new}/") for _, body in told)
        assert [message.seq for message in table.journal.unsent()] == [message.seq for message in before]
        results = [body for suffix, body in told if suffix == "result"]
        assert [(body["coup"], body["result_no"]) for body in results] == [(2, 1), (2, 2)]
        assert results[1]["resolves"] == results[0]["id"]
        assert [body["result"] for suffix, body in told if suffix == "settlement/1"] == [
            results[0]["id"], results[1]["id"],
        ]  # fmt: skip
        table.coup()
        payloads = [message.payload for message in table.journal.unsent() if message.suffix == "result"]
        assert first_fault(payloads, table.key.public) == ""
        known = [json.loads(payload) for payload in table.journal.results_after(0)]
        assert [(body["epoch"], body["coup"]) for body in known] == [(old, 1), (new, 2), (new, 2), (new, 3)]
    assert verify(tmp_path / NAME, table.key.public) is None
    with opened(tmp_path) as table:
        assert (table.scribe.epoch, table.scribe.book.result_no) == (new, 3)
        assert [message.suffix for message in table.journal.unsent()][:1] == ["result"]


def test_a_damaged_journal_is_kept_and_its_state_carried_over(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        table.coup()
        table.journal.mark_sent(3)
        unsent, old = table.journal.unsent(), table.scribe.epoch
    sql(tmp_path, "UPDATE rows SET body = '{}' WHERE seq = 3", "UPDATE outbox SET payload = '{}' WHERE id = 5")
    damaged = (tmp_path / NAME).read_bytes()
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "damaged"
        (name,) = kept(tmp_path)
        assert name.startswith(f"journal-{old}-2")
        assert (tmp_path / name).read_bytes() == damaged
        said = last_row(table, "epoch")
        assert said["kept"] == name
        assert said["previous"] == old
        assert said["detail"] == "row 3 was altered"
        assert (said["state_carried"], said["messages_carried"], said["messages_spoilt"]) == (True, 2, 1)
        assert table.state.coup_no == 2
        sound = [message.payload for message in unsent if message.id != 5]
        assert [message.payload for message in table.journal.unsent()] == sound
        assert [message.id for message in table.journal.unsent()] == [1, 2]
        table.coup()
        assert json.loads(table.journal.last_coups()[0])["result_no"] == 1
    assert verify(tmp_path / NAME, table.key.public) is None
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""
        assert table.state.coup_no == 3
    assert kept(tmp_path) == [name]


TABLES = ["about", "rows", "results", "outbox", "snapshot_a", "snapshot_b", "head"]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_gone(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as table:
        table.coup()
    sql(tmp_path, f"DROP TABLE {name}")
    again = 0
    for _ in range(2):
        with opened(tmp_path) as table:
            again += table.journal.found.reason == "damaged"
            table.coup()
    assert again == 1
    assert len(kept(tmp_path)) == 1
    assert verify(tmp_path / NAME, table.key.public) is None


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("UPDATE rows SET at_ns = 1 WHERE seq = 3", "row 3 was altered"),
        ("UPDATE rows SET hash = prev_hash WHERE seq = 3", "row 3 was altered"),
        ("DELETE FROM rows WHERE seq = 3", "row 3 is missing"),
        ("DELETE FROM rows WHERE seq = (SELECT max(seq) FROM rows)", "the last row is"),
        ("UPDATE head SET seq = seq + 1", "the last row is"),
        ("UPDATE head SET epoch = 'other'", "the seal on the last row does not verify"),
        ("UPDATE head SET seal = ''", "the seal on the last row does not verify"),
        ("DELETE FROM results", "the last result is 0, the head says 1"),
        ("UPDATE results SET payload = replace(payload, 'vert', 'bleu')", "result 1 is missing or was altered"),
        ("DELETE FROM head", "no head"),
        ("UPDATE outbox SET payload = '{}' WHERE id = 2", "message 2 in the outbox was altered"),
        ("UPDATE rows SET body = CAST(x'7bff7d' AS TEXT) WHERE seq = 3", "row 3 was altered"),
    ],
)
def test_a_journal_that_was_meddled_with(tmp_path: Path, statement: str, detail: str) -> None:
    with opened(tmp_path) as table:
        table.coup()
    sql(tmp_path, statement)
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "damaged"
        assert detail in last_row(table, "epoch")["detail"]
        assert table.state.coup_no == 1
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""


@pytest.mark.parametrize("copy", ["snapshot_a", "snapshot_b"])
@pytest.mark.parametrize("how", ["UPDATE {} SET body = '{{}}'", "DELETE FROM {}"])
def test_one_damaged_copy_of_the_state_is_mended(tmp_path: Path, copy: str, how: str) -> None:
    with opened(tmp_path) as table:
        table.coup()
    sql(tmp_path, how.format(copy))
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""
        assert table.state.coup_no == 1
        assert last_row(table, "repaired") == {"copies": [copy]}
    with opened(tmp_path) as table:
        assert [stored.row.kind for stored in rows(table.journal)].count("repaired") == 1


def test_two_damaged_copies_of_the_state_need_a_person(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        seq = table.scribe.seq
    sql(tmp_path, "UPDATE snapshot_a SET body = '{}'", "UPDATE snapshot_b SET digest = ''")
    for _ in range(2):
        with pytest.raises(JournalError, match="both copies of the state"), opened(tmp_path):
            pass
    (tmp_path / NAME).rename(tmp_path / "aside")
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "deleted"
        assert table.scribe.seq < seq


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: data[:-1], id="last byte"),
        pytest.param(lambda data: b"\0" * len(data), id="zeros"),
        pytest.param(lambda data: b"not a database\n" * 100, id="text"),
        pytest.param(lambda data: data[:100] + b"\xff" * 4096 + data[4196:], id="schema page"),
    ],
)
def test_a_spoilt_file(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    with opened(tmp_path) as table:
        for _ in range(20):
            table.play()
        table.commit()
        epoch = table.scribe.epoch
    (tmp_path / NAME).write_bytes(spoil((tmp_path / NAME).read_bytes()))
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "damaged"
        assert table.scribe.epoch != epoch
        assert len(kept(tmp_path)) == 1
        assert last_row(table, "epoch")["previous"] == epoch
        table.coup()
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""


@pytest.mark.parametrize("clean", [True, False])
def test_any_flipped_byte_is_harmless_or_known(tmp_path: Path, clean: bool) -> None:
    """Header, schema, rows, free space, write-ahead log: never a crash or a loop, nothing believed that is wrong."""
    origin = tmp_path / "origin"
    with opened(origin, crash=True) as table:
        for _ in range(6):
            table.play()
        table.commit()
        if clean:
            table.journal.close()
        else:
            shutil.copytree(origin, tmp_path / "crashed")
        played, epoch = table.state.coup_no, table.scribe.epoch
    source = origin if clean else tmp_path / "crashed"
    chance = random.Random(7)
    file = source / (NAME if clean else f"{NAME}-wal")
    size = file.stat().st_size
    places = [*range(16, 100, 12), *(chance.randrange(100, size) for _ in range(14))]
    outcomes = set()
    for place in places:
        folder = tmp_path / f"flipped-{place}"
        shutil.copytree(source, folder)
        with (folder / file.name).open("r+b") as opened_file:
            opened_file.seek(place)
            byte = opened_file.read(1)[0]
            opened_file.seek(place)
            opened_file.write(bytes([byte ^ (1 << chance.randrange(8))]))
        with opened(folder) as table:
            reason = table.journal.found.reason
            outcomes.add(reason)
            if reason == "":
                assert (table.scribe.epoch, table.state.coup_no) == (epoch, played), place
                assert first_fault(table.journal.results_after(0), table.key.public) == "", place
            elif reason == "damaged":
                assert len(kept(folder)) == 1, place
                assert table.state.coup_no in {0, played}, place
            else:
                assert reason == "older", place
        with opened(folder) as table:
            assert table.journal.found.reason == "", place
        shutil.rmtree(folder)
    assert outcomes == ({"", "damaged"} if clean else {"older"})


def test_a_kept_journal_is_never_written_over(tmp_path: Path) -> None:
    """A card that spoils the file at every start, by a clock that stands still."""

    class Frozen(Wall):
        def utc(self, at_ns: int | None = None) -> str:
            return "2026-01-01T00:00:00.000Z"

    for _ in range(3):
        with opened(tmp_path, clock=Frozen()) as table:
            table.coup()
        (tmp_path / NAME).write_bytes(b"")
    with opened(tmp_path, clock=Frozen()):
        pass
    assert len(kept(tmp_path)) == 3


# --- the high-water mark ---------------------------------------------------------------------------------------------


def test_the_mark_survives_any_torn_write(tmp_path: Path) -> None:
    with contextlib.closing(HighWater(tmp_path)) as high:
        assert high.mark is None
        high.note(Mark("e", 1, 0))
        high.settle()
        high.note(Mark("e", 2, 1))
    whole = (tmp_path / HIGH).read_bytes()
    for start in (0, 4096):
        for torn in (b"", b"\0" * 100, b"00000000 {}", whole[start + 1 : start + 100]):
            (tmp_path / HIGH).write_bytes(whole[:start] + torn.ljust(256) + whole[start + 256 :])
            with contextlib.closing(HighWater(tmp_path)) as high:
                assert high.mark == Mark("e", 2, 1)
                assert not high.damaged


def test_a_spoilt_mark_is_told_and_written_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        epoch = table.scribe.epoch
    (tmp_path / HIGH).write_bytes(b"x" * 5000)
    with opened(tmp_path) as table:
        assert table.scribe.epoch == epoch
        assert last_row(table, "opened")["high_water_damaged"] is True
    with opened(tmp_path) as table:
        assert last_row(table, "opened")["high_water_damaged"] is False


def test_the_mark_is_never_ahead(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        table.coup()
        with contextlib.closing(HighWater(tmp_path)) as high:
            assert high.mark == Mark(table.scribe.epoch, table.scribe.seq, 1)


# --- the disk --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip(f"may not mount: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> Path:
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return disk / "filler"


def test_a_full_disk_is_told_and_the_same_batch_goes_in_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "3m") as disk:
        with opened(disk) as table:
            for _ in range(2):
                table.coup()
            filler = fill(disk)
            caught: JournalUnavailableError | None = None
            while caught is None:
                before = facts(table)
                table.play()
                batch = table.batch()
                try:
                    table.journal.commit(batch)
                except JournalUnavailableError as error:
                    caught = error
            assert caught.reason == "disk_full"
            assert "free space" in str(caught)
            assert table.journal.figures()["trouble"] is not None
            assert facts(table) == before
            table.journal.mark_sent(1)  # cannot be written either: kept for the next commit
            table.journal.mark_sent(3, alone=True)
            assert [message.id for message in table.journal.unsent(limit=2)] == [2, 4]
            filler.unlink()
            table.journal.commit(batch)
            assert table.journal.figures()["trouble"] is None
            assert facts(table)[:-1] == before
            assert [message.id for message in table.journal.unsent(limit=2)] == [2, 4]
        assert verify(disk / NAME, table.key.public) is None
        with opened(disk, crash=True) as table:
            assert table.journal.found.reason == ""
            assert [message.id for message in table.journal.unsent(limit=2)] == [2, 4]


def test_a_start_on_a_full_disk_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "200k") as disk:
        key_of(disk)
        filler = fill(disk)
        for _ in range(2):
            with pytest.raises(JournalUnavailableError) as caught, opened(disk):
                pass
            assert caught.value.reason == "disk_full"
        filler.unlink()
        with opened(disk) as table:
            assert table.journal.found.reason in {"first", "deleted"}


def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "3m") as disk:
        with opened(disk) as table:
            table.coup()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(JournalUnavailableError, match="check the card") as caught, opened(disk):
            pass
        assert caught.value.reason == "read_only"
        assert verify(disk / NAME, table.key.public) is None  # reading goes on (field case 89)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        with opened(disk) as table:
            assert table.state.coup_no == 1


def test_a_journal_that_another_program_holds_is_tried_again(tmp_path: Path) -> None:
    with opened(tmp_path) as table, contextlib.closing(sqlite3.connect(tmp_path / NAME)) as tool:
        table.journal._connection.execute("PRAGMA busy_timeout=10")
        tool.execute("BEGIN IMMEDIATE")
        table.play()
        batch = table.batch()
        with pytest.raises(JournalUnavailableError) as caught:
            table.journal.commit(batch)
        assert caught.value.reason == "locked"
        table.journal._sent, table.journal._deleted = 1, 0
        with pytest.raises(JournalUnavailableError):
            table.journal.tidy()
        tool.rollback()
        table.journal.commit(batch)


def test_a_start_while_another_program_holds_the_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as table:
        table.coup()
    monkeypatch.setattr(journal_file, "BUSY_S", 0.01)
    with contextlib.closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as tool:
        tool.execute("PRAGMA locking_mode=EXCLUSIVE")
        tool.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JournalUnavailableError) as caught, opened(tmp_path):
            pass
        assert caught.value.reason == "locked"
        tool.execute("COMMIT")
    assert kept(tmp_path) == []
    with opened(tmp_path) as table:
        assert table.state.coup_no == 1


def test_a_start_that_takes_too_long_to_examine_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as table:
        for number in range(1500):
            table.scribe.note("note", {"number": number})
        table.commit()
    monkeypatch.setattr(journal_file, "EXAMINE_NS", -1)
    with opened(tmp_path) as table:
        assert table.journal.found.reason == ""


def test_a_power_cut_in_the_middle_of_the_swap_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as table:
        table.coup()
    sql(tmp_path, "UPDATE rows SET body = '{}' WHERE seq = 2")
    rename = Path.rename

    def cut(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", cut)
        with pytest.raises(KeyboardInterrupt), opened(tmp_path):
            pass
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "damaged"
        assert table.state.coup_no == 1


def test_a_damaged_journal_on_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    with opened(tmp_path) as table:
        table.coup()
    sql(tmp_path, "UPDATE rows SET body = '{}' WHERE seq = 2")
    with opened(tmp_path) as table:
        assert table.journal.found.reason == "damaged"
        assert table.state.coup_no == 1
        assert len(kept(tmp_path)) == 1


def test_what_nobody_can_mend_ends_the_process(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        table.coup()
        table.journal._connection.close()
        for work in (lambda: table.journal.mark_sent(1), table.journal.tidy, table.note, table.journal.close):
            table.journal._sent = 1
            with pytest.raises(JournalBrokenError):
                work()
        assert table.journal.trouble


def test_a_mark_that_cannot_be_written_does_not_undo_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, crash=True) as table:

        def refused(*_: object) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        with monkeypatch.context() as patch:
            patch.setattr(HighWater, "note", refused)
            patch.setattr(HighWater, "settle", refused)
            table.coup()
            assert "high-water" in table.journal.trouble
            with pytest.raises(JournalUnavailableError, match="check the card"):
                table.journal.tidy()
        table.coup()
        assert table.journal.trouble == ""
        table.journal.tidy()


def test_an_error_on_a_read_only_card_is_known_by_the_card(tmp_path: Path) -> None:
    """The kernel makes a sick card read-only under an open file: SQLite then only tells of a failed write."""
    with small_disk(tmp_path / "disk", "3m") as disk:
        with opened(disk) as table:
            pass
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        failed = sqlite3.OperationalError("disk I/O error")
        failed.sqlite_errorname = "SQLITE_IOERR_WRITE"
        judged = table.journal._judged(failed)
        assert isinstance(judged, JournalUnavailableError)
        assert judged.reason == "read_only"
        failed.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        assert isinstance(table.journal._judged(failed), JournalBrokenError)
    (tmp_path / "disk").rmdir()
    failed.sqlite_errorname = "SQLITE_IOERR_WRITE"
    assert isinstance(table.journal._judged(failed), JournalBrokenError)
    assert table.journal.figures()["file_bytes"] == 0


def test_a_state_folder_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    key = key_of(tmp_path)
    owner = Owner(table=TABLE, game="g", version="1", boot="b")
    with pytest.raises(JournalError, match=r"state folder .*/file: "):
        Journal(tmp_path / "file", owner, key, Wall())


# --- the thread ------------------------------------------------------------------------------------------------------


async def test_nobody_closes_the_file_under_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's library would crash: a critical task that fails lets go of the files while the thread is at work."""
    with opened(tmp_path) as table:
        thread = JournalThread(table.journal)
        done: list[str] = []
        began, let_go = threading.Event(), threading.Event()

        def commit() -> None:
            began.set()
            while not thread._pool._shutdown and not let_go.wait(0.001):
                pass  # until somebody wants to leave, in whatever way
            done.append("commit")

        def abandon() -> None:
            let_go.set()
            done.append("let go")

        monkeypatch.setattr(table.journal, "abandon", abandon)
        calls = [asyncio.get_running_loop().create_task(thread.call(work)) for work in (commit, commit)]
        assert await asyncio.to_thread(began.wait, 10)
        thread.abandon()
        await asyncio.wait(calls)
        assert done == ["commit", "let go"]
        monkeypatch.undo()


async def test_the_thread_works_in_order_and_tidies_when_idle(tmp_path: Path) -> None:
    with opened(tmp_path, crash=True) as table:
        beats: list[int] = []
        thread = JournalThread(table.journal, beat=lambda: beats.append(1))
        async with asyncio.TaskGroup() as group:
            tidying = group.create_task(thread.run())
            batches = []
            for _ in range(3):
                table.play()
                batches.append(table.batch())
            await asyncio.gather(*(thread.commit(batch) for batch in batches))
            await thread.mark_sent(table.journal.head.last_outbox)
            assert await thread.call(table.journal.unsent) == []
            async with asyncio.timeout(10):
                while not table.journal._high.settled or table.journal._deleted < 9:  # noqa: ASYNC110  # what the thread does by itself
                    await asyncio.sleep(0.01)
            with pytest.raises(JournalBrokenError):
                await thread.commit(batches[0])
            assert beats
            tidying.cancel()
        assert thread.waiting_peak >= 3
        await thread.close()
    with opened(tmp_path) as table:
        assert not last_row(table, "opened")["unclean"]
        assert table.state.coup_no == 3


def test_a_batch_may_be_empty_of_everything_but_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        row = Row(seq=table.scribe.seq + 1, kind="note", at_ns=1, time="t", clock_synchronised=False, body=b'{"a":1}')
        table.journal.commit(Batch(rows=(row,)))
        assert rows(table.journal, row.seq)[0].row == row
