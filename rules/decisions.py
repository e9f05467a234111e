"""Decisions: what the law answers to a fact, in game-neutral words.

A decision is data for the rooms outside: the journal keeps it, lamps obey it, the floor is told. French text comes from
the one catalogue in `rules.words`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final, Literal

from rules.facts import Direction


class Phase(StrEnum):
    """Where the table stands (`state.phase` on the wire)."""

    FERME = "ferme"
    VERIFIEE = "verifiee"
    MISES_OUVERTES = "mises_ouvertes"
    LANCE = "lance"
    JEUX_FAITS = "jeux_faits"
    RESULTAT = "resultat"
    CHOIX = "choix"
    REGLEMENT = "reglement"
    LITIGE = "litige"


class Severity(StrEnum):
    """What a breach does to its coup; a coup's status is its worst breach."""

    NOTED = "noted"
    HELD = "held"
    VOID = "void"


class Status(StrEnum):
    """Status of a finished coup."""

    VALID = "valid"
    VOID = "void"
    HELD = "held"


OnRestart = Literal["fire", "restart", "drop"]
"""What becomes of an armed timer after a reboot: due at once, armed anew for its full length, or forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Root of all decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(Decision):
    """The table is now in `phase` (coup number 0 while closed)."""

    phase: Phase
    coup: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BetsClosed(Decision):
    """Stakes closed at `at_ns`; `how`: `croupier`, `automatique`, or `absent` (nobody called, the draw closed them)."""

    at_ns: int
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeAccepted(Decision):
    """Stake `id` now stands at `cents` in all (0 = withdrawn)."""

    id: str
    player: str
    tableau: int
    type: str
    on: tuple[int | str, ...]
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeRefused(Decision):
    """These chips do not play: to be pushed back."""

    code: str
    requirement: str
    text: str
    player: str
    tableau: int
    spot: str
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeDoubtful(Decision):
    """Nobody can say whether the stake was in time: it stays out of the settlement until it is resolved."""

    id: str
    why: str
    player: str
    tableau: int
    spot: str
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce(Decision):
    """To be said aloud or shown: `text` in French as the law words it."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal(Decision):
    """Switch a lamp or buzzer by its role name; acted on before the journal."""

    lamp: str
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Decision):
    """A player must choose about a stake."""

    player: str
    tableau: int
    what: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach(Decision):
    """A requirement was broken in this coup."""

    code: str
    requirement: str
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoupEnded(Decision):
    """A coup has its status; told again when it is resolved (`resolution`) or a source contradicts it (`revision`)."""

    coup: int
    partie: int
    seance: int
    kind: Literal["first", "resolution", "revision"]
    status: Status
    reasons: tuple[Breach, ...]
    outcome: Mapping[str, object] | None
    direction: Direction | None = None
    travel_counts: int | None = None
    per_turn: int | None = None
    times: Mapping[str, int]
    """Monotonic instants of the coup by name (`started`, `slowed`, `drop_due`, `closed`, `ended`, ...)."""
    sources: Mapping[str, object]
    """What each source read."""
    recovered: bool = False
    manual: Mapping[str, object] | None = None
    """Who decided by hand: `{"by": [...], "why": ...}` (article 67-15)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one stake becomes: `returned` and `net` are None while pending; net excludes the stake (win +, loss -)."""

    id: str
    player: str
    tableau: int
    type: str
    on: tuple[int | str, ...]
    stake: int
    returned: Fraction | None
    net: Fraction | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Money that changes its owner, in cents (a Fraction only where the text leaves a fraction of a cent)."""

    source: str
    target: str
    cents: Fraction
    why: str
    tableau: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Decision):
    """A coup is settled on one tableau; `order` are groups of winning stake ids, free inside a group."""

    coup: int
    tableau: int
    lines: tuple[Line, ...]
    transfers: tuple[Transfer, ...]
    order: tuple[tuple[str, ...], ...]
    player_order: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer(Decision):
    """Arm (or re-arm) a timer; when due it comes back as TimerElapsed."""

    name: str
    at_ns: int
    on_restart: OnRestart


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTimer(Decision):
    """Disarm a timer."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRaised(Decision):
    """Something needs a person; `name` identifies the alarm until it is cleared."""

    name: str
    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmCleared(Decision):
    """The cause of an alarm is gone."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Decision):
    """A command was understood and may not be obeyed now."""

    command: str
    code: str
    text: str
    requirement: str = ""
    """What the text of law wants instead; empty where it has no part in the refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored(Decision):
    """The fact changes nothing; why."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell(Decision):
    """A message for another controller of the casino."""

    peer: str
    body: Mapping[str, object]


DECISIONS: Final[Mapping[str, type[Decision]]] = {
    kind.__name__: kind
    for kind in (
        PhaseChanged, BetsClosed, StakeAccepted, StakeRefused, StakeDoubtful, Announce, Signal, Offer, Breach,
        CoupEnded, Settled, SetTimer, CancelTimer, AlarmRaised, AlarmCleared, Refused, Ignored, Tell,
    )
}  # fmt: skip
"""Every decision by its name, as the trace format spells it."""
