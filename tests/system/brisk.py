"""An in-wheel sensor in a hurry: a roulette that gives a result as fast as its lines can be read.

For tests of what comes after the law (journal, outbox, restarts), where fifty coups by the physics would take half an
hour. Everything is real but the pace: bytes of the SlingShot protocol through a pseudo-terminal into the daemon's own
driver. The rotor is told by the sensor (`rotor = true`), rien ne va plus is automatic, nobody types the number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from hil import tables

MS = 1_000_000
REPEAT_NS = 400 * MS

ROTOR, BALL, SLOW, NUMBER, READY = range(5)


def brisk_table(**house: Any) -> dict[str, Any]:
    """The roulette française with the sensor as its only source."""
    table = tables.table("roulette-francaise")
    table["devices"]["wheel_sensor"]["rotor"] = True
    table["house"] |= {
        "rien_ne_va_plus": "automatique",
        "sources": ["wheel_sensor"],
        "draw_devices": ["wheel_sensor"],
        **house,
    }
    return table


def number(coup: int) -> int:
    """The result of the n-th coup: every one but zero, in no simple order."""
    return coup * 7 % 36 + 1


class BriskWheel:
    """A `hil.peers.Peer` that does what it is told and repeats its last line."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._state, self._spins, self._last, self._ccw = 2, 1, "", False
        self._said_ns = 0
        self._output = b""
        self.said = 0
        """How many lines it has said."""

    def tick(self, now_ns: int) -> None:
        """One line at a time, or the last one again."""
        if self._lines:
            self._output += self._lines.popleft()
            self._said_ns = now_ns
            self.said += 1
        elif now_ns - self._said_ns >= REPEAT_NS:
            self._output += self._line()
            self._said_ns = now_ns
            self.said += 1

    def feed(self, data: bytes, at_ns: int) -> None:
        """It obeys nobody."""

    def take_output(self) -> bytes:
        """What it has said."""
        output, self._output = self._output, b""
        return output

    def step(self, what: int, pocket: int = 0) -> None:
        """The next thing that happens in a coup."""
        if what == ROTOR:
            self._ccw = not self._ccw
        elif what == NUMBER:
            self._last, self._state = str(pocket), 5
            self._lines.append(b"%d\r\n" % pocket)
        elif what == READY:
            self._state, self._spins = 2, self._spins % 256 + 1
        else:
            self._state = {BALL: 3, SLOW: 4}[what]
        self._lines.append(self._line())

    def play(self, pockets: Iterable[int]) -> None:
        """Whole coups, one after the other."""
        for pocket in pockets:
            for what in (ROTOR, BALL, SLOW, NUMBER, READY):
                self.step(what, pocket)

    def _line(self) -> bytes:
        return b"*X;%d;%03d;%2s;0;165;%d\r\n" % (self._state, self._spins, self._last.encode(), self._ccw)
