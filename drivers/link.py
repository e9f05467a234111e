"""Is a byte device there, and is its line any good? The part that every byte decoder keeps beside its own protocol.

    opened ──► (grace) ──► heard, heard, ... ──► silence ──► DeviceLost("silence") ──► heard ──► DeviceBack
       gone (port lost, wrong device) ──► DeviceLost(why) ──► opened ──► heard ──► DeviceBack

DeviceLost is told once per absence; only a good frame brings a device back, never the mere opening of its port. A line
on which a quarter of the last frames was damaged is told as Doubtful("bad_link"): a second reader on the port, a wrong
baud rate and a torn cable look like this (field cases 73, 76, 84).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from rules.facts import DeviceBack, DeviceLost, Doubtful, Fact

MS: Final = 1_000_000
WINDOW: Final = 20
"""How many of the last frames, good and damaged, the quality of a link is judged by."""
BAD: Final = 5
"""So many damaged ones among them make a bad link; a window without any makes it good again."""


@dataclass(slots=True)
class Link:
    """Presence and quality of one byte device. Pure; times are CLOCK_MONOTONIC nanoseconds."""

    role: str
    silence_ns: int
    waiting_ns: int | None = None
    """The device is lost at this instant unless a good frame comes; None while the port is closed."""
    why: str = ""
    """Why the device is lost; empty while it is there."""
    greeted: bool = False
    """A good frame came since the port was opened."""
    noise: bool = False
    """Something came since the port was opened."""
    frames: int = 0
    rejects: int = 0
    silences: int = 0
    last_frame_ns: int | None = None
    window: int = 0
    """The last frames as bits, newest lowest; 1 = damaged."""
    bad: bool = False

    def due_ns(self) -> int | None:
        """When the silence becomes a fact."""
        return self.waiting_ns

    def tick(self, now_ns: int) -> list[Fact]:
        """DeviceLost when nothing good was heard in time; `wrong_device` when all that came was not understood."""
        if self.waiting_ns is None or now_ns < self.waiting_ns:
            return []
        at_ns, self.waiting_ns = self.waiting_ns, None
        self.silences += 1
        facts = self._lose(at_ns, "silence")
        if self.noise and not self.greeted:
            self.why = "wrong_device"
        return facts

    def opened(self, at_ns: int, grace_ns: int) -> None:
        """The port is open: the first good frame must come within `grace_ns`."""
        self.greeted = self.noise = False
        self.waiting_ns = at_ns + grace_ns

    def heard(self, at_ns: int) -> list[Fact]:
        """A good frame: the device is there."""
        self.frames += 1
        self.last_frame_ns = at_ns
        self.greeted = self.noise = True
        self.waiting_ns = at_ns + self.silence_ns
        self._judge(damaged=False)
        if not self.why:
            return []
        self.why = ""
        return [DeviceBack(at_ns=at_ns, source=self.role, device=self.role)]

    def damaged(self, at_ns: int) -> list[Fact]:
        """A frame was rejected."""
        self.rejects += 1
        self.noise = True
        if not self._judge(damaged=True):
            return []
        return [Doubtful(at_ns=at_ns, source=self.role, device=self.role, why="bad_link")]

    def gone(self, at_ns: int, why: str) -> list[Fact]:
        """The port is closed, or somebody else answers at it."""
        self.waiting_ns = None
        return self._lose(at_ns, why)

    def health(self) -> dict[str, int | str | None]:
        """The counters that every byte device has."""
        return {
            "frames": self.frames,
            "rejects": self.rejects,
            "silences": self.silences,
            "last_fact_ns": self.last_frame_ns,
            "lost": self.why or None,
            "link": "bad" if self.bad else "good",
        }

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return asdict(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for name, value in state.items():
            setattr(self, name, value)

    def _lose(self, at_ns: int, why: str) -> list[Fact]:
        if self.why:
            return []
        self.why = why
        return [DeviceLost(at_ns=at_ns, source=self.role, device=self.role, why=why)]

    def _judge(self, *, damaged: bool) -> bool:
        """Shift one frame into the window; true when the link has just become bad."""
        self.window = (self.window << 1 | damaged) & ((1 << WINDOW) - 1)
        was, damages = self.bad, self.window.bit_count()
        self.bad = damages >= BAD or (was and damages > 0)
        return self.bad and not was
