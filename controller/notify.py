"""sd_notify without a library: datagrams to `$NOTIFY_SOCKET` (sd_notify(3)); silent when nobody asked."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping


class Notifier:
    """Tells systemd how the daemon is. Every method does nothing when the service manager did not ask."""

    def __init__(self, environ: Mapping[str, str] = os.environ, pid: int | None = None) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s: float | None = None
        """Deadline of the watchdog in seconds; None when there is none, or it is meant for another process."""
        microseconds = environ.get("WATCHDOG_USEC", "")
        meant = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid() if pid is None else pid))
        if self._address and microseconds.isdigit() and int(microseconds) and meant:
            self.watchdog_s = int(microseconds) / 1e6

    def tell(self, *lines: str) -> None:
        """Send assignments such as `READY=1`; a manager that does not listen is no fault of ours."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                sock.sendto("\n".join(lines).encode(), self._address)

    def ready(self) -> None:
        """Started: the journal is read and the drivers were scanned once."""
        self.tell("READY=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self.tell("STATUS=" + text.replace("\n", " "))

    def alive(self) -> None:
        """Real progress was made: pet the watchdog."""
        self.tell("WATCHDOG=1")

    def stopping(self) -> None:
        """The stop has begun."""
        self.tell("STOPPING=1")

    def extend(self, seconds: float) -> None:
        """A long start (journal repair) goes on: at least this much more time is needed."""
        self.tell(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")
