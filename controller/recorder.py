"""Writes what the flight recorder hands over, off the loop; `record` asks for one now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from controller.clock import Clock
from controller.config import Config
from controller.flight import Flight, Recording

log = logging.getLogger(__name__)

WAITING_MAX: Final = 4
"""Records that may wait for the disk. Policy: one more is dropped and logged."""
RECORD_S: Final = 5.0


class Recorder:
    """Owns the flight recorder and the folder of its records."""

    def __init__(self, config: Config, version: str, clock: Clock, epoch: Callable[[], str]) -> None:
        self._config, self._version, self._clock, self._epoch = config, version, clock, epoch
        self._waiting: asyncio.Queue[Recording] = asyncio.Queue(WAITING_MAX)
        self._asked: asyncio.Future[Path] | None = None
        self.dropped = 0
        self.flight = Flight(
            seconds=config.flight.seconds,
            ring_bytes=config.flight.ring_bytes,
            lines=[line for device in config.devices.values() for line in device.lines],
            mono_ns=clock.mono_ns,
            sink=self._take,
        )

    async def record(self, wake: Callable[[], None]) -> Path:
        """A record of the last minutes, written; `wake` makes the sequencer look. Raises OSError or TimeoutError."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
            self.flight.want("command")
            wake()
        async with asyncio.timeout(RECORD_S):
            return await asyncio.shield(self._asked)

    def _take(self, recording: Recording) -> None:
        try:
            self._waiting.put_nowait(recording)
        except asyncio.QueueFull:
            self.dropped += 1
            log.error("a flight record is dropped: %d wait for the disk", WAITING_MAX)

    async def run(self) -> None:
        """Write what comes; a disk that refuses costs this record and no more."""
        while True:
            recording = await self._waiting.get()
            asked = self._asked if recording.reason == "command" else None
            try:
                path = await asyncio.to_thread(self._write, recording)
            except OSError as error:
                log.error("flight record not written: %s", error)
                if asked is not None and not asked.done():
                    asked.set_exception(error)
                continue
            log.info("flight record %s", path)
            if asked is not None and not asked.done():
                asked.set_result(path)

    def _write(self, recording: Recording) -> Path:
        config = self._config
        header: dict[str, Any] = {
            "v": 1,
            "game": config.game.id,
            "config": config.resolved(),
            "config_digest": config.digest(),
            "version": self._version,
            "epoch": self._epoch(),
            "at": self._clock.utc(),
        }
        name = f"flight-{header['epoch']}-{recording.until_seq:09d}-{recording.reason}.jsonl"
        path = Path(config.state.folder) / "flight" / name
        return recording.write(path, header, config.flight.records, config.flight.records_bytes)
