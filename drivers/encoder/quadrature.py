"""Counts from certain codes: x4 quadrature with inertia, and what an edge that does not fit can be.

Count c = number of boundaries crossed clockwise. Boundaries repeat A up, B up, A down, B down; crossed backwards each
shows the opposite edge. So (code - c) mod 4 is 0 for one step forward and 1 for one step back; 2 and 3 are impossible:
edges are missing. While the thing turns faster than `FAST` it cannot reverse inside one count, so an edge that does not
fit there is *suspect*: if the next edge fits as though it had not been, it was noise and is dropped; if the next edge
fits behind it, the 1 to 3 edges before it were lost. Below that speed an impossible edge moves nothing, except that a
reversal of one count which the next edge contradicts was a lost edge too (field case 50; physics README section 4.3).

The kernel asks for the level when its thread runs, which may be an edge late: a level that the line already had may be
the other one, if that fits. At speed a line may stay late, and then all its levels are the other ones.

A sense found in a hole or in noise may be the wrong one; then every edge is suspect and each follows the one before as
in the other sense. `CONTRARY` of them in a row turn the sense round.
"""

from __future__ import annotations

import math
from typing import Any, Final

from drivers.encoder.edges import NEVER, REPEATED

FAST: Final = 0.25
"""rad/s above which nothing reverses inside one count."""
CONTRARY: Final = 6
"""So many edges in a row that follow one another against the present sense: it is the wrong one."""
SURE: Final = 32
"""So many counts without an impossible edge or a reversal make the sense sure; a late line looks as the other sense."""
CALLS: Final = 9
"""`fit` that no edge has, so that every edge comes to `judge`."""

_STATE: Final = (
    "c", "direction", "fit", "last_ns", "_rotation", "_known", "_first", "_suspect", "_other",
    "_other_at", "_hole_from", "_hole_to", "_judged", "_judged_c", "_contrary", "_contrary_c", "_doubt_c",
)  # fmt: skip


class Quadrature:
    """Pure. The hot loop of the decoder takes the steps that fit by itself and writes `c`, `ring` and the times."""

    __slots__ = (*_STATE, "_fast_ns", "_late", "ring")

    def __init__(self, counts_per_turn: int) -> None:
        self._fast_ns = round(2 * math.pi / counts_per_turn / FAST * 1e9)
        self.c = 0
        self.direction = 0
        """Sense of the last step; 0 = none since the phase became known."""
        self.fit = CALLS
        """(code - c) mod 4 of an edge that continues in the present sense."""
        self.ring = [NEVER] * 16
        """Times of the last steps, by the count that they left (mod 16); NEVER where the sense changed since."""
        self.last_ns = NEVER
        """Time of the last step."""
        self._rotation = 0
        """Boundary b has the code (b - rotation) mod 4."""
        self._known = False
        """The phase is known."""
        self._first: int | None = None
        """The only edge so far while the phase is unknown."""
        self._suspect: int | None = None
        self._other: int | None = None
        """Where a reversal would have led, had it been a lost edge; of use only while `c` is still `_other_at`."""
        self._other_at = 0
        self._hole_from = self._hole_to = NEVER
        """Counts before and after the last hole."""
        self._late = [NEVER, NEVER]
        """Per line, the count after its last edge whose level was asked for too late."""
        self._doubt_c = -SURE
        """Count at the last impossible edge or reversal."""
        self._judged = self._judged_c = self._contrary = self._contrary_c = 0
        """The boundary judged last and the count then; how many followed one another against the sense, and the count
        before them."""

    def judge(self, code: int, t: int) -> tuple[int, int]:
        """An edge of A or B that the hot loop did not take; moves `c`. (impossible edges, edges known to be lost)."""
        boundary, repeated = code & 3, bool(code & REPEATED)
        if not self._known:
            self._find_phase(boundary, t)
            return 0, 0
        suspect, self._suspect = self._suspect, None
        if self._runs_against(boundary, t):
            self.direction = -self.direction
            self.c = self._contrary_c + CONTRARY * self.direction
            self.c += self.direction * self._ahead(boundary, self.c)
            self.ring[:] = [NEVER] * 16
            self._step(1, t)
            self._contrary, self._contrary_c = 0, self.c
            odd, lost = 1, 0
        elif suspect is None:
            odd, lost = (self._judge_fast if self.is_fast(t) else self._judge_slow)(boundary, t, repeated=repeated)
        elif not self.is_fast(t):
            odd, lost = self._judge_slow(suspect, self.last_ns, repeated=False)
            more, missing = self._judge_slow(boundary, t, repeated=repeated)
            odd, lost = odd + more, lost + missing
        elif self._ahead(boundary, self.c) == 0:
            odd, lost = 1, 0
            self._step(1, t)
        else:
            odd, lost = 1, self._ahead(suspect, self.c)
            self._step(lost + 1, t)
            if self._ahead(boundary, self.c) == 0:
                self._step(1, t)
            else:
                self._suspect = boundary
        if odd:
            self._doubt_c = self.c
        self._judged_c = self.c
        self._refit()
        return odd, lost

    @property
    def doubting(self) -> bool:
        """The last edge is suspect and no other has come since."""
        return self._suspect is not None

    def is_fast(self, t: int) -> bool:
        """Too fast, up to now, to reverse inside one count."""
        return t - self._step_ns(4) < 4 * self._fast_ns and t - self.last_ns < self._fast_ns

    def came_fast(self, t: int) -> bool:
        """It was too fast to stand still now."""
        return max(t - self.last_ns, self.last_ns - self._step_ns(5)) < 4 * self._fast_ns

    def keeps_up(self, edges: int, span_ns: int) -> bool:
        """So many edges in this time are not the trembling of something that was stopped."""
        return span_ns < 4 * edges * self._fast_ns

    def broke_off(self, slowest_ns: int) -> bool:
        """The steps ended without slowing down: the last cycle took less than `slowest_ns`, hardly more than its last.

        A thing that is braked to rest over as little as two cycles needs at least 1.6 times as long for the second.
        """
        end, middle, start = self.last_ns, self._step_ns(5), self._step_ns(9)
        return start != NEVER and end - middle < slowest_ns and 10 * (end - middle) < 13 * (middle - start)

    def hole(self, line: int, missing: int, t: int) -> None:
        """The kernel dropped `missing` edges of A (0) or B (1) before `t`: the sense tells where the next must stand.

        When the queue ran over, both lines have a hole; the second is measured from the count before the first.
        """
        direction = self.direction
        self._suspect = self._other = None
        if not self._known or not direction or self.last_ns - self._step_ns(4) >= 4 * self._fast_ns:
            self._known, self._first = False, None
            self._refit()
            return
        before = self._hole_from if abs(self.c - self._hole_to) <= 1 else self.c
        if direction > 0:
            last = before - 1 - ((before - 1 - self._rotation - line) & 1)
            skipped = last + 2 * (missing + 1) - self.c
        else:
            last = before + ((before - self._rotation - line) & 1)
            skipped = self.c - 1 - (last - 2 * (missing + 1))
        self._hole_from = self.c
        if skipped > 0:  # they came at an even pace, so that a thing that was fast still is
            self.c += direction * skipped
            pace = max(0, t - self.last_ns) // (skipped + 1)
            for ago in range(1, 17):
                self.ring[(self.c - ago * direction) & 15] = t - min(ago, skipped + 1) * pace
            self.last_ns = t - pace
        self._hole_to = self.c
        self._refit()

    def forget(self) -> None:
        """The lines were not watched: the phase is unknown."""
        self._known, self._first, self._suspect, self._other = False, None, None, None
        self.direction = 0
        self.ring[:] = [NEVER] * 16
        self.last_ns = NEVER
        self._refit()

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"ring": list(self.ring), "late": list(self._late)} | {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for name in _STATE:
            setattr(self, name, state[name])
        self.ring[:], self._late[:] = state["ring"], state["late"]

    def _step_ns(self, ago: int) -> int:
        """Time of the step so many steps ago; 1 = the last."""
        return self.ring[(self.c - ago * self.direction) & 15]

    def _ahead(self, boundary: int, c: int) -> int:
        """How many edges are missing, were this one the next in the present sense at count c (0 = it fits)."""
        ahead = boundary + self._rotation - c
        return (ahead if self.direction > 0 else 1 - ahead) & 3

    def _runs_against(self, boundary: int, t: int) -> bool:
        in_a_row = self.c == self._judged_c and self.is_fast(t)
        if in_a_row and (boundary - self._judged) * self.direction & 3 == 3:
            self._contrary += 1
        else:
            self._contrary, self._contrary_c = 0, self.c
        self._judged = boundary
        return self._contrary >= CONTRARY

    def _judge_fast(self, boundary: int, t: int, *, repeated: bool) -> tuple[int, int]:
        if self._ahead(boundary, self.c) == 0:
            self._step(1, t)
            return 0, 0
        line = (boundary + self._rotation) & 1
        late = self._ahead(boundary ^ 2, self.c) == 0 and abs(self.c - self._doubt_c) >= SURE
        if late and (repeated or abs(self.c - self._late[line]) <= 1):
            self._step(1, t)
            self._late[line] = self.c
            return 0, 0
        if repeated:  # the line fell back to where it was: the return of a pulse whose first edge nobody saw
            return 1, 0
        self._suspect = boundary
        return 0, 0

    def _judge_slow(self, boundary: int, t: int, *, repeated: bool) -> tuple[int, int]:
        other = self._other if self.c == self._other_at else None
        self._other = None
        ahead = self._ahead(boundary, self.c)
        if ahead == 0:
            self._step(1, t)
            return 0, 0
        if ahead == 1 and not repeated:
            self._other = self.c + 2 * self.direction
            self._turn_back(t)
            self._other_at = self.c
            return 0, 0
        if other is not None:
            self.direction = -self.direction
            if self._ahead(boundary, other) == 0:
                self.c = other
                self._step(1, t)
                return 1, 1
            self.direction = -self.direction
        if repeated and self._ahead(boundary ^ 2, self.c) == 0:
            self._step(1, t)
            return 0, 0
        return 1, 1 if repeated else 0

    def _turn_back(self, t: int) -> None:
        self.direction = -self.direction
        self._doubt_c = self.c
        self.ring[:] = [NEVER] * 16
        self._step(1, t)

    def _step(self, counts: int, t: int) -> None:
        """Go so many counts in the present sense, all of them now."""
        for _ in range(counts):
            self.ring[self.c & 15] = t
            self.c += self.direction
        self.last_ns = t

    def _find_phase(self, boundary: int, t: int) -> None:
        """Two edges of different lines tell the sense; the first of them is counted then, so that none is lost."""
        first, self._first = self._first, boundary
        if first is None or (boundary - first) & 1 == 0:
            return
        self._known, self._first = True, None
        self.ring[:] = [NEVER] * 16
        if (boundary - first) & 3 == 1:
            self.direction, self._rotation = 1, (self.c + 1 - boundary) & 3
        else:
            self.direction, self._rotation = -1, (self.c - boundary) & 3
        self._step(2, t)
        self._refit()

    def _refit(self) -> None:
        if not self._known or self._suspect is not None:
            self.fit = CALLS
        else:
            self.fit = ((0 if self.direction > 0 else 1) - self._rotation) & 3
