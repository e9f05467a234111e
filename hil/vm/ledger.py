"""What the floor heard of a table, held against its journal: nothing lost, nothing told twice with other content.

Pure and independent: written from the contract and from the form of `tablectl journal export`, not from the controller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hil.floor import Chain, Heard

UNDER_WAY = frozenset({"lance", "jeux_faits", "resultat"})
"""Phases in which a draw runs: a table that was away meanwhile has not seen all of it."""


@dataclass(slots=True)
class Ledger:
    """Everything that was heard, in order; `faults` says what broke the contract."""

    chain: Chain
    faults: list[str] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    settlements: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    """The last one of the run that speaks now; empty until it has told one."""
    status: dict[str, Any] = field(default_factory=dict)
    _bytes: dict[str, bytes] = field(default_factory=dict)
    """What was told under an id."""

    def hear(self, heard: Heard) -> None:
        """Take one message."""
        if not heard.payload:
            return
        kind = heard.suffix.partition("/")[0]
        if heard.suffix == "status":
            self.state = {} if heard.body["boot"] != self.status.get("boot") else self.state
            self.status = heard.body
        elif heard.suffix == "state":
            self.state = heard.body
        elif kind in ("result", "settlement", "event") and heard.suffix != "result/last":
            body = heard.body
            before = self._bytes.setdefault(body["id"], heard.payload)
            if before != heard.payload:
                self.faults.append(f"{kind} {body['id']} came again with other bytes")
            if kind == "result":
                self.faults += self.chain.check(heard.payload)
            kept = getattr(self, f"{kind}s")
            if all(entry["id"] != body["id"] for entry in kept):
                kept.append(body)

    def alarms(self) -> set[str]:
        """Names of the alarms that stand."""
        return {alarm["name"] for alarm in self.state.get("alarms", ()) if alarm["active"]}

    def unsettled(self) -> list[str]:
        """Valid results whose settlement was not heard."""
        settled = {entry["result"] for entry in self.settlements}
        return [entry["id"] for entry in self.results if entry["status"] == "valid" and entry["id"] not in settled]

    def lines_of(self, stake: str) -> list[dict[str, Any]]:
        """What became of one stake, coup after coup."""
        return [line for entry in self.settlements for line in entry["lines"] if line["id"] == stake]

    def against(self, book: Book) -> list[str]:
        """What is wrong between floor and journal."""
        wrong, proof = list(self.faults), Chain(self.chain.public)
        for payload in book.results:
            wrong += proof.check(payload)
        kept = {json.loads(payload)["id"]: payload for payload in book.results}
        for result in self.results:
            if kept.get(result["id"]) != self._bytes[result["id"]]:
                state = "is not" if result["id"] not in kept else "has other bytes"
                wrong.append(f"result {result['result_no']} was heard and {state} in the journal")
        heard = {result["id"] for result in self.results}
        wrong += [f"result {name} is in the journal and was never heard" for name in kept if name not in heard]
        return wrong


@dataclass(frozen=True, slots=True)
class Book:
    """An exported journal."""

    rows: list[dict[str, Any]]
    results: list[bytes]

    @staticmethod
    def of(export: str) -> Book:
        """Read the lines of `tablectl journal export`."""
        rows, results, head = [], [], '{"result": '
        for line in export.splitlines():
            if line.startswith(head):
                results.append(line[len(head) : -1].encode())
            elif line.startswith('{"seq"'):
                rows.append(json.loads(line))
        return Book(rows, results)

    def before_the_last_start(self) -> Book:
        """The same without what the run that goes on now has written."""
        last = max((n for n, row in enumerate(self.rows) if row["kind"] == "start"), default=0)
        return Book(self.rows[:last], self.results)

    def _steps(self) -> list[Mapping[str, Any]]:
        return [row["body"] for row in self.rows if row["kind"] == "step"]

    def decisions(self, name: str) -> list[dict[str, Any]]:
        """Decisions of a kind, in order."""
        return [said for step in self._steps() for said in step["decisions"] if said["out"] == name]

    def last_turn(self) -> str | None:
        """Sense of the last actuation that was committed."""
        turns = [step["fact"]["direction"] for step in self._steps() if step["fact"]["in"] == "SpinStarted"]
        return turns[-1] if turns else None

    def stands(self) -> tuple[int, str]:
        """Coup and phase as the last decision left them."""
        last = self.decisions("PhaseChanged")[-1]
        return last["coup"], last["phase"]

    def stakes(self) -> dict[str, int]:
        """Cents of each stake as it was last accepted."""
        return {said["id"]: said["cents"] for said in self.decisions("StakeAccepted") if said["cents"]}
