"""The AsyncAPI document is complete, and is what the types accept."""

import json
from typing import Any

import msgspec
import pytest

from controller import asyncapi, wire
from controller.clock import Clock
from controller.standing import table_state
from rules.bets import Series
from rules.decisions import Phase
from rules.facts import Direction
from rules.limits import Limits
from rules.state import Attestation, TableState
from tests.contract import DOCUMENT, validate


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        here = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return here + [found for inner in value.values() for found in references(inner)]
    return [found for inner in value for found in references(inner)] if isinstance(value, list) else []


def test_every_reference_leads_somewhere() -> None:
    found = references(DOCUMENT)
    assert found
    for reference in found:
        place: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_every_address_of_the_contract_is_there() -> None:
    addresses = {channel["address"] for channel in DOCUMENT["channels"].values()}
    base = "casino/{site}/{table}/"
    assert addresses == {
        base + suffix
        for suffix in (
            "status", "state", "result", "result/last", "event", "health", "settlement/{tableau}", "cmd/{name}",
            "reply/{name}", "diag/{role}",
        )
    }  # fmt: skip
    for channel in DOCUMENT["channels"].values():
        assert set(channel["parameters"]) == {part[1:-1] for part in channel["address"].split("/") if part[0] == "{"}


def test_the_document_is_plain_json_and_the_same_each_time() -> None:
    assert json.dumps(asyncapi.document("1")) == json.dumps(asyncapi.document("1"))
    assert DOCUMENT["asyncapi"] == "3.0.0"


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        ("status", wire.Presence),
        ("result", wire.Result),
        ("result/last", wire.Result),
        ("settlement/3", wire.Settlement),
        ("cmd/open", wire.Envelope),
        ("reply/open", wire.Reply),
        ("diag/button.coup_nul", wire.Sample),
    ],
)
def test_addresses_find_their_message(suffix: str, message: type) -> None:
    assert wire.topic(suffix).message is message


@pytest.mark.parametrize("suffix", ["", "results", "settlement", "settlement/1/2", "cmd/+", "status/x"])
def test_anything_else_is_no_address(suffix: str) -> None:
    with pytest.raises(LookupError, match="no address of the contract"):
        wire.topic(suffix)


PRESENCE = {"state": "online", "boot": "b", "epoch": "e", "version": "1", "reason": "started"}


@pytest.mark.parametrize(
    "body",
    [
        {**PRESENCE, "state": "dead"},
        {**PRESENCE, "surplus": 1},
        {key: value for key, value in PRESENCE.items() if key != "boot"},
        {**PRESENCE, "epoch": 7},
    ],
)
def test_document_and_types_refuse_the_same(body: dict[str, Any]) -> None:
    payload = json.dumps(body).encode()
    with pytest.raises(AssertionError, match="breaks the contract"):
        validate("status", payload)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(payload, type=wire.Presence)
    validate("status", json.dumps(PRESENCE).encode())


def test_a_transfer_says_from_and_to() -> None:
    transfer = wire.Transfer(source="player:J1", target="table", cents="-5/2", why="lose a")
    assert json.loads(wire.encode(transfer)) == {"from": "player:J1", "to": "table", "cents": "-5/2", "why": "lose a"}
    assert "from" in DOCUMENT["components"]["schemas"]["Transfer"]["properties"]


def test_the_state_of_a_table_is_what_the_contract_says() -> None:
    clock = Clock()
    alarm = wire.Alarm(name="mqtt:link", code="x", text="y", active=True, acked=False, since=clock.utc())
    state = TableState(
        phase=Phase.MISES_OUVERTES,
        seance=2,
        partie=1,
        coup_no=7,
        seance_open=True,
        limits=Limits(minimum=200, minima={"rouge": 200}, maxima={"rouge": 20_000}, requirements={}),
        attestations=(Attestation(what="roue", role="comite", by="Mme Comite", at_ns=1),),
        last_direction=Direction.CW,
        public_options={"miroir": True},
        series=(
            Series(player="J1", colour="bleu", cents=1000),
            Series(player="J2", colour="vert", cents=500, held=False),
        ),
    )
    for given in (TableState(), state):
        message = table_state(
            given,
            table="demo/t-1",
            game="roue_de_la_chance",
            epoch="e1",
            seq=9,
            alarms=[alarm],
            nonce="n",
            maintenance=False,
            clock=clock,
        )
        body = validate("state", wire.encode(message))
    assert body["limits"] == {"minimum": 200, "minima": {"rouge": 200}, "maxima": {"rouge": 20_000}}
    assert (body["phase"], body["coup"], body["last_direction"]) == ("mises_ouvertes", 7, "cw")
    assert body["options"] == {"miroir": True, "marqueurs": {"bleu": {"player": "J1", "cents": 1000}}}
