"""A toy game of four numbers, so that what games share is tested apart from any law of play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rules.bets import BetKind, Layout, Refusal, Spot, Stake, spot_id
from rules.cases import Case
from rules.decisions import CancelTimer, Phase, SetTimer, Severity, Signal
from rules.facts import Announced, Fact, Origin, PocketRead, SpinObstructed, SpinStarted, SpinStopped, TimerElapsed
from rules.game import (
    Abandon,
    Annul,
    Close,
    Context,
    Coup,
    Found,
    Game,
    Go,
    Heard,
    House,
    Needed,
    Outcome,
    PublicOption,
    Read,
    Reading,
    Reopen,
    Turned,
    always,
    groups_of_players,
    yes_or_no,
)
from rules.limits import ASSOCIATIONS, Limits, by_the_text
from rules.settlement import Settlement, groups_by_type, line, transfers


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyOptions:
    numbers: int = 4


def layout(options: Any) -> Layout:
    del options
    kinds = {
        "plein": BetKind(type="plein", pays=Fraction(3), max_multiple=10, requirement="T-1", limit_requirement="T-2"),
        "haut": BetKind(
            type="haut",
            pays=Fraction(1),
            max_multiple=20,
            least_max_multiple=15,
            requirement="T-1",
            limit_requirement="T-2",
        ),
    }
    spots = [Spot(id=spot_id("plein", (n,)), type="plein", on=(n,), wins=frozenset({n})) for n in range(1, 5)]
    spots.append(Spot(id="haut", type="haut", on=(), wins=frozenset({3, 4})))
    return Layout(kinds, {spot.id: spot for spot in spots})


def limits(lay: Layout, house: House, minimum: int, maxima: Mapping[str, int]) -> Limits | Refusal:
    return by_the_text(lay, house.declared_minimum_cents, minimum, maxima)


def read(value: int | str, options: Any) -> Outcome | None:
    del options
    return {"number": value, "chances": []} if value in {1, 2, 3, 4} and not isinstance(value, bool) else None


def read_cell(cell: int | None, options: Any) -> Outcome | None:
    return None if cell is None else read(cell + 1, options)


def hear(coup: Coup, fact: Fact, context: Context) -> Heard:
    match fact:
        case SpinStarted(direction=direction):
            effects: tuple[Any, ...] = (Turned(direction=direction), Go(phase=Phase.LANCE))
            if direction is context.last_direction:
                found = Found(code="direction_non_alternee", requirement="T-3", severity=Severity.HELD)
                effects = (*effects, found)
            return Heard(replace(coup, launched=True, direction=direction, lit=("sens",)), effects)
        case SpinObstructed():
            return Heard(coup, (Found(code="obstruction", requirement="T-4", severity=Severity.VOID), Annul()))
        case SpinStopped():
            return Heard(coup, (Abandon(code="coup_nul"),))
        case Announced(code="rien_ne_va_plus"):
            timer = SetTimer(name="toy", at_ns=fact.at_ns + 5, on_restart="fire")
            return Heard(coup, (Close(at_ns=fact.at_ns, until_ns=fact.until_ns, how="croupier"), timer))
        case Announced(code="jeton_dans_le_cylindre"):
            lamp = Signal(lamp="buzzer", on=True)
            return Heard(coup, (CancelTimer(name="toy"), lamp, Reopen(), Go(phase=Phase.MISES_OUVERTES)))
        case TimerElapsed(name="toy"):
            return Heard(
                coup,
                (Found(code="appareil_douteux", requirement="T-5", severity=Severity.NOTED, args={"device": "toy"}),),
            )
        case PocketRead():
            outcome = read_cell(fact.cell, None) if fact.value is None else read(fact.value, None)
            if outcome is None or (not coup.launched and context.phase is not Phase.RESULTAT):
                return Heard(coup)
            either = read(2, None) if fact.cell == -1 else None
            reading = Reading(
                source=fact.source,
                value=int(str(outcome["number"])),
                outcome=outcome,
                origin=fact.origin,
                at_ns=fact.at_ns,
                recovered=fact.recovered,
                or_value=2 if either else None,
                or_outcome=either,
            )
            return Heard(coup, (Read(reading=reading),))
        case _:
            return Heard(coup)


def check(stake: Stake, lay: Layout, house: House) -> Refusal | None:
    del house
    if lay.find(stake.type, stake.on) is not None:
        return None
    return Refusal(code="combinaison_inexistante", requirement="T-6", text="combinaison inexistante")


def offers(stakes: Sequence[Stake], outcome: Outcome, coup: Any) -> Mapping[str, tuple[str, ...]]:
    """A 1 puts the high chance in prison, unless the player takes half."""
    if outcome["number"] != 1 or coup.last:
        return {}
    return {stake.id: ("retire", "prison") for stake in stakes if stake.type == "haut"}


def settle(stakes: Sequence[Stake], outcome: Outcome, coup: Any, options: Any) -> Settlement:
    lay = layout(options)
    lines, stay = [], []
    for stake in stakes:
        spot = lay.find(stake.type, stake.on)
        assert spot is not None
        if outcome["number"] == 1 and stake.type == "haut":
            if not coup.last and stake.choices and stake.choices[-1] == "prison":
                lines.append(line(stake, "prison", None))
                stay.append(replace(stake, carried="prison", zeros=stake.zeros + 1))
            else:
                lines.append(line(stake, "partial", Fraction(-stake.cents, 2)))
        elif outcome["number"] in spot.wins:
            lines.append(
                line(
                    stake,
                    "freed" if stake.carried else "win",
                    0 if stake.carried else stake.cents * lay.kinds[stake.type].pays,
                )
            )
            stay.append(replace(stake, carried="", zeros=0, choices=()))
        else:
            lines.append(line(stake, "lose", -stake.cents))
    winners = [entry for entry in lines if entry.status == "win"]
    return Settlement(
        lines=tuple(lines),
        transfers=transfers(lines),
        order=groups_by_type(winners, [["haut"], ["plein"]]),
        player_order=tuple((entry.player,) for entry in winners),
        stay=tuple(stay),
    )


def settle_case(case: Case) -> dict[str, object]:
    raise NotImplementedError(case)


TOY = Game(
    id="toy",
    coup=Coup,
    options=ToyOptions,
    hears=frozenset({SpinStarted, SpinObstructed, SpinStopped, Announced, TimerElapsed, PocketRead}),
    says=frozenset({"rien_ne_va_plus", "jeton_dans_le_cylindre", "toy"}),
    phases=frozenset(Phase),
    most_players=(12, "R-RC-02"),
    layout=layout,
    limits=limits,
    minimum_change=("reopen", "R-GEN-03"),
    needs=always(
        Needed(what="verification", roles=("comite", "croupier"), when="open", requirement="T-7"),
        Needed(what="couvercle", roles=("chef",), when="close", requirement="T-8"),
        Needed(what="encaisse", roles=("comite",), when="reopen", requirement="T-9"),
    ),
    public_options={
        "plus_de_douze_joueurs": PublicOption(fits=yes_or_no, allowed="oui_ou_non", requirement="T-10"),
        ASSOCIATIONS: PublicOption(
            fits=groups_of_players, allowed="groupes_de_joueurs", requirement="T-11", in_seance=True
        ),
    },
    more_players="plus_de_douze_joueurs",
    hear=hear,
    check=check,
    offers=offers,
    settle=settle,
    value=lambda outcome: int(str(outcome["number"])),
    announce=lambda outcome: str(outcome["number"]),
    read=read,
    cell=read_cell,
    settle_case=settle_case,
)

HOUSE = House(
    declared_minimum_cents=100,
    tableaux=2,
    sources=("wheel_sensor", "console"),
    draw_devices=("wheel", "wheel_sensor"),
    max_players=3,
    options=ToyOptions(),
)

PERSON = Origin.PERSON
