"""Canonical JSON bytes: the one spelling of a value that is hashed and signed (design: the floor contract).

UTF-8, keys sorted by code point, separators `,` and `:`, no floats, no NaN, no duplicate keys. Anything that has no
such spelling is an error and never rounded or replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NoReturn

_SORTED: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
_AS_IS: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SCALARS: Final = frozenset({str, int, bool, type(None)})


class CanonicalError(ValueError):
    """A value or a text has no canonical form; the message says where and why."""


def canonical(value: object) -> bytes:
    """The canonical bytes of None, bool, int, str, list, tuple or mapping with str keys; else CanonicalError."""
    return _spell(value, _SORTED)


def compact(value: object) -> bytes:
    """The same spelling with keys in their own order, for what only we read back."""
    return _spell(value, _AS_IS)


def parse(data: bytes | str) -> object:
    """The value of a JSON text with the same restrictions as `canonical` (spaces and key order are free)."""
    try:
        text = data if isinstance(data, str) else data.decode()
        value: object = json.loads(
            text, parse_float=_refuse_number, parse_constant=_refuse_number, object_pairs_hook=without_duplicates
        )
        if "\\u" in text:  # an escape can spell half a character, which has no bytes
            canonical(value)
        return value
    except UnicodeDecodeError as error:
        raise CanonicalError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise CanonicalError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise CanonicalError("nested too deeply") from None
    except CanonicalError:
        raise
    except ValueError as error:  # an integer with thousands of digits
        raise CanonicalError(f"not JSON: {error}") from None


def _spell(value: object, encoder: json.JSONEncoder) -> bytes:
    try:
        return encoder.encode(value if _sound(value) else _plain(value, "$")).encode()
    except UnicodeEncodeError as error:
        raise CanonicalError(f"text that is not Unicode: {error.object[error.start : error.end]!r}") from None
    except RecursionError:
        raise CanonicalError("nested too deeply") from None


def _sound(value: object) -> bool:
    """Is this plainly JSON; the quick way for what we make ourselves."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and all(map(_sound, value.values()))
    return (kind is list or kind is tuple) and all(map(_sound, value))  # type: ignore[call-overload]


def _plain(value: object, where: str) -> object:
    """The value with mappings as dicts; raises for what JSON or the contract does not know."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise CanonicalError(f"{where}: key {key!r} is not a string")
        return {key: _plain(inner, f"{where}.{key}") for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{where}[{n}]") for n, inner in enumerate(value)]
    if isinstance(value, float):
        raise CanonicalError(f"{where}: {value!r} is a float; use an integer, or 'n/d' for a fraction")
    raise CanonicalError(f"{where}: {type(value).__name__} has no JSON form")


def _refuse_number(text: str) -> NoReturn:
    raise CanonicalError(f"{text} is not an integer; use an integer, or 'n/d' for a fraction")


def without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The pairs of one JSON object; CanonicalError where a key appears twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise CanonicalError(f"key {twice!r} appears twice")
    return value
