"""The acceptance bars: what the product's own decoders must make of simulated apparatus, in virtual time.

One module an apparatus; each exports `BARS`. `./dev bench --bars` runs them in full, `test_bars.py` a tenth of each.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tests.bench.figures import Figure

_Job = TypeVar("_Job")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: `measure(n, seed, workers)` gives figures that each say their aim and whether it was met."""

    id: str
    text: str
    """What is demanded, in one line."""
    n: int
    """How many runs are a full measurement."""
    measure: Callable[[int, int, int], tuple[Figure, ...]]


def all_bars() -> tuple[Bar, ...]:
    """Those of every module of this folder."""
    found: list[Bar] = []
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("test_"):
            found += importlib.import_module(f"{__name__}.{module.name}").BARS
    return tuple(found)


def spread(work: Callable[[_Job], _Done], jobs: Iterable[_Job], workers: int) -> list[_Done]:
    """`work` of every job, in order, by so many processes; `work` is a function of a module."""
    if workers < 2:
        return [work(job) for job in jobs]
    with multiprocessing.get_context("spawn").Pool(workers, initializer=_untraced) as pool:
        return pool.map(work, jobs, chunksize=1)


def _untraced() -> None:
    sys.settrace(None)  # a coverage run measures the tests that look for branches, not these
