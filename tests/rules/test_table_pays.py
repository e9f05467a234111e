"""A table that plays a coup pays what `settle` answers for the same bets: one law, two ways to ask it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.cases import answer
from rules.money import from_wire
from tests.rules.outcomes import OUTCOMES
from tests.rules.playbook import CCW, CW
from tests.rules.sitting import Sitting
from tests.rules.wheels import PER_TURN, faits


def drawn(game: Sitting, outcome: dict[str, Any], sense: Any) -> None:
    """The draw that ends in this outcome, as the instruments and people of this game tell it."""
    match game.table.game.id:
        case "boule":
            game.call()
            game.read(outcome["number"], "console")
        case "vingt_trois":
            game.call()
            game.spin(sense)
            game.read(f"{outcome['number']}-{outcome['colour']}", "console")
        case "roue_de_la_chance":
            game.spin(sense)
            game.slow()
            game.call()
            game.stop(4 * PER_TURN, cell=game.table.house.options.segments.index(outcome["colour"]), direction=sense)
        case _:
            faits(game, sense)
            game.chance(outcome["numbers"][0])
            game.say("choix_clos")  # at a zero of the française: nobody chooses


@pytest.mark.parametrize("game_id", OUTCOMES)
@settings(max_examples=25)
@given(data=st.data())
def test_the_table_pays_what_settle_says(game_id: str, data: st.DataObject) -> None:
    game = Sitting(game_id, sources=("console",) if game_id in ("boule", "vingt_trois") else ("wheel",))
    if game_id.startswith("roulette"):
        game = Sitting(game_id)
    game.open()
    spots = sorted(game.table.layout.spots)
    last = game.table.house.tableaux
    sense = CW
    for _ in range(2):
        for _ in range(data.draw(st.integers(0, 6))):
            game.chip(
                data.draw(st.sampled_from(spots)),
                game.table.house.declared_minimum_cents * data.draw(st.integers(1, 3)) + data.draw(st.integers(0, 1)),
                player=data.draw(st.sampled_from(["J1", "J2"])),
                tableau=data.draw(st.integers(1, last)),
            )
        lying = game.state.stakes
        outcome = data.draw(st.sampled_from(OUTCOMES[game_id]))
        before = len(game.settled)
        drawn(game, outcome, sense)
        sense = CCW
        lines = [line for settled in game.settled[before:] for line in settled.lines]
        bets = [
            {"id": stake.id, "player": stake.player, "type": stake.type, "on": list(stake.on), "stake": stake.cents}
            for stake in lying
        ]
        told: Any = answer({"game": game_id, "kind": "settlement", "bets": bets, "outcome": outcome})
        assert {line.id: line.status for line in lines} == told["status"]
        assert {line.id: line.net for line in lines} == {name: from_wire(net) for name, net in told["net"].items()}
