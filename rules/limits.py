"""Limits in force: minimum and maximum of each bet type, per player and over all tableaux of the apparatus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rules.bets import BetKind, Layout, Refusal, Spot, Stake
from rules.words import text

ASSOCIATIONS: Final = "associations_presumees"
"""Public option: groups of players presumed to play together, attested by who decides it (R-BO-21)."""


UNKNOWN: Final = "-"
"""Player of chips that nothing tells apart: they may be anybody's, so that only single stacks are judged (R-BO-21)."""


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
    sum_requirement: str = ""
    """Requirement behind the sum of a player's stakes on one chance; empty = that of the maximum itself."""


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


def partners(player: str, public_options: Mapping[str, object]) -> frozenset[str]:
    """The player and those who are presumed to play with him: for the maximum they are one (R-BO-21, R-VT-22)."""
    if player == UNKNOWN:
        return frozenset()
    groups = public_options.get(ASSOCIATIONS, ())
    assert isinstance(groups, list | tuple), "the public option was checked when it was decided"
    return frozenset({player}).union(*(group for group in groups if player in group))


def above_maximum(
    spot: Spot, cents: int, others: Iterable[Stake], players: frozenset[str], limits: Limits
) -> Refusal | None:
    """A refusal when `cents` on `spot`, with the other stakes of `players` on the same chance, exceed the maximum.

    `others` are all stakes beside this one, on every tableau of the apparatus (R-BO-20; reading for the other games).
    """
    most = limits.maxima.get(spot.type)
    if most is None:
        return None
    total = cents + sum(
        stake.cents
        for stake in others
        if stake.player in players and stake.type == spot.type and frozenset(stake.on) == frozenset(spot.on)
    )
    if total <= most:
        return None
    alone = limits.requirements[spot.type]
    return Refusal(
        code="au_dessus_du_maximum",
        requirement=alone if cents > most else limits.sum_requirement or alone,
        text=text("au_dessus_du_maximum", total=total, most=most, excess=total - most),
    )


def of_one_limit(layout: Layout, name: str) -> list[BetKind]:
    """The kinds of bet whose maximum is asked for by this name: a type, or bets that have one together."""
    asked = {kind.limit for kind in layout.kinds.values() if name in (kind.type, kind.limit)}
    return [kind for kind in layout.kinds.values() if kind.limit in asked]


def renewed(layout: Layout, standing: Mapping[str, int], asked: Mapping[str, int]) -> dict[str, int]:
    """The maxima that stand, with those asked for in place of them."""
    replaced = {kind.type for name in asked for kind in of_one_limit(layout, name)}
    return {**{bet: cents for bet, cents in standing.items() if bet not in replaced}, **asked}


def by_the_text(
    layout: Layout,
    declared: int,
    minimum: int,
    maxima: Mapping[str, int],
    minima: Mapping[str, int] | None = None,
    minimum_requirement: str = "R-GEN-10",
    usual: Mapping[str, int] | None = None,
) -> Limits | Refusal:
    """Limits as the text has them: each maximum a multiple of the minimum, fixed, or chosen in a range by the house.

    `declared` is the minimum of the authorisation, `maxima` what is asked for in cents, by bet type or by
    `BetKind.limit`. `minima` are minima of single bet types that the house wants above the minimum of the table.
    `usual` are the multiples that the house takes when nothing is asked for, by `BetKind.limit`; without one it is the
    highest that the text allows.
    """
    least = min((minimum, *(minima or {}).values()))
    if least < declared:
        return Refusal(
            code="minimum_sous_le_declare",
            requirement="R-GEN-10",
            text=text("minimum_sous_le_declare", cents=least, least=declared),
        )
    kinds = layout.kinds.values()
    most = {kind.type: minimum * (usual or {}).get(kind.limit, kind.max_multiple) for kind in kinds}
    chosen: dict[str, int] = {}
    for name, cents in maxima.items():
        named = of_one_limit(layout, name)
        if not named:
            wanted = text("combinaison_inexistante", bet=name)
            return Refusal(code="combinaison_inexistante", requirement="R-GEN-10", text=wanted)
        if refused := out_of_range(named[0], name, minimum, cents):
            return refused
        if chosen.setdefault(named[0].limit, cents) != cents:
            told = text("maximum_en_double", bet=named[0].limit)
            return Refusal(code="maximum_en_double", requirement=named[0].limit_requirement, text=told)
        most |= {kind.type: cents for kind in named}
    limits = Limits(
        minimum_requirement=minimum_requirement,
        minimum=minimum,
        minima={bet: max(minimum, cents) for bet, cents in (minima or {}).items()},
        maxima=most,
        requirements={kind.type: kind.limit_requirement for kind in kinds},
    )
    for bet, cents in limits.minima.items():
        if cents > most[bet]:
            return Refusal(
                code="minimum_au_dessus_du_maximum",
                requirement=limits.requirements[bet],
                text=text("minimum_au_dessus_du_maximum", cents=cents, most=most[bet], bet=bet),
            )
    return limits


def out_of_range(kind: BetKind, name: str, minimum: int, cents: int) -> Refusal | None:
    """A refusal when the house may not have this maximum, with what it may have."""
    low, high = kind.least_max_multiple or kind.max_multiple, kind.max_multiple
    if minimum * low <= cents <= minimum * high:
        return None
    code = "maximum_fixe" if low == high else "maximum_hors_fourchette"
    sentence = text(code, bet=name, cents=cents, least=minimum * low, most=minimum * high, low=low, high=high)
    return Refusal(code=code, requirement=kind.limit_requirement, text=sentence)
