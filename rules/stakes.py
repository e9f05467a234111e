"""Stakes: placing, withdrawing, closing, and what to do with one that may have come too late (R-GEN-05)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rules import series
from rules.bets import On, Placement, Refusal, Stake, spot_id
from rules.decisions import BetsClosed, Phase, Severity, StakeAccepted, StakeDoubtful, StakeRefused
from rules.desk import Desk
from rules.facts import ChipPlaced, ChipRemoved, Origin
from rules.game import Close, Found
from rules.limits import UNKNOWN, above_maximum, below_minimum, partners
from rules.state import Doubt
from rules.words import text


def parse_spot(spot: str) -> tuple[str, On]:
    """A spot id taken apart, whether the layout has it or not: `cheval:11-14` -> (`cheval`, (11, 14))."""
    bet_type, _, numbers = spot.partition(":")
    words = numbers.split("-") if numbers else []
    return bet_type, tuple(int(word) if word.isdecimal() and str(int(word)) == word else word for word in words)


def push_back(desk: Desk, chips: ChipPlaced | Stake, cents: int, refusal: Refusal) -> None:
    """Push back chips that were just put down, or that had been accepted."""
    desk.say(
        StakeRefused(
            code=refusal.code,
            requirement=refusal.requirement,
            text=refusal.text,
            player=chips.player,
            tableau=chips.tableau,
            spot=chips.spot if isinstance(chips, ChipPlaced) else spot_id(chips.type, chips.on),
            cents=cents,
        )
    )


def accepted(stake: Stake) -> StakeAccepted:
    """The decision that tells how a stake stands."""
    return StakeAccepted(
        id=stake.id, player=stake.player, tableau=stake.tableau, type=stake.type, on=stake.on, cents=stake.cents
    )


def late() -> Refusal:
    """Why a stake after rien ne va plus does not exist."""
    return Refusal(code="mise_tardive", requirement="R-GEN-05", text=text("mise_tardive"))


def place(desk: Desk, fact: ChipPlaced) -> None:
    """Take, refuse or doubt chips put on the layout; the coup exists or the table is not playing."""
    fact = series.priced(desk, fact)
    stake = too_late(desk, fact) or as_stake(desk, fact)
    if isinstance(stake, Refusal):
        push_back(desk, fact, fact.cents, stake)
    elif desk.coup.closed_at_ns is not None and fact.until_ns >= desk.coup.closed_at_ns:
        doubt(desk, stake, fact.cents)
    else:
        keep(desk, stake)
        desk.say(accepted(stake))
        count_players(desk)


def closed_table() -> Refusal:
    """Why no stake may lie on a table that does not play."""
    return Refusal(code="table_fermee", requirement="R-GEN-05", text=text("table_fermee"))


def too_late(desk: Desk, fact: ChipPlaced) -> Refusal | None:
    """A refusal when the table takes no stakes, or when these chips came after rien ne va plus without any doubt."""
    state = desk.state
    if state.interrupted or state.coup is None or state.phase is Phase.LITIGE:
        return closed_table()
    closed_until = state.coup.closed_until_ns
    return late() if closed_until is not None and fact.at_ns > closed_until else None


def count_players(desk: Desk) -> None:
    """Note that more people play at a tableau than the text, or what the house decided for the seance, allows."""
    if desk.game.most_players is None:
        return
    by_text, requirement = desk.game.most_players
    lifted = desk.state.public_options.get(desk.game.more_players) is True
    allowed = [] if lifted else [by_text]
    allowed += [desk.house.max_players] if desk.house.max_players else []
    most = min(allowed, default=None)
    players = {(entry.tableau, entry.player) for entry in desk.state.stakes if entry.player != UNKNOWN}
    if most is not None and any(count > most for count in Counter(tableau for tableau, _ in players).values()):
        desk.found(Found(code="trop_de_joueurs", requirement=requirement, severity=Severity.NOTED, args={"most": most}))


def as_stake(desk: Desk, fact: ChipPlaced) -> Stake | Refusal:
    """The stake as it would stand with these chips, or why it may not."""
    if not 1 <= fact.tableau <= desk.house.tableaux:
        requirement = desk.game.most_tableaux[1] if desk.game.most_tableaux else "R-GEN-05"
        return Refusal(
            code="tableau_inconnu",
            requirement=requirement,
            text=text("tableau_inconnu", most=desk.house.tableaux),
        )
    if fact.cents <= 0:
        return Refusal(code="montant_impossible", requirement="R-GEN-02", text=text("montant_impossible"))
    bet_type, on = parse_spot(fact.spot)
    spot = desk.layout.find(bet_type, on)
    there = next((stake for stake in lying_there(desk, fact) if not stake.carried), None)
    stake = Stake(
        id=there.id if there else f"m{desk.state.stakes_made + 1}",
        player=fact.player,
        type=bet_type,
        on=spot.on if spot else on,
        cents=fact.cents + (there.cents if there else 0),
        tableau=fact.tableau,
        placed=(
            *(there.placed if there else ()),
            Placement(at_ns=fact.at_ns, until_ns=fact.until_ns, cents=fact.cents),
        ),
        person=fact.origin is Origin.PERSON,
        chip=series.lying_chips(fact, there),
    )
    refusal = desk.game.check(stake, desk.layout, desk.house) or series.may_lie(desk, fact, bet_type)
    if refusal is not None:
        return refusal
    limits = desk.state.limits
    assert spot is not None, "a game accepts only bets of its layout"
    assert limits is not None, "a coup opens only with limits"
    apart = (entry.stake for entry in desk.state.doubts if entry.coup == desk.coup.no)
    others = [entry for entry in (*desk.state.stakes, *apart) if entry.id != stake.id and not entry.carried]
    judged = fact.cents if fact.player == UNKNOWN else stake.cents
    return (
        above_maximum(spot, judged, others, partners(fact.player, desk.state.public_options), limits)
        or (below_minimum(stake, limits) or refused_beside(desk, stake, others) if stake.person else None)
        or stake
    )


def refused_beside(desk: Desk, stake: Stake, others: Sequence[Stake]) -> Refusal | None:
    """Why a stake may not stand beside the others; what is only noted is judged at the close."""
    said = desk.game.beside(stake, others, desk.state.limits, desk.house)
    return said if isinstance(said, Refusal) else None


def lying_there(desk: Desk, fact: ChipPlaced | ChipRemoved) -> list[Stake]:
    """The player's stakes on the spot of these chips: a free one, one in prison, one that was doubtful."""
    bet_type, on = parse_spot(fact.spot)
    return [
        stake
        for stake in desk.state.stakes
        if (stake.player, stake.tableau, stake.type) == (fact.player, fact.tableau, bet_type)
        and frozenset(stake.on) == frozenset(on)
    ]


def keep(desk: Desk, stake: Stake) -> None:
    """Put a stake on the layout, in place of the one with its id."""
    known = {entry.id: entry for entry in desk.state.stakes}
    made = desk.state.stakes_made + (stake.id not in known)
    known[stake.id] = stake
    desk.set(stakes=tuple(entry for entry in known.values() if entry.cents), stakes_made=made)


def doubt(desk: Desk, stake: Stake, cents: int) -> None:
    """Set chips apart of which nobody can say whether they were in time."""
    made = desk.state.stakes_made + 1
    name, spot = f"m{made}", spot_id(stake.type, stake.on)
    why = text("mise_douteuse", id=name, player=stake.player, spot=spot, cents=cents)
    apart = replace(stake, id=name, cents=cents, placed=(), doubt=why)
    desk.set(stakes_made=made, doubts=(*desk.state.doubts, Doubt(stake=apart, coup=desk.coup.no)))
    desk.say(
        StakeDoubtful(id=name, why=why, player=stake.player, tableau=stake.tableau, spot=spot, cents=cents),
    )


def withdraw(desk: Desk, fact: ChipRemoved) -> None:
    """Chips are taken from the layout: free before the close and after the payment, noted in between."""
    fact = series.priced(desk, fact)
    there = lying_there(desk, fact)
    if fact.cents <= 0 or desk.state.phase is Phase.CHOIX:  # with the choices the payment begins
        desk.ignore("montant_impossible" if fact.cents <= 0 else "mises_deja_closes")
        return
    if not there or desk.state.coup is None:
        desk.ignore("rien_a_retirer")
        return
    free = [entry for entry in there if not entry.carried]
    closed_at = None if desk.state.phase is Phase.REGLEMENT else desk.coup.closed_at_ns
    if not free or (closed_at is not None and fact.until_ns >= closed_at):
        code = "mise_retiree_apres_cloture" if free else "prison_intouchable"
        desk.found(Found(code=code, requirement="R-GEN-05", severity=Severity.NOTED, args={"player": fact.player}))
        return
    to_take = fact.cents
    for stake in free:
        if to_take > 0:
            left = without(stake, to_take)
            to_take -= stake.cents
            keep(desk, left)
            desk.say(accepted(left))


def without(stake: Stake, cents: int) -> Stake:
    """The stake after chips were taken from it: those put down last go first."""
    placed, to_take = list(stake.placed), cents
    while placed and to_take > 0:
        newest = placed.pop()
        if newest.cents > to_take:
            placed.append(replace(newest, cents=newest.cents - to_take))
        to_take -= newest.cents
    return replace(stake, cents=max(0, stake.cents - cents), placed=tuple(placed))


def forget_paid(desk: Desk) -> None:
    """The coup before is beyond any revision."""
    desk.set(previous=None, before=())


def close(desk: Desk, effect: Close) -> None:
    """Close the bets as of the effect's interval and judge the stakes that lie there (R-GEN-05).

    Bets that are closed stay so, unless it turns out that the draw had begun before they were (R-VT-08).
    """
    if desk.coup.closed_at_ns is not None and effect.until_ns >= desk.coup.closed_at_ns:
        return
    forget_paid(desk)
    desk.set_coup(closed_at_ns=effect.at_ns, closed_until_ns=effect.until_ns, closed_how=effect.how)
    desk.mark("closed", effect.at_ns)
    desk.say(BetsClosed(at_ns=effect.at_ns, how=effect.how))
    limits = desk.state.limits
    assert limits is not None, "a coup opens only with limits"
    lying: list[Stake] = []
    for stake in desk.state.stakes:
        if stake.carried:
            continue
        in_time = before_close(desk, stake, effect)
        if not in_time.cents:
            continue
        said = below_minimum(in_time, limits) or desk.game.beside(in_time, lying, limits, desk.house)
        if isinstance(said, Refusal):
            keep(desk, replace(in_time, cents=0))
            push_back(desk, in_time, in_time.cents, said)
            continue
        lying.append(in_time)
        if said is not None:
            desk.found(said)
    count_players(desk)  # winners of the coup before play on without a new chip
    desk.go(Phase.JEUX_FAITS)


def before_close(desk: Desk, stake: Stake, effect: Close) -> Stake:
    """The part of a stake that was down before the close; the rest is pushed back or set apart as doubtful."""
    beyond = [chips for chips in stake.placed if chips.until_ns >= effect.at_ns]
    after = sum(chips.cents for chips in beyond if chips.at_ns > effect.until_ns)
    unclear = sum(chips.cents for chips in beyond) - after
    before = tuple(chips for chips in stake.placed if chips.until_ns < effect.at_ns)
    in_time = replace(stake, cents=stake.cents - after - unclear, placed=before)
    keep(desk, in_time)
    if after:
        push_back(desk, stake, after, late())
    if unclear:
        doubt(desk, stake, unclear)
    return in_time
