"""Errors that people meet: each says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ControllerError(Exception):
    """Root of the errors that end a program with a sentence instead of a traceback."""


class UsageError(ControllerError):
    """The input or the call is not of the promised form (exit 2)."""


class UnreachableError(ControllerError):
    """The daemon or the broker cannot be reached (exit 3)."""


class TaskFailedError(ControllerError):
    """A critical task has ended: the daemon must not go on."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a configuration."""

    key: str
    """Dotted path of the key: `devices.wheel.lines.a`."""
    value: object
    """What stands there; None when the key is missing."""
    allowed: str
    """What is wrong and what is allowed."""

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {self.value!r}"
        if len(shown) > 100:
            shown = shown[:97] + "..."
        return f"{self.key}{shown}: {self.allowed}"


class ConfigError(ControllerError):
    """A configuration is refused; carries every problem found, not only the first."""

    def __init__(self, where: str, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(f"{where}: {problem}" for problem in problems))
        self.problems = tuple(problems)
