"""Owns the end of every task: critical ones end the process loudly, the others are restarted with a pause.

A task that ends in any way it should not (an exception, a silent return) is an event: logged once with its first
cause, counted, named in health. The watchdog is fed from the *progress* of the critical tasks, never from a timer that
runs beside them (field cases 1, 94, 108).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from controller.clock import Clock
from controller.errors import TaskFailedError

log = logging.getLogger(__name__)

Run = Callable[[], Awaitable[None]]

STABLE_NS: Final = 60 * 10**9
"""A task that has run this long has recovered: the next failure starts with the shortest pause again."""
PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pause before the n-th restart in a row. No jitter: each device has this one client."""


@dataclass(slots=True)
class Report:
    """How a task is doing, for health."""

    watched: bool
    """The watchdog asks for its beats; else it may wait for others (the broker) for as long as they take."""
    state: Literal["running", "waiting", "ended"] = "running"
    """`running`, `waiting` (between restarts), `ended`."""
    restarts: int = 0
    last_error: str = ""
    beat_ns: int | None = None
    """When it last said that it made progress; None for one that never says so."""


class Supervisor:
    """Starts tasks inside the caller's task group and reports on them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reports: dict[str, Report] = {}
        self.stopping = False
        """Set when the stop has begun: from now on tasks may end."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wanted_anew: set[str] = set()

    def beat(self, name: str) -> None:
        """Task `name` has made progress."""
        self.reports[name].beat_ns = self._clock.mono_ns()

    def silent(self, limit_ns: int) -> list[str]:
        """Watched tasks that have not beaten for `limit_ns`, with their age: `journal 12.3 s`."""
        now = self._clock.mono_ns()
        return [
            f"{name} {(now - report.beat_ns) / 1e9:.1f} s"
            for name, report in self.reports.items()
            if report.watched and report.beat_ns is not None and now - report.beat_ns > limit_ns
        ]

    def critical(self, group: asyncio.TaskGroup, name: str, run: Run, *, watched: bool = True) -> asyncio.Task[None]:
        """A task whose end before the stop, by whatever way, ends the group with TaskFailedError."""
        self.reports[name] = Report(watched=watched, beat_ns=self._clock.mono_ns())
        return group.create_task(self._must(name, run), name=name)

    def restartable(
        self, group: asyncio.TaskGroup, name: str, run: Run, down: Callable[[str], Awaitable[None]] | None = None
    ) -> asyncio.Task[None]:
        """A task that is started anew when it ends; `down(why)` is told each time (`task_failed`, `reopened`)."""
        self.reports[name] = Report(watched=False)
        self._tasks[name] = group.create_task(self._again(name, run, down), name=name)
        return self._tasks[name]

    def restart(self, name: str) -> None:
        """Break off a restartable task and start it anew at once."""
        self._wanted_anew.add(name)
        self._tasks[name].cancel()

    async def _must(self, name: str, run: Run) -> None:
        report = self.reports[name]
        try:
            await _whole(run)
        except Exception as error:
            report.state, report.last_error = "ended", _cause(error)
            log.critical("task %s has failed: %s", name, report.last_error, exc_info=error)
            raise TaskFailedError(f"task {name} has failed: {report.last_error}") from error
        report.state = "ended"
        if not self.stopping:
            raise TaskFailedError(f"task {name} has ended by itself")

    async def _again(self, name: str, run: Run, down: Callable[[str], Awaitable[None]] | None) -> None:
        report = self.reports[name]
        failures = 0
        while True:
            started_ns = self._clock.mono_ns()
            report.state = "running"
            try:
                await _whole(run)
                why = "ended by itself"
            except asyncio.CancelledError:
                if not self._is_wanted_anew(name):
                    raise
                report.restarts += 1
                if down is not None:
                    await down("reopened")
                continue
            except Exception as error:
                why = _cause(error)
                if why != report.last_error:
                    log.error("task %s has failed and is restarted: %s", name, why, exc_info=error)
            if self.stopping:
                report.state = "ended"
                return
            stable = self._clock.mono_ns() - started_ns >= STABLE_NS
            failures = 1 if stable else failures + 1
            report.state, report.last_error = "waiting", why
            report.restarts += 1
            if down is not None:
                await down("task_failed")
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S)) - 1])

    def _is_wanted_anew(self, name: str) -> bool:
        """Was this cancellation only `restart`; one that comes from the stop is never lost (field case 109)."""
        task = asyncio.current_task()
        assert task is not None
        wanted = name in self._wanted_anew
        self._wanted_anew.discard(name)
        return wanted and task.uncancel() == 0


async def _whole(run: Run) -> None:
    """Run it; a cancellation that nobody asked of the task itself is an error: else the task would vanish unseen."""
    try:
        await run()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("something that it waited for was cancelled") from error


def _cause(error: BaseException) -> str:
    """One line about an exception, looking into groups."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
