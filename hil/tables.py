"""Tables under test: the shipped configuration with only the rig's own addresses put in."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.floor import Signer
from hil.scenario import ScenarioError

FOLDERS = (Path(__file__).parent.parent / "config" / "tables", Path(__file__).parent.parent / "controller" / "tables")
"""Where the tables are: in the source tree, or as installed."""


def shipped() -> dict[str, Path]:
    """Every table of config/tables by name."""
    return {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("*.toml"))}


def table(name: str, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """The table's configuration as plain data, with a scenario's overrides; raises ScenarioError."""
    tables = shipped()
    if name not in tables:
        raise ScenarioError(f"no table {name!r}; config/tables has: {', '.join(tables)}")
    data = tomllib.loads(tables[name].read_text(encoding="utf-8"))
    for section, values in (overrides or {}).items():
        data[section] = {**data.get(section, {}), **values}
    data["devices"] = {role: device for role, device in data["devices"].items() if device}
    return data


def base(data: Mapping[str, Any]) -> str:
    """The topic base of a table."""
    return f"casino/{data['site']}/{data['table']}"


def byte_devices(data: Mapping[str, Any]) -> list[str]:
    """Roles that hang on a serial line."""
    return [role for role, device in data["devices"].items() if "chip" not in device]


def line_offsets(data: Mapping[str, Any], chip: str) -> dict[str, int]:
    """Input lines of a chip by role."""
    offsets: dict[str, int] = {}
    for role, device in data["devices"].items():
        if device.get("chip") == chip:
            lines = device.get("lines", {})
            named = enumerate(lines) if isinstance(lines, list) else lines.items()
            offsets |= {f"{role}.{line}": offset for line, offset in named}
            if "line" in device:
                offsets[role] = device["line"]
    for code, button in data.get("buttons", {}).items():
        if button["chip"] == chip:
            offsets[f"button.{code}"] = button["line"]
    return offsets


def lamp_offsets(data: Mapping[str, Any], chip: str) -> dict[str, int]:
    """Output lines of a chip by role."""
    return {role: lamp["line"] for role, lamp in data.get("lamps", {}).items() if lamp["chip"] == chip}


def on_the_rig(data: Mapping[str, Any], folder: Path, url: str, keys: Sequence[Signer]) -> dict[str, Any]:
    """The same table with chips, ports, broker, state folder, socket and keys of the rig; nothing else differs."""
    rigged = copy.deepcopy(dict(data))
    for chip in rigged.get("chips", {}):
        rigged["chips"][chip]["path"] = str(folder / f"chip-{chip}.sock")
    for role in byte_devices(rigged):
        rigged["devices"][role].pop("match", None)
        rigged["devices"][role]["path"] = str(folder / f"tty-{role}")
    rigged["mqtt"] = {**rigged.get("mqtt", {}), "url": url}
    rigged["state"] = {
        **rigged.get("state", {}),
        "folder": str(folder / "state"),
        "socket": str(folder / "cmd.sock"),
    }
    rigged["keys"] = [{"name": key.name, "role": key.role, "public": key.public} for key in keys]
    return rigged


def toml(data: Mapping[str, Any], path: str = "") -> str:
    """Plain data as TOML."""
    own, below = [], []
    for key, value in data.items():
        name = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
        place = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            below.append(f"[{place}]\n" + toml(value, place))
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            below += [f"[[{place}]]\n" + toml(item, place) for item in value]
        else:
            own.append(f"{name} = {_value(value)}")
    return "\n".join([*own, *below]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
