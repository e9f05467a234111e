"""The way over the broker, as any consumer of the floor."""

from __future__ import annotations

import json
import queue
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self
from urllib.parse import urlsplit

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from controller.errors import UnreachableError
from controller.tablectl.link import ANSWER_S, Told

KEPT_S: Final = 2.0
"""How long a retained message may take to come after the subscription."""


class Remote:
    """A connection to the broker (`controller.tablectl.link.Link`)."""

    def __init__(self, url: str, base: str, username: str = "", password: str = "", ca_file: str = "") -> None:
        parts = urlsplit(url)
        self._where = f"the broker {url}"
        self._base = base.rstrip("/")
        self._inbox: queue.Queue[MQTTMessage] = queue.Queue()
        self._reply_topic = f"replies/tablectl-{secrets.token_hex(8)}"
        self._client = Client(
            CallbackAPIVersion.VERSION2, client_id="", protocol=MQTTProtocolVersion.MQTTv5, reconnect_on_failure=False
        )
        if username:
            self._client.username_pw_set(username, password)
        if parts.scheme == "mqtts":
            self._client.tls_set(ca_certs=ca_file or None)
        up: queue.Queue[Any] = queue.Queue()
        self._client.on_connect = lambda _client, _data, _flags, reason, _properties: up.put(reason)
        self._client.on_message = lambda _client, _data, message: self._inbox.put(message)
        try:
            self._client.connect(parts.hostname or "", parts.port or (8883 if parts.scheme == "mqtts" else 1883))
            self._client.loop_start()
            reason = up.get(timeout=ANSWER_S)
        except (OSError, queue.Empty) as error:
            self._client.loop_stop()
            raise UnreachableError(f"{self._where}: {str(error) or 'no answer'}; is it running there?") from error
        if reason.is_failure:
            self._client.loop_stop()
            raise UnreachableError(f"{self._where} refuses us: {reason}; give --username and --password-file")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def get(self, topic: str) -> dict[str, Any]:
        """The retained message of a topic."""
        self._client.subscribe(f"{self._base}/{topic}", qos=1)
        end = time.monotonic() + KEPT_S
        while (told := self._next(end)) is not None:
            if told.topic == topic:
                return told.body
        return {}

    def absent(self) -> str:
        """What the broker keeps of a table that is gone is old, and no command reaches it."""
        status = self.get("status")
        return f"{self._base} is offline ({status['reason']})" if status.get("state") == "offline" else ""

    def command(self, envelope: Mapping[str, Any], answer_s: float = ANSWER_S) -> dict[str, Any]:
        """The reply on a topic of our own."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ResponseTopic = self._reply_topic
        properties.CorrelationData = secrets.token_bytes(8)
        self._client.subscribe(self._reply_topic, qos=1)
        name = envelope["cmd"]["name"]
        payload = json.dumps(envelope, ensure_ascii=False).encode()
        self._client.publish(f"{self._base}/cmd/{name}", payload, qos=1, properties=properties)
        end = time.monotonic() + answer_s
        while (told := self._next(end)) is not None:
            if told.topic == self._reply_topic:
                return told.body
        raise UnreachableError(f"{self._where}: {self._base} does not answer; is the table online, is the base right?")

    def watch(self, *topics: str, seconds: float | None = None) -> Iterator[Told]:
        """What is published below the base."""
        for topic in topics or ("#",):
            self._client.subscribe(f"{self._base}/{topic}" if topic == "#" else f"{self._base}/{topic}/#", qos=1)
        end = None if seconds is None else time.monotonic() + seconds
        while (told := self._next(end)) is not None:
            yield told

    def _next(self, end: float | None) -> Told | None:
        """The next JSON message, None when the time is over."""
        while True:
            wait = 1.0 if end is None else end - time.monotonic()
            if wait <= 0:
                return None
            try:
                message = self._inbox.get(timeout=wait)
            except queue.Empty:
                if not self._client.is_connected():
                    raise UnreachableError(f"{self._where}: the connection is lost") from None
                continue
            try:
                body = json.loads(message.payload)
            except ValueError:
                continue
            if isinstance(body, dict):
                return Told(message.topic.removeprefix(f"{self._base}/"), body)
