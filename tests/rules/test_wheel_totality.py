"""No fact, in no state of a coup, makes a wheel game raise; and no settlement makes or loses money.

Whole evenings at the shipped tables are played in test_table_properties.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.bets import Stake
from rules.decisions import Breach, Ignored, Phase, Settled, Severity
from rules.facts import (
    FACTS,
    Announced,
    BallDropped,
    BallLaunched,
    BallLost,
    DeviceBack,
    Direction,
    DropDue,
    Fact,
    Origin,
    PocketRead,
    SpinObstructed,
    SpinSlowed,
    SpinStarted,
    SpinStopped,
    TimerElapsed,
)
from rules.game import Close, Context, Found, Go, Heard, Read, Reading, RnvpMode, load
from rules.games.roulette.variants import FrancaiseOptions
from rules.wheel import WheelCoup
from rules.words import text
from tests.rules.wheels import FRANCAISE, PER_TURN, ROUE

HOUSES = {
    "roue_de_la_chance": replace(ROUE, tableaux=2),
    "roulette_francaise": replace(FRANCAISE, options=FrancaiseOptions(rota_lanceurs=("A", "B", "C"))),
    "roulette_americaine": replace(FRANCAISE, options=load("roulette_americaine").options()),
    "roulette_anglaise": replace(FRANCAISE, options=load("roulette_anglaise").options()),
}
GAMES = pytest.mark.parametrize("game_id", HOUSES)

SENSES = st.sampled_from(list(Direction))
INSTANTS = st.integers(0, 10**11)
VALUES: st.SearchStrategy[int | str] = st.one_of(
    st.integers(-1, 60), st.sampled_from(["00", "17", "rouge", "vert", "rose", "", "²"])
)
CODES = st.sampled_from(
    [
        "rien_ne_va_plus",
        "faites_vos_jeux",
        "coup_nul",
        "jeton_dans_le_cylindre",
        "lanceur",
        "confirme",
        "dernier_coup",
        "choix_clos",
        "bonjour",
    ]
)


def told(kind: type[Fact], source: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, at_ns=INSTANTS, until_ns=INSTANTS, source=st.just(source), **fields)


CELLS = st.one_of(st.none(), st.integers(-1, 53))
DRAW = [
    told(SpinStarted, "wheel", direction=SENSES),
    told(SpinSlowed, "wheel"),
    told(SpinObstructed, "wheel", why=st.just("brake")),
    told(
        SpinStopped,
        "wheel",
        direction=SENSES,
        travel=st.integers(0, 6 * PER_TURN),
        per_turn=st.sampled_from([0, PER_TURN]),
        cell=CELLS,
        or_cell=CELLS,
    ),
    told(BallLaunched, "wheel_sensor", direction=SENSES),
    told(DropDue, "wheel_sensor", drop_at_ns=INSTANTS),
    told(BallDropped, "wheel_sensor"),
    told(BallLost, "wheel_sensor", why=st.just("flown off")),
    told(PocketRead, "wheel_sensor", value=VALUES, recovered=st.booleans()),
    told(PocketRead, "wheel_sensor", value=st.none(), cell=st.none() | st.integers(-2, 60)),
    told(PocketRead, "console", value=VALUES, origin=st.just(Origin.PERSON)),
    told(Announced, "console", code=CODES, by=st.sampled_from(["", "A", "B", "C", "X"])),
    told(TimerElapsed, "timer", name=st.sampled_from(["rnvp", "tirage"])),
]
FACT_OF_THE_DRAW = st.one_of(DRAW)

FOUND = st.builds(
    Breach,
    code=st.sampled_from(["direction_non_alternee", "bille_dans_le_sens_du_cylindre", "obstruction", "rnvp_absent"]),
    requirement=st.just("R"),
    severity=st.sampled_from(list(Severity)),
    text=st.just("?"),
)
READINGS = st.builds(
    Reading,
    source=st.just("console"),
    value=st.just("vert"),
    outcome=st.just({"colour": "vert", "number": 17, "valid": True, "chances": []}),
    origin=st.just(Origin.PERSON),
    at_ns=INSTANTS,
    or_value=st.one_of(st.none(), st.just("rouge")),
)
MAYBE = st.one_of(st.none(), INSTANTS)
COUPS = st.builds(
    WheelCoup,
    no=st.just(1),
    last=st.booleans(),
    launched=st.booleans(),
    closed_at_ns=MAYBE,
    direction=st.one_of(st.none(), SENSES),
    travel=st.one_of(st.none(), st.integers(0, 9)),
    per_turn=st.one_of(st.none(), st.integers(0, 9)),
    breaches=st.lists(FOUND, max_size=2).map(tuple),
    readings=st.lists(READINGS, max_size=2).map(tuple),
    times=st.dictionaries(st.sampled_from(["started", "stopped", "launched"]), INSTANTS),
    lit=st.lists(st.sampled_from(["sens", "buzzer", "rien_ne_va_plus"]), unique=True).map(tuple),
    memory=st.one_of(st.just({}), st.just({"lanceur": "A"}), st.just({"lanceur": 7})),
    due_at_ns=MAYBE,
    called_at_ns=MAYBE,
    ball_direction=st.one_of(st.none(), SENSES),
    annulled=st.booleans(),
)


CONTEXTS = st.tuples(st.sampled_from(list(Phase)), st.one_of(st.none(), SENSES), st.sampled_from(list(RnvpMode)))


def test_every_kind_of_fact_that_a_wheel_hears_is_tried() -> None:
    kinds: set[type[Fact]] = set()
    for game_id in HOUSES:
        kinds |= load(game_id).hears
    names = Counter(repr(strategy).split("(")[1].split(",")[0] for strategy in DRAW)
    assert {kind.__name__ for kind in kinds} <= set(names) <= set(FACTS)


@GAMES
@given(coup=COUPS, fact=FACT_OF_THE_DRAW, context=CONTEXTS)
@settings(max_examples=100)
def test_hear_is_total(
    game_id: str, coup: WheelCoup, fact: Fact, context: tuple[Phase, Direction | None, RnvpMode]
) -> None:
    game = load(game_id)
    phase, last, mode = context
    there = Context(house=replace(HOUSES[game_id], rien_ne_va_plus=mode), phase=phase, last_direction=last)
    heard = game.hear(coup, fact, there)
    assert isinstance(heard, Heard)
    assert heard == game.hear(coup, fact, there)
    assert (heard.coup.no, heard.coup.last) == (coup.no, coup.last)
    assert heard.effects or heard.coup != coup  # whoever tells a fact sees what became of it
    for effect in heard.effects:
        if isinstance(effect, Found):
            assert text(effect.code, **effect.args)
        if isinstance(effect, Go):
            assert effect.phase in game.phases
        if isinstance(effect, Close):
            assert coup.closed_at_ns is None
        if isinstance(effect, Read):
            assert effect.reading.value == game.value(effect.reading.outcome)
            assert game.announce(effect.reading.outcome)
    assert len(set(heard.coup.lit)) == len(heard.coup.lit)


@GAMES
def test_a_fact_or_word_that_no_draw_knows_changes_nothing(game_id: str) -> None:
    game = load(game_id)
    there = Context(house=HOUSES[game_id], phase=Phase.LANCE, last_direction=None)
    coup = WheelCoup(no=1, launched=True, closed_at_ns=5, closed_until_ns=5)
    for fact in (
        DeviceBack(at_ns=1, source="wheel", device="wheel"),
        Announced(at_ns=1, source="console", code="bonjour"),
        TimerElapsed(at_ns=1, source="timer", name="tirage"),
        TimerElapsed(at_ns=1, source="timer", name="rnvp"),
    ):
        heard = game.hear(coup, fact, there)
        assert heard.coup == coup
        assert [type(effect) for effect in heard.effects] == [Ignored]


@GAMES
@given(data=st.data())
@settings(max_examples=60)
def test_offers_and_settle_are_total_and_conserve_money(game_id: str, data: st.DataObject) -> None:
    game = load(game_id)
    house = HOUSES[game_id]
    spots = list(game.layout(house.options).spots.values())
    stakes = []
    for place in range(data.draw(st.integers(0, 8))):
        spot = data.draw(st.sampled_from(spots))
        carried = data.draw(st.sampled_from(["", "prison"])) if spot.type in {"rouge", "pair"} else ""
        stakes.append(
            Stake(
                id=f"m{place}",
                player=data.draw(st.sampled_from(["J1", "J2"])),
                tableau=data.draw(st.sampled_from([1, 2])),
                type=spot.type,
                on=spot.on,
                cents=data.draw(st.integers(1, 10**6)),
                carried=carried if game_id == "roulette_francaise" else "",
                zeros=data.draw(st.integers(0, 3)) if carried else 0,
                choices=tuple(data.draw(st.lists(st.sampled_from(["retire", "prison"]), max_size=5))),
            )
        )
    value = data.draw(VALUES.filter(lambda typed: game.read(typed, house.options) is not None))
    outcome = game.read(value, house.options)
    assert outcome is not None
    coup = data.draw(COUPS)
    offered = game.offers(stakes, outcome, coup)
    result = game.settle(stakes, outcome, coup, house.options)
    assert [line.id for line in result.lines] == [stake.id for stake in stakes]
    assert set(offered) <= {stake.id for stake in stakes}
    moves_of(Settled(coup=1, tableau=1, lines=result.lines, transfers=result.transfers, order=result.order))
    staying = {stake.id: stake for stake in result.stay}
    for stake, line in zip(stakes, result.lines, strict=True):
        assert line.stake == stake.cents
        if line.net is None:
            assert staying[line.id].carried == "prison"
        elif line.id in staying:
            assert line.returned is not None
            assert line.returned >= stake.cents
            assert staying[line.id].carried == ""
        if line.net is not None and line.net < 0:
            assert line.id not in staying
    winners = sorted(line.id for line in result.lines if line.status == "win")
    assert sorted(name for group in result.order for name in group) == winners


def moves_of(settled: Settled) -> None:
    """Transfers sum to zero by construction of their accounts and reproduce the lines."""
    money: Counter[str] = Counter()
    for moved in settled.transfers:
        assert moved.cents > 0
        money[moved.source] -= moved.cents  # type: ignore[assignment]
        money[moved.target] += moved.cents  # type: ignore[assignment]
    assert sum(money.values()) == 0
    nets: Counter[str] = Counter()
    for line in settled.lines:
        if line.net is not None:
            nets[f"player:{line.player}"] += line.net  # type: ignore[assignment]
    assert {name: net for name, net in nets.items() if net} == {
        name: cents for name, cents in money.items() if cents and name != "table"
    }


def test_fractions_of_a_cent_are_kept() -> None:
    game = load("roulette_francaise")
    stake = Stake(id="a", player="J1", type="rouge", cents=5)
    result = game.settle([stake], {"number": 0, "chances": []}, WheelCoup(no=1), FrancaiseOptions())
    assert result.transfers[0].cents == Fraction(5, 2)
