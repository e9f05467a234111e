"""What the text says of boule and vingt-trois alike: more than twelve players, maxima that the house chooses.

At the latest at the start of the seance the house decides whether a table takes more than twelve players at once. Then
a chef de table must be there; otherwise a notice says that it takes twelve, and no money is changed at the table.
Minimum and maxima are fixed at the opening and stand until the next seance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, TypeVar

from rules import cases
from rules.bets import BetKind, Layout, Refusal
from rules.cases import Case, CaseError
from rules.decisions import Severity
from rules.game import House, Needed, PublicOption, groups_of_players, yes_or_no
from rules.limits import ASSOCIATIONS, Limits, by_the_text
from rules.wheel import Hearing

Options = TypeVar("Options")

MORE_PLAYERS: Final = "plus_de_douze_joueurs"
"""Public option: may more than twelve play at once."""
CASE_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "config": frozenset({"max_plein", "max_chances_simples"}),
    "bet": frozenset({"amount", "table_maximum"}),
}
"""What a case of the settle format may say of either game."""
SIMPLE: Final = "chances_simples"
"""The even chances, which have one maximum together."""
MOST_PLAYERS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The requirements of one of the two games behind what they share, and the multiples between which it chooses."""

    decision: str
    chef: str
    notice: str
    change: str
    minimum: str
    cylinder: str
    """That a maximum is one player's on all tableaux of the apparatus."""
    associations: str
    plein: tuple[int, int]
    """Lowest and highest maximum of a plein in minima."""
    plein_limit: str
    """The requirement that gives them."""
    simple: tuple[int, int]
    """The same of the even chances."""
    simple_limit: str
    """The requirement that gives them."""

    def bet(self, bet_type: str, pays: int, requirement: str) -> BetKind:
        """A row of the table of bets: a plein, or an even chance."""
        plein = bet_type == "plein"
        least, most = self.plein if plein else self.simple
        return BetKind(
            type=bet_type,
            pays=Fraction(pays),
            max_multiple=most,
            least_max_multiple=least,
            limited_with="" if plein else SIMPLE,
            requirement=requirement,
            limit_requirement=self.plein_limit if plein else self.simple_limit,
        )

    @property
    def public_options(self) -> Mapping[str, PublicOption]:
        """What the house decides."""
        return {
            MORE_PLAYERS: PublicOption(
                fits=yes_or_no,
                allowed="oui_ou_non",
                requirement=self.decision,
                needed=True,
                says={False: "douze_joueurs_au_plus", True: "plus_de_douze_joueurs"},
            ),
            ASSOCIATIONS: PublicOption(
                fits=groups_of_players, allowed="groupes_de_joueurs", requirement=self.associations, in_seance=True
            ),
        }

    def needs(self, house: House, public_options: Mapping[str, object]) -> tuple[Needed, ...]:
        """A chef de table above twelve players, else the notice."""
        del house
        match public_options.get(MORE_PLAYERS):
            case True:
                return (Needed(what="chef_de_table", roles=("chef",), when="open", requirement=self.chef),)
            case False:
                return (Needed(what="affiche", roles=("comite",), when="open", requirement=self.notice),)
            case _:
                return ()

    def changed_at_the_table(self, h: Hearing) -> None:
        """Somebody tells that money was changed at the table: where twelve play at most, that is forbidden."""
        if h.context.public_options.get(MORE_PLAYERS) is True:
            h.ignore("change_permis")
        else:
            h.found("change_interdit", self.change, Severity.NOTED)

    def check(self, max_plein: int, max_chances_simples: int) -> None:
        """Raise ValueError where the house's usual maxima, in minima, are not in the ranges of the text."""
        for name, chosen, (low, high) in (
            ("max_plein", max_plein, self.plein),
            ("max_chances_simples", max_chances_simples, self.simple),
        ):
            if not low <= chosen <= high:
                raise ValueError(f"{name}: {chosen}; allowed: {low} to {high} times the minimum")

    def case_options(self, case: Case, options: Callable[..., Options]) -> Options:
        """`options` with the maxima that a case of the settle format fixes, in minima; else with the highest."""
        given = {"max_plein": self.plein[1], "max_chances_simples": self.simple[1], **case.config}
        maxima = {name: cases.integer(given, name, "/config", least=1) for name in ("max_plein", "max_chances_simples")}
        try:
            return options(**maxima)
        except ValueError as error:
            raise CaseError("/config", str(error)) from error

    def limits(self, lay: Layout, house: House, minimum: int, maxima: Mapping[str, int]) -> Limits | Refusal:
        """The limits of a seance: what is asked for, else what the house usually has."""
        options: Any = house.options
        usual = {"plein": options.max_plein, SIMPLE: options.max_chances_simples} if options else None
        declared = house.declared_minimum_cents
        asked = by_the_text(lay, declared, minimum, maxima, minimum_requirement=self.minimum, usual=usual)
        return asked if isinstance(asked, Refusal) else replace(asked, sum_requirement=self.cylinder)
