"""The table: one `step` for every game.

    fact ──► who hears it? ──► the game (its draw)      ──► effects ─┐
                          └──► seance, stakes, verdict  ◄────────────┘──► decisions, next state

The game hears the facts of its draw while a coup is open to them. Everything that games share is decided here: seance
and limits, stakes, breaches, devices, the memory of the direction, timers, held coups. A fact that nobody is waiting
for is answered by the one default at the end of `heard_by_the_table`: it is physically possible and changes nothing, so
it is told as `Ignored` and stays in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rules import seance, stakes, verdict
from rules.bets import Layout
from rules.decisions import (
    Breach,
    CancelTimer,
    Decision,
    Ignored,
    Phase,
    Refused,
    SetTimer,
    Severity,
    StakeRefused,
    Status,
)
from rules.desk import MS, Desk
from rules.facts import (
    Announced,
    BallLaunched,
    ChipPlaced,
    ChipRemoved,
    Chosen,
    Commanded,
    DeviceBack,
    DeviceLost,
    Doubtful,
    Fact,
    LidClosed,
    LidOpened,
    Origin,
    Overrun,
    PocketRead,
    SpinStarted,
    TimerElapsed,
)
from rules.game import Abandon, Annul, Close, Context, Effect, Found, Game, Go, House, Read, Reading, Reopen, Turned
from rules.state import Step, TableState

RUNNING: Final = frozenset({Phase.MISES_OUVERTES, Phase.LANCE, Phase.JEUX_FAITS, Phase.RESULTAT})
"""Phases in which a game hears the facts of its draw."""
OVER: Final = frozenset({Phase.CHOIX, Phase.REGLEMENT})
"""Phases in which the coup has its result but the next one is not open."""
LOST_GRACE_NS: Final = 10_000 * MS
"""How long a draw waits for the instrument that decides it, once that instrument is lost."""
NOT_OBSERVED: Final = "not_observed"
"""Doubtful.why after a restart: nobody watched for a while."""


@dataclass(frozen=True, slots=True)
class Table:
    """A game at a house: everything that does not change between two facts."""

    game: Game
    house: House
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", self.game.layout(self.house.options))

    def step(self, state: TableState, fact: Fact) -> Step:
        """What the law answers to `fact`: the next state and the decisions, in order. Pure and total."""
        desk = Desk(self.game, self.house, self.layout, state, fact)
        listen(desk, fact)
        waiting = desk.state.waiting_turn
        if waiting is not None and desk.state.phase is Phase.MISES_OUVERTES:
            desk.set(waiting_turn=None)
            hear(desk, waiting)
        if not desk.out and desk.state == state:
            desk.ignore("sans_objet")
        return Step(desk.state, tuple(desk.out))


def listen(desk: Desk, fact: Fact) -> None:
    """Give the fact to whoever it is for."""
    state = desk.state
    if state.phase is Phase.REGLEMENT and not state.interrupted and begins_a_coup(fact):
        verdict.open_coup(desk)
    game_hears = type(fact) in desk.game.hears and desk.state.coup is not None
    if isinstance(fact, Announced | TimerElapsed):
        name = fact.code if isinstance(fact, Announced) else fact.name
        game_hears = game_hears and name in desk.game.says
    if isinstance(fact, SpinStarted) and desk.state.phase is Phase.RESULTAT:
        game_hears = False  # the draw is over: this actuation is the next coup's
    if game_hears and desk.state.phase in RUNNING and not desk.state.interrupted and timer_is_armed(desk, fact):
        hear(desk, fact)
    else:
        heard_by_the_table(desk, fact)


def begins_a_coup(fact: Fact) -> bool:
    """While the coup before is being paid, these say that the next one has begun."""
    if isinstance(fact, Announced):
        return fact.code == "faites_vos_jeux"
    if isinstance(fact, Commanded):
        return fact.name == "stake" and not fact.args.get("remove")
    return isinstance(fact, SpinStarted | BallLaunched | ChipPlaced)


def timer_is_armed(desk: Desk, fact: Fact) -> bool:
    """A timer that nobody waits for any more is not heard; one that is due is not armed any more."""
    if not isinstance(fact, TimerElapsed):
        return True
    left = tuple(timer for timer in desk.state.timers if timer.name != fact.name)
    armed = len(left) < len(desk.state.timers)
    desk.set(timers=left)
    return armed


# --- the game's draw -------------------------------------------------------------------------------------------------


def hear(desk: Desk, fact: Fact) -> None:
    """Let the game hear a fact of its draw and carry out its effects."""
    before = desk.coup
    context = Context(house=desk.house, phase=desk.state.phase, last_direction=desk.state.last_direction)
    heard = desk.game.hear(before, fact, context)
    desk.set(coup=heard.coup)
    if heard.coup.launched and not before.launched:
        launched(desk)
    for effect in heard.effects:
        carry_out(desk, effect)


def launched(desk: Desk) -> None:
    """The draw runs: from now on its instruments must not fail, and it must end some day."""
    desk.arm("tirage", desk.house.draw_max_ms * MS, "restart")
    for device in desk.state.lost:
        if device in desk.house.draw_devices:
            lost_in_draw(desk, device, "absent")


def carry_out(desk: Desk, effect: Effect) -> None:
    """Carry out one effect of the game."""
    match effect:
        case Go(phase=phase):
            desk.go(phase)
        case Close():
            stakes.close(desk, effect)
        case Turned(direction=direction):
            desk.set(last_direction=direction)
        case Found():
            desk.found(effect)
        case Read(reading=reading):
            verdict.read(desk, reading)
        case Annul(outcome=outcome):
            verdict.finish(desk, outcome)
        case Reopen():
            relaunch(desk, keep=tuple(b for b in desk.coup.breaches if b.severity is Severity.NOTED))
        case Abandon(code=code):
            relaunch(desk, keep=())
            desk.announce(code)
            desk.go(Phase.MISES_OUVERTES)
        case SetTimer():
            desk.timer(effect)
        case CancelTimer(name=name):
            desk.disarm(name)
        case _:
            desk.say(effect)


def relaunch(desk: Desk, keep: tuple[Breach, ...]) -> None:
    """The launch came to nothing: same coup, same stakes, bets open again.

    A stake that was doubtful at the call that counts no more lies there in time for the next one.
    """
    desk.disarm(*verdict.DRAW_TIMERS)
    for doubt in desk.state.doubts:
        if doubt.coup == desk.coup.no:
            verdict.resolve_doubt(desk, doubt, counts=True)
    desk.quench()
    fresh = desk.game.coup(no=desk.coup.no, last=desk.coup.last, memory=desk.coup.memory)
    desk.set(coup=replace(fresh, breaches=keep, direction=desk.coup.direction))


# --- everything that games share -------------------------------------------------------------------------------------


def heard_by_the_table(desk: Desk, fact: Fact) -> None:
    """The shared part of the law, and its one default."""
    match fact:
        case Commanded():
            commanded(desk, fact)
        case ChipPlaced():
            stakes.place(desk, fact)
        case ChipRemoved():
            stakes.withdraw(desk, fact)
        case Chosen() if desk.state.phase is Phase.CHOIX:
            if not verdict.choose(desk, fact):
                desk.ignore("choix_sans_offre")
        case Announced():
            announced(desk, fact)
        case TimerElapsed():
            elapsed(desk, fact)
        case SpinStarted():
            waits = desk.state.phase in OVER | {Phase.RESULTAT}
            verdict.remember(desk, fact, waits=waits)
            desk.ignore("sens_memorise")
        case PocketRead() if desk.state.phase in OVER:
            contradiction(desk, fact)
        case DeviceLost() | DeviceBack() | Overrun() | Doubtful():
            device(desk, fact)
        case LidClosed():
            seance.sign(desk, "couvercle", seance.SENSOR_ROLE, fact.source)
        case LidOpened():
            seance.forget(desk, "couvercle")
            desk.announce("couvercle_ouvert")
        case _:
            # Sensors see much that no coup waits for: a wheel at rest nudged, a ball picked up, dice on a closed table.
            desk.ignore("sans_objet")


def announced(desk: Desk, fact: Announced) -> None:
    """What a person said that is not part of the game's own draw."""
    phase = desk.state.phase
    if fact.code == "dernier_coup" and desk.state.coup is not None and phase in RUNNING:
        desk.set_coup(last=True)
        desk.announce("dernier_coup")
    elif fact.code == "choix_clos" and phase is Phase.CHOIX:
        verdict.settle(desk)
    elif fact.code == "confirme" and phase is Phase.RESULTAT:
        confirm(desk, fact.source)
    else:
        desk.ignore("sans_objet")


def confirm(desk: Desk, source: str) -> None:
    """A person confirms what the first doubtful source read."""
    doubtful = [entry for entry in desk.coup.readings if entry.or_value is not None]
    if not doubtful:
        desk.ignore("rien_a_confirmer")
        return
    reading = replace(
        doubtful[0], source=source, origin=Origin.PERSON, at_ns=desk.fact.at_ns, or_value=None, or_outcome=None
    )
    verdict.read(desk, reading)


def elapsed(desk: Desk, fact: TimerElapsed) -> None:
    """One of the table's own timers is due."""
    if not timer_is_armed(desk, fact):
        desk.ignore("minuterie_sans_objet")
    elif fact.name == "accord" and desk.state.phase is Phase.RESULTAT:
        verdict.weigh(desk, waited=True)
    elif fact.name == "choix" and desk.state.phase is Phase.CHOIX:
        desk.announce("choix_par_defaut")
        verdict.settle(desk)
    elif fact.name == "tirage" and desk.state.phase in RUNNING:
        desk.found(Found(code="tirage_sans_resultat", requirement="R-GEN-08", severity=Severity.HELD))
        verdict.finish(desk, None)
    else:
        desk.ignore("minuterie_sans_objet")


def contradiction(desk: Desk, fact: PocketRead) -> None:
    """A source reads after the result: it agrees, or the coup is held anew."""
    outcome = desk.game.read(fact.value, desk.house.options)
    if outcome is None:
        desk.ignore("lecture_impossible")
    elif desk.coup.outcome is not None and desk.game.value(outcome) == desk.game.value(desk.coup.outcome):
        desk.ignore("resultat_confirme")
    else:
        value = desk.game.value(outcome)
        reading = Reading(source=fact.source, value=value, outcome=outcome, origin=fact.origin, at_ns=fact.at_ns)
        verdict.revise(desk, fact, reading)


# --- devices ---------------------------------------------------------------------------------------------------------


def device(desk: Desk, fact: DeviceLost | DeviceBack | Overrun | Doubtful) -> None:
    """A device failed or recovered: told to people, and held against a draw that needs it (R-GEN-08)."""
    name = fact.device
    drawing = desk.state.coup is not None and desk.coup.launched
    counts = drawing and name in desk.house.draw_devices
    match fact:
        case DeviceLost(why=why):
            if name not in desk.state.lost:
                desk.set(lost=(*desk.state.lost, name))
            desk.alarm(f"device:{name}", "appareil_perdu", device=name, why=why)
            if counts:
                lost_in_draw(desk, name, why)
        case DeviceBack():
            desk.set(lost=tuple(entry for entry in desk.state.lost if entry != name))
            desk.clear_alarm(f"device:{name}")
            if counts and decides(desk, name):
                desk.arm("tirage", desk.house.draw_max_ms * MS, "restart")
        case Overrun(lost=lost) if counts:
            args = {"device": name, "lost": lost}
            desk.found(Found(code="entrees_perdues", requirement="R-GEN-08", severity=Severity.HELD, args=args))
        case Doubtful(why=why) if counts and why == NOT_OBSERVED:
            args = {"device": name}
            desk.found(Found(code="tirage_non_observe", requirement="R-GEN-08", severity=Severity.HELD, args=args))
        case Overrun() | Doubtful() if drawing:
            args = {"device": name}
            desk.found(Found(code="appareil_douteux", requirement="R-GEN-08", severity=Severity.NOTED, args=args))
        case _:
            desk.ignore("hors_tirage")


def decides(desk: Desk, name: str) -> bool:
    """Is this the instrument whose reading the draw still waits for."""
    return bool(desk.house.sources) and desk.house.sources[0] == name and not desk.coup.readings


def lost_in_draw(desk: Desk, name: str, why: str) -> None:
    """The draw runs and one of its instruments does not."""
    args = {"device": name, "why": why}
    desk.found(Found(code="appareil_perdu", requirement="R-GEN-08", severity=Severity.HELD, args=args))
    if decides(desk, name):
        desk.arm("tirage", LOST_GRACE_NS, "restart")


# --- commands --------------------------------------------------------------------------------------------------------


def commanded(desk: Desk, command: Commanded) -> None:
    """An authorised command: of the seance, about a coup, or a fact that a person tells."""
    handler = seance.COMMANDS.get(command.name) or COUP_COMMANDS.get(command.name)
    if handler is not None:
        handler(desk, command)
        return
    told = told_by(command)
    if told is None:
        desk.refuse(command.name, "commande_impossible", arguments=sorted(command.args))
        return
    so_far = len(desk.out)
    listen(desk, told)
    answer_for(desk, command, desk.out[so_far:])


def answer_for(desk: Desk, command: Commanded, decisions: list[Decision]) -> None:
    """Who told a fact by command must hear when it was refused or changed nothing."""
    for decision in decisions:
        if isinstance(decision, StakeRefused):
            desk.say(Refused(command=command.name, code=decision.code, text=decision.text))
            return
    if decisions and all(isinstance(decision, Ignored) for decision in decisions):
        desk.refuse(command.name, "sans_effet", phase=desk.state.phase)


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
            case "stake":
                kind = ChipRemoved if args.get("remove") else ChipPlaced
                return kind(
                    at_ns=at_ns,
                    source="command",
                    origin=Origin.PERSON,
                    spot=word("spot"),
                    cents=number("cents"),
                    player=word("player"),
                    tableau=number("tableau", 1),
                )
            case "choice":
                return Chosen(
                    at_ns=at_ns,
                    source="command",
                    player=word("player"),
                    what=word("what"),
                    value=word("value"),
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
            desk.refuse("resolve", "mise_inconnue", stake=args["stake"])
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
        value = args["outcome"]
        outcome = desk.game.read(value, desk.house.options) if isinstance(value, int | str) else None
    if status is Status.VALID and outcome is None:
        desk.refuse("resolve", "resultat_requis")
        return
    manual: dict[str, object] = {"by": [command.by], "role": command.role, "why": str(args.get("why", ""))}
    verdict.resolve(desk, status, outcome, manual)


def void(desk: Desk, command: Commanded) -> None:
    """Command `void {why}`: a named person annuls the running or held coup."""
    manual: dict[str, object] = {"by": [command.by], "role": command.role, "why": str(command.args.get("why", ""))}
    if desk.state.phase is Phase.LITIGE:
        verdict.resolve(desk, Status.VOID, desk.coup.outcome, manual)
    elif desk.state.coup is not None and (desk.coup.launched or desk.state.phase is Phase.RESULTAT):
        desk.set_coup(manual=manual)
        args = {"by": command.by}
        desk.found(Found(code="annule_par_decision", requirement="R-GEN-08", severity=Severity.VOID, args=args))
        verdict.finish(desk, desk.coup.outcome)
    else:
        desk.refuse("void", "pas_de_coup")


def outcome_by_hand(desk: Desk, command: Commanded) -> None:
    """Command `outcome {value, second}`: the result by two named persons when the instruments cannot tell (67-15)."""
    value, second = command.args.get("value"), command.args.get("second")
    if not isinstance(second, str) or not second or second == command.by:
        desk.refuse("outcome", "deux_personnes")
        return
    reading = verdict.person_reading(desk, value, "manuel") if isinstance(value, int | str) else None
    if reading is None:
        desk.refuse("outcome", "resultat_requis")
        return
    manual: dict[str, object] = {"by": [command.by, second], "role": command.role, "why": "67-15"}
    if desk.state.phase is Phase.LITIGE:
        verdict.resolve(desk, Status.VALID, reading.outcome, manual)
    elif desk.state.coup is not None and (desk.coup.launched or desk.state.phase is Phase.RESULTAT):
        if desk.coup.closed_at_ns is None:
            desk.refuse("outcome", "mises_encore_ouvertes")
            return
        verdict.by_hand(desk, reading, manual)
    else:
        desk.refuse("outcome", "pas_de_coup")


COUP_COMMANDS: Final[Mapping[str, Callable[[Desk, Commanded], None]]] = {
    "resolve": resolve,
    "void": void,
    "outcome": outcome_by_hand,
}
