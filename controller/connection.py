"""One connection to the broker: a fresh paho client on one TCP (or TLS) socket, watched by the event loop.

Dialling (name, TCP, TLS) blocks and is done in a thread; from `attach` on everything happens in the loop's thread. What
paho calls back only notes what came. Whatever paho raises on what a broker sent ends this connection and nothing else.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

MAX_PACKET: Final = 2_097_152
"""Larger packets the broker must not send us; a command that is too long is still answered."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What the broker delivered."""

    topic: str
    payload: bytes
    retain: bool
    """True only for a copy that was kept from before our subscription."""
    response_topic: str = ""
    correlation: bytes | None = None


class Ended(Exception):  # noqa: N818
    """A connection is over: why, in words, and the broker's reason code where it gave one.

    `ours`: we gave it up ourselves. `for_good`: trying again mends nothing until a person has.
    """

    def __init__(self, why: str, code: int | None = None, *, ours: bool = False, for_good: bool = False) -> None:
        super().__init__(why)
        self.why, self.code, self.ours, self.for_good = why, code, ours, for_good


class _Tls(ssl.SSLSocket):
    """A TLS socket that is closed when its handshake fails; paho would leave it to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


class Connection:
    """One TCP connection with its paho client; dialled in a thread, then owned by the loop."""

    def __init__(
        self, broker: Broker, on_message: Callable[[Delivered], None], on_end: Callable[[Connection, Ended], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._broker = broker
        self._on_message = on_message
        self._on_end = on_end
        self._attached: socket.socket | None = None
        self.connack: asyncio.Future[tuple[ReasonCode, bool, Properties]] = self._loop.create_future()
        self.ended: asyncio.Future[Ended] = self._loop.create_future()
        self.subacks: dict[int, asyncio.Future[list[ReasonCode]]] = {}
        self.waiting: dict[int, asyncio.Future[Acked]] = {}
        self.heard_at = self._loop.time()
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
            raise Ended("closed while dialling")
        assert isinstance(sock, socket.socket)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # an answer of 200 bytes must not wait for more
        self._attached = sock
        self._loop.add_reader(sock, self._readable)
        self._loop.add_writer(sock, self._writable)

    def drop(self, why: str) -> None:
        """End it without a DISCONNECT, so that the broker tells our will."""
        self.end(Ended(why, ours=True))
        self._detach()
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self.client.on_socket_close = None
        sock = self.client.socket()
        if sock is not None:
            sock.close()

    def end(self, ended: Ended) -> None:
        """Everybody who waits learns that it is over; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(ended)
            self._on_end(self, ended)  # at once: whoever is refused now must not find the link up
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Disconnected(ended.why))
        self.waiting.clear()

    async def until(self, future: asyncio.Future[Any], within_s: float, what: str) -> Any:
        """The future's result; raises Ended when the connection goes first or the time is up."""
        await asyncio.wait({future, self.ended}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        raise self.ended.result() if self.ended.done() else Ended(f"no {what} within {within_s:g} s", ours=True)

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
        self.end(Ended(why, reason.value if told else None))

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
            return  # MQTT does not allow such a topic; a broker that lets it pass is not answered
        properties = message.properties
        self._on_message(
            Delivered(
                topic=topic,
                payload=bytes(message.payload),
                retain=message.retain,
                response_topic=getattr(properties, "ResponseTopic", ""),
                correlation=getattr(properties, "CorrelationData", None),
            )
        )


def _properties(packet: int) -> Properties:
    return Properties(packet)  # type: ignore[no-untyped-call]
