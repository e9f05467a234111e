"""A seance at the shipped table of any game: whoever must sign signs, whatever must be decided is decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from controller.config_check import from_data
from controller.config_file import read_toml, shipped_tables
from rules import game as games
from rules import seance
from rules.decisions import Refused
from rules.desk import Desk
from rules.facts import Commanded
from rules.game import House
from rules.table import Table
from tests.rules.wheels import Wheel


def shipped(game_id: str) -> House:
    """The house of the shipped table of this game."""
    return from_data(read_toml(shipped_tables()[game_id.replace("_", "-")]), game_id).house


class Sitting(Wheel):
    """A table of a game, and a house that does what the text wants of it."""

    def __init__(self, game_id: str, **changes: Any) -> None:
        super().__init__(Table(games.load(game_id), replace(shipped(game_id), **changes)))

    def sign(self, when: Literal["open", "raise", "close", "reopen"]) -> None:
        """Whatever is still needed for this step is attested, by every role that must."""
        told = Commanded(at_ns=self.now, source="command", name="attest", by="x", role="comite", args={})
        desk = Desk(self.table.game, self.table.house, self.table.layout, self.state, told)
        for need in seance.unsigned(desk, when):
            for role in need.roles:
                self.command("attest", what=need.what, role=role, by=f"the {role}")
                assert not self.told(Refused)

    def decide(self) -> None:
        """What must be decided before the opening is answered by no."""
        undecided: dict[str, Any] = {
            name: False
            for name, option in self.table.game.public_options.items()
            if option.needed and name not in self.state.public_options
        }
        if undecided and not self.state.seance_open:
            self.command("options", **undecided)
            assert not self.told(Refused)

    def open(self, **args: Any) -> None:
        self.decide()
        self.sign("open")
        if not self.state.seance_open:
            self.sign("raise")
        self.command("open", **args)

    def close(self, **args: Any) -> None:
        self.sign("close")
        self.command("close", **args)
        assert not self.told(Refused)
