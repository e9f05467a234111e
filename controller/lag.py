"""Measures how late the event loop is and names what kept it (Klipper's latency watcher).

A tick in the loop notes the time; a thread looks at the ticks from outside and, when one is overdue, takes the line
that the loop's thread is at. The thread wakes five times a second and holds the interpreter for microseconds.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from controller.clock import Clock

log = logging.getLogger(__name__)

TICK_S: Final = 0.1
LOOK_S: Final = 0.2
LATE_NS: Final = 100_000_000
"""A tick this late is told."""
FROZEN_NS: Final = 500_000_000
"""A loop that was kept from running for so long has let input wait unread (a stopped process, a starved machine)."""
AFTER_NS: Final = 500_000_000
"""What is read so soon after that may have come in meanwhile."""
WINDOW_NS: Final = 10 * 10**9
"""The largest lag is that of this window or the one before."""


class LagMeter:
    """Runs inside the loop's thread; `run` is a task."""

    def __init__(self, clock: Clock, beat: Callable[[], None], frozen: Callable[[int], None] = lambda _: None) -> None:
        """`frozen` is told for how many ms the loop was kept from running (`FROZEN_NS` and more)."""
        self._clock, self._beat, self._tell_frozen = clock, beat, frozen
        self._due_ns = 0
        self._worst_ns, self._worst_before_ns, self._window_ns = 0, 0, 0
        self._frozen = (0, -AFTER_NS)
        """When the loop last was not run for long: from its last tick before to its first one after."""
        self._culprit = ""
        self._stop = threading.Event()
        self.late = 0
        """How often the loop was late."""
        self.last_culprit = ""
        """Where the loop was when it was last late; empty when nobody looked in time."""

    def worst_ms(self) -> int:
        """Largest lag of the last 10 to 20 seconds."""
        return max(self._worst_ns, self._worst_before_ns) // 1_000_000

    def unread_ns(self, now_ns: int) -> int:
        """How long what is read now may have waited unread; 0 while the loop runs as it should."""
        if self._due_ns and now_ns - self._due_ns > FROZEN_NS:
            return now_ns - self._due_ns + int(TICK_S * 1e9)
        since_ns, until_ns = self._frozen
        return now_ns - since_ns if now_ns - until_ns < AFTER_NS else 0

    async def run(self) -> None:
        """Tick until cancelled."""
        loop_thread = threading.get_ident()
        self._due_ns = self._clock.mono_ns() + int(TICK_S * 1e9)
        watcher = threading.Thread(target=self._watch, args=(loop_thread,), name="lag", daemon=True)
        watcher.start()
        try:
            while True:
                await asyncio.sleep(TICK_S)
                self._ticked(self._clock.mono_ns())
                self._beat()
        finally:
            self._stop.set()
            watcher.join()

    def _ticked(self, now_ns: int) -> None:
        lag_ns = max(0, now_ns - self._due_ns)
        if now_ns - self._window_ns > WINDOW_NS:
            self._worst_before_ns, self._worst_ns, self._window_ns = self._worst_ns, 0, now_ns
        self._worst_ns = max(self._worst_ns, lag_ns)
        if lag_ns > LATE_NS:
            self.late += 1
            if lag_ns > FROZEN_NS:
                self._frozen = (self._due_ns - int(TICK_S * 1e9), now_ns)
                self._tell_frozen(lag_ns // 1_000_000)
            self.last_culprit, self._culprit = self._culprit, ""
            log.warning("event loop late by %d ms, in %s", lag_ns // 1_000_000, self.last_culprit or "nobody looked")
        self._due_ns = now_ns + int(TICK_S * 1e9)

    def _watch(self, loop_thread: int) -> None:
        while not self._stop.wait(LOOK_S):
            if self._clock.mono_ns() - self._due_ns > LATE_NS:
                frame = sys._current_frames().get(loop_thread)
                if frame is not None:
                    self._culprit = where(frame)


def where(frame: FrameType) -> str:
    """The innermost line of ours on this stack, and the innermost of all when that is another."""
    inner = _line(frame)
    ours: FrameType | None = frame
    while ours is not None and ours.f_globals.get("__name__", "").partition(".")[0] not in (
        "controller",
        "drivers",
        "rules",
    ):
        ours = ours.f_back
    if ours is None or ours is frame:
        return inner
    return f"{_line(ours)} > {inner}"


def _line(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{frame.f_lineno}"
