"""Lamps and buzzers in gpiozero's words over our own lines.

gpiozero would pick a pin library by itself and fall back from one to the next (field case 58): it gets our factory, for
every device by name, and never looks for another. A pin only switches an output of a `LineChip`; so a lamp acts at once
where the chip is open, and as soon as it is back where it is not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING

from gpiozero import LED, Buzzer
from gpiozero.exc import PinInvalidPin, PinSetInput
from gpiozero.pins import Factory, Pin

if TYPE_CHECKING:
    from drivers.device import LineChip


class LinePin(Pin):  # type: ignore[misc] # gpiozero has no types
    """One output of a chip as gpiozero sees it."""

    def __init__(self, name: str, chip: LineChip) -> None:
        super().__init__()
        self._name = name
        self._chip = chip

    def _get_info(self) -> SimpleNamespace:
        return SimpleNamespace(name=self._name)

    def _get_function(self) -> str:
        return "output"

    def _set_function(self, value: str) -> None:
        if value != "output":
            raise PinSetInput(f"{self._name} is an output of {self._chip.path}")

    def _get_state(self) -> int:
        return int(self._chip.output(self._name))

    def _set_state(self, value: float) -> None:
        self._chip.set_output(self._name, bool(value))


class LineFactory(Factory):  # type: ignore[misc] # gpiozero has no types
    """Makes pins of the outputs that the config names, and of nothing else."""

    def __init__(self, chips: Mapping[str, LineChip]) -> None:
        """`chips`: the chip of each output, by the output's name."""
        super().__init__()
        self._chips = dict(chips)

    def pin(self, name: str) -> LinePin:
        """The pin of an output; raises PinInvalidPin naming what exists."""
        if name not in self._chips:
            raise PinInvalidPin(f"no output {name!r}; there are: {', '.join(sorted(self._chips))}")
        return LinePin(name, self._chips[name])

    def reserve_pins(self, requester: object, *names: str) -> None:
        """The config has already refused overlapping lines."""

    def release_pins(self, reserver: object, *names: str) -> None:
        """Nothing was reserved."""

    def ticks(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def ticks_diff(self, later: float, earlier: float) -> float:
        """Seconds between two ticks."""
        return later - earlier


class Lamps:
    """The lamps and buzzers of a table, by their names in the config."""

    def __init__(self, chips: Mapping[str, LineChip]) -> None:
        """`chips`: the chip of each lamp, by the lamp's name."""
        factory = LineFactory(chips)
        self._lamps = {name: (Buzzer if name == "buzzer" else LED)(name, pin_factory=factory) for name in chips}

    def set(self, name: str, on: bool) -> bool:
        """Switch a lamp at once; False when this table has none of that name."""
        lamp = self._lamps.get(name)
        if lamp is None:
            return False
        if on:
            lamp.on()
        else:
            lamp.off()
        return True

    def state(self) -> dict[str, bool]:
        """Which lamps are on."""
        return {name: bool(lamp.value) for name, lamp in self._lamps.items()}

    def close(self) -> None:
        """Give the pins back, all dark."""
        for lamp in self._lamps.values():
            lamp.off()
            lamp.close()
