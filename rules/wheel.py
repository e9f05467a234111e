"""The law that turning wheels share: alternation, and the three ways to close the bets while something turns.

    bets open ──launch──► running ──due──► rien ne va plus called ──► at rest
                             │                      │
                             │ nobody called        └ judged against the moment at which it was due:
                             ▼                        near: fine · early, a little late: noted · very late: held
                  the draw closes the bets itself (`absent`): held

Where the call comes before the draw (boule, vingt-trois) there is no moment to judge, only an order: `begun`. A game
maps its facts to these verbs. They are never more than the text says: a wrong sense or a missing call holds the coup
until a person decides, for the text attaches no nullity to either (R-GEN-08).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rules.decisions import Announce, CancelTimer, Ignored, SetTimer, Severity, Signal
from rules.facts import Direction, Fact
from rules.game import Close, Context, Coup, Effect, Found, Heard, Read, Reading, RnvpMode, Turned, outlasting
from rules.words import text

MS: Final = 1_000_000
"""Nanoseconds in a millisecond."""

UNSEEN: Final = ("tirage_non_observe", "appareil_perdu", "entrees_perdues")
"""Breaches that say that a part of the draw was seen by nobody."""
CALL_TIMER: Final = "rnvp"
"""Due when rien ne va plus may not come any later without holding the coup."""
WRONG_SENSE: Final = ("sens", "buzzer")
"""Lamps of a wheel, or ball, that goes the wrong way."""
CALL_NOW: Final = ("rien_ne_va_plus", "buzzer")
"""Lamps of a rien ne va plus that nobody calls."""
LAMPS: Final = frozenset({*WRONG_SENSE, *CALL_NOW})
"""Every lamp of a wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelCoup(Coup):
    """A coup drawn by something that turns."""

    due_at_ns: int | None = None
    """When rien ne va plus was due."""
    called_at_ns: int | None = None
    """When the croupier called it."""
    ball_direction: Direction | None = None
    ball_told: Mapping[str, Direction] = field(default_factory=dict)
    """What each device says of the ball's sense."""
    annulled: bool = False
    """The croupier announced the draw void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelLaw:
    """Which requirement of a game's spec stands behind each shared rule."""

    alternation: str
    closing: str


@dataclass(slots=True)
class Hearing:
    """The working copy of a coup while one fact is heard, and the effects so far."""

    coup: WheelCoup
    fact: Fact
    context: Context
    law: WheelLaw
    effects: list[Effect] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Are stakes still taken in this coup."""
        return self.coup.closed_at_ns is None

    def answer(self) -> Heard:
        """What the game answers."""
        return Heard(self.coup, tuple(self.effects))

    def say(self, *effects: Effect) -> None:
        """Add effects, in order."""
        self.effects.extend(effects)

    def set(self, **changes: Any) -> None:
        """Change the coup."""
        self.coup = replace(self.coup, **changes)

    def mark(self, name: str) -> None:
        """Remember the instant of this fact under a name of the result's `times`; that is where the coup stands now."""
        self.set(times={**self.coup.times, name: self.fact.at_ns}, step=name)

    def announce(self, code: str, **args: object) -> None:
        """Have a sentence said or shown."""
        self.say(Announce(code=code, text=text(code, **args)))

    def ignore(self, why: str) -> None:
        """The fact changes nothing in this coup."""
        self.say(Ignored(why=text(why)))

    def found(self, code: str, requirement: str, severity: Severity, **args: object) -> None:
        """A requirement was broken."""
        self.say(Found(code=code, requirement=requirement, severity=severity, args=args))

    def has(self, code: str) -> bool:
        """Does this breach stand, found before or in this hearing."""
        now = (effect.code for effect in self.effects if isinstance(effect, Found))
        return code in {*now, *(breach.code for breach in self.coup.breaches)}

    def forget(self, *codes: str) -> None:
        """These breaches were put right in time."""
        self.set(breaches=tuple(breach for breach in self.coup.breaches if breach.code not in codes))

    def light(self, lamps: tuple[str, ...]) -> None:
        """Switch on the lamps that are not on yet."""
        new = tuple(lamp for lamp in lamps if lamp not in self.coup.lit)
        self.set(lit=(*self.coup.lit, *new))
        self.say(*(Signal(lamp=lamp, on=True) for lamp in new))

    def dark(self, lamps: tuple[str, ...]) -> None:
        """Switch off the lamps that are on."""
        self.say(*(Signal(lamp=lamp, on=False) for lamp in self.coup.lit if lamp in lamps))
        self.set(lit=tuple(lamp for lamp in self.coup.lit if lamp not in lamps))


# --- alternation -----------------------------------------------------------------------------------------------------


def actuated(h: Hearing, direction: Direction) -> None:
    """Judge an actuation against the one before, whatever became of that one, and remember it (R-GEN-07)."""
    before = h.context.last_direction
    h.set(direction=direction)
    h.mark("started")
    h.say(Turned(direction=direction))
    h.forget("direction_non_alternee")
    h.dark(WRONG_SENSE)
    if before is None:
        h.announce("premier_actionnement")
    elif before is direction:
        same_sense(h)


def same_sense(h: Hearing) -> None:
    """Signal the wrong sense while it can still be stopped, and hold the coup if it is not."""
    h.found("direction_non_alternee", h.law.alternation, Severity.HELD)
    h.light(WRONG_SENSE)


def unseen(h: Hearing) -> bool:
    """A part of the draw was seen by nobody, so that no count of it proves a nullity: it is held, never void."""
    return any(h.has(code) for code in UNSEEN)


def pushed_again(h: Hearing, direction: Direction) -> bool:
    """A push in the sense in which this coup was actuated last, or a turn seen anew after a restart: the same one."""
    return "started" in h.coup.times and direction is h.coup.direction is h.context.last_direction


def turned_too_late(h: Hearing, direction: Direction) -> None:
    """An actuation while a draw runs whose bets are closed: remembered, and held."""
    if h.has("tirage_non_observe") and pushed_again(h, direction):
        h.ignore("meme_manoeuvre")
        return
    h.say(Turned(direction=direction))
    if h.has("relance_apres_rnvp"):
        h.ignore("deja_retenu")
    else:
        h.found("relance_apres_rnvp", h.law.alternation, Severity.HELD)


def launched_anew(h: Hearing) -> None:
    """The wheel is actuated again before the bets are closed: another draw in the same coup, with its own time."""
    keep = outlasting(h.coup, h.context.house)
    h.dark(h.coup.lit)
    h.set(breaches=keep, readings=(), times={}, due_at_ns=None, travel=None, per_turn=None, annulled=False)
    ends_ns = h.fact.at_ns + h.context.house.draw_max_ms * MS
    h.say(CancelTimer(name=CALL_TIMER), SetTimer(name="tirage", at_ns=ends_ns, on_restart="restart"))


# --- rien ne va plus -------------------------------------------------------------------------------------------------


def due(h: Hearing, name: str) -> None:
    """Rien ne va plus is due now: ask for it, or close the bets, or judge the call; `name` is its instant's name."""
    if not h.coup.launched or h.coup.due_at_ns is not None:
        h.ignore("aucun_tirage" if not h.coup.launched else "deja_du")
        return
    h.mark(name)
    house = h.context.house
    h.set(due_at_ns=h.fact.at_ns)
    if not h.is_open:
        judge_call(h)
        return
    if house.rien_ne_va_plus is RnvpMode.AUTOMATIQUE:
        h.say(Close(at_ns=h.fact.at_ns, until_ns=h.fact.until_ns, how="automatique"))
        h.announce("rien_ne_va_plus")
        h.light(("rien_ne_va_plus",))
        return
    if house.rien_ne_va_plus is RnvpMode.SIGNAL:
        h.announce("rien_ne_va_plus_du")
        h.light(("rien_ne_va_plus",))
    latest_ns = h.fact.at_ns + house.rnvp_late_max_ms * MS
    h.say(SetTimer(name=CALL_TIMER, at_ns=latest_ns, on_restart="fire"))


def called(h: Hearing) -> None:
    """The croupier calls rien ne va plus: in every mode his word closes bets that are still open."""
    if not h.is_open:
        h.ignore("mises_deja_closes")
        return
    h.set(called_at_ns=h.fact.at_ns)
    h.say(Close(at_ns=h.fact.at_ns, until_ns=h.fact.until_ns, how="croupier"), CancelTimer(name=CALL_TIMER))
    h.announce("rien_ne_va_plus")
    h.dark(CALL_NOW)
    judge_call(h)


def judge_call(h: Hearing) -> None:
    """Compare the call with the moment at which it was due, once both are known."""
    due_ns, called_ns = h.coup.due_at_ns, h.coup.called_at_ns
    if due_ns is None or called_ns is None:
        return
    house = h.context.house
    late_ns = called_ns - due_ns
    if abs(late_ns) <= house.rnvp_tolerance_ms * MS:
        return
    code = "rnvp_en_retard" if late_ns > 0 else "rnvp_en_avance"
    severity = Severity.HELD if late_ns > house.rnvp_late_max_ms * MS else Severity.NOTED
    h.found(code, h.law.closing, severity, ms=abs(late_ns) // MS)


def overdue(h: Hearing) -> None:
    """Nobody has called although it was due long ago: people are told; only the draw itself closes the bets."""
    if not h.is_open or h.coup.due_at_ns is None:
        h.ignore("mises_deja_closes")
        return
    h.announce("rien_ne_va_plus_attendu")
    h.light(CALL_NOW)


def closed_by_the_draw(h: Hearing) -> None:
    """The draw got where no stake may be taken any more and nobody had called: it closes the bets, held."""
    if not h.is_open:
        return
    h.say(Close(at_ns=h.fact.at_ns, until_ns=h.fact.until_ns, how="absent"), CancelTimer(name=CALL_TIMER))
    h.dark(CALL_NOW)
    h.found("rnvp_absent", h.law.closing, Severity.HELD)


def begun(h: Hearing) -> None:
    """A draw that must come after the call begins: before it, it closes the bets at once and is held (R-VT-08).

    The call may be told first although it came later: a wheel is known to turn only some way after its first edge.
    """
    closed_ns = h.coup.closed_at_ns
    if closed_ns is None or h.fact.until_ns < closed_ns:
        h.say(Close(at_ns=h.fact.at_ns, until_ns=h.fact.until_ns, how="absent"))
        h.found("tirage_avant_rnvp", h.law.closing, Severity.HELD)
        h.light(CALL_NOW)


# --- what people say and sources read --------------------------------------------------------------------------------


def place_your_bets(h: Hearing) -> None:
    """The croupier says faites vos jeux."""
    if not h.is_open:
        h.ignore("mises_deja_closes")
        return
    h.mark("faites_vos_jeux")
    h.announce("faites_vos_jeux")


def read(h: Hearing, reading: Reading) -> None:
    """Hand a reading to the table, once (a state that was stored has tuples where this one has lists)."""
    if any((e.source, e.value, e.at_ns) == (reading.source, reading.value, reading.at_ns) for e in h.coup.readings):
        h.ignore("deja_lue")
    else:
        h.say(Read(reading=reading))
