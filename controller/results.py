"""What the floor is told of a step: signed results, settlements and events, as bodies of the floor contract.

Pure: the same decision at the same place of the journal gives the same bytes. The chain of results is that of the
design: `hash` = hex SHA-256 of `prev_hash` LF canonical body without `hash` and `sig`; `sig` over its 32 raw bytes.
A consumer needs only the messages and the public key to check it (`first_fault`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controller.canonical import CanonicalError, canonical, parse
from controller.codec import encode, encode_decision
from controller.journal_file import ZEROS, Result, result_hash
from controller.signing import SigningKey, verify
from rules.decisions import Announce, Breach, CoupEnded, Decision, Settled, Severity, StakeDoubtful, StakeRefused
from rules.facts import Doubtful, Fact, Overrun
from rules.table import NOT_OBSERVED
from rules.words import text

LATE: Final = frozenset({"mise_tardive"})
"""Codes of stakes that are refused for their moment."""
MAINTENANCE: Final = "maintenance/"
COUPS_KNOWN: Final = 64
"""Coups whose last result id is remembered, for resolutions, revisions and settlements."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and when in the journal something is told."""

    table: str
    """`<site>/<table>`."""
    game: str
    epoch: str
    seq: int
    at_ns: int
    clock_synchronised: bool
    label: Callable[[int], str]
    """Wall time (RFC 3339) of a monotonic instant."""
    maintenance: bool = False

    def head(self, number: int | None = None) -> Body:
        """The fields that every message of this row begins with; `number` makes its id unique within the row."""
        return {
            "id": f"{self.epoch}/{self.seq}" + ("" if number is None else f".{number}"),
            "epoch": self.epoch,
            "seq": self.seq,
            "table": self.table,
            "game": self.game,
            "at": self.label(self.at_ns),
            "at_ns": self.at_ns,
            "clock_synchronised": self.clock_synchronised,
        }

    def mark(self) -> Body:
        """The field that says that it was no real coup."""
        return {"maintenance": True} if self.maintenance else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coup:
    """Which coup something is about."""

    seance: int
    partie: int
    coup: int

    def key(self, *, maintenance: bool = False) -> str:
        """`<seance>/<partie>/<coup>`; one of maintenance stands beside the real one of the same number."""
        return f"{MAINTENANCE if maintenance else ''}{self.seance}/{self.partie}/{self.coup}"

    def body(self) -> Body:
        """Its fields in a message."""
        return {"seance": self.seance, "partie": self.partie, "coup": self.coup}


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """What the next result must know of those before; part of the state's snapshot."""

    epoch: str
    result_no: int = 0
    prev_hash: str = ZEROS
    ids: Mapping[str, str] = field(default_factory=dict)
    """Last result id by coup, oldest first."""

    def of_epoch(self, epoch: str) -> Book:
        """The book to go on with: numbers begin anew in a new epoch, ids stay known."""
        return self if epoch == self.epoch else Book(epoch=epoch, ids=self.ids)

    def of_real_coups(self) -> Book:
        """Maintenance is over: its coups never were."""
        return replace(self, ids={coup: name for coup, name in self.ids.items() if not coup.startswith(MAINTENANCE)})

    def issue(self, body: Body, coup: str, key: SigningKey) -> tuple[Result, Book]:
        """Number, chain and sign a body; the result and the book after it."""
        body = {**body, "result_no": self.result_no + 1, "prev_hash": self.prev_hash}
        body["hash"] = result_hash(body)
        body["sig"] = key.sign(bytes.fromhex(body["hash"]))
        known = {**{entry: number for entry, number in self.ids.items() if entry != coup}, coup: body["id"]}
        for oldest in list(known)[:-COUPS_KNOWN]:
            del known[oldest]
        result = Result(
            epoch=self.epoch, result_no=body["result_no"], seq=body["seq"], coup=coup, payload=canonical(body)
        )
        return result, replace(self, result_no=body["result_no"], prev_hash=body["hash"], ids=known)


def result(ended: CoupEnded, place: Place, book: Book, number: int | None = None) -> tuple[Body, str]:
    """The body of a finished, resolved or revised coup, not yet numbered and signed, and the key of its coup."""
    coup = Coup(seance=ended.seance, partie=ended.partie, coup=ended.coup)
    body = {
        **place.head(number),
        **place.mark(),
        **coup.body(),
        "status": ended.status.value,
        "reasons": [encode(reason) for reason in ended.reasons],
        "outcome": encode(ended.outcome),
        "direction": encode(ended.direction),
        "travel_counts": ended.travel_counts,
        "per_turn": ended.per_turn,
        "times": {name: {"at": place.label(at_ns), "at_ns": at_ns} for name, at_ns in ended.times.items()},
        "sources": encode(ended.sources),
        "recovered": ended.recovered,
        "manual": encode(ended.manual),
    }
    key = coup.key(maintenance=place.maintenance)
    earlier = book.ids.get(key) or book.ids.get(coup.key())
    if ended.kind != "first" and earlier is not None:
        body["resolves" if ended.kind == "resolution" else "revises"] = earlier
    return body, key


def settlement(settled: Settled, coup: Coup, place: Place, book: Book, number: int) -> Body:
    """The body of `settlement/<tableau>`."""
    said, coup = encode_decision(settled), replace(coup, coup=settled.coup)
    key = coup.key(maintenance=place.maintenance)
    return {
        **place.head(number),
        **place.mark(),
        **coup.body(),
        "result": book.ids.get(key, f"{place.epoch}/{place.seq}"),
        "tableau": settled.tableau,
        "lines": said["lines"],
        "transfers": [{key: value for key, value in entry.items() if key != "tableau"} for entry in said["transfers"]],
        "order": said["order"],
        "player_order": said["player_order"],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event before it has its place."""

    kind: str
    """`annonce` `incident` `anomaly` `late_stake` `stake_refused` `alarm` `command`."""
    code: str
    text: str
    requirement: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def body(self, coup: Coup, place: Place, number: int) -> Body:
        """The body of `event`."""
        body = {
            **place.head(number),
            **place.mark(),
            **coup.body(),
            "kind": self.kind,
            "code": self.code,
            "text": self.text,
            "data": dict(self.data),
        }
        return body | {"requirement": self.requirement} if self.requirement else body


def event_of(decision: Decision) -> Told | None:
    """The event that a decision makes by itself; alarms and commands come from the controller's own books."""
    match decision:
        case Announce():
            return Told(kind="annonce", code=decision.code, text=decision.text)
        case Breach():
            kind = "anomaly" if decision.severity is Severity.NOTED else "incident"
            severity = {"severity": decision.severity.value}
            return Told(
                kind=kind, code=decision.code, text=decision.text, requirement=decision.requirement, data=severity
            )
        case StakeRefused():
            stake = {
                "player": decision.player,
                "tableau": decision.tableau,
                "spot": decision.spot,
                "cents": decision.cents,
            }
            kind = "late_stake" if decision.code in LATE else "stake_refused"
            return Told(kind=kind, code=decision.code, text=decision.text, requirement=decision.requirement, data=stake)
        case StakeDoubtful():
            doubt = {
                "stake": decision.id,
                "player": decision.player,
                "tableau": decision.tableau,
                "spot": decision.spot,
                "cents": decision.cents,
            }
            return Told(kind="late_stake", code="mise_douteuse", text=decision.why, requirement="R-GEN-05", data=doubt)
        case _:
            return None


def event_of_fact(fact: Fact, decisions: Sequence[Decision]) -> Told | None:
    """The event that an instrument's own trouble makes, where the law found no breach in it."""
    if any(isinstance(decision, Breach) for decision in decisions):
        return None
    match fact:
        case Overrun():
            sentence = text("entrees_perdues", device=fact.device, lost=fact.lost)
            data = {"device": fact.device, "lost": fact.lost}
            return Told(kind="anomaly", code="entrees_perdues", text=sentence, data=data)
        case Doubtful() if fact.why != NOT_OBSERVED:  # every start says that; where it matters it is a breach
            sentence = text("appareil_douteux", device=fact.device)
            data = {"device": fact.device, "why": fact.why}
            return Told(kind="anomaly", code="appareil_douteux", text=sentence, data=data)
        case _:
            return None


def first_fault(messages: Iterable[bytes | str], public_key: str) -> str:
    """What is wrong with the results of a table as they came, in order; empty when nothing is.

    Byte-identical repeats are allowed (delivery is at least once), a new epoch begins a new chain. A chain that does
    not begin at `result_no` 1 is checked from its first message on.
    """
    seen: dict[str, bytes] = {}
    epoch, result_no, prev_hash = "", 0, ""
    for place, message in enumerate(messages, start=1):
        payload = message.encode() if isinstance(message, str) else message
        try:
            body = parse(payload)
            if not isinstance(body, dict):
                return f"message {place}: not an object"
            name = body["id"]
            if name in seen:
                if seen[name] != payload:
                    return f"message {place}: {name} came twice with different content"
                continue
            seen[name] = payload
            if body["hash"] != result_hash(body):
                return f"message {place}: {name} hash does not hold"
            if not verify(public_key, bytes.fromhex(body["hash"]), body["sig"]):
                return f"message {place}: {name} sig does not verify"
            if body["epoch"] == epoch:
                if body["result_no"] != result_no + 1:
                    return f"message {place}: {name} result_no {body['result_no']} follows {result_no}"
                if body["prev_hash"] != prev_hash:
                    return f"message {place}: {name} prev_hash is not that of the result before"
            elif body["result_no"] == 1 and body["prev_hash"] != ZEROS:
                return f"message {place}: {name} is the first of its epoch and prev_hash is not 64 zeros"
            epoch, result_no, prev_hash = body["epoch"], body["result_no"], body["hash"]
        except (CanonicalError, KeyError, TypeError, ValueError, AttributeError) as error:
            return f"message {place}: not a result: {type(error).__name__}: {error}"
    return ""
