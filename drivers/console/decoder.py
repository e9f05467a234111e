"""The console line: from frames to facts, with handshake, acknowledgement and heartbeat (PROTOCOL.md section 4).

    device                          controller
    HELLO 1 TC-KEYPAD-1 b7 12  ──►               each second until answered
                               ◄──  HI b7        version and device are right: from here on data is taken
    12 ANN rien_ne_va_plus     ──►               sent again every 250 ms until acknowledged; one at a time
                               ◄──  ACK 12       told once, however often it came
    BEAT b7 13                 ──►               each second
                               ◄──  WHO          only when HELLO was not heard: after a start of the controller

Nothing is sent before the device has spoken, so nothing is sent into its boot; nothing is taken from a device that
has not said who it is. One that keeps its boot word and its next sequence number over a pulled plug has lost nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from drivers.base import Asked
from drivers.console.frames import FRAME_MAX, SEQ_MAX, Frame, Scanner, beginning, decode, encode
from drivers.console.messages import When, fact_of
from drivers.link import MS, Link
from rules.facts import Doubtful, Fact, Origin, Overrun

VERSION: Final = "1"
BOOT_NS: Final = 6_000 * MS
"""Opening the port may reset the device; it boots within 5 s and then says HELLO."""
WIRE_NS: Final = 40 * MS
"""Longest way of a frame from the device to our stamp: 22 ms on the wire, 16 ms in a USB adapter's latency timer."""
SHOW_AGAIN_NS: Final = 1_000 * MS
SHOW_TRIES: Final = 5
ROOM: Final = FRAME_MAX - len("$9999 C 0 SHOW *0000")
"""What a frame has for the text; the rest of a longer one is not shown."""
SHOWS_MAX: Final = 8
"""Texts that wait for the keypad; the oldest gives way."""
WHO_NS: Final = 500 * MS
"""WHO is not asked more often than this."""

ADVICE: Final[Mapping[str, str]] = {
    "silence": "Le pupitre ne répond plus : alimentation et câble.",
    "wrong_device": "Ce qui est branché ici ne parle pas ce protocole : vérifier `match`, la vitesse (115200 8N1).",
    "bad_link": "Trames abîmées : câble, masse, vitesse (115200 8N1) ou un second programme sur ce port.",
}
"""What to do by the code that `health` shows."""

_SEQ: Final = re.compile(r"[1-9]\d{0,3}")
_BOOT: Final = re.compile(r"[0-9a-zA-Z]{1,16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The `[devices.<role>]` section of a console line."""

    device: str = ""
    """The device id that must answer; empty takes any device that speaks this protocol."""
    silence_ms: int = 3000
    """Without a frame for so long the device is lost; it beats each second."""

    def __post_init__(self) -> None:
        if not 1_500 <= self.silence_ms <= 60_000:
            raise ValueError(f"silence_ms: {self.silence_ms} is out of 1500 to 60000 (the device beats each second)")
        if not self.device.isascii() or not self.device.isprintable() or " " in self.device:
            raise ValueError(f"device: {self.device!r} is not printable ASCII without spaces")


@dataclass(slots=True)
class Peer:
    """The device at the other end."""

    greeted: bool = False
    """It has said who it is since the port was opened, and is the right one."""
    device: str = ""
    boot: str = ""
    expected: int = 0
    """Sequence number of the next message; 0 = unknown."""
    asked_ns: int | None = None
    """When WHO was last sent."""
    duplicates: int = 0
    lost: int = 0
    restarts: int = 0
    strange: int = 0
    """Frames with a right checksum that mean nothing to us."""
    stranger: str = ""
    """Who answered instead."""


@dataclass(slots=True)
class Show:
    """A text on its way to the keypad."""

    seq: int
    text: str
    tries: int = 0
    next_ns: int = 0


@dataclass(slots=True)
class Outbox:
    """What the controller sends."""

    shows: list[Show] = field(default_factory=list)
    seq: int = 0
    shown: int = 0
    unshown: int = 0


class Console:
    """Decoder of one console line (`drivers.base.ByteDecoder`)."""

    def __init__(self, role: str, options: Options) -> None:
        self._role = role
        self._options = options
        self._link = Link(role, options.silence_ms * MS)
        self._scanner = Scanner()
        self._peer = Peer()
        self._outbox = Outbox()
        self._output = b""
        self._frames: deque[str] = deque(maxlen=16)
        self._rejected: deque[str] = deque(maxlen=8)

    # the contract of every decoder

    def due_ns(self) -> int | None:
        """When the silence becomes a fact or a text is to be sent again."""
        waiting = [self._link.due_ns(), self._outbox.shows[0].next_ns if self._showing() else None]
        return min((at for at in waiting if at is not None), default=None)

    def tick(self, now_ns: int) -> list[Fact]:
        """Tell a silence that is due; send what was not acknowledged again."""
        facts = self._link.tick(now_ns)
        while self._showing() and self._outbox.shows[0].next_ns <= now_ns:
            self._show(self._outbox.shows[0], now_ns)
        return facts

    def opened(self, at_ns: int) -> list[Fact]:
        """The port is open: wait for the device to say who it is."""
        self._closed()
        self._link.opened(at_ns, max(BOOT_NS, self._options.silence_ms * MS))
        return []

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The port is gone; which boot and which message come next stays known."""
        self._closed()
        return self._link.gone(at_ns, why)

    def feed(self, data: bytes, at_ns: int, unread_ns: int = 0) -> list[Fact]:
        """Any piece of the stream; never raises."""
        facts = self.tick(at_ns - unread_ns)
        for raw in self._scanner.feed(data, at_ns):
            frame = decode(raw)
            if frame is None or frame.who == "C":
                self._rejected.append(raw[:64].hex(" "))
                facts += self._link.damaged(at_ns)
            else:
                self._frames.append(raw.decode())
                facts += self._frame(frame, at_ns)
        self._link.noise = self._link.noise or bool(data)
        return facts

    def take_output(self) -> bytes:
        """Acknowledgements, greetings and texts for the device."""
        output, self._output = self._output, b""
        return output

    asks = frozenset({"who"})
    orders = asks | {"show"}

    def command(self, name: str, args: Mapping[str, object]) -> Asked:
        """`show {text}` puts a text on the keypad (empty clears it), `who` asks the device to say who it is."""
        if name == "who" and not args:
            self._send(0, "WHO")
            return Asked("WHO sent")
        if name != "show":
            raise ValueError(f"console has no command {name!r}; there are: show {{text}}, who")
        text = args.get("text", "")
        if set(args) - {"text"} or not isinstance(text, str) or not all(c.isprintable() for c in text):
            raise ValueError("show: needs `text` alone, printable characters")
        outbox = self._outbox
        outbox.seq = _after(outbox.seq)
        outbox.shows.append(Show(outbox.seq, beginning(text, ROOM)))
        if len(outbox.shows) > SHOWS_MAX:
            del outbox.shows[0]
            outbox.unshown += 1
        return Asked(f"text {outbox.seq} queued")

    def take_answer(self) -> None:
        """A keypad answers with acknowledgements only."""

    def snapshot(self) -> dict[str, Any]:
        """Everything that later facts depend on, and the counters."""
        return {
            "link": self._link.snapshot(),
            "scanner": self._scanner.snapshot(),
            "peer": asdict(self._peer),
            "outbox": asdict(self._outbox),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._link.restore(state["link"])
        self._scanner.restore(state["scanner"])
        self._peer = Peer(**state["peer"])
        shows = [Show(**show) for show in state["outbox"]["shows"]]
        self._outbox = Outbox(**{**state["outbox"], "shows": shows})

    def health(self) -> dict[str, int | str | None]:
        """Counters, and who is at the other end."""
        peer = self._peer
        return {
            **self._link.health(),
            "junk_bytes": self._scanner.junk,
            "duplicates": peer.duplicates,
            "lost_messages": peer.lost,
            "device_restarts": peer.restarts,
            "strange": peer.strange,
            "unshown": self._outbox.unshown,
            "device": peer.device or None,
            "stranger": peer.stranger or None,
            "advice": self._advice(),
            "fault": ADVICE["bad_link"] if self._link.bad else None,
        }

    def sample(self) -> dict[str, Any]:
        """The last frames as text and what was rejected in hex."""
        peer = self._peer
        return {
            "greeted": peer.greeted,
            "boot": peer.boot,
            "expected": peer.expected,
            "frames": list(self._frames),
            "rejected": list(self._rejected),
            "texts_waiting": len(self._outbox.shows),
        }

    # frames of the device

    def _frame(self, frame: Frame, at_ns: int) -> list[Fact]:
        """One frame with a right checksum."""
        match frame:
            case Frame(name="HELLO", words=(version, device, boot, after)) if _BOOT.fullmatch(boot):
                return self._hello(version, device, boot, _seq(after), at_ns)
            case _ if not self._peer.greeted:
                self._ask(at_ns)
                return []
            case Frame(name="BEAT", words=(boot, after)):
                return self._beat(boot, _seq(after), at_ns)
            case Frame(name="ACK", words=(word,)):
                return self._acknowledged(_seq(word), at_ns)
            case _ if frame.seq > 0:
                return self._message(frame, at_ns)
        return [*self._link.heard(at_ns), *self._strange(at_ns)]

    def _hello(self, version: str, device: str, boot: str, after: int, at_ns: int) -> list[Fact]:
        """The device says who it is: greet it, or take nothing from it."""
        peer = self._peer
        if version != VERSION or (self._options.device and device != self._options.device) or after == 0:
            peer.greeted, peer.stranger = False, f"{device} (protocol {version})"
            return self._link.gone(at_ns, "wrong_device")
        facts = self._link.heard(at_ns)
        if peer.boot and (boot, device) != (peer.boot, peer.device):
            peer.restarts += 1
            peer.expected = after
            facts.append(self._doubt(at_ns, "device_restarted"))
        facts += self._hole(after, at_ns)
        peer.greeted, peer.device, peer.boot, peer.stranger = True, device, boot, ""
        self._send(0, "HI", boot)
        return facts

    def _beat(self, boot: str, after: int, at_ns: int) -> list[Fact]:
        """The device is there; its next number tells what it had to give up."""
        if boot != self._peer.boot or after == 0:
            self._peer.greeted = False
            self._ask(at_ns)
            return []
        return [*self._link.heard(at_ns), *self._hole(after, at_ns)]

    def _message(self, frame: Frame, at_ns: int) -> list[Fact]:
        """A numbered message: acknowledged always, told once."""
        peer = self._peer
        facts = self._link.heard(at_ns)
        self._send(0, "ACK", str(frame.seq))
        if _ahead(frame.seq, peer.expected) is None:
            peer.duplicates += 1
            return facts
        facts += self._hole(frame.seq, at_ns)
        peer.expected = _after(frame.seq)
        until_ns = max(at_ns - frame.age_ms * MS, 0)
        origin = Origin.PERSON if frame.who == "K" else Origin.SENSOR
        when = When(source=self._role, at_ns=max(until_ns - WIRE_NS, 0), until_ns=until_ns, origin=origin)
        fact = fact_of(frame.name, frame.words, when)
        return [*facts, fact] if fact is not None else [*facts, *self._strange(at_ns)]

    def _hole(self, seq: int, at_ns: int) -> list[Fact]:
        """The device goes on at `seq`: what lies between is lost for good."""
        peer = self._peer
        lost = _ahead(seq, peer.expected) if peer.expected else 0
        if lost is None:
            return []  # it repeats what we have: our acknowledgement is still on its way
        peer.expected = seq
        peer.lost += lost
        return [Overrun(at_ns=at_ns, source=self._role, device=self._role, lost=lost)] if lost else []

    def _acknowledged(self, seq: int, at_ns: int) -> list[Fact]:
        """The keypad shows the text with this number."""
        outbox = self._outbox
        if outbox.shows and outbox.shows[0].seq == seq:
            del outbox.shows[0]
            outbox.shown += 1
        return self._link.heard(at_ns)

    def _strange(self, at_ns: int) -> list[Fact]:
        """A right checksum around something that we do not know: a stake may hide in it."""
        self._peer.strange += 1
        return [self._doubt(at_ns, "not_understood")]

    # frames to the device

    def _ask(self, at_ns: int) -> None:
        """Ask the device to say who it is."""
        asked_ns = self._peer.asked_ns
        if self._peer.stranger:
            return  # it is not ours to talk to
        if asked_ns is None or at_ns - asked_ns >= WHO_NS:
            self._peer.asked_ns = at_ns
            self._send(0, "WHO")

    def _showing(self) -> bool:
        return self._peer.greeted and bool(self._outbox.shows)

    def _show(self, show: Show, now_ns: int) -> None:
        """Send a text, or give it up after its last try."""
        if show.tries == SHOW_TRIES:
            del self._outbox.shows[0]
            self._outbox.unshown += 1
            return
        show.tries += 1
        show.next_ns = now_ns + SHOW_AGAIN_NS
        self._send(show.seq, "SHOW", *([show.text] if show.text else []))

    def _send(self, seq: int, name: str, *words: str) -> None:
        self._output = (self._output + encode(seq, "C", 0, name, words))[-4096:]

    def _closed(self) -> None:
        """Nothing that was under way holds any more; texts are stale by the time the device is back."""
        self._scanner.drop()
        self._peer.greeted, self._peer.asked_ns, self._peer.stranger = False, None, ""
        self._outbox.unshown += len(self._outbox.shows)
        self._outbox.shows.clear()
        self._output = b""

    def _doubt(self, at_ns: int, why: str) -> Fact:
        return Doubtful(at_ns=at_ns, source=self._role, device=self._role, why=why)

    def _advice(self) -> str | None:
        if self._peer.stranger:
            return f"{self._peer.stranger} répond ici : vérifier les câbles, `match` et `device` dans la configuration."
        code = self._link.why or ("bad_link" if self._link.bad else "")
        return ADVICE.get(code)


def _seq(word: str) -> int:
    """A sequence number; 0 when the word is none."""
    return int(word) if _SEQ.fullmatch(word) else 0


def _after(seq: int) -> int:
    return seq % SEQ_MAX + 1


def _ahead(seq: int, expected: int) -> int | None:
    """How far `seq` lies ahead of `expected` (0 = the one expected); None when it lies behind."""
    ahead = (seq - expected) % SEQ_MAX
    return ahead if ahead < SEQ_MAX // 2 else None
