"""What authorised persons order about a coup, and the facts that they tell by a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rules import verdict
from rules.decisions import Phase, Severity, Status
from rules.desk import Desk
from rules.facts import Announced, ChipPlaced, ChipRemoved, Chosen, Commanded, Fact, Origin, PocketRead
from rules.game import Found, Reading


def told_by(command: Commanded) -> Fact | None:
    """The fact that a person tells by a command, or None when its arguments do not make one."""
    args, at_ns, by = command.args, command.at_ns, command.by

    def word(name: str) -> str:
        value = args[name]
        if not isinstance(value, str) or not value:
            raise KeyError(name)
        return value

    def number(name: str, default: int | None = None) -> int:
        value = args.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise KeyError(name)
        return value

    try:
        match command.name:
            case "announce":
                return Announced(at_ns=at_ns, source="command", code=word("code"), by=by)
            case "last_coup":
                return Announced(at_ns=at_ns, source="command", code="dernier_coup", by=by)
            case "stake" if not isinstance(args.get("remove", False), bool) or {"cents", "jetons"} <= set(args):
                return None
            case "stake":
                kind = ChipRemoved if args.get("remove") else ChipPlaced
                return kind(
                    at_ns=at_ns,
                    source="command",
                    origin=Origin.PERSON,
                    spot=word("spot"),
                    cents=number("cents", 0 if "jetons" in args else None),
                    jetons=number("jetons", 0),
                    chip=word("chip") if "chip" in args else "",
                    player=word("player"),
                    tableau=number("tableau", 1),
                )
            case "choice":
                return Chosen(
                    at_ns=at_ns,
                    source="command",
                    player=word("player"),
                    what=word("what"),
                    value=str(number("value")) if isinstance(args["value"], int) else word("value"),
                    tableau=number("tableau", 1),
                )
            case "confirm" if "value" not in args:
                return Announced(at_ns=at_ns, source="console", code="confirme", by=by)
            case "confirm":
                value = args["value"]
                if isinstance(value, bool) or not isinstance(value, int | str):
                    return None
                return PocketRead(at_ns=at_ns, source="console", origin=Origin.PERSON, value=value)
            case _:
                return None
    except KeyError:
        return None


def resolve(desk: Desk, command: Commanded) -> None:
    """Command `resolve {as: valid|void, outcome?, why?}` for a held coup, or `{stake, as: accepted|refused}`."""
    args, verdict_word = command.args, command.args.get("as")
    if "stake" in args:
        doubt = next((entry for entry in desk.state.doubts if entry.stake.id == args["stake"]), None)
        if doubt is None or verdict_word not in {"accepted", "refused"}:
            known = ", ".join(entry.stake.id for entry in desk.state.doubts) or "-"
            desk.refuse("resolve", "mise_inconnue", stake=args["stake"], known=known)
            return
        verdict.resolve_doubt(desk, doubt, counts=verdict_word == "accepted")
        return
    if desk.state.phase is not Phase.LITIGE:
        desk.refuse("resolve", "pas_de_litige")
        return
    if verdict_word not in {"valid", "void"}:
        desk.refuse("resolve", "argument_manquant", argument="as (valid|void)")
        return
    status = Status(verdict_word)
    outcome = desk.coup.outcome
    if "outcome" in args:
        told = told_reading(desk, args["outcome"])
        outcome = None if told is None else told.outcome
    if status is Status.VALID and outcome is None:
        no_result(desk, "resolve", args.get("outcome"))
        return
    manual: dict[str, object] = {"by": [command.by], "role": command.role, "why": str(args.get("why", ""))}
    verdict.resolve(desk, status, outcome, manual)


def void(desk: Desk, command: Commanded) -> None:
    """Command `void {why}`: a named person annuls the running or held coup."""
    manual: dict[str, object] = {"by": [command.by], "role": command.role, "why": str(command.args.get("why", ""))}
    if desk.state.phase is Phase.LITIGE:
        verdict.resolve(desk, Status.VOID, desk.coup.outcome, manual)
    elif being_drawn(desk):
        desk.set_coup(manual=manual)
        args = {"by": command.by}
        desk.found(Found(code="annule_par_decision", requirement="R-GEN-08", severity=Severity.VOID, args=args))
        verdict.finish(desk, desk.coup.outcome)
    else:
        desk.refuse("void", "pas_de_coup")


def being_drawn(desk: Desk) -> bool:
    """Does a draw run, or must one be taken to run because its bets are closed."""
    closed = desk.state.phase in {Phase.JEUX_FAITS, Phase.RESULTAT}
    return closed or (desk.state.coup is not None and desk.coup.launched)


def told_reading(desk: Desk, value: object) -> Reading | None:
    """A result that a command names, or None when this game has no such result."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return verdict.person_reading(desk, value, "manuel")


def no_result(desk: Desk, command: str, value: object) -> None:
    """Refuse a result that this game does not know, or that leaves something open."""
    why = desk.game.misread(value if isinstance(value, int | str) else None)
    desk.refuse(command, "resultat_requis" if why == "lecture_impossible" else why)


def unseen(desk: Desk) -> None:
    """Nobody saw the launch: the instruments that were lost then stand with the result."""
    for device in desk.state.lost:
        if device in desk.house.draw_devices:
            args = {"device": device, "why": "absent"}
            desk.found(Found(code="appareil_perdu", requirement="R-GEN-08", severity=Severity.HELD, args=args))


def outcome_by_hand(desk: Desk, command: Commanded) -> None:
    """Command `outcome {value, second}`: the result by two named persons when the instruments cannot tell (67-15)."""
    value, second = command.args.get("value"), command.args.get("second")
    if not isinstance(second, str) or not second or second == command.by:
        desk.refuse("outcome", "deux_personnes")
        return
    reading = told_reading(desk, value)
    if reading is None:
        no_result(desk, "outcome", value)
        return
    manual: dict[str, object] = {"by": [command.by, second], "role": command.role, "why": "67-15"}
    if desk.state.phase is Phase.LITIGE:
        verdict.resolve(desk, Status.VALID, reading.outcome, manual)
    elif being_drawn(desk):
        if desk.coup.closed_at_ns is None:
            desk.refuse("outcome", "mises_encore_ouvertes")
            return
        if not desk.coup.launched:
            unseen(desk)
        verdict.by_hand(desk, reading, manual)
    else:
        desk.refuse("outcome", "pas_de_coup")


COMMANDS: Final[Mapping[str, Callable[[Desk, Commanded], None]]] = {
    "resolve": resolve,
    "void": void,
    "outcome": outcome_by_hand,
}
