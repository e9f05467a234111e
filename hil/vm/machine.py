"""The virtual machine, the far ends of its serial adapters, and the installation as README tells.

RIG is a folder with a program `vm` with the commands `boot`, `run`, `copy`, `plug`, `unplug`, `powercut`, and in the
guest `quad`, which turns lines into an encoder. Power that is cut is cut for the keypad too; the wheel has its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hil import tables
from hil.devices.console import Keypad
from hil.floor import RigError, Signer
from hil.peers import Peer

ROOT = Path(__file__).resolve().parents[2]
HOME = "/opt/table-controller"
TABLECTL = f"{HOME}/venv/bin/tablectl --config /etc/table-controller/table.toml"
PUBLIC = "/var/lib/table-controller/signing.pub"
ADAPTERS = {"wheel_sensor": "usb0", "console": "usb1"}
"""Role of the table -> name of the machine's USB adapter; the guest sees the serial number `RIG-<name>`."""
COUNTS = 400
"""Counts and edges a second: an emulated machine loses edges beyond; so the cylinder makes one turn a second."""
RUN_OUT = ((300, 160), (200, 120), (100, 80), (25, 40))
"""Edges a second and edges: how it slows down, one turn in all; a cylinder that stands at once is a cut cable."""
TURNS = 2
BURST = 4000
"""Edges, some thousand more than the kernel keeps for a reader; a whole number of turns."""
WATCHDOG_S = 30
SLOW = f"[Service]\nWatchdogSec={WATCHDOG_S}\nTimeoutStartSec=300\nExecStartPre=\n"
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
            raise RigError(f"vm {shlex.join(words)}: no end within {deadline_s:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
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
    """A simulated device at the far end of one of the machine's USB adapters; what nobody reads is lost."""

    def __init__(self, vm: Vm, name: str, peer: Peer) -> None:
        self.name, self.peer, self.plugged = name, peer, False
        self._vm = vm

    async def plug(self) -> None:
        """Plug it in; a keypad lives from this plug."""
        await self._vm("plug", self.name)
        if isinstance(self.peer, Keypad):
            self.peer.restart(time.monotonic_ns(), boots_in_ns=500_000_000)
        self.plugged = True

    async def unplug(self) -> None:
        """Pull it out."""
        await self._vm("unplug", self.name)
        self.plugged = False

    async def run(self) -> None:
        """Speak and listen for ever; the machine may go and come back."""
        while True:
            with socket.socket(socket.AF_UNIX) as line, contextlib.suppress(OSError):
                line.setblocking(False)
                await asyncio.get_running_loop().sock_connect(line, str(self._vm.sockets / self.name))
                await self._serve(line)
            self.peer.tick(time.monotonic_ns())
            self.peer.take_output()
            await asyncio.sleep(POLL_S)

    async def _serve(self, line: socket.socket) -> None:
        while True:
            now = time.monotonic_ns()
            with contextlib.suppress(BlockingIOError):
                said = line.recv(4096)
                if not said:
                    return
                if self.plugged:
                    self.peer.feed(said, now)
            self.peer.tick(now)
            out = self.peer.take_output()
            if out and self.plugged:
                await asyncio.get_running_loop().sock_sendall(line, out)
            await asyncio.sleep(POLL_S)


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


def boule(roulette: Mapping[str, Any]) -> dict[str, Any]:
    """The shipped boule on the same machine, with the broker and the people of that roulette."""
    table = tables.table("boule")
    table["devices"]["console"]["match"] = roulette["devices"]["console"]["match"]
    table["mqtt"]["url"], table["keys"] = roulette["mqtt"]["url"], roulette["keys"]
    table["state"]["folder"] += "/boule"
    return table


def spin(direction: str, lines: Mapping[str, int]) -> str:
    """The command that turns the cylinder: full speed, then the run-out; the index comes once a turn, at one place."""
    sense = "" if direction == "cw" else "-"
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


async def configure(vm: Vm, folder: Path, table: Mapping[str, Any]) -> None:
    """Put this table's configuration where the service looks for it."""
    (folder / "table.toml").write_text(tables.toml(table), encoding="utf-8")
    await vm("copy", str(folder / "table.toml"), "/etc/table-controller")


def burst(lines: Mapping[str, int]) -> str:
    """The command that makes edges faster than anybody can turn a cylinder."""
    a, b = (f"$(rig-gpio path 0 {lines[name]})" for name in ("a", "b"))
    return f"quad -r 5000 -n {BURST} {a} {b}"


async def install(vm: Vm, folder: Path, table: Mapping[str, Any]) -> None:
    """As README tells, with the packages brought from here."""
    await asyncio.to_thread(packages, folder / "site")
    await vm("copy", str(folder / "site"), HOME, deadline_s=300)
    await vm("copy", str(ROOT / "systemd"), HOME)
    await configure(vm, folder, table)
    (folder / "slow.conf").write_text(SLOW, encoding="utf-8")
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
