"""The decoder of the family `rotor_head`: in which pocket the ball lies, from turns of the rotor that leave no doubt.

A turn reads a pocket when it has exactly as many marks as there are pockets and one ball, when the marks counted from
the index and the time between two indices say the same pocket, and when the index lies among its marks as one sense of
turning has it. Two equal readings, 3 s apart or more, are told; nothing that only looked like it ever is.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any, Final

from drivers.base import Edge, Snapshot
from drivers.pulses import Pulses
from rules.facts import DeviceBack, DeviceLost, Direction, Doubtful, Fact, Overrun, PocketRead

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
LINES: Final = ("index", "mark", "ball")
MARK: Final = 1
BALL: Final = 2
"""Places in `LINES`."""
_MERGE_NS: Final = 2 * MS
_SHORTEST_NS: Final = 100_000
_SHORTEST_TURN_NS: Final = 500 * MS
_LONGEST_TURN_NS: Final = 12 * SECOND
_APART_NS: Final = 3000 * MS
"""A ball that was read twice, so far apart, has settled."""
_GONE: Final = 3
"""So many turns without a ball: it was taken out."""
_BLIND: Final = 2.5
"""So many turns' worth of marks without an index, or of indices without marks: that sensor is lost."""
_CUT_NS: Final = 1 * SECOND
"""Index and mark under the head together for so long: nothing drives the lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One head over one rotor (physics README section 2.4)."""

    pockets: int
    ball_mm: int = 20
    """Diameter of the ball."""
    ring_mm: int = 500
    """Diameter of the circle of the pockets under the head."""
    undecided_ms: int = 20_000
    """So long after the ball was first seen once in a turn the reading is left to people."""

    def __post_init__(self) -> None:
        for key, value, low, high in (
            ("pockets", self.pockets, 8, 60),
            ("ball_mm", self.ball_mm, 10, 40),
            ("ring_mm", self.ring_mm, 200, 1500),
            ("undecided_ms", self.undecided_ms, 5_000, 120_000),
        ):
            if not low <= value <= high:
                raise ValueError(f"{key} = {value!r}: allowed is {low} to {high}")


@dataclass(slots=True)
class Seen:
    """The last turns of the rotor, and the ball in it; plain values, so that it can be frozen."""

    marks: list[int] = field(default_factory=list)
    balls: list[list[int]] = field(default_factory=list)
    """Middle and width."""
    index_ns: int | None = None
    """The last index."""
    since_index: int = 0
    """Marks since then."""
    markless: int = 0
    """Indices since the last mark."""
    turns: list[list[int]] = field(default_factory=list)
    """Turns that are complete and not judged yet: first index, last index, when all of it is certain."""
    started_ns: int | None = None
    """The ball was first seen; None: there is none."""
    trying_ns: int | None = None
    """The end of the first turn that saw it once, as a ball that lies still is seen."""
    counted: int = 0
    with_ball: int = 0
    """Turns since then, and in how many of them it was seen."""
    empty: int = 0
    """Turns running without it."""
    cell: int | None = None
    read_ns: int = 0
    """What was read, and when first."""
    told: int | None = None
    """The cell that was told."""
    doubted: bool = False


class RotorHead:
    """`EdgeDecoder`; the lines are `<role>.index`, `<role>.mark`, `<role>.ball`; 1 = mark or ball under the head."""

    def __init__(self, role: str, options: Options) -> None:
        self._role, self._options = role, options
        names = tuple(f"{role}.{line}" for line in LINES)
        self._pulses = Pulses(names, merge_ns=_MERGE_NS, shortest_ns=_SHORTEST_NS)
        self._seen = Seen()
        self.counters = {"turns": 0, "good_turns": 0, "readings": 0, "undecided": 0, "losses": 0}
        self._last: dict[str, Any] = {"rpm": None, "sense": None, "marks": None, "balls": None}
        """The last turn, for `diag`."""
        self._why = self._port_why = ""
        self._fact_ns: int | None = None

    # --- EdgeDecoder ---

    def feed(self, edges: Sequence[Edge]) -> list[Fact]:
        """Edges in order of their time; never raises."""
        facts: list[Fact] = []
        for edge in edges:
            self._elapse(edge.at_ns, facts)
            self._pulses.edge(edge)
        return self._remember(facts)

    def tick(self, now_ns: int) -> list[Fact]:
        """Time has passed."""
        facts: list[Fact] = []
        self._elapse(now_ns, facts)
        return self._remember(facts)

    def due_ns(self) -> int | None:
        """When something is due next."""
        return min((at_ns for at_ns, _ in self._dues()), default=None)

    def opened(self, at_ns: int) -> list[Fact]:
        """The chip is open: the rotor is watched from now on."""
        self._forget()
        if not self._port_why:
            return []
        self._port_why = ""
        return [] if self._why else self._remember([self._back(at_ns)])

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The chip is gone."""
        facts = self.tick(at_ns)
        told = self._why or self._port_why
        self._port_why = why
        self._forget()
        return facts if told else facts + self._remember([self._lose(at_ns, why)])

    def snapshot(self) -> Snapshot:
        """State from which `restore` continues."""
        return {
            "seen": asdict(self._seen),
            "pulses": self._pulses.snapshot(),
            "counters": dict(self.counters),
            "last": dict(self._last),
            "why": [self._why, self._port_why],
            "fact_ns": self._fact_ns,
        }

    def restore(self, state: Snapshot) -> None:
        """Continue from a snapshot."""
        self._seen = Seen(**state["seen"])
        self._pulses.restore(state["pulses"])
        self.counters.update(state["counters"])
        self._last = dict(state["last"])
        self._why, self._port_why = state["why"]
        self._fact_ns = state["fact_ns"]

    def health(self) -> dict[str, int | str | None]:
        """Counters; `good_turns` are those with every mark."""
        return {
            **self._pulses.counters,
            **self.counters,
            "lost": self._why or self._port_why or None,
            "last_fact_ns": self._fact_ns,
        }

    def sample(self) -> dict[str, Any]:
        """The last turn, and the cell that was read."""
        return {**self._last, "cell": self._seen.cell, "told": self._seen.told}

    # --- what is due ---

    def _dues(self) -> Iterator[tuple[int, Callable[[int, list[Fact]], None]]]:
        pulse = self._pulses.due_ns()
        if pulse is not None:
            yield pulse, self._under_the_head
        index_up, mark_up, _ = self._pulses.up_since_ns()
        if index_up and mark_up and not self._why:
            yield max(index_up, mark_up) + _CUT_NS, self._cut
        lost = self._pulses.overrun_ns()
        if lost is not None:
            yield lost, self._overrun
        seen = self._seen
        if seen.turns:
            yield seen.turns[0][2], self._turned
        if seen.trying_ns is not None and seen.told is None and not seen.doubted:
            yield seen.trying_ns + self._options.undecided_ms * MS, self._undecided

    def _elapse(self, until_ns: int, facts: list[Fact]) -> None:
        while True:
            due = min(self._dues(), key=itemgetter(0), default=None)
            if due is None or due[0] > until_ns:
                return
            due[1](due[0], facts)

    def _under_the_head(self, at_ns: int, facts: list[Fact]) -> None:
        seen = self._seen
        for pulse in self._pulses.take(at_ns):
            if pulse.line == BALL:
                seen.balls = [*seen.balls[-20:], [pulse.at_ns, pulse.width_ns]]
                if seen.started_ns is None:
                    seen.started_ns = pulse.at_ns
            elif pulse.line == MARK:
                seen.marks = [*seen.marks[-4 * self._options.pockets :], pulse.at_ns]
                seen.since_index, seen.markless = seen.since_index + 1, 0
                if seen.since_index > _BLIND * self._options.pockets:
                    self._blind(at_ns, "index_missing", facts)
            else:
                self._index(pulse.at_ns, pulse.certain_ns, facts)

    def _index(self, at_ns: int, certain_ns: int, facts: list[Fact]) -> None:
        """A turn is complete; what happened at its end is certain a little later."""
        seen = self._seen
        before = seen.index_ns
        seen.index_ns, seen.since_index = at_ns, 0
        seen.markless += 1
        if seen.markless > 1 + _BLIND:
            self._blind(certain_ns, "marks_missing", facts)
        if before is not None and at_ns - before > _LONGEST_TURN_NS:  # nobody saw what the ball did
            self._no_ball()
        if before is not None and _SHORTEST_TURN_NS <= at_ns - before <= _LONGEST_TURN_NS:
            seen.turns.append([before, at_ns, certain_ns + (at_ns - before) // 16])

    def _turned(self, now_ns: int, facts: list[Fact]) -> None:
        """Judge a turn."""
        seen = self._seen
        first, last, _ = seen.turns.pop(0)
        marks = [at for at in seen.marks if first < at < last]
        whole = (last - first) * self._options.ball_mm / (math.pi * self._options.ring_mm)
        balls = [at for at, width in seen.balls if first < at < last and 0.5 * whole < width < 1.25 * whole]
        self.counters["turns"] += 1
        sense = self._sense(first, last)
        self._last = {
            "rpm": round(60 * SECOND / (last - first), 2),
            "sense": sense and sense.value,
            "marks": len(marks),
            "balls": len(balls),
        }
        cell = None
        if len(marks) == self._options.pockets and sense is not None:
            self.counters["good_turns"] += 1
            if self._why:
                self._why = ""
                facts.append(self._back(now_ns))
            if len(balls) == 1:
                cell = self._cell(first, last, marks, balls[0], sense)
        if seen.started_ns is not None and seen.started_ns < last:
            self._watch(last, balls, cell, facts)

    def _watch(self, at_ns: int, balls: list[int], cell: int | None, facts: list[Fact]) -> None:
        """One more turn with a ball about."""
        seen = self._seen
        seen.counted += 1
        seen.with_ball += bool(balls)
        if seen.trying_ns is None and len(balls) == 1:
            seen.trying_ns = at_ns
        seen.empty = 0 if balls else seen.empty + 1
        if seen.empty >= _GONE:
            self._no_ball()
        elif cell is not None and cell != seen.cell:
            seen.cell, seen.read_ns = cell, balls[0]
        elif cell is not None and cell != seen.told and balls[0] - seen.read_ns >= _APART_NS:
            again = seen.told is not None
            if again:
                facts.append(self._doubt(at_ns, "pocket_changed"))
            seen.told = cell
            self.counters["readings"] += 1
            facts.append(PocketRead(at_ns=at_ns, source=self._role, value=None, cell=cell, recovered=again))

    def _undecided(self, at_ns: int, facts: list[Fact]) -> None:
        """People must read it (article 67-5), if there was a ball at all and not just something now and then."""
        seen = self._seen
        seen.doubted = True
        if 2 * seen.with_ball > seen.counted > 1 and not self._why:
            self.counters["undecided"] += 1
            facts.append(self._doubt(at_ns, "pocket_undecided"))

    def _no_ball(self) -> None:
        seen = self._seen
        seen.started_ns = seen.trying_ns = seen.cell = seen.told = None
        seen.counted = seen.with_ball = seen.empty = 0
        seen.doubted = False

    # --- one turn ---

    def _sense(self, first: int, last: int) -> Direction | None:
        """The sense of turning, by where the index lies between its two marks: one pitch apart, a quarter from one."""
        pitch = (last - first) / self._options.pockets
        found = set()
        for index in (first, last):
            place = bisect_left(self._seen.marks, index)
            if not 0 < place < len(self._seen.marks):
                continue
            before, after = self._seen.marks[place - 1 : place + 1]
            share = (index - before) / max(after - before, 1)
            if 0.75 < (after - before) / pitch < 1.25 and abs(share - 0.5) > 0.1:
                found.add(Direction.CCW if share < 0.5 else Direction.CW)
        return found.pop() if len(found) == 1 else None

    def _cell(self, first: int, last: int, marks: list[int], ball: int, sense: Direction) -> int | None:
        """The cell by counting and by time, clockwise from that with the index; None when they differ."""
        pockets = self._options.pockets
        counted = sum(at < ball for at in marks)
        timed = (ball - first) / (last - first) * pockets - 0.25
        if sense is Direction.CW:  # the cells pass in falling order
            counted, timed = -counted, pockets - 0.5 - timed
        cell = counted % pockets
        return cell if round(timed) % pockets == cell else None

    # --- small ---

    def _overrun(self, at_ns: int, facts: list[Fact]) -> None:
        lost = self._pulses.overrun(at_ns)
        facts.append(Overrun(at_ns=at_ns, source=self._role, device=self._role, lost=lost))

    def _blind(self, at_ns: int, why: str, facts: list[Fact]) -> None:
        """One of the two sensors of the rotor sees nothing: no reading any more."""
        if not self._why:
            told = self._port_why
            self._why = why
            facts += [] if told else [self._lose(at_ns, why)]

    def _cut(self, at_ns: int, facts: list[Fact]) -> None:
        """Index and mark have been under the head together for too long."""
        self._blind(at_ns, "unplugged", facts)

    def _forget(self) -> None:
        """The lines were not watched: what the ball did meanwhile is not known."""
        self._pulses.forget()
        self._seen = Seen()

    def _lose(self, at_ns: int, why: str) -> Fact:
        self.counters["losses"] += 1
        return DeviceLost(at_ns=at_ns, source=self._role, device=self._role, why=why)

    def _back(self, at_ns: int) -> Fact:
        return DeviceBack(at_ns=at_ns, source=self._role, device=self._role)

    def _doubt(self, at_ns: int, why: str) -> Fact:
        return Doubtful(at_ns=at_ns, source=self._role, device=self._role, why=why)

    def _remember(self, facts: list[Fact]) -> list[Fact]:
        if facts:
            self._fact_ns = facts[-1].at_ns
        return facts
