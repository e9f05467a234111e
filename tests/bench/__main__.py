"""`python -m tests.bench [--bars] [NAME ...]`: all parts or all bars write their share of BENCHMARKS.md; named ones are
only printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from tests.bars import all_bars
from tests.bench import daemon, edges, law, recording
from tests.bench.figures import PAGE, Figure, bars_section, machine, page, replaced, tell

PARTS: Mapping[str, tuple[str, Callable[[], Sequence[Figure]]]] = {
    "edges": ("Decoding", edges.measure),
    "law": ("The law", law.measure),
    "daemon": ("The daemon", daemon.measure),
    "recording": ("A recorded wheel", recording.measure),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 also when an aim is missed: the page says so."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measures, and writes BENCHMARKS.md.")
    parser.add_argument("--bars", action="store_true", help="the acceptance bars of the devices instead (minutes)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(PARTS)}, or the id of a bar")
    asked = parser.parse_args(arguments)
    known = [bar.id for bar in all_bars()] if asked.bars else list(PARTS)
    if unknown := sorted(set(asked.names) - set(known)):
        parser.error(f"there is no {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = asked.names or known
    text = _bars(chosen) if asked.bars else _parts(chosen)
    if not asked.names:
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(replaced(before, text, bars=asked.bars), encoding="utf-8")
    print(text, end="")
    return 0


def _parts(names: Sequence[str]) -> str:
    here, measured = machine(), []
    for name in names:
        title, measure = PARTS[name]
        tell(f"bench: {name}")
        measured.append((title, measure()))
    return page(here, measured)


def _bars(names: Sequence[str]) -> str:
    here, measured, began = machine(), [], time.monotonic()
    for bar in all_bars():
        if bar.id in names:
            tell(f"bench: {bar.id} {bar.text}")
            measured.append((bar.id, bar.text, bar.measure(bar.n, 1, os.cpu_count() or 1)))
    return bars_section(here, measured, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
