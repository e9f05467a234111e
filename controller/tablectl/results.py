"""`tablectl results`: from the journal of this machine (`--config`), or as the table publishes them (`--broker`)."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator

from controller.canonical import canonical
from controller.errors import ControllerError, UsageError
from controller.journal_file import reader
from controller.results import first_fault
from controller.tablectl.journal import journal_of, public_key
from controller.tablectl.online import reach


def run(options: argparse.Namespace) -> int:
    """Print each result as a line; with a key, 1 and the first fault when one of them does not hold."""
    key = public_key(options.verify)
    seen: list[str] = []
    for line in _published(options) if options.broker else _kept(options):
        if json.loads(line)["seq"] > options.after:
            print(line, flush=True)
        if key is not None:
            seen.append(line)
            if fault := first_fault(seen, key):
                print(fault, file=sys.stderr)
                return 1
            if len(seen) > 1 and json.loads(seen[-2])["hash"] == json.loads(line)["prev_hash"]:
                del seen[:-1]  # the one before is all that the next is checked against
    return 0


def _kept(options: argparse.Namespace) -> Iterator[str]:
    """Every result of the journal, oldest first."""
    try:
        with contextlib.closing(reader(journal_of(options))) as connection:
            for (payload,) in connection.execute("SELECT payload FROM results ORDER BY n"):
                yield payload.decode()
    except ControllerError as error:
        raise UsageError(str(error)) from error


def _published(options: argparse.Namespace) -> Iterator[str]:
    """The last result, then those that come."""
    with reach(options) as link:
        last = link.get("result/last")
        if last:
            yield canonical(last).decode()
        for told in link.watch("result", seconds=options.seconds):
            if told.topic == "result" and told.body != last:
                yield canonical(told.body).decode()
