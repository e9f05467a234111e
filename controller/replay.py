"""The very pipeline without I/O: a trace goes through decoders and law in virtual time and gives its decisions.

A trace is JSON lines: a header, then one input a line (design, "two formats"). Two clocks:

- *virtual* (every trace but a flight record): before each input everything that is due up to its `at_ns` happens in
  order of due time, decoders before rule timers at the same instant; after the last line what is still due is drained.
- *recorded* (`"clock":"recorded"`, flight records): nothing happens by itself; the ticks of decoders and the elapsed
  timers are lines of the trace, where they happened.

The same trace gives the same bytes. Lines are read one by one: a trace may be larger than memory. Lines with `out`
(expected decisions that a scenario carries beside its inputs) are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from controller.codec import CodecError, decode_fact, decode_state, encode_decision
from controller.config import Config, Device
from controller.config_file import load_for_replay
from controller.errors import UsageError
from controller.timers import TIMER, due
from drivers.base import Edge, fed
from rules.decisions import Decision
from rules.facts import FACTS, DeviceLost, Fact, TimerElapsed
from rules.seance import CLOSED
from rules.state import TableState
from rules.table import Table

DRAIN_NS: Final = 24 * 3600 * 10**9
"""What is due later than this after the last line is not waited for."""
INSTANT_MAX: Final = 2**61
"""Nanoseconds of CLOCK_MONOTONIC that a trace may hold: 73 years since the boot."""
FIRES_MAX: Final = 100_000
"""More than this between two lines is a decoder or law that never comes to rest: an error, not a hang."""

_RAW: Final[Mapping[str, tuple[str, ...]]] = {
    "Edge": ("level",),
    "Bytes": ("hex",),
    "Tick": (),
    "Opened": (),
    "Lost": ("why",),
}
"""Raw inputs and their fields beside `in`, `source` and `at_ns`."""
_MAY: Final[Mapping[str, str]] = {"Edge": "seq", "Bytes": "unread_ns"}
"""What they may carry: the kernel's number of an edge; how long bytes may have waited unread."""


class ReplayError(UsageError):
    """A trace is not of the format: line, field and what is wrong with it."""


class Out(NamedTuple):
    """A decision and the line (header = 1) after which it was taken."""

    after: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Role:
    device: Device
    decoder: Any


class Pipeline:
    """Decoders and law of one table, stepped by hand."""

    def __init__(self, config: Config, state: TableState | None = None) -> None:
        self.state = TableState() if state is None else state
        self._table = Table(config.game, config.house)
        self._roles = {
            role: _Role(device, device.family.decoder(role, device.options)) for role, device in config.devices.items()
        }
        self._lines = {line: role for role, device in config.devices.items() for line in device.lines}

    def restore(self, drivers: Mapping[str, Any]) -> None:
        """Thaw the decoders of these roles; raises ReplayError."""
        for role, snapshot in drivers.items():
            entry = self.role(role, "drivers")
            try:
                entry.decoder.restore(snapshot)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                what = f"is no snapshot of a device of family {entry.device.family.name}"
                raise ReplayError(f"drivers.{role}: {what}: {error!r}") from error

    def snapshots(self) -> dict[str, Any]:
        """Every decoder frozen, by role."""
        return {role: entry.decoder.snapshot() for role, entry in self._roles.items()}

    def role(self, name: object, field: str = "source") -> _Role:
        """The device with this role; raises ReplayError."""
        if isinstance(name, str) and name in self._roles:
            return self._roles[name]
        raise ReplayError(f"{field}: no device {name!r}; the config has: {', '.join(self._roles)}")

    def step(self, facts: Iterable[Fact]) -> Iterator[Decision]:
        """The law's answer to these facts."""
        for fact in facts:
            self.state, decisions = self._table.step(self.state, fact)
            yield from decisions

    def raw(self, line: Mapping[str, Any]) -> list[Fact]:
        """What the decoder makes of a raw input line."""
        kind, source, at_ns = line["in"], line.get("source"), line.get("at_ns")
        _check_fields(line, kind)
        assert isinstance(at_ns, int)
        if kind == "Edge":
            return self._edge(line, source, at_ns)
        entry = self.role(source)
        facts: list[Fact]
        if kind == "Bytes":
            if entry.device.family.kind != "bytes":
                raise ReplayError(f"source: {source!r} is a device of lines, it takes Edge")
            facts = fed(entry.decoder, _hex(line["hex"]), at_ns, line.get("unread_ns", 0))
            entry.decoder.take_output()  # what the device would be told has nowhere to go here
        elif kind == "Tick":
            facts = entry.decoder.tick(at_ns)
        elif kind == "Opened":
            facts = entry.decoder.opened(at_ns)
        else:
            facts = entry.decoder.lost(at_ns, line["why"])
        return facts

    def _edge(self, line: Mapping[str, Any], source: object, at_ns: int) -> list[Fact]:
        if not isinstance(source, str) or source not in self._lines:
            raise ReplayError(f"source: no line {source!r}; the config has: {', '.join(self._lines)}")
        edge = Edge(source, line["level"], at_ns, line.get("seq", 0))
        facts: list[Fact] = self._roles[self._lines[source]].decoder.feed([edge])
        return facts

    def fire(self, until_ns: int, *, at_the_end: bool = False) -> Iterator[Decision]:
        """Everything that is due up to `until_ns`, in order of due time, decoders before timers.

        `at_the_end`: the trace is over, and that is no silence of a device.
        """
        for _ in range(FIRES_MAX):
            due = [(at, n, role) for n, role in enumerate(self._roles) if (at := self._due(role)) is not None]
            at_ns, _, role = min(due, default=(until_ns + 1, 0, ""))
            timer = min(self.state.timers, key=lambda armed: armed.at_ns, default=None)
            if role and at_ns <= until_ns and (timer is None or at_ns <= timer.at_ns):
                facts = self._roles[role].decoder.tick(at_ns)
                yield from self.step(f for f in facts if not (at_the_end and isinstance(f, DeviceLost)))
            elif timer is not None and timer.at_ns <= until_ns:
                yield from self.elapse(timer.name, timer.at_ns)
            else:
                return
        raise ReplayError(f"more than {FIRES_MAX} timers before {until_ns} ns: this never comes to rest")

    def elapse(self, name: str, at_ns: int) -> Iterator[Decision]:
        """A rule timer is due."""
        return self.step([TimerElapsed(name=name, at_ns=at_ns, source=TIMER)])

    def _due(self, role: str) -> int | None:
        due: int | None = self._roles[role].decoder.due_ns()
        return due


def replay(trace: Path, config: Path | None = None) -> Iterator[Out]:
    """Every decision of a trace in order; raises ReplayError with file and line, ConfigError for its configuration."""
    with trace.open("rb") as file:
        lines = enumerate(file, 1)
        number = 1
        try:
            header = _header(next(lines, (1, b""))[1])
            pipeline = _pipeline(header, config, f"{trace}:1")
            recorded = header.get("clock") == "recorded"
            last_ns: int | None = None
            for number, raw in lines:
                line = _object(raw)
                if line is None or "out" in line:
                    continue
                fact, at_ns = _fact(line)
                if not recorded and at_ns is not None:
                    yield from (Out(number - 1, decision) for decision in pipeline.fire(at_ns))
                    last_ns = at_ns if last_ns is None else max(last_ns, at_ns)
                if recorded and isinstance(fact, TimerElapsed) and not due(pipeline.state, fact):
                    continue  # it was re-armed while this elapsing waited in the inbox: the live run passed over it too
                facts = [fact] if fact is not None else pipeline.raw(line)
                yield from (Out(number, decision) for decision in pipeline.step(facts))
            if not recorded and last_ns is not None:
                yield from (Out(number, decision) for decision in pipeline.fire(last_ns + DRAIN_NS, at_the_end=True))
        except (ReplayError, CodecError) as error:
            raise ReplayError(f"{trace}:{number}: {error}") from error


def write(outs: Iterable[Out]) -> Iterator[str]:
    """Each decision as a line of JSON, without the line feed."""
    for out in outs:
        yield json.dumps(encode_decision(out.decision, out.after), ensure_ascii=False, separators=(",", ":"))


def _pipeline(header: Mapping[str, Any], path: Path | None, where: str) -> Pipeline:
    config = load_for_replay(header, path, where)
    state = decode_state(header["state"], config.game) if header.get("state") is not None else None
    if state is not None and state.phase not in CLOSED and (state.coup is None or state.limits is None):
        raise ReplayError(f"state: phase {state.phase} needs coup and limits; only a closed table has none")
    pipeline = Pipeline(config, state)
    drivers = header.get("drivers", {})
    if not isinstance(drivers, dict):
        raise ReplayError("drivers: must be an object of decoder snapshots by role")
    pipeline.restore(drivers)
    return pipeline


def _header(raw: bytes) -> dict[str, Any]:
    header = _object(raw)
    if header is None or header.get("v") != 1:
        raise ReplayError('v: the first line must be a header {"v":1,"game":...,"config":...}')
    if header.get("clock", "virtual") not in ("virtual", "recorded"):
        raise ReplayError(f"clock: {header['clock']!r} is not one of: virtual, recorded")
    return header


def _object(raw: bytes) -> dict[str, Any] | None:
    """The object of a line, None for a blank one."""
    if not raw.strip():
        return None
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ReplayError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ReplayError(f"must be a JSON object, not {type(value).__name__}")
    return value


def _fact(line: Mapping[str, Any]) -> tuple[Fact | None, int | None]:
    """The fact of a line (None for a raw input) and its instant."""
    kind = line.get("in")
    if not isinstance(kind, str) or (kind not in _RAW and kind not in FACTS):
        raise ReplayError(f"in: no input {kind!r}; there are: {', '.join([*_RAW, *FACTS])}")
    for field in ("at_ns", "until_ns") if kind not in _RAW else ("at_ns",):
        instant = line.get(field, 0 if field == "until_ns" else None)
        if isinstance(instant, bool) or not isinstance(instant, int) or not 0 <= instant <= INSTANT_MAX:
            allowed = f"must be a whole number of nanoseconds from 0 to {INSTANT_MAX}"
            raise ReplayError(f"{field}: {allowed}, not {instant!r}")
    if kind in _RAW:
        return None, line["at_ns"]
    try:
        fact = decode_fact(line)
    except CodecError as error:
        words = get_type_hints(FACTS[kind]).get(error.where)
        if isinstance(words, type) and issubclass(words, StrEnum):
            raise ReplayError(f"{error.where}: {error.what}; allowed: {', '.join(words)}") from error
        raise
    return fact, fact.at_ns


def _check_fields(line: Mapping[str, Any], kind: str) -> None:
    number = _MAY.get(kind)
    allowed = {"in", "source", "at_ns", *_RAW[kind], *([number] if number else [])}
    for key in line:
        if key not in allowed:
            raise ReplayError(f"{key}: unknown field of {kind}; it has: {', '.join(sorted(allowed))}")
    for key in _RAW[kind]:
        if key not in line:
            raise ReplayError(f"{key}: missing in {kind}")
    if kind == "Edge" and (line["level"] not in (0, 1) or isinstance(line["level"], bool)):
        raise ReplayError(f"level: must be 0 or 1, not {line['level']!r}")
    value = line.get(number, 0) if number else 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INSTANT_MAX:
        raise ReplayError(f"{number}: must be a whole number from 0 to {INSTANT_MAX}, not {value!r}")
    if kind == "Lost" and not isinstance(line["why"], str):
        raise ReplayError(f"why: must be a text, not {line['why']!r}")


def _hex(text: object) -> bytes:
    try:
        if not isinstance(text, str):
            raise ValueError
        return bytes.fromhex(text)
    except ValueError as error:
        raise ReplayError(f"hex: must be hexadecimal digits in pairs, not {text!r}") from error
