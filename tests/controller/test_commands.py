"""Envelopes: every way in which one is refused has its own code, and nothing that is refused is obeyed."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import wire
from controller.clock import Clock, rfc3339
from controller.commands import (
    BURST,
    COMMANDS,
    DEEPEST,
    KEPT,
    MAX_BYTES,
    Authorised,
    Authoriser,
    Commands,
    Heard,
    Peer,
    Refusal,
)
from rules.facts import Commanded
from tests import people
from tests.people import CHEF, COMITE, CROUPIER, TECHNICIEN, Person, seconds_ago

LOCAL = Peer("alice", ("technicien",))


class Wall(Clock):
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC)
        self.good = True
        self.mono = 0

    def now(self) -> datetime:
        return self.moment

    def synchronised(self) -> bool:
        return self.good

    def mono_ns(self) -> int:
        return self.mono


@dataclass
class Desk:
    """Commands with an executor that says yes, and notes."""

    clock: Wall = field(default_factory=Wall)
    obeyed: list[Authorised] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    answer: wire.Reply | Refusal = field(default_factory=lambda: wire.Reply(id="x", ok=True, code="ok", text=""))

    def __post_init__(self) -> None:
        self.authoriser = Authoriser(table="demo/t-1", keys=people.KEYS, clock=self.clock)
        self.commands = self.open(self.authoriser)

    def open(self, authoriser: Authoriser) -> Commands:
        async def execute(command: Authorised) -> wire.Reply:
            self.obeyed.append(command)
            if isinstance(self.answer, Refusal):
                raise self.answer
            return self.answer

        return Commands(authoriser=authoriser, execute=execute, record=self.heard.append, clock=self.clock)

    async def code(self, payload: bytes, **how: Any) -> str:
        if "peer" not in how:
            how.setdefault("name", "open")
        obeyed = len(self.obeyed)
        reply = await self.commands.handle(payload, **how)
        assert reply.ok == (reply.code == "ok") == (len(self.obeyed) == obeyed + 1)
        assert reply.ok or reply.text
        assert self.heard[-1].code == reply.code, "every command is recorded, refused or not"
        return reply.code


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_good_command_is_obeyed_and_recorded(desk: Desk) -> None:
    assert await desk.code(COMITE.envelope("open", {"minimum_cents": 200}, id="c-7")) == "ok"
    command = desk.obeyed[0]
    assert (command.name, command.by, command.role, command.via) == ("open", "Mme Comite", "comite", "comite-1")
    fact = command.fact(5)
    assert fact == Commanded(
        at_ns=5, source="command", name="open", by="Mme Comite", role="comite", args={"minimum_cents": 200}
    )
    assert desk.heard == [
        Heard(id="c-7", name="open", by="Mme Comite", role="comite", via="comite-1", code="ok", text="")
    ]


async def test_a_refusal_of_the_law_is_told_as_such(desk: Desk) -> None:
    desk.answer = wire.Reply(id=None, ok=False, code="rejected", text="La table est déjà ouverte")
    reply = await desk.commands.handle(COMITE.envelope("open", id="c-8"), name="open")
    assert (reply.id, reply.code, reply.text) == ("c-8", "rejected", "La table est déjà ouverte")
    desk.answer = Refusal("rejected", "impossible")
    assert (await desk.commands.handle(COMITE.envelope("open"), name="open")).code == "rejected"


async def test_a_bug_in_one_command_is_an_answer_like_any_other(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(_command: Authorised) -> wire.Reply:
        raise LookupError("no such drawer")

    commands = Commands(authoriser=desk.authoriser, execute=breaks, record=desk.heard.append, clock=desk.clock)
    for number in (1, 2):
        reply = await commands.handle(COMITE.envelope("open", id=f"b-{number}"), name="open")
        assert (reply.id, reply.code) == (f"b-{number}", "rejected")
        assert "voir son journal" in reply.text
    assert [heard.code for heard in desk.heard] == ["rejected", "rejected"]
    assert "no such drawer" in caplog.text


Payload = bytes | Callable[[], bytes]
"""Envelopes are signed when their test runs: they are not valid for long."""


def made(payload: Payload) -> bytes:
    return payload if isinstance(payload, bytes) else payload()


UNSIGNED = {"cmd": COMITE.command("open"), "key": "", "sig": ""}


def with_args(args: bytes, key: bytes = b"comite-1", sig: bytes = b"") -> bytes:
    """An envelope whose `args` are these very bytes."""
    command = json.dumps(COMITE.command("open")).encode().replace(b"{}", args)
    return b'{"cmd": %s, "key": "%s", "sig": "%s"}' % (command, key, sig)


def nested(depth: int) -> bytes:
    """An envelope with lists within lists in `args`, `depth` levels of both."""
    return with_args(b'{"x": %s}' % (b"[" * (depth - 1) + b"]" * (depth - 1)))


@pytest.mark.parametrize(
    ("payload", "how", "code"),
    [
        pytest.param(b"{", {}, "malformed", id="not JSON"),
        pytest.param(b"", {}, "malformed", id="nothing"),
        pytest.param(b"\xff\xfe", {}, "malformed", id="not UTF-8"),
        pytest.param(b"[]", {}, "malformed", id="a list"),
        pytest.param(b'{"cmd": 3}', {}, "malformed", id="cmd is a number"),
        pytest.param(b'{"cmd": {"id": 3}}', {}, "malformed", id="id is a number"),
        pytest.param(b"[" * 5000, {}, "malformed", id="nested"),
        pytest.param(nested(DEEPEST - 2), {}, "unsigned", id="as deep as allowed"),
        pytest.param(nested(DEEPEST - 1), {}, "malformed", id="too deep to be stored"),
        pytest.param(with_args(b'{"x": 9223372036854775808}'), {}, "malformed", id="a number of 65 bits"),
        pytest.param(with_args(b'{"x": "\\ud800"}'), {}, "malformed", id="half a character"),
        pytest.param(with_args(b'{"\\ud800": 1}'), {}, "malformed", id="half a character as a name"),
        pytest.param(b'{"cmd": {"id": "\\ud800", "operator": "\\udfff"}}', {}, "malformed", id="half an id"),
        pytest.param(with_args(b"{}", key=b"\\ud800"), {}, "malformed", id="half a key"),
        pytest.param(with_args(b"{}").decode().encode("utf-16"), {}, "malformed", id="UTF-16"),
        pytest.param(with_args(b"{}", sig="\xe9".encode() * 40), {}, "bad_signature", id="a signature with accents"),
        pytest.param(b'{"cmd": 1e9}', {}, "malformed", id="a float"),
        pytest.param(lambda: COMITE.envelope("open", {"x": "y" * MAX_BYTES}), {}, "malformed", id="too long"),
        pytest.param(lambda: COMITE.envelope("open", valid_s=301), {}, "malformed", id="valid for too long"),
        pytest.param(lambda: COMITE.envelope("open", valid_s=0), {}, "malformed", id="valid for nothing"),
        pytest.param(lambda: COMITE.envelope("open", issued_at="yesterday"), {}, "malformed", id="no time"),
        pytest.param(
            lambda: COMITE.envelope("open", issued_at="2026-13-01T00:00:00Z"), {}, "malformed", id="no such day"
        ),
        pytest.param(
            lambda: COMITE.envelope("open", issued_at="9999-12-31T23:59:59Z"), {}, "malformed", id="the last day"
        ),
        pytest.param(lambda: COMITE.envelope("open", surplus=1), {}, "malformed", id="unknown field"),
        pytest.param(lambda: COMITE.envelope("open", operator=""), {}, "malformed", id="nobody"),
        pytest.param(lambda: COMITE.envelope("open"), {"name": "close"}, "malformed", id="another topic"),
        pytest.param(lambda: COMITE.envelope("dance"), {"name": "dance"}, "unknown", id="unknown"),
        pytest.param(lambda: COMITE.envelope("open"), {"retained": True}, "retained", id="retained"),
        pytest.param(b"{", {"retained": True}, "retained", id="retained and malformed"),
        pytest.param(lambda: COMITE.envelope("open", table="demo/t-2"), {}, "wrong_table", id="another table"),
        pytest.param(json.dumps(UNSIGNED).encode(), {}, "unsigned", id="unsigned"),
        pytest.param(json.dumps({"cmd": UNSIGNED["cmd"]}).encode(), {}, "unsigned", id="no key at all"),
        pytest.param(
            lambda: Person("comite-1", "comite", "x").envelope("open"), {}, "bad_signature", id="another's key"
        ),
        pytest.param(lambda: Person("nobody", "comite", "x").envelope("open"), {}, "bad_signature", id="unlisted key"),
        pytest.param(lambda: COMITE.envelope("open", issued_at=seconds_ago(40)), {}, "stale", id="stale"),
        pytest.param(lambda: COMITE.envelope("open", issued_at=seconds_ago(-3600)), {}, "stale", id="from the future"),
        pytest.param(lambda: COMITE.envelope("open", {"nonce": "old"}), {}, "stale", id="old nonce"),
        pytest.param(lambda: CROUPIER.envelope("open"), {}, "unauthorised", id="above the role"),
        pytest.param(lambda: TECHNICIEN.envelope("open"), {}, "unauthorised", id="another's office"),
    ],
)
async def test_each_refusal_has_its_code(desk: Desk, payload: Payload, how: dict[str, Any], code: str) -> None:
    nonce = desk.authoriser.nonce
    assert await desk.code(made(payload), **how) == code
    assert desk.authoriser.nonce == nonce
    assert desk.authoriser.snapshot() == {}


async def test_a_signature_covers_every_field(desk: Desk) -> None:
    command = COMITE.command("open", {"minimum_cents": 200})
    for field_name, other in {"operator": "Mallory", "valid_s": 31, "args": {"minimum_cents": 1}, "id": "x"}.items():
        forged = {"cmd": {**command, field_name: other}, "key": "comite-1", "sig": COMITE.sign(command)}
        assert await desk.code(json.dumps(forged).encode()) == "bad_signature"
    torn = {"cmd": command, "key": "comite-1", "sig": "not base64!"}
    assert await desk.code(json.dumps(torn).encode()) == "bad_signature"


async def test_spaces_key_order_and_time_zone_are_free(desk: Desk) -> None:
    issued = datetime.now(UTC).isoformat()
    command = COMITE.command("open", issued_at=issued)
    turned = dict(reversed(command.items()))
    payload = json.dumps({"sig": COMITE.sign(command), "key": "comite-1", "cmd": turned}, indent=3).encode()
    assert await desk.code(payload) == "ok"


async def test_a_clock_a_little_ahead_is_borne(desk: Desk) -> None:
    assert await desk.code(COMITE.envelope("open", issued_at=seconds_ago(-20))) == "ok"


async def test_repeated_also_over_a_restart(desk: Desk) -> None:
    payload = COMITE.envelope("open")
    assert await desk.code(payload) == "ok"
    assert await desk.code(payload) == "repeated"
    again = Authoriser(table="demo/t-1", keys=people.KEYS, clock=desk.clock, remembered=desk.authoriser.snapshot())
    desk.commands = desk.open(again)
    assert await desk.code(payload) == "repeated"


async def test_two_people_may_use_one_id(desk: Desk) -> None:
    assert await desk.code(COMITE.envelope("attest", {"what": "roue"}, id="1"), name="attest") == "ok"
    assert await desk.code(CROUPIER.envelope("attest", {"what": "roue"}, id="1"), name="attest") == "ok"


async def test_ids_are_forgotten_after_their_validity_but_not_the_last_ones(desk: Desk) -> None:
    """Should the clock be set back, the last commands stay refused."""
    first = COMITE.envelope("open", issued_at=rfc3339(desk.clock.moment))
    assert await desk.code(first) == "ok"
    before = desk.clock.moment
    desk.clock.moment += timedelta(days=1)
    for _ in range(KEPT - 1):
        assert await desk.code(COMITE.envelope("open", issued_at=rfc3339(desk.clock.moment))) == "ok"
    desk.clock.moment = before
    assert await desk.code(first) == "repeated"
    desk.clock.moment += timedelta(days=1)
    for _ in range(3):
        assert await desk.code(COMITE.envelope("open", issued_at=rfc3339(desk.clock.moment))) == "ok"
    assert len(desk.authoriser.snapshot()) == KEPT + 2  # the first is forgotten, the others are still valid


async def test_too_many_ids_are_refused_not_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.commands.MOST", 3)
    monkeypatch.setattr("controller.commands.KEPT", 1)
    codes = [await desk.code(COMITE.envelope("open")) for _ in range(4)]
    assert codes == ["ok", "ok", "ok", "busy"]


async def test_without_a_good_clock_only_the_nonce_counts(desk: Desk) -> None:
    desk.clock.good = False
    desk.clock.moment = datetime(2000, 1, 1, tzinfo=UTC)
    assert await desk.code(COMITE.envelope("open")) == "stale"
    nonce = desk.authoriser.nonce
    payload = COMITE.envelope("open", {"nonce": nonce, "minimum_cents": 200})
    assert await desk.code(payload) == "ok"
    assert desk.obeyed[0].args == {"minimum_cents": 200}
    assert desk.authoriser.nonce != nonce
    assert await desk.code(payload) == "repeated"
    old = {"nonce": desk.authoriser.nonce}
    assert await desk.code(COMITE.envelope("open", old, issued_at="1999-12-31T23:00:00Z")) == "stale"
    assert await desk.code(COMITE.envelope("open", {"nonce": nonce})) == "stale"


async def test_without_a_good_clock_the_local_socket_works(desk: Desk) -> None:
    desk.clock.good = False
    command = TECHNICIEN.command("selftest")
    assert await desk.code(json.dumps({"cmd": command}).encode(), peer=LOCAL) == "ok"


@pytest.mark.parametrize(
    ("name", "peer", "code"),
    [
        ("selftest", LOCAL, "ok"),
        ("confirm", LOCAL, "ok"),  # (croupier, local): whoever the kernel knows
        ("open", LOCAL, "unauthorised"),
        ("selftest", Peer("bob", ()), "unsigned"),
        ("confirm", Peer("bob", ()), "unsigned"),
        ("ack", Peer("carol", ("croupier", "chef")), "ok"),
    ],
)
async def test_the_kernel_vouches_for_a_local_peer(desk: Desk, name: str, peer: Peer, code: str) -> None:
    assert await desk.code(json.dumps({"cmd": COMITE.command(name, GOOD.get(name))}).encode(), peer=peer) == code


async def test_a_role_is_the_one_that_gives_the_right(desk: Desk) -> None:
    peer = Peer("carol", ("croupier", "chef"))
    await desk.code(json.dumps({"cmd": COMITE.command("ack", GOOD["ack"])}).encode(), peer=peer)
    await desk.code(json.dumps({"cmd": COMITE.command("confirm")}).encode(), peer=peer)
    assert [(command.role, command.via) for command in desk.obeyed] == [
        ("chef", "local:carol"),
        ("croupier", "local:carol"),
    ]


async def test_a_signature_counts_on_the_local_socket_too(desk: Desk) -> None:
    assert await desk.code(COMITE.envelope("open"), peer=LOCAL) == "ok"
    assert await desk.code(Person("comite-1", "comite", "x").envelope("open"), peer=LOCAL) == "bad_signature"
    assert desk.obeyed[0].via == "comite-1"


def outcome(first: Person, second: Person | None, signer: Person | None = None) -> bytes:
    command = first.command("outcome", {"value": 17})
    if second is not None:
        signature = (signer or second).sign(command)
        person = {"operator": second.operator, "key": second.name, "sig": signature}
        command = {**command, "args": {**command["args"], "second": person}}
    return first.enclose(command)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        pytest.param(lambda: outcome(CHEF, COMITE), "ok", id="chef and comite"),
        pytest.param(lambda: outcome(CHEF, CROUPIER), "ok", id="chef and croupier"),
        pytest.param(lambda: outcome(CHEF, None), "malformed", id="alone"),
        pytest.param(lambda: outcome(CHEF, CHEF), "unauthorised", id="twice the same"),
        pytest.param(
            lambda: outcome(CHEF, Person("chef-1", "chef", "M.  CHEF", CHEF.secret)), "unauthorised", id="same key"
        ),
        pytest.param(lambda: outcome(CHEF, COMITE, signer=CHEF), "bad_signature", id="signed by the first"),
        pytest.param(lambda: outcome(COMITE, CHEF), "unauthorised", id="not a chef"),
    ],
)
async def test_article_67_15_a_result_by_hand_takes_two_persons(desk: Desk, payload: Payload, code: str) -> None:
    assert await desk.code(made(payload), name="outcome") == code
    if code == "ok":
        assert desk.obeyed[0].args["value"] == 17
        assert desk.obeyed[0].args["second"] in {COMITE.operator, CROUPIER.operator}


async def test_one_key_under_two_names_is_not_two_persons(desk: Desk) -> None:
    twin = Person("croupier-2", "croupier", "M. Double", CHEF.secret)
    desk.commands = desk.open(Authoriser(table="demo/t-1", keys=(*people.KEYS, twin.key), clock=desk.clock))
    assert await desk.code(outcome(CHEF, twin), name="outcome") == "unauthorised"


async def test_a_local_chef_needs_the_second_signature_too(desk: Desk) -> None:
    peer = Peer("alice", ("chef",))
    for second, code in ((CROUPIER, "ok"), (CHEF, "unauthorised"), (None, "malformed")):
        cmd = json.loads(outcome(CHEF, second))["cmd"]
        assert await desk.code(json.dumps({"cmd": cmd}).encode(), peer=peer) == code


async def test_a_second_person_signs_this_command_and_no_other(desk: Desk) -> None:
    other = CHEF.command("outcome", {"value": 18})
    command = CHEF.command("outcome", {"value": 17})
    second = {"operator": COMITE.operator, "key": COMITE.name, "sig": COMITE.sign(other)}
    payload = CHEF.enclose({**command, "args": {"value": 17, "second": second}})
    assert await desk.code(payload, name="outcome") == "bad_signature"


@pytest.mark.parametrize("name", COMMANDS)
async def test_every_command_has_somebody_who_may_and_somebody_who_may_not(desk: Desk, name: str) -> None:
    right = COMMANDS[name]
    for person in people.ALL:
        if right.two_persons:
            continue
        expected = "ok" if person.role in right.roles else "unauthorised"
        assert await desk.code(person.envelope(name, GOOD.get(name)), name=name) == expected


GOOD: dict[str, dict[str, Any]] = {
    "attest": {"what": "roue"},
    "announce": {"code": "rien_ne_va_plus"},
    "stake": {"spot": "rouge", "cents": 200, "player": "J1"},
    "choice": {"player": "J1", "what": "m1", "value": "prison"},
    "resolve": {"as": "void"},
    "ack": {"name": "device:wheel"},
    "diag": {"role": "wheel"},
    "reopen": {"role": "wheel"},
    "log_level": {"level": "debug"},
    "maintenance": {"on": True},
}
"""Arguments of the commands that need some."""


def refusals(name: str, bad: dict[str, Any]) -> bytes:
    """A command of somebody who may give it, with these arguments among good ones."""
    person = next(person for person in people.ALL if person.role in COMMANDS[name].roles)
    return person.envelope(name, {key: value for key, value in (GOOD.get(name, {}) | bad).items() if value is not None})


@pytest.mark.parametrize("name", [name for name, right in COMMANDS.items() if right.args is not None])
async def test_no_command_passes_over_a_key_that_it_does_not_know(desk: Desk, name: str) -> None:
    reply = await desk.commands.handle(refusals(name, {"minimum": 500}), name=name)
    assert (reply.code, desk.obeyed) == ("malformed", [])
    assert "minimum inconnu" in reply.text
    assert all(key in reply.text for key in GOOD.get(name, {}))


@pytest.mark.parametrize(
    ("name", "bad", "says"),
    [
        ("open", {"minimum": 500}, "Argument minimum inconnu ; possibles : minimum_cents (nombre entier), maxima"),
        ("open", {"minimum_cents": "500"}, "Argument minimum_cents : attendu nombre entier"),
        ("open", {"minimum_cents": True}, "minimum_cents"),
        ("limits", {"maxima": {"rouge": "2"}}, "Argument maxima : attendu objet de nombres entiers"),
        ("close", {"end_of_seance": 1}, "Argument end_of_seance : attendu true, false"),
        ("interrupt", {"why": "pause"}, "Argument why inconnu ; possibles : aucun"),
        ("attest", {"what": ""}, "Argument what : attendu texte"),
        ("stake", {"spot": None}, "Argument spot : attendu texte"),
        ("stake", {"tableau": "1"}, "tableau"),
        ("stake", {"remove": "yes"}, "remove"),
        ("confirm", {"value": [17]}, "Argument value : attendu nombre entier ou texte"),
        ("resolve", {"as": "perhaps"}, "Argument as : attendu accepted, refused, valid, void"),
        ("resolve", {"outcome": {"number": 17}}, "Argument outcome : attendu nombre entier ou texte"),
        ("void", {"why": 3}, "Argument why : attendu texte"),
        ("outcome", {"value": 17, "second": {"operator": "x"}}, "Argument second : attendu objet avec operator, key"),
        ("replay", {"after_seq": -1}, "Argument after_seq : attendu nombre entier à partir de 0"),
        ("diag", {"seconds": 301}, "Argument seconds : attendu 1..300"),
        ("log_level", {"level": "loud"}, "Argument level : attendu debug, error, info, warning"),
        ("maintenance", {"on": 1}, "Argument on : attendu true, false"),
    ],
)  # fmt: skip
async def test_a_wrong_argument_is_named_with_what_is_allowed(
    desk: Desk, name: str, bad: dict[str, Any], says: str
) -> None:
    reply = await desk.commands.handle(refusals(name, bad), name=name)
    assert (reply.code, desk.obeyed) == ("malformed", [])
    assert says in reply.text


async def test_what_is_left_out_has_its_usual_value(desk: Desk) -> None:
    for name in ("diag", "replay", "open"):
        assert await desk.code(refusals(name, {}), name=name) == "ok"
    assert [command.args for command in desk.obeyed] == [
        {"role": "wheel", "seconds": 10, "every_ms": 200},
        {"after_seq": 0},
        {},
    ]


async def test_more_at_once_than_there_is_room_for_is_busy() -> None:
    gate = asyncio.Event()
    heard: list[Heard] = []

    async def execute(command: Authorised) -> wire.Reply:
        await gate.wait()
        return wire.Reply(id=command.id, ok=True, code="ok", text="")

    clock = Wall()
    authoriser = Authoriser(table="demo/t-1", keys=people.KEYS, clock=clock)
    commands = Commands(authoriser=authoriser, execute=execute, record=heard.append, clock=clock, most_at_once=2)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(commands.handle(COMITE.envelope("open"), name="open")) for _ in range(3)]
        while not running[2].done():  # noqa: ASYNC110  # a task is no event
            await asyncio.sleep(0)
        gate.set()
    assert [task.result().code for task in running] == ["ok", "ok", "busy"]
    assert None not in {task.result().id for task in running}


async def test_case_95_a_stranger_cannot_fill_the_journal(desk: Desk) -> None:
    for _ in range(BURST + 10):
        assert (await desk.commands.handle(b"{", name="open")).code == "malformed"
    assert len(desk.heard) == BURST
    assert desk.commands.unrecorded == 10
    assert await desk.code(COMITE.envelope("open")) == "ok"  # those who are known are recorded always
    desk.clock.mono += 2 * 10**9
    for _ in range(3):
        await desk.commands.handle(b"{", name="open")
    assert len(desk.heard) == BURST + 1 + 2


async def test_a_screen_that_asks_and_asks_cannot_fill_it_either(desk: Desk) -> None:
    for _ in range(BURST + 10):
        assert (await desk.commands.handle(COMITE.envelope("state"), name="state")).ok
    assert (len(desk.heard), desk.commands.unrecorded) == (BURST, 10)


WORDS = st.sampled_from(["cmd", "key", "sig", "id", "name", "args"]) | st.text()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
).map(lambda value: json.dumps(value).encode())


@given(st.binary(max_size=300) | JSON)
def test_no_payload_ever_raises(payload: bytes) -> None:
    desk = Desk()
    reply = asyncio.run(desk.commands.handle(payload, name="open"))
    assert reply.code in {"malformed", "unknown"}
    assert desk.obeyed == []
