"""The decoder of the family `encoder`: certain codes to counts, counts to facts, and what is wrong with the signals.

Motion that no edge has shown is always told (`Overrun`), impossible edges are counted and make the position uncertain
until the next index, and an encoder whose signals cannot be believed is lost until motion without faults has passed the
index again (field cases 50, 52, 62, 64, 69; physics README section 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drivers.base import Answer, Edge, Snapshot
from drivers.encoder.commissioning import Commissioning
from drivers.encoder.edges import HOLD_NS, HOLE, NEVER, PULSE, Coded, EdgeFilter
from drivers.encoder.options import Options
from drivers.encoder.quadrature import Quadrature
from drivers.encoder.runout import NaturalLaw
from drivers.encoder.tracker import MS, Tracker
from rules.facts import DeviceBack, DeviceLost, Fact, Overrun

_ALONE: Final = 24
"""Edges of one line in a row while the other is silent: its channel is dead."""
_STORM: Final = 300
_STORM_NS: Final = 1_666_667
"""At rest: so many edges of one line alone, closer than this; nothing trembles so fast (field case 64: 400/s)."""
_CEASED_NS: Final = 250 * MS
_CEASED_RAD_S: Final = 0.6
"""Edges that end at more than this, without slowing down before, mean that the cable is out."""
_PARTING_NS: Final = 5 * MS
_NOISY: Final = 3
_USELESS: Final = 20
"""Impossible edges in one turn: a doubt (on a cylinder half of the useless), and the end of belief."""
_ODD_NS: Final = 60_000 * MS
"""Impossible edges further apart than this are not counted together."""
_PULSES: Final = 1000
_PULSES_NS: Final = 1000 * MS
"""More pulses than this in a second are a doubt; trembling on the edge of a mark makes some hundred."""
_RELEASE_NS: Final = 10 * MS
_DRIFT: Final = 0.15
"""A natural run-out that has changed by this share since the commissioning is an alarm (physics README section 8)."""
_OVERRUN_EVERY_NS: Final = 1000 * MS

_STATE: Final = (
    "_zero", "_candidate", "_index_c", "_lost_since_index", "_alone", "_alone_line", "_alone_c", "_alone_ns",
    "_alone_index", "_alone_fast",
    "_turn_c", "_odd", "_odd_ns", "_odd_at_loss", "_back_c", "_why", "_port_why", "_untold",
    "_untold_ns", "_pulses", "_pulses_ns", "_fact_ns",
)  # fmt: skip


class Encoder:
    """`EdgeDecoder`; the lines are `<role>.a`, `<role>.b`, `<role>.index`."""

    __slots__ = (
        *_STATE, "_ceased_cycle_ns", "_commissioning", "_filter", "_options", "_quadrature", "_role", "_stop_ns",
        "_tracker", "_wake_ns", "counters",
    )  # fmt: skip

    def __init__(self, role: str, options: Options) -> None:
        self._role, self._options = role, options
        self._filter = EdgeFilter(role, swapped=options.direction == "ccw", gap_us=options.glitch_us)
        self._quadrature = Quadrature(options.counts_per_turn)
        self._tracker = Tracker(role, options)
        self._ceased_cycle_ns = round(4 * 2 * math.pi / options.counts_per_turn / _CEASED_RAD_S * 1e9)
        self._commissioning = Commissioning(role, options)
        self._stop_ns = options.stop_ms * MS
        self.counters = {
            "illegal": 0, "lost_edges": 0, "index_seen": 0, "index_fixes": 0, "index_faults": 0, "losses": 0,
        }  # fmt: skip
        self._zero: int | None = None
        """Count at the index mark; None = position unknown."""
        self._candidate: int | None = None
        """Count of an index that came where none was due."""
        self._index_c = self._turn_c = 0
        """Counts at the last index, and where the present turn began."""
        self._lost_since_index = False
        self._alone = self._alone_c = self._alone_ns = 0
        """Edges of one line in a row; the count and the time where they began."""
        self._alone_line = -1
        self._alone_index: int | None = None
        """How many there were at the last index pulse."""
        self._alone_fast = False
        """They began while the thing was in full motion."""
        self._odd, self._odd_ns = 0, NEVER
        """Impossible edges in the present turn."""
        self._odd_at_loss = self._back_c = 0
        self._why = self._port_why = ""
        """Why the device is lost: by its signals, by its port."""
        self._untold, self._untold_ns = 0, NEVER
        self._pulses, self._pulses_ns = 0, NEVER
        self._fact_ns: int | None = None
        self._wake_ns = NEVER

    # --- EdgeDecoder ---

    def feed(self, edges: Sequence[Edge]) -> list[Fact]:
        """Edges in order of their time; never raises."""
        facts: list[Fact] = []
        self._run(self._filter.push(edges), facts)
        self._elapse(self._filter.certain_ns(self._filter.latest_ns - HOLD_NS), facts)
        return self._told(facts)

    def tick(self, now_ns: int) -> list[Fact]:
        """Time has passed: whatever was due `HOLD_NS` before `now_ns`, because younger edges may yet be undone."""
        facts: list[Fact] = []
        self._run(self._filter.release(now_ns - HOLD_NS), facts)
        self._elapse(self._filter.certain_ns(now_ns - HOLD_NS), facts)
        return self._told(facts)

    def due_ns(self) -> int | None:
        """When `tick` has something to say next. An edge that is held waits for the next one, or for `_RELEASE_NS`."""
        held = self._filter.held_ns()
        due = [at + HOLD_NS for at, _ in self._dues() if held is None or at <= held]
        if held is not None:
            due.append(held + _RELEASE_NS)
        return min(due, default=None)

    def opened(self, at_ns: int) -> list[Fact]:
        """The port is open: the lines are watched from now on."""
        self._forget()
        self._tracker.unwatched_ns = at_ns
        if not self._port_why:
            return []
        self._port_why = ""
        return [] if self._why else self._told([DeviceBack(at_ns=at_ns, source=self._role, device=self._role)])

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The port is gone."""
        facts = self.tick(at_ns)
        told = self._why or self._port_why
        self._port_why = why
        self._forget()
        if not told:
            self.counters["losses"] += 1
            facts += self._told([DeviceLost(at_ns=at_ns, source=self._role, device=self._role, why=why)])
        return facts

    def snapshot(self) -> Snapshot:
        """State from which `restore` continues; `learned` alone is what outlives a restart of the daemon."""
        return {
            "decoder": {name: getattr(self, name) for name in _STATE},
            "counters": dict(self.counters),
            "filter": self._filter.snapshot(),
            "quadrature": self._quadrature.snapshot(),
            "tracker": self._tracker.snapshot(),
            "learned": self._tracker.law.snapshot(),
        }

    def restore(self, state: Snapshot) -> None:
        """Continue from a snapshot; one that holds only `learned` leaves everything else as it is."""
        if "learned" in state:
            self._tracker.law.restore(state["learned"])
        if "decoder" not in state:
            return
        for name in _STATE:
            setattr(self, name, state["decoder"][name])
        self.counters.update(state["counters"])
        self._filter.restore(state["filter"])
        self._quadrature.restore(state["quadrature"])
        self._tracker.restore(state["tracker"])
        self._wake_ns = NEVER

    def health(self) -> dict[str, int | str | None]:
        """Counters; `position` is `known`, `uncertain` (until the next index) or `unknown` (before the first)."""
        known = "uncertain" if self._tracker.uncertain else "known"
        return {
            **self._filter.counters,
            **self.counters,
            "position": "unknown" if self._zero is None else known,
            "lost": self._why or self._port_why or None,
            "learned_spins": self._tracker.law.spins,
            "last_fact_ns": self._fact_ns,
            "fault": self._fault(),
        }

    def sample(self) -> dict[str, Any]:
        """Speed, position, and what was learned, for `diag` and `calibrate`."""
        law = self._tracker.law
        standing = self._tracker.sense == 0
        return {
            "mrad_s": 0 if standing else round(1000 * self._tracker.speed),
            "count": self._quadrature.c,
            "position": self._position,
            "cell": self._tracker.cells(self._quadrature.c)[0],
            "spinning": self._tracker.spin,
            "edges": self._filter.counters["edges"],
            "unseen": dict(self._filter.unseen),
            "learned": {
                "spins": law.spins,
                "slowing_urad_s2": [round(1e6 * f) for f in law.fit],
                "worst_mrad_s": round(1000 * law.worst),
                "drift_permille": round(1000 * law.drift),
            },
        }

    # --- the technician ---

    asks = frozenset({"turn", "turned", "touch", "snap", "cell"})
    orders = asks | {"forget"}

    @property
    def guide(self) -> str:
        """How this encoder is put into service, in French."""
        return self._commissioning.guide

    def answer(self, name: str, args: Mapping[str, object]) -> Answer:
        """A command of `asks`, or `forget` what was learned; raises ValueError when there is none of this name."""
        known, c = self._commissioning, self._quadrature.c
        odd = self.counters["illegal"] + self.counters["lost_edges"]
        if name == "turn":
            return known.begin(c, odd)
        if name == "turned":
            return known.turned(c, odd)
        if name in ("touch", "snap"):
            return known.mark(name, self._position, self._quadrature.direction)
        if name == "cell":
            return known.cell(int(str(args.get("value", -1))), self._position)
        if name == "forget":
            spins, self._tracker.law = self._tracker.law.spins, NaturalLaw()
            return Answer(True, f"{spins} lancers oubliés : faire 20 lancers libres.")
        raise ValueError(f"there is no {name}; there are: {', '.join(sorted(self.orders))}")

    @property
    def _position(self) -> int | None:
        return None if self._zero is None else (self._quadrature.c - self._zero) % self._options.counts_per_turn

    def _fault(self) -> str | None:
        drift = self._tracker.law.drift
        if abs(drift) <= _DRIFT:
            return None
        return (
            f"La roue ralentit autrement qu'à la mise en service ({100 * drift:+.0f} %) : vérifier lame, picots et "
            f"roulement, puis calibrate {self._role} forget et 20 lancers libres."
        )

    # --- steps ---

    def _run(self, codes: list[Coded], facts: list[Fact]) -> None:
        """The hot loop: an edge that fits costs a few integer operations and calls nothing."""
        tracker, quadrature = self._tracker, self._quadrature
        ring, c, fit, step = quadrature.ring, quadrature.c, quadrature.fit, quadrature.direction
        sense, far, watch, wake = tracker.sense, tracker.far, tracker.watch, self._wake_ns
        for code, t in codes:
            if t > wake:
                quadrature.c, tracker.far = c, far
                if code >= HOLE and code != PULSE:  # the silence before it was not one
                    tracker.moved_ns = t
                    self._elapse(t - 1, facts, silent=False)
                else:
                    self._elapse(t - 1, facts)
                sense, far, watch, wake = tracker.sense, tracker.far, tracker.watch, self._wake_ns
            if code < 4 and (code - c) & 3 == fit:
                ring[c & 15] = quadrature.last_ns = t
                c += step
                if (c - far) * sense > 0:
                    far = c
                    tracker.moved_ns = t
                    if (c - watch) * sense < 0:
                        continue
                    quadrature.c, tracker.far = c, far
                    self._arrive(t, facts)
                else:
                    quadrature.c, tracker.far = c, far
                    tracker.within(c, t)
                    self._plan()
            else:
                quadrature.c, tracker.far = c, far
                self._misfit(code, t, facts)
                c, fit, step = quadrature.c, quadrature.fit, quadrature.direction
            sense, far, watch, wake = tracker.sense, tracker.far, tracker.watch, self._wake_ns
        quadrature.c, tracker.far = c, far

    def _go_on(self, t: int, facts: list[Fact]) -> None:
        """The count has changed by more than one step, or otherwise than expected."""
        tracker, c = self._tracker, self._quadrature.c
        if (c - tracker.far) * tracker.sense > 0:
            tracker.far = c
            tracker.moved_ns = t
            if (c - tracker.watch) * tracker.sense >= 0:
                self._arrive(t, facts)
        else:
            tracker.within(c, t)
            self._plan()

    def _arrive(self, t: int, facts: list[Fact]) -> None:
        """The run has come to the count that the tracker watches."""
        c, turn = self._quadrature.c, self._options.counts_per_turn
        self._tracker.reach(c, t, facts)
        if abs(c - self._turn_c) >= turn:
            self._turn_c, self._odd = c, 0
        if abs(c - self._index_c) * 5 >= 6 * turn and not self._why:
            self._tracker.uncertain = True
            if self._doubt_index(t, "index_missing", facts):
                self.counters["index_faults"] += 1
        self._plan()

    def _misfit(self, code: int, t: int, facts: list[Fact]) -> None:
        """An index, a hole, a pulse, a reversal, an impossible edge, or any edge while the phase is unknown."""
        before = self._quadrature.c
        if code == PULSE:
            self._count_pulse(t, facts)
        elif code >= HOLE:
            line, missing = code & 3, code >> 5
            if line < 2:
                self._quadrature.hole(line, missing, t)
            self._count_lost(missing, t, facts)
        elif code & 4:
            self._index(t, facts, rises=code & 1 == 1)
        else:
            self._count_alone(code & 1, t, facts)
            moving = self._tracker.sense != 0
            odd, lost = self._quadrature.judge(code, t)
            if odd:
                self._count_odd(odd, t, facts)
            if lost:  # the sense of a cylinder does not hang on one edge whose place is certain
                self._count_lost(lost, t, facts if moving and (self._options.pegs or lost > 1) else None)
            self._alone_c = self._quadrature.c
        if self._quadrature.c != before:
            self._go_on(t, facts)
        else:
            self._plan()

    # --- the index ---

    def _index(self, t: int, facts: list[Fact], *, rises: bool) -> None:
        """The index mark: finds the position, corrects it by whole cycles, or shows that something is wrong."""
        turn, c = self._options.counts_per_turn, self._quadrature.c
        if self._alone and rises:
            if self._alone_index is not None and (self._alone - self._alone_index) * 8 >= turn:
                self._lose("dead_channel", t, facts)
            self._alone_index = self._alone
        if not self._quadrature.direction or rises != (self._quadrature.direction > 0):
            return
        self.counters["index_seen"] += 1
        self._commissioning.index(c)
        if self._why and not self._is_back(t, facts):
            return
        tracker, unexplained = self._tracker, False
        error = 0 if self._zero is None else _nearest(c - self._zero, turn)
        if self._zero is None:
            self._set_zero(c, anew=True)
        elif 2 < abs(error) <= self._options.index_tolerance:
            fix = 4 * round(error / 4)
            self.counters["index_fixes"] += 1
            unexplained = not self._lost_since_index  # perhaps it is the index that is wrong: the next one says
            if tracker.spin:
                tracker.corrected -= fix
            self._set_zero(self._zero + fix, anew=False)
        elif abs(error) > 2:
            agrees = self._candidate is not None and (
                abs(c - self._candidate) * 2 > turn
                and abs(_nearest(c - self._candidate, turn)) <= self._options.index_tolerance
            )
            if not agrees and not self._lost_since_index:
                self._candidate = c
                self.counters["index_faults"] += 1
                tracker.uncertain = True
                self._doubt_index(t, "index_fault", facts)
                return
            self.counters["index_fixes"] += 1
            self._set_zero(c, anew=True)
        self._candidate = None
        self._index_c = c
        self._lost_since_index = False
        tracker.uncertain = unexplained

    def _doubt_index(self, t: int, why: str, facts: list[Fact]) -> bool:
        """Once a spin; on a cylinder nothing hangs on the position, so there it is only counted."""
        return self._tracker.doubt(t, why, facts if self._options.pegs else [])

    def _set_zero(self, zero: int, *, anew: bool) -> None:
        self._zero = zero
        self._tracker.locate(zero, self._quadrature.c, anew=anew)

    # --- what is wrong ---

    def _count_alone(self, line: int, t: int, facts: list[Fact]) -> None:
        """One line moves and the other does not: trembling on an edge, or a dead channel."""
        if line != self._alone_line or self._quadrature.c != self._alone_c:
            self._alone, self._alone_line, self._alone_ns, self._alone_index = 0, line, t, None
            self._alone_fast = self._quadrature.came_fast(t)
        self._alone += 1
        if self._alone < _ALONE:
            return
        span_ns = t - self._alone_ns
        moving = self._quadrature.is_fast(t) or (self._alone_fast and self._quadrature.keeps_up(self._alone, span_ns))
        if moving or (self._alone >= _STORM and span_ns < self._alone * _STORM_NS):
            self._lose("dead_channel", t, facts)

    def _count_odd(self, odd: int, t: int, facts: list[Fact]) -> None:
        """Impossible edges."""
        if t - self._odd_ns > _ODD_NS:
            self._odd = 0
        self._odd_ns = t
        self._odd += odd if self._alone <= 2 else 0  # one line alone is another fault
        self.counters["illegal"] += odd
        self._tracker.stir(t)
        self._tracker.disturb()
        if self._odd > _USELESS:
            self._lose("noise", t, facts)
        elif self._odd > (_NOISY if self._options.pegs else _USELESS // 2):
            self._tracker.doubt(t, "noise", facts)
        self._distrust()

    def _count_lost(self, missing: int, t: int, facts: list[Fact] | None) -> None:
        """Edges are known to be missing: told at once, and then their sum once a second (`facts` None: not told)."""
        self.counters["lost_edges"] += missing
        self._lost_since_index = True
        self._tracker.disturb()
        self._distrust()
        if facts is None:
            return
        self._untold += missing
        if t - self._untold_ns >= _OVERRUN_EVERY_NS:
            self._tell_lost(t, facts)
        self._plan()

    def _distrust(self) -> None:
        """While the signals cannot be believed, a start is motion without any fault: noise is no launch."""
        if self._why:
            self._tracker.lose_sight(self._quadrature.c)

    def _tell_lost(self, at_ns: int, facts: list[Fact]) -> None:
        facts.append(Overrun(at_ns=at_ns, source=self._role, device=self._role, lost=self._untold))
        self._untold, self._untold_ns = 0, at_ns

    def _count_pulse(self, t: int, facts: list[Fact]) -> None:
        """Two edges that undid each other within the glitch time."""
        if t - self._pulses_ns >= _PULSES_NS:
            self._pulses, self._pulses_ns = 0, t
        self._pulses += 1
        if self._pulses > _PULSES:
            self._tracker.doubt(t, "noise", facts)

    def _lose(self, why: str, at_ns: int, facts: list[Fact]) -> None:
        """The signals cannot be believed: told once, until motion without faults passes the index."""
        self._back_c, self._odd_at_loss = self._quadrature.c, self.counters["illegal"]
        if self._why:
            return
        self._why = why
        self.counters["losses"] += 1
        self._zero = self._candidate = None
        self._tracker.lose_sight(self._quadrature.c)
        if not self._port_why:
            facts.append(DeviceLost(at_ns=at_ns, source=self._role, device=self._role, why=why))

    def _is_back(self, t: int, facts: list[Fact]) -> bool:
        """At an index after a loss: a quarter turn or more, almost without impossible edges, makes the device good."""
        odd = self.counters["illegal"] - self._odd_at_loss
        if abs(self._quadrature.c - self._back_c) * 4 < self._options.counts_per_turn or odd > _NOISY:
            self._back_c, self._odd_at_loss = self._quadrature.c, self.counters["illegal"]
            return False
        self._why = ""
        if not self._port_why:
            facts.append(DeviceBack(at_ns=t, source=self._role, device=self._role))
        return True

    def _forget(self) -> None:
        """The lines were not watched: phase and position are unknown."""
        self._filter.forget()
        self._quadrature.forget()
        self._zero = self._candidate = None
        self._index_c = self._quadrature.c
        self._alone, self._alone_line = 0, -1
        self._tracker.lose_sight(self._quadrature.c)
        self._plan()

    # --- time ---

    def _dues(self, *, silent: bool = True) -> list[tuple[int, str]]:
        """What becomes due by time alone; not `silent`: edges came, but were dropped."""
        tracker = self._tracker
        dues = []
        if tracker.sense or (tracker.spin and not tracker.blind):
            dues.append((tracker.still_since_ns + self._stop_ns, "stop"))
        if tracker.slow_due_ns is not None:
            dues.append((tracker.slow_due_ns, "slow"))
        if tracker.sense and not self._why and silent and self._broke_off():
            dues.append((self._quadrature.last_ns + _CEASED_NS, "ceased"))
        if self._untold:
            dues.append((self._untold_ns + _OVERRUN_EVERY_NS, "lost"))
        return dues

    def _broke_off(self) -> bool:
        """The edges have ended as only a cable ends them.

        A light cylinder can be caught dead; there the pins must have shown how they parted: an impossible edge at the
        end, or an index that stays up (an open input floats or is pulled).
        """
        quadrature = self._quadrature
        if not quadrature.broke_off(self._ceased_cycle_ns):
            return False
        parting = quadrature.doubting or abs(self._odd_ns - quadrature.last_ns) < _PARTING_NS
        return self._options.pegs or parting or self._filter.index_is_up()

    def _plan(self, due_ns: int | None = None) -> None:
        """Set the time before which the hot loop need not look at what is due."""
        due_ns = min(self._dues(), default=(-NEVER, ""))[0] if due_ns is None else due_ns
        self._wake_ns = min(due_ns, self._quadrature.last_ns + _CEASED_NS) if self._tracker.sense else due_ns

    def _elapse(self, now_ns: int, facts: list[Fact], *, silent: bool = True) -> None:
        """Everything due at or before `now_ns`, in order."""
        if now_ns < self._wake_ns:
            return
        while True:
            at_ns, what = min(self._dues(silent=silent), default=(-NEVER, ""))
            if at_ns > now_ns:
                break
            if what == "stop":
                self._tracker.stop(self._quadrature.c, at_ns, facts)
            elif what == "slow":
                self._tracker.slow(at_ns, facts)
            elif what == "ceased":
                self._lose("edges_ceased", at_ns, facts)
            else:
                self._tell_lost(at_ns, facts)
        self._plan(at_ns)

    def _told(self, facts: list[Fact]) -> list[Fact]:
        if facts:
            self._fact_ns = facts[-1].at_ns
        return facts


def _nearest(error: int, turn: int) -> int:
    """The same angle between minus and plus half a turn."""
    return (error + turn // 2) % turn - turn // 2
