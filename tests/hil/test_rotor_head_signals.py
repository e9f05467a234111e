"""The simulated head: against the records of the document, and against where marks and ball are on the rotor."""

from __future__ import annotations

import math
from random import Random

import pytest

from hil.devices.lines import Pulse
from hil.devices.rotor_head import LEVELS, RotorHead
from hil.physics.basin import Visit
from hil.physics.motion import TURN, Motion, move_by_hand
from tests.drivers.test_rotor_head import document

SECOND = 1_000_000_000


def steadily(seconds: float, speed: float, angle: float = 0.0) -> Motion:
    motion = Motion()
    motion.add(0.0, angle)
    motion.add(seconds, angle + speed * seconds)
    return motion


def test_the_simulated_head_makes_the_turn_of_the_document() -> None:
    head = RotorHead("head", 8, faults=LEVELS["clean"])
    pitch = TURN / 8
    # the index, a quarter of a pocket clockwise, is under the head half a second after the start
    motion = steadily(3.5, TURN / 3.2, -0.25 * pitch - 0.5 * TURN / 3.2)
    made = head.play(motion, round(9.5 * SECOND), [Visit(-1.0, math.inf, 5)])
    made = [pulse for pulse in made if pulse.at_ns > 9.9 * SECOND]
    assert len(made) == 20
    for pulse, (at_ns, line, level) in zip(made, document(), strict=True):
        assert (pulse.line, pulse.level) == (line, level)
        assert abs(pulse.at_ns - at_ns) < 400_000  # the ball's width is typed to a millisecond


@pytest.mark.parametrize("clockwise", [1, -1])
def test_at_rest_the_levels_say_what_is_under_the_head(clockwise: int) -> None:
    head = RotorHead("head", 37, faults=LEVELS["clean"], clockwise=clockwise)
    pitch = TURN / 37

    def under(pockets: float, cell: int | None = None) -> list[str]:
        levels = head.levels_at(-clockwise * pockets * pitch + 5 * TURN, cell)
        return [line.removeprefix("head.") for line, level in levels.items() if level]

    assert under(0.25) == ["index"]
    assert under(0.0) == under(36.0) == ["mark"]
    assert under(12.5, 12) == ["ball"]
    assert under(12.5, 13) == under(12.5) == []


def test_a_rotor_moved_to_and_fro_gives_back_the_levels_that_it_had() -> None:
    head = RotorHead("head", 37, faults=LEVELS["clean"])
    rng = Random(1)
    angle, lying = 0.1, [Visit(-1.0, math.inf, 20)]
    levels = head.levels_at(angle, 20)
    for _ in range(40):
        motion = Motion()
        motion.add(0.0, angle)
        move_by_hand(motion, angle, rng.uniform(-3, 3), 1.0)
        angle = motion.angles[-1]
        for pulse in head.play(motion, 0, lying):
            assert levels[pulse.line] != pulse.level
            levels[pulse.line] = pulse.level
        assert levels == head.levels_at(angle, 20)


def test_noise_loses_and_adds_marks_and_balls() -> None:
    lying = [Visit(-1.0, math.inf, 20)]

    def count(noise: str, line: str) -> int:
        pulses = RotorHead("head", 37, faults=LEVELS[noise], seed=3).play(steadily(2000.0, 2.0), 0, lying)
        return sum(pulse == Pulse(pulse.at_ns, f"head.{line}", 1) for pulse in pulses)

    turns = 2000.0 * 2.0 / TURN
    assert count("clean", "mark") == pytest.approx(37 * turns, abs=1)
    assert count("L3", "ball") == pytest.approx(0.95 * turns + 0.05 * 2000, rel=0.05)
