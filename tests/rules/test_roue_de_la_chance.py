"""Roue de la chance: every E, C and D requirement of its spec, the draw, the bets, the money.

| requirement | where it is shown, when not in a test below that bears its name |
|---|---|
| R-RC-01 | there is no other stake than chips of a reader or of the croupier: `rules.facts.ChipPlaced` |
| R-RC-05, R-RC-13 | attested by people, nothing to decide |
| R-RC-11 | `test_wheel.test_a_call_before_any_launch_closes_the_bets_early`, test_table (late and doubtful stakes) |
| R-RC-10 | test_wheel, the three modes |
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from controller import config_file
from controller.config_check import from_data
from controller.errors import ConfigError
from rules.bets import Refusal, Stake
from rules.decisions import (
    Announce,
    BetsClosed,
    Breach,
    Phase,
    PhaseChanged,
    Refused,
    SetTimer,
    Severity,
    StakeRefused,
    Status,
)
from rules.facts import Doubtful, Overrun, SpinStopped
from rules.game import House, load
from rules.games.roue_de_la_chance import COLOURS, GAME, LAYOUT, RoueOptions
from rules.limits import Limits
from rules.wheel import WheelCoup
from tests.rules.playbook import CCW, CW
from tests.rules.wheels import PER_TURN, ROUE, SEGMENTS, Wheel, roue

FOUR_TURNS = 4 * PER_TURN
ORANGE, VERT, BLEU, ROUGE = (SEGMENTS.index(colour) for colour in ("orange", "vert", "bleu", "rouge"))


def spun(**changes: Any) -> Wheel:
    """A wheel that turns and whose bets are closed in time."""
    game = roue(**changes)
    game.chip("rouge", 500)
    game.spin(CW)
    game.slow()
    game.call()
    return game


# --- equipment and options -------------------------------------------------------------------------------------------


def test_r_rc_03_04_the_config_of_the_repository_has_the_cells_of_the_text() -> None:
    assert len(SEGMENTS) == 52
    assert {colour: SEGMENTS.count(colour) for colour in COLOURS} == {
        "orange": 24,
        "vert": 12,
        "bleu": 8,
        "rouge": 4,
        "violet": 2,
        "blanc": 1,
        "noir": 1,
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"segments": SEGMENTS[1:]}, "segments: 23 cells are 'orange', R-RC-04 wants 24"),
        ({"segments": ("noir", *SEGMENTS[1:])}, "segments: 23 cells are 'orange'"),
        ({"segments": (*SEGMENTS, "rose")}, "segments: unknown colour rose; allowed: orange, vert"),
        ({"segments": SEGMENTS, "minimum_par_couleur": {"rose": 200}}, "minimum_par_couleur: 'rose' = 200; allowed"),
        ({"segments": SEGMENTS, "minimum_par_couleur": {"vert": 0}}, "minimum_par_couleur: 'vert' = 0; allowed"),
    ],
)
def test_r_rc_04_impossible_options_are_refused(options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        RoueOptions(**options)


def test_r_rc_02_the_thirteenth_player_is_noted() -> None:
    game = roue()
    for player in range(1, 13):
        game.chip("orange", 200, player=f"J{player}")
        assert not game.told(Breach)
    game.chip("orange", 200, player="J13")
    assert (game.breach().requirement, game.breach().severity) == ("R-RC-02", Severity.NOTED)


def test_r_rc_06_opens_only_when_comite_and_croupier_have_checked_the_wheel() -> None:
    game = Wheel(roue().table)
    game.command("open")
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="verification")
    game.command("open")
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="verification", role="croupier", by="M. Bon")
    assert game.is_in(Phase.VERIFIEE)
    game.command("open")
    assert game.is_in(Phase.MISES_OUVERTES)


# --- the draw: every row of the state table --------------------------------------------------------------------------


def test_a_draw_from_the_launch_to_the_payment() -> None:
    game = roue()
    game.say("faites_vos_jeux")
    game.chip("bleu", 400)
    game.spin(CW)
    assert game.one(PhaseChanged).phase is Phase.LANCE
    assert game.one(SetTimer).name == "tirage"
    game.chip("vert", 400)  # R-RC-10: open while the wheel turns freely
    assert game.state.coup is not None
    assert game.state.coup.step == "started"
    game.slow()
    assert game.state.coup.step == "slowed"
    game.call()
    assert game.is_in(Phase.JEUX_FAITS)
    game.stop(FOUR_TURNS + 1, cell=BLEU)
    result = game.ended()
    assert (result.status, result.reasons, result.direction) == (Status.VALID, (), CW)
    assert (result.travel_counts, result.per_turn) == (FOUR_TURNS + 1, PER_TURN)
    assert result.outcome == {"colour": "bleu", "cell": BLEU, "turns": 4, "valid": True, "chances": ["bleu"]}
    assert result.sources == {"wheel": "bleu"}
    assert list(result.times) == ["faites_vos_jeux", "started", "slowed", "closed", "stopped", "ended"]
    assert game.one(Announce).text == "Couleur gagnante : bleue"
    assert game.paid() == [("bleu", "win", 2000), ("vert", "lose", -400)]
    assert game.is_in(Phase.REGLEMENT)


def test_r_rc_07_every_actuation_is_judged_against_the_one_before() -> None:
    game = spun()
    game.stop(FOUR_TURNS)
    game.spin(CW)
    assert (game.breach().requirement, game.breach().severity) == ("R-RC-07", Severity.HELD)
    game.slow()
    game.call()
    game.stop(FOUR_TURNS)
    assert game.ended().status is Status.HELD
    game.command("resolve", role="chef", by="Mme Dax", why="vu", **{"as": "valid"})
    assert (game.ended().kind, game.ended().status) == ("resolution", Status.VALID)
    game.spin(CCW)
    assert game.reasons == []


def test_r_rc_07_a_spin_stopped_before_the_call_is_no_coup_but_counts_for_the_sense() -> None:
    game = spun()
    game.stop(FOUR_TURNS)
    game.spin(CW)
    assert game.lit == {"sens", "buzzer"}
    game.chip("vert", 400)
    game.stop(FOUR_TURNS)  # stopped because of its sense, however far it came
    assert game.said("arret_avant_rien_ne_va_plus")
    assert (game.state.phase, game.reasons, game.lit) == (Phase.MISES_OUVERTES, [], set())
    assert game.state.coup is not None
    assert (game.state.coup.no, len(game.state.stakes)) == (2, 1)
    game.spin(CW)
    assert game.breach().code == "direction_non_alternee"
    game.stop(PER_TURN)
    game.spin(CCW)
    assert game.reasons == []


def test_r_rc_07_a_draw_without_faites_vos_jeux_is_noted_where_the_house_follows_it() -> None:
    game = roue(options=RoueOptions(segments=SEGMENTS, faites_vos_jeux_suivi=True))
    game.say("faites_vos_jeux")
    for sense, reasons in ((CW, []), (CCW, ["faites_vos_jeux_absent"])):
        game.spin(sense)
        game.slow()
        game.call()
        game.say("faites_vos_jeux")  # after rien ne va plus it is nobody's
        assert game.ignored
        game.stop(FOUR_TURNS)
        assert [b.code for b in game.ended().reasons] == reasons
        assert game.ended().status is Status.VALID
    assert (game.breach().requirement, game.breach().severity) == ("R-RC-07", Severity.NOTED)


def test_r_rc_07_a_wheel_turned_back_in_the_open_starts_another_draw_of_the_same_coup() -> None:
    game = spun()
    game.stop(FOUR_TURNS)
    game.chip("vert", 400)
    game.spin(CW)
    game.touch()
    game.slow()
    assert set(game.reasons) == {"direction_non_alternee", "obstruction"}
    game.spin(CCW)
    assert (game.reasons, game.lit, game.state.phase) == ([], set(), Phase.LANCE)
    assert game.one(SetTimer).at_ns == game.now + ROUE.draw_max_ms * 1_000_000
    game.slow()
    game.call()
    game.stop(FOUR_TURNS, cell=VERT, direction=CCW)
    assert (game.ended().status, game.ended().coup, game.ended().direction) == (Status.VALID, 2, CCW)
    assert list(game.ended().times) == ["started", "slowed", "closed", "stopped", "ended"]


@pytest.mark.parametrize("raised", [(), ("trop_de_joueurs",)])
def test_a_noted_breach_outlives_a_wheel_turned_back(raised: tuple[str, ...]) -> None:
    game = roue(max_players=1, raise_to_held=raised)
    game.chip("orange", 200, player="J1")
    game.chip("orange", 200, player="J2")
    game.spin(CW)
    game.spin(CCW)
    assert game.reasons == ["trop_de_joueurs"]


def test_an_actuation_after_the_call_is_held() -> None:
    game = spun()
    game.spin(CCW)
    assert (game.breach().code, game.breach().severity) == ("relance_apres_rnvp", Severity.HELD)
    assert game.state.last_direction is CCW
    game.spin(CW)
    assert game.ignored
    assert game.state.last_direction is CW
    game.stop(FOUR_TURNS)
    assert game.ended().status is Status.HELD


@pytest.mark.parametrize(("travel", "valid"), [(3 * PER_TURN - 1, False), (3 * PER_TURN, True)])
def test_r_rc_08_three_whole_turns(travel: int, valid: bool) -> None:
    game = spun()
    game.stop(travel, cell=ROUGE)
    result = game.ended()
    assert result.status is (Status.VALID if valid else Status.VOID)
    assert result.outcome == {
        "colour": "rouge",
        "cell": ROUGE,
        "turns": 3 if valid else 2,
        "valid": valid,
        "chances": ["rouge"],
    }
    if not valid:
        assert [(b.code, b.requirement) for b in result.reasons] == [("moins_de_trois_tours", "R-RC-08")]
        assert game.said("coup_nul")
        assert not game.lines()
        assert (game.state.phase, len(game.state.stakes)) == (Phase.MISES_OUVERTES, 1)  # stakes stay the players'


@pytest.mark.parametrize("closed", [True, False])
def test_what_nobody_saw_is_held_never_void_for_too_few_turns(closed: bool) -> None:
    """A restart in mid-spin: the wheel is seen to start again, and the turns before are nobody's to count."""
    game = roue()
    game.spin(CW)
    if closed:
        game.slow()
        game.call()
    game.do(Doubtful(at_ns=game.at(), source="controller", device="wheel", why="not_observed"))
    game.spin(CW)
    assert game.ignored
    game.stop(PER_TURN, cell=ROUGE)
    result = game.ended()
    assert (result.status, result.travel_counts, result.direction) == (Status.HELD, None, CW)
    assert result.outcome == {"colour": "rouge", "cell": ROUGE, "valid": True, "chances": ["rouge"]}
    assert {b.code for b in result.reasons} == {"tirage_non_observe"} | (set() if closed else {"rnvp_absent"})
    assert game.state.last_direction is CW


def test_another_actuation_after_a_restart_is_another_draw() -> None:
    game = roue()
    game.spin(CW)
    game.do(Doubtful(at_ns=game.at(), source="controller", device="wheel", why="not_observed"))
    game.spin(CCW)
    game.slow()
    game.call()
    game.stop(FOUR_TURNS, cell=ROUGE, direction=CCW)
    assert (game.ended().status, game.ended().travel_counts) == (Status.VALID, FOUR_TURNS)


def test_edges_known_lost_prove_no_nullity() -> None:
    game = spun()
    game.do(Overrun(at_ns=game.at(), source="wheel", device="wheel", lost=4))
    game.stop(3 * PER_TURN - 4, cell=ROUGE)
    assert (game.ended().status, game.ended().reasons[0].code) == (Status.HELD, "entrees_perdues")


def test_r_rc_08_a_wheel_of_unknown_size_has_made_no_turn() -> None:
    game = spun()
    game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CW, travel=9, per_turn=0, cell=0))
    assert game.ended().status is Status.VOID


@pytest.mark.parametrize("why", ["brake", "push", "late"])
def test_r_rc_09_a_touch_voids_however_many_turns(why: str) -> None:
    game = spun()
    game.touch(why)
    assert (game.breach().code, game.breach().severity) == ("obstruction", Severity.VOID)
    game.touch(why)
    assert game.ignored
    game.stop(6 * PER_TURN, cell=ROUGE)
    assert game.ended().status is Status.VOID
    assert game.ended().outcome is not None
    assert game.ended().outcome["valid"] is False  # type: ignore[index]


def test_r_rc_09_the_croupier_saw_it() -> None:
    game = spun()
    game.say("coup_nul")
    game.stop(FOUR_TURNS)
    assert [b.code for b in game.ended().reasons] == ["obstruction"]
    assert game.ended().status is Status.VOID


def test_r_rc_09_coup_nul_said_while_the_cell_is_in_doubt_ends_the_coup() -> None:
    for cell, other, known in ((ROUGE, ROUGE + 1, False), (None, None, False)):
        game = spun()
        game.stop(FOUR_TURNS, cell=cell, or_cell=other)
        game.say("coup_nul")
        assert game.ended().status is Status.VOID
        assert (game.ended().outcome is not None) is known


def test_r_rc_09_coup_nul_while_the_other_source_is_waited_for_tells_the_colour() -> None:
    game = spun(sources=("wheel", "console"))
    game.stop(FOUR_TURNS, cell=ROUGE)
    game.say("coup_nul")
    assert game.ended().outcome == {"colour": "rouge", "cell": ROUGE, "turns": 4, "valid": False, "chances": ["rouge"]}


def test_only_a_void_draw_ends_before_the_second_source_has_spoken() -> None:
    game = spun(sources=("wheel", "console"))
    game.touch()
    game.stop(FOUR_TURNS, cell=ROUGE)
    assert game.ended().status is Status.VOID
    game.spin(CW)  # the same sense: held, and read all the same
    game.slow()
    game.call()
    game.stop(FOUR_TURNS, cell=ROUGE)
    assert game.is_in(Phase.RESULTAT)
    game.read("rouge", "console")
    assert game.ended().status is Status.HELD


def test_r_rc_02_the_apparatus_has_one_table() -> None:
    data = config_file.read_toml(config_file.shipped_tables()["roue-de-la-chance"])
    data["house"]["tableaux"] = 2
    with pytest.raises(ConfigError, match=r"(?s)house.tableaux = 2.*at most 1 \(R-RC-02\)"):
        from_data(data, "test")


def test_r_rc_09_only_a_turning_wheel_can_be_obstructed() -> None:
    game = roue()
    game.touch()
    assert game.ignored
    game.say("coup_nul")
    assert game.ignored
    game = spun(sources=("wheel", "console"))
    game.stop(FOUR_TURNS)
    game.touch()
    assert game.ignored
    assert game.reasons == []


def test_a_wheel_that_was_let_run_is_a_draw_even_when_nobody_called() -> None:
    game = roue()
    game.spin(CW)
    game.slow()
    game.stop(3 * PER_TURN - 1)
    assert {b.code for b in game.ended().reasons} == {"moins_de_trois_tours", "rnvp_absent"}
    assert game.ended().status is Status.VOID


def test_before_the_call_an_obstructed_wheel_is_void_or_simply_stopped() -> None:
    game = roue()
    game.spin(CW)
    game.touch()
    game.stop(PER_TURN)
    assert game.said("arret_avant_rien_ne_va_plus")
    game.spin(CCW)
    game.touch()
    game.stop(FOUR_TURNS)
    assert {b.code for b in game.ended().reasons} == {"obstruction", "rnvp_absent"}
    assert game.ended().status is Status.VOID


def test_before_the_call_coup_nul_by_the_croupier_is_a_void_draw_even_under_three_turns() -> None:
    game = roue()
    game.spin(CW)
    game.say("coup_nul")
    game.stop(PER_TURN)
    assert game.ended().status is Status.VOID
    assert {b.code for b in game.ended().reasons} == {"obstruction", "rnvp_absent", "moins_de_trois_tours"}


def test_r_rc_10_without_a_call_a_full_draw_is_held_with_its_colour() -> None:
    game = roue()
    game.spin(CW)
    game.stop(FOUR_TURNS, cell=VERT)
    assert game.one(BetsClosed).how == "absent"
    assert game.ended().status is Status.HELD
    assert game.ended().outcome is not None


def test_r_rc_12_no_result_before_the_wheel_is_at_rest() -> None:
    game = spun()
    game.read("bleu", "console")  # kept, not taken
    assert game.said("lecture_en_attente")
    assert game.is_in(Phase.JEUX_FAITS)
    game.stop(FOUR_TURNS, cell=BLEU)
    assert game.ended().status is Status.VALID
    assert game.ended().sources == {"console": "bleu", "wheel": "bleu"}


def test_r_rc_12_a_wheel_at_rest_is_read_once() -> None:
    game = spun(sources=("wheel", "console"))
    game.stop(FOUR_TURNS, cell=BLEU)
    game.stop(FOUR_TURNS, cell=ROUGE)
    assert game.ignored
    game.read("bleu", "console")
    assert game.ended().status is Status.VALID


def test_a_person_who_read_another_colour_holds_the_coup() -> None:
    game = spun()
    game.read("bleu", "console")
    game.read("vert", "console")  # corrected before the rest
    game.stop(FOUR_TURNS, cell=BLEU)
    assert game.ended().status is Status.HELD
    assert [b.code for b in game.ended().reasons] == ["sources_en_desaccord"]


@pytest.mark.parametrize("cell", [None, 52, -1])
def test_r_rc_12_an_unknown_cell_is_held_and_read_by_a_person(cell: int | None) -> None:
    game = spun()
    game.stop(FOUR_TURNS, cell=cell)
    assert (game.breach().code, game.state.phase) == ("case_inconnue", Phase.JEUX_FAITS)
    game.read(BLEU, "console")
    game.elapse("accord")
    result = game.ended()
    assert result.status is Status.HELD
    assert result.outcome == {"colour": "bleu", "cell": BLEU, "turns": 4, "valid": True, "chances": ["bleu"]}


def test_r_rc_12_an_unknown_cell_that_a_person_had_read_already() -> None:
    game = spun(sources=("console",))
    game.read("vert", "console")
    game.stop(FOUR_TURNS, cell=None)
    assert game.ended().outcome == {"colour": "vert", "turns": 4, "valid": True, "chances": ["vert"]}
    assert game.ended().status is Status.HELD


def test_r_rc_12_a_doubtful_cell_is_confirmed_by_the_croupier() -> None:
    for confirmed, colour in (("confirme", "rouge"), ("orange", "orange")):
        game = spun()
        assert (SEGMENTS[ROUGE], SEGMENTS[ROUGE + 1]) == ("rouge", "orange")
        game.stop(FOUR_TURNS, cell=ROUGE, or_cell=ROUGE + 1)
        assert game.said("confirmer_la_case")
        if confirmed == "confirme":
            game.say("confirme")
        else:
            game.read(confirmed, "console")
        assert game.ended().status is Status.VALID
        assert [b.severity for b in game.ended().reasons] == [Severity.NOTED]
        assert game.ended().outcome is not None
        assert (game.ended().outcome["colour"], game.ended().outcome["turns"]) == (colour, 4)  # type: ignore[index]


def test_a_doubt_between_two_cells_of_one_colour_is_none() -> None:
    cell, other = SEGMENTS.index("orange"), SEGMENTS.index("orange", 2)
    game = spun()
    game.stop(FOUR_TURNS, cell=cell, or_cell=other)
    assert (game.ended().status, game.ended().reasons) == (Status.VALID, ())


def test_r_rc_12_the_colour_as_it_is_announced() -> None:
    said = [GAME.announce({"colour": colour}).removeprefix("Couleur gagnante : ") for colour in COLOURS]
    assert said == ["orange", "verte", "bleue", "rouge", "violette", "blanche", "noire"]


def test_a_void_draw_in_a_doubtful_cell_has_no_colour() -> None:
    game = spun()
    game.stop(PER_TURN, cell=ROUGE, or_cell=ROUGE + 1)
    assert (game.ended().status, game.ended().outcome) == (Status.VOID, None)


def test_a_held_draw_that_is_resolved_void_tells_an_outcome_that_is_not_valid() -> None:
    for order in ("resolve", "void"):
        game = roue()
        game.spin(CW)
        game.stop(FOUR_TURNS, cell=ROUGE)  # nobody called
        held = game.ended()
        assert (held.status, held.outcome and held.outcome["valid"]) == (Status.HELD, True)
        game.command(order, role="chef", **{"as": "void"})
        assert (game.ended().status, game.ended().outcome) == (Status.VOID, {**(held.outcome or {}), "valid": False})


def test_facts_that_no_draw_waits_for() -> None:
    game = roue()
    game.stop(FOUR_TURNS)
    assert game.ignored
    game.read("bleu", "console")
    assert game.ignored
    game.spin(CW)
    game.read("rose", "console")
    assert game.ignored
    assert game.state.coup is not None
    assert game.state.coup.readings == ()


def test_what_a_person_may_type() -> None:
    options = ROUE.options
    assert GAME.read("violet", options) == {"colour": "violet", "valid": True, "chances": ["violet"]}
    assert GAME.read(ROUGE, options) == {"colour": "rouge", "cell": ROUGE, "valid": True, "chances": ["rouge"]}
    assert [GAME.read(value, options) for value in ("rose", 52, -1, "0")] == [None] * 4
    assert GAME.cell(ROUGE, options) == GAME.read(ROUGE, options)
    assert [GAME.cell(cell, options) for cell in (52, -1, None)] == [None] * 3


# --- bets and limits -------------------------------------------------------------------------------------------------


def test_r_rc_14_seven_colours_seven_bets() -> None:
    assert list(LAYOUT.spots) == list(COLOURS)
    game = roue()
    for spot in ("rose", "rouge:1", "plein:7", "blanc_ou_noir"):
        game.chip(spot, 200)
        assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == (
            "combinaison_inexistante",
            "R-RC-14",
        )


def limits(minimum: int, maxima: Mapping[str, int] | None = None, house: House = ROUE) -> Limits | Refusal:
    return GAME.limits(LAYOUT, house, minimum, maxima or {})


def test_r_rc_18_maxima_are_the_multiples_of_the_text() -> None:
    found = limits(300)
    assert isinstance(found, Limits)
    assert [found.maxima[colour] // 300 for colour in COLOURS] == [100, 50, 25, 12, 10, 5, 5]
    game = roue()
    game.chip("blanc", 1000)
    game.chip("blanc", 1000, player="J2")  # each player alone
    assert not game.told(StakeRefused)
    game.chip("blanc", 1)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("au_dessus_du_maximum", "R-RC-18")


def test_r_rc_17_a_colour_may_have_its_own_minimum() -> None:
    house = House(
        declared_minimum_cents=200,
        options=RoueOptions(segments=SEGMENTS, minimum_par_couleur={"noir": 500, "vert": 200}),
    )
    found = limits(300, house=house)
    assert isinstance(found, Limits)
    assert (found.minimum, found.minima) == (300, {"noir": 500, "vert": 300})
    one = House(declared_minimum_cents=200, options=RoueOptions(segments=SEGMENTS, minimum_par_couleur={"noir": 1500}))
    assert isinstance(limits(300, house=one), Limits)  # as much as its maximum: one stake is possible
    dear = House(declared_minimum_cents=200, options=RoueOptions(segments=SEGMENTS, minimum_par_couleur={"noir": 1501}))
    refused = limits(300, house=dear)
    assert isinstance(refused, Refusal)
    assert refused.code == "minimum_au_dessus_du_maximum"
    cheap = House(declared_minimum_cents=200, options=RoueOptions(segments=SEGMENTS, minimum_par_couleur={"noir": 100}))
    refused = limits(300, house=cheap)
    assert isinstance(refused, Refusal)
    assert refused.requirement == "R-GEN-10"


def test_r_gen_10_never_below_the_declared_minimum() -> None:
    refused = limits(199)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.requirement) == ("minimum_sous_le_declare", "R-GEN-10")


@pytest.mark.parametrize(
    ("maxima", "reason"),
    [({"vert": 9999}, ("maximum_fixe", "R-RC-18")), ({"rose": 1}, ("combinaison_inexistante", "R-GEN-10"))],
)
def test_r_rc_18_other_maxima_cannot_be_asked_for(maxima: Mapping[str, int], reason: tuple[str, str]) -> None:
    assert isinstance(limits(200, {"vert": 10_000}), Limits)
    refused = limits(200, maxima)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.requirement) == reason
    assert "None" not in refused.text


def test_r_rc_19_20_minimum_and_maximum_are_frozen_until_the_next_seance() -> None:
    game = roue()
    game.command("limits", minimum_cents=400)
    assert game.one(Refused).code == "minimum_fige"
    game.command("close")
    game.command("open", minimum_cents=400)
    assert game.one(Refused).code == "minimum_fige"
    game.command("close", end_of_seance=True)
    game.command("attest", what="verification")
    game.command("attest", what="verification", role="croupier")
    game.command("open", minimum_cents=400)
    assert game.state.limits is not None
    assert game.state.limits.maxima["orange"] == 40_000


# --- money -----------------------------------------------------------------------------------------------------------

MEANS = {
    "orange": Fraction(-1, 13),
    "vert": Fraction(-1, 13),
    "bleu": Fraction(-1, 13),
    "rouge": Fraction(-2, 13),
    "violet": Fraction(-5, 26),
    "blanc": Fraction(-1, 52),
    "noir": Fraction(-1, 52),
}


def settled(stakes: list[Stake], colour: str, *, valid: bool = True) -> Any:
    return GAME.settle(stakes, {"colour": colour, "valid": valid, "chances": [colour]}, WheelCoup(no=1), ROUE.options)


@pytest.mark.parametrize("colour", COLOURS)
def test_r_rc_15_16_every_bet_on_every_cell_and_its_exact_mean(colour: str) -> None:
    total = Fraction()
    stake = Stake(id="a", player="J1", type=colour, cents=100)
    for cell in SEGMENTS:
        result = settled([stake], cell)
        (entry,) = result.lines
        total += entry.net
        assert entry.status == ("win" if cell == colour else "lose")
        assert entry.returned == (100 + 100 * COLOURS[colour][1] if cell == colour else 0)
        assert result.stay == ((stake,) if cell == colour else ())  # the winner keeps the stake
        money = {"player:J1": Fraction(), "table": Fraction()}
        for moved in result.transfers:
            money[moved.source] -= moved.cents
            money[moved.target] += moved.cents
        assert money == {"player:J1": entry.net, "table": -entry.net}
    assert total / (52 * 100) == MEANS[colour]


def test_a_void_outcome_moves_nothing() -> None:
    stakes = [Stake(id=colour, player="J1", type=colour, cents=100) for colour in COLOURS]
    result = settled(stakes, "vert", valid=False)
    assert {entry.status for entry in result.lines} == {"push"}
    assert (result.transfers, result.order, list(result.stay)) == ((), (), stakes)


def test_r_rc_21_22_players_in_ascending_order_of_their_gain() -> None:
    stakes = [
        Stake(id="a", player="A", type="rouge", cents=500),
        Stake(id="a2", player="A", type="rouge", cents=200, tableau=2),
        Stake(id="b", player="B", type="rouge", cents=200),
        Stake(id="c", player="C", type="rouge", cents=700),
        Stake(id="d", player="D", type="vert", cents=900),
    ]
    result = settled(stakes, "rouge")
    assert result.player_order == (("B",), ("A", "C"))
    assert result.order == (("b",), ("a", "a2", "c"))


def test_loaded_by_name() -> None:
    assert load("roue_de_la_chance") is GAME
