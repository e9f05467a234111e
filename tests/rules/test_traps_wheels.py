"""The traps of spec/traps.md that a wheel sets, each with its numbers (amounts there are euros, here cents)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rules.bets import Stake
from rules.cases import answer
from rules.decisions import Offer, Phase, Refused, StakeRefused, Status
from rules.facts import Announced, ChipPlaced, SpinStarted
from rules.game import House, load
from rules.games.roulette import GAMES
from rules.limits import Limits
from tests.rules.playbook import CCW, CW, MS
from tests.rules.sitting import Sitting
from tests.rules.wheels import PER_TURN, SEGMENTS, Wheel, americaine, anglaise, francaise, roue

DOZEN_1, DOZEN_2 = list(range(1, 13)), list(range(13, 25))
FOUR_TURNS = 4 * PER_TURN
ROULETTES = pytest.mark.parametrize("roulette", [francaise, americaine, anglaise])


def settle(game: str, *bets: tuple[Any, ...], **outcome: Any) -> dict[str, Any]:
    """Bets as (player, type, on, stake in euros, choices...)."""
    given = [
        {
            "id": str(place),
            "player": player,
            "type": bet,
            "on": on,
            "stake": euros * 100,
            **({"choices": list(choices)} if choices else {}),
        }
        for place, (player, bet, on, euros, *choices) in enumerate(bets)
    ]
    result: dict[str, Any] = answer({"game": game, "kind": "settlement", "bets": given, "outcome": outcome})
    return result


def net(game: str, *bets: tuple[Any, ...], **outcome: Any) -> Any:
    """The net of the one player, in cents."""
    (found,) = settle(game, *bets, **outcome)["net_by_player"].values()
    return found


def test_t01_boule_5_kills_every_even_chance() -> None:
    """R-BO-13: 5 is odd, and impair loses all the same, whole."""
    result = settle("boule", ("J1", "impair", [], 10), ("J1", "plein", [5], 10), number=5)
    assert list(result["net"].values()) == [-1000, 7000]
    assert result["net_by_player"] == {"J1": 6000}


def test_t02_boule_has_no_alternation() -> None:
    """R-BO-09: two throws in one sense are two valid coups, without a word."""
    game = Sitting("boule", sources=("console",))
    game.open()
    for number in (5, 4):
        game.call()
        game.ball(CW)
        game.read(number, "console")
        assert (game.ended().status, game.ended().reasons) == (Status.VALID, ())
    assert [ended.coup for ended in game.results] == [1, 2]


def test_t03_vingt_trois_13() -> None:
    """R-VT-13, R-VT-15: an ordinary plein at 7:1, and the end of red and black."""
    bets: tuple[tuple[Any, ...], ...] = (("J1", "rouge", [], 20), ("J1", "plein", [13], 5))
    assert list(settle("vingt_trois", *bets, number=13, colour="neutre")["net"].values()) == [-2000, 3500]
    assert net("vingt_trois", *bets, number=13, colour="neutre") == 1500
    assert net("vingt_trois", ("J1", "noir", [], 20), number=13, colour="neutre") == -2000


@pytest.mark.parametrize(("number", "gain"), [(1, 115), (4, 115), (5, 55), (11, 55), (12, 35), (13, 35), (14, 35)])
def test_t04_vingt_trois_tiers(number: int, gain: int) -> None:
    """R-VT-11 to R-VT-13: 23:1 to 4, 11:1 to 11, 7:1 to 14."""
    colour = "neutre" if number == 13 else "noir"
    assert net("vingt_trois", ("J1", "plein", [number], 5), number=number, colour=colour) == gain * 100


@pytest.mark.parametrize(("colour", "gain"), [("rouge", 120), ("noir", 100)])
def test_t05_the_colour_belongs_to_the_cell(colour: str, gain: int) -> None:
    """R-VT-16: the same 7 is red in one cell and black in another."""
    bets: tuple[tuple[Any, ...], ...] = (("J1", "rouge", [], 10), ("J1", "plein", [7], 10))
    assert net("vingt_trois", *bets, number=7, colour=colour) == gain * 100


def tenths(game: Wheel) -> Callable[[int], int]:
    """The instant so many tenths of a second after now."""
    start = game.now
    return lambda n: start + n * 100 * MS


def test_t06_the_call_comes_before_the_spin_at_vingt_trois() -> None:
    """R-VT-08, R-VT-09: a stake after the call is refused, the wheel turning or not."""
    game = Sitting("vingt_trois", sources=("console",))
    game.open()
    at = tenths(game)
    game.do(Announced(at_ns=at(10), source="console", code="rien_ne_va_plus"))
    game.do(SpinStarted(at_ns=at(18), source="wheel", direction=CW))
    assert game.reasons == []
    game.do(ChipPlaced(at_ns=at(21), source="console", spot="rouge", cents=500, player="J1"))
    assert game.one(StakeRefused).code == "mise_tardive"


def test_t06_a_spin_before_the_call_closes_the_bets_at_vingt_trois() -> None:
    """R-VT-08, R-GEN-08: bets are closed from the spin on, and the coup is held: the text names no nullity."""
    game = Sitting("vingt_trois", sources=("console",))
    game.open()
    at = tenths(game)
    game.do(ChipPlaced(at_ns=at(17), source="console", spot="rouge", cents=500, player="J1"))
    game.do(SpinStarted(at_ns=at(18), source="wheel", direction=CW))
    game.do(ChipPlaced(at_ns=at(21), source="console", spot="noir", cents=500, player="J1"))
    assert game.one(StakeRefused).code == "mise_tardive"
    game.do(Announced(at_ns=at(25), source="console", code="rien_ne_va_plus"))
    assert game.state.coup is not None
    assert game.state.coup.closed_at_ns == at(18)
    game.now = at(25)
    game.read("7 rouge", "console")
    assert game.ended().status is Status.HELD
    assert "R-VT-08" in [breach.requirement for breach in game.ended().reasons]
    assert [stake.type for stake in game.state.stakes] == ["rouge"]


@pytest.mark.parametrize("game_id", ["boule", "vingt_trois"])
def test_t07_a_raised_minimum_moves_every_limit_and_is_frozen(game_id: str) -> None:
    """R-BO-15 to R-BO-19, R-VT-17 to R-VT-21: multiples of the raised minimum; no way back before the next seance."""
    plein, simple = {"boule": ((80, 200), (400, 1000)), "vingt_trois": ((40, 100), (200, 500))}[game_id]
    for bet, (least, most) in (("plein", plein), ("rouge", simple)):
        for euros, allowed in ((least - 1, False), (least, True), (most, True), (most + 1, False)):
            game = Sitting(game_id, declared_minimum_cents=100)
            game.open(minimum_cents=200, maxima={bet: euros * 100})
            assert bool(game.told(Refused)) is not allowed
    game = Sitting(game_id, declared_minimum_cents=100)
    game.open(minimum_cents=200)
    game.command("limits", minimum_cents=100)
    assert game.one(Refused).code == "minimum_fige"
    game.close()
    game.command("attest", what="encaisse")
    game.open(minimum_cents=100)
    assert game.one(Refused).code == "minimum_fige"
    game.command("close", end_of_seance=True)
    game.open(minimum_cents=100)
    assert game.state.limits is not None
    assert game.state.limits.minimum == 100


@pytest.mark.parametrize("game_id", ["boule", "vingt_trois"])
def test_t08_the_maximum_is_per_cylinder_and_player(game_id: str) -> None:
    """R-BO-20, R-BO-21, R-VT-22: 60 at one tableau and 50 at the other are 10 too much; two players have 100 each."""
    game = Sitting(game_id, declared_minimum_cents=200, tableaux=2)
    game.open(maxima={"plein": 10_000})
    game.chip("plein:4", 6000)
    game.chip("plein:4", 5000, tableau=2)
    refused = game.one(StakeRefused)
    assert (refused.code, refused.tableau) == ("au_dessus_du_maximum", 2)
    assert "1000 de trop" in refused.text
    for player, tableau in (("J2", 1), ("J3", 2)):
        game.chip("plein:4", 10_000, player=player, tableau=tableau)
        assert not game.told(StakeRefused)
    case = {
        "game": game_id,
        "kind": "settlement",
        "config": {"min": 200},
        "bets": [
            {"id": "a", "player": "J1", "type": "plein", "on": [4], "stake": 6000, "tableau": 1},
            {"id": "b", "player": "J1", "type": "plein", "on": [4], "stake": 14_001, "tableau": 2},
        ],
        "outcome": {"number": 1} | ({"colour": "noir"} if game_id == "vingt_trois" else {}),
    }
    statuses: Any = answer(case)["status"]
    assert statuses == {"a": "lose", "b": "refused"}


@ROULETTES
def test_t06_the_call_comes_during_the_spin_at_a_roulette(roulette: Callable[[], Wheel]) -> None:
    """R-RF-11, R-RF-12, R-RA-09, R-AN-14, R-AN-15: a stake in the spin but before the call is in time."""
    game = roulette()
    s = 1_000 * MS
    start = game.now

    def at(seconds_tenths: int) -> int:
        return start + seconds_tenths * s // 10

    game.do(SpinStarted(at_ns=at(18), source="wheel", direction=CW))
    game.do(ChipPlaced(at_ns=at(21), source="console", spot="rouge", cents=500, player="J1"))
    assert not game.told(StakeRefused)
    game.do(Announced(at_ns=at(190), source="console", code="rien_ne_va_plus"))
    assert len(game.state.stakes) == 1
    game.do(ChipPlaced(at_ns=at(191), source="console", spot="noir", cents=500, player="J1"))
    assert game.one(StakeRefused).code == "mise_tardive"


def test_t09_annulled_spins_count_for_the_direction() -> None:
    """R-RC-07, R-RC-09: compared with the last actuation, not with the last valid one."""
    game = roue()
    game.spin(CW)
    game.slow()
    game.call()
    game.stop(FOUR_TURNS)
    game.spin(CCW)
    game.slow()
    game.call()
    game.touch()
    game.stop(FOUR_TURNS)
    assert game.ended().status is Status.VOID
    game.spin(CW)
    assert game.reasons == []
    game.slow()
    game.call()
    game.stop(FOUR_TURNS)
    assert game.ended().status is Status.VALID


@pytest.mark.parametrize(
    ("passages", "touched", "status"),
    [(155, False, Status.VOID), (156, False, Status.VALID), (281, True, Status.VOID)],
)
def test_t10_three_full_turns_and_obstruction_absolute(passages: int, touched: bool, status: Status) -> None:
    """R-RC-08, R-RC-09: 155 cells are no three turns; a touch voids any number of them."""
    game = roue()
    game.spin(CW)
    game.slow()
    game.call()
    if touched:
        game.touch()
    game.stop(passages * PER_TURN // 52)
    assert game.ended().status is status


def test_t11_payment_in_ascending_gain_across_players() -> None:
    """R-RC-22."""
    result = settle(
        "roue_de_la_chance",
        ("A", "rouge", [], 5),
        ("B", "rouge", [], 2),
        ("C", "rouge", [], 12),
        colour="rouge",
        turns=4,
    )
    assert result["net_by_player"] == {"A": 5000, "B": 2000, "C": 12_000}
    assert result["player_order"] == [["B"], ["A"], ["C"]]


def test_t12_blanche_and_noire_are_two_bets() -> None:
    """R-RC-14, R-RC-18: five minima each, and white does not pay black."""
    bets: list[dict[str, Any]] = [{"id": bet, "player": "J1", "type": bet, "stake": 1000} for bet in ("blanc", "noir")]
    case = {"game": "roue_de_la_chance", "kind": "settlement", "config": {"min": 200}, "bets": bets}
    result: dict[str, Any] = answer({**case, "outcome": {"colour": "blanc", "turns": 4}})
    assert result["status"] == {"blanc": "win", "noir": "lose"}
    assert result["net_by_player"] == {"J1": 49_000}


def test_t13_the_cell_where_the_marker_comes_to_rest_counts() -> None:
    """R-RC-12: the encoder tells the rest once, with the cell after the rock-back; nothing is latched before."""
    game = roue()
    game.spin(CW)
    game.slow()
    game.call()
    assert game.is_in(Phase.JEUX_FAITS)
    passed, final = SEGMENTS.index("violet"), SEGMENTS.index("violet") - 1
    assert SEGMENTS[passed] != SEGMENTS[final]
    game.stop(FOUR_TURNS + 3, cell=final)
    assert game.ended().outcome is not None
    assert game.ended().outcome["colour"] == SEGMENTS[final]  # type: ignore[index]
    assert (game.ended().status, game.state.last_direction) == (Status.VALID, CW)


@pytest.mark.parametrize(("stake", "result", "gain"), [(20, 17, 1000), (5, 17, 250), (20, 0, -2000), (20, 30, -2000)])
def test_t14_24_numbers_pay_one_half(stake: int, result: int, gain: int) -> None:
    """R-RF-21: exactly a half, and nothing back at a zero (R-RF-29)."""
    assert net("roulette_francaise", ("J1", "deux_douzaines", DOZEN_1 + DOZEN_2, stake), numbers=[result]) == gain


def test_t14_the_half_of_an_odd_cent_stays_exact() -> None:
    """R-RF-21, R-GEN-02."""
    bet: dict[str, Any] = {
        "id": "a",
        "player": "J1",
        "type": "deux_colonnes",
        "on": [n for n in range(1, 37) if n % 3],
        "stake": 5,
    }
    case = {"game": "roulette_francaise", "kind": "settlement", "bets": [bet], "outcome": {"numbers": [17]}}
    assert answer(case)["net"] == {"a": "5/2"}


def test_t15_francaise_zero() -> None:
    """R-RF-24, R-RF-29: half back for the even chance only."""
    bets: tuple[tuple[Any, ...], ...] = (
        ("J1", "rouge", [], 100, "retire"),
        ("J1", "douzaine", DOZEN_1, 100),
        ("J1", "plein", [0], 10),
    )
    result = settle("roulette_francaise", *bets, numbers=[0])
    assert list(result["net"].values()) == [-5000, -10_000, 35_000]
    assert result["net_by_player"] == {"J1": 20_000}


def test_t16_a_prison_win_has_no_gain() -> None:
    """R-RF-26."""
    assert net("roulette_francaise", ("J1", "rouge", [], 100, "prison"), numbers=[0, 7]) == 0


@pytest.mark.parametrize(
    ("choices", "numbers", "result"),
    [
        (("prison", "retire"), [0, 0], -7500),
        (("prison", "prison"), [0, 0, 7], -5000),
        (("prison", "prison", "retire"), [0, 0, 0], -8750),
    ],
)
def test_t17_successive_zeros_halve(choices: tuple[str, ...], numbers: list[int], result: int) -> None:
    """R-RF-27: a half, a quarter, an eighth of the stake as it was laid."""
    assert net("roulette_francaise", ("J1", "rouge", [], 100, *choices), numbers=numbers) == result


@pytest.mark.parametrize(("numbers", "returned"), [([0, 0], 2500), ([0], 5000)])
def test_t18_last_coup_forced_refund(numbers: list[int], returned: int) -> None:
    """R-RF-28: no choice where no coup is left to stay for."""
    bet: tuple[Any, ...] = ("J1", "rouge", [], 100, "prison", "prison")
    assert net("roulette_francaise", bet, numbers=numbers, last_spin_of_session=True) == returned - 10_000
    game = francaise()
    game.chip("rouge", 10_000)
    sense = CW
    for place in range(len(numbers)):
        game.say("faites_vos_jeux")
        if place == len(numbers) - 1:
            game.say("dernier_coup")
        game.spin(sense)
        game.ball(sense.opposite)
        game.call()
        game.chance(0)
        sense = sense.opposite
        if place < len(numbers) - 1:
            game.choose("zero", "prison")
    assert not game.told(Offer)  # no choice is offered
    assert [line.returned for line in game.lines()] == [returned]


X_AND_Y: tuple[tuple[Any, ...], ...] = (("X", "douzaine", DOZEN_2, 20), ("X", "plein", [17], 10), ("Y", "noir", [], 50))


def test_t19_payment_walks_differ() -> None:
    """R-RF-36 by type over all players; R-RA-27, R-RA-28 (and R-AN-31) player by player."""
    assert settle("roulette_francaise", *X_AND_Y, numbers=[17])["order"] == [["0"], ["2"], ["1"]]
    for game in ("roulette_americaine", "roulette_anglaise"):
        result = settle(game, *X_AND_Y, numbers=[17])
        assert result["order_by_player"] == {"X": [["0"], ["1"]], "Y": [["2"]]}
        assert list(result["order_by_player"]) == ["X", "Y"]
        assert result["net"] == {"0": 4000, "1": 35_000, "2": 5000}


def test_t20_dozens_are_not_always_first() -> None:
    """R-RF-36, R-RA-28, R-AN-32."""
    bets: tuple[tuple[Any, ...], ...] = (
        ("J1", "douzaine", DOZEN_2, 1),
        ("J1", "noir", [], 1),
        ("J1", "colonne", list(range(2, 37, 3)), 1),
    )
    walked = settle("roulette_francaise", *bets, numbers=[17])["order"]
    assert walked == [["2", "0"], ["1"]]
    for game in ("roulette_americaine", "roulette_anglaise"):
        assert settle(game, *bets, numbers=[17])["order_by_player"] == {"J1": [["2"], ["1"], ["0"]]}


def test_t21_zero_in_three_roulettes() -> None:
    """R-RF-24 by choice, R-RA-19 all, R-AN-22 half without being asked."""
    assert net("roulette_francaise", ("J1", "pair", [], 100, "retire"), numbers=[0]) == -5000
    assert net("roulette_francaise", ("J1", "pair", [], 100, "prison"), numbers=[0]) is None
    assert net("roulette_americaine", ("J1", "pair", [], 100), numbers=[0]) == -10_000
    assert net("roulette_anglaise", ("J1", "pair", [], 100), numbers=[0]) == -5000
    stake = Stake(id="a", player="J1", type="pair", cents=10_000)
    offered = {name: bool(game.offers([stake], {"number": 0}, game.coup(no=1))) for name, game in GAMES.items()}
    assert offered == {"roulette_francaise": True, "roulette_americaine": False, "roulette_anglaise": False}


def test_t22_five_numbers_and_no_24() -> None:
    """R-RA-15, R-RA-20."""
    five = ("J1", "cinq", [0, "00", 1, 2, 3], 10)
    assert net("roulette_americaine", five, numbers=["00"]) == 6000
    result = settle("roulette_americaine", ("J1", "deux_douzaines", DOZEN_1 + DOZEN_2, 20), numbers=[17])
    assert result["status"] == {"0": "refused"}


SIMPLE = ("rouge", "noir", "pair", "impair", "manque", "passe")
MAXIMA = {
    "roulette_francaise": {
        "plein": 150,
        "cheval": 300,
        "transversale": 500,
        "carre": 600,
        "sixain": 1000,
        "douzaine": 2500,
        "colonne": 2500,
        "deux_douzaines": 10_000,
        "deux_colonnes": 10_000,
        **dict.fromkeys(SIMPLE, 5000),
    },
    "roulette_americaine": {
        "plein": 100,
        "cheval": 200,
        "transversale": 300,
        "carre": 400,
        "cinq": 500,
        "sixain": 600,
        "douzaine": 1200,
        "colonne": 1200,
        **dict.fromkeys(SIMPLE, 1800),
    },
    "roulette_anglaise": {
        "plein": 100,
        "cheval": 200,
        "transversale": 300,
        "carre": 400,
        "sixain": 600,
        "douzaine": 1200,
        "colonne": 1200,
        "deux_douzaines": 2400,
        "deux_colonnes": 2400,
        **dict.fromkeys(SIMPLE, 1800),
    },
}


@pytest.mark.parametrize("game_id", MAXIMA)
def test_t23_maxima_are_tables(game_id: str) -> None:
    """R-RF-30, R-RF-31, R-RA-22, R-RA-23, R-AN-26."""
    game = load(game_id)
    house = House(declared_minimum_cents=500, options=game.options())
    limits = game.limits(game.layout(house.options), house, 500, {})
    assert isinstance(limits, Limits)
    assert limits.maxima == {bet: euros * 100 for bet, euros in MAXIMA[game_id].items()}


def relaunched(game: Wheel) -> Wheel:
    game.spin(CW)
    game.ball(CCW)
    game.due()
    game.call()
    game.say("jeton_dans_le_cylindre")
    return game


@ROULETTES
def test_t27_jeton_in_the_cylinder(roulette: Callable[[], Wheel]) -> None:
    """R-RF-10, R-RA-08, R-AN-13: no result from that launch, the coup goes on."""
    game = relaunched(roulette())
    game.read(8)
    game.read(8, "console")
    assert game.results == []
    assert (game.state.phase, game.state.coup_no) == (Phase.MISES_OUVERTES, 1)
    game.ball(CCW)
    game.due()
    game.call()
    game.chance(9)
    assert game.ended().coup == 1
    assert game.ended().outcome is not None
    assert game.ended().outcome["number"] == 9  # type: ignore[index]


def test_t85_the_minimum_of_a_roulette_changes_with_a_new_encaisse_its_maxima_never() -> None:
    """R-GEN-03, R-RF-30."""
    game = francaise()
    for name in ("limits", "open"):
        if name == "open":
            game.command("attest", what="couvercle", role="chef")
            game.command("close")
            game.command("attest", what="encaisse")
        game.command(name, maxima={"rouge": 1_000_000})
        assert game.one(Refused).code == "maximum_fixe"
        assert "500000" in game.one(Refused).text
    game.command("open", minimum_cents=1000, maxima={"rouge": 1_000_000})
    assert game.state.limits is not None
    assert game.state.limits.maxima["rouge"] == 1_000_000


@pytest.mark.parametrize(
    ("roulette", "requirement"), [(francaise, "R-RF-09"), (americaine, "R-RA-07"), (anglaise, "R-AN-12")]
)
def test_t86_wrong_direction_does_not_void(roulette: Callable[[], Wheel], requirement: str) -> None:
    """R-GEN-08, and each roulette's own requirement."""
    game = roulette()
    for number in (5, 17):
        game.say("faites_vos_jeux")
        game.chip("plein:17", 500)
        game.spin(CW)
        game.ball(CCW)
        game.due()
        game.call()
        game.chance(number)
    held = game.ended()
    assert held.status is Status.HELD
    assert [b.requirement for b in held.reasons] == [requirement]
    assert game.is_in(Phase.LITIGE)
    game.command("resolve", role="chef", **{"as": "valid"})
    assert (game.ended().status, game.ended().outcome) == (Status.VALID, held.outcome)
    assert [line.net for line in game.lines()] == [17_500]
