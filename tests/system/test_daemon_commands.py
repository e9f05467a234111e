"""Commands that must not be obeyed: each refused with its code and journalled, by broker and local socket alike."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.journal_file import NAME
from controller.tablectl.local import Local
from hil.floor import Signer, canonical, command
from hil.rig import Rig
from tests.system.brisk import brisk_table
from tests.system.table import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]
TABLE = "demo/rf-1"


def nonce(rig: Rig) -> str:
    """The newest nonce that the floor was told."""
    states = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
    return str(states[-1]["nonce"])


def asked(signer: Signer, name: str, *, table: str = TABLE, **args: Any) -> dict[str, Any]:
    return command(table, name, signer.name, args)


def journalled(rig: Rig) -> list[tuple[str, str]]:
    """(name, code) of every command in the journal."""
    with contextlib.closing(sqlite3.connect(Path(rig.table["state"]["folder"]) / NAME)) as connection:
        found = connection.execute("SELECT body FROM rows WHERE kind = 'command' ORDER BY seq").fetchall()
    return [(row["name"], row["code"]) for (text,) in found for row in [json.loads(text)]]


async def test_by_the_broker() -> None:
    rig = Rig(brisk_table())
    async with rig:
        await until(rig, lambda: any(heard.suffix == "state" for heard in rig.consumer.heard), "the state")
        comite, croupier = rig.people["comite"], rig.people["croupier"]
        stranger = Signer("stranger-1", "comite")
        proof = {} if synchronised(rig) else {"nonce": nonce(rig)}
        unsigned = {"cmd": asked(comite, "interrupt", **proof)}
        wrongly = {**comite.envelope(asked(comite, "interrupt", **proof)), "sig": stranger.envelope({})["sig"]}
        cases = [
            (unsigned, "unsigned"),
            (wrongly, "bad_signature"),
            (stranger.envelope(asked(stranger, "interrupt", **proof)), "bad_signature"),
            (comite.envelope(asked(comite, "interrupt", table="demo/rf-2", **proof)), "wrong_table"),
            (croupier.envelope(asked(croupier, "interrupt", **proof)), "unauthorised"),
            (comite.envelope(asked(comite, "dance", **proof)), "unknown"),
            ({"cmd": {**asked(comite, "interrupt"), "valid_s": 301}, "key": "comite-1", "sig": "x"}, "malformed"),
            (comite.envelope(asked(comite, "interrupt", nonce="of yesterday")), "stale"),
            (comite.envelope(asked(comite, "open", minimum=500, **proof)), "malformed"),  # opens at no other minimum
        ]
        if synchronised(rig):
            old = (datetime.now(UTC) - timedelta(minutes=10)).isoformat(timespec="seconds").replace("+00:00", "Z")
            cases.append((comite.envelope({**asked(comite, "interrupt"), "issued_at": old}), "stale"))
        for envelope, code in cases:
            reply = await rig.consumer.give(envelope)
            assert (reply["ok"], reply["code"]) == (False, code), reply
            assert reply["text"]
        once = comite.envelope(asked(comite, "open", **proof))
        assert (await rig.consumer.give(once))["code"] == "ok"
        assert (await rig.consumer.give(once))["code"] == "repeated"
        rig.consumer._used = proof.get("nonce", "")
        assert (await rig.order("options", "comite", douze=True))["code"] == "malformed"  # this game has none
        topic = f"{rig.base}/cmd/interrupt"
        rig.consumer._client.publish(topic, canonical(comite.envelope(asked(comite, "interrupt"))), qos=1, retain=True)
        await until(rig, lambda: ("interrupt", "retained") in journalled(rig), "the retained command")
        codes = [code for _, code in journalled(rig)]
        assert codes[: len(cases)] == [code for _, code in cases]
        events = [heard.body["code"] for heard in rig.consumer.heard if heard.suffix == "event"]
        assert {"unsigned", "bad_signature", "wrong_table", "unauthorised", "unknown", "stale"} <= set(events)
        state = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"][-1]
        assert (state["phase"], state["interrupted"]) == ("mises_ouvertes", False)


async def test_by_the_local_socket_while_the_broker_is_dead() -> None:
    rig = Rig(brisk_table())
    rig.table["local"] = []  # nobody is vouched for: only signatures count
    async with rig:
        await rig.broker.stop()
        comite, croupier = rig.people["comite"], rig.people["croupier"]
        old = (datetime.now(UTC) - timedelta(minutes=10)).isoformat(timespec="seconds").replace("+00:00", "Z")
        once = comite.envelope(asked(comite, "open"))
        cases = [
            ({"cmd": asked(comite, "open")}, "unsigned"),
            ({**comite.envelope(asked(comite, "open")), "key": "chef-1"}, "bad_signature"),
            (comite.envelope(asked(comite, "open", table="demo/rf-2")), "wrong_table"),
            (croupier.envelope(asked(croupier, "open")), "unauthorised"),
            (comite.envelope(asked(comite, "dance")), "unknown"),
            (comite.envelope({**asked(comite, "open"), "issued_at": old}), "stale"),
            ({"cmd": 7}, "malformed"),
            (comite.envelope(asked(comite, "open", minimum_cents="500")), "malformed"),
            (once, "ok"),
            (once, "repeated"),
            (comite.envelope(asked(comite, "open")), "rejected"),  # it is open already
        ]

        def talk() -> list[str]:
            with Local(Path(rig.table["state"]["socket"])) as link:
                return [str(link.command(envelope)["code"]) for envelope, _ in cases]

        assert await asyncio.to_thread(talk) == [code for _, code in cases]
        codes = [code for _, code in cases]
        await until(rig, lambda: [code for _, code in journalled(rig)] == codes, "the journal's rows")


def synchronised(rig: Rig) -> bool:
    """Does something vouch for this machine's clock."""
    states = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
    return bool(states[-1]["clock_synchronised"])
