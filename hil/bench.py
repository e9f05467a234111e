"""The bench: puts what is done with a table's apparatus on the clock, as edges, cues and deeds.

Nothing here waits: a play is worked out as a whole, with the times it will have. Who plays it, in virtual time into a
trace or in real time into a daemon, is not this module's business. The physics are those of `hil.apparatus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hil.apparatus.base import Apparatus, Drawn, Levels, on_the_clock
from hil.apparatus.basin import Basin
from hil.apparatus.cylinder import Cylinder
from hil.apparatus.plate import Plate
from hil.apparatus.wheel import Wheel
from hil.devices.buttons import contact
from hil.devices.encoder import SECOND, cut_cable
from hil.devices.lines import Pulse
from hil.scenario import Action, Play, ScenarioError

MS = 1_000_000
APPARATUS: Mapping[str, type[Apparatus]] = {
    "roue_de_la_chance": Wheel,
    "roulette_francaise": Cylinder,
    "roulette_americaine": Cylinder,
    "roulette_anglaise": Cylinder,
    "boule": Basin,
    "vingt_trois": Plate,
}
"""What draws, by game."""


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


class Bench:
    """One table: its apparatus, its buttons, and which cables of it are pulled out."""

    def __init__(self, table: Mapping[str, Any], *, seed: int = 0, noise: str = "L0", start_ns: int = 0) -> None:
        if table["game"] not in APPARATUS:
            raise ScenarioError(f"the bench has nothing that draws {table['game']}; games: {', '.join(APPARATUS)}")
        self.rng = Random(f"bench {seed}")
        self.apparatus = APPARATUS[table["game"]](table, self.rng, seed=seed, noise=noise)
        self.roles = frozenset(self.apparatus.levels())
        """Devices whose edges are made here, and whose cables are pulled out here."""
        self.moved_ns = start_ns
        """Edges are worked out up to here."""
        lines = [line for own in self.apparatus.levels().values() for line in own]
        self._known = {"press": list(table.get("buttons", {})), "plug": [*table["devices"], *lines]}
        self._known["unplug"] = self._known["plug"]
        """What there is to press, plug and unplug."""
        self.unplugged: set[str] = set()
        """Devices, and single lines, whose cable is out."""

    def coast(self, until_ns: int) -> list[Pulse]:
        """Nobody does anything until then; what turns runs on."""
        if until_ns <= self.moved_ns:
            return []
        seen = self.apparatus.coast(self.moved_ns, until_ns)
        self.moved_ns = until_ns
        return _together(pulses for role, pulses in seen.items() if role not in self.unplugged)

    def play(self, play: Play, start_ns: int) -> Script:
        """Work out one play that begins at `start_ns`; whatever turns has turned on until then."""
        for verb, value in ((action.verb, action.value) for action in play.actions):
            if value not in self._known.get(verb, [value]):
                raise ScenarioError(f"{verb} {value!r}: this table has {', '.join(self._known[verb])}")
        pulses = self.coast(start_ns)
        levels = self.apparatus.levels()
        drawn = self.apparatus.play(play.kind, play.how)
        deeds = sorted(
            (
                Deed(at_ns=on_the_clock(start_ns, drawn.moments[a.at]) + a.ms * MS, action=_as_seen(a, drawn))
                for a in play.actions
                if a.at in drawn.moments
            ),
            key=lambda deed: deed.at_ns,
        )
        if missing := sorted({a.at for a in play.actions} - set(drawn.moments)):
            raise ScenarioError(f"these moments did not come in this play: {', '.join(missing)}")
        last_s = max([*drawn.moments.values(), *((deed.at_ns - start_ns) / SECOND for deed in deeds)])
        ends_s = last_s + play.pause_ms / 1000
        self.apparatus.run_on(drawn, ends_s)
        for role, sensed in self.apparatus.sensed(drawn, start_ns).items():
            seen = sensed
            for line, level in levels[role].items():
                seen = self._through_the_cable(line, seen, {line: level}, deeds)
            pulses += self._through_the_cable(role, seen, levels[role], deeds)
        self.moved_ns = ends_ns = on_the_clock(start_ns, ends_s)
        for deed in deeds:
            if deed.action.verb == "press":
                pulses += contact(f"button.{deed.action.value}", deed.at_ns, self.rng)
        pulses.sort(key=lambda pulse: pulse.at_ns)
        return Script(
            pulses=pulses,
            cues=[Cue(at_ns=on_the_clock(start_ns, s), **seen) for s, seen in drawn.cues],
            deeds=deeds,
            moments={name: on_the_clock(start_ns, s) for name, s in drawn.moments.items()},
            ends_ns=ends_ns,
        )

    def _through_the_cable(self, what: str, pulses: list[Pulse], levels: Levels, deeds: Iterable[Deed]) -> list[Pulse]:
        """What of these pulses reaches the chip, with the cable pulled and plugged as the deeds say."""
        parted = what in self.unplugged
        out_ns: int | None = -1 if parted else None
        back_ns: int | None = None
        for deed in deeds:
            if deed.action.value == what and deed.action.verb == "unplug":
                out_ns, back_ns = deed.at_ns, None
            elif deed.action.value == what and deed.action.verb == "plug":
                back_ns = deed.at_ns
        if out_ns is None:
            return pulses
        if back_ns is None:
            self.unplugged.add(what)
        else:
            self.unplugged.discard(what)
        return cut_cable(pulses, levels, out_ns, back_ns, self.rng, parted=parted)


def _as_seen(action: Action, drawn: Drawn) -> Action:
    """`result = "seen"`: the croupier types where the ball lies."""
    return replace(action, value=drawn.number) if (action.verb, action.value) == ("result", "seen") else action


def _together(parts: Iterable[list[Pulse]]) -> list[Pulse]:
    """The pulses of several devices in order of their time."""
    return sorted((pulse for part in parts for pulse in part), key=lambda pulse: pulse.at_ns)
