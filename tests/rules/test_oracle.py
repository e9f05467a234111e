"""`settle` against a second reading of the text: written from the spec's tables, sharing no line with the rules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.cases import answer_all

RED = {1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36}
NUMBERS = set(range(1, 37))
SIMPLE = {
    "rouge": RED,
    "noir": NUMBERS - RED,
    "pair": {n for n in NUMBERS if n % 2 == 0},
    "impair": {n for n in NUMBERS if n % 2},
    "manque": set(range(1, 19)),
    "passe": set(range(19, 37)),
}
PAYS = {
    "plein": (35, 1),
    "cheval": (17, 1),
    "transversale": (11, 1),
    "carre": (8, 1),
    "cinq": (6, 1),
    "sixain": (5, 1),
    "douzaine": (2, 1),
    "colonne": (2, 1),
    "deux_douzaines": (1, 2),
    "deux_colonnes": (1, 2),
}
MOST: dict[str, dict[str, int]] = {
    "roulette_francaise": {
        "plein": 30, "cheval": 60, "transversale": 100, "carre": 120, "sixain": 200, "douzaine": 500, "colonne": 500,
        "deux_douzaines": 2000, "deux_colonnes": 2000, **dict.fromkeys(SIMPLE, 1000),
    },
    "roulette_americaine": {
        "plein": 20, "cheval": 40, "transversale": 60, "carre": 80, "cinq": 100, "sixain": 120, "douzaine": 240,
        "colonne": 240, **dict.fromkeys(SIMPLE, 360),
    },
    "roulette_anglaise": {
        "plein": 20, "cheval": 40, "transversale": 60, "carre": 80, "sixain": 120, "douzaine": 240, "colonne": 240,
        "deux_douzaines": 480, "deux_colonnes": 480, **dict.fromkeys(SIMPLE, 360),
    },
}  # fmt: skip
BY_TYPE = [
    {"colonne", "douzaine", "deux_colonnes", "deux_douzaines"},
    set(SIMPLE),
    {"sixain"},
    {"transversale"},
    {"carre"},
    {"cheval"},
    {"plein"},
]
BY_PLAYER = [
    {"colonne", "deux_colonnes"}, {"passe"}, {"impair"}, {"noir"}, {"rouge"}, {"pair"}, {"manque"},
    {"douzaine", "deux_douzaines"}, {"sixain"}, {"cinq"}, {"transversale"}, {"carre"}, {"cheval"}, {"plein"},
]  # fmt: skip
ZEROS: dict[str, set[Any]] = {"roulette_francaise": {0}, "roulette_americaine": {0, "00"}, "roulette_anglaise": {0}}
BOULE = {
    "rouge": {2, 4, 7, 9},
    "noir": {1, 3, 6, 8},
    "pair": {2, 4, 6, 8},
    "impair": {1, 3, 7, 9},
    "passe": {6, 7, 8, 9},
    "manque": {1, 2, 3, 4},
}
"""Even chances of boule; 5 is in none (R-BO-13)."""
PLEINS = {n: 23 if n <= 4 else 11 if n <= 11 else 7 for n in range(1, 15)}
"""What a plein of vingt-trois pays (R-VT-11 to R-VT-13)."""
ROUE = {
    "orange": (1, 100),
    "vert": (3, 50),
    "bleu": (5, 25),
    "rouge": (10, 12),
    "violet": (20, 10),
    "blanc": (50, 5),
    "noir": (50, 5),
}


def columns(*which: int) -> set[int]:
    return {n for n in NUMBERS if n % 3 in {w % 3 for w in which}}


def dozens(*which: int) -> set[int]:
    return {n for n in NUMBERS if (n - 1) // 12 + 1 in which}


def most_of(game: str, bet: str) -> int | None:
    """The maximum of a bet in minima (where the house chooses it, the highest); None for a bet that no layout has."""
    match game:
        case "boule":
            return 100 if bet == "plein" else 500 if bet in BOULE else None
        case "vingt_trois":
            return 50 if bet == "plein" else 250 if bet in ("rouge", "noir") else None
        case "roue_de_la_chance":
            return ROUE[bet][1] if bet in ROUE else None
        case _:
            return MOST[game].get(bet)


def exists(game: str, bet: str, on: set[Any]) -> bool:
    """Is this combination in the text, or in the convention that the spec names (§10)."""
    if most_of(game, bet) is None:
        return False
    if game not in MOST:
        last = {"boule": 9, "vingt_trois": 14}.get(game, 0)
        return len(on) == 1 and on <= set(range(1, last + 1)) if bet == "plein" else not on
    if bet in SIMPLE:
        return not on
    low = min((n for n in on if n != "00"), default=-1)
    american = game == "roulette_americaine"
    match bet:
        case "plein":
            return len(on) == 1 and on <= NUMBERS | ZEROS[game]
        case "cheval" if on & {0, "00"}:
            return on == {0, "00"} if american else len(on) == 2 and on <= {0, 1, 2, 3}
        case "cheval":
            if len(on) != 2 or not on <= NUMBERS:
                return False
            a, b = sorted(on)
            return bool(b - a == 3 or (b - a == 1 and a % 3 != 0))
        case "transversale" if on & {0, "00"}:
            allowed: list[set[Any]] = [{0, 1, 2}, {"00", 2, 3}, {0, "00", 2}] if american else [{0, 1, 2}, {0, 2, 3}]
            return on in allowed
        case "transversale":
            return on <= NUMBERS and low % 3 == 1 and on == {low, low + 1, low + 2}
        case "carre" if 0 in on:
            return not american and on == {0, 1, 2, 3}
        case "carre":
            return on <= NUMBERS and low % 3 != 0 and on == {low, low + 1, low + 3, low + 4}
        case "sixain":
            return on <= NUMBERS and low % 3 == 1 and on == set(range(low, low + 6))
        case "cinq":
            return on == {0, "00", 1, 2, 3}
        case "douzaine":
            return on in [dozens(1), dozens(2), dozens(3)]
        case "colonne":
            return on in [columns(1), columns(2), columns(3)]
        case "deux_douzaines":
            return on in [dozens(1, 2), dozens(2, 3)]
        case _:
            return on in [columns(1, 2), columns(2, 3)]


def roulette_line(game: str, bet: dict[str, Any], numbers: list[Any], *, ends: bool) -> tuple[str, Fraction | None]:
    """Status and net of one bet."""
    stake, first = Fraction(bet["stake"]), numbers[0]
    if bet["type"] not in SIMPLE:
        gain, per = PAYS[bet["type"]]
        return ("win", stake * gain / per) if first in bet["on"] else ("lose", -stake)
    wins = SIMPLE[bet["type"]]
    if first not in ZEROS[game]:
        return ("win", stake) if first in wins else ("lose", -stake)
    if game == "roulette_americaine":
        return "lose", -stake
    if game == "roulette_anglaise":
        return "partial", -stake / 2
    zeros = 0
    for place, number in enumerate(numbers):
        if number == 0:
            zeros += 1
            choice = bet.get("choices", [])[zeros - 1 : zeros]
            if choice != ["prison"] or (ends and place == len(numbers) - 1):
                return "partial", stake / 2**zeros - stake
        elif number in wins:
            return "freed", stake / 2 ** (zeros - 1) - stake
        else:
            return "lose", -stake
    return "prison", None


def one_draw(game: str, bet: dict[str, Any], outcome: dict[str, Any]) -> tuple[str, Fraction]:
    """Status and net of one bet at boule, vingt-trois or roue: all or nothing."""
    stake, number = Fraction(bet["stake"]), outcome.get("number")
    if game == "roue_de_la_chance":
        wins, pays = bet["type"] == outcome["colour"], ROUE[bet["type"]][0]
    elif bet["type"] == "plein":
        wins, pays = number in bet["on"], 7 if game == "boule" else PLEINS.get(number or 0, 0)
    else:
        wins = number in BOULE[bet["type"]] if game == "boule" else outcome["colour"] == bet["type"]
        pays = 1
    return ("win", stake * pays) if wins else ("lose", -stake)


def wire(net: Fraction | None) -> Any:
    if net is None:
        return None
    return int(net) if net.denominator == 1 else f"{net.numerator}/{net.denominator}"


def expected(case: dict[str, Any]) -> dict[str, Any]:
    """The whole answer, worked out from the spec."""
    game, least = case["game"], case.get("config", {}).get("min")
    outcome = case["outcome"]
    void = game == "roue_de_la_chance" and (not outcome.get("valid", True) or Fraction(outcome.get("turns", 3)) < 3)
    on_spot: defaultdict[Any, int] = defaultdict(int)
    lines: dict[str, tuple[str, Fraction | None]] = {}
    for bet in case["bets"]:
        on = set(bet.get("on", []))
        spot = (bet["player"], bet["type"], frozenset(on))
        most = most_of(game, bet["type"])
        allowed = exists(game, bet["type"], on) and bet["stake"] > 0
        if allowed and least is not None and most is not None:
            allowed = bet["stake"] >= least and on_spot[spot] + bet["stake"] <= most * least
        if not allowed:
            lines[bet["id"]] = ("refused", Fraction())
            continue
        on_spot[spot] += bet["stake"]
        if game in MOST:
            ends = outcome.get("last_spin_of_session", False)
            lines[bet["id"]] = roulette_line(game, bet, outcome["numbers"], ends=ends)
        else:
            lines[bet["id"]] = ("push", Fraction()) if void else one_draw(game, bet, outcome)
    nets: defaultdict[str, list[Fraction | None]] = defaultdict(list)
    for bet in case["bets"]:
        nets[bet["player"]].append(lines[bet["id"]][1])
    return {
        "net": {name: wire(net) for name, (_, net) in lines.items()},
        "status": {name: status for name, (status, _) in lines.items()},
        "net_by_player": {
            player: None if None in all_nets else wire(sum((n for n in all_nets if n is not None), Fraction()))
            for player, all_nets in nets.items()
        },
        **({"void": True} if void else {}),
    }


def groups(case: dict[str, Any], status: dict[str, str], walk: list[set[str]], player: str = "") -> list[set[str]]:
    """Winning ids along the walk, for one player or for all."""
    winners = [b for b in case["bets"] if status[b["id"]] == "win" and player in ("", b["player"])]
    steps = [{b["id"] for b in winners if b["type"] in types} for types in walk]
    return [step for step in steps if step]


def check(case: dict[str, Any], told: dict[str, Any]) -> None:
    wanted = expected(case)
    for key, value in wanted.items():
        assert told[key] == value, key
    status = wanted["status"]
    if case["game"] == "roulette_francaise":
        assert [set(group) for group in told.get("order", [])] == groups(case, status, BY_TYPE)
    elif case["game"] in MOST:
        walked = {player: [set(g) for g in steps] for player, steps in told.get("order_by_player", {}).items()}
        players = {b["player"] for b in case["bets"] if status[b["id"]] == "win"}
        assert walked == {player: groups(case, status, BY_PLAYER, player) for player in players}
    elif case["game"] == "roue_de_la_chance":
        gains: defaultdict[str, int] = defaultdict(int)
        for bet in case["bets"]:
            if status[bet["id"]] == "win":
                gains[bet["player"]] += wanted["net"][bet["id"]]
        told_gains = [{gains[player] for player in step} for step in told.get("player_order", [])]
        assert sorted(p for step in told.get("player_order", []) for p in step) == sorted(gains)
        assert told_gains == [{gain} for gain in sorted(set(gains.values()))]
    known = {"net", "status", "net_by_player", "void", "order", "order_by_player", "player_order"}
    assert set(told) <= known


# --- cases -----------------------------------------------------------------------------------------------------------

START = st.integers(-1, 37)
POCKET = st.one_of(st.integers(0, 36), st.just("00"))


@st.composite
def covered(draw: st.DrawFn, bet: str) -> list[Any]:
    """Numbers for a bet: mostly a real combination, in any order, sometimes nonsense."""
    n = draw(START)
    which = draw(st.integers(1, 3))
    shapes: dict[str, list[list[Any]]] = {
        "plein": [[draw(POCKET)]],
        "cheval": [[n, n + 1], [n, n + 3], [0, draw(st.integers(1, 4))], [0, "00"], ["00", 1]],
        "transversale": [[n, n + 1, n + 2], [0, 1, 2], [0, 2, 3], ["00", 2, 3], [0, "00", 2], [0, 1, 3]],
        "carre": [[n, n + 1, n + 3, n + 4], [0, 1, 2, 3]],
        "sixain": [list(range(n, n + 6))],
        "cinq": [[0, "00", 1, 2, 3], [0, 1, 2, 3, 4]],
        "douzaine": [list(dozens(which))],
        "colonne": [list(columns(which))],
        "deux_douzaines": [list(dozens(which, which % 3 + 1))],
        "deux_colonnes": [list(columns(which, which % 3 + 1))],
    }
    return draw(st.permutations(draw(st.sampled_from(shapes[bet]))))


@st.composite
def roulette_cases(draw: st.DrawFn) -> dict[str, Any]:
    game = draw(st.sampled_from(sorted(MOST)))
    bets = []
    for place in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from([*PAYS, *SIMPLE, *SIMPLE]))
        bet: dict[str, Any] = {
            "id": f"b{place}",
            "player": draw(st.sampled_from(["J1", "J2", "J3"])),
            "type": kind,
            "stake": draw(st.sampled_from([0, 1, 4, 5, 100, 150, 155, 999, 5000, 5005])),
        }
        if kind in PAYS:
            bet["on"] = draw(covered(kind))
        elif game == "roulette_francaise":
            bet["choices"] = draw(st.lists(st.sampled_from(["retire", "prison", "prison"]), max_size=4))
        bets.append(bet)
    double = ["00"] if game == "roulette_americaine" else []
    numbers = st.lists(st.sampled_from([0, 0, 0, *double, *range(1, 37)]), min_size=1, max_size=5)
    case = {
        "game": game,
        "kind": "settlement",
        "bets": bets,
        "outcome": {"numbers": draw(numbers), **draw(st.sampled_from([{}, {"last_spin_of_session": True}]))},
    }
    return case | draw(st.sampled_from([{}, {"config": {"min": 5}}]))


@st.composite
def roue_cases(draw: st.DrawFn) -> dict[str, Any]:
    bets = [
        {
            "id": f"b{place}",
            "player": draw(st.sampled_from(["A", "B", "C", "D"])),
            "type": draw(st.sampled_from([*ROUE, "vert", "rose"])),
            "stake": draw(st.sampled_from([0, 1, 199, 200, 250, 1000, 1001, 20_001])),
        }
        for place in range(draw(st.integers(0, 8)))
    ]
    outcome = {"colour": draw(st.sampled_from([*ROUE, "vert"])), **draw(st.sampled_from([{}, {"valid": False}]))}
    outcome |= draw(st.sampled_from([{}, {"turns": 2}, {"turns": Fraction(299, 100)}, {"turns": 3}, {"turns": 5}]))
    case = {"game": "roue_de_la_chance", "kind": "settlement", "bets": bets, "outcome": outcome}
    return case | draw(st.sampled_from([{}, {"config": {"min": 200}}]))


@st.composite
def numbered_cases(draw: st.DrawFn) -> dict[str, Any]:
    """Boule and vingt-trois: mostly bets of the layout, some that no table takes."""
    game, last = draw(st.sampled_from([("boule", 9), ("vingt_trois", 14)]))
    bets = []
    for place in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(["plein", "plein", *BOULE, "cheval", "douzaine"]))
        bet: dict[str, Any] = {
            "id": f"b{place}",
            "player": draw(st.sampled_from(["J1", "J2"])),
            "type": kind,
            "stake": draw(st.sampled_from([0, 1, 99, 100, 101, 4999, 5000, 10_000, 25_000, 50_000, 50_001])),
            **draw(st.sampled_from([{}, {"tableau": 2}])),
        }
        if kind in ("plein", "cheval"):
            bet["on"] = draw(st.lists(st.integers(0, last + 1), min_size=1, max_size=1 if kind == "plein" else 2))
        bets.append(bet)
    outcome: dict[str, Any] = {"number": draw(st.integers(1, last))}
    if game == "vingt_trois":
        outcome["colour"] = "neutre" if outcome["number"] == 13 else draw(st.sampled_from(["rouge", "noir"]))
    case = {"game": game, "kind": "settlement", "bets": bets, "outcome": outcome}
    return case | draw(st.sampled_from([{}, {"config": {"min": 100}}]))


PAGE = {
    "boule": "R-BO-",
    "vingt_trois": "R-VT-",
    "roue_de_la_chance": "R-RC-",
    "roulette_francaise": "R-RF-",
    "roulette_americaine": "R-RA-",
    "roulette_anglaise": "R-AN-",
}
ANY_CASE = st.one_of(roulette_cases(), roue_cases(), numbered_cases())


@settings(max_examples=300)
@given(case=ANY_CASE)
def test_settlement_is_what_the_text_says(case: dict[str, Any]) -> None:
    told = answer_all(case)
    assert isinstance(told, dict)
    check(case, told)


@settings(max_examples=300)
@given(case=ANY_CASE)
def test_validation_is_what_the_text_says(case: dict[str, Any]) -> None:
    for bet in case["bets"]:
        one = {**case, "bets": [bet]}
        asked = {"game": case["game"], "kind": "validation", "config": case.get("config", {}), "bet": bet}
        told = answer_all(asked)
        assert isinstance(told, dict)
        assert told["accepted"] is (expected(one)["status"][bet["id"]] != "refused")
        if not told["accepted"]:
            assert told["reason"]["code"]
            assert told["reason"]["text"]
            assert told["reason"]["requirement"].startswith((PAGE[case["game"]], "R-GEN-"))


@pytest.mark.parametrize("game", MOST)
def test_every_combination_of_the_text_and_no_other(game: str) -> None:
    """All pairs, triples in a window, blocks: what exists pays by its table, what does not is refused."""
    pockets: list[Any] = [*sorted(NUMBERS), *sorted(ZEROS[game], key=str)]
    bets: list[tuple[str, list[Any]]] = [("plein", [p]) for p in pockets]
    bets += [("cheval", [a, b]) for a in pockets for b in pockets if str(a) < str(b)]
    bets += [("transversale", [n, n + 1, n + 2]) for n in range(36)]
    bets += [("carre", [n, n + 1, n + 3, n + 4]) for n in range(34)]
    bets += [("carre", [n, n + 1, n + 2, n + 3]) for n in range(34)]
    bets += [("sixain", list(range(n, n + 6))) for n in range(32)]
    for which in ((1,), (2,), (3,), (1, 2), (2, 3), (1, 3)):
        twice = "deux_" * (len(which) - 1)
        bets += [(f"{twice}douzaine{'s' * bool(twice)}", list(dozens(*which)))]
        bets += [(f"{twice}colonne{'s' * bool(twice)}", list(columns(*which)))]
    given_bets = [
        {"id": str(place), "player": "J1", "type": bet, "on": on, "stake": 100} for place, (bet, on) in enumerate(bets)
    ]
    drawn = [*range(1, 37, 5), 17, *ZEROS[game]]
    cases = [
        {"game": game, "kind": "settlement", "bets": given_bets, "outcome": {"numbers": [number]}} for number in drawn
    ]
    told = answer_all(cases)
    assert isinstance(told, list)
    for case, one in zip(cases, told, strict=True):
        check(case, one)


def test_the_program_says_the_same() -> None:
    """From the shell: fractions of a turn, of a cent, a refused bet, a list for a list."""
    cases = [
        {
            "game": "roulette_francaise",
            "kind": "settlement",
            "config": {"min": 5},
            "bets": [
                {"id": "a", "player": "J1", "type": "deux_douzaines", "on": [*range(1, 25)], "stake": 5},
                {"id": "b", "player": "J1", "type": "cheval", "on": [1, 5], "stake": 5},
                {"id": "c", "player": "J2", "type": "noir", "stake": 5},
            ],
            "outcome": {"numbers": [17]},
        },
        {
            "game": "roue_de_la_chance",
            "kind": "settlement",
            "bets": [{"id": "a", "player": "J1", "type": "vert", "stake": 300}],
            "outcome": {"colour": "vert", "turns": 2.9999999999999999999},
        },
    ]
    text = json.dumps(cases).replace("3.0", "2.9999999999999999999")  # Python's own floats would round it up
    assert "2.9999999999999999999" in text
    run = subprocess.run(
        [sys.executable, "-m", "controller.tablectl", "settle"], input=text, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    first, second = json.loads(run.stdout)
    check(cases[0], first)
    assert first["net"] == {"a": "5/2", "b": 0, "c": 5}
    assert second == {"void": True, "net": {"a": 0}, "status": {"a": "push"}, "net_by_player": {"J1": 0}}
