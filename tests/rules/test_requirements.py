"""Requirement -> the test that would fail without it: every E, C, D of communs, roue de la chance, roulette française.

The tags are copied from the spec; A (attested by people) and N (not observable) alone are left out.
"""

from __future__ import annotations

import ast
import importlib
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
}
"""E, C or D in the spec."""


@pytest.mark.parametrize("requirement", PROVED)
def test_every_requirement_has_its_test(requirement: str) -> None:
    module, _, name = PROVED[requirement].partition("::")
    assert callable(getattr(importlib.import_module(f"tests.rules.{module}"), name))


def test_every_requirement_that_the_code_names_exists() -> None:
    """No breach, refusal or limit bears an id that the spec has not (the two games and what all share)."""
    named = set()
    for path in [*RULES.glob("*.py"), RULES / "games/roue_de_la_chance.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("R-"):
                named.add(node.value)
    assert named <= PROVED.keys()
    assert len(PROVED) + len(OTHER_GAMES) == 62


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
