"""A configuration is refused with file, key, value and what is allowed; every problem at once."""

import base64
import contextlib
import copy
import dataclasses
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from controller.config import Config, toml
from controller.config_check import from_data
from controller.config_file import load, load_for_replay, read_toml, shipped_tables, tables_folder
from controller.errors import ConfigError, UsageError
from drivers import base
from drivers.base import Family
from drivers.buttons.decoder import Contact

ROUE, ROULETTE = "roue-de-la-chance", "roulette-francaise"
KEY = base64.b64encode(bytes(range(32))).decode()


def plain(name: str = ROUE) -> dict[str, Any]:
    return read_toml(shipped_tables()[name])


def changed(path: str, value: Any, data: dict[str, Any] | None = None) -> dict[str, Any]:
    """The shipped table with one value put (or, for None, taken away) at a dotted path."""
    data = plain() if data is None else copy.deepcopy(data)
    *above, last = path.split("/")
    section = data
    for name in above:
        section = section.setdefault(name, {})
    if value is None:
        del section[last]
    else:
        section[last] = value
    return data


def problems(data: Mapping[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        from_data(data, "x.toml")
    assert all(line.startswith("x.toml: ") for line in str(caught.value).splitlines())
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", sorted(shipped_tables()))
def test_every_shipped_table_loads_and_reads_back(name: str) -> None:
    config = load(shipped_tables()[name])
    again = from_data(tomllib.loads(toml(config.resolved())), "again")
    assert again.resolved() == config.resolved()
    assert again.digest() == config.digest()
    assert config.base == f"casino/{config.site}/{config.table}"


def test_values_become_what_the_rooms_need() -> None:
    config = load(shipped_tables()[ROULETTE])
    assert list(config.devices) == [
        "wheel", "wheel_sensor", "console",
        "button.rien_ne_va_plus", "button.faites_vos_jeux", "button.jeton_dans_le_cylindre",
    ]  # fmt: skip
    wheel = config.devices["wheel"]
    assert {role: line.offset for role, line in wheel.lines.items()} == {
        "wheel.a": 17,
        "wheel.b": 27,
        "wheel.index": 22,
    }
    button = config.devices["button.rien_ne_va_plus"]
    assert list(button.lines) == ["button.rien_ne_va_plus"]
    assert button.lines["button.rien_ne_va_plus"].active_low
    assert config.devices["wheel_sensor"].match == {"ID_SERIAL_SHORT": "SLINGSHOT-1"}
    assert config.chips["header"].path == "/dev/gpiochip0"
    assert config.house.sources == ("wheel_sensor", "console")
    assert config.house.options is not None


def test_a_contact_that_says_nothing_has_any_name() -> None:
    lid = {"chip": "header", "line": 9, "kind": "lid"}
    assert "button.couvercle" in from_data(changed("buttons/couvercle", lid), "x").devices


def test_a_bare_chip_name_is_a_kernel_chip_and_any_other_path_a_socket() -> None:
    for written, path in (("gpiochip4", "/dev/gpiochip4"), ("/tmp/rig.sock", "/tmp/rig.sock")):
        assert from_data(changed("chips/header/path", written), "x").chips["header"].path == path


@dataclasses.dataclass(frozen=True, kw_only=True)
class Beams:
    """Options of a family whose lines are only numbered."""

    beams: int = 2


@pytest.fixture
def beams(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    family = Family(name="beams", kind="edges", options=Beams, numbered=lambda given: given.beams, decoder=Contact)
    known, load_family = base.known_families(), base.load
    monkeypatch.setattr(base, "known_families", lambda: [*known, "beams"])
    monkeypatch.setattr(base, "load", lambda name: family if name == "beams" else load_family(name))

    def table(**given: Any) -> dict[str, Any]:
        section = {"family": "beams", "chip": "header", **given}
        return changed("devices/rim", {key: value for key, value in section.items() if value is not None})

    return table


def test_numbered_lines_are_a_list_of_offsets(beams: Callable[..., dict[str, Any]]) -> None:
    config = from_data(beams(lines=[2, 3]), "x")
    assert {role: line.offset for role, line in config.devices["rim"].lines.items()} == {"rim.0": 2, "rim.1": 3}
    resolved = config.resolved()
    assert resolved["devices"]["rim"]["lines"] == [2, 3]
    assert from_data(resolved, "x").digest() == config.digest()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"lines": None}, "devices.rim.lines: must be a list of 2 offsets on the chip, 0 to 63, in their order"),
        ({"lines": [2]}, "devices.rim.lines = [2]: must be a list of 2 offsets"),
        ({"lines": {"a": 2}}, "devices.rim.lines = {'a': 2}: must be a list of 2 offsets"),
        ({"lines": [2, 2]}, "devices.rim.lines.1 = 2: line 2 of chip 'header' is that of devices.rim.lines.0 already"),
        ({"lines": [2, 64]}, "devices.rim.lines.1 = 64: a whole number from 0 to 63"),
        ({"lines": [2, 17]}, "devices.rim.lines.1 = 17: line 17 of chip 'header' is that of devices.wheel.lines.a"),
        ({"lines": 2, "beams": "two"}, "devices.rim.lines = 2: must be a list of the offsets"),
        ({"lines": [2, 3], "line": 4}, "devices.rim.line = 4: a device of family beams has"),
    ],
)
def test_numbered_lines_that_are_wrong(beams: Callable[..., dict[str, Any]], given: Any, word: str) -> None:
    found = problems(beams(**given))
    assert any(problem.startswith(f"{word}") for problem in found), found


REFUSED: list[tuple[str, Any, list[str]]] = [
    ("housse", {}, ["housse = {}", "unknown key (did you mean house?)"]),
    ("schema", 2, ["schema = 2", "schema 1"]),
    ("site", "a/b", ["site = 'a/b'", "A-Z"]),
    ("table", None, ["table:"]),
    ("game", "roue_de_la_fortune", ["game = 'roue_de_la_fortune'", "roue_de_la_chance", "roulette_francaise"]),
    ("house/tableau", 2, ["house.tableau = 2", "did you mean tableaux?"]),
    ("house/tableaux", 0, ["house.tableaux = 0", "from 1 to 16"]),
    ("house/tableaux", "1", ["house.tableaux = '1'", "whole number"]),
    ("house/declared_minimum_cents", None, ["house.declared_minimum_cents: missing"]),
    ("house/declared_minimum_cents", 0, ["house.declared_minimum_cents = 0", "from 1"]),
    ("house/rien_ne_va_plus", "jamais", ["house.rien_ne_va_plus = 'jamais'", "croupier, signal, automatique"]),
    ("house/rnvp_late_max_ms", 500, ["house.rnvp_late_max_ms = 500", "at least rnvp_tolerance_ms (1000)"]),
    ("house/raise_to_held", ["sens"], ["house.raise_to_held = 'sens'", "code of a breach"]),
    ("house/sources", ["wheel", "camera"], ["house.sources = 'camera'", "wheel, console"]),
    ("house/sources", [], ["house.sources: missing: at least one", "wheel, console"]),
    ("house/sources", ["wheel", "wheel"], ["house.sources", "twice"]),
    ("house/sources", [1, [2], {}], ["house.sources = [2]", "wheel, console"]),
    ("house/draw_devices", ["rotor"], ["house.draw_devices = 'rotor'", "wheel, console"]),
    ("options/mirror", True, ["options.mirror = True", "unknown key", "miroir", "segments"]),
    ("options/miroir", "oui", ["options.miroir = 'oui'", "bool"]),
    ("options/segments", ["orange"], ["options.segments = ('orange',)", "R-RC-04 wants 24"]),
    ("chips/header/path", "chip0", ["chips.header.path = 'chip0'", "absolute"]),
    ("chips/header/pins", 4, ["chips.header.pins = 4", "allowed: path"]),
    ("chips/Header", {"path": "/dev/gpiochip1"}, ["chips.Header", "a-z"]),
    ("chips/other", {"path": "/dev/gpiochip0"}, ["chips.other.path", "another chip already"]),
    ("devices/wheel/family", "encodeur", ["devices.wheel.family = 'encodeur'", "encoder", "slingshot2"]),
    ("devices/wheel/family", None, ["devices.wheel.family:", "encoder"]),
    ("devices/wheel/chip", "hat", ["devices.wheel.chip = 'hat'", "header"]),
    ("devices/wheel/counts_per_tour", 2400, ["devices.wheel.counts_per_tour = 2400", "did you mean counts_per_turn?"]),
    ("devices/wheel/counts_per_turn", 0, ["devices.wheel.counts_per_turn = 0: allowed is a multiple of 4"]),
    ("devices/wheel/cells", 0, ["devices.wheel.cells = 0", "2 to counts_per_turn / 8"]),
    ("devices/wheel/cells", 50, ["devices.wheel.cells = 50", "the wheel of this game has 52"]),
    ("devices/wheel/direction", "left", ["devices.wheel.direction = 'left'", "cw, ccw"]),
    ("devices/wheel/lines/c", 4, ["devices.wheel.lines.c = 4", "a, b, index"]),
    ("devices/wheel/lines/a", None, ["devices.wheel.lines.a: missing", "0 to 63"]),
    ("devices/wheel/lines/a", 64, ["devices.wheel.lines.a = 64", "from 0 to 63"]),
    (
        "devices/wheel/lines/a",
        27,
        ["devices.wheel.lines.b = 27", "line 27 of chip 'header' is that of devices.wheel.lines.a already"],
    ),
    ("devices/wheel/baud", 9600, ["devices.wheel.baud = 9600", "a device of family encoder has"]),
    ("devices/wheel/bias", "up", ["devices.wheel", "pull_up"]),
    ("devices/console/match", None, ["devices.console", "exactly one"]),
    ("devices/console/path", "/dev/ttyS1", ["devices.console", "exactly one"]),
    ("devices/console/match/ID_SERIAL_SHORT", "", ["devices.console.match", "length >= 1"]),
    ("devices/console/match/ID_SERIAL_SHORT", 7, ["devices.console.match", "str"]),
    ("devices/console/baud", 50, ["devices.console.baud = 50", "from 300"]),
    ("devices/console/chip", "header", ["devices.console.chip = 'header'", "a device of family console has"]),
    ("devices/console", "usb", ["devices.console = 'usb'", "must be a table"]),
    ("buttons/coup_null", {"chip": "header", "line": 9}, ["buttons.coup_null: nobody hears", "coup_nul, "]),
    ("lamps/litiges", {"chip": "header", "line": 9}, ["lamps.litiges: nobody switches", "litige, rien_"]),
    ("buttons/coup_nul/line", 17, ["buttons.coup_nul.line = 17", "devices.wheel.lines.a already"]),
    ("buttons/coup_nul/line", None, ["buttons.coup_nul.line: missing"]),
    ("buttons/coup_nul/family", "buttons", ["buttons.coup_nul.family"]),
    ("lamps/sens/line", 23, ["lamps.sens.line = 23", "buttons.rien_ne_va_plus.line already"]),
    ("lamps/sens/chip", "hat", ["lamps.sens.chip = 'hat'", "header"]),
    ("lamps/sens/colour", "red", ["lamps.sens.colour = 'red'", "active_low"]),
    ("mqtt/url", "tcp://broker", ["mqtt.url = 'tcp://broker'", "mqtts://"]),
    ("mqtt/url", "mqtt://broker:65536", ["mqtt.url = 'mqtt://broker:65536'", "PORT from 1 to 65535"]),
    ("mqtt/url", "mqtt://me:secret@broker", ["mqtt.url", "own keys"]),
    ("mqtt/password_file", "pw", ["mqtt.password_file = 'pw'", "absolute"]),
    ("mqtt/keepalive_s", 1, ["mqtt.keepalive_s = 1", "from 5 to 600"]),
    ("state/folder", "state", ["state.folder = 'state'", "absolute"]),
    ("state/socket", "/" + "s" * 107, ["state.socket", "107"]),
    ("flight/seconds", 1, ["flight.seconds = 1", "from 10"]),
    ("log/level", "loud", ["log.level = 'loud'", "debug, info, warning, error"]),
    ("keys", {"name": "x"}, ["keys", "array of tables"]),
    ("keys", [{"name": "a", "role": "patron", "public": KEY}], ["keys[1].role = 'patron'", "comite, chef, croupier"]),
    ("keys", [{"name": "a", "role": "chef", "public": "c2hvcnQ="}], ["keys[1].public", "32 bytes"]),
    ("keys", [{"name": "a", "role": "chef", "public": "?"}], ["keys[1].public", "32 bytes"]),
    ("keys", [{"name": "a", "role": "chef", "public": "A" * 43 + "="}], ["keys[1].public", "placeholder"]),
    ("keys", [{"name": "a", "role": "chef", "public": KEY}] * 2, ["keys[2].name = 'a'", "another key"]),
    ("local", [{"role": "chef"}], ["local[1]", "user or a Unix group"]),
]


@pytest.mark.parametrize(("path", "value", "words"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refused_with_key_value_and_what_is_allowed(path: str, value: Any, words: list[str]) -> None:
    found = problems(changed(path, value))
    assert any(all(word in problem for word in words) for problem in found), found


def places(section: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in section.items():
        yield above + key
        if isinstance(value, dict):
            yield from places(value, f"{above}{key}/")


@pytest.mark.parametrize("name", [ROUE, ROULETTE])
def test_whatever_stands_anywhere_is_accepted_or_refused_in_words(name: str) -> None:
    data = plain(name)
    strange: list[Any] = [None, 0, -1, 10**30, float("nan"), "", [1, [2]], {}]
    for place in places(data):
        for value in strange:
            with contextlib.suppress(ConfigError):
                config = from_data(changed(place, value, data), "x")
                assert from_data(tomllib.loads(toml(config.resolved())), "y").digest() == config.digest()


def test_a_sensor_of_another_wheel_is_refused() -> None:
    data = changed("devices/wheel_sensor/pockets", 38, plain(ROULETTE))
    assert problems(data) == ["devices.wheel_sensor.pockets = 38: the wheel of this game has 37"]


def test_a_source_that_reads_no_result_is_refused() -> None:
    """Beams see the ball and an encoder without pegs the sense: no coup would ever hear a number from them."""
    rim = {"family": "rim", "chip": "header", "lines": [7, 8], "beams_deg": [0, 120]}
    data = changed("devices/rim", rim, plain(ROULETTE))
    from_data(data, "x.toml")
    data = changed("house/sources", ["rim", "wheel", "console"], data)
    why = "tells no result of a draw; name it in draw_devices alone"
    assert problems(data) == [f"house.sources = 'rim': {why}", f"house.sources = 'wheel': {why}"]


def test_two_devices_on_one_adapter_are_refused() -> None:
    data = plain(ROULETTE)
    adapter = data["devices"]["wheel_sensor"]["match"]
    (problem,) = problems(changed("devices/console/match", adapter, data))
    assert problem.startswith("devices.console.match = ")
    assert problem.endswith("that is the adapter of devices.wheel_sensor already")


def test_all_problems_of_a_file_are_told_at_once() -> None:
    data = changed("house/tableau", 2)
    data = changed("devices/wheel/lines/a", 99, data)
    data = changed("lamps/sens/chip", "hat", data)
    data = changed("mqtt/url", "x", data)
    keys = {problem.partition(" ")[0] for problem in problems(data)}
    assert {"house.tableau", "devices.wheel.lines.a", "lamps.sens.chip", "mqtt.url"} <= keys


def test_a_minimum_that_the_text_forbids_is_refused_by_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of the game itself are asked with the declared minimum."""
    from dataclasses import replace

    from rules import game
    from rules.bets import Refusal

    def limits(*args: Any) -> Refusal:
        return Refusal(code="x", requirement="R-X-01", text="minimum trop bas")

    real = game.load("roue_de_la_chance")
    monkeypatch.setattr("controller.config_check.games.load", lambda game_id: replace(real, limits=limits))
    assert problems(plain()) == ["house.declared_minimum_cents = 200: minimum trop bas (R-X-01)"]


def test_a_file_that_cannot_be_read_or_is_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: file: cannot be read: No such file"):
        load(tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("schema = = 1\n")
    with pytest.raises(ConfigError, match="line 1, column"):
        load(broken)
    broken.write_bytes(b'site = "\xff"\n')
    with pytest.raises(ConfigError, match="is not TOML"):
        load(broken)


def test_the_digest_changes_with_any_value() -> None:
    first = from_data(plain(), "a")
    assert first.digest() == from_data(plain(), "b").digest()
    assert first.digest() != from_data(changed("house/agree_within_ms", 2999), "a").digest()
    assert first.digest().startswith("sha256:")


# --- configurations of traces ----------------------------------------------------------------------------------------


def same(config: Config, name: str) -> bool:
    return config.resolved() == load(shipped_tables()[name]).resolved()


@pytest.mark.parametrize(
    "header",
    [
        {"game": "roulette_francaise"},
        {"game": "roulette_francaise", "config": {}},
        {"game": "roulette_francaise", "config": None},
        {"game": "roulette_francaise", "config": ROULETTE},
        {"config": ROULETTE},
        {"config": str(tables_folder() / f"{ROULETTE}.toml")},
        {"game": "roulette_francaise", "config": plain(ROULETTE)},
        {"config": {"game": "roulette_francaise"}},
    ],
)
def test_a_trace_names_its_table_in_any_of_these_ways(header: dict[str, Any]) -> None:
    assert same(load_for_replay(header), ROULETTE)


def test_a_partial_configuration_is_completed_from_the_shipped_table() -> None:
    given = {"house": {"rien_ne_va_plus": "automatique"}, "lamps": {}}
    config = load_for_replay({"game": "roue_de_la_chance", "config": given})
    assert config.house.rien_ne_va_plus == "automatique"
    assert config.house.declared_minimum_cents == 200
    assert config.lamps == {}
    assert "wheel" in config.devices


def test_a_file_given_by_hand_goes_before_the_header(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml(changed("table", "mine")))
    assert load_for_replay({"game": "roue_de_la_chance", "config": ROULETTE}, path).table == "mine"
    with pytest.raises(UsageError, match=r"game is 'boule' but '.*mine\.toml' is a table of 'roue_de_la_chance'"):
        load_for_replay({"game": "boule"}, path)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"game": "poker", "config": {}}, "no shipped table plays 'poker'; there are: .*roue_de_la_chance"),
        ({}, "no shipped table plays None"),
        ({"game": "roue_de_la_chance", "config": ROULETTE}, "game is 'roue_de_la_chance' but '.*roulette-francaise"),
        ({"game": "roue_de_la_chance", "config": {"game": "boule"}}, "its config says 'boule'"),
        ({"config": "no-such-table"}, "neither a file nor a shipped table .*roulette-francaise"),
        ({"game": "roue_de_la_chance", "config": 7}, "must be an object, a path or a table name"),
    ],
)
def test_a_trace_whose_table_cannot_be_found_is_refused(header: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_for_replay(header)


def test_a_wrong_partial_configuration_is_refused_by_key() -> None:
    with pytest.raises(ConfigError, match=r"header: config: house\.tableau"):
        load_for_replay({"game": "roue_de_la_chance", "config": {"house": {"tableau": 2}}})
