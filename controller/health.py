"""The body of `health`: how the instruments, the tasks, the disk and the clock are (floor contract)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from controller import board, wire
from controller.clock import Clock
from controller.supervisor import Report

Gauges = Mapping[str, wire.Gauge]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Who is asked, each time anew."""

    devices: Callable[[], dict[str, wire.Device]]
    tasks: Callable[[], Mapping[str, Report]]
    loop_lag_ms: Callable[[], int]
    unsent: Callable[[], tuple[int, int | None]]
    """Messages the broker does not have, and the age of the oldest in ms."""
    last_result: Callable[[], str | None]
    command_path: Callable[[], wire.Proof]
    mqtt: Callable[[], Gauges]
    journal: Callable[[], Gauges]
    queues: Callable[[], Mapping[str, Gauges]]
    maintenance: Callable[[], bool]
    epoch: Callable[[], str]
    statistics: Callable[[], wire.Statistics]


class Reporter:
    """Makes the body of `health` of one table."""

    def __init__(
        self, *, table: str, boot: str, version: str, folder: Path, free_bytes_min: int, clock: Clock, sources: Sources
    ) -> None:
        self._table, self._boot, self._version = table, boot, version
        self._folder, self._free_bytes_min = folder, free_bytes_min
        self._clock, self._sources = clock, sources
        self._started_ns = clock.mono_ns()

    def report(self) -> wire.Health:
        """How everything is now."""
        asked, now_ns, synchronised = self._sources, self._clock.mono_ns(), self._clock.synchronised()
        unsent, oldest_ms = asked.unsent()
        return wire.Health(
            at=self._clock.utc(now_ns),
            at_ns=now_ns,
            clock_synchronised=synchronised,
            table=self._table,
            boot=self._boot,
            epoch=asked.epoch(),
            version=self._version,
            uptime_s=(now_ns - self._started_ns) // 10**9,
            maintenance=asked.maintenance(),
            devices=asked.devices(),
            tasks={name: _task(report, now_ns) for name, report in asked.tasks().items()},
            loop_lag_ms=asked.loop_lag_ms(),
            unsent=unsent,
            oldest_unsent_ms=oldest_ms,
            last_result=asked.last_result(),
            command_path=asked.command_path(),
            mqtt=dict(asked.mqtt()),
            journal=dict(asked.journal()),
            disk={**board.disk(self._folder), "free_bytes_min": self._free_bytes_min},
            clock={"synchronised": synchronised, "monotonic_ns": now_ns},
            cpu=board.cpu(),
            statistics=asked.statistics(),
            queues={name: dict(gauges) for name, gauges in asked.queues().items()},
        )


def _task(report: Report, now_ns: int) -> wire.Task:
    return wire.Task(
        state=report.state,
        beat_ms=None if report.beat_ns is None else max(0, now_ns - report.beat_ns) // 1_000_000,
        restarts=report.restarts,
    )
