"""Limits in force: minimum and maximum of each bet type, per player and over all tableaux of the apparatus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rules.bets import Layout, Refusal, Spot, Stake
from rules.words import text


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Frozen at the opening; amounts in cents."""

    minimum: int
    """The table minimum from which everything is reckoned."""
    minima: Mapping[str, int]
    """Minimum stake by bet type."""
    maxima: Mapping[str, int]
    """Maximum by bet type, for one player on one chance, summed over the tableaux of the apparatus."""
    requirements: Mapping[str, str]
    """Requirement behind each maximum."""
    minimum_requirement: str = "R-GEN-10"
    """Requirement behind the minimum."""


def below_minimum(stake: Stake, limits: Limits) -> Refusal | None:
    """A refusal when the stake is under the minimum of its type."""
    least = limits.minima.get(stake.type, limits.minimum)
    if stake.cents >= least:
        return None
    return Refusal(
        code="sous_le_minimum",
        requirement=limits.minimum_requirement,
        text=text("sous_le_minimum", cents=stake.cents, least=least),
    )


def above_maximum(spot: Spot, cents: int, others: Iterable[Stake], player: str, limits: Limits) -> Refusal | None:
    """A refusal when `cents` on `spot`, with the player's other stakes on the same chance, exceed the maximum.

    `others` are all stakes beside this one, on every tableau of the apparatus (R-BO-20; reading for the other games).
    """
    most = limits.maxima.get(spot.type)
    if most is None:
        return None
    total = cents + sum(
        stake.cents
        for stake in others
        if stake.player == player and stake.type == spot.type and frozenset(stake.on) == frozenset(spot.on)
    )
    if total <= most:
        return None
    return Refusal(
        code="au_dessus_du_maximum",
        requirement=limits.requirements[spot.type],
        text=text("au_dessus_du_maximum", total=total, most=most, excess=total - most),
    )


def by_multiples(
    layout: Layout, minimum: int, minima: Mapping[str, int] | None = None, minimum_requirement: str = "R-GEN-10"
) -> Limits:
    """Limits that are fixed multiples of the minimum (roue, roulettes)."""
    return Limits(
        minimum_requirement=minimum_requirement,
        minimum=minimum,
        minima=dict(minima or {}),
        maxima={kind.type: kind.max_multiple * minimum for kind in layout.kinds.values()},
        requirements={kind.type: kind.limit_requirement for kind in layout.kinds.values()},
    )


def fixed_by_the_text(
    layout: Layout,
    declared: int,
    minimum: int,
    maxima: Mapping[str, int],
    minima: Mapping[str, int] | None = None,
    minimum_requirement: str = "R-GEN-10",
) -> Limits | Refusal:
    """Limits whose maxima the text fixes; `declared` is the minimum of the authorisation, `maxima` what was asked for.

    `minima` are minima of single bet types that the house wants above the minimum of the table.
    """
    least = min((minimum, *(minima or {}).values()))
    if least < declared:
        return Refusal(
            code="minimum_sous_le_declare",
            requirement="R-GEN-10",
            text=text("minimum_sous_le_declare", cents=least, least=declared),
        )
    floors = {bet: max(minimum, cents) for bet, cents in (minima or {}).items()}
    limits = by_multiples(layout, minimum, floors, minimum_requirement)
    for bet, cents in maxima.items():
        most = limits.maxima.get(bet)
        if most is None:
            wanted = text("combinaison_inexistante", bet=bet)
            return Refusal(code="combinaison_inexistante", requirement="R-GEN-10", text=wanted)
        if cents != most:
            requirement = limits.requirements[bet]
            return Refusal(code="maximum_fixe", requirement=requirement, text=text("maximum_fixe", bet=bet, cents=most))
    for bet, cents in limits.minima.items():
        most = limits.maxima[bet]
        if cents > most:
            return Refusal(
                code="minimum_au_dessus_du_maximum",
                requirement=limits.requirements[bet],
                text=text("minimum_au_dessus_du_maximum", cents=cents, most=most, bet=bet),
            )
    return limits
