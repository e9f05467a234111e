"""Facts: everything that can happen at a table, in game-neutral words.

A fact is what a sensor, a person, a timer, a peer or chance did, with the interval of time in which it did it. A fact
is never refused: what it means is the law's business (`rules.table`). This module is a leaf: it imports nothing of the
house, so that drivers can speak to the law without knowing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Direction(StrEnum):
    """Sense of rotation seen from the players' side (wheel) or from above (cylinder)."""

    CW = "cw"
    CCW = "ccw"

    @property
    def opposite(self) -> Direction:
        """The other sense."""
        return Direction.CCW if self is Direction.CW else Direction.CW


class Origin(StrEnum):
    """Who vouches for a fact."""

    SENSOR = "sensor"
    PERSON = "person"
    TIMER = "timer"
    PEER = "peer"
    CHANCE = "chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something happened between `at_ns` and `until_ns` (CLOCK_MONOTONIC); `source` is a role name of the config."""

    at_ns: int
    source: str
    until_ns: int = 0
    """End of the uncertainty; never before `at_ns` (0 = known exactly)."""
    origin: Origin = Origin.SENSOR

    def __post_init__(self) -> None:
        if self.until_ns < self.at_ns:
            object.__setattr__(self, "until_ns", self.at_ns)


# --- things that turn ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinStarted(Fact):
    """Somebody actuated the wheel or cylinder in this sense (decided after 90 degrees of travel)."""

    direction: Direction
    found: bool = False
    """It turned already when the watch began: nobody saw this start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinSlowed(Fact):
    """The wheel has begun to slow; nobody pushes it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinObstructed(Fact):
    """Something braked or pushed the turning wheel; `why` is the detector's code (`brake`, `push`, `late`)."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinStopped(Fact):
    """The wheel is at rest and its marker too.

    `travel` and `per_turn` are integer counts: forward travel from the last reversal before the launch to the furthest
    point. `cell` is None while the position is unknown; `or_cell` is the other candidate when only the eye can tell.
    """

    direction: Direction
    travel: int
    per_turn: int
    cell: int | None = None
    or_cell: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BallLaunched(Fact):
    """The ball runs on the rim in this sense; told again when the sense turns out to be another."""

    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDue(Fact):
    """The ball is about to drop (now = `at_ns`), expected to leave the rim at `drop_at_ns`."""

    drop_at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BallDropped(Fact):
    """The ball has left the rim, somewhere on the `arc_deg` degrees clockwise of `arc_from_deg` where that is known."""

    arc_from_deg: int | None = None
    arc_deg: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BallLost(Fact):
    """The ball is not where it must be (never launched, launch failed, flown off)."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PocketRead(Fact):
    """A source read the winning value: a number, `"00"`, or a colour; `cell` is its place where the source knows it."""

    value: int | str | None
    """None: the source knows only the cell."""
    cell: int | None = None
    recovered: bool = False
    """True when the reading itself was missed and reconstructed, or what led to it was not seen: another must agree."""


# --- dice and shakers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShakeStarted(Fact):
    """The shaker began to move the dice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShakeEnded(Fact):
    """The dice are quiet again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BellClosed(Fact):
    """The opaque bell covers the dice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BellLifted(Fact):
    """The opaque bell was lifted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiceRead(Fact):
    """Faces of the dice; `flat` is False when one leans, is stacked or broken."""

    values: tuple[int, ...]
    flat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrowSeen(Fact):
    """A throw by hand: did it reach the wall, was it irregular."""

    wall: bool
    irregular: bool = False


# --- cards -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CardDrawn(Fact):
    """The `n`-th card left the shoe; `card` is None when it could not be read."""

    card: str | None
    uid: str
    face: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTurned(Fact):
    """A card was turned face up."""

    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCardSeen(Fact):
    """The stop card appeared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShoeChanged(Fact):
    """Another shoe is in place."""

    uid: str


# --- covers, chips, people -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LidOpened(Fact):
    """The lockable lid (or a service cover) was opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LidClosed(Fact):
    """The lockable lid (or a service cover) was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipPlaced(Fact):
    """Chips worth `cents` were put on `spot` (an id of the layout) for `player` (`-`: nobody knows whose they are).

    `jetons`: how many, where the source counts colour chips and not money (`cents` is then 0). `chip`: what they are,
    where it tells (`rules.series`).
    """

    spot: str
    cents: int
    player: str
    chip: str = ""
    tableau: int = 1
    jetons: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipRemoved(Fact):
    """Chips worth `cents` (or so many `jetons`) were taken from `spot`."""

    spot: str
    cents: int
    player: str
    chip: str = ""
    tableau: int = 1
    jetons: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn(Fact):
    """Chance or a machine drew `value` for `what`."""

    what: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced(Fact):
    """A person at the table said `code` (`rien_ne_va_plus`, `faites_vos_jeux`, `coup_nul`, ...)."""

    code: str
    by: str = ""
    origin: Origin = Origin.PERSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Fact):
    """A player decided `value` about `what` (a stake's id, or an offer's name for all his stakes)."""

    player: str
    what: str
    value: str
    tableau: int = 1
    origin: Origin = Origin.PERSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded(Fact):
    """An authorised command: who may give it was checked before it became a fact."""

    name: str
    by: str
    role: str
    args: Mapping[str, object]
    origin: Origin = Origin.PERSON


# --- the instruments themselves --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLost(Fact):
    """A device fell silent, was unplugged, or was not observed for a while (`why`)."""

    device: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBack(Fact):
    """A lost device works again."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun(Fact):
    """`lost` inputs of a device are known to be missing."""

    device: str
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubtful(Fact):
    """A device works but cannot be trusted fully for the reason `why`."""

    device: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerElapsed(Fact):
    """A timer that the law set is due; `at_ns` is its due time, not the moment somebody looked."""

    name: str
    origin: Origin = Origin.TIMER


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Fact):
    """Another controller of the casino said something."""

    peer: str
    body: Mapping[str, object]
    origin: Origin = Origin.PEER


FACTS: Final[Mapping[str, type[Fact]]] = {
    kind.__name__: kind
    for kind in (
        SpinStarted, SpinSlowed, SpinObstructed, SpinStopped, BallLaunched, DropDue, BallDropped, BallLost, PocketRead,
        ShakeStarted, ShakeEnded, BellClosed, BellLifted, DiceRead, ThrowSeen,
        CardDrawn, CardTurned, StopCardSeen, ShoeChanged,
        LidOpened, LidClosed, ChipPlaced, ChipRemoved, Drawn, Announced, Chosen, Commanded,
        DeviceLost, DeviceBack, Overrun, Doubtful, TimerElapsed, Told,
    )
}  # fmt: skip
"""Every fact by its name, as the trace format spells it."""
