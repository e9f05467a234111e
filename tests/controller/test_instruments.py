"""What an encoder has learned of its wheel outlives the daemon, and not another wheel."""

from __future__ import annotations

import json

import pytest

from controller.canonical import compact
from controller.clock import Clock
from controller.config import Config
from controller.config_check import from_data
from controller.config_file import load, shipped_tables
from controller.instruments import Instruments
from controller.recorder import Recorder
from rules.facts import Fact
from tests.controller.test_config import changed, plain
from tests.drivers.test_tracker import experienced

ROUE = "roue-de-la-chance"


async def nowhere(facts: list[Fact]) -> None:
    """Nobody listens."""


def instruments(config: Config) -> Instruments:
    clock = Clock()
    return Instruments(config, nowhere, Recorder(config, "1", clock, lambda: "e").flight, clock, lambda now_ns: 0)


def test_what_was_learned_outlives_the_daemon_and_not_another_wheel() -> None:
    first = instruments(load(shipped_tables()[ROUE]))
    first.decoders["wheel"] = experienced()[0]
    kept = first.learned()
    assert json.loads(compact(kept)) == kept  # the state of a journal knows no floats
    again = instruments(load(shipped_tables()[ROUE]))
    again.remember(kept)
    assert again.sample("wheel")["learned"] == first.sample("wheel")["learned"]
    assert again.sample("wheel")["learned"]["spins"] == 6
    other = instruments(from_data(changed("devices/wheel/first_cell_mdeg", 3000, plain(ROUE)), "x"))
    other.remember(kept)
    assert other.sample("wheel")["learned"]["spins"] == 0


def rim(ball_mm: int, *, taught: bool = False) -> Instruments:
    section = {"family": "rim", "chip": "header", "lines": [7, 8], "beams_deg": [0, 120], "ball_mm": ball_mm}
    made = instruments(from_data(changed("devices/rim", section, plain("roulette-francaise")), "x"))
    if taught:
        made.decoders["rim"].law.learn([(5.0, 0.3), (4.0, 0.22), (3.5, 0.18)], 2.9)
    return made


def test_what_a_rim_has_learned_outlives_the_daemon_and_not_another_ball() -> None:
    first = rim(20, taught=True)
    kept = first.learned()
    again, other = rim(20), rim(21)
    again.remember(kept)
    other.remember(kept)
    assert again.sample("rim")["learned"] == first.sample("rim")["learned"]
    assert again.sample("rim")["learned"]["leaves_mrad_s"] == 2900
    assert other.sample("rim")["learned"]["spins"] == 0


async def test_a_rim_forgets_on_order_and_only_on_that() -> None:
    there = rim(20, taught=True)
    assert there.asks("rim") == frozenset() != there.orders("rim")
    assert "calibrate rim forget" in there.guide("rim")
    with pytest.raises(ValueError, match="there is no turn; there is: forget"):
        await there.ask("rim", "turn", {})
    assert (await there.ask("rim", "forget", {})).ok
    assert there.learned()["rim"] == rim(20).learned()["rim"]


def test_what_was_learned_by_a_device_that_is_gone_is_passed_over() -> None:
    there = instruments(load(shipped_tables()[ROUE]))
    there.remember({"gone": json.dumps({"options": {}, "learned": {}})})
    assert there.learned() == instruments(load(shipped_tables()[ROUE])).learned()
