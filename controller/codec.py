"""Facts, decisions and states as JSON values and back: the trace format, the journal and the snapshots share it.

A fact is `{"in":"SpinStarted","at_ns":...,"source":...,...}`, a decision `{"out":"BetsClosed",...}` (design: two
formats). Enums are strings, amounts are `rules.money.to_wire`, sets are sorted arrays. Reading is strict: an unknown
name or field, a missing field, a wrong type or a float is a CodecError. In slots that the code types as `object`
(arguments, outcomes) arrays read as tuples, so that what is read equals what was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from rules.decisions import DECISIONS, Decision, Settled
from rules.facts import FACTS, Fact, Origin
from rules.game import Game
from rules.money import from_wire, to_wire
from rules.state import TableState

T = TypeVar("T")

_TRANSFER_KEYS: Final = {"source": "from", "target": "to"}
"""How the floor contract spells a transfer's accounts (`from` is a Python keyword)."""

_COUPS: Final = ("coup", "previous")
"""Fields of a state that hold a coup of the game's own type."""
_SCALARS: Final = frozenset({str, int, bool, type(None)})


class CodecError(ValueError):
    """Something is not of the format: `what` is wrong `where`, and what is `allowed` there."""

    def __init__(self, what: str, where: str = "", allowed: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what, *([f"allowed: {allowed}"] if allowed else []))
        self.what = what
        self.where = where
        self.allowed = allowed

    def __str__(self) -> str:
        return "; ".join(self.args)


def encode_fact(fact: Fact) -> dict[str, Any]:
    """The trace object of a fact; `until_ns` and `origin` are left out where they say nothing new."""
    body = {"in": type(fact).__name__, **encode(fact)}
    if fact.until_ns == fact.at_ns:
        del body["until_ns"]
    if fact.origin is _default_origin(type(fact).__name__):
        del body["origin"]
    return body


def decode_fact(body: object, where: str = "") -> Fact:
    """The fact of a trace object; raises CodecError."""
    if not isinstance(body, Mapping):
        raise CodecError(f"a fact is an object, not {type(body).__name__}", where)
    name = body.get("in")
    kind = FACTS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise CodecError(f"no fact {name!r}", _join(where, "in"), ", ".join(FACTS))
    return decode({key: value for key, value in body.items() if key != "in"}, kind, where)


def encode_decision(decision: Decision, after: int | None = None) -> dict[str, Any]:
    """The trace object of a decision; `after` is the 1-based line (or the seq) of the fact that it answers."""
    head: dict[str, Any] = {"out": type(decision).__name__}
    if after is not None:
        head["after"] = after
    assert DECISIONS[head["out"]] is type(decision)
    body: dict[str, Any] = encode(decision)
    if isinstance(decision, Settled):
        body["transfers"] = [
            {_TRANSFER_KEYS.get(key, key): value for key, value in transfer.items()} for transfer in body["transfers"]
        ]
    return head | body


def encode_state(state: TableState) -> dict[str, Any]:
    """The JSON object of a table's state, with the game's own coups in it."""
    body: dict[str, Any] = encode(state)
    return body


def decode_state(body: object, game: Game) -> TableState:
    """The state of a table of this game; raises CodecError (also for another game's coup)."""
    if not isinstance(body, Mapping):
        raise CodecError(f"a state is an object, not {type(body).__name__}")
    coups: dict[str, Any] = {name: decode(body[name], game.coup, name) for name in _COUPS if body.get(name) is not None}
    return replace(decode({**body, **dict.fromkeys(coups)}, TableState), **coups)


def encode(value: Any) -> Any:
    """Any value of the house as a JSON value; raises CodecError for floats and for types that have no codec."""
    kind: type = type(value)
    if kind in _SCALARS:
        return value
    if kind is tuple or kind is list:
        return [encode(inner) for inner in value]
    if names := _field_names(kind):
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key if type(key) is str else _key(key): encode(inner) for key, inner in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return to_wire(value)
    if isinstance(value, Set):  # Python's order of a set changes from run to run
        return [encode(inner) for inner in sorted(value, key=lambda inner: (type(inner).__name__, inner))]
    allowed = "null, bool, int, str, Fraction, enum, dataclass, array, object"
    raise CodecError(f"{kind.__name__} has no codec: {value!r}", allowed=allowed)


def decode(body: object, kind: type[T], where: str = "") -> T:
    """A value of dataclass `kind` from its JSON value; raises CodecError."""
    try:
        value = msgspec.convert(_frozen(body, where), kind, str_keys=True, dec_hook=_from_wire)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise CodecError(what, _join(where, path.rstrip("`").lstrip(".")), _allowed(kind)) from None
    if unknown := _unknown(body, encode(value), where):
        raise CodecError("unknown field", unknown, _allowed(kind))
    return value


def _frozen(value: object, where: str) -> object:
    """A JSON value with its arrays as tuples; floats are refused, for nothing at a table is one."""
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(inner, f"{where}[{n}]") for n, inner in enumerate(value))
    if isinstance(value, Mapping):
        return {key: _frozen(inner, _join(where, str(key))) for key, inner in value.items()}
    if isinstance(value, float):
        raise CodecError(f"{value!r} is a float", where, "integers, or 'n/d' for a fraction of a cent")
    return value


def _unknown(given: object, understood: object, where: str) -> str:
    """Place of the first field that was given and is not in what was understood; empty when there is none."""
    if isinstance(given, Mapping) and isinstance(understood, Mapping):
        for key, value in given.items():
            here = _join(where, str(key))
            if key not in understood:
                return here
            if deeper := _unknown(value, understood[key], here):
                return deeper
    elif isinstance(given, (list, tuple)) and isinstance(understood, list):
        for n, (left, right) in enumerate(zip(given, understood, strict=False)):
            if deeper := _unknown(left, right, f"{where}[{n}]"):
                return deeper
    return ""


def _from_wire(kind: type, value: Any) -> Any:
    """The hook for the types that msgspec does not know: exact amounts, and slots that hold any JSON value."""
    if kind is object:
        return value
    if kind is not Fraction:
        raise NotImplementedError(f"no codec for {kind.__name__}")
    if isinstance(value, (int, str)):
        return from_wire(value)
    raise ValueError("Expected an amount: int or 'n/d'")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Fields of a dataclass; none for any other type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


@cache
def _default_origin(name: str) -> Origin:
    default = next(field.default for field in fields(FACTS[name]) if field.name == "origin")
    assert isinstance(default, Origin)
    return default


def _allowed(kind: type) -> str:
    return f"{kind.__name__} has {', '.join(_field_names(kind))}"


def _key(key: object) -> str:
    if isinstance(key, (str, int)) and not isinstance(key, bool):
        return str(key)
    raise CodecError(f"key {key!r} has no codec", allowed="str, int")


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where and name and not name.startswith("[") else where + name
