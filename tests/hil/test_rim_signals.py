"""Simulated beams: against the records of the document, and against where and how fast the ball is."""

from __future__ import annotations

import math
import re
import struct
from array import array
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from hil.devices.lines import Pulse
from hil.devices.rim import LEVELS, Rim
from hil.physics.motion import TURN
from hil.physics.roulette import RimModel, Throw, throw_ball

SECOND = 1_000_000_000
TWO = (0, 120)


def documented() -> list[tuple[int, str, int]]:
    """(time, line, level) of the document's records."""
    text = (Path(__file__).parents[2] / "drivers/rim/PROTOCOL.md").read_text("utf-8")
    records = [struct.unpack("<QIIII", bytes.fromhex(raw)) for raw in re.findall(r"`((?:[0-9A-F]{8,16} ?){5})`", text)]
    assert len(records) == 26
    return [(at_ns, f"rim.{offset - 5}", int(kind == 1)) for at_ns, kind, offset, _, _ in records]


def test_the_simulated_beams_make_the_passages_of_the_document() -> None:
    """The run of the document: a passage every third and two thirds of a turn, at speeds that its widths tell."""
    passages = [(0.0, 4.8), (0.4417, 4.684), (1.3585, 4.457), (1.8344, 4.345), (2.8236, 4.126), (3.3379, 4.019),
                (4.4088, 3.807), (4.9667, 3.703), (6.1307, 3.497), (6.7384, 3.396)]  # fmt: skip
    angles = array("d", [TURN * (n // 2 + n % 2 / 3) for n in range(len(passages))])
    throw = Throw(
        sense=1,
        model=RimModel(),
        angles=array("d", [*angles, angles[-1] + 0.1]),
        times=array("d", [*(time for time, _ in passages), 6.77]),
        speeds=array("d", [*(speed for _, speed in passages), 3.39]),
    )
    made = Rim("rim", TWO, faults=LEVELS["clean"]).play(throw, 10 * SECOND)
    records = documented()
    seen = [pulse for pulse in made if abs(pulse.at_ns - 11.8344 * SECOND) > 0.1 * SECOND]  # the one that was missed
    assert len(seen) == 18
    for pulse in seen:
        nearest = min(abs(at_ns - pulse.at_ns) for at_ns, line, level in records if (line, level) == pulse[1:3])
        assert nearest < 60_000, pulse  # widths are typed to a tenth of a millisecond


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("clockwise", [1, -1])
def test_a_beam_is_interrupted_while_the_ball_is_where_it_stands(sense: int, clockwise: int) -> None:
    throw = throw_ball(9.0, sense, Random(1))
    pulses = Rim("rim", (0, 120), faults=LEVELS["clean"], clockwise=clockwise).play(throw, 0)
    middles = [(a.at_ns + b.at_ns) / 2 / SECOND for a, b in zip(pulses[::2], pulses[1::2], strict=True)]
    true = sorted(time for at in (0.0, clockwise * math.radians(120)) for time, _ in throw.passages(at))
    assert middles == pytest.approx(true, abs=1e-6)
    widths = [b.at_ns - a.at_ns for a, b in zip(pulses[::2], pulses[1::2], strict=True)]
    assert 0.020 / 0.37 / 9.0 * SECOND * 0.95 < widths[0] < widths[-1] < 0.020 / 0.37 / 2.8 * SECOND


def played(noise: str, **how: float) -> list[list[Pulse]]:
    rng, rim = Random(2), Rim("rim", TWO, faults=LEVELS[noise])
    return [rim.play(throw_ball(9.0, 1, rng), 0, **how) for _ in range(60)]


def test_noise_is_as_much_as_the_level_says() -> None:
    clean, noisy = (mean(len(throw) for throw in played(noise)) for noise in ("clean", "L3"))
    # 2 % missed, 5 % split in two, one and a half false pulses in fifteen seconds
    assert clean * 1.01 < noisy < clean * 1.15


def test_false_pulses_go_on_as_long_as_asked() -> None:
    during, after = (sum(map(len, played("L3", after_s=seconds))) for seconds in (0.0, 60.0))
    assert 0.7 * 60 * 6 < (after - during) / 2 < 1.3 * 60 * 6


def test_what_a_dead_beam_sees_and_what_happens_after_the_ball_was_taken_is_not_there() -> None:
    rim = Rim("rim", TWO, faults=LEVELS["clean"])
    rim.dead.add(0)
    pulses = rim.play(throw_ball(9.0, 1, Random(3)), 0, taken_s=3.0)
    assert {pulse.line for pulse in pulses} == {"rim.1"}
    assert max(pulse.at_ns for pulse in pulses) < 3.01 * SECOND
