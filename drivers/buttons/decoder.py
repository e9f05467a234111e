"""A contact that bounces: its first edge gives the time, its settling confirms that it was meant.

    open ──edge──► settling ──quiet for settle_ms──► closed: told with the time of the FIRST edge of the burst
                      └── quiet, but open again: a pulse, counted and not told

The level after the quiet decides, never a count of edges, so a lost edge cannot latch the contact (field case 55).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from drivers.base import Edge, Snapshot
from rules.facts import Announced, DeviceBack, DeviceLost, Doubtful, Fact, LidClosed, LidOpened

MS: Final = 1_000_000
PREFIX: Final = "button."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a contact behaves and what it means."""

    kind: Literal["button", "lid"] = "button"
    """`lid`: closed contact = LidClosed, open = LidOpened; `button`: a press = Announced."""
    settle_ms: int = 20
    """Quiet for so long, the contact rests."""
    stuck_s: int = 30
    """A button pressed for longer is told as doubtful."""

    def __post_init__(self) -> None:
        if self.kind not in ("button", "lid"):
            raise ValueError(f"kind = {self.kind!r}: allowed is button or lid")
        if not 1 <= self.settle_ms <= 500:
            raise ValueError(f"settle_ms = {self.settle_ms!r}: allowed is 1 to 500")
        if not 1 <= self.stuck_s <= 3600:
            raise ValueError(f"stuck_s = {self.stuck_s!r}: allowed is 1 to 3600")


class Contact:
    """One line; role `button.<code>` or that of a lid. Pure."""

    def __init__(self, role: str, options: Options) -> None:
        self._role = role
        self._options = options
        self._settled = 0
        """Level after the last quiet."""
        self._level = 0
        self._since_ns: int | None = None
        """First edge of the burst that is settling."""
        self._last_ns = 0
        self._stuck_at_ns: int | None = None
        self._seq = 0
        self._opened_ns = -1
        self._lost = ""
        self._last_fact_ns: int | None = None
        self._counts = {"edges": 0, "presses": 0, "pulses": 0, "gaps": 0}

    def feed(self, edges: Sequence[Edge]) -> list[Fact]:
        """Level changes of this contact, in order of their time."""
        facts: list[Fact] = []
        for edge in edges:
            facts += self.tick(edge.at_ns)
            self._counts["edges"] += 1
            if edge.seq:
                self._counts["gaps"] += max(0, edge.seq - self._seq - 1) if self._seq else 0
                self._seq = edge.seq
            self._level = edge.level
            self._last_ns = edge.at_ns
            if self._since_ns is None:
                self._since_ns = edge.at_ns
        return facts

    def due_ns(self) -> int | None:
        """The end of the quiet, or the moment at which a held button is stuck."""
        if self._since_ns is not None:
            return self._last_ns + self._options.settle_ms * MS
        return self._stuck_at_ns

    def tick(self, now_ns: int) -> list[Fact]:
        """What has settled, or is stuck, by now."""
        facts: list[Fact] = []
        while (due := self.due_ns()) is not None and due <= now_ns:
            facts += self._settle() if self._since_ns is not None else self._stuck(due)
        if facts:
            self._last_fact_ns = facts[-1].at_ns
        return facts

    def _settle(self) -> list[Fact]:
        at_ns, self._since_ns = self._since_ns, None
        assert at_ns is not None
        if self._level == self._settled:
            self._counts["pulses"] += 1
            return []
        self._settled = self._level
        if self._options.kind == "lid":
            kind = LidClosed if self._settled else LidOpened
            return [kind(at_ns=at_ns, source=self._role)]
        self._stuck_at_ns = at_ns + self._options.stuck_s * 1000 * MS if self._settled else None
        if not self._settled or at_ns == self._opened_ns:
            return []
        self._counts["presses"] += 1
        return [Announced(at_ns=at_ns, source=self._role, code=self._role.removeprefix(PREFIX))]

    def _stuck(self, at_ns: int) -> list[Fact]:
        self._stuck_at_ns = None
        return [Doubtful(at_ns=at_ns, source=self._role, device=self._role, why="stuck")]

    def opened(self, at_ns: int) -> list[Fact]:
        """The chip is open (again): the contact is taken to be open until an edge tells otherwise.

        An edge at this very instant is not one, but how the contact was found: a button held down was not pressed now.
        """
        self._seq = 0
        self._opened_ns = at_ns
        if not self._lost:
            return []
        self._lost = ""
        return [DeviceBack(at_ns=at_ns, source=self._role, device=self._role)]

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The chip is gone: what was settling is dropped."""
        self._since_ns = self._stuck_at_ns = None
        self._level = self._settled = 0
        if self._lost:
            return []
        self._lost = why
        return [DeviceLost(at_ns=at_ns, source=self._role, device=self._role, why=why)]

    def snapshot(self) -> Snapshot:
        """JSON-able state."""
        return {name: getattr(self, name) for name in _STATE} | {"_counts": dict(self._counts)}

    def restore(self, state: Snapshot) -> None:
        """Continue from a snapshot."""
        for name in _STATE:
            setattr(self, name, state[name])
        self._counts = dict(state["_counts"])

    def health(self) -> dict[str, int | str | None]:
        """Counters of the contact."""
        return {**self._counts, "lost": self._lost or None, "last_fact_ns": self._last_fact_ns}

    def sample(self) -> dict[str, Any]:
        """The level now, and what it was when it last rested."""
        return {"level": self._level, "settled": self._settled, **self._counts}


_STATE: Final = (
    "_settled",
    "_level",
    "_since_ns",
    "_last_ns",
    "_stuck_at_ns",
    "_seq",
    "_opened_ns",
    "_lost",
    "_last_fact_ns",
)
