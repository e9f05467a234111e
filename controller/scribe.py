"""The scribe: turns what the sequencer stepped into the batch that is committed and the messages that go out.

One entry of the sequencer, one row, one `seq`. The scribe keeps the numbers (row, result, message) ahead of the
journal, so that every body is made once, before its commit, and is the same ever after. Runs in the loop's thread.

    step / note ──► row ──► its messages (result, settlement, event)
    batch ────────► all rows since the last one, with the state ──► JournalThread.commit ──► Outbox.added
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controller.canonical import CanonicalError, canonical, compact, parse
from controller.clock import Clock, rfc3339
from controller.codec import CodecError, decode_state, encode_decision, encode_fact, encode_state
from controller.journal import Batch
from controller.journal_file import JournalError, Message, Result, Row
from controller.journal_start import Found
from controller.results import Book, Coup, Place, Told, event_of, event_of_fact, result, settlement
from controller.signing import SigningKey
from rules.decisions import CoupEnded, Decision, Settled
from rules.facts import Fact
from rules.game import Game
from rules.state import SCHEMA, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The state out of the journal."""

    state: TableState
    book: Book
    controller: Mapping[str, Any]
    """What `Scribe.batch` was given beside the state."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """Wall times of instants of the running coup that lie before a reboot."""


def restored(found: Found, game: Game) -> Restored:
    """What to go on from; an empty table when nothing stands in the journal. Raises JournalError."""
    epoch = found.head.epoch
    if found.snapshot is None:
        return Restored(state=TableState(), book=Book(epoch=epoch), controller={})
    try:
        body = parse(found.snapshot)
        if not isinstance(body, dict) or body.get("schema") != SCHEMA:
            schema = body.get("schema") if isinstance(body, dict) else None
            raise JournalError(f"the journal's state has schema {schema}, this program reads {SCHEMA}: use its version")
        state = decode_state(body["state"], game)
        return Restored(
            state=state,
            book=Book(**body["book"]).of_epoch(epoch),
            controller=body["controller"],
            labels=_labels(found, state, {int(at_ns): label for at_ns, label in body["labels"].items()}),
        )
    except (CanonicalError, CodecError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(f"the journal's state cannot be read by this version: {error}") from error


@dataclass(slots=True)
class _Pending:
    """What the next batch holds so far."""

    rows: list[Row] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    epoch: str = ""


class Scribe:
    """Writes rows and messages; see the module."""

    def __init__(
        self, *, table: str, game: str, found: Found, restored: Restored, key: SigningKey, clock: Clock
    ) -> None:
        self.book = restored.book
        self._maintenance = False
        self._table, self._game, self._key, self._clock = table, game, key, clock
        self._epoch, self._seq, self._message = found.head.epoch, found.head.seq, found.head.last_outbox
        self._coup = _coup(restored.state)
        self._place: Place | None = None
        self._number = 0
        self._pending = _Pending()
        self._labels = dict(restored.labels)

    @property
    def maintenance(self) -> bool:
        """Marked in every message until it is set back."""
        return self._maintenance

    @maintenance.setter
    def maintenance(self, on: bool) -> None:
        if self._maintenance and not on:
            self.book = self.book.of_real_coups()
        self._maintenance = on

    @property
    def seq(self) -> int:
        """Of the last row."""
        return self._seq

    @property
    def epoch(self) -> str:
        """In which the next row is written."""
        return self._epoch

    def step(self, fact: Fact, decisions: Sequence[Decision], state: TableState) -> int:
        """A fact and what the law answered; the number of its row."""
        self._row("step", fact.at_ns, {"fact": encode_fact(fact), "decisions": [encode_decision(d) for d in decisions]})
        self._coup = _coup(state)
        for decision in decisions:
            if isinstance(decision, CoupEnded):
                self._result(decision)
            elif isinstance(decision, Settled):
                self._settlement(decision)
            elif told := event_of(decision):
                self.tell(told)
        if told := event_of_fact(fact, decisions):
            self.tell(told)
        return self._seq

    def note(self, kind: str, body: Mapping[str, Any], *told: Told) -> int:
        """Something of the controller's own, and the events that say it; the number of its row."""
        self._row(kind, self._clock.mono_ns(), body)
        for event in told:
            self.tell(event)
        return self._seq

    def tell(self, told: Told) -> None:
        """An event about the last row."""
        body = told.body(self._coup, self._at(), self._next_number())
        self._send("event", self._seq, canonical(body))

    def batch(self, state: TableState, controller: Mapping[str, Any]) -> Batch:
        """Everything since the last batch, with the state after it; `controller` is restored beside the state."""
        pending, self._pending = self._pending, _Pending()
        book = {
            "epoch": self.book.epoch,
            "result_no": self.book.result_no,
            "prev_hash": self.book.prev_hash,
            "ids": self.book.ids,
        }
        instants = state.coup.times.values() if state.coup else ()
        snapshot = {
            "schema": SCHEMA,
            "state": encode_state(state),
            "book": book,
            "labels": {str(at_ns): label for at_ns, label in self._labels.items() if at_ns in instants},
            "controller": controller,
        }
        return Batch(
            rows=tuple(pending.rows),
            results=tuple(pending.results),
            messages=tuple(pending.messages),
            snapshot=compact(snapshot),
            epoch=pending.epoch,
        )

    def change_epoch(self, reason: str, detail: str, unsent: Sequence[Message]) -> str:
        """Go on under a new epoch, for somebody knows more of the old one than our journal does; its name.

        `unsent` are all messages that the floor does not have: their ids may be taken, so they are issued again under
        the new epoch (`Batch.messages` then replaces them). Only between two batches.
        """
        assert not self._pending.rows, "commit what is pending first"
        previous, self._epoch = self._epoch, secrets.token_hex(6)
        self.book = self.book.of_epoch(self._epoch)
        self._pending.epoch = self._epoch
        body = {"epoch": self._epoch, "previous": previous, "reason": reason, "detail": detail}
        self._row("epoch", self._clock.mono_ns(), {**body, "public_key": self._key.public})
        renamed: dict[str, str] = {}
        for message in unsent:
            self._reissue(message, renamed)
        return self._epoch

    def _reissue(self, message: Message, renamed: dict[str, str]) -> None:
        body = parse(message.payload)
        assert isinstance(body, dict)
        name = f"{self._epoch}/{body['id'].partition('/')[2]}"
        renamed[body["id"]] = name
        body |= {"id": name, "epoch": self._epoch}
        for reference in ("resolves", "revises", "result"):
            if reference in body:
                body[reference] = renamed.get(body[reference], body[reference])
        if message.suffix != "result":
            self._send(message.suffix, message.seq, canonical(body))
            return
        coup = Coup(seance=body["seance"], partie=body["partie"], coup=body["coup"])
        issued, self.book = self.book.issue(body, coup.key(maintenance="maintenance" in body), self._key)
        self._pending.results.append(issued)
        self._send("result", message.seq, issued.payload)

    # --- rows and messages ---

    def _row(self, kind: str, at_ns: int, body: Mapping[str, Any]) -> None:
        spelled = canonical(body)  # first: what cannot be spelled takes no number
        self._seq += 1
        self._number = 0
        self._place = Place(
            table=self._table,
            game=self._game,
            epoch=self._epoch,
            seq=self._seq,
            at_ns=at_ns,
            clock_synchronised=self._clock.synchronised(),
            label=self._label,
            maintenance=self.maintenance,
        )
        self._pending.rows.append(
            Row(
                seq=self._seq,
                kind=kind,
                at_ns=at_ns,
                time=self._label(at_ns),
                clock_synchronised=self._place.clock_synchronised,
                body=spelled,
            )
        )

    def _result(self, ended: CoupEnded) -> None:
        plain = f"{self._epoch}/{self._seq}"
        number = self._next_number() if plain in self.book.ids.values() else None
        body, coup = result(ended, self._at(), self.book, number)
        issued, self.book = self.book.issue(body, coup, self._key)
        self._pending.results.append(issued)
        self._send("result", self._seq, issued.payload)

    def _settlement(self, settled: Settled) -> None:
        body = settlement(settled, self._coup, self._at(), self.book, self._next_number())
        self._send(f"settlement/{settled.tableau}", self._seq, canonical(body))

    def _send(self, suffix: str, seq: int, payload: bytes) -> None:
        self._message += 1
        self._pending.messages.append(
            Message(id=self._message, seq=seq, suffix=suffix, at_ns=self._clock.mono_ns(), payload=payload)
        )

    def _at(self) -> Place:
        assert self._place is not None, "no row yet"
        return self._place

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _label(self, at_ns: int) -> str:
        return self._labels.get(at_ns) or self._clock.utc(at_ns)


def _coup(state: TableState) -> Coup:
    return Coup(seance=state.seance, partie=state.partie, coup=state.coup_no)


def _labels(found: Found, state: TableState, known: Mapping[int, str]) -> dict[int, str]:
    """Wall times of what the running coup remembers from before a reboot: this boot's clock knows nothing of it."""
    instants = state.coup.times.values() if state.coup else ()
    labels = {at_ns: label for at_ns, label in known.items() if at_ns in instants}
    if found.earlier is not None:
        last_ns, label = found.earlier
        last = datetime.fromisoformat(label)
        for at_ns in instants:
            labels.setdefault(at_ns, rfc3339(last + timedelta(microseconds=(at_ns - last_ns) / 1000)))
    return labels
