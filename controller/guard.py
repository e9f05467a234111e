"""Looks every few seconds at what surrounds the daemon: disk, supply, wall clock, devices; its alarms come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from controller import board
from controller.clock import Clock
from controller.results import Told
from rules.words import text

LOOK_S: Final = 5.0
STEP_MS: Final = 1000
"""A wall clock that moves by more than this against the monotonic one was set (field case 106)."""


class Note(Protocol):
    """Journals something of the controller's own (`Sequencer.note`)."""

    def __call__(self, kind: str, body: Mapping[str, Any], *told: Told) -> None:
        """With the events that say it."""
        ...


class Guard:
    """`run` is a restartable task."""

    def __init__(
        self,
        *,
        folder: Path,
        free_bytes_min: int,
        clock: Clock,
        faults: Callable[[], Mapping[str, str]],
        alarm: Callable[[str, str, str], None],
        clear: Callable[[str], None],
        note: Note,
        beat: Callable[[], None],
        root: Path = Path("/"),
    ) -> None:
        """`faults` says what a person must mend, by device (`Instruments.faults`)."""
        self._folder, self._free_bytes_min, self._root = folder, free_bytes_min, root
        self._clock, self._faults = clock, faults
        self._alarm, self._clear, self._note, self._beat = alarm, clear, note, beat
        self._offset_ms: int | None = None
        self._wrong: set[str] = set()
        """Alarms that were told: their figures change at every look, and that is no news."""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            self._beat()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Once."""
        disk, cpu = board.disk(self._folder, self._root), board.cpu(self._root)
        free = disk["free_bytes"]
        self._is(
            "state:volatile",
            not disk["durable"],
            "dossier_volatil",
            folder=self._folder,
            filesystem=disk["filesystem"],
        )
        self._is("state:read_only", disk["read_only"] is True, "journal_muet", why="read_only")
        spare = self._free_bytes_min // 10 if "state:disk" in self._wrong else 0  # else it would come and go
        full = isinstance(free, int) and free < self._free_bytes_min + spare
        self._is("state:disk", full, "disque_plein", free=free, least=self._free_bytes_min)
        self._is("supply", cpu["undervoltage"] is True, "sous_tension")
        for role, fault in self._faults().items():
            name = f"device:{role}:fault"
            if fault:  # another fault than before is news
                self._alarm(name, "appareil_en_defaut", text("appareil_en_defaut", device=role, fault=fault))
            else:
                self._clear(name)
        self._wall_clock()

    def _is(self, name: str, wrong: bool, code: str, **values: object) -> None:
        if not wrong:
            self._wrong.discard(name)
            self._clear(name)
        elif name not in self._wrong:
            self._wrong.add(name)
            self._alarm(name, code, text(code, **values))

    def _wall_clock(self) -> None:
        """Tell once that somebody has set the wall clock, and by how much."""
        offset_ms = round(self._clock.now().timestamp() * 1000) - self._clock.mono_ns() // 1_000_000
        before, self._offset_ms = self._offset_ms, offset_ms
        if before is None or abs(offset_ms - before) < STEP_MS:
            return
        moved = offset_ms - before
        told = Told(kind="anomaly", code="horloge_decalee", text=text("horloge_decalee", ms=moved), data={"ms": moved})
        self._note("clock", {"moved_ms": moved}, told)
