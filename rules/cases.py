"""Cases of `tablectl settle`: the settle format read strictly and answered by the very functions that the daemon uses.

A case that is not of the format raises `CaseError` with the JSON pointer to the fault; a bet that the law refuses is an
answer. What differs from game to game (keys, outcome, facts told beside the money) is the game's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from rules import game as games
from rules.bets import Layout, Refusal, Stake
from rules.decisions import Line
from rules.game import Game, House
from rules.limits import Limits, above_maximum, below_minimum
from rules.money import to_wire
from rules.settlement import line, net_by_player
from rules.words import text

SETTLEMENT: Final = "settlement"
VALIDATION: Final = "validation"
CASE_KEYS: Final = {
    SETTLEMENT: frozenset({"game", "kind", "config", "bets", "outcome"}),
    VALIDATION: frozenset({"game", "kind", "config", "bet", "outcome"}),
}
CONFIG_KEYS: Final = frozenset({"min"})
BET_KEYS: Final = frozenset({"id", "player", "tableau", "type", "on", "stake"})
MAXIMUM_KEYS: Final = frozenset({"amount", "table_maximum"})
"""Keys of the bet in a validation that checks a maximum, in games whose house chooses it (boule, vingt-trois)."""


class CaseError(ValueError):
    """A case is not of the settle format: `pointer` is the JSON pointer to the fault, `also` those of other cases."""

    def __init__(self, pointer: str, problem: str, also: Sequence[CaseError] = ()) -> None:
        super().__init__("\n".join((f"{pointer or '/'}: {problem}", *map(str, also))))
        self.pointer = pointer
        self.problem = problem
        self.also = tuple(also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case whose common part has been read; `bets` and `outcome` keep what the game reads itself."""

    game: str
    kind: str
    config: Mapping[str, object]
    bets: tuple[Mapping[str, object], ...]
    stakes: tuple[Stake, ...]
    """The bets as stakes, in the same order."""
    outcome: Mapping[str, object]
    maximum: int | None = None
    """The maximum in cents that a validation asks for, for bets of the type of its one bet."""

    @property
    def minimum(self) -> int | None:
        """The table minimum in cents; None = limits are not checked."""
        return None if "min" not in self.config else integer(self.config, "min", "/config", least=1)


def answer_all(given: object) -> object:
    """Answers in the shape of the question, one object or a list; CaseError tells the first fault of each case."""
    if not isinstance(given, list):
        return answer(given)
    answers, faults = [], []
    for place, one in enumerate(given):
        try:
            answers.append(answer(one))
        except CaseError as error:
            faults.append(CaseError(f"/{place}{error.pointer}", error.problem))
    if faults:
        raise CaseError(faults[0].pointer, faults[0].problem, faults[1:])
    return answers


def answer(given: object) -> dict[str, object]:
    """The answer to one case; raises CaseError."""
    case, game = parse(given)
    return game.settle_case(case) if case.kind == SETTLEMENT else validated(case, game)


def parse(given: object) -> tuple[Case, Game]:
    """Read the common part of a case; raises CaseError."""
    top = mapping(given, "")
    game_id = word(top, "game", "")
    try:
        game = games.load(game_id)
    except LookupError as error:
        raise CaseError("/game", str(error.args[0])) from error
    kind = one_of(top, "kind", CASE_KEYS, "")
    only(top, CASE_KEYS[kind], "")
    config = mapping(top.get("config", {}), "/config")
    only(config, CONFIG_KEYS | game.case_keys.get("config", frozenset()), "/config")
    bet_keys = BET_KEYS | game.case_keys.get("bet", frozenset())
    if kind == VALIDATION:
        bets = [(mapping(required(top, "bet", ""), "/bet"), "/bet")]
    else:
        given_bets = array(top, "bets", "")
        bets = [(mapping(bet, f"/bets/{place}"), f"/bets/{place}") for place, bet in enumerate(given_bets)]
    outcome = mapping(required(top, "outcome", "") if kind == SETTLEMENT else top.get("outcome", {}), "/outcome")
    only(outcome, game.case_keys.get("outcome", frozenset()), "/outcome")
    stakes: list[Stake] = []
    for bet, pointer in bets:
        only(bet, bet_keys, pointer)
        stake = as_stake(bet, pointer, named=kind == SETTLEMENT)
        if any(stake.id == other.id for other in stakes):
            raise CaseError(f"{pointer}/id", f"{stake.id!r} is the id of an earlier bet")
        stakes.append(stake)
    case = Case(
        game=game_id,
        kind=kind,
        config=config,
        bets=tuple(bet for bet, _ in bets),
        stakes=tuple(stakes),
        outcome=outcome,
        maximum=maximum_asked(*bets[0]) if kind == VALIDATION else None,
    )
    if case.minimum is None and case.maximum is not None:
        raise CaseError("/config/min", "is missing: a maximum is a multiple of the minimum")
    return case, game


def as_stake(bet: Mapping[str, object], pointer: str, *, named: bool) -> Stake:
    """A bet of a case as a stake; in a validation, where there is one bet only, it needs no id and no player."""
    on: list[int | str] = []
    for place, part in enumerate(array(bet, "on", pointer) if "on" in bet else ()):
        if isinstance(part, bool) or not isinstance(part, int | str):
            raise CaseError(f"{pointer}/on/{place}", "must be a number or a string")
        on.append(part)
    return Stake(
        id=word(bet, "id", pointer) if named or "id" in bet else "",
        player=word(bet, "player", pointer) if named or "player" in bet else "",
        tableau=integer(bet, "tableau", pointer, least=1) if "tableau" in bet else 1,
        type=word(bet, "type", pointer),
        on=tuple(on),
        cents=stake_in(bet, pointer),
        choices=tuple(choices(bet, pointer)),
    )


def maximum_asked(bet: Mapping[str, object], pointer: str) -> int | None:
    """The maximum that is checked: `table_maximum`, or `amount` where `table_maximum` is true or left out."""
    if not bet.keys() & MAXIMUM_KEYS:
        return None
    key = "amount" if bet.get("table_maximum", True) is True else "table_maximum"
    return integer(bet, key, pointer, least=1)


def stake_in(bet: Mapping[str, object], pointer: str) -> int:
    """The stake of a bet. Where a maximum is checked it is `amount`, or nothing beyond the maximum itself."""
    asked = maximum_asked(bet, pointer)
    if "stake" in bet or asked is None:
        return integer(bet, "stake", pointer, least=0)
    return integer(bet, "amount", pointer, least=0) if "amount" in bet else asked


def choices(bet: Mapping[str, object], pointer: str) -> Iterable[str]:
    """The player's choices after each zero, oldest first."""
    for place, choice in enumerate(array(bet, "choices", pointer) if "choices" in bet else ()):
        if choice not in ("retire", "prison"):
            raise CaseError(f"{pointer}/choices/{place}", f"{choice!r} is not one of retire, prison")
        yield str(choice)


# --- what the law says to a bet --------------------------------------------------------------------------------------


def refusal(
    stake: Stake, others: Iterable[Stake], game: Game, layout: Layout, house: House, limits: Limits | None
) -> Refusal | None:
    """Why this bet may not stand beside the player's `others`, or None."""
    if stake.cents == 0:
        return Refusal(code="montant_impossible", requirement="R-GEN-10", text=text("montant_impossible"))
    refused = game.check(stake, layout, house)
    spot = layout.find(stake.type, stake.on)
    if refused is not None or spot is None or limits is None:
        return refused
    return below_minimum(stake, limits) or above_maximum(spot, stake.cents, others, frozenset({stake.player}), limits)


def limits_of(case: Case, game: Game, house: House) -> Limits | Refusal | None:
    """The limits of a case, None when it names no minimum, or why the text forbids the maximum that it asks for."""
    if case.minimum is None:
        return None
    maxima = {} if case.maximum is None else {case.stakes[0].type: case.maximum}
    return game.limits(game.layout(house.options), house, case.minimum, maxima)


def house_of(case: Case, game: Game) -> House:
    """The house of a case: its minimum, and the options that it fixes."""
    return House(declared_minimum_cents=case.minimum or 1, options=game.case_options(case))


def playing(case: Case, game: Game, house: House) -> tuple[Stake, ...]:
    """The bets that stand, as the layout writes them; the others are `refused` in the answer."""
    layout, limits = game.layout(house.options), limits_of(case, game, house)
    if isinstance(limits, Refusal):
        raise CaseError("/config", limits.text)
    standing: list[Stake] = []
    for stake in case.stakes:
        if refusal(stake, standing, game, layout, house, limits) is None:
            standing.append(stake)
    return tuple(standing)


def validated(case: Case, game: Game) -> dict[str, object]:
    """The answer to a validation."""
    house = house_of(case, game)
    layout, limits, stake = game.layout(house.options), limits_of(case, game, house), case.stakes[0]
    if case.maximum is not None and not stake.on:  # the question is an amount: any bet of the type will do
        stake = next((replace(stake, on=spot.on) for spot in layout.spots.values() if spot.type == stake.type), stake)
    refused = limits if isinstance(limits, Refusal) else refusal(stake, (), game, layout, house, limits)
    if refused is None:
        return {"accepted": True}
    reason = {"code": refused.code, "requirement": refused.requirement, "text": refused.text}
    return {"accepted": False, "reason": reason}


def settled(case: Case, lines: Iterable[Line], **facts: object) -> dict[str, object]:
    """The answer to a settlement; bets without a line were refused, `facts` that are empty are left out."""
    known = {entry.id: entry for entry in lines}
    every = [known.get(stake.id) or line(stake, "refused", 0) for stake in case.stakes]
    return {
        "net": {entry.id: wire(entry.net) for entry in every},
        "status": {entry.id: entry.status for entry in every},
        **{name: fact for name, fact in facts.items() if fact},
        "net_by_player": {player: wire(net) for player, net in net_by_player(every).items()},
    }


def wire(net: Fraction | None) -> int | str | None:
    """A net on the wire; None while pending."""
    return None if net is None else to_wire(net)


# --- reading JSON strictly -------------------------------------------------------------------------------------------


def required(given: Mapping[str, object], key: str, pointer: str) -> object:
    """The value of a key that must be there."""
    if key not in given:
        raise CaseError(f"{pointer}/{key}", "is missing")
    return given[key]


def only(given: Mapping[str, object], allowed: Collection[str], pointer: str) -> None:
    """Refuse keys that the format does not have here: a misspelt key must not change a settlement silently."""
    for key in given:
        if key not in allowed:
            escaped = str(key).replace("~", "~0").replace("/", "~1")
            raise CaseError(f"{pointer}/{escaped}", f"is not a key here; allowed: {', '.join(sorted(allowed))}")


def mapping(value: object, pointer: str) -> Mapping[str, object]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise CaseError(pointer, "must be an object")
    return value


def array(given: Mapping[str, object], key: str, pointer: str) -> list[object]:
    """A JSON array under a key."""
    value = required(given, key, pointer)
    if not isinstance(value, list):
        raise CaseError(f"{pointer}/{key}", "must be an array")
    return value


def word(given: Mapping[str, object], key: str, pointer: str) -> str:
    """A string that is not empty."""
    value = required(given, key, pointer)
    if not isinstance(value, str) or not value:
        raise CaseError(f"{pointer}/{key}", "must be a string that is not empty")
    return value


def one_of(given: Mapping[str, object], key: str, allowed: Iterable[str], pointer: str) -> str:
    """A string among those allowed."""
    value, names = word(given, key, pointer), list(allowed)
    if value not in names:
        raise CaseError(f"{pointer}/{key}", f"{value!r} is not one of {', '.join(names)}")
    return value


def integer(given: Mapping[str, object], key: str, pointer: str, *, least: int) -> int:
    """An integer written as one, at least `least`."""
    value = required(given, key, pointer)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise CaseError(f"{pointer}/{key}", f"must be an integer of at least {least}")
    return value


def boolean(given: Mapping[str, object], key: str, pointer: str, *, default: bool) -> bool:
    """True or false."""
    value = given.get(key, default)
    if not isinstance(value, bool):
        raise CaseError(f"{pointer}/{key}", "must be true or false")
    return value


def number(given: Mapping[str, object], key: str, pointer: str, *, default: Fraction) -> Fraction:
    """A number of at least zero, exactly as it was written (the reader of the JSON makes no floats)."""
    value = given.get(key, default)
    unreadable = isinstance(value, bool) or (isinstance(value, Decimal) and not value.is_finite())
    if unreadable or not isinstance(value, int | Fraction | Decimal) or value < 0:
        raise CaseError(f"{pointer}/{key}", "must be a number of at least 0")
    return Fraction(value)


def result(given: Mapping[str, object], key: str, pockets: Collection[int | str]) -> int | str:
    """One result, a pocket of the apparatus."""
    return pocket(required(given, key, "/outcome"), f"/outcome/{key}", pockets)


def results(given: Mapping[str, object], key: str, pockets: Collection[int | str]) -> list[int | str]:
    """Successive results, each of them a pocket of the wheel; at least one."""
    values = array(given, key, "/outcome")
    if not values:
        raise CaseError(f"/outcome/{key}", "needs at least one result")
    return [pocket(value, f"/outcome/{key}/{place}", pockets) for place, value in enumerate(values)]


def pocket(value: object, pointer: str, pockets: Collection[int | str]) -> int | str:
    """A pocket of the apparatus, written as it is."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value not in pockets:
        told = str(value) if isinstance(value, Decimal) else repr(value)
        raise CaseError(pointer, f"{told} is not a result of this game")
    return value
