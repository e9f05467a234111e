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
from tests.rules.outcomes import OUTCOMES, found, plain_options

PLAYERS, BETS, CASES = 8, 20, 1000
SECONDS = 1.0
GAMES = ("boule", "vingt_trois", "roue_de_la_chance", "roulette_francaise", "roulette_americaine", "roulette_anglaise")


def bets(rng: Random, game_id: str, number: int) -> list[tuple[str, list[int | str]]]:
    """So many bets of a game, all different where its layout has that many."""
    spots = [(spot.type, list(spot.on)) for spot in game.load(game_id).layout(None).spots.values()]
    return [*rng.sample(spots, min(number, len(spots))), *rng.choices(spots, k=max(0, number - len(spots)))]


def full_table(game_id: str) -> list[Stake]:
    """Eight players with twenty bets each."""
    rng = Random(f"full table, {game_id}")
    return [
        Stake(id=f"{player}.{n}", player=f"J{player}", type=kind, on=tuple(on), cents=500 * rng.randint(1, 20))
        for player in range(1, PLAYERS + 1)
        for n, (kind, on) in enumerate(bets(rng, game_id, BETS), 1)
    ]


def settlements(game_id: str) -> float:
    """Settlements a second of a full table, one outcome after the other."""
    law, stakes = game.load(game_id), full_table(game_id)
    options, outcomes, coup = plain_options(game_id), found(game_id), law.coup(no=1)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        for outcome in outcomes:
            settled = law.settle(stakes, outcome, coup, options)
            assert len(settled.lines) == len(stakes)
        done += len(outcomes)
    return done / (time.perf_counter() - began)


def cases(rng: Random) -> Iterator[dict[str, object]]:
    """Cases of the settle format, like those that an auditor sends: the games in turn, a dozen bets each."""
    for place in range(CASES):
        game_id = GAMES[place % len(GAMES)]
        asked = [
            {"id": f"b{n}", "player": f"J{n % 3}", "type": kind, "on": on, "stake": 100 * rng.randint(5, 50)}
            for n, (kind, on) in enumerate(bets(rng, game_id, 12))
        ]
        outcome = rng.choice(OUTCOMES[game_id])
        yield {"game": game_id, "kind": "settlement", "config": {"min": 100}, "bets": asked, "outcome": outcome}


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
    """A figure a game, and one of the program."""
    return [
        *(
            Figure(
                what=f"settlements of a full table, {game_id.replace('_', ' ')}",
                value=settlements(game_id),
                unit="/s",
                aim=">= 300",
                how=f"{PLAYERS} players × {BETS} bets, every outcome in turn",
            )
            for game_id in GAMES
        ),
        Figure(
            what=f"`tablectl settle` of {CASES:,} cases",
            value=settled_by_the_program(),
            unit="s",
            aim="<= 3",
            how="one call, the games in turn, 12 bets a case, start of the program included",
        ),
    ]
