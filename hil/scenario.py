"""A scenario: one TOML file that tells what people and things do at a table, from the croupier's hands upwards.

::

    title = "..."                       what it shows
    law = ["R-RC-07"]                   the requirements it is about
    table = "roue-de-la-chance"         a file of config/tables
    seed = 7                            everything random comes from here
    noise = "L0"                        sensor faults, hil.devices.encoder.LEVELS
    live = true                         only the live rig can play it (it kills programs)
    demo = true                         this is what `./dev demo` plays on its table, over and over
    [house] [options]                   overrides of the table's config
    [opening]                           attest = { verification = ["comite", "croupier"] }, minimum_cents = ...
                                        without this section nobody opens the table

    [[play]]                            one handling of the apparatus, in order
    spin  = { direction, speed, wind_up, push_ms, first_share, touch = [...] }     the vertical wheel, by its physics
    drawn = { direction, counts, push_ms }                                         the vertical wheel, exactly so far
    hand  = { direction, counts, ms }                                              anything that turns, held all the way
    throw = { rotor = { direction, speed }, ball = { speed, with_rotor }, number, picked_up_ms, sensor = {...} }
    do    = [ { at = "released", ms = 400, press = "rien_ne_va_plus" }, ... ]      what people do meanwhile
    pause_ms = 3000                     quiet after the last movement

An action happens `ms` milliseconds after (negative: before) the physical moment `at`; the moments of each kind of play
are in `MOMENTS`, the verbs in `VERBS`. The expected decisions stand beside the file in `<name>.expected.jsonl`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.devices.encoder import LEVELS
from hil.physics.wheel import Touch

MOMENTS: Mapping[str, tuple[str, ...]] = {
    "spin": ("start", "pushed", "released", "touched", "rest"),
    "drawn": ("start", "pushed", "released", "rest"),
    "hand": ("start", "released"),
    "throw": ("start", "released", "thrown", "seen", "drop_due", "dropped", "settled", "read"),
    "": ("start",),
}
"""Moments by kind of play: a hand begins to push, lets go, a touch begins, the thing rests; the ball is thrown, seen by
the sensor, slow enough to be about to drop, off the rim, at rest in its pocket, and read."""

VERBS: Mapping[str, tuple[str, ...]] = {
    "press": (),
    "say": (),
    "stake": ("spot", "cents", "player", "tableau", "remove"),
    "choose": ("player", "what", "value", "tableau"),
    "confirm": (),
    "result": (),
    "command": ("name", "role", "args"),
    "unplug": (),
    "plug": (),
    "kill": (),
    "broker": (),
}
"""Verbs and, where their value is a table, its keys. press: a button; say, stake, choose, confirm, result: the keypad;
command: signed by the floor; unplug/plug: a device role; kill = "daemon"; broker = "down" or "up"."""

LIVE_VERBS = frozenset({"kill", "broker"})


class ScenarioError(ValueError):
    """A scenario file is not of the form: file, place, value and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Somebody does something `ms` after the moment `at`."""

    at: str
    ms: int
    verb: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One handling of the apparatus; `how` holds the keys of its kind (`spin`, `drawn`, `throw`, or empty)."""

    kind: str = ""
    how: Mapping[str, Any] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    pause_ms: int = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A checked scenario."""

    name: str
    path: Path
    title: str
    law: tuple[str, ...]
    table: str
    seed: int
    noise: str
    live: bool
    demo: bool
    overrides: Mapping[str, Mapping[str, Any]]
    opening: Mapping[str, Any]
    plays: tuple[Play, ...]

    @property
    def expected(self) -> Path:
        """Where its expected decisions stand."""
        return self.path.with_suffix(".expected.jsonl")


SCENARIOS = Path(__file__).parent / "scenarios"


def all_scenarios(folder: Path = SCENARIOS) -> list[Path]:
    """Every scenario file, by name."""
    return sorted(folder.glob("*.toml"))


def find(name: str) -> Path:
    """The scenario with this name or path; raises ScenarioError naming what exists."""
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        return path
    path = SCENARIOS / f"{name}.toml"
    if path.is_file():
        return path
    raise ScenarioError(f"no scenario {name!r}; there are: {', '.join(p.stem for p in all_scenarios())}")


def load(path: Path) -> Scenario:
    """Read and check one scenario; raises ScenarioError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from error
    read = _Reader(str(path))
    read.keys(data, "", _SCENARIO)
    noise = data.get("noise", "L0")
    if noise not in LEVELS:
        raise read.error("noise", noise, LEVELS)
    plays = tuple(_play(read, entry, f"play[{n}]") for n, entry in enumerate(data.get("play", []), start=1))
    live = bool(data.get("live", False))
    if not live and any(action.verb in LIVE_VERBS for play in plays for action in play.actions):
        raise ScenarioError(f"{path}: kill and broker need `live = true`")
    opening = read.table(data, "opening", ("minimum_cents", "attest"))
    return Scenario(
        name=path.stem,
        path=path,
        title=str(data.get("title", path.stem)),
        law=tuple(data.get("law", ())),
        table=str(data["table"]) if "table" in data else read.missing("table"),
        seed=int(data.get("seed", 0)),
        noise=noise,
        live=live,
        demo=bool(data.get("demo", False)),
        overrides={section: data[section] for section in ("house", "options") if section in data},
        opening=opening,
        plays=plays,
    )


_SCENARIO = ("title", "law", "table", "seed", "noise", "live", "demo", "house", "options", "opening", "play")
_PLAY = ("spin", "drawn", "hand", "throw", "do", "pause_ms", "why")
_KINDS: Mapping[str, tuple[str, ...]] = {
    "spin": ("direction", "speed", "wind_up", "push_ms", "first_share", "touch"),
    "drawn": ("direction", "counts", "push_ms"),
    "hand": ("direction", "counts", "ms"),
    "throw": ("rotor", "ball", "number", "picked_up_ms", "sensor"),
}


def _play(read: _Reader, data: Mapping[str, Any], where: str) -> Play:
    read.keys(data, where, _PLAY)
    kinds = [kind for kind in _KINDS if kind in data]
    if len(kinds) > 1:
        raise ScenarioError(f"{read.file}: {where}: only one of {', '.join(_KINDS)}, not {' and '.join(kinds)}")
    kind = kinds[0] if kinds else ""
    how = read.table(data, kind, _KINDS[kind], where) if kind else {}
    for place, direction in _directions(how):
        if direction not in ("cw", "ccw"):
            raise read.error(f"{where}.{kind}.{place}", direction, ("cw", "ccw"))
    actions = tuple(
        _action(read, entry, f"{where}.do[{n}]", kind) for n, entry in enumerate(data.get("do", []), start=1)
    )
    return Play(kind=kind, how=how, actions=actions, pause_ms=int(data.get("pause_ms", 3000)))


def _directions(how: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "direction" in how:
        yield "direction", how["direction"]
    if "rotor" in how:
        yield "rotor.direction", how["rotor"].get("direction")


def _action(read: _Reader, data: Mapping[str, Any], where: str, kind: str) -> Action:
    read.keys(data, where, ("at", "ms", *VERBS))
    verbs = [verb for verb in VERBS if verb in data]
    if len(verbs) != 1:
        raise ScenarioError(f"{read.file}: {where}: exactly one of {', '.join(VERBS)} is needed, not {verbs or 'none'}")
    at = data.get("at", "start")
    if at not in MOMENTS[kind]:
        raise read.error(f"{where}.at", at, MOMENTS[kind])
    verb = verbs[0]
    if VERBS[verb]:
        read.table(data, verb, VERBS[verb], where)
    return Action(at=at, ms=int(data.get("ms", 0)), verb=verb, value=data[verb])


def touches(how: Mapping[str, Any]) -> tuple[Touch, ...]:
    """The touches of a spin: `{ newtons, ms, at_share | after_ms, pushes }`."""
    return tuple(
        Touch(
            newtons=float(entry["newtons"]),
            seconds=entry["ms"] / 1000,
            at_share=float(entry.get("at_share", 0.0)),
            after_s=entry["after_ms"] / 1000 if "after_ms" in entry else None,
            pushes=bool(entry.get("pushes", False)),
        )
        for entry in how.get("touch", ())
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Says where in which file something is wrong."""

    file: str

    def error(self, where: str, value: object, allowed: Collection[str]) -> ScenarioError:
        return ScenarioError(f"{self.file}: {where}: {value!r} is not one of: {', '.join(allowed)}")

    def missing(self, key: str) -> Any:
        raise ScenarioError(f"{self.file}: {key}: missing")

    def keys(self, data: Mapping[str, Any], where: str, allowed: Collection[str]) -> None:
        for key in data:
            if key not in allowed:
                raise self.error(f"{where}.{key}".strip("."), key, allowed)

    def table(self, data: Mapping[str, Any], key: str, allowed: Collection[str], where: str = "") -> Mapping[str, Any]:
        value = data.get(key, {})
        if not isinstance(value, dict):
            raise ScenarioError(f"{self.file}: {where}.{key}: must be a table with keys {', '.join(allowed)}")
        self.keys(value, f"{where}.{key}".strip("."), allowed)
        return value
