"""A journal with a scribe at its side, and coups to write into it."""

import contextlib
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from controller.clock import Clock
from controller.journal import Batch, Journal
from controller.journal_file import Stored, reader, stored_rows
from controller.journal_start import Owner
from controller.results import Told
from controller.scribe import Restored, Scribe, restored
from controller.signing import SigningKey, key_of
from rules.decisions import Announce, Breach, CoupEnded, Line, Phase, Settled, Severity, Status, Transfer
from rules.facts import Direction, SpinStopped
from rules.game import Coup, Game
from rules.state import TableState

GAME = cast(Game, types.SimpleNamespace(id="roue_de_la_chance", coup=Coup))
"""All that reading a state asks of a game."""
TABLE = "demo/t-1"
BOOT = "boot-1"

NOTED = Breach(code="rnvp_en_avance", requirement="R-GEN-08", severity=Severity.NOTED, text="Trop tôt")
HELD = Breach(code="direction_non_alternee", requirement="R-GEN-07", severity=Severity.HELD, text="Même sens")


@dataclass
class Wall(Clock):
    """Wall time that a test can set; monotonic time is that of the machine plus a jump."""

    ahead: timedelta = timedelta()
    mono_ahead_ns: int = 0
    good: bool = True

    def mono_ns(self) -> int:
        return time.monotonic_ns() + self.mono_ahead_ns

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def synchronised(self) -> bool:
        return self.good


@dataclass
class Table:
    """An open journal and everything that writes into it."""

    journal: Journal
    restored: Restored
    scribe: Scribe
    key: SigningKey
    clock: Wall
    state: TableState = field(default_factory=TableState)

    def play(self, status: Status = Status.VALID, **changes: Any) -> None:
        """One more coup, with its settlement, in the scribe's next batch."""
        no = self.state.coup_no + 1
        now = self.clock.mono_ns()
        coup = Coup(no=no, times={"started": now - 10**9, "ended": now})
        self.state = replace(self.state, seance=1, partie=1, coup_no=no, phase=Phase.REGLEMENT, coup=coup)
        fact = SpinStopped(at_ns=now, source="wheel", direction=Direction.CW, travel=7300, per_turn=2400, cell=17)
        decisions = (ended(no, status, coup.times, **changes), settled(no), Announce(code="couleur", text="Vert"))
        self.scribe.step(fact, decisions, self.state)

    def batch(self) -> Batch:
        return self.scribe.batch(self.state, {"played": self.state.coup_no})

    def commit(self) -> Batch:
        batch = self.batch()
        self.journal.commit(batch)
        return batch

    def coup(self, status: Status = Status.VALID, **changes: Any) -> Batch:
        """One more coup, committed."""
        self.play(status, **changes)
        return self.commit()

    def note(self, number: int = 0) -> Batch:
        """A row without a result, committed."""
        self.scribe.note("note", {"number": number}, Told(kind="incident", code="essai", text="Essai"))
        return self.commit()


def ended(no: int, status: Status, times: Any, **changes: Any) -> CoupEnded:
    """How a coup of the wheel ended."""
    told = CoupEnded(
        coup=no,
        partie=1,
        seance=1,
        kind="first",
        status=status,
        reasons=(HELD,) if status is Status.HELD else (NOTED,),
        outcome={"colour": "vert", "chances": ("vert",)},
        direction=Direction.CW,
        travel_counts=7300,
        per_turn=2400,
        times=times,
        sources={"wheel": "vert"},
    )
    return replace(told, **changes)


def settled(no: int) -> Settled:
    """What a coup of the wheel paid."""
    return Settled(
        coup=no,
        tableau=1,
        lines=(
            Line(id="m1", player="J1", tableau=1, type="vert", on=(), stake=300, returned=Fraction(1201, 2),
                 net=Fraction(601, 2), status="win"),
        ),
        transfers=(Transfer(source="table", target="player:J1", cents=Fraction(601, 2), why="win m1"),),
        order=(("m1",),),
        player_order=(("J1",),),
    )  # fmt: skip


def rows(journal: Journal, first: int = 0) -> list[Stored]:
    """What lies in the file from this row on."""
    with contextlib.closing(reader(journal.path)) as connection:
        return list(stored_rows(connection, first))


@contextlib.contextmanager
def opened(
    folder: Path, *, clock: Wall | None = None, boot: str = BOOT, version: str = "1", crash: bool = False
) -> Iterator[Table]:
    """A table on this state folder; `crash` leaves it without a word at the end."""
    clock = clock or Wall()
    folder.mkdir(exist_ok=True)
    key = key_of(folder)
    journal = Journal(folder, Owner(table=TABLE, game=GAME.id, version=version, boot=boot), key, clock)
    try:
        back = restored(journal.found, GAME)
        scribe = Scribe(table=TABLE, game=GAME.id, found=journal.found, restored=back, key=key, clock=clock)
        yield Table(journal, back, scribe, key, clock, back.state)
        if not crash:
            journal.close()
    finally:
        journal.abandon()
