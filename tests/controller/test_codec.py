"""The trace codec: exact round trips, strict reading, one canonical spelling."""

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.canonical import CanonicalError, canonical, compact, parse
from controller.codec import CodecError, decode, decode_fact, decode_state, encode_decision, encode_fact, encode_state
from rules.bets import Stake
from rules.decisions import DECISIONS, BetsClosed, Line, Phase, SetTimer, Settled, Transfer
from rules.facts import (
    FACTS,
    Announced,
    BallDropped,
    Commanded,
    Direction,
    Fact,
    Origin,
    PocketRead,
    SpinStarted,
    SpinStopped,
)
from rules.game import Coup, Game
from rules.state import Armed, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Peg:
    cell: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangeCoup(Coup):
    """A coup that uses every type that a game may keep."""

    seen: frozenset[int | str] = frozenset()
    share: Fraction | None = None
    peg: Peg | None = None
    by_point: Mapping[int, tuple[Stake, ...]] = field(default_factory=dict)
    way: Direction | None = None


GAME = cast(Game, types.SimpleNamespace(coup=StrangeCoup))
"""All that the codec asks of a game."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2).map(tuple) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=2)


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type annotation of the house."""
    origin, args = get_origin(hint), get_args(hint)
    if hint == Mapping[str, object]:
        return objects
    if origin in (Union, types.UnionType):
        return st.one_of([of(arg) for arg in args])
    if origin is tuple:
        return st.lists(of(args[0]), max_size=2).map(tuple)
    if origin is frozenset:
        return st.frozensets(of(args[0]), max_size=2)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(of(args[0]), of(args[1]), max_size=2)
    if hint is type(None):
        return st.none()
    if hint is Coup:
        return of(StrangeCoup)
    if isinstance(hint, type) and is_dataclass(hint):
        return st.builds(hint, **{name: slot(name, kind) for name, kind in get_type_hints(hint).items()})
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    return {
        int: st.integers(),
        bool: st.booleans(),
        str: st.text(max_size=8),
        Fraction: st.fractions(),
    }[hint]


def slot(name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field: the monotonic clock never shows a negative time."""
    return st.integers(min_value=0) if name.endswith("_ns") and hint is int else of(hint)


def over_the_wire(value: object) -> object:
    """Order of keys included: a law that walks a mapping must walk it alike after a restart."""
    return parse(compact(value))


any_fact = st.one_of([of(kind) for kind in FACTS.values()])


generated = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no failure."""


@generated
@given(any_fact)
def test_every_fact_comes_back_as_it_was(fact: Fact) -> None:
    again = decode_fact(over_the_wire(encode_fact(fact)))
    assert again == fact
    assert type(again) is type(fact)
    assert spelled(again) == spelled(fact)


def spelled(value: object) -> str:
    """Tells enum from string, tuple from list, and one order of keys from another, which `==` does not."""
    if isinstance(value, Mapping):
        return repr([(key, spelled(inner)) for key, inner in value.items()])
    if isinstance(value, tuple):
        return repr([spelled(inner) for inner in value])
    if is_dataclass(value):
        return repr([spelled(getattr(value, slot.name)) for slot in fields(value)])
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    return repr(value)


@generated
@given(of(TableState))
def test_every_state_comes_back_as_it_was(state: TableState) -> None:
    again = decode_state(over_the_wire(encode_state(state)), GAME)
    assert again == state
    assert spelled(again) == spelled(state)
    assert canonical(encode_state(again)) == canonical(encode_state(state))


@generated
@given(st.one_of([of(kind) for kind in DECISIONS.values()]))
def test_every_decision_has_one_spelling(decision: Any) -> None:
    body = over_the_wire(encode_decision(decision, after=7))
    assert isinstance(body, dict)
    assert body["out"] == type(decision).__name__
    assert body["after"] == 7


def test_a_fact_says_only_what_is_new() -> None:
    fact = SpinStarted(at_ns=5, source="wheel", direction=Direction.CW)
    said = {"in": "SpinStarted", "at_ns": 5, "source": "wheel", "direction": "cw", "found": False}
    assert encode_fact(fact) == said
    assert encode_fact(replace(fact, until_ns=6, origin=Origin.PEER)) == said | {"until_ns": 6, "origin": "peer"}
    assert "origin" not in encode_fact(Announced(at_ns=5, source="console", code="coup_nul"))
    spoken = decode_fact({"in": "Announced", "at_ns": 5, "source": "console", "code": "coup_nul"})
    assert spoken == Announced(at_ns=5, source="console", code="coup_nul", origin=Origin.PERSON)


def test_a_pocket_may_be_a_number_or_a_word() -> None:
    for value in (17, "00", "rouge"):
        body = {"in": "PocketRead", "at_ns": 1, "source": "wheel_sensor", "value": value}
        assert decode_fact(body) == PocketRead(at_ns=1, source="wheel_sensor", value=value)
    body = {"in": "PocketRead", "at_ns": 1, "source": "cups", "value": None, "cell": 7, "recovered": False}
    only_cell = PocketRead(at_ns=1, source="cups", value=None, cell=7)
    assert (decode_fact(body), encode_fact(only_cell)) == (only_cell, body)


def test_decisions_as_the_floor_reads_them() -> None:
    settled = Settled(
        coup=3,
        tableau=1,
        lines=(
            Line(id="s1", player="J1", tableau=1, type="plein", on=("00",), stake=5, returned=Fraction(5, 2),
                 net=Fraction(-5, 2), status="partial"),
            Line(id="s2", player="J1", tableau=1, type="pair", on=(), stake=4, returned=None, net=None,
                 status="prison"),
        ),
        transfers=(Transfer(source="player:J1", target="table", cents=Fraction(5, 2), why="partial s1", tableau=1),),
        order=(("s1",),),
    )  # fmt: skip
    assert encode_decision(settled) == {
        "out": "Settled", "coup": 3, "tableau": 1,
        "lines": [
            {"id": "s1", "player": "J1", "tableau": 1, "type": "plein", "on": ["00"], "stake": 5, "returned": "5/2",
             "net": "-5/2", "status": "partial"},
            {"id": "s2", "player": "J1", "tableau": 1, "type": "pair", "on": [], "stake": 4, "returned": None,
             "net": None, "status": "prison"},
        ],
        "transfers": [{"from": "player:J1", "to": "table", "cents": "5/2", "why": "partial s1", "tableau": 1}],
        "order": [["s1"]], "player_order": [],
    }  # fmt: skip
    assert encode_decision(BetsClosed(at_ns=9, how="croupier"), after=4) == {
        "out": "BetsClosed", "after": 4, "at_ns": 9, "how": "croupier",
    }  # fmt: skip
    assert encode_decision(SetTimer(name="t", at_ns=1, on_restart="fire"))["on_restart"] == "fire"


SPIN = {"in": "SpinStopped", "at_ns": 5, "source": "wheel", "direction": "cw", "travel": 7200, "per_turn": 2400}


@pytest.mark.parametrize(
    ("body", "where", "what", "allowed"),
    [
        (SPIN | {"travel": "7200"}, "travel", "Expected `int`, got `str`", "SpinStopped has"),
        (SPIN | {"travel": 7200.0}, "travel", "float", "integers"),
        (SPIN | {"travel": True}, "travel", "Expected `int`, got `bool`", "SpinStopped has"),
        (SPIN | {"direction": "left"}, "direction", "Invalid enum value 'left'", "SpinStopped has"),
        (SPIN | {"speed": 3}, "speed", "unknown field", "or_cell"),
        (SPIN | {"in": "SpinEnded"}, "in", "no fact 'SpinEnded'", "SpinStopped"),
        (SPIN | {"in": ["SpinStopped"]}, "in", "no fact", "SpinStopped"),
        ({"in": "BallDropped", "at_ns": 1}, "", "missing required field `source`", "BallDropped has"),
        ({"at_ns": 1}, "in", "no fact None", "BallDropped"),
        ({"in": "Told", "at_ns": 1, "source": "x", "peer": "p", "body": {"a": [1, 0.5]}}, "body.a[1]", "float", ""),
        ({"in": "DiceRead", "at_ns": 1, "source": "dice", "values": [1, "2"]}, "values[1]", "Expected `int`", ""),
        ([], "", "a fact is an object", ""),
    ],
)
def test_what_is_no_fact_is_refused_with_its_place(body: object, where: str, what: str, allowed: str) -> None:
    with pytest.raises(CodecError) as caught:
        decode_fact(body)
    assert caught.value.where == where
    assert what in caught.value.what
    assert allowed in caught.value.allowed


def test_an_error_names_the_line_of_the_trace() -> None:
    with pytest.raises(CodecError, match=r"line 3\.travel: Expected `int`, got `str`; allowed: SpinStopped has at_ns"):
        decode_fact(SPIN | {"travel": "x"}, "line 3")
    with pytest.raises(CodecError, match=r"line 3\.speed: unknown field"):
        decode_fact(SPIN | {"speed": 1}, "line 3")


def test_a_state_of_another_shape_is_refused() -> None:
    state = TableState(
        phase=Phase.LANCE,
        coup=StrangeCoup(no=4, peg=Peg(cell=3)),
        timers=(Armed(name="t", at_ns=1, length_ns=1, on_restart="drop"),),
    )
    body = json.loads(json.dumps(encode_state(state)))
    with pytest.raises(CodecError, match="unknown field") as caught:
        decode_state(body | {"colour": 1}, GAME)
    assert caught.value.where == "colour"
    with pytest.raises(CodecError) as caught:
        decode_state(body, cast(Game, types.SimpleNamespace(coup=Coup)))
    assert caught.value.where.startswith("coup.")
    body["coup"]["peg"]["colour"] = "red"
    with pytest.raises(CodecError) as caught:
        decode_state(body, GAME)
    assert caught.value.where == "coup.peg.colour"
    body["timers"][0]["on_restart"] = "perhaps"
    body["coup"] = None
    with pytest.raises(CodecError) as caught:
        decode_state(body, GAME)
    assert caught.value.where == "timers[0].on_restart"
    with pytest.raises(CodecError, match="a state is an object"):
        decode_state(None, GAME)


def test_places_within_lists_and_amounts() -> None:
    state = TableState(stakes=(Stake(id="m1", player="J1", type="vert", cents=5),), coup=StrangeCoup(no=1))
    body = json.loads(json.dumps(encode_state(state)))
    body["stakes"][0]["colour"] = "red"
    with pytest.raises(CodecError, match="unknown field") as caught:
        decode_state(body, GAME)
    assert caught.value.where == "stakes[0].colour"
    amounts: tuple[object, ...] = (True, [], "a third", None)
    for amount in amounts:
        del body["stakes"][:]
        body["coup"]["share"] = amount
        if amount is None:
            assert decode_state(body, GAME).coup == StrangeCoup(no=1)
            continue
        with pytest.raises(CodecError) as caught:
            decode_state(body, GAME)
        assert caught.value.where == "coup.share"


def test_a_coup_of_a_type_without_codec_is_a_bug() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong:
        share: complex

    with pytest.raises(NotImplementedError, match="no codec for complex"):
        decode({"share": "1"}, Wrong)


def test_what_has_no_codec_is_not_written() -> None:
    class Hidden:
        pass

    for secret in (Hidden(), 0.5, b"x", {"deep": [Hidden()]}):
        with pytest.raises(CodecError):
            encode_fact(Commanded(at_ns=1, source="s", name="n", by="b", role="r", args={"x": secret}))
    with pytest.raises(CodecError, match=r"key 0\.5"):
        encode_fact(Commanded(at_ns=1, source="s", name="n", by="b", role="r", args={0.5: 1}))  # type: ignore[dict-item]


def test_mixed_sets_are_written_in_one_order() -> None:
    coup = StrangeCoup(no=1, seen=frozenset([3, "00", 1, "a"]))
    assert encode_state(TableState(coup=coup))["coup"]["seen"] == [1, 3, "00", "a"]


def test_canonical_bytes() -> None:
    value = {"é": "Coup « nul »\n", "b": [True, None, -1], "a": {"z": 10**20, "y": ()}}
    spelled = '{"a":{"y":[],"z":100000000000000000000},"b":[true,null,-1],"é":"Coup « nul »\\n"}'
    assert canonical(value) == spelled.encode()
    assert canonical(types.MappingProxyType({"way": Direction.CW})) == b'{"way":"cw"}'
    assert canonical(parse(canonical(value))) == canonical(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, 2.0]}, r"\$\.a\[1\]: 2\.0 is a float"),
        ({"a": float("nan")}, r"\$\.a: nan is a float"),
        ({1: 2}, "key 1 is not a string"),
        ({"a": b"x"}, r"\$\.a: bytes has no JSON form"),
        ({"a": "\ud800"}, "not Unicode"),
        (BallDropped(at_ns=1, source="s"), "BallDropped has no JSON form"),
    ],
)
def test_what_has_no_canonical_form(value: object, message: str) -> None:
    with pytest.raises(CanonicalError, match=message):
        canonical(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a":1.0}', "1.0 is not an integer"),
        (b'{"a":1e3}', "1e3 is not an integer"),
        (b'{"a":NaN}', "NaN is not an integer"),
        (b'{"a":1,"b":2,"a":1}', "key 'a' appears twice"),
        (b'{"a":', "not JSON"),
        (b"\xff\xfe\xfd", "not"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 10_000, "not JSON"),
    ],
)
def test_what_does_not_parse(text: bytes, message: str) -> None:
    with pytest.raises(CanonicalError, match=message):
        parse(text)


def test_too_deep_to_write() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(CanonicalError, match="nested too deeply"):
        canonical(deep)


def test_stop_fact_round_trip_by_hand() -> None:
    assert decode_fact(SPIN) == SpinStopped(at_ns=5, source="wheel", direction=Direction.CW, travel=7200, per_turn=2400)
