"""The law's timers, seen from outside the law: which elapsing still counts, and what becomes of them at a reboot."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.facts import TimerElapsed
from rules.state import TableState

TIMER: Final = "timer"
"""Source of the law's own timers."""


def due(state: TableState, fact: TimerElapsed) -> bool:
    """Is this the elapsing of a timer that is still armed for that very instant."""
    return any(timer.name == fact.name and timer.at_ns == fact.at_ns for timer in state.timers)


def after_restart(state: TableState, now_ns: int) -> TableState:
    """The state with its timers re-armed by their own `on_restart`, after the clock began anew (design §2)."""
    timers = tuple(
        replace(timer, at_ns=now_ns + (timer.length_ns if timer.on_restart == "restart" else 0))
        for timer in state.timers
        if timer.on_restart != "drop"
    )
    return replace(state, timers=timers)
