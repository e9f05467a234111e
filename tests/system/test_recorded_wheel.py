"""A real wheel's recording through a cable, at its own pace, into the unmodified daemon.

Here a launch and how it ended, in 20 s; `./dev bench recording` plays two minutes of it.
"""

from __future__ import annotations

import time

import pytest

from hil.rig import Rig
from tests.recording import RecordedWheel
from tests.system.brisk import brisk_table
from tests.system.table import proven, results, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]
LAUNCH, GAVE_UP = (126.5, 143.0), (172.0, 173.0)


async def test_a_recorded_launch_ends_by_its_flag_without_a_number() -> None:
    rig, wheel = Rig(brisk_table(draw_max_ms=20_000)), RecordedWheel(LAUNCH, GAVE_UP)
    rig.peers["wheel_sensor"] = wheel

    def alarms() -> dict[str, bool]:
        return {
            alarm["name"]: alarm["active"]
            for heard in rig.consumer.heard
            if heard.suffix == "state"
            for alarm in heard.body["alarms"]
        }

    async with rig:
        await rig.open({"attest": {}})
        wheel.play(time.monotonic_ns())
        await until(rig, lambda: bool(results(rig)), "the end of the coup")
        (result,) = results(rig)
        assert (result["status"], result["outcome"], result["sources"]) == ("held", None, {})
        assert "Bille perdue après « Rien ne va plus » (capteur bloqué)" in [r["text"] for r in result["reasons"]]
        assert {"launched", "drop_due", "closed"} <= set(result["times"])
        await until(rig, lambda: "device:wheel_sensor:fault" in alarms(), "what must be mended")
        await proven(rig)
