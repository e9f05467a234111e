"""Where the ball lies: the one cup that has been occupied for long enough, without a break that matters, and alone.

    empty ──edge──► occupied ──`occupied_ms`, no other cup meanwhile──► PocketRead(cell), once
      ▲                │ ▲ break of at most `gap_ms`
      └── longer ──────┘ (it called there: the others wait anew)

A ball that called at no other cup was not seen to come: that may as well be a sensor that sticks, so it is told as
`recovered`, and another source must agree. A cup that was occupied when the port opened tells nothing until it has been
empty. Two cups at once, and a ball that called at cups and then lies in none, are a doubt. A cup that stays occupied
while the ball calls at others and settles elsewhere is stuck: told once, and left out until it has been empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from drivers.base import Edge, Snapshot
from rules.facts import DeviceBack, DeviceLost, Doubtful, Fact, PocketRead

MS: Final = 1_000_000
_PULSE_NS: Final = 5 * MS
"""Nothing that rolls is over a cup for so short a time: a pulse, which disturbs nobody."""
_THROWN_NS: Final = 3_000 * MS
"""A ball that is back in its cup so soon, and called nowhere else, was not thrown."""
_ROLLS_NS: Final = 10_000 * MS
"""A ball that has called at no cup for so long before the one where it lies was not seen to come there."""
_NONE_NS: Final = 5_000 * MS
"""The ball has called at a cup and for so long is in none."""
_RECENT: Final = 20
"""Edges kept for `sample`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How many cups there are, and when one of them has the ball."""

    cells: int = 18
    occupied_ms: int = 1500
    """Below a second a ball that rocks on a lip is read too early (physics README section 3).

    For a third of this time without any break it must have lain there.
    """
    gap_ms: int = 60
    """The ball rocks in its cup: a break of at most so long is none."""

    def __post_init__(self) -> None:
        if not 3 <= self.cells <= 64:
            raise ValueError(f"cells = {self.cells!r}: allowed is 3 to 64")
        if not 500 <= self.occupied_ms <= 10_000:
            raise ValueError(f"occupied_ms = {self.occupied_ms!r}: allowed is 500 to 10000")
        if not 0 <= self.gap_ms <= 250:
            raise ValueError(f"gap_ms = {self.gap_ms!r}: allowed is 0 to 250")


class Cups:
    """`EdgeDecoder`; the lines are `<role>.0`, `<role>.1`, ...; 1 = something lies in the cup. Pure."""

    def __init__(self, role: str, options: Options) -> None:
        self._role = role
        self._occupied_ns, self._gap_ns = options.occupied_ms * MS, options.gap_ms * MS
        self._calm_ns = self._occupied_ns // 3
        self._cells = options.cells
        self._cell_of = {f"{role}.{cell}": cell for cell in range(options.cells)}
        self._since: dict[int, int] = {}
        """Occupied cups, and since when."""
        self._left: dict[int, int] = {}
        """Of these, those that are empty just now: since when."""
        self._rocked_ns = 0
        """When a ball that rocks was last back in its cup."""
        self._called: dict[int, int] = {}
        """When the ball last left a cup."""
        self._found: set[int] = set()
        """Occupied when the port opened, and ever since."""
        self._edge_ns = 0
        self._stuck: set[int] = set()
        self._read: int | None = None
        """The cup that was told, while the ball still lies there."""
        self._rest: tuple[int, int, bool] | None = None
        """Which cup the ball has left, when, and whether it had been told there (or only found)."""
        self._alone_ns = 0
        """Since when no other cup has disturbed."""
        self._two_told = self._none_told = False
        self._seq: dict[int, int] = {}
        self._opened_ns = -1
        self._why = self._port_why = ""
        """Why the device is lost: by its lines, by its port."""
        self._fact_ns: int | None = None
        self._counts = {"edges": 0, "calls": 0, "readings": 0, "pulses": 0, "gaps": 0, "doubts": 0, "losses": 0}
        self._recent: deque[str] = deque(maxlen=_RECENT)

    # --- EdgeDecoder ---

    def feed(self, edges: Sequence[Edge]) -> list[Fact]:
        """Level changes, in order of their time; never raises."""
        facts: list[Fact] = []
        for edge in edges:
            facts += self.tick(edge.at_ns)
            self._counts["edges"] += 1
            cell = self._cell_of.get(edge.line)
            if cell is None:
                continue
            self._edge_ns = edge.at_ns
            self._recent.append(f"{edge.at_ns // MS} ms: {cell} {'occupied' if edge.level else 'empty'}")
            missing = self._missing(cell, edge.seq)
            if edge.level:
                self._occupied(cell, edge.at_ns, anew=missing)
            elif cell in self._since:
                self._left.setdefault(cell, edge.at_ns)
                if missing:
                    self._since[cell] = edge.at_ns
            self._watch_the_cable(edge.at_ns, facts)
            facts += self.tick(edge.at_ns)
        return self._told(facts)

    def due_ns(self) -> int | None:
        """When `tick` has something to do next."""
        dues = [left + self._gap_ns + 1 for left in self._left.values()]
        if self._why:
            return min(dues, default=None)
        return min([*dues, *(due for due, _ in self._pending())], default=None)

    def tick(self, now_ns: int) -> list[Fact]:
        """What is certain by now."""
        facts: list[Fact] = []
        while (due := self.due_ns()) is not None and due <= now_ns:
            gone = [cell for cell, left in self._left.items() if left + self._gap_ns + 1 == due]
            if gone:
                for cell in gone:
                    self._emptied(cell, due, facts)
            else:
                tell = next(tell for at, tell in self._pending() if at == due)
                tell(due, facts)
        return self._told(facts)

    def opened(self, at_ns: int) -> list[Fact]:
        """The port is open: cups are taken to be empty until edges tell; an edge of this instant finds one occupied."""
        self._forget()
        self._opened_ns = at_ns
        if not self._port_why:
            return []
        self._port_why = ""
        return [] if self._why else self._told([DeviceBack(at_ns=at_ns, source=self._role, device=self._role)])

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The port is gone."""
        facts = self.tick(at_ns)
        told = self._why or self._port_why
        self._port_why, self._why = why, ""
        self._forget()
        if not told:
            self._lost(at_ns, why, facts)
        return self._told(facts)

    def snapshot(self) -> Snapshot:
        """JSON-able state."""
        state: Snapshot = {name: getattr(self, name) for name in _PLAIN}
        state["_rest"] = list(self._rest) if self._rest else None
        state |= {name: [list(pair) for pair in getattr(self, name).items()] for name in _BY_CELL}
        state |= {name: sorted(getattr(self, name)) for name in _SETS}
        return state | {"_counts": dict(self._counts), "_recent": list(self._recent)}

    def restore(self, state: Snapshot) -> None:
        """Continue from a snapshot."""
        for name in _PLAIN:
            setattr(self, name, state[name])
        self._rest = tuple(state["_rest"]) if state["_rest"] else None
        for name in _BY_CELL:
            setattr(self, name, dict(state[name]))
        for name in _SETS:
            setattr(self, name, set(state[name]))
        self._counts = dict(state["_counts"])
        self._recent = deque(state["_recent"], maxlen=_RECENT)

    def health(self) -> dict[str, int | str | None]:
        """Counters; `cell` is the cup that was read, while the ball lies there."""
        stuck = ", ".join(f"{self._role}.{cell}" for cell in sorted(self._stuck))
        advice = f"Cuvette toujours occupée : vider et nettoyer {stuck}, ou réparer le capteur." if stuck else None
        return {
            **self._counts,
            "cell": self._read,
            "stuck": stuck or None,
            "advice": advice,
            "fault": advice,
            "lost": self._why or self._port_why or None,
            "last_fact_ns": self._fact_ns,
        }

    def sample(self) -> dict[str, Any]:
        """Which cups are occupied now, which were so when the port opened or are stuck, and the last edges."""
        return {
            "occupied": sorted(cell for cell in self._since if cell not in self._left),
            "found": sorted(self._found),
            "stuck": sorted(self._stuck),
            "cell": self._read,
            "edges": list(self._recent),
        }

    # --- steps ---

    def _missing(self, cell: int, seq: int) -> bool:
        """Are edges of this line known to be lost just before this one."""
        before = self._seq.get(cell, 0)
        if not seq:
            return False
        self._seq[cell] = seq
        missing = seq - before - 1 if before else 0
        self._counts["gaps"] += max(missing, 0)
        return missing > 0

    def _occupied(self, cell: int, at_ns: int, *, anew: bool) -> None:
        """Something is in the cup (again)."""
        unbroken = cell in self._since and not anew
        twice = cell in self._since and cell not in self._left  # up again without a down: one was lost
        left = self._left.pop(cell, at_ns)
        if at_ns - left >= _PULSE_NS and left - max(self._since[cell], self._rocked_ns) < self._calm_ns:
            self._rocked_ns = at_ns
        if not unbroken or twice:
            self._since[cell] = at_ns
            if at_ns == self._opened_ns:
                self._found.add(cell)
            if self._rest and self._rest[0] == cell and at_ns - self._rest[1] < _THROWN_NS and not self._called:
                if self._rest[2]:
                    self._read = cell
                else:
                    self._found.add(cell)

    def _emptied(self, cell: int, now_ns: int, facts: list[Fact]) -> None:
        """A cup has been empty for longer than a ball rocks."""
        since, left = self._since.pop(cell), self._left.pop(cell)
        known = cell == self._read or cell in self._found
        self._found.discard(cell)
        self._stuck.discard(cell)
        if self._why:
            if len(self._since) <= 1:
                self._why = ""
                self._found = set(self._since)
                facts.append(DeviceBack(at_ns=now_ns, source=self._role, device=self._role))
            return
        if left - since < _PULSE_NS:
            self._counts["pulses"] += 1
            self._read = None if cell == self._read else self._read
            return
        self._counts["calls"] += 1
        self._alone_ns = max(self._alone_ns, left)
        if len(self._candidates()) < 2:
            self._two_told = False
        self._none_told = False
        if known:  # the ball leaves its rest, by hand or not
            self._rest = (cell, left, cell == self._read)
            self._read = None if cell == self._read else self._read
        if known or left - since >= self._occupied_ns:
            self._called.clear()
        else:
            self._called[cell] = left

    def _candidates(self) -> list[int]:
        """Occupied cups that may have the ball, the one that has been so for longest first."""
        return sorted(self._since.keys() - self._stuck, key=lambda cell: (self._since[cell], cell))

    def _pending(self) -> list[tuple[int, Callable[[int, list[Fact]], None]]]:
        """What is to be told at which moment, if nothing moves until then."""
        cups = self._candidates()
        pending: list[tuple[int, Callable[[int, list[Fact]], None]]] = []
        if not cups and self._called and not self._none_told:
            pending.append((max(self._called.values()) + _NONE_NS, self._none))
        if self._left.keys() & set(cups):
            return pending  # it may be back in a moment
        if len(cups) == 1 and cups[0] not in self._found and cups[0] != self._read:
            lies_ns = max(self._since[cups[0]], self._alone_ns) + self._occupied_ns
            pending.append((max(lies_ns, self._rocked_ns + self._calm_ns), self._alone))
        if len(cups) > 1 and not self._two_told:
            pending.append((max(self._since[cups[1]], self._alone_ns) + self._occupied_ns, self._two))
        return [(max(at_ns, self._edge_ns), tell) for at_ns, tell in pending]

    def _alone(self, at_ns: int, facts: list[Fact]) -> None:
        """One cup, and no other, for long enough."""
        (cell,) = self._candidates()
        came = any(self._since[cell] - left <= _ROLLS_NS for left in self._called.values())
        self._read = cell
        self._called.clear()
        self._counts["readings"] += 1
        facts.append(PocketRead(at_ns=at_ns, source=self._role, value=None, cell=cell, recovered=not came))

    def _two(self, at_ns: int, facts: list[Fact]) -> None:
        """Two cups for long enough: the older one is stuck where the ball called at two others meanwhile."""
        old, *others = self._candidates()
        calls = sum(left > self._since[old] for cell, left in self._called.items() if cell not in others)
        self._two_told = True
        if len(others) == 1 and calls >= 2:
            self._stuck.add(old)
            self._found.discard(old)
            self._read = None if self._read == old else self._read
            self._doubt(at_ns, "cup_stuck", facts)
        else:
            self._doubt(at_ns, "two_cups", facts)

    def _none(self, at_ns: int, facts: list[Fact]) -> None:
        """The ball called at cups and stayed in none."""
        self._none_told = True
        self._doubt(at_ns, "no_cup", facts)

    def _doubt(self, at_ns: int, why: str, facts: list[Fact]) -> None:
        self._counts["doubts"] += 1
        facts.append(Doubtful(at_ns=at_ns, source=self._role, device=self._role, why=why))

    def _watch_the_cable(self, at_ns: int, facts: list[Fact]) -> None:
        """Every cup occupied at once: no ball does that, but open inputs that are pulled up do."""
        if len(self._since) == self._cells and not self._why:
            self._why = "unplugged"
            self._lost(at_ns, self._why, facts)

    def _lost(self, at_ns: int, why: str, facts: list[Fact]) -> None:
        self._counts["losses"] += 1
        self._read, self._two_told = None, False
        self._called.clear()
        facts.append(DeviceLost(at_ns=at_ns, source=self._role, device=self._role, why=why))

    def _forget(self) -> None:
        """Nobody watches: what lay where is not known."""
        for known in (self._since, self._left, self._called, self._found, self._stuck, self._seq):
            known.clear()
        self._read, self._rest, self._two_told, self._none_told = None, None, False, False
        self._alone_ns = 0

    def _told(self, facts: list[Fact]) -> list[Fact]:
        if facts:
            self._fact_ns = facts[-1].at_ns
        return facts


_PLAIN: Final = (
    "_read",
    "_alone_ns",
    "_two_told",
    "_none_told",
    "_edge_ns",
    "_rocked_ns",
    "_opened_ns",
    "_why",
    "_port_why",
    "_fact_ns",
)
_BY_CELL: Final = ("_since", "_left", "_called", "_seq")
_SETS: Final = ("_found", "_stuck")
