"""Vingt-trois: fourteen numbers on a plate of 27 cells (spec/vingt-trois.md, R-VT).

    bets open ─rien ne va plus─► jeux faits ─SpinStarted, the other way─► the ball rests in a cell ─► number and colour

The call precedes the actuation, and each actuation goes against the one before (R-VT-07, R-VT-08); the text attaches no
nullity to either, so that what is irregular is held until a person decides (R-GEN-08). Red and black belong to the
cell, not to the number: most numbers have both (R-VT-16).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rules import cases, wheel
from rules.bets import Layout, Refusal, Spot, Stake, spot_id
from rules.cases import Case, CaseError
from rules.decisions import Phase, Refused, Severity
from rules.facts import Announced, Fact, Origin, PocketRead, SpinStarted, SpinStopped
from rules.game import Context, Game, Heard, House, Outcome, Reading
from rules.installation import CASE_KEYS, MORE_PLAYERS, MOST_PLAYERS, Installation
from rules.settlement import Settlement, straight
from rules.wheel import Hearing, WheelCoup, WheelLaw
from rules.words import text

LAW: Final = WheelLaw(alternation="R-VT-07", closing="R-VT-08")
INSTALLATION: Final = Installation(
    decision="R-VT-04",
    chef="R-VT-05",
    notice="R-VT-06",
    change="R-VT-06",
    minimum="R-VT-17",
    cylinder="R-VT-22",
    associations="R-VT-22",
    plein=(20, 50),
    plein_limit="R-VT-20",
    simple=(100, 250),
    simple_limit="R-VT-21",
)
TIERS: Final[Mapping[str, tuple[range, int, int, str]]] = {
    "plein_1_4": (range(1, 5), 1, 23, "R-VT-11"),
    "plein_5_11": (range(5, 12), 2, 11, "R-VT-12"),
    "plein_12_14": (range(12, 15), 3, 7, "R-VT-13"),
}
"""Row of the table of bets -> its numbers, cells of each on the plate, net gain per unit staked."""
NUMBERS: Final = range(1, 15)
KILLER: Final = 13
"""The number at which red and black lose (R-VT-15): its cells have no colour."""
COLOURS: Final = {"rouge": 12, "noir": 12, "neutre": 3}
"""Cells of each colour on the plate."""
PLATEAU: Final[tuple[tuple[int, str], ...]] = (
    (13, "neutre"), (1, "rouge"), (5, "noir"), (7, "rouge"), (14, "noir"), (12, "rouge"), (8, "noir"), (10, "rouge"),
    (11, "noir"),
    (13, "neutre"), (5, "rouge"), (12, "noir"), (14, "rouge"), (7, "noir"), (9, "rouge"), (2, "noir"), (3, "rouge"),
    (10, "noir"),
    (13, "neutre"), (12, "rouge"), (4, "noir"), (6, "rouge"), (9, "noir"), (11, "rouge"), (14, "noir"), (8, "rouge"),
    (6, "noir"),
)  # fmt: skip
"""A plate by the convention of the trade, for a case of `settle` that names none; no table plays on it by default."""
TYPED: Final = re.compile(r"([1-9]|1[0-4])[ _-]?(rouge|noir|neutre)")
"""A number with the colour of its cell, as a person tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VingtTroisOptions:
    """What the house fixes at a vingt-trois (spec §7); nothing has a default, for the text gives none."""

    max_plein: int
    """Maximum of a plein in minima, where the opening asks for no other (R-VT-20)."""
    max_chances_simples: int
    """The same of red and black (R-VT-21)."""
    plateau: tuple[tuple[int, str], ...]
    """Number and colour of the 27 cells, clockwise from the index mark."""

    def __post_init__(self) -> None:
        INSTALLATION.check(self.max_plein, self.max_chances_simples)
        numbers, colours = (Counter(column) for column in zip(*self.plateau, strict=True)) if self.plateau else ({}, {})
        wanted = {number: cells for tier, cells, _, _ in TIERS.values() for number in tier}
        if numbers != wanted:
            raise ValueError(
                f"plateau: {len(self.plateau)} cells, {dict(sorted(numbers.items()))} by number; R-VT-01 and R-VT-16 "
                "want 27: 1 to 4 once, 5 to 11 twice, 12 to 14 three times"
            )
        if colours != COLOURS or any((number == KILLER) is not (colour == "neutre") for number, colour in self.plateau):
            raise ValueError(f"plateau: {dict(colours)}; 12 rouge, 12 noir, and neutre the three cells of 13")


# --- the draw --------------------------------------------------------------------------------------------------------


def hear(coup: WheelCoup, fact: Fact, context: Context) -> Heard:
    """Answer a fact of the draw; total over every state of a coup."""
    h = Hearing(coup, fact, context, LAW)
    match fact:
        case SpinStarted():
            turned(h, fact)
        case SpinStopped() if h.coup.launched:
            h.set(travel=fact.travel, per_turn=fact.per_turn)
        case PocketRead():
            read_cell(h, fact)
        case Announced(code="rien_ne_va_plus"):
            wheel.called(h)
        case Announced(code="faites_vos_jeux"):
            wheel.place_your_bets(h)
        case Announced(code="change_a_table"):
            INSTALLATION.changed_at_the_table(h)
        case _:
            h.ignore("sans_objet")
    return h.answer()


def turned(h: Hearing, fact: SpinStarted) -> None:
    """The plate is actuated: after the call, against the time before, and once a coup (R-VT-07, R-VT-08)."""
    if wheel.pushed_again(h, fact.direction):
        h.ignore("meme_manoeuvre")
    elif fact.found and fact.direction is h.context.last_direction:
        h.ignore("tourne_encore")
    elif "started" in h.coup.times:
        wheel.turned_too_late(h, fact.direction)
    else:
        wheel.actuated(h, fact.direction)
        wheel.begun(h)
        h.set(launched=True)


def read_cell(h: Hearing, fact: PocketRead) -> None:
    """The ball rests in a cell; a number alone says its colour only where all its cells have one (R-VT-16)."""
    outcome = GAME.meant(fact, h.context.house.options)
    if not h.coup.launched and h.is_open:
        h.ignore("aucun_tirage")
        return
    if outcome is None:
        unclear(h, fact)
        return
    if "started" not in h.coup.times and not wheel.unseen(h):
        h.found("cylindre_non_actionne", h.law.alternation, Severity.HELD)
    h.set(launched=True)
    h.dark(h.coup.lit)
    wheel.read(h, Reading.told(fact, value(outcome), outcome))


def unclear(h: Hearing, fact: PocketRead) -> None:
    """A result that this game does not know, or that leaves the colour open: who told it is asked for the cell."""
    why = misread(fact.value)
    if fact.origin is Origin.PERSON and why != "lecture_impossible":
        h.announce(why)
        h.say(Refused(command="confirm", code=why, text=text(why), requirement="R-VT-16"))
    else:
        h.ignore(why)


# --- cells and results -----------------------------------------------------------------------------------------------


def at_cell(cell: int | None, options: VingtTroisOptions) -> Outcome | None:
    """Number and colour of a cell of this plate, counted clockwise from the index mark."""
    if cell is None or not 0 <= cell < len(options.plateau):
        return None
    return {**result(*options.plateau[cell]), "cell": cell}


def result(number: int, colour: str) -> dict[str, object]:
    """An outcome without its cell; 13 makes no chance win (R-VT-15)."""
    return {"number": number, "colour": colour, "chances": [] if colour == "neutre" else [colour]}


def read(value: int | str, options: VingtTroisOptions) -> Outcome | None:
    """Number and colour (`7-rouge`), or a number whose cells have one colour; with the cell where only one is so."""
    typed = TYPED.fullmatch(str(value))
    number, colour = (typed[1], typed[2]) if typed else (str(value), None)
    cells = [n for n, (of, its) in enumerate(options.plateau) if str(of) == number and colour in (None, its)]
    if len({options.plateau[cell] for cell in cells}) != 1:
        return None
    return at_cell(cells[0], options) if len(cells) == 1 else result(*options.plateau[cells[0]])


def misread(value: int | str | None) -> str:
    """Why `read` knows no outcome: most numbers have cells of both colours."""
    return "couleur_a_preciser" if str(value) in map(str, NUMBERS) else "lecture_impossible"


def value(outcome: Outcome) -> str:
    """Sources must agree on number and colour."""
    return f"{outcome['number']} {outcome['colour']}"


def announce(outcome: Outcome) -> str:
    """Number and colour, aloud (a convention: the text has no words for it)."""
    if outcome["colour"] == "neutre":
        return text("numero_sans_chances", number=outcome["number"])
    return text("numero", number=outcome["number"], chances=outcome["colour"])


# --- bets and money --------------------------------------------------------------------------------------------------


def tableau() -> Layout:
    """Fourteen pleins in three tiers, red and black, and nothing else (R-VT-11 to R-VT-14)."""
    pleins = {row: INSTALLATION.bet("plein", pays, requirement) for row, (_, _, pays, requirement) in TIERS.items()}
    simple = {colour: INSTALLATION.bet(colour, 1, "R-VT-14") for colour in ("rouge", "noir")}
    spots = [
        Spot(id=spot_id("plein", (number,)), type="plein", on=(number,), wins=frozenset({number}), row=row)
        for row, (numbers, _, _, _) in TIERS.items()
        for number in numbers
    ]
    spots += [Spot(id=colour, type=colour, on=(), wins=frozenset({colour})) for colour in simple]
    return Layout({**pleins, **simple}, {spot.id: spot for spot in spots})


LAYOUT: Final = tableau()


def layout(options: VingtTroisOptions | None) -> Layout:
    """The layout is the same whatever the plate."""
    del options
    return LAYOUT


def check(stake: Stake, lay: Layout, house: House) -> Refusal | None:
    """Only pleins, red and black exist (R-VT-14)."""
    del house
    return lay.refusal(stake, "R-VT-14")


def settle(stakes: Sequence[Stake], outcome: Outcome, coup: WheelCoup, options: VingtTroisOptions | None) -> Settlement:
    """Winners are paid and keep their stake on the layout, the others lose it whole (R-VT-10 to R-VT-15)."""
    del coup, options
    number = outcome["number"]
    assert isinstance(number, int), "an outcome of a vingt-trois has a number"
    return straight(LAYOUT, stakes, {number, str(outcome["colour"])})


def settle_case(case: Case) -> dict[str, object]:
    """A settlement of the settle format; the colour is that of the cell."""
    number = cases.result(case.outcome, "number", NUMBERS)
    colour = cases.one_of(case.outcome, "colour", COLOURS, "/outcome")
    if (number == KILLER) is not (colour == "neutre"):
        raise CaseError("/outcome/colour", f"{number} has no cell that is {colour!r}: 13 is neutre, the others are not")
    standing = cases.playing(case, GAME, cases.house_of(case, GAME))
    outcome = {"number": number, "colour": colour}
    return cases.settled(case, settle(standing, outcome, WheelCoup(no=1), None).lines)


def case_options(case: Case) -> VingtTroisOptions:
    """The maxima that a case fixes; the plate does not matter, for the outcome names the colour."""
    return INSTALLATION.case_options(case, partial(VingtTroisOptions, plateau=PLATEAU))


GAME: Final = Game(
    id="vingt_trois",
    coup=WheelCoup,
    options=VingtTroisOptions,
    hears=frozenset({SpinStarted, SpinStopped, PocketRead, Announced}),
    says=frozenset({"rien_ne_va_plus", "faites_vos_jeux", "change_a_table"}),
    begins=frozenset({"rien_ne_va_plus", "change_a_table"}),
    lamps=wheel.LAMPS,
    phases=frozenset(Phase) - {Phase.CHOIX},
    layout=layout,
    limits=INSTALLATION.limits,
    minimum_change=("seance", "R-VT-18"),
    needs=INSTALLATION.needs,
    public_options=INSTALLATION.public_options,
    hear=hear,
    check=check,
    settle=settle,
    value=value,
    announce=announce,
    read=read,
    misread=misread,
    cell=at_cell,
    most_players=(MOST_PLAYERS, "R-VT-06"),
    more_players=MORE_PLAYERS,
    case_keys={**CASE_KEYS, "outcome": frozenset({"number", "colour"})},
    case_options=case_options,
    settle_case=settle_case,
)
GAMES: Final = {GAME.id: GAME}
