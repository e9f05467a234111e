"""The unmodified daemon as a process, watched as systemd would watch it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hil.floor import RigError, end, mortal


def program(name: str, module: str) -> list[str]:
    """The installed program beside this Python, else its module: the same entry point."""
    script = Path(sys.executable).with_name(name)
    return [str(script)] if script.is_file() else [sys.executable, "-m", module]


class Daemon:
    """`table-controller run --config FILE`; what it says is kept in `log`."""

    def __init__(self, config: Path, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.log = folder / "daemon.log"
        self.process: asyncio.subprocess.Process | None = None
        self.starts = 0

    @property
    def running(self) -> bool:
        """True while the process lives."""
        return self.process is not None and self.process.returncode is None

    def last_words(self, lines: int = 8) -> str:
        """The end of what it said."""
        said = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(said[-lines:]) or "nothing"

    async def start(self, deadline_s: float = 60.0) -> None:
        """Start it and wait for READY=1; raises RigError with its last words."""
        address = self.folder / "notify.sock"
        address.unlink(missing_ok=True)
        environment = {**os.environ, "NOTIFY_SOCKET": str(address), "PYTHONUNBUFFERED": "1"}
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.setblocking(False)
            notify.bind(str(address))
            with self.log.open("ab") as log:
                self.process = await asyncio.create_subprocess_exec(
                    *mortal(),
                    *program("table-controller", "controller"),
                    *("run", "--config", str(self.config)),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
            self.starts += 1
            deadline = time.monotonic() + deadline_s
            while not self._told_ready(notify):
                if self.process.returncode is not None:
                    code = self.process.returncode
                    raise RigError(f"the daemon ended with {code} before it was ready:\n{self.last_words()}")
                if time.monotonic() > deadline:
                    raise RigError(f"the daemon was not ready in {deadline_s:.0f} s:\n{self.last_words()}")
                await asyncio.sleep(0.01)

    @staticmethod
    def _told_ready(notify: socket.socket) -> bool:
        try:
            return b"READY=1" in notify.recv(4096).splitlines()
        except BlockingIOError:
            return False

    async def stop(self) -> int:
        """A clean stop; returns its exit code."""
        return await end(self.process, 20.0) if self.process is not None else 0

    async def kill(self) -> None:
        """A power cut for this process alone: SIGKILL."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            await self.process.wait()


async def run_tool(arguments: Sequence[str], deadline_s: float = 60.0) -> tuple[int, str, str]:
    """Run `tablectl ARGUMENTS` -> (exit code, stdout, stderr)."""
    process = await asyncio.create_subprocess_exec(
        *program("tablectl", "controller.tablectl"),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(deadline_s):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()
