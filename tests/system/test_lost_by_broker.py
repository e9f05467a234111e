"""What a broker acknowledged and then lost: a consumer sees the hole and asks the table for it (field cases 26, 28)."""

from __future__ import annotations

import pytest

from hil.floor import Consumer, Heard
from hil.rig import Rig
from tests.system.brisk import BriskWheel, brisk_table, number
from tests.system.table import results, until, until_phase

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]
MISSED = 8
KEPT = 20


def told(floor: Consumer, suffix: str) -> list[Heard]:
    return [heard for heard in floor.heard if heard.suffix == suffix]


def heard_by(floor: Consumer) -> list[bytes]:
    return [heard.payload for heard in told(floor, "result")]


@pytest.mark.parametrize("how", ["killed", "full"])
async def test_case_26_28_what_the_broker_lost_is_asked_for_again(how: str) -> None:
    """Case 26: a broker killed after its acknowledgement; case 28: its queue for an absent consumer was full."""
    rig = Rig(brisk_table())
    if how == "full":
        rig.broker.settings = ["max_inflight_messages 1", f"max_queued_messages {KEPT}"]
    async with rig:
        floor = Consumer(rig.broker.port, rig.base, client_id="floor")  # the broker is to keep what it misses
        await floor.start()
        wheel = BriskWheel()
        rig.peers["wheel_sensor"] = wheel
        await rig.open({"attest": {}})
        await until_phase(rig, "mises_ouvertes", 1)
        wheel.play([number(0)])
        await until(rig, lambda: len(told(floor, "result")) == 1, "the first result")
        (first,) = told(floor, "result")
        await floor.stop()

        wheel.play(number(n) for n in range(1, MISSED + 1))
        await until(rig, lambda: len(results(rig)) == MISSED + 1, "all of them at the broker")
        made = heard_by(rig.consumer)
        if how == "killed":
            assert rig.broker.process is not None
            rig.broker.process.kill()
            await rig.broker.process.wait()
            await rig.broker.start()
        floor = Consumer(rig.broker.port, rig.base, client_id="floor")
        await floor.start()
        try:
            if how == "full":
                await until(rig, lambda: len(floor.heard) >= KEPT, "what the broker kept")
            wheel.play([number(MISSED + 1)])
            await until(
                rig, lambda: any(heard.body["result_no"] == MISSED + 2 for heard in told(floor, "result")), "one more"
            )
            assert made[-1] not in heard_by(floor)  # acknowledged, and lost: there is a hole before the last number
            made.append(heard_by(floor)[-1])

            reply = await floor.order(rig.people["chef"], "replay", after_seq=first.body["seq"])
            assert (reply["ok"], reply["data"]["results"]) == (True, MISSED + 1)
            await until(rig, lambda: set(heard_by(floor)) >= set(made[1:]), "all of them")
            assert set(heard_by(floor)) <= set(made)  # byte-identical
        finally:
            await floor.stop()
