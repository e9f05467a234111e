"""What the board, the disk, the loop and the log say about themselves."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller import board, lag, logs, wire
from controller.clock import Clock
from controller.guard import Guard
from controller.health import Reporter, Sources
from controller.lag import LagMeter
from controller.results import Told
from controller.supervisor import Report

MOUNTS = """\
22 1 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw
31 22 0:26 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=100k
40 22 179:3 / /var/lib/my\\040state ro,noatime shared:9 - ext4 /dev/mmcblk0p3 ro
41 22 0:40 / /overlay rw - overlay overlay rw
"""


def make_board(root: Path, *, throttled: str | None = None, temperature: str | None = None) -> Path:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/mountinfo").write_text(MOUNTS)
    for place, value in ((board.THROTTLED, throttled), ("sys/class/thermal/thermal_zone0/temp", temperature)):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        if value is not None:
            (root / place).write_text(value + "\n")
    return root


@pytest.mark.parametrize(
    ("flags", "now", "ever", "throttled"),
    [("0", False, False, False), ("50005", True, True, True), ("50000", False, True, False), ("1", True, False, False)],
)
def test_undervoltage_is_now_has_been_or_never(
    flags: str, now: bool, ever: bool, throttled: bool, tmp_path: Path
) -> None:
    """Field case 96."""
    said = board.cpu(make_board(tmp_path, throttled=flags, temperature="48312"))
    assert said == {
        "temperature_mdeg": 48312,
        "undervoltage": now,
        "undervoltage_since_boot": ever,
        "throttled": throttled,
    }


def test_a_board_that_does_not_tell_says_so(tmp_path: Path) -> None:
    assert set(board.cpu(make_board(tmp_path, temperature="hot")).values()) == {None}


@pytest.mark.parametrize(
    ("folder", "kind", "durable", "read_only"),
    [
        ("/var/lib/tc", "ext4", True, False),
        ("/run/tc", "tmpfs", False, False),
        ("/var/lib/my state/x", "ext4", True, True),
        ("/overlay", "overlay", False, False),
    ],
)
def test_the_file_system_of_the_journal(folder: str, kind: str, durable: bool, read_only: bool, tmp_path: Path) -> None:
    """Field case 97."""
    said = board.disk(Path(folder), make_board(tmp_path))
    assert (said["filesystem"], said["durable"], said["read_only"]) == (kind, durable, read_only)
    assert said["free_bytes"] is None or Path(folder).is_dir()
    assert isinstance(board.disk(tmp_path)["free_bytes"], int)


class Wall(Clock):
    """A wall clock that can be set."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Book:
    """Alarms and notes as they come."""

    def __init__(self) -> None:
        self.active: dict[str, str] = {}
        self.raised: list[str] = []
        self.notes: list[tuple[str, Mapping[str, Any], tuple[Told, ...]]] = []

    def alarm(self, name: str, code: str, sentence: str) -> None:
        assert code
        self.raised.append(name)
        self.active[name] = sentence

    def clear(self, name: str) -> None:
        self.active.pop(name, None)

    def note(self, kind: str, body: Mapping[str, Any], *told: Told) -> None:
        self.notes.append((kind, body, told))


def guard(
    book: Book,
    root: Path,
    *,
    folder: str = "/var/lib/tc",
    least: int = 1000,
    clock: Clock | None = None,
    faults: Mapping[str, str] | None = None,
) -> Guard:
    return Guard(
        folder=Path(folder), free_bytes_min=least, clock=clock or Clock(), faults=lambda: faults or {},
        alarm=book.alarm, clear=book.clear, note=book.note, beat=lambda: None, root=root,
    )  # fmt: skip


def test_disk_and_supply_are_alarms_that_clear_themselves(tmp_path: Path) -> None:
    book = Book()
    guard(book, make_board(tmp_path, throttled="1"), folder="/overlay").look()
    assert set(book.active) == {"state:volatile", "supply"}
    assert "/overlay" in book.active["state:volatile"]
    guard(book, make_board(tmp_path, throttled="0"), folder="/").look()
    assert book.active == {}
    guard(book, tmp_path, folder="/", least=10**18).look()
    assert set(book.active) == {"state:disk"}
    book = Book()
    guard(book, tmp_path, folder="/var/lib/my state").look()
    assert set(book.active) == {"state:read_only"}  # before anything had to be written


def test_what_a_person_must_mend_at_a_device_is_an_alarm_until_it_is_mended(tmp_path: Path) -> None:
    book, faults = Book(), {"wheel_sensor": "", "console": ""}
    watch = guard(book, make_board(tmp_path, throttled="0"), folder="/", faults=faults)
    watch.look()
    assert not book.active
    faults["wheel_sensor"] = "Aucune bille trouvée"
    watch.look()
    assert book.active == {"device:wheel_sensor:fault": "wheel_sensor : Aucune bille trouvée"}
    faults["wheel_sensor"] = "Capteur 1 aveugle"
    watch.look()
    assert book.active == {"device:wheel_sensor:fault": "wheel_sensor : Capteur 1 aveugle"}
    faults["wheel_sensor"] = ""
    watch.look()
    assert not book.active


def test_a_disk_that_fills_is_told_once_and_is_over_only_with_room_to_spare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = {"filesystem": "ext4", "durable": True, "read_only": False}
    monkeypatch.setattr(board, "disk", lambda *_: space)
    book = Book()
    watch = guard(book, make_board(tmp_path))
    for free in (999, 998, 1001, 1099):
        space["free_bytes"] = free
        watch.look()
        assert set(book.active) == {"state:disk"}
    assert book.raised == ["state:disk"]
    space["free_bytes"] = 1100
    watch.look()
    assert book.active == {}


def test_case_106_a_clock_that_was_set_is_told_once(tmp_path: Path) -> None:
    """Field case 106."""
    book, wall = Book(), Wall()
    watch = guard(book, make_board(tmp_path), folder="/", clock=wall)
    watch.look()
    watch.look()
    assert book.notes == []
    wall.ahead = timedelta(days=400)
    watch.look()
    watch.look()
    ((kind, body, (told,)),) = book.notes
    assert (kind, told.code) == ("clock", "horloge_decalee")
    assert abs(body["moved_ms"] - 400 * 86_400_000) < 1000
    wall.ahead = timedelta()
    watch.look()
    assert book.notes[1][1]["moved_ms"] < 0


async def test_the_guard_looks_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.guard.LOOK_S", 0.001)
    looked = asyncio.Event()
    watch = guard(Book(), make_board(tmp_path), folder="/")
    looks = 0

    def beat() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            looked.set()

    watch._beat = beat
    async with asyncio.TaskGroup() as group, asyncio.timeout(10):
        task = group.create_task(watch.run())
        await looked.wait()
        task.cancel()


def test_the_body_of_health_holds_what_was_asked_for(tmp_path: Path) -> None:
    clock = Clock()
    reporter = Reporter(
        table="demo/t-1", boot="b", version="1", folder=tmp_path, free_bytes_min=7, clock=clock,
        sources=Sources(
            devices=lambda: {"wheel": wire.Device(state="ok", last_fact_ms=3)},
            tasks=lambda: {
                "journal": Report(watched=True, beat_ns=clock.mono_ns() - 5_000_000_000, restarts=2),
                "serial:console": Report(watched=False, state="waiting"),
            },
            loop_lag_ms=lambda: 4, unsent=lambda: (2, 30), last_result=lambda: "e/9", command_path=lambda: "verified",
            mqtt=lambda: {"connected": True}, journal=lambda: {"seq": 9}, queues=lambda: {"inbox": {"peak": 1}},
            maintenance=lambda: False, epoch=lambda: "e",
            statistics=lambda: wire.Statistics(wheel="", since=None, level="ok", series={}),
        ),
    )  # fmt: skip
    body = json.loads(wire.encode(reporter.report()))
    assert body["tasks"]["journal"]["restarts"] == 2
    assert body["tasks"]["journal"]["beat_ms"] >= 4900
    assert body["tasks"]["serial:console"] == {"state": "waiting", "beat_ms": None, "restarts": 0}
    assert (body["unsent"], body["oldest_unsent_ms"], body["loop_lag_ms"]) == (2, 30, 4)
    assert body["disk"]["free_bytes_min"] == 7
    assert body["clock"]["synchronised"] in (True, False)


# --- the loop ---


def _guilty() -> None:
    time.sleep(0.5)


async def test_a_late_loop_is_measured_and_the_culprit_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "TICK_S", 0.005)
    monkeypatch.setattr(lag, "LOOK_S", 0.01)
    ticked = asyncio.Event()
    meter = LagMeter(Clock(), ticked.set)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(meter.run())
        await ticked.wait()
        _guilty()
        ticked.clear()
        await ticked.wait()
        task.cancel()
    assert meter.late >= 1
    assert meter.worst_ms() >= 300
    assert "_guilty" in meter.last_culprit


def test_what_is_read_after_the_loop_was_kept_from_running_may_have_waited_unread() -> None:
    second, meter = 10**9, LagMeter(Clock(), lambda: None)
    assert meter.unread_ns(100 * second) == 0
    meter._ticked(9 * second + 900_000_000)
    assert meter.unread_ns(10 * second + 400_000_000) == 0
    assert meter.unread_ns(13 * second) == 3_100_000_000  # read before the tick of the same turn
    meter._ticked(13 * second)
    assert meter.unread_ns(13 * second + 200_000_000) == 3_300_000_000  # or after it
    assert meter.unread_ns(13 * second + 500_000_000) == 0


def test_the_worst_lag_is_forgotten_after_two_windows() -> None:
    meter = LagMeter(Clock(), lambda: None)
    meter._due_ns = meter._window_ns = 0
    meter._ticked(50_000_000)
    assert meter.worst_ms() == 50
    for n in range(1, 4):
        meter._due_ns = n * (lag.WINDOW_NS + 1)
        meter._ticked(meter._due_ns)
    assert meter.worst_ms() == 0


def test_our_own_line_is_named_before_that_of_a_library() -> None:
    import sys

    namespace: dict[str, Any] = {"__name__": "controller.fake", "sys": sys, "where": lag.where}
    exec("def ours(call): return call(lambda: where(sys._getframe()))", namespace)
    said = namespace["ours"](lambda look: look())
    assert said.startswith("controller.fake.ours")
    assert lag.where(sys._getframe()).startswith(f"{__name__}.test_our_own_line")


# --- the log ---


async def test_a_record_is_a_json_line_with_its_task(capsys: pytest.CaptureFixture[str]) -> None:
    log, before = logging.getLogger("controller.test"), logging.getLogger().level
    with logs.logging_to_stderr("info"):
        log.info("hello %s", "wheel")
        log.debug("not told")
        logs.set_level("debug")
        log.debug("told")
        try:
            raise ValueError("boom")
        except ValueError:
            log.exception("failed")
    assert logging.getLogger().level == before
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["text"] for line in lines] == ["hello wheel", "told", "failed"]
    assert lines[0]["level"] == "info"
    assert lines[0]["from"] == "controller.test"
    assert lines[0]["task"]
    assert "ValueError: boom" in lines[2]["trace"]


def test_the_same_sentence_is_told_once_a_minute_and_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 95."""
    now = 1000.0
    monkeypatch.setattr("controller.logs.time.monotonic", lambda: now)
    log = logging.getLogger("controller.test")
    with logs.logging_to_stderr("info"):
        for _ in range(1000):
            log.error("no device")
        now += logs.REPEAT_S
        log.error("no device")
        for n in range(2 * logs.KNOWN_MAX):
            log.error("other %d", n)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line.get("repeats") for line in lines if line["text"] == "no device"] == [None, 999]


def test_a_log_that_cannot_keep_up_drops_and_counts() -> None:
    import queue

    full: queue.Queue[logging.LogRecord] = queue.Queue(1)
    handler = logs.Queued(full)
    for _ in range(3):
        handler.emit(logging.makeLogRecord({"msg": "x"}))
    assert (full.qsize(), handler.dropped) == (1, 2)
