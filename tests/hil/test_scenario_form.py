"""The scenario form and the matcher of expected decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hil.expect import differences, like, read_expected
from hil.scenario import ScenarioError, all_scenarios, find, load

GOOD = """
table = "roue-de-la-chance"
[[play]]
spin = { direction = "cw", speed = 4.0 }
do = [ { at = "released", ms = 300, press = "rien_ne_va_plus" } ]
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "essai.toml"
    path.write_text(text)
    return path


def test_a_scenario_reads(tmp_path: Path) -> None:
    scenario = load(write(tmp_path, GOOD))
    (play,) = scenario.plays
    assert (scenario.name, scenario.table, play.kind) == ("essai", "roue-de-la-chance", "spin")
    assert (play.actions[0].verb, play.actions[0].value, play.actions[0].ms) == ("press", "rien_ne_va_plus", 300)
    assert scenario.expected == tmp_path / "essai.expected.jsonl"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("table =", "tabel =", "unknown field `tabel`; allowed: table, title, law"),
        ('"roue-de-la-chance"', "3", "table: Expected `str`, got `int`"),
        ('"cw"', '"links"', "play[1].spin.direction: Invalid enum value 'links'; allowed: ccw, cw"),
        ('direction = "cw", ', "", "play[1].spin: Object missing required field `direction`; allowed: direction, "),
        ("speed", "sped", "play[1].spin: Object contains unknown field `sped`; allowed: direction, speed"),
        ("4.0", '"fast"', "play[1].spin.speed: Expected `float`, got `str`"),
        ("4.0", "1e9", "play[1].spin.speed: Expected `float` <= 30.0"),
        ("4.0", "4.0, touch = [{ ms = 3 }]", "play[1].spin.touch[1]: Object missing required field `newtons`"),
        ('at = "released"', 'at = "dropped"', "do[1].at: 'dropped'; allowed: start, pushed, released"),
        ("press =", "push =", "play[1].do[1]: Object contains unknown field `push`; allowed: at, ms, press"),
        (', press = "rien_ne_va_plus"', "", "exactly one of press, say"),
        ('press = "rien_ne_va_plus"', 'kill = "daemon"', "kill and broker need `live = true`"),
        ('press = "rien_ne_va_plus"', 'command = { name = "void", role = "king" }', "allowed: chef, comite, croupier"),
        ("[[play]]", 'noise = "L9"\n[[play]]', "noise: 'L9'; allowed: clean, L0"),
        ("[[play]]", "[[play]]\nthrow = {}", "only one of spin, drawn, hand, throw"),
        ("[[play]]", "[play]", "play: Expected `array`, got `object`"),
        ('table = "roue-de-la-chance"', "", "Object missing required field `table`; allowed: table"),
        ("table =", "table", "essai.toml: Expected '=' after a key"),
    ],
)
def test_a_bad_scenario_says_where_and_what_is_allowed(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(write(tmp_path, GOOD.replace(old, new)))
    assert said in str(caught.value)
    assert "essai.toml" in str(caught.value)


def test_an_unknown_name_lists_what_exists() -> None:
    with pytest.raises(ScenarioError, match=r"no scenario 'x'; there are: .*"):
        find("x")


def test_every_shipped_scenario_reads_and_has_its_expected_decisions() -> None:
    for path in all_scenarios():
        scenario = load(path)
        assert any("out" in line for line in read_expected(scenario.expected)), path


TOLD: list[dict[str, Any]] = [
    {"out": "StakeAccepted", "after": 3, "player": "J1", "cents": 500},
    {
        "out": "CoupEnded",
        "after": 9,
        "status": "held",
        "reasons": [{"code": "a", "severity": "held"}],
        "travel_counts": 7200,
    },
]


@pytest.mark.parametrize(
    ("expected", "wrong"),
    [
        ([{"out": "CoupEnded", "status": "held"}], 0),
        ([{"out": "CoupEnded", "reasons": [{"code": "a"}], "travel_counts": {"between": [7200, 7200]}}], 0),
        ([{"out": "StakeAccepted"}, {"out": "CoupEnded"}], 0),
        ([{"out": "CoupEnded"}, {"out": "StakeAccepted"}], 1),  # order
        ([{"out": "CoupEnded", "status": "valid"}], 2),  # missing, and the held one is unexpected
        ([], 1),  # a coup's end must always be named
        ([{"out": "CoupEnded", "reasons": []}], 2),  # lists item by item
        ([{"out": "CoupEnded", "travel_counts": {"between": [1, 7199]}}], 2),
        ([{"out": "CoupEnded"}, {"never": {"out": "StakeAccepted", "player": "J1"}}], 1),
        ([{"out": "CoupEnded"}, {"never": {"out": "StakeAccepted", "player": "J2"}}, {"why": "..."}], 0),
    ],
)
def test_the_matcher(expected: list[dict[str, Any]], wrong: int) -> None:
    assert len(differences(expected, TOLD)) == wrong


def test_one_is_not_true() -> None:
    assert not like(1, True)
    assert like(True, True)


def test_a_bad_expected_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"out": "A"}) + "\n" + json.dumps({"nothing": 1}))
    with pytest.raises(ScenarioError, match=r"x.jsonl:2"):
        read_expected(path)
    with pytest.raises(ScenarioError, match=r"none.jsonl: No such file"):
        read_expected(tmp_path / "none.jsonl")
