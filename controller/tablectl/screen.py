"""The live view on a terminal, drawn with rich."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from controller.tablectl.link import Told
from controller.tablectl.view import Table, euros, outcome, payment

COLOURS = {"valid": "green", "void": "yellow", "held": "red", "ok": "green", "stale": "yellow", "lost": "red"}


def show(base: str, table: Table, told: Iterator[Told]) -> None:
    """Redraw at each message until they end."""
    with Live(picture(base, table), refresh_per_second=8, screen=True) as live:
        for message in told:
            table.hear(message)
            live.update(picture(base, table))


def picture(base: str, table: Table) -> RenderableType:
    """The whole view."""
    state = table.state
    title = f"{base}  {state.get('game', '')}"
    if state.get("maintenance"):
        title += "  MAINTENANCE"
    panels = [
        Panel(_standing(state), title="table", border_style="red" if state.get("phase") == "litige" else "cyan"),
        Panel(
            _result(table.result), title="dernier coup", border_style=COLOURS.get(table.result.get("status", ""), "dim")
        ),
        Panel(_devices(table.health), title="instruments", border_style="cyan"),
    ]
    parts: list[RenderableType] = [Text(title, style="bold"), Columns(panels, equal=True, expand=True)]
    if alarms := state.get("alarms"):
        parts.append(Panel(_alarms(alarms), title="alarmes", border_style="red"))
    if table.settlements:
        parts.append(Panel(_payments(table.settlements), title="reglement", border_style="cyan"))
    parts.append(Panel(Text("\n".join(table.lines)), title="journal", border_style="dim"))
    return Group(*parts)


def _pairs(rows: list[tuple[str, str]]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(Text(name, style="dim"), value)
    return grid


def _standing(state: Mapping[str, Any]) -> RenderableType:
    if not state:
        return Text("rien encore", style="dim")
    limits, markers = state["limits"], state["options"].get("marqueurs", {})
    return _pairs(
        [
            ("phase", f"{state['phase']} {state['step']}".strip() + (" (interrompue)" if state["interrupted"] else "")),
            ("seance / partie / coup", f"{state['seance']} / {state['partie']} / {state['coup']}"),
            ("minimum", euros(limits["minimum"]) if limits else "-"),
            *((f"jetons {colour}", f"{euros(m['cents'])} {m['player']}") for colour, m in markers.items()),
            ("dernier sens", state["last_direction"] or "-"),
            ("seq", f"{state['epoch']}/{state['seq']}"),
        ]
    )


def _result(result: Mapping[str, Any]) -> RenderableType:
    if not result:
        return Text("rien encore", style="dim")
    rows = [("", outcome(result))]
    if result.get("travel_counts") is not None and result.get("per_turn"):
        rows.append(("tours", f"{result['travel_counts'] / result['per_turn']:.2f} {result.get('direction') or ''}"))
    rows += [(source, str(value)) for source, value in result["sources"].items()]
    return _pairs(rows)


def _devices(health: Mapping[str, Any]) -> RenderableType:
    if not health:
        return Text("rien encore", style="dim")
    grid = Grid.grid(padding=(0, 2))
    for role, device in health["devices"].items():
        state = Text(device["state"], style=COLOURS.get(device["state"], "dim"))
        grid.add_row(role, state, Text(str(device.get("text", "")), style="dim"))
    grid.add_row("boucle", f"{health['loop_lag_ms']} ms", Text(f"{health['unsent']} non envoyes", style="dim"))
    return grid


def _alarms(alarms: list[Mapping[str, Any]]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2))
    for alarm in alarms:
        style = "red bold" if alarm["active"] else "yellow"
        seen = f"vue par {alarm['acked_by']}" if alarm["acked"] else "non vue"
        grid.add_row(Text(alarm["name"], style=style), alarm["text"], Text(seen, style="dim"))
    return grid


def _payments(settlements: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    lines = [payment(line) for body in settlements.values() for line in body["lines"]]
    return Text("\n".join(lines[:20]) or "aucune mise")
