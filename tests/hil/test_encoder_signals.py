"""The simulated encoder and contacts: what comes out of the plug, read by a grey code that knows no filter."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest

from hil.devices.buttons import contact
from hil.devices.encoder import LEVELS, Encoder, Faults, cut_cable
from hil.devices.lines import Pulse
from hil.physics.motion import TURN, Motion, drawn_spin

GRAY = {(0, 0): 0, (1, 0): 1, (1, 1): 2, (0, 1): 3}
"""Position inside one cycle by the levels of A and B; it rises where A leads."""


def naive(levels: dict[str, int], pulses: Iterable[Pulse]) -> tuple[int, int]:
    """(counts gone, impossible steps) by the grey code alone."""
    now, count, wrong = dict(levels), 0, 0
    for pulse in pulses:
        before = GRAY[now["wheel.a"], now["wheel.b"]]
        now[pulse.line] = pulse.level
        step = (GRAY[now["wheel.a"], now["wheel.b"]] - before) % 4
        count += {0: 0, 1: 1, 2: 0, 3: -1}[step]
        wrong += step == 2
    return count, wrong


def there_and_back() -> Motion:
    motion = drawn_spin(0.3, 2.4 * TURN, 0.5)
    motion.extend(drawn_spin(motion.angles[-1], -1.1 * TURN, 0.5), motion.ends + 1)
    return motion


@pytest.mark.parametrize("noise", ["clean", "L0"])
def test_a_decoder_of_four_lines_counts_the_motion_both_ways(noise: str) -> None:
    encoder = Encoder("wheel", counts_per_turn=2400, faults=LEVELS[noise], seed=3)
    motion = there_and_back()
    count, wrong = naive(encoder.levels_at(motion.angles[0]), encoder.play(motion, 0))
    assert wrong == 0
    assert abs(count - 1.3 * 2400) <= 2


def test_levels_at_rest_are_those_after_the_edges() -> None:
    encoder = Encoder("wheel", counts_per_turn=2400, seed=5)
    motion = there_and_back()
    now = encoder.levels_at(motion.angles[0])
    now.update((pulse.line, pulse.level) for pulse in encoder.play(motion, 0))
    assert now == encoder.levels_at(motion.angles[-1])


def test_exactly_three_turns_are_exactly_that_many_edges() -> None:
    encoder = Encoder("wheel", counts_per_turn=2400, faults=LEVELS["clean"])
    pulses = encoder.play(drawn_spin(TURN / 4800, 3 * TURN, 0.7), 0)
    assert sum(pulse.line != "wheel.index" for pulse in pulses) == 7200
    assert sum(pulse.line == "wheel.index" and pulse.level for pulse in pulses) == 3


def test_stamps_come_late_but_in_order() -> None:
    encoder = Encoder("wheel", counts_per_turn=2400, faults=Faults(edge_errors=0, eccentric_rad=0, latency_us=50))
    exact = Encoder("wheel", counts_per_turn=2400, faults=LEVELS["clean"])
    motion = drawn_spin(0.1, TURN, 0.5)
    late, true = encoder.play(motion, 10**9), exact.play(motion, 10**9)
    assert [pulse.at_ns for pulse in late] == sorted(pulse.at_ns for pulse in late)
    delays = [a.at_ns - b.at_ns for a, b in zip(late, true, strict=True)]
    assert min(delays) >= 0
    assert 30_000 < sum(delays) / len(delays) < 90_000


def test_an_overflown_queue_is_a_hole_in_the_numbering_of_just_what_is_missing() -> None:
    motion = there_and_back()
    whole = Encoder("wheel", counts_per_turn=2400, faults=Faults(latency_us=0)).play(motion, 0)
    torn = Encoder("wheel", counts_per_turn=2400, faults=Faults(latency_us=0, bursts=2)).play(motion, 0)
    missing = len(whole) - len(torn)
    assert 40 <= missing <= 800
    assert sum(pulse.gap for pulse in torn) == missing


def test_lost_edges_and_glitches_leave_no_trace_in_the_numbering() -> None:
    motion = there_and_back()
    calm = Encoder("wheel", counts_per_turn=2400).play(motion, 0)
    wild = Encoder("wheel", counts_per_turn=2400, faults=LEVELS["L3"]).play(motion, 0)
    assert all(pulse.gap == 0 for pulse in wild)
    assert len(wild) != len(calm)


def test_the_plug_pulled_lets_the_lines_rise_once_and_then_nothing_moves() -> None:
    encoder = Encoder("wheel", counts_per_turn=2400, faults=LEVELS["clean"])
    motion = drawn_spin(0.3, 2 * TURN, 0.5)
    levels = encoder.levels_at(motion.angles[0])
    whole = encoder.play(motion, 0)
    out, back = 2 * 10**9, 4 * 10**9
    seen = cut_cable(whole, levels, out, back, Random(1))
    away = [pulse for pulse in seen if out <= pulse.at_ns < back]
    assert all(pulse.level == 1 and pulse.at_ns < out + 10**6 for pulse in away)
    assert [pulse for pulse in seen if pulse.at_ns < out] == [pulse for pulse in whole if pulse.at_ns < out]
    now, true = dict(levels), dict(levels)
    now.update((pulse.line, pulse.level) for pulse in seen)
    true.update((pulse.line, pulse.level) for pulse in whole)
    assert now == true
    gone = cut_cable(whole, levels, out, None, Random(1))
    assert max(pulse.at_ns for pulse in gone) < out + 10**6


def test_a_contact_bounces_but_ends_closed_and_then_open() -> None:
    rng = Random(2)
    for _ in range(50):
        pulses = contact("button.coup_nul", 10**9, rng)
        levels = [pulse.level for pulse in pulses]
        assert pulses[0] == Pulse(10**9, "button.coup_nul", 1)
        assert levels[-1] == 0
        assert all(a != b for a, b in pairwise(levels))
        assert [pulse.at_ns for pulse in pulses] == sorted(pulse.at_ns for pulse in pulses)
