"""Bets and money of a roulette: which bets exist, what a zero does, who is paid in which order, cases of `settle`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from rules import cases
from rules.bets import Layout, Refusal, Stake, spot_id
from rules.cases import Case
from rules.decisions import Line, Severity
from rules.game import Found, Game, House, Outcome
from rules.games.roulette.tapis import chances
from rules.games.roulette.variants import SIMPLE, SMALL, Variant, ZeroRule
from rules.limits import Limits, by_the_text
from rules.settlement import Settlement, groups_by_type, line, transfers
from rules.wheel import WheelCoup
from rules.words import text

RETIRE, PRISON = "retire", "prison"
"""The two choices at a zero; who has not chosen takes half back."""
Groups = tuple[tuple[str, ...], ...]


def limits(lay: Layout, house: House, minimum: int, maxima: Mapping[str, int]) -> Limits | Refusal:
    """Maxima are the text's multiples of the minimum in force (R-RF-30 to R-RF-33)."""
    return by_the_text(lay, house.declared_minimum_cents, minimum, maxima)


def check(variant: Variant, stake: Stake, lay: Layout, house: House) -> Refusal | None:
    """Only the combinations of the layout exist (R-RF-23)."""
    del house
    if lay.find(stake.type, stake.on) is not None:
        return None
    bet = " ".join(str(part) for part in (stake.type, *stake.on))
    return Refusal(
        code="combinaison_inexistante",
        requirement=variant.combinations,
        text=text("combinaison_inexistante", bet=bet),
    )


def beside(
    variant: Variant, stake: Stake, others: Sequence[Stake], limits: Limits | None, house: House
) -> Refusal | Found | None:
    """A player's stakes on single numbers, and those that share numbers, are equal, the plein's maximum each (R-RA-25).

    A reading (spec §10): every player's chips have one value, so equal pieces are equal amounts.
    """
    if not variant.equal_pieces:
        return None
    for other in others:
        if (other.player, other.tableau) != (stake.player, stake.tableau) or not linked(stake, other):
            continue
        if stake.cents != other.cents:
            code = "pieces_inegales"
        elif limits is not None and stake.cents > limits.maxima["plein"]:
            code = "pieces_au_dessus_du_plein"
        else:
            continue
        args = {"player": stake.player, "spot": spot_id(stake.type, stake.on), "other": spot_id(other.type, other.on)}
        if house.options.regle_pieces_egales == "bloquer":
            return Refusal(code=code, requirement=variant.equal_pieces, text=text(code, **args))
        return Found(code=code, requirement=variant.equal_pieces, severity=Severity.NOTED, args=args)
    return None


def linked(one: Stake, other: Stake) -> bool:
    """Are these two bets on single numbers, or do they share numbers on the layout."""
    both = {one.type, other.type}
    return both <= set(SMALL) and (both == {"plein"} or not set(one.on).isdisjoint(other.on))


def offers(variant: Variant, stakes: Sequence[Stake], outcome: Outcome, coup: WheelCoup) -> dict[str, tuple[str, ...]]:
    """At a zero every even-chance stake may go or stay; on the last coup nothing is left to stay for (R-RF-28)."""
    if variant.zero_rule is not ZeroRule.CHOIX or outcome["number"] not in variant.zeros or coup.last:
        return {}
    return {stake.id: (RETIRE, PRISON) for stake in stakes if stake.type in SIMPLE}


# --- one coup --------------------------------------------------------------------------------------------------------


def settle(
    variant: Variant, lay: Layout, stakes: Sequence[Stake], outcome: Outcome, coup: WheelCoup, options: Any
) -> Settlement:
    """Settle one coup over all tableaux."""
    lines: list[Line] = []
    stay: list[Stake] = []
    for stake in stakes:
        entry, left = settled(variant, lay, stake, outcome, last=coup.last, options=options)
        lines.append(entry)
        if left is not None:
            stay.append(left)
    by_player = payment(variant, lines)
    if variant.by_player:
        order = tuple(group for groups in by_player.values() for group in groups)
        players: Groups = (tuple(by_player),) if by_player else ()
    else:
        order, players = walk(variant, [entry for entry in lines if entry.status == "win"]), ()
    return Settlement(
        lines=tuple(lines), transfers=transfers(lines), order=order, player_order=players, stay=tuple(stay)
    )


def settled(
    variant: Variant, lay: Layout, stake: Stake, outcome: Outcome, *, last: bool, options: Any
) -> tuple[Line, Stake | None]:
    """The line of one stake, and the stake that stays on the layout."""
    number = outcome["number"]
    spot = lay.find(stake.type, stake.on)
    wins = spot is not None and number in spot.wins
    if number in variant.zeros and stake.type in SIMPLE:
        return at_zero(variant, stake, last=last)
    if not wins:
        return line(stake, "lose", -stake.cents), None
    if not stake.carried:
        return line(stake, "win", stake.cents * lay.kinds[stake.type].pays), stake
    freed = freed_value(stake, options)
    left = replace(stake, carried="", zeros=0, choices=()) if freed == stake.cents else None
    return line(stake, "freed", freed - stake.cents), left  # no gain (R-RF-26)


def at_zero(variant: Variant, stake: Stake, *, last: bool) -> tuple[Line, Stake | None]:
    """An even chance at a zero: lost, halved, or as the player chose (R-RA-19, R-AN-22, R-RF-24 to R-RF-28)."""
    if variant.zero_rule is ZeroRule.PERDU:
        return line(stake, "lose", -stake.cents), None
    zeros = stake.zeros + 1
    chosen = stake.choices[stake.zeros] if len(stake.choices) > stake.zeros else RETIRE
    if variant.zero_rule is ZeroRule.CHOIX and chosen == PRISON and not last:
        return line(stake, PRISON, None), replace(stake, carried=PRISON, zeros=zeros)
    return line(stake, "partial", Fraction(stake.cents, 2**zeros) - stake.cents), None


def release(stakes: Sequence[Stake]) -> Settlement:
    """Who is in prison when the seance ends has seen a zero at its last coup: the forced refund (R-RF-28)."""
    lines = tuple(line(stake, "partial", Fraction(stake.cents, 2**stake.zeros) - stake.cents) for stake in stakes)
    return Settlement(lines=lines, transfers=transfers(lines))


def freed_value(stake: Stake, options: Any) -> Fraction:
    """What a prison stake is worth when it is freed after its zeros (reading of R-RF-27, spec §10)."""
    if options.valeur_liberee == "totalite":
        return Fraction(stake.cents)
    return Fraction(stake.cents, 2 ** (max(stake.zeros, 1) - 1))


def walk(variant: Variant, winners: Sequence[Line]) -> Groups:
    """Winning bets in the order of payment; inside a group as the text lists the types."""
    rank = {bet: place for place, bet in enumerate(bet for group in variant.walk for bet in group)}
    return groups_by_type(sorted(winners, key=lambda entry: rank[entry.type]), variant.walk)


def payment(variant: Variant, lines: Sequence[Line]) -> dict[str, Groups]:
    """Each winner's bets in the order of payment."""
    winners = [entry for entry in lines if entry.status == "win"]
    return {
        player: walk(variant, [entry for entry in winners if entry.player == player])
        for player in dict.fromkeys(entry.player for entry in winners)
    }


# --- tablectl settle -------------------------------------------------------------------------------------------------


def settle_case(variant: Variant, lay: Layout, game: Game, case: Case) -> dict[str, object]:
    """Successive results: every bet takes part in the first, an even chance in prison in those that follow."""
    numbers = cases.results(case.outcome, "numbers", variant.pockets)
    ends = cases.boolean(case.outcome, "last_spin_of_session", "/outcome", default=False)
    options = variant.options(**house_options(case))
    standing = cases.playing(case, game, House(declared_minimum_cents=case.minimum or 1))
    lines: dict[str, Line] = {}
    for place, number in enumerate(numbers):
        coup = WheelCoup(no=place + 1, last=ends and place == len(numbers) - 1)
        outcome = {"number": number, "chances": chances(number)}
        settlement = settle(variant, lay, standing, outcome, coup, options)
        lines |= {entry.id: entry for entry in settlement.lines}
        standing = tuple(stake for stake in settlement.stay if stake.carried)
    if variant.by_player:
        steps = {
            player: [list(group) for group in groups] for player, groups in payment(variant, [*lines.values()]).items()
        }
        return cases.settled(case, lines.values(), order_by_player=steps)
    order = walk(variant, [entry for entry in lines.values() if entry.status == "win"])
    return cases.settled(case, lines.values(), order=[list(group) for group in order])


def house_options(case: Case) -> dict[str, object]:
    """The house options that a case fixes."""
    if "valeur_liberee" not in case.config:
        return {}
    allowed = ("moitie_par_zero_suivant", "totalite")
    return {"valeur_liberee": cases.one_of(case.config, "valeur_liberee", allowed, "/config")}
