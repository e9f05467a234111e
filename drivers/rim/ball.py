"""One ball on the rim: which pulses are its passages, how fast it runs, in which sense, and how long it will.

Speed is read from whole laps of one beam only, so that neither the mounting of the beams nor a tilted table counts.
A ball is found when three pulses agree (a lap, and a passage between or a lap before it); from then on a pulse is the
ball when its width fits the speed and its lap fits the slowing. Pulses that do not, but agree among themselves, are the
ball after all: it is found anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any, Final

from drivers.pulses import Pulse
from drivers.rim.law import RimLaw
from drivers.rim.options import FAR, NEAR, Options

TURN: Final = 2 * math.pi
SECOND: Final = 1_000_000_000
LONGEST_NS: Final = 40_000_000
"""No ball that stays on a rim interrupts a beam for longer."""
_FASTEST: Final = 25.0
_SLOWEST: Final = 1.9
"""Speeds of a ball on a rim, rad/s."""
_SLACK_S: Final = 0.0003
_SHARE: Final = 0.08
"""How far the place of a passage within its lap may be from where the beam stands."""
_MEMORY_NS: Final = 4 * SECOND
_DEAD_TURNS: Final = 4.3
"""A beam that sees nothing while others see so many turns is dead."""
_LAPS: Final = 200
"""More laps, or votes, than a throw has: what chops the beams at a steady pace would add up for ever."""
_MISSES: Final = 4
"""So many passages running are never missed: the ball is gone, wherever it should be."""


@dataclass(slots=True)
class Ball:
    """What is known of the present throw; plain values, so that it can be frozen."""

    recent: list[list[int]] = field(default_factory=list)
    """The last plausible pulses: middle, beam, width (ns), and 1 where it was taken for a passage."""
    last: list[int | None] = field(default_factory=list)
    """Last passage of each beam."""
    laps: list[list[float]] = field(default_factory=list)
    """Middle (ns), mean speed, passages missed in it + 1, beam."""
    votes: list[int] = field(default_factory=list)
    """+1 for each passage that came as clockwise, -1 against."""
    first_ns: int = 0
    last_ns: int = 0
    last_beam: int = 0
    travelled: float = 0.0
    """Radians from the first passage to the last."""
    seen_at: list[float] = field(default_factory=list)
    """Per beam, `travelled` at its last plausible pulse."""
    found_anew: int = 0

    @property
    def found(self) -> bool:
        """Passages agree: there is a ball."""
        return bool(self.laps)

    @property
    def sense(self) -> int:
        """+1 clockwise, -1 against, 0 while passages do not say."""
        said = sum(self.votes[-6:])
        return (said > 1) - (said < -1)

    @property
    def speed(self) -> float:
        """Mean speed over the last lap, rad/s."""
        return self.laps[-1][1]

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state; the field names are the keys."""
        state = {name: getattr(self, name) for name in self.__slots__}
        copied = {name: list(value) for name, value in state.items() if isinstance(value, list)}
        return {**state, **copied, "recent": [list(entry) for entry in self.recent]}


class Track:
    """The rim: takes pulses, keeps the present `Ball`."""

    __slots__ = ("_beams", "_chord", "_degrees", "ball", "dark", "law")

    def __init__(self, options: Options, law: RimLaw) -> None:
        self._beams, self._chord, self.law = options.beams, options.chord, law
        self._degrees = options.beams_deg
        self.dark: list[int] = []
        """Beams that see nothing."""
        self.ball = Ball()
        self.clear()

    def clear(self) -> None:
        """No ball."""
        count = len(self._beams)
        self.ball = Ball(last=[None] * count, seen_at=[0.0] * count)

    def plausible(self, pulse: Pulse) -> bool:
        """Could this be a ball at all."""
        return self._wide(pulse.width_ns, _FASTEST, least=True) and self._wide(pulse.width_ns, _SLOWEST, most=True)

    def passage(self, pulse: Pulse) -> bool:
        """One plausible pulse; true when it is the ball's (and the plan may have changed)."""
        ball = self.ball
        entry = [pulse.at_ns, pulse.line, pulse.width_ns, 0]
        ball.recent = [*(old for old in ball.recent[-15:] if pulse.at_ns - old[0] < _MEMORY_NS), entry]
        if ball.found:
            ball.seen_at[pulse.line] = ball.travelled
            if self._follows(entry):
                return True
        return self._find(entry)

    # --- a ball that is followed ---

    def _follows(self, entry: list[int]) -> bool:
        at_ns, beam, width_ns, _ = entry
        ball, law = self.ball, self.law
        mid_ns, speed, _, _ = ball.laps[-1]
        before = ball.last[beam]
        if not self._wide(width_ns, speed):
            return False
        if before is None:
            if not self._vote(at_ns, beam, speed, ball.sense):
                return False
        else:
            seconds = (at_ns - before) / SECOND
            missed = max(1, round(0.97 * speed * seconds / TURN))
            now = TURN * missed / max(seconds, 1e-6)
            between = max(0.0, (at_ns + before) / 2 - mid_ns) / SECOND
            lost = law.slowing(speed) * between
            if not speed - 2.5 * lost - 0.03 * speed <= now <= speed - 0.3 * lost + 0.02 * speed:
                return False
            ball.laps = [*ball.laps[-_LAPS:], [(at_ns + before) / 2, now, missed, beam]]
            self._vote(at_ns, beam, now, 0)
        self._passed(entry, ball.speed * (at_ns - ball.last_ns) / SECOND)
        return True

    def _passed(self, entry: list[int], angle: float) -> None:
        ball = self.ball
        entry[3] = 1
        at_ns, beam, _, _ = entry
        ball.travelled += max(0.0, angle)
        ball.last[beam] = ball.last_ns = at_ns
        ball.last_beam = beam
        ball.seen_at[beam] = ball.travelled

    def _vote(self, at_ns: int, beam: int, speed: float, wanted: int) -> bool:
        """Which sense the way from the last passage of another beam to this one says; true when it says one."""
        others = [(before, q) for q, before in enumerate(self.ball.last) if before is not None and q != beam]
        if not others:
            return False
        before, other = max(others)
        said = self._sense_of((at_ns - before) / SECOND * speed / TURN, other, beam)
        if said:
            self.ball.votes = [*self.ball.votes[-_LAPS:], said]
        return said != 0 and wanted in (0, said)

    def _sense_of(self, share: float, first: int, then: int) -> int:
        """The sense of a way of this share of a turn from one beam to another; 0 when it is none or could be both."""
        clockwise = (self._beams[then] - self._beams[first]) % TURN
        if not math.radians(NEAR) - 0.01 <= min(clockwise, TURN - clockwise) <= math.radians(FAR) + 0.01:
            return 0
        if abs(share - clockwise / TURN) < _SHARE:
            return 1
        return -1 if abs(share - 1 + clockwise / TURN) < _SHARE else 0

    # --- a ball that must be found ---

    def _find(self, entry: list[int]) -> bool:
        """Do this pulse, one of the same beam a lap before, and a third agree."""
        at_ns, beam, width_ns, _ = entry
        earlier, between = self.ball.recent[:-1], 0
        for first in reversed(earlier):
            seconds = (at_ns - first[0]) / SECOND
            if first[1] != beam:
                continue
            if between > 1:  # a beam that trembles: no ball comes so often
                return False
            between += 1
            if not TURN / _FASTEST < seconds < TURN / _SLOWEST:
                continue
            speed = TURN / seconds
            if not (self._wide(width_ns, speed) and self._wide(first[2], speed)):
                continue
            chain = [first, entry]
            votes = []
            for other in earlier:
                if other[1] == beam:
                    lap = (first[0] - other[0]) / SECOND
                    if 0.76 < lap / seconds < 1.03 and self._wide(other[2], TURN / lap):
                        chain.append(other)
                elif first[0] < other[0] < at_ns and self._wide(other[2], speed):
                    said = self._sense_of((other[0] - first[0]) / SECOND / seconds, beam, other[1])
                    if said:
                        votes.append(said)
                        chain.append(other)
            if len(chain) > 2 and (not self.ball.found or sum(1 for one in chain if not one[3]) > 1):
                self._found(chain, votes, speed)
                return True
        return False

    def _found(self, chain: list[list[int]], votes: list[int], speed: float) -> None:
        ball = self.ball
        chain.sort()
        end = chain[-1]
        if ball.found:
            ball.found_anew += 1
            ball.last = [None] * len(self._beams)
        else:
            ball.first_ns = ball.last_ns = chain[0][0]
        ball.votes += votes
        for entry in chain:
            self._passed(entry, speed * (entry[0] - ball.last_ns) / SECOND)
        ball.laps.append([end[0] - TURN / speed * SECOND / 2, speed, 1, end[1]])

    def _wide(self, width_ns: int, speed: float, *, least: bool = False, most: bool = False) -> bool:
        """Does a ball at this speed make a pulse so wide."""
        whole = self._chord / speed
        width = width_ns / SECOND
        return (most or width > 0.6 * whole - _SLACK_S) and (least or width < 1.25 * whole + _SLACK_S)

    # --- what follows from it ---

    def pair_sense(self) -> int:
        """The sense that two pulses of a ball that made no lap say, by their widths: +1, -1 or 0."""
        for one, other in pairwise(self.ball.recent):
            speed = 0.9 * self._chord * SECOND / ((one[2] + other[2]) / 2)
            turns = (other[0] - one[0]) / SECOND * speed / TURN
            clockwise = (self._beams[other[1]] - self._beams[one[1]]) % TURN / TURN
            if one[1] != other[1] and abs(turns - clockwise) < 0.3 * clockwise:
                return 1
            if one[1] != other[1] and abs(turns - 1 + clockwise) < 0.3 * (1 - clockwise):
                return -1
        return 0

    def calm(self) -> bool:
        """So few pulses that they may be a ball's that made no lap."""
        return len(self.ball.recent) <= 2 * len(self._beams)

    def slow(self) -> bool:
        """Was one of these pulses so wide that the ball may have dropped right behind it."""
        return any(map(self._slow, self.ball.recent))

    def arrived_ns(self) -> int:
        """When the last pulses that are quick began: they may be another ball; 0 where the last is slow."""
        quick = list(takewhile(lambda entry: not self._slow(entry), reversed(self.ball.recent)))
        return quick[-1][0] if quick else 0

    def _slow(self, entry: list[int]) -> bool:
        return self._wide(entry[2], 1.4 * self.law.wc, least=True)

    def drop_ns(self) -> float:
        """When the ball is expected to leave the rim: mean of the last turn's laps, each carried there."""
        count = max(1, len(self._beams) - len(self.dark))
        ends = [mid_ns + self.law.left(speed) * SECOND for mid_ns, speed, _, _ in self.ball.laps[-count:]]
        return sum(ends) / len(ends)

    def silence(self, hidden: Sequence[int] = ()) -> tuple[int, bool]:
        """When the ball is gone if nothing passes until then, and whether it has dropped then (or was taken away).

        One missing passage is enough where the speed says so; elsewhere it may have been missed. Beams that are
        `hidden` would not show one.
        """
        ball, law = self.ball, self.law
        limit = (1.04 if law.believed else 1.3) * law.wc
        speed = max(0.5, ball.speed - law.slowing(ball.speed) * (ball.last_ns - ball.laps[-1][0]) / SECOND)
        beam, seconds = ball.last_beam, 0.0
        for _ in range(_MISSES):
            angle, beam = self._next(beam, hidden)
            slower = law.further(speed, angle)
            seconds += law.seconds(speed, slower)
            speed = slower
            if speed < limit:
                break
        return ball.last_ns + round(1.06 * seconds * SECOND) + LONGEST_NS, speed < limit

    def _next(self, beam: int, hidden: Sequence[int] = ()) -> tuple[float, int]:
        """Angle to the beam that sees the ball next, and which that is; the longest where the sense is not known."""
        blind = {*self.dark, *hidden}
        bright = [q for q in range(len(self._beams)) if q not in blind] or [self.ball.last_beam]
        sense = self.ball.sense

        def way(q: int, sense: int) -> float:
            return (sense * (self._beams[q] - self._beams[beam])) % TURN or TURN

        if sense:
            return min((way(q, sense), q) for q in bright)
        return max(min((way(q, both), q) for q in bright) for both in (1, -1))

    def left_at(self) -> float:
        """The speed at which the ball left the rim: halfway between its last passage and the next."""
        mid_ns, speed, _, _ = self.ball.laps[-1]
        carried = self.law.slowing(speed) * (self.ball.last_ns - mid_ns) / SECOND
        return self.law.further(speed - carried, self._next(self.ball.last_beam)[0] / 2)

    def left_in(self) -> tuple[int, int] | tuple[None, None]:
        """Where the arc between its last passage and the next one begins and how long it is, degrees clockwise.

        None while the sense is not known or a beam is dark.
        """
        beams, last = self._degrees, self.ball.last_beam
        if not self.ball.sense or self.dark:
            return None, None
        ahead = self._next(last)[1]
        begin, end = (last, ahead) if self.ball.sense > 0 else (ahead, last)
        return beams[begin], (beams[end] - beams[begin]) % 360 or 360

    def slowings(self) -> list[tuple[float, float]]:
        """(speed, deceleration) between laps of one beam that followed each other, where the ball rolls steadily."""
        found = []
        previous: dict[float, list[float]] = {}
        for lap in self.ball.laps:
            before = previous.get(lap[3])
            previous[lap[3]] = lap
            if before is None or lap[2] != 1 or before[2] != 1:
                continue
            seconds = (lap[0] - before[0]) / SECOND
            speed = (lap[1] + before[1]) / 2
            slowing = (before[1] - lap[1]) / seconds if 0.2 < seconds < 4 else 0.0
            if speed < 2.0 * self.law.wc and 0.4 < slowing / self.law.slowing(speed) < 2.5:
                found.append((speed, slowing))
        return found

    def newly_dark(self) -> list[int]:
        """Beams that have seen nothing of the last turns that others saw."""
        ball = self.ball
        return [
            q
            for q, seen in enumerate(ball.seen_at)
            if q not in self.dark and ball.travelled - seen > _DEAD_TURNS * TURN
        ]

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"ball": self.ball.snapshot(), "dark": list(self.dark)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.ball, self.dark = Ball(**state["ball"]), list(state["dark"])
