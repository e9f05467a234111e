"""`tablectl watch`: the table as it stands, redrawn on a terminal (with rich), as plain lines everywhere else."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from controller.tablectl.link import Link, Told

TOPICS = ("status", "state", "result", "event", "health", "settlement")
EVENTS_SHOWN = 12


@dataclass(slots=True)
class Table:
    """What is known of a table so far."""

    state: Mapping[str, Any] = field(default_factory=dict)
    health: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    settlements: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=EVENTS_SHOWN))
    """What happened last, as plain lines."""

    def hear(self, told: Told) -> list[str]:
        """Take a message in; the plain lines that are new."""
        new = list(self._hear(told))
        self.lines.extend(new)
        return new

    def _hear(self, told: Told) -> Iterator[str]:
        body = told.body
        match told.topic.partition("/")[0]:
            case "state":
                before, self.state = self.state, body
                if standing(body) != standing(before):
                    yield f"{clock(body)} state    {standing(body)}"
                if not before:  # from now on each comes as an event
                    yield from (f"{clock(body)} alarm    {alarm['text']}" for alarm in body["alarms"])
            case "health":
                before, self.health = self.health, body
                troubles = trouble(body)
                if troubles != trouble(before) or not before:
                    yield f"{clock(body)} health   {troubles or 'all ok'}"
            case "status":
                self.status = body
                yield f"         status   {body['state']} ({body['reason']})"
            case "event":
                requirement = f" [{body['requirement']}]" if body.get("requirement") else ""
                yield f"{clock(body)} {body['kind']:<8} {body['text'] or body['code']}{requirement}"
            case "result":  # `result/last` is the same body, for those who come later
                known, self.result = self.result, body
                if told.topic == "result" and body["id"] != known.get("id"):
                    yield f"{clock(body)} result   {outcome(body)}"
            case "settlement":
                self.settlements[told.topic] = body
                for line in body["lines"]:
                    yield f"{clock(body)} payment  {payment(line)}"


def clock(body: Mapping[str, Any]) -> str:
    """Time of day of a message, `~` when nobody vouches for the clock."""
    return str(body["at"])[11:19] + ("" if body["clock_synchronised"] else "~")


def standing(state: Mapping[str, Any]) -> str:
    """Where the table stands, in one line."""
    if not state:
        return ""
    words = [f"seance {state['seance']}", f"partie {state['partie']}", f"coup {state['coup']}", state["phase"]]
    words += [state["step"]] if state["step"] else []
    words += ["interrompue"] if state["interrupted"] else []
    words += ["MAINTENANCE"] if state["maintenance"] else []
    words += [f"alarm {alarm['name']}" for alarm in state["alarms"] if alarm["active"]]
    return ", ".join(words)


def trouble(health: Mapping[str, Any]) -> str:
    """What is not ok with the instruments."""
    parts = [f"{role} {d['state']}" for role, d in health.get("devices", {}).items() if d["state"] != "ok"]
    parts += [f"task {name} {t['state']}" for name, t in health.get("tasks", {}).items() if t["state"] != "running"]
    return ", ".join(parts)


def outcome(result: Mapping[str, Any]) -> str:
    """A result in one line."""
    drawn = result["outcome"] or {}
    value = " ".join(str(drawn[key]) for key in ("number", "colour") if drawn.get(key) is not None)
    why = ", ".join(reason["code"] for reason in result["reasons"])
    ended = f"{result['status']} ({why})" if why else result["status"]
    return f"no {result['result_no']}, coup {result['coup']}: {value or 'none'}, {ended}"


def payment(line: Mapping[str, Any]) -> str:
    """What one stake becomes."""
    bet = " ".join([line["player"], line["type"], *(["-".join(map(str, line["on"]))] if line["on"] else [])])
    net = "" if line["net"] is None else f" {euros(line['net'])}"
    return f"{bet}, {euros(line['stake'])}: {line['status']}{net}"


def euros(amount: int | str) -> str:
    """An amount of the wire as people write it; a fraction of a cent stays one."""
    if isinstance(amount, str):
        return f"{amount} cent"
    return f"{'-' if amount < 0 else ''}{abs(amount) // 100},{abs(amount) % 100:02d} EUR"


def run(options: argparse.Namespace, link: Link) -> int:
    """Watch until the time is over, the table is gone (UnreachableError), or somebody interrupts."""
    rich = sys.stdout.isatty() and not options.plain and find_spec("rich") is not None
    with link:
        table = Table()
        told = first(link, watched(link, options.seconds))
        if rich:
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the terminal is given back
            screen = importlib.import_module("controller.tablectl.screen")  # rich is an extra

            screen.show(options.base, table, told)
        else:
            plain(table, told, lambda line: print(line, flush=True))
    return 0


def watched(link: Link, seconds: float | None) -> Iterator[Told]:
    """What the table says from now on."""
    return link.watch(*TOPICS, seconds=seconds)


def first(link: Link, told: Iterator[Told]) -> Iterator[Told]:
    """What stands already, then what comes."""
    for topic in ("state", "health", "result/last"):
        body = link.get(topic)
        if body:
            yield Told(topic, body)
    yield from told


def plain(table: Table, told: Iterator[Told], write: Callable[[str], None]) -> None:
    """A line for everything that is new."""
    for message in told:
        for line in table.hear(message):
            write(line)
