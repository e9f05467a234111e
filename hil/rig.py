"""The virtual rig: everything around one unmodified daemon, in real time.

It makes the world of a table in a temporary folder: a chip socket, serial cables, a private broker, and the table's own
configuration with only those addresses put in. Then it starts the daemon and keeps feeding it what the bench and the
simulated devices produce, with the times that they carry. Whoever plays says what happens next; the rig survives being
looked at: a device unplugged, the broker or the daemon killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hil import tables
from hil.bench import MS, Bench, Deed, Script
from hil.daemon import Daemon, run_tool
from hil.devices.encoder import SECOND
from hil.devices.lines import LineChip, Pulse
from hil.floor import Broker, Consumer, RigError, Signer
from hil.peers import Peer, cue, keypad_of, peers_for, type_in
from hil.scenario import Play, opening_commands
from hil.tty import Tty

TICK_S = 0.004
AHEAD_NS = 40 * MS
"""A cylinder's edges are worked out this long before they are due."""
LEAD_NS = 1_000 * MS
"""A play begins at least this long after it was asked for: its physics are worked out meanwhile."""


class Rig:
    """One table under test: `async with Rig(table) as rig`."""

    def __init__(self, table: Mapping[str, Any], *, seed: int = 0, noise: str = "L0") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rig-"))
        self.people = {role: Signer(f"{role}-1", role) for role in ("comite", "chef", "croupier", "technicien")}
        self.broker = Broker(self.folder)
        self.url = f"mqtt://127.0.0.1:{self.broker.port}"
        self.table = tables.on_the_rig(table, self.folder, self.url, list(self.people.values()))
        self.base = tables.base(self.table)
        self.config = self.folder / "table.toml"
        self.control = self.folder / "control.sock"
        """Takes lines such as `unplug wheel_sensor` (`table-rig tell`)."""
        self.daemon = Daemon(self.config, self.folder)
        self.bench = Bench(table, seed=seed, noise=noise, start_ns=time.monotonic_ns())
        self.chips = {
            name: LineChip(Path(chip["path"]), tables.line_offsets(table, name), tables.lamp_offsets(table, name))
            for name, chip in self.table.get("chips", {}).items()
        }
        self.ttys = {role: Tty(self.folder / f"tty-{role}") for role in tables.byte_devices(table)}
        self.peers: dict[str, Peer] = peers_for(table, time.monotonic_ns(), seed)
        self.replies: list[dict[str, Any]] = []
        """Answers to the commands of scenarios."""
        self.failure: BaseException | None = None
        """Why the rig can go on no more."""
        self.late_ns = 0
        """How late the rig itself has been at worst: a fault of this machine, not of the product."""
        self.lamps: list[tuple[int, str, int]] = []
        """(CLOCK_MONOTONIC, lamp, level) of every switch."""
        self._chip_of = {line: chip for chip in self.chips.values() for line in chip.offsets}
        self._pulses: deque[Pulse] = deque()
        self._deeds: deque[Deed] = deque()
        self._working = self._restarting = False
        self._effort_ns: dict[str, int] = {}
        """Longest time that working out a play of this kind has taken."""
        self._cut: set[str] = set()
        """Edge devices, and single lines of them, that somebody unplugged by hand (`tell`)."""
        lines = {role: list(own) for role, own in self.bench.apparatus.levels().items()}
        self._lines_of = lines | {line: [line] for own in lines.values() for line in own}
        self._levels = {line: level for own in self.bench.apparatus.levels().values() for line, level in own.items()}
        """Lines of edge devices as they stand behind their plugs."""
        self._control: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._consumer: Consumer | None = None

    @property
    def consumer(self) -> Consumer:
        """The floor system that listens from the start."""
        assert self._consumer is not None, "the rig is not running"
        return self._consumer

    async def __aenter__(self) -> Rig:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def start(self, *, daemon: bool = True) -> None:
        """Bring up the world and the daemon."""
        (self.folder / "state").mkdir()
        self.config.write_text(tables.toml(self.table), encoding="utf-8")
        await self.broker.start()
        self._consumer = Consumer(self.broker.port, self.base)
        await self._consumer.start()
        for chip in self.chips.values():
            chip.on_output = lambda lamp, level: self.lamps.append((time.monotonic_ns(), lamp, level))
            await chip.start()
        for tty in self.ttys.values():
            tty.plug()
        self._control = await asyncio.start_unix_server(self._told, path=str(self.control))
        self._do(self._pump(), "rig: pump")
        if daemon:
            await self.daemon.start()

    async def close(self) -> None:
        """End every process, close every line, remove every file."""
        if self._control is not None:
            self._control.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.daemon.stop()
        if self._consumer is not None:
            await self._consumer.stop()
        await self.broker.stop()
        for chip in self.chips.values():
            await chip.close()
        for tty in self.ttys.values():
            tty.unplug()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _do(self, work: Any, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self.failure is None:
            self.failure = task.exception()

    def check(self) -> None:
        """Raise RigError when the rig or its daemon has failed."""
        if self.failure is not None:
            raise RigError(f"the rig failed: {self.failure!r}") from self.failure
        if self.daemon.process is not None and not self.daemon.running and not self._restarting:
            raise RigError(f"the daemon died with {self.daemon.process.returncode}:\n{self.daemon.last_words()}")

    # what is played

    async def play(self, play: Play) -> Script:
        """Begin one play soon and return its script; it goes on by itself until `script.ends_ns`.

        How soon depends on how long this machine takes to work out such a play: the first of a kind is tried on a copy.
        """
        if play.kind not in self._effort_ns:
            await self._work_out(copy.deepcopy(self.bench), play, time.monotonic_ns())
        start_ns = time.monotonic_ns() + max(LEAD_NS, 2 * self._effort_ns[play.kind])
        self._pulses += self.bench.coast(start_ns)
        self._working = True
        try:
            script = await self._work_out(self.bench, play, start_ns)
        finally:
            self._working = False
        if time.monotonic_ns() > start_ns + 200 * MS:
            raise RigError("this machine is too busy: a play was not worked out before it had to begin")
        self._pulses += script.pulses
        self._deeds += script.deeds
        cue(self.peers, script.cues)
        return script

    async def _work_out(self, bench: Bench, play: Play, start_ns: int) -> Script:
        begun_ns = time.monotonic_ns()
        script = await asyncio.to_thread(bench.play, play, start_ns)
        effort_ns = time.monotonic_ns() - begun_ns
        self._effort_ns[play.kind] = max(effort_ns, self._effort_ns.get(play.kind, 0))
        return script

    async def wait_until(self, at_ns: int) -> None:
        """Wait for that instant; raises RigError when something fails meanwhile."""
        while (left := at_ns - time.monotonic_ns()) > 0:
            self.check()
            await asyncio.sleep(min(0.1, left / SECOND))

    async def _pump(self) -> None:
        """Deliver what is due, every few milliseconds."""
        before = time.monotonic_ns()
        while True:
            now = time.monotonic_ns()
            self.late_ns = max(self.late_ns, now - before - round(TICK_S * SECOND))
            before = now
            if not self._working:
                self._pulses += self.bench.coast(now + AHEAD_NS)
            due: dict[int, list[Pulse]] = {}
            while self._pulses and self._pulses[0].at_ns <= now:
                pulse = self._pulses.popleft()
                self._levels[pulse.line] = pulse.level
                if self._cut and not self._cut.isdisjoint((pulse.line, pulse.line.rpartition(".")[0])):
                    continue
                due.setdefault(id(self._chip_of[pulse.line]), []).append(pulse)
            for chip in self.chips.values():
                chip.play(due.get(id(chip), ()))
            while self._deeds and self._deeds[0].at_ns <= now:
                self.act(self._deeds.popleft())
            for role, peer in self.peers.items():
                tty = self.ttys[role]
                peer.tick(now)
                peer.feed(tty.receive(), now)
                tty.send(peer.take_output())
            await asyncio.sleep(TICK_S)

    def act(self, deed: Deed) -> None:
        """Do what a person does."""
        action = deed.action
        match action.verb:
            case "press":
                pass  # its edges are among the pulses
            case "say" | "stake" | "choose" | "confirm" | "result":
                type_in(keypad_of(self.peers), action.verb, action.value, deed.at_ns)
            case "command":
                self._do(self._command(**action.value), f"rig: command {action.value['name']}")
            case "unplug" | "plug" if action.value in self._lines_of:
                pass  # a plug of the bench is in the pulses
            case "unplug" | "plug" | "kill" | "broker":
                self._do(self.disturb(action.verb, action.value), f"rig: {action.verb} {action.value}")
            case _:
                raise RigError(f"the rig cannot {action.verb}")

    async def _told(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One order of somebody who looks at a running rig."""
        verb, _, what = (await reader.readline()).decode(errors="replace").strip().partition(" ")
        answer = "ok"
        try:
            await self.disturb(verb, what)
        except (RigError, OSError, TimeoutError) as error:
            answer = str(error).partition("\n")[0]
        writer.write(answer.encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async def disturb(self, verb: str, what: str) -> None:
        """Pull a plug, kill a program, take the broker away; raises RigError for anything else."""
        match verb, what:
            case "unplug", role if role in self.ttys:
                self.ttys[role].unplug()
            case "plug", role if role in self.ttys:
                self.ttys[role].plug()
            case "unplug" | "plug", cable if cable in self._lines_of:
                if (verb == "unplug") is not (cable in self._cut):
                    self._cut ^= {cable}
                    self._pull_up(self._lines_of[cable], int(verb == "unplug"))
            case "kill", "daemon":
                await self.restart_daemon()
            case "broker", "down":
                await self.broker.stop()
            case "broker", "up":
                await self.broker.start()
            case _:
                roles = ", ".join([*self.ttys, *sorted(self.bench.roles)])
                raise RigError(f"{verb} {what}? unplug|plug {roles}; kill daemon; broker down|up")

    def _pull_up(self, lines: Iterable[str], level: int) -> None:
        """A plug is pulled out or put back: lines that were low go up, or down again."""
        now = time.monotonic_ns()
        low = [line for line in lines if not self._levels[line]]
        for chip in self.chips.values():
            chip.play(Pulse(now, line, level) for line in low if self._chip_of[line] is chip)

    async def public_key(self) -> str:
        """The table's public key, which the daemon makes on its first start; base64."""
        return (self.folder / "state" / "signing.pub").read_text().strip()

    async def decisions(self) -> list[dict[str, Any]]:
        """Every decision in the daemon's journal, in order."""
        code, out, err = await run_tool(["--config", str(self.config), "journal", "show"])
        if code != 0:
            raise RigError(f"tablectl journal show ended with {code}: {err.strip()}")
        rows = [json.loads(line) for line in out.splitlines()]
        return [decision for row in rows if row["kind"] == "step" for decision in row["body"]["decisions"]]

    async def restart_daemon(self) -> None:
        """Kill -9 and start anew, as systemd would."""
        self._restarting = True
        try:
            await self.daemon.kill()
            await self.daemon.start()
        finally:
            self._restarting = False

    async def _command(self, name: str, role: str, args: Mapping[str, Any] | None = None) -> None:
        self.replies.append(await self.order(name, role, **dict(args or {})))

    async def order(self, name: str, role: str, **args: Any) -> dict[str, Any]:
        """A signed command by the person of this role; returns the reply."""
        return await self.consumer.order(self.people[role], name, **args)

    async def open(self, opening: Mapping[str, Any]) -> None:
        """Sign for and open the table; raises RigError with the refusal."""
        for name, role, args in opening_commands(opening):
            await self._must(name, role, **args)

    async def _must(self, name: str, role: str, **args: Any) -> None:
        with contextlib.suppress(TimeoutError):
            reply = await self.order(name, role, **args)
            if not reply["ok"]:
                raise RigError(f"{name} {args} by {role} was refused: {reply['code']} {reply['text']}")
            return
        self.check()
        raise RigError(f"no reply to {name}; the daemon said:\n{self.daemon.last_words()}")
