"""The one place where time is read: monotonic for everything that is measured, wall time as a label only.

Durations, order and legal instants use `mono_ns` (CLOCK_MONOTONIC, the clock of the kernel's edge stamps) or the
journal's `seq`; wall time is printed beside them with a quality flag (field cases 90, 106).
"""

from __future__ import annotations

import ctypes
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

SYNCHRONISED_FILE = Path("/run/systemd/timesync/synchronized")
"""Touched by systemd-timesyncd once it has set the clock; asked when the kernel does not let us (ProtectClock)."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_TIME_ERROR = 5
"""adjtimex(2): the clock is not synchronised."""


def boot_id() -> str:
    """The kernel's id of this boot: CLOCK_MONOTONIC is only comparable within it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def kernel_synchronised() -> bool | None:
    """What the kernel says about the wall clock; None when it may not be asked."""
    timex = (ctypes.c_long * 64)()  # struct timex is 208 bytes on 64-bit; modes = 0 only reads
    state = int(_LIBC.adjtimex(ctypes.byref(timex)))
    return None if state < 0 else state != _TIME_ERROR


def rfc3339(moment: datetime) -> str:
    """`2026-01-31T12:00:00.123Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class Clock:
    """Real time; tests and replays pass another object with the same methods."""

    def mono_ns(self) -> int:
        """CLOCK_MONOTONIC in nanoseconds."""
        return time.monotonic_ns()

    def now(self) -> datetime:
        """Wall time, UTC: a label, never compared with an instant of `mono_ns`."""
        return datetime.now(UTC)

    def utc(self, at_ns: int | None = None) -> str:
        """Wall time as a label, of now or of a monotonic instant of this boot."""
        now = self.now()
        if at_ns is not None:
            now -= timedelta(microseconds=(self.mono_ns() - at_ns) / 1000)
        return rfc3339(now)

    def synchronised(self) -> bool:
        """Whether something vouches for the wall clock."""
        said = kernel_synchronised()
        return SYNCHRONISED_FILE.exists() if said is None else said
