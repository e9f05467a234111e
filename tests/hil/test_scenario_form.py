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
        ("table =", "tabel =", "'tabel' is not one of: title, law, table"),
        ('"cw"', '"links"', "spin.direction: 'links' is not one of: cw, ccw"),
        ("speed", "sped", "play[1].spin.sped: 'sped' is not one of: direction, speed"),
        ('at = "released"', 'at = "dropped"', "do[1].at: 'dropped' is not one of: start, pushed, released"),
        ("press =", "push =", "'push' is not one of: at, ms, press"),
        (', press = "rien_ne_va_plus"', "", "exactly one of press, say"),
        ('press = "rien_ne_va_plus"', 'kill = "daemon"', "kill and broker need `live = true`"),
        ("[[play]]", 'noise = "L9"\n[[play]]', "noise: 'L9' is not one of: clean, L0"),
        ("[[play]]", "[[play]]\nthrow = {}", "only one of spin, drawn, hand, throw"),
        ('table = "roue-de-la-chance"', "", "table: missing"),
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
    with pytest.raises(ValueError, match=r"x.jsonl:2"):
        read_expected(path)
