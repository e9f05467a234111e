"""The table: one `step` for every game.

    fact ──► who hears it? ──► the game (its draw)      ──► effects ─┐
                          └──► seance, stakes, verdict  ◄────────────┘──► decisions, next state

The game hears the facts of its draw while a coup is open to them. Everything that games share is decided here: seance
and limits, stakes, breaches, devices, the memory of the direction, timers, held coups. A fact that nobody is waiting
for is answered by the one default at the end of `heard_by_the_table`: it is physically possible and changes nothing, so
it is told as `Ignored` and stays in the journal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from rules import orders, seance, series, stakes, verdict
from rules.bets import Layout, Refusal
from rules.decisions import (
    CancelTimer,
    Decision,
    Ignored,
    Phase,
    SetTimer,
    Severity,
    StakeRefused,
)
from rules.desk import MS, Desk
from rules.facts import (
    Announced,
    BallLaunched,
    BallLost,
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
    SpinStopped,
    TimerElapsed,
)
from rules.game import (
    Abandon,
    Annul,
    Close,
    Context,
    Effect,
    Found,
    Game,
    Go,
    House,
    Read,
    Reading,
    Reopen,
    Turned,
    outlasting,
)
from rules.state import Step, TableState

SAID: Final = frozenset({"dernier_coup", "choix_clos", "confirme"})
"""Codes of `Announced` that the table hears itself, beside `Game.says` and `Game.contests`."""
LAMPS: Final = frozenset({"litige"})
"""Lamps that the table switches itself, beside `Game.lamps`."""
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
        hear_what_waited(desk)
        if not desk.out and desk.state == state:
            desk.ignore("sans_objet")
        return Step(desk.state, tuple(desk.out))


def listen(desk: Desk, fact: Fact) -> None:
    """Give the fact to whoever it is for."""
    state = desk.state
    if state.phase is Phase.REGLEMENT and not state.interrupted and begins_a_coup(desk.game, fact):
        verdict.open_coup(desk)
    game_hears = type(fact) in desk.game.hears and desk.state.coup is not None
    if isinstance(fact, Announced | TimerElapsed):
        name = fact.code if isinstance(fact, Announced) else fact.name
        game_hears = game_hears and name in desk.game.says | desk.game.timers
    if desk.state.phase is Phase.RESULTAT and is_of_the_next(desk.state, fact):
        game_hears = False
    if isinstance(fact, PocketRead) and is_of_the_paid(desk.state, fact):
        contradiction(desk, fact)
        return
    if game_hears and desk.state.phase in RUNNING and not desk.state.interrupted and timer_is_armed(desk, fact):
        hear(desk, fact)
    else:
        heard_by_the_table(desk, fact)


def is_of_the_next(state: TableState, fact: Fact) -> bool:
    """The draw is over but not decided: a launch, and what becomes of it, is the next coup's."""
    return (
        isinstance(fact, SpinStarted | BallLaunched)
        or (isinstance(fact, SpinStopped) and state.waiting_turn is not None)
        or (isinstance(fact, BallLost) and state.waiting_ball is not None)
    )


def is_of_the_paid(state: TableState, fact: PocketRead) -> bool:
    """Nothing turns or runs yet: a person, or an instrument that had not spoken, reads about the coup before."""
    if state.previous is None or state.coup is None or state.coup.direction is not None:
        return False
    return fact.origin is Origin.PERSON or all(entry.source != fact.source for entry in state.previous.readings)


def hear_what_waited(desk: Desk) -> None:
    """What was launched before the coup before was decided begins the next one as soon as it may."""
    waited = [entry for entry in (desk.state.waiting_turn, desk.state.waiting_ball) if entry is not None]
    if not waited or desk.state.interrupted:
        return
    if desk.state.phase is Phase.REGLEMENT:
        verdict.open_coup(desk)
    if desk.state.phase is Phase.MISES_OUVERTES:
        desk.set(waiting_turn=None, waiting_ball=None)
        for entry in waited:
            hear(desk, entry)


def begins_a_coup(game: Game, fact: Fact) -> bool:
    """While the coup before is being paid, these say that the next one has begun."""
    if isinstance(fact, Announced):
        return fact.code in {"faites_vos_jeux", "dernier_coup"} | game.begins
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
    context = Context(
        house=desk.house,
        phase=desk.state.phase,
        last_direction=desk.state.last_direction,
        public_options=desk.state.public_options,
    )
    heard = desk.game.hear(before, fact, context)
    desk.set(coup=heard.coup)
    if heard.coup.launched and not before.launched:
        launched(desk)
    for effect in heard.effects:
        carry_out(desk, effect)


def launched(desk: Desk) -> None:
    """The draw runs: from now on its instruments must not fail, and it must end some day."""
    desk.arm("tirage", desk.house.draw_max_ms * MS, "restart")
    stakes.forget_paid(desk)
    seance.forget(desk, *(need.what for need in desk.needs if need.when == "close"))  # signed too early
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
            relaunch(desk)
        case Abandon(code=code, args=args):
            relaunch(desk)
            desk.announce(code, **args)
            desk.go(Phase.MISES_OUVERTES)
        case SetTimer():
            desk.timer(effect)
        case CancelTimer(name=name):
            desk.disarm(name)
        case _:
            desk.say(effect)


def relaunch(desk: Desk) -> None:
    """The launch came to nothing: same coup, same stakes, bets open again; what held that launch is forgotten."""
    keep = outlasting(desk.coup, desk.house)
    desk.disarm(*verdict.DRAW_TIMERS)
    verdict.admit_doubts(desk)
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
        case Chosen() if (law := series.law_of(desk)) is not None:
            series.choose(desk, law, fact)
        case Announced():
            announced(desk, fact)
        case TimerElapsed():
            elapsed(desk, fact)
        case SpinStarted():
            waits = desk.state.phase in OVER | {Phase.RESULTAT} or desk.state.interrupted
            verdict.remember(desk, fact, waits=waits)
            desk.ignore("sens_memorise")
        case BallLaunched() if desk.state.phase in OVER | {Phase.RESULTAT}:
            desk.set(waiting_ball=fact)
            desk.ignore("lancer_memorise")
        case SpinStopped() if desk.state.waiting_turn is not None:
            verdict.remember(desk, desk.state.waiting_turn, waits=False)
            desk.ignore("sens_memorise")
        case BallLost() if desk.state.waiting_ball is not None:
            desk.set(waiting_ball=None)
            desk.ignore("sans_objet")
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
    if fact.code == "dernier_coup":
        last_coup(desk)
    elif fact.code == "choix_clos" and phase is Phase.CHOIX:
        verdict.settle(desk)
    elif fact.code == "confirme" and phase is Phase.RESULTAT:
        confirm(desk, fact.source)
    elif fact.code in desk.game.contests and phase in OVER:
        verdict.revise(desk, desk.game.contests[fact.code])
    else:
        desk.ignore("sans_objet")


def last_coup(desk: Desk) -> None:
    """The running coup is the last of the seance; once its result is being read nobody may make it so (R-RF-28)."""
    if desk.state.coup is None:
        desk.ignore("dernier_coup_sans_coup")
    elif desk.state.phase in RUNNING - {Phase.RESULTAT}:
        desk.set_coup(last=True)
        desk.announce("dernier_coup")
    else:
        desk.ignore("dernier_coup_trop_tard")


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
    outcome = desk.game.meant(fact, desk.house.options)
    paid = desk.state.previous or desk.coup
    if outcome is None:
        desk.ignore(desk.game.misread(fact.value))
    elif paid.outcome is not None and desk.game.value(outcome) == desk.game.value(paid.outcome):
        desk.ignore("resultat_confirme")
    elif any((e.source, e.value) == (fact.source, desk.game.value(outcome)) for e in paid.readings):
        desk.ignore("deja_lue")  # whoever decided the coup knew that
    else:
        if paid is desk.state.previous:
            verdict.return_to_paid(desk, paid)
        value = desk.game.value(outcome)
        verdict.contradict(
            desk, Reading(source=fact.source, value=value, outcome=outcome, origin=fact.origin, at_ns=fact.at_ns)
        )


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
    handler = seance.COMMANDS.get(command.name) or orders.COMMANDS.get(command.name)
    if handler is not None:
        handler(desk, command)
        return
    told = orders.told_by(command)
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
            refusal = Refusal(code=decision.code, requirement=decision.requirement, text=decision.text)
            seance.refuse(desk, command.name, refusal)
            return
    whys = [decision.why for decision in decisions if isinstance(decision, Ignored)]
    if whys and len(whys) == len(decisions):
        desk.refuse(command.name, "sans_effet", phase=desk.state.phase, why=whys[0])
