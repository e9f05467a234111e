"""A measured figure, and the page that shows them."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

BARS = "## Acceptance bars"
"""Heading of the last section of the page, which `./dev bench --bars` writes."""
ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "BENCHMARKS.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: what was measured, what came out, and what we aim at."""

    what: str
    value: float
    unit: str
    aim: str = ""
    """`>= 150000` or `<= 6`; empty where nothing is aimed at."""
    how: str = ""
    """Under which conditions, in a few words."""

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None without one."""
        if not self.aim:
            return None
        relation, bound = self.aim.split()
        return self.value >= float(bound) if relation == ">=" else self.value <= float(bound)

    def row(self) -> str:
        """As a row of the page."""
        aim = f"{self.aim.replace('>=', '≥').replace('<=', '≤')} {self.unit}" if self.aim else ""
        verdict = {True: "yes", False: "**no**", None: ""}[self.met]
        return f"| {self.what} | {amount(self.value)} {self.unit} | {aim} | {verdict} | {self.how} |"


def amount(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * share) - 1)]


def machine() -> list[str]:
    """What it was measured on."""
    cpu = next((line.partition(": ")[2] for line in read("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    memory = next((line.split()[1] for line in read("/proc/meminfo") if line.startswith("MemTotal")), "0")
    system = next((line.partition("=")[2] for line in read("/etc/os-release") if line.startswith("PRETTY_NAME")), "")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        f"- {cpu}, {os.cpu_count()} cores, {int(memory) / 2**20:.0f} GiB; load before the run {load}",
        f"- {system.strip(chr(34))}, Linux {platform.release()}, Python {platform.python_version()}, {broker()}",
    ]


def read(path: str) -> list[str]:
    """Lines of a file of the system; none where it has no such file."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def broker() -> str:
    """Name and version of the broker."""
    said = subprocess.run(["mosquitto", "-h"], capture_output=True, text=True).stdout
    return said.partition("\n")[0]


def commit() -> str:
    """The commit that was measured, marked when files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    said = subprocess.run(command, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def measured_now() -> str:
    """When, and of which code."""
    return f"- {datetime.now(UTC).strftime('%Y-%m-%d %H:%M UTC')}, commit {commit()}"


def page(measured_on: Sequence[str], parts: Sequence[tuple[str, Sequence[Figure]]]) -> str:
    """BENCHMARKS.md but for the bars."""
    lines = [
        "# Benchmarks",
        "",
        "Made by `./dev bench`; `./dev bench NAME` repeats one part and only prints it. Every figure is of the product",
        "as it ships, code or unmodified daemon; a busy machine makes it worse. The aims are those of the design.",
        "",
        measured_now(),
        *measured_on,
    ]
    for name, figures in parts:
        lines += [
            "",
            f"## {name}",
            "",
            "| what | measured | aim | met | conditions |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [figure.row() for figure in figures]
    return "\n".join(lines) + "\n"


def bars_section(measured_on: Sequence[str], bars: Sequence[tuple[str, str, Sequence[Figure]]], seconds: float) -> str:
    """The section of the bars: id, what is demanded, figures."""
    lines = [
        BARS,
        "",
        "Made by `./dev bench --bars`; `./dev bench --bars ID` repeats one and only prints it. Simulated apparatus,",
        "written from the physics, before the product's own decoders in virtual time; `./dev test` runs a tenth.",
        "",
        f"{measured_now()}, {seconds / 60:.1f} minutes",
        *measured_on,
        "",
        "| what | measured | aim | met | conditions |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, text, figures in bars:
        lines += [f"| **{name}** {text} | | | | |", *(figure.row() for figure in figures)]
    return "\n".join(lines) + "\n"


def replaced(before: str, text: str, *, bars: bool) -> str:
    """The page with its part anew: the section of the bars, or all else."""
    rest, heading, section = before.partition(BARS)
    if bars:
        return f"{rest.rstrip()}\n\n{text}"
    return f"{text}\n{heading}{section}" if heading else text


def tell(text: str) -> None:
    """A line of progress, beside what the program prints."""
    print(text, file=sys.stderr, flush=True)
