"""Tells systemd that the daemon lives: only while every critical task makes progress and no commit hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from controller.clock import Clock
from controller.notify import Notifier
from controller.supervisor import Supervisor

log = logging.getLogger(__name__)

IDLE_STATUS_S: Final = 10.0
"""How often the status is told where nobody asks for a watchdog."""
PROGRESS_S: Final = 2.5
"""A task may be silent for so long, whatever the watchdog's deadline: an idle one beats each second."""


class Watchdog:
    """`run` is a restartable task."""

    def __init__(
        self,
        *,
        notifier: Notifier,
        supervisor: Supervisor,
        commit_since_ns: Callable[[], int | None],
        standing: Callable[[], str],
        clock: Clock,
    ) -> None:
        """`commit_since_ns` says since when a commit has been under way, `standing` what `systemctl status` shows."""
        self._notifier, self._supervisor, self._clock = notifier, supervisor, clock
        self._commit_since_ns, self._standing = commit_since_ns, standing

    async def run(self) -> None:
        """Look for ever, three times within the deadline."""
        deadline_s = self._notifier.watchdog_s
        pause_s = IDLE_STATUS_S if deadline_s is None else deadline_s / 3
        limit_ns = int(max((deadline_s or 0.0) / 2, PROGRESS_S) * 1e9)
        was_late = False
        while True:
            late = self.late(limit_ns)
            if late:
                if not was_late:
                    log.error("no progress: %s", late)
                self._notifier.status(f"no progress: {late}")
            else:
                self._notifier.alive()
                self._notifier.status(self._standing())
            was_late = bool(late)
            self._supervisor.beat("watchdog")
            await asyncio.sleep(pause_s)

    def late(self, limit_ns: int) -> str:
        """Who has made no progress for so long; empty when all have."""
        late = self._supervisor.silent(limit_ns)
        since_ns, now_ns = self._commit_since_ns(), self._clock.mono_ns()
        if since_ns is not None and now_ns - since_ns > limit_ns:
            late.append(f"commit {(now_ns - since_ns) / 1e9:.1f} s")
        return ", ".join(late)
