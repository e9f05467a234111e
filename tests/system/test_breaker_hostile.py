"""A daemon among strangers: hostile bytes from every side, and kills that come one upon the other."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from typing import Any

import pytest

from hil import tables
from hil.daemon import run_tool
from hil.floor import Consumer, RigError, canonical
from hil.rig import Rig
from tests.system.brisk import BriskWheel, brisk_table, number
from tests.system.table import proven, results, until, until_phase

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

HALF = '{"cmd": {"id": "\\ud800", "name": "\\udfff", "operator": "\\ud800", "args": {"\\ud800": 1}}}'
POISON = {
    "cmd/open": [
        b"", b"{", b"\xff\xfe", b"null", b"1e999", b"[" * 16_000, b'{"cmd":' * 2000, b"x" * 1_048_576, HALF.encode(),
        HALF.encode("utf-16"), b'{"x":' + b"9" * 5000 + b"}",
    ],
    "cmd/" + "x" * 1000: [b"{}"],
    "status": [b"", b"\xff", b'{"state":"offline"}', b"[" * 100_000],
    "result/last": [b"[" * 100_000, b'{"epoch": 1e999, "seq": 1e999}', b"\xff"],
    "reply/open": [b"\xff"],
}  # fmt: skip


async def health(rig: Rig) -> dict[str, Any]:
    """What the daemon says of itself on the local socket."""
    reader, writer = await asyncio.open_unix_connection(str(rig.table["state"]["socket"]))
    writer.write(b'{"get": "health"}\n')
    said: dict[str, Any] = json.loads(await reader.readline())["data"]
    writer.close()
    await writer.wait_closed()
    return said


async def test_hostile_messages_cost_nobody_his_connection() -> None:
    rig = Rig(tables.table("roue-de-la-chance"))
    async with rig:
        before = await rig.consumer.wait_for("health", lambda body: body["mqtt"]["connected"], 20)
        stranger = Consumer(rig.broker.port, "casino/a/b")
        await stranger.start()
        try:
            signer = rig.people["technicien"]
            command = {"id": "é", "name": "state", "table": "demo/roue-1", "valid_s": 60, "operator": "x", "args": {}}
            late = signer.envelope({**command, "issued_at": "9999-12-31T23:59:59Z"})
            accents = {**signer.envelope({**command, "issued_at": "2026-01-01T00:00:00Z"}), "sig": "é" * 40}
            POISON["cmd/state"] = [canonical(late), canonical(accents)]
            for suffix, payloads in POISON.items():
                for payload in payloads:
                    stranger._client.publish(f"{rig.base}/{suffix}", payload, qos=1)
            sent = sum(len(payloads) for suffix, payloads in POISON.items() if suffix.startswith("cmd/"))
            await until(rig, lambda: sum(b'"ok":false' in heard.payload for heard in rig.consumer.heard) == sent, "no")
            assert (await rig.order("state", "technicien"))["ok"]
        finally:
            await stranger.stop()
        after = await health(rig)
        assert (after["boot"], after["mqtt"]["connects"]) == (before["boot"], 1)
        assert {name: task["restarts"] for name, task in after["tasks"].items() if task["restarts"]} == {}
        codes = Counter(row["body"]["code"] for row in await rows(rig) if row["kind"] == "command")
        assert codes == {"malformed": sent - 1, "bad_signature": 1, "ok": 1}
        assert "Traceback" not in rig.daemon.log.read_text()


async def rows(rig: Rig) -> list[dict[str, Any]]:
    """The journal as `tablectl` shows it."""
    code, out, _ = await run_tool(["--config", str(rig.config), "journal", "show"])
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


async def chef(rig: Rig) -> None:
    """Resolves whatever is held, as long as the test lasts."""
    seen = 0
    while True:
        heard = await rig.consumer.message(seen, 120)
        seen += 1
        if heard.suffix == "state" and heard.body["phase"] == "litige":
            with contextlib.suppress(TimeoutError):  # the daemon may be dead just now
                await rig.order("resolve", "chef", **{"as": "void", "why": "coupure"})


async def test_kills_upon_kills_lose_nothing_and_repeat_nothing() -> None:
    """Also while it is starting, when the journal is being recovered and nothing has been said yet."""
    rig, wheel = Rig(brisk_table()), BriskWheel()
    rig.peers["wheel_sensor"] = wheel
    async with rig:
        await rig.open({"attest": {}})
        await until_phase(rig, "mises_ouvertes", 1)
        rig._restarting = True
        loop = asyncio.get_running_loop()
        resolving = loop.create_task(chef(rig))
        for _ in range(3):
            wanted = len(results(rig)) + 5
            wheel.play(number(n) for n in range(20))
            await until(rig, lambda wanted=wanted: len(results(rig)) > wanted, "some results")  # type: ignore[misc]
            await rig.daemon.kill()
            said = rig.daemon.log.stat().st_size
            starting = loop.create_task(rig.daemon.start())
            await until(rig, lambda said=said: rig.daemon.log.stat().st_size > said, "a word")  # type: ignore[misc]
            await rig.daemon.kill()
            with contextlib.suppress(RigError):
                await starting
            await rig.daemon.start()
        resolving.cancel()
        last = (await health(rig))["last_result"]
        await until(rig, lambda: results(rig)[-1]["id"] == last, "the last result")
        told = results(rig)
        assert [body["result_no"] for body in told] == list(range(1, len(told) + 1))
        first = [(body["seance"], body["partie"], body["coup"]) for body in told if "resolves" not in body]
        assert len(set(first)) == len(first)
        await proven(rig)
