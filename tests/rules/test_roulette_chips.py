"""Colour chips at the roulettes américaine and anglaise: their value, equal pieces, value chips, marks, gains."""

from __future__ import annotations

from typing import Any

import pytest

from rules.decisions import Announce, Breach, Phase, Refused, StakeAccepted, StakeRefused
from rules.facts import Origin
from rules.games.roulette.variants import AmericaineOptions, AnglaiseOptions
from rules.series import markers
from tests.rules.playbook import CCW, CW
from tests.rules.wheels import PERSON, Wheel, americaine, anglaise, doubtful, faits, francaise, lying, played

MINIMUM = 500
BOTH = pytest.mark.parametrize(
    ("make", "value", "boxes"),
    [(americaine, "R-RA-24", "R-RA-02"), (anglaise, "R-AN-27", "R-AN-02")],
    ids=["americaine", "anglaise"],
)


def give(game: Wheel, colour: str, value: str = "minimum", player: str = "J1") -> str:
    """The player receives (or gives back) a series; the code of the refusal, empty when it was done."""
    game.choose(colour, value, player)
    refusals = game.told(Refused)
    assert [entry.code for entry in game.told(Announce)] == [entry.code for entry in refusals] or not refusals
    return refusals[0].code if refusals else ""


def jetons(game: Wheel, spot: str, n: int, player: str = "J1", **more: Any) -> StakeAccepted | StakeRefused:
    game.chip(spot, 0, player, jetons=n, **more)
    return next(entry for entry in game.last if isinstance(entry, StakeAccepted | StakeRefused))


# --- the value of a chip ---------------------------------------------------------------------------------------------


@BOTH
def test_t25_nothing_said_is_the_minimum_and_twenty_times_it_the_most(make: Any, value: str, boxes: str) -> None:
    """T-25: minimum 5: a chip is worth 5; 100 is allowed, 120 is not (R-RA-24, R-AN-27)."""
    del boxes
    game = make()
    assert jetons(game, "rouge", 3, "J9").cents == 3 * MINIMUM  # no marker is known: the minimum
    assert give(game, "bleu") == ""
    assert jetons(game, "plein:17", 1).cents == MINIMUM
    assert give(game, "rouge", "10000", "J2") == ""
    assert jetons(game, "plein:17", 1, "J2").cents == 10_000
    for refused in ("12000", "499", "0", "cinq"):
        assert give(game, "vert", refused, "J3") == "valeur_hors_limites"
        assert game.one(Refused).requirement == value
    assert markers(game.state) == {
        "bleu": {"player": "J1", "cents": MINIMUM},
        "rouge": {"player": "J2", "cents": 10_000},
    }
    game.chip("plein:17", 700, "J1", chip="bleu")
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("jetons_entiers", value)


def test_t25_at_the_anglaise_another_value_is_another_colour() -> None:
    """R-AN-28: the old chips are changed first, none of them lies on the layout, then a new colour."""
    game = anglaise()
    give(game, "bleu", "1000")
    jetons(game, "rouge", 2)
    assert give(game, "bleu", "2000") == "serie_a_changer"
    assert give(game, "vert", "2000") == "serie_a_changer"
    assert give(game, "bleu", "rendue") == "jetons_sur_le_tapis"
    game.take("rouge", 0, jetons=2)
    assert lying(game) == []
    assert give(game, "vert", "rendue") == "serie_non_tenue"
    assert give(game, "bleu", "rendue") == ""
    assert give(game, "bleu", "2000") == "nouvelle_couleur"
    assert give(game, "bleu", "2000", "J2") == ""  # to another player it is a new colour
    assert give(game, "vert", "2000") == ""
    assert give(game, "vert", "rendue") == ""
    assert give(game, "vert", "2000") == ""  # the same value: he only comes back


@pytest.mark.parametrize(("make", "fits"), [(americaine, True), (anglaise, False)], ids=["americaine", "anglaise"])
def test_t25_who_gave_a_colour_back_does_not_play_it_at_the_minimum(make: Any, *, fits: bool) -> None:
    """R-AN-28: nor is it worth something else when nobody was told that he has it again."""
    game = make()
    give(game, "bleu", "2000")
    give(game, "bleu", "rendue")
    assert isinstance(jetons(game, "plein:17", 1, chip="bleu"), StakeAccepted) is fits
    if not fits:
        assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("nouvelle_couleur", "R-AN-28")
    assert isinstance(jetons(game, "plein:18", 1, "J2", chip="bleu"), StakeAccepted)
    assert isinstance(jetons(game, "plein:17", 1, chip="vert"), StakeAccepted)


def test_r_ra_24_at_the_americaine_a_series_is_given_back_before_it_has_another_value() -> None:
    game = americaine()
    give(game, "bleu", "1000")
    assert give(game, "bleu", "2000") == "serie_a_changer"
    assert give(game, "bleu", "rendue") == ""
    assert give(game, "bleu", "2000") == ""


def test_chips_that_count_as_the_minimum_bind_the_player_until_they_are_taken_back() -> None:
    game = americaine()
    jetons(game, "plein:17", 1)
    assert give(game, "bleu", "2000") == "serie_a_changer"
    game.take("plein:17", 0, jetons=1)
    assert give(game, "bleu", "2000") == ""


@BOTH
def test_a_colour_is_one_player_s_and_has_a_box(make: Any, value: str, boxes: str) -> None:
    game = make(couleurs=tuple(f"c{n}" for n in range(8)))
    assert give(game, "mauve") == "jeton_inconnu"
    for n in range(8):
        assert give(game, f"c{n}", player=f"J{n}") == ""
    assert give(game, "c0", player="J8") == "couleur_prise"
    game.chip("rouge", 500, "J1", chip="c0")
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("couleur_d_un_autre", value)
    game.chip("rouge", 500, "J8", chip="c0")
    assert game.one(StakeRefused).code == "couleur_d_un_autre"
    game.chip("rouge", 500, "J1", chip="mauve")
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("jeton_inconnu", boxes)
    game.chip("rouge", 500, "J1", chip="c1")
    assert game.one(StakeAccepted).cents == 500


def test_r_an_03_the_additional_series_needs_a_free_compartment() -> None:
    game = anglaise(couleurs=tuple(f"c{n}" for n in range(7)), couleur_additionnelle="or")
    for n in range(7):
        give(game, f"c{n}", player=f"J{n}")
    assert give(game, "or", player="J7") == "plus_de_boite"
    give(game, "c3", "rendue", "J3")
    assert give(game, "or", player="J3") == ""
    game.chip("rouge", 500, "J3", chip="c3")  # another colour than his
    assert game.one(StakeRefused).code == "couleur_d_un_autre"


def test_a_chip_of_a_free_colour_is_played_by_whoever_has_none() -> None:
    game = americaine()
    assert jetons(game, "rouge", 2, chip="bleu").cents == 1000


def test_r_ra_02_r_an_02_as_many_colours_as_the_table_has_boxes() -> None:
    names = tuple(f"c{n}" for n in range(11))
    for options, most in ((AmericaineOptions, 10), (AnglaiseOptions, 8)):
        assert len(options().couleurs) == most
        with pytest.raises(ValueError, match="couleurs: 11 series"):
            options(couleurs=names)
    with pytest.raises(ValueError, match="couleurs: 6 series; 7 to 8"):
        AnglaiseOptions(couleurs=names[:6])
    for wrong in ("", "valeur", "plaque_vingt", "c1", "a/b"):
        with pytest.raises(ValueError, match="must name each colour once"):
            AmericaineOptions(couleurs=("c1", wrong))
    with pytest.raises(ValueError, match="must name each colour once"):
        AnglaiseOptions(couleur_additionnelle="bleu")


def test_series_are_given_at_an_open_table_only() -> None:
    game = anglaise()
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert give(game, "bleu") == "table_fermee"
    game.command("choice", player="J1", what="bleu", value="1000")
    assert game.one(Refused).code == "table_fermee"
    game.command("attest", what="series", role="chef")
    game.command("open")
    game.command("choice", player="J1", what="bleu", value=True, role="croupier")
    assert game.one(Refused).code == "commande_impossible"
    game.command("choice", player="J1", what="bleu", value=1000, role="croupier")
    assert game.codes() == ["serie_attribuee"]


def test_a_game_without_colour_chips_counts_none() -> None:
    game = francaise()
    game.chip("rouge", 0, jetons=3)
    assert game.one(StakeRefused).code == "montant_impossible"
    game.choose("bleu", "1000")
    assert game.ignored


def test_a_stake_by_command_is_money_or_chips_not_both() -> None:
    game = americaine()
    game.command("stake", spot="rouge", jetons=2, chip="bleu", player="J1", role="croupier")
    assert game.one(StakeAccepted).cents == 1000
    game.command("stake", spot="rouge", jetons=1, player="J1", remove=True, role="croupier")
    assert lying(game) == [("J1", "rouge", 500, "")]
    for args in ({"cents": 500, "jetons": 1}, {}, {"jetons": "x"}, {"cents": 500, "chip": ""}):
        game.command("stake", spot="rouge", player="J1", role="croupier", **args)
        assert game.one(Refused).code == "commande_impossible"
    game.command("stake", spot="rouge", player="J1", jetons=0, role="croupier")
    assert game.one(Refused).code == "montant_impossible"


def test_other_limits_take_away_the_markers_that_they_do_not_allow() -> None:
    game = anglaise()
    give(game, "bleu", "500", "J1")
    give(game, "vert", "2000", "J2")
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("attest", what="encaisse")
    game.command("open", minimum_cents=1000)
    assert game.one(Refused).requirement == "R-AN-09"  # at the beginning of each partie
    game.command("attest", what="series", role="chef")
    game.command("open", minimum_cents=1000)
    assert game.said("serie_a_convertir")
    assert markers(game.state) == {"vert": {"player": "J2", "cents": 2000}}


def test_r_an_29_the_end_of_the_seance_converts_every_series() -> None:
    game = anglaise()
    give(game, "bleu", "500", "J1")
    give(game, "vert", "2000", "J2")
    give(game, "vert", "rendue", "J2")
    game.command("attest", what="couvercle", role="chef")
    game.command("close", end_of_seance=True)
    assert [entry.code for entry in game.told(Announce)].count("serie_a_convertir") == 1
    assert game.state.series == ()


# --- equal pieces ----------------------------------------------------------------------------------------------------


def test_t26_unequal_pieces_are_noted_at_the_americaine() -> None:
    """T-26: 2 chips on 17 and 3 on cheval 17-20 are flagged, 2 and 2 are fine (R-RA-25)."""
    for pieces, reasons in ((3, ["pieces_inegales"]), (2, [])):
        game = americaine()
        jetons(game, "plein:17", 2)
        jetons(game, "cheval:17-20", pieces)
        assert game.told(Breach) == []  # until the close nobody knows how the stakes will lie
        faits(game)
        assert game.reasons == reasons
        game.chance(17)
        assert [(b.requirement, b.code) for b in game.ended().reasons] == [("R-RA-25", code) for code in reasons]
        assert game.paid() == [("plein", "win", 35_000), ("cheval", "win", 17 * 500 * pieces)]


def test_t26_they_need_not_be_equal_at_the_anglaise() -> None:
    game = anglaise()
    jetons(game, "plein:17", 2)
    jetons(game, "cheval:17-20", 3)
    faits(game)
    assert game.reasons == []


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (("plein:17", 1), ("plein:20", 2), False),  # single numbers among themselves
        (("cheval:17-20", 1), ("cheval:1-2", 2), True),  # no number in common
        (("sixain:1-2-3-4-5-6", 1), ("cinq:0-00-1-2-3", 2), False),
        (("plein:17", 1), ("rouge", 2), True),  # not a bet on single numbers
        (("plein:1", 1), ("douzaine:1-2-3-4-5-6-7-8-9-10-11-12", 2), True),
    ],
)
def test_r_ra_25_which_bets_are_linked(first: tuple[str, int], second: tuple[str, int], *, equal: bool) -> None:
    game = americaine()
    for spot, n in (first, second):
        jetons(game, spot, n)
    jetons(game, "plein:17", 9, "J2")  # another player's are his own
    faits(game)
    assert (game.reasons == []) is equal


def test_r_ra_25_linked_stakes_stay_below_the_maximum_on_a_plein() -> None:
    for cents, reasons in ((10_000, []), (10_500, ["pieces_au_dessus_du_plein"])):
        game = americaine()
        for spot in ("cheval:17-20", "carre:16-17-19-20"):
            game.chip(spot, cents)
        faits(game)
        assert game.reasons == reasons
    game = americaine()
    for spot in ("cheval:17-20", "carre:1-2-4-5"):
        game.chip(spot, 10_500)
    faits(game)
    assert game.reasons == []


def test_r_ra_25_the_house_may_refuse_unequal_pieces() -> None:
    """A person tells whole stakes, judged at once; a reader tells chip by chip, judged at the close."""
    game = americaine(regle_pieces_egales="bloquer")
    jetons(game, "plein:17", 2, origin=PERSON)
    assert jetons(game, "cheval:17-20", 3, origin=PERSON).cents == 1500
    refused = game.one(StakeRefused)
    assert (refused.code, refused.requirement, refused.spot) == ("pieces_inegales", "R-RA-25", "cheval:17-20")
    assert isinstance(jetons(game, "cheval:17-20", 2, origin=PERSON), StakeAccepted)
    game = americaine(regle_pieces_egales="bloquer")
    jetons(game, "plein:17", 2, origin=Origin.SENSOR)
    assert isinstance(jetons(game, "cheval:17-20", 1, origin=Origin.SENSOR), StakeAccepted)
    faits(game)
    assert [entry.spot for entry in game.all if isinstance(entry, StakeRefused)] == ["cheval:17-20"]
    assert (game.reasons, lying(game)) == ([], [("J1", "plein", 1000, "")])
    with pytest.raises(ValueError, match="regle_pieces_egales: 'x' is not one of bloquer, signaler"):
        AmericaineOptions(regle_pieces_egales="x")  # type: ignore[arg-type]


def test_r_ra_25_a_person_is_told_nothing_before_the_close_where_it_is_only_noted() -> None:
    game = americaine()
    jetons(game, "plein:17", 2, origin=PERSON)
    assert isinstance(jetons(game, "cheval:17-20", 3, origin=PERSON), StakeAccepted)


# --- value chips, plaques, marks -------------------------------------------------------------------------------------


def test_t24_value_chips_at_the_anglaise() -> None:
    """T-24: a plaque of 50 on plein 17 is rejected, on rouge accepted (R-AN-23)."""
    game = anglaise()
    game.chip("plein:17", 5000, chip="valeur")
    refused = game.one(StakeRefused)
    assert (refused.code, refused.requirement) == ("valeur_hors_simples", "R-AN-23")
    game.chip("rouge", 5000, chip="valeur")
    assert game.one(StakeAccepted).cents == 5000
    assert give(game, "bleu") == ""  # value chips keep their value


def test_t24_the_attested_exception() -> None:
    """R-AN-24: for this coup, and noted with its result."""
    game = anglaise()
    game.say("change_impossible")
    assert game.breach().requirement == "R-AN-24"
    game.chip("plein:17", 5000, chip="valeur")
    assert game.one(StakeAccepted).cents == 5000
    game.chip("plein:17", 5000, chip="mauve")
    assert game.one(StakeRefused).code == "jeton_inconnu"
    played(game, 17)
    assert [b.code for b in game.ended().reasons] == ["change_impossible"]
    game.chip("plein:17", 5000, chip="valeur")
    assert game.one(StakeRefused).code == "valeur_hors_simples"
    faits(game, CCW)
    game.say("change_impossible")
    assert game.ignored  # after rien ne va plus there is nothing left to change


def test_r_an_24_the_exception_may_begin_the_next_coup() -> None:
    game = played(anglaise(), 17)
    assert game.is_in(Phase.REGLEMENT)
    game.say("change_impossible")
    assert (game.state.coup_no, game.reasons) == (2, ["change_impossible"])


def test_value_chips_lie_anywhere_at_the_americaine() -> None:
    game = americaine()
    game.chip("plein:17", 5000, chip="valeur")
    assert game.one(StakeAccepted).cents == 5000
    game.chip("plein:17", 0, chip="valeur", jetons=3)  # how many tells nothing of chips that bear their value
    assert game.one(StakeRefused).code == "montant_impossible"


def test_r_an_05_a_plaque_is_worth_twenty_of_the_player_s_chips() -> None:
    game = anglaise(plaques_vingt=True)
    give(game, "bleu", "1000")
    assert jetons(game, "rouge", 2, chip="plaque_vingt").cents == 40_000
    assert jetons(game, "plein:17", 1, chip="plaque_vingt").cents == 20_000
    assert game.one(StakeRefused).requirement == "R-AN-23"
    game = anglaise()
    assert jetons(game, "rouge", 1, chip="plaque_vingt").cents == 10_000
    assert game.one(StakeRefused).code == "jeton_inconnu"


def test_r_an_04_a_chip_with_a_foreign_mark_is_refused() -> None:
    game = anglaise(marque="A1")
    game.chip("rouge", 500, chip="B7/bleu")
    refused = game.one(StakeRefused)
    assert (refused.code, refused.requirement) == ("marque_etrangere", "R-AN-04")
    for chip in ("A1/bleu", "bleu"):  # a reader that tells no mark has nothing to say
        game.chip("rouge", 500, chip=chip)
        assert game.told(StakeAccepted)
    game = anglaise()  # not followed
    game.chip("rouge", 500, chip="B7/bleu")
    assert game.told(StakeAccepted)


def test_colour_chips_under_value_chips_are_not_forgotten() -> None:
    game = anglaise()
    give(game, "bleu", "1000")
    jetons(game, "rouge", 1)
    game.chip("rouge", 5000, chip="valeur")
    assert give(game, "bleu", "rendue") == "jetons_sur_le_tapis"


# --- payment ---------------------------------------------------------------------------------------------------------


def test_r_ra_27_29_gains_are_announced_in_detail_player_by_player_in_his_own_chips() -> None:
    game = americaine()
    give(game, "bleu", "1000", "J2")
    jetons(game, "plein:17", 1, "J1")
    jetons(game, "noir", 3, "J2")
    jetons(game, "plein:17", 1, "J2")
    game.chip("cheval:17-20", 1500, "J1")
    game.chip("colonne:" + "-".join(str(n) for n in range(2, 37, 3)), 500, "J1")
    game.chip("rouge", 500, "J3")
    played(game, 17)
    said = [entry.text for entry in game.told(Announce) if entry.code == "gains"]
    assert said == [
        "J1 gagne : colonne 2-35 1000 centimes, cheval 17-20 25500 centimes, plein 17 17500 centimes",
        "J2 gagne : noir 3000 centimes (3 jetons bleu), plein 17 35000 centimes (35 jetons bleu)",
    ]


def test_r_ra_27_a_doubtful_stake_that_counts_after_all_is_announced_too() -> None:
    game = faits(americaine())
    name = doubtful(game, "plein:17", 500)
    game.chance(17)
    assert not game.said("gains")
    game.command("resolve", role="chef", **{"stake": name, "as": "accepted"})
    assert [e.text for e in game.told(Announce)] == ["J2 gagne : plein 17 17500 centimes"]


def test_r_an_31_half_a_cent_is_told_as_it_is() -> None:
    game = anglaise()
    game.chip("deux_douzaines:" + "-".join(str(n) for n in range(1, 25)), 501)
    played(game, 17)
    assert [e.text for e in game.told(Announce) if e.code == "gains"] == [
        "J1 gagne : deux douzaines 1-24 501/2 centimes"
    ]


# --- the croupier's piles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "requirement"), [(americaine, "R-RA-06"), (anglaise, "R-AN-17")])
def test_r_ra_06_r_an_17_piles_are_rebuilt_before_each_launch(make: Any, requirement: str) -> None:
    game = make(employe_assistant=False)
    played(game, 17)
    assert game.ended().reasons == ()  # nothing to rebuild yet
    game.say("piles_reconstituees")
    assert game.said("piles_reconstituees")
    faits(game, CCW)
    game.say("piles_reconstituees")
    assert game.ignored
    game.chance(4)
    assert game.ended().reasons == ()
    faits(game, CW)
    game.chance(5)
    assert [(b.code, b.requirement) for b in game.ended().reasons] == [("piles_non_reconstituees", requirement)]
    game = make()
    played(game, 17)
    played(game, 18, CCW)
    assert game.ended().reasons == ()


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "most", "requirement"), [(americaine, 7, "R-RA-03"), (anglaise, 8, "R-AN-06")])
def test_r_ra_03_r_an_06_seats(make: Any, most: int, requirement: str) -> None:
    game = make()
    for n in range(most):
        game.chip("rouge", 500, f"J{n}")
        assert not game.told(Breach)
    game.chip("rouge", 500, "J99")
    assert (game.breach().code, game.breach().requirement) == ("trop_de_joueurs", requirement)


def test_r_an_11_a_hippodrome_needs_a_chef_de_table() -> None:
    game = anglaise(hippodrome=True)
    assert game.one(Refused).text == "Attestation manquante : chef_de_table (chef)"
    game.command("attest", what="chef_de_table", role="chef")
    game.command("open")
    assert game.is_in(Phase.MISES_OUVERTES)
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("attest", what="series", role="chef")
    game.command("open")  # the next partie: he must be there again
    assert game.one(Refused).text == "Attestation manquante : chef_de_table (chef)"


def test_r_an_09_the_series_are_complete_before_the_opening() -> None:
    game = anglaise()
    game.command("attest", what="couvercle", role="chef")
    game.command("close", end_of_seance=True)
    game.command("open")
    assert game.one(Refused).text == "Attestation manquante : series (chef)"
