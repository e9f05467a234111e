"""Two minutes of a real wheel's recording, in real time through a cable into the unmodified daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from hil.rig import Rig
from tests.bench.figures import Figure, tell
from tests.recording import COUP, RecordedWheel
from tests.system.brisk import brisk_table


def measure() -> Sequence[Figure]:
    """One launch that ends by its flag, silences that come and go, one damaged line, no number."""
    tell("a real wheel's two minutes, at their own pace")
    return asyncio.run(_measured())


async def _measured() -> Sequence[Figure]:
    rig, wheel = Rig(brisk_table(draw_max_ms=47_000)), RecordedWheel(COUP)
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        await rig.open({"attest": {}})
        began = time.monotonic()
        wheel.play(time.monotonic_ns())
        while not wheel.over(time.monotonic_ns()):
            rig.check()
            await asyncio.sleep(0.1)
        await rig.consumer.wait_for("health", lambda body: body["at_ns"] > began * 1e9, 20)
        took = time.monotonic() - began
        heard = [(heard.suffix, heard.body) for heard in rig.consumer.heard]
    results = [body for suffix, body in heard if suffix == "result"]
    flagged = [b for b in results if b["outcome"] is None and "bille_perdue" in {r["code"] for r in b["reasons"]}]
    alarms = [body["data"] for suffix, body in heard if suffix == "event" and body["kind"] == "alarm"]
    silences = [alarm["active"] for alarm in alarms if alarm["name"] == "device:wheel_sensor"]
    counters = [body for suffix, body in heard if suffix == "health"][-1]["devices"]["wheel_sensor"]["counters"]
    how = f"{took:.0f} s of slingshot2-session-a at 1x"
    return (
        Figure(what="results with a number", value=sum(b["outcome"] is not None for b in results), unit="", aim="<= 0"),
        Figure(what="launched coups that ended by their flag", value=len(flagged), unit="of 1", aim=">= 1", how=how),
        Figure(what="silences told", value=silences.count(True), unit="of 2", aim=">= 2"),
        Figure(what="silences that ended", value=silences.count(False), unit="of 1", aim=">= 1"),
        Figure(what="lines rejected", value=counters["rejects"], unit="of 1", aim=">= 1"),
    )
