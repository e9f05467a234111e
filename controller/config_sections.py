"""The tools of a configuration's checks: a section becomes a frozen type, and whatever is wrong in it is collected."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from controller.errors import Problem

T = TypeVar("T")

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
"""Sites, tables and people: safe in a topic, a file name and a log line."""
WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Roles, chips, lamps, buttons: ASCII words."""


class Sections:
    """Reads what stands at a place `at` of the file; what is wrong there is noted in `problems` and nowhere raised."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def wrong(self, key: str, value: object, allowed: str) -> None:
        """Note one problem."""
        self.problems.append(Problem(key, value, allowed))

    def table(self, value: object, at: str) -> Mapping[str, Any]:
        """A table of the file."""
        if isinstance(value, Mapping):
            return value
        self.wrong(at, value, "must be a table")
        return {}

    def tables(self, value: object, at: str) -> Iterable[object]:
        """An array of tables."""
        if isinstance(value, list):
            return value
        self.wrong(at, value, f"must be an array of tables: [[{at}]]")
        return ()

    def unknown(self, data: Mapping[str, Any], allowed: Iterable[str], at: str) -> None:
        """Every key must be one of these."""
        names = list(allowed)
        for key in data:
            if key not in names:
                near = difflib.get_close_matches(key, names, 1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                path = f"{at}.{key}" if at else key
                self.wrong(path, data[key], f"unknown key{hint}; allowed: {', '.join(names) or 'none'}")

    def one_of(self, value: object, allowed: Iterable[str], at: str, what: str) -> None:
        """The value must be one of these; `what` they are, for the message."""
        names = list(allowed)
        if value not in names:
            shown = ", ".join(names) if len(names) < 40 else f"one of {len(names)}"
            self.wrong(at, value, f"must be {what}: {shown or 'there are none'}")

    def value(self, value: object, kind: Any, at: str) -> Any:
        """A value of this type; None when it is none."""
        try:
            return msgspec.convert(value, type=kind, dec_hook=_fraction)
        except msgspec.ValidationError as error:
            self.wrong(at, value, _allowed(kind, str(error)))
            return None

    def section(
        self,
        kind: Callable[..., T],
        data: Mapping[str, Any],
        at: str,
        *,
        given: Mapping[str, Any] | None = None,
        known: tuple[str, ...] = (),
        named: Mapping[str, str] | None = None,
        ranges: Mapping[str, tuple[int, int]] | None = None,
    ) -> T | None:
        """A dataclass from a section: every key checked; None when something is wrong.

        `given` are values that do not stand in the section, `known` keys that others read, `named` other paths for the
        messages, `ranges` the lowest and highest value of whole numbers.
        """
        before = len(self.problems)
        hints = typing.get_type_hints(kind, include_extras=True)
        values: dict[str, Any] = dict(given or {})
        fields = [f for f in dataclasses.fields(kind) if f.init and f.name not in values]  # type: ignore[arg-type]
        self.unknown(data, [*known, *(f.name for f in fields)], at)
        for f in fields:
            path = (named or {}).get(f.name, f"{at}.{f.name}")
            if f.name in data:
                low, high = (ranges or {}).get(f.name, (None, None))
                hint = Annotated[int, Meta(ge=low, le=high)] if low is not None else hints[f.name]
                values[f.name] = self.value(data[f.name], hint, path)
            elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                self.wrong(path, None, f"missing: {_allowed(hints[f.name], 'must be given')}")
        if len(self.problems) > before:
            return None
        try:
            return kind(**values)
        except ValueError as error:
            self._wrong_value(at, values, str(error))
            return None

    def _wrong_value(self, at: str, values: Mapping[str, Any], text: str) -> None:
        """What the section's own type says against its values: `key: why`, or `key = value: what is allowed`."""
        key, _, why = text.partition(": ")
        key = key.partition(" = ")[0]
        if key in values:
            self.wrong(f"{at}.{key}", values[key], why)
        else:
            self.wrong(at, None, text)

    def word(self, value: str, at: str) -> None:
        """A name that this file gives."""
        if not WORD.fullmatch(value):
            self.wrong(at, value, "must be a word of a-z, 0-9 and _ that begins with a letter")

    def name(self, value: object, at: str) -> str:
        """A name that leaves this file; empty when it is none."""
        if isinstance(value, str) and NAME.fullmatch(value):
            return value
        self.wrong(at, value, "must be 1 to 63 characters of A-Z, a-z, 0-9, - and _, not beginning with - or _")
        return ""

    def absolute(self, path: str, at: str) -> None:
        """A path that depends on nobody's working folder."""
        if not path.startswith("/"):
            self.wrong(at, path, "must be an absolute path")


def _allowed(kind: Any, problem: str) -> str:
    """The problem in words, with the values of a closed list."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return f"allowed: {', '.join(str(member.value) for member in kind)}"
    if typing.get_origin(kind) is Literal:
        return f"allowed: {', '.join(map(str, typing.get_args(kind)))}"
    if typing.get_origin(kind) is Annotated:
        for meta in kind.__metadata__:
            if isinstance(meta, Meta) and meta.ge is not None:
                return f"a whole number from {meta.ge}" + (f" to {meta.le}" if meta.le is not None else "")
    return problem.replace("`", "").replace(" - at $", " at ")


def _fraction(kind: type, value: Any) -> Any:
    if kind is Fraction and isinstance(value, str):
        return Fraction(value)
    raise NotImplementedError
