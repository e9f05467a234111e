"""Cups: one cup, alone and for long enough; everything else is a doubt, and nothing is invented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.base import Edge
from drivers.cups import FAMILY
from drivers.cups.decoder import Cups, Options
from hil.devices.cups import LEVELS, CupSensors
from hil.physics.basin import Visit
from rules.facts import DeviceBack, DeviceLost, Doubtful, Fact, PocketRead

MS = 1_000_000
ROLE = "cups"
END = 10**12


class Row(NamedTuple):
    at_ms: int
    line: str
    level: int
    seq: int
    told: list[tuple[int, str, str]]

    @property
    def edge(self) -> Edge:
        return Edge(self.line, self.level, self.at_ms * MS, self.seq)


def document() -> list[Row]:
    text = (Path(__file__).parents[2] / "drivers/cups/PROTOCOL.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    found = []
    for row in rows:
        if len(row) == 7 and row[0].isdecimal():
            told = [part.split(maxsplit=2) for part in row[6].split(",") if part]
            found.append(Row(int(row[1]), row[2], int(row[3]), int(row[4]), [(int(a), b, c) for a, b, c in told]))
    assert len(found) == 25
    return found


def plain(facts: Iterable[Fact], *, marked: bool = False) -> list[tuple[int, str, str]]:
    """Facts as the document writes them; that a reading wants a second source only where that is `marked`."""
    told = []
    for fact in facts:
        assert fact.source == ROLE
        assert fact.at_ns == fact.until_ns
        what = str(fact.cell) if isinstance(fact, PocketRead) else getattr(fact, "why", "")
        if isinstance(fact, PocketRead):
            assert fact.value is None
            what += " recovered" if marked and fact.recovered else ""
        told.append((fact.at_ns // MS, type(fact).__name__, what))
    return told


def edge(at_ms: float, cell: int, level: int, seq: int = 0) -> Edge:
    return Edge(f"{ROLE}.{cell}", level, round(at_ms * MS), seq)


def told(*moves: tuple[float, int, int], end_ns: int = END, **options: int) -> list[tuple[int, str, str]]:
    """What (ms, cell, level) make of eighteen cups."""
    cups = Cups(ROLE, Options(**options))
    return plain(cups.feed([edge(*move) for move in moves]) + cups.tick(end_ns))


def test_the_document_says_what_the_decoder_does() -> None:
    cups, rows = Cups(ROLE, Options()), document()
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        facts = cups.feed([row.edge])
        facts += cups.tick((after.at_ms if after else 90_000) * MS - 1)
        assert plain(facts, marked=True) == row.told, row
        if row.line == "cups.6":
            assert "cups.5" in str(cups.health()["advice"])
    known = {name: cups.health()[name] for name in ("calls", "readings", "pulses", "gaps", "doubts", "cell", "advice")}
    assert known == {
        "calls": 10, "readings": 5, "pulses": 1, "gaps": 1, "doubts": 3, "cell": 6, "advice": None,
    }  # fmt: skip
    assert cups.sample()["occupied"] == [6]


def test_the_simulator_makes_the_edges_of_the_document() -> None:
    """Ups and downs of a cup are a visit of the ball; those that a ball does not make are left out."""
    rows = [row for row in document() if row.line not in ("cups.3", "cups.2", "cups.5")]
    ups = {}
    visits = []
    for row in rows:
        if row.level:
            ups[row.line] = row.at_ms / 1000
        else:
            visits.append(Visit(ups.pop(row.line), row.at_ms / 1000, int(row.line.removeprefix("cups."))))
    visits += [Visit(begins, float("inf"), int(line.removeprefix("cups."))) for line, begins in ups.items()]
    pulses = CupSensors(ROLE, 18, faults=LEVELS["clean"]).play(visits, 0, 90.0)
    assert [(pulse.at_ns // MS, pulse.line, pulse.level) for pulse in pulses] == [
        (row.at_ms, row.line, row.level) for row in rows
    ]


def test_any_split_and_any_ticks_between_tell_the_same() -> None:
    edges = [row.edge for row in document()]
    whole = Cups(ROLE, Options())
    expected = whole.feed(edges) + whole.tick(END)
    for seed in range(20):
        rng, cups, facts = Random(seed), Cups(ROLE, Options()), []
        for one in edges:
            for _ in range(rng.randrange(3)):
                if (due := cups.due_ns()) is not None and due <= one.at_ns:
                    facts += cups.tick(due)
            facts += cups.feed([one])
            again = Cups(ROLE, Options())
            again.restore(json.loads(json.dumps(cups.snapshot())))
            assert again.snapshot() == cups.snapshot()
            cups = again
        assert facts + cups.tick(END) == expected


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        # a break one millisecond too long is one: what came before does not count
        ([(0, 4, 1), (1000, 4, 0), (1060, 4, 1)], [(1500, "PocketRead", "4")]),
        ([(0, 4, 1), (1000, 4, 0), (1061, 4, 1)], [(2561, "PocketRead", "4")]),
        # in the air when it would be read: read when it is back
        ([(0, 4, 1), (1490, 4, 0), (1520, 4, 1)], [(1520, "PocketRead", "4")]),
        # it still rocks: read when it has lain there for half a second; a pulse is no rocking
        ([(0, 4, 1), *((at, 4, at % 2) for at in range(300, 1440, 39))], [(1931, "PocketRead", "4")]),
        ([(0, 4, 1), (400, 4, 0), (404, 4, 1), (1200, 4, 0), (1240, 4, 1)], [(1500, "PocketRead", "4")]),
        # a call elsewhere within the time: the waiting begins anew
        ([(0, 4, 1), (700, 5, 1), (740, 5, 0)], [(2240, "PocketRead", "4")]),
        # the same cup again after the ball was taken out
        ([(0, 4, 1), (9000, 4, 0), (20_000, 4, 1)], [(1500, "PocketRead", "4"), (21_500, "PocketRead", "4")]),
        # taken out and put back, or an edge lost meanwhile: it has not been thrown
        (
            [(0, 4, 1), (9000, 4, 0), (11_999, 4, 1), (30_000, 4, 0), (33_000, 4, 1)],
            [(1500, "PocketRead", "4"), (34_500, "PocketRead", "4")],
        ),
        # a pulse where it has just lain is not it
        (
            [(0, 4, 1), (9000, 4, 0), (10_000, 4, 1), (10_002, 4, 0), (20_000, 4, 1)],
            [(1500, "PocketRead", "4"), (21_500, "PocketRead", "4")],
        ),
        # it called somewhere and is back: thrown
        (
            [(0, 4, 1), (9000, 4, 0), (9500, 5, 1), (9600, 5, 0), (9900, 4, 1)],
            [(1500, "PocketRead", "4"), (11_400, "PocketRead", "4")],
        ),
        # up twice: the down between was lost, so the time begins anew
        ([(0, 4, 1), (1000, 4, 1)], [(2500, "PocketRead", "4")]),
        # a chip lies in 5 when the ball comes to 4; the chip is taken out
        ([(0, 5, 1), (400, 4, 1), (9000, 5, 0)], [(1900, "Doubtful", "two_cups"), (10_500, "PocketRead", "4")]),
        # both are taken out: nothing is missed
        ([(0, 5, 1), (400, 4, 1), (9000, 5, 0), (9050, 4, 0)], [(1900, "Doubtful", "two_cups")]),
        # a line that no cup has
        ([(0, 18, 1), (0, 99, 1)], []),
    ],
)
def test_when_a_cup_is_read(moves: list[tuple[float, int, int]], expected: list[tuple[int, str, str]]) -> None:
    assert told(*moves) == expected


@pytest.mark.parametrize(("called_ms", "marked"), [(None, " recovered"), (9_900, ""), (-100, " recovered")])
def test_a_ball_that_nobody_saw_come_wants_a_second_source(called_ms: int | None, marked: str) -> None:
    cups = Cups(ROLE, Options())
    calls = [] if called_ms is None else [edge(called_ms - 80, 7, 1), edge(called_ms, 7, 0)]
    facts = cups.feed([*calls, edge(10_000, 4, 1)]) + cups.tick(12_000 * MS)
    assert plain(facts, marked=True)[-1] == (11_500, "PocketRead", f"4{marked}")


def test_what_lay_there_when_the_port_opened_is_no_result_until_it_has_moved() -> None:
    cups = Cups(ROLE, Options())
    facts = cups.opened(5 * MS) + cups.feed([edge(5, 11, 1)]) + cups.tick(60_000 * MS)
    assert (facts, cups.sample()["found"]) == ([], [11])
    facts = cups.feed([edge(61_000, 11, 0), edge(61_030, 11, 1)]) + cups.tick(70_000 * MS)
    assert facts == [], "it only rocked"
    facts = cups.feed([edge(70_100, 11, 0), edge(70_900, 11, 1)]) + cups.tick(70_950 * MS)
    assert facts == [], "it was taken out and put back"
    facts = cups.feed([edge(71_000, 11, 0), edge(80_000, 3, 1), edge(80_100, 3, 0), edge(80_300, 11, 1)])
    assert plain(facts + cups.tick(END)) == [(81_800, "PocketRead", "11")]


def test_a_ball_taken_out_of_a_cup_is_not_missed_but_one_that_called_somewhere_is() -> None:
    assert told((0, 4, 1), (9000, 4, 0)) == [(1500, "PocketRead", "4")]
    assert told((0, 4, 1), (90, 4, 0), (500, 9, 1), (600, 9, 0)) == [(5600, "Doubtful", "no_cup")]
    cups = Cups(ROLE, Options())
    facts = cups.opened(0) + cups.feed([edge(0, 4, 1), edge(9000, 4, 0)]) + cups.tick(END)
    assert facts == []


def test_a_cup_that_is_stuck_from_the_start_is_found_by_the_next_throw_and_left_out_until_it_is_mended() -> None:
    cups = Cups(ROLE, Options())
    cups.opened(0)
    cups.feed([edge(0, 17, 1)])
    throws = [
        facts
        for start in (10_000, 30_000)
        for facts in [
            cups.feed(
                [
                    *(edge(start + 300 * n, cell, n % 2 == 0) for n, cell in enumerate((1, 1, 2, 2))),
                    edge(start + 2000, 3, 1),
                    edge(start + 9000, 3, 0),
                ]
            )
        ]
    ]
    assert [plain(facts) for facts in throws] == [
        [(13_500, "Doubtful", "cup_stuck"), (13_500, "PocketRead", "3")],
        [(33_500, "PocketRead", "3")],
    ]
    mend = "Cuvette toujours occupée : vider et nettoyer cups.17, ou réparer le capteur."
    assert [cups.health()[name] for name in ("advice", "fault")] == [mend, mend]
    facts = cups.feed([edge(50_000, 1, 1), edge(50_100, 1, 0)]) + cups.tick(56_000 * MS)
    assert plain(facts) == [(55_100, "Doubtful", "no_cup")], "the ball may lie in the cup whose sensor is stuck"
    cups.feed([edge(60_000, 17, 0), edge(61_000, 17, 1)])
    assert plain(cups.tick(END)) == [(62_500, "PocketRead", "17")]
    assert cups.health()["advice"] is None


def test_a_pulled_cable_is_a_lost_device_and_what_lies_there_afterwards_no_result() -> None:
    cups = Cups(ROLE, Options())
    cups.feed([edge(0, 4, 1), edge(90, 4, 0)])
    facts = cups.feed([edge(1000 + n / 10, n, 1) for n in range(18)])
    assert facts == [DeviceLost(at_ns=1001_700_000, source=ROLE, device=ROLE, why="unplugged")]
    assert cups.tick(50_000 * MS) == []
    facts = cups.feed([edge(60_000, n, 0) for n in range(18) if n != 4]) + cups.tick(90_000 * MS)
    assert [type(fact) for fact in facts] == [DeviceBack]
    assert cups.health()["lost"] is None
    assert plain(cups.feed([edge(91_000, 4, 0), edge(95_000, 6, 1)]) + cups.tick(END)) == [(96_500, "PocketRead", "6")]


def test_a_port_that_goes_and_comes_is_told_once_and_forgets_what_lay_where() -> None:
    cups = Cups(ROLE, Options())
    cups.feed([edge(0, 4, 1)])
    facts = cups.lost(1000 * MS, "unplugged") + cups.lost(2000 * MS, "cannot_open")
    assert facts == [DeviceLost(at_ns=1000 * MS, source=ROLE, device=ROLE, why="unplugged")]
    assert (cups.health()["lost"], cups.due_ns()) == ("cannot_open", None)
    assert cups.opened(3000 * MS) == [DeviceBack(at_ns=3000 * MS, source=ROLE, device=ROLE)]
    assert plain(cups.tick(END)) == []
    both = Cups(ROLE, Options())
    both.feed([edge(n, n, 1) for n in range(18)])
    assert (both.lost(60 * MS, "unplugged"), len(both.opened(70 * MS))) == ([], 1)


@pytest.mark.parametrize(
    ("option", "value"), [("cells", 2), ("cells", 65), ("occupied_ms", 499), ("gap_ms", 251), ("gap_ms", -1)]
)
def test_impossible_options_are_refused(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{option} = {value}: allowed is")):
        Options(**{option: value})


def test_the_family_has_as_many_lines_as_cells() -> None:
    assert FAMILY.numbered is not None
    assert (FAMILY.kind, FAMILY.contacts, FAMILY.numbered(Options(cells=27))) == ("edges", True, 27)


MOVES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 2500), st.integers(0, 2)), max_size=40)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(MOVES)
def test_whatever_the_edges_a_cup_that_is_read_was_the_only_one_for_its_time(
    moves: list[tuple[int, int, int, int]],
) -> None:
    cups, now, seqs = Cups(ROLE, Options(cells=6)), 1000, dict.fromkeys(range(6), 0)
    edges: list[Edge] = []
    facts: list[Fact] = []
    for cell, level, after, skipped in moves:
        now += after
        seqs[cell] += 1 + skipped
        edges.append(edge(now, cell, level, seqs[cell]))
        facts += cups.feed(edges[-1:])
        assert (cups.due_ns() or END) > now * MS
    facts += cups.tick(END)
    times = [fact.at_ns for fact in facts if isinstance(fact, PocketRead)]
    assert times == sorted(times)
    for fact in facts:
        if isinstance(fact, PocketRead):
            line = f"{ROLE}.{fact.cell}"
            before = [one for one in edges if one.at_ns <= fact.at_ns]
            assert [one for one in before if one.line == line][-1].level == 1
            for others in {one.line for one in before} - {line}:
                last = [one for one in before if one.line == others][-1]
                stuck = any(isinstance(told, Doubtful) and told.why == "cup_stuck" for told in facts)
                assert last.level == 0 or stuck
