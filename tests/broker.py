"""A private Mosquitto, a consumer that checks what it reads, and a proxy that breaks the line between."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tests.contract import validate

DEADLINE_S = 15.0


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Broker:
    """A real Mosquitto on a free loopback port; the port and the folder stay the same over restarts."""

    def __init__(
        self,
        folder: Path,
        *,
        acl: str | None = None,
        passwords: dict[str, str] | None = None,
        persistence: bool = False,
        extra: str = "",
    ) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self.folder = folder
        self.log: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            f"listener {self.port} 127.0.0.1",
            f"allow_anonymous {'false' if passwords else 'true'}",
            "user root" if os.getuid() == 0 else "",
            "log_dest stderr",
            "log_type all",
            extra,
        ]
        if acl is not None:
            self.set_acl(acl)
            lines.append(f"acl_file {folder / 'acl'}")
        if passwords:
            (folder / "passwords").touch(0o600)
            for user, password in passwords.items():
                subprocess.run(["mosquitto_passwd", "-b", str(folder / "passwords"), user, password], check=True)
            lines.append(f"password_file {folder / 'passwords'}")
        if persistence:
            lines += ["persistence true", f"persistence_location {folder}/"]
        self._config = folder / "mosquitto.conf"
        self._config.write_text("\n".join(lines) + "\n")

    def set_acl(self, acl: str) -> None:
        """Write the access list; `reload` makes a running broker read it."""
        (self.folder / "acl").write_text(acl)
        (self.folder / "acl").chmod(0o600)

    def start(self) -> Self:
        """Start it; returns once it listens."""
        running = threading.Event()
        process = subprocess.Popen(
            ["mosquitto", "-c", str(self._config)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self.log.append(line.rstrip())
                if line.rstrip().endswith("running"):
                    running.set()
            process.stdout.close()

        self._process = process
        self._reader = threading.Thread(target=read, name="mosquitto-log")
        self._reader.start()
        if not running.wait(DEADLINE_S):
            self.stop()
            raise AssertionError("mosquitto does not start:\n" + "\n".join(self.log[-20:]))
        return self

    def reload(self) -> None:
        """Make it read its access list again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """SIGKILL: nothing is saved."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: state is saved when there is persistence."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(DEADLINE_S)
        if self._reader is not None:
            self._reader.join(DEADLINE_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as the consumer got it."""

    topic: str
    payload: bytes
    retain: bool
    body: Any = None
    correlation: bytes | None = None


@dataclass
class Consumer:
    """A floor system: subscribes, keeps everything in order, and holds each message against the contract.

    Asynchronous on the outside, paho's own thread inside: it shares nothing with the link under test.
    """

    port: int
    base: str
    topics: tuple[str, ...] = ("#",)
    client_id: str = ""
    username: str = ""
    password: str = ""
    session_s: int = 0
    reconnect: bool = True
    seen: list[Seen] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    connects: int = 0
    disconnects: int = 0

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._pulse = asyncio.Event()
        self._acks: dict[int, ReasonCode] = {}
        self._subscribed = False
        client = self._client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=self.client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=self.reconnect,
        )
        if self.username:
            client.username_pw_set(self.username, self.password)
        client.reconnect_delay_set(1, 1)
        client.on_connect = lambda *_: self._later(self._connected)
        client.on_disconnect = lambda *_: self._later(self._disconnected)
        client.on_subscribe = lambda *_: self._later(self._on_subscribed)
        client.on_publish = lambda _c, _u, mid, reason, _p: self._later(lambda: self._acks.update({mid: reason}))
        client.on_message = self._message
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = self.session_s
        await asyncio.to_thread(
            client.connect, "127.0.0.1", self.port, clean_start=not self.session_s, properties=properties
        )
        client.loop_start()
        await self.until(lambda: self._subscribed, "subscription")
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._client.disconnect)
        await asyncio.to_thread(self._client.loop_stop)
        await asyncio.sleep(0)
        assert not self.problems, self.problems

    def of(self, suffix: str) -> list[Seen]:
        """What came on this address, oldest first."""
        return [message for message in self.seen if message.topic == f"{self.base}/{suffix}"]

    def last(self, suffix: str) -> Any:
        """Body of the newest message on this address, None when there is none."""
        found = self.of(suffix)
        return found[-1].body if found else None

    async def until(self, condition: Callable[[], Any], what: str = "condition") -> Any:
        """Wait for `condition` to hold (looked at after each message); fails after the deadline."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not (value := condition()):
                    self._pulse.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.05):
                            await self._pulse.wait()
                return value
        except TimeoutError:
            raise AssertionError(f"{what} did not come; seen: {[m.topic for m in self.seen][-30:]}") from None

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, respond: str = "", correlation: bytes = b""
    ) -> ReasonCode:
        """Send at QoS 1 and wait for the acknowledgement."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if respond:
            properties.ResponseTopic = respond
        if correlation:
            properties.CorrelationData = correlation
        info = self._client.publish(topic, payload, qos=1, retain=retain, properties=properties)
        await self.until(lambda: info.mid in self._acks, f"acknowledgement of {topic}")
        return self._acks.pop(info.mid)

    def _later(self, work: Callable[[], Any]) -> None:
        def run() -> None:
            work()
            self._pulse.set()

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(run)

    def _connected(self) -> None:
        self.connects += 1
        if self.topics:
            self._client.subscribe([(f"{self.base}/{topic}", 1) for topic in self.topics])
        else:
            self._subscribed = True

    def _disconnected(self) -> None:
        self.disconnects += 1

    def _on_subscribed(self) -> None:
        self._subscribed = True

    def _message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        suffix = message.topic.removeprefix(f"{self.base}/")
        body = None
        if suffix != message.topic and not suffix.startswith("cmd/"):
            try:
                body = validate(suffix, bytes(message.payload))
            except (AssertionError, LookupError, ValueError) as error:
                self.problems.append(f"{message.topic}: {error}")
        correlation = getattr(message.properties, "CorrelationData", None)
        seen = Seen(message.topic, bytes(message.payload), message.retain, body, correlation)
        self._later(lambda: self.seen.append(seen))


class Proxy:
    """A TCP line between a client and a broker that can be held, delayed, cut, frozen and refused."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.hold_replies = False
        """Bytes from the broker are thrown away."""
        self.delay_replies_s = 0.0
        self.refuse = False
        """New connections are reset at once."""
        self.silent = False
        """New connections are accepted and never answered."""
        self.script: tuple[bytes, ...] = ()
        """What a new connection gets in place of a broker: one part for each thing it says."""
        self.accepted = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._frozen: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(DEADLINE_S)

    def cut(self) -> None:
        """Reset every connection."""
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def freeze(self) -> None:
        """Nothing passes any more on the connections there are, and nobody is told (half-open)."""
        for pair in self._pairs:
            self._frozen.update(pair)

    def _spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            if self.refuse:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                near.close()
                continue
            if self.silent or self.script:
                far = socket.socket()
                self._pairs.append((near, far))
                self._spawn(lambda near=near, far=far: self._swallow(near, far))  # type: ignore[misc]
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.append((near, far))
            done = threading.Barrier(2, action=lambda near=near, far=far: _close(near, far))  # type: ignore[misc]
            self._spawn(lambda a=near, b=far, d=done: self._pump(a, b, d, replies=False))  # type: ignore[misc]
            self._spawn(lambda a=far, b=near, d=done: self._pump(a, b, d, replies=True))  # type: ignore[misc]

    def _pump(self, source: socket.socket, sink: socket.socket, done: threading.Barrier, *, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if replies and self.delay_replies_s:
                    time.sleep(self.delay_replies_s)
                if source in self._frozen or (replies and self.hold_replies):
                    continue
                sink.sendall(data)
        if source not in self._frozen:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)
        done.wait()

    def _swallow(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            script = list(self.script)
            while near.recv(65536):
                if script:
                    near.sendall(script.pop(0))
        _close(near, far)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        end.close()


@contextlib.contextmanager
def running(folder: Path, **options: Any) -> Iterator[Broker]:
    """A broker that runs, and is stopped at the end."""
    broker = Broker(folder, **options)
    try:
        yield broker.start()
    finally:
        broker.stop()
