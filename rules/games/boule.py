"""Boule: nine numbers, seven to one, and even chances that all lose at 5 (spec/boule.md, R-BO).

    bets open ─rien ne va plus─► jeux faits ─(the ball is thrown)─► it rests in a cup ─► the number

The text says nothing of how the ball is thrown: no alternation, no turns, no nullity (R-BO-09). That the call comes
before the throw is a reading, as at vingt-trois (spec §10); a throw or a number before any call closes the bets and is
held until a person decides (R-GEN-08). Which numbers are red, even, low is the convention of the trade, for the text
gives none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from rules import cases, wheel
from rules.bets import Layout, Refusal, Spot, Stake, spot_id
from rules.cases import Case
from rules.decisions import Phase
from rules.facts import Announced, BallLaunched, Fact, Origin, PocketRead
from rules.game import Context, Game, Heard, House, Outcome, Reading
from rules.installation import CASE_KEYS, MORE_PLAYERS, MOST_PLAYERS, Installation
from rules.settlement import Settlement, straight
from rules.wheel import Hearing, WheelCoup, WheelLaw
from rules.words import text

LAW: Final = WheelLaw(alternation="R-BO-09", closing="R-GEN-08")
INSTALLATION: Final = Installation(
    decision="R-BO-04",
    chef="R-BO-05",
    notice="R-BO-06",
    change="R-BO-07",
    minimum="R-BO-14",
    cylinder="R-BO-20",
    associations="R-BO-21",
    plein=(40, 100),
    plein_limit="R-BO-18",
    simple=(200, 500),
    simple_limit="R-BO-19",
)
NUMBERS: Final = range(1, 10)
RUNS: Final = "boule_lancee"
"""Memory: the coup whose ball was thrown and not yet read."""
KILLER: Final = 5
"""The number at which every even chance loses (R-BO-13)."""
COULEURS: Final[Mapping[str, str]] = {
    "1": "noir", "2": "rouge", "3": "noir", "4": "rouge", "6": "noir", "7": "rouge", "8": "noir", "9": "rouge",
}  # fmt: skip
"""Colour of each number; 5 has none."""
CHANCES: Final[Mapping[str, frozenset[int]]] = {
    "impair": frozenset({1, 3, 7, 9}),
    "pair": frozenset({2, 4, 6, 8}),
    "manque": frozenset({1, 2, 3, 4}),
    "passe": frozenset({6, 7, 8, 9}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BouleOptions:
    """What the house fixes at a boule (spec §7); its usual maxima have no default, for the text gives none."""

    max_plein: int
    """Maximum of a plein in minima, where the opening asks for no other (R-BO-18)."""
    max_chances_simples: int
    """The same of the even chances (R-BO-19)."""
    couleurs: Mapping[str, str] = field(default_factory=lambda: COULEURS)
    """Colour of each number but 5."""
    cuvettes: tuple[int, ...] = ()
    """Number of each cup of the basin in the order of its sensors; empty where nothing reads the cups."""

    def __post_init__(self) -> None:
        INSTALLATION.check(self.max_plein, self.max_chances_simples)
        coloured = {str(number) for number in NUMBERS if number != KILLER}
        reds = [number for number, colour in self.couleurs.items() if colour == "rouge"]
        if set(self.couleurs) != coloured or set(self.couleurs.values()) != {"rouge", "noir"} or len(reds) != 4:
            raise ValueError(f"couleurs: {dict(self.couleurs)}; each number but 5, four rouge and four noir")
        cups = [self.cuvettes.count(number) for number in NUMBERS]
        if sum(cups) != len(self.cuvettes) or len(set(cups)) > 1:
            raise ValueError(f"cuvettes: {list(self.cuvettes)}; numbers 1 to 9, each in as many cups (R-BO-01)")


# --- the draw --------------------------------------------------------------------------------------------------------


def hear(coup: WheelCoup, fact: Fact, context: Context) -> Heard:
    """Answer a fact of the draw; total over every state of a coup."""
    h = Hearing(coup, fact, context, LAW)
    match fact:
        case Announced(code="rien_ne_va_plus"):
            wheel.called(h)
            h.set(launched=True)  # from here on the ball may run at any moment
        case BallLaunched() | Announced(code="boule_lancee"):
            thrown(h)
        case PocketRead():
            read_cup(h, fact)
        case Announced(code="faites_vos_jeux"):
            wheel.place_your_bets(h)
        case Announced(code="change_a_table"):
            INSTALLATION.changed_at_the_table(h)
        case _:
            h.ignore("sans_objet")
    return h.answer()


def thrown(h: Hearing) -> None:
    """The ball runs, seen by a sensor or said by the croupier; in which sense is nobody's business (R-BO-09)."""
    if "thrown" in h.coup.times:
        h.ignore("deja_lancee")
        return
    wheel.begun(h)
    h.mark("thrown")
    h.set(launched=True, memory={RUNS: h.coup.no})
    h.announce("boule_lancee")


def read_cup(h: Hearing, fact: PocketRead) -> None:
    """The ball rests in a cup; a number that nobody called for closes the bets, and is held.

    Not so the ball of a throw that was annulled while it ran: it comes to rest after all, and that is no draw.
    """
    outcome = GAME.meant(fact, h.context.house.options)
    if outcome is None:
        h.ignore("lecture_impossible")
        return
    annulled = h.coup.memory.get(RUNS, h.coup.no) != h.coup.no
    h.set(memory={})
    if annulled and h.is_open and fact.origin is not Origin.PERSON:
        h.ignore("aucun_tirage")
        return
    wheel.closed_by_the_draw(h)
    h.set(launched=True)
    h.dark(h.coup.lit)
    wheel.read(h, Reading.told(fact, value(outcome), outcome))


def chances(number: int, couleurs: Mapping[str, str] = COULEURS) -> list[str]:
    """The even chances that this number makes win, as they are announced; none at 5 (R-BO-13)."""
    colour = couleurs.get(str(number))
    return ([colour] if colour else []) + [chance for chance, wins in CHANCES.items() if number in wins]


def read(value: int | str, options: BouleOptions | None) -> Outcome | None:
    """A number of the apparatus, also as it is typed (`"7"`)."""
    typed = isinstance(value, str) and value.isdecimal() and str(int(value)) == value
    number = int(value) if typed else value
    if number not in NUMBERS:
        return None
    return {"number": number, "chances": chances(int(number), options.couleurs if options else COULEURS)}


def at_cup(cup: int | None, options: BouleOptions | None) -> Outcome | None:
    """The number of a cup, counted from 0 as its sensors are."""
    cups = options.cuvettes if options else ()
    if cup is None or not 0 <= cup < len(cups):
        return None
    outcome = read(cups[cup], options)
    return None if outcome is None else {**outcome, "cell": cup}


def value(outcome: Outcome) -> int:
    """Sources must agree on the number."""
    number = outcome["number"]
    assert isinstance(number, int), "an outcome of a boule has a number"
    return number


def announce(outcome: Outcome) -> str:
    """Number and winning even chances, aloud (a convention: the text has no words for it)."""
    named = outcome["chances"]
    assert isinstance(named, Sequence), "an outcome of a boule names its chances"
    if not named:
        return text("numero_sans_chances", number=outcome["number"])
    return text("numero", number=outcome["number"], chances=", ".join(named[:-1]) + f" et {named[-1]}")


# --- bets and money --------------------------------------------------------------------------------------------------


def layout(options: BouleOptions | None) -> Layout:
    """Nine pleins and six even chances, and nothing else (R-BO-10 to R-BO-12)."""
    kinds = {"plein": INSTALLATION.bet("plein", 7, "R-BO-11")}
    kinds |= {chance: INSTALLATION.bet(chance, 1, "R-BO-12") for chance in ("rouge", "noir", *CHANCES)}
    couleurs = options.couleurs if options else COULEURS
    spots = [Spot(id=spot_id("plein", (n,)), type="plein", on=(n,), wins=frozenset({n})) for n in NUMBERS]
    spots += [
        Spot(id=chance, type=chance, on=(), wins=frozenset(n for n in NUMBERS if chance in chances(n, couleurs)))
        for chance in kinds
        if chance != "plein"
    ]
    return Layout(kinds, {spot.id: spot for spot in spots})


def check(stake: Stake, lay: Layout, house: House) -> Refusal | None:
    """Only pleins and even chances exist (R-BO-10)."""
    del house
    return lay.refusal(stake, "R-BO-10")


def settle(stakes: Sequence[Stake], outcome: Outcome, coup: WheelCoup, options: BouleOptions | None) -> Settlement:
    """Winners are paid and keep their stake on the layout, the others lose it whole (R-BO-08, R-BO-11 to R-BO-13)."""
    del coup
    return straight(layout(options), stakes, {value(outcome)})


def settle_case(case: Case) -> dict[str, object]:
    """A settlement of the settle format."""
    number = cases.result(case.outcome, "number", NUMBERS)
    house = cases.house_of(case, GAME)
    standing = cases.playing(case, GAME, house)
    return cases.settled(case, settle(standing, {"number": number}, WheelCoup(no=1), house.options).lines)


def case_options(case: Case) -> BouleOptions:
    """The maxima and colours that a case fixes."""
    couleurs = cases.mapping(case.config.get("couleurs", COULEURS), "/config/couleurs")
    painted = {number: cases.word(couleurs, number, "/config/couleurs") for number in couleurs}
    return INSTALLATION.case_options(case, partial(BouleOptions, couleurs=painted))


GAME: Final = Game(
    id="boule",
    coup=WheelCoup,
    options=BouleOptions,
    hears=frozenset({Announced, BallLaunched, PocketRead}),
    says=frozenset({"rien_ne_va_plus", "faites_vos_jeux", "boule_lancee", "change_a_table"}),
    begins=frozenset({"rien_ne_va_plus", "boule_lancee", "change_a_table"}),
    lamps=frozenset(wheel.CALL_NOW),
    phases=frozenset(Phase) - {Phase.CHOIX},
    layout=layout,
    limits=INSTALLATION.limits,
    minimum_change=("seance", "R-BO-16"),
    needs=INSTALLATION.needs,
    public_options=INSTALLATION.public_options,
    hear=hear,
    check=check,
    settle=settle,
    value=value,
    announce=announce,
    read=read,
    cell=at_cup,
    most_players=(MOST_PLAYERS, "R-BO-06"),
    more_players=MORE_PLAYERS,
    case_keys={
        **CASE_KEYS,
        "config": CASE_KEYS["config"] | {"couleurs"},
        "outcome": frozenset({"number"}),
    },
    case_options=case_options,
    settle_case=settle_case,
)
GAMES: Final = {GAME.id: GAME}
