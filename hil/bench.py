"""The apparatus on the bench: turns plays into edges, and into cues for the simulated sensor, by the physics.

Nothing here waits: a play is worked out as a whole, with the times it will have. Who plays it, in virtual time into a
trace or in real time into a daemon, is not this module's business.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hil.devices.buttons import contact
from hil.devices.encoder import LEVELS, SECOND, Encoder, cut_cable
from hil.devices.lines import Pulse
from hil.physics.motion import TURN, Motion, drawn_spin, move_by_hand
from hil.physics.roulette import Rotor, throw_ball
from hil.physics.wheel import FortuneWheel, Launch, Spin
from hil.scenario import Action, Play, ScenarioError, touches

MS = 1_000_000
NO_MORE_BETS_S = 1.43
"""The in-wheel sensor calls no more bets when a lap of the ball takes this long (maker's default, 2920/2048 s)."""
READY_AFTER_S = 2.0
"""The sensor shows the number this long before it waits for the next ball."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Something the in-wheel sensor sees.

    The `rotor`, a `ball` in the track, a `slow` one, its `number`, and that it is `ready` for the next ball, also when
    this one was `lifted`.
    """

    at_ns: int
    what: str
    number: int | str | None = None
    """With `ready`: the number was never shown."""
    flags: int = 0
    rpm: float = 0.0
    rotor: str = "cw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """An action at its time."""

    at_ns: int
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One play worked out: everything with CLOCK_MONOTONIC times."""

    pulses: list[Pulse]
    cues: list[Cue]
    deeds: list[Deed]
    moments: Mapping[str, int]
    ends_ns: int


@dataclass(slots=True)
class _Drawn:
    """A play under construction; seconds from its start."""

    motion: Motion
    moments: dict[str, float]
    cues: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    number: int | str | None = None
    """Where the ball lies in truth."""

    def seen_by_people(self, action: Action) -> Action:
        """`result = "seen"`: the croupier types where the ball lies."""
        return replace(action, value=self.number) if (action.verb, action.value) == ("result", "seen") else action


class Bench:
    """One table's apparatus: keeps angles, speeds and unplugged cables from play to play."""

    def __init__(self, table: Mapping[str, Any], *, seed: int = 0, noise: str = "L0", start_ns: int = 0) -> None:
        self.rng = Random(f"bench {seed}")
        wheels = [role for role, device in table["devices"].items() if device["family"] == "encoder"]
        if len(wheels) != 1:
            raise ScenarioError(f"the bench knows tables with one wheel encoder, this one has: {wheels or 'none'}")
        self.role = wheels[0]
        device = table["devices"][self.role]
        self.rises = str(device.get("direction", "cw"))
        self.counts = int(device["counts_per_turn"])
        self.pockets: tuple[int | str, ...] = tuple(table.get("options", {}).get("cylindre", ()))
        """Numbers of a cylinder, in their order."""
        self.encoder = Encoder(self.role, counts_per_turn=self.counts, faults=LEVELS[noise], seed=seed)
        half_count = TURN / self.counts / 2
        if device.get("pegs", True):
            self.wheel: FortuneWheel | Rotor = FortuneWheel(seed=seed, angle=half_count)
        else:
            self.wheel = Rotor(angle=half_count)
        self.moved_ns = start_ns
        """The encoder's edges are worked out up to here."""
        self._kinds = {
            "spin": self._spin,
            "drawn": self._exactly,
            "hand": self._by_hand,
            "throw": self._throw,
            "": self._nothing,
        }
        self._known = {"press": list(table.get("buttons", {})), "plug": list(table["devices"])}
        self._known["unplug"] = self._known["plug"]
        """What there is to press, plug and unplug."""
        self.unplugged = False
        self.spun: Spin | None = None
        """The truth of the last spin."""

    def sense(self, direction: str) -> int:
        """+1 when this direction raises the encoder's angle."""
        return 1 if direction == self.rises else -1

    @property
    def direction(self) -> str:
        """Sense in which the rotor turns now (its last one when it rests)."""
        speed = self.wheel.speed if isinstance(self.wheel, Rotor) else 0.0
        other = "ccw" if self.rises == "cw" else "cw"
        return self.rises if speed >= 0 else other

    @property
    def rpm(self) -> float:
        """Speed of the rotor in turns a minute."""
        return abs(self.wheel.speed) * 60 / TURN if isinstance(self.wheel, Rotor) else 0.0

    def coast(self, until_ns: int) -> list[Pulse]:
        """Nobody does anything until then; a cylinder runs on."""
        if until_ns <= self.moved_ns or not isinstance(self.wheel, Rotor):
            self.moved_ns = max(self.moved_ns, until_ns)
            return []
        motion = Motion()
        motion.add(0.0, self.wheel.angle)
        self.wheel.coast(motion, 0.0, (until_ns - self.moved_ns) / SECOND)
        pulses = self.encoder.play(motion, self.moved_ns)
        self.moved_ns = until_ns
        return [] if self.unplugged else pulses

    def play(self, play: Play, start_ns: int) -> Script:
        """Work out one play that begins at `start_ns`; whatever turns has turned on until then."""
        for verb, value in ((action.verb, action.value) for action in play.actions):
            if value not in self._known.get(verb, [value]):
                raise ScenarioError(f"{verb} {value!r}: this table has {', '.join(self._known[verb])}")
        pulses = self.coast(start_ns)
        levels = self.encoder.levels_at(self.wheel.angle)
        drawn = self._kinds[play.kind](play.how)
        deeds = sorted(
            (
                Deed(at_ns=start_ns + round(drawn.moments[a.at] * SECOND) + a.ms * MS, action=a)
                for a in map(drawn.seen_by_people, play.actions)
                if a.at in drawn.moments
            ),
            key=lambda deed: deed.at_ns,
        )
        if missing := sorted({a.at for a in play.actions} - set(drawn.moments)):
            raise ScenarioError(f"these moments did not come in this play: {', '.join(missing)}")
        last_s = max([*drawn.moments.values(), *((deed.at_ns - start_ns) / SECOND for deed in deeds)])
        ends_s = last_s + play.pause_ms / 1000
        if isinstance(self.wheel, Rotor) and drawn.motion.ends < ends_s:
            self.wheel.coast(drawn.motion, drawn.motion.ends, ends_s)
        moved = self.encoder.play(drawn.motion, start_ns)
        self.moved_ns = ends_ns = start_ns + round(ends_s * SECOND)
        pulses += self._through_the_cable(moved, levels, deeds)
        for deed in deeds:
            if deed.action.verb == "press":
                pulses += contact(f"button.{deed.action.value}", deed.at_ns, self.rng)
        pulses.sort(key=lambda pulse: pulse.at_ns)
        return Script(
            pulses=pulses,
            cues=[Cue(at_ns=start_ns + round(s * SECOND), **seen) for s, seen in drawn.cues],
            deeds=deeds,
            moments={name: start_ns + round(s * SECOND) for name, s in drawn.moments.items()},
            ends_ns=ends_ns,
        )

    def _through_the_cable(self, pulses: list[Pulse], levels: Mapping[str, int], deeds: Iterable[Deed]) -> list[Pulse]:
        """What of the encoder's pulses reaches the chip, with the cable pulled and plugged as the deeds say."""
        parted = self.unplugged
        out_ns: int | None = -1 if parted else None
        back_ns: int | None = None
        for deed in deeds:
            if deed.action.value == self.role and deed.action.verb == "unplug":
                out_ns, back_ns = deed.at_ns, None
            elif deed.action.value == self.role and deed.action.verb == "plug":
                back_ns = deed.at_ns
        if out_ns is None:
            return pulses
        self.unplugged = back_ns is None
        return cut_cable(pulses, levels, out_ns, back_ns, self.rng, parted=parted)

    def _nothing(self, how: Mapping[str, Any]) -> _Drawn:
        del how
        motion = Motion()
        motion.add(0.0, self.wheel.angle)
        return _Drawn(motion, {"start": 0.0})

    def _by_hand(self, how: Mapping[str, Any]) -> _Drawn:
        travel = self.sense(how["direction"]) * how["counts"] * TURN / self.counts
        motion = Motion()
        motion.add(0.0, self.wheel.angle)
        move_by_hand(motion, self.wheel.angle, travel, how["ms"] / 1000)
        self.wheel.place(motion.angles[-1])
        return _Drawn(motion, {"start": 0.0, "released": motion.ends})

    def _spin(self, how: Mapping[str, Any]) -> _Drawn:
        if not isinstance(self.wheel, FortuneWheel):
            raise ScenarioError("spin is for the vertical wheel; this table has a cylinder: throw")
        launch = Launch(
            sense=self.sense(how["direction"]),
            speed=float(how["speed"]),
            push_s=how.get("push_ms", 700) / 1000,
            wind_up=float(how.get("wind_up", 0.0)),
            first_share=float(how.get("first_share", 1.0)),
            touches=touches(how),
        )
        spin = self.spun = self.wheel.spin(launch, self.rng)
        moments = {"start": 0.0, "pushed": spin.forward_s, "released": spin.released_s, "rest": spin.rest_s}
        if spin.touched_s is not None:
            moments["touched"] = spin.touched_s
        return _Drawn(spin.motion, moments)

    def _exactly(self, how: Mapping[str, Any]) -> _Drawn:
        if not isinstance(self.wheel, FortuneWheel):
            raise ScenarioError("drawn is for the vertical wheel; this table has a cylinder: throw")
        push_s = how.get("push_ms", 700) / 1000
        travel = self.sense(how["direction"]) * how["counts"] * TURN / self.counts
        motion = drawn_spin(self.wheel.angle, travel, push_s)
        self.wheel.place(motion.angles[-1])
        return _Drawn(motion, {"start": 0.0, "pushed": 0.0, "released": push_s, "rest": motion.ends})

    def _throw(self, how: Mapping[str, Any]) -> _Drawn:
        if not isinstance(self.wheel, Rotor):
            raise ScenarioError("throw is for a cylinder; this table has a vertical wheel: spin")
        motion = Motion()
        motion.add(0.0, self.wheel.angle)
        moments = {"start": 0.0}
        released = 0.3
        if rotor := how.get("rotor"):
            self.wheel.coast(motion, 0.0, released)
            released = self.wheel.actuate(
                motion, released, self.sense(rotor["direction"]), float(rotor.get("speed", 2.2))
            )
        moments["released"] = released
        drawn = _Drawn(motion, moments)
        drawn.cues.append((released, {"what": "rotor", "rpm": self.rpm, "rotor": self.direction}))
        ball = how.get("ball", {})
        with_rotor = bool(ball.get("with_rotor"))
        turning = 1 if self.wheel.speed >= 0 else -1
        throw = throw_ball(float(ball.get("speed", 5.5)), turning if with_rotor else -turning, self.rng)
        thrown = moments["thrown"] = released + 0.8
        ends = how["picked_up_ms"] / 1000 if "picked_up_ms" in how else math.inf
        truth = {
            "seen": throw.first_lap_s,
            "drop_due": throw.lap_slower_than(NO_MORE_BETS_S),
            "dropped": throw.dropped_s,
            "settled": throw.settled_s,
            "read": throw.settled_s + TURN / max(0.5, abs(self.wheel.speed)),
        }
        moments |= {name: thrown + time for name, time in truth.items() if time < ends}
        number = how.get("number", self.rng.choice(self.pockets))
        if number not in self.pockets:
            raise ScenarioError(f"throw.number {number!r}: this cylinder has no such pocket")
        drawn.number = number
        drawn.cues += self._as_sensed(how, moments, number, with_rotor=with_rotor)
        if ends < math.inf:
            drawn.cues.append((thrown + ends, {"what": "lifted"}))
        return drawn

    @staticmethod
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
