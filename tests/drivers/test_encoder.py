"""The encoder's signals: counting, and everything that can be wrong with three wires."""

from __future__ import annotations

import json
import math
import re
import struct
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.base import Edge, load
from drivers.encoder.decoder import Encoder
from drivers.encoder.options import Options
from drivers.encoder.quadrature import Quadrature
from rules.facts import DeviceBack, DeviceLost, Doubtful, Fact, Overrun, SpinStarted, SpinStopped
from tests.drivers.signals import MS, RAD, SECOND, TURN, coast, edges, launch, push, rebound, renumbered, still, to
from tests.drivers.signals import Path as Motion

ROUE = Options(counts_per_turn=TURN, cells=52)
CYLINDER = Options(counts_per_turn=TURN, cells=37, pegs=False)
US = 1000
LATER = 5 * SECOND


def encoder() -> Encoder:
    return Encoder("wheel", ROUE)


def told(seen: list[Edge], device: Encoder | None = None) -> list[Fact]:
    device = device or encoder()
    return device.feed(seen) + device.tick(seen[-1].at_ns + LATER)


def names(facts: list[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def whys(facts: list[Fact]) -> list[str]:
    return [fact.why for fact in facts if isinstance(fact, DeviceLost | Doubtful)]


def turning(turns: float, speed: float = 3.0, start: float = 0.3) -> Motion:
    """From rest up to speed (rad/s) and on, without end."""
    path = push([(0.0, start)], speed * RAD, 0.6)
    seconds = (turns * TURN - (path[-1][1] - start)) / (speed * RAD)
    return [*path, (path[-1][0] + seconds, start + turns * TURN)]


def apart(position: int, counts: float) -> float:
    """Distance of two angles."""
    return abs((position - counts + TURN / 2) % TURN - TURN / 2)


def test_the_document_says_what_the_decoder_does() -> None:
    text = (Path(__file__).parents[2] / "drivers/encoder/PROTOCOL.md").read_text("utf-8")
    rows = re.findall(r"^\| \d+ \| `([0-9A-F ]+)` \|[^|]+\| (\d+) \| (\d+|-) \|$", text, re.MULTILINE)
    assert len(rows) == 19
    lines = {17: "wheel.a", 27: "wheel.b", 22: "wheel.index"}
    seen: list[Edge] = []
    for raw, counted, position in rows:
        at_ns, kind, offset, _, seq = struct.unpack("<QIIII", bytes.fromhex(raw))
        seen.append(Edge(lines[offset], int(kind == 1), at_ns, seq))
        device = encoder()
        facts = device.feed(seen) + device.tick(at_ns + 2 * MS)
        sample = device.sample()
        assert (sample["count"], str(sample["position"]).replace("None", "-")) == (int(counted), position), raw
    assert facts == [Overrun(at_ns=1180 * MS, source="wheel", device="wheel", lost=1)]
    facts = device.tick(at_ns + LATER)
    assert facts == [Overrun(at_ns=2180 * MS, source="wheel", device="wheel", lost=2)]
    assert {"illegal": 1, "lost_edges": 3, "glitches": 1, "repeated": 1, "holes": 2}.items() <= device.health().items()


def test_the_family_is_found_by_its_name() -> None:
    family = load("encoder")
    assert (family.kind, family.lines) == ("edges", ("a", "b", "index"))
    assert isinstance(family.decoder("wheel", ROUE), Encoder)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("counts_per_turn", 2401, "multiple of 4"),
        ("counts_per_turn", 0, "multiple of 4"),
        ("cells", 1, "2 to"),
        ("direction", "left", "cw or ccw"),
        ("first_cell_mdeg", 360_000, "0 to 359999"),
        ("stop_ms", 10, "200 to 10000"),
        ("hysteresis_mdeg", 3600, "less than half a cell"),
        ("index_tolerance", 2, "3 to a quarter"),
        ("start_mrad_s", 1, "50 to 10000"),
    ],
)
def test_impossible_options_are_refused_with_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(ValueError, match=re.escape(allowed)) as caught:
        Options(**{"counts_per_turn": TURN, "cells": 52, key: value})
    assert key in str(caught.value)
    assert repr(value) in str(caught.value)


def test_every_edge_counts_from_the_first() -> None:
    for travel in (1000, -1000):
        device = encoder()
        device.feed(edges(to([(0.0, 0.5)], 0.5 + travel, 3.0)))
        device.tick(LATER * 2)
        assert device.sample()["count"] == travel


def test_case_69_the_position_is_unknown_before_the_first_index() -> None:
    device = encoder()
    device.feed(edges(to([(0.0, 100.5)], 2300.5, 3.0)))
    assert device.health()["position"] == "unknown"
    assert device.sample()["position"] is None
    device.feed(renumbered(edges(to([(4.0, 2300.5)], 2900.5, 3.0), start_ns=SECOND)))
    device.tick(LATER * 3)
    assert device.health()["position"] == "known"
    assert device.sample()["position"] == 500


# --- what edges alone cannot disturb ---


def mixed() -> list[Edge]:
    """Wind-up, spin, rebound, an obstructed spin the other way, with glitches, losses, a hole and a repeated level."""
    rng = Random(4)
    path = launch(to([(0.0, 0.5)], -150.5, 0.5), 7300)
    path = still(rebound(path, -40), 2.5)
    path, speed = coast(push(path, -4 * RAD, 0.6), -4 * RAD, 0.22 * RAD, 4.0)
    path, _ = coast(path, speed, 3 * RAD, 9.0)
    seen = edges(path)
    for _ in range(40):
        at = rng.randrange(100, len(seen) - 100)
        edge = seen[at]
        line = rng.choice(["wheel.a", "wheel.b"])
        level = next(e.level for e in reversed(seen[:at]) if e.line == line)
        pulse = [Edge(line, 1 - level, edge.at_ns - 20 * US), Edge(line, level, edge.at_ns - 5 * US)]
        seen[at:at] = pulse[: rng.choice([1, 2, 2, 2])]
    for _ in range(5):
        del seen[rng.randrange(100, len(seen) - 100)]
    seen = renumbered(seen)
    del seen[1500:1590]
    seen.sort(key=lambda e: e.at_ns)
    return seen


@pytest.fixture(scope="module")
def whole() -> tuple[list[Edge], list[Fact], dict[str, Any]]:
    seen, device = mixed(), encoder()
    facts = device.feed(seen) + device.tick(seen[-1].at_ns + LATER)
    return seen, facts, device.snapshot()


def test_the_mixed_signal_has_something_of_everything(whole: tuple[list[Edge], list[Fact], dict[str, Any]]) -> None:
    _, facts, state = whole
    assert {"SpinStarted", "SpinSlowed", "SpinObstructed", "SpinStopped", "Overrun"} <= set(names(facts))
    assert state["filter"]["counters"]["holes"]
    assert state["filter"]["counters"]["glitches"]
    assert state["filter"]["counters"]["repeated"]
    assert state["counters"]["illegal"]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_split_and_any_tick_tells_the_same(
    whole: tuple[list[Edge], list[Fact], dict[str, Any]], data: st.DataObject
) -> None:
    """Field case 63: what is read late, the index too, counts where it happened."""
    seen, facts, state = whole
    cuts = sorted(data.draw(st.lists(st.integers(0, len(seen)), max_size=30)))
    device, heard = encoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(seen)], strict=True):
        heard += device.feed(seen[start:end])
        if end < len(seen) and data.draw(st.booleans()):
            heard += device.tick(data.draw(st.integers(seen[end - 1].at_ns if end else 0, seen[end].at_ns)))
    heard += device.tick(seen[-1].at_ns + LATER)
    assert heard == facts
    assert json.dumps(device.snapshot()) == json.dumps(state)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_thawed_decoder_goes_on_as_if_nothing_had_happened(
    whole: tuple[list[Edge], list[Fact], dict[str, Any]], data: st.DataObject
) -> None:
    seen, facts, state = whole
    at = data.draw(st.integers(0, len(seen)))
    first = encoder()
    heard = first.feed(seen[:at])
    second = encoder()
    second.restore(json.loads(json.dumps(first.snapshot())))
    assert second.due_ns() == first.due_ns()
    heard += second.feed(seen[at:]) + second.tick(seen[-1].at_ns + LATER)
    assert heard == facts
    assert json.dumps(second.snapshot()) == json.dumps(state)


def test_ticked_when_due_it_tells_everything_in_time(whole: tuple[list[Edge], list[Fact], dict[str, Any]]) -> None:
    """No fact waits for the next edge: at most 10 ms behind the instant that it tells."""
    seen, facts, _ = whole
    device, heard = encoder(), []
    for edge in seen:
        while (due := device.due_ns()) is not None and due < edge.at_ns:
            for fact in device.tick(due):
                assert due - fact.at_ns <= 10 * MS
                heard.append(fact)
        heard += device.feed([edge])
    while (due := device.due_ns()) is not None:
        heard += device.tick(due)
    assert heard == facts


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["wheel.a", "wheel.b", "wheel.index", "other.a"]),
            st.integers(0, 1),
            st.integers(-100, 40_000),
            st.integers(0, 40),
        ),
        max_size=200,
    )
)
def test_nothing_that_wires_can_do_raises(wild: list[tuple[str, int, int, int]]) -> None:
    device, now = encoder(), SECOND
    for line, level, step, seq in wild:
        now += step * US
        device.feed([Edge(line, level, now, seq)])
        due = device.due_ns()
        assert due is None or due > now - 200 * MS
    device.tick(now + LATER)
    device.lost(now + LATER, "unplugged")
    device.opened(now + LATER)
    json.dumps([device.snapshot(), device.health(), device.sample()])


# --- lost and false edges ---


def test_case_50_lost_steps_are_never_silent() -> None:
    """Rising speed, one edge in a hundred missing: the count is exact, and every loss was told."""
    rng = Random(50)
    path = [(0.0, 0.5)]
    for speed in (1, 2, 4, 7, 9):
        before = 0.0 if speed == 1 else path[-1][1] - path[-2][1]
        push(path, speed * RAD, 1.0, before=before / 0.002)
    clean = edges(path)
    seen = [edge for edge in clean if "index" in edge.line or rng.random() > 0.01]
    device = encoder()
    facts = device.feed(renumbered(seen))
    missing = len(clean) - len(seen)
    assert missing > 50
    device.tick(seen[-1].at_ns + 2 * MS)
    health = device.health()
    truth = sum("index" not in edge.line for edge in clean)
    if "DeviceLost" not in names(facts):
        assert abs(device.sample()["count"] - truth) <= 24
    assert int(health["illegal"] or 0) >= missing // 2
    assert "Overrun" in names(facts)
    assert whys(facts)


def test_case_52_a_full_queue_is_counted_and_the_count_goes_on() -> None:
    """2,000 edges while nobody reads: the kernel keeps the newest 1,024."""
    clean = edges(turning(3.0, speed=6.0))
    seen = clean[:2000] + clean[2976:]
    device = encoder()
    facts = device.feed(seen)
    lost = sum(fact.lost for fact in facts if isinstance(fact, Overrun))
    assert "DeviceLost" not in names(facts)
    device.tick(seen[-1].at_ns + 50 * MS)
    facts += device.tick(seen[-1].at_ns + 90 * MS)
    assert device.health()["holes"] == 976
    assert device.health()["lost_edges"] == 976
    assert lost > 0
    assert device.sample()["count"] == sum("index" not in edge.line for edge in clean)


def test_a_wheel_whose_queue_was_full_for_long_is_as_fast_as_before() -> None:
    """Else the first edge that does not fit behind the hole would turn it round."""
    quadrature = Quadrature(TURN)
    for n in range(40):
        quadrature.judge(n % 4, n * MS)
    quadrature.hole(0, 150, 340 * MS)
    assert quadrature.is_fast(341 * MS)
    quadrature.hole(0, 3, 900 * MS)
    assert not quadrature.is_fast(901 * MS)


def test_a_sense_that_was_mistaken_at_speed_is_put_right_within_some_edges() -> None:
    """Nothing turns back so fast; but a hole or noise may have shown the sense that was before."""
    seen = edges([(0.0, 0.5), (1.0, 1200.5), (2.0, 0.5)])
    device = encoder()
    device.feed(seen)
    assert abs(device.sample()["count"]) <= 4
    assert 0 < device.counters["lost_edges"] < 20


@pytest.mark.parametrize("place", range(4))
def test_a_sense_that_was_put_right_is_not_turned_back_by_the_next_noise(place: int) -> None:
    """W3: the edges that turned it round were counted on, and one edge of noise much later made their row longer."""
    seen = edges([(0.0, 0.5), (1.0, 1200.5), (2.0, 0.5), (3.0, -1199.5)])
    later = next(n for n, edge in enumerate(seen) if edge.at_ns > 3 * SECOND) + place
    device = encoder()
    device.feed(seen[:later])
    before = device.sample()["count"]
    noise = seen[later]._replace(level=1 - seen[later].level, seq=0)  # half a pulse
    device.feed([noise._replace(at_ns=noise.at_ns - 300_000)])
    device.feed([edge._replace(seq=0) for edge in seen[later : later + 40]])
    device.tick(seen[later + 40].at_ns)
    assert abs(device.sample()["count"] - before + 40) <= 4


def test_a_mistaken_sense_does_not_pass_for_a_line_that_is_late() -> None:
    """Forwards reads as backwards with the levels of one line upside down."""
    seen = edges([(0.0, 0.5), (1.0, 1200.5), (2.0, 0.5)])
    back = next(n for n, edge in enumerate(seen) if edge.at_ns > 2 * SECOND)
    device = encoder()
    device.feed(renumbered(seen[: back + 3] + seen[back + 4 :]))
    assert abs(device.sample()["count"]) <= 8


def test_an_impossible_edge_at_the_end_puts_the_standstill_off_but_not_for_ever() -> None:
    """W5: never before the last edge and a second and a half, whatever noise follows."""
    seen = edges(launch([(0.0, 0.5)], 7000))
    last = seen[-1]
    for late_ms, stop_ms in ((700, 2200), (1200, 1500)):
        device = encoder()
        again = last._replace(at_ns=last.at_ns + late_ms * MS, seq=last.seq + 1)  # the same level again
        facts = device.feed([*seen, again]) + device.tick(last.at_ns + 5 * SECOND)
        (stopped,) = (fact for fact in facts if isinstance(fact, SpinStopped))
        assert stopped.at_ns == last.at_ns + stop_ms * MS


def test_losses_are_told_at_once_and_then_once_a_second() -> None:
    seen = edges(turning(4.0))
    for at in (2000, 2500, 3000, 3500, 4000):
        del seen[at : at + 30]
    facts = [fact for fact in told(seen) if isinstance(fact, Overrun)]
    assert sum(fact.lost for fact in facts) == 150
    assert all(later.at_ns - fact.at_ns >= SECOND for fact, later in pairwise(facts))


def test_a_repeated_level_is_a_loss_and_does_not_shift_the_count() -> None:
    """The kernel merged two edges of one line: two of the same kind in a row."""
    clean = edges(turning(2.0))
    at = next(n for n in range(2000, 2100) if clean[n].line == "wheel.a")
    seen = renumbered(clean[:at] + clean[at + 1 :])
    device = encoder()
    facts = device.feed(seen)
    device.tick(seen[-1].at_ns + 2 * MS)
    assert device.health()["repeated"] == 1
    assert [fact.lost for fact in facts if isinstance(fact, Overrun)] == [1]
    assert device.sample()["count"] == sum("index" not in edge.line for edge in clean)


@pytest.mark.parametrize(("line", "level"), [("wheel.a", 1), ("wheel.b", 0), ("wheel.index", 1)])
def test_case_68_an_edge_that_never_comes_is_named(line: str, level: int) -> None:
    """A driver in the kernel that takes half of a line's interrupts for itself."""
    device = encoder()
    seen = renumbered(edge for edge in edges(turning(3.0)) if (edge.line, edge.level) != (line, level))
    facts = device.feed(seen)
    assert {"Doubtful", "DeviceLost"} & set(names(facts))
    assert list(device.sample()["unseen"]) == [f"{line} {'rising' if level else 'falling'}"]


@pytest.mark.parametrize("speed", [0.15, 3.0])
@pytest.mark.parametrize("fault", ["late level", "merged"])
def test_what_a_late_kernel_thread_does_to_an_edge_is_put_right(speed: float, fault: str) -> None:
    """Seen in the VM: the level is asked for when the next edge of the line is there, or two edges become one."""
    clean = edges([(0.0, 0.5), (2400 / (speed * RAD), 2400.5)])
    seen = list(clean)
    for place in range(1800, 1000, -100):
        at = next(n for n in range(place, 0, -1) if seen[n].line == "wheel.a")
        if fault == "merged":
            del seen[at]
        else:
            seen[at] = seen[at]._replace(level=1 - seen[at].level)
    device = encoder()
    device.feed(renumbered(seen))
    device.tick(seen[-1].at_ns + 2 * MS)
    assert device.sample()["count"] == 2400
    assert device.health()["lost_edges"] == (8 if fault == "merged" else 0)
    assert device.health()["illegal"] == (8 if fault == "merged" else 0)


@pytest.mark.parametrize("line", ["wheel.a", "wheel.b"])
@pytest.mark.parametrize("speed", [0.4, 3.0])
def test_a_line_whose_levels_stay_late_does_not_turn_the_wheel_round(line: str, speed: float) -> None:
    """A starved thread shows for a hundred edges the level of the next: the lines seem to go the other way."""
    seen = edges([(0.0, 0.5), (2400 / (speed * RAD), 2400.5)])
    own = [n for n, edge in enumerate(seen) if edge.line == line][300:400]
    for n in own:
        seen[n] = seen[n]._replace(level=1 - seen[n].level)
    device = encoder()
    device.feed(seen)
    device.tick(seen[-1].at_ns + 2 * MS)
    assert device.sample()["count"] == 2400
    assert device.health()["illegal"] == 0


def test_one_edge_is_nothing_to_a_cylinder_but_a_hole_is() -> None:
    clean = edges(turning(3.0))
    one = clean[:3000] + clean[3001:]
    device = Encoder("wheel", CYLINDER)
    assert "Overrun" not in names(device.feed(renumbered(one)))
    assert device.health()["lost_edges"] == 1
    device = Encoder("wheel", CYLINDER)
    assert "Overrun" in names(device.feed(one))


@pytest.mark.parametrize("half", [False, True])
def test_pulses_on_a_line_do_not_shift_the_count(half: bool) -> None:
    clean = edges(turning(2.5))
    seen, rng = list(clean), Random(1)
    for _ in range(6):
        at = rng.randrange(1500, len(seen) - 50)
        edge = seen[at]
        level = next(e.level for e in reversed(seen[:at]) if e.line == "wheel.b")
        pulse = [Edge("wheel.b", 1 - level, edge.at_ns - 90 * US), Edge("wheel.b", level, edge.at_ns - 70 * US)]
        seen[at:at] = pulse[:1] if half else pulse
    device = encoder()
    facts = device.feed(renumbered(seen))
    device.tick(seen[-1].at_ns + 2 * MS)
    assert device.health()["glitches"] == (0 if half else 6)
    assert (int(device.health()["illegal"] or 0) > 0) is half
    assert device.sample()["count"] == sum("index" not in edge.line for edge in clean)
    assert names(facts)[0] == "SpinStarted"


def test_two_lines_queued_in_the_wrong_order_are_put_right() -> None:
    seen = edges(turning(1.5))
    for at in range(100, len(seen) - 1, 97):
        first, second = seen[at : at + 2]
        if first.line != second.line:
            seen[at] = second._replace(at_ns=first.at_ns)
            seen[at + 1] = first._replace(at_ns=first.at_ns - 1)
    device = encoder()
    device.feed(seen)
    assert device.health()["illegal"] == 0


# --- the index (field case 62) ---


def test_case_62a_one_count_short_every_turn_never_adds_up() -> None:
    path = turning(40.0, speed=9.0)
    short = edges(path, turn=TURN - 1)  # the disc has one count less than the config says
    device = encoder()
    facts = device.feed(renumbered(short))
    assert "Doubtful" not in names(facts)
    assert int(device.health()["index_fixes"] or 0) >= 8
    device.tick(short[-1].at_ns + 2 * MS)
    assert apart(device.sample()["position"], (path[-1][1] - 0.5) % (TURN - 1)) <= 5


def test_case_62b_a_turn_with_fifty_edges_too_many_is_marked() -> None:
    """From the second index on it comes 52 counts late: that turn is told, the new place is believed after one more."""
    seen = edges(turning(4.0, start=-9.7))
    index = [edge for edge in seen if "index" in edge.line]
    late = [edge._replace(at_ns=edge.at_ns + 45 * MS) if n >= 2 else edge for n, edge in enumerate(index)]
    seen = sorted([e for e in seen if "index" not in e.line] + late, key=lambda e: e.at_ns)
    device = encoder()
    facts = device.feed(renumbered(seen))
    assert whys(facts) == ["index_fault", "index_missing"]  # one where none was due, and none where one was
    assert device.health()["index_faults"] == 2
    assert device.health()["position"] == "known"


@pytest.mark.parametrize(("lost", "why"), [(3, []), (4, ["noise"]), (20, ["noise"]), (21, ["noise", "noise"])])
def test_case_62_a_turn_with_too_many_impossible_edges_is_a_doubt_and_then_the_end_of_belief(
    lost: int, why: list[str]
) -> None:
    seen = edges(turning(3.0))
    gone = {2600 + 45 * n for n in range(lost)}  # all in the second turn
    device = encoder()
    facts = device.feed(renumbered(edge for n, edge in enumerate(seen) if n not in gone))
    told = [fact for fact in facts if isinstance(fact, Doubtful | DeviceLost | DeviceBack)]
    assert [fact.why for fact in told if not isinstance(fact, DeviceBack)] == why
    assert [type(fact) for fact in told][1:] == ([DeviceLost, DeviceBack] if lost > 20 else [])


def test_case_63_an_index_that_is_read_late_moves_nothing() -> None:
    """50 ms after its stamp at a turn a second: where it was is known no more; the next one is as good."""
    seen = edges(turning(2.1, speed=2 * math.pi))
    marks = [edge for edge in seen if edge.line == "wheel.index"]
    on_time, late = encoder(), encoder()
    on_time.feed(seen)
    for edge in sorted(seen, key=lambda edge: edge.at_ns + 50 * MS * (edge in marks[4:])):
        late.feed([edge])
    assert late.counters == on_time.counters | {"index_seen": 1}
    assert late.health()["late_index"] == len(marks) - 4
    assert late.sample()["position"] == on_time.sample()["position"]


def test_case_62c_a_missing_index_is_a_fault_within_two_turns() -> None:
    seen = [edge for edge in edges(turning(2.0)) if "index" not in edge.line]
    device = encoder()
    assert "index_missing" in whys(device.feed(seen))
    assert device.health()["position"] == "unknown"


def test_case_62d_a_false_index_is_counted_and_not_believed() -> None:
    path = turning(3.0)
    seen = edges(path)
    at = next(n for n, edge in enumerate(seen) if n > 3600 and "index" not in edge.line)
    false = [Edge("wheel.index", 1, seen[at].at_ns - 100 * US), Edge("wheel.index", 0, seen[at].at_ns + 100 * US)]
    seen = renumbered(sorted([*seen, *false], key=lambda e: e.at_ns))
    device = encoder()
    facts = device.feed(seen)
    assert whys(facts) == ["index_fault"]
    assert device.health()["index_faults"] == 1
    device.tick(seen[-1].at_ns + 2 * MS)
    assert device.health()["position"] == "known"  # the next true index agrees with the first
    assert apart(device.sample()["position"], path[-1][1] - 0.5) <= 2


def test_an_index_near_the_place_that_no_lost_edge_explains_leaves_the_position_uncertain() -> None:
    """A false index within the tolerance moves the position by as much: the next one decides."""
    seen = edges(turning(3.1))
    due = [edge.at_ns for edge in seen if edge.line == "wheel.index" and edge.level]
    device = encoder()
    early = due[2] - 3 * MS  # of a turn of two seconds: four counts
    marks = [Edge("wheel.index", 1, early), Edge("wheel.index", 0, early + MS)]
    before = [edge._replace(seq=0) for edge in seen if edge.at_ns < early]
    device.feed(
        [*before, *marks, *(edge._replace(seq=0) for edge in seen if early + MS < edge.at_ns < due[2] - MS // 2)]
    )
    assert device.health()["index_fixes"] == 1
    assert device.health()["position"] == "uncertain"
    device.feed([edge._replace(seq=0) for edge in seen if edge.at_ns > due[2] + 10 * MS])
    assert device.health()["position"] == "known"


def test_a_missing_index_of_a_cylinder_is_counted_and_not_told() -> None:
    seen = [edge for edge in edges(turning(2.0)) if "index" not in edge.line]
    device = Encoder("wheel", CYLINDER)
    assert whys(device.feed(seen)) == []
    assert device.health()["index_faults"] == 1


@pytest.mark.parametrize("dead", ["wheel.a", "wheel.b"])
def test_case_62e_a_dead_channel_is_found_within_15_degrees(dead: str) -> None:
    """E1; nothing is told of the spin any more."""
    path, _ = coast(push([(0.0, 0.3)], 4 * RAD, 0.6), 4 * RAD, 0.22 * RAD, 20.0)
    clean = edges(path)
    cut = clean[3000].at_ns
    seen = renumbered(edge for edge in clean if edge.line != dead or edge.at_ns < cut)
    facts = told(seen)
    lost = next(fact for fact in facts if isinstance(fact, DeviceLost))
    assert lost.why == "dead_channel"
    passed = sum(cut <= edge.at_ns <= lost.at_ns and "index" not in edge.line for edge in clean)
    assert passed / TURN * 360 <= 15
    stops = [fact for fact in facts if isinstance(fact, SpinStopped)]
    assert all(stop.cell is None for stop in stops)


@pytest.mark.parametrize("dead", ["wheel.a", "wheel.b"])
@pytest.mark.parametrize("speed", [0.4, 0.7, 1.0])
def test_a_channel_that_dies_in_a_slow_wheel_is_not_taken_for_trembling(dead: str, speed: float) -> None:
    """E1: a wheel that ran did not stop at once; the standstill would be told with a cell."""
    path, _ = coast(push([(0.0, 0.5)], speed * RAD, 0.6), speed * RAD, 0.05 * RAD, 4.0)
    seen = edges(path)
    half = seen[len(seen) // 2].at_ns
    facts = told([edge for edge in seen if edge.line != dead or edge.at_ns < half])
    lost = next(fact for fact in facts if isinstance(fact, DeviceLost))
    assert lost.why == "dead_channel"
    assert (lost.at_ns - half) / SECOND * speed < 0.26  # 15 degrees


@pytest.mark.parametrize("speed", [2.0, 5.0])
def test_a_channel_that_was_dead_before_the_launch_is_found(speed: float) -> None:
    seen = renumbered(edge for edge in edges(turning(3.0, speed=speed)) if edge.line != "wheel.b")
    facts = encoder().feed(seen)
    assert whys(facts) == ["dead_channel"]
    assert not any(isinstance(fact, SpinStarted) for fact in facts)


def test_case_51_a_wrong_count_of_the_config_is_reported() -> None:
    other = Options(counts_per_turn=2000, cells=50)
    device = Encoder("wheel", other)
    assert "index_fault" in whys(device.feed(edges(turning(3.0))))


# --- trembling (field case 64) ---


@pytest.mark.parametrize("start", [0.2, 0.9, 2.1, 700.4])
def test_case_64_a_trembling_wheel_tells_nothing(start: float) -> None:
    """One count to and fro 200 times a second for a minute, at the index and elsewhere."""
    path = to([(0.0, start - 30)], start, 1.0)
    path += [(1.5 + n * 0.0025, start + 1.05 * (n % 2)) for n in range(24_000)]
    seen = edges(path)
    assert len(seen) > 24_000
    device = encoder()
    assert told(seen, device) == []
    assert abs(device.sample()["count"] - 30) <= 2
    assert device.health()["illegal"] == 0


# --- loss and return ---


def test_a_lost_port_is_told_once_and_the_position_is_forgotten() -> None:
    device = encoder()
    device.opened(0)
    seen = edges(turning(1.5))
    device.feed(seen)
    lost = device.lost(seen[-1].at_ns + MS, "unplugged")
    assert [fact for fact in lost if isinstance(fact, DeviceLost)] == [
        DeviceLost(at_ns=seen[-1].at_ns + MS, source="wheel", device="wheel", why="unplugged")
    ]
    assert device.lost(seen[-1].at_ns + 2 * MS, "unplugged") == []
    assert device.due_ns() is None
    assert device.health()["lost"] == "unplugged"
    back = device.opened(seen[-1].at_ns + SECOND)
    assert back == [DeviceBack(at_ns=seen[-1].at_ns + SECOND, source="wheel", device="wheel")]
    assert device.opened(seen[-1].at_ns + SECOND) == []
    assert device.health()["position"] == "unknown"


def test_an_edge_storm_is_told_and_the_wheel_is_good_again() -> None:
    """50,000 edges a second on both lines at random, then a normal spin."""
    rng = Random(9)
    seen = edges(turning(1.2))
    now, levels = seen[-1].at_ns, {"wheel.a": 0, "wheel.b": 0}
    for _ in range(50_000):
        now += rng.randrange(1, 40_000)
        line = rng.choice(["wheel.a", "wheel.b"])
        levels[line] ^= 1
        seen.append(Edge(line, levels[line], now))
    good = edges(launch([(now / SECOND + 6, 0.3)], 9000), start_ns=0)
    for line, level in levels.items():  # behind the storm the lines stand as the wheel stands
        if level == next(edge.level for edge in good if edge.line == line):
            now += MS
            seen.append(Edge(line, 1 - level, now))
    device = encoder()
    facts = device.feed([edge._replace(seq=0) for edge in seen])
    assert set(whys(facts)) & {"noise", "dead_channel", "edges_ceased"}
    facts = device.tick(now + LATER)
    facts = device.feed([edge._replace(seq=0) for edge in good]) + device.tick(good[-1].at_ns + LATER)
    assert [name for name in names(facts) if name != "DeviceBack"] == ["SpinStarted", "SpinSlowed", "SpinStopped"]
    assert device.health()["lost"] is None
    stopped = next(fact for fact in facts if isinstance(fact, SpinStopped))
    assert abs(stopped.travel - 9000) <= 1


def test_health_counts_and_names_the_last_fact() -> None:
    device = encoder()
    facts = told(edges(launch([(0.0, 0.3)], 7300)), device)
    health = device.health()
    assert health["last_fact_ns"] == facts[-1].at_ns
    assert health["position"] == "known"
    assert health["edges"] == len(edges(launch([(0.0, 0.3)], 7300)))
    assert device.sample()["mrad_s"] == 0
