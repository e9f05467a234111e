"""What a way to a table offers to tablectl: over the local socket of the same machine, or over the broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

ANSWER_S: Final = 10.0
"""How long an answer may take: longer than a commit on the slowest card."""

SELFTEST_S: Final = 330.0
"""A wheel may test itself for five minutes before it answers."""


class Told(NamedTuple):
    """A message of the table: the address below its base, and its body."""

    topic: str
    body: dict[str, Any]


class Link(AbstractContextManager["Link"], Protocol):
    """A way to the table."""

    def get(self, topic: str) -> dict[str, Any]:
        """What stands on `state`, `health` or `result/last` (empty: nothing does); raises UnreachableError."""
        ...

    def absent(self) -> str:
        """Why nobody answers for the table now, empty when somebody does; raises UnreachableError."""
        ...

    def command(self, envelope: Mapping[str, Any], answer_s: float = ANSWER_S) -> dict[str, Any]:
        """The reply to an envelope; raises UnreachableError when none comes in time."""
        ...

    def watch(self, *topics: str, seconds: float | None = None) -> Iterator[Told]:
        """What the table says on these topics (first words; none = all) from now on, for so long."""
        ...
