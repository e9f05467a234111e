"""Cases of `tablectl settle`: reading and checking the common part of the settle format (`settle-format.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class CaseError(ValueError):
    """A case is not of the settle format: `pointer` is the JSON pointer inside the case."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer or '/'}: {problem}")
        self.pointer = pointer
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One settlement case, its form already checked."""

    game: str
    config: Mapping[str, object]
    bets: tuple[Mapping[str, object], ...]
    outcome: Mapping[str, object]
