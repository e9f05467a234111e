"""A tenth of every bar; the whole of them is `./dev bench --bars`."""

from __future__ import annotations

import os

import pytest

from tests.bars import Bar, all_bars
from tests.bench.figures import BARS as HEADING
from tests.bench.figures import replaced

BARS = all_bars()


def test_every_bar_has_its_own_name() -> None:
    names = [bar.id for bar in BARS]
    assert len(set(names)) == len(names)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bar", BARS, ids=lambda bar: bar.id)
def test_a_tenth_of_the_bar_is_met(bar: Bar) -> None:
    figures = bar.measure(max(1, bar.n // 10), 1, os.cpu_count() or 1)
    assert any(figure.aim for figure in figures)
    assert [figure.row() for figure in figures if figure.met is False] == []


def test_the_bars_and_the_rest_of_the_page_are_measured_apart() -> None:
    page = replaced("", "# Benchmarks\n", bars=False)
    with_bars = replaced(page, f"{HEADING}\n\nfirst\n", bars=True)
    assert with_bars == f"# Benchmarks\n\n{HEADING}\n\nfirst\n"
    assert replaced(with_bars, f"{HEADING}\n\nsecond\n", bars=True) == with_bars.replace("first", "second")
    assert replaced(with_bars, "# Benchmarks anew\n", bars=False) == f"# Benchmarks anew\n\n{HEADING}\n\nfirst\n"
