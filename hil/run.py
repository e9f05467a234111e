"""A scenario in virtual time: its trace goes through `tablectl replay`, its decisions against what is expected."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hil import virtual
from hil.daemon import run_tool
from hil.expect import differences, read_expected
from hil.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one scenario."""

    scenario: str
    how: str
    """`virtual` or `live`."""
    decisions: int
    wrong: tuple[str, ...]
    late_ms: int = 0
    """How late a live rig was at worst."""

    @property
    def held(self) -> bool:
        """True when everything came as expected."""
        return not self.wrong

    def plain(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)


async def run_virtual(scenario: Scenario) -> Outcome:
    """Play it in virtual time."""
    with tempfile.TemporaryDirectory(prefix="rig-") as folder:
        path = Path(folder) / "trace.jsonl"
        lines = virtual.write(scenario, path)
        code, out, err = await run_tool(["replay", str(path)], 300.0)
    told = virtual.of_the_scenario(map(json.loads, out.splitlines()), lines)
    wrong = differences(read_expected(scenario.expected), told)
    if code != 0:
        wrong.insert(0, f"tablectl replay ended with {code}: {err.strip()}")
    return Outcome(scenario=scenario.name, how="virtual", decisions=len(told), wrong=tuple(wrong))
