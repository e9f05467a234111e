"""What the numbered messages of the console mean: name and words become a fact (PROTOCOL.md section 5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypedDict

from rules.facts import Announced, ChipPlaced, ChipRemoved, Chosen, Fact, Origin, PocketRead

_NUMBER: Final = re.compile(r"0|[1-9]\d{0,8}")


class When(TypedDict):
    """Who says it and when it happened: what every fact carries."""

    source: str
    at_ns: int
    until_ns: int
    origin: Origin


def fact_of(name: str, words: Sequence[str], when: When) -> Fact | None:
    """The fact that a message tells; None when there is no such message or its words are not those it takes."""
    make = _MESSAGES.get(name)
    if make is None or not all(word.isprintable() for word in words):
        return None
    try:
        return make(when, *words)
    except (TypeError, ValueError):  # too many, too few, or not a number: the device speaks another version
        return None


def _announced(when: When, code: str, by: str = "") -> Fact:
    return Announced(**when, code=code, by=by)


def _chip(kind: type[ChipPlaced | ChipRemoved]) -> Callable[..., Fact]:
    def make(when: When, tableau: str, spot: str, amount: str, player: str, chip: str = "") -> Fact:
        number = _positive(amount.removesuffix("x"))
        counted = {"cents": 0, "jetons": number} if amount.endswith("x") else {"cents": number}
        return kind(**when, tableau=_positive(tableau), spot=spot, player=player, chip=chip, **counted)

    return make


def _chosen(when: When, tableau: str, player: str, what: str, value: str) -> Fact:
    return Chosen(**when, tableau=_positive(tableau), player=player, what=what, value=value)


def _result(when: When, value: str, cell: str | None = None) -> Fact:
    return PocketRead(
        **when,
        value=int(value) if _NUMBER.fullmatch(value) else value,
        cell=None if cell is None else _natural(cell),
    )


def _natural(word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise ValueError(word)
    return int(word)


def _positive(word: str) -> int:
    number = _natural(word)
    if number == 0:
        raise ValueError(word)
    return number


_MESSAGES: Final[Mapping[str, Callable[..., Fact]]] = {
    "ANN": _announced,
    "CHIP+": _chip(ChipPlaced),
    "CHIP-": _chip(ChipRemoved),
    "CHOICE": _chosen,
    "RESULT": _result,
}
