"""W1-W8, E1: the wheel with pegs, physics README section 7. Every table has its own pegs, encoder, noise.

A *session* is one wheel with one decoder for each level of noise: all of them see the same spins, and learn from them.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from drivers.base import Edge
from drivers.encoder.decoder import Encoder as Decoder
from drivers.encoder.options import Options
from hil.devices.encoder import LEVELS, Encoder
from hil.devices.lines import Pulse
from hil.physics.motion import TURN, Motion, move_by_hand
from hil.physics.wheel import FortuneWheel, Launch, Spin, Touch
from rules.facts import (
    DeviceLost,
    Direction,
    Fact,
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
)
