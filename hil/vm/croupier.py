"""The people and the ball of a roulette: a coup in steps, each of which waits for what the table says of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from hil.devices.console import Keypad
from hil.devices.slingshot2 import PERIOD_NS, SlingShot2Wheel
from hil.floor import Consumer, RigError, Signer
from hil.vm.ledger import Ledger
from hil.vm.machine import Vm, spin

ANSWER_S = 120.0
"""How long the table may take for anything; the machine shares its host."""
STAKES = (("rouge", 1000, "Anne"), ("plein:17", 500, "Bruno"))
REDS = (1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36)
PLAIN = tuple(range(1, 37))


class Person:
    """Somebody at the table who also sees what the floor hears."""

    def __init__(self, keypad: Keypad, consumer: Consumer, ledger: Ledger, people: Mapping[str, Signer]) -> None:
        self.keypad, self.ledger = keypad, ledger
        self._consumer, self._people = consumer, people
        self._read = 0

    def listen(self) -> Ledger:
        """What was heard up to now."""
        while self._read < len(self._consumer.heard):
            self.ledger.hear(self._consumer.heard[self._read])
            self._read += 1
        return self.ledger

    async def until(self, what: str, seen: Callable[[Ledger], bool], deadline_s: float = ANSWER_S) -> None:
        """Wait until the floor has heard that; raises RigError."""
        deadline = time.monotonic() + deadline_s
        while not seen(self.listen()):
            left = deadline - time.monotonic()
            if left <= 0:
                state = {key: self.ledger.state.get(key) for key in ("phase", "step", "coup", "last_direction")}
                raise RigError(f"{what}: not within {deadline_s:.0f} s; the table says {state}")
            with contextlib.suppress(TimeoutError):
                await self._consumer.message(self._read, left)

    async def phase(self, *phases: str) -> str:
        """Wait for one of these phases."""
        await self.until(" or ".join(phases), lambda ledger: ledger.state.get("phase") in phases)
        return str(self.ledger.state["phase"])

    async def order(self, name: str, role: str, **args: Any) -> dict[str, Any]:
        """A signed command; returns the reply."""
        return await self._consumer.order(self._people[role], name, **args)

    async def stakes(self, stakes: Sequence[tuple[str, int, str]] = STAKES) -> None:
        """The players bet, and the table has it on its disk."""
        rows = self.listen().state["seq"]
        for spot, cents, player in stakes:
            self.keypad.place(time.monotonic_ns(), spot, cents, player)
        await self.until("stakes", lambda ledger: ledger.state["seq"] >= rows + len(stakes))

    async def last_result(self) -> dict[str, Any]:
        """How the coup that has just ended stands."""
        coup = self.ledger.state["coup"]
        await self.until("the result", lambda ledger: any(result["coup"] == coup for result in ledger.results))
        return [result for result in self.ledger.results if result["coup"] == coup][-1]


class Bouleur(Person):
    """Plays coups of boule: the ball is a level on the line of a cup, and an empty cup holds its line low."""

    def __init__(self, vm: Vm, table: Mapping[str, Any], *others: Any) -> None:
        super().__init__(*others)
        self._vm = vm
        self.lines: list[int] = table["devices"]["cups"]["lines"]
        self.numbers: list[int] = table["options"]["cuvettes"]

    async def level(self, *cups: int, occupied: bool) -> None:
        """These cups are occupied, or empty."""
        await self._vm.run(";".join(f"rig-gpio set 0 {self.lines[cup]} {int(occupied)}" for cup in cups))

    async def coup(self, cup: int) -> dict[str, Any]:
        """A whole coup that ends in this cup; returns its result."""
        await self.stakes((("plein:7", 500, "Anne"), ("rouge", 1000, "Bruno")))
        self.keypad.announce(time.monotonic_ns(), "rien_ne_va_plus")
        await self.phase("jeux_faits")
        await self.level(cup, occupied=True)
        await self.phase("resultat", "litige")
        self.keypad.result(time.monotonic_ns(), self.numbers[cup])
        await self.phase("reglement", "litige")
        await self.level(cup, occupied=False)
        return await self.last_result()


class Croupier(Person):
    """Plays coups of roulette."""

    def __init__(self, vm: Vm, table: Mapping[str, Any], wheel: SlingShot2Wheel, rng: Random, *others: Any) -> None:
        super().__init__(*others)
        self.wheel = wheel
        self._vm, self._rng = vm, rng
        self._lines = table["devices"]["wheel"]["lines"]
        self._turning: asyncio.Task[str] | None = None

    # a coup, step by step

    def turn(self) -> str:
        """The cylinder is actuated against its last sense, and runs on by itself."""
        direction = "ccw" if self.listen().state["last_direction"] == "cw" else "cw"
        self._turning = asyncio.get_running_loop().create_task(self._vm.run(spin(direction, self._lines)))
        self.wheel.plan(time.monotonic_ns(), rotor=direction, rpm10=300)
        return direction

    async def turned(self, direction: str) -> None:
        """The table has seen it."""
        seen = {"last_direction": direction, "step": "started"}
        await self.until(f"actuated {direction}", lambda ledger: seen.items() <= ledger.state.items())

    async def rested(self) -> None:
        """The cylinder stands, or its machine is gone."""
        turning, self._turning = self._turning, None
        if turning is not None:
            with contextlib.suppress(RigError):
                await turning

    async def throw(self) -> None:
        """The ball runs."""
        await self.ready()
        self.wheel.plan(time.monotonic_ns(), state=3, flags=0)
        await self.phase("lance")

    async def close(self) -> None:
        """The ball slows down: rien ne va plus."""
        now = time.monotonic_ns()
        self.wheel.plan(now, state=4)
        self.keypad.announce(now + 300_000_000, "rien_ne_va_plus")
        await self.phase("jeux_faits")

    def show(self, number: int) -> None:
        """The ball lies: sensor and croupier read the number."""
        now = time.monotonic_ns()
        if self.wheel.wheel.state != 5:
            self.wheel.plan(now, state=5, flags=0, number=str(number))
        self.keypad.result(now + 600_000_000, number)

    async def ready(self) -> None:
        """The wheel waits for the next ball, and has said so."""
        if self.wheel.wheel.state == 5:
            self.wheel.plan(time.monotonic_ns(), state=2, flags=0)
            await asyncio.sleep(2 * PERIOD_NS / 1e9)

    async def until_jeux_faits(self) -> None:
        """A coup up to rien ne va plus."""
        await self.stakes()
        await self.turned(self.turn())
        await self.throw()
        await self.close()

    async def coup(self, number: int | None = None) -> dict[str, Any]:
        """A whole coup as it should be; returns its last result."""
        await self.stakes()
        return await self.finish(number)

    async def finish(self, number: int | None = None) -> dict[str, Any]:
        """Whatever state the coup is in, play it to its end; returns its last result."""
        number = self._rng.choice(PLAIN) if number is None else number
        shown = False
        while True:
            phase = await self.phase("mises_ouvertes", "lance", "jeux_faits", "choix", "litige", "reglement")
            if phase == "reglement":
                break
            if phase == "mises_ouvertes":
                await self.turned(self.turn())
                await self.throw()
            elif phase == "lance":
                await self.close()
            elif phase == "jeux_faits":
                if not shown:
                    self.show(int(self.wheel.wheel.last) if self.wheel.wheel.state == 5 else number)
                shown = True
                await self.phase("choix", "litige", "reglement")
            elif phase == "choix":
                for _, _, player in STAKES:
                    self.keypad.choose(time.monotonic_ns(), player, "zero", "prison")
                await self.phase("reglement")
            else:
                await self.decide()
        await self.rested()
        result = await self.last_result()
        await self.ready()
        return result

    async def decide(self) -> None:
        """A chef decides a held coup: valid when there is a number, else it does not count."""
        reply = await self.order("resolve", "chef", **{"as": "valid", "why": "le croupier a lu le numéro"})
        if not reply["ok"]:
            reply = await self.order("resolve", "chef", **{"as": "void", "why": "personne n'a lu de numéro"})
        if not reply["ok"]:
            raise RigError(f"a held coup could not be decided: {reply['code']} {reply['text']}")
        await self.until("decided", lambda ledger: ledger.state["phase"] != "litige")
