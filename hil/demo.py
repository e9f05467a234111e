"""A table that plays by itself: `python -m hil.demo [--table NAME] [--coups N]`.

A private broker, the unmodified daemon, and the virtual rig that plays the table's demo scenario over and over through
the real drivers. The first line on stdout is `demo: mqtt://127.0.0.1:PORT/casino/SITE/TABLE`; whoever wants to look
subscribes there. With `--coups N` it ends with exit 0 after N results with status valid. It ends with exit 1 and the
reason when the daemon dies, no result comes in time, or a message breaks the contract.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from hil import scenario, tables
from hil.contract import Contract
from hil.devices.encoder import SECOND
from hil.floor import Chain, Heard, RigError
from hil.rig import Rig
from hil.scenario import Scenario, ScenarioError

GOODBYE_S = 3.0
"""After the last result its settlement is waited for so long."""
RESULT_S = 30.0
"""A coup whose play is over has its result by then, or the next play begins without."""
NOTHING_S = 180.0
"""With `--coups`, so long without a valid result is a failure."""


def say(text: str) -> None:
    """One line for whoever watches."""
    try:
        print(text, flush=True)
    except OSError:  # `./dev demo | head -1`, a full disk
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the interpreter's last flush uses it


def nobody_reads() -> bool:
    """Whoever watched has gone away."""
    return sys.stdout.name == os.devnull


class Demo:
    """One run of the demo on one table."""

    def __init__(self, rig: Rig, played: Scenario, coups: int | None, contract: Contract) -> None:
        self.rig, self.played, self.coups, self.contract = rig, played, coups, contract
        self.results: dict[str, str] = {}
        """Status by id."""
        self.settled: set[str] = set()
        """Results of which a settlement was heard."""
        self.started_ns = time.monotonic_ns()

    @property
    def done(self) -> bool:
        """Enough results are valid; without a number, nobody watches any more."""
        if self.coups is None:
            return nobody_reads()
        return list(self.results.values()).count("valid") >= self.coups

    @property
    def paid(self) -> bool:
        """Every valid result has its settlement."""
        return self.settled >= {name for name, status in self.results.items() if status == "valid"}

    async def run(self) -> None:
        """Play until enough results are valid; for ever without a number. Raises RigError."""
        self.contract.chain = Chain.of(await self.rig.public_key())
        await self.rig.open(self.played.opening)
        loop = asyncio.get_running_loop()
        parts = [
            loop.create_task(self._watch(), name="demo: watch"),
            loop.create_task(self._play(), name="demo: play"),
            loop.create_task(self._keep_the_broker(), name="demo: broker"),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _play(self) -> None:
        """The scenario over and over; after each launch its result is waited for, but not for ever."""
        while True:
            for play in self.played.plays:
                before = len(self.results)
                script = await self.rig.play(play)
                await self.rig.wait_until(script.ends_ns)
                deadline_ns = script.ends_ns + round(RESULT_S * SECOND)
                while play.kind and len(self.results) == before and time.monotonic_ns() < deadline_ns:
                    self.rig.check()
                    await asyncio.sleep(0.05)

    async def _watch(self) -> None:
        """Tell what comes and check it; returns after enough valid results."""
        last_valid, seen, losses = time.monotonic(), 0, 0
        while not (self.done and (self.paid or time.monotonic() > last_valid + GOODBYE_S)):
            try:
                heard = await self.rig.consumer.message(seen, 1.0)
            except TimeoutError:
                self.rig.check()
                if self.coups is not None and time.monotonic() - last_valid > NOTHING_S:
                    raise RigError(
                        f"no valid result for {NOTHING_S:.0f} s; the daemon said:\n{self.rig.daemon.last_words()}"
                    ) from None
                continue
            seen += 1
            if heard.suffix == "result" and self.rig.consumer.losses > losses:
                losses = self.rig.consumer.losses
                self.contract.begin_anew(heard)  # what came while the broker was away is lost to this consumer
            if wrong := self.contract.check(heard):
                raise RigError("the contract is broken: " + "; ".join(wrong))
            if line := told(heard):
                say(f"{(time.monotonic_ns() - self.started_ns) / SECOND:6.1f} {line}")
            if heard.suffix.startswith("settlement/"):
                self.settled.add(heard.body["result"])
            if heard.suffix == "result":
                body = heard.body
                self.results[body["id"]] = body["status"]
                last_valid = time.monotonic() if body["status"] == "valid" else last_valid
                if body["status"] == "held":
                    with contextlib.suppress(TimeoutError):
                        await self.rig.order("resolve", "chef", **{"as": "void", "why": "démonstration"})

    async def _keep_the_broker(self) -> None:
        """A broker that somebody killed is started again; one that was sent away stays away."""
        while True:
            await asyncio.sleep(1.0)
            if self.rig.broker.died:
                say("       the broker is dead: a new one in 3 s")
                await asyncio.sleep(3.0)
                await self.rig.broker.start()


def told(heard: Heard) -> str:
    """One message as a line for people; empty for those that say nothing new."""
    if not heard.payload:
        return ""
    body = heard.body
    match heard.suffix:
        case "result":
            return _result(body)
        case "event" if body["kind"] == "command":
            return (
                f"command      {body['data']['name']} par {body['data']['by']}: {body['code']} {body['text']}".rstrip()
            )
        case "event" if body["kind"] == "alarm" and not body["data"]["active"]:
            return f"alarm        terminée : {body['text']}"
        case "event":
            return f"{body['kind']:<12} {body['text']}"
        case "status":
            return f"status       {body['state']} ({body['reason']})"
        case name if name.startswith("settlement/") and body["lines"]:
            paid = ", ".join(f"{line['player']} {line['type']} {_amount(line['net'])}" for line in body["lines"])
            return f"reglement    {paid}"
    return ""


def _result(body: Mapping[str, Any]) -> str:
    outcome = body["outcome"] or {}
    won = " ".join(str(outcome[key]) for key in ("number", "colour") if key in outcome) or "-"
    turns = f", {body['travel_counts'] / body['per_turn']:.2f} tours" if body.get("per_turn") else ""
    why = "".join(f"; {reason['code']}" for reason in body["reasons"])
    return f"RESULTAT     no {body['result_no']} coup {body['coup']}: {body['status']} {won}{turns}{why}"


def _amount(net: object) -> str:
    return f"{net:+d}" if isinstance(net, int) else str(net)


def demo_of(table: str) -> Scenario:
    """The demo scenario of a table; raises ScenarioError naming the tables that have one."""
    demos = [played for played in map(scenario.load, scenario.all_scenarios()) if played.demo]
    for played in demos:
        if played.table == table:
            return played
    tables.table(table)
    raise ScenarioError(f"no demo scenario plays {table!r}; there are: {', '.join(sorted(d.table for d in demos))}")


async def demo(table: str, coups: int | None) -> int:
    """Run the demo; returns the exit code."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me is not None

    told_to_stop: list[str] = []

    def stop(name: str) -> None:
        if not told_to_stop:  # the cleaning up is not to be interrupted in its turn
            told_to_stop.append(name)
            me.cancel()

    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # the terminal is closed; not so under nohup
        ends.append(signal.SIGHUP)
    for number in ends:
        loop.add_signal_handler(number, stop, number.name)
    try:
        played = demo_of(table)
        rig = Rig(tables.table(table, played.overrides), seed=played.seed, noise=played.noise)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(rig.close)
            await rig.start(daemon=False)
            say(f"demo: {rig.url}/{rig.base}")  # whoever reads this may connect at once, and sees the table come up
            say(f"demo: table-rig tell {rig.control} unplug ROLE | plug ROLE | kill daemon | broker down | broker up")
            await rig.daemon.start()
            say(f"demo: results are signed by {await rig.public_key()}")
            await Demo(rig, played, coups, await Contract.published()).run()
    except (RigError, ScenarioError) as error:
        print(f"demo: {error}", file=sys.stderr, flush=True)
        return 1
    except asyncio.CancelledError:
        if not told_to_stop:
            raise
        if coups is None:
            return 0
        print(f"demo: {told_to_stop[0]} before {coups} valid results", file=sys.stderr, flush=True)
        return 1
    finally:
        for number in ends:
            loop.remove_signal_handler(number)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="./dev demo", description="A table that plays by itself.")
    parser.add_argument("--table", default="roue-de-la-chance", metavar="NAME", help="a file of config/tables")
    parser.add_argument("--coups", type=int, metavar="N", help="end after N results with status valid")
    options = parser.parse_args(arguments)
    if options.coups is not None and options.coups < 1:
        parser.error("--coups: at least 1")
    return asyncio.run(demo(options.table, options.coups))


if __name__ == "__main__":
    sys.exit(main())
