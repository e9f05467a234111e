"""The composition root: makes every part of the daemon once, wires them, runs them, and stops them in order.

    critical:     sequencer, journal (commits), journal:tidy, outbox       end ─► the process ends, systemd restarts it
    restartable:  each chip, each serial device, udev, mqtt, local socket, flight, guard, lag, watchdog

Start: journal ─► last snapshot ─► timers re-armed ─► tasks ─► first look for every device ─► READY=1.
Stop: devices ─► what waits is stepped and committed ─► offline ─► journal closed, all within `STOP_S`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from controller import wire
from controller.alarms import AlarmBook
from controller.clock import Clock, boot_id
from controller.codec import decode_state, encode_state
from controller.commands import Authoriser, Commands, Heard
from controller.commits import Commits
from controller.config import Config
from controller.connection import Broker
from controller.errors import ControllerError
from controller.floor import Floor
from controller.guard import Guard
from controller.health import Reporter, Sources
from controller.instruments import Instruments
from controller.journal import Journal
from controller.journal_start import Owner
from controller.journal_thread import JournalThread
from controller.lag import LagMeter
from controller.local_socket import LocalSocket
from controller.mqtt import client_id
from controller.notify import Notifier
from controller.orders import Orders
from controller.outbox import Outbox
from controller.recorder import Recorder
from controller.results import Told
from controller.scribe import Scribe, restored
from controller.sequencer import Sequencer
from controller.signing import SigningKey, key_of
from controller.standing import Standing, plain
from controller.statistics import Statistics
from controller.supervisor import Supervisor
from controller.timers import after_restart
from controller.watchdog import Watchdog
from rules.decisions import (
    AlarmRaised,
    Announce,
    Breach,
    CoupEnded,
    Decision,
    Severity,
    Signal,
    StakeDoubtful,
    StakeRefused,
)
from rules.facts import BallDropped, BallLaunched, DeviceBack, DeviceLost, Doubtful, Fact
from rules.state import TableState
from rules.table import NOT_OBSERVED, Table
from rules.wheel import WheelCoup
from rules.words import text

log = logging.getLogger(__name__)

DISTRIBUTION: Final = "table-controller"
STOP_S: Final = 4.5
"""A stop that has not ended by then is broken off."""
LAST_ROWS_S: Final = 2.0
"""How long a stop waits for a disk that does not take the last rows; then the floor is told all the same."""
SCAN_S: Final = 3.0
"""The first look for the devices; READY=1 does not wait longer for one that is slow to open."""
CONTROLLER: Final = "controller"
"""Source of the controller's own facts."""


class App:
    """One daemon for one table."""

    def __init__(self, config: Config, clock: Clock, notifier: Notifier) -> None:
        """Open the journal and make every part; raises ControllerError (folder, journal, key)."""
        self._config, self._clock, self._notifier = config, clock, notifier
        self._version = version(DISTRIBUTION)
        self._run_id = secrets.token_hex(8)
        self._table = f"{config.site}/{config.table}"
        self._folder = Path(config.state.folder)
        try:
            self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            why = f"{error.strerror}; set [state] folder to a place that the daemon may write"
            raise ControllerError(f"state folder {self._folder}: {why}") from error
        key = key_of(self._folder, config.state.signing_key_file)
        owner = Owner(table=self._table, game=config.game.id, version=self._version, boot=boot_id())
        self._journal = Journal(self._folder, owner, key, clock, bytes_max=config.state.journal_bytes_max)
        try:
            self._make_table(key)
            self._make_outlets(key.public)
            self._make_watchers()
        except BaseException:
            self._journal.abandon()
            raise

    def _make_table(self, key: SigningKey) -> None:
        """What comes in and is stepped, gone on with from the journal."""
        config, clock, journal = self._config, self._clock, self._journal
        before = restored(journal.found, config.game)
        kept = before.controller
        self._digest, self._digest_before = config.digest(), kept.get("config")
        self._lamps_on: dict[str, bool] = dict(kept.get("lamps", {}))
        self._stopping = asyncio.Event()
        self._supervisor = Supervisor(clock)
        self._lag = LagMeter(clock, self._beat("lag"), lambda ms: self._sequencer.note("frozen", {"ms": ms}))
        self._thread = JournalThread(journal, self._beat("journal:tidy"))
        self._recorder = Recorder(config, self._version, clock, lambda: journal.head.epoch)
        scribe = Scribe(
            table=self._table, game=config.game.id, found=journal.found, restored=before, key=key, clock=clock
        )
        self._sequencer = Sequencer(
            table=Table(config.game, config.house),
            state=self._in_this_boot(before.state),
            scribe=scribe,
            react=self._react,
            told=self._told,
            controller=self._kept,
            flight=self._recorder.flight,
            snapshots=self._snapshots,
            clock=clock,
            beat=self._beat("sequencer"),
        )
        self._instruments = Instruments(config, self._sequencer.put, self._recorder.flight, clock, self._lag.unread_ns)
        self._instruments.remember(kept.get("learned", {}))
        self._authoriser = Authoriser(self._table, config.keys, clock, remembered=kept.get("commands", {}))
        maintained = kept.get("maintenance")
        self._standing = Standing(
            table=self._table,
            game=config.game.id,
            sequencer=self._sequencer,
            alarms=AlarmBook(kept.get("alarms", ())),
            authoriser=self._authoriser,
            before_maintenance=None
            if maintained is None
            else self._in_this_boot(decode_state(maintained, config.game)),
            committed_seq=journal.head.seq,
            last_result=next(iter(journal.last_coups(1)), None),
            clock=clock,
        )
        self._statistics = Statistics(
            config.game,
            config.house.options,
            config.wheel,
            kept=kept.get("statistics", ""),
            alarm=self._standing.alarm,
            clear=self._standing.clear,
            note=self._sequencer.note,
            clock=clock,
        )

    def _make_outlets(self, public_key: str) -> None:
        """What is kept and then told, and who may ask."""
        self._commits = Commits(
            sequencer=self._sequencer,
            thread=self._thread,
            standing=self._standing,
            clock=self._clock,
            beat=self._beat("journal"),
        )
        self._local = self._make_local()
        self._floor = self._make_floor(public_key)
        self._outbox = Outbox(
            self._thread,
            publish=self._floor.publish,
            ready=self._commits.outbox_ready,
            clock=self._clock,
            beat=self._beat("outbox"),
        )
        self._commands = self._make_commands()
        self._commits.connect(self._floor, self._outbox, self._local)

    def _make_watchers(self) -> None:
        """Who looks at all of this."""
        free_bytes_min, clock = self._config.state.free_bytes_min, self._clock
        self._reporter = Reporter(
            table=self._table,
            boot=self._run_id,
            version=self._version,
            folder=self._folder,
            free_bytes_min=free_bytes_min,
            clock=clock,
            sources=self._sources(),
        )
        self._guard = Guard(
            folder=self._folder,
            free_bytes_min=free_bytes_min,
            clock=clock,
            faults=self._instruments.faults,
            alarm=self._standing.alarm,
            clear=self._standing.clear,
            note=self._sequencer.note,
            beat=self._beat("guard"),
        )
        self._watchdog = Watchdog(
            notifier=self._notifier,
            supervisor=self._supervisor,
            commit_since_ns=self._commits.since_ns,
            standing=self._says_of_itself,
            clock=clock,
        )

    def _in_this_boot(self, state: TableState) -> TableState:
        """A state out of the journal; after a reboot its instants are those of another clock."""
        earlier = self._journal.found.earlier
        return state if earlier is None else after_restart(state, self._clock.mono_ns(), earlier[0])

    def _make_floor(self, public_key: str) -> Floor:
        config, mqtt = self._config, self._config.mqtt
        broker = Broker.at(
            mqtt.url,
            client_id(config.base, _machine_id()),
            ca_file=mqtt.ca_file,
            username=mqtt.username,
            password_file=mqtt.password_file,
            keepalive_s=mqtt.keepalive_s,
        )
        return Floor(
            broker,
            base=config.base,
            boot=self._run_id,
            version=self._version,
            epoch=self._journal.head.epoch,
            public_key=public_key,
            clock=self._clock,
            handle=lambda payload, name, retained: self._commands.handle(payload, name=name, retained=retained),
            health=self._report,
            older=self._commits.older,
            alarm=self._standing.alarm,
            clear=self._standing.clear,
            also=self._local.tell,
            beat=self._beat("mqtt"),
        )

    def _make_commands(self) -> Commands:
        orders = Orders(
            sequencer=self._sequencer,
            instruments=self._instruments,
            standing=self._standing,
            commits=self._commits,
            recorder=self._recorder,
            statistics=self._statistics,
            sample=self._floor.sample,
            restart=self._supervisor.restart,
            health=self._report,
            mode=self._floor.mode,
            clock=self._clock,
        )
        return Commands(authoriser=self._authoriser, execute=orders.execute, record=self._heard, clock=self._clock)

    def _make_local(self) -> LocalSocket:
        return LocalSocket(
            Path(self._config.state.socket),
            handle=lambda payload, peer: self._commands.handle(payload, peer=peer),
            queries={
                "state": self._standing.state_body,
                "health": lambda: plain(self._report()),
                "result/last": self._standing.last_result_body,
            },
            vouched=self._config.local,
            beat=self._beat("local"),
        )

    def _sources(self) -> Sources:
        return Sources(
            devices=self._instruments.health,
            tasks=lambda: self._supervisor.reports,
            loop_lag_ms=self._lag.worst_ms,
            unsent=lambda: (self._outbox.unsent(), self._outbox.oldest_unsent_ms()),
            last_result=self._standing.last_result_id,
            command_path=lambda: self._floor.command_path,
            mqtt=self._floor.health,
            journal=self._journal.figures,
            queues=self._queues,
            maintenance=lambda: self._standing.maintenance,
            epoch=lambda: self._standing.epoch,
            statistics=self._statistics.report,
        )

    def _beat(self, task: str) -> Callable[[], None]:
        return lambda: self._supervisor.beat(task)

    # --- run and stop ---

    async def run(self) -> None:
        """Until SIGTERM or SIGINT; raises ExceptionGroup when a critical task has failed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop)
        try:
            async with asyncio.TaskGroup() as critical, asyncio.TaskGroup() as others:
                await self._live(critical, others)
        except BaseException:
            self._thread.abandon()
            raise
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def _live(self, critical: asyncio.TaskGroup, others: asyncio.TaskGroup) -> None:
        own = self._supervisor
        self._begin()
        sequencer = own.critical(critical, "sequencer", self._sequencer.run)
        journal = own.critical(critical, "journal", lambda: self._commits.run(sequencer.done))
        tidy = own.critical(critical, "journal:tidy", self._thread.run)
        outbox = own.critical(critical, "outbox", self._outbox.run, watched=False)
        devices = [
            own.restartable(others, name, run, self._down(name)) for name, run in self._instruments.tasks().items()
        ]
        local = own.restartable(others, "local", self._local.run)
        mqtt = own.restartable(others, "mqtt", self._floor.run)
        helpers = [
            own.restartable(others, "flight", self._recorder.run),
            own.restartable(others, "guard", self._guard.run),
            own.restartable(others, "lag", self._lag.run),
            own.restartable(others, "watchdog", self._watchdog.run),
        ]
        await self._scanned()
        gc.freeze()  # what is made by now lives as long as the daemon
        self._notifier.ready()
        log.info("ready: %s %s, epoch %s", self._table, self._config.game.id, self._standing.epoch)
        await self._stopping.wait()

        own.stopping = True
        self._notifier.stopping()
        await _ended(*devices, local)
        self._sequencer.close()
        await sequencer
        await asyncio.wait([journal], timeout=LAST_ROWS_S)
        await _ended(outbox, tidy)
        await self._floor.stop()
        if not journal.done():
            self._leave("the disk does not take the last rows")
        await _ended(mqtt, *helpers)
        self._instruments.lamps.close()
        await self._thread.close()
        log.info("stopped")

    def _asked_to_stop(self) -> None:
        """The first signal stops in order; a second one, or a stop that takes too long, leaves at once."""
        if self._stopping.is_set():
            self._leave("a second signal")
        self._stopping.set()
        asyncio.get_running_loop().call_later(STOP_S, self._leave, f"the stop took more than {STOP_S} s")

    def _leave(self, why: str) -> None:
        print(f"leaving at once: {why}; what is committed is safe", file=sys.stderr, flush=True)  # no time for the log
        os._exit(75)

    def _begin(self) -> None:
        """What a start tells: who runs, what nobody watched, which devices are out of use."""
        now_ns, sequencer, lost = self._clock.mono_ns(), self._sequencer, self._sequencer.state.lost
        body: dict[str, Any] = {"config": self._digest, "version": self._version, "run": self._run_id}
        if self._digest_before != self._digest:
            body["resolved"] = self._config.resolved()
        sequencer.note("start", body)
        self._statistics.begin()
        if self._journal.found.reason not in ("", "first"):
            sentence = text("journal_nouveau", reason=self._journal.found.reason)
            self._standing.alarm("journal:epoch", "journal_nouveau", sentence)
            self._standing.clear("journal:epoch")
        for lamp, on in self._lamps_on.items():
            self._instruments.lamps.set(lamp, on)
        disabled = set(self._instruments.disabled)
        for role in lost:
            if role in self._instruments.decoders:
                self._instruments.decoders[role].lost(now_ns, "restart")  # so that its return is told
            elif role not in disabled:
                sequencer.tell(DeviceBack(at_ns=now_ns, source=CONTROLLER, device=role))
        for role in sorted(disabled - set(lost)):
            sequencer.tell(DeviceLost(at_ns=now_ns, source=CONTROLLER, device=role, why="disabled"))
        for role in self._config.house.draw_devices:
            sequencer.tell(Doubtful(at_ns=now_ns, source=CONTROLLER, device=role, why=NOT_OBSERVED))
        for alarm in self._standing.alarms.listed():
            role = alarm.name.removeprefix("device:").removesuffix(":fault")
            if alarm.name == f"device:{role}:fault" and role not in self._instruments.decoders:
                self._standing.clear(alarm.name)
        self._floor.mode("maintenance" if self._standing.maintenance else "")
        self._commits.tell()
        if self._standing.last_result is not None:
            self._floor.tell_last(self._standing.last_result)

    async def _scanned(self) -> None:
        """Wait until every device was looked for once."""
        try:
            async with asyncio.timeout(SCAN_S):
                await self._instruments.intake.looked_for.wait()
        except TimeoutError:
            log.warning("not every device could be looked for in %s s", SCAN_S)

    def _down(self, task: str) -> Callable[[str], Awaitable[None]]:
        """What happens when a device's task fails: its devices are lost until it is back."""

        async def down(why: str) -> None:
            now_ns = self._clock.mono_ns()
            for role in self._instruments.roles_of(task):
                self._recorder.flight.lost(role, now_ns, why)
                await self._sequencer.put(self._instruments.decoders[role].lost(now_ns, why))

        return down

    # --- what the parts call ---

    def _react(self, decision: Decision) -> None:
        """What people see or hear at once, before the disk."""
        match decision:
            case Signal(lamp=lamp, on=on):
                if self._instruments.lamps.set(lamp, on):
                    self._lamps_on[lamp] = on
            case (
                Announce(text=sentence)
                | StakeRefused(text=sentence)
                | StakeDoubtful(why=sentence)
                | AlarmRaised(text=sentence)
                | Breach(severity=Severity.HELD | Severity.VOID, text=sentence)
            ):
                self._instruments.show(sentence)

    def _told(self, fact: Fact | None, decisions: Sequence[Decision]) -> None:
        self._standing.told(decisions)
        if isinstance(fact, BallLaunched | BallDropped):
            self._statistics.left_rim(fact)
        coup = self._sequencer.state.coup
        for decision in decisions:
            if isinstance(decision, CoupEnded):
                ball = coup.ball_direction if isinstance(coup, WheelCoup) and coup.no == decision.coup else None
                self._statistics.ended(decision, ball, maintenance=self._standing.maintenance)

    def _heard(self, heard: Heard) -> None:
        """Every command that was given, the refused ones too."""
        body = {key: value for key, value in asdict(heard).items() if key != "text"}
        sentence = heard.text or text("cmd_executee", name=heard.name, by=heard.by)
        self._sequencer.note("command", body, Told(kind="command", code=heard.code, text=sentence, data=body))

    def _kept(self) -> Mapping[str, Any]:
        """What is stored beside the law's state with each commit."""
        before = self._standing.before_maintenance
        return {
            "alarms": self._standing.alarms.snapshot(),
            "commands": self._authoriser.snapshot(),
            "lamps": dict(self._lamps_on),
            "learned": self._instruments.learned(),
            "statistics": self._statistics.snapshot(),
            "maintenance": None if before is None else encode_state(before),
            "config": self._digest,
        }

    def _report(self) -> wire.Health:
        return self._reporter.report()

    def _says_of_itself(self) -> str:
        """For `systemctl status`."""
        state, mode = self._standing.state, ", maintenance" if self._standing.maintenance else ""
        return f"{state.phase}, coup {state.coup_no}, unsent {self._outbox.unsent()}{mode}"

    def _snapshots(self) -> Mapping[str, Any]:
        return self._instruments.snapshots()

    def _queues(self) -> Mapping[str, Mapping[str, wire.Gauge]]:
        sequencer = self._sequencer
        return {
            "inbox": {"peak": sequencer.inbox_peak},
            "pending": {"peak": sequencer.pending_peak},
            "journal": {"peak": self._thread.waiting_peak},
            "outbox": {"sent": self._outbox.sent, "refusals": self._outbox.refusals},
            "flight": {"dropped": self._recorder.dropped},
            "local": dict(self._local.counters),
            "loop": {"late": self._lag.late, "culprit": self._lag.last_culprit or None},
            **self._instruments.queues(),
        }


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel these and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return boot_id()
