"""Roue de la chance: a vertical wheel of 52 cells in seven colours (spec/roue-de-la-chance.md, R-RC).

    bets open ─SpinStarted─► lance ─SpinSlowed─► rien ne va plus ─SpinStopped─► the colour under the marker

The draw is void under three turns or when something touched the turning wheel, and only then (R-RC-08, R-RC-09). A spin
that is stopped before rien ne va plus is no draw, but the next one must still go the other way (R-RC-07).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from rules import cases, wheel
from rules.bets import BetKind, Layout, Refusal, Spot, Stake
from rules.cases import Case
from rules.decisions import Line, Phase, Severity
from rules.facts import (
    Announced,
    Fact,
    PocketRead,
    SpinObstructed,
    SpinSlowed,
    SpinStarted,
    SpinStopped,
    TimerElapsed,
)
from rules.game import Abandon, Annul, Context, Found, Game, Go, Heard, House, Needed, Outcome, Read, Reading, always
from rules.limits import Limits, by_the_text
from rules.settlement import Settlement, line, transfers
from rules.wheel import Hearing, WheelCoup, WheelLaw
from rules.words import text

TURNS: Final = 3
"""Whole turns of a valid draw (R-RC-08)."""
LAW: Final = WheelLaw(alternation="R-RC-07", closing="R-RC-10")

COLOURS: Final[Mapping[str, tuple[int, int, int]]] = {
    "orange": (24, 1, 100),
    "vert": (12, 3, 50),
    "bleu": (8, 5, 25),
    "rouge": (4, 10, 12),
    "violet": (2, 20, 10),
    "blanc": (1, 50, 5),
    "noir": (1, 50, 5),
}
"""Colour -> cells on the wheel (R-RC-04), net gain per unit staked (R-RC-15), maximum in minima (R-RC-18)."""

FEMININE: Final[Mapping[str, str]] = {
    "vert": "verte",
    "bleu": "bleue",
    "violet": "violette",
    "blanc": "blanche",
    "noir": "noire",
}
"""Colours as they agree with "couleur"; the others do not change."""

LAYOUT: Final = Layout(
    {
        colour: BetKind(
            type=colour,
            pays=Fraction(pays),
            max_multiple=most,
            requirement="R-RC-15",
            limit_requirement="R-RC-18",
        )
        for colour, (_, pays, most) in COLOURS.items()
    },
    {colour: Spot(id=colour, type=colour, on=(), wins=frozenset({colour})) for colour in COLOURS},
)
"""Seven colours, seven bets (R-RC-14)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoueOptions:
    """What the house fixes at a roue (spec §7); the order of the cells is not in the text, so it has no default."""

    segments: tuple[str, ...]
    """The 52 colours, clockwise from the index mark."""
    minimum_par_couleur: Mapping[str, int] = field(default_factory=dict)
    """Minima in cents above the minimum of the table (R-RC-17)."""
    miroir: bool = False
    """A mirror on the table lets the croupier see the wheel (R-RC-05); information only."""
    faites_vos_jeux_suivi: bool = False
    """The croupier tells each "faites vos jeux" by its key: a draw without it is noted (R-RC-07)."""

    def __post_init__(self) -> None:
        for colour in COLOURS:
            cells, needed = self.segments.count(colour), COLOURS[colour][0]
            if cells != needed:
                raise ValueError(f"segments: {cells} cells are {colour!r}, R-RC-04 wants {needed}")
        if len(self.segments) != sum(cells for cells, _, _ in COLOURS.values()):
            unknown = sorted(set(self.segments) - set(COLOURS))
            raise ValueError(f"segments: unknown colour {', '.join(unknown)}; allowed: {', '.join(COLOURS)}")
        for colour, cents in self.minimum_par_couleur.items():
            if colour not in COLOURS or cents < 1:
                allowed = f"allowed: a colour of {', '.join(COLOURS)} and at least 1 cent"
                raise ValueError(f"minimum_par_couleur: {colour!r} = {cents}; {allowed}")


# --- the draw --------------------------------------------------------------------------------------------------------


def hear(coup: WheelCoup, fact: Fact, context: Context) -> Heard:
    """Answer a fact of the draw; total over every state of a coup."""
    h = Hearing(coup, fact, context, LAW)
    match fact:
        case SpinStarted():
            started(h, fact)
        case SpinSlowed():
            wheel.due(h, "slowed")
        case SpinObstructed():
            if "stopped" in h.coup.times:
                h.ignore("deja_immobile")
            else:
                obstructed(h)
        case SpinStopped():
            stopped(h, fact)
        case PocketRead():
            read_by_eye(h, fact)
        case Announced(code="rien_ne_va_plus"):
            wheel.called(h)
        case Announced(code="coup_nul"):
            h.set(annulled=h.coup.launched)
            obstructed(h)
        case Announced(code="faites_vos_jeux"):
            wheel.place_your_bets(h)
        case TimerElapsed(name=wheel.CALL_TIMER):
            wheel.overdue(h)
        case _:
            h.ignore("sans_objet")
    return h.answer()


def started(h: Hearing, fact: SpinStarted) -> None:
    """The croupier actuates the wheel, or turns back one that went the wrong way."""
    if h.coup.launched and not h.is_open:
        wheel.turned_too_late(h, fact.direction)
        return
    if wheel.pushed_again(h, fact.direction):
        h.ignore("meme_manoeuvre")
        return
    if h.coup.launched:
        wheel.launched_anew(h)
    wheel.actuated(h, fact.direction)
    h.set(launched=True)
    if h.is_open:
        h.say(Go(phase=Phase.LANCE))


def obstructed(h: Hearing) -> None:
    """The turning wheel was touched: the draw is void, however many turns it makes (R-RC-09)."""
    if not h.coup.launched or h.has("obstruction"):
        h.ignore("deja_annule" if h.coup.launched else "aucun_tirage")
        return
    h.mark("obstructed")
    h.found("obstruction", "R-RC-09", Severity.VOID)
    if "stopped" in h.coup.times:  # said by the croupier once the wheel was at rest
        known = [entry.outcome for entry in h.coup.readings if entry.or_value is None]
        h.say(Annul(outcome=known[0] if known else None))


def stopped(h: Hearing, fact: SpinStopped) -> None:
    """The wheel and its marker are at rest: the cell counts when the draw does (R-RC-08, R-RC-09, R-RC-12)."""
    if not h.coup.launched or "stopped" in h.coup.times:
        h.ignore("deja_immobile")
        return
    unseen = wheel.unseen(h)
    enough = unseen or (fact.per_turn > 0 and fact.travel >= TURNS * fact.per_turn)
    cut_short = not enough and h.coup.due_at_ns is None  # a wheel that had begun to slow was let run: that was a draw
    if h.is_open and not h.coup.annulled and (h.has("direction_non_alternee") or cut_short):
        h.say(Abandon(code="arret_avant_rien_ne_va_plus"))
        return
    if h.context.house.options.faites_vos_jeux_suivi and "faites_vos_jeux" not in h.coup.times:
        h.found("faites_vos_jeux_absent", "R-RC-07", Severity.NOTED)
    h.mark("stopped")
    if not unseen:
        h.set(travel=fact.travel, per_turn=fact.per_turn)
    wheel.closed_by_the_draw(h)
    h.dark(h.coup.lit)
    if not enough:
        needed = TURNS * fact.per_turn
        h.found("moins_de_trois_tours", "R-RC-08", Severity.VOID, travel=fact.travel, needed=needed)
    segments = h.context.house.options.segments
    first, second = (cell_outcome(h.coup, cell, segments) for cell in (fact.cell, fact.or_cell))
    doubtful = first is not None and second is not None and first["colour"] != second["colour"]
    if not enough or any(breach.severity is Severity.VOID for breach in h.coup.breaches):
        h.say(Annul(outcome=None if doubtful else first))
        return
    told = tuple(replace(entry, outcome=with_turns(entry.outcome, h.coup)) for entry in h.coup.readings)
    h.set(readings=told)
    if first is not None:
        reading = Reading(
            source=fact.source,
            value=str(first["colour"]),
            outcome=first,
            origin=fact.origin,
            at_ns=fact.at_ns,
            or_value=str(second["colour"]) if second is not None and doubtful else None,
            or_outcome=second if doubtful else None,
        )
        wheel.read(h, reading)
        return
    h.found("case_inconnue", "R-RC-12", Severity.HELD)
    h.say(*(Read(reading=entry) for entry in told[-1:]))


def read_by_eye(h: Hearing, fact: PocketRead) -> None:
    """Another source than the encoder reads the colour; before the wheel is at rest it is only kept (R-RC-12)."""
    outcome = GAME.meant(fact, h.context.house.options)
    if not h.coup.launched or outcome is None:
        h.ignore("lecture_impossible" if h.coup.launched else "aucun_tirage")
        return
    reading = Reading.told(fact, value(outcome), with_turns(outcome, h.coup))
    if "stopped" in h.coup.times:
        wheel.read(h, reading)
        return
    h.set(readings=(*(entry for entry in h.coup.readings if entry.source != fact.source), reading))
    h.announce("lecture_en_attente")


# --- outcomes --------------------------------------------------------------------------------------------------------


def with_turns(outcome: Outcome, coup: WheelCoup) -> Outcome:
    """The outcome with the whole turns of its draw, where they are known."""
    if coup.travel is None or not coup.per_turn:
        return outcome
    return {**outcome, "turns": coup.travel // coup.per_turn}


def cell_outcome(coup: WheelCoup, cell: int | None, segments: Sequence[str]) -> Outcome | None:
    """What a cell of this wheel means; None for a cell that nobody knows or that the wheel has not."""
    if cell is None or not 0 <= cell < len(segments):
        return None
    colour = segments[cell]
    return with_turns({"colour": colour, "cell": cell, "valid": True, "chances": [colour]}, coup)


def read(value: int | str, options: RoueOptions) -> Outcome | None:
    """A colour by its name, or a cell by its number from the index mark."""
    if isinstance(value, int):
        return at_cell(value, options)
    return {"colour": value, "valid": True, "chances": [value]} if value in COLOURS else None


def at_cell(cell: int | None, options: RoueOptions) -> Outcome | None:
    """A cell by its number from the index mark."""
    return cell_outcome(WheelCoup(no=0), cell, options.segments)


def value(outcome: Outcome) -> str:
    """Sources must agree on the colour."""
    return str(outcome["colour"])


def announce(outcome: Outcome) -> str:
    """The winning colour, aloud, as the text words it: "la couleur verte" (R-RC-12)."""
    colour = value(outcome)
    return text("couleur", colour=FEMININE.get(colour, colour))


# --- bets and money --------------------------------------------------------------------------------------------------


def layout(options: RoueOptions | None) -> Layout:
    """The layout is the same at every roue."""
    del options
    return LAYOUT


def limits(lay: Layout, house: House, minimum: int, maxima: Mapping[str, int]) -> Limits | Refusal:
    """Maxima are multiples of the minimum; a colour may have a minimum of its own (R-RC-17 to R-RC-20)."""
    minima = house.options.minimum_par_couleur if house.options else {}
    return by_the_text(lay, house.declared_minimum_cents, minimum, maxima, minima, "R-RC-17")


def check(stake: Stake, lay: Layout, house: House) -> Refusal | None:
    """Only the seven colours exist (R-RC-14)."""
    del house
    if lay.find(stake.type, stake.on) is not None:
        return None
    bet = " ".join(str(part) for part in (stake.type, *stake.on))
    return Refusal(code="combinaison_inexistante", requirement="R-RC-14", text=text("combinaison_inexistante", bet=bet))


def settle(stakes: Sequence[Stake], outcome: Outcome, coup: WheelCoup, options: RoueOptions | None) -> Settlement:
    """Pay the winning colour; the winner's stake stays on the layout (R-RC-15, R-RC-16)."""
    del coup, options
    lines, stay = [], []
    for stake in stakes:
        if not outcome["valid"]:
            lines.append(line(stake, "push", 0))
            stay.append(stake)
        elif stake.type == outcome["colour"]:
            lines.append(line(stake, "win", stake.cents * LAYOUT.kinds[stake.type].pays))
            stay.append(stake)
        else:
            lines.append(line(stake, "lose", -stake.cents))
    order, players = payment(lines)
    return Settlement(
        lines=tuple(lines), transfers=transfers(lines), order=order, player_order=players, stay=tuple(stay)
    )


def payment(lines: Sequence[Line]) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    """Winning bets, and players, in ascending order of each player's gain; equal gains are free (R-RC-22)."""
    gains: defaultdict[str, Fraction] = defaultdict(Fraction)
    for entry in lines:
        if entry.status == "win" and entry.net is not None:
            gains[entry.player] += entry.net
    steps = [[name for name, gain in gains.items() if gain == amount] for amount in sorted(set(gains.values()))]
    bets = [[e.id for e in lines if e.status == "win" and e.player in players] for players in steps]
    return tuple(tuple(group) for group in bets), tuple(tuple(group) for group in steps)


def settle_case(case: Case) -> dict[str, object]:
    """A settlement of the settle format; `turns` is compared exactly, 2.99 is not three (R-RC-08)."""
    colour = cases.one_of(case.outcome, "colour", COLOURS, "/outcome")
    turns = cases.number(case.outcome, "turns", "/outcome", default=Fraction(TURNS))
    valid = cases.boolean(case.outcome, "valid", "/outcome", default=True) and turns >= TURNS
    playing = cases.playing(case, GAME, House(declared_minimum_cents=case.minimum or 1))
    settlement = settle(playing, {"colour": colour, "valid": valid}, WheelCoup(no=1), None)
    void = {} if valid else {"void": True}
    steps = [list(group) for group in settlement.player_order]
    return void | cases.settled(case, settlement.lines, player_order=steps)


GAME: Final = Game(
    id="roue_de_la_chance",
    coup=WheelCoup,
    options=RoueOptions,
    hears=frozenset(
        {SpinStarted, SpinSlowed, SpinObstructed, SpinStopped, PocketRead, Announced, TimerElapsed},
    ),
    says=frozenset({"rien_ne_va_plus", "coup_nul", "faites_vos_jeux"}),
    timers=frozenset({wheel.CALL_TIMER}),
    lamps=wheel.LAMPS,
    phases=frozenset(Phase) - {Phase.CHOIX},
    layout=layout,
    limits=limits,
    minimum_change=("seance", "R-RC-19"),
    needs=always(Needed(what="verification", roles=("comite", "croupier"), when="open", requirement="R-RC-06")),
    hear=hear,
    check=check,
    settle=settle,
    value=value,
    announce=announce,
    read=read,
    cell=at_cell,
    contests={"coup_nul": Found(code="obstruction_dite_apres", requirement="R-RC-09", severity=Severity.HELD)},
    most_tableaux=(1, "R-RC-02"),
    most_players=(12, "R-RC-02"),
    case_keys={"outcome": frozenset({"colour", "turns", "valid"})},
    settle_case=settle_case,
)
GAMES: Final = {GAME.id: GAME}
