"""The link to the broker: one MQTT 5 client that is either up or not, and never queues.

paho speaks the protocol; everything that decides is here. Its socket is watched by the event loop and not by its own
thread: an acknowledgement then never waits for a thread switch, and nothing of paho runs beside our code (field cases
1, 10). Only dialling happens in a thread (13). Each attempt is a fresh client (`controller.connection`), so that what
paho remembers cannot overtake the outbox (2, 6, 11): a message that is not acknowledged on this connection has failed,
and whoever sent it sends it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from controller.connection import MAX_PACKET, Acked, Broker, Connection, Delivered, Disconnected, Ended
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
REFUSED_CODES: Final = frozenset({132, 133, 134, 135, 138, 140, 144})
"""CONNACK codes that trying again does not mend: version, client id, password, not authorised, banned, authentication
method, topic name (the will's)."""
TAKEN_OVER: Final = 142
TOO_LARGE: Final = 149


def client_id(base: str, machine: str) -> str:
    """The fixed client id of a table: its base topic and a digest of the machine id, so that a copied card shows."""
    return f"{base.replace('/', '-')}-{hashlib.sha256(machine.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A filter, and whether kept messages come again at each connection.

    Where they do not, a message that its sender wants kept says so the first time already (field case 40).
    """

    topic: str
    kept_each_time: bool = True

    def options(self) -> SubscribeOptions:
        """As MQTT 5 says it."""
        each_time = self.kept_each_time
        return SubscribeOptions(qos=1, retainAsPublished=not each_time, retainHandling=0 if each_time else 1)


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
        on_message: Callable[[Delivered], None],
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
        self._connection: Connection | None = None
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

    async def close(self, within_s: float = 1.0) -> None:
        """Say goodbye with a DISCONNECT (no will is told); `run` then returns."""
        self._closing.set()
        if self._dialling is not None and not self._dialling.done():
            self._dialling.set_result(Ended("closed while dialling", ours=True))
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

    async def _session(self) -> Ended:
        """One connection from dialling to its end."""
        connection = Connection(self._broker, self._on_message, self._lost)
        try:
            await self._dialled(connection)
            connection.attach()
            await self._greeted(connection)
            await self._subscribed(connection)
            self._up(connection)
            return await self._kept(connection)
        except Ended as ended:
            return ended
        except Disconnected as lost:
            return connection.ended.result() if connection.ended.done() else Ended(str(lost))
        finally:
            connection.drop("link task ended")

    async def _dialled(self, connection: Connection) -> None:
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
            raise error if isinstance(error, Ended) else Ended(_said(error))

    async def _greeted(self, connection: Connection) -> None:
        reason, present, properties = await connection.until(
            connection.connack, self._broker.connect_timeout_s, "CONNACK"
        )
        if reason.is_failure:
            raise Ended(f"refused: {reason} ({reason.value})", reason.value, for_good=reason.value in REFUSED_CODES)
        self._session_present = present
        self._largest = getattr(properties, "MaximumPacketSize", MAX_PACKET)
        self._room = asyncio.Semaphore(min(IN_FLIGHT, getattr(properties, "ReceiveMaximum", IN_FLIGHT)))

    async def _subscribed(self, connection: Connection) -> None:
        """Every filter, at every connection (field case 7); a refused one raises an alarm and the rest goes on."""
        wanted = [(entry.topic, entry.options()) for entry in self._subscriptions]
        _, mid = connection.client.subscribe(wanted)
        if mid is None:
            raise Ended("cannot subscribe")
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

    def _up(self, connection: Connection) -> None:
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

    def _lost(self, connection: Connection, ended: Ended) -> None:
        if self._connection is connection:
            self._connection, self._down_since = None, asyncio.get_running_loop().time()
            self._on_down(ended.why)

    async def _kept(self, connection: Connection) -> Ended:
        loop = asyncio.get_running_loop()
        while not connection.ended.done():
            await asyncio.wait({connection.ended}, timeout=min(1.0, self._broker.keepalive_s / 4))
            if not connection.ended.done():
                connection.tick()
            if loop.time() - self._since > REFUSED_S:
                self._forget_take_over()
        return connection.ended.result()

    def _judge(self, ended: Ended, *, lived_s: float, up: bool) -> None:
        """Log what changed, count what looks like a take-over, raise what needs a person."""
        now = asyncio.get_running_loop().time()
        if ended.why != self._last_why:
            log.warning("broker %s:%d: %s", self._broker.host, self._broker.port, ended.why)
        self._last_why = ended.why
        if ended.for_good:
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

    async def _pause(self, ended: Ended, failures: int) -> None:
        if self._taken_over:
            pause = REFUSED_S + self._rng.uniform(0, REFUSED_S / 2)
        elif ended.for_good:
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


def _said(error: Exception) -> str:
    """What went wrong while dialling, with the likely reason where it is known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = " (is the clock right?)" if error.verify_code in {9, 10} else ""
        return f"TLS: {error.verify_message}{hint}"
    return f"{type(error).__name__}: {error}"
