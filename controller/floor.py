"""The floor: what this table says on which topic, and how commands reach it (design: the floor contract).

Two kinds of output, each with its policy (field case 23). What happened (`result`, `event`, `settlement`) comes from
the outbox in order, one at a time, and is kept until the broker has it: the outbox calls `publish`. What stands
(`status`, `state`, `result/last`, `health`) is retained; only the newest value counts, and all of it is said again
after every CONNACK, whatever the broker remembers (46). Live samples (`diag`) are dropped while offline.

    CONNACK, SUBACK ─► status ─► is the broker's result/last newer than ours? ─► state, result/last ─► `ready`: outbox
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from controller import wire
from controller.clock import Clock
from controller.command_path import PROBE, CommandPath
from controller.connection import Acked, Broker, Delivered, Disconnected
from controller.mqtt import Link, Subscription
from controller.results import first_fault
from rules.words import text

log = logging.getLogger(__name__)

HEALTH_S: Final = 10.0
REFUSED_S: Final = 5.0
"""Pause before a retained value that the broker refused is tried again: rights that are mended need no restart."""
STOP_S: Final = 1.0
OBEYING_MAX: Final = 64
"""Commands from the broker under way, replies included; beyond, they are dropped and counted."""
REPLY_WITHIN_S: Final = 30.0
"""A reply waits this long for the link; a command may have come with a kept session before everything was said."""

Handle = Callable[[bytes, str, bool], Awaitable[wire.Reply]]
"""payload, name of the topic, retained -> reply (`controller.commands.Commands.handle`)."""


@dataclass(slots=True)
class _Kept:
    """A retained topic: its newest value, and whether the broker lacks it."""

    payload: bytes | None = None
    due: bool = False
    not_before: float = 0.0


class Floor:
    """The table's presence on the broker.

    `run()` is its task; `stop()` says a clean goodbye, after which `run` returns. The composer calls `tell_state` and
    `tell_last` after each commit, `change_epoch` when the journal starts anew, `sample` for `diag`; the outbox awaits
    `ready()` and calls `publish`, which raises Disconnected and answers with the broker's own reason. `also` is told
    every value that stands and every sample (`suffix`, payload), broker or not: the local socket's watchers live on it.
    `older(known_id)` is called when the broker knows a newer result of our epoch, signed by `public_key`, than our
    journal does.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        base: str,
        boot: str,
        version: str,
        epoch: str,
        public_key: str,
        clock: Clock,
        handle: Handle,
        health: Callable[[], wire.Health],
        older: Callable[[str], None],
        alarm: Callable[[str, str, str], None],
        clear: Callable[[str], None],
        also: Callable[[str, bytes], None] = lambda _suffix, _payload: None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._base, self._boot, self._version, self._epoch = base, boot, version, epoch
        self._public_key = public_key
        self._clock = clock
        self._handle, self._health, self._older = handle, health, older
        self._alarm, self._clear = alarm, clear
        self._also, self._beat = also, beat
        self._link = Link(
            broker,
            will_topic=f"{base}/status",
            will=lambda: self._presence("offline", "connection_lost"),
            subscriptions=(
                Subscription(f"{base}/status"),
                Subscription(f"{base}/result/last"),
                Subscription(f"{base}/cmd/+", kept_each_time=False),
            ),
            on_message=self._received,
            on_up=self._on_up,
            on_down=self._on_down,
            alarm=alarm,
            clear=clear,
        )
        self._kept = {suffix: _Kept() for suffix in ("status", "state", "result/last", "health")}
        self._changed = asyncio.Event()
        self._greeting = False
        self._ready = asyncio.Event()
        self._stopping = False
        self._births = 0
        self._mode = ""
        self._known: bytes | None = None
        """The broker's own result/last, as it came after the subscription."""
        self._command_path = CommandPath(
            base, publish=self._link.publish, ready=self._ready, clock=clock, alarm=alarm, clear=clear
        )
        self._refused: set[str] = set()
        self._obeying: set[asyncio.Task[None]] = set()
        self._samples: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.counters = {"commands_dropped": 0, "replies_lost": 0, "presence_corrected": 0}

    # --- what the composer and the outbox call ---

    @property
    def command_path(self) -> wire.Proof:
        """Did our own message on `cmd/` come back lately."""
        return self._command_path.proof

    async def ready(self) -> None:
        """Wait until the link is up and everything that stands has been said."""
        await self._ready.wait()

    async def publish(
        self, suffix: str, payload: bytes, *, retain: bool = False, correlation: bytes | None = None
    ) -> Acked:
        """Send one message at QoS 1; a refusal raises an alarm that names the topic, success clears it (case 30)."""
        topic = f"{self._base}/{suffix}"
        acked = await self._link.publish(topic, payload, retain=retain, correlation=correlation)
        if suffix.startswith("reply/"):
            suffix = "reply"  # one alarm: what follows is whatever a stranger wrote behind `cmd/`
        name = f"mqtt:publish:{suffix}"
        if not acked.ok:
            self._refused.add(suffix)
            why = f"{acked.name} ({acked.code})"
            self._alarm(name, "mqtt_publish_refused", text("mqtt_publish_refused", topic=topic, why=why))
        else:
            self._refused.discard(suffix)
            self._clear(name)
        return acked

    def tell_state(self, payload: bytes) -> None:
        """`state` as of a commit that is on the disk."""
        self._stand("state", payload)

    def tell_last(self, payload: bytes) -> None:
        """`result/last`: a result that is on the disk."""
        self._stand("result/last", payload)

    def change_epoch(self, epoch: str) -> None:
        """The journal has begun anew: say so in our presence."""
        self._epoch = epoch
        if self._kept["status"].payload is not None:
            self._stand("status", self._presence("online", "epoch_changed"))

    def mode(self, mode: str) -> None:
        """Mark our presence (`maintenance`) as long as `mode` is not empty."""
        self._mode = mode
        if self._kept["status"].payload is not None:
            self._stand("status", self._presence("online", mode or "in_service"))

    def sample(self, role: str, take: Callable[[], Mapping[str, Any]], for_s: float, every_ms: int) -> bool:
        """Send `diag/<role>` for a limited time, in place of an earlier request; False while the task does not run."""
        if self._group is None:
            return False
        if running := self._samples.pop(role, None):
            running.cancel()
        work = self._sampling(role, take, for_s, every_ms / 1000)
        self._samples[role] = self._group.create_task(work, name=f"diag:{role}")
        return True

    def health(self) -> dict[str, wire.Gauge]:
        """Gauges for `health.mqtt`."""
        refused = ", ".join(sorted(self._refused)) or None
        return {**self._link.health(), **self.counters, "refused_topics": refused}

    async def run(self) -> None:
        """Be on the floor until `stop`."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            workers = [
                group.create_task(self._keep(), name="floor:retained"),
                group.create_task(self._tell_health(), name="floor:health"),
                group.create_task(self._command_path.run(), name="floor:probe"),
            ]
            try:
                await self._link.run()
            finally:
                self._group = None
                for task in (*workers, *self._samples.values(), *self._obeying):
                    task.cancel()

    async def stop(self, reason: str = "stopped") -> None:
        """Say `offline` and leave; bounded, also with no broker (field case 34)."""
        self._stopping = True
        with contextlib.suppress(Disconnected):
            payload = self._presence("offline", reason)
            await self._link.publish(f"{self._base}/status", payload, retain=True, ack_within_s=STOP_S)
        await self._link.close(STOP_S)

    # --- what stands ---

    def _presence(self, state: Literal["online", "offline"], reason: str) -> bytes:
        """Birth, will and goodbye: one shape (field case 35)."""
        return wire.encode(
            wire.Presence(state=state, boot=self._boot, epoch=self._epoch, version=self._version, reason=reason)
        )

    def _stand(self, suffix: str, payload: bytes) -> None:
        kept = self._kept[suffix]
        kept.payload, kept.due = payload, True
        self._changed.set()
        if suffix != "status":
            self._also(suffix, payload)

    async def _keep(self) -> None:
        """Bring every retained topic to its newest value, forever."""
        while True:
            self._beat()
            self._changed.clear()
            if self._link.up and not self._stopping:
                with contextlib.suppress(Disconnected):
                    if self._greeting:
                        await self._greet()
                    for suffix, kept in self._kept.items():
                        await self._renew(suffix, kept)
                    self._said_all()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._changed.wait()

    def _said_all(self) -> None:
        if self._link.up and not self._greeting:  # not when a new connection came meanwhile
            self._ready.set()

    async def _greet(self) -> None:
        """After each CONNACK: presence first, then learn what the broker knows, then all the rest is due again.

        The kept messages of our subscriptions are sent before the acknowledgement of anything later.
        """
        self._greeting = False
        status = self._kept["status"]
        status.payload = self._presence("online", self._mode or ("reconnected" if self._births else "started"))
        status.due, status.not_before = True, 0.0
        await self._renew("status", status)
        self._births += 1
        self._compare_last()
        for suffix, kept in self._kept.items():
            kept.due, kept.not_before = kept.due or suffix != "status", 0.0

    def _compare_last(self) -> None:
        ours, known = self._kept["result/last"], self._signed(self._known)
        if known is None or known["epoch"] != self._epoch:
            return
        mine = json.loads(ours.payload) if ours.payload is not None else None
        if mine is None or mine["epoch"] != self._epoch or mine["seq"] < known["seq"]:
            ours.payload = None  # never put an older one in its place
            self._older(f"{known['epoch']}/{known['seq']}")

    def _signed(self, payload: bytes | None) -> Mapping[str, Any] | None:
        """A result of ours; None for whatever else somebody may have left in its place."""
        if payload is None or first_fault([payload], self._public_key):
            return None
        body: Mapping[str, Any] = json.loads(payload)
        return body

    async def _renew(self, suffix: str, kept: _Kept) -> None:
        now = asyncio.get_running_loop().time()
        if not kept.due or kept.payload is None or now < kept.not_before:
            return
        kept.due = False
        try:
            acked = await self.publish(suffix, kept.payload, retain=True)
        except Disconnected:
            kept.due = True
            raise
        if not acked.ok:
            kept.due, kept.not_before = True, now + REFUSED_S

    async def _tell_health(self) -> None:
        while True:
            self._stand("health", wire.encode(self._health()))
            await asyncio.sleep(HEALTH_S)

    # --- what the link calls: only notes are taken ---

    def _on_up(self, _session_present: bool) -> None:
        self._greeting, self._known = True, None
        self._command_path.up()
        self._changed.set()

    def _on_down(self, _why: str) -> None:
        self._ready.clear()
        self._command_path.down()

    def _received(self, message: Delivered) -> None:
        suffix = message.topic.removeprefix(f"{self._base}/")
        if suffix == "status":
            self._presence_seen(message)
        elif suffix == "result/last":
            if message.retain:
                self._known = message.payload
        elif suffix.startswith("cmd/"):
            self._command_seen(suffix.removeprefix("cmd/"), message)

    def _presence_seen(self, message: Delivered) -> None:
        """Correct an `offline` that is not true (field case 33); a second controller of this table is an alarm."""
        if self._stopping or self._greeting or not self._link.up or message.retain:
            return
        try:
            said = msgspec.json.decode(message.payload, type=wire.Presence)
        except msgspec.DecodeError:
            said = None
        if said is not None and said.state == "online":
            if said.boot != self._boot:
                self._alarm("mqtt:double", "mqtt_double", text("mqtt_double", boot=said.boot))
            return
        self.counters["presence_corrected"] += 1
        self._kept["status"].due = True
        self._changed.set()

    def _command_seen(self, name: str, message: Delivered) -> None:
        if name == PROBE:
            self._command_path.heard(message.payload)
        elif self._group is None or len(self._obeying) >= OBEYING_MAX:
            self.counters["commands_dropped"] += 1
        else:
            task = self._group.create_task(self._obey(name, message), name=f"cmd:{name}")
            self._obeying.add(task)
            task.add_done_callback(self._obeying.discard)

    # --- commands ---

    async def _obey(self, name: str, message: Delivered) -> None:
        reply = wire.encode(await self._handle(message.payload, name, message.retain))
        try:
            async with asyncio.timeout(REPLY_WITHIN_S):
                while not await self._answered(name, message, reply):
                    pass
        except TimeoutError:
            self.counters["replies_lost"] += 1

    async def _answered(self, name: str, message: Delivered, reply: bytes) -> bool:
        """Answer where asked to, else on `reply/<name>`; False when the link went meanwhile."""
        await self._ready.wait()
        try:
            if message.response_topic and self._may_answer(message.response_topic):
                acked = await self._link.publish(message.response_topic, reply, correlation=message.correlation)
                if acked.ok:
                    return True
                log.warning("the broker refuses a reply on %s: %s (%d)", message.response_topic, acked.name, acked.code)
            await self.publish(f"reply/{name}", reply, correlation=message.correlation)
        except Disconnected:
            return False
        return True

    def _may_answer(self, topic: str) -> bool:
        """A response topic must not make us speak as a table: in the casino's tree only our own replies."""
        root = self._base.partition("/")[0]
        return (
            not topic.startswith("$")
            and not set(topic) & set("#+\0")
            and (not topic.startswith(f"{root}/") or topic.startswith(f"{self._base}/reply/"))
        )

    # --- live samples ---

    async def _sampling(self, role: str, take: Callable[[], Mapping[str, Any]], for_s: float, every_s: float) -> None:
        end_ns = self._clock.mono_ns() + int(for_s * 1e9)
        while (now_ns := self._clock.mono_ns()) < end_ns:
            sample = wire.Sample(
                at=self._clock.utc(now_ns),
                at_ns=now_ns,
                clock_synchronised=self._clock.synchronised(),
                role=role,
                sample=dict(take()),
            )
            payload = wire.encode(sample)
            self._also(f"diag/{role}", payload)
            with contextlib.suppress(Disconnected):
                await self.publish(f"diag/{role}", payload)
            await asyncio.sleep(every_s)
