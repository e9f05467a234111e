"""Every French word that the code keeps has its row in `rules/GLOSSARY.md`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from enum import StrEnum
from pathlib import Path

import pytest

import rules
from rules.decisions import Severity, Status
from rules.facts import Direction, Origin
from rules.game import Game, House, known_games
from rules.table import RUNNING

ENGLISH = {Direction, Origin, Severity, Status}
"""Enums whose members are plain English words."""
SAID_TO_THE_TABLE = {"dernier_coup", "confirme", "choix_clos", "faites_vos_jeux"}
"""Announcements that the table hears itself (rules.table.announced)."""
ROW = re.compile(r"^\| .+ \| .+ \| .+ \| .+ \| `([^`]+)` \|$")
GLOSSARY = Path(rules.__file__).with_name("GLOSSARY.md").read_text("utf-8")
CODES = [match[1] for line in GLOSSARY.splitlines() if (match := ROW.match(line))]
GAMES: list[Game] = [
    game for module in known_games().values() for game in importlib.import_module(module).GAMES.values()
]


def enums() -> list[type[StrEnum]]:
    """Every StrEnum that a module of `rules` defines."""
    found = []
    for info in pkgutil.walk_packages(rules.__path__, "rules."):
        module = importlib.import_module(info.name)
        found += [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, StrEnum) and kind.__module__ == info.name
        ]
    return found


def test_every_line_of_a_table_is_a_row_with_five_columns() -> None:
    rows = [line for line in GLOSSARY.splitlines() if line.startswith("|") and "---" not in line]
    assert len(CODES) == len([line for line in rows if not line.endswith("| code |")])


@pytest.mark.parametrize("kind", enums(), ids=lambda kind: kind.__name__)
def test_every_member_of_a_french_enum_has_a_row(kind: type[StrEnum]) -> None:
    missing = [f"{kind.__name__}.{member.name}" for member in kind]
    if kind not in ENGLISH:
        assert set(missing) <= set(CODES)


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.id)
def test_every_bet_code_choice_and_attestation_of_a_game_has_a_row(game: Game) -> None:
    house = House(declared_minimum_cents=1)
    decided: list[dict[str, object]] = [dict.fromkeys(game.public_options, way) for way in (False, True)]
    needs = {need.what for options in decided for need in game.needs(house, options)}
    wanted = {*game.layout(None).kinds, *game.says, *needs, *game.public_options, *SAID_TO_THE_TABLE}
    wanted |= set(game.options.__dataclass_fields__)
    if game.id == "roulette_francaise":
        wanted |= {"retire", "prison"}
    assert wanted <= set(CODES)
    assert game.phases >= RUNNING


def test_a_row_names_something_that_exists() -> None:
    source = "\n".join(path.read_text("utf-8") for path in Path(rules.__file__).parent.rglob("*.py"))
    members = {f"{kind.__name__}.{member.name}" for kind in enums() for member in kind}
    for code in CODES:
        assert code in members if "." in code else code in source
