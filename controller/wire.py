"""The floor contract in types: every message that leaves or enters a table.

The AsyncAPI document is generated from these types (`controller.asyncapi`), and every message seen in the tests is
validated against it. Times are RFC 3339 UTC labels beside `at_ns`; order is `seq`, never time. Amounts are whole cents,
or `"n/d"` where the text leaves a fraction of a cent. Delivery is at least once: consumers keep a set of `id`s, the DUP
flag proves nothing (field case 4). A field that does not apply is left out; null means "not known" or "none".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from rules.decisions import Phase, Severity, Status
from rules.facts import Direction

Time = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$", description="RFC 3339, UTC")]
Ns = Annotated[int, Meta(description="CLOCK_MONOTONIC, nanoseconds")]
Ratio = Annotated[str, Meta(pattern=r"^-?\d+/[1-9]\d*$")]
Amount = int | Ratio
Count = Annotated[int, Meta(ge=0)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]+/\d+(\.\d+)?$", description="<epoch>/<seq>[.<n>], stable on resend")]
Text = Annotated[str, Meta(min_length=1, max_length=64)]
Table = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+/[A-Za-z0-9_-]+$", description="<site>/<table>")]
Account = Annotated[str, Meta(pattern=r"^(player:.+|table|caisse|pot:\d+|cagnotte|jackpot:.+|lots)$")]
Gauge = int | str | bool | None
Proof = Literal["verified", "not_verified", "untested"]


class Message(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Root of all messages: strict in both directions."""


class Stamped(Message, kw_only=True, frozen=True):
    """A message that says when: `at` is a label, to be trusted only when `clock_synchronised`."""

    at: Time
    at_ns: Ns
    clock_synchronised: bool


class Presence(Message, kw_only=True, frozen=True):
    """`status`: birth, will and clean stop have this one shape (field case 35)."""

    state: Literal["online", "offline"]
    boot: str
    """Id of this run of the daemon: an `offline` with another one is about a predecessor (field case 33)."""
    epoch: str
    version: str
    reason: str
    """`started`, `reconnected`, `in_service`, `maintenance`, `epoch_changed`; `stopped`, `connection_lost`."""


class Limits(Message, kw_only=True, frozen=True):
    """Limits in force, cents."""

    minimum: int
    minima: dict[str, int]
    maxima: dict[str, int]


class Attested(Message, kw_only=True, frozen=True):
    """Somebody signed that something was checked."""

    what: str
    role: str
    by: str


class Alarm(Message, kw_only=True, frozen=True):
    """Something that needs a person: it stays until it is both inactive and acked."""

    name: str
    """`device:wheel`, `mqtt:client_id`, ..."""
    code: str
    text: str
    active: bool
    acked: bool
    since: Time
    acked_by: str | UnsetType = UNSET
    acked_at: Time | UnsetType = UNSET


class TableState(Stamped, kw_only=True, frozen=True):
    """`state`: where the table stands after the commit `seq`."""

    table: Table
    game: str
    epoch: str
    seq: Count
    seance: Count
    partie: Count
    coup: Count
    """Number of the running or last coup; 0 before the first."""
    phase: Phase
    step: str
    """The game's own word for where the coup stands; empty when the phase says it all."""
    interrupted: bool
    maintenance: bool
    limits: Limits | None
    options: dict[str, Any]
    """Options that the public is told."""
    paytables: dict[str, str]
    """Edition by paytable."""
    attestations: list[Attested]
    last_direction: Direction | None
    alarms: list[Alarm]
    nonce: str
    """Carried in `args.nonce` by commands while the clock is not synchronised; changes with every accepted command."""


class Reason(Message, kw_only=True, frozen=True):
    """A breach of a coup."""

    code: str
    requirement: str
    severity: Severity
    text: str


class Instant(Message, kw_only=True, frozen=True):
    """An instant of the coup."""

    at: Time
    at_ns: Ns


class ByHand(Message, kw_only=True, frozen=True):
    """Who decided by hand, and why (article 67-15)."""

    by: list[str]
    role: str | UnsetType = UNSET
    why: str


class OfCoup(Stamped, kw_only=True, frozen=True):
    """What is told of a coup, and where in the journal it stands (`controller.results.Place.head`)."""

    id: Id
    epoch: str
    seq: Count
    table: Table
    game: str
    seance: Count
    partie: Count
    coup: Count


class Result(OfCoup, kw_only=True, frozen=True):
    """`result` and `result/last`: a finished coup, or its resolution or revision; `hash` and `sig` prove it.

    `hash` = hex SHA-256 of `prev_hash` + LF + the canonical body without `hash` and `sig`; `sig` = base64 Ed25519 over
    the 32 raw bytes of `hash`; `prev_hash` is that of the result before in this epoch (64 zeros first).
    """

    result_no: Annotated[int, Meta(ge=1, description="from 1 in this epoch, without holes")]
    status: Status
    reasons: list[Reason]
    outcome: dict[str, Any] | None
    """Keys of the settle format, plus `chances`; null when nothing was drawn."""
    direction: Direction | UnsetType | None = UNSET
    travel_counts: int | UnsetType | None = UNSET
    per_turn: int | UnsetType | None = UNSET
    """These three where a thing turns."""
    times: dict[str, Instant]
    sources: dict[str, Any]
    """What each source read."""
    recovered: bool
    manual: ByHand | None
    maintenance: bool | UnsetType = UNSET
    """Present and true for a coup made in maintenance mode: it is no real coup."""
    resolves: Id | UnsetType = UNSET
    revises: Id | UnsetType = UNSET
    prev_hash: Hash
    hash: Hash
    sig: Annotated[str, Meta(pattern=r"^[A-Za-z0-9+/]{86}==$")]


class Event(OfCoup, kw_only=True, frozen=True):
    """`event`: something that happened, told once and never retained (field case 44)."""

    kind: Literal["annonce", "incident", "anomaly", "late_stake", "stake_refused", "alarm", "command"]
    code: str
    text: str
    """French."""
    requirement: str | UnsetType = UNSET
    maintenance: bool | UnsetType = UNSET
    data: dict[str, Any] = {}
    """What the kind adds: the stake, the alarm's state, the command and who gave it."""


class Line(Message, kw_only=True, frozen=True):
    """What one stake becomes; `returned` and `net` are null while pending, `net` excludes the stake."""

    id: str
    player: str
    tableau: Annotated[int, Meta(ge=1)]
    type: str
    on: list[int | str]
    stake: int
    returned: Amount | None
    net: Amount | None
    status: str


class Transfer(Message, kw_only=True, frozen=True, rename={"source": "from", "target": "to"}):
    """Money that changes its owner."""

    source: Account
    target: Account
    cents: Amount
    why: str


class Settlement(OfCoup, kw_only=True, frozen=True):
    """`settlement/<tableau>`: who is paid what after a coup, and in which order."""

    result: Id
    """Id of the result that it settles; a later one of the same coup replaces it."""
    tableau: Annotated[int, Meta(ge=1)]
    lines: list[Line]
    transfers: list[Transfer]
    order: list[list[str]]
    """Groups of winning stake ids, free inside a group."""
    player_order: list[list[str]] | UnsetType = UNSET
    maintenance: bool | UnsetType = UNSET


class Device(Message, kw_only=True, frozen=True):
    """Health of one device."""

    state: Literal["ok", "stale", "lost", "disabled"]
    last_fact_ms: Count | None
    """Age of its last fact; null when there was none since the start."""
    text: str | UnsetType = UNSET
    """Why it is not ok, and what to do."""
    counters: dict[str, Gauge] = {}
    """frames, rejects, illegal, gaps, reopens, ... as the family counts them."""


class Task(Message, kw_only=True, frozen=True):
    """Health of one task."""

    state: Literal["running", "waiting", "ended"]
    beat_ms: Count | None
    """Age of its last progress."""
    restarts: Count


class Look(Message, kw_only=True, frozen=True):
    """The last look at a window of results."""

    spins: Count
    p_ppm: dict[str, Count]
    """Chance that a fair wheel does worse, by test, millionths, corrected for repeated looks."""
    level: Literal["ok", "warning", "alarm"]


class Series(Message, kw_only=True, frozen=True):
    """Results with one sense of rotor and ball."""

    spins: Count
    """Since the counts began."""
    now_ppm: dict[str, Count]
    """All of them as they stand, by test, not corrected: to be read, no alarm. Left out while there are too few."""
    looks: dict[str, Look]
    """By window: `1000`, `5000`, `all`."""


class Statistics(Message, kw_only=True, frozen=True):
    """Is the wheel fair? Never a verdict on a result."""

    wheel: str
    """Its serial number; empty where the configuration gives none."""
    since: Time | None
    """When the counts began; null before the first."""
    level: Literal["ok", "warning", "alarm"]
    series: dict[str, Series]
    """By sense of rotor and ball: `cw/ccw`, `ccw/cw`; `cw`, `ccw` without a ball; `any` where no sense is known."""


class Health(Stamped, kw_only=True, frozen=True):
    """`health`: every 10 s. Objects of gauges hold whole numbers, words and flags."""

    table: Table
    boot: str
    epoch: str
    version: str
    uptime_s: Count
    maintenance: bool
    devices: dict[str, Device]
    tasks: dict[str, Task]
    loop_lag_ms: Count
    """Largest lag of the event loop since the message before."""
    unsent: Count
    """Outbox rows that the broker has not acknowledged."""
    oldest_unsent_ms: Count | None
    last_result: Id | None
    """So that a consumer sees a gap without waiting for the next coup."""
    command_path: Proof
    """Did a message that we sent to ourselves on `cmd/` arrive (field case 31)?"""
    mqtt: dict[str, Gauge]
    journal: dict[str, Gauge]
    disk: dict[str, Gauge]
    clock: dict[str, Gauge]
    cpu: dict[str, Gauge]
    """Temperature and undervoltage where the board tells."""
    statistics: Statistics
    queues: dict[str, dict[str, Gauge]] = {}


class Sample(Stamped, kw_only=True, frozen=True):
    """`diag/<role>`: a live sample of a device, dropped while offline."""

    role: str
    sample: dict[str, Any]
    """speed, edges per second, position, frames in hex, ... as the family tells them."""


class Command(Message, kw_only=True, frozen=True):
    """What is asked; its canonical bytes are signed."""

    id: Text
    name: Text
    table: Table
    issued_at: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$")]
    valid_s: Annotated[int, Meta(ge=1, le=300)]
    operator: Text
    """Name of the person."""
    args: dict[str, Any]


class Envelope(Message, kw_only=True, frozen=True):
    """`cmd/<name>` and the local socket. On the socket `key` and `sig` may be left out: the kernel names the peer."""

    cmd: Command
    key: Annotated[str, Meta(max_length=64)] = ""
    """Name of a key of the configuration."""
    sig: Annotated[str, Meta(max_length=128)] = ""
    """base64 Ed25519 over the canonical bytes of `cmd`."""


class Second(Message, kw_only=True, frozen=True):
    """`args.second`: another named person signs the same `cmd` without `args.second`."""

    operator: Text
    key: Annotated[str, Meta(max_length=64)]
    sig: Annotated[str, Meta(max_length=128)]


Code = Literal[
    "ok", "malformed", "unknown", "stale", "repeated", "retained", "unsigned", "bad_signature", "unauthorised",
    "wrong_table", "rejected", "busy",
]  # fmt: skip


class Reply(Message, kw_only=True, frozen=True):
    """The answer to a command, on the MQTT 5 response topic with its correlation data, else on `reply/<name>`."""

    id: str | None
    """That of the command; null when it could not be read."""
    ok: bool
    code: Code
    text: str
    requirement: str | UnsetType = UNSET
    """What the text of law wants instead, where it is the law that refuses."""
    data: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One row of the contract: an address below `casino/<site>/<table>/`, always with QoS 1."""

    suffix: str
    message: type[Message]
    retained: bool
    sent: bool
    """True: the table publishes it; False: the table receives it."""
    what: str

    def matches(self, suffix: str) -> bool:
        """True when `suffix` is an address of this row."""
        return re.fullmatch(re.sub(r"\{\w+\}", r"[^/+#]+", self.suffix), suffix) is not None


TOPICS: Final = (
    Topic(suffix="status", message=Presence, retained=True, sent=True, what="presence; also the will"),
    Topic(suffix="state", message=TableState, retained=True, sent=True, what="where the table stands"),
    Topic(suffix="result", message=Result, retained=False, sent=True, what="each result, once committed"),
    Topic(suffix="result/last", message=Result, retained=True, sent=True, what="the last result again"),
    Topic(suffix="event", message=Event, retained=False, sent=True, what="announcements, incidents, alarms"),
    Topic(suffix="health", message=Health, retained=True, sent=True, what="the instruments, every 10 s"),
    Topic(suffix="settlement/{tableau}", message=Settlement, retained=False, sent=True, what="who is paid"),
    Topic(suffix="cmd/{name}", message=Envelope, retained=False, sent=False, what="commands, never retained"),
    Topic(suffix="reply/{name}", message=Reply, retained=False, sent=True, what="answers to commands"),
    Topic(suffix="diag/{role}", message=Sample, retained=False, sent=True, what="live samples on request"),
)
"""The whole contract, one row per address."""


def topic(suffix: str) -> Topic:
    """The row of an address below the base; raises LookupError."""
    for row in TOPICS:
        if row.matches(suffix):
            return row
    raise LookupError(f"{suffix!r} is no address of the contract: {', '.join(row.suffix for row in TOPICS)}")


def encode(message: Message) -> bytes:
    """A message as UTF-8 JSON."""
    return msgspec.json.encode(message)
