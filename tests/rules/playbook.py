"""A playbook: facts go in by short verbs, decisions come out and are asked for by kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from rules.decisions import Announce, Breach, CoupEnded, Decision, Refused, Settled, StakeRefused
from rules.facts import (
    Announced,
    ChipPlaced,
    ChipRemoved,
    Chosen,
    Commanded,
    Direction,
    Fact,
    Origin,
    PocketRead,
    SpinStarted,
    TimerElapsed,
)
from rules.state import TableState
from rules.table import Table

D = TypeVar("D", bound=Decision)
MS = 1_000_000
CW, CCW = Direction.CW, Direction.CCW


@dataclass
class Play:
    """A table being played: every verb returns the decisions of its step and keeps them in `all`."""

    table: Table
    state: TableState = field(default_factory=TableState)
    now: int = 0
    last: tuple[Decision, ...] = ()
    all: list[Decision] = field(default_factory=list)

    def do(self, fact: Fact) -> tuple[Decision, ...]:
        self.state, self.last = self.table.step(self.state, fact)
        self.all.extend(self.last)
        return self.last

    def at(self, after_ms: int = 1) -> int:
        self.now += after_ms * MS
        return self.now

    def command(self, name: str, /, role: str = "comite", by: str = "Mme Roux", **args: Any) -> tuple[Decision, ...]:
        return self.do(Commanded(at_ns=self.at(), source="command", name=name, by=by, role=role, args=args))

    def say(self, code: str, source: str = "console", **times: int) -> tuple[Decision, ...]:
        return self.do(
            Announced(
                at_ns=times.get("at_ns") or self.at(), until_ns=times.get("until_ns", 0), source=source, code=code
            )
        )

    def spin(self, direction: Direction, *, found: bool = False) -> tuple[Decision, ...]:
        return self.do(SpinStarted(at_ns=self.at(), source="wheel", direction=direction, found=found))

    def chip(self, spot: str, cents: int, player: str = "J1", tableau: int = 1, **more: Any) -> tuple[Decision, ...]:
        at_ns = more.pop("at_ns", None) or self.at()
        return self.do(
            ChipPlaced(at_ns=at_ns, source="console", spot=spot, cents=cents, player=player, tableau=tableau, **more)
        )

    def take(self, spot: str, cents: int, player: str = "J1", **more: Any) -> tuple[Decision, ...]:
        return self.do(ChipRemoved(at_ns=self.at(), source="console", spot=spot, cents=cents, player=player, **more))

    def choose(self, what: str, value: str, player: str = "J1") -> tuple[Decision, ...]:
        return self.do(Chosen(at_ns=self.at(), source="console", player=player, what=what, value=value))

    def choose_at(self, tableau: int, what: str, value: str, player: str) -> tuple[Decision, ...]:
        at_ns = self.at()
        return self.do(Chosen(at_ns=at_ns, source="console", player=player, what=what, value=value, tableau=tableau))

    def read(self, value: int | str | None, source: str = "wheel_sensor", **more: Any) -> tuple[Decision, ...]:
        origin = Origin.PERSON if source == "console" else Origin.SENSOR
        return self.do(PocketRead(at_ns=self.at(), source=source, origin=origin, value=value, **more))

    def elapse(self, name: str) -> tuple[Decision, ...]:
        """The armed timer of this name is due."""
        due = next(timer.at_ns for timer in self.state.timers if timer.name == name)
        self.now = max(self.now, due)
        return self.do(TimerElapsed(at_ns=due, source="timer", name=name))

    def told(self, kind: type[D]) -> list[D]:
        """Decisions of this kind in the last step."""
        return [entry for entry in self.last if isinstance(entry, kind)]

    def one(self, kind: type[D]) -> D:
        found = self.told(kind)
        assert len(found) == 1, (kind.__name__, self.last)
        return found[0]

    def codes(self) -> list[str]:
        """Codes of what was announced, found or refused in the last step."""
        return [entry.code for entry in self.last if isinstance(entry, Announce | Breach | Refused | StakeRefused)]

    @property
    def results(self) -> list[CoupEnded]:
        return [entry for entry in self.all if isinstance(entry, CoupEnded)]

    @property
    def settled(self) -> list[Settled]:
        return [entry for entry in self.all if isinstance(entry, Settled)]
