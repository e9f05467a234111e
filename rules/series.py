"""Colour chips: who holds which colour, what one of them is worth, and where other chips may lie.

A series has no value of its own. The player names one when he receives it, else a chip is worth the minimum of the
table; its marker in the box of the colour shows it to everybody (`state.options.marqueurs`). From then on a stake told
as so many jetons is money like any other.

What chips are put down is told by one word, `[mark/]what`: a colour, `valeur` (plaques and jetons with a value), or
`plaque_vingt` (worth twenty chips of the player's colour). Without a word nobody knows, and nothing is judged by it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeVar

from rules.bets import PLAQUE, VALUE, Refusal, Series, SeriesLaw, Stake
from rules.decisions import Announce, Line, Phase, Refused
from rules.desk import Desk
from rules.facts import ChipPlaced, ChipRemoved, Chosen
from rules.settlement import Settlement
from rules.state import TableState
from rules.words import text

Chips = TypeVar("Chips", ChipPlaced, ChipRemoved)

PLAQUE_JETONS: Final = 20
RETURNED: Final = "rendue"
"""Said about a colour: its chips were given back and changed."""
MINIMUM: Final = "minimum"
"""Said about a colour: the player names no value."""
SMALL: Final = 6
"""A bet on no more numbers is announced with all of them."""
EXCEPTION: Final = "change_impossible"
"""Noted for this coup: the change into colour chips could not be made in time."""


def law_of(desk: Desk) -> SeriesLaw | None:
    """What this table's game says about colour chips; None where it has none."""
    return desk.game.series(desk.house.options)


def held(state: TableState, player: str) -> Series | None:
    """The series that this player holds."""
    return next((entry for entry in state.series if entry.held and entry.player == player), None)


def markers(state: TableState) -> dict[str, dict[str, object]]:
    """What the boxes show: who plays each colour, and what one chip of it is worth."""
    return {entry.colour: {"player": entry.player, "cents": entry.cents} for entry in state.series if entry.held}


# --- chips on the layout ---------------------------------------------------------------------------------------------


def priced(desk: Desk, chips: Chips) -> Chips:
    """Chips that were counted, as money: by the player's marker, else by the minimum of the table."""
    limits = desk.state.limits
    kind = kind_of(chips.chip)
    if not chips.jetons or limits is None or law_of(desk) is None or kind == VALUE:
        return chips
    series = held(desk.state, chips.player)
    each = series.cents if series else limits.minimum
    return replace(chips, cents=chips.jetons * each * (PLAQUE_JETONS if kind == PLAQUE else 1))


def lying_chips(chips: ChipPlaced, there: Stake | None) -> str:
    """`Stake.chip` with these chips: those without a value of their own are remembered before others."""
    told = kind_of(chips.chip) or ("jetons" if chips.jetons else "")
    return there.chip if there is not None and told in {"", VALUE} and there.chip else told


def kind_of(chip: str) -> str:
    """What chips they are, without the mark of their table."""
    return chip.rpartition("/")[2]


def refusal(law: SeriesLaw | None, chip: str, bet: str) -> Refusal | None:
    """Why these chips may not lie on this kind of bet, whoever puts them down."""
    if law is None or not chip:
        return None
    mark, _, kind = chip.rpartition("/")
    if mark and law.mark and mark != law.mark:
        return refused("marque_etrangere", law.mark_requirement, mark=mark, ours=law.mark)
    if kind == VALUE or (kind == PLAQUE and law.plaques):
        if law.money_on and bet not in law.money_on:
            return refused("valeur_hors_simples", law.money_requirement)
        return None
    return None if kind in law.colours else unknown(law, kind)


def may_lie(desk: Desk, chips: ChipPlaced, bet: str) -> Refusal | None:
    """Why these chips of this player may not lie on this kind of bet, or None."""
    no = refusal(law_of(desk), chips.chip, bet)
    if no is not None and no.code == "valeur_hors_simples" and any(b.code == EXCEPTION for b in desk.coup.breaches):
        return None
    return no or not_his(desk, chips)


def not_his(desk: Desk, chips: ChipPlaced) -> Refusal | None:
    """Why this player may not play these chips: another one's colour, or money that they cannot add up to."""
    series = held(desk.state, chips.player)
    kind = kind_of(chips.chip)
    law = law_of(desk)
    if law is None or kind not in law.colours:
        return None
    holder = next((entry for entry in desk.state.series if entry.held and entry.colour == kind), series)
    if holder is None:
        assert desk.state.limits is not None, "chips lie on an open table"
        return revalued(desk, law, chips.player, kind, desk.state.limits.minimum)
    if series is None or holder is not series or series.colour != kind:
        return refused("couleur_d_un_autre", law.value, colour=kind, player=chips.player)
    if chips.cents % series.cents:
        return refused("jetons_entiers", law.value, cents=chips.cents, colour=kind, each=series.cents)
    return None


def revalued(desk: Desk, law: SeriesLaw, player: str, colour: str, cents: int) -> Refusal | None:
    """Why this colour may not be worth that to a player who had it at another value: he needs a new one (R-AN-28)."""
    had = any((e.player, e.colour) == (player, colour) and e.cents != cents for e in desk.state.series)
    return refused("nouvelle_couleur", law.change, colour=colour, player=player) if law.new_colour and had else None


def unknown(law: SeriesLaw, kind: str) -> Refusal:
    """The table has no such chips."""
    return refused("jeton_inconnu", law.boxes_requirement, chip=kind, known=", ".join((*law.colours, VALUE)))


def refused(code: str, requirement: str, **values: object) -> Refusal:
    """A refusal in the words of the catalogue."""
    return Refusal(code=code, requirement=requirement, text=text(code, **values))


# --- giving a series, taking it back ---------------------------------------------------------------------------------


def choose(desk: Desk, law: SeriesLaw, fact: Chosen) -> None:
    """A player receives the series `what` at the value that he names, or gives it back (`rendue`)."""
    no = give_back(desk, law, fact) if fact.value == RETURNED else give(desk, law, fact)
    if no is not None:
        desk.say(Announce(code=no.code, text=no.text))
        desk.say(Refused(command="choice", code=no.code, text=no.text, requirement=no.requirement))


def give(desk: Desk, law: SeriesLaw, fact: Chosen) -> Refusal | None:
    """The series goes to the player: a free colour, one a player, its value for as long as he holds it."""
    player, colour, limits = fact.player, fact.what, desk.state.limits
    if limits is None or desk.state.phase in {Phase.FERME, Phase.VERIFIEE}:
        return refused("table_fermee", "R-GEN-05")
    least, most = limits.minimum, limits.maxima["plein"]
    cents = least if fact.value == MINIMUM else int(fact.value) if fact.value.isdecimal() else 0
    given = [entry for entry in desk.state.series if entry.held]
    mine = held(desk.state, player)
    if colour not in law.colours:
        return unknown(law, colour)
    if not least <= cents <= most:
        return refused("valeur_hors_limites", law.value, value=fact.value, least=least, most=most)
    if mine is not None or his_chips(desk, player):
        now = f"{mine.colour} ({mine.cents})" if mine else MINIMUM
        return refused("serie_a_changer", law.change, player=player, now=now)
    if any(entry.colour == colour for entry in given):
        return refused("couleur_prise", law.boxes_requirement, colour=colour)
    if len(given) >= law.boxes:
        return refused("plus_de_boite", law.boxes_requirement, boxes=law.boxes)
    if no := revalued(desk, law, player, colour, cents):
        return no
    before = [entry for entry in desk.state.series if entry.player == player]
    entry = Series(player=player, colour=colour, cents=cents)
    desk.set(series=(*(other for other in desk.state.series if other not in before), entry))
    desk.announce("serie_attribuee", player=player, colour=colour, cents=cents)
    return None


def give_back(desk: Desk, law: SeriesLaw, fact: Chosen) -> Refusal | None:
    """The player's chips are changed; none of them may lie on the layout then."""
    mine = held(desk.state, fact.player)
    if mine is None or mine.colour != fact.what:
        return refused("serie_non_tenue", law.change, player=fact.player, colour=fact.what)
    if his_chips(desk, fact.player):
        return refused("jetons_sur_le_tapis", law.change, player=fact.player)
    others = (entry for entry in desk.state.series if entry is not mine)
    desk.set(series=(*others, replace(mine, held=False)))
    desk.announce("serie_rendue", player=mine.player, colour=mine.colour, cents=mine.cents)
    return None


def his_chips(desk: Desk, player: str) -> bool:
    """Do chips without a value of their own lie on the layout for this player."""
    return any(stake.player == player and stake.chip not in {"", VALUE} for stake in desk.state.stakes)


def within_limits(desk: Desk) -> None:
    """Other limits are in force: a marker that they do not allow is taken away, its chips are to be changed."""
    limits = desk.state.limits
    assert limits is not None, "a table opens with limits"
    for entry in desk.state.series:
        if entry.held and not limits.minimum <= entry.cents <= limits.maxima["plein"]:
            to_change(desk, entry)


def end(desk: Desk) -> None:
    """The seance ends: whoever still holds colour chips must change them now."""
    for entry in desk.state.series:
        if entry.held:
            to_change(desk, entry)
    desk.set(series=())


def to_change(desk: Desk, series: Series) -> None:
    """Nothing tells the value of a series any more."""
    desk.set(series=tuple(replace(e, held=False) if e is series else e for e in desk.state.series))
    desk.announce("serie_a_convertir", player=series.player, colour=series.colour, cents=series.cents)


# --- payment ---------------------------------------------------------------------------------------------------------


def tell_gains(desk: Desk, settlement: Settlement) -> None:
    """Before he is paid, each winner's gains are announced in detail, in the order of payment, in his own chips."""
    if law_of(desk) is None:
        return
    lines = {line.id: line for line in settlement.lines}
    winners: dict[str, list[str]] = {}
    for name in (name for group in settlement.order for name in group):
        line = lines[name]
        series = held(desk.state, line.player)
        assert line.net is not None, "who is paid has a gain"
        winners.setdefault(line.player, []).append(gain(line, line.net, series))
    for player, gains in winners.items():
        desk.announce("gains", player=player, gains=", ".join(gains))


def gain(line: Line, net: Fraction, series: Series | None) -> str:
    """One winning bet and what it brings, in chips where it is a whole number of them."""
    numbers = "-".join(str(n) for n in (line.on if len(line.on) <= SMALL else (line.on[0], line.on[-1])))
    bet = f"{line.type.replace('_', ' ')} {numbers}".rstrip()
    if series is None or net % series.cents:
        return text("gain", bet=bet, cents=net)
    return text("gain_en_jetons", bet=bet, cents=net, jetons=net // series.cents, colour=series.colour)
