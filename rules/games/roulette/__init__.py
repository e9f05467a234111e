"""The roulettes: one law, three variants that differ by data only (`variants`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rules.bets import Layout, SeriesLaw
from rules.cases import Case
from rules.decisions import Phase, Severity
from rules.game import Found, Game, House, Needed
from rules.games.roulette import draw, payment, tapis
from rules.games.roulette.variants import VARIANTS, Variant, ZeroRule
from rules.series import EXCEPTION
from rules.wheel import CALL_TIMER, LAMPS, WheelCoup


def game(variant: Variant) -> Game:
    """A roulette as a value."""
    lay = tapis.layout(variant)
    encaisse = Needed(what="encaisse", roles=("comite",), when="reopen", requirement=variant.reopening)
    risen = (replace(encaisse, when="raise", requirement=variant.raised),) if variant.raised else ()
    choice = variant.zero_rule is ZeroRule.CHOIX

    def layout(options: Any) -> Layout:
        del options
        return lay

    def needs(house: House, public_options: Mapping[str, object]) -> tuple[Needed, ...]:
        del public_options
        shown = variant.hippodrome if getattr(house.options, "hippodrome", False) else ()
        return (*variant.needs, encaisse, *risen, *shown)

    def series(options: Any) -> SeriesLaw | None:
        law: SeriesLaw | None = getattr(options, "series", None)
        return law

    def settle_case(case: Case) -> dict[str, object]:
        return payment.settle_case(variant, lay, made, case)

    made = Game(
        id=variant.id,
        coup=WheelCoup,
        options=variant.options,
        hears=draw.HEARS,
        says=draw.says(variant),
        begins=draw.says(variant) & {draw.STACKS, EXCEPTION},
        timers=frozenset({CALL_TIMER}),
        lamps=LAMPS,
        phases=frozenset(Phase) - (frozenset() if choice else {Phase.CHOIX}),
        layout=layout,
        limits=payment.limits,
        minimum_change=("reopen", variant.reopening),
        needs=needs,
        series=series,
        hear=partial(draw.hear, variant),
        check=partial(payment.check, variant),
        beside=partial(payment.beside, variant),
        offers=partial(payment.offers, variant),
        settle=partial(payment.settle, variant, lay),
        release=payment.release if choice else None,
        value=draw.value,
        announce=draw.announce,
        read=partial(draw.read, variant),
        cell=partial(draw.at_cell, variant),
        contests={
            "jeton_dans_le_cylindre": Found(
                code="jeton_dit_apres", requirement=variant.relaunch, severity=Severity.HELD
            )
        },
        most_tableaux=variant.most_tableaux,
        most_players=variant.most_players,
        case_keys={
            "config": frozenset({"valeur_liberee"} if choice else ()),
            "bet": frozenset({"choices"} if choice else ()),
            "outcome": frozenset({"numbers", "last_spin_of_session"}),
        },
        settle_case=settle_case,
    )
    return made


GAMES: Final[Mapping[str, Game]] = {variant.id: game(variant) for variant in VARIANTS}
