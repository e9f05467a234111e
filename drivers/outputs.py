"""Lamps and buzzers in gpiozero's words over our own lines (`drivers.pins`).

A pin only switches an output of a `LineChip`: a lamp acts at once where the chip is open, and as soon as it is back
where it is not. gpiozero starts no thread for that, and none is wanted: it must not blink or play by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drivers.ports.chip import LineChip


class Lamps:
    """The lamps and buzzers of a table, by their names in the config."""

    def __init__(self, chips: Mapping[str, LineChip]) -> None:
        """`chips`: the chip of each lamp, by the lamp's name."""
        self._lamps: dict[str, Any] = {}
        if not chips:
            return
        from gpiozero import LED, Buzzer  # noqa: PLC0415 - see drivers.pins: costly, and of no use without lamps

        from drivers.pins import LineFactory  # noqa: PLC0415

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
