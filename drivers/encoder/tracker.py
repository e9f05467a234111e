"""From counts to facts: start, slowing, obstruction, standstill, travel and cell of a thing that turns.

Counts rise clockwise. A *run* is the motion between two turning points (a reversal of `TURN` counts or more; less is
trembling). A run that reaches 90 degrees at speed is a spin: the croupier's wind-up and the wheel's rock-back never get
that far (at most 34 and 9 degrees, physics README section 1). The decoder calls `reach` only when the count has come to
`watch`, so that nearly all edges cost the tracker nothing.

Cell n lies under the marker once the thing, turning clockwise, has snapped over peg n after the index mark. Where the
marker hangs is history, not a function of the angle: in either sense it snaps over a peg `hysteresis` behind the touch.
"""

from __future__ import annotations

import math
from typing import Any, Final

from drivers.encoder.options import Options
from drivers.encoder.runout import NaturalLaw, RunOut
from rules.facts import Direction, Doubtful, Fact, SpinObstructed, SpinSlowed, SpinStarted, SpinStopped

TURN: Final = 4
"""Counts of backward motion that make a turning point."""
CALM: Final = 8
"""So many edges within `TURN` of the furthest point still count as motion; more are trembling."""
MS: Final = 1_000_000
_MARKS: Final = 32
_FREE: Final = 0.42
"""Behind a touched peg the strap hangs free again from this part of the pitch on, until the next touch."""
_SNAP_SPREAD_DEG: Final = 0.5
"""The true snap comes so far behind the hysteresis: a wheel held there has not snapped."""
_LEAN_DEG: Final = 0.5
"""A free wheel leans on the strap by 0.22 degrees at most; beyond, somebody holds it."""
_FASTEST: Final = 25.0
"""rad/s that nothing at a table reaches."""
_DISTURBED: Final = 3
"""More wrong edges than this in a spin, and nothing is learned from it; a single one falls out of what is measured."""
_STIR_NS: Final = 1000 * MS
"""An impossible edge so soon behind a motion is one too, or its end: a moving wheel pauses 0.93 s at most."""
_AT_REST_NS: Final = 300 * MS
"""Nothing that has the speed of a spin shows no edge for so long."""

_STATE: Final = (
    "sense", "origin", "far", "moved_ns", "watch", "speed", "located", "gap", "uncertain", "spin", "spin_origin",
    "furthest", "corrected", "blind", "flawed", "slow_due_ns", "_calm", "_calm_far", "_base", "_started", "_slowed",
    "_obstructed", "_mark", "_pitch_mark", "_snap", "_free_from", "_free_from_ns", "_free_end", "_near_low",
    "_near_high", "_snapped", "_peak", "_low", "_below_ns", "unwatched_ns", "_stirred_ns", "_disturbed",
)  # fmt: skip


class Tracker:
    """Pure. The lists `facts` are appended to in order of time."""

    __slots__ = (*_STATE, "_marks", "_options", "_pitch", "_rad", "_role", "_run_out", "_told", "law")

    def __init__(self, role: str, options: Options) -> None:
        self._role, self._options = role, options
        self._pitch = options.counts_per_turn / (options.cells if options.pegs else 36)
        self._rad = 2 * math.pi * 1e9 / options.counts_per_turn
        """Radians per second of one count per nanosecond."""
        self.law = NaturalLaw()
        self.sense = 0
        """Of the present run: +1 clockwise, -1 against, 0 at rest."""
        self.origin = self.far = self.watch = 0
        """Counts: where the run began, its furthest point, and the next count at which `reach` has something to do."""
        self.moved_ns = 0
        """Time of the last edge that was motion."""
        self._stirred_ns = 0
        self.speed = 0.0
        self.located = False
        """The index mark has been found."""
        self.gap: int | None = None
        """Gap between pegs in which the marker hangs, counted clockwise from the index mark without end."""
        self.uncertain = False
        """Something was wrong with the edges since the last index."""
        self.spin = self.spin_origin = self.furthest = self.corrected = 0
        self.blind = False
        """The encoder was lost in this spin: nobody saw what happened meanwhile."""
        self.flawed = False
        """This spin was not seen well enough for anything to be learned from it."""
        self._disturbed = 0
        """Impossible or lost edges in this spin."""
        self.unwatched_ns: int | None = None
        """Nobody watched until then, nor has seen it since at rest, turning back or pushed; None = somebody has."""
        self.slow_due_ns: int | None = None
        self._calm = self._calm_far = 0
        self._base = 0.0
        self._started = self._slowed = self._obstructed = False
        self._mark = self._pitch_mark = self._snap = 0
        self._free_from = self._free_from_ns = 0
        self._free_end: int | None = None
        self._near_low = self._near_high = self._snapped = 0
        self._peak = self._low = 0.0
        self._below_ns: int | None = None
        self._marks: list[tuple[int, int]] = []
        self._run_out = RunOut()
        self._told: list[str] = []

    # --- motion, as the decoder sees it ---

    def reach(self, c: int, t: int, facts: list[Fact]) -> None:
        """The run has come to `watch` or beyond."""
        s = self.sense
        if self.gap is not None and (c - self._snap) * s >= 0:
            self._snap_over(c)
        if self._free_end is not None and (c - self._free_end) * s >= 0:
            self._leave_free_stretch(c, t, facts)
        if (c - self._mark) * s >= 0:
            self._pass_mark(c, t, facts)
        self._aim()

    def within(self, c: int, t: int) -> None:
        """A step that leads no further: a turning point, the end of a motion, or trembling."""
        back = (self.far - c) * self.sense if self.sense else abs(self.far - c)
        if back >= TURN:
            self._turn(c, t)
            return
        if self._calm_far != self.far:
            self._calm_far, self._calm = self.far, 0
        self._calm += 1
        if self._calm <= CALM:
            self.moved_ns = t

    def stir(self, t: int) -> None:
        """An impossible edge: it moves nothing, but for a while it puts the standstill off."""
        if t - self.moved_ns <= _STIR_NS:
            self._stirred_ns = t

    @property
    def still_since_ns(self) -> int:
        """Nothing has moved or stirred since."""
        return max(self.moved_ns, self._stirred_ns)

    def stop(self, c: int, at_ns: int, facts: list[Fact]) -> None:
        """Nothing has moved for the time of a standstill: the next motion is a new run from here."""
        if self.spin and not self.blind:
            self._end_spin(c, at_ns, facts)
        self._remember(c)
        self._remember(self.far)
        self.sense = 0
        self.origin = self.far = c
        self.unwatched_ns = None
        self._started = False
        self._free_end = None
        self._marks.clear()

    def slow(self, at_ns: int, facts: list[Fact]) -> None:
        """The wheel has been below its peak for long enough; told unless it already stands."""
        self.slow_due_ns = None
        if at_ns - self.moved_ns < 250 * MS:
            self._slowed = True
            self._low = self.speed
            facts.append(SpinSlowed(at_ns=at_ns, source=self._role))

    def lose_sight(self, c: int) -> None:
        """The edges cannot be believed any more: no position, no end of this spin until motion is seen again."""
        self.blind = self.spin != 0
        self.flawed = True
        self.slow_due_ns = None
        self.located, self.gap = False, None
        self.stop(c, self.moved_ns, [])
        self.unwatched_ns = self.moved_ns

    def disturb(self) -> None:
        """An edge was impossible or lost: uncertain until the next index, and no speed is taken across it."""
        self.uncertain = True
        self._disturbed += 1
        self.flawed = self.flawed or self._disturbed > _DISTURBED
        self._marks.clear()
        self._free_end = None
        self._run_out.interrupt()

    def doubt(self, at_ns: int, why: str, facts: list[Fact]) -> bool:
        """Tell a doubt, once a spin; true when it was told."""
        if why in self._told:
            return False
        self._told.append(why)
        facts.append(Doubtful(at_ns=at_ns, source=self._role, device=self._role, why=why))
        return True

    # --- position ---

    def locate(self, zero: int, c: int, *, anew: bool) -> None:
        """The index mark is at count `zero`: found `anew`, or moved by a correction of some counts."""
        self._base = zero + self._options.first_cell_mdeg * self._options.counts_per_turn / 360_000
        self.located = True
        if anew:
            self.gap = None
        if self.sense:
            self._find_gap(c)
            self._set_marks(c)
            self._aim()

    def cells(self, c: int) -> tuple[int | None, int | None]:
        """The cell under the marker of the wheel at rest, and the other one when only the eye can tell.

        A free wheel that rests nearer to the snap than to where it can lean has just snapped: the strap, bent so far,
        would have thrown it back.
        """
        if self.gap is None:
            return None, None
        o = self._options
        deg = 360.0 / o.cells
        snap = o.hysteresis_mdeg / 1000 / deg
        x = (c - self._base) / self._pitch - self.gap
        bent = max(x - 1, -x) * deg
        if 2 * bent > _LEAN_DEG + snap * deg:
            return (self.gap + (1 if x > 1 else -1)) % o.cells, self.gap % o.cells
        low, high = (
            (count - self._base) / self._pitch - self.gap
            for count in (min(self._near_low, self.far, c), max(self._near_high, self.far, c))
        )
        margins = [(1 + snap - high, 1), (low + snap, -1)]
        spread = _SNAP_SPREAD_DEG / deg
        if self._snapped > 0:
            margins.append((high - snap - spread, -1))
        elif self._snapped < 0:
            margins.append((1 - snap - low - spread, 1))
        margin, side = min(margins)
        doubtful = self.uncertain or margin * deg < o.doubt_mdeg / 1000 or bent > _LEAN_DEG
        return self.gap % o.cells, (self.gap + side) % o.cells if doubtful else None

    # --- state ---

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        state: dict[str, Any] = {name: getattr(self, name) for name in _STATE}
        state["_marks"] = [list(mark) for mark in self._marks]
        state["_told"] = list(self._told)
        state["_run_out"] = self._run_out.snapshot()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for name in _STATE:
            setattr(self, name, state[name])
        self._marks = [(c, t) for c, t in state["_marks"]]
        self._told = list(state["_told"])
        self._run_out = RunOut.restored(state["_run_out"])

    # --- runs ---

    def _turn(self, c: int, t: int) -> None:
        self._remember(self.far)
        if self.unwatched_ns is not None and (self.sense or t - self.unwatched_ns > _AT_REST_NS):
            self.unwatched_ns = None
        self.sense = -self.sense if self.sense else (1 if c > self.far else -1)
        self.origin, self.far = self.far, c
        self.moved_ns = t
        self._started = False
        self._free_end = None
        self._marks[:] = [(c, t)]
        if self.located:
            self._find_gap(c)
        self._set_marks(c)
        self._aim()

    def _remember(self, c: int) -> None:
        """Keep an extreme: of the spin, and since the marker's last snap."""
        if (c - self.furthest) * self.spin > 0:
            self.furthest = c
        self._near_low = min(self._near_low, c)
        self._near_high = max(self._near_high, c)

    def _aim(self) -> None:
        """Choose the next count to watch."""
        nearest = min if self.sense > 0 else max
        self.watch = self._mark
        if self.gap is not None:
            x = self.gap + 1 + self._hysteresis if self.sense > 0 else self.gap - self._hysteresis
            at = self._base + x * self._pitch
            self._snap = math.ceil(at) if self.sense > 0 else math.floor(at)
            self.watch = nearest(self.watch, self._snap)
        if self._free_end is not None:
            self.watch = nearest(self.watch, self._free_end)

    def _set_marks(self, c: int) -> None:
        """The next mark: one a pitch, where the strap begins to hang free, always on the same boundary of the cycle."""
        s = self.sense
        base = self._base if self.located else self.origin
        passed = math.floor((c - base) * s / self._pitch - _FREE)
        for n in (passed + 1, passed + 2):
            self._pitch_mark = round(base) + s * 4 * round((n + _FREE) * self._pitch / 4)
            if (self._pitch_mark - c) * s > 0:
                break
        self._mark = self._pitch_mark
        if not self._started:
            quarter = self.origin + s * -(-self._options.counts_per_turn // 4)
            if 0 < (quarter - c) * s < (self._mark - c) * s:
                self._mark = quarter

    def _pass_mark(self, c: int, t: int, facts: list[Fact]) -> None:
        s = self.sense
        if not self._started:
            self._try_start(c, t, facts)
        if (c - self._pitch_mark) * s >= 0:
            if self._started:
                self._on_the_way(c, t, facts)
            self._marks.append((c, t))
            del self._marks[:-_MARKS]
            if self.gap is not None and self._started and self.speed < 1.5:
                self._free_from, self._free_from_ns = c, t
                self._free_end = c + s * 4 * int(self._pitch / 8)
        self._set_marks(c)

    def _speed_since(self, c: int, t: int, least_ns: int) -> tuple[float, int]:
        """Mean speed from the latest mark at least so old (else the oldest), and the middle of that time."""
        since_c, since_t = c, t
        for mark in reversed(self._marks):
            since_c, since_t = mark
            if t - since_t >= least_ns:
                break
        span = t - since_t
        return (abs(c - since_c) * self._rad / span if span > 0 else 0.0), since_t + span // 2

    # --- a spin ---

    def _try_start(self, c: int, t: int, facts: list[Fact]) -> None:
        s, turn = self.sense, self._options.counts_per_turn
        travel = (c - self.origin) * s
        if self.blind:
            self._try_resume(c, t, travel)
        if self._started or travel * 4 < turn:
            return
        if not self._marks:
            return
        since_c, since_t = self._marks[0]
        for mark_c, mark_t in reversed(self._marks):
            if (c - mark_c) * s * 12 >= turn:
                since_c, since_t = mark_c, mark_t
                break
        if t > since_t and (c - since_c) * s * self._rad >= self._options.start_rad_s * (t - since_t):
            if self._sped_up(c, t):
                self.unwatched_ns = None
            self._begin_spin(self.origin, t, facts)

    def _begin_spin(self, origin: int, t: int, facts: list[Fact]) -> None:
        self.spin = self.sense
        self.spin_origin, self.furthest = origin, self.far
        self.corrected = 0
        self.blind = self.flawed = False
        self._disturbed = 0
        self.slow_due_ns = None
        self._started = True
        self._slowed = self._obstructed = False
        self._peak = 0.0
        self._below_ns = None
        self._run_out = RunOut()
        self._told.clear()
        found = self.unwatched_ns is not None
        facts.append(SpinStarted(at_ns=t, source=self._role, direction=_direction(self.spin), found=found))
        if found and self._options.pegs:  # its launch is unknown, and with it the travel
            self.flawed = True
            self.doubt(t, "not_observed", facts)

    def _try_resume(self, c: int, t: int, travel: int) -> None:
        """Edges are back after a loss in mid-spin: the same spin goes on unless it turns otherwise or is sped up."""
        if self.sense == self.spin and travel * 12 < self._options.counts_per_turn:
            return
        self.blind = False
        if self.sense != self.spin or self._sped_up(c, t):
            self.spin = 0
            return
        self.spin_origin = self.origin - (self.furthest - self.spin_origin)
        self.furthest = self.far
        self._started = True
        self.flawed = True

    def _sped_up(self, c: int, t: int) -> bool:
        """Somebody pushes: this run is faster now than where its edges began."""
        marks = [*self._marks, (c, t)]
        (c0, t0), (c1, t1) = marks[0], marks[min(1, len(marks) - 1)]
        before = abs(c1 - c0) / max(1, t1 - t0)
        return self._speed_since(c, t, 0)[0] / self._rad > 1.1 * before

    def _on_the_way(self, c: int, t: int, facts: list[Fact]) -> None:
        """One more pitch of the launched run: peak, slowing, obstruction or push."""
        o = self._options
        speed, _ = self._speed_since(c, t, 50 * MS)
        if not speed:
            return
        self.speed = speed
        if speed > _FASTEST:
            self.doubt(t, "too_fast", facts)
        if not self._slowed:
            if speed > self._peak:
                self._peak = speed
            if speed * 1000 >= self._peak * o.slow_permille:
                if self._below_ns is not None:
                    self._below_ns = self.slow_due_ns = None
                    self._run_out = RunOut()
            elif self._below_ns is None:
                self._below_ns = t
                self.slow_due_ns = t + o.slow_hold_ms * MS
        if o.pegs:
            self._observe(c, t, facts)
        elif self._slowed:
            speed, middle_ns = self._speed_since(c, t, 250 * MS)
            if t - middle_ns < 125 * MS:
                return
            self._low = min(self._low, speed)
            if speed > 1.15 * self._low + 0.15:
                self.unwatched_ns = None
                self._begin_spin(c, t, facts)

    def _observe(self, c: int, t: int, facts: list[Fact]) -> None:
        if self._below_ns is None or t - self._below_ns < 120 * MS:
            return
        speed, middle_ns = self._speed_since(c, t, 120 * MS)
        if t - middle_ns < 60 * MS:
            return
        excess = self._run_out.speed(middle_ns, speed, self.law, self._options.obstruction_mrad_s / 1000)
        if excess > 0:
            self._obstruct(t, "brake", facts)
        elif excess < 0 and self._slowed:
            self._obstruct(t, "push", facts)

    def _leave_free_stretch(self, c: int, t: int, facts: list[Fact]) -> None:
        span = t - self._free_from_ns
        gap = math.floor((self._free_from - self._base) * self.sense / self._pitch)
        self._free_end = None
        if span > 0 and self._run_out.free_stretch(gap, abs(c - self._free_from) * self._rad / span, self._per_peg):
            self._obstruct(t, "late", facts)

    def _obstruct(self, t: int, why: str, facts: list[Fact]) -> None:
        if not self._obstructed:
            self._obstructed = True
            facts.append(SpinObstructed(at_ns=t, source=self._role, why=why))

    def _end_spin(self, c: int, at_ns: int, facts: list[Fact]) -> None:
        turn = self._options.counts_per_turn
        self._remember(self.far)
        travel = (self.furthest - self.spin_origin + self.corrected) * self.spin
        if self._options.pegs:
            if self._run_out.rest_is_early(self._per_peg):
                self._obstruct(at_ns, "late", facts)
            good = self._slowed and not self._obstructed and not self.flawed and travel >= 2 * turn
            if good and self._run_out.blocks:
                self.law.learn(self._run_out.blocks, self._run_out.departure)
        cell, or_cell = self.cells(c)
        facts.append(
            SpinStopped(
                at_ns=at_ns,
                source=self._role,
                direction=_direction(self.spin),
                travel=travel,
                per_turn=turn,
                cell=cell,
                or_cell=or_cell,
            )
        )
        self.spin = 0
        self.speed = 0.0
        self.slow_due_ns = None

    # --- the marker at the pegs ---

    @property
    def _per_peg(self) -> float | None:
        return self.law.per_peg(2 * math.pi / self._options.cells)

    @property
    def _hysteresis(self) -> float:
        """Snap angle in pitches."""
        return self._options.hysteresis_mdeg * self._options.cells / 360_000

    def _find_gap(self, c: int) -> None:
        if self._options.pegs and self.gap is None:
            self._snap_over(c)
            self._snapped = 0

    def _snap_over(self, c: int) -> None:
        """The marker has snapped (perhaps over more than one peg) in the sense of the run."""
        x = (c - self._base) / self._pitch
        self.gap = math.floor(x - self._hysteresis) if self.sense > 0 else math.ceil(x + self._hysteresis) - 1
        self._near_low = self._near_high = c
        self._snapped = self.sense
        if self.sense == self.spin:
            self._run_out.passed = True


def _direction(sense: int) -> Direction:
    return Direction.CW if sense > 0 else Direction.CCW
