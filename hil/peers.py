"""The serial devices of a table, made to do what the bench and the people at the table say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from hil.bench import Cue
from hil.devices.console import Keypad, frame
from hil.devices.slingshot2 import SlingShot2Wheel
from hil.scenario import ScenarioError


class Peer(Protocol):
    """The far end of a serial line; pure, it is told the time."""

    def tick(self, now_ns: int) -> None:
        """Do everything that is due."""

    def feed(self, data: bytes, at_ns: int) -> None:
        """Bytes from the controller."""

    def take_output(self) -> bytes:
        """Bytes to the controller."""


def peers_for(table: Mapping[str, Any], start_ns: int, seed: int) -> dict[str, Peer]:
    """A simulator for every serial device of the table, by role; raises ScenarioError for a family without one."""
    peers: dict[str, Peer] = {}
    for role, device in table["devices"].items():
        if device["family"] == "console":
            peers[role] = Keypad(start_ns=start_ns, boot=seed % 1000 + 1)
        elif device["family"] == "slingshot2":
            wheel = SlingShot2Wheel(start_ns=start_ns, seed=seed)
            wheel.plan(start_ns, state=2)
            peers[role] = wheel
        elif "chip" not in device:
            raise ScenarioError(f"no simulator for the family {device['family']!r} of {role}")
    return peers


def keypad_of(peers: Mapping[str, Peer]) -> Keypad:
    """The croupier's keypad; raises ScenarioError when the table has none."""
    for peer in peers.values():
        if isinstance(peer, Keypad):
            return peer
    raise ScenarioError("this table has no keypad")


def type_in(keypad: Keypad, verb: str, value: Any, at_ns: int) -> None:
    """The croupier does on the keypad what a scenario's verb says."""
    match verb:
        case "say":
            keypad.announce(at_ns, value)
        case "stake":
            do = keypad.remove if value.get("remove") else keypad.place
            amount = f"{value['jetons']}x" if "jetons" in value else value["cents"]
            chip, tableau = value.get("chip", ""), value.get("tableau", 1)
            do(at_ns, value["spot"], amount, value["player"], tableau=tableau, chip=chip)
        case "choose":
            keypad.choose(at_ns, value["player"], value["what"], value["value"], tableau=value.get("tableau", 1))
        case "confirm" if value is True:
            keypad.announce(at_ns, "confirme")
        case "confirm" | "result":
            number, *cell = str(value).split()
            keypad.result(at_ns, number, *map(int, cell))
        case _:
            raise ScenarioError(f"a keypad cannot {verb}")


def cue(peers: Mapping[str, Peer], cues: Iterable[Cue]) -> None:
    """Tell the in-wheel sensor, where there is one, what its beams will see."""
    for wheel in peers.values():
        if isinstance(wheel, SlingShot2Wheel):
            for seen in cues:
                match seen.what:
                    case "rotor":
                        wheel.plan(seen.at_ns, rpm10=round(seen.rpm * 10), rotor=seen.rotor)
                    case "ball":
                        wheel.plan(seen.at_ns, state=3, flags=seen.flags)
                    case "slow":
                        wheel.plan(seen.at_ns, state=4)
                    case "number":
                        wheel.plan(seen.at_ns, state=5, flags=0, number=str(seen.number))
                    case "ready" if seen.number is not None:  # it never showed the number, but it has read it
                        wheel.plan(seen.at_ns, state=2, flags=0, number=str(seen.number), spins_up=True)
                    case "ready" | "lifted":
                        wheel.plan(seen.at_ns, state=2, flags=0)


def acknowledged(said: bytes) -> bytes:
    """What a controller that took everything answers to a keypad's frames; for traces, where none is there."""
    answers = b""
    for line in said.decode().split("\r\n"):
        if line:
            number, _, _, name, *words = line[1:].partition("*")[0].split(" ")
            if name == "HELLO":
                answers += frame(0, "C", 0, "HI", words[2])
            elif number != "0":
                answers += frame(0, "C", 0, "ACK", number)
    return answers
