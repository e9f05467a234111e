"""Vingt-trois: every E, C and D requirement of its spec, the draw, the bets, the money.

| requirement | where it is shown, when not in a test below that bears its name |
|---|---|
| R-VT-03 | attested by people, nothing to decide |
| R-VT-04 to R-VT-06 | the decision and its signatures: test_seance, with the law that boule and vingt-trois share |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import config_file
from controller.config_check import from_data
from controller.errors import ConfigError
from rules.bets import Stake
from rules.cases import CaseError, answer
from rules.decisions import (
    Announce,
    BetsClosed,
    Phase,
    Refused,
    Severity,
    StakeAccepted,
    StakeRefused,
    Status,
)
from rules.facts import Announced, DeviceLost, Direction, Doubtful, Fact, Origin, PocketRead, SpinStarted, SpinStopped
from rules.game import Context, Coup, House
from rules.games.vingt_trois import COLOURS, GAME, PLATEAU, VingtTroisOptions, at_cell, read, result, settle
from rules.wheel import WheelCoup
from tests.rules.playbook import CCW, CW, MS
from tests.rules.wheels import PER_TURN, Wheel, table

HOUSE = House(
    declared_minimum_cents=100,
    tableaux=2,
    sources=("cups", "console"),
    draw_devices=("wheel", "cups"),
    options=VingtTroisOptions(max_plein=50, max_chances_simples=250, plateau=PLATEAU),
)
SEVEN_RED, SEVEN_BLACK, THIRTEEN = (
    PLATEAU.index((7, "rouge")),
    PLATEAU.index((7, "noir")),
    PLATEAU.index((13, "neutre")),
)


def vingt_trois(house: House = HOUSE, **changes: Any) -> Wheel:
    """A vingt-trois for twelve players that is open, its first coup begun."""
    game = opening(house, **changes)
    assert game.is_in(Phase.MISES_OUVERTES)
    return game


def opening(house: House = HOUSE, asked: Mapping[str, Any] | None = None, **changes: Any) -> Wheel:
    game = table("vingt_trois", house, **changes)
    game.command("options", plus_de_douze_joueurs=False)
    game.command("attest", what="affiche")
    game.command("open", **(asked or {}))
    return game


def turning(game: Wheel, direction: Direction = CW) -> Wheel:
    """Rien ne va plus, then the plate."""
    game.call()
    game.spin(direction)
    return game


def rests(game: Wheel, cell: int) -> None:
    """The ball rests in a cell: read by the cells and by the croupier."""
    game.read(None, cell=cell, source="cups")
    game.read(PLATEAU[cell][0], "console", cell=cell)


# --- equipment and options -------------------------------------------------------------------------------------------


def swapped(first: int, number: int, colour: str) -> tuple[tuple[int, str], ...]:
    """The plate with another cell in place of one."""
    return (*PLATEAU[:first], (number, colour), *PLATEAU[first + 1 :])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_plein": 19}, "max_plein: 19; allowed: 20 to 50 times the minimum"),
        ({"max_plein": 51}, "max_plein: 51"),
        ({"max_chances_simples": 99}, "max_chances_simples: 99; allowed: 100 to 250"),
        ({"max_chances_simples": 251}, "max_chances_simples: 251"),
        ({"plateau": ()}, "plateau: 0 cells, .* want 27: 1 to 4 once, 5 to 11 twice, 12 to 14 three times"),
        ({"plateau": PLATEAU[1:]}, "plateau: 26 cells"),
        ({"plateau": swapped(1, 15, "rouge")}, "plateau: 27 cells"),
        ({"plateau": swapped(1, 5, "rouge")}, "plateau: 27 cells"),
        ({"plateau": swapped(1, 1, "vert")}, "plateau: .*12 rouge, 12 noir, and neutre the three cells of 13"),
        ({"plateau": swapped(1, 1, "noir")}, "plateau: .*12 rouge"),
        ({"plateau": (*swapped(0, 13, "rouge")[:1], (1, "neutre"), *PLATEAU[2:])}, "plateau: .*12 rouge"),
    ],
)
def test_r_vt_01_16_impossible_options_are_refused(options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(HOUSE.options, **options)


def test_r_vt_01_the_shipped_plate_has_27_cells_of_14_numbers() -> None:
    config = from_data(config_file.read_toml(config_file.shipped_tables()["vingt-trois"]), "test")
    plate = config.house.options.plateau
    assert len(plate) == 27
    assert {colour: sum(its == colour for _, its in plate) for colour in COLOURS} == COLOURS
    assert [sum(of == number for of, _ in plate) for number in range(1, 15)] == [1] * 4 + [2] * 7 + [3] * 3
    for colour, after in zip(plate, (*plate[1:], plate[0]), strict=True):
        assert colour[1] != after[1]


def test_r_vt_01_the_encoder_counts_the_cells_of_the_plate() -> None:
    data = config_file.read_toml(config_file.shipped_tables()["vingt-trois"])
    data["devices"]["wheel"]["cells"] = 37
    with pytest.raises(ConfigError, match=r"devices.wheel.cells = 37: the wheel of this game has 27"):
        from_data(data, "test")


@pytest.mark.parametrize("key", ["plateau", "max_plein", "max_chances_simples"])
def test_r_vt_16_what_the_text_does_not_give_has_no_default(key: str) -> None:
    data = config_file.read_toml(config_file.shipped_tables()["vingt-trois"])
    del data["options"][key]
    with pytest.raises(ConfigError, match=f"options.{key}"):
        from_data(data, "test")


def test_r_vt_02_as_many_tableaux_as_the_house_has() -> None:
    game = vingt_trois(tableaux=3)
    for tableau in (1, 2, 3):
        game.chip("plein:7", 100, tableau=tableau)
        assert game.one(StakeAccepted).tableau == tableau


@pytest.mark.parametrize("more", [True, False])
def test_r_vt_06_money_changed_at_the_table(more: bool) -> None:
    game = table("vingt_trois", HOUSE)
    game.command("options", plus_de_douze_joueurs=more)
    game.command("attest", what="chef_de_table" if more else "affiche", role="chef" if more else "comite")
    game.command("open")
    game.say("change_a_table")
    if more:
        assert game.ignored
    else:
        assert (game.breach().code, game.breach().requirement) == ("change_interdit", "R-VT-06")


def test_r_vt_04_05_the_decision_and_who_must_be_there() -> None:
    game = table("vingt_trois", HOUSE)
    game.command("open")
    assert game.one(Refused).requirement == "R-VT-04"
    game.command("options", plus_de_douze_joueurs=True)
    game.command("open")
    assert (game.one(Refused).code, game.one(Refused).requirement) == ("attestation_manquante", "R-VT-05")


# --- the draw: every row of the state table --------------------------------------------------------------------------


def test_a_draw_from_the_call_to_the_payment() -> None:
    game = vingt_trois()
    game.say("faites_vos_jeux")
    game.chip("plein:7", 1000, player="Anne")
    game.call()
    assert game.one(BetsClosed).how == "croupier"
    game.spin(CW)
    assert game.said("premier_actionnement")
    assert game.is_in(Phase.JEUX_FAITS)
    assert game.state.coup is not None
    assert game.state.coup.step == "started"
    game.stop(4 * PER_TURN)
    game.read(None, cell=SEVEN_RED, source="cups")
    assert game.is_in(Phase.RESULTAT)
    game.read("7-rouge", "console")
    ended = game.ended()
    assert (ended.status, ended.reasons, ended.direction) == (Status.VALID, (), CW)
    assert (ended.travel_counts, ended.per_turn) == (4 * PER_TURN, PER_TURN)
    assert ended.outcome == {"number": 7, "colour": "rouge", "cell": SEVEN_RED, "chances": ["rouge"]}
    assert ended.sources == {"cups": "7 rouge", "console": "7 rouge"}
    assert list(ended.times) == ["faites_vos_jeux", "closed", "started", "ended"]
    assert game.one(Announce).text == "7, rouge"
    assert game.paid() == [("plein", "win", 11_000)]


def test_a_plate_may_keep_turning_and_no_number_of_turns_is_asked() -> None:
    game = turning(vingt_trois())
    rests(game, SEVEN_RED)
    assert (game.ended().status, game.ended().travel_counts) == (Status.VALID, None)
    game.stop(PER_TURN)
    assert game.ignored
    turning(game, CCW)
    game.stop(1)
    rests(game, SEVEN_RED)
    assert game.ended().status is Status.VALID


def test_r_vt_07_the_same_sense_is_signalled_at_the_start_and_held() -> None:
    game = turning(vingt_trois())
    rests(game, SEVEN_RED)
    turning(game, CW)
    assert (game.breach().requirement, game.breach().severity) == ("R-VT-07", Severity.HELD)
    assert game.lit == {"sens", "buzzer"}
    rests(game, SEVEN_BLACK)
    assert (game.ended().status, game.lit) == (Status.HELD, {"litige"})
    game.command("resolve", role="chef", **{"as": "valid"})
    assert game.ended().status is Status.VALID
    turning(game, CCW)
    assert game.reasons == []


def test_r_vt_07_a_second_actuation_in_the_coup_is_held_and_remembered() -> None:
    game = turning(vingt_trois())
    game.spin(CW)  # pushed again, or started again from rest: the same actuation
    assert game.ignored
    game.spin(CCW)
    assert (game.breach().code, game.breach().requirement) == ("relance_apres_rnvp", "R-VT-07")
    assert game.state.last_direction is CCW
    rests(game, SEVEN_RED)
    assert game.ended().status is Status.HELD


def test_r_vt_07_a_restart_finds_the_plate_turning() -> None:
    game = turning(vingt_trois())
    rests(game, SEVEN_RED)
    game.call()
    game.spin(CW, found=True)  # what turned before still does
    assert game.ignored
    game.spin(CCW, found=True)
    assert game.reasons == []
    rests(game, SEVEN_RED)
    assert game.ended().status is Status.VALID


def test_t06_r_vt_08_call_spin_stake() -> None:
    """RNVP at 1.0 s, spin at 1.8 s, stake at 2.1 s: the stake is rejected, the coup valid."""
    game = vingt_trois()
    game.call(1000)
    game.now = 1799 * MS
    game.spin(CW)
    game.chip("rouge", 100, at_ns=2100 * MS)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("mise_tardive", "R-GEN-05")
    rests(game, SEVEN_RED)
    assert game.ended().status is Status.VALID


def test_t06_r_vt_08_spin_then_call() -> None:
    """Spin at 1.8 s and RNVP at 2.5 s: incident, bets closed from 1.8 s, coup held."""
    game = vingt_trois()
    game.chip("noir", 100, player="Anne", at_ns=1700 * MS)
    game.chip("noir", 100, player="Bruno", at_ns=2000 * MS)
    game.do(SpinStarted(at_ns=1800 * MS, source="wheel", direction=CW))
    assert (game.breach().code, game.breach().requirement) == ("tirage_avant_rnvp", "R-VT-08")
    assert game.breach().severity is Severity.HELD
    assert (game.one(BetsClosed).at_ns, game.one(BetsClosed).how) == (1800 * MS, "absent")
    assert (game.one(StakeRefused).player, game.one(StakeRefused).code) == ("Bruno", "mise_tardive")
    assert game.lit == {"rien_ne_va_plus", "buzzer"}
    game.now = 2499 * MS
    game.call()
    assert game.ignored
    rests(game, SEVEN_BLACK)
    assert (game.ended().status, [b.code for b in game.ended().reasons]) == (Status.HELD, ["tirage_avant_rnvp"])
    game.command("resolve", role="chef", **{"as": "valid"})
    assert game.paid() == [("noir", "win", 100)]


def test_t06_r_vt_08_a_call_told_before_the_spin_that_preceded_it() -> None:
    """The encoder knows a spin some way after its first edge: what counts is when, not who is heard first."""
    game = vingt_trois()
    game.chip("noir", 100, player="Anne", at_ns=1900 * MS)
    game.now = 1999 * MS
    game.call()
    game.do(SpinStarted(at_ns=1800 * MS, source="wheel", direction=CW))
    assert (game.breach().code, game.one(BetsClosed).at_ns) == ("tirage_avant_rnvp", 1800 * MS)
    assert game.one(StakeRefused).player == "Anne"
    assert game.state.stakes == ()


def test_r_vt_08_without_any_call_the_coup_is_held() -> None:
    game = vingt_trois()
    game.spin(CW)
    rests(game, SEVEN_RED)
    assert (game.ended().status, game.ended().direction) == (Status.HELD, CW)


def test_r_vt_09_from_the_call_on_stakes_are_pushed_back() -> None:
    game = vingt_trois()
    game.call()
    game.chip("rouge", 100)
    assert game.one(StakeRefused).code == "mise_tardive"


def test_a_ball_in_a_plate_that_nobody_turned_is_held() -> None:
    game = vingt_trois()
    game.read(None, cell=SEVEN_RED, source="cups")
    assert game.ignored  # no call, no turn: nothing was drawn
    game.call()
    rests(game, SEVEN_RED)
    assert [(b.code, b.severity) for b in game.ended().reasons] == [("cylindre_non_actionne", Severity.HELD)]


def test_a_ball_in_a_plate_that_nobody_watched_is_held_for_its_instrument() -> None:
    game = vingt_trois()
    game.call()
    game.do(DeviceLost(at_ns=game.at(), source="wheel", device="wheel", why="unplugged"))
    game.read(None, cell=SEVEN_RED, source="cups")
    assert "appareil_perdu" in game.reasons


def test_a_restart_while_the_plate_turns_is_held_once() -> None:
    game = turning(vingt_trois())
    game.do(Doubtful(at_ns=game.at(), source="controller", device="wheel", why="not_observed"))
    game.spin(CW, found=True)
    assert game.ignored
    rests(game, SEVEN_RED)
    assert [b.code for b in game.ended().reasons] == ["tirage_non_observe"]
    assert game.state.last_direction is CW


def test_a_call_after_the_payment_begins_the_next_coup() -> None:
    game = turning(vingt_trois())
    rests(game, SEVEN_RED)
    turning(game, CCW)
    assert (game.state.coup_no, game.reasons) == (2, [])


def test_a_plate_turned_during_the_payment_is_a_draw_before_its_call() -> None:
    game = turning(vingt_trois())
    rests(game, SEVEN_RED)
    game.spin(CCW)
    assert (game.state.coup_no, game.reasons) == (2, ["tirage_avant_rnvp"])


# --- the cell --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [7, "7", 12, 14])
def test_r_vt_16_a_number_alone_is_refused_with_words(value: int | str) -> None:
    game = turning(vingt_trois(sources=("console",)))
    game.read(value, "console")
    assert game.one(Announce).code == "couleur_a_preciser"
    assert (game.one(Refused).command, game.one(Refused).requirement) == ("confirm", "R-VT-16")
    assert "7-rouge" in game.one(Refused).text
    game.command("confirm", role="croupier", value=value)
    assert game.one(Refused).code == "couleur_a_preciser"
    game.command("outcome", role="chef", value=value, second="M. Bon")
    assert game.one(Refused).code == "couleur_a_preciser"
    game.read(value, "console", cell=PLATEAU.index((int(value), "noir")))
    assert game.ended().outcome is not None
    assert game.ended().outcome["colour"] == "noir"  # type: ignore[index]


def test_r_vt_16_the_chef_too_must_say_the_colour() -> None:
    game = vingt_trois()
    game.spin(CW)
    rests(game, SEVEN_RED)
    game.command("resolve", role="chef", outcome=7, **{"as": "valid"})
    assert game.one(Refused).code == "couleur_a_preciser"
    game.command("resolve", role="chef", outcome="7-noir", **{"as": "valid"})
    assert game.ended().outcome == {"number": 7, "colour": "noir", "cell": SEVEN_BLACK, "chances": ["noir"]}


@pytest.mark.parametrize("value", [0, 15, "00", "07", "rouge", "7-vert", "13-rouge", "", "²"])
def test_what_is_no_result(value: int | str) -> None:
    game = turning(vingt_trois())
    game.read(value, "console")
    assert game.ignored
    assert game.is_in(Phase.JEUX_FAITS)


def test_an_instrument_that_knows_no_colour_is_not_asked() -> None:
    game = turning(vingt_trois())
    game.read(7, "cups")
    assert game.ignored


@pytest.mark.parametrize("typed", ["7-rouge", "7 rouge", "7_rouge", "7rouge"])
def test_a_number_with_its_colour(typed: str) -> None:
    assert read(typed, HOUSE.options) == at_cell(SEVEN_RED, HOUSE.options)


def test_r_vt_16_where_one_cell_only_is_meant_it_is_told() -> None:
    for number in (1, 2, 3, 4):
        cell = next(n for n, (of, _) in enumerate(PLATEAU) if of == number)
        assert read(number, HOUSE.options) == read(str(number), HOUSE.options) == at_cell(cell, HOUSE.options)
    assert read(13, HOUSE.options) == result(13, "neutre")  # three cells, one colour
    assert read("12-rouge", HOUSE.options) == result(12, "rouge")  # two cells
    assert read("12-noir", HOUSE.options) == at_cell(PLATEAU.index((12, "noir")), HOUSE.options)
    for nowhere in (-1, 27, None):
        assert at_cell(nowhere, HOUSE.options) is None


def test_sources_must_agree_on_the_colour() -> None:
    game = turning(vingt_trois())
    game.read(None, cell=SEVEN_RED, source="cups")
    game.read("7-noir", "console")
    assert (game.ended().status, game.ended().outcome) == (Status.HELD, None)


# --- bets and money --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spot", ["pair", "impair", "passe", "manque", "neutre", "plein:15", "plein:0", "cheval:1-2"])
def test_r_vt_14_no_other_bets(spot: str) -> None:
    game = vingt_trois()
    game.chip(spot, 100)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("combinaison_inexistante", "R-VT-14")


def net(bet: str, number: int, colour: str, on: tuple[int, ...] = ()) -> Fraction:
    stake = Stake(id="a", player="J", type=bet, on=on, cents=500)
    settled = settle((stake,), {"number": number, "colour": colour}, WheelCoup(no=1), None)
    entry = settled.lines[0]
    assert entry.net is not None
    assert settled.stay == ((stake,) if entry.status == "win" else ())  # R-VT-10
    assert (settled.order, settled.player_order) == ((), ())  # the text has none
    return entry.net / 500


def test_r_vt_11_to_15_every_bet_on_every_cell_returns_eight_ninths() -> None:
    pays = {**dict.fromkeys(range(1, 5), 23), **dict.fromkeys(range(5, 12), 11), **dict.fromkeys(range(12, 15), 7)}
    for number, colour in PLATEAU:
        for on, gain in pays.items():
            assert net("plein", number, colour, (on,)) == (gain if on == number else -1)
        for chance in ("rouge", "noir"):
            assert net(chance, number, colour) == (1 if chance == colour else -1)
    for on in pays:
        assert sum(net("plein", *cell, (on,)) for cell in PLATEAU) / 27 == Fraction(-1, 9)
    for chance in ("rouge", "noir"):
        assert sum(net(chance, *cell) for cell in PLATEAU) / 27 == Fraction(-1, 9)


def test_t03_r_vt_13_15_thirteen() -> None:
    assert 2000 * net("rouge", 13, "neutre") + 500 * net("plein", 13, "neutre", (13,)) == 1500
    game = vingt_trois()
    for chance in ("rouge", "noir"):
        game.chip(chance, 1000)
    turning(game)
    rests(game, THIRTEEN)
    assert game.paid() == [("rouge", "lose", -1000), ("noir", "lose", -1000)]
    assert game.ended().outcome == {"number": 13, "colour": "neutre", "cell": THIRTEEN, "chances": []}
    assert game.said("resultat")
    assert next(d.text for d in game.told(Announce) if d.code == "resultat") == "13, les chances simples perdent"


@pytest.mark.parametrize(("number", "won"), [(4, 115), (5, 55), (11, 55), (12, 35)])
def test_t04_r_vt_11_12_13_the_tiers(number: int, won: int) -> None:
    colour = next(colour for of, colour in PLATEAU if of == number)
    assert 5 * net("plein", number, colour, (number,)) == won


@pytest.mark.parametrize(("cell", "won"), [(SEVEN_RED, 12_000), (SEVEN_BLACK, 10_000)])
def test_t05_r_vt_16_the_colour_belongs_to_the_cell(cell: int, won: int) -> None:
    game = vingt_trois()
    game.chip("rouge", 1000)
    game.chip("plein:7", 1000)
    turning(game)
    rests(game, cell)
    assert sum(line.net or 0 for line in game.lines()) == won


def test_r_vt_10_the_winner_may_take_his_stake() -> None:
    game = vingt_trois()
    game.chip("rouge", 1000)
    turning(game)
    rests(game, SEVEN_RED)
    game.take("rouge", 1000)
    assert game.one(StakeAccepted).cents == 0


# --- minimum and maximum ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maxima", "requirement"),
    [
        ({"plein": 3999}, "R-VT-20"),
        ({"plein": 10_001}, "R-VT-20"),
        ({"noir": 19_999}, "R-VT-21"),
        ({"chances_simples": 50_001}, "R-VT-21"),
    ],
)
def test_r_vt_20_21_maxima_are_reckoned_from_the_raised_minimum(maxima: dict[str, int], requirement: str) -> None:
    game = opening(asked={"minimum_cents": 200, "maxima": maxima})
    assert (game.one(Refused).code, game.one(Refused).requirement) == ("maximum_hors_fourchette", requirement)


def test_r_vt_17_18_19_raised_at_the_opening_and_frozen() -> None:
    game = opening(asked={"minimum_cents": 99})
    assert game.one(Refused).code == "minimum_sous_le_declare"
    game = opening(asked={"minimum_cents": 200, "maxima": {"plein": 4000, "rouge": 20_000}})
    assert game.state.limits is not None
    assert game.state.limits.maxima == {"plein": 4000, "rouge": 20_000, "noir": 20_000}
    assert game.state.limits.minimum_requirement == "R-VT-17"
    for asked in ({"minimum_cents": 100}, {"maxima": {"plein": 5000}}):
        game.command("limits", **asked)
        assert (game.one(Refused).code, game.one(Refused).requirement) == ("minimum_fige", "R-VT-18")
    game.command("close")
    game.command("open", minimum_cents=100)
    assert game.one(Refused).code == "minimum_fige"


@pytest.mark.parametrize("tableaux", [2, 3])
def test_r_vt_22_the_maximum_is_per_player_and_cylinder(tableaux: int) -> None:
    game = vingt_trois(tableaux=tableaux)
    game.chip("plein:4", 3000, player="Anne")
    game.chip("plein:4", 2001, player="Anne", tableau=tableaux)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("au_dessus_du_maximum", "R-VT-22")
    game.chip("plein:5", 5001, player="Anne")
    assert game.one(StakeRefused).requirement == "R-VT-20"
    game.chip("plein:4", 5000, player="Bruno", tableau=tableaux)
    assert game.told(StakeAccepted)
    game.command("options", associations_presumees=[["Anne", "Bruno"]])
    game.chip("plein:4", 100, player="Anne")
    assert game.told(StakeRefused)


# --- tablectl settle -------------------------------------------------------------------------------------------------


def test_a_case_of_settle() -> None:
    bets = [
        {"id": "a", "player": "J1", "type": "plein", "on": [7], "stake": 1000},
        {"id": "b", "player": "J1", "type": "rouge", "stake": 1000},
        {"id": "c", "player": "J2", "type": "pair", "stake": 1000},
        {"id": "d", "player": "J2", "type": "noir", "stake": 25_001},
    ]
    case: dict[str, Any] = {"game": "vingt_trois", "kind": "settlement", "config": {"min": 100}, "bets": bets}
    assert answer({**case, "outcome": {"number": 7, "colour": "noir"}}) == {
        "net": {"a": 11_000, "b": -1000, "c": 0, "d": 0},
        "status": {"a": "win", "b": "lose", "c": "refused", "d": "refused"},
        "net_by_player": {"J1": 10_000, "J2": 0},
    }
    for outcome, pointer in (
        ({"number": 7}, "/outcome/colour"),
        ({"number": 7, "colour": "vert"}, "/outcome/colour"),
        ({"number": 7, "colour": "neutre"}, "/outcome/colour"),
        ({"number": 13, "colour": "rouge"}, "/outcome/colour"),
        ({"number": 15, "colour": "rouge"}, "/outcome/number"),
    ):
        with pytest.raises(CaseError) as error:
            answer({**case, "outcome": outcome})
        assert error.value.pointer.startswith(pointer)


@pytest.mark.parametrize(
    ("config", "stake", "requirement"),
    [({}, 5000, None), ({}, 5001, "R-VT-20"), ({"max_plein": 20}, 2001, "R-VT-20"), ({}, 99, "R-VT-17")],
)
def test_a_validation(config: dict[str, int], stake: int, requirement: str | None) -> None:
    bet = {"type": "plein", "on": [4], "stake": stake}
    told: Any = answer({"game": "vingt_trois", "kind": "validation", "config": {"min": 100, **config}, "bet": bet})
    assert (told.get("reason") or {}).get("requirement") == requirement
    with pytest.raises(CaseError):
        answer({"game": "vingt_trois", "kind": "validation", "config": {"max_plein": 51}, "bet": bet})


# --- totality --------------------------------------------------------------------------------------------------------

INSTANTS = st.integers(0, 10**10)
SENSES = st.sampled_from(Direction)
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(
        Announced,
        at_ns=INSTANTS,
        source=st.just("console"),
        code=st.sampled_from(["rien_ne_va_plus", "faites_vos_jeux", "change_a_table", "bonjour"]),
    ),
    st.builds(SpinStarted, at_ns=INSTANTS, source=st.just("wheel"), direction=SENSES, found=st.booleans()),
    st.builds(
        SpinStopped, at_ns=INSTANTS, source=st.just("wheel"), direction=SENSES, travel=INSTANTS, per_turn=st.just(9)
    ),
    st.builds(
        PocketRead,
        at_ns=INSTANTS,
        source=st.sampled_from(["cups", "console"]),
        origin=st.sampled_from([Origin.SENSOR, Origin.PERSON]),
        value=st.one_of(st.none(), st.integers(-1, 16), st.sampled_from(["7-rouge", "00", "rouge"])),
        cell=st.one_of(st.none(), st.integers(-1, 28)),
    ),
)


@given(st.lists(FACTS, max_size=12))
@settings(max_examples=150)
def test_no_fact_makes_the_game_raise(facts: list[Fact]) -> None:
    """Heard in any order by the game, each also by a table that pays and goes on."""
    game = vingt_trois()
    coup: Coup = WheelCoup(no=1)
    for fact in facts:
        coup = GAME.hear(coup, fact, Context(house=HOUSE, phase=Phase.MISES_OUVERTES, last_direction=None)).coup
        game.do(fact)
