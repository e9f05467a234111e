"""Tables with a wheel, being played: the verbs of a wheel on top of the playbook, and the two houses."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from rules import game as games
from rules.decisions import Announce, Breach, CoupEnded, Ignored, Line, Phase, Settled, Signal, StakeDoubtful
from rules.facts import (
    BallDropped,
    BallLaunched,
    BallLost,
    Direction,
    DropDue,
    Origin,
    SpinObstructed,
    SpinSlowed,
    SpinStopped,
)
from rules.game import House, RnvpMode
from rules.games.boule import BouleOptions
from rules.games.roue_de_la_chance import RoueOptions
from rules.games.roulette.variants import AmericaineOptions, AnglaiseOptions, FrancaiseOptions
from rules.table import Table
from tests.rules.playbook import CW, MS, Play

CONFIG = tomllib.loads((Path(__file__).parents[2] / "config/tables/roue-de-la-chance.toml").read_text("utf-8"))
SEGMENTS = tuple(CONFIG["options"]["segments"])
ROUGE = SEGMENTS.index("rouge")
PER_TURN = 520
"""Counts of a turn in these tests: ten a cell."""

ROUE = House(
    declared_minimum_cents=200,
    sources=("wheel",),
    draw_devices=("wheel",),
    draw_max_ms=60_000,
    options=RoueOptions(segments=SEGMENTS),
)
BOULE = House(
    declared_minimum_cents=100,
    tableaux=2,
    sources=("cups", "console"),
    draw_devices=("cups",),
    options=BouleOptions(max_plein=100, max_chances_simples=500, cuvettes=(1, 2, 3, 4, 5, 6, 7, 8, 9) * 2),
)
FRANCAISE = House(
    declared_minimum_cents=500,
    tableaux=2,
    sources=("wheel_sensor", "console"),
    draw_devices=("wheel", "wheel_sensor"),
    options=FrancaiseOptions(),
)


class Wheel(Play):
    """A wheel and its people."""

    def slow(self, after_ms: int = 1000) -> None:
        self.do(SpinSlowed(at_ns=self.at(after_ms), source="wheel"))

    def touch(self, why: str = "brake") -> None:
        self.do(SpinObstructed(at_ns=self.at(), source="wheel", why=why))

    def stop(
        self, travel: int, cell: int | None = 0, or_cell: int | None = None, direction: Direction = Direction.CW
    ) -> None:
        self.do(
            SpinStopped(
                at_ns=self.at(9000),
                source="wheel",
                direction=direction,
                travel=travel,
                per_turn=PER_TURN,
                cell=cell,
                or_cell=or_cell,
            )
        )

    def ball(self, direction: Direction) -> None:
        self.do(BallLaunched(at_ns=self.at(), source="wheel_sensor", direction=direction))

    def due(self, after_ms: int = 10_000) -> None:
        at_ns = self.at(after_ms)
        self.do(DropDue(at_ns=at_ns, source="wheel_sensor", drop_at_ns=at_ns + 5000 * MS))

    def drop(self) -> None:
        self.do(BallDropped(at_ns=self.at(5000), source="wheel_sensor"))

    def lose_ball(self, why: str = "not_detected") -> None:
        self.do(BallLost(at_ns=self.at(), source="wheel_sensor", why=why))

    def call(self, after_ms: int = 1) -> None:
        """The croupier calls rien ne va plus."""
        self.say("rien_ne_va_plus", at_ns=self.at(after_ms))

    def chance(self, value: int | str, source: str = "wheel_sensor") -> None:
        """Both sources of a roulette read the pocket."""
        self.read(value)
        self.read(value, "console")

    @property
    def signals(self) -> list[tuple[str, bool]]:
        return [(entry.lamp, entry.on) for entry in self.told(Signal)]

    @property
    def lit(self) -> set[str]:
        """Lamps that are on, by every signal so far."""
        on: set[str] = set()
        for entry in self.all:
            if isinstance(entry, Signal):
                (on.add if entry.on else on.discard)(entry.lamp)
        return on

    @property
    def reasons(self) -> list[str]:
        """Codes that stand against the running or last ended coup."""
        assert self.state.coup is not None
        return [breach.code for breach in self.state.coup.breaches]

    @property
    def ignored(self) -> bool:
        return any(isinstance(entry, Ignored) for entry in self.last)

    def said(self, code: str) -> bool:
        return any(isinstance(entry, Announce) and entry.code == code for entry in self.last)

    def ended(self) -> CoupEnded:
        return self.one(CoupEnded)

    def breach(self) -> Breach:
        return self.one(Breach)

    def lines(self) -> list[Line]:
        """Lines of the last settlement, over all tableaux."""
        return [line for settled in self.told(Settled) for line in settled.lines]

    def paid(self) -> list[tuple[object, object, object]]:
        """Type, status and net of the last settlement's lines."""
        return [(line.type, line.status, line.net) for line in self.lines()]

    def is_in(self, phase: Phase) -> bool:
        return self.state.phase is phase


def table(game_id: str, house: House, **changes: Any) -> Wheel:
    return Wheel(Table(games.load(game_id), replace(house, **changes)))


def roue(**changes: Any) -> Wheel:
    """A roue that is open, its first coup begun."""
    game = table("roue_de_la_chance", ROUE, **changes)
    game.command("attest", what="verification")
    game.command("attest", what="verification", role="croupier", by="M. Bon")
    game.command("open")
    return game


def boule(**changes: Any) -> Wheel:
    """A boule for twelve players that is open, its first coup begun."""
    game = table("boule", BOULE, **changes)
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open")
    return game


def francaise(**changes: Any) -> Wheel:
    """A roulette française that is open, its first coup begun."""
    game = table("roulette_francaise", FRANCAISE, **changes)
    game.command("open")
    return game


MODES = (RnvpMode.CROUPIER, RnvpMode.SIGNAL, RnvpMode.AUTOMATIQUE)
PERSON = Origin.PERSON


def faits(game: Wheel, cylinder: Any = CW) -> Wheel:
    """The ball runs, rien ne va plus was called in time."""
    game.spin(cylinder)
    game.ball(cylinder.opposite)
    game.due()
    game.call(500)
    return game


def played(game: Wheel, number: int, cylinder: Any = CW) -> Wheel:
    """A whole coup that both sources have read."""
    faits(game, cylinder).drop()
    game.chance(number)
    return game


def spun(game: Wheel, cell: int = ROUGE) -> Wheel:
    """A whole draw of the roue."""
    game.spin(CW)
    game.slow()
    game.call()
    game.stop(4 * PER_TURN, cell=cell)
    return game


def doubtful(game: Wheel, spot: str, cents: int, player: str = "J2") -> str:
    """Chips of which nobody can say whether they preceded the call."""
    assert game.state.coup is not None
    assert game.state.coup.closed_at_ns is not None
    closed = game.state.coup.closed_at_ns
    game.chip(spot, cents, player=player, at_ns=closed - 1, until_ns=closed + 1)
    return game.one(StakeDoubtful).id


def lying(game: Wheel) -> list[tuple[str, str, int, str]]:
    return [(stake.player, stake.type, stake.cents, stake.carried) for stake in game.state.stakes]


def americaine(**options: Any) -> Wheel:
    """A roulette américaine that is open; chips are told by the keypad."""
    house = replace(FRANCAISE, tableaux=1, options=AmericaineOptions(**options))
    game = table("roulette_americaine", house)
    game.command("open")
    return game


def anglaise(**options: Any) -> Wheel:
    """A roulette anglaise that is open."""
    house = replace(FRANCAISE, tableaux=1, options=AnglaiseOptions(**options))
    game = table("roulette_anglaise", house)
    game.command("attest", what="series", role="chef")
    game.command("open")
    return game
