"""The desk: the working copy of a table during one step, and the few verbs that everything else is made of.

It lives only inside `Table.step`: seen from outside, the step stays a pure function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rules.bets import Layout
from rules.decisions import (
    AlarmCleared,
    AlarmRaised,
    Announce,
    Breach,
    CancelTimer,
    Decision,
    Ignored,
    OnRestart,
    Phase,
    PhaseChanged,
    Refused,
    SetTimer,
    Severity,
    Signal,
    Status,
)
from rules.facts import Fact
from rules.game import Coup, Found, Game, House, Needed
from rules.state import Armed, TableState
from rules.words import text

MS: Final = 1_000_000
"""Nanoseconds in a millisecond."""

WORST: Final = (Severity.VOID, Severity.HELD, Severity.NOTED)
STATUS_OF: Final[Mapping[Severity, Status]] = {
    Severity.VOID: Status.VOID,
    Severity.HELD: Status.HELD,
    Severity.NOTED: Status.VALID,
}


@dataclass(slots=True)
class Desk:
    """State as it stands so far in this step, and the decisions taken."""

    game: Game
    house: House
    layout: Layout
    state: TableState
    fact: Fact
    out: list[Decision] = field(default_factory=list)

    @property
    def coup(self) -> Coup:
        """The coup; callers have made sure that there is one."""
        assert self.state.coup is not None
        return self.state.coup

    @property
    def needs(self) -> tuple[Needed, ...]:
        """The attestations that this table needs, with the public options as they stand."""
        return self.game.needs(self.house, self.state.public_options)

    def say(self, *decisions: Decision) -> None:
        """Decide."""
        self.out.extend(decisions)

    def ignore(self, why: str) -> None:
        """The fact changes nothing, for the reason with this code."""
        self.say(Ignored(why=text(why)))

    def set(self, **changes: Any) -> None:
        """Change the state."""
        self.state = replace(self.state, **changes)

    def set_coup(self, **changes: Any) -> None:
        """Change the running coup."""
        self.set(coup=replace(self.coup, **changes))

    def go(self, phase: Phase) -> None:
        """Move to a phase, telling it once."""
        if self.state.phase is not phase:
            self.set(phase=phase)
            self.say(PhaseChanged(phase=phase, coup=self.state.coup.no if self.state.coup else 0))

    def found(self, breach: Found) -> None:
        """Add a breach to the coup, once per code at its worst severity; the house may want noted ones held."""
        severity = breach.severity
        if severity is Severity.NOTED and breach.code in self.house.raise_to_held:
            severity = Severity.HELD
        known = {entry.code: entry for entry in self.coup.breaches}
        before = known.get(breach.code)
        if before is not None and WORST.index(before.severity) <= WORST.index(severity):
            return
        entry = Breach(
            code=breach.code,
            requirement=breach.requirement,
            severity=severity,
            text=text(breach.code, **breach.args),
        )
        known[breach.code] = entry
        self.set_coup(breaches=tuple(known.values()))
        self.say(entry)

    def status(self) -> Status:
        """Status of the coup by its worst breach."""
        worst = min((WORST.index(entry.severity) for entry in self.coup.breaches), default=len(WORST) - 1)
        return STATUS_OF[WORST[worst]]

    def announce(self, code: str, **values: object) -> None:
        """Have a sentence said or shown."""
        self.say(Announce(code=code, text=text(code, **values)))

    def refuse(self, command: str, code: str, **values: object) -> None:
        """Do not obey a command."""
        self.say(Refused(command=command, code=code, text=text(code, **values)))

    def signal(self, lamp: str, *, on: bool) -> None:
        """Switch a lamp."""
        self.say(Signal(lamp=lamp, on=on))

    def quench(self) -> None:
        """Switch off the lamps that the game lit for a draw that is over."""
        for lamp in self.coup.lit:
            self.signal(lamp, on=False)
        self.set_coup(lit=())

    def arm(self, name: str, after_ns: int, on_restart: OnRestart) -> None:
        """Arm a timer of the table's own, counted from the fact being heard."""
        self.timer(SetTimer(name=name, at_ns=self.fact.at_ns + after_ns, on_restart=on_restart))

    def timer(self, decision: SetTimer) -> None:
        """Arm or re-arm a timer."""
        length = max(0, decision.at_ns - self.fact.at_ns)
        armed = Armed(name=decision.name, at_ns=decision.at_ns, length_ns=length, on_restart=decision.on_restart)
        self.set(timers=(*(t for t in self.state.timers if t.name != decision.name), armed))
        self.say(decision)

    def disarm(self, *names: str) -> None:
        """Forget these timers where they are armed."""
        for name in names:
            if any(t.name == name for t in self.state.timers):
                self.set(timers=tuple(t for t in self.state.timers if t.name != name))
                self.say(CancelTimer(name=name))

    def alarm(self, name: str, code: str, **values: object) -> None:
        """Ask for a person."""
        self.say(AlarmRaised(name=name, code=code, text=text(code, **values)))

    def clear_alarm(self, name: str) -> None:
        """Say that the cause of an alarm is gone."""
        self.say(AlarmCleared(name=name))

    def mark(self, name: str, at_ns: int) -> None:
        """Remember an instant of the coup."""
        self.set_coup(times={**self.coup.times, name: at_ns})
