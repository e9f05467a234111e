"""W1-W8, E1: the wheel with pegs, physics README section 7. Every table has its own pegs, encoder, noise.

A *session* is one wheel with one decoder for each level of noise: all of them see the same spins, and learn from them.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from drivers.base import Edge
from drivers.encoder.decoder import Encoder as Decoder
from drivers.encoder.options import Options
from drivers.encoder.runout import LEARNED
from hil.devices.encoder import LEVELS, Encoder
from hil.devices.lines import Pulse
from hil.physics.motion import TURN, Motion, move_by_hand
from hil.physics.wheel import FortuneWheel, Launch, Spin, Touch
from rules.facts import (
    DeviceLost,
    Direction,
    Doubtful,
    Fact,
    Overrun,
    SpinObstructed,
    SpinSlowed,
    SpinStarted,
    SpinStopped,
)
from tests.bars import Bar, spread
from tests.bench.figures import Figure

SECOND = 1_000_000_000
NOISE = ("L0", "L1", "L2", "L3", "L4")
SESSION = 25
"""Spins of one wheel in W1 to W6."""
EVENING = 100
"""Spins of one wheel in W7 and W8, of which the first are natural and teach the decoder."""
FREE = 20
"""Free spins of a commissioning, physics README section 8."""


class Watched(NamedTuple):
    """One spin as it was, and what was told of it; instants of the truth are those of the edges."""

    spin: Spin
    start_ns: int
    last_edge_ns: int
    """The last true edge that was not lost."""
    seen: list[int]
    """When the last edges of A and B were seen, true or not."""
    facts: list[Fact]

    def since(self, at_ns: int, truth_s: float) -> float:
        """Seconds from an instant of the truth to this one."""
        return (at_ns - self.start_ns) / SECOND - truth_s


class Table:
    """One wheel, one encoder on it, one decoder behind that."""

    def __init__(self, seed: str, level: str, ppr: int = 600, calibration_mdeg: int = 0) -> None:
        self.encoder = Encoder("wheel", counts_per_turn=4 * ppr, faults=LEVELS[level], seed=seed)
        options = Options(counts_per_turn=4 * ppr, cells=52, first_cell_mdeg=calibration_mdeg % 360_000)
        self.decoder = Decoder("wheel", options)
        self.decoder.opened(0)
        self.now_ns = SECOND
        self._seqs = {"wheel.a": 0, "wheel.b": 0, "wheel.index": 0}

    def watch(self, motion: Motion) -> tuple[int, int, list[int], list[Fact]]:
        """Start and edges of this motion, and what is told of it and of the quiet behind."""
        start_ns = self.now_ns
        pulses = self.encoder.play(motion, start_ns)
        seen = [pulse.at_ns for pulse in pulses[-50:] if pulse.line != "wheel.index"]
        facts = self.feed(pulses)
        self.now_ns += round(motion.ends * SECOND) + 4 * SECOND
        return start_ns, self.encoder.moved_ns, seen, facts + self.decoder.tick(self.now_ns)

    def feed(self, pulses: Sequence[Pulse]) -> list[Fact]:
        """These level changes, numbered as the kernel does."""
        facts: list[Fact] = []
        seqs, edges = self._seqs, []
        for at_ns, line, level, gap in pulses:
            seqs[line] = seq = seqs[line] + 1 + gap
            edges.append(Edge(line, level, at_ns, seq))
        for start in range(0, len(edges), 256):
            facts += self.decoder.feed(edges[start : start + 256])
        return facts


def turned_by_hand(wheel: FortuneWheel) -> Motion:
    """A slow turn and a bit, so that the index is found."""
    motion = Motion()
    motion.add(0.0, wheel.angle)
    move_by_hand(motion, wheel.angle, 1.1 * TURN, 12.0)
    wheel.place(motion.angles[-1])
    return motion


def launch(rng: Random, sense: int, *, twice: bool = False, touches: tuple[Touch, ...] = ()) -> Launch:
    """A croupier's launch: physics README section 6."""
    return Launch(
        sense=sense,
        speed=rng.uniform(2.5, 6.0),
        push_s=rng.uniform(0.4, 1.0),
        wind_up=max(0.0, rng.uniform(-0.1, 0.6)),
        first_share=rng.uniform(0.55, 0.8) if twice else 1.0,
        pause_s=rng.uniform(0.4, 0.9),
        touches=touches,
    )


def evening(
    seed: str, spins: Iterable[tuple[Launch, Random]], levels: Sequence[str], ppr: int, mdeg: int
) -> Iterator[dict[str, Watched]]:
    """Spin after spin of one wheel, as seen at each level of noise."""
    wheel = FortuneWheel(seed=seed)
    tables = {level: Table(f"{seed} {level}", level, ppr, mdeg) for level in levels}
    first = turned_by_hand(wheel)
    for table in tables.values():
        table.watch(first)
    for how, rng in spins:
        spin = wheel.spin(how, rng)
        yield {level: Watched(spin, *table.watch(spin.motion)) for level, table in tables.items()}


# --- W1 to W6: the same spins, asked different questions ---


def session(job: tuple[int, int, int]) -> Counter[str]:
    """Tally of one wheel: `question level`, the number of spins at fault."""
    seed, number, count = job
    rng = Random(f"session {seed} {number}")
    ppr, mdeg = rng.choice((360, 600)), rng.choice((-300, -150, 0, 150, 300))
    launches = [launch(rng, rng.choice((1, -1)), twice=n % 2 == 1) for n in range(count)]
    tally: Counter[str] = Counter()
    for how, seen in zip(
        launches, evening(f"{seed} {number}", [(how, rng) for how in launches], NOISE, ppr, mdeg), strict=True
    ):
        for level, watched in seen.items():
            tally.update(f"{question} {level}" for question in _faults(how, watched))
            tally[f"spins {level}"] += 1
    return tally


def _faults(how: Launch, watched: Watched) -> Iterator[str]:
    """The questions whose answer is wrong for this spin."""
    spin, facts = watched.spin, watched.facts
    starts = [fact for fact in facts if isinstance(fact, SpinStarted)]
    stops = [fact for fact in facts if isinstance(fact, SpinStopped)]
    slowed = [fact for fact in facts if isinstance(fact, SpinSlowed)]
    true_turns = spin.travel / TURN
    if len(stops) != 1:
        yield "turns"
    else:
        turns = stops[0].travel / stops[0].per_turn
        clear = abs(true_turns - round(true_turns)) > 0.01
        if abs(turns - true_turns) > 0.01 or (clear and math.floor(turns) != math.floor(true_turns)):
            yield "turns"
    sense = Direction.CW if how.sense > 0 else Direction.CCW
    if not starts or {fact.direction for fact in starts} | {fact.direction for fact in stops} != {sense}:
        yield "direction"
    lost = any(isinstance(fact, DeviceLost) for fact in facts)
    if (len(starts) > 1 and not lost) or len(stops) > 1:
        yield "rebound"
    if not all(0.3 <= watched.since(fact.at_ns, spin.released_s) <= 2.5 for fact in slowed) or len(slowed) != 1:
        yield "slowing"
    if any(fact.at_ns < watched.start_ns + spin.released_s * SECOND for fact in slowed):
        yield "slowing in the hand"
    if not stops or any(not _stop_in_time(fact.at_ns, watched) for fact in stops):
        yield "stop"
    told = stops[0] if len(stops) == 1 else None
    if told is None or told.cell != spin.gap:
        yield "cell"
        if told is not None and told.cell is not None and told.or_cell is None:
            yield "cell unflagged"
    elif told.or_cell is not None:
        yield "eye"


def _stop_in_time(at_ns: int, watched: Watched) -> bool:
    """Never before the last true edge and 1.5 s; never later than 2.5 s after the last that was seen."""
    last_seen_ns = max((seen_ns for seen_ns in watched.seen if seen_ns < at_ns), default=at_ns)
    return watched.last_edge_ns + 1.5 * SECOND <= at_ns <= last_seen_ns + 2.5 * SECOND


@functools.cache
def sessions(n: int, seed: int, workers: int) -> Counter[str]:
    """All sessions together; the spins are simulated once for every bar that asks of them."""
    counts = [min(SESSION, n - start) for start in range(0, n, SESSION)]
    return sum(spread(session, [(seed, k, count) for k, count in enumerate(counts)], workers), Counter())


def _share(tally: Counter[str], what: str, question: str, levels: Sequence[str], aim: str = "<= 0") -> Figure:
    spins = sum(tally[f"spins {level}"] for level in levels)
    wrong = sum(tally[f"{question} {level}"] for level in levels)
    how = f"{wrong:,} of {spins:,} spins at {levels[0]}" + (f" to {levels[-1]}" if len(levels) > 1 else "")
    return Figure(what=what, value=100 * wrong / spins, unit="%", aim=aim, how=how)


# --- W7 and W8: who touched the wheel? ---


class Kind(NamedTuple):
    """A kind of touch: what it is, its bounds, and how many in a hundred must be seen."""

    what: str
    newtons: tuple[float, float]
    seconds: tuple[float, float]
    at_share: tuple[float, float] = (0.25, 0.9)
    """Of the launch speed, when it begins; or ..."""
    at_rad_s: tuple[float, float] | None = None
    pushes: bool = False
    aim: str = ""
    by_the_stop: bool = False


KINDS = (
    Kind("2 N.s in 0.2 s", (10, 10), (0.2, 0.2), aim=">= 99"),
    Kind("5 N for 0.3 to 1 s", (5, 5), (0.3, 1.0), aim=">= 99"),
    Kind("10 N for 0.3 to 1 s", (10, 10), (0.3, 1.0), aim=">= 99"),
    Kind("hand of 20 to 60 N above 0.4 rad/s until the stop", (20, 60), (5, 5), at_rad_s=(0.4, 1.2), aim=">= 95",
         by_the_stop=True),
    Kind("hand of 20 to 60 N in the fast wheel until the stop", (20, 60), (5, 5), aim=">= 95", by_the_stop=True),
    Kind("hand at 0.15 to 0.7 rad/s", (20, 60), (5, 5), at_rad_s=(0.15, 0.7), by_the_stop=True),
    Kind("1 N.s in 0.2 s", (5, 5), (0.2, 0.2)),
    Kind("1.5 N.s in 0.2 s", (7.5, 7.5), (0.2, 0.2)),
    Kind("2 N for 0.3 to 1 s", (2, 2), (0.3, 1.0)),
    Kind("push of 10 N for 0.2 to 0.5 s", (10, 10), (0.2, 0.5), pushes=True),
)  # fmt: skip


def touched(job: tuple[int, int, int, int]) -> Counter[str]:
    """One wheel: free spins that teach the decoder, then `count` touches of kind `k` (-1: nobody touches)."""
    seed, k, number, count = job
    name = f"touch {seed} {k} {number}"
    rng = Random(name)
    tally: Counter[str] = Counter()
    hows = [launch(rng, rng.choice((1, -1))) for _ in range(FREE if k >= 0 else count)]
    for _ in range(count if k >= 0 else 0):
        hows.append(launch(rng, rng.choice((1, -1))))
        kind, speed = KINDS[k], hows[-1].speed
        share = rng.uniform(*kind.at_rad_s) / speed if kind.at_rad_s else rng.uniform(*kind.at_share)
        touch = Touch(
            newtons=rng.uniform(*kind.newtons), seconds=rng.uniform(*kind.seconds), at_share=share, pushes=kind.pushes
        )
        hows[-1] = replace(hows[-1], touches=(touch,))
    seen = evening(name, [(how, rng) for how in hows], ["L1"], 600, 0)
    for n, (how, watched) in enumerate(zip(hows, (each["L1"] for each in seen), strict=True)):
        told = [fact.at_ns for fact in watched.facts if isinstance(fact, SpinObstructed)]
        if not how.touches:
            tally["natural"] += 1
            tally["new"] += n < LEARNED
            tally["false"] += bool(told)
            tally["false new"] += bool(told) and n < LEARNED
            continue
        if watched.spin.touched_s is None:
            continue
        tally["touched"] += 1
        delays = [watched.since(at_ns, watched.spin.touched_s) for at_ns in told]
        tally["early"] += any(delay < 0 for delay in delays)
        tally["seen"] += any(delay >= 0 for delay in delays)
        tally["soon"] += any(0 <= delay <= 0.5 for delay in delays)
    return tally


def natural(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    counts = [min(EVENING, n - start) for start in range(0, n, EVENING)]
    tally = sum(spread(touched, [(seed, -1, k, count) for k, count in enumerate(counts)], workers), Counter())
    spins, false = tally["natural"], tally["false"]
    how = f"{false} of {spins:,} spins, of which {tally['false new']} among the {tally['new']} that teach the decoder"
    return (Figure(what="obstruction told that was none", value=100 * false / spins, unit="%", aim="<= 0.1", how=how),)


def touches(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    each = EVENING - FREE
    jobs = [(seed, k, start, min(each, n - start)) for k in range(len(KINDS)) for start in range(0, n, each)]
    done = spread(touched, jobs, workers)
    figures = []
    for k, kind in enumerate(KINDS):
        tally: Counter[str] = sum((part for job, part in zip(jobs, done, strict=True) if job[1] == k), Counter())
        good, when = ("seen", "by the stop") if kind.by_the_stop else ("soon", "in 0.5 s")
        figures.append(
            Figure(
                what=f"{kind.what}: seen {when}",
                value=100 * tally[good] / tally["touched"],
                unit="%",
                aim=kind.aim,
                how=f"{tally[good]} of {tally['touched']}; {tally['seen']} by the stop",
            )
        )
    return tuple(figures)


# --- E1: the encoder is at fault ---


def fault(job: tuple[int, int]) -> Counter[str]:
    """One spin of each: a channel that dies, a hole in the numbering, an index where none is due."""
    seed, number = job
    name = f"fault {seed} {number}"
    tally: Counter[str] = Counter()
    for what in ("dead", "hole", "index"):
        rng = Random(f"{name} {what}")
        wheel, table = FortuneWheel(seed=name), Table(name, "L0", rng.choice((360, 600)))
        table.watch(turned_by_hand(wheel))
        spin = wheel.spin(launch(rng, rng.choice((1, -1))), rng)
        start_ns = table.now_ns
        pulses = table.encoder.play(spin.motion, start_ns)
        at_s = rng.uniform(spin.forward_s + 0.3, spin.released_s + 0.6 * (spin.rest_s - spin.released_s))
        while abs((spin.motion.at(at_s) + 1) % TURN - 1) < 0.12:  # there the index is due
            at_s += 0.02
        at_ns = start_ns + round(at_s * SECOND)
        line = f"wheel.{rng.choice('ab')}"
        if what == "dead":
            pulses = [pulse for pulse in pulses if pulse.line != line or pulse.at_ns < at_ns]
        elif what == "hole":
            first = next(n for n, pulse in enumerate(pulses) if pulse.at_ns >= at_ns and pulse.line == line)
            pulses[first] = pulses[first]._replace(gap=rng.randint(1, 40))
        else:
            false = Pulse(at_ns, "wheel.index", 1), Pulse(at_ns + 2_000_000, "wheel.index", 0)
            pulses = sorted([*pulses, *false])
        facts = table.feed(pulses) + table.decoder.tick(pulses[-1].at_ns + 4 * SECOND)
        after = [fact for fact in facts if fact.at_ns >= at_ns]
        if what == "dead":
            lost = next((fact.at_ns for fact in after if isinstance(fact, DeviceLost)), None)
            if lost is not None:
                gone = abs(spin.motion.at((lost - start_ns) / SECOND) - spin.motion.at(at_s))
                tally[what] += gone <= math.radians(15)
        elif what == "hole":
            tally[what] += any(isinstance(fact, Overrun) for fact in after)
        else:
            tally[what] += any(isinstance(fact, Doubtful) and fact.why == "index_fault" for fact in after)
        tally["runs"] += 1
    return tally


def faults(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    tally: Counter[str] = sum(spread(fault, [(seed, k) for k in range(n)], workers), Counter())
    return tuple(
        Figure(what=what, value=100 * tally[key] / n, unit="%", aim=">= 100", how=f"{tally[key]} of {n} spins")
        for key, what in (
            ("dead", "a channel that dies is told within 15 degrees"),
            ("hole", "a hole in the numbering is told"),
            ("index", "an index where none is due is told"),
        )
    )


# --- the bars ---


def turns(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    tally = sessions(n, seed, workers)
    return (
        _share(tally, "turns wrong", "turns", NOISE[:2]),
        _share(tally, "turns wrong or not told", "turns", NOISE[2:3], "<= 0.5"),
        _share(tally, "turns wrong or not told", "turns", NOISE[3:], ""),
    )


def direction(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    return (_share(sessions(n, seed, workers), "direction wrong", "direction", NOISE[:4]),)


def rebound(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    return (_share(sessions(n, seed, workers), "second start or stop in one spin", "rebound", NOISE[:4]),)


def slowing(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    tally = sessions(n, seed, workers)
    return (
        _share(tally, "slowing not told 0.3 to 2.5 s after the release", "slowing", NOISE[:3]),
        _share(tally, "slowing told in the hand", "slowing in the hand", NOISE),
    )


def stop(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    return (_share(sessions(n, seed, workers), "stop not told 1.5 to 2.5 s after the last edge", "stop", NOISE[:3]),)


def cell(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    tally = sessions(n, seed, workers)
    return (
        _share(tally, "cell wrong", "cell", NOISE[:2]),
        _share(tally, "cell wrong and not flagged", "cell unflagged", NOISE),
        _share(tally, "cell wrong or not told, flagged", "cell", NOISE[2:], ""),
        _share(tally, "right cell left to the eye", "eye", NOISE[:2], ""),
    )


BARS = (
    Bar(id="W1", text="turns: error at most 0.01, whole turns exact", n=1000, measure=turns),
    Bar(id="W2", text="direction right, wind-up up to 0.6 rad, both senses", n=1000, measure=direction),
    Bar(id="W3", text="the rebound is no reversal, no spin, no turn", n=1000, measure=rebound),
    Bar(id="W4", text="slowing after the release, never between two pushes", n=1000, measure=slowing),
    Bar(id="W5", text="stop 1.5 to 2.5 s after the last edge", n=1000, measure=stop),
    Bar(id="W6", text="cell at 360 pulses or more, calibration within 0.3 degrees", n=1000, measure=cell),
    Bar(id="W7", text="obstruction: false alarms below 0.1 %", n=4000, measure=natural),
    Bar(
        id="W8",
        text="a touch of 2 N.s, or of 5 N for 0.3 s, in the fast wheel",
        n=400,
        measure=touches,
    ),
    Bar(id="E1", text="dead channel, hole in the numbering, false index", n=100, measure=faults),
)
