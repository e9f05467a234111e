"""A serial cable: a pseudo-terminal under a fixed name that can be pulled out and plugged in again."""

from __future__ import annotations

import os
import pty
import select
import tty
from pathlib import Path


class Tty:
    """The device's end. As on a real port, what is sent while nobody has the port open is lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._master: int | None = None
        self._poll = select.poll()

    @property
    def plugged(self) -> bool:
        """True while the cable is in."""
        return self._master is not None

    def plug(self) -> None:
        """The name appears; the daemon may open it."""
        if self._master is not None:
            return
        master, slave = pty.openpty()
        tty.setraw(slave)
        name = os.ttyname(slave)
        os.close(slave)
        os.set_blocking(master, False)
        self._master = master
        self._poll.register(master, select.POLLIN | select.POLLHUP)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(name)

    def unplug(self) -> None:
        """The name goes, and whoever has it open reads the end of the file."""
        if self._master is None:
            return
        self.path.unlink(missing_ok=True)
        self._poll.unregister(self._master)
        os.close(self._master)
        self._master = None

    def opened(self) -> bool:
        """True while somebody has the port open."""
        if self._master is None:
            return False
        return not any(event & select.POLLHUP for _, event in self._poll.poll(0))

    def send(self, data: bytes) -> None:
        """Bytes from the device; lost while nobody listens, or when the reader has stopped reading."""
        if self._master is not None and data and self.opened():
            try:
                os.write(self._master, data)
            except BlockingIOError:
                return

    def receive(self) -> bytes:
        """Everything the daemon has written so far."""
        got = bytearray()
        while self._master is not None and any(event & select.POLLIN for _, event in self._poll.poll(0)):
            try:
                piece = os.read(self._master, 4096)
            except OSError:  # the port was closed between the poll and the read
                break
            if not piece:
                break
            got += piece
        return bytes(got)
