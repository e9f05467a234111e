"""A broker that is away, frozen, or does not want our message: nothing lost, nothing told twice under two ids."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from hil.floor import Chain, Consumer, Heard
from hil.rig import Rig
from tests.system.brisk import BriskWheel, brisk_table, number
from tests.system.table import proven, remembered, results, until, until_phase

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
FIFTY = 50


async def opened(rig: Rig) -> BriskWheel:
    wheel = BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    await rig.open({"attest": {}})
    await until_phase(rig, "mises_ouvertes", 1)
    return wheel


@pytest.mark.parametrize("away", ["down", "frozen"])
async def test_fifty_results_survive_a_lost_broker_and_a_kill(away: str) -> None:
    rig = Rig(brisk_table())
    async with rig:
        floor = Consumer(rig.broker.port, rig.base, client_id="floor")  # the broker keeps what it misses
        await floor.start()
        try:
            wheel = await opened(rig)
            assert rig.broker.process is not None
            if away == "down":
                await rig.broker.stop()
            else:  # what is under way to it now is in doubt: it reads it later, and the daemon never hears of it
                rig.broker.process.send_signal(signal.SIGSTOP)
            wheel.play(number(n) for n in range(FIFTY))
            await until(
                rig, lambda: remembered(rig).coup_no == FIFTY and remembered(rig).phase == "reglement", "50 coups"
            )
            await rig.daemon.kill()
            if away == "frozen":
                rig.broker.process.send_signal(signal.SIGCONT)
                await rig.daemon.start()
            else:
                await rig.daemon.start()
                await rig.broker.start()

            def told(*suffixes: str) -> list[Heard]:
                return [heard for heard in floor.heard if heard.suffix in suffixes]

            await until(rig, lambda: len({heard.payload for heard in told("result")}) == FIFTY, "50 results")
            await until(rig, lambda: told("result", "event", "settlement/1")[-1].suffix != "result", "the rest")
            once = list(dict.fromkeys(heard.payload for heard in told("result")))
            bodies = [Heard("result", payload, retained=False).body for payload in once]
            assert [body["result_no"] for body in bodies] == list(range(1, FIFTY + 1))
            assert [body["outcome"]["number"] for body in bodies] == [number(n) for n in range(FIFTY)]
            chain = Chain.of(await rig.public_key())
            assert [chain.check(payload) for payload in once] == [[]] * FIFTY
            rows = Counter((heard.body["id"], heard.payload) for heard in told("result", "event", "settlement/1"))
            assert len({row for row, _ in rows}) == len(rows)  # no id with two bodies
            twice = [row[0] for row, times in rows.items() if times > 1]
            if away == "frozen":
                assert len(twice) == 1  # the one that was under way to the broker when it froze
                assert max(rows.values()) == 2
            else:  # a broker that stops may itself repeat what the floor had not acknowledged: nothing of these coups
                made = {heard.body["id"] for heard in told("result", "settlement/1")}
                assert made.isdisjoint(twice)
        finally:
            await floor.stop()


def refuse(rig: Rig, suffix: str) -> None:
    """The broker, not started yet, takes everything but this."""
    rig.broker.rights = rig.folder / "rights"
    rig.broker.rights.write_text(f"topic readwrite #\ntopic deny {rig.base}/{suffix}\n")


def mend_rights(rig: Rig) -> None:
    """The running broker takes everything."""
    assert rig.broker.rights is not None
    assert rig.broker.process is not None
    rig.broker.rights.write_text("topic readwrite #\n")
    rig.broker.process.send_signal(signal.SIGHUP)


async def test_a_result_that_the_brokers_rights_refuse_waits_and_raises_an_alarm() -> None:
    rig = Rig(brisk_table())
    refuse(rig, "result")
    async with rig:
        wheel = await opened(rig)
        wheel.play([17])
        await until_phase(rig, "reglement", 1)

        def alarms() -> set[str]:
            told = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
            return {alarm["name"] for alarm in told[-1]["alarms"] if alarm["active"]}

        await until(
            rig, lambda: any("refus" in name or "mqtt" in name or "outbox" in name for name in alarms()), "alarm"
        )
        assert results(rig) == []
        mend_rights(rig)
        await until(rig, lambda: len(results(rig)) == 1, "the result, once it may pass")
        assert results(rig)[0]["outcome"]["number"] == 17
        await until(rig, lambda: not alarms(), "the alarm's end")
        await proven(rig)


async def test_events_that_the_brokers_rights_refuse_wait_and_hold_up_no_result() -> None:
    rig = Rig(brisk_table())
    refuse(rig, "event")
    async with rig:
        wheel = await opened(rig)
        wheel.play(number(n) for n in range(3))
        await until(rig, lambda: len(results(rig)) == 3, "the results")
        await rig.consumer.wait_for("state", lambda body: "mqtt:publish:event" in str(body["alarms"]), 20)
        assert not any(heard.suffix == "event" for heard in rig.consumer.heard)
        await rig.daemon.kill()  # what went out before others is not sent again
        mend_rights(rig)
        await rig.daemon.start()
        await rig.consumer.wait_for("event", lambda body: body["code"] == "resultat" and body["coup"] == 3, 20)
        events = [heard.body for heard in rig.consumer.heard if heard.suffix == "event"]
        assert [body["seq"] for body in events] == sorted(body["seq"] for body in events)
        assert [body["coup"] for body in events if body["code"] == "resultat"] == [1, 2, 3]
        assert len([heard for heard in rig.consumer.heard if heard.suffix == "result"]) <= 4  # one may be in doubt
        await proven(rig)
