"""A sequencer with a real law, scribe and journal, and everything around it that a test wants to see."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.clock import Clock
from controller.config import Config
from controller.config_check import from_data
from controller.config_file import read_toml, shipped_tables
from controller.flight import Flight, Recording
from controller.journal import Journal
from controller.journal_start import Owner
from controller.scribe import Scribe, restored
from controller.sequencer import Sequencer
from controller.signing import key_of
from rules.decisions import Decision
from rules.facts import Announced, Commanded, Direction, Fact, SpinSlowed, SpinStarted, SpinStopped
from rules.table import Table

SECOND = 1_000_000_000
TURN = 2400


def config(name: str = "roue-de-la-chance", **sections: Mapping[str, Any]) -> Config:
    """A shipped table with some sections changed key by key."""
    data = read_toml(shipped_tables()[name])
    for section, changed in sections.items():
        data[section] = {**data.get(section, {}), **changed}
    return from_data(data, name)


@dataclass
class Desk:
    """The sequencer and what it did."""

    journal: Journal
    drivers: dict[str, Any] = field(default_factory=dict)
    reacted: list[Decision] = field(default_factory=list)
    told: list[Decision] = field(default_factory=list)
    records: list[Recording] = field(default_factory=list)
    beats: int = 0
    scribe: Scribe = field(init=False)
    sequencer: Sequencer = field(init=False)
    flight: Flight = field(init=False)

    def beat(self) -> None:
        self.beats += 1

    def snapshots(self) -> dict[str, Any]:
        return {role: decoder.snapshot() for role, decoder in self.drivers.items()}

    async def rows(self, number: int) -> None:
        """Wait until so many rows wait for the disk."""
        async with asyncio.timeout(20):
            while self.sequencer.pending_now() < number:  # noqa: ASYNC110 - turn by turn, no time passes
                await asyncio.sleep(0)

    def commit(self) -> list[dict[str, Any]]:
        """Put what waits on the disk; the rows as the journal has them."""
        commit = self.sequencer.take()
        self.journal.commit(commit.batch)
        commit.done()
        return [{"seq": row.seq, "kind": row.kind, "body": row.body} for row in commit.batch.rows]

    def close(self) -> None:
        self.journal.close()


def desk(
    folder: Path,
    table: Config | None = None,
    clock: Clock | None = None,
    *,
    ring_bytes: int = 1_000_000,
    seconds: int = 60,
) -> Desk:
    """A desk on a fresh journal, or on the one that stands in the folder."""
    table = config() if table is None else table
    clock, key = clock or Clock(), key_of_folder(folder)
    owner = Owner(table=f"{table.site}/{table.table}", game=table.game.id, version="0", boot="boot")
    journal = Journal(folder, owner, key, clock)
    before = restored(journal.found, table.game)
    made = Desk(journal)
    made.scribe = Scribe(table=owner.table, game=owner.game, found=journal.found, restored=before, key=key, clock=clock)
    made.flight = Flight(
        seconds=seconds,
        ring_bytes=ring_bytes,
        lines=[line for device in table.devices.values() for line in device.lines],
        mono_ns=clock.mono_ns,
        sink=made.records.append,
    )
    made.sequencer = Sequencer(
        table=Table(table.game, table.house),
        state=before.state,
        scribe=made.scribe,
        react=made.reacted.append,
        told=lambda _fact, decisions: made.told.extend(decisions),
        controller=dict,
        flight=made.flight,
        snapshots=made.snapshots,
        clock=clock,
        beat=made.beat,
    )
    return made


def key_of_folder(folder: Path) -> Any:
    """The key of a state folder that may not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    return key_of(folder)


def opening(at_ns: int, *, what: str = "verification") -> list[Fact]:
    """The signatures and the command that open the roue."""
    signed: list[Fact] = [
        Commanded(at_ns=at_ns, source="command", name="attest", by=role, role=role, args={"what": what})
        for role in ("comite", "croupier")
    ]
    return [*signed, Commanded(at_ns=at_ns, source="command", name="open", by="comite", role="comite", args={})]


def spin(at_ns: int, direction: Direction, turns: float, *, announced: bool = True) -> list[Fact]:
    """A whole spin of the roue with its call, valid when it has three turns and the call is there."""
    call: list[Fact] = [Announced(at_ns=at_ns + 5 * SECOND, source="button.rien_ne_va_plus", code="rien_ne_va_plus")]
    return [
        SpinStarted(at_ns=at_ns, source="wheel", direction=direction),
        SpinSlowed(at_ns=at_ns + 5 * SECOND, source="wheel"),
        *(call if announced else []),
        SpinStopped(
            at_ns=at_ns + 20 * SECOND,
            source="wheel",
            direction=direction,
            travel=round(turns * TURN),
            per_turn=TURN,
            cell=3,
        ),
    ]
