"""A configuration from plain data of the file's shape: every section checked, by itself and against the others.

Nothing here is guessed: an unknown key, a role that names no device, a pin used twice or a limit that the text forbids
is refused with key, value and what is allowed, everything wrong at once.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from controller.config import (
    SCHEMA,
    Chip,
    Config,
    Device,
    Flight,
    Key,
    Lamp,
    Line,
    Local,
    Log,
    Mqtt,
    State,
)
from controller.config_sections import Sections
from controller.errors import ConfigError
from drivers import base
from drivers.base import Family
from rules import game as games
from rules.bets import Refusal
from rules.game import Game, House, RnvpMode
from rules.table import LAMPS, SAID
from rules.words import CATALOGUE

_HOUSE: Final[Mapping[str, tuple[int, int]]] = {
    "declared_minimum_cents": (1, 100_000_000),
    "tableaux": (1, 16),
    "rnvp_tolerance_ms": (0, 60_000),
    "rnvp_late_max_ms": (0, 60_000),
    "agree_within_ms": (1, 600_000),
    "draw_max_ms": (1_000, 3_600_000),
    "choice_max_ms": (1_000, 3_600_000),
    "max_players": (1, 100),
}
"""Lowest and highest value of the house's numbers."""

_SECTIONS: Final = ("house", "options", "chips", "devices", "buttons", "lamps", "mqtt", "state", "flight", "log")
_DEVICE_KEYS: Final = ("family", "enabled", "chip", "lines", "line", "match", "path", "baud", "active_low", "bias")


def from_data(data: Mapping[str, Any], where: str) -> Config:
    """A configuration from plain data of the file's shape; raises ConfigError with all its problems."""
    reader = _Reader()
    config = reader.config(data, where)
    if reader.problems or config is None:
        raise ConfigError(where, reader.problems)
    return config


class _Reader(Sections):
    """Reads section by section and collects what is wrong."""

    def config(self, data: Mapping[str, Any], where: str) -> Config | None:
        self.unknown(data, (*_SECTIONS, "schema", "site", "table", "wheel", "game", "keys", "local"), "")
        if data.get("schema") != SCHEMA:
            self.wrong("schema", data.get("schema"), f"this program reads schema {SCHEMA}")
        site, table = (self.name(data.get(key), key) for key in ("site", "table"))
        wheel = self.name(data["wheel"], "wheel") if data.get("wheel") else ""
        sections = {name: self.table(data.get(name, {}), name) for name in _SECTIONS}
        game = self.game(data.get("game"))
        options = self.game_options(game, sections["options"])
        house = self.house(sections["house"], options)
        chips = self.chips(sections["chips"])
        devices = self.devices(sections["devices"], chips) | self.buttons(sections["buttons"], chips)
        lamps = self.lamps(sections["lamps"], chips)
        self.pins(devices, lamps)
        self.roles(sections["house"], sections["devices"])
        if game is not None and house is not None and options is not None:
            self.law(game, house)
            self.cells(game, house, devices)
            self.codes(game, devices, lamps)
        mqtt = self.section(Mqtt, sections["mqtt"], "mqtt")
        self.url(mqtt)
        state = self.section(State, sections["state"], "state")
        self.paths(mqtt, state)
        flight = self.section(Flight, sections["flight"], "flight")
        log = self.section(Log, sections["log"], "log")
        keys = self.keys(data.get("keys", []))
        local = self.local(data.get("local", []))
        if self.problems or game is None or house is None or not (mqtt and state and flight and log):
            return None
        return Config(
            where=where,
            site=site,
            table=table,
            wheel=wheel,
            game=game,
            house=house,
            chips=chips,
            devices=devices,
            lamps=lamps,
            mqtt=mqtt,
            state=state,
            flight=flight,
            log=log,
            keys=keys,
            local=local,
        )

    # the parts, in the order of the file

    def game(self, game_id: object) -> Game | None:
        try:
            return games.load(str(game_id))
        except LookupError:
            self.wrong("game", game_id, f"no such game; there are: {', '.join(known_game_ids())}")
            return None

    def game_options(self, game: Game | None, data: Mapping[str, Any]) -> Any:
        return None if game is None else self.section(game.options, data, "options")

    def house(self, data: Mapping[str, Any], options: Any) -> House | None:
        house = self.section(House, data, "house", given={"options": options}, ranges=_HOUSE)
        if house is not None and house.rnvp_late_max_ms < house.rnvp_tolerance_ms:
            allowed = f"at least rnvp_tolerance_ms ({house.rnvp_tolerance_ms})"
            self.wrong("house.rnvp_late_max_ms", house.rnvp_late_max_ms, allowed)
        for code in house.raise_to_held if house is not None else ():
            self.one_of(code, CATALOGUE, "house.raise_to_held", "the code of a breach")
        return house

    def law(self, game: Game, house: House) -> None:
        """What only the game can judge: the declared minimum and the limits that follow from it."""
        if game.most_tableaux is not None and house.tableaux > game.most_tableaux[0]:
            most, requirement = game.most_tableaux
            self.wrong("house.tableaux", house.tableaux, f"at most {most} ({requirement})")
        if game.calls_first and house.rien_ne_va_plus is not RnvpMode.CROUPIER:
            allowed = f"{RnvpMode.CROUPIER} only: at this game the call comes before the draw"
            self.wrong("house.rien_ne_va_plus", house.rien_ne_va_plus, allowed)
        limits = game.limits(game.layout(house.options), house, house.declared_minimum_cents, {})
        if isinstance(limits, Refusal):
            text = f"{limits.text} ({limits.requirement})"
            self.wrong("house.declared_minimum_cents", house.declared_minimum_cents, text)

    def cells(self, game: Game, house: House, devices: Mapping[str, Device]) -> None:
        """Whatever watches the draw and counts cells or pockets counts those of the game's wheel."""
        wanted = next(n for n in itertools.count() if game.cell(n, house.options) is None)
        for role in dict.fromkeys((*house.sources, *house.draw_devices)):
            for key in ("cells", "pockets") if role in devices else ():
                counted = getattr(devices[role].options, key, wanted)
                if counted != wanted:
                    self.wrong(f"devices.{role}.{key}", counted, f"the wheel of this game has {wanted}")
        for role in house.sources:
            if role in devices and not devices[role].family.reads(devices[role].options):
                self.wrong("house.sources", role, "tells no result of a draw; name it in draw_devices alone")

    def codes(self, game: Game, devices: Mapping[str, Device], lamps: Iterable[str]) -> None:
        """A button says what somebody hears (a contact, `kind = "lid"`, has any name); somebody switches a lamp."""
        heard = SAID | game.says | set(game.contests)
        for role, device in devices.items():
            code = role.removeprefix("button.")
            if code != role and device.options.kind == "button" and code not in heard:
                self.wrong(f"buttons.{code}", None, f"nobody hears this code; allowed: {', '.join(sorted(heard))}")
        switched = LAMPS | game.lamps
        for name in sorted(set(lamps) - switched):
            self.wrong(f"lamps.{name}", None, f"nobody switches this lamp; allowed: {', '.join(sorted(switched))}")

    def chips(self, data: Mapping[str, Any]) -> dict[str, Chip]:
        chips: dict[str, Chip] = {}
        for name, section in data.items():
            self.word(name, f"chips.{name}")
            chip = self.section(Chip, self.table(section, f"chips.{name}"), f"chips.{name}")
            if chip is None:
                continue
            path = f"/dev/{chip.path}" if chip.path.startswith("gpiochip") else chip.path
            self.absolute(path, f"chips.{name}.path")
            if path in [other.path for other in chips.values()]:
                self.wrong(f"chips.{name}.path", path, "is the path of another chip already")
            chips[name] = Chip(path=path)
        return chips

    def devices(self, data: Mapping[str, Any], chips: Mapping[str, Chip]) -> dict[str, Device]:
        devices = {}
        for role, given in data.items():
            at = f"devices.{role}"
            self.word(role, at)
            section = self.table(given, at)
            family = self.family(section.get("family"), f"{at}.family")
            if family is not None and (device := self.device(role, family, section, chips, at, "as_is")):
                devices[role] = device
        return devices

    def buttons(self, data: Mapping[str, Any], chips: Mapping[str, Chip]) -> dict[str, Device]:
        devices = {}
        for code, given in data.items():
            at = f"buttons.{code}"
            self.word(code, at)
            section = self.table(given, at)
            if "family" in section:
                self.wrong(f"{at}.family", section["family"], "a button has no family key")
            family = self.family("buttons", at)
            if family is not None and (device := self.device(f"button.{code}", family, section, chips, at, "pull_up")):
                devices[device.role] = device
        return devices

    def family(self, name: object, at: str) -> Family | None:
        if isinstance(name, str) and name in base.known_families():
            return base.load(name)
        self.wrong(at, name, f"no such device family; there are: {', '.join(base.known_families())}")
        return None

    def device(
        self, role: str, family: Family, data: Mapping[str, Any], chips: Mapping[str, Chip], at: str, bias: str
    ) -> Device | None:
        before = len(self.problems)
        own = {key: value for key, value in data.items() if key not in _DEVICE_KEYS}
        edges = family.kind == "edges"
        pins = "lines" if family.lines or family.numbered else "line"
        common = ("enabled", "chip", "bias", "active_low", pins) if edges else ("enabled", "match", "path", "baud")
        for key in data:
            if key in _DEVICE_KEYS and key not in (*common, "family"):
                self.wrong(f"{at}.{key}", data[key], f"a device of family {family.name} has: {', '.join(common)}")
        options = self.section(family.options, own, at, known=common)
        enabled = self.value(data.get("enabled", True), bool, f"{at}.enabled")
        if edges:
            parts = self.edge_device(role, family, options, data, chips, at, bias)
        else:
            parts = self.byte_device(family, data, at)
        if len(self.problems) > before:
            return None
        return Device(role=role, family=family, options=options, enabled=enabled, **parts)

    def edge_device(
        self,
        role: str,
        family: Family,
        options: Any,
        data: Mapping[str, Any],
        chips: Mapping[str, Chip],
        at: str,
        bias: str,
    ) -> dict[str, Any]:
        self.one_of(data.get("chip"), chips, f"{at}.chip", "a chip of [chips]")
        electric = {
            "active_low": data.get("active_low", bias == "pull_up"),
            "bias": data.get("bias", bias),
        }
        offsets: dict[str, object]
        if family.numbered:
            listed = data.get("lines")
            wanted = None if options is None else family.numbered(options)
            if not isinstance(listed, list) or wanted not in (None, len(listed)):
                allowed = f"must be a list of {wanted or 'the'} offsets on the chip, 0 to 63, in their order"
                self.wrong(f"{at}.lines", listed, allowed)
                listed = []
            offsets = {str(number): offset for number, offset in enumerate(listed)}
        elif family.lines:
            given = self.table(data.get("lines", {}), f"{at}.lines")
            self.unknown(given, family.lines, f"{at}.lines")
            offsets = {name: given.get(name) for name in family.lines}
        else:
            offsets = {"": data.get("line")}
        lines = {}
        for name, offset in offsets.items():
            key = f"{at}.lines.{name}" if name else f"{at}.line"
            if offset is None:
                self.wrong(key, None, "missing: the offset of the line on its chip, 0 to 63")
            elif (line := self.section(Line, {"offset": offset, **electric}, at, named={"offset": key})) is not None:
                lines[f"{role}.{name}" if name else role] = line
        return {"chip": data.get("chip", ""), "lines": lines}

    def byte_device(self, family: Family, data: Mapping[str, Any], at: str) -> dict[str, Any]:
        match = self.value(data.get("match", {}), dict[str, Annotated[str, Meta(min_length=1)]], f"{at}.match") or {}
        path = self.value(data.get("path", ""), str, f"{at}.path") or ""
        if bool(match) == bool(path):
            allowed = 'either match (udev properties such as { ID_SERIAL_SHORT = "..." }) or path (a tty), exactly one'
            self.wrong(at, {"match": match, "path": path}, allowed)
        if path:
            self.absolute(path, f"{at}.path")
        baud = self.value(data.get("baud", family.baud), Annotated[int, Meta(ge=300, le=4_000_000)], f"{at}.baud")
        return {"match": match, "path": path, "baud": baud}

    def lamps(self, data: Mapping[str, Any], chips: Mapping[str, Chip]) -> dict[str, Lamp]:
        lamps = {}
        for name, given in data.items():
            at = f"lamps.{name}"
            self.word(name, at)
            lamp = self.section(Lamp, self.table(given, at), at)
            if lamp is not None:
                self.one_of(lamp.chip, chips, f"{at}.chip", "a chip of [chips]")
                lamps[name] = lamp
        return lamps

    def pins(self, devices: Mapping[str, Device], lamps: Mapping[str, Lamp]) -> None:
        """No line of a chip, and no serial adapter, may serve two purposes."""
        uses = [(d.chip, line.offset, _key_of(d, role)) for d in devices.values() for role, line in d.lines.items()]
        uses += [(lamp.chip, lamp.line, f"lamps.{name}.line") for name, lamp in lamps.items()]
        taken: dict[tuple[str, int], str] = {}
        for chip, offset, user in uses:
            owner = taken.setdefault((chip, offset), user)
            if owner != user:
                self.wrong(user, offset, f"line {offset} of chip {chip!r} is that of {owner} already")
        adapters: dict[str, str] = {}
        for role, device in devices.items():
            if port := device.match or device.path:
                owner = adapters.setdefault(str(port), role)
                if owner != role:
                    key = "match" if device.match else "path"
                    self.wrong(f"devices.{role}.{key}", port, f"that is the adapter of devices.{owner} already")

    def roles(self, house: Mapping[str, Any], devices: Mapping[str, Any]) -> None:
        """Sources and draw devices must be devices that exist."""
        for key in ("sources", "draw_devices"):
            named = house.get(key, [])
            if not isinstance(named, list | tuple):
                continue
            if not named:
                self.wrong(f"house.{key}", None, f"missing: at least one of the devices ({', '.join(devices)})")
            for role in named:
                self.one_of(role, devices, f"house.{key}", "the role of a device in [devices]")
            if any(named.count(role) > 1 for role in named):
                self.wrong(f"house.{key}", named, "names a device twice")

    def url(self, mqtt: Mqtt | None) -> None:
        form = re.fullmatch(r"mqtts?://[^/:@\s]+(?::([1-9][0-9]{0,4}))?", mqtt.url) if mqtt is not None else None
        if mqtt is not None and (form is None or int(form[1] or 1) > 65535):
            allowed = "mqtt://HOST:PORT or mqtts://HOST:PORT, PORT from 1 to 65535 (user and password have own keys)"
            self.wrong("mqtt.url", mqtt.url, allowed)

    def paths(self, mqtt: Mqtt | None, state: State | None) -> None:
        if state is not None:
            self.absolute(state.folder, "state.folder")
            self.absolute(state.socket, "state.socket")
            if len(state.socket.encode()) > 107:
                self.wrong("state.socket", state.socket, "the path of a Unix socket has at most 107 bytes")
        for key, path in (
            ("mqtt.password_file", mqtt and mqtt.password_file),
            ("mqtt.ca_file", mqtt and mqtt.ca_file),
            ("state.signing_key_file", state and state.signing_key_file),
        ):
            if path:
                self.absolute(path, key)

    def keys(self, data: object) -> tuple[Key, ...]:
        keys: list[Key] = []
        for number, given in enumerate(self.tables(data, "keys"), 1):
            at = f"keys[{number}]"
            key = self.section(Key, self.table(given, at), at)
            if key is None:
                continue
            self.name(key.name, f"{at}.name")
            if key.name in [other.name for other in keys]:
                self.wrong(f"{at}.name", key.name, "is the name of another key already")
            self.public(key.public, f"{at}.public")
            keys.append(key)
        return tuple(keys)

    def public(self, text: str, at: str) -> None:
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != 32:
            self.wrong(at, text, "base64 of the 32 bytes of an Ed25519 public key (`tablectl keygen FILE` prints it)")
        elif not any(raw):
            self.wrong(at, text, "is a placeholder; put the key that `tablectl keygen FILE` prints")

    def local(self, data: object) -> tuple[Local, ...]:
        people = []
        for number, given in enumerate(self.tables(data, "local"), 1):
            at = f"local[{number}]"
            entry = self.section(Local, self.table(given, at), at)
            if entry is not None and bool(entry.user) == bool(entry.group):
                self.wrong(at, {"user": entry.user, "group": entry.group}, "either a Unix user or a Unix group")
            if entry is not None:
                people.append(entry)
        return tuple(people)


def known_game_ids() -> list[str]:
    """Ids of all games (imports every game module: for messages only)."""
    modules = games.known_games().values()
    return sorted(game_id for module in modules for game_id in importlib.import_module(module).GAMES)


def _key_of(device: Device, line: str) -> str:
    """The key that gives this line of a device its offset."""
    if device.role.startswith("button."):
        return f"buttons.{device.role.removeprefix('button.')}.line"
    name = line.removeprefix(device.role).removeprefix(".")
    return f"devices.{device.role}.lines.{name}" if name else f"devices.{device.role}.line"
