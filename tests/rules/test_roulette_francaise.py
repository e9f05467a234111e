"""Roulette française: every E, C and D requirement of its spec, the draw, prison over several coups, the order.

| requirement | where it is shown, when not in a test below that bears its name |
|---|---|
| R-RF-07, R-RF-08, R-RF-35, R-RF-37 | attested or not observable, nothing to decide |
| R-RF-11 | test_wheel, the three modes |
| R-RF-12 | test_wheel (late), test_table (late and doubtful stakes) |
| R-RF-14 to R-RF-22 | test_roulette_bets, every bet on every number |
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from controller import config_file
from controller.config_check import from_data
from controller.errors import ConfigError
from rules.bets import Stake
from rules.decisions import (
    AlarmRaised,
    Announce,
    BetsClosed,
    Breach,
    Line,
    Offer,
    Phase,
    PhaseChanged,
    Refused,
    Severity,
    StakeAccepted,
    StakeRefused,
    Status,
)
from rules.facts import BallLaunched, DeviceBack, DeviceLost, Direction, LidClosed, PocketRead, SpinStopped
from rules.game import load
from rules.games.roulette.variants import FRENCH_CYLINDER, FrancaiseOptions
from rules.wheel import WRONG_SENSE, WheelCoup
from tests.rules.playbook import CCW, CW
from tests.rules.wheels import FRANCAISE, Wheel, francaise, table

GAME = load("roulette_francaise")


def rolling(game: Wheel | None = None, cylinder: Any = CW) -> Wheel:
    """The ball runs against the cylinder."""
    game = game or francaise()
    game.spin(cylinder)
    game.ball(cylinder.opposite)
    return game


def faits(game: Wheel | None = None, cylinder: Any = CW) -> Wheel:
    """Rien ne va plus was called in time."""
    game = rolling(game, cylinder)
    game.due()
    game.call(500)
    return game


def coup(game: Wheel, number: int, cylinder: Any) -> Wheel:
    """A whole coup."""
    faits(game, cylinder).drop()
    game.chance(number)
    return game


# --- equipment and options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cylindre": FRENCH_CYLINDER[:-1]}, "cylindre: 36 pockets, missing 26"),
        ({"cylindre": (*FRENCH_CYLINDER[:-1], 32)}, "cylindre: 37 pockets, missing 26"),
        ({"cylindre": (*FRENCH_CYLINDER, "00")}, "cylindre: 38 pockets, missing none"),
        ({"cylindre": (0, 15, 32, *FRENCH_CYLINDER[3:])}, "cylindre: 32 and 19 are neighbours"),
        ({"cylindre": tuple(range(37))}, "cylindre: 10 and 11 are neighbours"),
        ({"valeur_liberee": "tout"}, "valeur_liberee: 'tout' is not one of moitie_par_zero_suivant, totalite"),
        ({"rota_lanceurs": ("A", "B", "A")}, "rota_lanceurs"),
        ({"rota_lanceurs": ("",)}, "rota_lanceurs"),
    ],
)
def test_r_rf_01_02_impossible_options_are_refused(options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        FrancaiseOptions(**options)


def test_r_rf_02_any_alternating_order_of_the_pockets_is_a_cylinder() -> None:
    turned = (*FRENCH_CYLINDER[9:], *FRENCH_CYLINDER[:9])
    assert FrancaiseOptions(cylindre=tuple(reversed(turned))).cylindre[0] == turned[-1]


def test_r_rf_03_the_table_closes_only_under_its_lid() -> None:
    game = francaise()
    game.command("close")
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert game.is_in(Phase.FERME)
    game.command("attest", what="encaisse")
    game.command("open")
    game.do(LidClosed(at_ns=game.at(), source="lid"))
    game.command("close")
    assert game.is_in(Phase.FERME)


def test_r_rf_04_05_one_or_two_tableaux() -> None:
    data = config_file.read_toml(config_file.shipped_tables()["roulette-francaise"])
    data["house"]["tableaux"] = 2
    assert from_data(data, "test").house.tableaux == 2
    data["house"]["tableaux"] = 3
    with pytest.raises(ConfigError, match=r"(?s)house.tableaux = 3.*at most 2 \(R-RF-04\)"):
        from_data(data, "test")


def test_r_rf_06_the_rota_of_launchers() -> None:
    game = francaise(options=FrancaiseOptions(rota_lanceurs=("A", "B", "C")))

    def takes(by: str) -> list[str]:
        game.command("announce", code="lanceur", by=by, role="croupier")
        return game.reasons

    rolling(game)
    assert (game.reasons, game.breach().severity) == (["lanceur_inconnu"], Severity.NOTED)
    game.call()
    game.chance(3)
    assert game.ended().status is Status.VALID
    game.say("faites_vos_jeux")
    assert takes("B") == []
    assert takes("C") == []
    coup(game, 5, CCW)
    game.say("faites_vos_jeux")
    assert takes("A") == []  # after the last comes the first
    coup(game, 5, CW)
    game.say("faites_vos_jeux")
    assert takes("C") == ["roulement_non_suivi"]
    assert takes("X") == ["roulement_non_suivi", "lanceur_hors_roulement"]
    game = francaise()
    assert takes("A") == []
    assert game.said("sans_roulement") or game.ignored


# --- the draw: every row of the state table --------------------------------------------------------------------------


def test_a_draw_from_the_cylinder_to_the_payment() -> None:
    game = francaise()
    game.chip("noir", 1000)
    game.spin(CW)
    assert game.is_in(Phase.MISES_OUVERTES)
    game.ball(CCW)
    assert game.one(PhaseChanged).phase is Phase.LANCE
    game.chip("plein:17", 500, tableau=2)  # R-RF-11: open while the ball is held in the gallery
    game.due()
    game.call(500)
    game.drop()
    game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CW, travel=9000, per_turn=2400))
    game.read(17)
    assert game.is_in(Phase.RESULTAT)
    game.read(17, "console")
    result = game.ended()
    assert (result.status, result.reasons, result.direction, result.travel_counts) == (Status.VALID, (), CW, 9000)
    assert result.outcome == {"number": 17, "numbers": [17], "chances": ["noir", "impair", "manque"]}
    assert result.sources == {"wheel_sensor": 17, "console": 17}
    assert list(result.times) == ["started", "launched", "drop_due", "closed", "dropped", "ended"]
    assert game.one(Announce).text == "17, noir, impair et manque"
    assert game.paid() == [("noir", "win", 1000), ("plein", "win", 17_500)]
    assert [line.tableau for line in game.lines()] == [1, 2]


def test_r_rf_09_the_cylinder_alternates_and_the_last_actuation_counts() -> None:
    game = coup(francaise(), 5, CW)
    game.spin(CW)
    assert (game.breach().code, game.breach().requirement) == ("direction_non_alternee", "R-RF-09")
    game.spin(CCW)
    assert game.reasons == []
    game.spin(CW)
    assert game.reasons == []
    game.spin(CW)  # pushed once more
    assert game.ignored
    game.ball(CCW)
    game.call()
    game.chance(5)
    assert (game.ended().status, game.ended().direction) == (Status.VALID, CW)


def test_r_rf_09_the_ball_runs_against_the_cylinder() -> None:
    game = francaise()
    game.spin(CW)
    game.ball(CW)
    assert (game.breach().code, game.breach().severity) == ("bille_dans_le_sens_du_cylindre", Severity.HELD)
    assert game.lit == {"sens", "buzzer"}
    game.ball(CW)
    assert game.ignored
    game.ball(CCW)  # its sense turns out to be the other
    assert (game.reasons, game.lit) == ([], set())
    game.ball(CW)
    game.call()
    game.ball(CW)
    game.chance(8)
    assert [b.code for b in game.ended().reasons] == ["bille_dans_le_sens_du_cylindre"]
    assert game.lit == {"litige"}


def test_r_rf_09_a_cylinder_that_was_found_turning_was_not_actuated_by_anybody() -> None:
    """It turns from one coup to the next; a restart finds it so and must not take that for the next actuation."""
    game = coup(francaise(), 8, CW)
    game.spin(CW, found=True)
    assert game.ignored
    assert (game.reasons, game.lit, game.state.last_direction) == ([], set(), CW)
    game.spin(CCW, found=True)  # actuated while nobody watched
    assert (game.reasons, game.lit, game.state.last_direction) == ([], set(), CCW)


def test_r_rf_09_the_cylinder_must_be_actuated_for_the_ball() -> None:
    game = francaise()
    game.ball(CCW)  # a sensor may tell the ball before the cylinder has come so far that its start is told
    assert game.reasons == []
    game.due()
    assert game.lit == set(WRONG_SENSE)
    game.call()
    game.chance(8)
    assert [(b.code, b.severity) for b in game.ended().reasons] == [("cylindre_non_actionne", Severity.HELD)]
    game = francaise()
    game.do(DeviceLost(at_ns=game.at(), source="wheel", device="wheel", why="unplugged"))
    assert game.one(AlarmRaised).text == "Appareil wheel perdu (débranché)"
    game.ball(CCW)
    game.due()
    assert game.lit.isdisjoint(WRONG_SENSE)
    game.call()
    game.chance(8)
    assert [b.code for b in game.ended().reasons] == ["appareil_perdu"]  # nobody can say whether it was
    game = francaise()
    game.ball(CCW)
    game.spin(CW)
    assert (game.reasons, game.lit) == ([], set())
    assert game.reasons == []
    game.spin(CCW)  # turned back under the ball
    assert game.reasons == ["bille_dans_le_sens_du_cylindre"]


def test_r_rf_09_a_cylinder_turned_again_under_the_ball_is_judged_for_both() -> None:
    game = coup(francaise(), 5, CW)
    rolling(game, CCW)
    game.spin(CCW)  # pushed once more in its sense: the same actuation
    assert game.ignored
    assert game.reasons == []
    game.spin(CW)  # turned back: opposite to the actuation before, but now the ball runs with it
    assert set(game.reasons) == {"bille_dans_le_sens_du_cylindre"}
    assert game.lit == {"sens", "buzzer"}
    game.ball(CCW)
    assert game.reasons == []


def test_an_actuation_after_the_call_is_held() -> None:
    game = faits()
    game.spin(CCW)
    assert (game.breach().code, game.breach().severity) == ("relance_apres_rnvp", Severity.HELD)
    assert game.state.last_direction is CCW


def test_r_rf_10_a_jeton_in_the_cylinder_is_the_same_coup_without_a_result_of_that_launch() -> None:
    game = faits()
    game.say("jeton_dans_le_cylindre")
    assert game.said("jeton_dans_le_cylindre")
    assert game.is_in(Phase.MISES_OUVERTES)
    game.read(8)
    assert game.ignored
    game.read(8, "console")
    assert game.ignored
    game.chip("plein:8", 500)
    assert game.one(StakeAccepted).cents == 500
    game.ball(CCW)  # only the ball again: the cylinder still runs against it
    assert game.reasons == []
    game.due()
    game.call()
    game.chance(21)
    assert (game.ended().coup, game.ended().status) == (1, Status.VALID)


def test_r_rf_10_a_cylinder_actuated_for_the_relaunch_is_judged_against_the_last() -> None:
    game = rolling()
    game.say("jeton_dans_le_cylindre")
    game.spin(CCW)
    game.ball(CW)
    assert game.reasons == []
    game.say("jeton_dans_le_cylindre")
    game.spin(CCW)
    assert game.reasons == ["direction_non_alternee"]


def test_r_rf_10_a_wrong_sense_outlives_the_relaunch_of_the_ball_alone() -> None:
    game = coup(francaise(), 5, CW)
    rolling(game, CW)
    game.say("jeton_dans_le_cylindre")
    assert game.reasons == ["direction_non_alternee"]
    assert game.lit == set()
    game.ball(CCW)
    assert game.lit == {"sens", "buzzer"}
    game.lose_ball()
    assert game.reasons == ["direction_non_alternee"]


def test_r_rf_10_even_when_one_source_has_read_the_pocket() -> None:
    game = faits()
    game.read(8)
    game.say("jeton_dans_le_cylindre")
    assert game.state.coup is not None
    assert (game.state.phase, game.state.coup.readings) == (Phase.MISES_OUVERTES, ())


def test_r_rf_10_without_a_ball_there_is_nothing_to_take_back() -> None:
    game = francaise()
    game.say("jeton_dans_le_cylindre")
    assert game.ignored


def test_a_ball_lost_before_the_call_is_launched_again() -> None:
    game = rolling()
    game.chip("noir", 1000)
    game.lose_ball()
    assert game.said("bille_a_relancer")
    assert game.is_in(Phase.MISES_OUVERTES)
    game.ball(CCW)
    assert game.reasons == []
    assert len(game.state.stakes) == 1


def test_a_ball_lost_after_the_call_is_held() -> None:
    game = faits()
    game.lose_ball("not_detected")
    assert (game.breach().code, game.breach().severity) == ("bille_perdue", Severity.HELD)
    assert game.breach().requirement == "R-RF-13"
    assert "bille non détectée" in game.breach().text
    game.lose_ball("flown_off")
    assert game.ignored
    game.elapse("tirage")
    assert (game.ended().status, game.ended().outcome) == (Status.HELD, None)


def test_r_rf_11_the_ball_drops_and_nobody_called() -> None:
    game = rolling()
    game.drop()
    assert game.one(BetsClosed).how == "absent"
    game.drop()
    assert game.ignored
    game.chip("noir", 1000)
    assert game.one(StakeRefused).code == "mise_tardive"


def test_r_rf_11_a_pocket_read_while_the_bets_are_open_closes_them() -> None:
    game = rolling()
    game.read(4)
    assert game.one(BetsClosed).how == "absent"
    game.read(4, "console")
    assert game.ended().status is Status.HELD


def test_facts_that_no_ball_waits_for() -> None:
    game = francaise()
    for act in (game.drop, game.lose_ball, lambda: game.read(3)):
        act()
        assert game.ignored
    game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CW, travel=9, per_turn=9))
    assert game.ignored
    faits(game)
    for value in (37, -1, "00", "017", "dix"):
        game.read(value)
        assert game.ignored
    game.read("17")
    assert game.state.coup is not None
    assert game.state.coup.readings[0].value == 17
    again = PocketRead(at_ns=game.now, source="wheel_sensor", value=17)
    game.do(again)
    assert game.ignored


def test_a_cylinder_that_rests_while_the_second_source_is_awaited_tells_how_far_it_went() -> None:
    game = faits()
    game.read(17)
    game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CW, travel=9000, per_turn=2400))
    game.read(17, "console")
    assert (game.ended().travel_counts, game.ended().per_turn) == (9000, 2400)


def test_a_table_that_closes_switches_its_lamps_off() -> None:
    game = coup(francaise(), 5, CW)
    game.spin(CW)
    assert game.lit == {"sens", "buzzer"}
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert (game.state.phase, game.lit) == (Phase.FERME, set())


@pytest.mark.parametrize("back", [True, False])
def test_r_rf_13_a_ball_that_nobody_saw_launched_is_held_and_stops_nothing(back: bool) -> None:
    game = francaise()
    game.spin(CW)
    game.do(DeviceLost(at_ns=game.at(), source="wheel_sensor", device="wheel_sensor", why="unplugged"))
    game.call()
    if back:
        game.do(DeviceBack(at_ns=game.at(), source="wheel_sensor", device="wheel_sensor"))
        game.chance(17)
    else:
        game.read(17, "console")
        game.elapse("accord")
    held = game.ended()
    assert (held.status, held.outcome and held.outcome["number"]) == (Status.HELD, 17)
    lost = [] if back else ["appareil_perdu", "source_manquante"]
    assert sorted(b.code for b in held.reasons) == sorted(["lancer_non_vu", *lost])
    assert {b.requirement for b in held.reasons} == {"R-GEN-08"}
    assert game.is_in(Phase.LITIGE)


def test_r_rf_13_a_source_that_knows_only_the_cell_reads_the_cylinder_of_this_table() -> None:
    game = faits()
    for nowhere in (37, -1, None):
        game.read(None, cell=nowhere)
        assert game.ignored
    game.read(None, cell=7)  # 0 32 15 19 4 21 2 25
    game.read(25, "console")
    assert (game.ended().status, game.ended().sources) == (Status.VALID, {"wheel_sensor": 25, "console": 25})
    game.read(None, "wheel_sensor", cell=36)
    assert [b.code for b in game.ended().reasons] == ["sources_en_desaccord"]
    assert "wheel_sensor 26" in game.ended().reasons[0].text


def test_r_rf_13_two_sources_that_disagree_are_held() -> None:
    game = faits()
    game.read(17)
    game.read(18, "console")
    assert game.ended().status is Status.HELD
    assert [b.code for b in game.ended().reasons] == ["sources_en_desaccord"]


def test_r_rf_13_the_result_as_it_is_announced() -> None:
    said = {number: GAME.announce({"number": number}) for number in (0, 18, 36)}
    assert said == {0: "Zéro", 18: "18, rouge, pair et manque", 36: "36, rouge, pair et passe"}


# --- bets and limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spot",
    [
        "cheval:1-5",
        "cheval:3-4",
        "carre:3-4-6-7",
        "transversale:2-3-4",
        "plein:37",
        "cinq:0",
        "sixain:2-3-4-5-6-7",
        "deux_douzaines",
    ],
)
def test_r_rf_23_no_other_combination(spot: str) -> None:
    game = francaise()
    game.chip(spot, 500)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("combinaison_inexistante", "R-RF-23")


def test_r_rf_30_31_maxima_per_player_and_position_over_both_tableaux() -> None:
    game = francaise()
    game.chip("plein:4", 10_000)
    game.chip("plein:4", 5_000, tableau=2)
    game.chip("plein:4", 15_000, player="J2")
    assert not game.told(StakeRefused)
    game.chip("plein:4", 500, tableau=2)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("au_dessus_du_maximum", "R-RF-31")


def test_r_rf_32_33_34_a_raised_minimum_raises_every_maximum_and_needs_a_new_encaisse() -> None:
    game = francaise()
    assert game.state.limits is not None
    assert game.state.limits.maxima["rouge"] == 500_000
    for name, args in (("limits", {"minimum_cents": 1000}), ("attest", {"what": "encaisse"})):
        game.command(name, **args)
        assert game.one(Refused).code == "fermer_d_abord"
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("open", minimum_cents=1000)
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="encaisse")
    assert not game.told(Refused)
    game.command("open", minimum_cents=1000)
    assert game.state.limits.maxima["rouge"] == 1_000_000
    assert game.state.limits.maxima["plein"] == 30_000


def test_r_rf_33_an_opening_above_the_declared_minimum_needs_its_encaisse() -> None:
    game = table("roulette_francaise", FRANCAISE)
    game.command("limits", minimum_cents=1000)  # prepared; nothing is open yet
    game.command("open")
    refused = game.one(Refused)
    assert (refused.code, refused.requirement) == ("attestation_manquante", "R-RF-33")
    game.command("attest", what="encaisse", role="chef")
    assert game.one(Refused).code == "role_non_habilite"
    game.command("attest", what="encaisse")
    game.command("open")
    assert game.state.limits is not None
    assert game.state.limits.maxima["plein"] == 30_000
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("open", minimum_cents=2000)  # the encaisse of the opening was another one
    assert game.one(Refused).requirement == "R-RF-34"


def rim(game: Wheel, direction: Direction) -> None:
    game.do(BallLaunched(at_ns=game.at(), source="rim", direction=direction))


def test_two_devices_that_see_the_ball_in_another_sense_hold_the_coup_until_one_corrects_itself() -> None:
    game = rolling()
    rim(game, CCW)
    assert game.ignored  # the same sense, told twice
    rim(game, CW)
    assert game.told(Breach)[0].requirement == "R-GEN-08"
    assert game.reasons == ["sens_de_bille_en_doute", "bille_dans_le_sens_du_cylindre"]  # one of them says so
    rim(game, CCW)
    assert game.reasons == []
    rim(game, CW)
    game.ball(CW)
    assert game.reasons == ["bille_dans_le_sens_du_cylindre"]  # now both say so
    game.ball(CCW)
    game.due()
    game.call()
    game.chance(8)
    assert game.ended().status is Status.HELD
    assert "sens_de_bille_en_doute" in game.reasons
    game.command("resolve", role="chef", **{"as": "valid"})
    rolling(game, CCW)
    assert game.reasons == []  # the next ball is another one


# --- zero ------------------------------------------------------------------------------------------------------------


def paid(line: Line) -> tuple[object, object, object]:
    return (line.status, line.net, line.returned)


def at_zero(*spots: str, cents: int = 1000, last: bool = False) -> Wheel:
    game = francaise()
    for spot in spots:
        game.chip(spot, cents)
    if last:
        game.say("dernier_coup")
    return coup(game, 0, CW)


def test_r_rf_24_half_is_withdrawn() -> None:
    game = at_zero("rouge")
    assert game.is_in(Phase.CHOIX)
    offer = game.one(Offer)
    assert (offer.player, offer.choices) == ("J1", ("retire", "prison"))
    game.choose(offer.what, "retire")
    (line,) = game.lines()
    assert paid(line) == ("partial", -500, 500)
    assert game.state.stakes == ()


def test_r_rf_24_who_does_not_choose_takes_half() -> None:
    game = at_zero("rouge", "pair")
    game.choose(game.told(Offer)[0].what, "prison")
    game.say("choix_clos")
    assert [(line.type, line.status) for line in game.lines()] == [("rouge", "prison"), ("pair", "partial")]


def test_r_rf_25_26_the_whole_stake_goes_to_prison_and_is_freed_without_gain() -> None:
    game = at_zero("rouge")
    game.choose("zero", "prison")
    (line,) = game.lines()
    assert paid(line) == ("prison", None, None)
    (stake,) = game.state.stakes
    assert (stake.carried, stake.zeros, stake.cents) == ("prison", 1, 1000)
    game.say("faites_vos_jeux")
    game.take("rouge", 1000)
    assert game.reasons == ["prison_intouchable"]
    coup(game, 7, CCW)
    (line,) = game.lines()
    assert paid(line) == ("freed", 0, 1000)
    (stake,) = game.state.stakes
    assert (stake.carried, stake.zeros, stake.choices) == ("", 0, ())  # free to be taken or played
    assert game.is_in(Phase.REGLEMENT)


def test_r_rf_26_the_others_are_lost() -> None:
    game = at_zero("rouge")
    game.choose("zero", "prison")
    coup(game, 8, CCW)
    assert (game.paid(), game.state.stakes) == ([("rouge", "lose", -1000)], ())


@pytest.mark.parametrize(
    ("zeros", "end", "status", "net"),
    [
        (1, "retire", "partial", -500),
        (2, "retire", "partial", -750),
        (3, "retire", "partial", -875),
        (4, "retire", "partial", Fraction(-1875, 2)),
        (1, "rouge", "freed", 0),
        (2, "rouge", "freed", -500),
        (3, "rouge", "freed", -750),
        (2, "noir", "lose", -1000),
    ],
)
def test_r_rf_27_every_further_zero_halves(zeros: int, end: str, status: str, net: Fraction) -> None:
    game = at_zero("rouge")
    sense = CCW
    for _ in range(zeros - 1):
        game.choose("zero", "prison")
        coup(game, 0, sense)
        sense = sense.opposite
        assert game.one(Offer).choices == ("retire", "prison")
    if end == "retire":
        game.choose("zero", "retire")
    else:
        game.choose("zero", "prison")
        coup(game, 7 if end == "rouge" else 8, sense)
    (line,) = game.lines()
    assert paid(line) == (status, net, 1000 + net)


def test_r_rf_27_the_house_may_read_that_the_whole_is_freed() -> None:
    stake = Stake(id="a", player="J1", type="rouge", cents=1000, carried="prison", zeros=3)
    options = FrancaiseOptions(valeur_liberee="totalite")
    result = GAME.settle([stake], {"number": 7, "chances": []}, WheelCoup(no=1), options)
    assert paid(result.lines[0]) == ("freed", 0, 1000)
    assert result.stay[0].carried == ""


@pytest.mark.parametrize(("zeros", "refund"), [(0, 500), (1, 250), (2, 125)])
def test_r_rf_28_on_the_last_coup_the_refund_is_forced(zeros: int, refund: int) -> None:
    game = francaise()
    game.chip("rouge", 1000)
    sense = CW
    for _ in range(zeros):
        coup(game, 0, sense)
        sense = sense.opposite
        game.choose("zero", "prison")
    game.say("faites_vos_jeux")
    game.say("dernier_coup")
    coup(game, 0, sense)
    assert not game.told(Offer)
    assert [paid(line) for line in game.lines()] == [("partial", refund - 1000, refund)]
    assert game.state.stakes == ()


def test_r_rf_28_without_zero_the_last_coup_frees_or_takes() -> None:
    for number, status in ((7, "freed"), (8, "lose")):
        game = at_zero("rouge")
        game.choose("zero", "prison")
        game.say("faites_vos_jeux")
        game.say("dernier_coup")
        coup(game, number, CCW)
        assert [line.status for line in game.lines()] == [status]


def test_r_rf_29_only_even_chances_have_a_choice() -> None:
    game = at_zero("rouge", "douzaine:1-2-3-4-5-6-7-8-9-10-11-12", "plein:0", "cheval:0-2", "carre:0-1-2-3", "plein:5")
    assert [offer.what for offer in game.told(Offer)] == ["m1"]
    game.choose("zero", "retire")
    assert game.paid() == [
        ("rouge", "partial", -500),
        ("douzaine", "lose", -1000),
        ("plein", "win", 35_000),
        ("cheval", "win", 17_000),
        ("carre", "win", 8000),
        ("plein", "lose", -1000),
    ]
    assert {stake.type for stake in game.state.stakes} == {"plein", "cheval", "carre"}  # R-RF-14: winners keep theirs


def test_r_rf_36_paid_by_type_over_all_players_and_tableaux() -> None:
    bets = [
        ("plein", (17,)),
        ("cheval", (14, 17)),
        ("carre", (13, 14, 16, 17)),
        ("transversale", (16, 17, 18)),
        ("sixain", (13, 14, 15, 16, 17, 18)),
        ("manque", ()),
        ("noir", ()),
        ("deux_douzaines", tuple(range(1, 25))),
        ("douzaine", tuple(range(13, 25))),
        ("colonne", tuple(range(2, 37, 3))),
        ("rouge", ()),
    ]
    stakes = [
        Stake(id=f"{bet}{player}", player=player, type=bet, on=on, cents=1000, tableau=int(player))
        for bet, on in bets
        for player in "12"
    ]
    result = GAME.settle(stakes, {"number": 17, "chances": []}, WheelCoup(no=1), FrancaiseOptions())
    assert result.order == (
        ("colonne1", "colonne2", "douzaine1", "douzaine2", "deux_douzaines1", "deux_douzaines2"),
        ("noir1", "noir2", "manque1", "manque2"),
        ("sixain1", "sixain2"),
        ("transversale1", "transversale2"),
        ("carre1", "carre2"),
        ("cheval1", "cheval2"),
        ("plein1", "plein2"),
    )
    assert result.player_order == ()
