"""The verdict: do the sources agree, what status has the coup, who is paid, and what a person may still change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from rules import series, stakes
from rules.bets import Stake
from rules.decisions import (
    AlarmCleared,
    AlarmRaised,
    Announce,
    CoupEnded,
    Decision,
    Offer,
    Phase,
    PhaseChanged,
    Settled,
    Severity,
    Signal,
    Status,
)
from rules.desk import MS, Desk
from rules.facts import Chosen, Origin, SpinStarted
from rules.game import Close, Coup, Found, Outcome, Reading
from rules.settlement import Settlement, line, transfers
from rules.state import Doubt, TableState
from rules.words import text

DRAW_TIMERS: Final = ("tirage", "accord", "rnvp")
HEALED_BY_HAND: Final = frozenset(
    {
        "appareil_perdu",
        "case_inconnue",
        "entrees_perdues",
        "lancer_non_vu",
        "resultat_recupere",
        "source_manquante",
        "tirage_non_observe",
        "tirage_sans_resultat",
    }
)
"""Breaches that say only that the instruments failed: a manual result by two named persons answers them (67-15)."""


def open_coup(desk: Desk, *, last: bool = False) -> None:
    """Begin the next coup (`Table.step` hands it the actuation that waited for it, if any)."""
    number = desk.state.coup_no + 1
    paid = desk.state.coup if desk.state.phase is Phase.REGLEMENT else None
    phase = Phase.MISES_OUVERTES
    memory = desk.state.coup.memory if desk.state.coup else {}
    coup = desk.game.coup(no=number, last=last, memory=memory)
    before = desk.state.before if paid else ()
    desk.set(coup=coup, coup_no=number, previous=paid, before=before, offers={}, phase=phase)
    desk.say(PhaseChanged(phase=phase, coup=number))


def remember(desk: Desk, turn: SpinStarted, *, waits: bool) -> None:
    """Keep the sense of an actuation that no running coup can hear (R-GEN-07)."""
    earlier = desk.state.waiting_turn
    if earlier is not None:
        desk.set(last_direction=earlier.direction)
    if waits:
        desk.set(waiting_turn=turn)
    else:
        desk.set(last_direction=turn.direction, waiting_turn=None)


def flush_waiting(desk: Desk) -> None:
    """No coup will take what waited: only the memory keeps the sense of the actuation."""
    if desk.state.waiting_turn is not None:
        desk.set(last_direction=desk.state.waiting_turn.direction, waiting_turn=None)
    desk.set(waiting_ball=None)


# --- readings --------------------------------------------------------------------------------------------------------


def read(desk: Desk, reading: Reading) -> None:
    """A source has read the result: wait for the others, or end the coup."""
    others = tuple(entry for entry in desk.coup.readings if entry.source != reading.source)
    desk.set_coup(readings=(*others, reading))
    desk.go(Phase.RESULTAT)
    weigh(desk, waited=False)


def settled_values(readings: Sequence[Reading]) -> set[int | str]:
    """The different values that the sources vouch for; a doubtful reading follows whoever confirms one of its two."""
    firm = {entry.value for entry in readings if entry.or_value is None}
    for entry in readings:
        if entry.or_value is not None and not firm & {entry.value, entry.or_value}:
            firm.add(entry.value)
    return firm


def disagreement(readings: Sequence[Reading]) -> Found:
    """Who says what."""
    told = ", ".join(f"{entry.source} {entry.value}" for entry in readings)
    return Found(code="sources_en_desaccord", requirement="R-GEN-08", severity=Severity.HELD, args={"told": told})


def disagree(desk: Desk) -> bool:
    """Do the sources vouch for different values; the coup is then held."""
    readings = desk.coup.readings
    if len(settled_values(readings)) < 2:
        return False
    desk.found(disagreement(readings))
    return True


def weigh(desk: Desk, *, waited: bool) -> None:
    """End the coup when the sources agree, disagree, or have been waited for long enough."""
    readings = desk.coup.readings
    if disagree(desk):
        finish(desk, None)
        return
    if all(entry.or_value is not None for entry in readings):
        desk.announce("confirmer_la_case")
        return  # only the eye can tell: wait for a person, at most until the draw's own time is over
    missing = [source for source in desk.house.sources if all(entry.source != source for entry in readings)]
    if missing and not waited:
        if all(timer.name != "accord" for timer in desk.state.timers):
            desk.arm("accord", desk.house.agree_within_ms * MS, "fire")
        return
    for source in missing:
        needed = source in desk.house.draw_devices
        severity = Severity.HELD if needed else Severity.NOTED
        desk.found(Found(code="source_manquante", requirement="R-GEN-08", severity=severity, args={"source": source}))
    order = {source: rank for rank, source in enumerate(desk.house.sources)}
    firm = sorted((e for e in readings if e.or_value is None), key=lambda e: order.get(e.source, len(order)))
    if any(entry.or_value is not None for entry in readings):
        desk.found(Found(code="case_confirmee", requirement="R-RC-12", severity=Severity.NOTED))
    if any(entry.recovered for entry in readings) and len(readings) == 1:
        desk.found(Found(code="resultat_recupere", requirement="R-GEN-08", severity=Severity.HELD))
    finish(desk, firm[0].outcome)


# --- the end of a coup -----------------------------------------------------------------------------------------------


def coup_ended(desk: Desk, kind: Literal["first", "resolution", "revision"], status: Status) -> CoupEnded:
    """The decision that tells how the coup stands now."""
    coup = desk.coup
    return CoupEnded(
        coup=coup.no,
        partie=desk.state.partie,
        seance=desk.state.seance,
        kind=kind,
        status=status,
        reasons=coup.breaches,
        outcome=coup.outcome,
        direction=coup.direction,
        travel_counts=coup.travel,
        per_turn=coup.per_turn,
        times=coup.times,
        sources={entry.source: entry.value for entry in coup.readings},
        recovered=any(entry.recovered for entry in coup.readings),
        manual=coup.manual,
    )


def void_outcome(outcome: Outcome | None) -> Outcome | None:
    """What was read in a draw that does not count: where an outcome says whether it is valid, it says no."""
    return {**outcome, "valid": False} if outcome and "valid" in outcome else outcome


def finish(desk: Desk, outcome: Outcome | None) -> None:
    """The draw is over: status by the worst breach, and what follows from it."""
    status = desk.status()
    # Whoever decides or pays finds the stakes as they lay.
    if status is not Status.VOID and desk.coup.closed_at_ns is None:
        stakes.close(desk, Close(at_ns=desk.fact.at_ns, until_ns=desk.fact.until_ns, how="absent"))
    desk.set_coup(outcome=void_outcome(outcome) if status is Status.VOID else outcome, launched=False)
    desk.mark("ended", desk.fact.at_ns)
    desk.disarm(*DRAW_TIMERS)
    desk.quench()
    desk.say(coup_ended(desk, "first", status))
    proceed(desk, status)


def proceed(desk: Desk, status: Status) -> None:
    """Go on after a status: pay, open the next coup, or wait for a person."""
    if status is Status.VALID:
        pay(desk)
    elif status is Status.VOID:
        desk.announce("coup_nul")
        admit_doubts(desk)
        last = desk.coup.last
        open_coup(desk, last=last)
        if last:
            desk.announce("dernier_coup")
    else:
        flush_waiting(desk)
        desk.go(Phase.LITIGE)
        desk.say(*dispute(desk.state))


def dispute(state: TableState) -> tuple[Decision, Decision]:
    """How people are told that a coup is held, or that none is."""
    if state.phase is Phase.LITIGE:
        assert state.coup is not None, "there is no dispute without a coup"
        held = (breach.text for breach in state.coup.breaches if breach.severity is Severity.HELD)
        sentence = text("coup_retenu", coup=state.coup_no, reasons=" ; ".join(held))
        return Signal(lamp="litige", on=True), AlarmRaised(name="litige", code="coup_retenu", text=sentence)
    return Signal(lamp="litige", on=False), AlarmCleared(name="litige")


def exchanged(left: TableState, state: TableState) -> tuple[Decision, ...]:
    """What people must see when a table goes on from another state and no fact says why (maintenance)."""
    lit = {lamp: on for coup, on in ((left.coup, False), (state.coup, True)) if coup for lamp in coup.lit}
    return (*(Signal(lamp=lamp, on=on) for lamp, on in lit.items()), *dispute(state))


def pay(desk: Desk) -> None:
    """Announce the result, offer the choices that the law gives, and settle when nothing is left to choose."""
    outcome = desk.coup.outcome
    assert outcome is not None
    desk.say(Announce(code="resultat", text=desk.game.announce(outcome)))
    desk.go(Phase.RESULTAT)
    offer(desk, desk.state.stakes)
    if not desk.state.offers:
        settle(desk)
        return
    desk.go(Phase.CHOIX)
    desk.arm("choix", desk.house.choice_max_ms * MS, "restart")


def offer(desk: Desk, mine: Sequence[Stake]) -> None:
    """Offer the choices that the law gives these stakes at the outcome of the coup."""
    assert desk.coup.outcome is not None
    offers = desk.game.offers(mine, desk.coup.outcome, desk.coup)
    desk.set(offers={**desk.state.offers, **offers})
    for stake in mine:
        if stake.id in offers:
            desk.say(Offer(player=stake.player, tableau=stake.tableau, what=stake.id, choices=tuple(offers[stake.id])))


def choose(desk: Desk, fact: Chosen) -> bool:
    """A player's choice about one stake, or about all his open offers; False when it answers no offer."""
    mine = [
        stake
        for stake in desk.state.stakes
        if stake.id in desk.state.offers
        and (stake.player, stake.tableau) == (fact.player, fact.tableau)
        and fact.what in {stake.id, "zero"}
        and fact.value in desk.state.offers[stake.id]
    ]
    for stake in mine:
        stakes.keep(desk, replace(stake, choices=(*stake.choices, fact.value)))
    chosen = {stake.id for stake in mine}
    desk.set(offers={name: choices for name, choices in desk.state.offers.items() if name not in chosen})
    if mine and not desk.state.offers:
        settle(desk)
    return bool(mine)


def settle(desk: Desk) -> None:
    """Settle the coup on every tableau; what lives on stays on the layout."""
    desk.disarm("choix")
    outcome, coup = desk.coup.outcome, desk.coup
    assert outcome is not None
    before = desk.state.stakes
    settlement = desk.game.settle(before, outcome, coup, desk.house.options)
    tell(desk, before, settlement, coup.no)
    desk.set(before=before, stakes=tuple(replace(stake, placed=()) for stake in settlement.stay), offers={})
    keep_doubts(desk)
    desk.go(Phase.REGLEMENT)


def tell(desk: Desk, settled: Sequence[Stake], settlement: Settlement, coup: int) -> None:
    """Announce the gains and tell the settlement of each tableau."""
    series.tell_gains(desk, settlement)
    tableau_of = {stake.id: stake.tableau for stake in settled}
    for tableau in range(1, desk.house.tableaux + 1):
        lines = tuple(entry for entry in settlement.lines if entry.tableau == tableau)
        groups = (tuple(name for name in group if tableau_of[name] == tableau) for group in settlement.order)
        players = {entry.player for entry in lines}
        walk = (tuple(name for name in group if name in players) for group in settlement.player_order)
        desk.say(
            Settled(
                coup=coup,
                tableau=tableau,
                lines=lines,
                transfers=tuple(entry for entry in settlement.transfers if entry.tableau == tableau),
                order=tuple(group for group in groups if group),
                player_order=tuple(group for group in walk if group),
            )
        )


def release(desk: Desk) -> None:
    """The seance ends: the coup that left stakes carried was its last one; they are settled as the text says."""
    carried = tuple(stake for stake in desk.state.stakes if stake.carried)
    if not carried:
        return
    assert desk.game.release is not None, "a seance does not end with stakes that nothing releases"
    desk.announce("fin_de_seance_en_prison")
    tell(desk, carried, desk.game.release(carried), desk.state.coup_no)
    desk.set(stakes=())


def keep_doubts(desk: Desk) -> None:
    """Doubtful stakes of this coup remember its outcome, so that they can be settled once they are resolved."""
    desk.set(
        doubts=tuple(
            replace(entry, outcome=desk.coup.outcome, last=desk.coup.last) if entry.coup == desk.coup.no else entry
            for entry in desk.state.doubts
        )
    )


# --- what a person may still change ----------------------------------------------------------------------------------


def return_to_paid(desk: Desk, coup: Coup) -> None:
    """The coup that has only begun makes way for the paid one, which is in question; its new chips are pushed back."""
    for stake in desk.state.stakes:
        new = sum(chips.cents for chips in stake.placed)
        stakes.keep(desk, replace(stake, cents=stake.cents - new, placed=()))
        if new:
            stakes.push_back(desk, stake, new, stakes.closed_table())
    desk.set(coup=coup, coup_no=coup.no, previous=None, phase=Phase.REGLEMENT)


def contradict(desk: Desk, reading: Reading) -> None:
    """A source contradicts a finished coup (design, source agreement)."""
    others = (entry for entry in desk.coup.readings if entry.source != reading.source)
    desk.set_coup(readings=(*others, reading), outcome=None)
    revise(desk, disagreement(desk.coup.readings))


def revise(desk: Desk, why: Found) -> None:
    """A finished coup is in question: it is held anew, and its settlement and choices wait."""
    desk.set_coup(breaches=tuple(entry for entry in desk.coup.breaches if entry.code != why.code))
    desk.found(why)  # told anew, also when the same was decided before
    desk.disarm("choix")
    undone = desk.state.before or desk.state.stakes
    desk.set(offers={}, stakes=tuple(replace(stake, choices=stake.choices[: stake.zeros]) for stake in undone))
    desk.say(coup_ended(desk, "revision", Status.HELD))
    proceed(desk, Status.HELD)


def resolve(desk: Desk, status: Status, outcome: Outcome | None, manual: dict[str, object]) -> None:
    """A named person ends the dispute: valid with an outcome, or void."""
    desk.set_coup(outcome=outcome if status is Status.VALID else void_outcome(desk.coup.outcome), manual=manual)
    desk.say(coup_ended(desk, "resolution", status))
    desk.say(Signal(lamp="litige", on=False), AlarmCleared(name="litige"))
    if status is Status.VOID and desk.state.before:
        lines = tuple(line(stake, "push", 0) for stake in desk.state.before if not stake.carried)
        for tableau in range(1, desk.house.tableaux + 1):
            mine = tuple(entry for entry in lines if entry.tableau == tableau)
            desk.say(Settled(coup=desk.coup.no, tableau=tableau, lines=mine, transfers=(), order=()))
    proceed(desk, status)


def by_hand(desk: Desk, reading: Reading, manual: dict[str, object]) -> None:
    """A manual result by two named persons: it answers what the instruments could not tell, nothing else (67-15)."""
    healed = tuple(
        replace(entry, severity=Severity.NOTED) if entry.code in HEALED_BY_HAND else entry
        for entry in desk.coup.breaches
    )
    desk.set_coup(breaches=healed, readings=(*desk.coup.readings, reading), manual=manual)
    desk.found(Found(code="resultat_manuel", requirement="R-GEN-08", severity=Severity.NOTED))
    finish(desk, None if disagree(desk) else reading.outcome)


def admit_doubts(desk: Desk) -> None:
    """The call counts no more: what was doubtful then lies there in time for the next one."""
    for doubt in desk.state.doubts:
        if doubt.coup == desk.coup.no:
            resolve_doubt(desk, doubt, counts=True)


def resolve_doubt(desk: Desk, doubt: Doubt, *, counts: bool) -> None:
    """A person decides about one doubtful stake; if its coup is over, it is settled now on its own."""
    desk.set(doubts=tuple(entry for entry in desk.state.doubts if entry.stake.id != doubt.stake.id))
    stake = replace(doubt.stake, doubt="")
    if not counts:
        stakes.push_back(desk, stake, stake.cents, stakes.late())
        return
    desk.say(stakes.accepted(stake))
    its_coup = desk.state.coup is not None and desk.coup.no == doubt.coup
    if its_coup and desk.state.phase is not Phase.REGLEMENT:
        stakes.keep(desk, stake)
        if desk.state.phase is Phase.CHOIX:
            offer(desk, (stake,))
        return
    pay_alone(desk, stake, doubt)
    its_paid = desk.state.previous is not None and desk.state.previous.no == doubt.coup
    if its_coup or its_paid:  # should the coup be revised, this stake is part of it
        desk.set(before=(*desk.state.before, stake))


def pay_alone(desk: Desk, stake: Stake, doubt: Doubt) -> None:
    """Settle one stake of a coup that is already over; a choice that it would have had is taken by default."""
    assert doubt.outcome is not None, "a doubt outlives its coup only with its outcome"
    coup: Coup = desk.game.coup(no=doubt.coup, last=doubt.last)
    settlement = desk.game.settle((stake,), doubt.outcome, coup, desk.house.options)
    series.tell_gains(desk, settlement)
    desk.say(
        Settled(
            coup=doubt.coup,
            tableau=stake.tableau,
            lines=settlement.lines,
            transfers=transfers(settlement.lines),
            order=settlement.order,
            player_order=settlement.player_order,
        )
    )


def person_reading(desk: Desk, value: int | str, source: str) -> Reading | None:
    """A value vouched for by a person, or None when the game has no such result."""
    outcome = desk.game.read(value, desk.house.options)
    if outcome is None:
        return None
    value = desk.game.value(outcome)
    return Reading(source=source, value=value, outcome=outcome, origin=Origin.PERSON, at_ns=desk.fact.at_ns)
