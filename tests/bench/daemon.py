"""The unmodified daemon on the virtual rig, seen from outside: its lines, its ttys, its broker, and /proc."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from hil import tables
from hil.demo import demo_of
from hil.devices.lines import Pulse
from hil.peers import keypad_of
from hil.rig import Rig
from tests.bench.figures import Figure, percentile, tell

TABLE = "roue-de-la-chance"
STARTS = 5
RATE = 2000
LOAD_S = 10.0
EVENTS = 300
LAMPS = 40
PUSH = 1200
"""Counts a second with which a hand turns the wheel in the wrong sense."""
REST_S = 3.0
"""The wheel is seen to stand, and the lamp is off again."""
MS = 1_000_000
DEADLINE_S = 20.0


class Wheel:
    """A wheel that turns exactly as told: quadrature on lines a and b, and the index."""

    def __init__(self, rig: Rig) -> None:
        self._chip = next(iter(rig.chips.values()))
        self._counts = int(rig.table["devices"]["wheel"]["counts_per_turn"])
        self.count = 0

    def step(self, sense: int, at_ns: int) -> None:
        """One count."""
        self._chip.play(self._pulses(sense, at_ns))

    def _pulses(self, sense: int, at_ns: int) -> Iterator[Pulse]:
        before, self.count = self.count, self.count + sense
        for line, levels in (("a", (0, 1, 1, 0)), ("b", (0, 0, 1, 1))):
            if levels[before % 4] != levels[self.count % 4]:
                yield Pulse(at_ns, f"wheel.{line}", levels[self.count % 4])
        was, now = (int(count % self._counts < 2) for count in (before, self.count))
        if was != now:
            yield Pulse(at_ns, "wheel.index", now)

    async def turn(self, counts: int, sense: int, rate: int = RATE, mark: int = 0) -> int:
        """So many counts at this rate, each with the time at which it was due; when the one at `mark` was sent."""
        began = now = sent = time.monotonic_ns()
        done = 0
        while done < counts:
            now = time.monotonic_ns()
            due = min(counts, (now - began) * rate // 10**9)
            while done < due:
                self.step(sense, began + done * 10**9 // rate)
                done += 1
                sent = now if done == mark else sent
            await asyncio.sleep(0.001)
        return sent

    async def push(self, rate: int) -> int:
        """A third of a turn by hand, then the run-out; when the edge that completes a quarter was sent."""
        quarter = self._counts // 4
        sent = await self.turn(quarter + quarter // 3, 1, rate, mark=quarter)
        await self.run_out(1)
        return sent

    async def run_out(self, sense: int) -> None:
        """Slow down to rest: a wheel that stands at once is, for the decoder, a cut cable."""
        for rate in (800, 500, 300, 200, 100, 60):
            await self.turn(30, sense, rate)


async def starts(rig: Rig) -> list[float]:
    """Seconds from the start of the process to READY=1, a few times."""
    took = []
    for _ in range(STARTS):
        began = time.monotonic()
        await rig.daemon.start()
        took.append(time.monotonic() - began)
        await rig.daemon.stop()
    return took


def cpu_s(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def busy(rig: Rig, wheel: Wheel) -> tuple[float, float]:
    """Per cent of a core while the wheel turns, and at rest."""
    assert rig.daemon.process is not None
    pid = rig.daemon.process.pid
    shares = []
    for load in (wheel.turn(int(RATE * LOAD_S), -1), asyncio.sleep(LOAD_S)):
        began, used = time.monotonic(), cpu_s(pid)
        await load
        shares.append(100 * (cpu_s(pid) - used) / (time.monotonic() - began))
        await wheel.run_out(-1)
        await asyncio.sleep(REST_S)
    return shares[0], shares[1]


async def events(rig: Rig) -> list[float]:
    """Milliseconds from the last byte of a keypad's frame to the event at a subscriber, one at a time."""
    keypad, tty = keypad_of(rig.peers), rig.ttys["console"]
    took = []
    for _ in range(EVENTS):
        mark = len(rig.consumer.heard)
        now = time.monotonic_ns()
        keypad.place(now, "orange", 1, "Anne")  # a cent is below every minimum: refused, and told
        keypad.tick(now)
        sent = time.monotonic_ns()
        tty.send(keypad.take_output())
        await rig.consumer.wait_for("event", lambda body: body["kind"] == "stake_refused", DEADLINE_S, mark)
        took.append((time.monotonic_ns() - sent) / MS)
        await asyncio.sleep(0.02)
    return took


async def lamps(rig: Rig, wheel: Wheel) -> list[float]:
    """Milliseconds from the edge that completes a quarter turn in the wrong sense to the lamp that says so."""
    took: list[float] = []
    await asyncio.sleep(REST_S)  # a wheel pushed before it was seen at rest was not observed: its draw would be held
    await wheel.push(PUSH)  # the first actuation of all is free
    while len(took) < LAMPS:
        await asyncio.sleep(REST_S)
        mark = len(rig.lamps)
        quarter = await wheel.push(PUSH)
        (lit,) = [at for at, lamp, level in rig.lamps[mark:] if lamp == "sens" and level]
        took.append((lit - quarter) / MS)
    return took


async def run() -> list[Figure]:
    """Everything on one rig."""
    rig = Rig(tables.table(TABLE))
    try:
        await rig.start(daemon=False)
        tell("  starts")
        started = await starts(rig)
        await rig.daemon.start()
        await rig.open(demo_of(TABLE).opening)
        wheel = Wheel(rig)
        tell("  lamps")
        lit = await lamps(rig, wheel)
        tell("  events")
        told = await events(rig)
        journal = (await rig.order("health", "technicien"))["data"]["journal"]
        tell("  load")
        turning, resting = await busy(rig, wheel)
        assert rig.daemon.process is not None
        memory = resident_mib(rig.daemon.process.pid)
    finally:
        await rig.close()
    return [
        Figure(
            what="start to ready",
            value=median(started),
            unit="s",
            aim="<= 1.5",
            how=f"process start to READY=1, median of {STARTS}, slowest {max(started):.2f} s",
        ),
        Figure(
            what="CPU while the wheel turns",
            value=turning,
            unit="% of a core",
            aim="<= 6",
            how=f"{RATE:,} edges/s for {LOAD_S:.0f} s by the line socket, table open",
        ),
        Figure(what="CPU at rest", value=resting, unit="% of a core", how=f"over {LOAD_S:.0f} s"),
        Figure(
            what="deciding byte to subscriber, p50",
            value=percentile(told, 0.5),
            unit="ms",
            aim="<= 25",
            how=f"{EVENTS} refused stakes from the keypad, each journalled, through Mosquitto",
        ),
        Figure(what="deciding byte to subscriber, p99", value=percentile(told, 0.99), unit="ms", aim="<= 25"),
        Figure(
            what="of this the synced commit, p50",
            value=journal["commit_p50_us"] / 1000,
            unit="ms",
            how=f"p99 {journal['commit_p99_us'] / 1000:.1f} ms, as the daemon measures it itself",
        ),
        Figure(
            what="lamp after the edge, p99",
            value=percentile(lit, 0.99),
            unit="ms",
            aim="<= 10",
            how=f"{LAMPS} wrong turns, quarter-turn edge to output record; p50 {percentile(lit, 0.5):.1f} ms",
        ),
        Figure(
            what="resident memory",
            value=memory,
            unit="MiB",
            aim="<= 60",
            how="after all of this",
        ),
    ]


def measure() -> list[Figure]:
    """All figures of the daemon."""
    return asyncio.run(run())
