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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from controller import logs, wire
from controller.alarms import AlarmBook
from controller.clock import Clock, boot_id
from controller.codec import decode_state, encode_state
from controller.commands import Authoriser, Commands, Heard
from controller.config import Config
from controller.flight import Flight, Recording
from controller.floor import Floor, table_state
from controller.guard import Guard
from controller.health import Reporter, Sources
from controller.instruments import Instruments
from controller.journal import Journal, JournalThread, JournalUnavailableError
from controller.journal_file import Message
from controller.journal_start import Owner
from controller.lag import LagMeter
from controller.local_socket import LocalSocket
from controller.mqtt import Acked, Broker, Disconnected, client_id
from controller.notify import Notifier
from controller.orders import Orders
from controller.outbox import Outbox
from controller.results import Told
from controller.scribe import Restored, Scribe, restored
from controller.sequencer import Commit, Sequencer
from controller.signing import SigningKey, key_of
from controller.supervisor import Supervisor
from controller.timers import after_restart
from rules.decisions import AlarmCleared, AlarmRaised, Announce, Decision, Phase, Signal, StakeRefused
from rules.facts import DeviceBack, DeviceLost, Doubtful
from rules.state import TableState
from rules.table import NOT_OBSERVED, Table
from rules.words import text

log = logging.getLogger(__name__)

DISTRIBUTION: Final = "table-controller"
STOP_S: Final = 4.5
"""A stop that has not ended by then is broken off."""
SCAN_S: Final = 3.0
"""The first look for the devices; READY=1 does not wait longer for one that is slow to open."""
RETRY_S: Final = 1.0
"""Between attempts to write while the disk refuses."""
REPLAY_READY_S: Final = 2.0
RECORD_S: Final = 5.0
FLIGHTS_MAX: Final = 4
"""Flight records that may wait for the disk. Policy: one more is dropped and logged."""
CONTROLLER: Final = "controller"
"""Source of the controller's own facts."""
QUIET_PHASES: Final = frozenset({Phase.FERME, Phase.VERIFIEE, Phase.MISES_OUVERTES, Phase.REGLEMENT, Phase.LITIGE})
"""Maintenance may begin in these."""


class App:
    """One daemon for one table."""

    def __init__(self, config: Config, clock: Clock, notifier: Notifier) -> None:
        """Open the journal and make every part; raises ControllerError (journal, key), ValueError (`[[local]]`)."""
        self.config, self._clock, self._notifier = config, clock, notifier
        self._version = version(DISTRIBUTION)
        self._run_id = secrets.token_hex(8)
        self._table = f"{config.site}/{config.table}"
        folder = Path(config.state.folder)
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        key = key_of(folder, config.state.signing_key_file)
        owner = Owner(table=self._table, game=config.game.id, version=self._version, boot=boot_id())
        self._journal = Journal(folder, owner, key, clock)
        try:
            self._make(folder, key)
        except BaseException:
            self._journal.abandon()
            raise

    def _make(self, folder: Path, key: SigningKey) -> None:
        config, clock, journal = self.config, self._clock, self._journal
        before = restored(journal.found, config.game)
        kept = before.controller
        self._supervisor = Supervisor(clock)
        self._thread = JournalThread(journal, self._beat("journal:tidy"))
        self._alarms = AlarmBook(kept.get("alarms", ()))
        self._lamps_on = dict[str, bool](kept.get("lamps", {}))
        self._config_digest, self._config_before = config.digest(), kept.get("config")
        self._before_maintenance = self._kept_state(kept.get("maintenance"))
        self._lag = LagMeter(clock)
        self._recordings: asyncio.Queue[Recording] = asyncio.Queue(FLIGHTS_MAX)
        self._recorded: asyncio.Future[Path] | None = None
        self._flight = Flight(
            seconds=config.flight.seconds,
            ring_bytes=config.flight.ring_bytes,
            lines=[line for device in config.devices.values() for line in device.lines],
            mono_ns=clock.mono_ns,
            sink=self._sink,
        )
        self._sequencer = Sequencer(
            table=Table(config.game, config.house),
            state=before.state if journal.found.earlier is None else after_restart(before.state, clock.mono_ns()),
            scribe=self._scribe(before, key),
            react=self._react,
            told=self._told,
            controller=self._controller,
            flight=self._flight,
            snapshots=self._snapshots,
            clock=clock,
            beat=self._beat("sequencer"),
        )
        self._instruments = Instruments(config, self._sequencer.put, self._flight, clock)
        self._committed = self._sequencer.state
        """The law's state as of the last commit: what the floor may know."""
        self._committed_seq = journal.head.seq
        self._commit_since_ns: int | None = None
        self._known_newer: str | None = None
        """A result that the broker knows and our journal does not: a new epoch is due."""
        self._renamed = asyncio.Event()
        self._renamed.set()
        self._stopping = asyncio.Event()
        self._authoriser = Authoriser(self._table, config.keys, clock, remembered=kept.get("commands", {}))
        orders = Orders(
            sequencer=self._sequencer, instruments=self._instruments, alarms=self._alarms, clock=clock, doing=self
        )
        self._commands = Commands(authoriser=self._authoriser, execute=orders.execute, record=self._heard, clock=clock)
        self._local = LocalSocket(
            Path(config.state.socket),
            handle=lambda payload, peer: self._commands.handle(payload, peer=peer),
            queries={"state": self.state, "health": self.health, "result/last": self._last_result_body},
            vouched=config.local,
            beat=self._beat("local"),
        )
        self._last_result = next(iter(journal.last_coups(1)), None)
        self._floor = self._make_floor()
        self._outbox = Outbox(
            self._thread, publish=self._publish, ready=self._outbox_ready, clock=clock, beat=self._beat("outbox")
        )
        self._reporter = Reporter(
            table=self._table,
            boot=self._run_id,
            version=self._version,
            folder=folder,
            free_bytes_min=config.state.free_bytes_min,
            clock=clock,
            sources=self._sources(),
        )
        self._guard = Guard(
            folder=folder,
            free_bytes_min=config.state.free_bytes_min,
            clock=clock,
            alarm=self.alarm,
            clear=self.clear,
            note=self._sequencer.note,
            beat=self._beat("guard"),
        )

    def _scribe(self, before: Restored, key: SigningKey) -> Scribe:
        scribe = Scribe(
            table=self._table,
            game=self.config.game.id,
            found=self._journal.found,
            restored=before,
            key=key,
            clock=self._clock,
        )
        scribe.maintenance = self._before_maintenance is not None
        return scribe

    def _make_floor(self) -> Floor:
        mqtt = self.config.mqtt
        broker = Broker.at(
            mqtt.url,
            client_id(self.config.base, _machine_id()),
            ca_file=mqtt.ca_file,
            username=mqtt.username,
            password_file=mqtt.password_file,
            keepalive_s=mqtt.keepalive_s,
        )
        return Floor(
            broker,
            base=self.config.base,
            boot=self._run_id,
            version=self._version,
            epoch=self._journal.head.epoch,
            clock=self._clock,
            handle=lambda payload, name, retained: self._commands.handle(payload, name=name, retained=retained),
            health=self._report,
            older=self._older,
            alarm=self.alarm,
            clear=self.clear,
            also=self._local.tell,
            beat=self._beat("mqtt"),
        )

    def _sources(self) -> Sources:
        return Sources(
            devices=self._instruments.health,
            tasks=lambda: self._supervisor.reports,
            loop_lag_ms=self._lag.worst_ms,
            unsent=lambda: (self._outbox.unsent(), self._outbox.oldest_unsent_ms()),
            last_result=lambda: (self._last_result_body() or {}).get("id"),
            command_path=lambda: self._floor.command_path,
            mqtt=self._floor.health,
            journal=self._journal.figures,
            queues=self._queues,
            maintenance=lambda: self._before_maintenance is not None,
            epoch=lambda: self._sequencer.scribe.epoch,
        )

    def _report(self) -> wire.Health:
        return self._reporter.report()

    def _snapshots(self) -> Mapping[str, Any]:
        return self._instruments.snapshots()

    def _beat(self, task: str) -> Any:
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
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def _live(self, critical: asyncio.TaskGroup, others: asyncio.TaskGroup) -> None:
        own = self._supervisor
        self._begin()
        sequencer = own.critical(critical, "sequencer", self._sequencer.run)
        journal = own.critical(critical, "journal", self._commits)
        tidy = own.critical(critical, "journal:tidy", self._thread.run)
        outbox = own.critical(critical, "outbox", self._outbox.run, watched=False)
        devices = [
            own.restartable(others, name, run, self._down(name)) for name, run in self._instruments.tasks().items()
        ]
        local = own.restartable(others, "local", self._local.run)
        mqtt = own.restartable(others, "mqtt", self._floor.run)
        helpers = [
            own.restartable(others, "flight", self._write_flights),
            own.restartable(others, "guard", self._guard.run),
            own.restartable(others, "lag", self._lag.run),
            own.restartable(others, "watchdog", self._watch),
        ]
        await self._scanned()
        gc.collect()
        gc.freeze()  # what is made by now lives as long as the daemon
        self._notifier.ready()
        log.info("ready: %s %s, epoch %s", self._table, self.config.game.id, self._sequencer.scribe.epoch)
        await self._stopping.wait()

        own.stopping = True
        self._notifier.stopping()
        await _ended(*devices, local)
        self._sequencer.close()
        await sequencer
        await journal
        await _ended(outbox, tidy)
        await self._floor.stop()
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
        log.critical("leaving at once: %s; the journal is whole, its end is not marked", why)
        os._exit(75)

    def _begin(self) -> None:
        """What a start tells: who runs, what nobody watched, which devices are out of use."""
        found, now_ns = self._journal.found, self._clock.mono_ns()
        sequencer, state = self._sequencer, self._sequencer.state
        body: dict[str, Any] = {"config": self._config_digest, "version": self._version, "run": self._run_id}
        if self._config_before != self._config_digest:
            body["resolved"] = self.config.resolved()
        sequencer.note("start", body)
        if found.reason not in ("", "first"):
            self.alarm("journal:epoch", "journal_nouveau", text("journal_nouveau", reason=found.reason))
            self.clear("journal:epoch")
        for lamp, on in self._lamps_on.items():
            self._instruments.lamps.set(lamp, on)
        for role in state.lost:
            if role in self._instruments.decoders:
                self._instruments.decoders[role].lost(now_ns, "restart")  # so that its return is told
            elif role not in self._instruments.disabled:
                sequencer.tell(DeviceBack(at_ns=now_ns, source=CONTROLLER, device=role))
        for role in self._instruments.disabled:
            if role not in state.lost:
                sequencer.tell(DeviceLost(at_ns=now_ns, source=CONTROLLER, device=role, why="disabled"))
        for role in self.config.house.draw_devices:
            sequencer.tell(Doubtful(at_ns=now_ns, source=CONTROLLER, device=role, why=NOT_OBSERVED))
        self._tell_state()
        if self._last_result is not None:
            self._floor.tell_last(self._last_result)

    async def _scanned(self) -> None:
        """Wait until every device was looked for once."""
        try:
            async with asyncio.timeout(SCAN_S):
                await self._instruments.scan.done.wait()
        except TimeoutError:
            log.warning("not every device could be looked for in %s s", SCAN_S)

    def _down(self, task: str) -> Any:
        """What happens when a device's task fails: its devices are lost until it is back."""

        async def down(why: str) -> None:
            now_ns = self._clock.mono_ns()
            for role in self._instruments.roles_of(task):
                self._flight.lost(role, now_ns, "task_failed")
                await self._sequencer.put(self._instruments.decoders[role].lost(now_ns, "task_failed"))

        return down

    async def _watch(self) -> None:
        """Tell systemd that we live, as long as every critical task makes progress and no commit hangs."""
        deadline_s = self._notifier.watchdog_s
        pause_s = deadline_s / 3 if deadline_s is not None else 10.0
        limit_ns = int((deadline_s or 20.0) / 2 * 1e9)
        while True:
            late = self._supervisor.silent(limit_ns)
            since_ns = self._commit_since_ns
            if since_ns is not None and self._clock.mono_ns() - since_ns > limit_ns:
                late.append(f"commit for {(self._clock.mono_ns() - since_ns) / 1e9:.1f} s")
            if late:
                log.error("no progress: %s", ", ".join(late))
                self._notifier.status(f"no progress: {', '.join(late)}")
            else:
                self._notifier.alive()
                state = self._committed
                mode = ", maintenance" if self._before_maintenance is not None else ""
                self._notifier.status(f"{state.phase}, coup {state.coup_no}, unsent {self._outbox.unsent()}{mode}")
            self._supervisor.beat("watchdog")
            await asyncio.sleep(pause_s)

    # --- commits ---

    async def _commits(self) -> None:
        """Put what waits on the disk, tell the floor, until the stop."""
        while True:
            self._supervisor.beat("journal")
            if await self._sequencer.something_to_commit():
                await self._commit(self._sequencer.take())
            elif self._known_newer is not None:
                await self._rename(self._known_newer)
            elif self._supervisor.stopping and self._supervisor.reports["sequencer"].state == "ended":
                return

    async def _commit(self, commit: Commit) -> None:
        while True:
            self._commit_since_ns = self._clock.mono_ns()
            try:
                await self._thread.commit(commit.batch)
                break
            except JournalUnavailableError as error:
                self._commit_since_ns = None
                log.error("commit refused: %s", error)
                self.alarm("journal:unavailable", "journal_muet", text("journal_muet", why=error.reason))
                self._tell_state()  # so that people see the alarm although it has no row yet
                self._supervisor.beat("journal")
                await asyncio.sleep(RETRY_S)
        self._commit_since_ns = None
        commit.done()
        batch = commit.batch
        self._committed, self._committed_seq = commit.state, batch.rows[-1].seq
        if batch.epoch:
            self._outbox.restart(batch.messages)
        else:
            self._outbox.added(batch.messages)
        self.clear("journal:unavailable")
        self._tell_state()
        if batch.results:
            self._last_result = batch.results[-1].payload
            self._floor.tell_last(self._last_result)
        for message in batch.messages:
            self._local.tell(message.suffix, message.payload)

    async def _rename(self, known: str) -> None:
        """The broker knows a result of our epoch that our journal does not: go on under a new epoch."""
        unsent: Sequence[Message] = await self._thread.call(self._journal.unsent, 0, 2**31)
        if self._sequencer.pending_now():
            return  # commit that first, then look again
        epoch = self._sequencer.scribe.change_epoch("older", f"the broker knows {known}", unsent)
        self._known_newer = None
        await self._commit(self._sequencer.take())
        self._floor.change_epoch(epoch)
        self._renamed.set()

    def _older(self, known: str) -> None:
        ours = f"{self._sequencer.scribe.epoch}/{self._committed_seq}"
        self.alarm("journal:epoch", "journal_ancien", text("journal_ancien", known=known, ours=ours))
        self.clear("journal:epoch")
        self._known_newer = known
        self._renamed.clear()

    async def _outbox_ready(self) -> None:
        """Nothing goes out under an epoch that is about to be left."""
        await self._floor.ready()
        while not self._renamed.is_set():
            await self._renamed.wait()
            await self._floor.ready()

    async def _publish(self, suffix: str, payload: bytes) -> Acked:
        return await self._floor.publish(suffix, payload)

    # --- decisions ---

    def _react(self, decision: Decision) -> None:
        """What people see or hear at once, before the disk."""
        if isinstance(decision, Signal):
            if self._instruments.lamps.set(decision.lamp, decision.on):
                self._lamps_on[decision.lamp] = decision.on
        elif isinstance(decision, Announce | StakeRefused):
            self._instruments.show(decision.text)

    def _told(self, decision: Decision) -> None:
        """Alarms of the law, once the decision has its row."""
        if isinstance(decision, AlarmRaised):
            alarm = self._alarms.activate(decision.name, decision.code, decision.text, self._clock.utc())
        elif isinstance(decision, AlarmCleared):
            alarm = self._alarms.clear(decision.name)
        else:
            return
        if alarm is not None:
            self._sequencer.scribe.tell(_alarm_event(alarm))

    def alarm(self, name: str, code: str, sentence: str) -> None:
        """An alarm of the controller's own."""
        alarm = self._alarms.activate(name, code, sentence, self._clock.utc())
        if alarm is not None:
            self._sequencer.note("alarm", _plain(alarm), _alarm_event(alarm))

    def clear(self, name: str) -> None:
        """Its cause is gone."""
        alarm = self._alarms.clear(name)
        if alarm is not None:
            self._sequencer.note("alarm", _plain(alarm), _alarm_event(alarm))

    def alarm_changed(self, alarm: wire.Alarm, by: str) -> None:
        """A person has acknowledged it."""
        self._sequencer.note("ack", {"name": alarm.name, "by": by}, _alarm_event(alarm))

    def _heard(self, heard: Heard) -> None:
        """Every command that was given, the refused ones too."""
        body = {
            "id": heard.id,
            "name": heard.name,
            "by": heard.by,
            "role": heard.role,
            "via": heard.via,
            "code": heard.code,
        }
        sentence = heard.text or text("cmd_executee", name=heard.name, by=heard.by)
        self._sequencer.note("command", body, Told(kind="command", code=heard.code, text=sentence, data=body))

    def _controller(self) -> Mapping[str, Any]:
        """What is stored beside the law's state with each commit."""
        before = self._before_maintenance
        return {
            "alarms": self._alarms.snapshot(),
            "commands": self._authoriser.snapshot(),
            "lamps": dict(self._lamps_on),
            "maintenance": None if before is None else encode_state(before),
            "config": self._config_digest,
        }

    def _kept_state(self, body: object) -> TableState | None:
        return None if body is None else decode_state(body, self.config.game)

    # --- what stands ---

    def _state(self) -> wire.TableState:
        return table_state(
            self._committed,
            table=self._table,
            game=self.config.game.id,
            epoch=self._journal.head.epoch,
            seq=self._committed_seq,
            alarms=self._alarms.listed(),
            nonce=self._authoriser.nonce,
            maintenance=self._before_maintenance is not None,
            paytables={},
            clock=self._clock,
        )

    def _tell_state(self) -> None:
        self._floor.tell_state(wire.encode(self._state()))

    def state(self) -> dict[str, Any]:
        """Body of `state`."""
        return _plain(self._state())

    def health(self) -> dict[str, Any]:
        """Body of `health`."""
        return _plain(self._reporter.report())

    def _last_result_body(self) -> dict[str, Any] | None:
        body: dict[str, Any] | None = msgspec.json.decode(self._last_result) if self._last_result else None
        return body

    def _queues(self) -> Mapping[str, Mapping[str, wire.Gauge]]:
        sequencer = self._sequencer
        return {
            "inbox": {"peak": sequencer.inbox_peak},
            "pending": {"peak": sequencer.pending_peak},
            "journal": {"peak": self._thread.waiting_peak},
            "outbox": {"sent": self._outbox.sent, "refusals": self._outbox.refusals},
            "local": dict(self._local.counters),
            "loop": {"late": self._lag.late, "culprit": self._lag.last_culprit or None},
            **self._instruments.queues(),
        }

    # --- the controller's own commands ---

    async def replay(self, after_seq: int, limit: int) -> tuple[Sequence[bytes], int]:
        """Results after `seq`, sent again in order; their bodies and how many the broker has taken."""
        results = await self._thread.call(self._journal.results_after, after_seq, limit)
        sent = 0
        try:
            async with asyncio.timeout(REPLAY_READY_S):
                await self._outbox_ready()
            for payload in results:
                acked = await self._floor.publish("result", payload)
                if not acked.ok:
                    break
                sent += 1
        except (Disconnected, TimeoutError):
            log.warning("replay: the broker has taken %d of %d results", sent, len(results))
        return results, sent

    def sample(self, role: str, seconds: float, every_ms: int) -> float:
        """Live samples on `diag/<role>`."""
        return self._floor.sample(role, lambda: self._instruments.sample(role), seconds, every_ms)

    def log_level(self, level: str) -> None:
        """Log from this level on."""
        logs.set_level(level)

    def maintain(self, on: bool, by: str) -> str:
        """Enter or leave maintenance; why not, or empty.

        What is played in maintenance is marked and no coup: leaving it brings back the state before, with the devices
        as they are now.
        """
        state, before = self._sequencer.state, self._before_maintenance
        if on == (before is not None):
            return text("maintenance_deja", state="on" if on else "off")
        drawing = state.coup is not None and state.coup.launched and state.phase is Phase.MISES_OUVERTES
        if on and (state.phase not in QUIET_PHASES or drawing):
            return text("maintenance_impossible")
        self._sequencer.scribe.maintenance = on
        self._before_maintenance = state if on else None
        after = state if before is None else replace(before, lost=state.lost)
        self._sequencer.replace(after, "maintenance", {"on": on, "by": by})
        return ""

    async def record(self) -> Path:
        """Write a flight record now."""
        loop = asyncio.get_running_loop()
        recorded = self._recorded
        if recorded is None or recorded.done():
            recorded = self._recorded = loop.create_future()
            self._flight.want("command")
            self._sequencer.wake()
        async with asyncio.timeout(RECORD_S):
            return await asyncio.shield(recorded)

    def _sink(self, recording: Recording) -> None:
        try:
            self._recordings.put_nowait(recording)
        except asyncio.QueueFull:
            log.error("a flight record is dropped: %d wait for the disk", FLIGHTS_MAX)

    async def _write_flights(self) -> None:
        """Write flight records off the loop."""
        while True:
            recording = await self._recordings.get()
            path = await asyncio.to_thread(self._write_flight, recording)
            log.info("flight record %s", path)
            if self._recorded is not None and not self._recorded.done():
                self._recorded.set_result(path)

    def _write_flight(self, recording: Recording) -> Path:
        config = self.config
        header = {
            "v": 1,
            "game": config.game.id,
            "config": config.resolved(),
            "config_digest": self._config_digest,
            "version": self._version,
            "epoch": self._journal.head.epoch,
            "at": self._clock.utc(),
        }
        name = f"flight-{header['epoch']}-{recording.until_seq:09d}-{recording.reason}.jsonl"
        path = Path(config.state.folder) / "flight" / name
        return recording.write(path, header, config.flight.records, config.flight.records_bytes)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel these and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _alarm_event(alarm: wire.Alarm) -> Told:
    data = {"name": alarm.name, "active": alarm.active, "acked": alarm.acked}
    return Told(kind="alarm", code=alarm.code, text=alarm.text, data=data)


def _plain(message: wire.Message) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(message)
    return plain


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return boot_id()
