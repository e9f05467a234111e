"""SlingShot 2: from status lines to facts (PROTOCOL.md section 6).

The wheel repeats its state every 500 ms; facts are told on its edges only:

    1,2 ──► 3 BallLaunched ──► 4 DropDue ──► 5 PocketRead ──► 1,2 ...
            │ flag 2: launched again, with the rotor
            │ flag 8 for 3 s: BallLost("launch_failed")
            │               │ flag 1 for 5 s: BallLost("not_detected")
            └───────┬───────┘
                    ├──► 1,2,3,6 with the spin counter one up: PocketRead(recovered)
                    └──► 1,2,3,6,7 without: BallLost(the flag that stands, or the state)

A coup is in flight from its state 3 until its number or its end is told; outside of a flight a state tells nothing.
Each fact carries the arrival of the line that told it (PROTOCOL.md section 7 says why not the half second before it).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from drivers.base import Answer as Answered
from drivers.base import Asked
from drivers.link import MS, Link
from drivers.slingshot2.codes import ADVICE, COMMANDS, FLAGS, LASTING, STATES, command_line, selftest, verdict
from drivers.slingshot2.lines import EXPIRED, Answer, Bare, Bonus, Splitter, Status, read
from rules.facts import BallLaunched, BallLost, Direction, Doubtful, DropDue, Fact, PocketRead, SpinStarted

NOT_DETECTED, WITH_ROTOR, STUCK, LAUNCH_FAILED = 1, 2, 4, 8
LAUNCH_GRACE_NS: Final = 3_000 * MS
"""Flag 8 is not to be minded in the first 3 s of state 3 (maker's advice)."""
DETECT_LINES: Final = 10
DETECT_NS: Final = 5_000 * MS
"""Flag 1 in state 4 is not to be minded before it has stood for 10 lines, 5 s (maker's advice)."""
REST_RPM10: Final = 20
TURNS_RPM10: Final = 50
"""Below 2 rpm the rotor counts as at rest, from 5 rpm up as actuated."""
EXPECTED: Final = frozenset({(6, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 2), (5, 1), (5, 6), (3, 7)})
"""Steps of the state that the manual knows; every other one is counted as illegal, and heard."""

_SPECIAL: Final[Mapping[str, tuple[int, str]]] = {"00": (38, "00"), "38": (39, "000"), "39": (40, "0000")}
"""Printed number -> how many pockets a wheel that has it has at least, and its value (PROTOCOL.md section 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The `[devices.<role>]` section of a SlingShot 2."""

    pockets: int = 37
    """37, 38 (with 00), 39 (with 000) or 40 (with 0000)."""
    rotor: bool = False
    """Tell SpinStarted too: only where no encoder watches the rotor."""
    lead_ms: int = 5000
    """From state 4 to the ball's leaving the rim: about 3.5 of its revolutions of 1.43 s and more."""
    silence_ms: int = 2000
    """Without a good status line for so long the wheel is lost."""

    def __post_init__(self) -> None:
        if self.pockets not in (37, 38, 39, 40):
            raise ValueError(f"pockets: {self.pockets} is not a wheel; 37, 38, 39 or 40")
        if not 0 <= self.lead_ms <= 30_000:
            raise ValueError(f"lead_ms: {self.lead_ms} is out of 0 to 30000")
        if not 1_200 <= self.silence_ms <= 60_000:
            raise ValueError(f"silence_ms: {self.silence_ms} is out of 1200 to 60000 (a line comes every 500 ms)")


@dataclass(slots=True)
class Flight:
    """The coup whose ball is in the wheel."""

    since_ns: int
    """Arrival of its first line."""
    spins: int
    """Spin counter at the launch: one more at the end means that the wheel has read a number."""
    ccw: bool
    """The rotor's sense at the launch."""
    ball: str
    """Sense of the ball as last told."""
    bare: str = ""
    """Number told on a line of its own, not yet confirmed by a status line."""
    lost: bool = False
    """BallLost was told."""
    unreadable: bool = False
    """State 5 showed a number that this wheel does not have."""
    undetected: int = 0
    """Lines with flag 1 on end, and when the first of them came."""
    undetected_ns: int = 0


@dataclass(slots=True)
class Seen:
    """What the decoder remembers besides its line, link and flight."""

    status: Status | None = None
    number: str = ""
    """Number told in this state 5, as printed."""
    other: str = ""
    """A different number seen once since; before the first status line the number told on a line of its own."""
    resting: bool = False
    """The rotor was at rest since its last actuation."""
    spun: bool = False
    """SpinStarted was told for the coming coup."""
    sense: str = ""
    stuck: bool = False
    """Flag 4 was told."""
    illegal: int = 0
    strays: int = 0
    restarts: int = 0
    missed: int = 0
    selftest: str = ""
    """Code of what the last self-test found; empty while it was good."""
    licence: str = ""


@dataclass(slots=True)
class Recent:
    """What diag shows; not part of a snapshot."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=16))
    rejected: deque[str] = field(default_factory=lambda: deque(maxlen=8))
    answers: deque[str] = field(default_factory=lambda: deque(maxlen=64))


class SlingShot2:
    """Decoder of one wheel (`drivers.base.ByteDecoder`)."""

    def __init__(self, role: str, options: Options) -> None:
        self._role = role
        self._options = options
        self._link = Link(role, options.silence_ms * MS)
        self._splitter = Splitter()
        self._flight: Flight | None = None
        self._seen = Seen()
        self._recent = Recent()
        self._output = b""
        self._asked = ""
        """Letter of the technician's command whose answer has not come."""
        self._answered: Answered | None = None

    # the contract of every decoder

    def due_ns(self) -> int | None:
        """When the silence of the wheel becomes a fact."""
        return self._link.due_ns()

    def tick(self, now_ns: int) -> list[Fact]:
        """Tell a silence that is due; a wheel whose sensor was stuck by then has told that its coup has no number."""
        facts, status = self._link.tick(now_ns), self._seen.status
        if facts and self._flight is not None and status is not None and status.flags & STUCK:
            return self._ball_lost(self._flight, facts[0].at_ns, FLAGS[STUCK]) + facts
        return facts

    def opened(self, at_ns: int) -> list[Fact]:
        """The port is open: the wheel is there once a status line says so."""
        self._splitter.drop()
        self._link.opened(at_ns, self._options.silence_ms * MS)
        return []

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The port is gone."""
        self._splitter.drop()
        self._output = b""
        self._asked, self._answered = "", None
        return self._link.gone(at_ns, why)

    def feed(self, data: bytes, at_ns: int, unread_ns: int = 0) -> list[Fact]:
        """Any piece of the stream; never raises."""
        facts = self.tick(at_ns - unread_ns)
        for piece, ended in self._splitter.feed(data, at_ns):
            line = read(piece) if ended else None
            match line:
                case Status():
                    self._recent.lines.append(piece.decode())
                    facts += self._status(line, at_ns)
                case Bare(number=number):
                    facts += self._bare(number, at_ns)
                case Answer():
                    self._recent.answers.append(piece.decode())
                    facts += self._answer(line, at_ns)
                case Bonus(days=days):
                    self._seen.licence = "licence" if days == EXPIRED else ""
                case None:
                    self._recent.rejected.append(piece[:64].hex(" "))
                    facts += self._link.damaged(at_ns)
        return facts

    def take_output(self) -> bytes:
        """Command lines for the wheel."""
        output, self._output = self._output, b""
        return output

    asks = frozenset(name for name, command in COMMANDS.items() if not command.changes)
    orders = frozenset(COMMANDS)

    def command(self, name: str, args: Mapping[str, object]) -> Asked:
        """Queue a technician's command; the last answers show in `sample()["answers"]` too."""
        line = command_line(name, args)
        self._output = (self._output + line.encode() + b"\r\n")[-1024:]
        self._asked, self._answered = line[1], None
        return Asked(line, COMMANDS[name].answer_s)

    def take_answer(self) -> Answered | None:
        """What the wheel has answered to the last command."""
        answered, self._answered = self._answered, None
        return answered

    def snapshot(self) -> dict[str, Any]:
        """Everything that later facts depend on, and the counters."""
        return {
            "link": self._link.snapshot(),
            "splitter": self._splitter.snapshot(),
            "flight": None if self._flight is None else asdict(self._flight),
            "seen": asdict(self._seen),
            "learned": {"selftest": self._seen.selftest},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot; after a restart of the daemon only what a self-test found is known."""
        if set(state) == {"learned"}:
            self._seen.selftest = state["learned"]["selftest"]
            return
        self._link.restore(state["link"])
        self._splitter.restore(state["splitter"])
        self._flight = None if state["flight"] is None else Flight(**state["flight"])
        self._seen = Seen(**state["seen"])
        self._seen.status = None if self._seen.status is None else Status(*self._seen.status)

    def health(self) -> dict[str, int | str | None]:
        """Counters, the wheel's own state, and what to do when something is wrong."""
        seen, status = self._seen, self._seen.status
        flags = [name for bit, name in FLAGS.items() if status is not None and status.flags & bit]
        name, found = selftest(seen.selftest) if seen.selftest else ("", "")
        troubles = [self._link.why, *flags, "bad_link" if self._link.bad else "", seen.licence]
        lasting = [code for code in troubles if code in LASTING and (code != "sensor_stuck" or seen.stuck)]
        return {
            **self._link.health(),
            "illegal": seen.illegal,
            "strays": seen.strays,
            "wheel_restarts": seen.restarts,
            "missed_spins": seen.missed,
            "wheel_state": None if status is None else f"{status.state} {STATES[status.state]}",
            "flags": " ".join(flags) or None,
            "selftest": name or None,
            "advice": next((ADVICE[code] for code in troubles if code in ADVICE), found) or None,
            "fault": " ".join([*(ADVICE[code] for code in lasting), *([found] if found else [])]) or None,
        }

    def sample(self) -> dict[str, Any]:
        """The wheel now, its last lines, what was rejected (hex) and what it answered."""
        status = self._seen.status
        now = {} if status is None else {**status._asdict(), "meaning": STATES[status.state]}
        return {
            "now": now,
            "lines": list(self._recent.lines),
            "rejected": list(self._recent.rejected),
            "answers": list(self._recent.answers),
        }

    # lines

    def _status(self, now: Status, at_ns: int) -> list[Fact]:
        """A good status line: the wheel is there, and what changed since the line before is told."""
        facts = self._link.heard(at_ns)
        before, self._seen.status = self._seen.status, now
        facts += self._flag_stuck(now, at_ns)
        if self._options.rotor:
            facts += self._rotor(before, now, at_ns)
        self._seen.restarts += _restarted(before, now)
        edge = before is None or before.state != now.state
        if before is not None and edge and (before.state, now.state) not in EXPECTED:
            self._seen.illegal += 1
        again = now.state == 3 and before is not None and before.state == 4
        if self._flight is not None and edge and (now.state not in (3, 4, 5) or again):
            facts += self._ended(self._flight, before, now, at_ns)
        if edge and now.state in (3, 4, 5):
            facts += self._advanced(before, now, at_ns)
        if self._flight is not None:
            facts += self._in_flight(self._flight, now, at_ns)
        elif now.state == 5 and not edge:
            facts += self._shown_again(now, at_ns)
        return facts

    def _advanced(self, before: Status | None, now: Status, at_ns: int) -> list[Fact]:
        """The state became 3, 4 or 5."""
        facts: list[Fact] = []
        if self._flight is None:
            if before is None and now.state == 5 and self._seen.other != now.last:
                return []  # the number of a coup that nobody watched
            if before is not None and 5 in (before.state, now.state) and before[1:3] == now[1:3]:
                return []  # same spin, same number: one damaged line, not another ball
            flight, facts = self._launched(now, at_ns)
            if now.state == 5:
                return facts + self._read(flight, now.last, at_ns, recovered=before is not None)
        if now.state == 4 and before is not None:
            drop_at_ns = at_ns + self._options.lead_ms * MS
            facts.append(DropDue(at_ns=at_ns, source=self._role, drop_at_ns=drop_at_ns))
        return facts

    def _launched(self, now: Status, at_ns: int) -> tuple[Flight, list[Fact]]:
        """The ball is in the track: against the rotor unless flag 2 says otherwise."""
        facts: list[Fact] = []
        if self._options.rotor and not self._seen.spun:
            facts.append(self._spin(now, at_ns))
        ball = self._ball(now.ccw, now.flags)
        self._flight = Flight(at_ns, now.spins, now.ccw, ball.value)
        self._seen.number = self._seen.other = ""
        return self._flight, [*facts, BallLaunched(at_ns=at_ns, source=self._role, direction=ball)]

    def _in_flight(self, flight: Flight, now: Status, at_ns: int) -> list[Fact]:
        """Flags of a running coup, and its number."""
        facts: list[Fact] = []
        if now.state == 3:
            ball = self._ball(flight.ccw, now.flags)
            if ball != flight.ball:
                flight.ball = ball.value
                facts.append(BallLaunched(at_ns=at_ns, source=self._role, direction=ball))
            if now.flags & LAUNCH_FAILED and at_ns - flight.since_ns >= LAUNCH_GRACE_NS:
                facts += self._ball_lost(flight, at_ns, "launch_failed")
        if now.state == 4 and now.flags & NOT_DETECTED:
            flight.undetected_ns = flight.undetected_ns if flight.undetected else at_ns
            flight.undetected += 1
            if flight.undetected > DETECT_LINES or at_ns - flight.undetected_ns >= DETECT_NS:
                facts += self._ball_lost(flight, at_ns, "not_detected")
        else:
            flight.undetected = 0
        if now.state == 5:
            facts += self._read(flight, now.last, at_ns, recovered=False)
        return facts

    def _read(self, flight: Flight, number: str, at_ns: int, *, recovered: bool) -> list[Fact]:
        """The number of this flight is known: told once, doubted when the bare line said another one."""
        value = self._value(number)
        if value is None:
            told, flight.unreadable = flight.unreadable, True
            return [] if told else [self._doubt(at_ns, "number_unreadable")]
        facts: list[Fact] = []
        if flight.bare and flight.bare != number:
            facts.append(self._doubt(at_ns, "numbers_disagree"))
            recovered = True
        self._flight = None
        self._seen.number, self._seen.other, self._seen.spun = number, "", False
        return [*facts, PocketRead(at_ns=at_ns, source=self._role, value=value, recovered=recovered)]

    def _ended(self, flight: Flight, before: Status | None, now: Status, at_ns: int) -> list[Fact]:
        """A flight left states 3, 4, 5 without having told its number."""
        self._flight = None
        self._seen.spun = False
        up = (now.spins - flight.spins) % 256
        if _restarted(before, now) or up > 128:
            return self._ball_lost(flight, at_ns, "wheel_restarted")
        if up == 1 and now.state != 7 and self._value(now.last) is not None:
            return self._read(flight, now.last, at_ns, recovered=flight.bare != now.last)
        if up > 0 or flight.unreadable:
            self._seen.missed += max(up - 1, 0)
            return self._ball_lost(flight, at_ns, "number_unreadable" if flight.unreadable else "number_missed")
        flags = now.flags | (before.flags if before is not None else 0)
        why = next((name for bit, name in FLAGS.items() if flags & bit), "")
        state = {6: "table_closed", 7: "not_in_the_track"}.get(now.state, "new_game")
        return self._ball_lost(flight, at_ns, why or state)

    def _shown_again(self, now: Status, at_ns: int) -> list[Fact]:
        """State 5 goes on: another number on two lines running is told as a second, recovered reading."""
        seen = self._seen
        if not seen.number or now.last == seen.number:
            seen.other = ""
            return []
        if now.last != seen.other:
            seen.other = now.last
            return []
        value = self._value(now.last)
        if value is None:
            return []
        seen.number, seen.other = now.last, ""
        reading = PocketRead(at_ns=at_ns, source=self._role, value=value, recovered=True)
        return [self._doubt(at_ns, "number_changed"), reading]

    def _bare(self, number: str, at_ns: int) -> list[Fact]:
        """A number without a status line is kept until one confirms it: two characters are too easily damaged."""
        status = self._seen.status
        if self._flight is not None:
            self._flight.bare = number
        elif status is None or status.state != 5 or not self._seen.number:
            self._seen.strays += 1
            self._seen.other = number if status is None else ""
        elif number != self._seen.number:
            return [self._doubt(at_ns, "numbers_disagree")]
        return []

    def _answer(self, answer: Answer, at_ns: int) -> list[Fact]:
        """An answer is kept for `sample` and for who asked; a self-test that found something is also a fact."""
        if answer.letter == self._asked:
            self._asked, self._answered = "", verdict(answer.letter, answer.text)
        if answer.letter != "F" or not answer.text.isdecimal():
            return []
        self._seen.selftest = "" if int(answer.text) == 0 else answer.text
        return [self._doubt(at_ns, f"selftest_{selftest(answer.text)[0]}")] if self._seen.selftest else []

    # flags and rotor

    def _flag_stuck(self, now: Status, at_ns: int) -> list[Fact]:
        """Flag 4 appeared; at a closed wheel it waits until somebody wants to play."""
        if not now.flags & STUCK:
            self._seen.stuck = False
        elif not self._seen.stuck and now.state != 6:
            self._seen.stuck = True
            return [self._doubt(at_ns, "sensor_stuck")]
        return []

    def _rotor(self, before: Status | None, now: Status, at_ns: int) -> list[Fact]:
        """The rotor came up from rest, or turns in another sense than last told."""
        seen = self._seen
        if before is None:
            seen.sense, seen.resting = _sense(now.ccw).value, now.rpm10 < REST_RPM10
        elif now.rpm10 < REST_RPM10:
            seen.resting = True
        elif now.rpm10 >= TURNS_RPM10 and (seen.resting or seen.sense != _sense(now.ccw)):
            return [self._spin(now, at_ns)]
        return []

    def _spin(self, now: Status, at_ns: int) -> Fact:
        sense = _sense(now.ccw)
        self._seen.sense, self._seen.resting, self._seen.spun = sense.value, False, True
        return SpinStarted(at_ns=at_ns, source=self._role, direction=sense)

    def _ball(self, ccw: bool, flags: int) -> Direction:
        sense = _sense(ccw)
        return sense if flags & WITH_ROTOR else sense.opposite

    def _ball_lost(self, flight: Flight, at_ns: int, why: str) -> list[Fact]:
        if flight.lost:
            return []
        flight.lost = True
        return [BallLost(at_ns=at_ns, source=self._role, why=why)]

    def _doubt(self, at_ns: int, why: str) -> Fact:
        return Doubtful(at_ns=at_ns, source=self._role, device=self._role, why=why)

    def _value(self, number: str) -> int | str | None:
        """The winning value that a printed number means on this wheel; None when the wheel has no such pocket."""
        if number in _SPECIAL:
            pockets, value = _SPECIAL[number]
            return value if self._options.pockets >= pockets else None
        return int(number) if number and int(number) <= 36 else None


def _sense(ccw: bool) -> Direction:
    return Direction.CCW if ccw else Direction.CW


def _restarted(before: Status | None, now: Status) -> bool:
    """After power on the wheel has no last number."""
    return before is not None and before.last != "" and now.last == ""
