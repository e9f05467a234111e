"""Expected decisions of a scenario: what must come, in which order, and what must not.

An expected file (`<scenario>.expected.jsonl`) is written by a person from the law, never copied from a run. Each line
is one of::

    {"out": "CoupEnded", "status": "held", ...}    the next decision like this; the ones in between are not looked at
    {"never": {"out": "StakeAccepted", ...}}       no decision like this at all
    {"why": "..."}                                 a remark for the reader

A decision is like an expected one when every field that is named agrees: objects field by field, lists item by item and
of the same length, `{"between": [a, b]}` for a number, `{"has": [...]}` for a list that has all of these among others.
Nothing of the kinds in `ALWAYS_NAMED` may come unexpected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.scenario import ScenarioError

ALWAYS_NAMED = frozenset({"CoupEnded", "StakeRefused", "StakeDoubtful", "Refused", "AlarmRaised"})
"""Decisions so weighty that a scenario must expect each of them."""


def read_expected(path: Path) -> list[dict[str, Any]]:
    """The lines of an expected file; raises ScenarioError naming the line that is not of its form."""
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', error)}") from error
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(written.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise ScenarioError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(line, dict) or len({"out", "never", "why"} & set(line)) != 1:
            raise ScenarioError(f"{path}:{number}: a line has exactly one of `out`, `never`, `why`: {text}")
        lines.append(line)
    return lines


def differences(expected: Sequence[Mapping[str, Any]], decisions: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is missing, forbidden or unexpected in the decisions; empty when the scenario holds."""
    told = list(decisions)
    wrong: list[str] = []
    named: set[int] = set()
    place = 0
    for line in expected:
        if "never" in line:
            wrong += [f"must never come: {_short(seen)}" for seen in told if like(line["never"], seen)]
        elif "out" in line:
            found = next((n for n in range(place, len(told)) if like(line, told[n])), None)
            if found is None:
                near = [seen for seen in told[place:] if seen.get("out") == line["out"]]
                rest = "; ".join(_short(seen) for seen in near[:3]) or "none of this kind is left"
                wrong.append(f"missing: {_short(line)} (next of its kind: {rest})")
            else:
                named.add(found)
                place = found + 1
    wrong += [
        f"unexpected: {_short(seen)}"
        for n, seen in enumerate(told)
        if seen.get("out") in ALWAYS_NAMED and n not in named
    ]
    return wrong


def like(wanted: Any, seen: Any) -> bool:
    """True when `seen` agrees with everything that `wanted` names."""
    if isinstance(wanted, Mapping):
        if set(wanted) == {"between"}:
            low, high = wanted["between"]
            return isinstance(seen, int) and low <= seen <= high
        if set(wanted) == {"has"}:
            return isinstance(seen, list) and all(any(like(part, one) for one in seen) for part in wanted["has"])
        return isinstance(seen, Mapping) and all(
            name in seen and like(part, seen[name]) for name, part in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(seen, list) and len(seen) == len(wanted) and all(map(like, wanted, seen))
    return bool(wanted == seen) and isinstance(wanted, bool) == isinstance(seen, bool)


def _short(line: Mapping[str, Any]) -> str:
    text = json.dumps(line, ensure_ascii=False, sort_keys=False)
    return text if len(text) <= 400 else text[:400] + " ..."
