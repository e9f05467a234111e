"""What the system tests ask of a table on the rig."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.codec import decode_state
from controller.journal_file import NAME, read_snapshot, reader
from hil.contract import Contract
from hil.floor import Chain
from hil.peers import keypad_of, type_in
from hil.rig import Rig
from rules.game import load
from rules.state import TableState

DEADLINE_S = 30.0


def remembered(rig: Rig) -> TableState:
    """What the journal on disk says of the table; it is read without a word to the daemon."""
    connection = reader(Path(rig.table["state"]["folder"]) / NAME)
    try:
        body, damaged = read_snapshot(connection)
    finally:
        connection.close()
    assert body is not None
    assert damaged == []
    return decode_state(json.loads(body)["state"], load(rig.table["game"]))


async def until(rig: Rig, true: Callable[[], bool], what: str) -> None:
    """Wait until it is true; a rig or daemon that fails meanwhile fails the test."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        rig.check()
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)


async def until_phase(rig: Rig, phase: str, coup: int) -> None:
    """Wait until the table says that it is there."""

    def there() -> bool:
        told = [heard.body for heard in rig.consumer.heard if heard.suffix == "state"]
        return bool(told) and (told[-1]["phase"], told[-1]["coup"]) == (phase, coup)

    await until(rig, there, f"{phase} of coup {coup}")


def results(rig: Rig) -> list[dict[str, Any]]:
    """Every different result that the consumer has, in the order in which it came first."""
    return list({heard.body["id"]: heard.body for heard in rig.consumer.heard if heard.suffix == "result"}.values())


async def stake(rig: Rig, spot: str, cents: int, player: str) -> None:
    """Put chips down by the keypad and wait until they stand in the journal."""
    value = {"spot": spot, "cents": cents, "player": player}
    type_in(keypad_of(rig.peers), "stake", value, time.monotonic_ns())
    await until(rig, lambda: any(s.player == player for s in remembered(rig).stakes), f"stake of {player}")


async def proven(rig: Rig) -> None:
    """Everything that the consumer has heard keeps the contract, and the results are one unbroken chain."""
    contract = await Contract.published()
    contract.chain = Chain.of(await rig.public_key())
    for heard in rig.consumer.heard:
        assert contract.check(heard) == []
    assert {"status", "state", "event"} <= set(contract.checked)
