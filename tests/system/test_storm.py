"""Acceptance 5 through the real line socket into the real daemon: 50,000 edges a second for 10 s in mid-spin."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from hil import tables
from hil.devices.lines import Pulse
from hil.rig import Rig
from hil.scenario import Action, Play
from tests.system.table import proven, results, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]
RATE, SECONDS, QUEUE = 50_000, 10, 2000


def storm(begins_ns: int) -> Iterator[Pulse]:
    """A and B jump at random; of each 40 ms the queue of the kernel lost the older half."""
    rng, levels = Random("storm"), {"wheel.a": 0, "wheel.b": 0}
    lost: Counter[str] = Counter()
    for n in range(RATE * SECONDS):
        line = rng.choice(["wheel.a", "wheel.b"])
        levels[line] ^= 1
        if n % QUEUE < QUEUE // 2:
            lost[line] += 1
        else:
            yield Pulse(begins_ns + n * 10**9 // RATE, line, levels[line], lost.pop(line, 0))


async def blow(rig: Rig) -> None:
    """Play the storm at its pace; of the wheel itself nothing is seen meanwhile."""
    (chip,) = rig.chips.values()
    await rig.disturb("unplug", "wheel")
    due: list[Pulse] = []
    for pulse in storm(time.monotonic_ns()):
        due.append(pulse)
        if pulse.at_ns > time.monotonic_ns():
            chip.play(due)
            due.clear()
            await asyncio.sleep(0.002)
    chip.play(due)
    await rig.disturb("plug", "wheel")


def spin(direction: str, *then: Action) -> Play:
    """A launch of about five turns, and rien ne va plus when the wheel slows down."""
    announced = Action(at="released", ms=1400, verb="press", value="rien_ne_va_plus")
    return Play(kind="spin", how={"direction": direction, "speed": 4.0}, actions=(announced, *then))


async def test_a_storm_of_edges_hangs_nothing_and_the_wheel_is_good_again() -> None:
    rig = Rig(tables.table("roue-de-la-chance"), seed=21)

    def alarms() -> list[str]:
        told = [heard.body["alarms"] for heard in rig.consumer.heard if heard.suffix == "state"]
        return [alarm["name"] for alarm in told[-1] if alarm["active"]]

    async with rig, asyncio.TaskGroup() as group:
        await rig.open({"attest": {"verification": ["comite", "croupier"]}})
        script = await rig.play(spin("cw"))
        await rig.consumer.wait_for("state", lambda body: body["phase"] == "lance", 30)
        blowing = group.create_task(blow(rig))
        await until(rig, lambda: "device:wheel" in alarms(), "the alarm of the wheel")
        assert (await rig.order("state", "croupier"))["ok"]  # in the storm
        assert not blowing.done()
        await blowing
        await until(rig, lambda: bool(results(rig)), "the end of the coup")
        (held,) = results(rig)
        assert (held["status"], held["outcome"]) == ("held", None)
        assert {"entrees_perdues", "appareil_perdu"} <= {reason["code"] for reason in held["reasons"]}
        wheel = (await rig.order("health", "technicien"))["data"]["devices"]["wheel"]
        assert wheel["counters"]["holes"] >= RATE * SECONDS // 2
        assert (await rig.order("resolve", "chef", **{"as": "void", "why": "interférences"}))["ok"]
        await rig.wait_until(script.ends_ns)
        script = await rig.play(Play(kind="hand", how={"direction": "cw", "counts": 3200, "ms": 15_000}))
        await until(rig, lambda: "device:wheel" not in alarms(), "the wheel seen to turn")
        await rig.wait_until(script.ends_ns)
        script = await rig.play(spin("ccw", Action(at="rest", ms=2500, verb="confirm", value=True)))
        await rig.wait_until(script.ends_ns)
        await until(rig, lambda: len(results(rig)) == 3, "the next coup")
        good = results(rig)[-1]
        assert (good["coup"], good["status"], good["reasons"], good["direction"]) == (2, "valid", [], "ccw")
        await proven(rig)
