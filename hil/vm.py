"""The installed product in a machine with real pins: `python -m hil.vm RIG` proves it with one command.

RIG is the folder of a virtual machine with simulated GPIO chips and hot-pluggable serial adapters: a program `vm` with
the commands `boot`, `run`, `copy`, `plug`, `unplug`, `powercut`, and in the guest `quad`, which turns lines into an
encoder. The product is installed there as README tells (packages of the lock, unit, user, udev rules), as the service
that a table has. Broker, floor and the far ends of the adapters are here. Prints what held; exit 0 when all did.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hil import tables
from hil.demo import demo_of
from hil.floor import Broker, Consumer, RigError, Signer
from hil.peers import Peer, peers_for
from hil.scenario import opening_commands

ROOT = Path(__file__).resolve().parent.parent
HOME = "/opt/table-controller"
ADAPTERS = {"wheel_sensor": "usb0", "console": "usb1"}
"""Role of the table -> name of the machine's USB adapter; the guest sees the serial number `RIG-<name>`."""
COUNTS = 400
"""Counts and edges a second: an emulated machine loses edges beyond; so the wheel makes one turn a second."""
RUN_OUT = ((300, 160), (200, 120), (100, 80), (25, 40))
"""Edges a second and edges: how the wheel slows down, one turn in all; a wheel that stands at once is a cut cable."""
TURNS = 4
SLOW = "[Service]\nWatchdogSec=30\nTimeoutStartSec=300\nExecStartPre=\n"
"""Python starts a dozen times slower there; the check would double that and was made before."""
POLL_S = 0.02


class Vm:
    """The machine, through its own program."""

    def __init__(self, rig: Path) -> None:
        self._program = rig.resolve() / "vm"
        if "RIG_DIR" not in os.environ:
            raise RigError("RIG_DIR must name the folder where the machine keeps its disk and its sockets")
        self.sockets = Path(os.environ["RIG_DIR"]) / "run"
        if not os.access(self._program, os.X_OK):
            raise RigError(f"{self._program} is no program: RIG must be the folder of the machine")

    async def __call__(self, *words: str, deadline_s: float = 120.0) -> str:
        """Run one command of the machine and return what it said; raises RigError."""
        process = await asyncio.create_subprocess_exec(
            self._program,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(deadline_s):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise RigError(f"vm {shlex.join(words)}: no end within {deadline_s:.0f} s") from None
        if process.returncode:
            raise RigError(f"vm {shlex.join(words)}: {process.returncode}: {(out + err).decode().strip()}")
        return out.decode()

    async def run(self, command: str, deadline_s: float = 120.0) -> str:
        """Run a command in the guest, as root."""
        return (await self("run", command, deadline_s=deadline_s)).strip()

    async def boot(self, *words: str) -> None:
        """Power on and wait for a shell; a busy host takes its time."""
        try:
            await self("boot", *words, deadline_s=400)
        except RigError as error:
            for _ in range(60):
                with contextlib.suppress(RigError):
                    await self.run("true")
                    return
                await asyncio.sleep(10)
            raise error


class Adapter:
    """A simulated device at the far end of one of the machine's USB adapters."""

    def __init__(self, vm: Vm, name: str, peer: Peer) -> None:
        self._vm, self._name, self._peer = vm, name, peer

    async def run(self) -> None:
        """Speak and listen for ever; the machine may go and come back."""
        while True:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
                line.setblocking(False)
                await asyncio.get_running_loop().sock_connect(line, str(self._vm.sockets / self._name))
                await self._serve(line)
            await asyncio.sleep(0.5)

    async def _serve(self, line: socket.socket) -> None:
        while True:
            now = time.monotonic_ns()
            with contextlib.suppress(BlockingIOError):
                said = line.recv(4096)
                if not said:
                    return
                self._peer.feed(said, now)
            self._peer.tick(now)
            if out := self._peer.take_output():
                await asyncio.get_running_loop().sock_sendall(line, out)
            await asyncio.sleep(POLL_S)


class Proof:
    """Says what held, line by line."""

    def __init__(self) -> None:
        self.held = self.failed = 0

    def check(self, what: str, seen: object, ok: bool) -> None:
        """One promise."""
        self.held, self.failed = self.held + ok, self.failed + (not ok)
        print(f"{'ok  ' if ok else 'FAIL'} {what}{'' if ok else f': {seen!r}'}", flush=True)

    async def comes(self, what: str, look: Callable[[], object], wanted: object, deadline_s: float) -> None:
        """A promise that may take a while: `look` is to see what is wanted."""
        began = time.monotonic()
        while (seen := look()) != wanted and time.monotonic() - began < deadline_s:  # noqa: ASYNC110 - of a machine
            await asyncio.sleep(0.5)
        took = f" ({time.monotonic() - began:.1f} s)" if seen == wanted else ""
        self.check(f"{what}{took}", seen, seen == wanted)


def packages(folder: Path) -> None:
    """What the guest's Python 3.11 needs, as files: the lock and the project; raises RigError."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    guest = ["--python-version", "3.11", "--only-binary", ":all:", "--require-hashes", "-r"]
    for words in ([*guest, str(ROOT / "requirements.lock")], ["--upgrade", "--no-build-isolation", str(ROOT)]):
        done = subprocess.run([*pip, *words], check=False, capture_output=True, text=True)
        if done.returncode:
            raise RigError(f"pip: {done.stderr.strip()}")


def rigged(url: str, keys: list[Signer]) -> dict[str, Any]:
    """The shipped roulette with this machine's encoder, adapters and broker; nothing else differs."""
    table = tables.table("roulette-francaise")
    table["devices"]["wheel"]["counts_per_turn"] = COUNTS
    for role, name in ADAPTERS.items():
        table["devices"][role]["match"] = {"ID_SERIAL_SHORT": f"RIG-{name}"}
    table["mqtt"]["url"] = url
    table["keys"] = [{"name": key.name, "role": key.role, "public": key.public} for key in keys]
    return table


def spin(sense: str, lines: Mapping[str, int]) -> str:
    """The command that turns the wheel: full speed, then the run-out; the index comes once a turn, at one place."""
    a, b, z = (f"$(rig-gpio path 0 {lines[name]})" for name in ("a", "b", "index"))
    full = f"quad -r {sense}{COUNTS} -n {TURNS * COUNTS} -i {COUNTS} {a} {b} {z}"
    *slower, (rate, last) = RUN_OUT
    return " && ".join(
        [
            full,
            *(f"quad -r {sense}{rate} -n {edges} {a} {b}" for rate, edges in slower),
            f"quad -r {sense}{rate} -n {last} -i {last} {a} {b} {z}",
        ]
    )


async def install(vm: Vm, folder: Path, table: Mapping[str, Any]) -> None:
    """As README tells, with the packages brought from here."""
    await asyncio.to_thread(packages, folder / "site")
    await vm("copy", str(folder / "site"), HOME, deadline_s=300)
    await vm("copy", str(ROOT / "systemd"), HOME)
    (folder / "table.toml").write_text(tables.toml(table), encoding="utf-8")
    (folder / "slow.conf").write_text(SLOW, encoding="utf-8")
    await vm("copy", str(folder / "table.toml"), "/etc/table-controller")
    await vm("copy", str(folder / "slow.conf"), "/etc/systemd/system/table-controller.service.d")
    await vm.run(
        f"""set -e
        python3 -m venv --without-pip {HOME}/venv
        mv {HOME}/site/bin/* {HOME}/venv/bin/
        mv {HOME}/site/* {HOME}/venv/lib/python3.11/site-packages/
        sed -i '1s|^#!.*|#!{HOME}/venv/bin/python|' {HOME}/venv/bin/table-controller {HOME}/venv/bin/tablectl
        cd {HOME}
        install -Dm644 -t /etc/systemd/system systemd/table-controller.service
        install -Dm644 -t /etc/sysusers.d systemd/sysusers.d/table-controller.conf
        install -Dm644 -t /etc/tmpfiles.d systemd/tmpfiles.d/table-controller.conf
        install -Dm644 -t /etc/udev/rules.d systemd/90-table.rules
        systemd-sysusers
        systemd-tmpfiles --create table-controller.conf
        udevadm control --reload
        udevadm trigger
        udevadm settle
        systemctl daemon-reload
        systemctl enable -q table-controller
        sync""",
        deadline_s=300,
    )


async def prove(vm: Vm, folder: Path, proof: Proof) -> None:
    """Everything, in order."""
    broker = Broker(folder)
    await broker.start()
    people = {role: Signer(f"{role}-1", role) for role in ("comite", "chef", "croupier", "technicien")}
    table = rigged(f"mqtt://10.0.2.2:{broker.port}", list(people.values()))
    consumer = Consumer(broker.port, tables.base(table))
    await consumer.start()
    try:
        async with asyncio.TaskGroup() as group:
            peers = peers_for(table, time.monotonic_ns(), 1)
            lines = [group.create_task(Adapter(vm, ADAPTERS[role], peer).run()) for role, peer in peers.items()]
            try:
                await Trial(vm, proof, table, consumer, people).run(folder)
            finally:
                for line in lines:
                    line.cancel()
    finally:
        await consumer.stop()
        await broker.stop()


class Trial:
    """The installed product under proof: its machine, its table, and the floor that hears it."""

    def __init__(
        self, vm: Vm, proof: Proof, table: Mapping[str, Any], consumer: Consumer, people: Mapping[str, Signer]
    ) -> None:
        self.vm, self.proof, self.table, self.consumer, self.people = vm, proof, table, consumer, people

    def last(self, suffix: str) -> Any:
        """What was said last on this topic; empty when nothing was."""
        said = (heard.body for heard in reversed(self.consumer.heard) if heard.suffix == suffix and heard.payload)
        return next(said, {})

    def device(self, role: str) -> object:
        """State of a device as health tells it."""
        return self.last("health").get("devices", {}).get(role, {}).get("state")

    def presence(self) -> object:
        """`online` or `offline`."""
        return self.last("status").get("state")

    async def run(self, folder: Path) -> None:
        """Everything, in order."""
        await self.vm("powercut")
        await self.vm.boot("--fresh")
        await install(self.vm, folder, self.table)
        await self.service()
        await self.adapters_by_their_properties()
        await self.edges_of_a_real_chip()
        await self.out_and_in()
        await self.power_cut()

    async def service(self) -> None:
        """It runs under systemd as it should."""
        vm, proof = self.vm, self.proof
        began = time.monotonic()
        await vm.run("systemctl start table-controller", deadline_s=400)
        proof.check(f"systemd has it ready ({time.monotonic() - began:.0f} s)", "", True)
        seen = await vm.run("systemctl show -p ActiveState,NRestarts,StatusText table-controller")
        proof.check("active, not restarted", seen, "ActiveState=active" in seen and "NRestarts=0" in seen)
        pid = await vm.run("systemctl show -p MainPID --value table-controller")
        seen = await vm.run(f"ps -o user:20= -p {pid}; ls -l /proc/{pid}/fd")
        proof.check("runs as its own user", seen, seen.startswith("table-controller"))
        seen = await vm.run("systemd-analyze security --no-pager table-controller | tail -n 1")
        proof.check("exposed 2.0 at most", seen, float(seen.split(":")[1].split()[0]) <= 2.0)
        await proof.comes("online at the broker", self.presence, "online", 30)

    async def adapters_by_their_properties(self) -> None:
        """Lost while they are not plugged, found when they are."""
        vm, proof = self.vm, self.proof
        for role in ADAPTERS:
            await proof.comes(f"{role} is lost while it is not plugged", partial(self.device, role), "lost", 30)
        for role, name in ADAPTERS.items():
            await vm("plug", name)
            await proof.comes(f"{role} opens", partial(self.device, role), "ok", 40)
        seen = await vm.run("ls -l /dev/ttyUSB* /dev/gpiochip0 /dev/table/; udevadm info -q property /dev/ttyUSB0")
        proof.check("udev rules: names and rights", seen, "RIG-usb0" in seen and "ID_MM_PORT_IGNORE=1" in seen)

    async def edges_of_a_real_chip(self) -> None:
        """The cylinder turns both ways on an open table."""
        proof = self.proof
        for name, role, args in opening_commands(demo_of("roulette-francaise").opening):
            reply = await self.consumer.order(self.people[role], name, **args)
            proof.check(f"a signed command: {name}", reply, bool(reply["ok"]))
        for sense, direction in (("", "cw"), ("-", "ccw")):
            await self.vm.run(spin(sense, self.table["devices"]["wheel"]["lines"]))
            what = f"edges of a chip: the cylinder was turned {direction}"
            await proof.comes(what, lambda: self.last("state").get("last_direction"), direction, 30)
        counters = self.last("health")["devices"]["wheel"]["counters"]
        proof.check("no edge was lost on the way", counters, not counters["lost_edges"] and not counters["illegal"])

    async def out_and_in(self) -> None:
        """An adapter is pulled and plugged again."""
        device = partial(self.device, "wheel_sensor")
        await self.vm("unplug", ADAPTERS["wheel_sensor"])
        await self.proof.comes("the sensor's adapter is out", device, "lost", 30)
        await self.vm("plug", ADAPTERS["wheel_sensor"])
        await self.proof.comes("and in again", device, "ok", 40)

    async def power_cut(self) -> None:
        """The same table afterwards, without hands."""
        vm, proof = self.vm, self.proof
        before = self.last("state")
        await vm("powercut")
        await proof.comes("the broker tells that it is gone", self.presence, "offline", 60)
        mark = len(self.consumer.heard)
        await vm.boot()
        for name in ADAPTERS.values():
            await vm("plug", name)
        await proof.comes("online again without hands", self.presence, "online", 300)
        after = await self.consumer.wait_for("state", lambda _: True, 60, mark)
        kept = ("epoch", "seance", "partie", "coup", "phase", "last_direction", "limits")
        other = {key: (before[key], after[key]) for key in kept if before[key] != after[key]}
        proof.check("the same table as before", other, not other)
        seen = await vm.run(f"{HOME}/venv/bin/tablectl --config /etc/table-controller/table.toml journal verify")
        proof.check("its journal verifies", seen, "reason" not in seen)
        seen = await vm.run("journalctl -u table-controller -o cat --no-pager -p err")
        proof.check("nothing in the log is an error of the program", seen, "Traceback" not in seen)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m hil.vm", description="Proves the installed product in a VM.")
    parser.add_argument("rig", type=Path, metavar="RIG", help="folder of the machine, already built (its `vm build`)")
    options = parser.parse_args()
    proof = Proof()
    try:
        vm = Vm(options.rig)
        with tempfile.TemporaryDirectory(prefix="vm-") as folder:
            asyncio.run(prove(vm, Path(folder), proof))
    except* (RigError, TimeoutError, OSError, json.JSONDecodeError) as errors:
        proof.check("the proof itself came to its end", errors.exceptions, False)
    print(f"{proof.held} held, {proof.failed} did not")
    return 1 if proof.failed else 0


if __name__ == "__main__":
    sys.exit(main())
