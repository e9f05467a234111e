"""A technician puts a wheel into service: what he turns, what was measured, what he is told to write."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from drivers.base import Answer
from drivers.encoder.decoder import Encoder
from drivers.encoder.options import Options
from drivers.encoder.runout import COMMISSIONED, NaturalLaw
from rules.facts import SpinStopped
from tests.drivers.signals import MS, SECOND, TURN, Path, edges, launch, renumbered, still, to

DEG = TURN / 360


class Hand:
    """A hand on a wheel whose pegs stand `offset` degrees after the index, with an encoder behind it."""

    def __init__(self, **options: Any) -> None:
        self.encoder = Encoder("wheel", Options(**({"counts_per_turn": TURN, "cells": 52} | options)))
        self.path: Path = [(0.0, 0.5)]
        self.fed = 0

    def turn(self, to_deg: float, seconds: float = 2.0) -> None:
        """Move to this angle, and let it stand."""
        still(to(self.path, to_deg * DEG + 0.5, seconds), 3.0)
        seen = edges(self.path)
        self.encoder.feed(seen[self.fed :])
        self.fed = len(seen)
        self.encoder.tick(SECOND + round(self.path[-1][0] * SECOND))

    def asks(self, name: str, **args: object) -> Answer:
        return self.encoder.answer(name, args)


def test_two_turns_that_are_as_configured_are_good() -> None:
    hand = Hand()
    assert hand.asks("turn").ok
    hand.turn(800, 20)
    said = hand.asks("turned")
    assert said == Answer(True, "2.22 tours, 2400 pas par tour, 0 fronts perdus ou impossibles.")
    assert not hand.asks("turned").ok  # a new measurement begins with `turn`


def test_case_51_swapped_lines_and_a_wrong_count_are_found_with_what_to_write() -> None:
    hand = Hand(direction="ccw", counts_per_turn=4000)
    hand.asks("turn")
    hand.turn(1100, 20)
    said = hand.asks("turned")
    assert not said.ok
    assert 'direction = "cw"' in said.text
    assert "counts_per_turn = 2400" in said.text


def test_a_turn_without_index_without_motion_or_too_short_is_not_good() -> None:
    hand = Hand()
    assert "turn" in hand.asks("turned").text
    hand.asks("turn")
    assert "Aucun mouvement" in hand.asks("turned").text
    hand.turn(200)
    said = hand.asks("turned")
    assert not said.ok
    assert "Index vu 0 fois sur 0.6 tours" in said.text
    assert "0.56 tour : refaire" in said.text


def test_noise_in_the_turns_is_not_good() -> None:
    hand = Hand()
    hand.asks("turn")
    seen = edges(to([(0.0, 0.5)], 800 * DEG, 20.0))
    hand.encoder.feed(renumbered(edge for n, edge in enumerate(seen) if n % 900 != 500))
    hand.encoder.tick(seen[-1].at_ns + 50 * MS)
    said = hand.asks("turned")
    assert not said.ok
    assert re.search(r"[1-9]\d* fronts perdus ou impossibles, il en faut 0", said.text)


@pytest.mark.parametrize("offset", [0.4, 3.2, 6.8])
def test_four_marks_and_a_cell_give_what_to_write_and_with_it_the_cell_is_right(offset: float) -> None:
    pitch, snap = 360 / 52, math.degrees(0.040)
    hand = Hand()
    assert not hand.asks("touch").ok  # no index yet
    hand.turn(400)
    for sense, peg in ((1, 60), (-1, 55)):
        at = offset + peg * pitch
        hand.turn(at - sense * 2.0)
        hand.turn(at)
        assert "Noté" in hand.asks("touch").text or sense < 0
        hand.turn(at + sense * snap)
        said = hand.asks("snap")
    assert said.ok
    told = re.search(r"hysteresis_mdeg = (\d+)", said.text)
    assert told
    assert int(told[1]) == pytest.approx(800 * snap, abs=200)
    hand.turn(offset + 57.6 * pitch)
    written = re.search(r"écri\w+ : first_cell_mdeg = (\d+)", hand.asks("cell", value=17).text)
    assert written
    again = Encoder("wheel", Options(counts_per_turn=TURN, cells=52, first_cell_mdeg=int(written[1])))
    seen = edges(launch([(0.0, 0.5)], round((offset + (52 * 4 + 57.6) * pitch) * DEG)))
    facts = again.feed(seen) + again.tick(seen[-1].at_ns + 5 * SECOND)
    assert [(fact.cell, fact.or_cell) for fact in facts if isinstance(fact, SpinStopped)] == [(17, None)]


def test_marks_that_contradict_each_other_are_refused() -> None:
    pitch = 360 / 52
    for touch_back, snap_back in ((1.0, 2.3), (0.0, 0.2)):
        hand = Hand()
        hand.turn(400)
        for name, at in (("touch", 60 * pitch), ("snap", 60 * pitch + 2.3)):
            hand.turn(at)
            hand.asks(name)
        for name, at in (("touch", 58 * pitch + touch_back), ("snap", 58 * pitch + touch_back - snap_back)):
            hand.turn(at)
            said = hand.asks(name)
        assert not said.ok
        assert "refaire" in said.text


def test_a_cell_is_only_taken_where_the_marker_hangs_free() -> None:
    hand = Hand()
    assert not hand.asks("cell", value=3).ok  # no index yet
    hand.turn(360 + 3 * 360 / 52)
    assert "trop près" in hand.asks("cell", value=3).text
    assert "de 0 à 51" in hand.asks("cell", value=52).text
    hand.turn(360 + 3.6 * 360 / 52)
    assert hand.asks("cell", value=3).text.startswith("déjà écrit : ")


def test_what_is_unknown_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match="cell, forget, snap, touch, turn, turned"):
        Hand().asks("dance")


def test_the_guide_names_the_orders_and_leaves_pegs_out_where_there_are_none() -> None:
    assert all(
        f"calibrate wheel {name}" in Hand().encoder.guide for name in ("turn", "touch", "snap", "cell", "forget")
    )
    assert "touch" not in Hand(pegs=False).encoder.guide


def learned(law: NaturalLaw, spins: int, slowing: float) -> None:
    for _ in range(spins):
        law.learn([(1 + k / 10, slowing * (0.9 + k / 100)) for k in range(30)], 0.04)


def test_a_wheel_that_slows_otherwise_than_when_it_was_commissioned_is_a_fault_until_that_is_forgotten() -> None:
    hand, law = Hand(), NaturalLaw()
    learned(law, COMMISSIONED - 1, 0.2)
    assert law.drift == 0
    learned(law, 1, 0.2)
    hand.encoder.restore({"learned": law.snapshot()})
    assert hand.encoder.health()["fault"] is None
    learned(law, 12, 0.2 * 1.25)
    hand.encoder.restore({"learned": law.snapshot()})
    assert hand.encoder.health()["fault"] is None  # on its way
    assert 0 < hand.encoder.sample()["learned"]["drift_permille"] <= 150
    learned(law, 20, 0.2 * 1.25)
    hand.encoder.restore({"learned": law.snapshot()})
    fault = hand.encoder.health()["fault"]
    assert isinstance(fault, str)
    assert "+2" in fault
    assert "calibrate wheel forget" in fault
    assert hand.asks("forget").ok
    assert hand.encoder.health()["fault"] is None
    assert hand.encoder.sample()["learned"]["spins"] == 0
