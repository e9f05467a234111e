"""The tests of a wheel against tables, by hand, and against wheels whose fairness is known."""

from __future__ import annotations

import math
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from controller.chance import LEAST, RUNS_LEAST, Spin, Tally, Wheel, chi_squared, runs, sector, tail, two_sided, zone
from tests.controller.parts import config

FRENCH = config("roulette-francaise")
WHEEL = Wheel.of(FRENCH.game, FRENCH.house.options)


def tally(cells: list[int]) -> Tally:
    """As if the roulette had read these cells, in this order."""
    made = Tally.empty(WHEEL)
    for cell in cells:
        outcome = FRENCH.game.cell(cell, FRENCH.house.options)
        assert outcome is not None
        made.add(WHEEL.spin(FRENCH.game, outcome))
    return made


@pytest.mark.parametrize(
    ("freedom", "found", "chance"),
    [
        (36, 50.998, 0.05), (36, 54.437, 0.025), (36, 58.619, 0.01), (36, 67.985, 0.001), (36, 57.63, 0.0125),
        (36, 19.71, 0.9875), (2, 5.991, 0.05), (2, 9.210, 0.01), (2, 13.816, 0.001), (7, 14.067, 0.05),
        (7, 18.475, 0.01), (7, 24.322, 0.001), (1, 3.841, 0.05), (51, 68.669, 0.05), (3, 0.0, 1.0), (6, 0.0, 1.0),
    ],
)  # fmt: skip
def test_chi_squared_has_the_critical_values_of_the_tables(freedom: int, found: float, chance: float) -> None:
    assert tail(found, freedom) == pytest.approx(chance, rel=1e-3)


@pytest.mark.parametrize(("z", "chance"), [(3.205, 0.05), (3.642, 0.01), (4.197, 0.001)])
def test_a_normal_figure_looked_for_at_37_places_has_the_critical_values_of_the_tables(z: float, chance: float) -> None:
    assert 37 * two_sided(z) == pytest.approx(chance, rel=2e-3)
    assert two_sided(-z) == two_sided(z)


def test_each_cell_must_be_expected_five_times() -> None:
    assert LEAST * len(WHEEL.values) == 185
    few, enough = (tally([cell % 37 for cell in range(spins)]) for spins in (184, 185))
    assert few.tests(WHEEL).keys() == {"runs"}
    assert enough.tests(WHEEL).keys() == {"pockets", "sector", "runs"}  # of 185 spins there are 184 steps
    assert tally([cell % 37 for cell in range(186)]).tests(WHEEL).keys() == {"pockets", "sector", "distance", "runs"}


def test_counts_by_hand() -> None:
    assert chi_squared({"a": 30, "b": 10}, {"a": 1, "b": 1}) == pytest.approx(tail(10.0, 1))
    assert chi_squared({"a": 30, "b": 10}, {"a": 3, "b": 1}) == 1.0
    assert chi_squared({"a": 20}, {"a": 1, "b": 1}) == pytest.approx(tail(20.0, 1))  # one that never came
    assert chi_squared({"a": 9}, {"a": 1, "b": 1}) is None
    cells = [20, 20, 0, 0, 0, 0, 0, 0]  # a quarter of it has all forty
    assert sector(cells) == pytest.approx(8 * two_sided(30 / math.sqrt(40 * 0.25 * 0.75)))
    assert sector([5] * 8) == 1.0
    assert runs(RUNS_LEAST - 1, 100, 40) is None
    assert runs(50, 50, 51) == 1.0
    assert runs(50, 50, 71) == runs(50, 50, 31) == pytest.approx(two_sided(20 / math.sqrt(5000 * 4900 / 990_000)))


def test_a_fair_wheel_passes_and_each_defect_is_found_by_its_test() -> None:
    rng = Random(41)
    fair = tally([rng.randrange(37) for _ in range(5000)])
    assert min(fair.tests(WHEEL).values()) > 0.01
    tilted = [1 + 0.3 * math.cos(2 * math.pi * (cell - 9) / 37) for cell in range(37)]  # a drop zone below cell 9
    bad = tally(rng.choices(range(37), tilted, k=5000)).tests(WHEEL)
    assert max(bad["sector"], bad["pockets"]) < 1e-6
    loose = tally(rng.choices(range(37), [1.5 if cell == 4 else 1 for cell in range(37)], k=20_000)).tests(WHEEL)
    assert loose["pockets"] < 1e-6
    aimed = [0]
    for _ in range(5000):  # always half a turn or so from the one before: every cell is as frequent
        aimed.append((aimed[-1] + rng.choice((16, 17, 18, 19, 20, rng.randrange(37)))) % 37)
    assert tally(aimed).tests(WHEEL)["distance"] < 1e-6
    assert tally(aimed).tests(WHEEL)["pockets"] > 0.001
    colours = [cell for n in range(2500) for cell in (1 + 2 * (n % 18), 2 + 2 * (n % 18))]
    assert tally(colours).tests(WHEEL)["runs"] < 1e-6


def test_drops_are_expected_on_an_arc_by_its_length() -> None:
    assert zone({}) is None
    assert zone({"0+360": 50}) is None  # one beam
    assert zone({"0+120": 3, "120+240": 6}) is None
    assert zone({"0+120": 100, "120+120": 100, "240+120": 100}) == 1.0
    assert zone({"0+120": 100, "120+240": 200}) == 1.0
    assert zone({"0+120": 120, "120+240": 180}) == pytest.approx(tail(400 / 100 + 400 / 200, 1))
    assert zone({"0+120": 50}) == pytest.approx(tail(100.0, 1))  # never on the other arc
    assert zone({"0+120": 50, "120+240": 100, "90+270": 40}) is None  # beams that were moved


def test_runs_leave_the_zero_out() -> None:
    red, black = (next(c for c in range(37) if _side(c) == side) for side in (0, 1))
    assert tally([red, 0, red, 0, black, black, 0, black]).runs == 2
    assert tally([0, 0]).runs == 0


def _side(cell: int) -> int | None:
    outcome = FRENCH.game.cell(cell, FRENCH.house.options)
    assert outcome is not None
    return WHEEL.spin(FRENCH.game, outcome).side


def test_a_wheel_is_that_of_its_game() -> None:
    assert WHEEL.values[:3] == ("0", "32", "15")
    assert (len(WHEEL.values), WHEEL.two_sided) == (37, True)
    roue = config("roue-de-la-chance")
    wheel = Wheel.of(roue.game, roue.house.options)
    assert (len(wheel.values), wheel.values[13], wheel.two_sided) == (52, "noir", False)
    read = roue.game.read("noir", roue.house.options)  # by eye: nobody knows the cell unless the colour has only one
    assert read is not None
    assert wheel.spin(roue.game, read) == Spin(value="noir", cell=13, side=None)
    read = roue.game.read("rouge", roue.house.options)
    assert read is not None
    assert wheel.spin(roue.game, read) == Spin(value="rouge", cell=None, side=None)


def test_results_that_share_cells_are_expected_as_often_as_their_cells() -> None:
    roue = config("roue-de-la-chance")
    wheel, rng = Wheel.of(roue.game, roue.house.options), Random(2)
    fair, by_eye = Tally.empty(wheel), Tally.empty(wheel)
    for _ in range(1000):
        cell = rng.randrange(52)
        fair.add(Spin(value=wheel.values[cell], cell=cell, side=None))
        by_eye.add(Spin(value=rng.choice(wheel.values), cell=None, side=None))
    assert fair.tests(wheel).keys() == {"pockets", "values", "sector", "distance"}
    assert by_eye.tests(wheel).keys() == {"values"}
    assert min(fair.tests(wheel).values()) > 0.001
    assert by_eye.tests(wheel)["values"] > 0.001
    for _ in range(60):
        by_eye.add(Spin(value="blanc", cell=None, side=None))
    assert by_eye.tests(wheel)["values"] < 1e-6


def test_a_game_whose_cells_never_end_is_no_hang() -> None:
    game: Any = SimpleNamespace(cell=lambda cell, _options: {"number": cell}, value=lambda outcome: outcome["number"])
    assert len(Wheel.of(game, None).values) == 1000
