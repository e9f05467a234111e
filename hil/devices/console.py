"""A simulated keypad with a chip reader on the console line, as its protocol document describes it.

Written from drivers/console/PROTOCOL.md by somebody who has not seen the driver: checksum and escapes are its own. One
message at a time is under way; it is sent again until acknowledged, with the age that it has by then.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

MS: Final = 1_000_000
AGAIN_NS: Final = 250 * MS
SECOND_NS: Final = 1_000 * MS
QUEUE_MAX: Final = 64
LAST_SEQ: Final = 9999
PLAIN: Final = frozenset(chr(code) for code in range(0x21, 0x7F)) - set("$*%")


def crc16(data: bytes) -> int:
    """CRC-16 with polynomial 1021 and start FFFF, bit by bit."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def escape(word: str) -> str:
    """`$`, `*`, `%`, spaces and everything that is not printable ASCII as %XX of its UTF-8 bytes."""
    return "".join(c if c in PLAIN else "".join(f"%{byte:02X}" for byte in c.encode()) for c in word)


def unescape(word: str) -> str:
    """The word that was escaped."""
    out, at = bytearray(), 0
    while at < len(word):
        if word[at] == "%":
            out.append(int(word[at + 1 : at + 3], 16))
            at += 3
        else:
            out += word[at].encode()
            at += 1
    return out.decode()


def frame(seq: int, who: str, age_ms: int, name: str, *words: str) -> bytes:
    """A frame with its checksum and line end."""
    body = " ".join((str(seq), who, str(age_ms), name, *map(escape, words)))
    return f"${body}*{crc16(body.encode()):04X}\r\n".encode()


@dataclass(slots=True)
class Message:
    """Something that happened at the table and has not been acknowledged."""

    seq: int
    at_ns: int
    who: str
    name: str
    words: tuple[str, ...]


class Keypad:
    """The device end of the line. Pure: it is told the time and never waits."""

    def __init__(self, *, device: str = "TC-KEYPAD-1", start_ns: int = 0, boot: int = 1, boots_in_ns: int = 0) -> None:
        self.device = device
        self.version = "1"
        self.shown: list[str] = []
        """Texts that were put on the display, the newest last."""
        self.greeted = False
        self.mute = False
        """While true the line is cut: nothing is said, nothing is heard."""
        self._boot = boot
        self._queue: deque[Message] = deque()
        self._seq = 1
        """Number of the next message."""
        self._speaks_ns = start_ns + boots_in_ns
        """When it next says HELLO or BEAT."""
        self._sends_ns: int | None = None
        """When the oldest message is (again) sent."""
        self._last_shown = 0
        self._heard = b""
        self._output = b""

    def due_ns(self) -> int:
        """When it has something to say next."""
        return self._speaks_ns if self._sends_ns is None else min(self._speaks_ns, self._sends_ns)

    def tick(self, now_ns: int) -> None:
        """Say everything that is due."""
        while (due := self.due_ns()) <= now_ns:
            if due == self._sends_ns:
                self._send(due)
            else:
                self._speaks_ns = due + SECOND_NS
                self._speak()

    def feed(self, data: bytes, at_ns: int) -> None:
        """Bytes from the controller."""
        self.tick(at_ns)
        if self.mute:
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            begin = line.rfind(b"$")
            text = line[begin + 1 :].strip() if begin >= 0 else b""
            body, star, check = text.rpartition(b"*")
            if star and check == b"%04X" % crc16(body):
                self._hear(body.decode(), at_ns)

    def take_output(self) -> bytes:
        """What it has said since the last call."""
        output, self._output = self._output, b""
        return output

    # what happens at the table

    def tell(self, at_ns: int, name: str, *words: object, who: str = "K") -> None:
        """Something happened: it is queued and sent as soon as the line is free."""
        self._queue.append(Message(self._seq, at_ns, who, name, tuple(str(word) for word in words)))
        self._seq = self._seq % LAST_SEQ + 1
        if len(self._queue) > QUEUE_MAX:
            self._queue.popleft()
        if self._sends_ns is None and self.greeted:
            self._sends_ns = at_ns

    def announce(self, at_ns: int, code: str, by: str = "croupier") -> None:
        """A key of the croupier's."""
        self.tell(at_ns, "ANN", code, by)

    def place(
        self, at_ns: int, spot: str, amount: int | str, player: str, *, tableau: int = 1, who: str = "K", chip: str = ""
    ) -> None:
        """Chips were put down: cents, or how many (`3x`)."""
        self.tell(at_ns, "CHIP+", tableau, spot, amount, player, *([chip] if chip else []), who=who)

    def remove(
        self, at_ns: int, spot: str, amount: int | str, player: str, *, tableau: int = 1, who: str = "K", chip: str = ""
    ) -> None:
        """Chips were taken away."""
        self.tell(at_ns, "CHIP-", tableau, spot, amount, player, *([chip] if chip else []), who=who)

    def choose(self, at_ns: int, player: str, what: str, value: str, *, tableau: int = 1) -> None:
        """A player's choice."""
        self.tell(at_ns, "CHOICE", tableau, player, what, value)

    def result(self, at_ns: int, value: int | str, *cell: int) -> None:
        """The croupier typed what he reads on the wheel."""
        self.tell(at_ns, "RESULT", value, *cell)

    def restart(self, at_ns: int, boots_in_ns: int = 0) -> None:
        """Power off and on: what was queued is gone, the numbers begin anew."""
        self._boot += 1
        self._queue.clear()
        self._seq, self._last_shown = 1, 0
        self.greeted, self._sends_ns = False, None
        self._speaks_ns = at_ns + boots_in_ns
        self._heard = b""

    # the line

    @property
    def boot(self) -> str:
        """The word that changes with every power-on."""
        return f"b{self._boot}"

    def _next(self) -> str:
        """The number of the oldest message that is not acknowledged, or of the next one."""
        return str(self._queue[0].seq if self._queue else self._seq)

    def _say(self, *parts: str, seq: int = 0, who: str = "K", age_ms: int = 0) -> None:
        if not self.mute:
            self._output += frame(seq, who, age_ms, *parts)

    def _speak(self) -> None:
        if self.greeted:
            self._say("BEAT", self.boot, self._next())
        else:
            self._say("HELLO", self.version, self.device, self.boot, self._next())

    def _send(self, now_ns: int) -> None:
        if not self._queue or not self.greeted:
            self._sends_ns = None
            return
        message = self._queue[0]
        age_ms = max(now_ns - message.at_ns, 0) // MS
        self._say(message.name, *message.words, seq=message.seq, who=message.who, age_ms=age_ms)
        self._sends_ns = now_ns + AGAIN_NS

    def _hear(self, body: str, at_ns: int) -> None:
        number, who, _, name, *words = body.split(" ")
        if who != "C":
            return
        words = [unescape(word) for word in words]
        if name == "HI" and words == [self.boot]:
            self.greeted = True
            self._last_shown = 0
            self._speaks_ns = at_ns + SECOND_NS
            self._sends_ns = at_ns if self._queue else None
        elif name == "WHO":
            self.greeted, self._sends_ns = False, None
            self._speaks_ns = at_ns
        elif name == "ACK" and self._queue and words == [str(self._queue[0].seq)]:
            self._queue.popleft()
            self._sends_ns = at_ns if self._queue else None
        elif name == "SHOW":
            if int(number) != self._last_shown:
                self._last_shown = int(number)
                self.shown.append(words[0] if words else "")
            self._say("ACK", number)
