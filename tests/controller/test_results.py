"""Results, settlements and events: every field of the contract, one chain that a stranger can check."""

import base64
import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from controller.canonical import CanonicalError, canonical
from controller.journal_file import JournalError
from controller.results import COUPS_KNOWN, Told, event_of_fact, first_fault
from controller.signing import key_of
from rules.decisions import (
    Announce,
    Breach,
    Ignored,
    Phase,
    PhaseChanged,
    Severity,
    StakeDoubtful,
    StakeRefused,
    Status,
)
from rules.facts import BallDropped, Commanded, Doubtful, Overrun
from rules.game import Coup
from rules.state import TableState
from rules.table import NOT_OBSERVED
from tests.contract import validate
from tests.controller.journals import HELD, Table, Wall, ended, opened, rows


def bodies(table: Table) -> dict[str, list[Any]]:
    """All messages in the outbox by topic, each held against the contract."""
    told: dict[str, list[Any]] = {}
    for message in table.journal.unsent(limit=10_000):
        told.setdefault(message.suffix, []).append(validate(message.suffix, message.payload))
    return told


def results(table: Table) -> list[bytes]:
    return [message.payload for message in table.journal.unsent(limit=10_000) if message.suffix == "result"]


def test_a_result_says_everything(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        seq, epoch = table.scribe.seq, table.scribe.epoch
        body = bodies(table)["result"][0]
    started, over = body["times"]["started"], body["times"]["ended"]
    assert started["at_ns"] == over["at_ns"] - 10**9
    assert started["at"] < over["at"] <= body["at"]
    assert {key: value for key, value in body.items() if key not in {"times", "at", "hash", "sig"}} == {
        "id": f"{epoch}/{seq}", "epoch": epoch, "seq": seq, "result_no": 1, "table": "demo/t-1",
        "game": "roue_de_la_chance", "seance": 1, "partie": 1, "coup": 1, "status": "valid",
        "reasons": [
            {"code": "rnvp_en_avance", "requirement": "R-GEN-08", "severity": "noted", "text": "Trop tôt"},
        ],
        "outcome": {"colour": "vert", "chances": ["vert"]}, "direction": "cw", "travel_counts": 7300,
        "per_turn": 2400, "at_ns": over["at_ns"], "clock_synchronised": True, "sources": {"wheel": "vert"},
        "recovered": False, "manual": None, "prev_hash": "0" * 64,
    }  # fmt: skip


def test_a_stranger_checks_hash_signature_and_chain(tmp_path: Path) -> None:
    """Only the standard spelling of JSON and the public key, nothing of ours."""
    with opened(tmp_path) as table:
        for _ in range(3):
            table.coup()
        payloads, public = results(table), (tmp_path / "signing.pub").read_text()
    before = "0" * 64
    for number, payload in enumerate(payloads, start=1):
        body = json.loads(payload)
        plain = {key: value for key, value in body.items() if key not in ("hash", "sig")}
        spelled = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert body["result_no"] == number
        assert body["prev_hash"] == before
        assert body["hash"] == hashlib.sha256(before.encode() + b"\n" + spelled).hexdigest()
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public))
        key.verify(base64.b64decode(body["sig"]), bytes.fromhex(body["hash"]))
        before = body["hash"]


def test_a_resolution_and_a_revision_name_the_result_before(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup(Status.HELD)
        command = Commanded(at_ns=table.clock.mono_ns(), source="command", name="resolve", by="A", role="chef", args={})
        manual = {"by": ["A. Martin", "B. Blanc"], "why": "vu par le chef"}
        for kind, status in (("resolution", Status.VALID), ("revision", Status.HELD), ("resolution", Status.VOID)):
            told = ended(1, status, {}, kind=kind, manual=manual)
            table.scribe.step(command, [told], table.state)
        table.commit()
        first, second, third, fourth = bodies(table)["result"]
        assert first_fault(results(table), table.key.public) == ""
    assert "resolves" not in first
    assert "revises" not in first
    assert second["resolves"] == first["id"]
    assert third["revises"] == second["id"]
    assert fourth["resolves"] == third["id"]
    assert second["manual"] == manual
    assert [body["coup"] for body in (first, second, third, fourth)] == [1, 1, 1, 1]
    assert len({body["id"] for body in (first, second, third, fourth)}) == 4


def test_two_results_of_one_row_have_two_ids(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.state = replace(table.state, seance=1, partie=1, coup_no=1)
        both = [ended(1, Status.HELD, {}), ended(1, Status.VOID, {}, kind="resolution")]
        table.scribe.step(BallDropped(at_ns=table.clock.mono_ns(), source="rim"), both, table.state)
        table.commit()
        first, second = bodies(table)["result"]
    assert second["id"].startswith(first["id"] + ".")
    assert second["resolves"] == first["id"]


def test_a_settlement_names_its_result(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        told = bodies(table)
        (body,) = told["settlement/1"]
    assert body["result"] == told["result"][0]["id"]
    assert body["id"].startswith(f"{body['result']}.")
    assert body["transfers"] == [{"from": "table", "to": "player:J1", "cents": "601/2", "why": "win m1"}]
    assert body["lines"] == [
        {"id": "m1", "player": "J1", "tableau": 1, "type": "vert", "on": [], "stake": 300, "returned": "1201/2",
         "net": "601/2", "status": "win"},
    ]  # fmt: skip
    assert (body["order"], body["player_order"]) == ([["m1"]], [["J1"]])


def test_what_becomes_an_event(tmp_path: Path) -> None:
    void = Breach(code="obstruction", requirement="R-RC-09", severity=Severity.VOID, text="Entravée")
    late = StakeRefused(
        code="mise_tardive", requirement="R-GEN-05", text="Tardive", player="J1", tableau=1, spot="vert", cents=100
    )
    decisions = [
        Announce(code="rien_ne_va_plus", text="Rien ne va plus"),
        HELD,
        void,
        replace(HELD, severity=Severity.NOTED),
        late,
        replace(late, code="au_dessus_du_maximum"),
        StakeDoubtful(id="m7", why="Douteuse", player="J1", tableau=2, spot="rouge", cents=500),
        Ignored(why="sans_objet"),
        PhaseChanged(phase=Phase.LANCE, coup=1),
    ]
    with opened(tmp_path) as table:
        table.state = replace(table.state, seance=2, partie=3, coup_no=4)
        seq = table.scribe.step(BallDropped(at_ns=5, source="rim"), decisions, table.state)
        table.commit()
        events = bodies(table)["event"]
    assert [(event["kind"], event["code"]) for event in events] == [
        ("annonce", "rien_ne_va_plus"),
        ("incident", "direction_non_alternee"),
        ("incident", "obstruction"),
        ("anomaly", "direction_non_alternee"),
        ("late_stake", "mise_tardive"),
        ("stake_refused", "au_dessus_du_maximum"),
        ("late_stake", "mise_douteuse"),
    ]
    assert [event["id"] for event in events] == [f"{events[0]['epoch']}/{seq}.{n}" for n in range(1, 8)]
    assert {(event["seance"], event["partie"], event["coup"]) for event in events} == {(2, 3, 4)}
    assert events[1]["requirement"] == "R-GEN-07"
    assert events[1]["data"] == {"severity": "held"}
    assert events[4]["data"] == {"player": "J1", "tableau": 1, "spot": "vert", "cents": 100}
    assert events[6]["data"] == {"stake": "m7", "player": "J1", "tableau": 2, "spot": "rouge", "cents": 500}
    assert "requirement" not in events[0]


def test_an_instrument_in_trouble_is_told_once(tmp_path: Path) -> None:
    overrun = Overrun(at_ns=1, source="wheel", device="wheel", lost=7)
    assert event_of_fact(overrun, [HELD]) is None
    assert event_of_fact(BallDropped(at_ns=1, source="rim"), []) is None
    with opened(tmp_path) as table:
        table.scribe.step(overrun, [Ignored(why="hors_tirage")], table.state)
        for why in ("jitter", NOT_OBSERVED):  # every start says the second: it is no event
            table.scribe.step(Doubtful(at_ns=1, source="wheel", device="wheel", why=why), [], table.state)
        table.commit()
        events = bodies(table)["event"]
    assert [(event["kind"], event["code"]) for event in events] == [
        ("anomaly", "entrees_perdues"),
        ("anomaly", "appareil_douteux"),
    ]
    assert events[0]["data"] == {"device": "wheel", "lost": 7}
    assert "7 entrées perdues" in events[0]["text"]


def test_the_controllers_own_events(tmp_path: Path) -> None:
    alarm = Told(kind="alarm", code="appareil_perdu", text="Appareil perdu", data={"active": True})
    with opened(tmp_path) as table:
        seq = table.scribe.note("alarms", {"book": []}, alarm, replace(alarm, kind="command", code="ok"))
        table.commit()
        first, second = bodies(table)["event"]
        row = rows(table.journal, seq)[0]
    assert row.row.kind == "alarms"
    assert first["data"] == {"active": True}
    assert (first["id"], second["id"]) == (f"{first['epoch']}/{seq}.1", f"{first['epoch']}/{seq}.2")


def test_what_has_no_canonical_bytes_takes_no_number(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        before = table.scribe.seq
        with pytest.raises(CanonicalError):
            table.scribe.note("note", {"half a character": "\ud800"})
        assert table.scribe.seq == before
        assert [row.seq for row in table.note().rows] == [before + 1]


def test_maintenance_is_marked(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.scribe.maintenance = True
        table.coup()
        told = bodies(table)
    assert told["result"][0]["maintenance"] is True
    assert told["settlement/1"][0]["maintenance"] is True
    assert told["event"][0]["maintenance"] is True


def test_a_held_coup_is_resolved_under_its_own_id_also_after_maintenance(tmp_path: Path) -> None:
    def resolve(table: Table) -> None:
        decision = ended(1, Status.VOID, {}, kind="resolution")
        table.scribe.step(BallDropped(at_ns=table.clock.mono_ns(), source="rim"), [decision], table.state)
        table.commit()

    with opened(tmp_path, crash=True) as table:
        table.coup(Status.HELD)
        table.scribe.maintenance = True
        resolve(table)  # tried out
        state = table.state
        table.coup()  # and a coup of the number that the next real one will have
    with opened(tmp_path) as table:
        table.scribe.maintenance = True
        table.state = state
        table.scribe.maintenance = False
        resolve(table)
        table.coup()
        held, tried, beside, resolved, second = bodies(table)["result"]
    assert held["id"] == tried["resolves"] == resolved["resolves"]
    assert (beside["coup"], second["coup"]) == (2, 2)
    assert [body.get("maintenance", False) for body in (held, tried, beside, resolved, second)] == [
        False, True, True, False, False,
    ]  # fmt: skip


def test_the_book_goes_on_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        table.coup(Status.HELD)
    with opened(tmp_path) as table:
        assert table.restored.controller == {"played": 2}
        assert table.state.coup_no == 2
        resolved = ended(2, Status.VALID, {}, kind="resolution")
        table.scribe.step(BallDropped(at_ns=1, source="rim"), [resolved], table.state)
        table.commit()
        assert first_fault(results(table), table.key.public) == ""
        told = bodies(table)["result"]
    assert [body["result_no"] for body in told] == [1, 2, 3]
    assert told[2]["resolves"] == told[1]["id"]


def test_the_book_is_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for _ in range(COUPS_KNOWN + 5):
            table.play()
        table.commit()
        assert len(table.scribe.book.ids) == COUPS_KNOWN
        assert f"1/1/{COUPS_KNOWN + 5}" in table.scribe.book.ids


def test_instants_from_before_a_reboot_keep_their_wall_time(tmp_path: Path) -> None:
    """The monotonic clock begins anew at a boot: its old values must not be read by the new one, now or later."""
    with opened(tmp_path, crash=True) as table:
        table.coup(Status.HELD)
        times = dict(table.state.coup.times if table.state.coup else {})
        before = bodies(table)["result"][0]
    for number in (2, 3):
        later = Wall(mono_ahead_ns=-(10**15) * number, ahead=timedelta(hours=number))
        with opened(tmp_path, clock=later, boot=f"boot-{number}", crash=True) as table:
            told = ended(1, Status.VALID, times | {"resolved": later.mono_ns()}, kind="resolution")
            table.scribe.step(BallDropped(at_ns=later.mono_ns(), source="rim"), [told], table.state)
            table.commit()
            after = bodies(table)["result"][-1]
        for name in ("started", "ended"):
            assert after["times"][name]["at_ns"] == before["times"][name]["at_ns"]
            assert after["times"][name]["at"][:-3] == before["times"][name]["at"][:-3]  # a label, to the hundredth
        assert after["times"]["resolved"]["at"] > after["times"]["ended"]["at"]


def test_an_unsynchronised_clock_is_told(tmp_path: Path) -> None:
    with opened(tmp_path, clock=Wall(good=False)) as table:
        table.coup()
        assert bodies(table)["result"][0]["clock_synchronised"] is False


def test_another_schema_of_the_state_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.coup()
        batch = table.batch()
        assert batch.snapshot is not None
        body = json.loads(batch.snapshot)
        table.journal.commit(replace(batch, snapshot=canonical(body | {"schema": 99})))
    with pytest.raises(JournalError, match="schema 99"), opened(tmp_path):
        pass


def test_a_state_that_this_version_cannot_read_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.state = TableState(coup=Coup(no=1))
        body = json.loads(table.batch().snapshot or b"")
        body["state"]["coup"]["colour"] = "red"
        table.journal.commit(replace(table.batch(), snapshot=canonical(body)))
    with pytest.raises(JournalError, match=r"coup\.colour: unknown field"), opened(tmp_path):
        pass


# --- the consumer's check --------------------------------------------------------------------------------------------


@pytest.fixture(name="chain")
def _chain(tmp_path: Path) -> tuple[list[bytes], str]:
    with opened(tmp_path) as table:
        for _ in range(4):
            table.coup()
        return results(table), table.key.public


def test_repeats_are_allowed_and_a_start_in_the_middle(chain: tuple[list[bytes], str]) -> None:
    payloads, public = chain
    assert first_fault([], public) == ""
    assert first_fault([payloads[0], payloads[1], payloads[1], payloads[0], payloads[2]], public) == ""
    assert first_fault(payloads[2:], public) == ""
    assert first_fault([payload.decode() for payload in payloads], public) == ""


def test_a_new_epoch_begins_a_new_chain(chain: tuple[list[bytes], str], tmp_path: Path) -> None:
    payloads, public = chain
    with opened(tmp_path) as table:
        table.scribe.change_epoch("older", "test", [])
        table.coup()
        later = results(table)[-1:]
    assert json.loads(later[0])["result_no"] == 1
    assert first_fault(payloads + later, public) == ""


def test_every_fault_is_found(chain: tuple[list[bytes], str], tmp_path: Path) -> None:
    payloads, public = chain
    (tmp_path / "other").mkdir()
    stranger = key_of(tmp_path / "other")

    def altered(number: int, **changes: object) -> list[bytes]:
        """Rewritten and hashed anew, but signed by nobody or by a stranger."""
        body = json.loads(payloads[number]) | changes
        plain = {key: value for key, value in body.items() if key not in ("hash", "sig")}
        body["hash"] = hashlib.sha256(body["prev_hash"].encode() + b"\n" + canonical(plain)).hexdigest()
        body["sig"] = stranger.sign(bytes.fromhex(body["hash"]))
        return [*payloads[:number], canonical(body), *payloads[number + 1 :]]

    flipped = payloads[1].replace(b'"vert"', b'"bleu"', 1)
    assert "message 2: " in (said := first_fault([payloads[0], flipped], public))
    assert "hash does not hold" in said
    assert "sig does not verify" in first_fault(altered(1, coup=9), public)
    assert "result_no 3 follows 1" in first_fault([payloads[0], payloads[2]], public)
    assert "came twice with different content" in first_fault([payloads[0], payloads[0] + b" "], public)
    assert "not a result" in first_fault([b"{"], public)
    assert "not a result" in first_fault([b"{}"], public)
    assert "not an object" in first_fault([b"[]"], public)
    unsigned = json.loads(payloads[0])
    del unsigned["sig"]
    assert "not a result: KeyError" in first_fault([canonical(unsigned)], public)


def test_a_broken_chain_under_the_right_key_is_found(tmp_path: Path) -> None:
    """Even the holder of the key cannot pass off a result that does not follow the one before."""
    with opened(tmp_path) as table:
        table.coup()
        table.scribe.book = replace(table.scribe.book, prev_hash="f" * 64)
        table.coup()
        assert "prev_hash is not that of the result before" in first_fault(results(table), table.key.public)
        table.scribe.book = replace(table.scribe.book, result_no=0, epoch="e", prev_hash="f" * 64)
        body, _ = table.scribe.book.issue(json.loads(results(table)[0]) | {"epoch": "e", "id": "e/1"}, "", table.key)
        assert "is the first of its epoch" in first_fault([body.payload], table.key.public)
