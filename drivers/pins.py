"""gpiozero's view of our outputs: a factory of ours, so that it never looks for a pin library itself (field case 58).

A module of its own because gpiozero costs 75 ms and 5.5 MiB: a table without lamps does not load it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING

from gpiozero.exc import PinInvalidPin, PinSetInput
from gpiozero.pins import Factory, Pin

if TYPE_CHECKING:
    from drivers.ports.chip import LineChip


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
