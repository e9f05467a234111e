"""The head over the rotor: which turns may be believed, what is told of them, and what its sensors can get wrong."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.base import Edge, load
from drivers.rotor_head.decoder import Options, RotorHead
from hil.devices import rotor_head as sim
from hil.devices.lines import Pulse
from hil.physics.basin import Visit
from hil.physics.motion import TURN, Motion
from hil.physics.roulette import Rotor
from rules.facts import DeviceBack, DeviceLost, Doubtful, Fact, Overrun, PocketRead

SECOND = 1_000_000_000
MS = 1_000_000
START = 10 * SECOND
LONG = 100 * SECOND
EIGHT = Options(pockets=8)


def document() -> list[tuple[int, str, int]]:
    """(time, line, level) of the document's turn."""
    text = (Path(__file__).parents[2] / "drivers/rotor_head/PROTOCOL.md").read_text("utf-8")
    rows = re.findall(r"^\| \d+ \| `([0-9A-F ]+)` \| ([0-9.]+) s ", text, re.MULTILINE)
    assert len(rows) == 20
    lines = {17: "head.index", 27: "head.mark", 22: "head.ball"}
    found = []
    for raw, seconds in rows:
        at_ns, kind, offset, _, _ = struct.unpack("<QIIII", bytes.fromhex(raw))
        assert at_ns == round(float(seconds) * SECOND)
        found.append((at_ns, lines[offset], int(kind == 1)))
    return found


def turns(count: int) -> list[Edge]:
    """The document's turn so many times."""
    every = [(at + n * 3200 * MS, line, level) for n in range(count) for at, line, level in document()]
    return numbered(Pulse(*entry) for entry in every)


def numbered(pulses: Iterable[Pulse]) -> list[Edge]:
    seqs: dict[str, int] = {}
    found = []
    for pulse in pulses:
        seqs[pulse.line] = seqs.get(pulse.line, 0) + 1
        found.append(Edge(pulse.line, pulse.level, pulse.at_ns, seqs[pulse.line]))
    return found


def told(edges: Sequence[Edge], options: Options = EIGHT) -> list[Fact]:
    device = RotorHead("head", options)
    device.opened(0)
    return device.feed(edges) + device.tick(edges[-1].at_ns + LONG)


def read(at_ns: int, cell: int, *, recovered: bool = False) -> PocketRead:
    return PocketRead(at_ns=at_ns, source="head", value=None, cell=cell, recovered=recovered)


def unnumbered(edges: Iterable[Edge]) -> list[Edge]:
    return [edge._replace(seq=0) for edge in edges]


def whys(facts: Iterable[Fact]) -> list[str]:
    return [fact.why for fact in facts if isinstance(fact, DeviceLost | Doubtful)]


def without(edges: Sequence[Edge], line: str, turn: int, nth: int = 0) -> list[Edge]:
    """The nth pulse of a line in this turn was not seen."""
    start = START + turn * 3200 * MS - 50 * MS
    there = [edge for edge in edges if edge.line == f"head.{line}" and edge.at_ns >= start][2 * nth : 2 * nth + 2]
    return [edge._replace(seq=0) for edge in edges if edge not in there]


# --- the document ---


def test_the_document_says_what_the_decoder_does() -> None:
    device = RotorHead("head", EIGHT)
    edges = turns(3)
    facts = device.feed(edges)
    assert facts == [read(round(16.4 * SECOND), 5)]
    assert device.sample() == {"rpm": 18.75, "sense": "cw", "marks": 8, "balls": 1, "cell": 5, "told": 5}
    at_ns = round(16.4 * SECOND) + 40 * MS + 2 * MS + 200 * MS
    before = [edge for edge in edges if edge.at_ns < at_ns]
    prompt = RotorHead("head", EIGHT)
    assert prompt.feed(before) == []
    assert prompt.tick(at_ns - 1) == []
    assert prompt.tick(at_ns) == facts


def test_the_family_has_three_lines() -> None:
    assert load("rotor_head").lines == ("index", "mark", "ball")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"pockets": 4}, "8 to 60"),
        ({"pockets": 37, "ball_mm": 5}, "10 to 40"),
        ({"pockets": 37, "ring_mm": 5}, "200 to 1500"),
        ({"pockets": 37, "undecided_ms": 5}, "5000 to 120000"),
    ],
)
def test_what_cannot_be_is_refused_with_what_may(options: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Options(**options)


# --- every cell, both senses ---


class Table:
    """A rotor that turns, a head over it, and a ball that lies in `cell` from `settled_s` on."""

    def __init__(self, pockets: int = 37, noise: str = "clean", clockwise: int = 1, seed: int = 1) -> None:
        self.pockets = pockets
        self.rng = Random(f"head test {seed}")
        self.head = sim.RotorHead("head", pockets, faults=sim.LEVELS[noise], seed=seed, clockwise=clockwise)

    def turn(self, seconds: float, speed: float, visits: Sequence[Visit] = ()) -> list[Edge]:
        rotor, motion = Rotor(angle=self.rng.uniform(0, TURN)), Motion()
        rotor.speed = speed
        motion.add(0.0, rotor.angle)
        rotor.coast(motion, 0.0, seconds)
        return numbered(self.head.play(motion, START, visits))


@pytest.mark.parametrize("clockwise", [1, -1])
@pytest.mark.parametrize("speed", [1.6, -4.2])
@pytest.mark.parametrize("pockets", [37, 38])
def test_every_cell_is_read_in_both_senses(pockets: int, speed: float, clockwise: int) -> None:
    for cell in range(pockets):
        table = Table(pockets, clockwise=clockwise, seed=cell)
        edges = table.turn(16.0, speed, [Visit(1.0, math.inf, cell)])
        facts = told(edges, Options(pockets=pockets))
        assert [fact.cell for fact in facts if isinstance(fact, PocketRead)] == [cell]
        assert len(facts) == 1


def test_a_ball_that_hops_later_is_told_again_with_a_doubt() -> None:
    edges = Table().turn(30.0, 2.5, [Visit(1.0, 12.0, 7), Visit(12.4, math.inf, 9)])
    first, doubt, second = told(edges, Options(pockets=37))
    assert (first, second) == (read(first.at_ns, 7), read(second.at_ns, 9, recovered=True))
    assert whys([doubt]) == ["pocket_changed"]


def test_a_ball_that_bounces_from_cell_to_cell_is_not_read_before_it_lies() -> None:
    for seed in range(20):
        table = Table(seed=seed)
        visits = [Visit(0.4 * n, 0.4 * n + 0.4, table.rng.randrange(37)) for n in range(20)]
        facts = told(table.turn(20.0, 2.5, [*visits, Visit(8.0, math.inf, 30)]), Options(pockets=37))
        assert [fact.cell for fact in facts if isinstance(fact, PocketRead)] == [30]
        assert facts[0].at_ns > START + 8 * SECOND


def test_a_ball_that_was_taken_out_and_thrown_again_is_read_again() -> None:
    edges = Table().turn(60.0, 2.5, [Visit(1.0, 15.0, 7), Visit(30.0, math.inf, 7)])
    assert [type(fact) for fact in told(edges, Options(pockets=37))] == [PocketRead, PocketRead]


# --- what is no reading ---


def test_a_turn_without_one_of_its_marks_reads_nothing() -> None:
    facts = told(without(turns(4), "mark", 1, 2))
    assert facts == [read(round(19.6 * SECOND), 5)]  # the turns before and after agree


def test_a_turn_with_two_balls_or_none_reads_nothing() -> None:
    assert told(without(turns(3), "ball", 1))[:-1] == []
    also = [Edge("head.ball", 1, round(15.5 * SECOND)), Edge("head.ball", 0, round(15.54 * SECOND))]
    assert told(sorted([*unnumbered(turns(3)), *also], key=lambda edge: edge.at_ns))[:-1] == []


def test_what_is_too_narrow_or_too_wide_for_a_ball_is_none() -> None:
    narrow = [Edge("head.ball", 1, round(15.5 * SECOND)), Edge("head.ball", 0, round(15.51 * SECOND))]
    wide = [Edge("head.ball", 1, round(12.5 * SECOND)), Edge("head.ball", 0, round(12.6 * SECOND))]
    edges = sorted([*unnumbered(turns(3)), *narrow, *wide], key=lambda edge: edge.at_ns)
    assert told(edges) == [read(round(16.4 * SECOND), 5)]


def test_counting_and_time_must_say_the_same() -> None:
    """One mark missing before the ball and one too many behind it: the number is right, the count is not."""
    edges = without(without(turns(3), "mark", 0, 1), "mark", 1, 1)
    for n in range(2):
        at_ns = round((12.7 + 3.2 * n) * SECOND)
        edges += [Edge("head.mark", 1, at_ns), Edge("head.mark", 0, at_ns + 20 * MS)]
    edges.sort(key=lambda edge: edge.at_ns)
    assert not [fact for fact in told(edges) if isinstance(fact, PocketRead)]


def test_an_index_in_the_middle_between_its_marks_has_no_sense() -> None:
    moved = [edge._replace(seq=0, at_ns=edge.at_ns - 100 * MS * ("index" in edge.line)) for edge in turns(4)]
    assert not [fact for fact in told(sorted(moved, key=lambda edge: edge.at_ns)) if isinstance(fact, PocketRead)]


def test_undecided_after_twenty_seconds_is_left_to_people_and_told_when_it_is_read_after_all() -> None:
    edges = turns(12)
    for turn in range(1, 9):
        edges = without(edges, "mark", turn, 3)
    facts = told(edges)
    assert [type(fact) for fact in facts] == [Doubtful, PocketRead]
    assert whys(facts) == ["pocket_undecided"]
    assert facts[0].at_ns == round(13.2 * SECOND) + 20 * SECOND


def test_something_now_and_then_is_no_ball() -> None:
    edges = [edge for edge in unnumbered(turns(14)) if edge.line != "head.ball"]
    for turn in range(0, 14, 3):
        at_ns = START + turn * 3200 * MS + (turn * 700 + 300) % 3000 * MS
        edges += [Edge("head.ball", 1, at_ns), Edge("head.ball", 0, at_ns + 40 * MS)]
    assert told(sorted(edges, key=lambda edge: edge.at_ns)) == []


# --- sensors ---


def test_a_head_that_sees_no_index_is_lost_until_a_good_turn() -> None:
    edges = turns(12)
    for turn in range(3, 7):
        edges = without(edges, "index", turn)
    facts = told(edges)
    assert whys(facts) == ["index_missing"]
    lost, back = (fact for fact in facts if isinstance(fact, DeviceLost | DeviceBack))
    assert isinstance(lost, DeviceLost)
    assert isinstance(back, DeviceBack)
    assert 24 * SECOND < lost.at_ns < 30 * SECOND < back.at_ns


def test_a_head_that_sees_no_marks_is_lost() -> None:
    edges = [edge for edge in turns(8) if edge.line != "head.mark"]
    assert whys(told(edges)) == ["marks_missing"]


def test_a_pulled_cable_is_a_lost_device_until_a_good_turn() -> None:
    device = RotorHead("head", EIGHT)
    device.feed(turns(1))
    at_ns = START + 3300 * MS
    parted = [Edge(f"head.{line}", 1, at_ns + n) for n, line in enumerate(("index", "mark", "ball"))]
    facts = device.feed(parted) + device.tick(at_ns + LONG)
    assert facts == [DeviceLost(at_ns=at_ns + 1 + SECOND, source="head", device="head", why="unplugged")]
    again = [edge._replace(at_ns=edge.at_ns + 2 * LONG, seq=0) for edge in turns(3)]
    facts = device.feed([Edge(edge.line, 0, at_ns + LONG) for edge in parted]) + device.feed(again)
    assert [type(fact) for fact in facts] == [DeviceBack, PocketRead]


def test_what_the_ball_did_while_no_turn_was_seen_is_not_known() -> None:
    device = RotorHead("head", EIGHT)
    device.feed(turns(3))
    assert device.sample()["told"] == 5
    again = [edge._replace(at_ns=edge.at_ns + LONG, seq=0) for edge in turns(3)]
    assert device.feed(again) == [read(round(16.4 * SECOND) + LONG, 5)]


def test_a_port_that_goes_and_comes_is_told_once_and_forgets_the_ball() -> None:
    device = RotorHead("head", EIGHT)
    device.feed(turns(2))
    assert [type(fact) for fact in device.lost(START + LONG, "unplugged")] == [DeviceLost]
    assert device.lost(START + LONG, "unplugged") == []
    assert [type(fact) for fact in device.opened(START + LONG)] == [DeviceBack]
    assert device.opened(START + LONG) == []
    assert device.sample()["cell"] is None
    assert device.due_ns() is None


def test_a_port_that_comes_back_does_not_heal_a_lost_index() -> None:
    device = RotorHead("head", EIGHT)
    device.feed([edge for edge in turns(5) if edge.line != "head.index"])
    assert device.health()["lost"] == "index_missing"
    assert device.lost(START + LONG, "unplugged") == []
    assert device.opened(START + LONG) == []
    again = [edge._replace(at_ns=edge.at_ns + LONG) for edge in turns(3)]
    assert isinstance(device.feed(again)[0], DeviceBack)


def test_case_52_a_hole_in_the_numbers_is_told_and_no_wrong_cell() -> None:
    edges = [edge for n, edge in enumerate(turns(4)) if n not in (26, 27)]
    facts = told(edges)
    assert [fact.lost for fact in facts if isinstance(fact, Overrun)] == [2]
    assert [fact.cell for fact in facts if isinstance(fact, PocketRead)] == [5]


def test_case_62_noise_reads_no_wrong_cell() -> None:
    for seed in range(30):
        table = Table(noise="L3", seed=seed)
        cell = table.rng.randrange(37)
        facts = told(table.turn(40.0, table.rng.uniform(1.6, 4.2), [Visit(2.0, math.inf, cell)]), Options(pockets=37))
        assert [fact.cell for fact in facts if isinstance(fact, PocketRead)] == [cell]


def test_case_64_a_standing_rotor_that_trembles_on_a_mark_reads_nothing() -> None:
    rng, at_ns = Random(64), START
    edges: list[Edge] = []
    for _ in range(5000):
        at_ns += rng.randrange(1, 10) * MS
        edges.append(Edge("head.mark", len(edges) & 1 ^ 1, at_ns))
        if not len(edges) % 7:
            edges += [Edge("head.ball", 1, at_ns), Edge("head.ball", 0, at_ns + MS)]
    assert whys(told(edges)) == ["index_missing"]  # nobody can tell that from a rotor that turns


@pytest.mark.parametrize("noise", ["clean", "L3"])
def test_frozen_and_thawed_after_any_edge_it_tells_the_same(noise: str) -> None:
    edges = Table(noise=noise).turn(25.0, 3.0, [Visit(1.0, 12.0, 7), Visit(12.4, math.inf, 9)])
    options = Options(pockets=37)
    facts: list[Any] = []
    device = RotorHead("head", options)
    for edge in edges:
        facts += device.feed([edge])
        thawed = RotorHead("head", options)
        thawed.restore(json.loads(json.dumps(device.snapshot())))
        device = thawed
    assert facts + device.tick(edges[-1].at_ns + LONG) == told(edges, options)


def test_prompt_ticks_change_nothing_of_what_is_told() -> None:
    edges = Table(noise="L3").turn(25.0, 3.0, [Visit(1.0, 12.0, 7), Visit(12.4, math.inf, 9)])
    device = RotorHead("head", Options(pockets=37))
    facts: list[Fact] = []
    for edge in edges:
        while (due := device.due_ns()) is not None and due < edge.at_ns:
            facts += device.tick(due)
        facts += device.feed([edge])
    while (due := device.due_ns()) is not None:
        facts += device.tick(due)
    assert facts == told(edges, Options(pockets=37))


Wild = st.lists(
    st.tuples(st.sampled_from(["head.index", "head.mark", "head.ball", "x"]), st.integers(0, 1), st.integers(0, 900)),
    max_size=80,
)


@given(Wild)
def test_whatever_comes_nothing_is_raised_and_no_cell_is_made_up(edges: list[tuple[str, int, int]]) -> None:
    device = RotorHead("head", EIGHT)
    device.opened(0)
    at_ns, facts = START, []
    for line, level, ms in edges:
        at_ns += ms * MS
        facts += device.feed([Edge(line, level, at_ns)])
    facts += device.tick(at_ns + LONG)
    assert device.due_ns() is None
    assert all(0 <= fact.cell < 8 for fact in facts if isinstance(fact, PocketRead) and fact.cell is not None)
    json.dumps([device.snapshot(), device.health(), device.sample()])
