"""The floor as the rig plays it: a private broker, and a consumer that knows only topics and the public key.

The consumer signs commands with keys of its own and checks every result as an auditor would: canonical bytes, hash,
chain, numbering, signature. It is written from the contract, not from the controller.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

GENESIS = "0" * 64


class RigError(RuntimeError):
    """The rig itself, or what it watches, failed: the reason."""


def canonical(value: Any) -> bytes:
    """Canonical bytes of the contract: UTF-8 JSON, keys sorted, separators `,` and `:`."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def mortal() -> tuple[str, ...]:
    """Words before a command that let it die with this process, however that dies (util-linux; else nothing)."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


class Broker:
    """A private Mosquitto on loopback; keeps its port and what it stored over restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.rights: Path | None = None
        """An ACL file; without one everybody may everything."""
        self.settings: list[str] = []
        """More lines of its configuration."""
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, deadline_s: float = 10.0) -> None:
        """Start it and wait until it answers; raises RigError."""
        program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            raise RigError("mosquitto is not installed: apt-get install mosquitto")
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "log_dest stderr"]
        lines += ["persistence true", f"persistence_location {self.folder}/", *self.settings]
        if self.rights is not None:
            lines.append(f"acl_file {self.rights}")
        if os.geteuid() == 0:
            lines.append("user root")
        config = self.folder / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n")
        with (self.folder / "mosquitto.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *mortal(),
                program,
                "-c",
                str(config),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        async with asyncio.timeout(deadline_s):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    if self.process.returncode is not None:
                        said = (self.folder / "mosquitto.log").read_text(errors="replace").strip().splitlines()
                        raise RigError(f"mosquitto ended at once: {said[-1] if said else 'no word'}") from None
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    await writer.wait_closed()
                    return

    @property
    def died(self) -> bool:
        """Somebody else ended it."""
        return self.process is not None and self.process.returncode is not None

    async def stop(self) -> None:
        """End it by SIGTERM, after a while by SIGKILL."""
        if self.process is not None:
            await end(self.process)
            self.process = None


async def end(process: asyncio.subprocess.Process, deadline_s: float = 10.0) -> int:
    """End a process that we started, by SIGTERM and after a while by SIGKILL; returns its exit code."""
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(deadline_s):
                return await process.wait()
        except TimeoutError:
            process.kill()
    return await process.wait()


@dataclass(frozen=True, slots=True)
class Signer:
    """A person with a key of his own."""

    name: str
    role: str
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> str:
        """The public key as the config lists it."""
        return base64.b64encode(self.key.public_key().public_bytes_raw()).decode()

    def envelope(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """The signed envelope of a command."""
        sig = base64.b64encode(self.key.sign(canonical(command))).decode()
        return {"cmd": dict(command), "key": self.name, "sig": sig}


def command(table: str, name: str, operator: str, args: Mapping[str, Any], *, valid_s: int = 60) -> dict[str, Any]:
    """The body of a command, issued now."""
    return {
        "id": uuid4().hex,
        "name": name,
        "table": table,
        "issued_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "valid_s": valid_s,
        "operator": operator,
        "args": dict(args),
    }


@dataclass(slots=True)
class Chain:
    """Checks results one after the other; a resend of a known one must be the same bytes."""

    public: Ed25519PublicKey
    last: str = GENESIS
    number: int = 0
    seen: dict[str, bytes] = field(default_factory=dict)

    @staticmethod
    def of(public: str) -> Chain:
        """The chain of the table with this public key (base64)."""
        return Chain(Ed25519PublicKey.from_public_bytes(base64.b64decode(public)))

    def check(self, payload: bytes) -> list[str]:
        """What is wrong with this message, in words; empty when it proves itself."""
        body = json.loads(payload)
        before = self.seen.get(body["id"])
        if before is not None:
            return [] if before == payload else [f"{body['id']}: came again with other bytes"]
        self.seen[body["id"]] = payload
        wrong: list[str] = []
        naked = {key: value for key, value in body.items() if key not in ("hash", "sig")}
        digest = hashlib.sha256(body["prev_hash"].encode() + b"\n" + canonical(naked)).digest()
        if digest.hex() != body["hash"]:
            wrong.append(f"{body['id']}: hash is not that of the body")
        try:
            self.public.verify(base64.b64decode(body["sig"]), bytes.fromhex(body["hash"]))
        except (InvalidSignature, ValueError):
            wrong.append(f"{body['id']}: the signature is not by the table's key")
        if body["prev_hash"] != self.last:
            wrong.append(f"{body['id']}: prev_hash is not that of result {self.number}")
        if body["result_no"] != self.number + 1:
            wrong.append(f"{body['id']}: result_no {body['result_no']} after {self.number}")
        self.last, self.number = body["hash"], body["result_no"]
        return wrong


@dataclass(frozen=True, slots=True)
class Heard:
    """One message from the table: its address below the base and its bytes."""

    suffix: str
    payload: bytes
    retained: bool

    @property
    def body(self) -> Any:
        """The JSON."""
        return json.loads(self.payload)


class Consumer:
    """A floor system: hears everything below one base, gives commands, survives the loss of the broker.

    With `client_id` the broker keeps what comes while this consumer is away.
    """

    def __init__(self, port: int, base: str, *, client_id: str = "") -> None:
        self.base = base
        self.table = base.removeprefix("casino/")
        self.heard: list[Heard] = []
        self.losses = 0
        """How often the broker went away."""
        self.patience_s = 10.0
        """How long a table may take for an answer."""
        self._used = ""
        """The nonce of the last command: the state that tells the next one may still be under way."""
        self._new = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._replies: dict[bytes, asyncio.Future[dict[str, Any]]] = {}
        self._subscribed = asyncio.Event()
        self._reply_topic = f"rig/{uuid4().hex}"
        self._client = Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(
            [(f"{base}/#", _ONCE), (self._reply_topic, _ONCE)]
        )
        self._client.on_disconnect = lambda *_: self._call(self._lost)
        self._client.on_subscribe = lambda *_: self._call(self._subscribed.set)
        self._client.on_message = lambda _client, _data, message: self._call(self._take, message)
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if client_id:
            properties.SessionExpiryInterval = 3600
        self._client.connect_async("127.0.0.1", port, keepalive=10, clean_start=not client_id, properties=properties)

    async def start(self) -> None:
        """Connect and subscribe."""
        self._client.loop_start()
        async with asyncio.timeout(10):
            await self._subscribed.wait()

    async def stop(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    def _call(self, do: Callable[..., None], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do, *args)

    def _lost(self) -> None:
        self.losses += 1

    def _take(self, message: MQTTMessage) -> None:
        if message.topic == self._reply_topic:
            waiting = self._replies.pop(getattr(message.properties, "CorrelationData", b""), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(json.loads(message.payload))
            return
        self.heard.append(Heard(message.topic.removeprefix(self.base + "/"), bytes(message.payload), message.retain))
        self._new.set()

    async def message(self, number: int, deadline_s: float) -> Heard:
        """The `number`-th message heard, from 0; raises TimeoutError when it does not come in time."""
        async with asyncio.timeout(deadline_s):
            while number >= len(self.heard):
                self._new.clear()
                await self._new.wait()
        return self.heard[number]

    async def wait_for(self, suffix: str, like: Callable[[Any], bool], deadline_s: float, start: int = 0) -> Any:
        """The body of the first message on this address that is like that; raises TimeoutError."""
        deadline = self._loop.time() + deadline_s
        while True:
            heard = await self.message(start, deadline - self._loop.time())
            start += 1
            if heard.suffix == suffix and heard.payload and like(heard.body):
                return heard.body

    async def give(self, envelope: Mapping[str, Any]) -> dict[str, Any]:
        """Send an envelope as it is and wait for the reply; raises TimeoutError."""
        correlation = uuid4().bytes
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ResponseTopic = self._reply_topic
        properties.CorrelationData = correlation
        reply = self._replies[correlation] = self._loop.create_future()
        topic = f"{self.base}/cmd/{envelope['cmd']['name']}"
        self._client.publish(topic, canonical(envelope), qos=1, properties=properties)
        async with asyncio.timeout(self.patience_s):
            answer: dict[str, Any] = await reply
            return answer

    async def order(self, signer: Signer, name: str, **args: Any) -> dict[str, Any]:
        """Give a signed command and wait for the reply; while the table's clock is not trusted, with its nonce."""
        while True:
            nonce = await self._nonce(self._used)
            proof = {"nonce": nonce} if nonce else {}
            reply = await self.give(signer.envelope(command(self.table, name, signer.name, {**args, **proof})))
            if reply["code"] not in _BEFORE_THE_NONCE:
                self._used = nonce
            if reply["code"] != "stale" or not nonce:
                return reply

    async def _nonce(self, used: str) -> str:
        """What proves that a command is new: nothing while the clock is, else the newest nonce, another than `used`."""
        while True:
            states = [heard.body for heard in self.heard if heard.suffix == "state" and heard.payload]
            if states and (states[-1]["clock_synchronised"] or states[-1]["nonce"] != used):
                return "" if states[-1]["clock_synchronised"] else str(states[-1]["nonce"])
            await self.message(len(self.heard), self.patience_s)


_BEFORE_THE_NONCE = {"malformed", "unknown", "wrong_table", "unsigned", "bad_signature", "unauthorised", "repeated"}
"""Refusals that leave the nonce as it was."""
_ONCE = 1
"""QoS of the consumer's subscriptions."""
