"""The evening of a real wheel, as it was recorded: for decoders, for the pipeline, and played through a cable."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).parent / "data" / "slingshot2-session-a.tsv.xz"
SECOND = 1_000_000_000
COUP = (79.4, 199.4)
"""Two minutes with all that can happen: a launch, no more bets, a sensor that sticks, the wheel giving up, a silence,
the one damaged line, and a silence again."""


def recording(begin_s: float = 0.0, end_s: float = 1e9) -> Iterator[tuple[int, bytes]]:
    """(CLOCK_MONOTONIC, line) of everything that the wheel said between these seconds of the recording."""
    with lzma.open(FILE, "rt", encoding="ascii") as file:
        rows = list(file)
    for row in rows:
        if not row.startswith("#"):
            seconds, direction, line = row.rstrip("\n").split("\t")
            if direction == "<" and begin_s <= float(seconds) < end_s:
                yield round(float(seconds) * SECOND), line.encode() + b"\r\n"


class RecordedWheel:
    """A `hil.peers.Peer` that says what the wheel said, as fast as it did; before that it is closed."""

    def __init__(self, *pieces: tuple[float, float]) -> None:
        """Pieces of the recording, one after the other."""
        self._lines: list[tuple[int, bytes]] = []
        for begin_s, end_s in pieces:
            shift = (self._lines[-1][0] if self._lines else 0) - round(begin_s * SECOND)
            self._lines += [(at_ns + shift, line) for at_ns, line in recording(begin_s, end_s)]
        self._ends_ns = round(sum(end_s - begin_s for begin_s, end_s in pieces) * SECOND)
        self._began_ns: int | None = None
        self._idle_ns = 0
        self._output = b""

    def play(self, now_ns: int) -> None:
        """Begin."""
        self._began_ns = now_ns

    def over(self, now_ns: int) -> bool:
        """Every piece was played to its end, silences too."""
        return self._began_ns is not None and now_ns - self._began_ns >= self._ends_ns

    def tick(self, now_ns: int) -> None:
        """Say what is due."""
        if self._began_ns is None:
            if now_ns - self._idle_ns >= SECOND // 2:
                self._output, self._idle_ns = self._output + b"*X;6;001;  ;0;000;0\r\n", now_ns
            return
        while self._lines and self._began_ns + self._lines[0][0] <= now_ns:
            self._output += self._lines.pop(0)[1]

    def feed(self, data: bytes, at_ns: int) -> None:
        """It is a recording: it obeys nobody."""

    def take_output(self) -> bytes:
        """What it has said."""
        output, self._output = self._output, b""
        return output
