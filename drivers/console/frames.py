"""Frames of the console line: making one, and finding them in a byte stream (PROTOCOL.md sections 2 and 3).

    $ seq SP who SP age SP NAME [SP word]... * CRC16 CR LF

`$` and `*` never occur inside: words carry `%XX` for them, for the space and for all that is not printable ASCII. So a
reader that lost its place finds the next frame at the next `$`, whatever came before.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

FRAME_MAX: Final = 250
"""Longest frame, from `$` to the last digit of the checksum."""
GAP_NS: Final = 500_000_000
"""A frame takes 22 ms at most: the rest of one that comes after a pause longer than this is not trusted."""
SEQ_MAX: Final = 9999
"""Sequence numbers run from 1 to this, then from 1 again; 0 is an unnumbered frame."""
CRC_START: Final = 0xFFFF

_CRC_LENGTH: Final = 4
_FRAME: Final = re.compile(
    rb"\$(0|[1-9]\d{0,3}) ([KRC]) (0|[1-9]\d{0,7}) ([A-Z]{2,8}[+-]?)((?: [!-#%-)+-~]+)*)\*([0-9A-F]{4})"
)
_SAFE: Final = "!\"#&'()+,-./:;<=>?@[\\]^_`{|}~"
"""Printable characters that stand for themselves in a word; letters and digits do too."""


class Frame(NamedTuple):
    """A frame whose checksum is right."""

    seq: int
    who: str
    """`K` the keypad (a person), `R` the chip reader (a sensor), `C` the controller."""
    age_ms: int
    """How long before its sending the event happened."""
    name: str
    words: tuple[str, ...]


def checksum(body: bytes) -> int:
    """CRC-16 of what stands between `$` and `*`: polynomial 1021, start FFFF, nothing reflected or inverted."""
    return crc_hqx(body, CRC_START)


def encode(seq: int, who: str, age_ms: int, name: str, words: Iterable[str] = ()) -> bytes:
    """A frame with its line end; raises ValueError when it would be too long."""
    parts = [str(seq), who, str(age_ms), name, *(quote(word, safe=_SAFE) for word in words)]
    body = " ".join(parts).encode("ascii")
    if len(body) + 2 + _CRC_LENGTH > FRAME_MAX:
        raise ValueError(f"{name}: {len(body)} characters are too many for a frame of {FRAME_MAX}")
    return b"$%s*%04X\r\n" % (body, checksum(body))


def beginning(text: str, room: int) -> str:
    """As much of `text` as takes `room` bytes in a frame."""
    text = text[:room]
    while len(quote(text, safe=_SAFE)) > room:
        text = text[:-1]
    return text


def decode(raw: bytes) -> Frame | None:
    """The frame that these bytes are, from `$` to the checksum; None when anything about it is wrong."""
    found = _FRAME.fullmatch(raw)
    if found is None or int(found[6], 16) != checksum(raw[1 : -_CRC_LENGTH - 1]):
        return None
    try:
        words = tuple(unquote(word, errors="strict") for word in found[5].decode().split())
    except UnicodeDecodeError:
        return None
    return Frame(int(found[1]), found[2].decode(), int(found[3]), found[4].decode(), words)


class Scanner:
    """Finds frames in a byte stream. Same pieces for any split of the same bytes; memory is bounded by FRAME_MAX."""

    def __init__(self) -> None:
        self.partial = b""
        self.junk = 0
        """Bytes outside of frames, line ends not counted."""
        self._at_ns = 0

    def feed(self, data: bytes, at_ns: int) -> list[bytes]:
        """Candidates in order: from a `$` to the end of a checksum, or to where it stopped being a frame."""
        pieces: list[bytes] = []
        if self.partial and at_ns - self._at_ns > GAP_NS:
            pieces.append(self.partial)
            self.partial = b""
        self._at_ns = at_ns
        text, at = self.partial + data, 0
        while True:
            start = text.find(b"$", at)
            outside = text[at : len(text) if start < 0 else start]
            self.junk += len(outside) - outside.count(b"\r") - outside.count(b"\n")
            if start < 0:
                self.partial = b""
                return pieces
            end = self._end(text, start)
            if end is None:
                self.partial = text[start:]
                return pieces
            pieces.append(text[start:end])
            at = end

    def drop(self) -> None:
        """Forget a half-read frame."""
        self.partial = b""

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"partial": self.partial.hex(), "junk": self.junk, "at_ns": self._at_ns}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.partial, self.junk, self._at_ns = bytes.fromhex(state["partial"]), state["junk"], state["at_ns"]

    @staticmethod
    def _end(text: bytes, start: int) -> int | None:
        """Where the candidate that begins at `start` ends; None while more bytes are needed to tell."""
        limit = start + FRAME_MAX
        star = text.find(b"*", start, limit - _CRC_LENGTH)
        whole = limit if star < 0 else star + 1 + _CRC_LENGTH
        again = text.find(b"$", start + 1, whole)
        if again >= 0:
            return again
        return whole if len(text) >= whole else None
