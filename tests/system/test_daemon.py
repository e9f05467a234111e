"""The unmodified daemon as a process, and tablectl beside it as a technician and an auditor use them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import signal
import socket
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller import board
from controller.journal_file import NAME
from controller.tablectl.local import Local
from drivers.slingshot2.codes import SELFTEST
from hil import tables
from hil.daemon import Daemon, program, run_tool
from hil.devices.slingshot2 import SlingShot2Wheel
from hil.floor import command
from hil.rig import Rig
from tests.system.brisk import BALL, ROTOR, SLOW, BriskWheel, brisk_table, number
from tests.system.table import proven, results, until, until_phase

SHM = Path("/dev/shm")
pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


@contextlib.asynccontextmanager
async def playing(coups: int = 0, **house: Any) -> AsyncIterator[tuple[Rig, BriskWheel]]:
    """An open table with a wheel in a hurry, after so many valid coups."""
    rig, wheel = Rig(brisk_table(**house)), BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        await rig.open({"attest": {}})
        await until_phase(rig, "mises_ouvertes", 1)
        wheel.play(number(n) for n in range(coups))
        await until(rig, lambda: len(results(rig)) == coups, f"{coups} coups")
        yield rig, wheel


async def tool(rig: Rig, *words: str, code: int = 0) -> str:
    """What `tablectl --config ...` says on stdout; its exit code must be `code`."""
    got, out, err = await run_tool(["--config", str(rig.config), *words])
    assert got == code, f"tablectl {' '.join(words)} ended with {got}: {out}{err}"
    return out if code == 0 else out + err


async def order(rig: Rig, role: str, *words: str, code: int = 0) -> dict[str, Any]:
    """A command signed by the person of this role, through tablectl; the data of the reply."""
    person = rig.people[role]
    file = rig.folder / f"{person.name}.key"
    if not file.exists():
        file.write_bytes(base64.b64encode(person.key.private_bytes_raw()))
        file.chmod(0o600)
    out = await tool(rig, *words, "--key", str(file), "--operator", f"Mme {role}", code=code)
    start = out.find("{")
    data: dict[str, Any] = json.loads(out[start:]) if code == 0 and start >= 0 else {}
    data.setdefault("text", out)
    return data


def rows(rig: Rig, kind: str) -> list[dict[str, Any]]:
    """Bodies of the journal's rows of a kind."""
    with contextlib.closing(sqlite3.connect(Path(rig.table["state"]["folder"]) / NAME)) as connection:
        found = connection.execute("SELECT body FROM rows WHERE kind = ? ORDER BY seq", (kind,)).fetchall()
    return [json.loads(body) for (body,) in found]


async def test_it_starts_says_so_and_stops_in_order() -> None:
    async with playing(coups=2) as (rig, _):
        assert await rig.daemon.stop() == 0
        said = rig.daemon.log.read_text()
        assert "Traceback" not in said
        assert json.loads(said.splitlines()[-1])["text"] == "stopped"
        assert rows(rig, "closed") == [{"reason": "stopped"}]
        await rig.consumer.wait_for("status", lambda body: body["reason"] == "stopped", 10)
        assert "cmd.sock" not in [path.name for path in rig.folder.iterdir()]
        assert rows(rig, "start")[0]["config"].startswith("sha256:")
        assert rows(rig, "start")[0]["resolved"]["table"] == "rf-1"
        await rig.daemon.start()
        assert "resolved" not in rows(rig, "start")[1]  # the same configuration
        await proven(rig)


@pytest.mark.parametrize("trouble", ["no broker", "frozen broker", "busy wheel"])
async def test_a_stop_never_takes_long(trouble: str) -> None:
    """Field case 91: within 5 s, journal complete, whatever hangs."""
    async with playing(coups=1) as (rig, wheel):
        assert rig.broker.process is not None
        if trouble == "no broker":
            await rig.broker.stop()
        elif trouble == "frozen broker":
            rig.broker.process.send_signal(signal.SIGSTOP)
        wheel.play(number(n) for n in range(200))
        process = rig.daemon.process
        assert process is not None
        process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0  # 75 if it had been broken off after 4.5 s
        if trouble == "frozen broker":
            rig.broker.process.send_signal(signal.SIGCONT)
        assert rows(rig, "closed") == [{"reason": "stopped"}]
        assert (await run_tool(["--config", str(rig.config), "journal", "verify"]))[0] == 0


async def test_the_watchdog_is_fed_by_progress_and_the_status_says_where_we_are() -> None:
    rig = Rig(brisk_table())
    async with rig:
        await rig.daemon.stop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            address = rig.folder / "watch.sock"
            manager.bind(str(address))
            manager.settimeout(30)
            process = await asyncio.create_subprocess_exec(
                *program("table-controller", "controller"), "run", "--config", str(rig.config),
                env={"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "6000000", "PATH": "/usr/bin"},
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            said: list[str] = []
            while said.count("WATCHDOG=1") < 3 or "READY=1" not in said:
                said.append(await asyncio.to_thread(lambda: manager.recv(4096).decode()))
            assert any(word.startswith("STATUS=ferme, coup 0") for word in said)
            process.terminate()
            assert await process.wait() == 0
            while "STOPPING=1" not in said:
                said.append(await asyncio.to_thread(lambda: manager.recv(4096).decode()))


async def test_one_daemon_per_state_folder() -> None:
    async with playing() as (rig, _):
        second = Daemon(rig.config, rig.folder)
        second.log = rig.folder / "second.log"
        with pytest.raises(Exception, match="ended with 1 before it was ready"):
            await second.start()
        assert "is in use by another table-controller" in second.log.read_text()
        assert "Traceback" not in second.log.read_text()


async def test_a_wrong_configuration_ends_with_2_and_every_problem(tmp_path: Path) -> None:
    table = tables.table("roue-de-la-chance")
    table["house"]["tableau"] = 2
    table["devices"]["wheel"]["lines"]["a"] = 27
    file = tmp_path / "table.toml"
    file.write_text(tables.toml(table))
    for word in ("check", "run"):
        process = await asyncio.create_subprocess_exec(
            *program("table-controller", "controller"), word, "--config", str(file), stderr=asyncio.subprocess.PIPE
        )
        _, err = await process.communicate()
        assert process.returncode == 2
        assert f"{file}: house.tableau = 2: unknown key (did you mean tableaux?)".encode() in err
        said = f"{file}: devices.wheel.lines.b = 27: line 27 of chip 'header' is that of devices.wheel.lines.a already"
        assert said.encode() in err


async def test_state_health_and_results_for_people() -> None:
    async with playing(coups=3) as (rig, _):
        assert json.loads(await tool(rig, "state"))["phase"] == "reglement"
        health = json.loads(await tool(rig, "health"))
        assert health["devices"]["wheel_sensor"]["state"] == "ok"
        assert health["tasks"]["sequencer"]["state"] == "running"
        assert health["last_result"] == results(rig)[-1]["id"]
        public = Path(rig.table["state"]["folder"]) / "signing.pub"
        kept = (await tool(rig, "results", "--verify", str(public))).splitlines()
        assert [json.loads(line)["id"] for line in kept] == [result["id"] for result in results(rig)]
        after = results(rig)[0]["seq"]
        assert len((await tool(rig, "results", "--after", str(after))).splitlines()) == 2
        code, out, err = await run_tool(
            ["--broker", rig.url, "--base", rig.base, "results", "--verify", str(public), "--seconds", "1"]
        )
        assert (code, err) == (0, "")
        assert json.loads(out)["id"] == results(rig)[-1]["id"]
        assert (await run_tool(["--broker", rig.url, "--base", rig.base, "state"]))[0] == 0
        code, _, err = await run_tool(["--broker", rig.url, "--base", "casino/demo/nobody", "state"])
        assert code == 3
        assert "nothing stands on state" in err


async def test_the_journal_is_verified_exported_and_shown(tmp_path: Path) -> None:
    async with playing(coups=2) as (rig, _):
        public = Path(rig.table["state"]["folder"]) / "signing.pub"
        assert "ok" in await tool(rig, "journal", "verify", "--key", str(public))
        copy = tmp_path / "export.jsonl"
        copy.write_text(await tool(rig, "journal", "export"))
        assert (await run_tool(["journal", "verify", str(copy), "--key", str(public)]))[0] == 0
        copy.write_text(copy.read_text().replace('"kind": "start"', '"kind": "stert"', 1))
        code, out, _ = await run_tool(["journal", "verify", str(copy), "--key", str(public)])
        assert (code, out.split()[1]) == (1, "reason=altered")
        assert out.startswith("row=")
        shown = [json.loads(line) for line in (await tool(rig, "journal", "show", "--after", "2")).splitlines()]
        assert [row["seq"] for row in shown] == list(range(3, 3 + len(shown)))
        assert (await run_tool(["journal", "verify", str(tmp_path / "none")]))[0] == 2


async def test_a_flight_record_replays_to_the_decisions_in_the_journal() -> None:
    async with playing(coups=2) as (rig, wheel):
        for what in (ROTOR, BALL, SLOW):
            wheel.step(what)
        await until_phase(rig, "jeux_faits", 3)
        await order(rig, "chef", "cmd", "void", "why=essai")
        await until(rig, lambda: len(results(rig)) == 3, "the void coup")
        assert results(rig)[-1]["status"] == "void"
        folder = Path(rig.table["state"]["folder"]) / "flight"
        await until(rig, lambda: bool(list(folder.glob("*-void.jsonl"))), "the record")
        asked = Path((await order(rig, "technicien", "cmd", "record"))["file"])
        for record in (next(folder.glob("*-void.jsonl")), asked):
            code, out, err = await run_tool(["replay", str(record)])
            assert (code, err) == (0, "")
            head = json.loads(record.read_text().partition("\n")[0])
            live = [
                decision
                for row in map(json.loads, (await tool(rig, "journal", "show")).splitlines())
                if row["kind"] == "step" and head["seq"] < row["seq"] <= head["until_seq"]
                for decision in row["body"]["decisions"]
            ]
            again = [{key: v for key, v in json.loads(line).items() if key != "after"} for line in out.splitlines()]
            assert again == live
            assert "CoupEnded" in {decision["out"] for decision in again}


async def test_results_of_a_wheel_are_counted_over_a_crash_until_a_technician_begins_anew() -> None:
    async with playing(coups=5) as (rig, wheel):

        async def counted() -> dict[str, int]:
            body = json.loads(await tool(rig, "health"))["statistics"]
            assert body["level"] == "ok"
            return {key: series["spins"] for key, series in body["series"].items()}

        assert await counted() == {"ccw/cw": 2, "cw/ccw": 2}  # the fifth may still be revised
        await rig.daemon.kill()
        await rig.daemon.start()
        await until_phase(rig, "reglement", 5)
        assert await counted() == {"ccw/cw": 2, "cw/ccw": 2}
        wheel.play([number(5)])
        await until(rig, lambda: len(results(rig)) == 6, "a coup after the crash")
        assert sum((await counted()).values()) == 5
        await order(rig, "technicien", "cmd", "reset_statistics")
        assert await counted() == {}
        assert rows(rig, "statistics") == [
            {"reset": "Mme technicien", "wheel": "", "spins": {"ccw/cw": 3, "cw/ccw": 2}}
        ]
        await proven(rig)


async def test_a_technician_asks_tests_and_sets_the_wheel() -> None:
    rig, wheel = Rig(tables.table("roulette-francaise")), SlingShot2Wheel(start_ns=time.monotonic_ns())
    wheel.selftest, wheel.selftest_ns = 12, 0
    rig.peers["wheel_sensor"] = wheel

    def alarms() -> list[tuple[str, bool, str]]:
        told = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
        return [(a["name"], a["active"], a["text"]) for a in told[-1]["alarms"]]

    async with rig:
        said = (await order(rig, "technicien", "diag", "wheel_sensor", "settings"))["text"]
        assert said.startswith("*O 6 1 60 1159\n")
        assert "*T h 60" in await tool(rig, "diag", "wheel_sensor", "get", "h", "--operator", "root")
        assert "*T OK" in await tool(rig, "calibrate", "wheel_sensor", "set", "h 161", "--operator", "root")
        assert "*o 1158" in await tool(rig, "calibrate", "wheel_sensor", "mode", "1158", "--operator", "root")
        refused = await tool(rig, "diag", "wheel_sensor", "power_off", "--operator", "root", code=1)
        assert "power_off n'est pas une question à wheel_sensor ; il y a : clock, get" in refused
        advice = SELFTEST[12][1]
        assert advice in await tool(rig, "selftest", "wheel_sensor", "--operator", "root", code=1)
        stuck = ("device:wheel_sensor:fault", True, f"wheel_sensor : {advice}")
        await until(rig, lambda: stuck in alarms(), "the alarm of the self-test")
        wheel.selftest = 0
        assert "*F 0" in await tool(rig, "selftest", "wheel_sensor", "--operator", "root")
        await until(rig, lambda: (stuck[0], False, stuck[2]) in alarms(), "its end")
        await order(rig, "chef", "cmd", "ack", f"name={stuck[0]}")
        await until(rig, lambda: stuck[0] not in [name for name, *_ in alarms()], "seen and gone")
        wheel.plan(0, state=2)
        await until(rig, lambda: wheel.wheel.state == 2, "a wheel in play")
        key = str(rig.folder / f"{rig.people['technicien'].name}.key")
        remote = ["--broker", rig.url, "--base", rig.base, "selftest", "wheel_sensor", "--key", key, "--operator", "x"]
        code, out, busy = await run_tool(remote)
        assert (code, out) == (1, "")
        assert "*F BUSY : occupé" in busy
        await proven(rig)


async def test_commands_of_the_controller_itself() -> None:
    async with playing(coups=2) as (rig, _):
        assert (await order(rig, "chef", "cmd", "state"))["phase"] == "reglement"
        assert (await order(rig, "croupier", "cmd", "health"))["table"] == "demo/rf-1"
        again = await order(rig, "chef", "cmd", "replay", f"after_seq={results(rig)[0]['seq']}")
        assert (again["results"], again["sent"], again["more"]) == (1, 1, False)
        assert again["first"][0]["id"] == results(rig)[-1]["id"]
        heard = [heard.payload for heard in rig.consumer.heard if heard.suffix == "result"]
        assert heard.count(heard[-1]) == 2  # byte-identical
        assert set(await order(rig, "technicien", "calibrate")) - {"text"} == {"wheel"}
        assert (await order(rig, "technicien", "calibrate", "wheel"))["wheel"]["learned"]["spins"] == 0
        assert "calibrate wheel turned" in (await order(rig, "technicien", "calibrate", "wheel"))["text"]
        assert "Tourner" in (await order(rig, "technicien", "calibrate", "wheel", "turn"))["text"]
        forget = await tool(rig, "calibrate", "wheel", "forget", "--operator", "root", code=1)
        assert "fermer la table ou passer en maintenance" in forget
        in_play = await tool(rig, "selftest", "wheel_sensor", "--operator", "root", code=1)  # the kernel vouches
        assert "fermer la table ou passer en maintenance" in in_play
        said = (await order(rig, "technicien", "cmd", "diag", "role=wheel_sensor", "seconds=1"))["now"]["hex"]
        assert b"*X;" in b"".join(map(bytes.fromhex, said))
        assert (await order(rig, "technicien", "cmd", "reopen", "role=wheel_sensor"))["roles"] == ["wheel_sensor"]
        assert "wheel" in (await order(rig, "technicien", "cmd", "reopen", "role=wheel"))["roles"]
        assert (await order(rig, "technicien", "cmd", "log_level", "level=debug"))["level"] == "debug"
        assert (await order(rig, "technicien", "cmd", "reset_counters", "role=console"))["roles"] == ["console"]
        assert json.loads(await tool(rig, "health"))["devices"]["console"]["counters"]["frames"] < 5
        refused: list[tuple[str, str, dict[str, Any], str]] = [
            ("chef", "diag", {"role": "wheel"}, "unauthorised"),
            ("technicien", "reopen", {"role": "rail"}, "Aucun appareil rail ; il y a : wheel, wheel_sensor"),
            ("technicien", "selftest", {"role": "wheel"}, "Appareil wheel : pas d'ordre selftest ; il y a : cell, "),
            (
                "technicien",
                "calibrate",
                {"role": "console", "order": "selftest"},
                "pas d'ordre selftest ; il y a : show, who",
            ),
            ("technicien", "calibrate", {"role": "console"}, "rejected"),
            ("technicien", "log_level", {"level": "loud"}, "malformed Argument level : attendu debug, error, info"),
            ("technicien", "maintenance", {"on": 1}, "attendu true, false"),
            ("technicien", "record", {"x": 1}, "Argument x"),
            ("technicien", "diag", {"role": "wheel", "seconds": 0}, "attendu 1..300"),
            ("chef", "ack", {"name": "device:rail"}, "Aucune alarme device:rail ; il y a : "),
            ("chef", "ack", {}, "Argument name"),
            ("chef", "last_coup", {"now": True}, "Argument now"),
            ("comite", "dance", {}, "unknown"),
        ]

        def ask() -> list[str]:
            with Local(Path(rig.table["state"]["socket"])) as link:
                people = rig.people
                asked = [people[r].envelope(command("demo/rf-1", n, people[r].name, args)) for r, n, args, _ in refused]
                return [f"{reply['code']} {reply['text']}" for reply in map(link.command, asked)]

        answers = await asyncio.to_thread(ask)
        assert [says in answer for answer, (*_, says) in zip(answers, refused, strict=True)] == [True] * len(refused)
        code, out, err = await run_tool(["--config", str(rig.config), "cmd", "dance", "--operator", "x"])
        assert (code, out) == (1, "")
        assert err.startswith("dance: unknown: ")
        assert "Announce" in (await order(rig, "chef", "cmd", "last_coup"))["decisions"]
        commands = rows(rig, "command")
        assert {"rejected", "unauthorised", "unknown", "ok"} <= {row["code"] for row in commands}
        assert all(row["by"] for row in commands)


async def test_live_samples_and_the_plain_watch() -> None:
    async with playing(coups=1) as (rig, _):
        watching = asyncio.gather(tool(rig, "watch", "--seconds", "12"))
        while not watching.done():  # again, until the watch has surely begun
            samples = await tool(rig, "diag", "wheel", "--seconds", "2", "--operator", "root")
        (watched,) = await watching
        assert all("mrad_s" in json.loads(line) for line in samples.splitlines())
        assert json.loads(samples.splitlines()[-1])["edges_s"] >= 0
        assert len(samples.splitlines()) >= 2
        assert "state    seance 1, partie 1, coup 1, reglement" in watched
        assert "health   all ok" in watched
        assert "Commande diag de root" in watched


async def test_a_device_that_goes_and_comes_back_is_an_alarm_until_somebody_has_seen_it() -> None:
    async with playing(coups=1) as (rig, _):
        rig.ttys["console"].unplug()
        await rig.consumer.wait_for("event", lambda b: b["kind"] == "alarm" and b["data"]["active"], 20)
        await until_alarm(rig, "device:console", active=True, acked=False)
        assert "not ok: console" in await tool(rig, "health", code=1)
        await order(rig, "chef", "cmd", "ack", "name=device:console")
        await until_alarm(rig, "device:console", active=True, acked=True)
        rig.ttys["console"].plug()
        await until(rig, lambda: alarms(rig) == [], "the alarm leaves")
        assert [row["acked"] for row in rows(rig, "alarm")][-1] is True


def alarms(rig: Rig) -> list[dict[str, Any]]:
    """The alarms of the newest state that the floor knows."""
    states = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
    listed: list[dict[str, Any]] = states[-1]["alarms"]
    return listed


def lamp(rig: Rig, name: str) -> int:
    """How a lamp was switched last."""
    return [level for _, switched, level in rig.lamps if switched == name][-1]


async def until_alarm(rig: Rig, name: str, **like: bool) -> None:
    await until(
        rig,
        lambda: any(alarm["name"] == name and all(alarm[k] == v for k, v in like.items()) for alarm in alarms(rig)),
        f"alarm {name} {like}",
    )


async def test_a_device_lost_before_the_restart_and_there_after_it_is_back() -> None:
    async with playing(coups=1) as (rig, _):
        rig.ttys["console"].unplug()
        await until_alarm(rig, "device:console", active=True)
        await rig.daemon.kill()
        rig.ttys["console"].plug()
        await rig.daemon.start()
        await until_alarm(rig, "device:console", active=False)


async def test_maintenance_is_marked_everywhere_and_leaves_no_trace_in_the_game() -> None:
    async with playing(coups=2) as (rig, wheel):
        before = json.loads(await tool(rig, "state"))
        await order(rig, "technicien", "cmd", "maintenance", "on=true")
        await rig.consumer.wait_for("status", lambda body: body["reason"] == "maintenance", 10)
        assert json.loads(await tool(rig, "state"))["maintenance"]
        assert json.loads(await tool(rig, "health"))["maintenance"]
        assert "Rien à changer" in (await order(rig, "technicien", "cmd", "maintenance", "on=true", code=1))["text"]
        wheel.play([9])
        await until(rig, lambda: len(results(rig)) == 3, "a coup that does not count")
        assert results(rig)[-1]["maintenance"] is True
        wheel._ccw = not wheel._ccw
        wheel.play([10])
        await until_alarm(rig, "litige", active=True)
        await until(rig, lambda: lamp(rig, "litige") == 1, "the lamp")
        heard = len(rig.consumer.heard)
        await rig.restart_daemon()  # maintenance outlives a power cut, and so does the state to go back to
        await rig.consumer.wait_for("status", lambda body: body["reason"] == "maintenance", 10, start=heard)
        await order(rig, "technicien", "cmd", "maintenance", "on=false")
        after = json.loads(await tool(rig, "state"))
        lasting = ("seance", "partie", "coup", "phase", "limits", "last_direction", "attestations")
        assert {key: after[key] for key in lasting} == {key: before[key] for key in lasting}
        assert not after["maintenance"]
        await until_alarm(rig, "litige", active=False)  # it held a coup that never was
        await until(rig, lambda: lamp(rig, "litige") == 0, "the lamp's end")
        wheel.play([11])
        await until(rig, lambda: len(results(rig)) == 5, "a coup that counts")
        assert "maintenance" not in results(rig)[-1]
        assert (results(rig)[-1]["coup"], results(rig)[-1]["result_no"]) == (before["coup"] + 1, 5)
        await proven(rig)


async def test_with_a_dead_broker_the_local_socket_still_runs_the_table() -> None:
    async with playing(coups=1) as (rig, wheel):
        await rig.broker.stop()
        assert (await order(rig, "chef", "cmd", "health"))["mqtt"]["connected"] is False
        await order(rig, "comite", "cmd", "interrupt")
        assert json.loads(await tool(rig, "state"))["interrupted"]
        await order(rig, "comite", "cmd", "resume")
        wheel.play(number(n) for n in range(500))
        assert "result   no" in await tool(rig, "watch", "--seconds", "3")
        await rig.daemon.stop()
        out = await tool(rig, "state", code=3)
        assert "is the daemon running" in out
        assert "the broker" in out


async def test_a_volatile_state_folder_is_told() -> None:
    """Field case 97: a journal on a RAM disk is an alarm, not a surprise after the reboot."""
    if board.disk(SHM)["durable"] is not False:
        pytest.skip(f"needs a RAM disk at {SHM}")
    rig = Rig(brisk_table())
    rig.table["state"]["folder"] = str(SHM / rig.folder.name)
    try:
        async with rig:
            await until(rig, lambda: any(h.suffix == "state" for h in rig.consumer.heard), "the state")
            await until_alarm(rig, "state:volatile", active=True)
            assert json.loads(await tool(rig, "health"))["disk"]["durable"] is False
    finally:
        for file in (SHM / rig.folder.name).glob("*"):
            file.unlink()
        (SHM / rig.folder.name).rmdir()
