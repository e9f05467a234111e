"""From edges to spins: start, slowing, obstruction, standstill, travel and cell. The wheel is that of `signals`."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import TypeVar

import pytest

from drivers.base import Edge
from drivers.encoder.decoder import Encoder
from drivers.encoder.options import Options
from rules.facts import (
    DeviceBack,
    DeviceLost,
    Direction,
    Doubtful,
    Fact,
    SpinObstructed,
    SpinSlowed,
    SpinStarted,
    SpinStopped,
)
from tests.drivers.signals import (
    MS,
    RAD,
    SECOND,
    TURN,
    Path,
    Wheel,
    coast,
    edges,
    launch,
    push,
    rebound,
    renumbered,
    still,
    to,
)

PITCH = TURN / 52
ROUE = Options(counts_per_turn=TURN, cells=52)
CYLINDER = Options(counts_per_turn=TURN, cells=37, pegs=False)
F = TypeVar("F", bound=Fact)


def told(path: Path, options: Options = ROUE) -> list[Fact]:
    """Everything that is told of this path and of the quiet behind it."""
    encoder = Encoder("wheel", options)
    seen = edges(path)
    return encoder.feed(seen) + encoder.tick(seen[-1].at_ns + 5 * SECOND)


def names(facts: list[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def only(facts: list[Fact], kind: type[F]) -> F:
    (fact,) = (fact for fact in facts if isinstance(fact, kind))
    return fact


def at(seconds: float) -> int:
    """The instant of this time of a path."""
    return SECOND + round(seconds * SECOND)


SPIN = ["SpinStarted", "SpinSlowed", "SpinStopped"]


# --- travel and direction ---


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("turns", [2.98, 2.9996, 3.0, 4.5])
def test_travel_is_counted_exactly_in_both_senses(sense: int, turns: float) -> None:
    counts = round(turns * TURN)
    facts = told(launch([(0.0, 0.5)], sense * counts))
    assert names(facts) == SPIN
    stopped = only(facts, SpinStopped)
    assert (stopped.travel, stopped.per_turn) == (counts, TURN)
    assert (stopped.travel >= 3 * stopped.per_turn) is (turns >= 3)
    assert stopped.direction == only(facts, SpinStarted).direction == (Direction.CW if sense > 0 else Direction.CCW)


def test_the_wind_up_is_neither_a_start_nor_travel() -> None:
    """R-RC-08: travel counts from the last reversal before the launch."""
    path = to([(0.0, 100.5)], 100.5 - math.radians(34) * RAD, 0.6)
    facts = told(launch(path, 7200))
    assert names(facts) == SPIN
    assert only(facts, SpinStarted).direction is Direction.CW
    assert only(facts, SpinStopped).travel == 7200


@pytest.mark.parametrize("sense", [1, -1])
def test_the_rebound_is_neither_a_reversal_nor_a_turn(sense: int) -> None:
    """W3: at most 9.3 degrees back, and half of it forward again."""
    path = rebound(launch([(0.0, 0.5)], sense * 7199), -sense * math.radians(9.3) * RAD)
    facts = told(path)
    assert names(facts) == SPIN
    assert only(facts, SpinStopped).travel == 7199


def test_a_nudge_by_hand_is_no_spin() -> None:
    assert told(to([(0.0, 0.5)], 89 / 360 * TURN, 0.4)) == []
    assert told(to([(0.0, 0.5)], 300 / 360 * TURN, 9.0)) == []  # far, but slower than 1 rad/s


def test_rest_before_the_launch_is_not_travel() -> None:
    path = still(to([(0.0, 0.5)], 200.5, 2.0), 2.0)
    assert only(told(launch(path, 7200)), SpinStopped).travel == 7200


def test_the_start_is_told_when_90_degrees_are_reached() -> None:
    path = launch([(0.0, 0.5)], 7200)
    started = only(told(path), SpinStarted)
    reached = next(edge.at_ns for n, edge in enumerate(e for e in edges(path) if "index" not in e.line) if n == 599)
    assert started.at_ns == reached


@pytest.mark.parametrize("sense", [1, -1])
def test_a_wheel_that_turned_already_when_the_watch_began_is_told_as_not_observed(sense: int) -> None:
    """A restart or a reopened port in mid-spin: what is counted then is no whole draw."""
    seen = edges(launch([(0.0, 0.5)], sense * 9600))
    encoder = Encoder("wheel", ROUE)
    half = renumbered(seen[len(seen) // 2 :])
    facts = encoder.opened(half[0].at_ns - 10 * MS) + encoder.feed(half) + encoder.tick(half[-1].at_ns + 5 * SECOND)
    assert names(facts)[:2] == ["SpinStarted", "Doubtful"]
    assert only(facts, SpinStarted).found
    assert only(facts, Doubtful).why == "not_observed"
    assert only(facts, SpinStopped).travel < 3 * TURN


def test_a_cylinder_that_turned_already_is_found_and_its_reversal_is_seen() -> None:
    """A cylinder turns from one coup to the next: a restart finds it so, and that is nobody's actuation."""
    turning, speed = coast(push([(0.0, 0.5)], 2.5 * RAD, 0.8), 2.5 * RAD, 0.02 * RAD, 20.0)
    for then in (-2.5 * RAD, 3.0 * RAD):  # reversed, or pushed again
        path, _ = coast(push(list(turning), then, 0.8, before=speed), then, 0.02 * RAD, 20.0)
        seen = edges(path)
        late = renumbered(seen[len(seen) // 4 :])
        encoder = Encoder("wheel", CYLINDER)
        facts = encoder.opened(late[0].at_ns - 10 * MS) + encoder.feed(late)
        assert [fact.found for fact in facts if isinstance(fact, SpinStarted)] == [True, False]


@pytest.mark.parametrize("before_ns", [1 * MS, 2 * SECOND])
def test_a_launch_that_was_watched_is_observed_however_early_it_came(before_ns: int) -> None:
    for options in (ROUE, CYLINDER):
        seen = edges(launch([(0.0, 0.5)], 9600))
        encoder = Encoder("wheel", options)
        facts = encoder.opened(seen[0].at_ns - before_ns) + encoder.feed(seen)
        assert names(facts + encoder.tick(seen[-1].at_ns + 5 * SECOND)) == SPIN


def test_the_same_direction_twice_and_a_reversal_without_rest() -> None:
    path = still(launch([(0.0, 0.5)], 7300), 2.0)
    path = still(launch(path, 7300), 2.0)
    path, speed = coast(push(path, -4 * RAD, 0.6), -4 * RAD, 0.22 * RAD, 2.0)
    path, _ = coast(path, speed, 12 * RAD, 5.0)  # the croupier's hand stops it
    facts = told(launch(path, 7300))
    assert [fact.direction.value for fact in facts if isinstance(fact, SpinStarted)] == ["cw", "cw", "ccw", "cw"]


# --- slowing and standstill ---


def test_slowing_is_told_a_second_after_the_peak_is_lost() -> None:
    path = push([(0.0, 0.5)], 4 * RAD, 0.7)
    released = path[-1][0]
    path, _ = coast(path, 4 * RAD, 0.22 * RAD, math.inf)
    slowed = only(told(path), SpinSlowed)
    assert at(released + 0.3) < slowed.at_ns < at(released + 2.5)


@pytest.mark.parametrize("pause", [0.3, 0.6, 0.9])
def test_slowing_is_never_told_between_two_pushes(pause: float) -> None:
    """W4: pushes less than a second apart are one launch."""
    path, speed = coast(push([(0.0, 0.5)], 3 * RAD, 0.6), 3 * RAD, 0.22 * RAD, pause)
    path = push(path, 4.5 * RAD, 0.4, before=speed)
    released = path[-1][0]
    facts = told(coast(path, 4.5 * RAD, 0.22 * RAD, math.inf)[0])
    assert names(facts) == SPIN
    assert at(released + 0.3) < only(facts, SpinSlowed).at_ns < at(released + 2.5)


def test_a_wheel_that_was_stopped_at_once_has_not_slowed() -> None:
    path, _ = coast(push([(0.0, 0.5)], 3 * RAD, 1.2), 3 * RAD, 40 * RAD, 5.0)
    assert names(told(path)) == ["SpinStarted", "SpinStopped"]


@pytest.mark.parametrize("stop_ms", [1500, 2500])
def test_standstill_is_told_so_long_after_the_last_edge(stop_ms: int) -> None:
    path = rebound(launch([(0.0, 0.5)], 7200), -30)
    facts = told(path, Options(counts_per_turn=TURN, cells=52, stop_ms=stop_ms))
    assert only(facts, SpinStopped).at_ns == edges(path)[-1].at_ns + stop_ms * MS


def test_trembling_does_not_put_the_standstill_off() -> None:
    path = launch([(0.0, 0.5)], 7200)
    rest_s, rest = path[-1]
    last = edges(path)[-1].at_ns
    for n in range(2000):  # one count to and fro, 200 times a second
        path.append((rest_s + 0.1 + n * 0.0025, rest + 0.9 * (n % 2)))
    stopped = only(told(path), SpinStopped)
    assert last + 1500 * MS <= stopped.at_ns < last + 1700 * MS
    assert stopped.travel == 7201


# --- cells ---


def cell_after(path: Path, options: Options = ROUE) -> tuple[int | None, int | None]:
    stopped = only(told(path), SpinStopped) if options is ROUE else only(told(path, options), SpinStopped)
    return stopped.cell, stopped.or_cell


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize(
    ("rest", "behind", "eye"),
    [
        (0.60, 0, False),  # between two pegs
        (0.05, -1, False),  # past the touch, not yet snapped over
        (0.14, -1, True),  # 1.0 degrees behind the touch: a free wheel does not lean so far
        (0.20, 0, True),  # nor does it come to rest at 1.4 unless this peg snaps early, or stands elsewhere by 0.3
        (0.24, 0, True),
        (0.28, 0, True),  # just beyond the snap
        (0.40, 0, False),
    ],
)
def test_the_marker_snaps_behind_the_touch(sense: int, rest: float, behind: int, eye: bool) -> None:
    """Peg 10 (or 9 against it) touched and passed by `rest` of a pitch, coming from far."""
    if sense > 0:
        end, beyond = (10 + rest) * PITCH + 3 * TURN, 10
        cell = beyond + behind
    else:
        end, beyond = (10 - rest) * PITCH - 3 * TURN, 9
        cell = beyond - behind
    found, other = cell_after(launch([(0.0, 0.5)], end - 0.5))
    assert found == cell
    if eye:
        assert other in (cell - 1, cell + 1)


def test_a_rebound_over_a_peg_is_seen() -> None:
    """The marker snapped back over the peg that it had passed: the angle alone would say so too late."""
    path = rebound(launch([(0.0, 0.5)], 3 * TURN + 10.5 * PITCH - 0.5), 0)
    assert cell_after(path) == (10, None)
    path = launch([(0.0, 0.5)], 3 * TURN + 10.4 * PITCH - 0.5)
    back = to(path[:], path[-1][1] - 0.75 * PITCH, 0.6)  # to 9.65: 0.35 of a pitch behind peg 10, it snapped back
    assert cell_after(back)[0] == 9
    back = to(path[:], path[-1][1] - 0.55 * PITCH, 0.6)  # to 9.85: still leaning on peg 10 from behind
    assert cell_after(back)[0] == 10


def test_the_first_cell_is_where_the_config_says() -> None:
    path = launch([(0.0, 0.5)], 3 * TURN + 10.6 * PITCH - 0.5)
    moved = Options(counts_per_turn=TURN, cells=52, first_cell_mdeg=round(2 * 360_000 / 52))
    assert cell_after(path, moved) == (8, None)


def test_swapped_lines_turn_the_other_way_and_find_the_same_cell() -> None:
    path = launch([(0.0, 0.5)], -(3 * TURN + 10.4 * PITCH))
    mirrored = [(time, 3.0 - counts) for time, counts in path]  # A and B swapped: the signal of the other sense
    other = Options(counts_per_turn=TURN, cells=52, direction="ccw")
    assert only(told(mirrored, other), SpinStopped).direction is Direction.CCW
    assert cell_after(mirrored, other)[0] == cell_after(path)[0]


def test_no_cell_before_the_first_index() -> None:
    """Field case 69: unknown is not zero."""
    path = launch([(0.0, 300.5)], 2000)
    assert cell_after(path) == (None, None)


def test_the_cell_is_right_where_the_wheel_rests_by_itself() -> None:
    """W6 and W7 in little: pegs, rebound and all; nothing natural is an obstruction."""
    wheel, encoder = Wheel(seed=7), Encoder("wheel", ROUE)
    path: Path = [(0.0, wheel.angle * RAD)]
    rests, turned = [], []
    for n in range(8):
        start = len(path) - 1
        wheel.spin(path, (4.4, -3.2, 2.6, -5.1, 3.7, -4.8, 3.1, -2.9)[n])
        sense = 1 if n % 2 == 0 else -1
        counts = [sense * counts for _, counts in path[start:]]
        turned.append(math.floor(max(counts)) - math.floor(counts[0]))
        rests.append(wheel.gap % 52)
        still(path, 3.0)
    seen = edges(path)
    facts = encoder.feed(seen) + encoder.tick(seen[-1].at_ns + 5 * SECOND)
    assert names(facts) == SPIN * 8
    stops = [fact for fact in facts if isinstance(fact, SpinStopped)]
    assert [stop.cell for stop in stops] == rests
    assert all(abs(stop.travel - truth) <= 1 for stop, truth in zip(stops, turned, strict=True))
    assert encoder.sample()["learned"]["spins"] == 8


# --- obstruction ---


def experienced() -> tuple[Encoder, Wheel, Path]:
    """A decoder that has learned from six good spins, its wheel, and the path so far."""
    wheel, encoder = Wheel(seed=3), Encoder("wheel", ROUE)
    path: Path = [(0.0, wheel.angle * RAD)]
    for speed in (3.1, -4.0, 3.6, -2.9, 4.8, -3.5):
        still(wheel.spin(path, speed)[0], 3.0)
    seen = edges(path)
    encoder.feed(seen)
    encoder.tick(seen[-1].at_ns + 3 * SECOND)
    return encoder, wheel, path


@pytest.fixture(scope="module")
def learned() -> str:
    """Snapshot and wheel of `experienced`, made once."""
    encoder, wheel, path = experienced()
    return json.dumps({"snapshot": encoder.snapshot(), "angle": wheel.angle, "gap": wheel.gap, "last": path[-1]})


def touched(learned: str, speed: float, touch: tuple[float, float, float] | None) -> tuple[list[Fact], Path]:
    """What the experienced decoder tells of one more spin."""
    state = json.loads(learned)
    encoder, wheel = Encoder("wheel", ROUE), Wheel(seed=11)
    encoder.restore(state["snapshot"])
    wheel.angle, wheel.gap = state["angle"], state["gap"]
    path = wheel.spin([(state["last"][0], state["last"][1])], speed, touch)[0]
    seen = [edge._replace(seq=0) for edge in edges(path)]
    return encoder.feed(seen) + encoder.tick(seen[-1].at_ns + 5 * SECOND), path


@pytest.mark.parametrize(
    ("newtons", "seconds", "speed"),
    [(10.0, 0.2, 2.5), (10.0, 0.2, 1.2), (5.0, 0.4, 1.8), (40.0, 5.0, 2.0), (40.0, 5.0, 0.9)],
)
def test_a_touch_is_seen(learned: str, newtons: float, seconds: float, speed: float) -> None:
    """W8: 2 N.s, or 5 N for 0.3 s, above 25 % of the launch speed."""
    facts, path = touched(learned, 4.0, (newtons, seconds, speed))
    assert only(facts, SpinObstructed).why in ("brake", "late")
    slow = next(
        time for (before, a), (time, b) in pairwise(path)
        if time > path[0][0] + 0.8 and 0 < (b - a) / RAD / (time - before) < speed
    )  # fmt: skip
    assert only(facts, SpinObstructed).at_ns > at(slow)
    assert names(facts)[-1] == "SpinStopped"


def test_a_push_after_the_slowing_is_an_obstruction(learned: str) -> None:
    facts, _ = touched(learned, 4.0, (-10.0, 0.3, 2.5))
    assert only(facts, SpinObstructed).why == "push"


def test_a_hand_that_stops_the_wheel_between_its_last_pegs_is_seen_at_the_stop(learned: str) -> None:
    facts, _ = touched(learned, 4.0, (40.0, 9.0, 0.58))
    assert only(facts, SpinObstructed).why == "late"


def test_nothing_is_obstructed_when_nobody_touches(learned: str) -> None:
    for speed in (2.6, 3.3, -4.1, 5.4):
        assert names(touched(learned, speed, None)[0]) == SPIN


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("touch", [(30.0, 0.6, 2.5), (10.0, 0.2, 2.5), (10.0, 0.2, 1.4), (5.0, 0.6, 1.8)])
def test_a_touch_of_an_unknown_wheel_is_seen_too(touch: tuple[float, float, float], seed: int) -> None:
    """The first coup of a new table: the spin itself tells what is natural."""
    wheel = Wheel(seed=seed)
    path = wheel.spin([(0.0, wheel.angle * RAD)], 4.5, touch)[0]
    assert only(told(path), SpinObstructed).why == "brake"


@pytest.mark.parametrize("seed", range(5))
def test_an_unknown_wheel_that_nobody_touches_is_not_obstructed(seed: int) -> None:
    wheel = Wheel(seed=seed)
    for speed in (2.8, 4.5, 6.0):
        assert names(told(wheel.spin([(0.0, wheel.angle * RAD)], speed)[0])) == SPIN


@pytest.mark.parametrize("drag", [0.1, 0.22, 0.6, 1.2])
def test_any_even_run_out_is_natural(drag: float) -> None:
    assert names(told(launch([(0.0, 0.5)], 9000, drag=drag * RAD))) == SPIN


@pytest.mark.parametrize(("lost", "spins"), [(1, 1), (9, 0)])
def test_a_spin_with_a_lost_edge_teaches_and_one_with_many_does_not(lost: int, spins: int) -> None:
    """An edge in twenty thousand is lost at a good installation (L1); a fifth of all spins would be thrown away."""
    seen = edges(Wheel(5).spin([(0.0, 100.5)], 4.0)[0])
    gone = {len(seen) // 2 + 300 * n for n in range(lost)}
    encoder = Encoder("wheel", ROUE)
    encoder.feed(renumbered(edge for n, edge in enumerate(seen) if n not in gone))
    encoder.tick(seen[-1].at_ns + 5 * SECOND)
    assert encoder.sample()["learned"]["spins"] == spins


def test_what_was_learned_survives_without_the_rest_of_the_state(learned: str) -> None:
    state = json.loads(learned)["snapshot"]
    encoder = Encoder("wheel", ROUE)
    encoder.restore({"learned": state["learned"]})
    assert encoder.sample()["learned"]["spins"] == 6
    assert encoder.health()["position"] == "unknown"


# --- a cylinder ---


def test_a_cylinder_tells_neither_cell_nor_obstruction() -> None:
    path, speed = coast(push([(0.0, 0.5)], 3 * RAD, 0.6), 3 * RAD, 0.01 * RAD, 20.0)
    path, _ = coast(path, speed, 8 * RAD, math.inf)
    facts = told(path, CYLINDER)
    assert names(facts) == SPIN
    assert only(facts, SpinStopped).cell is None


def test_a_slow_cylinder_is_heard() -> None:
    path, _ = coast(push([(0.0, 0.5)], 0.85 * RAD, 1.0), 0.85 * RAD, 0.005 * RAD, 10.0)
    assert names(told(path, CYLINDER))[:1] == ["SpinStarted"]
    assert names(told(path))[:1] != ["SpinStarted"]


def test_a_cylinder_pushed_again_in_the_same_sense_was_actuated_again() -> None:
    """R-RF-09: same direction twice is seen on a rotor that never stops."""
    path, speed = coast(push([(0.0, 0.5)], 2.5 * RAD, 0.8), 2.5 * RAD, 0.02 * RAD, 25.0)
    path = push(path, 3.0 * RAD, 0.5, before=speed)
    path, _ = coast(path, 3.0 * RAD, 0.02 * RAD, 20.0)
    facts = told(path, CYLINDER)
    starts = [fact.direction.value for fact in facts if isinstance(fact, SpinStarted)]
    assert starts == ["cw", "cw"]


def test_a_ball_that_falls_into_the_cylinder_is_no_push() -> None:
    path, speed = coast(push([(0.0, 0.5)], 2.5 * RAD, 0.8), 2.5 * RAD, 0.02 * RAD, 15.0)
    path = push(path, speed * 1.01, 0.3, before=speed)  # a few grams at speed: one per cent
    path, _ = coast(path, speed * 1.01, 0.02 * RAD, 15.0)
    assert names(Encoder("wheel", CYLINDER).feed(edges(path))) == ["SpinStarted", "SpinSlowed"]


# --- cable ---


def test_a_cable_out_in_mid_spin_is_a_lost_device_and_not_a_standstill() -> None:
    path, speed = coast(push([(0.0, 0.5)], 4 * RAD, 0.7), 4 * RAD, 0.22 * RAD, 4.0)
    seen = edges(path)
    encoder = Encoder("wheel", ROUE)
    facts = encoder.feed(seen)
    assert names(facts) == ["SpinStarted", "SpinSlowed"]
    facts = encoder.tick(seen[-1].at_ns + 5 * SECOND)
    assert facts == [DeviceLost(at_ns=seen[-1].at_ns + 250 * MS, source="wheel", device="wheel", why="edges_ceased")]
    assert encoder.health()["position"] == "unknown"

    # Plugged in again while the wheel still turns: the same spin goes on, and the device is back after an index.
    out_s = path[-1][0]
    coast(path, speed, 0.22 * RAD, math.inf)
    later = [edge._replace(seq=0) for edge in edges(path) if edge.at_ns > at(out_s + 3)]
    facts = encoder.feed(later) + encoder.tick(later[-1].at_ns + 5 * SECOND)
    assert names(facts) == ["DeviceBack", "SpinStopped"]
    assert only(facts, SpinStopped).travel < abs(path[-1][1])  # what nobody saw is not counted
    assert only(facts, DeviceBack).device == "wheel"


def test_a_launch_after_a_loss_is_a_new_spin() -> None:
    path, _ = coast(push([(0.0, 0.5)], 4 * RAD, 0.7), 4 * RAD, 0.22 * RAD, 4.0)
    seen = edges(path)
    encoder = Encoder("wheel", ROUE)
    encoder.feed(seen)
    encoder.tick(seen[-1].at_ns + 5 * SECOND)
    path = still([(path[-1][0], 1234.5)], 9.0)
    later = renumbered(edges(launch(path, 9000)))
    facts = encoder.feed([edge._replace(seq=0) for edge in later]) + encoder.tick(later[-1].at_ns + 5 * SECOND)
    assert names(facts) == ["SpinStarted", "DeviceBack", "SpinSlowed", "SpinStopped"]


@pytest.mark.parametrize("speed", [0.7, 1.0, 2.0, 5.0])
def test_a_hand_that_stops_the_wheel_is_not_a_cable(speed: float) -> None:
    path, now = coast(push([(0.0, 0.5)], (speed + 0.5) * RAD, 0.7), (speed + 0.5) * RAD, 0.25 * RAD, 2.0)
    path, _ = coast(path, now, 40 * RAD, math.inf)
    assert "DeviceLost" not in names(told(path))


def test_a_cylinder_caught_dead_has_stopped_and_one_whose_cable_parts_is_lost() -> None:
    path, _ = coast(push([(0.0, 0.5)], 3 * RAD, 0.6), 3 * RAD, 0.01 * RAD, 4.3)
    seen = edges(path)
    facts = told(path, CYLINDER)
    assert names(facts) == ["SpinStarted", "SpinStopped"]
    encoder = Encoder("wheel", CYLINDER)
    last = seen[-1]
    parting = [  # open inputs are pulled up, one pin after the other
        Edge(line, 1, last.at_ns + 40_000 * n)
        for n, line in enumerate(("wheel.index", "wheel.b", "wheel.a"), 1)
        if next(edge.level for edge in reversed(seen) if edge.line == line) == 0
    ]
    encoder.feed([*seen, *parting])
    assert [fact.why for fact in encoder.tick(last.at_ns + SECOND) if isinstance(fact, DeviceLost)] == ["edges_ceased"]
