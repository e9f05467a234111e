"""What a game is: a value that answers for its own coup, and the words in which it answers.

The table (`rules.table`) owns everything that games share. It hands a game the facts that the game hears; the game
answers with its changed coup and with effects, which the table carries out in order. A game never touches the seance,
the stakes or the direction memory itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from rules.bets import Layout, Refusal, SeriesLaw, Stake
from rules.decisions import Breach, Decision, Phase, Severity
from rules.facts import Direction, Fact, Origin, PocketRead
from rules.limits import Limits
from rules.settlement import Settlement

if TYPE_CHECKING:
    from rules.cases import Case

Outcome = Mapping[str, object]
"""The result of a coup with the keys of the settle format (`number`, `colour`, ...) plus `chances`."""


class RnvpMode(StrEnum):
    """Who closes the bets."""

    CROUPIER = "croupier"
    """The croupier calls, the controller checks the moment."""
    SIGNAL = "signal"
    """The controller signals the moment, the croupier acknowledges by calling."""
    AUTOMATIQUE = "automatique"
    """The controller closes the bets itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the house has fixed for this table in its configuration; `options` is the game's own part."""

    declared_minimum_cents: int
    tableaux: int = 1
    rien_ne_va_plus: RnvpMode = RnvpMode.CROUPIER
    rnvp_tolerance_ms: int = 1000
    """A call this near its due moment is on time."""
    rnvp_late_max_ms: int = 2500
    """A call later than this holds the coup (R-GEN-08)."""
    sources: tuple[str, ...] = ()
    """Sources whose readings must agree before a coup is valid; the first is the one that decides."""
    agree_within_ms: int = 3000
    draw_devices: tuple[str, ...] = ()
    """Devices without which a draw cannot be vouched for."""
    draw_max_ms: int = 120_000
    """A draw without result after this time is held."""
    choice_max_ms: int = 60_000
    """A player who has not chosen by then is taken to have chosen the default of the text."""
    raise_to_held: tuple[str, ...] = ()
    """Codes of noted breaches that this house wants held."""
    max_players: int | None = None
    options: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one source read for the coup; `value` is what sources must agree on."""

    source: str
    value: int | str
    outcome: Outcome
    origin: Origin
    at_ns: int
    recovered: bool = False
    or_value: int | str | None = None
    or_outcome: Outcome | None = None
    """The other candidate when only the eye can tell."""

    @staticmethod
    def told(fact: PocketRead, value: int | str, outcome: Outcome) -> Reading:
        """What a source told, with what it means."""
        return Reading(
            source=fact.source,
            value=value,
            outcome=outcome,
            origin=fact.origin,
            at_ns=fact.at_ns,
            recovered=fact.recovered,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coup:
    """One coup as every game knows it; a game adds its own fields in a subclass."""

    no: int
    last: bool = False
    """Announced as the last coup of the seance."""
    launched: bool = False
    """The draw is running: from here on its instruments must not fail."""
    closed_at_ns: int | None = None
    closed_until_ns: int | None = None
    closed_how: str = ""
    direction: Direction | None = None
    travel: int | None = None
    per_turn: int | None = None
    breaches: tuple[Breach, ...] = ()
    readings: tuple[Reading, ...] = ()
    outcome: Outcome | None = None
    manual: Mapping[str, object] | None = None
    times: Mapping[str, int] = field(default_factory=dict)
    step: str = ""
    """The game's own word for where the coup stands (`state.step`)."""
    lit: tuple[str, ...] = ()
    """Lamps that the game has switched on for this draw; the table switches them off when the draw is over."""
    memory: Mapping[str, object] = field(default_factory=dict)
    """What the game carries on from coup to coup of a partie (who launched last)."""


def outlasting(coup: Coup, house: House) -> tuple[Breach, ...]:
    """Breaches that a new launch does not heal: those that the law only notes, also where this house holds them."""
    return tuple(b for b in coup.breaches if b.severity is Severity.NOTED or b.code in house.raise_to_held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a game may look at beside its coup and the fact."""

    house: House
    phase: Phase
    last_direction: Direction | None
    """Sense of the actuation before the one being heard."""
    public_options: Mapping[str, object] = field(default_factory=dict)
    """What the house has decided for the seance."""


# --- effects: how a game answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """The table moves to this phase."""

    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Bets are closed as of this interval."""

    at_ns: int
    until_ns: int
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopen:
    """Bets are open again in the same coup (relaunch)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """The wheel was actuated in this sense: the memory keeps it, whatever becomes of the coup (R-GEN-07)."""

    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A requirement was broken; the text comes from `rules.words` with `args`."""

    code: str
    requirement: str
    severity: Severity
    args: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A source has read the result; the table decides when the sources agree."""

    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Annul:
    """The draw is over without a usable result: the coup ends now with its worst breach."""

    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """The launch is no coup (stopped before rien ne va plus): same coup, bets open, breaches forgotten."""

    code: str
    args: Mapping[str, object] = field(default_factory=dict)


Effect = Go | Close | Reopen | Turned | Found | Read | Annul | Abandon | Decision


@dataclass(frozen=True, slots=True)
class Heard:
    """A game's answer to a fact: its coup afterwards and what the table shall do, in order."""

    coup: Coup
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """An attestation that the table needs before `when`."""

    what: str
    roles: tuple[str, ...]
    """One signature of each of these roles."""
    when: Literal["open", "raise", "close", "reopen"]
    """`raise`: before an opening above the declared minimum."""
    requirement: str
    each_partie: bool = False
    """Needed again after each closing, not only once a seance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicOption:
    """What the house decides by `cmd/options` and tells in `state`; forgotten at the end of the seance."""

    fits: Callable[[object], bool]
    """Is this a value that may be decided."""
    allowed: str
    """Code of the sentence that says which values fit."""
    requirement: str
    needed: bool = False
    """The table does not open before it is decided."""
    in_seance: bool = False
    """It may be decided while the seance runs; otherwise before its opening only."""
    says: Mapping[bool, str] = field(default_factory=dict)
    """Code of the sentence that tells people what a yes or a no means."""


def yes_or_no(value: object) -> bool:
    """Fits a public option that is true or false."""
    return isinstance(value, bool)


def groups_of_players(value: object) -> bool:
    """Fits a public option that is a list of groups of at least two players, nobody in two of them."""
    if not isinstance(value, list | tuple) or any(not isinstance(group, list | tuple) for group in value):
        return False
    players = [player for group in value for player in group]
    named = all(isinstance(player, str) and player for player in players)
    return named and len(set(players)) == len(players) and all(len(group) > 1 for group in value)


def always(*needs: Needed) -> Callable[[House, Mapping[str, object]], tuple[Needed, ...]]:
    """Attestations that every table of a game needs, whatever its options."""

    def needs_of(house: House, public_options: Mapping[str, object]) -> tuple[Needed, ...]:
        del house, public_options
        return needs

    return needs_of


def no_offers(stakes: Sequence[Stake], outcome: Outcome, coup: Coup) -> Mapping[str, tuple[str, ...]]:
    """For games in which nobody has to choose after the result."""
    del stakes, outcome, coup
    return {}


def no_series(options: Any) -> SeriesLaw | None:
    """For games without colour chips."""
    del options
    return None


def nothing_beside(
    stake: Stake, others: Sequence[Stake], limits: Limits | None, house: House
) -> Refusal | Found | None:
    """For games in which the stakes of a player do not bind one another."""
    del stake, others, limits, house
    return None


def no_options(case: Case) -> None:
    """For games whose bets are the same whatever the house has fixed."""
    del case


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A game as a value. Functions are pure and total: they never raise on any fact, stake or outcome of their game."""

    id: str
    coup: type[Coup]
    options: type[Any]
    """Frozen dataclass of the game's house options; raises ValueError on values the text forbids."""
    hears: frozenset[type[Fact]]
    says: frozenset[str]
    """Codes of `Announced` that the game hears."""
    begins: frozenset[str] = frozenset()
    """Those among them that begin the next coup while the one before is being paid."""
    timers: frozenset[str] = frozenset()
    """Names of its own timers."""
    lamps: frozenset[str] = frozenset()
    """Lamps that it switches, beside those of the table (`rules.table.LAMPS`)."""
    phases: frozenset[Phase]
    layout: Callable[[Any], Layout]
    """options -> layout of one tableau."""
    limits: Callable[[Layout, House, int, Mapping[str, int]], Limits | Refusal]
    """layout, house, minimum in force (cents), maxima asked for by bet type (empty: the text's) -> limits."""
    minimum_change: tuple[Literal["seance", "reopen"], str]
    """When the minimum may change after the opening, at the next seance only or by closing and reopening, and the
    requirement that says so."""
    needs: Callable[[House, Mapping[str, object]], tuple[Needed, ...]]
    """house, public options in force -> the attestations that this table needs (`always` where nothing decides)."""
    public_options: Mapping[str, PublicOption] = field(default_factory=dict)
    """What `cmd/options` may decide, by name."""
    hear: Callable[[Any, Fact, Context], Heard]
    check: Callable[[Stake, Layout, House], Refusal | None]
    """May this bet stand at all (combination)? Limits and colour chips are the table's business."""
    beside: Callable[[Stake, Sequence[Stake], Limits | None, House], Refusal | Found | None] = nothing_beside
    """May it stand beside the stakes that lie there: a refusal, or what is noted when the bets close."""
    series: Callable[[Any], SeriesLaw | None] = no_series
    """options -> what the game says about colour chips."""
    offers: Callable[[Sequence[Stake], Outcome, Any], Mapping[str, tuple[str, ...]]] = no_offers
    """stakes, outcome, coup -> choices by stake id."""
    settle: Callable[[Sequence[Stake], Outcome, Any, Any], Settlement]
    """stakes, outcome, coup, options -> settlement of one coup over all tableaux."""
    release: Callable[[Sequence[Stake]], Settlement] | None = None
    """What the text gives for stakes carried beyond the last coup of a seance; None = it ends only without them."""
    value: Callable[[Outcome], int | str]
    """What sources must agree on in an outcome (its number, its colour)."""
    announce: Callable[[Outcome], str]
    """The result in French as the text words it."""
    read: Callable[[int | str, Any], Outcome | None]
    """A value typed or read, options -> the outcome it means, None when this game has no such result."""
    misread: Callable[[int | str | None], str] = lambda value: "lecture_impossible"
    """A value for which `read` knows no outcome -> code of the sentence that says why."""
    cell: Callable[[int | None, Any], Outcome | None]
    """A cell counted from 0 at the index mark or the first cup, options -> the outcome it means, None for none such."""
    contests: Mapping[str, Found] = field(default_factory=dict)
    """What, announced after the result, puts it in question, and the breach that it then is."""
    most_players: tuple[int, str] | None = None
    """How many may play at once by the text, and the requirement that says so."""
    more_players: str = ""
    """Public option by which the house lifts `most_players`."""
    most_tableaux: tuple[int, str] | None = None
    """How many tableaux one apparatus may serve by the text, and the requirement that says so."""
    case_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Keys of this game's own in a case of the settle format: under `config`, `bet` and `outcome`."""
    case_options: Callable[[Case], Any] = no_options
    """The house options that a case of the settle format fixes; raises rules.cases.CaseError."""
    settle_case: Callable[[Case], dict[str, object]]
    """One case of the settle format (kind `settlement`) -> its answer; raises rules.cases.CaseError."""

    @property
    def calls_first(self) -> bool:
        """Rien ne va plus precedes the draw, so that only the croupier can say when."""
        return "rien_ne_va_plus" in self.begins

    def meant(self, fact: PocketRead, options: Any) -> Outcome | None:
        """The outcome that a reading means; a cell beside a value tells more than the value where both say the same."""
        at = self.cell(fact.cell, options)
        if fact.value is None:
            return at
        said = self.read(fact.value, options)
        if at is None:
            return said
        same = str(at.get("number")) == str(fact.value) if said is None else self.value(said) == self.value(at)
        return at if same else said


@cache
def known_games() -> Mapping[str, str]:
    """Module name by game id prefix: every module of `rules.games`."""
    folder = importlib.import_module("rules.games").__path__
    return {module.name: f"rules.games.{module.name}" for module in pkgutil.iter_modules(folder)}


def load(game_id: str) -> Game:
    """The game with this id; only its module is imported. Raises LookupError naming what exists.

    The module is the longest prefix of the id: `roulette_francaise` lives in `rules.games.roulette`.
    """
    modules = known_games()
    words = game_id.split("_")
    for length in range(len(words), 0, -1):
        name = "_".join(words[:length])
        if name in modules:
            games: Mapping[str, Game] = importlib.import_module(modules[name]).GAMES
            if game_id in games:
                return games[game_id]
            raise LookupError(f"game {game_id!r} is not in {modules[name]}: it has {', '.join(sorted(games))}")
    every = sorted(name for module in modules.values() for name in importlib.import_module(module).GAMES)
    raise LookupError(f"no game {game_id!r}; games: {', '.join(every)}")
