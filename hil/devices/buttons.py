"""A contact on a line, closed and opened by a hand: it bounces (drivers/buttons/PROTOCOL.md)."""

from __future__ import annotations

from random import Random

from hil.devices.lines import Pulse


def contact(line: str, at_ns: int, rng: Random, *, held_ms: int = 180, closed: int = 1) -> list[Pulse]:
    """A push button pressed and let go: both times the contact bounces for some milliseconds."""
    pulses: list[Pulse] = []
    for start_ns, level in ((at_ns, closed), (at_ns + held_ms * 1_000_000, 1 - closed)):
        time = start_ns
        pulses.append(Pulse(time, line, level))
        for _ in range(rng.randint(0, 3)):
            for bounced in (1 - level, level):
                time += rng.randint(60_000, 700_000)
                pulses.append(Pulse(time, line, bounced))
    return pulses
