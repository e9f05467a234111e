"""The table's devices and lamps as one value: made from the configuration, run as tasks, asked and told by role."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from msgspec import UNSET

from controller import wire
from controller.clock import Clock
from controller.config import Config, Device
from controller.flight import Flight
from controller.intake import Intake
from drivers.base import Answer, Emit
from drivers.outputs import Lamps
from drivers.ports.chip import EdgeDevice, LineChip
from drivers.ports.lines import OutputSpec
from drivers.ports.serial import PortError, SerialDevice
from drivers.ports.udev import Hotplug

CONSOLE: Final = "console"
"""The family that can show a sentence to the croupier."""

Gauges = dict[str, int | str | None]


class Instruments:
    """Every enabled device, chip and lamp of a table."""

    def __init__(
        self, config: Config, emit: Emit, flight: Flight, clock: Clock, unread_ns: Callable[[int], int]
    ) -> None:
        """`unread_ns` says how long bytes that are read at this instant may have waited (`LagMeter.unread_ns`)."""
        self._config, self._emit, self._clock = config, emit, clock
        enabled = {role: device for role, device in config.devices.items() if device.enabled}
        self.disabled = sorted(set(config.devices) - set(enabled))
        self.intake = Intake(set(enabled), flight, unread_ns)
        self.decoders: dict[str, Any] = {role: d.family.decoder(role, d.options) for role, d in enabled.items()}
        self._learning = {
            role: json.loads(json.dumps(asdict(enabled[role].options)))
            for role, decoder in self.decoders.items()
            if "learned" in decoder.snapshot()
        }
        """Options of each device that learns: what it learns holds for them alone."""
        self._chips = {name: self._line_chip(name, chip.path, enabled) for name, chip in config.chips.items()}
        self._hotplug = Hotplug() if any(device.match for device in enabled.values()) else None
        self._serials = {
            role: SerialDevice(
                role,
                self.decoders[role],
                emit,
                baud=device.baud,
                path=device.path,
                match=device.match,
                hotplug=self._hotplug,
                tap=self.intake,
            )
            for role, device in enabled.items()
            if device.family.kind == "bytes"
        }
        self._consoles = [serial for role, serial in self._serials.items() if enabled[role].family.name == CONSOLE]
        self.lamps = Lamps({lamp: self._chips[output.chip] for lamp, output in config.lamps.items()})
        self._zero: dict[str, Gauges] = {}
        """Counters as they were at the last `reset_counters`."""

    def _line_chip(self, name: str, path: str, enabled: Mapping[str, Device]) -> LineChip:
        devices = {
            role: EdgeDevice(decoder=self.decoders[role], lines=device.lines, contacts=device.family.contacts)
            for role, device in enabled.items()
            if device.chip == name
        }
        lamps = {
            lamp: OutputSpec(output.line, output.active_low)
            for lamp, output in self._config.lamps.items()
            if output.chip == name
        }
        return LineChip(path, devices, lamps, self._emit, self.intake)

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
        known = {role: self.decoders[role].snapshot()["learned"] for role in self._learning}
        return {role: json.dumps({"options": self._learning[role], "learned": law}) for role, law in known.items()}

    def remember(self, learned: Mapping[str, str]) -> None:
        """Take back what was `learned`; a device that was set up otherwise meanwhile begins anew."""
        for role, text in learned.items():
            body = json.loads(text)
            if self._learning.get(role) == body["options"]:
                self.decoders[role].restore({"learned": body["learned"]})

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
        gauges.pop("fault", None)
        text = "; ".join(str(part) for part in (lost, port, advice) if part)
        doubtful = advice or gauges.get("link") == "bad"
        return wire.Device(
            state="lost" if lost or port else "stale" if doubtful else "ok",
            last_fact_ms=max(0, self._clock.mono_ns() - last_ns) // 1_000_000 if isinstance(last_ns, int) else None,
            text=text or UNSET,
            counters={name: self._counted(role, name, value) for name, value in gauges.items()},
        )

    def faults(self) -> dict[str, str]:
        """What a person must mend, by role; empty where a device is well or only lost."""
        return {role: str(decoder.health().get("fault") or "") for role, decoder in self.decoders.items()}

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
            return sample | {"hex": self.intake.reads(role)}
        return sample | {"edges_s": self.intake.edges_s(role, self._clock.mono_ns())}

    def asks(self, role: str) -> frozenset[str]:
        """The commands of a device that change nothing there; raises ValueError when it takes none at all."""
        return self.orders(role).intersection(self.decoders[role].asks)

    def orders(self, role: str) -> frozenset[str]:
        """All commands of a device; raises ValueError when it takes none at all."""
        if not hasattr(self.decoders[role], "orders"):
            raise ValueError(f"{role} is a device of lines: it takes no commands")
        names: frozenset[str] = self.decoders[role].orders
        return names

    def guide(self, role: str) -> str:
        """How a technician puts this device into service; empty where there is nothing to say."""
        return str(getattr(self.decoders[role], "guide", ""))

    async def ask(self, role: str, name: str, args: Mapping[str, object]) -> Answer:
        """A technician's command for a device, and its answer.

        Raises ValueError when it has none of this name, is not there, or does not answer.
        """
        if role not in self._serials:
            answer: Answer = self.decoders[role].answer(name, args)
            return answer
        try:
            return await self._serials[role].ask(name, args)
        except PortError as error:
            raise ValueError(str(error)) from error
        except TimeoutError as error:
            raise ValueError(f"{role} does not answer {name}") from error
