"""Whatever happens at a table: the step never raises, never loses or makes money, and answers the same twice."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import config_file
from rules import orders, seance
from rules.decisions import CoupEnded, Phase, Settled
from rules.facts import FACTS, Commanded, Direction, Fact, Origin
from rules.state import TableState
from rules.table import Table
from tests.rules.toy import HOUSE, TOY

DEVICES = st.sampled_from(["wheel", "wheel_sensor", "console", "chips"])
PLAYERS = st.sampled_from(["J1", "J2", "J3", "J4"])
WORDS = st.sampled_from(
    [
        "rien_ne_va_plus",
        "faites_vos_jeux",
        "jeton_dans_le_cylindre",
        "dernier_coup",
        "confirme",
        "choix_clos",
        "boule_lancee",
        "change_a_table",
        "autre",
    ]
)
VALUES = st.sampled_from([0, 1, 2, 3, 4, 9, 17, 36, "00", "rouge", "orange", "noir", "7-rouge", "13-neutre"])
SPOTS = st.sampled_from(
    [
        "haut",
        "plein:1",
        "plein:3",
        "plein:17",
        "cheval:1-2",
        "cheval:1-9",
        "cheval:2-3",
        "rouge",
        "pair",
        "orange",
        "noir",
        ":",
        "",
    ]
)
TIMERS = st.sampled_from(["tirage", "accord", "choix", "rnvp", "toy"])
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "what": st.sampled_from(["verification", "couvercle", "encaisse", "zero", "m1", 3]),
        "minimum_cents": st.sampled_from([50, 100, 200, 500, 1000, "x"]),
        "maxima": st.sampled_from([{}, {"plein": 3}, {"plein": "x"}, 7]),
        "end_of_seance": st.booleans(),
        "plus_de_douze_joueurs": st.booleans(),
        "associations_presumees": st.sampled_from([[], [["J1", "J2"]], [["J1"]], 3]),
        "code": WORDS,
        "spot": SPOTS,
        "cents": st.integers(-1, 90_000),
        "player": PLAYERS,
        "tableau": st.integers(0, 3),
        "remove": st.booleans(),
        "value": VALUES,
        "as": st.sampled_from(["valid", "void", "accepted", "refused", "x"]),
        "outcome": VALUES,
        "stake": st.sampled_from(["m1", "m2", "m3"]),
        "second": st.sampled_from(["M. Bon", "Mme Roux", ""]),
        "why": st.just("parce que"),
    },
)
NAMES = st.sampled_from(
    [*seance.COMMANDS, *orders.COMMANDS, "announce", "last_coup", "stake", "choice", "confirm", "danse"]
)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "direction": st.sampled_from(list(Direction)),
    "device": DEVICES,
    "why": st.sampled_from(["not_observed", "unplugged"]),
    "code": WORDS,
    "spot": SPOTS,
    "cents": st.integers(-5, 90_000),
    "player": PLAYERS,
    "tableau": st.integers(0, 3),
    "value": VALUES,
    "recovered": st.booleans(),
    "found": st.booleans(),
    "what": st.sampled_from(["zero", "m1", "m2", "bleu", "rouge"]),
    "name": NAMES,
    "by": st.sampled_from(["Mme Roux", "M. Bon"]),
    "role": st.sampled_from(["comite", "chef", "croupier"]),
    "args": ARGS,
    "origin": st.sampled_from(list(Origin)),
    "source": DEVICES,
    "lost": st.integers(0, 9),
    "travel": st.integers(0, 9000),
    "per_turn": st.just(2400),
    "cell": st.sampled_from([None, -1, 0, 51]),
    "or_cell": st.sampled_from([None, 3]),
    "drop_at_ns": st.integers(0, 10**10),
    "arc_from_deg": st.sampled_from([None, 0, 359]),
    "arc_deg": st.sampled_from([0, 90]),
    "values": st.just((1, 2, 3)),
    "flat": st.booleans(),
    "wall": st.booleans(),
    "irregular": st.booleans(),
    "card": st.sampled_from([None, "As"]),
    "uid": st.just("u"),
    "face": st.just("up"),
    "n": st.integers(0, 9),
    "chip": st.sampled_from(["", "bleu", "valeur", "A1/rouge", "plaque_vingt", "x"]),
    "jetons": st.sampled_from([0, 0, 1, 3]),
    "peer": st.just("p"),
    "body": st.just({}),
}


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    """Any fact of the house with plausible and implausible values."""
    kind = draw(st.sampled_from([*FACTS, *LIKELY * 4]))
    fields: dict[str, Any] = {"at_ns": draw(st.integers(0, 10**10)), "until_ns": draw(st.integers(0, 10**10))}
    for name in FACTS[kind].__dataclass_fields__:
        if name not in fields:
            fields[name] = draw(TIMERS if (kind, name) == ("TimerElapsed", "name") else FIELDS[name])
    if kind == "Chosen":
        fields["value"] = draw(st.sampled_from(["retire", "prison", "minimum", "2500", "rendue", "x"]))
    return FACTS[kind](**fields)


LIKELY = [
    *("SpinStarted", "SpinSlowed", "SpinStopped", "BallLaunched", "DropDue", "BallDropped"),
    *("PocketRead", "Announced", "ChipPlaced", "Chosen"),
]
"""What carries a coup forward, so that random walks reach its end."""


def check_money(before: TableState, settled: Settled) -> None:
    """Lines and transfers tell the same, and every cent has two ends."""
    net: defaultdict[str, Fraction] = defaultdict(Fraction)
    for transfer in settled.transfers:
        assert transfer.cents > 0
        net[transfer.target] += transfer.cents
        net[transfer.source] -= transfer.cents
    assert sum(net.values()) == 0
    for player in {entry.player for entry in settled.lines}:
        lines = [entry for entry in settled.lines if entry.player == player]
        assert net[f"player:{player}"] == sum((entry.net or Fraction() for entry in lines), Fraction())
    for entry in settled.lines:
        assert (entry.returned is None) == (entry.net is None)
        if entry.net is not None:
            assert entry.returned == entry.stake + entry.net >= 0
    known = {stake.id for stake in (*before.stakes, *before.before, *(doubt.stake for doubt in before.doubts))}
    assert {entry.id for entry in settled.lines} <= known


def shipped(name: str) -> Table:
    """The table that a shipped configuration describes."""
    config = config_file.load(config_file.shipped_tables()[name])
    return Table(config.game, config.house)


TABLES = {name: shipped(name) for name in config_file.shipped_tables()} | {"toy": Table(TOY, HOUSE)}


def opened(table: Table) -> TableState:
    """The table with every decision and signature, open."""
    state = TableState()

    def command(name: str, role: str, **args: object) -> None:
        nonlocal state
        state = table.step(state, Commanded(at_ns=0, source="command", name=name, by=role, role=role, args=args)).state

    command("options", "comite", **{name: False for name, option in table.game.public_options.items() if option.needed})
    for need in table.game.needs(table.house, state.public_options):
        for role in need.roles if need.when == "open" else ():
            command("attest", role, what=need.what)
    command("open", "comite")
    assert state.phase is Phase.MISES_OUVERTES
    return state


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=150)
@given(sequence=st.lists(facts(), max_size=60))
def test_any_sequence_of_facts(name: str, sequence: list[Fact]) -> None:
    table = TABLES[name]
    state = opened(table)
    for fact in sequence:
        step = table.step(state, fact)
        assert step == table.step(state, fact)
        assert step.decisions or step.state != state
        for decision in step.decisions:
            if isinstance(decision, Settled):
                check_money(state, decision)
            if isinstance(decision, CoupEnded) and decision.kind == "first":
                assert decision.coup == state.coup_no or state.phase is Phase.REGLEMENT
        assert all(stake.cents > 0 for stake in step.state.stakes)
        assert step.state.coup_no >= state.coup_no - 1
        state = step.state
