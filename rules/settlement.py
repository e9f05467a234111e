"""Settlement: what each stake becomes and which money moves, so that lines and transfers always tell the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rules.bets import Layout, Stake
from rules.decisions import Line, Transfer

TABLE = "table"
"""The account of the table's cash."""


def player_account(player: str) -> str:
    """The account of a player."""
    return f"player:{player}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Lines and transfers of one coup, the order of payment, and the stakes that live on into the next coup."""

    lines: tuple[Line, ...]
    transfers: tuple[Transfer, ...]
    order: tuple[tuple[str, ...], ...] = ()
    """Groups of winning stake ids in order of payment, free inside a group; empty groups left out."""
    player_order: tuple[tuple[str, ...], ...] = ()
    """Groups of players in order of payment, where the text pays player by player."""
    stay: tuple[Stake, ...] = ()
    """Stakes that lie on the layout for the next coup (winners not withdrawn, pushes, carried stakes)."""


def line(stake: Stake, status: str, net: Fraction | int | None) -> Line:
    """The line of a stake with this net result (None = pending: nothing is returned yet)."""
    exact = None if net is None else Fraction(net)
    return Line(
        id=stake.id,
        player=stake.player,
        tableau=stake.tableau,
        type=stake.type,
        on=stake.on,
        stake=stake.cents,
        returned=None if net is None else Fraction(stake.cents + net),
        net=exact,
        status=status,
    )


def transfers(lines: Iterable[Line]) -> tuple[Transfer, ...]:
    """The money that the lines move between the players and the table (their sum over all accounts is zero)."""
    moved = []
    for entry in lines:
        if entry.net:
            account, why = player_account(entry.player), f"{entry.status} {entry.id}"
            wins = entry.net.numerator > 0  # cheaper than to compare fractions
            source, target, amount = (TABLE, account, entry.net) if wins else (account, TABLE, -entry.net)
            moved.append(Transfer(source=source, target=target, cents=amount, why=why, tableau=entry.tableau))
    return tuple(moved)


def straight(layout: Layout, stakes: Sequence[Stake], results: Collection[int | str]) -> Settlement:
    """Every stake wins what its row pays, and stays, or is lost whole; no order of payment (boule, vingt-trois)."""
    lines, stay = [], []
    for stake in stakes:
        spot = layout.find(stake.type, stake.on)
        assert spot is not None, "a game accepts only bets of its layout"
        if spot.wins.isdisjoint(results):
            lines.append(line(stake, "lose", -stake.cents))
        else:
            lines.append(line(stake, "win", stake.cents * layout.kind(spot).pays))
            stay.append(stake)
    return Settlement(lines=tuple(lines), transfers=transfers(lines), stay=tuple(stay))


def net_by_player(lines: Iterable[Line]) -> dict[str, Fraction | None]:
    """Each player's net over his lines; None while one of them is pending."""
    nets: defaultdict[str, list[Fraction | None]] = defaultdict(list)
    for entry in lines:
        nets[entry.player].append(entry.net)
    return {
        player: None if None in all_nets else sum((net for net in all_nets if net is not None), Fraction())
        for player, all_nets in nets.items()
    }


def groups_by_type(winners: Sequence[Line], walk: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Winning ids grouped along `walk` (groups of bet types in order of payment), empty groups left out."""
    return tuple(group for types in walk if (group := tuple(entry.id for entry in winners if entry.type in types)))
