"""`table-rig`: plays scenarios to the product.

    table-rig list                          the scenarios, what they are about, and the law behind them
    table-rig run SCENARIO... [--live]      each in virtual time, or in real time against the unmodified daemon
    table-rig report [--live]               every scenario, with versions; `--json FILE` keeps it
    table-rig tell SOCKET VERB WHAT         do something to a running rig: unplug wheel_sensor, broker down, kill daemon

Exit 0 when everything held, 1 when something did not, 2 for bad use.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hil.live import play_live
from hil.run import Outcome, run_virtual
from hil.scenario import LIVE_VERBS, ScenarioError, all_scenarios, find, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="table-rig", description="Plays scenarios to the table controller.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="the scenarios")
    run = commands.add_parser("run", help="play scenarios")
    run.add_argument("scenario", nargs="+", help="name, or path of a TOML file")
    run.add_argument("--live", action="store_true", help="in real time, against the unmodified daemon")
    report = commands.add_parser("report", help="play every scenario and say what held")
    report.add_argument("--live", action="store_true", help="also in real time (minutes)")
    report.add_argument("--json", type=Path, metavar="FILE", help="keep the report")
    tell = commands.add_parser("tell", help="do something to a running rig")
    tell.add_argument("socket", type=Path, help="its control socket (the demo prints it)")
    tell.add_argument("verb", choices=("unplug", "plug", "kill", "broker"))
    tell.add_argument("what", help="a device role, `daemon`, `up` or `down`")
    options = parser.parse_args(arguments)
    try:
        match options.command:
            case "list":
                return show()
            case "run":
                outcomes = [play(find(name), live=options.live) for name in options.scenario]
                return 0 if all(outcome.held for outcome in outcomes) else 1
            case "report":
                return make_report(options)
            case _:
                return tell_rig(options.socket, options.verb, options.what)
    except ScenarioError as error:
        print(f"table-rig: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `table-rig list | head`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the interpreter's last flush uses it
        return 0


def show() -> int:
    """List the scenarios."""
    for path in all_scenarios():
        scenario = load(path)
        print(f"{scenario.name:<32} {scenario.table:<20} {scenario.title}{scenario.marks}", flush=True)
        if scenario.law:
            print(f"{'':<32} {', '.join(scenario.law)}")
    return 0


def play(path: Path, *, live: bool) -> Outcome:
    """Play one scenario and say what held."""
    scenario = load(path)
    outcome = asyncio.run(play_live(scenario) if live or scenario.live else run_virtual(scenario))
    held = "ok  " if outcome.held else "FAIL"
    print(f"{held} {scenario.name} ({outcome.how}, {outcome.decisions} decisions){scenario.marks}")
    for line in outcome.wrong:
        print(f"     {line}")
    return outcome


def make_report(options: argparse.Namespace) -> int:
    """Play everything; print and keep a report with versions. Raises ScenarioError."""
    if options.json is not None:
        try:
            options.json.touch()  # said before the minutes that it takes, not after
        except OSError as error:
            raise ScenarioError(f"{options.json}: {error.strerror}") from error
    outcomes: list[Outcome] = []
    for path in all_scenarios():
        scenario = load(path)
        kills = any(action.verb in LIVE_VERBS for one in scenario.plays for action in one.actions)
        if not kills:
            outcomes.append(play(path, live=False))
        if options.live:
            outcomes.append(play(path, live=True))
    versions = {"python": platform.python_version(), "machine": platform.machine(), "kernel": platform.release()}
    versions["table-controller"] = importlib.metadata.version("table-controller")
    versions["mosquitto"] = mosquitto_version()
    for name, version in versions.items():
        print(f"{name} {version}")
    failed = [outcome for outcome in outcomes if not outcome.held]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} held")
    if options.json is not None:
        body: dict[str, Any] = {"versions": versions, "runs": [outcome.plain() for outcome in outcomes]}
        options.json.write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def mosquitto_version() -> str:
    """The broker's version, or why it is not known."""
    try:
        said = subprocess.run(["mosquitto", "-h"], capture_output=True, text=True, check=False, timeout=10).stdout
    except OSError as error:
        return f"not found ({error.strerror})"
    return said.split("\n", 1)[0].removeprefix("mosquitto version ").strip() or "unknown"


def tell_rig(path: Path, verb: str, what: str) -> int:
    """Hand one order to a running rig and print its answer."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30)
            line.connect(str(path))
            line.sendall(f"{verb} {what}\n".encode())
            answer = line.makefile().readline().strip()
    except OSError as error:
        print(f"table-rig: {path}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(answer)
    return 0 if answer == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
