"""The apparatus on the bench: turns plays into edges, and into cues for the simulated sensor, by the physics.

Nothing here waits: a play is worked out as a whole, with the times it will have. Who plays it, in virtual time into a
trace or in real time into a daemon, is not this module's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hil.devices.encoder import LEVELS, SECOND, Encoder, contact, cut_cable
from hil.devices.lines import Pulse
from hil.physics.motion import TURN, Motion, drawn_spin
from hil.physics.roulette import Rotor, throw_ball
from hil.physics.wheel import FortuneWheel, Launch
from hil.scenario import Action, Play, ScenarioError, touches

MS = 1_000_000
NO_MORE_BETS_S = 1.43
"""The in-wheel sensor calls no more bets when a lap of the ball takes this long (maker's default, 2920/2048 s)."""
READY_AFTER_S = 2.5
"""The sensor shows the number this long before it waits for the next ball."""
CYLINDER = (
    0, 32, 15, 19, 4, 21, 2, 25, 17, 34, 6, 27, 13, 36, 11, 30, 8, 23, 10, 5, 24, 16, 33, 1, 20, 14, 31, 9, 22, 18, 29,
    7, 28, 12, 35, 3, 26,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Something the in-wheel sensor sees: `ball` in the track, `slow`, `number`, `ready` for the next, `lifted`."""

    at_ns: int
    what: str
    number: int | None = None


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
    cues: list[tuple[float, str, int | None]] = field(default_factory=list)


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
        self.encoder = Encoder(self.role, counts_per_turn=self.counts, faults=LEVELS[noise], seed=seed)
        half_count = TURN / self.counts / 2
        if device.get("pegs", True):
            self.wheel: FortuneWheel | Rotor = FortuneWheel(seed=seed, angle=half_count)
        else:
            self.wheel = Rotor(angle=half_count)
        self.moved_ns = start_ns
        """The encoder's edges are worked out up to here."""
        self.unplugged = False

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
        pulses = self.coast(start_ns)
        levels = self.encoder.levels_at(self.wheel.angle)
        drawn = {"spin": self._spin, "drawn": self._exactly, "throw": self._throw, "": self._nothing}[play.kind](
            play.how
        )
        deeds = sorted(
            (
                Deed(at_ns=start_ns + round(drawn.moments[a.at] * SECOND) + a.ms * MS, action=a)
                for a in play.actions
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
            cues=[Cue(at_ns=start_ns + round(s * SECOND), what=w, number=n) for s, w, n in sorted(drawn.cues)],
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
        spin = self.wheel.spin(launch, self.rng)
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
        ball = how.get("ball", {})
        turning = 1 if self.wheel.speed >= 0 else -1
        throw = throw_ball(float(ball.get("speed", 5.5)), turning if ball.get("with_rotor") else -turning, self.rng)
        thrown = moments["thrown"] = released + 0.8
        picked_up = how.get("picked_up_ms")
        ends = throw.settled_s if picked_up is None else picked_up / 1000
        seen, slow = throw.first_lap_s, throw.lap_slower_than(NO_MORE_BETS_S)
        read = throw.settled_s + TURN / max(0.5, abs(self.wheel.speed))
        number = how.get("number", self.rng.choice(CYLINDER))
        sensor = how.get("sensor", {})
        truth = {"seen": seen, "drop_due": slow, "dropped": throw.dropped_s, "settled": throw.settled_s, "read": read}
        for name, time in truth.items():
            if time <= ends or (name == "read" and picked_up is None):
                moments[name] = thrown + time
        for name, what in (("seen", "ball"), ("drop_due", "slow"), ("read", "number")):
            if name in moments and what not in sensor.get("misses", ()):
                drawn.cues.append((moments[name], what, sensor.get("reads", number) if what == "number" else None))
        if picked_up is None:
            drawn.cues.append((moments["read"] + READY_AFTER_S, "ready", None))
        else:
            drawn.cues.append((thrown + ends, "lifted", None))
        return drawn
