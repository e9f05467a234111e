"""`python -m tests.bench [NAME ...]`: all parts write BENCHMARKS.md, named parts are only printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from tests.bench import daemon, edges, law
from tests.bench.figures import PAGE, Figure, machine, page, tell

PARTS: Mapping[str, tuple[str, Callable[[], Sequence[Figure]]]] = {
    "edges": ("Decoding", edges.measure),
    "law": ("The law", law.measure),
    "daemon": ("The daemon", daemon.measure),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 also when an aim is missed: the page says so."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measures, and writes BENCHMARKS.md.")
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"one of: {', '.join(PARTS)} (default: all)")
    chosen = parser.parse_args(arguments).parts
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    here, measured = machine(), []
    for name in chosen or PARTS:
        title, measure = PARTS[name]
        tell(f"bench: {name}")
        measured.append((title, measure()))
    text = page(here, measured)
    if not chosen:
        PAGE.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
