"""What every apparatus of a table is to the bench: plays that are worked out as a whole, and sensors that saw them.

An apparatus keeps angles, speeds and balls from play to play. Its times are seconds from the start of a play; the bench
puts them on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hil.devices.encoder import LEVELS, SECOND, Encoder
from hil.devices.lines import Pulse
from hil.physics.basin import Visit
from hil.physics.motion import TURN, Motion
from hil.scenario import ScenarioError

Levels = dict[str, int]
"""Levels of lines by their roles."""
COUNTS = 2400
"""Counts a turn where a scenario counts and no encoder does."""


@dataclass(slots=True)
class Drawn:
    """A play worked out; seconds from its start."""

    moments: dict[str, float]
    motion: Motion = field(default_factory=Motion)
    """Angle of what turns."""
    visits: list[Visit] = field(default_factory=list)
    """Where a ball is over a cell."""
    ends_s: float = 0.0
    """The end of the play, once that is known (`run_on`)."""
    cues: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    """What a sensor on a serial line sees (`hil.bench.Cue`)."""
    number: int | str | None = None
    """Where the ball lies in truth, as the croupier types it: a number, or `"7 12"`, number and cell."""


class Apparatus:
    """The common part: at most one encoder, on what turns; a subclass adds its physics and its other sensors."""

    what = "apparatus that does nothing"
    """For messages: `throw is not for the vertical wheel`."""

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        devices = {role: device for role, device in table["devices"].items() if device["family"] == "encoder"}
        if len(devices) > 1:
            raise ScenarioError(f"the bench knows tables with one encoder, this one has: {', '.join(devices)}")
        self.rng = rng
        self.encoder: Encoder | None = None
        self.rises, self.counts = "cw", COUNTS
        for role, device in devices.items():
            self.rises, self.counts = str(device.get("direction", "cw")), int(device["counts_per_turn"])
            self.encoder = Encoder(role, counts_per_turn=self.counts, faults=LEVELS[noise], seed=seed)
        self.kinds: dict[str, Callable[[Mapping[str, Any]], Drawn]] = {"": self.nothing}
        """What may be played on it, by the kinds of `scenario.MOMENTS`."""

    @property
    def angle(self) -> float:
        """Of what turns, now."""
        return 0.0

    def play(self, kind: str, how: Mapping[str, Any]) -> Drawn:
        """Work out one play; raises ScenarioError when nobody can do that here."""
        if kind not in self.kinds:
            able = ", ".join(name for name in self.kinds if name)
            raise ScenarioError(f"{kind} is not for this table's {self.what}: {able or 'nothing'}")
        return self.kinds[kind](how)

    def nothing(self, how: Mapping[str, Any]) -> Drawn:
        """Nobody touches it."""
        del how
        return Drawn({"start": 0.0}, motion=self.at_rest())

    def run_on(self, drawn: Drawn, until_s: float) -> None:
        """Whatever still moves moves on until then, the end of the play."""
        drawn.ends_s = until_s

    def coast(self, start_ns: int, until_ns: int) -> dict[str, list[Pulse]]:
        """Nobody does anything for so long: what the sensors see meanwhile, by role."""
        del start_ns, until_ns
        return {}

    def levels(self) -> dict[str, Levels]:
        """How the lines of each sensor stand now, by its role."""
        return {self.encoder.role: self.encoder.levels_at(self.angle)} if self.encoder else {}

    def sensed(self, drawn: Drawn, start_ns: int) -> dict[str, list[Pulse]]:
        """What each sensor on lines saw of a play, by its role."""
        return {self.encoder.role: self.encoder.play(drawn.motion, start_ns)} if self.encoder else {}

    # for those that turn

    def at_rest(self) -> Motion:
        """A motion that begins where the thing stands."""
        motion = Motion()
        motion.add(0.0, self.angle)
        return motion

    def sense(self, direction: str) -> int:
        """+1 when this direction raises the encoder's angle."""
        return 1 if direction == self.rises else -1

    def radians(self, direction: str, counts: int) -> float:
        """So many counts of the encoder in this direction, as an angle."""
        return self.sense(direction) * counts * TURN / self.counts

    @property
    def half_count(self) -> float:
        """Where a new apparatus stands: between two edges."""
        return TURN / self.counts / 2


def on_the_clock(start_ns: int, seconds: float) -> int:
    """A moment of a play that began at `start_ns`."""
    return start_ns + round(seconds * SECOND)
