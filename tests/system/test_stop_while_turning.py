"""A stop while the wheel turns fast: no edge may come into a part that is gone already (field cases 61, 110)."""

from __future__ import annotations

import asyncio

import pytest

from hil import tables
from hil.rig import Rig
from tests.bench.daemon import Wheel

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


async def test_case_110_a_stop_in_the_middle_of_5000_edges_a_second_is_clean() -> None:
    rig = Rig(tables.table("roue-de-la-chance"))
    async with rig, asyncio.TaskGroup() as group:
        await rig.open({"attest": {"verification": ["comite", "croupier"]}})
        turning = group.create_task(Wheel(rig).turn(10_000_000, 1, 5000))
        await rig.consumer.wait_for("state", lambda body: body["phase"] == "lance", 30)
        assert await rig.daemon.stop() == 0
        assert not turning.done()
        turning.cancel()
        said = rig.daemon.log.read_text()
        assert "Traceback" not in said
        assert '"level": "error"' not in said
        assert "stopped" in said.splitlines()[-1]
