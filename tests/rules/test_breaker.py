"""What broke the law once: every way that was found to lose money, a direction, a stake or a person's word."""

from __future__ import annotations

from typing import Any

import pytest

from controller.codec import decode_state, encode_state
from rules.decisions import (
    Breach,
    CoupEnded,
    Offer,
    Phase,
    Refused,
    Settled,
    StakeAccepted,
    StakeRefused,
    Status,
)
from rules.facts import Direction, SpinStopped
from rules.games.roulette.variants import FrancaiseOptions
from tests.rules.playbook import CCW, CW, MS
from tests.rules.wheels import (
    PER_TURN,
    PERSON,
    Wheel,
    doubtful,
    faits,
    francaise,
    lying,
    played,
    roue,
    spun,
)

# --- stakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cents", [0, -1_000_000])
def test_taking_less_than_nothing_is_no_way_to_stake(cents: int) -> None:
    game = francaise()
    game.chip("rouge", 500)
    game.take("rouge", cents)
    assert game.ignored
    game.command("stake", spot="rouge", cents=cents, player="J1", remove=True)
    assert game.one(Refused).code == "sans_effet"
    assert lying(game) == [("J1", "rouge", 500, "")]


@pytest.mark.parametrize("remove", ["false", 1, None, []])
def test_remove_is_true_or_false_and_nothing_else(remove: object) -> None:
    game = francaise()
    game.chip("rouge", 1000)
    game.command("stake", spot="rouge", cents=500, player="J1", remove=remove)
    assert game.one(Refused).code == "commande_impossible"
    assert lying(game) == [("J1", "rouge", 1000, "")]


def test_a_command_that_says_nothing_begins_no_coup() -> None:
    game = played(francaise(), 3)
    game.command("stake", spot="rouge")
    assert game.one(Refused).code == "commande_impossible"
    assert game.is_in(Phase.REGLEMENT)
    game.command("stake", spot="rouge", cents=500, player="J1")
    assert game.is_in(Phase.MISES_OUVERTES)


def test_a_free_stake_beside_one_in_prison_can_be_taken() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    played(game, 0)
    game.choose("zero", "prison")
    game.say("faites_vos_jeux")
    game.chip("rouge", 500)
    game.take("rouge", 500)
    assert not game.told(Breach)
    assert lying(game) == [("J1", "rouge", 1000, "prison")]


def test_every_chip_that_came_after_a_call_told_late_is_pushed_back() -> None:
    game = francaise()
    for second in (1, 2, 3):
        game.chip("rouge", 500, at_ns=second * 1000 * MS)
    game.say("rien_ne_va_plus", at_ns=1500 * MS)
    assert [entry.cents for entry in game.told(StakeRefused)] == [1000]
    assert lying(game) == [("J1", "rouge", 500, "")]


def test_chips_in_time_late_and_unclear_on_one_spot() -> None:
    game = francaise()
    game.chip("rouge", 500, at_ns=1000 * MS)
    game.chip("rouge", 600, at_ns=1490 * MS, until_ns=1510 * MS)
    game.chip("rouge", 700, at_ns=2000 * MS)
    game.say("rien_ne_va_plus", at_ns=1500 * MS)
    assert [entry.cents for entry in game.told(StakeRefused)] == [700]
    assert [entry.stake.cents for entry in game.state.doubts] == [600]
    assert lying(game) == [("J1", "rouge", 500, "")]


def test_chips_taken_again_are_not_pushed_back_a_second_time() -> None:
    game = francaise()
    game.chip("rouge", 500, at_ns=1000 * MS)
    game.chip("rouge", 3000, at_ns=2000 * MS)
    game.take("rouge", 1000)
    assert lying(game) == [("J1", "rouge", 2500, "")]
    game.say("rien_ne_va_plus", at_ns=1500 * MS)
    assert [entry.cents for entry in game.told(StakeRefused)] == [2000]
    assert lying(game) == [("J1", "rouge", 500, "")]


def test_more_chips_taken_than_lay_there_leave_nothing_and_owe_nothing() -> None:
    game = francaise()
    game.chip("rouge", 500, at_ns=1000 * MS)
    game.chip("rouge", 3000, at_ns=2000 * MS)
    game.take("rouge", 3600)
    game.say("rien_ne_va_plus", at_ns=1500 * MS)
    assert lying(game) == []
    assert not game.told(StakeRefused)


def test_the_maximum_counts_what_is_doubtful_and_what_was_admitted() -> None:
    game = francaise()
    game.chip("plein:17", 10_000)  # the maximum is 15 000
    faits(game)
    first = doubtful(game, "plein:17", 5_000, player="J1")
    assert game.state.coup is not None
    closed = game.state.coup.closed_at_ns
    game.chip("plein:17", 500, at_ns=closed, until_ns=closed)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("au_dessus_du_maximum", "R-RF-31")
    game.command("resolve", role="chef", stake=first, **{"as": "accepted"})
    game.say("jeton_dans_le_cylindre")
    game.chip("plein:17", 500)
    assert game.one(StakeRefused).code == "au_dessus_du_maximum"
    game.take("plein:17", 2_000)
    assert lying(game) == [("J1", "plein", 8000, ""), ("J1", "plein", 5000, "")]
    game.take("plein:17", 12_000)  # from both of his stakes there
    assert lying(game) == [("J1", "plein", 1000, "")]


@pytest.mark.parametrize(("start", "requirement"), [(roue, "R-RC-02"), (francaise, "R-RF-04")])
def test_a_tableau_that_the_apparatus_has_not_is_refused_by_its_own_law(start: Any, requirement: str) -> None:
    game = start()
    game.chip("rouge", 500, tableau=3)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("tableau_inconnu", requirement)


def test_r_rc_17_a_stake_under_the_minimum_of_its_colour() -> None:
    game = roue()
    game.chip("rouge", 199, origin=PERSON)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("sous_le_minimum", "R-RC-17")


# --- doubtful stakes -------------------------------------------------------------------------------------------------


def test_a_doubtful_stake_of_a_void_draw_lies_there_for_the_next_one() -> None:
    game = roue()
    game.spin(CW)
    game.slow()
    game.call()
    doubtful(game, "rouge", 400)
    game.stop(PER_TURN)
    assert game.ended().status is Status.VOID
    assert game.one(StakeAccepted).cents == 400
    assert lying(game) == [("J2", "rouge", 400, "")]


def test_a_doubtful_stake_admitted_while_players_choose_has_its_choice() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    faits(game)
    name = doubtful(game, "noir", 1000)
    game.drop()
    game.chance(0)
    game.command("resolve", role="chef", stake=name, **{"as": "accepted"})
    assert game.one(Offer).player == "J2"
    game.choose("zero", "retire")
    game.choose("zero", "prison", player="J2")
    assert game.paid() == [("rouge", "partial", -500), ("noir", "prison", None)]
    assert lying(game) == [("J2", "noir", 1000, "prison")]


def test_a_stake_settled_on_its_own_is_part_of_a_revision() -> None:
    game = faits(francaise())
    name = doubtful(game, "noir", 1000)
    game.drop()
    game.chance(17)
    game.command("resolve", role="chef", stake=name, **{"as": "accepted"})
    assert game.paid() == [("noir", "win", 1000)]
    game.read(18, "console")
    game.command("resolve", role="chef", outcome=18, **{"as": "valid"})
    assert game.paid() == [("noir", "lose", -1000)]


def test_a_stake_settled_on_its_own_is_part_of_a_revision_also_when_the_next_coup_has_begun() -> None:
    game = faits(francaise())
    name = doubtful(game, "noir", 1000)
    game.drop()
    game.chance(17)
    game.say("faites_vos_jeux")
    game.command("resolve", role="chef", stake=name, **{"as": "accepted"})
    assert game.paid() == [("noir", "win", 1000)]
    game.read(18, "console")
    game.command("resolve", role="chef", outcome=18, **{"as": "valid"})
    assert game.paid() == [("noir", "lose", -1000)]


# --- a source that contradicts when the next coup has begun ----------------------------------------------------------


def begun() -> Wheel:
    """17 is paid on the word of the sensor alone; a player has begun the next coup with his chips."""
    game = francaise()
    game.chip("noir", 1000)
    game.chip("manque", 1000)
    faits(game).drop()
    game.read(17)
    game.elapse("accord")
    game.chip("noir", 500)
    game.chip("rouge", 700, player="J2")
    assert (game.state.phase, game.state.coup_no) == (Phase.MISES_OUVERTES, 2)
    return game


def test_a_source_that_contradicts_after_the_next_chips_holds_the_paid_coup_anew() -> None:
    game = begun()
    game.state = decode_state(encode_state(game.state), game.table.game)  # a restart in between
    game.read(18, "console")
    assert [(e.player, e.cents, e.code) for e in game.told(StakeRefused)] == [
        ("J1", 500, "table_fermee"),
        ("J2", 700, "table_fermee"),
    ]
    revised = game.ended()
    assert (revised.coup, revised.kind, revised.status, revised.outcome) == (1, "revision", Status.HELD, None)
    assert revised.sources == {"wheel_sensor": 17, "console": 18}
    assert game.is_in(Phase.LITIGE)
    game.command("resolve", role="chef", outcome=18, **{"as": "valid"})
    assert (game.ended().coup, game.paid()) == (1, [("noir", "lose", -1000), ("manque", "win", 1000)])
    game.say("faites_vos_jeux")
    assert (game.state.coup_no, lying(game)) == (2, [("J1", "manque", 1000, "")])


def test_a_source_that_agrees_late_or_repeats_itself_disturbs_no_coup() -> None:
    for value, source in ((17, "console"), (17, "wheel_sensor"), (18, "wheel_sensor"), (99, "console")):
        game = begun()
        game.read(value, source)
        assert game.ignored
        assert (game.state.phase, len(game.state.stakes)) == (Phase.MISES_OUVERTES, 3)


@pytest.mark.parametrize("later", ["spin", "ball", "call", "close"])
def test_what_is_read_once_the_next_draw_has_begun_is_not_about_the_coup_before(later: str) -> None:
    game = begun()
    match later:
        case "spin":
            game.spin(CCW)
        case "ball":
            game.ball(CW)
        case "call":
            game.call()
        case _:
            game.command("attest", what="couvercle", role="chef")
            game.command("close")
    game.read(18, "console")
    assert [ended.kind for ended in game.results] == ["first"]
    assert not game.told(StakeRefused)


def test_a_doubt_is_resolved_in_every_phase_after_the_call() -> None:
    for number, phase in ((None, Phase.JEUX_FAITS), (17, Phase.RESULTAT), (18, Phase.LITIGE)):
        for word, cents in (("accepted", [500]), ("refused", [])):
            game = faits(francaise())
            name = doubtful(game, "noir", 500)
            game.drop()
            if number is not None:
                game.read(17)
            if phase is Phase.LITIGE:
                game.read(18, "console")
            assert game.is_in(phase)
            game.command("resolve", role="chef", stake=name, **{"as": word})
            assert [stake.cents for stake in game.state.stakes] == cents
            assert game.state.doubts == ()
            assert game.is_in(phase)


@pytest.mark.parametrize("later", [[], ["faites_vos_jeux"], ["close"], ["close", "end"]])
def test_a_doubt_outlives_its_coup_its_partie_and_its_seance(later: list[str]) -> None:
    game = faits(francaise())
    name = doubtful(game, "noir", 500)
    game.drop()
    game.chance(17)
    game.command("attest", what="couvercle", role="chef")
    for word in later:
        match word:
            case "faites_vos_jeux":
                game.say(word)
            case "close":
                game.command("close")
            case _:
                game.command("close", end_of_seance=True)
    game.command("resolve", role="chef", stake=name, **{"as": "accepted"})
    assert game.paid() == [("noir", "win", 500)]
    game.command("resolve", role="chef", stake=name, **{"as": "accepted"})
    assert game.one(Refused).code == "mise_inconnue"


# --- a launch that came to nothing -----------------------------------------------------------------------------------


def test_a_spin_that_was_stopped_does_not_make_the_thirteenth_player_go_away() -> None:
    game = roue(max_players=1)
    game.chip("orange", 200)
    game.chip("orange", 200, player="J2")
    game.spin(CW)
    game.stop(10)
    assert game.said("arret_avant_rien_ne_va_plus")
    assert game.reasons == ["trop_de_joueurs"]


def test_r_rc_02_thirteen_winners_are_still_thirteen_in_the_next_coup() -> None:
    game = roue(max_players=1)
    game.chip("rouge", 400)
    game.chip("rouge", 400, player="J2")
    spun(game)
    assert game.paid() == [("rouge", "win", 4000), ("rouge", "win", 4000)]
    game.say("faites_vos_jeux")
    game.spin(CCW)
    game.slow()
    game.call()
    assert (game.breach().code, game.breach().requirement) == ("trop_de_joueurs", "R-RC-02")


def test_what_the_house_wants_held_is_not_healed_by_a_jeton() -> None:
    game = francaise(options=FrancaiseOptions(rota_lanceurs=("A", "B")), raise_to_held=("lanceur_inconnu",))
    faits(game)
    game.say("jeton_dans_le_cylindre")
    assert game.reasons == ["lanceur_inconnu"]
    game.ball(CCW)
    game.call()
    game.chance(3)
    assert game.ended().status is Status.HELD


# --- the sense and what waits for the next coup ----------------------------------------------------------------------


def test_r_gen_07_the_last_sense_is_kept_also_when_it_looks_like_the_same_push() -> None:
    game = francaise()
    game.spin(CW)
    game.command("interrupt")
    game.spin(CCW)  # somebody turns the cylinder while nobody plays
    game.command("resume")
    game.spin(CW)
    assert (game.state.last_direction, game.reasons) == (CW, [])


def test_a_launch_before_the_second_source_has_spoken_is_the_next_coups() -> None:
    game = faits(francaise())
    game.drop()
    game.read(17)
    game.spin(CCW)
    game.ball(CW)
    assert game.ignored
    assert (game.reasons, game.state.phase) == ([], Phase.RESULTAT)
    game.read(17, "console")
    assert game.one(CoupEnded).status is Status.VALID
    assert game.state.coup is not None
    assert (game.state.coup.no, game.state.phase, game.reasons) == (2, Phase.LANCE, [])
    game.due()
    game.call(500)
    game.drop()
    game.chance(5)
    assert (game.ended().coup, game.ended().status, game.ended().direction) == (2, Status.VALID, CCW)


def test_a_ball_that_waited_and_was_lost_is_nobodys() -> None:
    for phase in (Phase.RESULTAT, Phase.CHOIX):
        game = francaise()
        game.chip("rouge", 500)
        faits(game).drop()
        game.read(0)
        if phase is Phase.CHOIX:
            game.read(0, "console")
        game.ball(CW)
        game.lose_ball()
        assert game.ignored
        assert (game.reasons, game.state.phase) == ([], phase)
        assert game.state.waiting_ball is None


@pytest.mark.parametrize("sense", [CW, CCW])
def test_a_cylinder_turned_while_the_partie_was_interrupted_is_of_the_coup_that_goes_on(sense: Direction) -> None:
    """R-GEN-07, R-RF-09."""
    game = played(francaise(), 3, CW)
    game.say("faites_vos_jeux")
    game.command("interrupt")
    game.spin(sense)
    game.command("resume")
    assert game.reasons == (["direction_non_alternee"] if sense is CW else [])
    game.ball(sense.opposite)
    game.due()
    game.call(500)
    game.drop()
    game.chance(5)
    assert game.ended().status is (Status.HELD if sense is CW else Status.VALID)


def test_a_wheel_that_waited_and_came_to_rest_launches_no_coup() -> None:
    for waiting in (Phase.RESULTAT, Phase.REGLEMENT):
        game = roue(sources=("wheel", "console"))
        spun(game)
        if waiting is Phase.REGLEMENT:
            game.read("rouge", "console")
            game.command("interrupt")
        game.spin(CCW)
        game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CCW, travel=200, per_turn=PER_TURN, cell=1))
        assert (game.state.last_direction, game.state.waiting_turn) == (CCW, None)
        if waiting is Phase.RESULTAT:
            game.read("rouge", "console")
        else:
            game.command("resume")
        game.say("faites_vos_jeux")
        assert game.is_in(Phase.MISES_OUVERTES)
        assert game.state.coup is not None
        assert not game.state.coup.launched


def test_a_dispute_forgets_the_ball_that_waited() -> None:
    game = faits(francaise())
    game.drop()
    game.read(17)
    game.spin(CCW)
    game.ball(CW)
    game.read(18, "console")
    assert game.is_in(Phase.LITIGE)
    assert (game.state.last_direction, game.state.waiting_turn, game.state.waiting_ball) == (CCW, None, None)


# --- prison and the cover --------------------------------------------------------------------------------------------


def test_a_stake_in_prison_outlives_void_coups_closings_and_disputes() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    played(game, 0)
    game.choose("zero", "prison")
    faits(game, CCW)
    game.command("void", role="chef", why="fumée")
    assert [(stake.carried, stake.zeros) for stake in game.state.stakes] == [("prison", 1)]
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("open")
    assert game.is_in(Phase.MISES_OUVERTES)
    faits(game, CW)
    game.read(3)
    game.read(4, "console")
    game.command("resolve", role="chef", **{"as": "void"})
    assert lying(game) == [("J1", "rouge", 1000, "prison")]
    played(game, 0, CCW)
    game.choose("zero", "prison")
    game.read(5, "console")  # contradicted: the second zero never was
    game.command("resolve", role="chef", outcome=7, **{"as": "valid"})
    assert game.paid() == [("rouge", "freed", 0)]


def test_r_rf_03_a_cover_signed_for_before_the_ball_ran_is_no_cover() -> None:
    game = francaise()
    game.command("attest", what="couvercle", role="chef")
    played(game, 3)
    game.command("close")
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert game.is_in(Phase.FERME)


def test_r_rf_03_nobody_signs_for_a_cover_while_the_ball_runs() -> None:
    game = faits(francaise())
    game.command("attest", what="couvercle", role="chef")
    assert game.one(Refused).code == "coup_en_cours"
    game.drop()
    game.chance(3)
    game.command("close")
    assert game.one(Refused).code == "attestation_manquante"


def test_chips_that_leave_while_players_choose_are_the_payment() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    game.chip("plein:17", 500)
    played(game, 0)
    for spot, cents in (("plein:17", 500), ("rouge", 500)):
        game.take(spot, cents)
        assert game.ignored
    game.choose("zero", "retire")
    assert game.paid() == [("rouge", "partial", -500), ("plein", "lose", -500)]


# --- the last coup and the end of the seance -------------------------------------------------------------------------


def in_prison(zeros: int) -> Wheel:
    game = francaise()
    game.chip("rouge", 1000)
    game.chip("pair", 500, "J2", tableau=2)
    for sense in (CW, CCW)[:zeros]:
        played(game, 0, sense)
        game.choose("zero", "prison")
        game.choose_at(2, "zero", "prison", "J2")
    game.command("attest", what="couvercle", role="chef")
    return game


@pytest.mark.parametrize(("zeros", "refunds"), [(1, [500, 250]), (2, [250, 125])])
@pytest.mark.parametrize("closed_before", [False, True])
def test_r_rf_28_a_seance_that_ends_after_a_zero_refunds_who_is_in_prison(
    zeros: int, refunds: list[int], *, closed_before: bool
) -> None:
    """Nobody had announced a last coup: the one that drew the zero was it."""
    game = in_prison(zeros)
    if closed_before:
        game.command("close")
        assert [stake.carried for stake in game.state.stakes] == ["prison", "prison"]
    game.command("close", end_of_seance=True)
    assert game.said("fin_de_seance_en_prison")
    assert [(entry.coup, entry.tableau) for entry in game.told(Settled)] == [(zeros, 1), (zeros, 2)]
    assert [line.returned for line in game.lines()] == refunds
    assert [line.status for line in game.lines()] == ["partial", "partial"]
    assert (game.state.seance_open, game.state.stakes) == (False, ())
    assert not game.told(Refused)


def test_prison_waits_over_a_closing_in_the_seance() -> None:
    game = in_prison(1)
    game.command("close")
    game.command("close")
    assert game.one(Refused).code == "deja_fermee"
    game.command("open")
    game.say("dernier_coup")
    played(game, 7, CCW)
    assert [line.status for line in game.lines()] == ["freed", "lose"]


def test_r_rf_28_the_last_coup_may_be_announced_before_it_begins() -> None:
    game = played(francaise(), 3)
    game.say("dernier_coup")
    assert game.said("dernier_coup")
    game.chip("rouge", 1000)
    played(game, 0, CCW)
    assert not game.told(Offer)
    assert game.paid() == [("rouge", "partial", -500)]


def test_r_rf_28_nobody_makes_a_coup_the_last_once_its_result_is_read() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    faits(game).drop()
    game.read(0)
    game.say("dernier_coup")
    assert game.ignored
    game.read(0, "console")
    assert game.one(Offer).player == "J1"
    game.say("dernier_coup")
    assert game.ignored


def test_r_rf_28_a_void_last_coup_is_not_the_last() -> None:
    game = francaise()
    game.chip("rouge", 1000)
    game.say("dernier_coup")
    faits(game)
    game.command("void", role="chef", why="fumée")
    assert game.said("dernier_coup")
    played(game, 0, CCW)
    assert not game.told(Offer)
    assert game.paid() == [("rouge", "partial", -500)]
