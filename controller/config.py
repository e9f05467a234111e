"""The configuration of one table as frozen values (read by `controller.config_file`, checked by `config_check`)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from drivers.base import Family
from rules.game import Game, House

SCHEMA: Final = 1

Role = Literal["comite", "chef", "croupier", "technicien"]
"""Who may command, from the floor's point of view; the engine records the person's name beside it."""

Offset = Annotated[int, Meta(ge=0, le=63)]
"""A line of a chip (output values travel as 64-bit masks, so 63 is the last)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A line chip: `path` is a device under /dev (`gpiochip0` for short), or else the Unix socket of a rig."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One input line."""

    offset: Offset
    active_low: bool = False
    bias: Literal["as_is", "pull_up", "pull_down", "disabled"] = "as_is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A sensor or input device in its role (`wheel`, `wheel_sensor`, `console`, `button.coup_nul`)."""

    role: str
    family: Family
    options: Any
    """The family's own options dataclass."""
    enabled: bool = True
    """A disabled device is not opened; health says `disabled`."""
    chip: str = ""
    """Name in `chips` (edge devices)."""
    lines: Mapping[str, Line] = field(default_factory=dict)
    """By line role: `wheel.a`, or the role itself for a device of one line."""
    match: Mapping[str, str] = field(default_factory=dict)
    """udev properties that name the adapter (byte devices)."""
    path: str = ""
    """A fixed tty or pty instead of `match`."""
    baud: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lamp:
    """A lamp, buzzer or relay that `Signal` switches."""

    chip: str
    line: Offset
    active_low: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt:
    """Where the floor is."""

    url: str = "mqtt://127.0.0.1:1883"
    """`mqtt://host:port` or `mqtts://host:port`."""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    """CA of the broker for mqtts (empty: the system's)."""
    keepalive_s: Annotated[int, Meta(ge=5, le=600)] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the journal lives, and the local socket."""

    folder: str = "/var/lib/table-controller"
    socket: str = "/run/table-controller/cmd.sock"
    signing_key_file: str = ""
    """Empty: `signing.key` in the folder, made on first start."""
    free_bytes_min: Annotated[int, Meta(ge=0)] = 100_000_000
    """Less free space than this raises an alarm."""
    journal_bytes_max: Annotated[int, Meta(ge=20_000_000)] = 500_000_000
    """A journal that is larger is closed and kept beside it, to be archived by people; a short one goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """Bounds of the flight recorder."""

    seconds: Annotated[int, Meta(ge=10, le=3600)] = 300
    ring_bytes: Annotated[int, Meta(ge=100_000, le=64_000_000)] = 4_000_000
    records: Annotated[int, Meta(ge=1, le=1000)] = 50
    records_bytes: Annotated[int, Meta(ge=1_000_000)] = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What is logged."""

    level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A public key that may sign commands."""

    name: str
    role: Role
    public: str
    """Base64 of the 32 bytes of an Ed25519 public key."""

    @property
    def raw(self) -> bytes:
        """The 32 bytes."""
        return base64.b64decode(self.public, validate=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Whom the kernel vouches for on the local socket: a Unix user or a member of a Unix group, and his role."""

    role: Role
    user: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked configuration."""

    where: str
    """The file (or trace header) it came from."""
    site: str
    table: str
    wheel: str
    """Serial number of the wheel, empty when nobody gave it: another one begins its statistics anew."""
    game: Game
    house: House
    chips: Mapping[str, Chip]
    devices: Mapping[str, Device]
    """By role, buttons included as `button.<code>`, in the order of the file."""
    lamps: Mapping[str, Lamp]
    mqtt: Mqtt
    state: State
    flight: Flight
    log: Log
    keys: tuple[Key, ...]
    local: tuple[Local, ...]

    @property
    def base(self) -> str:
        """Topic base without the trailing slash."""
        return f"casino/{self.site}/{self.table}"

    def resolved(self) -> dict[str, Any]:
        """Everything, defaults written out, in the shape of the file."""
        house = _builtin(self.house)
        options = house.pop("options")
        devices = {role: device for role, device in self.devices.items() if not role.startswith("button.")}
        buttons = {role: device for role, device in self.devices.items() if role.startswith("button.")}
        return {
            "schema": SCHEMA,
            "site": self.site,
            "table": self.table,
            "wheel": self.wheel,
            "game": self.game.id,
            "house": house,
            "options": options,
            "chips": _builtin(self.chips),
            "devices": {role: _device_section(device) for role, device in devices.items()},
            "buttons": {role.removeprefix("button."): _device_section(device) for role, device in buttons.items()},
            "lamps": _builtin(self.lamps),
            "mqtt": _builtin(self.mqtt),
            "state": _builtin(self.state),
            "flight": _builtin(self.flight),
            "log": _builtin(self.log),
            "keys": _builtin(self.keys),
            "local": _builtin(self.local),
        }

    def digest(self) -> str:
        """`sha256:` of the resolved configuration."""
        text = json.dumps(self.resolved(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def toml(data: Mapping[str, Any]) -> str:
    """Plain data of the configuration's shape as TOML."""
    out: list[str] = []
    _toml_table(data, "", out)
    return "\n".join(out).strip() + "\n"


def _builtin(value: Any) -> Any:
    """Plain data without None (TOML has no null)."""

    def strip(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: strip(item) for key, item in data.items() if item is not None}
        return [strip(item) for item in data] if isinstance(data, list | tuple) else data

    return strip(msgspec.to_builtins(value, enc_hook=str))


def _device_section(device: Device) -> dict[str, Any]:
    section: dict[str, Any] = {} if device.role.startswith("button.") else {"family": device.family.name}
    section["enabled"] = device.enabled
    if device.family.kind == "edges":
        first = next(iter(device.lines.values()))
        section |= {"chip": device.chip, "bias": first.bias, "active_low": first.active_low}
        if device.family.numbered:
            section["lines"] = [line.offset for line in device.lines.values()]
        elif device.family.lines:
            section["lines"] = {role.rpartition(".")[2]: line.offset for role, line in device.lines.items()}
        else:
            section["line"] = first.offset
    else:
        section |= {"match": dict(device.match)} if device.match else {"path": device.path}
        section["baud"] = device.baud
    return section | _builtin(device.options)  # type: ignore[no-any-return]


def _toml_table(data: Mapping[str, Any], path: str, out: list[str]) -> None:
    for key, value in data.items():
        if not isinstance(value, dict) and not _is_tables(value):
            out.append(f"{_toml_key(key)} = {_toml_value(value)}")
    for key, value in data.items():
        below = f"{path}.{_toml_key(key)}" if path else _toml_key(key)
        if isinstance(value, dict):
            if any(not isinstance(item, dict) for item in value.values()):
                out += ["", f"[{below}]"]
            _toml_table(value, below, out)
        elif _is_tables(value):
            for item in value:
                out += ["", f"[[{below}]]"]
                _toml_table(item, below, out)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
