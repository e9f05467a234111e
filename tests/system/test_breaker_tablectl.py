"""tablectl when the table is gone and only the broker remembers it."""

from __future__ import annotations

import base64
import json

import pytest

from hil import tables
from hil.daemon import run_tool
from hil.rig import Rig

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


async def test_a_table_that_is_gone_is_not_reachable_although_the_broker_remembers_it() -> None:
    rig = Rig(tables.table("roue-de-la-chance"))
    async with rig:
        key = rig.folder / "technicien-1.key"
        key.write_bytes(base64.b64encode(rig.people["technicien"].key.private_bytes_raw()))
        key.chmod(0o600)
        broker = ["--broker", rig.url, "--base", rig.base]
        await rig.consumer.wait_for("health", lambda body: True, 20)
        assert (await run_tool([*broker, "health"]))[0] == 0
        assert (await run_tool([*broker, "cmd", "state", "--key", str(key), "--operator", "x"]))[0] == 0
        await rig.daemon.stop()
        for word in ("state", "health"):
            code, out, err = await run_tool([*broker, word])
            assert (code, json.loads(out)["table"]) == (3, "demo/roue-1")
            assert f"{rig.base} is offline (stopped): this is what it said last" in err
        code, out, err = await run_tool([*broker, "cmd", "state", "--key", str(key), "--operator", "x"])
        assert (code, out) == (3, "")
        assert f"{rig.base} is offline (stopped)" in err
