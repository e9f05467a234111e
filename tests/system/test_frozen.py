"""A process that was kept from running: what came in meanwhile is told with its doubt."""

from __future__ import annotations

import signal
import time
from random import Random

import pytest

from hil.devices.buttons import contact
from hil.peers import keypad_of, type_in
from tests.system.table import remembered, until
from tests.system.test_daemon import playing, rows

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


async def test_a_stake_that_waited_unread_while_the_process_was_stopped_is_doubtful_and_never_refused() -> None:
    """Bytes are stamped when they are read: who was frozen cannot know whether they came before rien ne va plus."""
    async with playing() as (rig, _):
        process, keypad = rig.daemon.process, keypad_of(rig.peers)
        assert process is not None
        await until(rig, lambda: keypad.greeted, "the keypad's greeting")
        process.send_signal(signal.SIGSTOP)
        stopped_ns = time.monotonic_ns()
        type_in(keypad, "stake", {"spot": "pair", "cents": 2000, "player": "Anne"}, stopped_ns)
        await until(rig, lambda: keypad.due_ns() > stopped_ns + 3 * 10**9, "three more beats of the keypad")
        line = "button.rien_ne_va_plus"
        rig._chip_of[line].play(contact(line, time.monotonic_ns(), Random(0)))
        process.send_signal(signal.SIGCONT)
        told = await rig.consumer.wait_for("event", lambda body: body["kind"] in ("late_stake", "stake_refused"), 30)
        assert (told["code"], told["requirement"]) == ("mise_douteuse", "R-GEN-05")
        assert len(remembered(rig).doubts) == 1
        await until(rig, lambda: any("de Anne sur pair" in said for said in keypad.shown), "the doubt on the display")
        await until(rig, lambda: bool(rows(rig, "frozen")), "a row that says how long")
        lost = [row["fact"]["device"] for row in rows(rig, "step") if row["fact"]["in"] == "DeviceLost"]
        assert lost == []  # its beats waited with the stake
