"""Instants of the law's state, seen from outside the law: which elapsing still counts, and what a reboot makes of them.

CLOCK_MONOTONIC begins anew with each boot. A timer is then re-armed by its own `on_restart` (design §2). Everything
else that the state remembers happened before this boot, so it moves to the time before zero, in its old order: a stake
that was in time must not look late, and closed bets must not look open.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from rules.facts import TimerElapsed
from rules.state import Armed, TableState

TIMER: Final = "timer"
"""Source of the law's own timers."""


def due(state: TableState, fact: TimerElapsed) -> bool:
    """Is this the elapsing of a timer that is still armed for that very instant."""
    return any(timer.name == fact.name and timer.at_ns == fact.at_ns for timer in state.timers)


def after_restart(state: TableState, now_ns: int, last_ns: int) -> TableState:
    """The state in the time of a new boot; `last_ns` is the last instant that was known of the old one.

    `coup.times` stays as it is: the scribe keeps the wall times of those instants.
    """
    timers = tuple(
        replace(timer, at_ns=now_ns + (timer.length_ns if timer.on_restart == "restart" else 0))
        for timer in state.timers
        if timer.on_restart != "drop"
    )
    moved: TableState = _before_zero(state, last_ns)
    return replace(moved, timers=timers)


def _before_zero(value: Any, last_ns: int) -> Any:
    if is_dataclass(value) and not isinstance(value, type | Armed):
        changes = {}
        for field in fields(value):
            old = getattr(value, field.name)
            if field.name == "times":
                continue
            if field.name.endswith("_ns") and isinstance(old, int):
                changes[field.name] = min(old - last_ns, 0)
            elif (new := _before_zero(old, last_ns)) is not old:
                changes[field.name] = new
        return replace(value, **changes) if changes else value
    if isinstance(value, tuple):
        moved = tuple(_before_zero(item, last_ns) for item in value)
        return moved if any(new is not old for new, old in zip(moved, value, strict=True)) else value
    return value  # mappings (outcomes, offers, options) hold no instants
