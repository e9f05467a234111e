"""A state folder that is older than what the broker has seen: a new epoch, never a number given out twice (case 48)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from controller.results import first_fault
from hil.daemon import run_tool
from hil.rig import Rig
from tests.system.brisk import BriskWheel, brisk_table, number
from tests.system.table import results, until, until_phase

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


async def test_case_48_a_restored_copy_goes_on_under_a_new_epoch() -> None:
    rig, wheel = Rig(brisk_table()), BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        state, copy = Path(rig.table["state"]["folder"]), rig.folder / "copy"
        await rig.open({"attest": {}})
        await until_phase(rig, "mises_ouvertes", 1)
        wheel.play(number(n) for n in range(2))
        await until(rig, lambda: len(results(rig)) == 2, "two coups")
        await rig.daemon.stop()
        shutil.copytree(state, copy)
        await rig.daemon.start()
        wheel.play(number(n) for n in range(2, 4))  # two, so that the direction still alternates for the copy
        await until(rig, lambda: len(results(rig)) == 4, "two coups that the copy does not know")
        await rig.daemon.kill()
        shutil.rmtree(state)
        copy.rename(state)
        await rig.daemon.start()
        first = results(rig)[0]["epoch"]
        await rig.consumer.wait_for("status", lambda b: b["state"] == "online" and b["epoch"] != first, 20)
        wheel.play(number(n) for n in range(4, 6))
        await until(rig, lambda: len(results(rig)) == 6, "two coups of the new epoch")
        told = results(rig)
        assert [body["result_no"] for body in told] == [1, 2, 3, 4, 1, 2]
        assert len({body["id"] for body in told}) == 6
        second = told[-1]["epoch"]
        assert [body["epoch"] for body in told] == [first] * 4 + [second] * 2
        states = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
        assert [(a["name"], a["code"]) for a in states[-1]["alarms"]] == [("journal:epoch", "journal_ancien")]
        assert states[-1]["epoch"] == second
        public = state / "signing.pub"
        code, out, err = await run_tool(["--config", str(rig.config), "results", "--verify", str(public)])
        assert (code, err) == (0, "")
        assert [json.loads(line)["epoch"] for line in out.splitlines()] == [first, first, second, second]
        assert (await run_tool(["--config", str(rig.config), "journal", "verify", "--key", str(public)]))[0] == 0
        heard_results = [heard.payload for heard in rig.consumer.heard if heard.suffix == "result"]
        assert first_fault(heard_results, await rig.public_key()) == ""


async def test_case_48_a_deleted_journal_begins_a_new_epoch_with_an_empty_table_and_an_alarm() -> None:
    rig, wheel = Rig(brisk_table()), BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        state = Path(rig.table["state"]["folder"])
        await rig.open({"attest": {}})
        await until_phase(rig, "mises_ouvertes", 1)
        wheel.play([number(0)])
        await until(rig, lambda: len(results(rig)) == 1, "a coup")
        first = results(rig)[0]["epoch"]
        await rig.daemon.kill()
        for name in ("", "-wal", "-shm"):
            (state / f"journal.sqlite3{name}").unlink(missing_ok=True)
        before = len(rig.consumer.heard)
        await rig.daemon.start()
        body = await rig.consumer.wait_for("state", lambda b: b["epoch"] != first and b["alarms"], 20, start=before)
        assert (body["phase"], body["coup"]) == ("ferme", 0)
        assert [alarm["code"] for alarm in body["alarms"]] == ["journal_nouveau"]
