"""R1 to R7: the ball on the rim and in its pocket, physics README section 7. Every table has its own track and spreads.

A *table* is one rim with one decoder that learns from throw to throw, while friction drifts; its first throws are left
out. Throws are simulated once for each arrangement of beams and noise, and asked different questions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from drivers.base import Edge
from drivers.rim.decoder import Rim as Decoder
from drivers.rim.options import Options
from drivers.rotor_head.decoder import Options as HeadOptions
from drivers.rotor_head.decoder import RotorHead as HeadDecoder
from hil.devices.lines import Pulse
from hil.devices.rim import LEVELS, Rim
from hil.devices.rotor_head import LEVELS as HEAD_LEVELS
from hil.devices.rotor_head import RotorHead
from hil.physics.basin import Visit
from hil.physics.motion import TURN, Motion
from hil.physics.roulette import RimModel, Rotor, Throw, throw_ball
from rules.facts import BallDropped, BallLaunched, BallLost, Direction, Doubtful, DropDue, Fact, PocketRead
from tests.bars import Bar, spread
from tests.bench.figures import Figure, percentile

SECOND = 1_000_000_000
FIRST = 10
"""Throws of a table that are left out."""
EVENING = 50
"""Throws of a table that count."""
TWO = (0, 120)
FOUR = (0, 90, 180, 270)


class Seen(NamedTuple):
    """One throw: how it was, and what was told of it in seconds of the same clock."""

    turns: float
    lead_s: float | None
    """From the first DropDue to the true drop."""
    seen_s: float | None
    """From the true drop until it was told."""
    senses: tuple[bool, ...]
    """Of each BallLaunched: was it right."""
    lost: bool
    lost_after: bool
    """Lost was told behind a drop that had been told: something else came by."""


class Table:
    """One rim, and the decoder behind it."""

    def __init__(self, seed: str, beams: tuple[int, ...], noise: str) -> None:
        self.rng = Random(f"table {seed}")
        rng = self.rng
        self.model = RimModel(
            air=rng.uniform(0.006, 0.013),
            rolling=rng.uniform(0.04, 0.09),
            leaves=rng.uniform(2.6, 3.6),
            tilt_rad=rng.uniform(0.0, 0.0026),
            tilt_at=rng.uniform(0.0, 6.28),
        )
        self.drift = 1.0
        self.rim = Rim("rim", beams, faults=LEVELS[noise], seed=seed)
        self.decoder = Decoder("rim", Options(beams_deg=beams))
        self.decoder.opened(0)
        self.now_ns = SECOND

    def throw(self, speed: float) -> Seen:
        """One throw, watched until well after the drop."""
        self.drift = min(1.15, max(0.85, self.drift * (1 + self.rng.gauss(0.0, 0.01))))
        model = self.model
        worn = RimModel(
            air=model.air * self.drift,
            rolling=model.rolling * self.drift,
            leaves=model.leaves,
            tilt_rad=model.tilt_rad,
            tilt_at=model.tilt_at,
        )
        sense = self.rng.choice((1, -1))
        throw = throw_ball(speed, sense, self.rng, worn)
        start_ns = self.now_ns
        facts = self.decoder.feed(edges(self.rim.play(throw, start_ns, after_s=15.0)))
        self.now_ns += round((throw.dropped_s + 60) * SECOND)
        return seen(throw, start_ns, facts + self.decoder.tick(self.now_ns))


def edges(pulses: Iterable[Pulse]) -> list[Edge]:
    """What the chip's task hands on."""
    return [Edge(pulse.line, pulse.level, pulse.at_ns) for pulse in pulses]


def seen(throw: Throw, start_ns: int, facts: Sequence[Fact]) -> Seen:
    """What was told of this throw against its truth."""
    drop_ns = start_ns + round(throw.dropped_s * SECOND)
    due = [fact.at_ns for fact in facts if isinstance(fact, DropDue)]
    drops = [fact.until_ns for fact in facts if isinstance(fact, BallDropped)]
    lost = [fact.at_ns for fact in facts if isinstance(fact, BallLost)]
    right = Direction.CW if throw.sense > 0 else Direction.CCW
    return Seen(
        turns=throw.turns,
        lead_s=(drop_ns - due[0]) / SECOND if due else None,
        seen_s=(drops[0] - drop_ns) / SECOND if drops else None,
        senses=tuple(fact.direction is right for fact in facts if isinstance(fact, BallLaunched)),
        lost=bool(lost),
        lost_after=bool(drops and lost and lost[-1] > drops[0]),
    )


def evening(job: tuple[str, tuple[int, ...], str, int]) -> list[Seen]:
    """The throws of one table that count."""
    seed, beams, noise, count = job
    table = Table(seed, beams, noise)
    told = []
    for _ in range(FIRST + count):
        weak = table.rng.random() < 0.03
        told.append(table.throw(table.rng.uniform(3.6, 6.5) if weak else table.rng.uniform(7.0, 16.0)))
    return told[FIRST:]


@functools.cache
def throws(beams: tuple[int, ...], noise: str, n: int, seed: int, workers: int) -> tuple[Seen, ...]:
    """All tables together."""
    counts = [min(EVENING, n - start) for start in range(0, n, EVENING)]
    jobs = [(f"{seed} {k}", beams, noise, count) for k, count in enumerate(counts)]
    return tuple(one for table in spread(evening, jobs, workers) for one in table)


def _share(what: str, wrong: int, of: int, aim: str) -> Figure:
    return Figure(what=what, value=100 * wrong / max(of, 1), unit="%", aim=aim, how=f"{wrong:,} of {of:,} throws")


def _long(all_throws: Sequence[Seen]) -> list[Seen]:
    return [one for one in all_throws if one.turns >= 5]


def before_drop(noise: str, n: int, seed: int, workers: int) -> Figure:
    long = _long(throws(TWO, noise, n, seed, workers))
    late = sum(one.lead_s is None or one.lead_s <= 0 for one in long)
    return _share("drop not due before it, 5 turns or more", late, len(long), "<= 0.1")


def rnvp(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    return (before_drop("L0", n, seed, workers),)


def lead(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    long = _long(throws(TWO, "L0", n, seed, workers))
    leads = sorted(one.lead_s for one in long if one.lead_s is not None)
    count = len(leads)
    return (
        _share("lead outside 3.2 to 6.0 s", sum(not 3.2 <= lead <= 6.0 for lead in leads), count, "<= 2"),
        _share("lead under 2.5 s", sum(lead < 2.5 for lead in leads), count, "<= 0.1"),
        _share("lead over 8 s", sum(lead > 8 for lead in leads), count, "<= 0.5"),
        Figure(what="median lead", value=leads[count // 2], unit="s", aim="", how="asked: 4.5 s"),
        Figure(what="least lead", value=leads[0], unit="s", aim="", how=f"of {count:,} throws"),
    )


def weak(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    jobs = [(f"weak {seed} {k}", min(10, n - start)) for k, start in enumerate(range(0, n, 10))]
    told = [one for table in spread(weak_throws, jobs, workers) for one in table]
    silent = sum(one.lead_s is None or not one.lost for one in told)
    late = sum(one.lead_s is not None and one.lead_s < 0 for one in told)
    return (
        _share("throws under 3 turns: drop or loss not told", silent, len(told), "<= 0"),
        _share("throws under 3 turns: due after the drop", late, len(told), ""),
    )


def weak_throws(job: tuple[str, int]) -> list[Seen]:
    """Throws that end before their third turn, at a table that has learned."""
    seed, count = job
    table = Table(seed, TWO, "L0")
    for _ in range(FIRST):
        table.throw(table.rng.uniform(7.0, 16.0))
    found: list[Seen] = []
    while len(found) < count:
        one = table.throw(table.rng.uniform(1.02, 1.6) * table.model.leaves)
        if 0.7 < one.turns < 3:
            found.append(one)
    return found


def sense(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    figures = []
    for beams in ((0, 60), (0, 90), TWO):
        told = [one for one in throws(beams, "L0", n, seed, workers) if one.turns >= 1]  # it passed two beams
        wrong = sum(not one.senses or not all(one.senses) for one in told)
        figures.append(_share(f"sense wrong or not told, beams {beams[1]} degrees apart", wrong, len(told), "<= 0.1"))
    return tuple(figures)


def drop(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    figures = []
    for beams, aim in ((TWO, 2.1), (FOUR, 0.8)):
        told = _long(throws(beams, "L0", n, seed, workers))
        after = sorted(one.seen_s if one.seen_s is not None else 99.0 for one in told)
        how = f"{len(told):,} throws, {len(beams)} beams, half of them within {after[len(after) // 2]:.2f} s"
        figures += [
            Figure(
                what="99 % of drops seen within",
                value=percentile(after, 0.99),
                unit="s",
                aim=f"<= {aim}",
                how=how,
            ),
            _share("drop told before it", sum(value < 0 for value in after), len(told), ""),
        ]
    return tuple(figures)


def noisy(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    long = _long(throws(TWO, "L3", n, seed, workers))
    early = sum(one.lead_s is not None and one.lead_s > 8 for one in long)
    return (
        before_drop("L3", n, seed, workers),
        _share("lead over 8 s", early, len(long), "<= 3"),
        _share("lost told behind the drop", sum(one.lost_after for one in long), len(long), ""),
    )


def pocket(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    """Half of the readings as a head should be, half of them as a bad one."""
    figures = []
    for noise in ("L0", "L3"):
        jobs = [(f"{seed} {noise} {start}", noise, min(EVENING, n // 2 - start)) for start in range(0, n // 2, EVENING)]
        told = [one for part in spread(readings, jobs, workers) for one in part]
        count = len(told)
        took = sorted(one.seconds for one in told if one.seconds is not None)
        figures += [
            _share(f"pocket wrong at {noise}", sum(one.wrong for one in told), count, "<= 0"),
            _share(f"undecided within 20 s at {noise}: to people", sum(one.undecided for one in told), count, "<= 2.5"),
            Figure(
                what="read after the ball lies", value=percentile(took, 0.5), unit="s", how=f"half of them, {noise}"
            ),
        ]
    return tuple(figures)


class Reading(NamedTuple):
    """One ball that came to rest, and what the head made of it."""

    wrong: bool
    undecided: bool
    seconds: float | None


def readings(job: tuple[str, str, int]) -> list[Reading]:
    """Balls of one head: rotors of both senses, 15 to 40 turns a minute; each hops about before it lies."""
    seed, noise, count = job
    rng = Random(f"readings {seed}")
    pockets = rng.choice((37, 38))
    head = RotorHead("head", pockets, faults=HEAD_LEVELS[noise], seed=seed)
    told = []
    for _ in range(count):
        rotor, motion, cell = Rotor(angle=rng.uniform(0, TURN)), Motion(), rng.randrange(pockets)
        rotor.speed = rng.choice((1, -1)) * rng.uniform(15, 40) * TURN / 60
        motion.add(0.0, rotor.angle)
        rotor.coast(motion, 0.0, 30.0, step=0.1)
        throw = throw_ball(5.0, 1, rng)
        time, rests = 1.0, 1.0 + throw.settled_s - throw.on_rotor_s
        visits = []
        while time < rests:
            leaves = min(rests, time + rng.uniform(0.15, 0.5))
            visits.append(Visit(time, leaves, rng.randrange(pockets)))
            time = leaves
        visits.append(Visit(rests, math.inf, cell))
        decoder = HeadDecoder("head", HeadOptions(pockets=pockets))
        facts = decoder.feed(edges(head.play(motion, SECOND, visits))) + decoder.tick(99 * SECOND)
        cells = [fact for fact in facts if isinstance(fact, PocketRead)]
        told.append(
            Reading(
                wrong=any(fact.cell != cell for fact in cells),
                undecided=not cells or any(isinstance(fact, Doubtful) for fact in facts),
                seconds=cells[0].at_ns / SECOND - 1 - rests if cells else None,
            )
        )
    return told


BARS = (
    Bar(id="R1", text="rien ne va plus is due before the drop, two beams, 10 throws learned", n=3000, measure=rnvp),
    Bar(id="R2", text="the lead is 4.5 s", n=3000, measure=lead),
    Bar(
        id="R3",
        text="a throw of less than 3 turns (0.7 at least: it passes a beam) is due and lost, never silent",
        n=100,
        measure=weak,
    ),
    Bar(id="R4", text="the sense of the ball, two beams 60 to 120 degrees apart", n=3000, measure=sense),
    Bar(id="R5", text="the drop is seen, two beams and four", n=3000, measure=drop),
    Bar(id="R6", text="the pocket: two equal turns, or left to people", n=3000, measure=pocket),
    Bar(id="R7", text="2 % missed, 5 % split, 0.1/s false: R1, and hardly early", n=3000, measure=noisy),
)
