"""What every device family offers: pure decoders from raw input to facts, and the value that describes the family.

A decoder does no I/O and reads no clock. It is fed raw input with its time, is told when time has passed (`tick`), and
can be frozen and thawed (`snapshot`, `restore`), so that live runs, replays and tests are the same code. The port that
owns the file descriptor and its task live in `drivers.ports`, what joins it with a decoder in `drivers.feeder`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from rules.facts import Fact

Snapshot = dict[str, Any]
"""JSON-able state of a decoder."""


class Edge(NamedTuple):
    """One level change of a line, stamped by the kernel."""

    line: str
    """Role of the line: `wheel.a`, `button.rien_ne_va_plus`."""
    level: int
    at_ns: int
    """CLOCK_MONOTONIC."""
    seq: int = 0
    """The kernel's per-line sequence number, from 1; 0 = unknown. A hole means lost edges of this line."""


class Asked(NamedTuple):
    """A technician's command is under way to its device."""

    text: str
    """What was queued."""
    answer_s: float = 0.0
    """How long the device may take to answer; 0 = it does not answer."""


class Answer(NamedTuple):
    """What a device has answered to a technician's command."""

    ok: bool
    text: str
    """As it came, and what to do where it is no good."""


class Decoder(Protocol):
    """Common part of all decoders. Facts made by `tick` carry the instant at which they were due, not `now_ns`.

    `feed` does first what `tick` at the time of each input would do, so that a late tick never changes what is told.
    """

    def due_ns(self) -> int | None:
        """When `tick` has something to say next; None = nothing pending."""
        ...

    def tick(self, now_ns: int) -> list[Fact]:
        """Time has passed: facts due at or before `now_ns`, in order."""
        ...

    def opened(self, at_ns: int) -> list[Fact]:
        """The port is open (again)."""
        ...

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The port is gone: half-read input is dropped, DeviceLost is told once."""
        ...

    def snapshot(self) -> Snapshot:
        """State from which `restore` continues as if nothing had happened (counters included).

        Under `learned` stands what a device keeps over restarts of the daemon, where it learns anything.
        """
        ...

    def restore(self, state: Snapshot) -> None:
        """Continue from a snapshot of the same family and options; from `learned` alone, with no more than that."""
        ...

    def health(self) -> dict[str, int | str | None]:
        """Counters and flags for `health.devices.<role>`: frames, rejects, gaps, illegal, ...

        Always `lost` (why, or None) and `last_fact_ns`; where a family has them, `link` (`good` or `bad`), and in
        French `advice` (what to do now) and `fault` (what stays wrong until a person mends it: an alarm).
        """
        ...

    def sample(self) -> dict[str, Any]:
        """A live sample for `diag/<role>`: speed, position, last frames in hex."""
        ...


class EdgeDecoder(Decoder, Protocol):
    """Decodes level changes of a device's lines.

    One that a technician may ask has `asks` and `orders` (as `ByteDecoder`), `answer(name, args) -> Answer` at once
    (ValueError when there is no such command), and `guide`: how it is put into service, in French.
    """

    def feed(self, edges: Sequence[Edge]) -> list[Fact]:
        """Edges in order of their time; never raises."""
        ...


class ByteDecoder(Decoder, Protocol):
    """Decodes the bytes of a serial line."""

    def feed(self, data: bytes, at_ns: int, unread_ns: int = 0) -> list[Fact]:
        """Any piece of the stream, stamped on arrival; never raises, same facts for any split.

        Where it may have waited `unread_ns` for us, what would have been due meanwhile (a silence) is not.
        """
        ...

    def take_output(self) -> bytes:
        """Bytes to be written to the device now (handshake, acknowledgements, commands); empties the buffer."""
        ...

    asks: frozenset[str]
    """Names of the commands that change nothing at the device: they are allowed while the table plays."""

    orders: frozenset[str]
    """Names of all commands, those of `asks` too."""

    def command(self, name: str, args: Mapping[str, object]) -> Asked:
        """Queue a technician's command for the device (`selftest`, `reset`, ...).

        Raises ValueError when the family has no such command.
        """
        ...

    def take_answer(self) -> Answer | None:
        """What the device has answered to the last command since; None = nothing yet."""
        ...


def fed(decoder: ByteDecoder, data: bytes, at_ns: int, unread_ns: int) -> list[Fact]:
    """Feed bytes that may have waited unread for so long: each of their facts may have happened that much earlier."""
    facts = decoder.feed(data, at_ns, unread_ns)
    return [replace(fact, at_ns=max(fact.at_ns - unread_ns, 0)) for fact in facts] if unread_ns else facts


class Emit(Protocol):
    """Where the tasks put facts; waits while the inbox is full, so that the port is not read meanwhile."""

    async def __call__(self, facts: list[Fact]) -> None:
        """Hand over facts in order."""
        ...


class Tap(Protocol):
    """The flight recorder's ear: told of every raw input just before the decoder is."""

    def edges(self, role: str, edges: Sequence[Edge]) -> None:
        """The decoder of `role` is about to be fed these edges."""
        ...

    def received(self, role: str, data: bytes, at_ns: int) -> int:
        """The decoder of `role` is about to be fed these bytes; for how many ns they may have waited unread."""
        ...

    def ticked(self, role: str, now_ns: int) -> None:
        """The decoder of `role` is about to be ticked."""
        ...

    def opened(self, role: str, at_ns: int) -> None:
        """The port of `role` has been opened."""
        ...

    def lost(self, role: str, at_ns: int, why: str) -> None:
        """The port of `role` has gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A device family: how its config section looks and how its decoder is made."""

    name: str
    kind: Literal["edges", "bytes"]
    options: type[Any]
    """Frozen dataclass of the family's own options; raises ValueError in `__post_init__` on impossible values."""
    lines: tuple[str, ...] = ()
    """Line names of an edge device that the config must give an offset (`a`, `b`, `index`); empty for bytes."""
    numbered: Callable[[Any], int] | None = None
    """options -> how many lines, where they have numbers instead (`cups.0`, `cups.1`): the config lists them."""
    contacts: bool = False
    """Its lines are slow enough to be asked for their level: a lost edge is found (case 55)."""
    reads: Callable[[Any], bool] = lambda options: True
    """options -> does it read the result of a draw? Only then it can be one of `house.sources`."""
    baud: int = 9600
    decoder: Callable[[str, Any], Any]
    """role, options -> EdgeDecoder or ByteDecoder."""


def known_families() -> list[str]:
    """Names of the device families: the packages of this folder but the ports; each exports `FAMILY`."""
    folder = importlib.import_module("drivers").__path__
    return sorted(m.name for m in pkgutil.iter_modules(folder) if m.ispkg and m.name != "ports")


def load(name: str) -> Family:
    """The family of this name; raises LookupError naming what exists."""
    if name not in known_families():
        raise LookupError(f"no device family {name!r}; there are: {', '.join(known_families())}")
    family: Family = importlib.import_module(f"drivers.{name}").FAMILY
    return family
