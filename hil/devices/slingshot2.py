"""A simulated wheel with a SlingShot 2, as its protocol document describes it (drivers/slingshot2/PROTOCOL.md).

A plan says when the physics change (`plan`, `game`); the wheel says so in its next status line, 500 ms apart. The plan
can leave out what a real wheel leaves out (a missed state 5), add flags, fall silent, and damage lines in the ways that
recordings of real wheels show. Same seed, same plan, same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

MS: Final = 1_000_000
PERIOD_NS: Final = 500 * MS
ANSWER_NS: Final = 100 * MS
"""A recorded wheel answers a command this long after it."""
SELFTEST_NS: Final = 60_000 * MS
VERSION: Final = "2.50"
BONUS: Final = {3: (1, 2), 4: (3, 6), 5: (4, 5)}
"""Which bonus numbers are told when a state begins."""


def status_line(*, state: int, spins: int, last: str, flags: int, rpm10: int, rotor: str) -> bytes:
    """One status line; `last` is the winning number as printed (`7`, `00`, empty before the first)."""
    return f"*X;{state};{spins:03d};{last:>2};{flags:X};{rpm10:03d};{0 if rotor == 'cw' else 1}\r\n".encode()


def number_line(number: str) -> bytes:
    """The bare winning number."""
    return f"{number}\r\n".encode()


@dataclass(slots=True)
class Wheel:
    """What the wheel is doing."""

    state: int = 6
    spins: int = 1
    last: str = ""
    flags: int = 0
    rpm10: int = 0
    rotor: str = "cw"


@dataclass(order=True, slots=True)
class Change:
    """The wheel's fields take these values at that time."""

    at_ns: int
    order: int
    what: dict[str, object] = field(compare=False)


class SlingShot2Wheel:
    """The wheel end of the line. Pure: it is told the time and never waits."""

    def __init__(self, *, start_ns: int = 0, seed: int = 0, bare: bool = True, mode: int = 1159) -> None:
        self.wheel = Wheel()
        self.bare = bare
        """Send the winning number on a line of its own (mode bit 16 switches it off)."""
        self.mode = mode
        self.licence_days = 90
        """Of the bonus numbers; 999 = expired."""
        self.parameters = {"h": "60", "s": "14.0 17.5", "t": "2920", "r": "28000 32000", "g": "0"}
        self.selftest, self.selftest_ns = 0, SELFTEST_NS
        """What the next self-test will find, and how long it takes."""
        self.damage: Callable[[bytes, Random], bytes] | None = None
        """Applied to every status line while it is set."""
        self._rng = Random(f"slingshot2 {seed}")
        self._next_ns = start_ns
        self._plan: list[Change] = []
        self._answers: list[tuple[int, bytes]] = []
        self._silent_until_ns: int | None = None
        self._heard = b""
        self._output = b""
        self._planned = 0

    def due_ns(self) -> int:
        """When the next line or change is due."""
        times = [self._next_ns, *(change.at_ns for change in self._plan[:1]), *(at for at, _ in self._answers[:1])]
        return min(times)

    def tick(self, now_ns: int) -> None:
        """Do and say everything that is due, in order of time."""
        while (due := self.due_ns()) <= now_ns:
            if self._plan and self._plan[0].at_ns == due:
                self._change(self._plan.pop(0).what)
            elif self._answers and self._answers[0][0] == due:
                self._say(self._answers.pop(0)[1], due)
            else:
                self._next_ns += PERIOD_NS
                self._say(self._status(), due, damaged=True)

    def feed(self, data: bytes, at_ns: int) -> None:
        """Bytes from the controller: commands, ended by CR, LF or both."""
        self.tick(at_ns)
        *lines, self._heard = re.split(rb"[\r\n]+", self._heard + data)
        for line in lines:
            if line.startswith(b"*"):
                answer = self._answer(line[1:].decode("ascii", "replace"), at_ns)
                if answer is not None:
                    self._answers.append(answer)
                    self._answers.sort(key=lambda entry: entry[0])

    def take_output(self) -> bytes:
        """What the wheel has said since the last call."""
        output, self._output = self._output, b""
        return output

    # what happens to the wheel

    def plan(self, at_ns: int, **changes: object) -> None:
        """At that time fields of `Wheel` change; `number` is a winning number, `silent_until_ns` pulls the line."""
        self._planned += 1
        self._plan.append(Change(at_ns, self._planned, changes))
        self._plan.sort()

    def game(
        self,
        at_ns: int,
        number: str,
        *,
        rotor: str = "cw",
        place_s: float = 9.0,
        track_s: float = 4.0,
        closed_s: float = 26.5,
        shown_s: float = 5.5,
        shown: bool = True,
        flags: int = 0,
    ) -> int:
        """Plan one game from state 2 to the next state 2 and return when that is; `shown` False misses state 5."""
        track = at_ns + round(place_s * 1e9)
        closed = track + round(track_s * 1e9)
        result = closed + round(closed_s * 1e9)
        self.plan(at_ns, state=2, rotor=rotor, rpm10=165, flags=0)
        self.plan(track, state=3, flags=flags)
        self.plan(closed, state=4, flags=0)
        end = result
        if shown:
            self.plan(result, state=5, number=number)
            end += round(shown_s * 1e9)
            self.plan(end, state=2)
        else:
            self.plan(result, state=2, number=number, spins_up=True)
        return end

    def _change(self, what: dict[str, object]) -> None:
        before = self.wheel.state
        for name, value in what.items():
            if name == "number":
                self.wheel.last = str(value)
            elif name == "spins_up":
                self._step()
            elif name == "silent_until_ns":
                assert isinstance(value, int)
                self._silent_until_ns = value
            elif name == "power":
                self.wheel = Wheel()
            else:
                setattr(self.wheel, name, value)
        if before == 5 and self.wheel.state in (1, 2):
            self._step()
        if before != self.wheel.state and self.mode & 32768:
            for k in BONUS.get(self.wheel.state, ()):
                self._output += b"*Y;%d;%03d;%02d\r\n" % (k, self._rng.randrange(256), self.licence_days)
        if before != 5 and self.wheel.state == 5 and self.bare and not self.mode & 16:
            self._output += number_line(self.wheel.last)

    def _step(self) -> None:
        self.wheel.spins = self.wheel.spins % 256 + 1

    # what it says

    def _status(self) -> bytes:
        wheel = self.wheel
        return status_line(
            state=wheel.state,
            spins=wheel.spins,
            last=wheel.last,
            flags=wheel.flags,
            rpm10=wheel.rpm10,
            rotor=wheel.rotor,
        )

    def _say(self, line: bytes, now_ns: int, *, damaged: bool = False) -> None:
        if self._silent_until_ns is not None:
            if now_ns < self._silent_until_ns:
                return
            self._silent_until_ns = None
        if damaged and self.damage is not None:
            line = self.damage(line, self._rng)
        self._output += line

    def _answer(self, command: str, at_ns: int) -> tuple[int, bytes] | None:
        """When and what the wheel answers to one command."""
        soon = at_ns + ANSWER_NS
        idle = self.wheel.state == 6
        letter, _, text = command.partition(" ")
        said: str | None
        match letter:
            case "X":
                return soon, self._status()
            case "P":
                said = "P OK"
                if text == "0":
                    self.plan(at_ns, state=6, rpm10=0)
            case "u" | "R":
                said = "u OK" if letter == "u" else None
                self.plan(at_ns, state=1, rotor="ccw" if text == "3" else self.wheel.rotor)
            case "o":
                if idle and text.isdecimal():
                    self.mode = int(text)
                said = f"o {self.mode}" if idle else "o BUSY"
            case "O":
                said = f"O {self.wheel.state} 1 {self.parameters['h']} {self.mode}"
            case "T" if len(text) == 1:
                said = f"T {text.lower()} {self.parameters.get(text.lower(), '0')}"
            case "T":
                name, _, value = text.partition(" ")
                self.parameters[name] = value
                said = "T OK"
            case "F":
                if not idle:
                    said = "F BUSY"
                else:
                    return at_ns + self.selftest_ns, f"*F {self.selftest}\r\n".encode()
            case "V" | "v" | "S":
                said = f"{letter} {VERSION}"
            case "A":
                said = "A 13"
            case "C" | "K" | "I":
                said = f"{letter} OK"
            case "w" if self.wheel.state in (5, 6):
                said = "w 31.2 52"
            case _:
                said = f"{letter} NO"
        return None if said is None else (soon, f"*{said}\r\n".encode())


# --- damages that recordings of real wheels show ---------------------------------------------------------------------


def tail(line: bytes, rng: Random) -> bytes:
    """Only the end of the line arrives: `6; 9;0;158;0`, `00;0`."""
    return line[rng.randrange(1, len(line) - 3) :]


def interleaved(line: bytes, rng: Random) -> bytes:
    """The line is interrupted by itself: `*X;4;14*X;*X;4;146; 9;0;158;0`."""
    return line[: rng.randrange(4, len(line) - 3)] + b"*X;" + line


def lost_byte(line: bytes, rng: Random) -> bytes:
    """One byte is missing."""
    at = rng.randrange(len(line) - 2)
    return line[:at] + line[at + 1 :]


def noise(line: bytes, rng: Random) -> bytes:
    """Random bytes come before the line, none of them a line end."""
    junk = bytes(rng.choice([b for b in range(256) if b not in b"\r\n"]) for _ in range(rng.randrange(1, 40)))
    return junk + line
