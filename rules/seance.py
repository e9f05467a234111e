"""The seance: who must sign, opening and closing, the minimum in force and when it may change (R-GEN-03, R-GEN-10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, Literal

from rules import series, stakes, verdict
from rules.bets import Refusal
from rules.decisions import Phase, Refused, StakeAccepted
from rules.desk import Desk
from rules.facts import Commanded
from rules.game import Needed
from rules.limits import Limits, renewed
from rules.state import Attestation
from rules.words import text

CLOSED: Final = frozenset({Phase.FERME, Phase.VERIFIEE})
SENSOR_ROLE: Final = "capteur"
"""Who signs for a cover that has a contact of its own."""


def unsigned(desk: Desk, when: Literal["open", "raise", "close", "reopen"]) -> list[Needed]:
    """Attestations that are still missing for this step."""
    signed = {(entry.what, entry.role) for entry in desk.state.attestations}
    return [
        need
        for need in desk.needs
        if need.when == when
        and (need.what, SENSOR_ROLE) not in signed
        and any((need.what, role) not in signed for role in need.roles)
    ]


def sign(desk: Desk, what: str, role: str, by: str) -> None:
    """Record a signature; the table is verified once nothing is missing for its opening."""
    entry = Attestation(what=what, role=role, by=by, at_ns=desk.fact.at_ns)
    others = (a for a in desk.state.attestations if (a.what, a.role) != (what, role))
    desk.set(attestations=(*others, entry))
    desk.announce("attestation", what=what, role=role, by=by)
    verify(desk)


def verify(desk: Desk) -> None:
    """A closed table is verified while nothing is missing for its opening."""
    if desk.state.phase in CLOSED:
        ready = any(need.when == "open" for need in desk.needs) and not unsigned(desk, "open")
        desk.go(Phase.VERIFIEE if ready else Phase.FERME)


def forget(desk: Desk, *whats: str) -> None:
    """These signatures no longer hold."""
    desk.set(attestations=tuple(entry for entry in desk.state.attestations if entry.what not in whats))


def attest(desk: Desk, command: Commanded) -> None:
    """Command `attest {what}`: anybody may attest; what the game needs must be signed by the roles it names."""
    what = command.args.get("what")
    if not isinstance(what, str) or not what:
        desk.refuse("attest", "argument_manquant", argument="what")
        return
    needed = [need for need in desk.needs if need.what == what]
    if needed and all(command.role not in need.roles for need in needed):
        roles = ", ".join(sorted({role for need in needed for role in need.roles}))
        desk.refuse("attest", "role_non_habilite", what=what, roles=roles)
        return
    if any(need.when == "close" for need in needed) and desk.state.coup is not None and desk.coup.launched:
        desk.refuse("attest", "coup_en_cours")
    elif any(need.when == "reopen" for need in needed) and desk.state.phase not in CLOSED:
        desk.refuse("attest", "fermer_d_abord")
    else:
        sign(desk, what, command.role, command.by)


def limits_asked(desk: Desk, command: Commanded) -> Limits | Refusal:
    """The limits that a command asks for, checked against the text and against the regime of the minimum."""
    state = desk.state
    standing = state.limits.minimum if state.limits else desk.house.declared_minimum_cents
    minimum = command.args.get("minimum_cents", standing)
    maxima = command.args.get("maxima", {})
    if isinstance(maxima, Mapping) and state.limits and minimum == standing:
        maxima = renewed(desk.layout, state.limits.maxima, maxima)
    if isinstance(minimum, bool) or not isinstance(minimum, int):
        return Refusal(code="montant_impossible", requirement="R-GEN-10", text=text("montant_impossible"))
    if not isinstance(maxima, Mapping) or any(not isinstance(cents, int) for cents in maxima.values()):
        return Refusal(code="montant_impossible", requirement="R-GEN-10", text=text("montant_impossible"))
    asked = desk.game.limits(desk.layout, desk.house, minimum, maxima)
    if isinstance(asked, Refusal) or not state.seance_open or state.limits is None or asked == state.limits:
        return asked
    when, requirement = desk.game.minimum_change
    if when == "seance":
        return Refusal(code="minimum_fige", requirement=requirement, text=text("minimum_fige"))
    if state.phase not in CLOSED:
        return Refusal(code="fermer_d_abord", requirement=requirement, text=text("fermer_d_abord"))
    if missing := unsigned(desk, "reopen"):
        return missing_refusal(missing)
    return asked


def missing_refusal(missing: list[Needed]) -> Refusal:
    """A refusal that names every signature still missing."""
    wanted = ", ".join(f"{need.what} ({' + '.join(need.roles)})" for need in missing)
    return Refusal(
        code="attestation_manquante",
        requirement=missing[0].requirement,
        text=text("attestation_manquante", wanted=wanted),
    )


def refuse(desk: Desk, command: str, refusal: Refusal) -> None:
    """Answer a command with a refusal of the law."""
    desk.say(Refused(command=command, code=refusal.code, text=refusal.text, requirement=refusal.requirement))


def open_table(desk: Desk, command: Commanded) -> None:
    """Command `open {minimum_cents?, maxima?}`: a new seance, or the same one after a close."""
    if desk.state.phase not in CLOSED:
        desk.refuse("open", "deja_ouverte")
        return
    if undecided := still_undecided(desk):
        refuse(desk, "open", undecided)
        return
    if missing := unsigned(desk, "open"):
        refuse(desk, "open", missing_refusal(missing))
        return
    limits = limits_asked(desk, command)
    if isinstance(limits, Refusal):
        refuse(desk, "open", limits)
        return
    raised = not desk.state.seance_open and limits.minimum > desk.house.declared_minimum_cents
    if raised and (missing := unsigned(desk, "raise")):
        refuse(desk, "open", missing_refusal(missing))
        return
    if desk.state.seance_open:
        desk.set(partie=desk.state.partie + 1)
    else:
        desk.set(seance=desk.state.seance + 1, partie=1, seance_open=True)
    forget(desk, *(need.what for need in desk.needs if need.when != "open"))
    desk.set(limits=limits, interrupted=False)
    series.within_limits(desk)
    desk.announce("ouverture", minimum=limits.minimum)
    verdict.open_coup(desk)


def close_table(desk: Desk, command: Commanded) -> None:
    """Command `close {end_of_seance?}`: between coups only, with the cover signed for where the text wants one."""
    state = desk.state
    ends = command.args.get("end_of_seance") is True
    in_prison = any(stake.carried for stake in state.stakes)
    if state.phase in CLOSED:
        if not ends or not state.seance_open:
            desk.refuse("close", "deja_fermee")
        elif in_prison and desk.game.release is None:
            desk.refuse("close", "mises_en_prison")
        else:
            end_seance(desk)
        return
    if state.phase not in {Phase.MISES_OUVERTES, Phase.REGLEMENT} or desk.coup.launched:
        desk.refuse("close", "coup_en_cours")
        return
    if missing := unsigned(desk, "close"):
        refuse(desk, "close", missing_refusal(missing))
        return
    if ends and in_prison and desk.game.release is None:
        desk.refuse("close", "mises_en_prison")
        return
    for stake in state.stakes:
        if not stake.carried:
            desk.say(
                StakeAccepted(
                    id=stake.id, player=stake.player, tableau=stake.tableau, type=stake.type, on=stake.on, cents=0
                )
            )
    played = state.phase is Phase.REGLEMENT
    verdict.flush_waiting(desk)
    stakes.forget_paid(desk)
    desk.quench()
    desk.set(
        stakes=tuple(stake for stake in state.stakes if stake.carried),
        coup=None,
        coup_no=state.coup_no if played else state.coup_no - 1,
        interrupted=False,
    )
    forget(desk, *(need.what for need in desk.needs if need.each_partie))
    desk.announce("fermeture")
    desk.go(Phase.FERME)
    if ends:
        end_seance(desk)


def end_seance(desk: Desk) -> None:
    """The seance is over: its limits and signatures end with it."""
    series.end(desk)
    verdict.release(desk)
    desk.set(seance_open=False, limits=None, attestations=(), public_options={})
    desk.announce("fin_de_seance", seance=desk.state.seance)
    desk.go(Phase.FERME)


def change_limits(desk: Desk, command: Commanded) -> None:
    """Command `limits {minimum_cents, maxima?}`: before the opening; later only as the game's text allows."""
    limits = limits_asked(desk, command)
    if isinstance(limits, Refusal):
        refuse(desk, "limits", limits)
        return
    desk.set(limits=limits)
    desk.announce("limites", minimum=limits.minimum)


def still_undecided(desk: Desk) -> Refusal | None:
    """A refusal that names the public options without which the table does not open (R-BO-04)."""
    decided, known = desk.state.public_options, desk.game.public_options
    missing = [name for name, option in known.items() if option.needed and name not in decided]
    if not missing:
        return None
    sentence = text("option_a_decider", options=", ".join(missing))
    return Refusal(code="option_a_decider", requirement=known[missing[0]].requirement, text=sentence)


def option_refused(desk: Desk, name: str, value: object) -> Refusal | None:
    """Why this public option may not be decided so, or not now."""
    option = desk.game.public_options[name]
    if not option.fits(value):
        code, sentence = "option_impossible", text("option_impossible", option=name, allowed=text(option.allowed))
    elif desk.state.seance_open and not option.in_seance:
        code, sentence = "option_figee", text("option_figee", option=name)
    else:
        return None
    return Refusal(code=code, requirement=option.requirement, text=sentence)


def change_options(desk: Desk, command: Commanded) -> None:
    """Command `options {...}`: what the house decides before a seance, or during it where the text lets it."""
    known = desk.game.public_options
    allowed = ", ".join(sorted(known)) or "-"
    if unknown := sorted(set(command.args) - set(known)):
        desk.refuse("options", "option_inconnue", options=", ".join(unknown), allowed=allowed)
        return
    if not command.args:
        desk.refuse("options", "argument_manquant", argument=allowed)
        return
    for name, value in command.args.items():
        if refused := option_refused(desk, name, value):
            refuse(desk, "options", refused)
            return
    desk.set(public_options={**desk.state.public_options, **command.args})
    told = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in command.args.items())
    desk.announce("options", by=command.by, options=told)
    for name, value in command.args.items():
        if isinstance(value, bool) and value in known[name].says:
            desk.announce(known[name].says[value])
    verify(desk)


def interrupt(desk: Desk, command: Commanded) -> None:
    """Command `interrupt`: no stakes and no coup until `resume`; a running draw is finished first."""
    del command
    if desk.state.phase not in {Phase.MISES_OUVERTES, Phase.REGLEMENT} or desk.state.interrupted:
        desk.refuse("interrupt", "pas_maintenant", phase=desk.state.phase)
        return
    desk.set(interrupted=True)
    desk.announce("interruption")


def resume(desk: Desk, command: Commanded) -> None:
    """Command `resume`: the partie goes on where it was interrupted."""
    del command
    if not desk.state.interrupted:
        desk.refuse("resume", "pas_interrompue")
        return
    desk.set(interrupted=False)
    desk.announce("reprise")


COMMANDS: Final[Mapping[str, Callable[[Desk, Commanded], None]]] = {
    "attest": attest,
    "open": open_table,
    "close": close_table,
    "limits": change_limits,
    "options": change_options,
    "interrupt": interrupt,
    "resume": resume,
}
