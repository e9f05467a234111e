"""The models against the anchors of the physics: what a real wheel, rotor and ball are known to do."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from statistics import median, quantiles

import pytest

from hil.physics.basin import roll_ball
from hil.physics.motion import TURN, Motion, drawn_spin
from hil.physics.plate import Plate
from hil.physics.roulette import RimModel, Rotor, throw_ball
from hil.physics.wheel import FortuneWheel, Launch, Spin, Touch
from tests.bench.figures import percentile


def spins(count: int, launch: Launch, seed: int = 1) -> list[Spin]:
    wheel, rng = FortuneWheel(seed=seed), Random(seed)
    return [wheel.spin(launch, rng) for _ in range(count)]


def test_a_launch_of_four_radians_a_second_makes_about_five_turns_in_a_quarter_of_a_minute() -> None:
    runs = spins(12, Launch(sense=1, speed=4.2))
    turns = [run.travel / TURN for run in runs]
    assert 4.0 < min(turns) < max(turns) < 7.0
    assert 12 < median(run.rest_s - run.released_s for run in runs) < 20


def test_the_final_rebound_is_never_longer_than_a_pitch_and_a_half_and_often_there() -> None:
    runs = spins(40, Launch(sense=1, speed=3.0))
    back = [math.degrees(max(run.motion.angles) - run.motion.angles[-1]) for run in runs]
    assert max(back) < 10.4
    assert sum(angle > 1 for angle in back) > 25


def test_the_wheel_comes_to_rest_hanging_free_or_leaning_slightly_on_a_peg() -> None:
    assert all(abs(math.degrees(run.lean)) < 0.4 for run in spins(40, Launch(sense=-1, speed=3.0)))


def test_a_season_of_spins_has_the_statistics_of_the_physics() -> None:
    """Physics README 1.2: 1, 50 and 99 % of a thousand spins; launches and wheels as in section 6."""
    rng, runs = Random(7), []
    for wheel in (FortuneWheel(seed=seed) for seed in range(15)):
        for _ in range(15):
            how = Launch(
                sense=1,
                speed=rng.uniform(2.5, 6.0),
                push_s=rng.uniform(0.4, 1.0),
                wind_up=max(0, rng.uniform(-0.1, 0.6)),
            )
            runs.append((how.speed, wheel.spin(how, rng)))
    seconds = [run.rest_s - run.released_s for _, run in runs]
    turns = [(run.motion.angles[-1] - run.motion.at(run.released_s)) / TURN for _, run in runs]
    back = [math.degrees(max(run.motion.angles) - run.motion.angles[-1]) for _, run in runs]
    slowing = [speed / rest for (speed, _), rest in zip(runs, seconds, strict=True)]
    lean = [abs(math.degrees(run.lean)) for _, run in runs]

    def quantiles(values: list[float]) -> list[float]:
        return [percentile(values, share) for share in (0.01, 0.5, 0.99)]

    assert quantiles(seconds) == pytest.approx([12.0, 19.4, 26.6], rel=0.08)
    assert quantiles(turns) == pytest.approx([2.0, 5.5, 10.4], rel=0.1)
    assert quantiles(slowing) == pytest.approx([0.18, 0.22, 0.26], abs=0.015)
    assert percentile(back, 0.5) == pytest.approx(6.0, abs=1.0)
    assert max(back) <= 9.4
    assert 0.80 < sum(angle > 0.3 for angle in back) / len(runs) < 0.95  # 88 % rebound off a peg
    assert 0.02 < sum(angle > 0 for angle in lean) / len(runs) < 0.12  # 7.5 % lean on one
    assert max(lean) < 0.3
    assert 0.08 < sum(turn < 3 for turn in turns) / len(runs) < 0.22


def test_travel_counts_from_the_last_reversal_and_leaves_the_wind_up_out() -> None:
    straight = spins(1, Launch(sense=1, speed=4.0))[0]
    wound = spins(1, Launch(sense=1, speed=4.0, wind_up=0.6))[0]
    low = min(wound.motion.angles)
    assert wound.motion.angles[0] - low == pytest.approx(0.6, abs=1e-6)
    assert wound.travel == pytest.approx(max(wound.motion.angles) - low)
    assert wound.travel == pytest.approx(straight.travel, rel=0.15)


def test_a_hand_of_ten_newtons_for_half_a_second_takes_the_speed_its_impulse_says() -> None:
    touch = Touch(newtons=10, seconds=0.5, after_s=2.0)
    free = spins(1, Launch(sense=1, speed=5.0))[0]
    braked = spins(1, Launch(sense=1, speed=5.0, touches=(touch,)))[0]
    assert braked.touched_s is not None
    assert braked.touched_s - braked.released_s == pytest.approx(2.0, abs=0.01)

    def speed(run: Spin, at: float) -> float:
        return (run.motion.at(at + 0.1) - run.motion.at(at - 0.1)) / 0.2

    loss = speed(free, free.released_s + 2.8) - speed(braked, braked.released_s + 2.8)
    assert loss == pytest.approx(10 * 0.75 * 0.47 / 8.0, rel=0.25)


def test_a_gripping_hand_stops_the_wheel_in_under_two_seconds() -> None:
    held = spins(1, Launch(sense=1, speed=4.0, touches=(Touch(newtons=60, seconds=5, after_s=1.0),)))[0]
    assert held.touched_s is not None
    assert held.rest_s - held.touched_s < 2.0


def test_the_same_seed_gives_the_same_spin_and_another_seed_another() -> None:
    launch = Launch(sense=1, speed=4.0)
    first, again, other = spins(1, launch)[0], spins(1, launch)[0], spins(1, launch, seed=2)[0]
    assert first.motion.angles == again.motion.angles
    assert first.motion.angles != other.motion.angles


def test_a_drawn_spin_covers_exactly_what_is_asked_and_ends_at_rest() -> None:
    motion = drawn_spin(1.0, -3 * TURN, 0.7)
    assert motion.angles[-1] == pytest.approx(1.0 - 3 * TURN, abs=1e-12)
    assert min(motion.angles) >= motion.angles[-1] - 1e-9
    last = (motion.angles[-1] - motion.angles[-6]) / (motion.times[-1] - motion.times[-6])
    assert abs(last) < 0.01


def test_crossings_are_exact_on_a_straight_line_and_signed_by_their_sense() -> None:
    line = Motion()
    for time, angle in ((0.0, 0.5), (1.0, 2.5), (2.0, 0.5)):
        line.add(time, angle)
    assert list(line.crossings(1.0, 0.0)) == [(0.25, 1), (0.75, 1), (1.25, -1), (1.75, -1)]


def test_the_ball_agrees_with_the_closed_form_of_its_equation() -> None:
    # level rim: t(w0 -> wc) = [atan(w0 s) - atan(wc s)] / sqrt(a b), s = sqrt(a/b); the skid only shortens it
    a, b, leaves, w0 = 0.009, 0.060, 3.0, 10.0
    s = math.sqrt(a / b)
    exact = (math.atan(w0 * s) - math.atan(leaves * s)) / math.sqrt(a * b)
    rng = Random(4)
    times = [throw_ball(w0, 1, rng).dropped_s for _ in range(30)]
    assert 0.80 * exact < median(times) < 1.02 * exact


def test_the_passages_of_a_ball_on_a_level_rim_are_where_the_closed_form_has_them() -> None:
    a, b = 0.009, 0.060
    rim = RimModel(air_spread=0, rolling_spread=0, leaves_spread=0, jostle=0)
    passages = [one for one in throw_ball(14.0, -1, Random(6), rim).passages(1.0) if one[0] > 4]  # it rolls by then
    assert len(passages) > 5
    for (before_s, before), (after_s, after) in pairwise(passages):
        assert (after**2 + b / a) == pytest.approx((before**2 + b / a) * math.exp(-2 * a * TURN), rel=1e-6)
        s = math.sqrt(a / b)
        lap = (math.atan(before * s) - math.atan(after * s)) / math.sqrt(a * b)
        assert after_s - before_s == pytest.approx(lap, abs=5e-6)  # the speeds are interpolated


def test_on_a_tilted_rim_the_ball_drops_where_it_runs_uphill() -> None:
    rng = Random(7)
    tilted = RimModel(tilt_rad=math.radians(0.4), tilt_at=0.0)
    at = [throw_ball(9.0, sense, rng, tilted) for sense in (1, -1) for _ in range(60)]
    places = [math.cos(throw.angles[-1]) for throw in at]
    assert sum(place > 0 for place in places) > 80
    brute = at[0]
    assert brute.turns == pytest.approx((brute.angles[-1] - brute.angles[0]) / TURN)


def test_the_ball_is_called_some_seconds_before_it_drops_and_settles_after() -> None:
    rng = Random(5)
    for _ in range(20):
        throw = throw_ball(6.0, -1, rng)
        called = throw.lap_slower_than(1.43)
        assert throw.first_lap_s < called < throw.dropped_s < throw.on_rotor_s < throw.settled_s
        assert 3.5 < throw.dropped_s - called < 9.0
        assert list(throw.times) == sorted(throw.times)


def test_the_rotor_runs_down_slowly_and_turns_back_when_the_hand_says_so() -> None:
    rotor, motion = Rotor(), Motion()
    motion.add(0.0, 0.0)
    released = rotor.actuate(motion, 0.5, 1, 2.5)
    rotor.coast(motion, released, released + 20)
    assert 2.2 < rotor.speed < 2.4
    forward = motion.angles[-1]
    released = rotor.actuate(motion, motion.ends, -1, 2.5)
    rotor.coast(motion, released, released + 5)
    assert rotor.speed < -2.3
    assert motion.angles[-1] < forward
    assert list(motion.times) == sorted(motion.times)


def test_a_ball_in_the_basin_rolls_for_five_to_sixteen_seconds_and_calls_at_two_to_ten_cups() -> None:
    rng = Random(5)
    rolls = [roll_ball(18, rng.uniform(2.2, 4.0) / 0.72, 1, rng) for _ in range(1000)]
    rest, called = (
        quantiles([roll.settled_s for roll in rolls], n=100),
        quantiles([len({visit.cell for visit in roll.visits}) for roll in rolls], n=100),
    )
    assert [rest[0], rest[49], rest[98]] == pytest.approx([4.9, 9.6, 16], rel=0.1)
    assert (called[0], called[98]) == pytest.approx((2, 10), abs=1.5)
    for roll in rolls:
        assert roll.dropped_s == roll.rim.ends < roll.visits[0].begins
        assert all(before.ends < after.begins for before, after in pairwise(roll.visits))
        assert roll.visits[-1].ends == math.inf


def test_a_wanted_cup_is_the_same_roll_in_a_turned_basin() -> None:
    free, wanted = (roll_ball(18, 3.3, 1, Random(2), cell=cell) for cell in (None, 4))
    assert (wanted.cell, wanted.settled_s) == (4, free.settled_s)
    assert {(b.cell - a.cell) % 18 for a, b in zip(free.visits, wanted.visits, strict=True)} == {(4 - free.cell) % 18}


def test_a_plate_whirls_and_has_its_ball_in_a_cell_after_some_fifteen_seconds() -> None:
    rng, plate = Random(3), Plate()
    for n in range(200):
        sense, before = (-1) ** n, plate.angle
        whirl = plate.whirl(sense, rng.uniform(6, 14), rng, cell=n % 27)
        assert 9 < whirl.rest_s < 19
        assert 8 < whirl.settled_s < whirl.rest_s + 4
        assert 2.5 < sense * (plate.angle - before) / TURN < 10
        assert whirl.visits[-1].cell == n % 27
        speed = (whirl.motion.at(whirl.released_s + 0.01) - whirl.motion.at(whirl.released_s)) / 0.01
        assert 5.9 < sense * speed < 14
