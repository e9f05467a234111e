"""Level changes of light barriers made into pulses: what interrupts a beam for a while, in one piece.

A pulse is certain when its line has been quiet for `merge_ns`: a rattling ball or a seam splits it, and the parts are
one. What is shorter than `shortest_ns` is electrical. A line that stays interrupted makes no pulse.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from drivers.base import Edge

_LISTS: Final = ("_up", "_rise", "_fall", "_seqs")
_OVERRUN_EVERY_NS: Final = 1_000_000_000
_NEVER: Final = -(1 << 62)


class Pulse(NamedTuple):
    """One interruption of one line."""

    line: int
    at_ns: int
    """Its middle."""
    width_ns: int
    certain_ns: int
    """From here on no later edge can change it."""


class Pulses:
    """The lines of one device, by name; pure."""

    __slots__ = (*_LISTS, "_lines", "_lost_ns", "_merge_ns", "_shortest_ns", "_told_ns", "_untold", "counters")

    def __init__(self, names: tuple[str, ...], *, merge_ns: int, shortest_ns: int) -> None:
        self._lines = {name: n for n, name in enumerate(names)}
        self._merge_ns, self._shortest_ns = merge_ns, shortest_ns
        self._up: list[bool] = [False] * len(names)
        self._rise: list[int | None] = [None] * len(names)
        """Where the present pulse began; None: there is none, or nobody saw it begin."""
        self._fall: list[int] = [0] * len(names)
        self._seqs: list[int] = [0] * len(names)
        self._untold, self._lost_ns, self._told_ns = 0, _NEVER, _NEVER
        self.counters = {"edges": 0, "pulses": 0, "split": 0, "glitches": 0, "halves": 0, "holes": 0, "foreign": 0}

    def edge(self, edge: Edge) -> None:
        """One level change; `take` what was certain before it first."""
        counters = self.counters
        counters["edges"] += 1
        n = self._lines.get(edge.line)
        if n is None:
            counters["foreign"] += 1
            return
        lost = 0
        if edge.seq:
            lost = max(0, edge.seq - self._seqs[n] - 1) if self._seqs[n] else 0
            self._seqs[n] = edge.seq
            if lost:
                counters["holes"] += lost
                self._untold, self._lost_ns = self._untold + lost, edge.at_ns
                self._rise[n] = None
        level = bool(edge.level)
        if level == self._up[n] and not lost:  # the opposite edge is missing
            counters["halves"] += 1
            self._rise[n] = edge.at_ns if level else None
        elif level:
            if self._rise[n] is None:
                self._rise[n] = edge.at_ns
            else:
                counters["split"] += 1
        self._up[n] = level
        self._fall[n] = edge.at_ns

    def overrun_ns(self) -> int | None:
        """When the edges that are known to be lost must be told: at once, then their sum once a second."""
        return max(self._lost_ns, self._told_ns + _OVERRUN_EVERY_NS) if self._untold else None

    def overrun(self, now_ns: int) -> int:
        """How many that are; they are told now."""
        lost, self._untold, self._told_ns = self._untold, 0, now_ns
        return lost

    def due_ns(self) -> int | None:
        """When the next pulse is certain."""
        due = None
        for n, fall in enumerate(self._fall):
            if self._rise[n] is not None and not self._up[n] and (due is None or fall + self._merge_ns < due):
                due = fall + self._merge_ns
        return due

    def take(self, now_ns: int) -> list[Pulse]:
        """Pulses that are certain by now, in the order in which they became so."""
        found = []
        for n, rise in enumerate(self._rise):
            certain = self._fall[n] + self._merge_ns
            if rise is None or self._up[n] or certain > now_ns:
                continue
            self._rise[n] = None
            width = self._fall[n] - rise
            if width < self._shortest_ns:
                self.counters["glitches"] += 1
            else:
                self.counters["pulses"] += 1
                found.append(Pulse(n, rise + width // 2, width, certain))
        return sorted(found, key=lambda pulse: pulse.certain_ns)

    def up_since_ns(self) -> list[int | None]:
        """Per line: since when it is interrupted without a break."""
        return [since if up else None for up, since in zip(self._up, self._fall, strict=True)]

    def forget(self) -> None:
        """The lines were not watched: half pulses are dropped, numbers and levels unknown."""
        count = len(self._seqs)
        self._up[:], self._rise[:], self._seqs[:] = [False] * count, [None] * count, [0] * count

    def snapshot(self) -> dict[str, Any]:
        """JSON-able state."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return {**lists, "counters": dict(self.counters), "overrun": [self._untold, self._lost_ns, self._told_ns]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for name in _LISTS:
            setattr(self, name, list(state[name]))
        self.counters.update(state["counters"])
        self._untold, self._lost_ns, self._told_ns = state["overrun"]
