"""What the board and its disk say about themselves: temperature, undervoltage, free space, where the journal lives.

Every value is None where this board does not tell. Paths are below `root`, so that tests can build a board.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from controller.wire import Gauge

THROTTLED: Final = "sys/devices/platform/soc/soc:firmware/get_throttled"
"""Flags of the Raspberry Pi's firmware, hexadecimal: bit 0 undervoltage now, bit 16 since boot (field case 96)."""
VOLATILE: Final = ("tmpfs", "ramfs", "overlay")
"""File systems that forget everything at a reboot (field case 97)."""


def cpu(root: Path = Path("/")) -> dict[str, Gauge]:
    """Temperature in thousandths of a degree, and whether the supply is or was too low."""
    flags = _number(root / THROTTLED, 16)
    return {
        "temperature_mdeg": _number(root / "sys/class/thermal/thermal_zone0/temp"),
        "undervoltage": None if flags is None else bool(flags & 1),
        "undervoltage_since_boot": None if flags is None else bool(flags >> 16 & 1),
        "throttled": None if flags is None else bool(flags >> 2 & 1),
    }


def disk(folder: Path, root: Path = Path("/")) -> dict[str, Gauge]:
    """Free bytes of the state folder, its file system, and whether what is written there survives a reboot."""
    kind, read_only = _mount(folder.resolve(), root / "proc/self/mountinfo")
    free: int | None = None
    if folder.is_dir():
        space = os.statvfs(folder)
        free = space.f_bavail * space.f_frsize
    return {"free_bytes": free, "filesystem": kind, "durable": kind not in VOLATILE, "read_only": read_only}


def _mount(folder: Path, table: Path) -> tuple[str, bool]:
    """Type of the file system that holds `folder`, and whether it is mounted read-only (proc(5), mountinfo)."""
    best, kind, read_only = -1, "unknown", False
    for line in table.read_text().splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        point = Path(fields[4].encode().decode("unicode_escape"))
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split()[0]
            read_only = "ro" in (*fields[5].split(","), *after.split()[2].split(","))
    return kind, read_only


def _number(path: Path, base: int = 10) -> int | None:
    try:
        return int(path.read_text().strip(), base)
    except (OSError, ValueError):
        return None
