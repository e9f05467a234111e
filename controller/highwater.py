"""The high-water file: what the journal had reached, kept outside it, so that an older copy of it is recognised.

Two slots of one line each, in different blocks. The second is written after every commit without a sync (it survives
the death of the process); `settle` syncs it and then writes and syncs the first, so that at every instant of a power
cut one slot is whole. The slot with the larger `n` counts. The mark is never ahead of the journal.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.files import sync_folder

NAME: Final = "journal.highwater"
BLOCK: Final = 4096
"""Distance of the slots."""
LINE: Final = 256


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the journal had come."""

    epoch: str
    seq: int
    result_no: int


class HighWater:
    """The file, open for writing. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self.mark, self._n, self.damaged = _read(self._path)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        sync_folder(folder)
        self.settled = True

    def note(self, mark: Mark) -> None:
        """The journal has committed this much; costs no sync."""
        if mark != self.mark:
            self._put(1, mark)
            self.mark, self.settled = mark, False

    def settle(self) -> None:
        """Make what was noted survive a power cut."""
        if self.mark is None or self.settled:
            return
        os.fdatasync(self._fd)
        self._put(0, self.mark)
        os.fdatasync(self._fd)
        self.settled = True

    def close(self) -> None:
        """Settle and close."""
        try:
            self.settle()
        finally:
            os.close(self._fd)

    def _put(self, slot: int, mark: Mark) -> None:
        self._n += 1
        text = json.dumps({"n": self._n, "epoch": mark.epoch, "seq": mark.seq, "result_no": mark.result_no})
        line = f"{zlib.crc32(text.encode()):08x} {text}".ljust(LINE - 1) + "\n"
        os.pwrite(self._fd, line.encode(), slot * BLOCK)


def _read(path: Path) -> tuple[Mark | None, int, bool]:
    """The newest whole mark, its number, and whether the file holds something but no whole mark."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, 0, False
    best: tuple[Mark | None, int] = (None, 0)
    for start in (0, BLOCK):
        crc, _, text = data[start : start + LINE].strip().partition(b" ")
        if crc == f"{zlib.crc32(text):08x}".encode():
            said = json.loads(text)
            if said["n"] > best[1]:
                best = (Mark(said["epoch"], said["seq"], said["result_no"]), said["n"])
    return *best, best[0] is None and any(data)
