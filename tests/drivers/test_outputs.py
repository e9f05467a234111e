"""Lamps in gpiozero's words over the outputs of our own chips."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from gpiozero import LED, Device
from gpiozero.exc import PinInvalidPin, PinSetInput

from drivers.base import Emit
from drivers.outputs import Lamps
from drivers.pins import LineFactory, LinePin
from drivers.ports.chip import LineChip
from drivers.ports.lines import OutputSpec
from rules.facts import Fact


class _Emit:
    async def __call__(self, facts: list[Fact]) -> None:
        raise AssertionError(facts)


def chip() -> LineChip:
    emit: Emit = _Emit()
    return LineChip("/run/none", {}, {"sens": OutputSpec(6), "buzzer": OutputSpec(13)}, emit)


def test_lamps_switch_the_outputs_of_their_chip() -> None:
    lines = chip()
    threads = threading.active_count()
    lamps = Lamps({"sens": lines, "buzzer": lines})
    assert lamps.set("sens", True)
    assert lamps.set("buzzer", True)
    assert lamps.set("buzzer", False)
    assert not lamps.set("horn", True)
    assert lamps.state() == {"sens": True, "buzzer": False}
    assert lines.output("sens")
    lamps.close()
    assert not lines.output("sens")
    assert threading.active_count() == threads


def test_case_58_gpiozero_never_looks_for_a_pin_library_of_its_own() -> None:
    lamps = Lamps({"sens": chip()})
    assert Device.pin_factory is None
    lamps.close()


def test_a_pin_is_an_output_of_the_config_and_nothing_else() -> None:
    factory = LineFactory({"sens": chip()})
    with pytest.raises(PinInvalidPin, match="there are: sens"):
        LED("horn", pin_factory=factory)
    pin = factory.pin("sens")
    assert isinstance(pin, LinePin)
    assert pin.function == "output"
    pin.function = "output"
    with pytest.raises(PinSetInput):
        pin.function = "input"
    assert factory.ticks_diff(factory.ticks(), 0.0) > 0


def test_a_table_without_lamps_does_not_load_gpiozero() -> None:
    code = "import sys; from drivers.outputs import Lamps; Lamps({}).close(); sys.exit('gpiozero' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_no_other_pin_library_is_loaded_with_lamps() -> None:
    lines = chip()
    lamps = Lamps({"sens": lines})
    lamps.close()
    assert not {"lgpio", "RPi.GPIO", "pigpio", "gpiozero.pins.lgpio", "gpiozero.pins.native"} & set(sys.modules)
