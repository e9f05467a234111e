"""A scenario in real time against the unmodified daemon: its journal's decisions against what is expected.

Beside the decisions every MQTT message is checked against the contract, and every coup's end in the journal must have
come out as a result, in order.
"""

from __future__ import annotations

import asyncio
import time

from hil import tables
from hil.bench import MS
from hil.contract import Contract
from hil.expect import differences, read_expected
from hil.floor import Chain, RigError
from hil.rig import Rig
from hil.run import Outcome
from hil.scenario import Scenario

LATE_MS = 80
"""A rig that is later than this may have shown the daemon what no table would."""
RESULTS_S = 20.0
"""What the journal has must be with the consumer by then."""


async def play_live(scenario: Scenario) -> Outcome:
    """Play it in real time."""
    wrong: list[str] = []
    told = []
    rig = Rig(tables.table(scenario.table, scenario.overrides), seed=scenario.seed, noise=scenario.noise)
    try:
        contract = await Contract.published()
        async with rig:
            contract.chain = Chain.of(await rig.public_key())
            if scenario.opening:
                await rig.open(scenario.opening)
            for play in scenario.plays:
                script = await rig.play(play)
                await rig.wait_until(script.ends_ns)
            told = await rig.decisions()
            ends = [line for line in told if line["out"] == "CoupEnded"]
            statuses = await _results(rig, len(ends))
            if statuses != [line["status"] for line in ends]:
                wrong.append(f"results on MQTT {statuses} are not the coups of the journal")
            for heard in rig.consumer.heard:
                wrong += contract.check(heard)
    except (RigError, TimeoutError) as error:
        wrong.append(str(error) or "a deadline passed")
    wrong += differences(read_expected(scenario.expected), told)
    late_ms = rig.late_ns // MS
    if wrong and late_ms > LATE_MS:
        wrong.insert(0, f"the rig was late by {late_ms} ms: this machine is too busy, a fault of the rig")
    return Outcome(scenario=scenario.name, how="live", decisions=len(told), wrong=tuple(wrong), late_ms=late_ms)


async def _results(rig: Rig, count: int) -> list[str]:
    """Statuses of the different results that the consumer has, once there are `count` or time is up."""
    deadline = time.monotonic() + RESULTS_S
    while True:
        bodies = {heard.body["id"]: heard.body for heard in rig.consumer.heard if heard.suffix == "result"}
        if len(bodies) >= count or time.monotonic() > deadline:
            return [body["status"] for body in bodies.values()]
        await asyncio.sleep(0.05)
