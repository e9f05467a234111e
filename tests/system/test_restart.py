"""kill -9 in every phase: the same table afterwards, and never one result under two ids."""

from __future__ import annotations

import pytest

from hil import tables
from hil.rig import Rig
from tests.system.brisk import BALL, NUMBER, READY, ROTOR, SLOW, BriskWheel, brisk_table
from tests.system.table import proven, remembered, results, stake, until, until_phase

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

LASTING = (
    "phase", "seance", "partie", "coup_no", "seance_open", "attestations", "limits", "last_direction", "stakes",
    "stakes_made", "offers", "doubts", "public_options",
)  # fmt: skip
OF_THE_COUP = ("no", "last", "launched", "direction", "readings", "outcome", "closed_at_ns")


async def killed(rig: Rig, wheel: BriskWheel | None = None) -> None:
    """kill -9 and start again: everything that must last is there, and the sensor has been heard again."""
    before = remembered(rig)
    await rig.restart_daemon()
    if wheel is not None:
        await until(rig, rig.ttys["wheel_sensor"].opened, "the sensor's port")
        said = wheel.said
        await until(rig, lambda: wheel.said > said + 1, "the sensor's next line")
    after = remembered(rig)
    for name in LASTING:
        assert getattr(after, name) == getattr(before, name), name
    for name in OF_THE_COUP if before.coup is not None else ():
        assert getattr(after.coup, name) == getattr(before.coup, name), name


async def test_every_phase_survives_a_kill() -> None:
    rig = Rig(brisk_table(sources=["wheel_sensor", "console"]))
    wheel = BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        await rig.open({"attest": {"encaisse": ["comite"]}, "minimum_cents": 1000})
        await until_phase(rig, "mises_ouvertes", 1)
        await stake(rig, "pair", 2000, "Anne")
        await killed(rig, wheel)  # bets open, with a stake and a raised minimum
        wheel.step(ROTOR)
        wheel.step(BALL)
        await until_phase(rig, "lance", 1)
        await killed(rig, wheel)
        wheel.step(SLOW)
        await until_phase(rig, "jeux_faits", 1)
        await killed(rig, wheel)
        wheel.step(NUMBER, 0)
        await until_phase(rig, "litige", 1)  # nobody watched while the daemon was dead: held, never guessed
        await killed(rig, wheel)
        assert (await rig.order("resolve", "chef", **{"as": "valid", "outcome": 0, "why": "vu"}))["ok"]
        await until_phase(rig, "choix", 1)
        await killed(rig, wheel)
        assert (await rig.order("choice", "croupier", player="Anne", what="zero", value="prison"))["ok"]
        await until_phase(rig, "reglement", 1)
        await killed(rig, wheel)  # a stake in prison
        assert [(s.player, s.cents, s.carried, s.zeros) for s in remembered(rig).stakes] == [
            ("Anne", 2000, "prison", 1)
        ]

        for what in (READY, ROTOR, BALL, SLOW):
            wheel.step(what)
        await until_phase(rig, "jeux_faits", 2)
        wheel.step(NUMBER, 8)
        await until_phase(rig, "resultat", 2)  # the croupier has not typed his number yet
        await rig.restart_daemon()
        await until(rig, lambda: len(results(rig)) == 3, "the second coup's result")
        first, resolved, second = results(rig)
        assert [(r["coup"], r["status"]) for r in (first, resolved)] == [(1, "held"), (1, "valid")]
        assert resolved["resolves"] == first["id"]
        assert (second["coup"], second["sources"]["wheel_sensor"]) == (2, 8)
        assert second["direction"] != first["direction"]
        assert "direction_non_alternee" not in {reason["code"] for reason in second["reasons"]}
        assert rig.daemon.starts == 8
        await proven(rig)


async def test_a_table_that_is_closed_or_verified_survives_a_kill_with_its_signatures() -> None:
    rig = Rig(tables.table("roue-de-la-chance"))
    async with rig:
        await killed(rig)
        for role in ("comite", "croupier"):
            assert (await rig.order("attest", role, what="verification"))["ok"]
        await until_phase(rig, "verifiee", 0)
        await killed(rig)
        assert (await rig.order("open", "comite"))["ok"]
        await until_phase(rig, "mises_ouvertes", 1)
        await proven(rig)
