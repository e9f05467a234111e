"""A scenario in virtual time: the same bench and the same simulated devices write a raw trace instead of wires.

The trace is what the flight recorder of a daemon at this table would hold: edges, bytes, lost and opened ports, and the
commands that the floor gave. `tablectl replay` judges it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hil import tables
from hil.bench import MS, Bench, Deed
from hil.devices.console import Keypad
from hil.devices.lines import Numbering, Pulse
from hil.peers import Peer, acknowledged, cue, keypad_of, peers_for, type_in
from hil.scenario import LIVE_VERBS, Scenario, ScenarioError, opening_commands

START_NS = 100 * 1_000_000_000
"""Virtual CLOCK_MONOTONIC at the beginning of a trace."""
SETTLE_NS = 3_000 * MS
"""The devices have said who they are by then."""
STEP_NS = 10 * MS
"""Resolution of the arrival of bytes."""

Line = dict[str, Any]


def trace(scenario: Scenario) -> list[Line]:
    """The whole trace of a scenario, header first; raises ScenarioError when it can only be played live."""
    if any(action.verb in LIVE_VERBS for play in scenario.plays for action in play.actions):
        raise ScenarioError(f"{scenario.path}: it kills programs, so only the live rig can play it (--live)")
    table = tables.table(scenario.table, scenario.overrides)
    bench = Bench(table, seed=scenario.seed, noise=scenario.noise, start_ns=START_NS)
    peers = peers_for(table, START_NS, scenario.seed)
    lines: list[tuple[int, Line]] = [(START_NS, _line("Opened", role, START_NS)) for role in peers]
    lines += [(START_NS, _line("Opened", role, START_NS)) for role in sorted(bench.roles)]
    at_ns = START_NS + SETTLE_NS
    if scenario.opening:
        for name, role, args in opening_commands(scenario.opening):
            lines.append((at_ns, _command(at_ns, name, role, args)))
            at_ns += 500 * MS
        at_ns += 500 * MS
    pulses: list[Pulse] = []
    deeds: list[Deed] = []
    for play in scenario.plays:
        script = bench.play(play, at_ns)
        pulses += script.pulses
        deeds += script.deeds
        cue(peers, script.cues)
        at_ns = script.ends_ns
    numbering = Numbering()
    for pulse in sorted(pulses, key=lambda pulse: pulse.at_ns):
        edge = _line("Edge", pulse.line, pulse.at_ns) | {"level": pulse.level, "seq": numbering.next(pulse)[1]}
        lines.append((pulse.at_ns, edge))
    lines += _talk(peers, sorted(deeds, key=lambda deed: deed.at_ns), at_ns)
    lines.sort(key=lambda entry: entry[0])
    header = {"v": 1, "game": table["game"], "config": table, "scenario": scenario.name}
    return [header, *(line for _, line in lines)]


def write(scenario: Scenario, path: Path) -> int:
    """Write the trace as a file; returns the number of its lines."""
    lines = trace(scenario)
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    return len(lines)


def of_the_scenario(decisions: Iterable[Line], lines: int) -> list[Line]:
    """The decisions without those that only the end of the trace causes: after it every device is silent."""
    return [
        told
        for told in decisions
        if not (told["out"] == "AlarmRaised" and told["name"].startswith("device:") and told["after"] >= lines)
    ]


def _talk(peers: Mapping[str, Peer], deeds: list[Deed], until_ns: int) -> Iterator[tuple[int, Line]]:
    """What the serial devices say, and what people do to their cables and tell the floor."""
    plugged = dict.fromkeys(peers, True)
    waiting = list(deeds)
    now = START_NS
    while now < until_ns:
        now += STEP_NS
        while waiting and waiting[0].at_ns <= now:
            deed = waiting.pop(0)
            action, at = deed.action, deed.at_ns
            match action.verb:
                case "say" | "stake" | "choose" | "confirm" | "result":
                    type_in(keypad_of(peers), action.verb, action.value, at)
                case "command":
                    yield at, _command(at, action.value["name"], action.value["role"], action.value.get("args", {}))
                case "unplug" if action.value in plugged:
                    plugged[action.value] = False
                    yield at, _line("Lost", action.value, at) | {"why": "unplugged"}
                case "plug" if action.value in plugged:
                    plugged[action.value] = True
                    yield at, _line("Opened", action.value, at)
                case _:
                    pass  # a button, or the plug of a device on lines: among the edges
        for role, peer in peers.items():
            peer.tick(now)
            said = peer.take_output()
            if said and plugged[role]:
                yield now, _line("Bytes", role, now) | {"hex": said.hex()}
                if isinstance(peer, Keypad):
                    peer.feed(acknowledged(said), now)


def _line(kind: str, source: str, at_ns: int) -> Line:
    return {"in": kind, "source": source, "at_ns": at_ns}


def _command(at_ns: int, name: str, role: str, args: Mapping[str, Any]) -> Line:
    told = {"name": name, "by": f"{role}-1", "role": role, "args": dict(args)}
    return _line("Commanded", "command", at_ns) | told
