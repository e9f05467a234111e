"""Minimum and maximum of the six wheel games in their four times (communs.md §4.4), at the tables that are shipped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from controller.config_check import from_data
from controller.config_file import read_toml, shipped_tables
from controller.errors import ConfigError
from rules.decisions import Breach, Phase, Refused, Severity, StakeRefused
from tests.rules.sitting import Sitting

DECLARED = 200


@dataclass(frozen=True, kw_only=True)
class Regime:
    """What communs.md §4.4 and §5 of the game's page say."""

    minimum: str
    """`seance`: frozen until the next day's séance; `reopen`: by closing, with a new encaisse."""
    frozen: str
    """Requirement of the refusal in mid-séance."""
    multiples: dict[str, tuple[int, int]]
    """Bet type -> least and most multiple of the minimum that its maximum may be."""
    per_player: dict[str, str]
    """Bet type -> requirement of the refusal above its maximum, summed over the tableaux."""
    opening: str = ""
    """Requirement of what must be signed before the table opens; empty = nothing."""
    closing: str = ""
    """The same for its closing."""
    players: tuple[int, str] | None = None
    """How many may play at a tableau, and the requirement that says so."""
    spot: tuple[str, str]
    """A multiple and an even chance (or two colours) of this layout."""
    tableaux: int = 2


SIMPLE = ("rouge", "noir", "pair", "impair", "manque", "passe")


def fixed(**multiples: int) -> dict[str, tuple[int, int]]:
    """Maxima that the text fixes."""
    return {bet: (most, most) for bet, most in multiples.items()}


REGIMES = {
    "boule": Regime(
        minimum="seance",
        frozen="R-BO-16",
        multiples={"plein": (40, 100), **dict.fromkeys(SIMPLE, (200, 500))},
        per_player=dict.fromkeys(("plein", "rouge"), "R-BO-20"),
        opening="R-BO-06",
        players=(12, "R-BO-06"),
        spot=("plein:4", "rouge"),
    ),
    "vingt_trois": Regime(
        minimum="seance",
        frozen="R-VT-18",
        multiples={"plein": (20, 50), "rouge": (100, 250), "noir": (100, 250)},
        per_player=dict.fromkeys(("plein", "rouge"), "R-VT-22"),
        opening="R-VT-06",
        players=(12, "R-VT-06"),
        spot=("plein:13", "rouge"),
    ),
    "roue_de_la_chance": Regime(
        minimum="seance",
        frozen="R-RC-19",
        multiples=fixed(orange=100, vert=50, bleu=25, rouge=12, violet=10, blanc=5, noir=5),
        per_player=dict.fromkeys(("orange", "blanc"), "R-RC-18"),
        opening="R-RC-06",
        players=(12, "R-RC-02"),
        spot=("blanc", "orange"),
        tableaux=1,
    ),
    "roulette_francaise": Regime(
        minimum="reopen",
        frozen="R-RF-34",
        multiples=fixed(
            plein=30,
            cheval=60,
            transversale=100,
            carre=120,
            sixain=200,
            douzaine=500,
            colonne=500,
            deux_douzaines=2000,
            deux_colonnes=2000,
            **dict.fromkeys(SIMPLE, 1000),
        ),
        per_player={"plein": "R-RF-31", "rouge": "R-RF-30"},
        closing="R-RF-03",
        spot=("plein:17", "rouge"),
    ),
    "roulette_americaine": Regime(
        minimum="reopen",
        frozen="R-RA-26",
        multiples=fixed(
            plein=20,
            cheval=40,
            transversale=60,
            carre=80,
            cinq=100,
            sixain=120,
            douzaine=240,
            colonne=240,
            **dict.fromkeys(SIMPLE, 360),
        ),
        per_player={"plein": "R-RA-23", "rouge": "R-RA-22"},
        players=(7, "R-RA-03"),
        spot=("plein:17", "rouge"),
    ),
    "roulette_anglaise": Regime(
        minimum="reopen",
        frozen="R-AN-30",
        multiples=fixed(
            plein=20,
            cheval=40,
            transversale=60,
            carre=80,
            sixain=120,
            douzaine=240,
            colonne=240,
            deux_douzaines=480,
            deux_colonnes=480,
            **dict.fromkeys(SIMPLE, 360),
        ),
        per_player={"plein": "R-AN-26", "rouge": "R-AN-26"},
        players=(8, "R-AN-06"),
        opening="R-AN-09",
        closing="R-AN-01",
        spot=("plein:17", "rouge"),
    ),
}
GAMES = pytest.mark.parametrize("game_id", REGIMES)


class Seance(Sitting):
    """A seance of a game under its regime."""

    def __init__(self, game_id: str) -> None:
        self.regime = REGIMES[game_id]
        super().__init__(game_id, declared_minimum_cents=DECLARED, tableaux=self.regime.tableaux)

    def refused(self, code: str, requirement: str) -> None:
        """The last command was refused for this reason, in words."""
        refusal = self.one(Refused)
        assert (refusal.code, refusal.requirement) == (code, requirement)
        assert refusal.text

    @property
    def in_force(self) -> tuple[int, dict[str, int]]:
        limits = self.state.limits
        assert limits is not None
        return limits.minimum, dict(limits.maxima)


def highest(regime: Regime, minimum: int) -> dict[str, int]:
    return {bet: most * minimum for bet, (_, most) in regime.multiples.items()}


# --- at the opening --------------------------------------------------------------------------------------------------


@GAMES
@pytest.mark.parametrize("minimum", [DECLARED, 300, 1000])
def test_at_the_opening_the_minimum_is_the_declared_one_or_raised(game_id: str, minimum: int) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=minimum)
    assert game.state.phase is Phase.MISES_OUVERTES
    told, maxima = game.in_force
    assert told == minimum
    assert maxima.keys() == game.regime.multiples.keys()
    for bet, (least, most) in game.regime.multiples.items():
        assert least * minimum <= maxima[bet] <= most * minimum, bet


@GAMES
def test_the_table_opens_and_closes_only_with_what_the_text_wants_signed(game_id: str) -> None:
    game = Seance(game_id)
    game.decide()
    for name in ("open", "close"):
        wanted = game.regime.opening if name == "open" else game.regime.closing
        if wanted:
            game.command(name)
            game.refused("attestation_manquante", wanted)
            game.sign(name)
        game.command(name)
        assert not game.told(Refused)


@GAMES
def test_at_the_opening_a_minimum_below_the_declared_one_is_refused(game_id: str) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=DECLARED - 1)
    game.refused("minimum_sous_le_declare", "R-GEN-10")
    assert game.state.limits is None


@GAMES
def test_before_the_opening_the_house_may_change_its_mind(game_id: str) -> None:
    game = Seance(game_id)
    for minimum in (500, DECLARED, 300):
        game.command("limits", minimum_cents=minimum)
        assert game.in_force[0] == minimum
    game.command("limits", minimum_cents=DECLARED - 1)
    game.refused("minimum_sous_le_declare", "R-GEN-10")
    game.open()
    assert game.in_force[0] == 300


# --- during the partie, and after closing and opening again ----------------------------------------------------------


@GAMES
@pytest.mark.parametrize("minimum", [DECLARED, 600], ids=["lower", "raise"])
def test_during_the_partie_the_minimum_never_changes(game_id: str, minimum: int) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=300)
    before = game.in_force
    game.command("limits", minimum_cents=minimum)
    game.refused("minimum_fige" if game.regime.minimum == "seance" else "fermer_d_abord", game.regime.frozen)
    assert game.in_force == before
    game.command("limits", minimum_cents=300)  # what stands may be said again
    assert not game.told(Refused)


@GAMES
@pytest.mark.parametrize("minimum", [DECLARED, 600], ids=["lower", "raise"])
def test_closed_and_opened_again_the_minimum_changes_where_the_text_says_so(game_id: str, minimum: int) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=300)
    before = game.in_force
    game.close()
    game.sign("open")  # what each partie needs anew
    for name in ("limits", "open"):
        game.command(name, minimum_cents=minimum)
        frozen = game.regime.minimum == "seance"
        game.refused("minimum_fige" if frozen else "attestation_manquante", game.regime.frozen)
    assert game.in_force == before
    if game.regime.minimum == "seance":
        game.command("attest", what="encaisse")  # a new encaisse changes nothing here
        game.command("open", minimum_cents=minimum)
        game.refused("minimum_fige", game.regime.frozen)
        game.open()
        assert (game.state.phase, game.in_force) == (Phase.MISES_OUVERTES, before)
        return
    game.sign("reopen")
    game.command("open", minimum_cents=DECLARED - 1)
    game.refused("minimum_sous_le_declare", "R-GEN-10")
    game.open(minimum_cents=minimum)
    assert (game.state.seance, game.state.partie) == (1, 2)
    assert game.in_force == (minimum, highest(game.regime, minimum))
    game.close()
    game.open(minimum_cents=300)
    game.refused("attestation_manquante", game.regime.frozen)  # the signature served once


@GAMES
def test_closed_and_opened_again_with_what_stood_nothing_more_is_needed(game_id: str) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=300)
    before = game.in_force
    game.close()
    game.open()
    assert (game.state.phase, game.in_force) == (Phase.MISES_OUVERTES, before)


@GAMES
@pytest.mark.parametrize("minimum", [DECLARED, 600], ids=["lower", "raise"])
def test_the_next_seance_begins_anew(game_id: str, minimum: int) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=300)
    game.close(end_of_seance=True)
    assert game.state.limits is None
    game.open(minimum_cents=minimum)
    assert (game.state.seance, game.in_force) == (2, (minimum, highest(game.regime, minimum)))


@GAMES
def test_an_interruption_is_no_closing(game_id: str) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=300)
    game.command("interrupt")
    game.command("limits", minimum_cents=600)
    game.refused("minimum_fige" if game.regime.minimum == "seance" else "fermer_d_abord", game.regime.frozen)


# --- maxima ----------------------------------------------------------------------------------------------------------


@GAMES
def test_the_house_chooses_a_maximum_only_in_the_range_of_the_text(game_id: str) -> None:
    for bet, (least, most) in REGIMES[game_id].multiples.items():
        for cents, allowed in (
            (300 * least - 1, False),
            (300 * least, True),
            (300 * most, True),
            (300 * most + 1, False),
        ):
            game = Seance(game_id)
            game.open(minimum_cents=300, maxima={bet: cents})
            if allowed:
                assert game.in_force[1][bet] == cents
            else:
                refusal = game.one(Refused)
                assert refusal.code in ("maximum_fixe", "maximum_hors_fourchette")
                assert refusal.requirement.startswith("R-")
                assert str(300 * most) in refusal.text


@GAMES
def test_a_maximum_of_no_bet_is_refused(game_id: str) -> None:
    game = Seance(game_id)
    game.open(maxima={"voisins": 1000})
    game.refused("combinaison_inexistante", "R-GEN-10")


@GAMES
def test_maxima_never_change_in_the_seance_but_with_the_minimum(game_id: str) -> None:
    game = Seance(game_id)
    game.open(minimum_cents=300)
    before = game.in_force
    for bet, (least, most) in game.regime.multiples.items():
        game.command("limits", maxima={bet: 300 * least if least < most else 300 * most + 300})
        assert game.one(Refused).requirement.startswith("R-")
    game.close()
    game.sign("reopen")
    for bet, (least, most) in game.regime.multiples.items():
        game.open(maxima={bet: 300 * least if least < most else 300 * most + 300})
        assert game.one(Refused).requirement.startswith("R-")
    assert game.in_force == before


# --- per player and per cylinder -------------------------------------------------------------------------------------


@GAMES
def test_the_maximum_is_for_one_player_over_all_tableaux_of_the_apparatus(game_id: str) -> None:
    game = Seance(game_id)
    game.open()
    last = game.regime.tableaux
    for spot in game.regime.spot:
        bet = spot.partition(":")[0]
        most = game.in_force[1][bet]
        game.chip(spot, most - DECLARED)
        game.chip(spot, DECLARED + 1, tableau=last)
        refusal = game.one(StakeRefused)
        assert (refusal.code, refusal.requirement) == ("au_dessus_du_maximum", game.regime.per_player[bet])
        assert (refusal.player, refusal.tableau, refusal.cents) == ("J1", last, DECLARED + 1)
        assert f"de {most} : 1 de trop" in refusal.text
        game.chip(spot, DECLARED, tableau=last)
        assert not game.told(StakeRefused)
        game.chip(spot, DECLARED)  # not one chip more, on no tableau
        assert game.one(StakeRefused).code == "au_dessus_du_maximum"
        game.chip(spot, most, player="J2", tableau=last)  # another player has his own
        assert not game.told(StakeRefused)


@GAMES
def test_each_chance_has_a_maximum_of_its_own(game_id: str) -> None:
    """No cap on all of a player's stakes together: the maximum of every bet of the layout at once."""
    game = Seance(game_id)
    game.open()
    for spot in game.table.layout.spots.values():
        game.chip(spot.id, game.in_force[1][spot.type])
        assert not game.told(StakeRefused), spot.id


@GAMES
def test_a_stake_under_the_minimum_is_refused_with_its_reason(game_id: str) -> None:
    """By a person at once; from a chip reader, which tells chip after chip, when the bets close."""
    game = Seance(game_id)
    game.open()
    spot = game.regime.spot[1]
    game.command("stake", spot=spot, cents=DECLARED - 1, player="J1")
    refusal = game.one(StakeRefused)
    assert refusal.code == "sous_le_minimum"
    assert refusal.requirement in ("R-GEN-10", "R-RC-17", "R-BO-14", "R-VT-17")
    assert str(DECLARED) in refusal.text
    assert game.one(Refused).requirement == refusal.requirement
    game.command("stake", spot=spot, cents=DECLARED, player="J1")
    assert not game.told(StakeRefused)


@pytest.mark.parametrize(
    ("game_id", "most", "requirement"),
    [
        ("roue_de_la_chance", 1, "R-RC-02"),
        ("roulette_francaise", 2, "R-RF-04"),
        ("roulette_americaine", 2, "R-RA-03"),
        ("roulette_anglaise", 2, "R-AN-06"),
    ],
)
def test_one_tableau_more_than_the_text_allows_is_no_configuration(game_id: str, most: int, requirement: str) -> None:
    data = read_toml(shipped_tables()[game_id.replace("_", "-")])
    data["house"]["tableaux"] = most
    assert from_data(data, "test").house.tableaux == most
    data["house"]["tableaux"] = most + 1
    with pytest.raises(ConfigError, match=rf"(?s)house.tableaux = {most + 1}.*{requirement}"):
        from_data(data, "test")


@GAMES
def test_one_player_more_than_the_text_allows_is_noted(game_id: str) -> None:
    """Where nobody has decided otherwise; at a française any number may play."""
    game = Seance(game_id)
    game.open()
    most, requirement = game.regime.players or (20, "")
    for n in range(most):
        game.chip(game.regime.spot[1], DECLARED, player=f"J{n}")
        assert not game.told(Breach)
    game.chip(game.regime.spot[1], DECLARED, player="one more")
    assert not game.told(StakeRefused)  # noted, never held: the stake stands
    noted = [("trop_de_joueurs", requirement, Severity.NOTED)] if requirement else []
    assert [(b.code, b.requirement, b.severity) for b in game.told(Breach)] == noted
