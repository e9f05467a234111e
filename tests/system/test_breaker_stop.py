"""Stops at bad moments: the floor is always told, whatever hangs."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from controller.journal_file import NAME
from hil.rig import Rig
from tests.system.brisk import BriskWheel, brisk_table
from tests.system.table import remembered, results, until, until_phase

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


async def test_a_disk_that_refuses_the_last_rows_does_not_keep_the_table_online() -> None:
    rig, wheel = Rig(brisk_table()), BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        await rig.open({"attest": {}})
        await until_phase(rig, "mises_ouvertes", 1)
        journal = Path(rig.table["state"]["folder"]) / NAME
        process = rig.daemon.process
        assert process is not None
        with contextlib.closing(sqlite3.connect(journal, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # another program holds the file: every commit is refused
            lamps = len(rig.lamps)
            wheel.play([17])
            await until(rig, lambda: len(rig.lamps) > lamps, "a lamp, which waits for no disk")
            process.terminate()
            async with asyncio.timeout(30):
                assert await process.wait() == 75  # honest: something was not written
            await rig.consumer.wait_for("status", lambda body: body["reason"] == "stopped", 10)
            other.execute("ROLLBACK")
        assert "the disk does not take the last rows" in rig.daemon.last_words(1)
        assert results(rig) == []
        await rig.daemon.start()
        assert remembered(rig).coup_no == 1
        await until(rig, rig.ttys["wheel_sensor"].opened, "the sensor's port")
