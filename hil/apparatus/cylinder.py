"""The cylinder of a roulette: it turns from coup to coup, and a ball is thrown against its sense."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

from hil.apparatus.base import Apparatus, Drawn, Levels, on_the_clock
from hil.devices import rim, rotor_head
from hil.devices.encoder import SECOND
from hil.devices.lines import Pulse
from hil.devices.rim import Rim
from hil.devices.rotor_head import RotorHead
from hil.physics.basin import Visit
from hil.physics.motion import TURN, move_by_hand
from hil.physics.roulette import Rotor, Throw, throw_ball
from hil.scenario import ScenarioError

NO_MORE_BETS_S = 1.43
"""The in-wheel sensor calls no more bets when a lap of the ball takes this long (maker's default, 2920/2048 s)."""
READY_AFTER_S = 2.0
"""The sensor shows the number this long before it waits for the next ball."""


class Cylinder(Apparatus):
    """`throw`, `hand`; an encoder and a head on the rotor, beams on the rim, an in-wheel sensor that gets cues."""

    what = "cylinder"

    def __init__(self, table: Mapping[str, Any], rng: Random, *, seed: int, noise: str) -> None:
        super().__init__(table, rng, seed=seed, noise=noise)
        self.rotor = Rotor(angle=self.half_count)
        self.pockets: tuple[int | str, ...] = tuple(table["options"]["cylindre"])
        """Numbers, clockwise from the index mark."""
        self.rim: Rim | None = None
        self.head: RotorHead | None = None
        clockwise, pockets = self.sense("cw"), len(self.pockets)
        for role, device in table["devices"].items():
            if device["family"] == "rim":
                beams = device.get("beams_deg", (0, 120))
                self.rim = Rim(role, beams, faults=rim.LEVELS[noise], seed=seed, clockwise=clockwise)
            if device["family"] == "rotor_head":
                self.head = RotorHead(role, pockets, faults=rotor_head.LEVELS[noise], seed=seed, clockwise=clockwise)
        self.lying: int | None = None
        """The cell in which the ball lies."""
        self._ball: tuple[Throw, float, float] | None = None
        """The throw of the present play, when it leaves the hand, and how long until a hand takes it back."""
        self.kinds |= {"throw": self.throw, "hand": self.by_hand}

    @property
    def angle(self) -> float:
        """Of the rotor."""
        return self.rotor.angle

    @property
    def direction(self) -> str:
        """Sense in which the rotor turns now (its last one when it rests)."""
        other = "ccw" if self.rises == "cw" else "cw"
        return self.rises if self.rotor.speed >= 0 else other

    @property
    def rpm(self) -> float:
        """Speed of the rotor in turns a minute."""
        return abs(self.rotor.speed) * 60 / TURN

    def run_on(self, drawn: Drawn, until_s: float) -> None:
        """The rotor runs on."""
        super().run_on(drawn, until_s)
        if drawn.motion.ends < until_s:
            self.rotor.coast(drawn.motion, drawn.motion.ends, until_s)

    def coast(self, start_ns: int, until_ns: int) -> dict[str, list[Pulse]]:
        """The rotor runs on."""
        drawn = self.nothing({})
        self.run_on(drawn, (until_ns - start_ns) / SECOND)
        return self.sensed(drawn, start_ns)

    def levels(self) -> dict[str, Levels]:
        """Of the encoder, the beams and the head."""
        levels = super().levels() | ({self.rim.role: self.rim.levels()} if self.rim else {})
        return levels | ({self.head.role: self.head.levels_at(self.angle, self.lying)} if self.head else {})

    def sensed(self, drawn: Drawn, start_ns: int) -> dict[str, list[Pulse]]:
        """By the encoder, the beams and the head."""
        seen = super().sensed(drawn, start_ns)
        ball, self._ball = self._ball, None
        if self.rim:
            seen[self.rim.role] = []
            if ball is not None:
                throw, thrown_s, taken_s = ball
                seen[self.rim.role] = self.rim.play(throw, on_the_clock(start_ns, thrown_s), taken_s=taken_s)
        if self.head:
            seen[self.head.role] = self.head.play(drawn.motion, start_ns, drawn.visits)
        return seen

    def nothing(self, how: Mapping[str, Any]) -> Drawn:
        """The ball stays where it lies."""
        drawn = super().nothing(how)
        drawn.visits = [] if self.lying is None else [Visit(-1.0, math.inf, self.lying)]
        return drawn

    def falls(self, drawn: Drawn, throw: Throw, cell: int, thrown_s: float, taken_s: float) -> None:
        """The ball leaves its cell to be thrown, hops from cell to cell when it has dropped, and comes to rest."""
        taken_s += thrown_s
        visits = [visit._replace(ends=thrown_s - 0.5) for visit in drawn.visits]
        time, rests = thrown_s + throw.on_rotor_s, thrown_s + throw.settled_s
        while time < rests:
            leaves = min(rests, time + self.rng.uniform(0.15, 0.5))
            visits.append(Visit(time, leaves, self.rng.randrange(len(self.pockets))))
            time = leaves
        visits.append(Visit(rests, math.inf, cell))
        drawn.visits = [visit._replace(ends=min(visit.ends, taken_s)) for visit in visits if visit.begins < taken_s]
        self.lying = cell if taken_s == math.inf else None

    def by_hand(self, how: Mapping[str, Any]) -> Drawn:
        """The rotor held all the way."""
        motion = self.at_rest()
        move_by_hand(motion, self.angle, self.radians(how["direction"], how["counts"]), how["ms"] / 1000)
        self.rotor.place(motion.angles[-1])
        return Drawn({"start": 0.0, "released": motion.ends}, motion)

    def throw(self, how: Mapping[str, Any]) -> Drawn:
        """The rotor actuated where the scenario says so, then the ball."""
        drawn = self.nothing({})
        motion, moments = drawn.motion, drawn.moments
        released = 0.3
        if rotor := how.get("rotor"):
            self.rotor.coast(motion, 0.0, released)
            released = self.rotor.actuate(
                motion, released, self.sense(rotor["direction"]), float(rotor.get("speed", 2.2))
            )
        moments["released"] = released
        drawn.cues.append((released, {"what": "rotor", "rpm": self.rpm, "rotor": self.direction}))
        ball = how.get("ball", {})
        with_rotor = bool(ball.get("with_rotor"))
        turning = 1 if self.rotor.speed >= 0 else -1
        throw = throw_ball(float(ball.get("speed", 5.5)), turning if with_rotor else -turning, self.rng)
        thrown = moments["thrown"] = released + 0.8
        ends = how["picked_up_ms"] / 1000 if "picked_up_ms" in how else math.inf
        self._ball = throw, thrown, ends
        if self.rim:
            self.rim.dead = set(how.get("sensor", {}).get("dead_beams", ()))
        truth = {
            "seen": throw.first_lap_s,
            "drop_due": throw.lap_slower_than(NO_MORE_BETS_S),
            "dropped": throw.dropped_s,
            "settled": throw.settled_s,
            "read": throw.settled_s + TURN / max(0.5, abs(self.rotor.speed)),
        }
        moments |= {name: thrown + time for name, time in truth.items() if time < ends}
        number = how.get("number", self.rng.choice(self.pockets))
        if number not in self.pockets:
            raise ScenarioError(f"throw.number {number!r}: this cylinder has no such pocket")
        drawn.number = number
        if self.head:
            self.falls(drawn, throw, self.pockets.index(number), thrown, ends)
        drawn.cues += _as_sensed(how, moments, number, with_rotor=with_rotor)
        if ends < math.inf:
            drawn.cues.append((thrown + ends, {"what": "lifted"}))
        return drawn


def _as_sensed(
    how: Mapping[str, Any], moments: Mapping[str, float], number: int | str, *, with_rotor: bool
) -> list[tuple[float, dict[str, Any]]]:
    """What the in-wheel sensor sees of a throw; `sensor = { misses = ["number"], reads = 18 }` are its errors."""
    sensor = how.get("sensor", {})
    misses, reads = sensor.get("misses", ()), sensor.get("reads", number)
    cues: list[tuple[float, dict[str, Any]]] = []
    if "seen" in moments and "ball" not in misses:
        cues.append((moments["seen"], {"what": "ball", "flags": 2 if with_rotor else 0}))
    if "drop_due" in moments and "slow" not in misses:
        cues.append((moments["drop_due"], {"what": "slow"}))
    if "read" in moments:
        missed = "number" in misses
        if not missed:
            cues.append((moments["read"], {"what": "number", "number": reads}))
        ready = {"what": "ready", "number": reads if missed else None}
        cues.append((moments["read"] + READY_AFTER_S, ready))
    return cues
