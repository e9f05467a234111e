"""The local socket: the same envelope with no broker at all, questions, watchers, and clients that misbehave."""

import asyncio
import contextlib
import errno
import grp
import json
import os
import pwd
import socket
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controller import local_socket, wire
from controller.clock import Clock
from controller.commands import Authorised, Authoriser, Commands, Heard
from controller.config import Local
from controller.local_socket import LocalSocket
from tests import people
from tests.contract import validate
from tests.people import CHEF, COMITE, Person, seconds_ago

ME = pwd.getpwuid(os.getuid()).pw_name
MY_GROUP = grp.getgrgid(os.getgid()).gr_name
STATE = {"phase": "ferme"}


class Client:
    """One end of the socket, line by line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        self.writer.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        await self.writer.drain()
        return await self.line()

    async def line(self) -> dict[str, Any]:
        async with asyncio.timeout(10):
            answer = await self.reader.readline()
        assert answer.endswith(b"\n"), "cut off"
        return dict(json.loads(answer))


@dataclass
class Served:
    """A socket that is served, and who commanded what."""

    path: Path
    local: LocalSocket
    task: asyncio.Task[None]
    obeyed: list[Authorised] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_unix_connection(str(self.path), limit=1 << 22)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110  # the condition is the caller's
                await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def served(path: Path, *rows: Local) -> AsyncIterator[Served]:
    obeyed: list[Authorised] = []
    heard: list[Heard] = []

    async def execute(command: Authorised) -> wire.Reply:
        obeyed.append(command)
        return wire.Reply(id=None, ok=True, code="ok", text="fait")

    listening = asyncio.Event()
    clock = Clock()
    commands = Commands(
        authoriser=Authoriser(table="demo/t-1", keys=people.KEYS, clock=clock),
        execute=execute,
        record=heard.append,
        clock=clock,
    )
    local = LocalSocket(
        path=path,
        handle=lambda payload, peer: commands.handle(payload, peer=peer),
        queries={"state": lambda: STATE, "health": lambda: None},
        vouched=rows or (Local(role="technicien", user=ME),),
        beat=listening.set,
    )
    task = asyncio.get_running_loop().create_task(local.run())
    here = Served(path, local, task, obeyed, heard)
    await here.until(lambda: listening.is_set() or task.done())
    try:
        yield here
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path / "cmd.sock") as here:
        yield here


def unsigned(name: str, **changes: Any) -> dict[str, Any]:
    return {"cmd": COMITE.command(name, **changes)}


async def test_an_unsigned_command_of_a_known_user_is_obeyed_under_his_role(here: Served) -> None:
    async with here.client() as client:
        reply = await client.ask(unsigned("selftest", id="c-1"))
    validate("reply/selftest", json.dumps(reply).encode())
    assert (reply["id"], reply["ok"], reply["text"]) == ("c-1", True, "fait")
    assert [(c.by, c.role, c.via) for c in here.obeyed] == [(COMITE.operator, "technicien", f"local:{ME}")]


def repeated() -> list[bytes]:
    payload = COMITE.envelope("open")
    return [payload, payload]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param(lambda: [CHEF.envelope("open")], "unauthorised", id="above the role"),
        pytest.param(lambda: [json.dumps(unsigned("open")).encode()], "unauthorised", id="above the peer's role"),
        pytest.param(lambda: [COMITE.envelope("open", issued_at=seconds_ago(90))], "stale", id="stale"),
        pytest.param(lambda: [COMITE.envelope("open", issued_at=seconds_ago(-3600))], "stale", id="future"),
        pytest.param(repeated, "repeated", id="repeated"),
        pytest.param(lambda: [COMITE.envelope("open", table="demo/t-2")], "wrong_table", id="another table"),
        pytest.param(lambda: [Person("comite-1", "comite", "x").envelope("open")], "bad_signature", id="forged"),
        pytest.param(lambda: [COMITE.envelope("dance")], "unknown", id="unknown"),
        pytest.param(lambda: [b"{"], "malformed", id="not JSON"),
        pytest.param(lambda: [b""], "malformed", id="empty line"),
        pytest.param(lambda: [b"\xff\xfe"], "malformed", id="not UTF-8"),
        pytest.param(lambda: [b'{"cmd": 3}'], "malformed", id="wrong type"),
        pytest.param(lambda: [b'{"get": 3}'], "malformed", id="question of a wrong type"),
        pytest.param(lambda: [COMITE.envelope("open", {"x": "y" * 20_000})], "malformed", id="long"),
        pytest.param(lambda: [b"x" * 3_000_000], "malformed", id="oversized"),
    ],
)
async def test_each_refusal_has_its_code_and_is_recorded(
    here: Served, lines: Callable[[], list[bytes]], code: str
) -> None:
    async with here.client() as client:
        *before, last = lines()
        for line in before:
            assert (await client.ask(line))["ok"]
        reply = await client.ask(last)
        validate("reply/open", json.dumps(reply).encode())
        assert (reply["code"], reply["ok"]) == (code, False)
        assert here.heard[-1].code == code
        assert (await client.ask({"get": "state"}))["data"] == STATE, "the connection still works"
    assert len(here.obeyed) == len(before)


async def test_a_user_whom_the_configuration_does_not_name_must_sign(tmp_path: Path) -> None:
    async with served(tmp_path / "s", Local(role="comite", user="daemon")) as here, here.client() as client:
        assert (await client.ask(unsigned("open")))["code"] == "unsigned"
        assert (await client.ask(COMITE.envelope("open")))["code"] == "ok"


async def test_a_group_vouches_for_its_members(tmp_path: Path) -> None:
    rows = (Local(role="chef", group=MY_GROUP), Local(role="croupier", user=ME))
    async with served(tmp_path / "s", *rows) as here, here.client() as client:
        assert (await client.ask(unsigned("void")))["code"] == "ok"
        assert (await client.ask(unsigned("confirm")))["code"] == "ok"
        assert [command.role for command in here.obeyed] == ["chef", "croupier"]


@pytest.mark.parametrize("row", [Local(role="chef", user="no-such-user"), Local(role="chef", group="no-such-group")])
def test_a_row_that_names_nobody_is_refused(row: Local, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\[\[local\]\].*no-such"):
        LocalSocket(path=tmp_path / "s", handle=None, queries={}, vouched=[row])  # type: ignore[arg-type]


async def test_questions_need_no_role(tmp_path: Path) -> None:
    async with served(tmp_path / "s", Local(role="comite", user="daemon")) as here, here.client() as client:
        assert await client.ask({"get": "state"}) == {"id": None, "ok": True, "code": "ok", "text": "", "data": STATE}
        assert (await client.ask({"get": "health"}))["data"] == {}
        answer = await client.ask({"get": "secrets"})
        assert answer["code"] == "unknown"
        assert "state, health" in answer["text"]
        assert here.heard == []


async def test_watchers_hear_their_topics_as_they_happen(here: Served) -> None:
    async with here.client() as some, here.client() as everything, here.client() as nothing:
        assert (await some.ask({"watch": ["settlement", "event"]}))["ok"]
        assert (await everything.ask({"watch": []}))["ok"]
        assert (await nothing.ask({"get": "state"}))["ok"]
        for suffix in ("state", "event", "settlement/1"):
            here.local.tell(suffix, json.dumps({"of": suffix}).encode())
        assert [(await some.line())["topic"] for _ in range(2)] == ["event", "settlement/1"]
        assert [await everything.line() for _ in range(3)] == [
            {"topic": suffix, "payload": {"of": suffix}} for suffix in ("state", "event", "settlement/1")
        ]
        assert (await nothing.ask({"get": "state"}))["data"] == STATE


async def test_a_watcher_who_does_not_read_is_cut_off_and_nobody_else(here: Served) -> None:
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(here.path))
        slow.sendall(b'{"watch": []}\n')
        payload = json.dumps({"x": "y" * 100_000}).encode()
        async with here.client() as other, asyncio.timeout(10):
            while not here.local.counters["cut"]:
                here.local.tell("event", payload)
                assert (await other.ask({"get": "state"}))["ok"]
        received = 0
        with contextlib.suppress(ConnectionError):
            while data := slow.recv(1 << 20):
                received += len(data)
    assert received < 2 * local_socket.UNREAD_MAX


async def test_a_stop_does_not_wait_for_a_client_who_does_not_read(tmp_path: Path) -> None:
    async with served(tmp_path / "cmd.sock") as here, here.client() as reads, asyncio.timeout(10):
        here.local.queries = {"state": lambda: {"x": "y" * 20_000}}
        stuck = socket.socket(socket.AF_UNIX)
        stuck.setblocking(False)
        stuck.connect(str(here.path))
        stuck.send(b'{"get": "state"}\n' * 100)
        await here.until(lambda: any(c.writer.transport.get_write_buffer_size() for c in here.local._clients))
        assert (await reads.ask({"get": "state"}))["ok"]
        here.task.cancel()
        await asyncio.wait([here.task])
        stuck.close()


async def test_a_client_who_hangs_up_without_reading_is_let_go(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "WRITE_S", 0.05)
    with socket.socket(socket.AF_UNIX) as stuck:
        stuck.connect(str(here.path))
        room = stuck.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        here.local.queries = {
            "state": lambda: {"x": "y" * (room + 30_000)}
        }  # more than the kernel takes, and in bounds
        stuck.sendall(b'{"get": "state"}\n')
        await here.until(lambda: any(c.writer.transport.get_write_buffer_size() for c in here.local._clients))
        stuck.shutdown(socket.SHUT_WR)
        await here.until(lambda: not any(task.get_name() == "local:client" for task in asyncio.all_tasks()))


async def test_a_thousand_questions_in_one_piece_leave_turns_for_others(here: Served) -> None:
    loop, turns, asked = asyncio.get_running_loop(), [0], list[int]()

    def turn() -> None:
        turns[0] += 1
        handle[0] = loop.call_soon(turn)

    def state() -> dict[str, str]:
        asked.append(turns[0])
        return STATE

    here.local.queries = {"state": state}
    handle = [loop.call_soon(turn)]
    async with here.client() as client:
        client.writer.write(b'{"get": "state"}\n' * 1000)
        for _ in range(1000):
            assert (await client.line())["ok"]
    handle[0].cancel()
    assert len(set(asked)) == 1000


async def test_more_clients_than_there_is_room_for_are_told_so(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "CLIENTS_MAX", 1)
    async with here.client() as first:
        await first.ask({"get": "state"})
        async with here.client() as second:
            assert (await second.line())["code"] == "busy"
        assert (await first.ask({"get": "state"}))["ok"]
    assert here.local.counters["refused"] == 1


async def test_a_client_who_leaves_in_mid_line_harms_nobody(here: Served) -> None:
    async with here.client() as client:
        client.writer.write(b'{"cmd": ')
        await client.writer.drain()
    async with here.client() as client:
        assert (await client.ask({"get": "state"}))["ok"]
    await here.until(lambda: here.heard)
    assert here.heard[0].code == "malformed"


async def test_the_file_is_for_its_group_and_goes_with_the_daemon(tmp_path: Path) -> None:
    path = tmp_path / "cmd.sock"
    async with served(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert not path.exists()


async def test_a_file_left_by_a_dead_daemon_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "cmd.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.is_socket()
    async with served(path) as here, here.client() as client:
        assert (await client.ask({"get": "state"}))["ok"]


async def test_a_living_daemon_is_left_alone(here: Served) -> None:
    second = LocalSocket(path=here.path, handle=here.local.handle, queries={}, vouched=())
    with pytest.raises(OSError, match="another process listens here") as refused:
        await second.run()
    assert refused.value.errno == errno.EADDRINUSE
    async with here.client() as client:
        assert (await client.ask({"get": "state"}))["ok"]


async def test_a_place_that_cannot_be_used_is_told_with_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "cmd.sock", tmp_path / ("x" * 120)):
        local = LocalSocket(path=path, handle=None, queries={}, vouched=())  # type: ignore[arg-type]
        with pytest.raises(OSError, match=r"\[state\] socket"):
            await local.run()
