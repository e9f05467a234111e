"""The settle format: its examples, its strictness, limits and refusals inside it."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import game as games
from rules.bets import Refusal
from rules.cases import CaseError, answer, answer_all, parse, playing
from rules.game import House
from rules.money import from_wire

WRITTEN = json.loads((Path(__file__).parents[1] / "data/settle-cases.json").read_text("utf-8"), parse_float=Decimal)
COLUMN_2 = list(range(2, 37, 3))


def case(text: str) -> Any:
    """A case as the command line reads it: no floats."""
    return json.loads(text, parse_float=Decimal)


def roulette(*bets: dict[str, Any], numbers: list[Any], game: str = "roulette_francaise", **outcome: Any) -> Any:
    defaults: dict[str, Any] = {"player": "J1", "stake": 100}
    given_bets = [{"id": str(place)} | defaults | bet for place, bet in enumerate(bets)]
    results: dict[str, Any] = {"numbers": numbers, **outcome}
    return answer({"game": game, "kind": "settlement", "bets": given_bets, "outcome": results})


def valid_settlement() -> dict[str, Any]:
    return {
        "game": "roulette_francaise",
        "kind": "settlement",
        "config": {"min": 100},
        "bets": [{"id": "a", "player": "J1", "type": "plein", "on": [17], "stake": 100}],
        "outcome": {"numbers": [17]},
    }


def valid_roue() -> dict[str, Any]:
    return {
        "game": "roue_de_la_chance",
        "kind": "settlement",
        "bets": [{"id": "a", "player": "J1", "type": "vert", "stake": 100}],
        "outcome": {"colour": "vert", "turns": 3},
    }


def boule(number: Any, **outcome: Any) -> dict[str, Any]:
    return {
        "game": "boule",
        "kind": "settlement",
        "bets": [{"id": "a", "player": "J1", "type": "impair", "stake": 100}],
        "outcome": {"number": number, **outcome},
    }


# --- the examples of the format --------------------------------------------------------------------------------------


def test_example_payment_by_type() -> None:
    given_case = case(
        """{"game":"roulette_francaise","kind":"settlement","bets":[
        {"id":"a","player":"J1","type":"cheval","on":[11,14],"stake":200},
        {"id":"b","player":"J2","type":"colonne","on":[2,5,8,11,14,17,20,23,26,29,32,35],"stake":500},
        {"id":"c","player":"J2","type":"noir","stake":1000}],"outcome":{"numbers":[11]}}"""
    )
    assert answer_all(given_case) == {
        "net": {"a": 3400, "b": 1000, "c": 1000},
        "status": {"a": "win", "b": "win", "c": "win"},
        "order": [["b"], ["c"], ["a"]],
        "net_by_player": {"J1": 3400, "J2": 2000},
    }


def test_example_two_zeros() -> None:
    given_case = case(
        """{"game":"roulette_francaise","kind":"settlement","bets":[{"id":"a","player":"J1","type":"pair",
        "stake":600,"choices":["prison","retire"]}],"outcome":{"numbers":[0,0]}}"""
    )
    assert answer_all(given_case) == {"net": {"a": -450}, "status": {"a": "partial"}, "net_by_player": {"J1": -450}}


def test_example_under_three_turns() -> None:
    given_case = case(
        """{"game":"roue_de_la_chance","kind":"settlement","bets":[{"id":"a","player":"J1","type":"vert","stake":300}],
        "outcome":{"colour":"vert","turns":2.9}}"""
    )
    assert answer_all(given_case) == {
        "void": True,
        "net": {"a": 0},
        "status": {"a": "push"},
        "net_by_player": {"J1": 0},
    }


@pytest.mark.parametrize("written", WRITTEN, ids=lambda written: f"{written['from']}-{written['case']['game']}")
def test_cases_written_by_hand_from_the_documents(written: dict[str, Any]) -> None:
    """What a case names of its answer is answered so; the rest of the answer is free."""
    told: Any = answer_all(written["case"])
    for key, wanted in written["answer"].items():
        if key == "reason":
            assert told[key]["requirement"] == wanted["requirement"]
        elif key == "order":
            assert [sorted(group) for group in told[key]] == wanted
        else:
            assert told[key] == wanted, key


def test_a_list_is_answered_by_a_list() -> None:
    assert answer_all([]) == []
    answers = answer_all([valid_settlement(), valid_roue()])
    assert isinstance(answers, list)
    assert [entry["net"]["a"] for entry in answers] == [3500, 300]


# --- settlements -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "void"),
    [
        ("2.99", True),
        ("2.999999999999999999999999", True),
        ("3", False),
        ("3.0", False),
        ("0", True),
        ("5.4", False),
    ],
)
def test_turns_are_compared_exactly(turns: str, void: bool) -> None:
    given_case = valid_roue()
    given_case["outcome"]["turns"] = case(turns)
    assert ("void" in answer(given_case)) is void
    given_case["outcome"]["turns"] = Fraction(turns)
    assert ("void" in answer(given_case)) is void


def test_an_obstructed_draw_is_void_however_many_turns() -> None:
    given_case = valid_roue()
    given_case["outcome"]["valid"] = False
    assert answer(given_case)["void"] is True
    given_case["outcome"] = {"colour": "vert"}
    assert answer(given_case)["net"] == {"a": 300}


def test_players_of_the_roue_in_ascending_order() -> None:
    given_case = valid_roue()
    given_case["bets"] = [
        {"id": player, "player": player, "type": "vert", "stake": stake}
        for player, stake in (("A", 300), ("B", 100), ("C", 300), ("D", 700))
    ]
    given_case["bets"].append({"id": "e", "player": "E", "type": "bleu", "stake": 100})
    assert answer(given_case)["player_order"] == [["B"], ["A", "C"], ["D"]]


@pytest.mark.parametrize(
    ("numbers", "choices", "outcome", "net", "status"),
    [
        ([0], [], {}, -50, "partial"),
        ([0], ["prison"], {}, None, "prison"),
        ([0, 7], ["prison"], {}, 0, "freed"),
        ([0, 8], ["prison"], {}, -100, "lose"),
        ([0, 0], ["prison"], {}, -75, "partial"),
        ([0, 0], ["prison", "prison"], {}, None, "prison"),
        ([0, 0, 7], ["prison", "prison"], {}, -50, "freed"),
        ([0, 0, 0, 7], ["prison", "prison", "prison"], {}, -75, "freed"),
        ([0, 0, 0], ["prison", "prison", "retire"], {}, "-175/2", "partial"),
        ([0], ["prison"], {"last_spin_of_session": True}, -50, "partial"),
        ([0, 0], ["prison", "prison"], {"last_spin_of_session": True}, -75, "partial"),
        ([0, 7], ["prison"], {"last_spin_of_session": True}, 0, "freed"),
        ([7, 0], ["prison"], {}, 100, "win"),
    ],
)
def test_prison_over_successive_results(
    numbers: list[int], choices: list[str], outcome: dict[str, Any], net: object, status: str
) -> None:
    result = roulette({"type": "rouge", "choices": choices}, numbers=numbers, **outcome)
    assert (result["net"]["0"], result["status"]["0"], result["net_by_player"]["J1"]) == (net, status, net)


def test_other_bets_take_part_in_the_first_result_only() -> None:
    result = roulette(
        {"type": "plein", "on": [7]},
        {"type": "plein", "on": [0]},
        {"type": "rouge", "choices": ["prison"]},
        numbers=[0, 7],
    )
    assert result["status"] == {"0": "lose", "1": "win", "2": "freed"}
    assert result["order"] == [["1"]]
    assert result["net_by_player"] == {"J1": 3400}


def test_the_house_may_free_the_whole_stake() -> None:
    given_case = valid_settlement()
    given_case["config"] = {"valeur_liberee": "totalite"}
    given_case["bets"] = [{"id": "a", "player": "J1", "type": "rouge", "stake": 100, "choices": ["prison", "prison"]}]
    given_case["outcome"] = {"numbers": [0, 0, 7]}
    assert answer(given_case)["net"] == {"a": 0}


def test_paid_by_player_at_the_anglaise_and_the_americaine() -> None:
    bets = (
        {"type": "plein", "on": [17], "player": "X"},
        {"type": "douzaine", "on": list(range(13, 25)), "player": "X"},
        {"type": "noir", "player": "Y"},
        {"type": "colonne", "on": COLUMN_2, "player": "Y"},
    )
    for game in ("roulette_anglaise", "roulette_americaine"):
        result = roulette(*bets, numbers=[17], game=game)
        assert result["order_by_player"] == {"X": [["1"], ["0"]], "Y": [["3"], ["2"]]}
        assert "order" not in result


def test_bets_that_the_law_refuses_are_answers() -> None:
    given_case = valid_settlement()
    given_case["bets"] = [
        {"id": "a", "player": "J1", "type": "plein", "on": [17], "stake": 100},
        {"id": "b", "player": "J1", "type": "plein", "on": [17], "stake": 3000},  # with a: over 30 minima
        {"id": "c", "player": "J2", "type": "plein", "on": [17], "stake": 3000},
        {"id": "d", "player": "J1", "type": "cheval", "on": [1, 5], "stake": 100},
        {"id": "e", "player": "J1", "type": "voisins", "stake": 100},
        {"id": "f", "player": "J3", "type": "noir", "stake": 99},
        {"id": "g", "player": "J3", "type": "noir", "stake": 0},
        {"id": "h", "player": "J1", "type": "plein", "on": [17], "stake": 2900, "tableau": 2},
    ]
    result = answer(given_case)
    refused = dict.fromkeys("bdefg", "refused")
    assert result["status"] == {"a": "win", "c": "win", "h": "win"} | refused
    assert result["net"] == {"a": 3500, "c": 105_000, "h": 101_500} | dict.fromkeys("bdefg", 0)
    assert result["net_by_player"] == {"J1": 105_000, "J2": 105_000, "J3": 0}


def test_without_a_minimum_limits_are_not_checked() -> None:
    given_case = valid_settlement()
    del given_case["config"]
    given_case["bets"][0]["stake"] = 1_000_000
    assert answer(given_case)["status"] == {"a": "win"}


# --- validations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "bet", "requirement"),
    [
        ("roulette_francaise", {"type": "plein", "on": [17], "stake": 6000}, None),
        ("roulette_francaise", {"type": "plein", "on": [17], "stake": 6001}, "R-RF-31"),
        ("roulette_francaise", {"type": "rouge", "stake": 200_001}, "R-RF-30"),
        ("roulette_francaise", {"type": "rouge", "on": [], "stake": 199}, "R-GEN-10"),
        ("roulette_francaise", {"type": "rouge", "stake": 0}, "R-GEN-10"),
        ("roulette_francaise", {"type": "cheval", "on": [14, 11], "stake": 200}, None),
        ("roulette_francaise", {"type": "cheval", "on": [1, 5], "stake": 200}, "R-RF-23"),
        ("roulette_francaise", {"type": "cinq", "on": [0, "00", 1, 2, 3], "stake": 200}, "R-RF-23"),
        ("roulette_francaise", {"type": "plein", "on": ["00"], "stake": 200}, "R-RF-23"),
        ("roulette_americaine", {"type": "plein", "on": ["00"], "stake": 4000}, None),
        ("roulette_americaine", {"type": "deux_douzaines", "on": list(range(1, 25)), "stake": 200}, "R-RA-20"),
        ("roulette_anglaise", {"type": "deux_douzaines", "on": list(range(1, 25)), "stake": 96_001}, "R-AN-26"),
        ("roue_de_la_chance", {"type": "blanc", "stake": 1000}, None),
        ("roue_de_la_chance", {"type": "blanc", "stake": 1001}, "R-RC-18"),
        ("roue_de_la_chance", {"type": "blanc", "id": "x", "player": "J1", "stake": 199}, "R-RC-17"),
        ("roue_de_la_chance", {"type": "rose", "stake": 200}, "R-RC-14"),
    ],
)
def test_validation(game: str, bet: dict[str, Any], requirement: str | None) -> None:
    result = answer({"game": game, "kind": "validation", "config": {"min": 200}, "bet": bet})
    if requirement is None:
        assert result == {"accepted": True}
        return
    assert result["accepted"] is False
    reason = result["reason"]
    assert isinstance(reason, dict)
    assert list(reason) == ["code", "requirement", "text"]
    assert reason["requirement"] == requirement


def maximum(bet: dict[str, Any], game: str = "boule", **config: Any) -> Any:
    """The answer to a validation of a maximum, at a minimum of two euros."""
    return answer({"game": game, "kind": "validation", "config": {"min": 200, **config}, "bet": bet})


@pytest.mark.parametrize(
    ("bet", "accepted"),
    [
        ({"type": "rouge", "amount": 100_000, "table_maximum": True}, True),
        ({"type": "rouge", "amount": 100_001, "table_maximum": True}, False),
        ({"type": "passe", "amount": 40_000}, True),
        ({"type": "passe", "amount": 39_999}, False),
        ({"type": "plein", "table_maximum": 20_000}, True),
        ({"type": "plein", "table_maximum": 20_001}, False),
        ({"type": "plein", "table_maximum": 8000, "amount": 8000}, True),
        ({"type": "plein", "table_maximum": 8000, "amount": 8001}, False),
        ({"type": "plein", "table_maximum": 8000, "amount": 0}, False),
        ({"type": "plein", "on": [4], "table_maximum": 8000, "stake": 200}, True),
        ({"type": "plein", "on": [4], "table_maximum": 8000, "stake": 199}, False),
        ({"type": "plein", "on": [10], "table_maximum": 8000}, False),
        ({"type": "plein", "table_maximum": True, "amount": 8000, "stake": 8001}, False),
        ({"type": "cheval", "table_maximum": 8000}, False),
    ],
)
def test_the_maximum_itself_is_checked(bet: dict[str, Any], accepted: bool) -> None:
    """`table_maximum` is the maximum and `amount` the stake, or it is only said to be meant and `amount` is it."""
    told = maximum(bet)
    assert told["accepted"] is accepted
    if not accepted:
        assert told["reason"]["requirement"] in ("R-BO-10", "R-BO-14", "R-BO-18", "R-BO-19", "R-GEN-10")


@pytest.mark.parametrize(
    ("bet", "pointer"),
    [
        ({"table_maximum": False, "amount": 1}, "/bet/table_maximum"),
        ({"table_maximum": "plein", "amount": 1}, "/bet/table_maximum"),
        ({"table_maximum": 0}, "/bet/table_maximum"),
        ({"table_maximum": True}, "/bet/amount"),
        ({"table_maximum": True, "amount": "1"}, "/bet/amount"),
        ({"amount": 0}, "/bet/amount"),
        ({"table_maximum": 20_000, "amount": -1}, "/bet/amount"),
        ({"table_maximum": 20_000, "stake": "1"}, "/bet/stake"),
    ],
)
def test_a_maximum_that_is_none(bet: dict[str, Any], pointer: str) -> None:
    with pytest.raises(CaseError) as caught:
        maximum({"type": "rouge", **bet})
    assert caught.value.pointer == pointer


def test_a_maximum_is_checked_in_games_whose_house_chooses_it_and_needs_the_minimum() -> None:
    with pytest.raises(CaseError, match="/bet/amount: is not a key here"):
        maximum({"type": "orange", "amount": 100}, "roue_de_la_chance")
    with pytest.raises(CaseError, match="/config/min: is missing: a maximum is a multiple of the minimum"):
        answer({"game": "boule", "kind": "validation", "bet": {"type": "rouge", "amount": 100}})


# --- strictness ------------------------------------------------------------------------------------------------------


def without(*path: str) -> dict[str, Any]:
    """A good case without the key at this path."""
    given_case = valid_settlement()
    at: Any = given_case
    for key in path[:-1]:
        at = at[int(key) if isinstance(at, list) else key]
    del at[path[-1]]
    return given_case


def with_value(value: Any, *path: str, roue: bool = False) -> dict[str, Any]:
    """A good case with this value at this path."""
    given_case = valid_roue() if roue else valid_settlement()
    at: Any = given_case
    for key in path[:-1]:
        at = at[int(key) if isinstance(at, list) else key]
    at[path[-1]] = value
    return given_case


@pytest.mark.parametrize(
    ("bad", "pointer"),
    [
        ("a case", ""),
        (None, ""),
        (without("game"), "/game"),
        (with_value("roulette", "game"), "/game"),
        (with_value("pelote_basque", "game"), "/game"),
        (with_value(7, "game"), "/game"),
        (without("kind"), "/kind"),
        (with_value("paiement", "kind"), "/kind"),
        (with_value([], "config"), "/config"),
        (with_value(0, "config", "min"), "/config/min"),
        (with_value(True, "config", "min"), "/config/min"),
        (with_value(1, "config", "max"), "/config/max"),
        (with_value("rien", "config", "valeur_liberee"), "/config/valeur_liberee"),
        (without("bets"), "/bets"),
        (with_value({}, "bets"), "/bets"),
        (with_value([7], "bets"), "/bets/0"),
        (with_value({}, "bet"), "/bet"),
        (without("bets", "0", "id"), "/bets/0/id"),
        (without("bets", "0", "player"), "/bets/0/player"),
        (without("bets", "0", "type"), "/bets/0/type"),
        (without("bets", "0", "stake"), "/bets/0/stake"),
        (with_value("", "bets", "0", "id"), "/bets/0/id"),
        (with_value(1, "bets", "0", "player"), "/bets/0/player"),
        (with_value(-1, "bets", "0", "stake"), "/bets/0/stake"),
        (with_value(True, "bets", "0", "stake"), "/bets/0/stake"),
        (with_value("100", "bets", "0", "stake"), "/bets/0/stake"),
        (with_value(Decimal("100.0"), "bets", "0", "stake"), "/bets/0/stake"),
        (with_value(17, "bets", "0", "on"), "/bets/0/on"),
        (with_value([True], "bets", "0", "on"), "/bets/0/on/0"),
        (with_value([17, None], "bets", "0", "on"), "/bets/0/on/1"),
        (with_value(0, "bets", "0", "tableau"), "/bets/0/tableau"),
        (with_value(1, "bets", "0", "a/b~c"), "/bets/0/a~1b~0c"),
        (with_value("prison", "bets", "0", "choices"), "/bets/0/choices"),
        (with_value(["prison", "rien"], "bets", "0", "choices"), "/bets/0/choices/1"),
        (with_value([7], "bets", "0", "choices"), "/bets/0/choices/0"),
        (without("outcome"), "/outcome"),
        (with_value([], "outcome"), "/outcome"),
        (without("outcome", "numbers"), "/outcome/numbers"),
        (with_value([], "outcome", "numbers"), "/outcome/numbers"),
        (with_value(17, "outcome", "numbers"), "/outcome/numbers"),
        (with_value([17, 37], "outcome", "numbers"), "/outcome/numbers/1"),
        (with_value([-1], "outcome", "numbers"), "/outcome/numbers/0"),
        (with_value(["00"], "outcome", "numbers"), "/outcome/numbers/0"),
        (with_value([True], "outcome", "numbers"), "/outcome/numbers/0"),
        (with_value(["17"], "outcome", "numbers"), "/outcome/numbers/0"),
        (with_value(1, "outcome", "last_spin_of_session"), "/outcome/last_spin_of_session"),
        (with_value(17, "outcome", "number"), "/outcome/number"),
        (with_value("rose", "outcome", "colour", roue=True), "/outcome/colour"),
        (with_value("3", "outcome", "turns", roue=True), "/outcome/turns"),
        (with_value(True, "outcome", "turns", roue=True), "/outcome/turns"),
        (with_value(-1, "outcome", "turns", roue=True), "/outcome/turns"),
        (with_value(Decimal("NaN"), "outcome", "turns", roue=True), "/outcome/turns"),
        (with_value("oui", "outcome", "valid", roue=True), "/outcome/valid"),
        (with_value(["prison"], "bets", "0", "choices", roue=True), "/bets/0/choices"),
        (boule(0), "/outcome/number"),
        (boule(10), "/outcome/number"),
        (boule("5"), "/outcome/number"),
        (boule(True), "/outcome/number"),
        (boule([5]), "/outcome/number"),
        (boule(Decimal("5.0")), "/outcome/number"),
        (boule(5, numbers=[5]), "/outcome/numbers"),
        ({"game": "roue_de_la_chance", "kind": "validation"}, "/bet"),
        ({"game": "roue_de_la_chance", "kind": "validation", "bets": []}, "/bets"),
    ],
)
def test_a_case_that_is_not_of_the_format_is_refused_with_its_place(bad: Any, pointer: str) -> None:
    with pytest.raises(CaseError) as caught:
        answer_all(bad)
    assert caught.value.pointer == pointer
    assert str(caught.value).startswith(f"{pointer or '/'}: ")
    with pytest.raises(CaseError) as caught:
        answer_all([valid_settlement(), bad])
    assert caught.value.pointer == f"/1{pointer}"


def test_every_case_that_is_not_of_the_format_is_named() -> None:
    with pytest.raises(CaseError) as caught:
        answer_all([valid_roue(), without("kind"), valid_roue(), without("bets", "0", "stake"), 7])
    faults = ["/1/kind: is missing", "/3/bets/0/stake: is missing", "/4: must be an object"]
    assert str(caught.value).splitlines() == faults


def test_two_bets_of_one_id() -> None:
    given_case = valid_settlement()
    given_case["bets"] *= 2
    with pytest.raises(CaseError, match="'a' is the id of an earlier bet"):
        answer(given_case)


def test_an_unknown_game_names_what_exists() -> None:
    with pytest.raises(CaseError, match="roulette_americaine, roulette_anglaise, roulette_francaise"):
        answer(with_value("roulette_russe", "game"))
    with pytest.raises(CaseError, match=r"no game 'pelote_basque'; games: .*roue_de_la_chance, roulette_americaine"):
        answer(with_value("pelote_basque", "game"))


def test_limits_that_the_game_refuses_are_a_fault_of_a_settlement() -> None:
    """A house minimum of one colour above its maximum can only come from options; a case has none: force one."""
    read, game = parse(valid_roue() | {"config": {"min": 1}})
    refused = Refusal(code="minimum_sous_le_declare", requirement="R-GEN-10", text="trop bas")
    with pytest.raises(CaseError, match="/config: trop bas"):
        playing(read, replace(game, limits=lambda *_: refused), House(declared_minimum_cents=1))


def test_parsing_keeps_what_the_game_reads_itself() -> None:
    read, game = parse(valid_settlement())
    assert (read.game, read.kind, read.minimum, game.id) == ("roulette_francaise", "settlement", 100, read.game)
    assert [stake.on for stake in read.stakes] == [(17,)]
    assert read.bets[0]["type"] == "plein"


# --- properties ------------------------------------------------------------------------------------------------------

LAYOUTS = {
    name: list(games.load(name).layout(None).spots.values())
    for name in (
        "boule",
        "vingt_trois",
        "roue_de_la_chance",
        "roulette_francaise",
        "roulette_americaine",
        "roulette_anglaise",
    )
}


@st.composite
def any_case(draw: st.DrawFn) -> dict[str, Any]:
    game = draw(st.sampled_from(sorted(LAYOUTS)))
    bets = []
    for place in range(draw(st.integers(0, 6))):
        spot = draw(st.sampled_from(LAYOUTS[game]))
        bet: dict[str, Any] = {
            "id": f"b{place}",
            "player": draw(st.sampled_from(["J1", "J2", "J3"])),
            "type": spot.type,
            "on": draw(st.permutations(spot.on)),
            "stake": draw(st.integers(0, 10_000)),
        }
        if game == "roulette_francaise":
            bet["choices"] = draw(st.lists(st.sampled_from(["retire", "prison"]), max_size=3))
        bets.append(bet)
    if game == "roue_de_la_chance":
        outcome: dict[str, Any] = {
            "colour": draw(st.sampled_from([spot.type for spot in LAYOUTS[game]])),
            "turns": draw(st.decimals(0, 9, places=2)),
        }
    elif game == "boule":
        outcome = {"number": draw(st.integers(1, 9))}
    elif game == "vingt_trois":
        outcome = draw(st.sampled_from([{"number": 13, "colour": "neutre"}, {"number": 7, "colour": "noir"}]))
    else:
        pockets = [0, 0, 0, *range(37), *(["00"] if game == "roulette_americaine" else [])]
        outcome = {
            "numbers": draw(st.lists(st.sampled_from(pockets), min_size=1, max_size=4)),
            "last_spin_of_session": draw(st.booleans()),
        }
    config = {"min": draw(st.integers(1, 500))} if draw(st.booleans()) else {}
    return {"game": game, "kind": "settlement", "config": config, "bets": bets, "outcome": outcome}


@given(any_case())
def test_every_case_of_the_format_is_answered_whole(given_case: dict[str, Any]) -> None:
    result: Any = answer(given_case)
    ids = [bet["id"] for bet in given_case["bets"]]
    assert list(result["net"]) == list(result["status"]) == ids
    for bet in given_case["bets"]:
        net, status = result["net"][bet["id"]], result["status"][bet["id"]]
        if net is None:
            assert status == "prison"
            continue
        exact = from_wire(net)
        assert exact >= -bet["stake"]
        assert (exact > 0) is (status == "win")
        assert (exact == -bet["stake"]) is (status == "lose" or bet["stake"] == 0)
    mine: dict[str, list[Any]] = {}
    for bet in given_case["bets"]:
        mine.setdefault(bet["player"], []).append(result["net"][bet["id"]])
    for player, nets in mine.items():
        told = result["net_by_player"][player]
        assert told is None if None in nets else from_wire(told) == sum(map(from_wire, nets))
    winners = {name for name, status in result["status"].items() if status == "win"}
    groups = result.get("order", []) + [g for groups in result.get("order_by_player", {}).values() for g in groups]
    assert not given_case["game"].startswith("roulette") or sorted(n for group in groups for n in group) == sorted(
        winners
    )
    json.dumps(result)
