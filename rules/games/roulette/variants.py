"""What differs between the three roulettes, as data: zeros, bets, limits, the rule of the zero, the order of payment.

Sources: spec/roulette-francaise.md (R-RF), roulette-americaine.md (R-RA), roulette-anglaise.md (R-AN). Red numbers,
columns, chevaux and transversales with a zero, and the order of the pockets are conventions of the trade that the
text does not give (spec §10), as are the names of the colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final, Literal

from rules.bets import PLAQUE, VALUE, BetKind, On, SeriesLaw
from rules.game import Needed
from rules.wheel import WheelLaw

Pocket = int | str
"""A number of the cylinder: 0 to 36, or `"00"`."""

RED: Final = frozenset({1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36})
SIMPLE: Final = ("rouge", "noir", "impair", "pair", "passe", "manque")
"""The even chances, in the order of article 51."""

SMALL: Final = ("plein", "cheval", "transversale", "carre", "cinq", "sixain")
"""Bets on single numbers and their neighbours, which share numbers with one another (R-RA-25)."""
BOXES: Final = 10
"""Boxes for the markers of an américaine (R-RA-02)."""
COLOURS: Final = ("bleu", "jaune", "vert", "rose", "rouge", "blanc", "gris", "orange", "violet", "brun")

FRENCH_CYLINDER: Final[tuple[Pocket, ...]] = (
    0, 32, 15, 19, 4, 21, 2, 25, 17, 34, 6, 27, 13, 36, 11, 30, 8, 23, 10,
    5, 24, 16, 33, 1, 20, 14, 31, 9, 22, 18, 29, 7, 28, 12, 35, 3, 26,
)  # fmt: skip
AMERICAN_CYLINDER: Final[tuple[Pocket, ...]] = (
    0, 28, 9, 26, 30, 11, 7, 20, 32, 17, 5, 22, 34, 15, 3, 24, 36, 13, 1,
    "00", 27, 10, 25, 29, 12, 8, 19, 31, 18, 6, 21, 33, 16, 4, 23, 35, 14, 2,
)  # fmt: skip


class ZeroRule(StrEnum):
    """What a zero does to the even chances."""

    CHOIX = "choix"
    """The player takes half back or leaves the whole in prison (R-RF-24, R-RF-25)."""
    MOITIE = "moitie"
    """Half is lost, automatically (R-AN-22)."""
    PERDU = "perdu"
    """The whole is lost (R-RA-19)."""


def checked_cylinder(cylinder: tuple[Pocket, ...], zeros: tuple[Pocket, ...]) -> None:
    """Raise ValueError unless the pockets are those of a cylinder with these zeros (R-RF-01, R-RF-02, R-RA-01)."""
    wanted: set[Pocket] = {*range(1, 37), *zeros}
    if len(cylinder) != len(wanted) or set(cylinder) != wanted:
        missing = sorted(str(pocket) for pocket in wanted - set(cylinder))
        raise ValueError(f"cylindre: {len(cylinder)} pockets, missing {', '.join(missing) or 'none'}; each once")
    for pocket, after in zip(cylinder, (*cylinder[1:], cylinder[0]), strict=True):
        if pocket not in zeros and after not in zeros and (pocket in RED) == (after in RED):
            raise ValueError(
                f"cylindre: {pocket} and {after} are neighbours of one colour; red and black must alternate"
            )
    first, last = (cylinder.index(zero) for zero in (zeros[0], zeros[-1]))
    if len(zeros) > 1 and abs(last - first) * 2 != len(cylinder):
        raise ValueError(f"cylindre: {zeros[0]} and {zeros[-1]} must be diametrically opposite")


def checked_colours(colours: tuple[str, ...], least: int, most: int) -> None:
    """Raise ValueError unless there are so many different colours (R-RA-02, R-AN-02, R-AN-03)."""
    if not least <= len(colours) <= most:
        raise ValueError(f"couleurs: {len(colours)} series; {least} to {most}")
    if len(set(colours)) != len(colours) or {"", VALUE, PLAQUE} & set(colours) or any("/" in c for c in colours):
        raise ValueError(f"couleurs: {list(colours)} must name each colour once, none {VALUE} or {PLAQUE}, without /")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrancaiseOptions:
    """What the house fixes at a roulette française (spec §7)."""

    cylindre: tuple[Pocket, ...] = FRENCH_CYLINDER
    valeur_liberee: Literal["moitie_par_zero_suivant", "totalite"] = "moitie_par_zero_suivant"
    """What a prison stake is worth when it is freed after several zeros (a reading of R-RF-27)."""
    rota_lanceurs: tuple[str, ...] = ()
    """Croupiers in the order in which they take over the ball (R-RF-06); empty = not followed here."""

    def __post_init__(self) -> None:
        checked_cylinder(self.cylindre, (0,))
        if self.valeur_liberee not in ("moitie_par_zero_suivant", "totalite"):
            allowed = "moitie_par_zero_suivant, totalite"
            raise ValueError(f"valeur_liberee: {self.valeur_liberee!r} is not one of {allowed}")
        if len(set(self.rota_lanceurs)) != len(self.rota_lanceurs) or "" in self.rota_lanceurs:
            raise ValueError(f"rota_lanceurs: {list(self.rota_lanceurs)} must name each croupier once")


@dataclass(frozen=True, slots=True, kw_only=True)
class AmericaineOptions:
    """What the house fixes at a roulette américaine."""

    cylindre: tuple[Pocket, ...] = AMERICAN_CYLINDER
    couleurs: tuple[str, ...] = COLOURS
    """Its series of chips, each with its box (R-RA-02)."""
    regle_pieces_egales: Literal["bloquer", "signaler"] = "signaler"
    """Unequal pieces on linked numbers are refused, or noted (R-RA-25)."""
    employe_assistant: bool = True
    """Without one the croupier tells that the piles are rebuilt before he launches (R-RA-06)."""

    def __post_init__(self) -> None:
        checked_cylinder(self.cylindre, (0, "00"))
        checked_colours(self.couleurs, 1, BOXES)
        if self.regle_pieces_egales not in ("bloquer", "signaler"):
            raise ValueError(f"regle_pieces_egales: {self.regle_pieces_egales!r} is not one of bloquer, signaler")

    @property
    def series(self) -> SeriesLaw:
        """Its colour chips."""
        return SeriesLaw(
            colours=self.couleurs, boxes=BOXES, boxes_requirement="R-RA-02", value="R-RA-24", change="R-RA-24"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnglaiseOptions:
    """What the house fixes at a roulette anglaise."""

    cylindre: tuple[Pocket, ...] = FRENCH_CYLINDER
    couleurs: tuple[str, ...] = COLOURS[:8]
    """Its seven or eight series of chips, each with its compartment (R-AN-02, R-AN-03)."""
    couleur_additionnelle: str = ""
    """A series that may replace one that is not complete any more (R-AN-03)."""
    marque: str = ""
    """The mark that all its chips bear, as the reader tells it; empty = not followed (R-AN-04)."""
    plaques_vingt: bool = False
    """Plaques worth twenty chips are used (R-AN-05)."""
    hippodrome: bool = False
    """The layout shows the cylinder in miniature: a chef de table is present (R-AN-11)."""
    employe_assistant: bool = True
    """Without one the croupier tells that the piles are rebuilt before he launches (R-AN-17)."""

    def __post_init__(self) -> None:
        checked_cylinder(self.cylindre, (0,))
        checked_colours(self.couleurs, 7, 8)
        if self.couleur_additionnelle:
            checked_colours((*self.couleurs, self.couleur_additionnelle), 8, 9)

    @property
    def series(self) -> SeriesLaw:
        """Its colour chips."""
        spare = (self.couleur_additionnelle,) if self.couleur_additionnelle else ()
        return SeriesLaw(
            colours=(*self.couleurs, *spare),
            boxes=len(self.couleurs),
            boxes_requirement="R-AN-02",
            value="R-AN-27",
            change="R-AN-28",
            new_colour=True,
            mark=self.marque,
            mark_requirement="R-AN-04",
            plaques=self.plaques_vingt,
            money_on=frozenset(SIMPLE),
            money_requirement="R-AN-23",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of the roulettes."""

    id: str
    options: type[Any]
    zeros: tuple[Pocket, ...]
    zero_rule: ZeroRule
    kinds: tuple[BetKind, ...]
    with_zero: tuple[tuple[str, On], ...]
    """Combinations with a zero, beside the pleins."""
    walk: tuple[tuple[str, ...], ...]
    """Groups of bet types in order of payment."""
    by_player: bool
    """Paid player by player, each along the walk; otherwise along the walk for all players together."""
    law: WheelLaw
    relaunch: str
    """Requirement for a jeton in the cylinder."""
    result: str
    """Requirement for the ball at rest in a pocket."""
    combinations: str
    """Requirement that no other bet exists."""
    needs: tuple[Needed, ...]
    """Attestations beside that of a new encaisse."""
    reopening: str
    """Requirement that the minimum changes by closing and reopening, with a new encaisse (article 53)."""
    most_tableaux: tuple[int, str]
    raised: str = ""
    """Requirement of an encaisse for an opening above the declared minimum; empty = the text wants none."""
    hippodrome: tuple[Needed, ...] = ()
    """Needed besides where the layout has a hippodrome."""
    stacks: str = ""
    """Requirement that the piles of colour chips are rebuilt before each launch."""
    exchange: str = ""
    """Requirement of the exception that lets value chips lie elsewhere."""
    equal_pieces: str = ""
    """Requirement that linked stakes of a player are equal; empty = they need not be."""
    most_players: tuple[int, str] | None = None

    @property
    def pockets(self) -> tuple[Pocket, ...]:
        """Every result of this cylinder."""
        return (*self.zeros, *range(1, 37))


def kinds(limit: Mapping[str, str], rows: tuple[tuple[str, Fraction | int, int, str], ...]) -> tuple[BetKind, ...]:
    """Rows (type, net gain per unit, maximum in minima, requirement) as kinds of bet."""
    return tuple(
        BetKind(
            type=bet,
            pays=Fraction(pays),
            max_multiple=most,
            requirement=requirement,
            limit_requirement=limit["simple" if bet in SIMPLE else "multiple"],
        )
        for bet, pays, most, requirement in rows
    )


HALF: Final = Fraction(1, 2)
FRENCH_ZERO: Final[tuple[tuple[str, On], ...]] = (
    ("cheval", (0, 1)),
    ("cheval", (0, 2)),
    ("cheval", (0, 3)),
    ("transversale", (0, 1, 2)),
    ("transversale", (0, 2, 3)),
    ("carre", (0, 1, 2, 3)),
)

FRANCAISE: Final = Variant(
    id="roulette_francaise",
    options=FrancaiseOptions,
    zeros=(0,),
    zero_rule=ZeroRule.CHOIX,
    kinds=kinds(
        {"simple": "R-RF-30", "multiple": "R-RF-31"},
        (
            ("plein", 35, 30, "R-RF-15"),
            ("cheval", 17, 60, "R-RF-16"),
            ("transversale", 11, 100, "R-RF-17"),
            ("carre", 8, 120, "R-RF-18"),
            ("sixain", 5, 200, "R-RF-19"),
            ("douzaine", 2, 500, "R-RF-20"),
            ("colonne", 2, 500, "R-RF-20"),
            ("deux_douzaines", HALF, 2000, "R-RF-21"),
            ("deux_colonnes", HALF, 2000, "R-RF-21"),
            *((bet, 1, 1000, "R-RF-22") for bet in SIMPLE),
        ),
    ),
    with_zero=FRENCH_ZERO,
    walk=(
        ("colonne", "deux_colonnes", "douzaine", "deux_douzaines"),
        SIMPLE,
        ("sixain",),
        ("transversale",),
        ("carre",),
        ("cheval",),
        ("plein",),
    ),
    by_player=False,
    law=WheelLaw(alternation="R-RF-09", closing="R-RF-11"),
    relaunch="R-RF-10",
    result="R-RF-13",
    combinations="R-RF-23",
    needs=(Needed(what="couvercle", roles=("chef",), when="close", requirement="R-RF-03"),),
    reopening="R-RF-34",
    raised="R-RF-33",
    most_tableaux=(2, "R-RF-04"),
)

AMERICAINE: Final = Variant(
    id="roulette_americaine",
    options=AmericaineOptions,
    zeros=(0, "00"),
    zero_rule=ZeroRule.PERDU,
    kinds=kinds(
        {"simple": "R-RA-22", "multiple": "R-RA-23"},
        (
            ("plein", 35, 20, "R-RA-11"),
            ("cheval", 17, 40, "R-RA-12"),
            ("transversale", 11, 60, "R-RA-13"),
            ("carre", 8, 80, "R-RA-14"),
            ("cinq", 6, 100, "R-RA-15"),
            ("sixain", 5, 120, "R-RA-16"),
            ("douzaine", 2, 240, "R-RA-17"),
            ("colonne", 2, 240, "R-RA-17"),
            *((bet, 1, 360, "R-RA-18") for bet in SIMPLE),
        ),
    ),
    with_zero=(
        ("cheval", (0, "00")),
        ("transversale", (0, 1, 2)),
        ("transversale", ("00", 2, 3)),
        ("transversale", (0, "00", 2)),
        ("cinq", (0, "00", 1, 2, 3)),
    ),
    walk=(
        ("colonne",),
        ("passe",),
        ("impair",),
        ("noir",),
        ("rouge",),
        ("pair",),
        ("manque",),
        ("douzaine",),
        ("sixain",),
        ("cinq",),
        ("transversale",),
        ("carre",),
        ("cheval",),
        ("plein",),
    ),
    by_player=True,
    law=WheelLaw(alternation="R-RA-07", closing="R-RA-09"),
    relaunch="R-RA-08",
    result="R-RA-10",
    combinations="R-RA-20",
    needs=(),
    reopening="R-RA-26",
    stacks="R-RA-06",
    equal_pieces="R-RA-25",
    most_tableaux=(2, "R-RA-03"),
    most_players=(7, "R-RA-03"),
)

ANGLAISE: Final = Variant(
    id="roulette_anglaise",
    options=AnglaiseOptions,
    zeros=(0,),
    zero_rule=ZeroRule.MOITIE,
    kinds=kinds(
        {"simple": "R-AN-26", "multiple": "R-AN-26"},
        (
            ("plein", 35, 20, "R-AN-19"),
            ("cheval", 17, 40, "R-AN-19"),
            ("transversale", 11, 60, "R-AN-19"),
            ("carre", 8, 80, "R-AN-19"),
            ("sixain", 5, 120, "R-AN-19"),
            ("douzaine", 2, 240, "R-AN-19"),
            ("colonne", 2, 240, "R-AN-19"),
            ("deux_douzaines", HALF, 480, "R-AN-20"),
            ("deux_colonnes", HALF, 480, "R-AN-20"),
            *((bet, 1, 360, "R-AN-21") for bet in SIMPLE),
        ),
    ),
    with_zero=FRENCH_ZERO,
    walk=(
        ("colonne", "deux_colonnes"),
        ("passe",),
        ("impair",),
        ("noir",),
        ("rouge",),
        ("pair",),
        ("manque",),
        ("douzaine", "deux_douzaines"),
        ("sixain",),
        ("transversale",),
        ("carre",),
        ("cheval",),
        ("plein",),
    ),
    by_player=True,
    law=WheelLaw(alternation="R-AN-12", closing="R-AN-14"),
    relaunch="R-AN-13",
    result="R-AN-16",
    combinations="R-AN-19",
    needs=(
        Needed(what="couvercle", roles=("chef",), when="close", requirement="R-AN-01"),
        Needed(what="series", roles=("chef",), when="open", requirement="R-AN-09", each_partie=True),
    ),
    reopening="R-AN-30",
    hippodrome=(Needed(what="chef_de_table", roles=("chef",), when="open", requirement="R-AN-11", each_partie=True),),
    stacks="R-AN-17",
    exchange="R-AN-24",
    most_tableaux=(2, "R-AN-06"),
    most_players=(8, "R-AN-06"),
)

VARIANTS: Final = (FRANCAISE, AMERICAINE, ANGLAISE)
