"""How fast the law settles: in the daemon's process, and through `tablectl settle`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from rules import game
from rules.bets import Stake
from tests.bench.figures import Figure

PLAYERS, BETS, CASES = 8, 20, 1000
SECONDS = 3.0


def full_table(rng: Random, layout_spots: list[tuple[str, tuple[int | str, ...]]]) -> list[Stake]:
    """Eight players with twenty different bets each."""
    return [
        Stake(id=f"{player}.{n}", player=f"J{player}", type=kind, on=on, cents=500 * rng.randint(1, 20))
        for player in range(1, PLAYERS + 1)
        for n, (kind, on) in enumerate(rng.sample(layout_spots, BETS), 1)
    ]


def settlements() -> float:
    """Settlements a second of a full roulette table, one outcome after the other."""
    roulette = game.load("roulette_francaise")
    options = roulette.options()
    spots = [(spot.type, spot.on) for spot in roulette.layout(options).spots.values()]
    stakes = full_table(Random("full table"), spots)
    outcomes = [roulette.read(number, options) for number in range(37)]
    coup = roulette.coup(no=1)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        for outcome in outcomes:
            assert outcome is not None
            settled = roulette.settle(stakes, outcome, coup, options)
            assert len(settled.lines) == len(stakes)
        done += len(outcomes)
    return done / (time.perf_counter() - began)


def cases(rng: Random) -> Iterator[dict[str, object]]:
    """Cases of the settle format, like those that an auditor sends: a dozen bets each."""
    roulette = game.load("roulette_francaise")
    spots = [(spot.type, list(spot.on)) for spot in roulette.layout(roulette.options()).spots.values()]
    for _ in range(CASES):
        bets = [
            {"id": f"b{n}", "player": f"J{n % 3}", "type": kind, "on": on, "stake": 100 * rng.randint(5, 50)}
            for n, (kind, on) in enumerate(rng.sample(spots, 12))
        ]
        yield {
            "game": "roulette_francaise",
            "kind": "settlement",
            "bets": bets,
            "outcome": {"numbers": [rng.randint(1, 36)]},
        }


def settled_by_the_program() -> float:
    """Seconds for all cases in one call of `tablectl settle`, start of the program included."""
    asked = json.dumps(list(cases(Random("cases"))))
    program = Path(sys.executable).with_name("tablectl")
    began = time.perf_counter()
    answered = subprocess.run([program, "settle"], input=asked, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    answers = json.loads(answered.stdout)
    assert len(answers) == CASES
    assert all(answer["net"] for answer in answers)
    return seconds


def measure() -> list[Figure]:
    """Both figures."""
    return [
        Figure(
            what="settlements of a full roulette table",
            value=settlements(),
            unit="/s",
            aim=">= 300",
            how=f"{PLAYERS} players × {BETS} bets, all 37 numbers in turn",
        ),
        Figure(
            what=f"`tablectl settle` of {CASES:,} cases",
            value=settled_by_the_program(),
            unit="s",
            aim="<= 3",
            how="one call, 12 bets a case, start of the program included",
        ),
    ]
