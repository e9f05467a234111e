"""The flight recorder: the last minutes of raw input in memory, written as a trace that replays.

The ring is a row of *segments*. Each begins with a checkpoint (the state of the law and of every decoder, taken when
no fact was waiting between them) and holds what came in afterwards, packed. When the ring is too old or too large its
oldest segment goes, so that what is left still begins at a checkpoint. A record is the whole ring as a trace with
`"clock":"recorded"`: every tick of a decoder and every elapsed timer is a line, so replay does not have to guess when
they happened. `seq` and `until_seq` of its header say which rows of the journal it replays to.

Only called from the event loop, except `Recording.write`, which is for a thread.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from controller.codec import encode_fact, encode_state
from drivers.base import Edge
from rules.facts import Fact
from rules.state import TableState

SEGMENTS: Final = 8
"""The ring loses an eighth at a time."""
_EDGE: Final = struct.Struct("<qIHB")
_AT: Final = struct.Struct("<q")
_READ: Final = struct.Struct("<qq")

Entry = tuple[str, str, bytes]
"""Kind of input, role, packed body."""


@dataclass(slots=True)
class Segment:
    """Inputs since a checkpoint."""

    seq: int
    """The journal's last row at the checkpoint."""
    at_ns: int
    state: TableState
    drivers: Mapping[str, Any]
    entries: list[Entry] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Recording:
    """A copy of the ring, to be written off the loop."""

    reason: str
    until_seq: int
    """The journal's last row of which this record holds the input."""
    first: Segment
    entries: tuple[Sequence[Entry], ...]
    lines: tuple[str, ...]

    def trace(self, header: Mapping[str, Any]) -> Iterator[str]:
        """The lines of the trace, without line feeds; `header` says what is not of this module (`v`, `game`, ...)."""
        head = {
            **header,
            "clock": "recorded",
            "reason": self.reason,
            "seq": self.first.seq,
            "until_seq": self.until_seq,
            "at_ns": self.first.at_ns,
            "state": encode_state(self.first.state),
            "drivers": dict(self.first.drivers),
        }
        yield json.dumps(head, ensure_ascii=False, separators=(",", ":"))
        for entries in self.entries:
            for kind, role, body in entries:
                for line in _unpack(kind, role, body, self.lines):
                    yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))

    def write(self, path: Path, header: Mapping[str, Any], most_files: int, most_bytes: int) -> Path:
        """Write the record and remove the oldest ones of its folder beyond the bounds; raises OSError."""
        folder = path.parent
        folder.mkdir(mode=0o750, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with unfinished.open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in self.trace(header))
        unfinished.rename(path)
        prune(folder, path, most_files, most_bytes)
        return path


class Flight:
    """The ear of the drivers (`drivers.base.Tap`) and of the sequencer."""

    def __init__(
        self,
        *,
        seconds: int,
        ring_bytes: int,
        lines: Sequence[str],
        mono_ns: Callable[[], int],
        sink: Callable[[Recording], None],
    ) -> None:
        """`lines` are the roles of all lines; `sink` takes a record that was wanted (and writes it off the loop)."""
        self._span_ns = seconds * 10**9
        self._ring_bytes = ring_bytes
        self._mono_ns = mono_ns
        self._lines = tuple(lines)
        self._index = {line: n for n, line in enumerate(self._lines)}
        self._sink = sink
        self._segments: deque[Segment] = deque()
        self._wanted = ""

    # what came in

    def edges(self, role: str, edges: Sequence[Edge]) -> None:
        """The decoder of `role` is about to be fed these edges."""
        index, pack = self._index, _EDGE.pack
        self._add("Edge", role, b"".join([pack(e.at_ns, e.seq, index[e.line], e.level) for e in edges]))

    def received(self, role: str, data: bytes, at_ns: int, unread_ns: int = 0) -> int:
        """The decoder of `role` is about to be fed these bytes, which may have waited for so long."""
        self._add("Bytes", role, _READ.pack(at_ns, unread_ns) + data)
        return unread_ns

    def ticked(self, role: str, now_ns: int) -> None:
        """The decoder of `role` is about to be ticked."""
        self._add("Tick", role, _AT.pack(now_ns))

    def opened(self, role: str, at_ns: int) -> None:
        """The port of `role` has been opened."""
        self._add("Opened", role, _AT.pack(at_ns))

    def lost(self, role: str, at_ns: int, why: str) -> None:
        """The port of `role` has gone."""
        self._add("Lost", role, _AT.pack(at_ns) + why.encode())

    def fact(self, fact: Fact) -> None:
        """A fact that no decoder made: a command, an elapsed timer, the controller's own."""
        self._add("", "", json.dumps(encode_fact(fact), ensure_ascii=False, separators=(",", ":")).encode())

    def _add(self, kind: str, role: str, body: bytes) -> None:
        if self._segments:
            segment = self._segments[-1]
            segment.entries.append((kind, role, body))
            segment.size += len(body) + 96  # the tuple and the bytes object

    # checkpoints and records

    def forget(self) -> None:
        """The state changes without a fact: what came before cannot be replayed into what comes after."""
        self._segments.clear()

    def want(self, reason: str) -> None:
        """A record is due at the next quiet moment."""
        self._wanted = reason

    def quiet(self, seq: int, state: TableState, snapshots: Callable[[], Mapping[str, Any]]) -> None:
        """Every input so far has been stepped: `state` after journal row `seq` and the decoders are of one moment."""
        if self._wanted and self._segments:
            entries = tuple(tuple(segment.entries) for segment in self._segments)
            record = Recording(
                reason=self._wanted, until_seq=seq, first=self._segments[0], entries=entries, lines=self._lines
            )
            self._sink(record)
        self._wanted = ""
        if self._due():
            self._checkpoint(Segment(seq=seq, at_ns=self._mono_ns(), state=state, drivers=snapshots()))

    def _due(self) -> bool:
        if not self._segments:
            return True
        last = self._segments[-1]
        old = self._mono_ns() - last.at_ns > self._span_ns // SEGMENTS
        return last.size > self._ring_bytes // SEGMENTS or (old and bool(last.entries))

    def _checkpoint(self, segment: Segment) -> None:
        self._segments.append(segment)
        while len(self._segments) > 1 and (
            sum(s.size for s in self._segments) > self._ring_bytes
            or self._segments[1].at_ns < segment.at_ns - self._span_ns
        ):
            self._segments.popleft()


def prune(folder: Path, keep: Path, most_files: int, most_bytes: int) -> None:
    """Remove the oldest records beyond the bounds, never `keep`."""
    records = sorted((p for p in folder.glob("*.jsonl") if p != keep), key=lambda p: (p.stat().st_mtime_ns, p.name))
    size = keep.stat().st_size + sum(p.stat().st_size for p in records)
    while records and (len(records) + 1 > most_files or size > most_bytes):
        oldest = records.pop(0)
        size -= oldest.stat().st_size
        oldest.unlink()


def _unpack(kind: str, role: str, body: bytes, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    if kind == "Edge":
        for at_ns, seq, line, level in _EDGE.iter_unpack(body):
            edge = {"in": "Edge", "source": lines[line], "level": level, "at_ns": at_ns}
            yield edge | {"seq": seq} if seq else edge
    elif not kind:
        yield json.loads(body)
    elif kind == "Bytes":
        at_ns, unread_ns = _READ.unpack_from(body)
        line = {"in": kind, "source": role, "at_ns": at_ns, "hex": body[_READ.size :].hex()}
        yield line | {"unread_ns": unread_ns} if unread_ns else line
    else:
        line = {"in": kind, "source": role, "at_ns": _AT.unpack_from(body)[0]}
        yield line | {"why": body[_AT.size :].decode()} if kind == "Lost" else line
