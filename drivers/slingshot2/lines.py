"""The lines of the Cammegh SlingShot 2: cutting the byte stream into them, and reading one (PROTOCOL.md sections 2, 3).

    * X ; S ; N N N ; W W ; F ; V V V ; D CR LF     status, 20 characters
    W W CR LF                                       bare winning number
    * c SP text CR LF                               answer to command c
    * Y ; k ; n n n [; d d] CR LF                   bonus number

Nothing of a line is protected by a checksum, so a line counts only when every character of it is as it must be.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

LINE_MAX: Final = 1024
"""Longest line kept: a stored log page is 256 bytes in hexadecimal plus its checksum."""
GAP_NS: Final = 400_000_000
"""A line takes 23 ms at 9600 baud: what follows a pause longer than this does not belong to what came before it."""

EXPIRED: Final = 999
"""In the place of the number or of the days: the licence of the bonus numbers has run out."""

_BREAK: Final = re.compile(rb"[\r\n*]")
_STATUS: Final = re.compile(rb"\*X;([1-7]);(\d{3});(  | \d|[123]\d|00);([0-9A-F]);(\d{3});([01])")
_BARE: Final = re.compile(rb" ?\d|[123]\d|00")
_BONUS: Final = re.compile(rb"\*Y;[1-6];(\d{3})(?:;(\d{1,3}))?")
_ANSWER: Final = re.compile(rb"\*([ACFIKMOPRSTVWdosuvw])(?: [!-~][ -~]*)?")


class Status(NamedTuple):
    """One status line."""

    state: int
    """1 to 7."""
    spins: int
    """Spin counter since power on, 1 to 256, then 1 again."""
    last: str
    """Last winning number as printed, without its padding; empty before the first."""
    flags: int
    """Sum of 1, 2, 4, 8."""
    rpm10: int
    """Speed of the rotor, tenths of a turn per minute."""
    ccw: bool
    """The rotor turns anticlockwise."""


class Bare(NamedTuple):
    """A winning number alone on its line."""

    number: str


class Bonus(NamedTuple):
    """A bonus number; `days` is what is left of its licence (`EXPIRED`), None when not told."""

    days: int | None


class Answer(NamedTuple):
    """What the wheel answers to the command `letter`."""

    letter: str
    text: str


Line = Status | Bare | Bonus | Answer


class Splitter:
    """Cuts bytes into lines: CR, LF or both end one, `*` always begins one."""

    def __init__(self) -> None:
        self.partial = b""
        self._at_ns = 0

    def feed(self, data: bytes, at_ns: int) -> list[tuple[bytes, bool]]:
        """Pieces that ended, in order, with whether a line end ended them; the same for any split of the bytes."""
        pieces: list[tuple[bytes, bool]] = []
        if self.partial and at_ns - self._at_ns > GAP_NS:
            pieces.append((self.partial, False))
            self.partial = b""
        self._at_ns = at_ns
        start = 0
        for found in _BREAK.finditer(data):
            piece = self._with(data[start : found.start()])
            start = found.end()
            begins = found[0] == b"*"
            if piece:
                pieces.append((piece, not begins))
            self.partial = b"*" if begins else b""
        self.partial = self._with(data[start:])
        return pieces

    def drop(self) -> None:
        """Forget a half-read line."""
        self.partial = b""

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"partial": self.partial.hex(), "at_ns": self._at_ns}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.partial, self._at_ns = bytes.fromhex(state["partial"]), state["at_ns"]

    def _with(self, piece: bytes) -> bytes:
        """The partial line and `piece`, cut one byte above the longest line so that it can be told as too long."""
        return (self.partial + piece[: LINE_MAX + 1])[: LINE_MAX + 1]


def read(line: bytes) -> Line | None:
    """What a whole line without its end says; None when it is no line of this protocol."""
    if len(line) > LINE_MAX:
        return None
    if status := _STATUS.fullmatch(line):
        state, spins, last, flags, rpm10, ccw = status.groups()
        if not 1 <= int(spins) <= 256:
            return None
        number = last.decode().strip()
        return Status(int(state), int(spins), number, int(flags, 16), int(rpm10), ccw == b"1")
    if _BARE.fullmatch(line):
        return Bare(line.decode().strip())
    if bonus := _BONUS.fullmatch(line):
        number, days = bonus.groups()
        return Bonus(EXPIRED if int(number) == EXPIRED else None if days is None else int(days))
    if answer := _ANSWER.fullmatch(line):
        return Answer(answer[1].decode(), line[2:].decode().strip())
    return None
