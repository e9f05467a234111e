"""Bets as data: kinds of bet, the spots of a layout, and the stakes that lie on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from rules.words import text

On = tuple[int | str, ...]
"""The numbers (or `"00"`) that a bet covers, as the layout prints them; empty where the type says it all."""


VALUE: Final = "valeur"
"""Chips and plaques that bear their own value, as a reader or a keypad names them."""
PLAQUE: Final = "plaque_vingt"
"""A plaque worth twenty chips of the player's colour, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetKind:
    """One row of a game's table of bets: `pays` is the net gain per unit staked (R-GEN-01)."""

    type: str
    pays: Fraction
    max_multiple: int
    """Maximum as a multiple of the table minimum; where the house chooses it, the highest that it may choose."""
    least_max_multiple: int = 0
    """The lowest multiple that the house may choose; 0 = the text fixes the maximum."""
    limited_with: str = ""
    """Name of the bets that have one maximum together (`chances_simples`); empty = this type has its own."""
    requirement: str
    limit_requirement: str

    @property
    def limit(self) -> str:
        """Name under which the maximum of this bet may be asked for, beside its type."""
        return self.limited_with or self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place of the layout where chips can lie: `plein:17`, `cheval:11-14`, `rouge`."""

    id: str
    type: str
    on: On
    wins: frozenset[int | str]
    """Results that win here."""
    row: str = ""
    """Row of the table of bets, where a type has several (pleins of vingt-trois); empty = the type's only one."""


def spot_id(bet_type: str, on: Iterable[int | str] = ()) -> str:
    """The id of the spot for a bet: its type, then `:` and the covered numbers in layout order."""
    numbers = "-".join(str(n) for n in on)
    return f"{bet_type}:{numbers}" if numbers else bet_type


@dataclass(frozen=True, slots=True)
class Layout:
    """All bets of a game and all spots of one tableau."""

    kinds: Mapping[str, BetKind]
    """Rows of the table of bets: by type, or by `Spot.row` where a type has several."""
    spots: Mapping[str, Spot]
    by_bet: Mapping[tuple[str, frozenset[int | str]], Spot] = field(init=False, compare=False, repr=False)
    """Spots by type and set of numbers: the order in which a bet names its numbers is free."""

    def __post_init__(self) -> None:
        index = {(spot.type, frozenset(spot.on)): spot for spot in self.spots.values()}
        object.__setattr__(self, "by_bet", MappingProxyType(index))

    def kind(self, spot: Spot) -> BetKind:
        """The row of the table of bets that says what this spot pays."""
        return self.kinds[spot.row or spot.type]

    def refusal(self, stake: Stake, requirement: str) -> Refusal | None:
        """Why this stake may not stand: the layout has no such combination, as the requirement says."""
        if self.find(stake.type, stake.on) is not None:
            return None
        bet = " ".join(str(part) for part in (stake.type, *stake.on))
        sentence = text("combinaison_inexistante", bet=bet)
        return Refusal(code="combinaison_inexistante", requirement=requirement, text=sentence)

    def find(self, bet_type: str, on: Iterable[int | str]) -> Spot | None:
        """The spot for a bet, or None when the layout has no such combination."""
        return self.by_bet.get((bet_type, frozenset(on)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Chips put down at one time, known to lie between `at_ns` and `until_ns`."""

    at_ns: int
    until_ns: int
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """Chips of one player on one spot of one tableau."""

    id: str
    player: str
    type: str
    on: On = ()
    cents: int
    """The stake as placed (its initial value when it is carried)."""
    tableau: int = 1
    placed: tuple[Placement, ...] = ()
    """What was put down since the last close, oldest first: a call told late may have come before some of it."""
    person: bool = False
    """Entered by a person: the amount is meant to be complete, so the minimum is judged at once."""
    doubt: str = ""
    """Why nobody knows whether it was in time; empty = accepted."""
    carried: str = ""
    """What keeps the stake across coups (`prison`); empty = free."""
    zeros: int = 0
    """How many zeros a carried stake has lived through."""
    choices: tuple[str, ...] = ()
    """The player's decisions, oldest first."""
    chip: str = ""
    """What chips were put down last, where it is known: a colour, or `valeur`, `plaque_vingt` (`rules.series`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Chips of one colour, given to one player; what they are worth is told by the marker in the colour's box."""

    player: str
    colour: str
    cents: int
    """What one chip is worth."""
    held: bool = True
    """False once it was given back; remembered to the end of the seance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLaw:
    """What a game says about colour chips; all else is in `rules.series`."""

    colours: tuple[str, ...]
    """Every colour that this table may give out."""
    boxes: int
    """How many markers can be shown, so how many series given out, at once."""
    boxes_requirement: str
    value: str
    """Requirement behind the value of a chip: from the minimum to the maximum on a plein."""
    change: str
    """Requirement that a series keeps its value."""
    new_colour: bool = False
    """Another value goes with another colour."""
    mark: str = ""
    """The mark of this table's chips; empty = not followed."""
    mark_requirement: str = ""
    plaques: bool = False
    """Plaques of twenty chips are used."""
    money_on: frozenset[str] = frozenset()
    """Bets on which value chips and plaques may lie; empty = all."""
    money_requirement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a bet may not stand: stable code, requirement of the spec, French text."""

    code: str
    requirement: str
    text: str
