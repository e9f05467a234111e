"""A scenario: one TOML file that tells what people and things do at a table, from the croupier's hands upwards.

::

    title = "..."                       what it shows
    law = ["R-RC-07"]                   the requirements it is about
    table = "roue-de-la-chance"         a file of config/tables
    seed = 7                            everything random comes from here
    noise = "L0"                        faults of every sensor on lines: clean, L0 to L4 (LEVELS in hil/devices)
    live = true                         only the live rig can play it (it kills programs)
    demo = true                         this is what `./dev demo` plays on its table, over and over
    [house] [options] [devices]         overrides of the table's config; an empty device is not there
    [opening]                           attest = { verification = ["comite", "croupier"] }, minimum_cents = ...,
                                        maxima = { plein = ... }, options = { plus_de_douze_joueurs = false }
                                        without this section nobody opens the table

    [[play]]                            one handling of the apparatus, in order
    spin  = { direction, speed, wind_up, push_ms, first_share, touch = [...] }     the vertical wheel, by its physics
    spin  = { direction, speed, push_ms, number | cell, hops, sensor }             the plate, with its ball
    drawn = { direction, counts, push_ms }                                         the vertical wheel, exactly so far
    hand  = { direction, counts, ms }                                              anything that turns, held all the way
    throw = { rotor = { direction, speed }, ball = { speed, with_rotor }, number, picked_up_ms, sensor = {...} }
    throw = { ball = { speed }, number | cell, picked_up_ms, hops, sensor }        the ball of a basin
                                        hops = { ms, cell }: it rests, and later goes elsewhere;
                                        sensor = { misses = ["cup"], also = 7 }: not seen where it lies, something in 7
    do    = [ { at = "released", ms = 400, press = "rien_ne_va_plus" }, ... ]      what people do meanwhile
    pause_ms = 3000                     quiet after the last movement

An action happens `ms` milliseconds after (negative: before) the physical moment `at`; the moments of each kind of play
are in `MOMENTS`, the verbs in `VERBS`. The expected decisions stand beside the file in `<name>.expected.jsonl`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, inspect

from hil.devices.encoder import LEVELS
from hil.physics.wheel import Touch

MOMENTS: Mapping[str, tuple[str, ...]] = {
    "spin": ("start", "pushed", "released", "touched", "settled", "rest", "read"),
    "drawn": ("start", "pushed", "released", "rest"),
    "hand": ("start", "released"),
    "throw": ("start", "released", "thrown", "seen", "drop_due", "dropped", "settled", "read"),
    "": ("start",),
}
"""Moments by kind of play: a hand begins to push, lets go, a touch begins, the thing rests; the ball is thrown, seen by
the sensor, slow enough to be about to drop, off the rim, at rest in its pocket, cup or cell, and read."""

Direction = Literal["cw", "ccw"]
Milliseconds = Annotated[int, Meta(ge=0, le=600_000)]
Speed = Annotated[float, Meta(gt=0, le=30)]
"""Radians a second."""
Share = Annotated[float, Meta(ge=0, le=1)]
Pocket = Annotated[int, Meta(ge=0, le=36)] | Literal["00"]
Cell = Annotated[int, Meta(ge=0, le=63)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Person = Literal["comite", "chef", "croupier", "technicien"]


class Form(Struct, forbid_unknown_fields=True, kw_only=True):
    """A table of a scenario file: its keys and what each may be."""


class Force(Form):
    """Somebody touches the wheel: `at_share` of its launch speed, or `after_ms`."""

    newtons: Annotated[float, Meta(ge=0, le=1000)]
    ms: Milliseconds
    at_share: Share = 0.0
    after_ms: Milliseconds | UnsetType = UNSET
    pushes: bool = False


class Sensed(Form):
    """Errors of the in-wheel sensor, or of those at the cells."""

    misses: list[Literal["ball", "slow", "number", "cup"]] = []
    reads: Pocket = 0
    also: Cell | UnsetType = UNSET
    """A cell that is occupied too: something else lies in it."""
    dead_beams: list[Annotated[int, Meta(ge=0, le=3)]] = []
    """Beams of the rim that see nothing in this throw."""


class Hop(Form):
    """The ball has come to rest, and later hops into another cell."""

    ms: Milliseconds
    cell: Cell


class Spin(Form):
    """The vertical wheel, or the plate with its ball, by its physics."""

    direction: Direction
    speed: Speed
    wind_up: Annotated[float, Meta(ge=0, le=6)] = 0.0
    push_ms: Milliseconds = 700
    first_share: Share = 1.0
    touch: list[Force] = []
    number: Annotated[int, Meta(ge=1, le=14)] | UnsetType = UNSET
    cell: Cell | UnsetType = UNSET
    hops: Hop | UnsetType = UNSET
    sensor: Sensed | UnsetType = UNSET


class Drawn(Form):
    """The vertical wheel, exactly so far."""

    direction: Direction
    counts: Count
    push_ms: Milliseconds = 700


class Hand(Form):
    """Anything that turns, held all the way."""

    direction: Direction
    counts: Count
    ms: Annotated[int, Meta(ge=1, le=600_000)]


class Actuated(Form):
    """What is done to the rotor."""

    direction: Direction
    speed: Speed = 2.2


class Ball(Form):
    """How the ball is thrown."""

    speed: Annotated[float, Meta(ge=3, le=30)] = 5.5
    with_rotor: bool = False


class Throw(Form):
    """The ball, and the rotor where it is actuated."""

    rotor: Actuated | UnsetType = UNSET
    ball: Ball | UnsetType = UNSET
    number: Pocket | UnsetType = UNSET
    cell: Cell | UnsetType = UNSET
    picked_up_ms: Milliseconds | UnsetType = UNSET
    hops: Hop | UnsetType = UNSET
    sensor: Sensed | UnsetType = UNSET


class Stake(Form, kw_only=True):
    """A chip on the cloth, or taken away."""

    spot: str
    cents: Count | UnsetType = UNSET
    jetons: Count | UnsetType = UNSET
    """Cents, or so many colour chips."""
    chip: str | UnsetType = UNSET
    player: str
    tableau: Count = 1
    remove: bool = False


class Choice(Form):
    """A player's answer to an offer."""

    player: str
    what: str
    value: str
    tableau: Count = 1


class Order(Form):
    """A command that the floor signs."""

    name: str
    role: Person
    args: dict[str, Any] = {}


class Do(Form):
    """What somebody does `ms` after the moment `at`, by exactly one verb."""

    at: str = "start"
    ms: Annotated[int, Meta(ge=-600_000, le=600_000)] = 0
    press: str | UnsetType = UNSET
    """A button."""
    say: str | UnsetType = UNSET
    stake: Stake | UnsetType = UNSET
    choose: Choice | UnsetType = UNSET
    confirm: bool | int | str | UnsetType = UNSET
    result: int | str | UnsetType = UNSET
    """say to result: on the keypad."""
    command: Order | UnsetType = UNSET
    unplug: str | UnsetType = UNSET
    plug: str | UnsetType = UNSET
    """A device role, or one line (`cups.3`): a torn wire, or a sensor that sticks."""
    kill: Literal["daemon"] | UnsetType = UNSET
    broker: Literal["down", "up"] | UnsetType = UNSET


class Handling(Form):
    """One play: at most one kind of motion."""

    spin: Spin | UnsetType = UNSET
    drawn: Drawn | UnsetType = UNSET
    hand: Hand | UnsetType = UNSET
    throw: Throw | UnsetType = UNSET
    do: list[Do] = []
    pause_ms: Milliseconds = 3000
    why: str = ""


class Opening(Form):
    """What the house decides and who signs for what before the table is opened, its minimum and maxima."""

    options: dict[str, Any] = {}
    attest: dict[str, list[Person]] = {}
    minimum_cents: Count | UnsetType = UNSET
    maxima: dict[str, Count] = {}


class File(Form):
    """The whole file."""

    table: str
    title: str = ""
    law: list[str] = []
    seed: int = 0
    noise: str = "L0"
    live: bool = False
    demo: bool = False
    house: dict[str, Any] = {}
    options: dict[str, Any] = {}
    devices: dict[str, dict[str, Any]] = {}
    opening: Opening | UnsetType = UNSET
    play: list[Handling] = []


KINDS = tuple(kind for kind in MOMENTS if kind)
VERBS = tuple(name for name in Do.__struct_fields__ if name not in ("at", "ms"))
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
    """One handling of the apparatus; `how` holds the keys of its kind (`spin`, `drawn`, `hand`, `throw`, or empty)."""

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
    def marks(self) -> str:
        """What sets it apart, for lists of scenarios."""
        marks = [f"noise {self.noise}" if self.noise != "L0" else "", "live only" if self.live else ""]
        return "".join(f"  ({mark})" for mark in marks if mark)

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
        file = convert(data, File)
    except ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        where = re.sub(r"\[(\d+)\]", lambda number: f"[{int(number[1]) + 1}]", place.strip(".`"))  # people count from 1
        raise ScenarioError(f"{path}: {where or 'file'}: {what}{_allowed(place)}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from error
    if file.noise not in LEVELS:
        raise ScenarioError(f"{path}: noise: {file.noise!r}; allowed: {', '.join(LEVELS)}")
    plays = tuple(
        _play(f"{path}: play[{n}]", *both)
        for n, both in enumerate(zip(file.play, data.get("play", ()), strict=True), 1)
    )
    if not file.live and any(action.verb in LIVE_VERBS for play in plays for action in play.actions):
        raise ScenarioError(f"{path}: kill and broker need `live = true`")
    return Scenario(
        name=path.stem,
        path=path,
        title=file.title or path.stem,
        law=tuple(file.law),
        table=file.table,
        seed=file.seed,
        noise=file.noise,
        live=file.live,
        demo=file.demo,
        overrides={section: data[section] for section in ("house", "options", "devices") if section in data},
        opening=data.get("opening", {}),
        plays=plays,
    )


def _play(where: str, form: Handling, raw: Mapping[str, Any]) -> Play:
    kinds = [kind for kind in KINDS if kind in raw]
    if len(kinds) > 1:
        raise ScenarioError(f"{where}: only one of {', '.join(KINDS)}, not {' and '.join(kinds)}")
    kind = kinds[0] if kinds else ""
    both = enumerate(zip(form.do, raw.get("do", ()), strict=True), 1)
    actions = tuple(_action(f"{where}.do[{n}]", kind, do, raw_do) for n, (do, raw_do) in both)
    return Play(kind=kind, how=raw.get(kind, {}), actions=actions, pause_ms=form.pause_ms)


def _action(where: str, kind: str, form: Do, raw: Mapping[str, Any]) -> Action:
    verbs = [verb for verb in VERBS if verb in raw]
    if len(verbs) != 1:
        raise ScenarioError(f"{where}: exactly one of {', '.join(VERBS)} is needed, not {verbs or 'none'}")
    if form.stake is not UNSET and (form.stake.cents is UNSET) is (form.stake.jetons is UNSET):
        raise ScenarioError(f"{where}.stake: either cents or jetons")
    if form.at not in MOMENTS[kind]:
        raise ScenarioError(f"{where}.at: {form.at!r}; allowed: {', '.join(MOMENTS[kind])}")
    return Action(at=form.at, ms=form.ms, verb=verbs[0], value=raw[verbs[0]])


def _allowed(place: str) -> str:
    """What may stand at this place of a file, where that is a choice: keys of a table, or words."""
    node: Any = inspect.type_info(File)
    for name in re.findall(r"\.(\w+)", place):
        node = next(field.type for field in _inner(node).fields if field.encode_name == name)
    node = _inner(node)
    choice = [field.encode_name for field in getattr(node, "fields", [])] or getattr(node, "values", [])
    return f"; allowed: {', '.join(map(str, choice))}" if choice else ""


def _inner(node: Any) -> Any:
    """The table or the words in a list, under a name, or beside UNSET."""
    while True:
        match node:
            case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
                node = inner
            case inspect.UnionType(types=(inner, *_)):
                node = inner
            case _:
                return node


def opening_commands(opening: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(name, role, arguments) of the commands that open a table as `[opening]` says."""
    if opening.get("options"):
        yield "options", "comite", dict(opening["options"])
    for what, roles in opening.get("attest", {}).items():
        for role in roles:
            yield "attest", role, {"what": what}
    yield "open", "comite", {key: value for key, value in opening.items() if key in ("minimum_cents", "maxima")}


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
