"""The table's devices and lamps as one value: made from the configuration, run as tasks, asked and told by role."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from msgspec import UNSET

from controller import wire
from controller.clock import Clock
from controller.config import Config
from controller.flight import Flight
from controller.timers import unread
from drivers.base import Edge, Emit
from drivers.outputs import Lamps
from drivers.ports.chip import EdgeDevice, LineChip
from drivers.ports.lines import OutputSpec
from drivers.ports.serial import PortError, SerialDevice
from drivers.ports.udev import Hotplug
from rules.facts import Fact

CONSOLE = "console"
"""The family that can show a sentence to the croupier."""

READS_KEPT = 8
"""Last reads of a serial device that a sample shows in hex."""
RATE_NS = 100_000_000
"""Edges a second are counted over at least so long."""

Gauges = dict[str, int | str | None]


class Scan:
    """A `Tap` that passes everything on. It notes which devices were looked for, what waited, and input for samples."""

    def __init__(self, roles: set[str], tap: Flight, unread_ns: Callable[[int], int]) -> None:
        self._missing = set(roles)
        self._tap = tap
        self._unread_ns = unread_ns
        self.unread_ns = 0
        """How long the bytes that a decoder is being fed may have waited (`LagMeter.unread_ns`)."""
        self._edges: dict[str, int] = {}
        self._rates: dict[str, tuple[int, int, int | None]] = {}
        """When they were counted last, how many there were, and edges a second until then."""
        self._reads: dict[str, deque[bytes]] = {}
        self.done = asyncio.Event()
        if not roles:
            self.done.set()

    def edges(self, role: str, edges: Sequence[Edge]) -> None:
        """Pass on."""
        self._edges[role] = self._edges.get(role, 0) + len(edges)
        self._tap.edges(role, edges)

    def received(self, role: str, data: bytes, at_ns: int) -> None:
        """Pass on."""
        self.unread_ns = self._unread_ns(at_ns)
        self._reads.setdefault(role, deque(maxlen=READS_KEPT)).append(data)
        self._tap.received(role, data, at_ns, self.unread_ns)

    def ticked(self, role: str, now_ns: int) -> None:
        """Pass on."""
        self.unread_ns = 0
        self._tap.ticked(role, now_ns)

    def opened(self, role: str, at_ns: int) -> None:
        """Looked for, and there."""
        self.unread_ns = 0
        self._tap.opened(role, at_ns)
        self._seen(role)

    def lost(self, role: str, at_ns: int, why: str) -> None:
        """Looked for, and not there."""
        self.unread_ns = 0
        self._tap.lost(role, at_ns, why)
        self._seen(role)

    def reads(self, role: str) -> list[str]:
        """What a serial device said last, in hex."""
        return [data.hex(" ") for data in self._reads.get(role, ())]

    def edges_s(self, role: str, now_ns: int) -> int | None:
        """Edges a second of a device of lines since somebody asked before; None for the first who asks."""
        count = self._edges.get(role, 0)
        at_ns, before, rate = self._rates.setdefault(role, (now_ns, count, None))
        if now_ns - at_ns >= RATE_NS:
            rate = (count - before) * 1_000_000_000 // (now_ns - at_ns)
            self._rates[role] = (now_ns, count, rate)
        return rate

    def _seen(self, role: str) -> None:
        self._missing.discard(role)
        if not self._missing:
            self.done.set()


class Instruments:
    """Every enabled device, chip and lamp of a table."""

    def __init__(self, config: Config, emit: Emit, tap: Flight, clock: Clock, unread_ns: Callable[[int], int]) -> None:
        """`unread_ns` says how long bytes that are read at this instant may have waited."""
        self._config = config
        self._emit = emit
        self._clock = clock
        enabled = {role: device for role, device in config.devices.items() if device.enabled}
        self.disabled = sorted(set(config.devices) - set(enabled))
        self.scan = Scan(set(enabled), tap, unread_ns)
        self.decoders: dict[str, Any] = {role: d.family.decoder(role, d.options) for role, d in enabled.items()}
        self._chips = {
            name: LineChip(
                chip.path,
                {
                    role: EdgeDevice(decoder=self.decoders[role], lines=device.lines)
                    for role, device in enabled.items()
                    if device.chip == name
                },
                {lamp: OutputSpec(o.line, o.active_low) for lamp, o in config.lamps.items() if o.chip == name},
                emit,
                self.scan,
            )
            for name, chip in config.chips.items()
        }
        self._hotplug = Hotplug() if any(device.match for device in enabled.values()) else None
        self._serials = {
            role: SerialDevice(
                role,
                self.decoders[role],
                self._read,
                baud=device.baud,
                path=device.path,
                match=device.match,
                hotplug=self._hotplug,
                tap=self.scan,
            )
            for role, device in enabled.items()
            if device.family.kind == "bytes"
        }
        self._consoles = [serial for role, serial in self._serials.items() if enabled[role].family.name == CONSOLE]
        self.lamps = Lamps({lamp: self._chips[output.chip] for lamp, output in config.lamps.items()})
        self._zero: dict[str, Gauges] = {}
        """Counters as they were at the last `reset_counters`."""

    async def _read(self, facts: list[Fact]) -> None:
        """Facts of a byte device: the kernel stamps edges, bytes are stamped only when they are read."""
        await self._emit(unread(facts, self.scan.unread_ns))

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What must run, by task name."""
        tasks: dict[str, Callable[[], Awaitable[None]]] = {f"lines:{name}": c.run for name, c in self._chips.items()}
        if self._hotplug is not None:
            tasks["udev"] = self._hotplug.run
        return tasks | {f"serial:{role}": serial.run for role, serial in self._serials.items()}

    def roles_of(self, task: str) -> list[str]:
        """The devices that a task of `tasks` serves."""
        kind, _, name = task.partition(":")
        if kind == "serial":
            return [name]
        return [role for role in self.decoders if self._config.devices[role].chip == name] if kind == "lines" else []

    def task_of(self, role: str) -> str:
        """The task of `tasks` that serves a device."""
        return f"serial:{role}" if role in self._serials else f"lines:{self._config.devices[role].chip}"

    def snapshots(self) -> dict[str, Any]:
        """Every decoder frozen, by role."""
        return {role: decoder.snapshot() for role, decoder in self.decoders.items()}

    def learned(self) -> dict[str, str]:
        """What decoders have learned of their wheels, by role: text, for the state of a journal knows no floats."""
        known = {role: snapshot["learned"] for role, snapshot in self.snapshots().items() if "learned" in snapshot}
        return {role: json.dumps({"options": self._options(role), "learned": law}) for role, law in known.items()}

    def remember(self, learned: Mapping[str, str]) -> None:
        """Take back what was `learned`; a device that was set up otherwise meanwhile begins anew."""
        for role, text in learned.items():
            body = json.loads(text)
            if role in self.decoders and body["options"] == self._options(role):
                self.decoders[role].restore({"learned": body["learned"]})

    def _options(self, role: str) -> dict[str, Any]:
        return asdict(self._config.devices[role].options)

    def show(self, sentence: str) -> None:
        """Put a sentence on every console that is there."""
        for console in self._consoles:
            with contextlib.suppress(PortError, ValueError):
                console.command("show", {"text": sentence})

    # health and diagnosis

    def health(self) -> dict[str, wire.Device]:
        """Every device of the configuration, the disabled ones too."""
        said = {role: self._device(role) for role in self.decoders}
        said |= {role: wire.Device(state="disabled", last_fact_ms=None) for role in self.disabled}
        return {role: said[role] for role in self._config.devices}

    def _device(self, role: str) -> wire.Device:
        gauges = self._gauges(role)
        lost, port = gauges.pop("lost", None), self._port(role)
        last_ns = gauges.pop("last_fact_ns", None)
        advice = gauges.pop("advice", None)
        text = "; ".join(str(part) for part in (lost, port, advice) if part)
        return wire.Device(
            state="lost" if lost or port else "stale" if advice or gauges.get("link") == "bad" else "ok",
            last_fact_ms=max(0, self._clock.mono_ns() - last_ns) // 1_000_000 if isinstance(last_ns, int) else None,
            text=text or UNSET,
            counters={name: self._counted(role, name, value) for name, value in gauges.items()},
        )

    def _port(self, role: str) -> str:
        """What keeps the device's port from us; empty when nothing does."""
        if role in self._serials:
            return str(self._serials[role].health()["problem"] or "")
        return self._chips[self._config.devices[role].chip].why

    def _gauges(self, role: str) -> Gauges:
        if role not in self._serials:
            chip = self._chips[self._config.devices[role].chip]
            return {**self.decoders[role].health(), "reopens": max(chip.counts["opens"] - 1, 0)}
        return {name: value for name, value in self._serials[role].health().items() if name != "problem"}

    def _counted(self, role: str, name: str, value: int | str | None) -> int | str | None:
        zero = self._zero.get(role, {}).get(name, 0)
        return value - zero if isinstance(value, int) and isinstance(zero, int) else value

    def reset_counters(self, roles: Sequence[str]) -> None:
        """Let the counters of these devices begin at zero again."""
        for role in roles:
            self._zero[role] = self._gauges(role)

    def queues(self) -> dict[str, dict[str, wire.Gauge]]:
        """Gauges of the ports that several devices share."""
        said: dict[str, dict[str, wire.Gauge]] = {f"lines:{n}": {**chip.health()} for n, chip in self._chips.items()}
        return said | ({"udev": {**self._hotplug.health()}} if self._hotplug is not None else {})

    def sample(self, role: str) -> dict[str, Any]:
        """A live sample."""
        sample: dict[str, Any] = self.decoders[role].sample()
        if role in self._serials:
            return sample | {"hex": self.scan.reads(role)}
        return sample | {"edges_s": self.scan.edges_s(role, self._clock.mono_ns())}

    def command(self, role: str, name: str, args: Mapping[str, object]) -> str:
        """A technician's command for the device; raises ValueError when it has none of this name, or is not there."""
        if role not in self._serials:
            raise ValueError(f"{role} is a device of lines: it takes no commands")
        try:
            return self._serials[role].command(name, args)
        except PortError as error:
            raise ValueError(str(error)) from error
