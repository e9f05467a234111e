"""The state of a table: everything that must survive a power cut, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rules.bets import Series, Stake
from rules.decisions import Decision, OnRestart, Phase
from rules.facts import BallLaunched, Direction, SpinStarted
from rules.game import Coup, Outcome
from rules.limits import Limits

SCHEMA: Final = 1
"""Number of the snapshot format; a snapshot of another schema is refused, never guessed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """Somebody signed that something was checked."""

    what: str
    role: str
    by: str
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """A timer that the law has set."""

    name: str
    at_ns: int
    length_ns: int
    on_restart: OnRestart


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A stake left out of its coup's settlement until a person decides (`cmd/resolve`)."""

    stake: Stake
    coup: int
    outcome: Outcome | None = None
    """The outcome of its coup once there is one."""
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Everything the law remembers about a table."""

    phase: Phase = Phase.FERME
    seance: int = 0
    """Number of the seance; it changes with the first opening after an end of seance."""
    partie: int = 0
    coup_no: int = 0
    seance_open: bool = False
    interrupted: bool = False
    attestations: tuple[Attestation, ...] = ()
    limits: Limits | None = None
    """In force; kept while closed in mid-seance, so that the regime of the minimum can be checked."""
    public_options: Mapping[str, object] = field(default_factory=dict)
    last_direction: Direction | None = None
    """Sense of the last actuation of the wheel, whatever became of it (R-GEN-07)."""
    waiting_turn: SpinStarted | None = None
    """An actuation seen while the result before was not yet decided or chosen about: it belongs to the next coup."""
    waiting_ball: BallLaunched | None = None
    """A ball launched meanwhile, likewise."""
    coup: Coup | None = None
    """The running, or just finished, or held coup."""
    previous: Coup | None = None
    """The paid coup before, while the running one is neither launched nor closed: a source may still contradict it."""
    stakes: tuple[Stake, ...] = ()
    stakes_made: int = 0
    """How many stake ids were given out."""
    before: tuple[Stake, ...] = ()
    """The stakes as they stood when the last paid coup was settled, for a settlement after a revision."""
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Choices still open, by stake id."""
    doubts: tuple[Doubt, ...] = ()
    timers: tuple[Armed, ...] = ()
    lost: tuple[str, ...] = ()
    """Devices that are lost now."""
    series: tuple[Series, ...] = ()
    """Colour chips given out in this seance, with the value that their marker shows."""


class Step(NamedTuple):
    """What `Table.step` answers."""

    state: TableState
    decisions: tuple[Decision, ...] = ()
