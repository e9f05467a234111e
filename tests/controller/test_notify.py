"""sd_notify over a real datagram socket, and the two clocks."""

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controller.clock import Clock, boot_id, kernel_synchronised, rfc3339
from controller.notify import Notifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(5)
        yield sock


def test_each_word_arrives(manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    notifier.ready()
    notifier.status("one\nline")
    notifier.alive()
    notifier.stopping()
    notifier.extend(2.5)
    words = [manager.recv(1000).decode() for _ in range(5)]
    assert words == ["READY=1", "STATUS=one line", "WATCHDOG=1", "STOPPING=1", "EXTEND_TIMEOUT_USEC=2500000"]


def test_an_abstract_socket_is_understood() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        name = f"table-controller-test-{os.getpid()}"
        sock.bind("\0" + name)
        sock.settimeout(5)
        Notifier({"NOTIFY_SOCKET": "@" + name}).ready()
        assert sock.recv(100) == b"READY=1"


def test_nobody_asked_or_nobody_listens(tmp_path: Path) -> None:
    Notifier({}).ready()
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "500000"}, 0.5),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "77"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "78"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_deadline_is_read_from_the_manager(environ: dict[str, str], seconds: float | None) -> None:
    assert Notifier({"NOTIFY_SOCKET": "/run/notify", **environ}, pid=77).watchdog_s == seconds


def test_without_a_socket_there_is_no_watchdog() -> None:
    assert Notifier({"WATCHDOG_USEC": "500000"}).watchdog_s is None


def test_wall_time_is_a_label_of_a_monotonic_instant() -> None:
    class Fixed(Clock):
        def mono_ns(self) -> int:
            return 10_000_000_000

        def now(self) -> datetime:
            return datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)

    assert Fixed().utc() == "2026-01-31T12:00:00.250Z"
    assert Fixed().utc(9_000_000_000) == "2026-01-31T11:59:59.250Z"
    assert rfc3339(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00.000Z"


def test_the_kernel_is_asked_for_boot_and_quality() -> None:
    assert len(boot_id()) == 36
    assert kernel_synchronised() in (True, False, None)
    assert Clock().synchronised() in (True, False)
    assert Clock().mono_ns() <= Clock().mono_ns()


def test_a_refused_question_falls_back_to_timesyncd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flag = tmp_path / "synchronized"
    monkeypatch.setattr("controller.clock.kernel_synchronised", lambda: None)
    monkeypatch.setattr("controller.clock.SYNCHRONISED_FILE", flag)
    assert not Clock().synchronised()
    flag.touch()
    assert Clock().synchronised()
