"""Beams across the ball track: what is a ball, in which sense, how long yet, and what can be wrong with beams."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.base import Edge, load
from drivers.rim.decoder import Rim
from drivers.rim.options import Options
from hil.devices import rim as sim
from hil.physics.roulette import RimModel, Throw, throw_ball
from rules.facts import (
    BallDropped,
    BallLaunched,
    BallLost,
    DeviceBack,
    DeviceLost,
    Direction,
    Doubtful,
    DropDue,
    Fact,
    Overrun,
)

SECOND = 1_000_000_000
MS = 1_000_000
TWO = (0, 120)
FOUR = (0, 90, 180, 270)
START = 5 * SECOND
LONG = 40 * SECOND
"""Longer than any throw lasts."""


class Table:
    """A rim and its decoder; `throw` gives what is told of one throw, which begins at `start_ns`."""

    def __init__(self, beams: tuple[int, ...] = TWO, noise: str = "clean", seed: int = 1, **options: Any) -> None:
        self.rng = Random(f"rim test {seed}")
        self.rim = sim.Rim("rim", beams, faults=sim.LEVELS[noise], seed=seed)
        self.decoder = Rim("rim", Options(beams_deg=beams, **options))
        self.decoder.opened(0)
        self.start_ns = self.next_ns = START
        self.thrown: Throw = throw_ball(5.0, 1, self.rng)

    def edges(self, speed: float = 8.0, sense: int = 1, **how: Any) -> list[Edge]:
        self.start_ns, self.next_ns = self.next_ns, self.next_ns + 60 * SECOND
        self.thrown = throw_ball(speed, sense, self.rng)
        return numbered(self.rim.play(self.thrown, self.start_ns, **how))

    def throw(self, speed: float = 8.0, sense: int = 1, **how: Any) -> list[Fact]:
        return self.told(self.edges(speed, sense, **how))

    def told(self, edges: Sequence[Edge]) -> list[Fact]:
        return self.decoder.feed(edges) + self.decoder.tick(self.start_ns + LONG)

    def learned(self, throws: int = 6) -> Table:
        for n in range(throws):
            self.throw(self.rng.uniform(7, 12), 1 if n % 2 else -1)
        return self

    @property
    def drop_ns(self) -> int:
        return self.start_ns + round(self.thrown.dropped_s * SECOND)


def numbered(pulses: Sequence[Any], without: Callable[[int], bool] = lambda n: False) -> list[Edge]:
    """As edges; those of these places were lost, which shows in the numbering."""
    seqs: dict[str, int] = {}
    found = []
    for n, pulse in enumerate(pulses):
        seqs[pulse.line] = seqs.get(pulse.line, 0) + 1
        if not without(n):
            found.append(Edge(pulse.line, pulse.level, pulse.at_ns, seqs[pulse.line]))
    return found


def unnumbered(edges: Sequence[Edge]) -> list[Edge]:
    return [edge._replace(seq=0) for edge in edges]


def names(facts: Sequence[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def of(facts: Sequence[Fact], kind: type[Any]) -> list[Any]:
    return [fact for fact in facts if isinstance(fact, kind)]


def interrupted(beam: int, at_ns: int, width_ns: int) -> list[Edge]:
    return [Edge(f"rim.{beam}", 1, at_ns), Edge(f"rim.{beam}", 0, at_ns + width_ns)]


# --- the document and the options ---


def test_the_document_says_what_the_decoder_does() -> None:
    text = (Path(__file__).parents[2] / "drivers/rim/PROTOCOL.md").read_text("utf-8")
    rows = re.findall(r"^\| \d+ \| `([0-9A-F ]+)` \| ([0-9.]+) s [^|]+\| ([^|]+) \|$", text, re.MULTILINE)
    assert len(rows) == 26
    edges = []
    for raw, seconds, _ in rows:
        at_ns, kind, offset, _, seq = struct.unpack("<QIIII", bytes.fromhex(raw))
        assert abs(at_ns / SECOND - float(seconds)) < 1e-4
        edges.append(Edge(f"rim.{offset - 5}", int(kind == 1), at_ns, seq))
    device = Rim("rim", Options())
    for edge, after, (raw, _, told) in zip(edges, [*edges[1:], edges[-1]._replace(at_ns=LONG)], rows, strict=True):
        facts = device.feed([edge]) + device.tick(after.at_ns - 1)
        said = [fact.direction.value if isinstance(fact, BallLaunched) else
                str(fact.lost) if isinstance(fact, Overrun) else "" for fact in facts]  # fmt: skip
        spelt = [f"{name}({arg})" if arg else name for name, arg in zip(names(facts), said, strict=True)]
        assert (", ".join(spelt) or "-") == told, raw
    health = device.health()
    assert {"pulses": 11, "split": 1, "glitches": 1, "holes": 2, "rejected": 2, "drops": 1}.items() <= health.items()


def test_the_family_has_as_many_lines_as_beams() -> None:
    family = load("rim")
    assert family.kind == "edges"
    assert family.numbered is not None
    assert family.numbered(Options(beams_deg=FOUR)) == 4


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"beams_deg": (0, 180)}, "180 degrees look the same in both senses"),
        ({"beams_deg": (30, 210)}, "180 degrees look the same in both senses"),
        ({"beams_deg": (0, 150)}, "45 to 135"),
        ({"beams_deg": (0, 10, 100)}, "at least 30 degrees apart"),
        ({"beams_deg": (0,)}, "two to four"),
        ({"beams_deg": (0, 0)}, "different"),
        ({"beams_deg": (0, 360)}, "0 to 359"),
        ({"beams_deg": (0, 72, 144, 216, 288)}, "two to four"),
        ({"ball_mm": 5}, "10 to 40"),
        ({"track_mm": 100}, "200 to 2000"),
        ({"lead_ms": 100}, "500 to 15000"),
        ({"lap_ms": 100}, "400 to 5000"),
        ({"air_ppm": 0}, "1000 to 40000"),
        ({"rolling_mrad_s2": 0}, "5 to 300"),
        ({"leaves_mrad_s": 0}, "1500 to 5000"),
    ],
)
def test_what_cannot_be_is_refused_with_what_may(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Options(**options)


# --- one throw ---


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("beams", [TWO, (0, 240), (0, 60), (20, 110), (0, 120, 240), FOUR, (0, 60, 180, 240)])
def test_a_throw_is_launched_due_and_dropped_in_its_sense(beams: tuple[int, ...], sense: int) -> None:
    table = Table(beams)
    for speed in (5.0, 8.0, 15.0):
        launched, due, dropped = table.throw(speed, sense)
        assert launched == BallLaunched(
            at_ns=launched.at_ns, source="rim", direction=Direction.CW if sense > 0 else Direction.CCW
        )
        assert isinstance(due, DropDue)
        assert isinstance(dropped, BallDropped)
        assert table.start_ns < launched.at_ns < due.at_ns < table.drop_ns
        assert dropped.at_ns < table.drop_ns < dropped.until_ns
        angle = math.degrees(table.thrown.angles[-1]) * sense % 360
        begin, length = dropped.arc_from_deg or 0, dropped.arc_deg or 0
        assert {begin, (begin + length) % 360} <= set(beams)
        assert (angle - begin) % 360 < length


def test_until_five_throws_are_learned_the_drop_is_due_three_and_a_half_turns_before_it() -> None:
    table = Table()
    leads = []
    for _ in range(12):
        due = of(table.throw(9.0), DropDue)[0]
        leads.append((table.drop_ns - due.at_ns) / SECOND)
    assert all(5.0 < lead < 8.0 for lead in leads[:5])  # 6.2 s with the factory values
    assert all(3.2 < lead < 6.0 for lead in leads[5:])
    assert abs(due.drop_at_ns - table.drop_ns) < 1.5 * SECOND


def test_the_lead_is_the_one_that_was_asked_for() -> None:
    leads = {}
    for lead_ms in (3000, 6000):
        table = Table(lead_ms=lead_ms).learned()
        due = of(table.throw(9.0), DropDue)[0]
        assert due.drop_at_ns - due.at_ns == lead_ms * MS
        leads[lead_ms] = table.drop_ns - due.at_ns
    assert 2 * SECOND < leads[6000] - leads[3000] < 4 * SECOND


def test_a_lap_time_may_stand_in_while_too_little_is_learned() -> None:
    table = Table(lap_ms=1500)
    edges = table.edges(9.0)
    laps = [b.at_ns - a.at_ns for a, b in zip(edges, edges[4:], strict=False) if a.level]
    due = of(table.told(edges), DropDue)[0]
    slow = next(n for n, lap in enumerate(laps) if lap >= 1500 * MS)
    assert 0 < due.at_ns - [edge for edge in edges if edge.level][slow + 2].at_ns < 40 * MS


def test_a_lap_time_that_never_comes_still_ends_in_a_drop_that_was_due() -> None:
    assert names(Table(lap_ms=5000).throw(9.0)) == ["BallLaunched", "DropDue", "BallDropped"]


def test_a_lap_close_to_the_speed_of_the_drop_is_due_at_once() -> None:
    table = Table(lead_ms=500).learned()
    due = of(table.throw(9.0), DropDue)[0]
    assert table.drop_ns - due.at_ns > 500 * MS


# --- never silent ---


def test_a_throw_of_less_than_three_turns_is_due_and_lost() -> None:
    table = Table().learned()
    found = 0
    for speed in (3.6, 3.8, 4.0, 4.2):
        facts = table.throw(speed)
        if 0.7 < table.thrown.turns < 3:
            found += 1
            assert names(facts)[-2:] == ["DropDue", "BallLost"]
            assert of(facts, BallLost)[0].why == "weak_throw"
            assert [fact.direction for fact in of(facts, BallLaunched)] == [Direction.CW]
    assert found > 2


def test_a_ball_that_passes_one_beam_and_drops_is_lost() -> None:
    table = Table()
    slow = interrupted(0, START, 17 * MS)  # 3.2 rad/s
    facts = table.decoder.feed(slow) + table.decoder.tick(START + LONG)
    assert names(facts) == ["DropDue", "BallLost"]
    assert facts[0].at_ns == START + 17 * MS + 2 * MS + 2500 * MS


def test_something_quick_between_the_passages_of_a_weak_throw_hides_it_not() -> None:
    table = Table()
    edges = interrupted(1, START, 14 * MS) + interrupted(1, START + 580 * MS, 2 * MS)
    edges += interrupted(0, START + 650 * MS, 16 * MS)
    facts = table.decoder.feed(edges) + table.decoder.tick(START + LONG)
    assert names(facts)[-2:] == ["DropDue", "BallLost"]


def test_something_quick_in_one_beam_was_no_ball_that_dropped() -> None:
    table = Table()
    quick = interrupted(0, START, 6 * MS)  # 9 rad/s
    assert table.decoder.feed(quick) + table.decoder.tick(START + LONG) == []


def test_a_ball_taken_from_the_rim_is_lost_and_can_be_launched_anew() -> None:
    table = Table().learned()
    facts = table.throw(10.0, taken_s=4.0)
    assert names(facts) == ["BallLaunched", "BallLost"]
    assert facts[1] == BallLost(at_ns=facts[1].at_ns, source="rim", why="gone_at_speed")
    assert 0 < facts[1].at_ns - table.start_ns - 4 * SECOND < 3 * SECOND
    assert names(table.throw(9.0)) == ["BallLaunched", "DropDue", "BallDropped"]


def test_a_ball_told_lost_that_runs_on_is_told_again() -> None:
    table = Table()  # nothing learned: one missing passage near 1.3 wc is taken for the drop
    edges = [edge for edge in table.edges(4.6) if not table.start_ns + 2 * SECOND < edge.at_ns < START + 4.2 * SECOND]
    facts = table.told(unnumbered(edges))
    assert names(facts) == ["BallLaunched", "DropDue", "BallLost", "BallLaunched", "DropDue", "BallDropped"]
    assert table.decoder.counters["early_drops"] == 1


def test_a_ball_that_comes_right_behind_something_slow_is_launched_and_not_lost() -> None:
    table = Table().learned()
    edges = unnumbered(table.edges(9.0))
    slow = interrupted(1, edges[0].at_ns - 2300 * MS, 18 * MS)
    assert names(table.told([*slow, *edges])) == ["BallLaunched", "DropDue", "BallDropped"]


def test_what_jumps_about_after_the_drop_is_no_new_throw() -> None:
    table = Table().learned(1)
    edges = table.edges(8.0)
    jumps = interrupted(0, table.drop_ns + 4 * SECOND, 17 * MS) + interrupted(1, table.drop_ns + 5 * SECOND, 17 * MS)
    assert names(table.told(unnumbered(edges) + jumps)) == ["BallLaunched", "DropDue", "BallDropped"]


# --- what is no passage ---


def test_split_pulses_sleeves_and_false_pulses_change_nothing_of_a_throw() -> None:
    table = Table().learned()
    edges = unnumbered(table.edges(9.0))
    plain = names(table.told(edges))
    split = [
        part
        for edge in edges
        for part in ([edge] if edge.level else [
            Edge(edge.line, 0, edge.at_ns - 2 * MS), Edge(edge.line, 1, edge.at_ns - 1 * MS), edge])
    ]  # fmt: skip
    sleeve = interrupted(0, table.start_ns + 4 * SECOND, 90 * MS)
    odd = interrupted(1, table.start_ns + 6 * SECOND, 8 * MS)
    again = Table().learned()
    again.edges(9.0)
    wild = sorted([*split, *sleeve, *odd], key=lambda edge: edge.at_ns)
    assert names(again.told(wild)) == plain
    assert again.decoder.health()["split"] == len(edges) // 2


def test_the_ball_is_found_anew_when_a_hand_has_changed_its_speed() -> None:
    table = Table().learned()
    edges = table.edges(12.0)
    touched = table.start_ns + 3 * SECOND
    later = [
        edge._replace(at_ns=touched + round((edge.at_ns - touched) * 1.5)) for edge in edges if edge.at_ns > touched
    ]
    facts = table.decoder.feed(unnumbered([edge for edge in edges if edge.at_ns <= touched] + later))
    facts += table.decoder.tick(table.start_ns + 2 * LONG)
    assert names(facts)[0] == "BallLaunched"
    assert table.decoder.health()["rejected"]


def test_a_sense_that_turns_out_to_be_the_other_is_told_again() -> None:
    table = Table()
    there = table.edges(12.0, 1, taken_s=2.0)
    back = Table(seed=2)
    back.next_ns = table.start_ns + 2 * SECOND
    facts = table.told(unnumbered(there + back.edges(8.0, -1)))
    assert [fact.direction for fact in of(facts, BallLaunched)] == [Direction.CW, Direction.CCW]


# --- beams ---


def test_with_two_beams_a_dead_one_is_the_loss_of_the_device_and_the_drop_is_told_all_the_same() -> None:
    table = Table().learned()
    table.rim.dead.add(1)
    facts = table.throw(9.0)
    assert names(facts) == ["DeviceLost", "DropDue", "BallDropped"]
    assert facts[0] == DeviceLost(at_ns=facts[0].at_ns, source="rim", device="rim", why="dead_beam")
    assert table.decoder.health()["advice"] == "Faisceau 1 aveugle : le nettoyer ou le régler."
    assert names(table.throw(9.0)) == ["DropDue", "BallDropped"]  # told once
    table.rim.dead.clear()
    facts = table.throw(9.0)
    assert names(facts) == ["DeviceBack", "BallLaunched", "DropDue", "BallDropped"]  # what it tells now counts
    assert table.decoder.health()["lost"] is None
    assert table.decoder.health()["advice"] is None


def test_with_four_beams_a_dead_one_is_a_doubt() -> None:
    table = Table(FOUR).learned()
    table.rim.dead.add(2)
    facts = table.throw(9.0)
    assert names(facts) == ["BallLaunched", "Doubtful", "DropDue", "BallDropped"]
    assert of(facts, Doubtful)[0].why == "dead_beam"
    assert names(table.throw(9.0)) == ["BallLaunched", "DropDue", "BallDropped"]


def test_something_that_stays_in_a_beam_is_told_until_it_is_taken_away() -> None:
    table = Table()
    device = table.decoder
    edge = Edge("rim.1", 1, START)
    assert device.feed([edge]) == []
    assert device.due_ns() == START + 10 * SECOND
    facts = device.tick(START + LONG)
    assert facts == [DeviceLost(at_ns=START + 10 * SECOND, source="rim", device="rim", why="blocked_beam")]
    assert device.health()["advice"] == "Faisceau 1 masqué : le dégager."
    assert device.sample()["up"] == [False, True]
    assert device.feed([Edge("rim.1", 0, START + LONG)]) == [DeviceBack(at_ns=START + LONG, source="rim", device="rim")]
    assert device.health()["advice"] is None


def test_two_blocked_beams_are_one_loss() -> None:
    device = Table().decoder
    facts = device.feed([Edge("rim.0", 1, START), Edge("rim.1", 1, START + MS)]) + device.tick(START + LONG)
    assert names(facts) == ["DeviceLost"]
    assert device.feed([Edge("rim.0", 0, START + LONG)]) == []
    assert names(device.feed([Edge("rim.1", 0, START + LONG)])) == ["DeviceBack"]


def test_a_pulled_cable_is_a_lost_device_and_no_lost_ball() -> None:
    table = Table(FOUR).learned()
    edges = [edge for edge in unnumbered(table.edges(9.0)) if edge.at_ns < table.start_ns + 3 * SECOND]
    parted = [Edge(f"rim.{n}", 1, table.start_ns + 3 * SECOND + n) for n in range(4)]  # open inputs are pulled up
    facts = table.told([*edges, *parted])
    assert names(facts) == ["BallLaunched", "Doubtful", "Doubtful", "DeviceLost"]
    assert facts[-1].at_ns < table.start_ns + 7 * SECOND
    plugged = [Edge(f"rim.{n}", 0, table.start_ns + LONG) for n in range(4)]
    assert names(table.decoder.feed(plugged)) == ["DeviceBack"]


def test_a_sleeve_in_one_beam_does_not_hide_the_ball_from_the_other() -> None:
    table = Table().learned()
    edges = unnumbered(table.edges(9.0))
    begins, ends = table.drop_ns - 4500 * MS, table.drop_ns - 1500 * MS
    seen = [edge for edge in edges if edge.line != "rim.1" or not begins < edge.at_ns < ends]
    sleeve = [Edge("rim.1", 1, begins), Edge("rim.1", 0, ends)]
    facts = table.told(sorted([*seen, *sleeve], key=lambda edge: edge.at_ns))
    assert names(facts) == ["BallLaunched", "DropDue", "BallDropped"]
    assert table.decoder.counters["early_drops"] == 0


def test_beams_that_stand_otherwise_than_the_file_says_tell_no_sense() -> None:
    table = Table((0, 90))
    table.decoder = Rim("rim", Options(beams_deg=(0, 135)))
    facts = table.throw(11.0)
    assert [fact.why for fact in of(facts, Doubtful)] == ["sense_unknown"]
    assert not of(facts, BallLaunched)


def test_a_port_that_goes_and_comes_is_told_once_and_forgets_the_ball() -> None:
    table = Table()
    edges = table.edges(9.0)
    device = table.decoder
    device.feed(edges[:9])
    assert names(device.lost(edges[9].at_ns, "unplugged")) == ["DeviceLost"]
    assert device.lost(edges[9].at_ns, "unplugged") == []
    assert names(device.opened(edges[9].at_ns + MS)) == ["DeviceBack"]
    assert device.opened(edges[9].at_ns + MS) == []
    assert device.sample()["mrad_s"] == 0


def test_a_port_that_comes_back_does_not_heal_a_blocked_beam() -> None:
    device = Table().decoder
    device.feed([Edge("rim.0", 1, START)])
    assert names(device.tick(START + LONG)) == ["DeviceLost"]
    assert device.lost(START + LONG, "unplugged") == []
    assert names(device.opened(START + LONG + 1)) == ["DeviceBack"]  # nobody knows yet; it is found again


# --- field cases ---


@pytest.mark.parametrize("noise", ["L0", "L3"])
def test_case_62_noise_changes_neither_sense_nor_order(noise: str) -> None:
    table = Table(noise=noise).learned(10)
    for n in range(40):
        sense = 1 if n % 2 else -1
        facts = table.throw(table.rng.uniform(7, 14), sense)
        assert [fact.direction for fact in of(facts, BallLaunched)] == [Direction.CW if sense > 0 else Direction.CCW]
        assert [name for name in names(facts) if name != "BallLost"] == ["BallLaunched", "DropDue", "BallDropped"]


def test_case_50_edges_that_nobody_saw_cost_a_passage_and_never_the_ball() -> None:
    table = Table().learned()
    edges = unnumbered(table.edges(9.0))
    rng = Random(51)
    facts = table.told([edge for edge in edges if rng.random() > 0.08])
    assert names(facts) == ["BallLaunched", "DropDue", "BallDropped"]
    assert table.decoder.health()["halves"]


def test_case_52_lost_records_are_told_and_the_throw_goes_on() -> None:
    table = Table().learned()
    pulses = table.edges(9.0)
    table.decoder.opened(table.start_ns)
    facts = table.told(numbered(pulses, without=lambda n: n in (9, 10, 11, 12)))
    assert [fact.lost for fact in of(facts, Overrun)] == [2, 2]  # a line each, more than a second apart
    assert [name for name in names(facts) if name != "Overrun"] == ["BallLaunched", "DropDue", "BallDropped"]


def test_case_55_a_falling_edge_that_never_came_does_not_latch_a_beam() -> None:
    table = Table().learned()
    edges = unnumbered(table.edges(9.0))
    del edges[5]
    assert names(table.told(edges)) == ["BallLaunched", "DropDue", "BallDropped"]
    assert table.decoder.health()["advice"] is None


def test_case_64_a_beam_that_trembles_on_its_edge_launches_nothing() -> None:
    device = Table().decoder
    rng = Random(64)
    edges = []
    at_ns = START
    for _ in range(20_000):
        at_ns += rng.randrange(MS // 10, 20 * MS)
        edges += interrupted(0, at_ns, rng.randrange(MS // 20, 2 * MS))
        at_ns = edges[-1].at_ns
    assert device.feed(edges) + device.tick(at_ns + LONG) == []


def test_case_68_a_beam_of_which_only_falling_edges_come_is_found_dead() -> None:
    table = Table().learned()
    edges = [edge for edge in unnumbered(table.edges(9.0)) if edge.line != "rim.1" or not edge.level]
    assert [fact.why for fact in of(table.told(edges), DeviceLost)] == ["dead_beam"]


def test_a_storm_of_edges_is_counted_and_passes() -> None:
    device = Table().decoder
    storm = [Edge("rim.0", n & 1, START + n * 20_000) for n in range(50_000)]
    facts = device.feed(storm) + device.tick(START + 5 * SECOND)
    assert not of(facts, BallLaunched)
    assert device.health()["edges"] == 50_000
    table = Table()
    table.decoder = device
    assert names(table.throw(9.0))[-3:] == ["BallLaunched", "DropDue", "BallDropped"]


def test_losses_are_told_at_once_and_then_once_a_second() -> None:
    device = Table().decoder
    edges = [Edge("rim.0", n & 1, START + n * 100 * MS, 1 + 3 * n) for n in range(26)]
    facts = of(device.feed(edges) + device.tick(START + LONG), Overrun)
    assert [(fact.at_ns - START) // MS for fact in facts] == [100, 1100, 2100, 3100]
    assert [fact.lost for fact in facts] == [2, 18, 20, 10]


def test_edges_of_another_device_are_counted() -> None:
    device = Table().decoder
    assert device.feed([Edge("wheel.a", 1, START)]) == []
    assert device.health()["foreign"] == 1


# --- learning, freezing ---


def test_what_is_learned_is_near_the_truth_and_outlives_a_restart() -> None:
    table = Table().learned(12)
    learned = table.decoder.sample()["learned"]
    assert learned["spins"] == 12
    assert 2850 < learned["leaves_mrad_s"] < 3150
    slowing = learned["air_ppm"] / 1e6 * 9 + learned["rolling_mrad_s2"] / 1e3
    assert 0.12 < slowing < 0.16
    again = Rim("rim", Options())
    again.restore(json.loads(json.dumps({"learned": table.decoder.snapshot()["learned"]})))
    assert again.sample()["learned"] == learned
    assert again.due_ns() is None


def test_a_track_that_slows_the_ball_otherwise_than_at_first_is_told_once() -> None:
    table = Table().learned(12)
    assert table.decoder.health()["advice"] is None
    doubts = []
    for _ in range(8):
        table.start_ns, table.next_ns = table.next_ns, table.next_ns + 60 * SECOND
        throw = throw_ball(9.0, 1, table.rng, RimModel(air=0.012, rolling=0.085))
        doubts += of(table.told(unnumbered(numbered(table.rim.play(throw, table.start_ns)))), Doubtful)
    assert [doubt.why for doubt in doubts] == ["drift"]
    health = table.decoder.health()
    assert "autrement qu'à la mise en service" in str(health["fault"])
    assert health["advice"] == health["fault"]


def test_a_technician_has_the_rim_forget_a_ball_that_was_changed() -> None:
    table = Table().learned(6)
    assert "calibrate rim forget" in table.decoder.guide
    assert table.decoder.answer("forget", {}).text.startswith("6 lancers oubliés")
    assert table.decoder.sample()["learned"] == Rim("rim", Options()).sample()["learned"]
    assert names(table.throw(9.0)) == ["BallLaunched", "DropDue", "BallDropped"]
    with pytest.raises(ValueError, match="there is no turn; there is: forget"):
        table.decoder.answer("turn", {})


@pytest.mark.parametrize("noise", ["clean", "L3"])
def test_frozen_and_thawed_after_any_edge_it_tells_the_same(noise: str) -> None:
    whole, parts = Table(noise=noise, seed=7), Table(noise=noise, seed=7)
    for speed in (8.0, 3.9, 10.0):
        edges = whole.edges(speed, after_s=5.0)
        facts = whole.told(edges)
        told = []
        for edge in parts.edges(speed, after_s=5.0):
            told += parts.decoder.feed([edge])
            thawed = Rim("rim", Options())
            thawed.restore(json.loads(json.dumps(parts.decoder.snapshot())))
            parts.decoder = thawed
        assert told + parts.decoder.tick(parts.start_ns + LONG) == facts


def test_what_chops_the_beams_at_a_steady_pace_does_not_make_the_state_grow() -> None:
    device, lap_ns, told, sizes = Rim("rim", Options()), 698 * MS, [], []
    device.opened(0)
    for at_ns in range(START, START + 700 * lap_ns, lap_ns):
        told += device.feed(interrupted(0, at_ns, 6 * MS)) + device.feed(interrupted(1, at_ns + lap_ns // 3, 6 * MS))
        sizes.append(sum(len(kept) for kept in device.snapshot()["track"]["ball"].values() if isinstance(kept, list)))
    assert names(told) == ["BallLaunched"]
    assert sizes[5] < sizes[-300] == sizes[-1]


def test_prompt_ticks_change_nothing_of_what_is_told() -> None:
    late, prompt = Table(noise="L3", seed=8), Table(noise="L3", seed=8)
    for speed in (8.0, 3.9, 10.0):
        facts = late.throw(speed)
        told = []
        for edge in prompt.edges(speed):
            while (due := prompt.decoder.due_ns()) is not None and due < edge.at_ns:
                told += prompt.decoder.tick(due)
            told += prompt.decoder.feed([edge])
        while (due := prompt.decoder.due_ns()) is not None:
            told += prompt.decoder.tick(due)
        assert told == facts


Wild = st.lists(
    st.tuples(st.sampled_from(["rim.0", "rim.1", "rim.7"]), st.integers(0, 1), st.integers(0, 900), st.integers(0, 3)),
    max_size=60,
)


@given(Wild, st.booleans())
def test_whatever_comes_nothing_is_raised_and_time_never_runs_back(
    edges: list[tuple[str, int, int, int]], odd: bool
) -> None:
    device = Rim("rim", Options())
    device.opened(0)
    at_ns, seq, facts = START, 0, []
    for line, level, ms, step in edges:
        at_ns += ms * MS
        seq += step
        facts += device.feed([Edge(line, level, at_ns, seq if odd else 0)])
        assert (due := device.due_ns()) is None or due >= 0
    facts += device.tick(at_ns + LONG)
    assert device.due_ns() is None or device.sample()["up"] != [False, False]
    assert all(fact.at_ns <= fact.until_ns <= at_ns + LONG for fact in facts)
    json.dumps([device.snapshot(), device.health(), device.sample()])
