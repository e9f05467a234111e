"""The daemon in this process: what a start tells, who ends whom, what an order is answered (field cases 93, 94)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from controller import supervisor
from controller.app import App
from controller.clock import Clock
from controller.config import Config, toml
from controller.config_check import from_data
from controller.config_file import read_toml, shipped_tables
from controller.errors import TaskFailedError
from controller.journal import JournalBrokenError
from controller.journal_file import NAME
from controller.notify import Notifier
from drivers.ports.serial import SerialDevice
from rules.facts import Commanded


def table(folder: Path, **changes: Any) -> dict[str, Any]:
    """A roue on a machine without any of its devices, and without a broker."""
    data = read_toml(shipped_tables()["roue-de-la-chance"])
    data["chips"]["header"]["path"] = str(folder / "chip.sock")
    data["devices"]["console"] = {"family": "console", "path": str(folder / "tty")}
    data["mqtt"]["url"] = "mqtt://127.0.0.1:1"
    data["state"] = {"folder": str(folder / "state"), "socket": str(folder / "cmd.sock")}
    data["local"] = []
    return {**data, **changes}


def config(folder: Path, **changes: Any) -> Config:
    return from_data(table(folder, **changes), "test")


@pytest.fixture
def manager(tmp_path: Path) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


@contextlib.asynccontextmanager
async def living(made: Config, manager: socket.socket, *, watchdog_us: int = 0) -> AsyncIterator[App]:
    """The daemon from READY=1 to its stop in order."""
    environ = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": str(watchdog_us)}
    app = App(made, Clock(), Notifier(environ))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(app.run())
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20):
            while b"READY=1" not in (await loop.sock_recv(manager, 4096)).splitlines():
                pass
        try:
            yield app
        finally:
            app._asked_to_stop()
            with contextlib.suppress(BaseException):
                await asyncio.shield(task)


def rows(folder: Path) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(folder / "state" / NAME)) as connection:
        found = connection.execute("SELECT kind, body FROM rows ORDER BY seq").fetchall()
    return [{"kind": kind, **json.loads(body)} for kind, body in found]


def facts(folder: Path) -> list[dict[str, Any]]:
    return [row["fact"] for row in rows(folder) if row["kind"] == "step"]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_without_devices_and_broker_it_is_ready_and_says_what_is_lost(
    tmp_path: Path, manager: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    async with living(config(tmp_path), manager) as app:
        health = app._report()
        assert {role: device.state for role, device in health.devices.items()} == {
            "wheel": "lost", "console": "lost", "button.rien_ne_va_plus": "lost", "button.faites_vos_jeux": "lost",
            "button.coup_nul": "lost",
        }  # fmt: skip
        assert "does not exist" in str(health.devices["console"].text)
        assert health.mqtt["connected"] is False
        assert all(task.state == "running" for task in health.tasks.values())
    assert {f"alarm device:{role}: " in caplog.text for role in health.devices} == {True}
    told = facts(tmp_path)
    assert [fact["device"] for fact in told if fact["in"] == "Doubtful"] == ["wheel"]
    assert {fact["device"] for fact in told if fact["in"] == "DeviceLost"} == set(health.devices)
    assert rows(tmp_path)[-1] == {"kind": "closed", "reason": "stopped"}


async def test_a_disabled_device_is_lost_for_the_law_and_disabled_for_people(
    tmp_path: Path, manager: socket.socket
) -> None:
    data = table(tmp_path)
    data["devices"]["console"]["enabled"] = False
    async with living(from_data(data, "test"), manager) as app:
        assert app._report().devices["console"].state == "disabled"
        assert "serial:console" not in app._report().tasks
        await until(lambda: "console" in app._sequencer.state.lost)
    assert [(f["device"], f["why"]) for f in facts(tmp_path) if f.get("device") == "console"] == [
        ("console", "disabled")
    ]
    async with living(from_data(data, "test"), manager):
        pass
    assert len([fact for fact in facts(tmp_path) if fact.get("device") == "console"]) == 1  # nothing new
    del data["devices"]["console"]
    async with living(from_data(data, "test"), manager) as app:
        await until(lambda: "console" not in app._sequencer.state.lost)  # it is not of this table any more


async def test_a_device_task_that_fails_is_restarted_and_its_device_lost_meanwhile(
    tmp_path: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PAUSES_S", (0.01,))
    real, falls = SerialDevice.run, 2

    async def falling(self: SerialDevice) -> Any:
        nonlocal falls
        if falls:
            falls -= 1
            raise RuntimeError("a bug in a driver")
        return await real(self)

    monkeypatch.setattr(SerialDevice, "run", falling)
    async with living(config(tmp_path), manager) as app:
        await until(lambda: app._supervisor.reports["serial:console"].restarts == 2)
        assert app._supervisor.reports["serial:console"].last_error == "RuntimeError: a bug in a driver"
    assert ("console", "task_failed") in [(f.get("device"), f.get("why")) for f in facts(tmp_path)]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("controller.journal.Journal.commit", "task journal has failed: JournalBrokenError: nobody knows"),
        ("rules.table.Table.step", "task sequencer has failed: JournalBrokenError: nobody knows"),
    ],
)
async def test_case_94_a_critical_task_that_fails_ends_the_daemon_loudly(
    what: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise JournalBrokenError("nobody knows")

    monkeypatch.setattr(what, broken)
    with pytest.raises(ExceptionGroup) as caught:
        await App(config(tmp_path), Clock(), Notifier({})).run()
    leaves = caught.value.subgroup(TaskFailedError)
    assert leaves is not None
    assert says in str(leaves.exceptions[0]) or says in str(getattr(leaves.exceptions[0], "exceptions", [""])[0])
    monkeypatch.undo()
    App(config(tmp_path), Clock(), Notifier({}))._journal.close()  # nothing is left locked


async def test_case_94_the_watchdog_says_who_makes_no_progress(
    tmp_path: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 94: fed only while every critical task and the disk move."""
    async with living(config(tmp_path), manager, watchdog_us=300_000) as app:
        loop = asyncio.get_running_loop()
        said = b""
        async with asyncio.timeout(20):
            while b"WATCHDOG=1" not in said:
                said = await loop.sock_recv(manager, 4096)
        assert app._watchdog.late(10**12) == ""
        monkeypatch.setattr(app._watchdog, "_commit_since_ns", lambda: 1)
        monkeypatch.setattr(app._supervisor, "silent", lambda _: ["sequencer 9.0 s"])
        while True:  # what is under way
            try:
                manager.recv(4096)
            except BlockingIOError:
                break
        async with asyncio.timeout(20):
            while not said.startswith(b"STATUS=no progress: sequencer 9.0 s, commit"):
                said = await loop.sock_recv(manager, 4096)
                assert said != b"WATCHDOG=1"
        monkeypatch.undo()


async def test_a_command_while_too_much_waits_is_answered_busy(
    tmp_path: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.orders.DISK_S", 0.01)
    people = [{"user": "root", "role": "comite"}]
    async with living(config(tmp_path, local=people), manager) as app:
        from controller.commands import Authorised

        order = app._commands._execute
        asked = Authorised(id="1", name="interrupt", by="x", role="comite", args={}, via="local:x")
        monkeypatch.setattr(app._sequencer, "full", lambda: True)
        assert (await order(asked)).code == "busy"
        monkeypatch.undo()
        monkeypatch.setattr("controller.orders.DISK_S", 0.01)

        async def never(fact: Commanded) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(app._sequencer, "ask", never)
        reply = await order(asked)
        assert (reply.code, reply.ok) == ("busy", False)
        assert "pas encore écrite" in reply.text
        monkeypatch.undo()


async def test_the_law_refuses_a_command_with_its_requirement(tmp_path: Path, manager: socket.socket) -> None:
    from controller.commands import Authorised

    async with living(config(tmp_path), manager) as app:

        async def order(name: str, **args: object) -> tuple[str, object, object]:
            asked = Authorised(id="1", name=name, by="x", role="comite", args=args, via="local:x")
            told = to_builtins(await app._commands._execute(asked))
            return told["code"], told.get("requirement"), told["text"]

        sentence = "Attestation manquante : verification (comite + croupier)"
        assert await order("open") == ("rejected", "R-RC-06", sentence)
        assert await order("close") == ("rejected", None, "La table est déjà fermée")


async def test_a_flight_record_that_cannot_be_written_is_refused_with_its_reason(
    tmp_path: Path, manager: socket.socket
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "flight").write_text("in the way")
    async with living(config(tmp_path), manager) as app:
        with pytest.raises(OSError, match="flight"):
            await app._recorder.record(app._sequencer.wake)
        (tmp_path / "state" / "flight").unlink()
        path = await app._recorder.record(app._sequencer.wake)
        assert path.read_text().startswith('{"v":1,"game":"roue_de_la_chance","config":')
        for _ in range(6):
            app._recorder.flight._sink(_recording(app))
        assert app._recorder.dropped == 2


def _recording(app: App) -> Any:
    taken: list[Any] = []
    flight = app._recorder.flight
    flight._sink, sink = taken.append, flight._sink
    flight.want("x")
    flight.quiet(1, app._sequencer.state, dict)
    flight._sink = sink
    return taken[0]


# --- the program -----------------------------------------------------------------------------------------------------


def called(folder: Path, data: dict[str, Any], word: str = "run") -> tuple[int, str]:
    """Exit code and error output of a program that refuses its configuration or its surroundings."""
    (folder / "t.toml").write_text(toml(data))
    words = [sys.executable, "-m", "controller", word, "--config", str(folder / "t.toml")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def started(folder: Path, data: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and log of a daemon that cannot start."""
    code, said = called(folder, data)
    return code, [json.loads(line) for line in said.splitlines()]


@pytest.mark.parametrize("word", ["check", "run"])
def test_what_only_the_machine_can_tell_is_refused_like_the_rest_of_the_file(tmp_path: Path, word: str) -> None:
    data = table(tmp_path, local=[{"user": "nobody-of-this-name", "role": "chef"}, {"group": "none", "role": "chef"}])
    data["state"]["signing_key_file"] = str(tmp_path / "no.key")
    data["mqtt"] |= {"password_file": str(tmp_path), "ca_file": str(tmp_path / "t.toml"), "username": "t"}
    code, said = called(tmp_path, data, word)
    assert code == 2
    where = tmp_path / "t.toml"
    beginnings = (
        f"state.signing_key_file = '{tmp_path}/no.key': cannot be read: No such file or directory; a key of",
        f"mqtt.password_file = '{tmp_path}': cannot be read: Is a directory; a text file",
        f"mqtt.ca_file = '{where}': ",
        "local[1].user = 'nobody-of-this-name': getpwnam(): name not found: 'nobody-of-this-name'; a user of this",
        "local[2].group = 'none': getgrnam(): name not found: 'none'; a group of this machine",
    )
    for line, beginning in zip(said.splitlines(), beginnings, strict=True):
        assert line.startswith(f"{where}: {beginning}")


def test_a_signing_key_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    data = table(tmp_path)
    key = tmp_path / "table.key"
    data["state"]["signing_key_file"] = str(key)
    key.write_text("no key")
    key.chmod(0o644)
    assert "chmod 600" in called(tmp_path, data, "check")[1]
    key.chmod(0o600)
    code, said = called(tmp_path, data, "check")
    assert (code, "is not the base64 of 32 bytes" in said) == (2, True)


def test_a_start_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "signing.key").write_text("")
    (tmp_path / "state" / "signing.key").chmod(0o644)
    code, said = started(tmp_path, table(tmp_path))
    assert code == 1
    assert "chmod 600" in said[-1]["text"]
    assert not any("trace" in line for line in said)
    nowhere = {"folder": str(tmp_path / "t.toml" / "state"), "socket": str(tmp_path / "cmd.sock")}
    code, said = started(tmp_path, table(tmp_path, state=nowhere))
    assert code == 1
    assert "Not a directory; set [state] folder to a place that the daemon may write" in said[-1]["text"]
    assert not any("trace" in line for line in said)
