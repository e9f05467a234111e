"""The link to the broker: one MQTT 5 client that is either up or not, and never queues.

paho speaks the protocol; everything that decides is here. Its socket is watched by the event loop and not by its own
thread: an acknowledgement then never waits for a thread switch, and nothing of paho runs beside our code (field case
1, 10). Only dialling (name, TCP, TLS: all blocking) happens in a thread (13). Each attempt is a fresh client, so that
nothing paho remembers can overtake the outbox (2, 6, 11): a message that is not acknowledged on this connection has
failed, and whoever sent it sends it again. What paho calls back only notes what came; the work is done elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from rules.words import text

log = logging.getLogger(__name__)

BACKOFF_CAP_S: Final = 2.0
"""Longest pause on a broker that does not answer: one site has some thirty tables, and a table must be back in 2 s."""
REFUSED_S: Final = 60.0
"""Pause after an error that only a person mends (credentials, a client id in use)."""
SHORT_S: Final = 10.0
"""A connection that the broker ends before this age, without a word, looks like a take-over (field case 32)."""
SHORT_MANY: Final = 5
"""That many of them within `WINDOW_S` are one: three are within what a bad cable does."""
WINDOW_S: Final = 60.0
TOLD_MANY: Final = 3
"""The same where the broker says so (Mosquitto >= 2.1)."""
IN_FLIGHT: Final = 8
"""Unacknowledged messages of all kinds; results go one at a time (`controller.outbox`)."""
MAX_PACKET: Final = 1_048_576
"""Larger packets the broker must not send us."""
REFUSED_CODES: Final = frozenset({128, 132, 133, 134, 135, 138, 140, 144})
"""CONNACK codes that trying again does not mend: unspecified, version, client id, password, not authorised, banned,
authentication method, topic name (the will's)."""
TAKEN_OVER: Final = 142
TOO_LARGE: Final = 149


class Disconnected(Exception):  # noqa: N818
    """There is no link, or it went before the acknowledgement came: nobody knows whether the message arrived."""


class Acked(NamedTuple):
    """The broker's answer to one message; 128 and above mean that it did not take it."""

    code: int
    name: str

    @property
    def ok(self) -> bool:
        """True when the broker has the message (16, no subscriber, included)."""
        return self.code < 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where the broker is and who we are there."""

    host: str
    port: int
    client_id: str
    tls: bool = False
    ca_file: str = ""
    username: str = ""
    password_file: str = ""
    """Read at each attempt, so that a new password needs no restart."""
    keepalive_s: int = 20
    session_expiry_s: int = 300
    """A command is valid for 300 s at most: what the broker keeps longer is stale anyway (field cases 8, 40)."""
    connect_timeout_s: float = 5.0
    ack_timeout_s: float = 10.0
    """A message that is not acknowledged by then means that the link is dead (field case 11)."""

    @staticmethod
    def at(url: str, client_id: str, **options: Any) -> Broker:
        """The broker of `mqtt://host[:port]` or `mqtts://host[:port]`; raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in {"mqtt", "mqtts"} or not parts.hostname:
            raise ValueError(f"{url!r} is not mqtt://host[:port] or mqtts://host[:port]")
        tls = parts.scheme == "mqtts"
        port = parts.port or (8883 if tls else 1883)
        return Broker(host=parts.hostname, port=port, client_id=client_id, tls=tls, **options)


def client_id(base: str, machine: str) -> str:
    """The fixed client id of a table: its base topic and a digest of the machine id, so that a copied card shows."""
    return f"{base.replace('/', '-')}-{hashlib.sha256(machine.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What the broker delivered."""

    topic: str
    payload: bytes
    retain: bool
    """True only for a copy that was kept from before our subscription."""
    response_topic: str = ""
    correlation: bytes | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A filter, and whether kept messages come again at each connection."""

    topic: str
    kept_each_time: bool = True


class _Ended(Exception):  # noqa: N818
    """A connection is over: why, in words, and the reason code where one was given."""

    def __init__(self, why: str, code: int | None = None, *, ours: bool = False) -> None:
        super().__init__(why)
        self.why, self.code, self.ours = why, code, ours


class _Tls(ssl.SSLSocket):
    """A TLS socket that is closed when its handshake fails; paho would leave it to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


class _Connection:
    """One TCP connection with its paho client; dialled in a thread, then owned by the loop."""

    def __init__(
        self, broker: Broker, on_message: Callable[[Message], None], on_end: Callable[[_Connection, _Ended], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._broker = broker
        self._on_message = on_message
        self._on_end = on_end
        self._attached: socket.socket | None = None
        self.connack: asyncio.Future[tuple[ReasonCode, bool, Properties]] = self._loop.create_future()
        self.ended: asyncio.Future[_Ended] = self._loop.create_future()
        self.subacks: dict[int, asyncio.Future[list[ReasonCode]]] = {}
        self.waiting: dict[int, asyncio.Future[Acked]] = {}
        self.heard_at = self._loop.time()
        self.dropped_messages = 0
        self.client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=broker.client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
        )
        self.client.connect_timeout = broker.connect_timeout_s
        self.client.on_connect = self._connected
        self.client.on_disconnect = self._disconnected
        self.client.on_subscribe = self._subscribed
        self.client.on_publish = self._published
        self.client.on_message = self._message
        self.client.on_socket_register_write = self._want_write
        self.client.on_socket_unregister_write = self._written
        self.client.on_socket_close = self._detach

    # --- in the dialling thread ---

    def dial(self, will_topic: str, will: bytes) -> None:
        """Resolve, connect, greet; raises OSError (TLS errors are some) or ValueError."""
        broker = self._broker
        if broker.username:
            password = Path(broker.password_file).read_text().strip() if broker.password_file else None
            self.client.username_pw_set(broker.username, password)
        if broker.tls:
            context = ssl.create_default_context(cafile=broker.ca_file or None)
            context.sslsocket_class = _Tls
            self.client.tls_set_context(context)
        self.client.will_set(will_topic, will, qos=1, retain=True)
        properties = _properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = broker.session_expiry_s
        properties.MaximumPacketSize = MAX_PACKET
        self.client.connect(
            broker.host, broker.port, keepalive=broker.keepalive_s, clean_start=False, properties=properties
        )

    # --- in the loop ---

    def attach(self) -> None:
        """The loop watches the socket from here on."""
        sock = self.client.socket()
        if sock is None:
            raise _Ended("closed while dialling")
        assert isinstance(sock, socket.socket)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # an answer of 200 bytes must not wait for more
        self._attached = sock
        self._loop.add_reader(sock, self._readable)
        self._loop.add_writer(sock, self._writable)

    def drop(self, why: str) -> None:
        """End it without a DISCONNECT, so that the broker tells our will."""
        self.end(_Ended(why, ours=True))
        self._detach()
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self.client.on_socket_close = None
        sock = self.client.socket()
        if sock is not None:
            sock.close()

    def end(self, ended: _Ended) -> None:
        """Everybody who waits learns that it is over; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(ended)
            self._on_end(self, ended)  # at once: whoever is refused now must not find the link up
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Disconnected(ended.why))
        self.waiting.clear()

    async def until(self, future: asyncio.Future[Any], within_s: float, what: str) -> Any:
        """The future's result; raises _Ended when the connection goes first or the time is up."""
        await asyncio.wait({future, self.ended}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        raise self.ended.result() if self.ended.done() else _Ended(f"no {what} within {within_s:g} s", ours=True)

    async def send(self, topic: str, payload: bytes, *, retain: bool, correlation: bytes | None) -> Acked:
        """Send at QoS 1 and wait for the acknowledgement of this message; raises Disconnected when there is none."""
        properties = _properties(PacketTypes.PUBLISH)
        if correlation is not None:
            properties.CorrelationData = correlation
        info = self.client.publish(topic, payload, qos=1, retain=retain, properties=properties)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            self.drop(f"cannot send: {info.rc.name} ({info.rc.value})")
            raise Disconnected("cannot send")
        future: asyncio.Future[Acked] = self._loop.create_future()
        self.waiting[info.mid] = future
        try:
            return await future
        finally:
            self.waiting.pop(info.mid, None)

    def _readable(self) -> None:
        self._run(self.client.loop_read)
        sock = self._attached
        while isinstance(sock, ssl.SSLSocket) and sock is self._attached and sock.pending():
            self._run(self.client.loop_read)  # decrypted already: the selector will not call again for it
        self.heard_at = self._loop.time()

    def _writable(self) -> None:
        self._run(self.client.loop_write)

    def tick(self) -> None:
        """Keepalive: ping when idle, and give up a peer that has been silent for 1.5 intervals (field case 17)."""
        self._run(self.client.loop_misc)
        silent_s = self._loop.time() - self.heard_at
        if silent_s > 1.5 * self._broker.keepalive_s:
            self.drop(f"nothing heard for {silent_s:.0f} s")

    def _run(self, step: Callable[[], MQTTErrorCode]) -> None:
        """One step of paho; whatever it raises on what a broker sent ends this connection and nothing else."""
        try:
            step()
        except Exception as error:  # noqa: BLE001  # no list of errors is complete here (field cases 1, 17)
            self.drop(f"{type(error).__name__}: {error}")

    # --- called by paho ---

    def _want_write(self, *_args: Any) -> None:
        if self._attached is not None:  # in the dialling thread nothing is attached yet
            self._loop.add_writer(self._attached, self._writable)

    def _written(self, *_args: Any) -> None:
        if self._attached is not None:
            self._loop.remove_writer(self._attached)

    def _detach(self, *_args: Any) -> None:
        sock, self._attached = self._attached, None
        if sock is not None:
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)

    def _connected(
        self, _client: Client, _data: Any, flags: ConnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if not self.connack.done():
            self.connack.set_result((reason, flags.session_present, properties or _properties(PacketTypes.CONNACK)))

    def _disconnected(
        self, _client: Client, _data: Any, flags: DisconnectFlags, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        told = flags.is_disconnect_packet_from_server
        why = f"broker says {reason} ({reason.value})" if told else f"connection lost: {reason} ({reason.value})"
        self.end(_Ended(why, reason.value if told else None))

    def _subscribed(
        self, _client: Client, _data: Any, mid: int, reasons: list[ReasonCode], _properties: Properties | None
    ) -> None:
        if future := self.subacks.pop(mid, None):
            future.set_result(reasons)

    def _published(
        self, _client: Client, _data: Any, mid: int, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        future = self.waiting.pop(mid, None)
        if future is not None and not future.done():
            future.set_result(Acked(reason.value, str(reason)))

    def _message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            self.dropped_messages += 1
            return
        properties = message.properties
        self._on_message(
            Message(
                topic=topic,
                payload=bytes(message.payload),
                retain=message.retain,
                response_topic=getattr(properties, "ResponseTopic", ""),
                correlation=getattr(properties, "CorrelationData", None),
            )
        )


class Link:
    """The connection to the broker, for ever: dial, subscribe, keep alive, pause, again.

    `run()` is its task and ends after `close()`; cancelled without it, the broker tells the will. `publish` sends one
    message and answers with the broker's own reason for that very message, or raises Disconnected. Callbacks run in the
    loop and must only take note: `on_message`; `on_up(session_present)` after each SUBACK; `on_down(why)`;
    `alarm(name, code, text)` and `clear(name)` for `mqtt:refused`, `mqtt:client_id`, `mqtt:subscription`, `mqtt:link`.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        will_topic: str,
        will: Callable[[], bytes],
        subscriptions: Sequence[Subscription],
        on_message: Callable[[Message], None],
        on_up: Callable[[bool], None],
        on_down: Callable[[str], None],
        alarm: Callable[[str, str, str], None],
        clear: Callable[[str], None],
        rng: random.Random | None = None,
    ) -> None:
        self._broker = broker
        self._will_topic, self._will = will_topic, will
        self._subscriptions = tuple(subscriptions)
        self._on_message, self._on_up, self._on_down = on_message, on_up, on_down
        self._alarm, self._clear = alarm, clear
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not a secret
        self._connection: _Connection | None = None
        """The one that is up: greeted and subscribed."""
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._largest = MAX_PACKET
        self._closing = asyncio.Event()
        self._dialling: asyncio.Future[Exception | None] | None = None
        self._short: deque[float] = deque()
        self._told: deque[float] = deque()
        self._taken_over = False
        self._connects = 0
        self._last_why = ""
        self._since = 0.0
        self._down_since: float | None = None
        self._session_present = False
        self._last_ack: float | None = None

    @property
    def up(self) -> bool:
        """True from SUBACK to loss."""
        return self._connection is not None

    async def run(self) -> None:
        """Stay connected until `close()`."""
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._closing.is_set():
            began, reached = loop.time(), self._connects
            ended = await self._session()
            if self._closing.is_set():
                return
            failures = 1 if self._connects > reached else failures + 1
            self._judge(ended, lived_s=loop.time() - max(began, self._since), up=self._connects > reached)
            await self._pause(ended, failures)

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        correlation: bytes | None = None,
        ack_within_s: float | None = None,
    ) -> Acked:
        """Send at QoS 1 and wait for the acknowledgement of this message; raises Disconnected.

        Without one in time the link is given up, for then nothing else is acknowledged either.
        """
        within_s = ack_within_s or self._broker.ack_timeout_s
        connection = self._connection
        try:
            async with asyncio.timeout(within_s), self._room:
                connection = self._connection
                if connection is None:
                    raise Disconnected("no link")
                if len(topic) + len(payload) + 64 > self._largest:
                    return Acked(TOO_LARGE, f"Packet too large: the broker takes {self._largest} bytes")
                acked = await connection.send(topic, payload, retain=retain, correlation=correlation)
        except TimeoutError:
            if connection is not None:
                connection.drop(f"a message was not acknowledged in {within_s:g} s")
            raise Disconnected("not acknowledged in time") from None
        self._last_ack = asyncio.get_running_loop().time()
        return acked

    def publish_live(self, topic: str, payload: bytes) -> bool:
        """Send at QoS 0 now or never: False when offline, or while earlier bytes still wait in the socket."""
        connection = self._connection
        if connection is None or connection.client.want_write():
            return False
        return connection.client.publish(topic, payload, qos=0).rc == MQTTErrorCode.MQTT_ERR_SUCCESS

    async def close(self, within_s: float = 1.0) -> None:
        """Say goodbye with a DISCONNECT (no will is told); `run` then returns."""
        self._closing.set()
        if self._dialling is not None and not self._dialling.done():
            self._dialling.set_result(_Ended("closed while dialling", ours=True))
        connection = self._connection
        if connection is not None:
            connection.client.disconnect()
            await asyncio.wait({connection.ended}, timeout=within_s)

    def health(self) -> dict[str, int | str | bool | None]:
        """Gauges for `health.mqtt`; ages in ms, null when there is nothing to measure."""
        now = asyncio.get_running_loop().time()
        return {
            "connected": self.up,
            "broker": f"{self._broker.host}:{self._broker.port}",
            "client_id": self._broker.client_id,
            "connects": self._connects,
            "session_present": self._session_present,
            "up_ms": round((now - self._since) * 1000) if self.up else None,
            "last_ack_ms": None if self._last_ack is None else round((now - self._last_ack) * 1000),
            "unacknowledged": len(self._connection.waiting) if self._connection else 0,
            "client_id_taken": self._taken_over,
            "last_reason": self._last_why,
        }

    async def _session(self) -> _Ended:
        """One connection from dialling to its end."""
        connection = _Connection(self._broker, self._on_message, self._lost)
        try:
            await self._dialled(connection)
            connection.attach()
            await self._greeted(connection)
            await self._subscribed(connection)
            self._up(connection)
            return await self._kept(connection)
        except _Ended as ended:
            return ended
        except Disconnected as lost:
            return connection.ended.result() if connection.ended.done() else _Ended(str(lost))
        finally:
            connection.drop("link task ended")

    async def _dialled(self, connection: _Connection) -> None:
        """Dial in a daemon thread: a name server that never answers holds up neither the loop nor the exit."""
        loop = asyncio.get_running_loop()
        done = self._dialling = loop.create_future()
        will = self._will()

        def tell(error: Exception | None) -> None:
            if done.done():
                connection.drop("abandoned while dialling")  # what the thread has opened since
            else:
                done.set_result(error)

        def dial() -> None:
            error: Exception | None = None
            try:
                connection.dial(self._will_topic, will)
            except Exception as raised:  # noqa: BLE001  # handed to the task that waits for it
                error = raised
            try:
                loop.call_soon_threadsafe(tell, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                connection.close()

        threading.Thread(target=dial, name="mqtt-dial", daemon=True).start()
        error = await done
        if error is not None:
            raise error if isinstance(error, _Ended) else _Ended(_said(error))

    async def _greeted(self, connection: _Connection) -> None:
        reason, present, properties = await connection.until(
            connection.connack, self._broker.connect_timeout_s, "CONNACK"
        )
        if reason.is_failure:
            raise _Ended(f"refused: {reason} ({reason.value})", reason.value)
        self._session_present = present
        self._largest = getattr(properties, "MaximumPacketSize", MAX_PACKET)
        self._room = asyncio.Semaphore(min(IN_FLIGHT, getattr(properties, "ReceiveMaximum", IN_FLIGHT)))

    async def _subscribed(self, connection: _Connection) -> None:
        """Every filter, at every connection (field case 7); a refused one raises an alarm and the rest goes on."""
        wanted = [
            (entry.topic, SubscribeOptions(qos=1, retainHandling=0 if entry.kept_each_time else 1))
            for entry in self._subscriptions
        ]
        _, mid = connection.client.subscribe(wanted)
        if mid is None:
            raise _Ended("cannot subscribe")
        future: asyncio.Future[list[ReasonCode]] = asyncio.get_running_loop().create_future()
        connection.subacks[mid] = future
        reasons = await connection.until(future, self._broker.connect_timeout_s, "SUBACK")
        refused = [
            f"{entry.topic}: {reason} ({reason.value})"
            for entry, reason in zip(self._subscriptions, reasons, strict=True)
            if reason.is_failure
        ]
        if refused:
            self._alarm("mqtt:subscription", "mqtt_subscription", text("mqtt_subscription", refused=", ".join(refused)))
        else:
            self._clear("mqtt:subscription")

    def _up(self, connection: _Connection) -> None:
        if connection.ended.done():  # in the same packet as the SUBACK
            raise connection.ended.result()
        self._connection, self._since, self._down_since = connection, asyncio.get_running_loop().time(), None
        self._connects += 1
        self._last_why = ""
        log.info(
            "connected to %s:%d as %s, session present: %s",
            self._broker.host, self._broker.port, self._broker.client_id, self._session_present,
        )  # fmt: skip
        self._clear("mqtt:refused")
        self._clear("mqtt:link")
        self._on_up(self._session_present)

    def _lost(self, connection: _Connection, ended: _Ended) -> None:
        if self._connection is connection:
            self._connection, self._down_since = None, asyncio.get_running_loop().time()
            self._on_down(ended.why)

    async def _kept(self, connection: _Connection) -> _Ended:
        loop = asyncio.get_running_loop()
        while not connection.ended.done():
            await asyncio.wait({connection.ended}, timeout=min(1.0, self._broker.keepalive_s / 4))
            if not connection.ended.done():
                connection.tick()
            if loop.time() - self._since > REFUSED_S:
                self._forget_take_over()
        return connection.ended.result()

    def _judge(self, ended: _Ended, *, lived_s: float, up: bool) -> None:
        """Log what changed, count what looks like a take-over, raise what needs a person."""
        now = asyncio.get_running_loop().time()
        if ended.why != self._last_why:
            log.warning("broker %s:%d: %s", self._broker.host, self._broker.port, ended.why)
        self._last_why = ended.why
        if not up and ended.code in REFUSED_CODES:
            self._alarm("mqtt:refused", "mqtt_refused", text("mqtt_refused", why=ended.why, will=self._will_topic))
        if ended.code == TAKEN_OVER:
            self._told.append(now)
        elif up and ended.code is None and not ended.ours and lived_s < SHORT_S:
            self._short.append(now)
        for times in (self._told, self._short):
            while times and now - times[0] > WINDOW_S:
                times.popleft()
        if not self._taken_over and (len(self._told) >= TOLD_MANY or len(self._short) >= SHORT_MANY):
            self._taken_over = True
            log.error("client id %s taken over: another client uses it", self._broker.client_id)
            self._alarm("mqtt:client_id", "mqtt_client_id", text("mqtt_client_id", id=self._broker.client_id))

    def _forget_take_over(self) -> None:
        self._taken_over = False
        self._told.clear()
        self._short.clear()
        self._clear("mqtt:client_id")

    async def _pause(self, ended: _Ended, failures: int) -> None:
        if self._taken_over:
            pause = REFUSED_S + self._rng.uniform(0, REFUSED_S / 2)
        elif ended.code in REFUSED_CODES:
            pause = self._rng.uniform(REFUSED_S / 2, REFUSED_S)
        else:
            pause = self._rng.uniform(0, min(BACKOFF_CAP_S, 0.25 * 2 ** min(failures, 10)))
        loop = asyncio.get_running_loop()
        if self._down_since is None:
            self._down_since = loop.time()
        if loop.time() - self._down_since > REFUSED_S / 2:
            self._alarm("mqtt:link", "mqtt_link", text("mqtt_link", why=ended.why))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._closing.wait()


def _properties(packet: int) -> Properties:
    return Properties(packet)  # type: ignore[no-untyped-call]


def _said(error: Exception) -> str:
    """What went wrong while dialling, with the likely reason where it is known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = " (is the clock right?)" if error.verify_code in {9, 10} else ""
        return f"TLS: {error.verify_message}{hint}"
    return f"{type(error).__name__}: {error}"
