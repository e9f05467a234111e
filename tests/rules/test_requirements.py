"""Requirement -> the test that would fail without it: every E, C, D of communs and of the wheel games.

The tags are copied from the spec; A (attested by people) and N (not observable) alone are left out.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "rules"
OTHER_GAMES = {
    "R-GEN-04": "sic-bo",
    "R-GEN-06": "poker and rampo: no table of these games is missing in the text",
}
PROVED = {
    "R-GEN-01": "test_oracle::test_every_combination_of_the_text_and_no_other",
    "R-GEN-02": "test_requirements::test_r_gen_02_money_is_never_a_float",
    "R-GEN-03": "test_table::test_the_minimum_changes_in_mid_seance_only_by_closing_with_a_new_encaisse",
    "R-GEN-05": "test_table::test_a_stake_after_the_call_does_not_exist",
    "R-GEN-07": "test_wheel::test_r_gen_07_first_actuation_ever_is_accepted_in_either_sense_and_announced",
    "R-GEN-08": "test_traps_wheels::test_t86_wrong_direction_does_not_void",
    "R-GEN-10": "test_roue_de_la_chance::test_r_gen_10_never_below_the_declared_minimum",
    "R-RC-01": "test_requirements::test_r_rc_01_a_stake_is_chips_on_the_layout_and_nothing_else",
    "R-RC-02": "test_roue_de_la_chance::test_r_rc_02_the_thirteenth_player_is_noted",
    "R-RC-03": "test_roue_de_la_chance::test_r_rc_03_04_the_config_of_the_repository_has_the_cells_of_the_text",
    "R-RC-04": "test_roue_de_la_chance::test_r_rc_04_impossible_options_are_refused",
    "R-RC-06": "test_roue_de_la_chance::test_r_rc_06_opens_only_when_comite_and_croupier_have_checked_the_wheel",
    "R-RC-07": "test_roue_de_la_chance::test_r_rc_07_every_actuation_is_judged_against_the_one_before",
    "R-RC-08": "test_roue_de_la_chance::test_r_rc_08_three_whole_turns",
    "R-RC-09": "test_roue_de_la_chance::test_r_rc_09_a_touch_voids_however_many_turns",
    "R-RC-10": "test_roue_de_la_chance::test_r_rc_10_without_a_call_a_full_draw_is_held_with_its_colour",
    "R-RC-11": "test_wheel::test_a_call_before_any_launch_closes_the_bets_early",
    "R-RC-12": "test_roue_de_la_chance::test_r_rc_12_no_result_before_the_wheel_is_at_rest",
    "R-RC-14": "test_oracle::test_validation_is_what_the_text_says",
    "R-RC-15": "test_roue_de_la_chance::test_r_rc_15_16_every_bet_on_every_cell_and_its_exact_mean",
    "R-RC-16": "test_roue_de_la_chance::test_r_rc_15_16_every_bet_on_every_cell_and_its_exact_mean",
    "R-RC-17": "test_breaker::test_r_rc_17_a_stake_under_the_minimum_of_its_colour",
    "R-RC-18": "test_roue_de_la_chance::test_r_rc_18_other_maxima_cannot_be_asked_for",
    "R-RC-19": "test_roue_de_la_chance::test_r_rc_19_20_minimum_and_maximum_are_frozen_until_the_next_seance",
    "R-RC-20": "test_roue_de_la_chance::test_r_rc_19_20_minimum_and_maximum_are_frozen_until_the_next_seance",
    "R-RC-21": "test_roue_de_la_chance::test_r_rc_21_22_players_in_ascending_order_of_their_gain",
    "R-RC-22": "test_roue_de_la_chance::test_r_rc_21_22_players_in_ascending_order_of_their_gain",
    "R-RF-01": "test_roulette_francaise::test_r_rf_01_02_impossible_options_are_refused",
    "R-RF-02": "test_roulette_francaise::test_r_rf_02_any_alternating_order_of_the_pockets_is_a_cylinder",
    "R-RF-03": "test_roulette_francaise::test_r_rf_03_the_table_closes_only_under_its_lid",
    "R-RF-04": "test_roulette_francaise::test_r_rf_04_05_one_or_two_tableaux",
    "R-RF-05": "test_roulette_francaise::test_r_rf_04_05_one_or_two_tableaux",
    "R-RF-06": "test_roulette_francaise::test_r_rf_06_the_rota_of_launchers",
    "R-RF-09": "test_roulette_francaise::test_r_rf_09_the_ball_runs_against_the_cylinder",
    "R-RF-10": "test_traps_wheels::test_t27_jeton_in_the_cylinder",
    "R-RF-11": "test_wheel::test_a_call_after_its_moment",
    "R-RF-12": "test_traps_wheels::test_t06_the_call_comes_during_the_spin_at_a_roulette",
    "R-RF-13": "test_roulette_francaise::test_r_rf_13_two_sources_that_disagree_are_held",
    "R-RF-14": "test_roulette_bets::test_winners_stay_and_losers_go",
    **{f"R-RF-{n}": "test_oracle::test_every_combination_of_the_text_and_no_other" for n in range(15, 24)},
    "R-RF-24": "test_roulette_francaise::test_r_rf_24_half_is_withdrawn",
    "R-RF-25": "test_traps_wheels::test_t16_a_prison_win_has_no_gain",
    "R-RF-26": "test_traps_wheels::test_t16_a_prison_win_has_no_gain",
    "R-RF-27": "test_traps_wheels::test_t17_successive_zeros_halve",
    "R-RF-28": "test_roulette_francaise::test_r_rf_28_on_the_last_coup_the_refund_is_forced",
    "R-RF-29": "test_roulette_francaise::test_r_rf_29_only_even_chances_have_a_choice",
    "R-RF-30": "test_traps_wheels::test_t23_maxima_are_tables",
    "R-RF-31": "test_traps_wheels::test_t23_maxima_are_tables",
    **{
        f"R-RF-{n}": "test_roulette_francaise::"
        "test_r_rf_32_33_34_a_raised_minimum_raises_every_maximum_and_needs_a_new_encaisse"
        for n in (32, 33, 34)
    },
    "R-RF-36": "test_roulette_francaise::test_r_rf_36_paid_by_type_over_all_players_and_tableaux",
    "R-RA-01": "test_roulette_bets::test_r_ra_01_the_zeros_are_opposite",
    "R-RA-02": "test_roulette_chips::test_r_ra_02_r_an_02_as_many_colours_as_the_table_has_boxes",
    "R-RA-03": "test_roulette_chips::test_r_ra_03_r_an_06_seats",
    "R-RA-06": "test_roulette_chips::test_r_ra_06_r_an_17_piles_are_rebuilt_before_each_launch",
    "R-RA-07": "test_traps_wheels::test_t86_wrong_direction_does_not_void",
    "R-RA-08": "test_traps_wheels::test_t27_jeton_in_the_cylinder",
    "R-RA-09": "test_traps_wheels::test_t06_the_call_comes_during_the_spin_at_a_roulette",
    "R-RA-10": "test_roulette_bets::test_a_double_zero_is_read_and_announced_only_where_it_exists",
    **{f"R-RA-{n}": "test_payouts::test_the_bet_pays_covers_and_is_limited_as_the_file_says" for n in range(11, 19)},
    "R-RA-19": "test_traps_wheels::test_t21_zero_in_three_roulettes",
    "R-RA-20": "test_traps_wheels::test_t22_five_numbers_and_no_24",
    "R-RA-21": "test_roulette_bets::test_winners_stay_and_losers_go",
    "R-RA-22": "test_traps_wheels::test_t23_maxima_are_tables",
    "R-RA-23": "test_traps_wheels::test_t23_maxima_are_tables",
    "R-RA-24": "test_roulette_chips::test_t25_nothing_said_is_the_minimum_and_twenty_times_it_the_most",
    "R-RA-25": "test_roulette_chips::test_t26_unequal_pieces_are_noted_at_the_americaine",
    "R-RA-26": "test_regimes::test_closed_and_opened_again_the_minimum_changes_where_the_text_says_so",
    "R-RA-27": "test_roulette_chips::test_r_ra_27_29_gains_are_announced_in_detail_player_by_player_in_his_own_chips",
    "R-RA-28": "test_traps_wheels::test_t20_dozens_are_not_always_first",
    "R-RA-29": "test_roulette_chips::test_r_ra_27_29_gains_are_announced_in_detail_player_by_player_in_his_own_chips",
    "R-AN-01": "test_regimes::test_the_table_opens_and_closes_only_with_what_the_text_wants_signed",
    "R-AN-02": "test_roulette_chips::test_r_ra_02_r_an_02_as_many_colours_as_the_table_has_boxes",
    "R-AN-03": "test_roulette_chips::test_r_an_03_the_additional_series_needs_a_free_compartment",
    "R-AN-04": "test_roulette_chips::test_r_an_04_a_chip_with_a_foreign_mark_is_refused",
    "R-AN-05": "test_roulette_chips::test_r_an_05_a_plaque_is_worth_twenty_of_the_player_s_chips",
    "R-AN-06": "test_roulette_chips::test_r_ra_03_r_an_06_seats",
    "R-AN-09": "test_roulette_chips::test_r_an_09_the_series_are_complete_before_the_opening",
    "R-AN-11": "test_roulette_chips::test_r_an_11_a_hippodrome_needs_a_chef_de_table",
    "R-AN-12": "test_traps_wheels::test_t86_wrong_direction_does_not_void",
    "R-AN-13": "test_traps_wheels::test_t27_jeton_in_the_cylinder",
    "R-AN-14": "test_traps_wheels::test_t06_the_call_comes_during_the_spin_at_a_roulette",
    "R-AN-15": "test_traps_wheels::test_t06_the_call_comes_during_the_spin_at_a_roulette",
    "R-AN-16": "test_traps_wheels::test_t27_jeton_in_the_cylinder",
    "R-AN-17": "test_roulette_chips::test_r_ra_06_r_an_17_piles_are_rebuilt_before_each_launch",
    **{f"R-AN-{n}": "test_payouts::test_the_bet_pays_covers_and_is_limited_as_the_file_says" for n in (19, 20, 21, 26)},
    "R-AN-22": "test_traps_wheels::test_t21_zero_in_three_roulettes",
    "R-AN-23": "test_roulette_chips::test_t24_value_chips_at_the_anglaise",
    "R-AN-24": "test_roulette_chips::test_t24_the_attested_exception",
    "R-AN-25": "test_roulette_bets::test_winners_stay_and_losers_go",
    "R-AN-27": "test_roulette_chips::test_t25_nothing_said_is_the_minimum_and_twenty_times_it_the_most",
    "R-AN-28": "test_roulette_chips::test_t25_at_the_anglaise_another_value_is_another_colour",
    "R-AN-29": "test_roulette_chips::test_r_an_29_the_end_of_the_seance_converts_every_series",
    "R-AN-30": "test_regimes::test_closed_and_opened_again_the_minimum_changes_where_the_text_says_so",
    "R-AN-31": "test_traps_wheels::test_t19_payment_walks_differ",
    "R-AN-32": "test_traps_wheels::test_t20_dozens_are_not_always_first",
    "R-BO-01": "test_boule::test_r_bo_01_impossible_options_are_refused",
    "R-BO-02": "test_boule::test_r_bo_02_as_many_tableaux_as_the_house_has",
    "R-BO-04": "test_seance::test_r_bo_04_it_cannot_be_changed_in_the_seance_and_is_decided_anew_for_the_next",
    "R-BO-05": "test_seance::test_r_bo_05_another_decision_needs_another_signature",
    "R-BO-06": "test_seance::test_r_bo_06_how_many_may_play_follows_from_the_decision",
    "R-BO-07": "test_boule::test_r_bo_07_money_changed_at_the_table",
    "R-BO-08": "test_boule::test_r_bo_08_the_winner_keeps_his_stake_and_may_take_it",
    "R-BO-09": "test_boule::test_t02_r_bo_09_no_sense_and_no_turns",
    "R-BO-10": "test_boule::test_r_bo_10_only_pleins_and_even_chances",
    "R-BO-11": "test_boule::test_r_bo_11_12_every_bet_on_every_number",
    "R-BO-12": "test_boule::test_r_bo_11_12_every_bet_on_every_number",
    "R-BO-13": "test_boule::test_t01_r_bo_13_five_kills_every_even_chance",
    "R-BO-14": "test_boule::test_r_bo_14_never_below_the_declared_minimum",
    "R-BO-15": "test_boule::test_t07_r_bo_15_16_17_raised_at_the_opening_and_frozen",
    "R-BO-16": "test_boule::test_t07_r_bo_15_16_17_raised_at_the_opening_and_frozen",
    "R-BO-17": "test_boule::test_t07_r_bo_15_16_17_raised_at_the_opening_and_frozen",
    "R-BO-18": "test_boule::test_r_bo_18_19_maxima_are_reckoned_from_the_raised_minimum",
    "R-BO-19": "test_boule::test_r_bo_18_19_maxima_are_reckoned_from_the_raised_minimum",
    "R-BO-20": "test_boule::test_t08_r_bo_20_the_maximum_is_per_player_and_cylinder",
    "R-BO-21": "test_seance::test_r_bo_21_players_presumed_to_play_together_are_one_for_the_maximum",
    "R-VT-01": "test_vingt_trois::test_r_vt_01_16_impossible_options_are_refused",
    "R-VT-02": "test_vingt_trois::test_r_vt_02_as_many_tableaux_as_the_house_has",
    "R-VT-04": "test_vingt_trois::test_r_vt_04_05_the_decision_and_who_must_be_there",
    "R-VT-05": "test_vingt_trois::test_r_vt_04_05_the_decision_and_who_must_be_there",
    "R-VT-06": "test_vingt_trois::test_r_vt_06_money_changed_at_the_table",
    "R-VT-07": "test_vingt_trois::test_r_vt_07_the_same_sense_is_signalled_at_the_start_and_held",
    "R-VT-08": "test_vingt_trois::test_t06_r_vt_08_spin_then_call",
    "R-VT-09": "test_vingt_trois::test_r_vt_09_from_the_call_on_stakes_are_pushed_back",
    "R-VT-10": "test_vingt_trois::test_r_vt_10_the_winner_may_take_his_stake",
    "R-VT-11": "test_vingt_trois::test_r_vt_11_to_15_every_bet_on_every_cell_returns_eight_ninths",
    "R-VT-12": "test_vingt_trois::test_r_vt_11_to_15_every_bet_on_every_cell_returns_eight_ninths",
    "R-VT-13": "test_vingt_trois::test_r_vt_11_to_15_every_bet_on_every_cell_returns_eight_ninths",
    "R-VT-14": "test_vingt_trois::test_r_vt_11_to_15_every_bet_on_every_cell_returns_eight_ninths",
    "R-VT-15": "test_vingt_trois::test_r_vt_11_to_15_every_bet_on_every_cell_returns_eight_ninths",
    "R-VT-16": "test_vingt_trois::test_t05_r_vt_16_the_colour_belongs_to_the_cell",
    "R-VT-17": "test_vingt_trois::test_r_vt_17_18_19_raised_at_the_opening_and_frozen",
    "R-VT-18": "test_vingt_trois::test_r_vt_17_18_19_raised_at_the_opening_and_frozen",
    "R-VT-19": "test_vingt_trois::test_r_vt_17_18_19_raised_at_the_opening_and_frozen",
    "R-VT-20": "test_vingt_trois::test_r_vt_20_21_maxima_are_reckoned_from_the_raised_minimum",
    "R-VT-21": "test_vingt_trois::test_r_vt_20_21_maxima_are_reckoned_from_the_raised_minimum",
    "R-VT-22": "test_vingt_trois::test_r_vt_22_the_maximum_is_per_player_and_cylinder",
}
"""E, C or D in the spec, and what else the code names."""
BY_PEOPLE = {
    "R-BO-03": "who runs the partie",
    "R-VT-03": "who runs the partie",
    "R-GEN-09": "custody of cards, which no wheel has",
    "R-RC-05": "who serves the table",
    "R-RC-13": "the marker on the winning colour",
    "R-RF-07": "what the bouts de table do",
    "R-RF-08": "chefs and sous-chefs touch no money",
    "R-RF-35": "who takes and who pays",
    "R-RF-37": "where people stand",
    "R-RA-04": "who serves the table",
    "R-RA-05": "the chef touches no chips",
    "R-AN-07": "who serves the table",
    "R-AN-08": "the chef's two tables",
    "R-AN-10": "a series that is given back is counted",
    "R-AN-18": "the croupier places stakes for players",
    "R-AN-33": "not observable",
    "R-AN-34": "payments with value chips are authorised",
    "R-AN-35": "tips are changed",
}
"""A or N in the spec: people do it; `attest` records what they say of it."""
IN_THE_SPEC = {"GEN": 10, "BO": 21, "VT": 22, "RC": 22, "RF": 37, "RA": 29, "AN": 35}
"""Requirements of each page, numbered from 1."""


@pytest.mark.parametrize("requirement", PROVED)
def test_every_requirement_has_its_test(requirement: str) -> None:
    module, _, name = PROVED[requirement].partition("::")
    assert callable(getattr(importlib.import_module(f"tests.rules.{module}"), name))


def test_every_requirement_of_the_spec_is_proved_or_left_to_people() -> None:
    every = {f"R-{page}-{n:02}" for page, most in IN_THE_SPEC.items() for n in range(1, most + 1)}
    known = [*PROVED, *BY_PEOPLE, *OTHER_GAMES]
    assert sorted(known) == sorted(every)


def test_every_requirement_that_the_code_names_is_proved() -> None:
    """No breach, refusal or limit bears an id that the spec has not."""
    named = {
        node.value
        for path in RULES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("R-")
    }
    assert named <= PROVED.keys()


def test_every_trap_of_the_wheels_has_its_test() -> None:
    """T-01 to T-27 of spec/traps.md, each by its number in the name of a test."""
    found = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        found |= {int(n) for n in re.findall(r"^def test_t(\d\d)_", path.read_text("utf-8"), re.MULTILINE)}
    assert found >= set(range(1, 28))


def test_r_gen_02_money_is_never_a_float() -> None:
    for path in RULES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), path
            assert not (isinstance(node, ast.Name) and node.id == "float"), path
            assert not (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)), path


def test_r_rc_01_a_stake_is_chips_on_the_layout_and_nothing_else() -> None:
    """Stakes are born in one place only, from the fact that chips were put down."""
    made = {
        path.name
        for path in RULES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Stake"
    }
    assert made == {"stakes.py", "cases.py"}  # a table's, and those of a case of `settle`
