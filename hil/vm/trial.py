"""What is proved, in order: installation, coups, a full queue, a pulled plug, a hung daemon, power cuts, boule."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from hil import tables
from hil.demo import demo_of
from hil.devices.console import Keypad
from hil.devices.slingshot2 import SlingShot2Wheel
from hil.floor import Broker, Chain, Consumer, RigError, Signer
from hil.peers import keypad_of, peers_for
from hil.scenario import opening_commands
from hil.vm.croupier import REDS, Bouleur, Croupier, Person
from hil.vm.ledger import UNDER_WAY, Book, Ledger
from hil.vm.machine import (
    ADAPTERS,
    BURST,
    PUBLIC,
    TABLECTL,
    WATCHDOG_S,
    Adapter,
    Vm,
    boule,
    burst,
    configure,
    install,
    rigged,
)

COUPS = 5
MINIMUM_CENTS = 1000
"""Not the declared one: limits that are forgotten would show."""
BACK_S = 400.0
"""How long a table may take to be back after its power was cut; the machine shares its host."""
SPOKEN = 20
"""Announcements that make an outbox long."""


@dataclass(slots=True)
class Proof:
    """Says what held, line by line, and keeps it for a report."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)
    """Kernel, systemd and Python of the guest."""
    began: float = field(default_factory=time.monotonic)

    def check(self, what: str, seen: object, ok: bool) -> None:
        """One promise."""
        at_s = round(time.monotonic() - self.began)
        self.lines.append({"what": what, "held": ok, "at_s": at_s} | ({} if ok else {"seen": repr(seen)}))
        print(f"{at_s:5} {'ok  ' if ok else 'FAIL'} {what}{'' if ok else f': {seen!r}'}", flush=True)

    @property
    def held(self) -> int:
        """How many did."""
        return sum(line["held"] for line in self.lines)

    @property
    def failed(self) -> int:
        """How many did not."""
        return len(self.lines) - self.held


@dataclass(frozen=True, slots=True)
class Cut:
    """A moment at which the power is cut."""

    moment: str
    most_s: float
    """At most so long after the step that begins it."""


CUTS = (
    Cut("mises ouvertes", 1.5),
    Cut("cylindre actionné", 4.0),
    Cut("bille lancée", 1.5),
    Cut("après rien ne va plus", 1.5),
    Cut("résultat et commit", 1.0),
    Cut("résultat et commit", 1.0),
    Cut("entre résultat et règlement", 1.0),
    Cut("mise en prison", 1.0),
    Cut("broker absent", 1.0),
    Cut("boîte d'envoi qui se vide", 1.0),
)


async def prove(vm: Vm, folder: Path, proof: Proof, seed: int) -> None:
    """Everything, in order; the machine is off afterwards."""
    broker = Broker(folder)
    await broker.start()
    people = {role: Signer(f"{role}-1", role) for role in ("comite", "chef", "croupier", "technicien")}
    table = rigged(f"mqtt://10.0.2.2:{broker.port}", list(people.values()))
    consumer = Consumer(broker.port, tables.base(table), client_id="auditor")
    consumer.patience_s = 60.0
    await consumer.start()
    peers = peers_for(table, time.monotonic_ns(), seed)
    adapters = {role: Adapter(vm, ADAPTERS[role], peer) for role, peer in peers.items()}
    try:
        async with asyncio.TaskGroup() as group:
            lines = [group.create_task(adapter.run()) for adapter in adapters.values()]
            try:
                await vm("powercut")
                await vm.boot("--fresh")
                await install(vm, folder, table)
                said = await vm.run("uname -sr; systemctl --version | head -n 1; python3 --version")
                proof.machine = said.splitlines()
                await Trial(vm, proof, table, broker, consumer, people, adapters, Random(seed), folder).run()
            finally:
                await vm("powercut")
                for line in lines:
                    line.cancel()
    finally:
        await consumer.stop()
        await broker.stop()


class Trial:
    """The installed product under proof: its machine, its table, and the floor that hears it."""

    def __init__(
        self,
        vm: Vm,
        proof: Proof,
        table: Mapping[str, Any],
        broker: Broker,
        consumer: Consumer,
        people: Mapping[str, Signer],
        adapters: Mapping[str, Adapter],
        rng: Random,
        folder: Path,
    ) -> None:
        self.folder = folder
        self.vm, self.proof, self.table, self.broker, self.rng = vm, proof, table, broker, rng
        self.consumer, self.people, self.adapters = consumer, people, adapters
        self.croupier: Croupier
        """There as soon as the table has made its key."""
        self.under_way = 0
        """The coup whose draw ran when the table was left alone."""

    def _wheel(self) -> SlingShot2Wheel:
        wheel = self.adapters["wheel_sensor"].peer
        assert isinstance(wheel, SlingShot2Wheel)
        return wheel

    def _keypad(self) -> Keypad:
        return keypad_of({role: adapter.peer for role, adapter in self.adapters.items()})

    @property
    def ledger(self) -> Ledger:
        """What was heard up to now."""
        return self.croupier.listen()

    async def run(self) -> None:
        """Everything, in order."""
        await self.service()
        await self.adapters_by_their_properties()
        await self.five_coups()
        await self.overflow()
        await self.out_and_in()
        await self.hung()
        await self.power_cuts()
        await self.the_end()
        await self.boule()

    async def comes(
        self, what: str, seen: Callable[[Ledger], bool], deadline_s: float = 120.0, who: Person | None = None
    ) -> None:
        """A promise that may take a while."""
        began = time.monotonic()
        try:
            await (who or self.croupier).until(what, seen, deadline_s)
        except RigError as error:
            self.proof.check(what, str(error), False)
        else:
            self.proof.check(f"{what} ({time.monotonic() - began:.1f} s)", "", True)

    # installation

    async def service(self) -> None:
        """It runs under systemd as it should."""
        vm, proof = self.vm, self.proof
        began = time.monotonic()
        await vm.run("systemctl start table-controller", deadline_s=400)
        proof.check(f"systemd has it ready ({time.monotonic() - began:.0f} s)", "", True)
        public = await vm.run(f"cat {PUBLIC}")
        ledger = Ledger(Chain.of(public))
        others = self._keypad(), self.consumer, ledger, self.people
        self.croupier = Croupier(vm, self.table, self._wheel(), self.rng, *others)
        seen = await vm.run("systemctl show -p ActiveState,NRestarts,StatusText table-controller")
        proof.check("active, not restarted", seen, "ActiveState=active" in seen and "NRestarts=0" in seen)
        pid = await self.pid()
        seen = await vm.run(f"ps -o user:20= -p {pid}; ls -l /proc/{pid}/fd")
        proof.check("runs as its own user", seen, seen.startswith("table-controller"))
        seen = await vm.run("systemd-analyze security --no-pager table-controller | tail -n 1")
        proof.check("exposed 2.0 at most", seen, float(seen.split(":")[1].split()[0]) <= 2.0)
        await self.comes("online at the broker", lambda ledger: ledger.status.get("state") == "online")

    async def pid(self) -> str:
        """Main process of the service."""
        return await self.vm.run("systemctl show -p MainPID --value table-controller")

    async def adapters_by_their_properties(self) -> None:
        """Lost while they are not plugged, found when they are."""
        for role, adapter in self.adapters.items():
            await self.comes(f"{role} is lost while it is not plugged", partial(_is_lost, role))
            await adapter.plug()
            await self.comes(f"{role} opens", partial(_is_there, role))
        seen = await self.vm.run("ls -l /dev/ttyUSB* /dev/gpiochip0 /dev/table/; udevadm info -q property /dev/ttyUSB0")
        self.proof.check("udev rules: names and rights", seen, "RIG-usb0" in seen and "ID_MM_PORT_IGNORE=1" in seen)

    # coups

    async def five_coups(self) -> None:
        """Real edges, both adapters, five valid results on end."""
        opening = {"attest": {"encaisse": ["comite"]}, "minimum_cents": MINIMUM_CENTS}
        for name, role, args in opening_commands(opening):
            reply = await self.croupier.order(name, role, **args)
            self.proof.check(f"a signed command: {name}", reply, bool(reply["ok"]))
        await self.croupier.until("open", lambda ledger: ledger.state["phase"] == "mises_ouvertes")
        for number in range(1, COUPS + 1):
            result = await self.croupier.coup()
            sense = "cw" if number % 2 else "ccw"
            good = (result["coup"], result["status"], result["direction"]) == (number, "valid", sense)
            self.proof.check(f"coup {number} is valid, the cylinder was turned {sense}", result, good)
        self.proof.check("its results prove themselves to an auditor", self.ledger.faults, not self.ledger.faults)
        counters = (await self.health())["devices"]["wheel"]["counters"]
        self.proof.check(
            "no edge was lost on the way", counters, not counters["lost_edges"] and not counters["illegal"]
        )

    async def overflow(self) -> None:
        """More edges than the kernel's queue holds, while nobody reads (field case 52): counted, and good again."""
        pid, lines = await self.pid(), self.table["devices"]["wheel"]["lines"]
        await self.vm.run(f"kill -STOP {pid}; {burst(lines)}; kill -CONT {pid}")
        lost = 0
        async with asyncio.timeout(BACK_S):
            while not lost:
                lost = (await self.health())["devices"]["wheel"]["counters"]["lost_edges"]
        self.proof.check(f"{BURST} edges while the daemon stood still: {lost} were lost, and counted", lost, lost > 0)
        result = await self.croupier.coup()
        self.proof.check("the coup after that is valid", result, result["status"] == "valid")

    async def out_and_in(self) -> None:
        """The sensor's adapter is pulled in mid-coup and comes back with another number (field cases 70, 72)."""
        croupier, sensor, console = self.croupier, self.adapters["wheel_sensor"], self.adapters["console"]
        await croupier.until_jeux_faits()
        where = await self.vm.run("readlink -f /dev/table/RIG-usb0-*")
        await sensor.unplug()
        await self.comes("the sensor's adapter is out in mid-coup", partial(_is_lost, "wheel_sensor"))
        await console.unplug()
        await console.plug()
        await sensor.plug()
        await self.comes("both are found again", lambda ledger: not _devices(ledger))
        there = await self.vm.run("readlink -f /dev/table/RIG-usb0-*")
        self.proof.check(f"under another name: {where}, now {there}", there, there != where)
        croupier.show(17)
        await croupier.phase("litige")
        held = self.ledger.results[-1]
        why = [reason["code"] for reason in held["reasons"] if reason["severity"] == "held"]
        self.proof.check("that coup is held with its reason", held, "appareil_perdu" in why)
        await croupier.finish()
        result = await croupier.coup()
        self.proof.check("the next coup is valid", result, result["status"] == "valid")

    # what breaks

    async def hung(self) -> None:
        """The daemon is stopped in mid-coup: the watchdog ends it, systemd starts it again."""
        await self.croupier.until_jeux_faits()
        pid, before = await self.pid(), self.left()
        await self.vm.run(f"kill -STOP {pid}")
        began = time.monotonic()
        await self.back("watchdog", before)
        took = f"{time.monotonic() - began:.0f} s after it was stopped, {WATCHDOG_S} s is its watchdog"
        self.proof.check(f"watchdog: back {took}", pid, await self.pid() != pid)
        seen = await self.vm.run(
            "journalctl -u table-controller -o cat --no-pager _PID=1; systemctl show -p NRestarts table-controller"
        )
        self.proof.check("watchdog: systemd says so", seen, "Watchdog timeout" in seen and "NRestarts=1" in seen)
        await self.goes_on("watchdog")

    async def power_cuts(self) -> None:
        """Ten of them, in a random order, each at a random moment of its phase."""
        cuts = [cut for cut in CUTS if cut.moment != "mise en prison"]
        self.rng.shuffle(cuts)
        choice = next(place for place, cut in enumerate(cuts) if cut.moment == "entre résultat et règlement")
        cuts.insert(choice + 1, next(cut for cut in CUTS if cut.moment == "mise en prison"))
        for number, cut in enumerate(cuts, start=1):
            after_s = self.rng.uniform(0, cut.most_s)
            await self.power_cut(cut, f"cut {number}, {cut.moment} + {after_s:.2f} s", after_s)

    async def power_cut(self, cut: Cut, name: str, after_s: float) -> None:
        """The power goes; everything is as it must be afterwards, and the table plays on."""
        await self.up_to(cut.moment)
        await asyncio.sleep(after_s)
        await self.vm("powercut")
        for adapter in self.adapters.values():
            adapter.plugged = False
        before = self.left()
        await self.croupier.rested()
        await self.power_on()
        if self.broker.process is None:
            await self.vm.run("while ! systemctl -q is-active table-controller; do sleep 0.5; done", deadline_s=BACK_S)
            await self.broker.start()
        await self.back(name, before)
        await self.goes_on(name, REDS[0] if cut.moment == "mise en prison" else None)

    async def up_to(self, moment: str) -> None:
        """Play up to that moment."""
        croupier = self.croupier
        steps: Mapping[str, Callable[[], Awaitable[object]]] = {
            "mises ouvertes": croupier.stakes,
            "mise en prison": croupier.stakes,
            "cylindre actionné": self._turning,
            "bille lancée": self._ball,
            "après rien ne va plus": croupier.until_jeux_faits,
            "résultat et commit": self._shown,
            "entre résultat et règlement": self._zero,
            "broker absent": self._without_broker,
            "boîte d'envoi qui se vide": self._drain,
        }
        await steps[moment]()

    async def _turning(self) -> None:
        await self.croupier.stakes()
        self.croupier.turn()

    async def _ball(self) -> None:
        await self.croupier.stakes()
        await self.croupier.turned(self.croupier.turn())
        await self.croupier.throw()

    async def _shown(self) -> None:
        await self.croupier.until_jeux_faits()
        self.croupier.show(8)

    async def _zero(self) -> None:
        await self.croupier.until_jeux_faits()
        self.croupier.show(0)
        await self.croupier.phase("choix")

    async def _without_broker(self) -> None:
        """The result is known at the table, and nobody on the floor has heard it."""
        await self.croupier.until_jeux_faits()
        await self.broker.stop()
        keypad = self._keypad()
        shown = len(keypad.shown)
        self.croupier.show(9)
        async with asyncio.timeout(BACK_S):
            while not any(text.startswith("9, ") for text in keypad.shown[shown:]):  # noqa: ASYNC110 - of a machine
                await asyncio.sleep(0.05)

    async def _drain(self) -> None:
        """The same, with much else to tell, and the floor has begun to hear it."""
        await self._without_broker()
        keypad = self._keypad()
        for _ in range(SPOKEN):
            keypad.announce(time.monotonic_ns(), "faites_vos_jeux")
        mark = len(self.ledger.events)
        await self.broker.start()
        await self.croupier.until("the outbox drains", lambda ledger: len(ledger.events) > mark, BACK_S)

    async def power_on(self) -> None:
        """Boot with the adapters in their plugs."""
        boot = asyncio.get_running_loop().create_task(self.vm.boot())
        try:
            for adapter in self.adapters.values():
                async with asyncio.timeout(BACK_S):
                    while not adapter.plugged:
                        try:
                            await adapter.plug()
                        except RigError:  # it is not on yet
                            await asyncio.sleep(0.2)
        finally:
            await boot

    def left(self) -> dict[str, Any]:
        """What the floor knows of the table that is left alone now: its state, and which run of the daemon told it."""
        return {**self.ledger.state, "boot": self.ledger.status["boot"]}

    async def back(self, name: str, before: Mapping[str, Any]) -> None:
        """The table is back without hands, and its floor, its journal and its memory agree."""
        wheel = self._wheel().wheel
        await self.comes(
            f"{name}: online again without hands",
            lambda ledger: ledger.status["boot"] != before["boot"] and bool(ledger.state) and not _devices(ledger),
            BACK_S,
        )
        await self.sent()
        state = self.ledger.state
        book = await self.book(name)
        left = book.before_the_last_start()
        turn, (coup, phase) = left.last_turn(), left.stands()
        self.proof.check(
            f"{name}: the direction memory is the last actuation on the disk ({turn})",
            state,
            state["last_direction"] == turn,
        )
        wanted = "litige" if phase == "resultat" else phase
        if phase in ("mises_ouvertes", "reglement") and wheel.state in (3, 4):
            wanted = "lance"  # the ball of which nothing was on the disk is seen now
        good = (state["coup"], state["phase"]) == (coup, wanted)
        self.proof.check(f"{name}: coup {coup} was left in {phase} and is in {wanted}", state, good)
        kept = ("epoch", "seance", "partie", "limits", "options", "interrupted", "maintenance", "game")
        other = {key: (before[key], state[key]) for key in kept if before[key] != state[key]}
        self.proof.check(f"{name}: the same séance, with its limits", other, not other)
        last = max(row["seq"] for row in left.rows)
        self.proof.check(f"{name}: all that was told is on the disk", (before["seq"], last), before["seq"] <= last)
        self.under_way = coup if phase in UNDER_WAY else 0

    async def goes_on(self, name: str, number: int | None = None) -> None:
        """The coup is finished as the law wants, and paid with the stakes that were on the disk."""
        prison = {
            line["id"]
            for entry in self.ledger.settlements[-1:]
            for line in entry["lines"]
            if line["status"] == "prison"
        }
        result = await self.croupier.finish(number)
        firsts = [entry for entry in self.ledger.results if entry["coup"] == self.under_way]
        if firsts:
            why = {reason["code"] for reason in firsts[0]["reasons"]}
            good = firsts[0]["status"] == "held" and "tirage_non_observe" in why
            self.proof.check(f"{name}: nobody watched its draw: held, then decided by a chef", firsts, good)
        self.proof.check(f"{name}: coup {result['coup']} ends valid", result, result["status"] == "valid")
        await self.sent()
        seen = self.ledger.unsettled()
        self.proof.check(f"{name}: every valid coup is paid", seen, not seen)
        if prison:
            freed = [self.ledger.lines_of(stake)[-1]["status"] for stake in sorted(prison)]
            self.proof.check(f"{name}: the stake in prison was kept and is freed", freed, set(freed) == {"freed"})

    async def health(self) -> dict[str, Any]:
        """How the table is, asked for."""
        reply = await self.croupier.order("health", "technicien")
        return dict(reply["data"])

    async def sent(self) -> None:
        """Wait until the table has told everything."""
        async with asyncio.timeout(BACK_S):
            while (await self.health())["unsent"]:  # noqa: ASYNC110 - of a machine
                await asyncio.sleep(0.2)

    async def book(self, name: str) -> Book:
        """The journal, verified in the machine and held against what was heard."""
        verified = await self.vm.run(f"{TABLECTL} journal verify --key {PUBLIC} 2>&1 || true")
        self.proof.check(f"{name}: its journal verifies", verified, verified.startswith("ok "))
        book = Book.of(await self.vm.run(f"{TABLECTL} journal export"))
        wrong = self.ledger.against(book)
        heard = f"{len(self.ledger.results)} results, none lost, none other, no hole"
        self.proof.check(f"{name}: floor and journal agree: {heard}", wrong, not wrong)
        return book

    async def the_end(self) -> None:
        """What the whole evening left."""
        result = await self.croupier.coup()
        self.proof.check("a last coup is valid", result, result["status"] == "valid")
        await self.sent()
        book = await self.book("the end")
        paid = {line["id"] for entry in self.ledger.settlements for line in entry["lines"]}
        unpaid = set(book.stakes()) - paid
        self.proof.check("every stake that was accepted was settled", unpaid, not unpaid)
        seen = await self.vm.run("journalctl -u table-controller -o cat --no-pager -p err")
        self.proof.check("nothing in the log is an error of the program", seen, "Traceback" not in seen)

    async def boule(self) -> None:
        """Another apparatus on the same pins: eighteen cups, each a line of the chip."""
        vm, proof = self.vm, self.proof
        table = boule(self.table)
        await configure(vm, self.folder, table)
        await vm.run(
            "systemd-tmpfiles --create table-controller.conf; systemctl restart table-controller", deadline_s=400
        )
        public = await vm.run(f"cat {table['state']['folder']}/signing.pub")
        consumer = Consumer(self.broker.port, tables.base(table))
        consumer.patience_s = self.consumer.patience_s
        await consumer.start()
        try:
            bouleur = Bouleur(vm, table, self._keypad(), consumer, Ledger(Chain.of(public)), self.people)
            self.croupier.keypad.restart(time.monotonic_ns())
            pulled = partial(_is_lost, "cups")
            await self.comes("boule: cups whose lines are all high are a pulled cable", pulled, who=bouleur)
            await bouleur.level(*range(len(bouleur.lines)), occupied=False)
            await self.comes("boule: the basin is empty", lambda ledger: not _devices(ledger), who=bouleur)
            opening = demo_of("boule").opening
            for name, role, args in opening_commands(opening):
                reply = await bouleur.order(name, role, **args)
                proof.check(f"boule: a signed command: {name}", reply, bool(reply["ok"]))
            for cup in (6, 14):
                result = await bouleur.coup(cup)
                good = result["status"] == "valid" and set(result["sources"]) == {"cups", "console"}
                proof.check(f"boule: the ball in cup {cup} is the number {bouleur.numbers[cup]}", result, good)
            proof.check("boule: its results prove themselves", bouleur.ledger.faults, not bouleur.ledger.faults)
        finally:
            await consumer.stop()


def _is_lost(role: str, ledger: Ledger) -> bool:
    return f"device:{role}" in ledger.alarms()


def _is_there(role: str, ledger: Ledger) -> bool:
    return not _is_lost(role, ledger)


def _devices(ledger: Ledger) -> list[str]:
    """Devices that are lost."""
    return [name for name in ledger.alarms() if name.startswith("device:")]
