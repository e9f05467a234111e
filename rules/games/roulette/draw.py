"""The draw of a roulette: cylinder, ball, rien ne va plus, pocket.

    SpinStarted ─► BallLaunched ─► DropDue ─► rien ne va plus ─► BallDropped ─► PocketRead
                        │                                                          │
                        └── jeton in the cylinder, ball lost: taken back, same coup, no result from that launch

The text attaches no nullity to anything here: what is irregular is held until a person decides (R-GEN-08).
"""

from __future__ import annotations

from typing import Any

from rules import wheel
from rules.decisions import Phase, Severity
from rules.facts import (
    Announced,
    BallDropped,
    BallLaunched,
    BallLost,
    DropDue,
    Fact,
    PocketRead,
    SpinStarted,
    SpinStopped,
    TimerElapsed,
)
from rules.game import Abandon, Context, Go, Heard, Outcome, Reading, Reopen
from rules.games.roulette.tapis import chances
from rules.games.roulette.variants import Variant
from rules.series import EXCEPTION
from rules.wheel import WRONG_SENSE, Hearing, WheelCoup
from rules.words import text

HEARS = frozenset(
    {
        SpinStarted,
        SpinStopped,
        BallLaunched,
        DropDue,
        BallDropped,
        BallLost,
        PocketRead,
        Announced,
        TimerElapsed,
    }
)
UNSURE_SENSE = "sens_de_bille_en_doute"
"""Breach: two devices tell another sense of the same ball, as long as neither corrects itself."""
STACKS = "piles_reconstituees"
SAME_SENSE = "bille_dans_le_sens_du_cylindre"
"""Breach of one launch of the ball: put right by launching it properly."""


def says(variant: Variant) -> frozenset[str]:
    """What is said at this roulette and heard by its law."""
    said = {"rien_ne_va_plus", "jeton_dans_le_cylindre", "faites_vos_jeux", "lanceur"}
    if variant.stacks:
        said.add(STACKS)
    if variant.exchange:
        said.add(EXCEPTION)
    return frozenset(said)


def hear(variant: Variant, coup: WheelCoup, fact: Fact, context: Context) -> Heard:
    """Answer a fact of the draw; total over every state of a coup."""
    h = Hearing(coup, fact, context, variant.law)
    match fact:
        case SpinStarted():
            turned(h, fact)
        case SpinStopped():
            rotor_stopped(h, fact)
        case BallLaunched():
            launched(h, fact, variant)
        case DropDue():
            wheel.due(h, "drop_due")
            if h.coup.launched and not_actuated(h):
                h.light(WRONG_SENSE)
        case BallDropped():
            dropped(h)
        case BallLost(why=why):
            lost(h, variant, why)
        case PocketRead():
            read_pocket(h, fact, variant)
        case Announced(code="rien_ne_va_plus"):
            wheel.called(h)
        case Announced(code="jeton_dans_le_cylindre"):
            jeton(h)
        case Announced(code="faites_vos_jeux"):
            wheel.place_your_bets(h)
        case Announced(code="lanceur", by=by):
            takes_over(h, by)
        case Announced(code="piles_reconstituees"):
            stacks_rebuilt(h)
        case Announced(code="change_impossible") if h.is_open:
            h.found(EXCEPTION, variant.exchange, Severity.NOTED)
        case TimerElapsed(name=wheel.CALL_TIMER):
            wheel.overdue(h)
        case _:
            h.ignore("sans_objet")
    return h.answer()


# --- cylinder and ball -----------------------------------------------------------------------------------------------


def turned(h: Hearing, fact: SpinStarted) -> None:
    """The cylinder is actuated: each actuation is judged against the one before, the last one counts."""
    if h.coup.launched and not h.is_open:
        wheel.turned_too_late(h, fact.direction)
        return
    if wheel.pushed_again(h, fact.direction):
        h.ignore("meme_manoeuvre")
        return
    if fact.found and fact.direction is h.context.last_direction:
        h.ignore("tourne_encore")
        return
    wheel.actuated(h, fact.direction)
    if h.coup.launched:
        judge_ball(h)


def rotor_stopped(h: Hearing, fact: SpinStopped) -> None:
    """The cylinder may come to rest when it likes: only how far it went is told with the result."""
    travelled = (fact.travel, fact.per_turn)
    if h.coup.direction is None or travelled == (h.coup.travel, h.coup.per_turn):
        h.ignore("sans_objet")
    else:
        h.set(travel=fact.travel, per_turn=fact.per_turn)


def launched(h: Hearing, fact: BallLaunched, variant: Variant) -> None:
    """The ball runs; told again when its sense turns out to be another, or by another device."""
    told = {**h.coup.ball_told, fact.source: fact.direction}
    known = h.coup.launched and fact.direction is h.coup.ball_direction
    first = not h.coup.launched
    h.set(launched=True, ball_direction=fact.direction, ball_told=told)
    h.forget(UNSURE_SENSE)
    if len(set(told.values())) > 1:
        said = ", ".join(f"{source} {direction}" for source, direction in told.items())
        h.found(UNSURE_SENSE, "R-GEN-08", Severity.HELD, told=said)
    elif known:
        h.ignore("deja_lancee")
        return
    if first:
        h.mark("launched")
        who_launches(h)
        stacks_before(h, variant)
        if h.is_open:
            h.say(Go(phase=Phase.LANCE))
    judge_ball(h)


def judge_ball(h: Hearing) -> None:
    """The ball must run against the cylinder (R-RF-09), whose start may be told after it."""
    h.forget(SAME_SENSE)
    wrong = h.has("direction_non_alternee")
    if h.coup.direction is not None and h.coup.ball_direction is h.coup.direction:
        h.found(SAME_SENSE, h.law.alternation, Severity.HELD)
        wrong = True
    if wrong:
        h.light(WRONG_SENSE)
    else:
        h.dark(WRONG_SENSE)


def not_actuated(h: Hearing) -> bool:
    """The ball runs and the cylinder was not turned for this coup, as far as anybody watched."""
    return h.coup.direction is None and not wheel.unseen(h)


def jeton(h: Hearing) -> None:
    """A jeton fell in: the ball is taken back and launched again; stakes are open meanwhile (R-RF-10)."""
    if not h.coup.launched:
        h.ignore("aucun_tirage")
        return
    h.announce("jeton_dans_le_cylindre")
    h.say(Reopen(), Go(phase=Phase.MISES_OUVERTES))
    keep_sense(h)


def lost(h: Hearing, variant: Variant, why: str) -> None:
    """The ball is not where it must be: before rien ne va plus it is simply launched again, afterwards held."""
    if not h.coup.launched:
        h.ignore("aucun_tirage")
    elif h.is_open:
        h.say(Abandon(code="bille_a_relancer", args={"why": why}))
        keep_sense(h)
    elif h.has("bille_perdue"):
        h.ignore("deja_retenu")
    else:
        h.found("bille_perdue", variant.result, Severity.HELD, why=why)


def keep_sense(h: Hearing) -> None:
    """The cylinder was not actuated again for the new launch: its wrong sense stands."""
    if h.has("direction_non_alternee"):
        h.found("direction_non_alternee", h.law.alternation, Severity.HELD)


def dropped(h: Hearing) -> None:
    """The ball leaves the rim: no stake can be in time any more."""
    if not h.coup.launched or "dropped" in h.coup.times:
        h.ignore("deja_tombee" if h.coup.launched else "aucun_tirage")
        return
    h.mark("dropped")
    wheel.closed_by_the_draw(h)


# --- who launches ----------------------------------------------------------------------------------------------------


def takes_over(h: Hearing, by: str) -> None:
    """A croupier says that he launches from now on; the order of the house is followed (R-RF-06)."""
    rota = rota_of(h)
    if not rota:
        h.ignore("sans_roulement")
        return
    before = h.coup.memory.get("lanceur")
    h.set(memory={**h.coup.memory, "lanceur": by})
    h.announce("lanceur", by=by)
    if by not in rota:
        h.found("lanceur_hors_roulement", "R-RF-06", Severity.NOTED, by=by)
    elif before in rota and by not in (before, rota[(rota.index(str(before)) + 1) % len(rota)]):
        h.found("roulement_non_suivi", "R-RF-06", Severity.NOTED, by=by)


def who_launches(h: Hearing) -> None:
    """Where an order is established, the launcher must be known."""
    if rota_of(h) and "lanceur" not in h.coup.memory:
        h.found("lanceur_inconnu", "R-RF-06", Severity.NOTED)


def rota_of(h: Hearing) -> tuple[str, ...]:
    """The order of launchers, where this roulette has one."""
    return getattr(h.context.house.options, "rota_lanceurs", ())


# --- colour chips ----------------------------------------------------------------------------------------------------


def stacks_rebuilt(h: Hearing) -> None:
    """The croupier has rebuilt the piles of colour chips for this coup."""
    if h.coup.launched:
        h.ignore("deja_lancee")
        return
    h.set(memory={**h.coup.memory, STACKS: h.coup.no})
    h.announce(STACKS)


def stacks_before(h: Hearing, variant: Variant) -> None:
    """Where no employee assists him, the croupier rebuilds the piles before he launches (R-RA-06, R-AN-17)."""
    if not variant.stacks or h.context.house.options.employe_assistant:
        return
    if h.coup.memory.get(STACKS, h.coup.no) != h.coup.no:  # the first coup of a partie has nothing to rebuild
        h.found("piles_non_reconstituees", variant.stacks, Severity.NOTED)
    h.set(memory={**h.coup.memory, STACKS: h.coup.no})


# --- the pocket ------------------------------------------------------------------------------------------------------


def read_pocket(h: Hearing, fact: PocketRead, variant: Variant) -> None:
    """A source reads the pocket: only a ball that was launched, and not taken back, has a result (R-RF-13)."""
    options = h.context.house.options
    outcome = read(variant, fact.value, options) if fact.value is not None else at_cell(variant, fact.cell, options)
    runs = h.coup.launched or not h.is_open  # behind closed bets a ball ran, seen or not
    if outcome is None or not runs:
        h.ignore("lecture_impossible" if runs else "aucun_tirage")
        return
    if not h.coup.launched:
        h.set(launched=True)
        h.found("lancer_non_vu", "R-GEN-08", Severity.HELD)
    elif not_actuated(h) and not h.has("cylindre_non_actionne"):
        h.found("cylindre_non_actionne", h.law.alternation, Severity.HELD)
    wheel.closed_by_the_draw(h)
    h.dark(h.coup.lit)
    wheel.read(h, Reading.told(fact, value(outcome), outcome))


def read(variant: Variant, given: int | str, options: Any) -> Outcome | None:
    """A number of this cylinder, also as it is typed (`"17"`); `numbers` is how `tablectl settle` takes it."""
    del options
    typed = isinstance(given, str) and given.isdecimal() and str(int(given)) == given
    number = int(given) if typed else given
    known = number in variant.pockets
    return {"number": number, "numbers": [number], "chances": chances(number)} if known else None


def at_cell(variant: Variant, cell: int | None, options: Any) -> Outcome | None:
    """The number of a cell of this cylinder, counted clockwise from the index mark."""
    cylinder = options.cylindre
    return read(variant, cylinder[cell], options) if cell is not None and 0 <= cell < len(cylinder) else None


def value(outcome: Outcome) -> int | str:
    """Sources must agree on the number."""
    number = outcome["number"]
    assert isinstance(number, int | str), "an outcome of a roulette has a number"
    return number


def announce(outcome: Outcome) -> str:
    """Number and winning even chances, aloud (R-RF-13)."""
    number = value(outcome)
    named = chances(number)
    if not named:
        return text("double_zero" if number == "00" else "zero")
    return text("numero", number=number, chances=", ".join(named[:-1]) + f" et {named[-1]}")
