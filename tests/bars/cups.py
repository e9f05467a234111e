"""B1, V1: the basin of the boule and the plate of the vingt-trois, physics README sections 3 and 7."""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from typing import Any, NamedTuple

from controller import config_file
from controller.config_check import from_data
from drivers.base import Edge
from drivers.cups.decoder import Cups, Options
from hil.devices.cups import LEVELS, CupSensors
from hil.devices.encoder import Encoder
from hil.devices.lines import Pulse
from hil.physics.basin import Visit, roll_ball
from hil.physics.motion import Motion
from hil.physics.plate import Plate
from rules.decisions import Breach, Severity, Status
from rules.facts import Direction, Fact, PocketRead, SpinStarted
from rules.table import Table
from tests.bars import Bar, spread
from tests.bench.figures import Figure, percentile
from tests.rules.playbook import CCW, CW, Play

SECOND = 1_000_000_000
NOISE = ("L0", "L1", "L2", "L3", "L4")
EVENING = 100
"""Throws of one basin, each taken out of its cup by the next."""


class Read(NamedTuple):
    """One throw: was its cup told, another one, none, and how long after the ball had come to rest."""

    level: str
    right: bool
    wrong: bool
    after_s: float
    unseen: bool
    """Told, but nobody saw the ball come: another source must agree."""


def evening(job: tuple[int, int, int]) -> list[Read]:
    """One basin after another, as seen at each level of noise."""
    seed, number, count = job
    rng = Random(f"basin {seed} {number}")
    cells = (9, 18, 36)[number % 3]
    throws = [roll_ball(cells, rng.uniform(2.2, 4.0) / 0.72, rng.choice((1, -1)), rng) for _ in range(count)]
    return [
        read for level in NOISE for read in _watched(level, cells, [(t.visits, t.settled_s) for t in throws], number)
    ]


def _watched(level: str, cells: int, throws: Sequence[tuple[list[Visit], float]], seed: int) -> Iterator[Read]:
    faults = LEVELS[level]
    sensors = CupSensors("cups", cells, faults=faults, seed=seed)
    lossless = CupSensors("cups", cells, faults=replace(faults, lost=0.0), seed=seed)
    decoder = Cups("cups", Options(cells=cells))
    decoder.opened(0)
    now, lies, seqs = SECOND, Visit(-1.0, -1.0, 0), dict.fromkeys(range(cells), 0)
    levels = dict.fromkeys(range(cells), 0)
    for visits, settled_s in throws:
        ends_s = settled_s + 6.0
        seen, true = (each.play([lies, *visits], now, ends_s) for each in (sensors, lossless))
        start, now = now, now + round(ends_s * SECOND)
        facts: list[Fact] = []
        for edge in _asked_each_second(seen, true, start, now, seqs, levels):
            facts += decoder.feed([edge])
        facts += decoder.tick(now)
        told = [fact for fact in facts if isinstance(fact, PocketRead)]
        right = {fact.cell for fact in told} == {visits[-1].cell}
        after_s = (told[0].at_ns - start) / SECOND - settled_s if right else 0.0
        yield Read(
            level,
            right,
            bool({fact.cell for fact in told} - {visits[-1].cell}),
            after_s,
            told[0].recovered if right else False,
        )
        lies = Visit(-1.0, 2.0, visits[-1].cell)


def _asked_each_second(
    seen: Sequence[Pulse], true: Sequence[Pulse], start_ns: int, until_ns: int, seqs: dict[int, int],
    levels: dict[int, int],
) -> list[Edge]:  # fmt: skip
    """The edges as the port hands them on: it asks for the levels each second, and makes up what it missed."""
    edges: list[Edge] = []
    asked: list[Edge] = []
    for pulse in seen:
        cell = int(pulse.line.rpartition(".")[2])
        seqs[cell] += 1 + pulse.gap
        edges.append(Edge(pulse.line, pulse.level, pulse.at_ns, seqs[cell]))
    stands = dict(levels)
    for at_ns in range(start_ns + SECOND, until_ns + SECOND, SECOND):
        stands |= {int(p.line.rpartition(".")[2]): p.level for p in true if at_ns - SECOND <= p.at_ns < at_ns}
        levels |= {int(e.line.rpartition(".")[2]): e.level for e in edges if at_ns - SECOND <= e.at_ns < at_ns}
        made_up = [cell for cell, level in stands.items() if level != levels[cell]]
        asked += [Edge(f"cups.{cell}", stands[cell], min(at_ns, until_ns - 1), 0) for cell in made_up]
        levels |= {cell: stands[cell] for cell in made_up}
    return sorted(edges + asked, key=lambda edge: edge.at_ns)


@functools.cache
def evenings(n: int, seed: int, workers: int) -> list[Read]:
    """All basins together."""
    counts = [min(EVENING, n - start) for start in range(0, n, EVENING)]
    return list(chain(*spread(evening, [(seed, k, count) for k, count in enumerate(counts)], workers)))


def cup(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    """B1."""
    reads = evenings(n, seed, workers)
    figures = []
    for levels, wrong, untold in ((NOISE[:2], "<= 0", "<= 0"), (NOISE[2:3], "<= 0", ""), (NOISE[3:], "", "")):
        these = [read for read in reads if read.level in levels]
        among = f"of {len(these):,} throws at {levels[0]}" + (f" to {levels[-1]}" if len(levels) > 1 else "")
        for what, faults, aim in (
            ("cup wrong", sum(read.wrong for read in these), wrong),
            ("cup wrong or not told", sum(not read.right for read in these), untold),
        ):
            figures.append(
                Figure(what=what, value=100 * faults / len(these), unit="%", aim=aim, how=f"{faults:,} {among}")
            )
        after = [read.after_s for read in these if read.right]
        bounds = (">= 0.5", "<= 1.6") if untold else ("", "")
        figures += [
            Figure(what="told at the earliest after the rest", value=min(after), unit="s", aim=bounds[0], how=among),
            Figure(what="told at the latest after the rest", value=max(after), unit="s", aim=bounds[1], how=among),
            Figure(
                what="told for a second source to confirm",
                value=100 * sum(read.unseen for read in these) / len(these),
                unit="%",
                how=f"the ball called nowhere before, {among}",
            ),
        ]
    return tuple(figures)


# --- V1: the plate, its crown, and the table that it belongs to ---


class Actuation(NamedTuple):
    """One coup of a vingt-trois: was the sense told right, and is the missing call flagged, and only that."""

    called: bool
    right_sense: bool
    flagged: bool
    held: bool
    after_s: float
    """From the beginning of the push to the start that is told."""


def plates(job: tuple[int, int, int]) -> list[Actuation]:
    """One table through an evening: the encoder sits on the crown, each actuation goes against the one before."""
    seed, number, count = job
    rng = Random(f"plate {seed} {number}")
    data = config_file.read_toml(config_file.shipped_tables()["vingt-trois"])
    data["devices"]["wheel"] |= {"counts_per_turn": 2000, "direction": "ccw"}
    config = from_data(data, "bar")
    device = config.devices["wheel"]
    decoder, crown = device.family.decoder("wheel", device.options), Encoder("wheel", counts_per_turn=2000, seed=seed)
    game, plate = Play(Table(config.game, config.house)), Plate()
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open")
    seqs: dict[str, int] = {}
    return [_actuated(game, decoder, crown, plate, (CW, CCW)[n % 2], rng, seqs) for n in range(count)]


def _actuated(
    game: Play, decoder: Any, crown: Encoder, plate: Plate, sense: Direction, rng: Random, seqs: dict[str, int]
) -> Actuation:
    game.now += 5 * SECOND
    if called := rng.random() < 0.5:
        game.say("rien_ne_va_plus")
    start_ns = game.now + round(rng.uniform(0.2, 3.0) * SECOND)
    whirl = plate.whirl(1 if sense is CW else -1, rng.uniform(6.0, 14.0), rng, push_s=rng.uniform(0.3, 0.8))
    motion = Motion(whirl.motion.times, array("d", (-angle for angle in whirl.motion.angles)))
    edges = []
    for pulse in crown.play(motion, start_ns):
        seqs[pulse.line] = seqs.get(pulse.line, 0) + 1 + pulse.gap
        edges.append(Edge(pulse.line, pulse.level, pulse.at_ns, seqs[pulse.line]))
    game.now = start_ns + round((motion.ends + 4) * SECOND)
    starts, flags = [], []
    for fact in decoder.feed(edges) + decoder.tick(game.now):
        told = game.do(fact)
        if isinstance(fact, SpinStarted):
            starts.append(fact)
            flags += [entry for entry in told if isinstance(entry, Breach) and entry.severity is Severity.HELD]
    for source in game.table.house.sources:
        game.read(None, source, cell=whirl.visits[-1].cell)
    status = game.results[-1].status
    if status is not Status.VALID:
        game.command("resolve", role="chef", **{"as": "valid", "why": "vu"})
    return Actuation(
        called=called,
        right_sense=[fact.direction for fact in starts] == [sense],
        flagged=[entry.code for entry in flags] == ["tirage_avant_rnvp"],
        held=status is Status.HELD,
        after_s=(starts[0].at_ns - start_ns) / SECOND if starts else math.inf,
    )


def start(n: int, seed: int, workers: int) -> tuple[Figure, ...]:
    """V1."""
    counts = [min(EVENING // 4, n - first) for first in range(0, n, EVENING // 4)]
    coups = list(chain(*spread(plates, [(seed, k, count) for k, count in enumerate(counts)], workers)))
    early, called = [c for c in coups if not c.called], [c for c in coups if c.called]
    return (
        Figure(
            what="start without rien ne va plus not flagged, or not held",
            value=sum(not (coup.flagged and coup.held) for coup in early),
            unit="coups",
            aim="<= 0",
            how=f"of {len(early)}",
        ),
        Figure(
            what="start after rien ne va plus flagged, or held",
            value=sum(coup.flagged or coup.held for coup in called),
            unit="coups",
            aim="<= 0",
            how=f"of {len(called)}",
        ),
        Figure(
            what="sense of the plate wrong, encoder on the crown",
            value=sum(not coup.right_sense for coup in coups),
            unit="coups",
            aim="<= 0",
            how=f"of {len(coups)}, both senses",
        ),
        Figure(
            what="told after the push begins, 99 %",
            value=percentile([coup.after_s for coup in coups], 0.99),
            unit="s",
            how="decided after 90 degrees",
        ),
    )


BARS = (
    Bar(id="B1", text="boule: the cup right, told 0.5 to 1.6 s after the rest", n=3000, measure=cup),
    Bar(
        id="V1",
        text="vingt-trois: a start that nobody called is flagged, the sense right",
        n=300,
        measure=start,
    ),
)
