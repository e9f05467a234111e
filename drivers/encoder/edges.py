"""From kernel edges to quadrature codes: order, holes in the numbering, repeated levels, electrical pulses.

An edge is held back for a while, because only then is it known that its line did not jump back: two opposite edges of
one line within `glitch_us` are dropped together. With no edge of the other line between them, which true motion always
has, they may be further apart: up to a third of the time that the line stood before, and 1.5 ms. Held edges are kept in
the order of their time, so a pair of lines that the kernel queued in the wrong order is put right.

Codes: 0 A up, 1 B up, 2 A down, 3 B down (the four boundaries of a cycle, crossed with A leading); 4 index down,
5 index up; plus `REPEATED` when the line reported the level that it already had (an edge between was lost); or
`HOLE | line | n << 5` in front of an edge of that line (0 A, 1 B, 2 index) when the numbering says that n are missing;
`PULSE` where two edges were dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from drivers.base import Edge

REPEATED: Final = 8
HOLE: Final = 16
PULSE: Final = HOLE | 3
HOLD_NS: Final = 2_000_000
"""After this time no later edge changes anything."""
_PAIR_NS: Final = 1_500_000
NEVER: Final = -(1 << 62)

Coded = tuple[int, int]
"""(code, at_ns)."""


class EdgeFilter:
    """Pure; any split of the edges gives the same codes."""

    __slots__ = (
        "_at_ns",
        "_before_ns",
        "_codes",
        "_gap_ns",
        "_held",
        "_levels",
        "_line",
        "_seqs",
        "counters",
        "latest_ns",
        "released_ns",
        "unseen",
    )

    def __init__(self, role: str, *, swapped: bool, gap_us: int) -> None:
        a, b = ((3, 1), (2, 0)) if swapped else ((2, 0), (3, 1))
        self._codes: dict[str, tuple[int, tuple[int, int]]] = {
            f"{role}.a": (1 if swapped else 0, a),
            f"{role}.b": (0 if swapped else 1, b),
            f"{role}.index": (2, (4, 5)),
        }
        self._gap_ns = gap_us * 1000
        self._held: list[tuple[int, int]] = []
        self._line = -1
        """Line of the newest edge held."""
        self._seqs = [0, 0, 0]
        self._levels = [-1, -1, -1]
        self._at_ns = [NEVER] * 3
        """Per line, time of its newest edge that was not dropped, and of the one before."""
        self._before_ns = [NEVER] * 3
        self.latest_ns = NEVER
        """Time of the newest edge seen."""
        self.released_ns = NEVER
        """Time of the newest code given out."""
        self.counters = {
            "edges": 0,
            "glitches": 0,
            "repeated": 0,
            "holes": 0,
            "restarts": 0,
            "foreign": 0,
            "late_index": 0,
        }
        self.unseen: dict[str, int] = {}
        """`<line> rising` or `falling` -> how often it must have been there and was not reported."""

    def push(self, edges: Sequence[Edge]) -> list[Coded]:
        """Codes that have become certain."""
        out: list[Coded] = []
        codes, seqs, levels, held, gap_ns = self._codes, self._seqs, self._levels, self._held, self._gap_ns
        at, before, counters, latest = self._at_ns, self._before_ns, self.counters, self.latest_ns
        counters["edges"] += len(edges)
        for line, raw_level, at_ns, seq in edges:
            known = codes.get(line)
            if known is None:
                counters["foreign"] += 1
                continue
            n, by_level = known
            level = 1 if raw_level else 0
            code = by_level[level]
            if seq:
                missing = seq - seqs[n] - 1
                if missing and seqs[n]:
                    if missing > 0:
                        counters["holes"] += missing
                        levels[n] = -1
                        self._insert(HOLE | n | missing << 5, at_ns, out)
                    else:
                        counters["restarts"] += 1
                seqs[n] = seq
            if level == levels[n]:
                counters["repeated"] += 1
                code |= REPEATED
                edge = f"{line} {'falling' if level else 'rising'}"
                self.unseen[edge] = self.unseen.get(edge, 0) + 1
            levels[n] = level
            if n == 2 and at_ns < (out[-1][1] if out else self.released_ns) - HOLD_NS:
                counters["late_index"] += 1  # where it was is known no more, and the next one comes
                continue
            if n != self._line and held and held[-1][1] <= at_ns - gap_ns:
                out += held
                held.clear()
                held.append((code, at_ns))
                self._line = n
                before[n] = at[n]
                at[n] = at_ns
            else:
                self._crowd(n, code, at_ns, out)
            if at_ns > latest:
                latest = at_ns
        self.latest_ns = latest
        if out:
            self.released_ns = out[-1][1]
        return out

    def release(self, horizon_ns: int) -> list[Coded]:
        """Codes at or before this instant, which no later edge can undo."""
        n = 0
        for _, at_ns in self._held:
            if at_ns > horizon_ns:
                break
            n += 1
        out, self._held[:] = self._held[:n], self._held[n:]
        if out:
            self.released_ns = out[-1][1]
        return out

    def certain_ns(self, horizon_ns: int) -> int:
        """Everything up to this instant, at most `horizon_ns`, has been given out."""
        return min(horizon_ns, self._held[0][1]) if self._held else horizon_ns

    def index_is_up(self) -> bool:
        """Level of the index line after its newest edge."""
        return self._levels[2] == 1

    def held_ns(self) -> int | None:
        """Time of the oldest edge held back."""
        return self._held[0][1] if self._held else None

    def forget(self) -> None:
        """The lines were not watched: numbering and levels are unknown, held edges are dropped."""
        self._held.clear()
        self._seqs[:] = 0, 0, 0
        self._levels[:] = -1, -1, -1
        self._at_ns[:] = self._before_ns[:] = [NEVER] * 3
        self._line = -1

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "held": [list(coded) for coded in self._held],
            "seqs": list(self._seqs),
            "levels": list(self._levels),
            "line": self._line,
            "at_ns": list(self._at_ns),
            "before_ns": list(self._before_ns),
            "latest_ns": self.latest_ns,
            "released_ns": self.released_ns,
            "counters": dict(self.counters),
            "unseen": dict(self.unseen),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._held[:] = [(code, at_ns) for code, at_ns in state["held"]]
        self._seqs[:] = state["seqs"]
        self._levels[:], self._line = state["levels"], state["line"]
        self._at_ns[:], self._before_ns[:] = state["at_ns"], state["before_ns"]
        self.latest_ns, self.released_ns = state["latest_ns"], state["released_ns"]
        self.counters.update(state["counters"])
        self.unseen = dict(state["unseen"])

    def _crowd(self, n: int, code: int, at_ns: int, out: list[Coded]) -> None:
        """A new edge while others are still held: drop it with its opposite, or release the old and hold it."""
        held = self._held
        pair = self._opposite(n, at_ns) if code < REPEATED else None
        if pair is not None:
            del held[pair]
            self._at_ns[n] = self._before_ns[n]
            self.counters["glitches"] += 1
            self._insert(PULSE, at_ns, out)
            self._line = _line(held[-2][0]) if len(held) > 1 and held[-2][0] < HOLE else -1
            return
        horizon = at_ns - self._gap_ns
        while held and held[0][1] <= horizon:
            out.append(held.pop(0))
        self._insert(code, at_ns, out)
        self._line = n
        self._before_ns[n], self._at_ns[n] = self._at_ns[n], at_ns

    def _opposite(self, n: int, at_ns: int) -> int | None:
        """Where the held edge is that this one of line `n` undoes."""
        adjacent = n < 2
        for i in range(len(self._held) - 1, -1, -1):
            other, other_ns = self._held[i]
            line = 2 if other == PULSE else other & 3 if other >= HOLE else _line(other)
            if line != n:
                adjacent = adjacent and line == 2
                continue
            if other >= REPEATED:
                return None
            least = self._gap_ns
            if adjacent:
                least = max(least, min(_PAIR_NS, (other_ns - self._before_ns[n]) // 3))
            return i if at_ns - other_ns < least else None
        return None

    def _insert(self, code: int, at_ns: int, out: list[Coded]) -> None:
        """Hold it in the order of time, never before what was already given out."""
        held = self._held
        place = len(held)
        while place and held[place - 1][1] > at_ns:
            place -= 1
        floor = out[-1][1] if out else self.released_ns
        held.insert(place, (code, max(at_ns, floor)))


def _line(code: int) -> int:
    """0 A, 1 B, 2 index."""
    return 2 if code & 4 else code & 1
