"""The way over the local Unix socket: works while the broker is dead."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from controller.errors import UnreachableError
from controller.tablectl.link import ANSWER_S, Told


class Local:
    """A connection to the daemon on this machine (`controller.tablectl.link.Link`)."""

    def __init__(self, path: Path) -> None:
        self._where = f"the local socket {path}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_S)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            hint = "is the daemon running, and may you open the socket?"
            raise UnreachableError(f"{self._where}: {error.strerror or error}; {hint}") from error
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def get(self, topic: str) -> dict[str, Any]:
        """What stands on a topic."""
        return dict(self._asked({"get": topic})["data"])

    def absent(self) -> str:
        """Nobody else than the daemon is at the other end."""
        return ""

    def command(self, envelope: Mapping[str, Any], answer_s: float = ANSWER_S) -> dict[str, Any]:
        """The reply to an envelope."""
        return self._asked(envelope, answer_s)

    def watch(self, *topics: str, seconds: float | None = None) -> Iterator[Told]:
        """Lines with a topic, until the daemon ends or the time is over."""
        self._asked({"watch": list(topics)})
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            self._socket.settimeout(None if end is None else max(0.01, end - time.monotonic()))
            try:
                line = self._line()
            except TimeoutError:
                return
            if "topic" in line:
                yield Told(line["topic"], line["payload"])

    def _asked(self, line: Mapping[str, Any], answer_s: float = ANSWER_S) -> dict[str, Any]:
        self._socket.settimeout(answer_s)
        try:
            self._socket.sendall(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            while True:
                answer = self._line()
                if "topic" not in answer:
                    return answer
        except TimeoutError as error:
            raise UnreachableError(f"{self._where}: no answer in {answer_s:.0f} s; see its log") from error
        except OSError as error:
            raise UnreachableError(f"{self._where}: {error.strerror or error}") from error

    def _line(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise UnreachableError(f"{self._where}: the daemon has closed the connection")
        return dict(json.loads(line))
