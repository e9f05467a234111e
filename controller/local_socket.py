"""The local socket: commands and questions on this machine, so that a dead broker never stops a table.

A Unix stream socket; one JSON object a line, answered in order, each with a line in the form of a reply.

    {"cmd": {...}, "key": ..., "sig": ...}    a command in its envelope; without `sig` the kernel vouches for the peer
    {"get": "state"}                          a question, answered in `data`
    {"watch": ["event", "result"]}            from now on `{"topic": ..., "payload": ...}` lines as well ([] = all)

Whoever may open the socket may ask and watch; commanding takes a role. What a client does not read in time costs him
his connection, and nobody else anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import grp
import logging
import pwd
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from controller import wire
from controller.commands import MAX_BYTES, Peer
from controller.config import Local

log = logging.getLogger(__name__)

CLIENTS_MAX: Final = 16
UNREAD_MAX: Final = 1_048_576
"""Bytes that may wait for a client; beyond, he is cut off."""
WRITE_S: Final = 5.0
MODE: Final = 0o660
SO_PEERGROUPS: Final = 59
"""socket(7): supplementary groups of the peer; not in Python's `socket` module."""

Handle = Callable[[bytes, Peer], Awaitable[wire.Reply]]
"""One envelope of a local peer -> its reply (`controller.commands.Commands.handle`)."""


class Query(wire.Message, kw_only=True, frozen=True):
    """A question."""

    get: str


class Watch(wire.Message, kw_only=True, frozen=True):
    """A wish to be told what happens on these topics (first word of the address; none = all)."""

    watch: list[str]


@dataclass(slots=True, eq=False)
class _Client:
    writer: asyncio.StreamWriter
    peer: Peer
    topics: list[str] | None = None
    cut: bool = False

    def tell(self, line: bytes) -> None:
        """Queue a line for a watcher; one who does not read is cut off."""
        transport = self.writer.transport
        if transport.get_write_buffer_size() > UNREAD_MAX:
            self.cut = True
            transport.abort()
        elif not transport.is_closing():
            self.writer.write(line)


@dataclass(slots=True)
class LocalSocket:
    """Serves the socket at `path`: `run()` until cancelled, `tell(suffix, payload)` for the watchers.

    `queries` answer `get` by name with plain data. Raises ValueError when a row of `vouched` names nobody of this
    machine, and OSError from `run` when another process listens at `path` or it cannot be made.
    """

    path: Path
    handle: Handle
    queries: Mapping[str, Callable[[], Mapping[str, Any] | None]]
    vouched: Iterable[Local]
    beat: Callable[[], None] = lambda: None
    _users: list[tuple[int, str]] = field(init=False)
    _groups: list[tuple[int, str]] = field(init=False)
    _clients: set[_Client] = field(default_factory=set, init=False)
    counters: dict[str, int] = field(default_factory=lambda: {"refused": 0, "cut": 0}, init=False)

    def __post_init__(self) -> None:
        rows = tuple(self.vouched)
        try:
            self._users = [(pwd.getpwnam(row.user).pw_uid, row.role) for row in rows if row.user]
            self._groups = [(grp.getgrnam(row.group).gr_gid, row.role) for row in rows if row.group]
        except KeyError as error:
            raise ValueError(f"[[local]]: {error.args[0]}; name a user or a group of this machine") from None

    def tell(self, suffix: str, payload: bytes) -> None:
        """Something was said on `suffix`: the watchers hear it, whatever became of the broker."""
        watchers = [client for client in self._clients if _wants(client.topics, suffix)]
        if watchers:
            line = msgspec.json.encode({"topic": suffix, "payload": msgspec.Raw(payload)}) + b"\n"
            for client in watchers:
                client.tell(line)

    async def run(self) -> None:
        """Listen and serve until cancelled; the socket file goes with it."""
        listener = _listen(self.path)
        try:
            async with asyncio.TaskGroup() as group:

                def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    group.create_task(self._serve(reader, writer), name="local:client")

                server = await asyncio.start_unix_server(accept, sock=listener, limit=MAX_BYTES)
                async with server:
                    while True:
                        self.beat()
                        await asyncio.sleep(1.0)
        finally:
            listener.close()
            self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer, self._peer(writer.get_extra_info("socket")))
        try:
            if len(self._clients) >= CLIENTS_MAX:
                self.counters["refused"] += 1
                await _send(client, _reply("busy", f"{CLIENTS_MAX} clients already"))
                return
            self._clients.add(client)
            while line := await _line(reader):
                await _send(client, await self._answer(client, line))
                await asyncio.sleep(0)  # a thousand lines in one piece are not one turn of the loop
        except (OSError, TimeoutError) as error:
            log.info("local client %s gone: %s", client.peer.who, error)
        except asyncio.CancelledError:  # a stop waits for nobody who does not read
            writer.transport.abort()
            raise
        finally:
            self._clients.discard(client)
            self.counters["cut"] += client.cut
            await _closed(writer, at_once=client.cut)

    async def _answer(self, client: _Client, line: bytes) -> wire.Reply:
        """A question is answered here; everything else is judged as a command, so that it is journalled."""
        with contextlib.suppress(msgspec.DecodeError):
            return self._asked(msgspec.json.decode(line, type=Query).get)
        with contextlib.suppress(msgspec.DecodeError):
            client.topics = msgspec.json.decode(line, type=Watch).watch
            return _reply("ok", "")
        return await self.handle(line, client.peer)

    def _asked(self, name: str) -> wire.Reply:
        if name not in self.queries:
            return _reply("unknown", f"no question {name!r}; there are: {', '.join(self.queries)}")
        return _reply("ok", "", dict(self.queries[name]() or {}))

    def _peer(self, sock: socket.socket) -> Peer:
        """Who is at the other end, by the kernel's word."""
        _, uid, gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        groups = {gid}
        with contextlib.suppress(OSError):  # more than 256 of them: only the first group counts
            packed = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 1024)
            groups.update(group for (group,) in struct.iter_unpack("I", packed))
        roles = [role for known, role in self._users if known == uid]
        roles += [role for known, role in self._groups if known in groups]
        try:
            who = pwd.getpwuid(uid).pw_name
        except KeyError:
            who = str(uid)
        return Peer(who, tuple(dict.fromkeys(roles)))


def _wants(topics: list[str] | None, suffix: str) -> bool:
    return topics is not None and (not topics or suffix.partition("/")[0] in topics)


def _reply(code: wire.Code, sentence: str, data: dict[str, Any] | None = None) -> wire.Reply:
    return wire.Reply(id=None, ok=code == "ok", code=code, text=sentence, data=data or {})


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line, empty at the end; one too long to be kept comes as zeros that are too long for a command."""
    too_long = False
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            line = end.partial
        except asyncio.LimitOverrunError as overrun:
            await reader.readexactly(overrun.consumed)
            too_long = True
            continue
        return bytes(MAX_BYTES + 1) if too_long else line


async def _send(client: _Client, reply: wire.Reply) -> None:
    client.writer.write(wire.encode(reply) + b"\n")
    try:
        async with asyncio.timeout(WRITE_S):
            await client.writer.drain()
    except TimeoutError:
        client.cut = True
        raise


async def _closed(writer: asyncio.StreamWriter, *, at_once: bool) -> None:
    """Close; what he has not read within `WRITE_S` is thrown away."""
    writer.transport.abort() if at_once else writer.close()
    try:
        async with asyncio.timeout(WRITE_S):
            await writer.wait_closed()
    except OSError:  # TimeoutError is one
        writer.transport.abort()


def _listen(path: Path) -> socket.socket:
    """A listening socket at `path`; a file left by a dead process is replaced, a living one is not (OSError)."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
            else:
                raise OSError(errno.EADDRINUSE, "another process listens here; stop it first", str(path))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(MODE)
        listener.listen(CLIENTS_MAX)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise OSError(
            error.errno, f"{error.strerror or error}; set [state] socket to a writable place", str(path)
        ) from None
    return listener
