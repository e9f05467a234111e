"""What stands at the table besides the law's state: alarms, the last result, maintenance; and the body of `state`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from controller import wire
from controller.alarms import AlarmBook
from controller.clock import Clock
from controller.codec import encode
from controller.commands import Authoriser
from controller.results import Told
from controller.sequencer import Sequencer
from rules.decisions import AlarmCleared, AlarmRaised, Decision, Phase
from rules.limits import Limits
from rules.series import markers
from rules.state import TableState
from rules.words import text

log = logging.getLogger(__name__)

QUIET: Final = frozenset({Phase.FERME, Phase.VERIFIEE, Phase.MISES_OUVERTES, Phase.REGLEMENT, Phase.LITIGE})
"""Phases in which maintenance may begin."""


class Standing:
    """Owns the alarm book, the last committed state and maintenance. `sequencer` journals every change of them."""

    def __init__(
        self,
        *,
        table: str,
        game: str,
        sequencer: Sequencer,
        alarms: AlarmBook,
        authoriser: Authoriser,
        before_maintenance: TableState | None,
        committed_seq: int,
        last_result: bytes | None,
        clock: Clock,
    ) -> None:
        self.alarms = alarms
        self.state = sequencer.state
        """The law's state as of the last commit: what the floor may know."""
        self.seq = committed_seq
        self.epoch = sequencer.scribe.epoch
        self.last_result = last_result
        self.before_maintenance = before_maintenance
        """The state to go back to; None outside maintenance."""
        self._table, self._game, self._clock = table, game, clock
        self._sequencer, self._authoriser = sequencer, authoriser
        sequencer.scribe.maintenance = self.maintenance

    @property
    def maintenance(self) -> bool:
        """What is played now is no real coup."""
        return self.before_maintenance is not None

    # --- alarms ---

    def told(self, decisions: Sequence[Decision]) -> None:
        """Alarms of the law, once the decisions of a step have their row."""
        for decision in decisions:
            match decision:
                case AlarmRaised():
                    alarm = self.alarms.activate(decision.name, decision.code, decision.text, self._clock.utc())
                case AlarmCleared():
                    alarm = self.alarms.clear(decision.name)
                case _:
                    continue
            if alarm is not None:
                _log(alarm)
                self._sequencer.scribe.tell(alarm_event(alarm))

    def alarm(self, name: str, code: str, sentence: str) -> None:
        """An alarm of the controller's own."""
        self._changed(self.alarms.activate(name, code, sentence, self._clock.utc()))

    def clear(self, name: str) -> None:
        """Its cause is gone."""
        self._changed(self.alarms.clear(name))

    def ack(self, name: str, by: str) -> None:
        """A named person has seen it; raises LookupError naming the alarms that there are."""
        self._changed(self.alarms.ack(name, by, self._clock.utc()))

    def _changed(self, alarm: wire.Alarm | None) -> None:
        if alarm is not None:
            _log(alarm)
            self._sequencer.note("alarm", plain(alarm), alarm_event(alarm))

    # --- maintenance ---

    def maintain(self, on: bool, by: str) -> str:
        """Enter or leave maintenance; why not (French), or empty.

        What is played in maintenance is marked and no coup: leaving it brings back the state before, with the devices
        as they are now.
        """
        state, before = self._sequencer.state, self.before_maintenance
        if on == self.maintenance:
            return text("maintenance_deja", state="on" if on else "off")
        if on and (state.phase not in QUIET or (state.phase is Phase.MISES_OUVERTES and _drawing(state))):
            return text("maintenance_impossible")
        self._sequencer.scribe.maintenance = on
        self.before_maintenance = state if on else None
        after = state if before is None else replace(before, lost=state.lost)
        self._sequencer.replace(after, "maintenance", {"on": on, "by": by})
        return ""

    # --- what is said of it ---

    def committed(self, state: TableState, seq: int, epoch: str, last_result: bytes | None) -> None:
        """A commit is on the disk; `last_result` None leaves the one before."""
        self.state, self.seq, self.epoch = state, seq, epoch
        if last_result is not None:
            self.last_result = last_result

    def wire_state(self) -> wire.TableState:
        """`state` as of the last commit, with the alarms as they are now."""
        return table_state(
            self.state,
            table=self._table,
            game=self._game,
            epoch=self.epoch,
            seq=self.seq,
            alarms=self.alarms.listed(),
            nonce=self._authoriser.nonce,
            maintenance=self.maintenance,
            clock=self._clock,
        )

    def state_body(self) -> dict[str, Any]:
        """Body of `state`."""
        return plain(self.wire_state())

    def last_result_body(self) -> Mapping[str, Any] | None:
        """Body of `result/last`; None before the first."""
        body: dict[str, Any] | None = msgspec.json.decode(self.last_result) if self.last_result else None
        return body

    def last_result_id(self) -> str | None:
        """Its id."""
        body = self.last_result_body()
        return None if body is None else str(body["id"])


def table_state(
    state: TableState,
    *,
    table: str,
    game: str,
    epoch: str,
    seq: int,
    alarms: list[wire.Alarm],
    nonce: str,
    maintenance: bool,
    clock: Clock,
) -> wire.TableState:
    """What `state` says after the commit `seq`."""
    limits, coup, at_ns = state.limits, state.coup, clock.mono_ns()
    return wire.TableState(
        at=clock.utc(at_ns),
        at_ns=at_ns,
        clock_synchronised=clock.synchronised(),
        table=table,
        game=game,
        epoch=epoch,
        seq=seq,
        seance=state.seance,
        partie=state.partie,
        coup=coup.no if coup else state.coup_no,
        phase=state.phase,
        step=coup.step if coup else "",
        interrupted=state.interrupted,
        maintenance=maintenance,
        limits=None if limits is None else _limits(limits),
        options={**encode(state.public_options), **({"marqueurs": shown} if (shown := markers(state)) else {})},
        paytables={},  # no game here has one
        attestations=[wire.Attested(what=entry.what, role=entry.role, by=entry.by) for entry in state.attestations],
        last_direction=state.last_direction,
        alarms=alarms,
        nonce=nonce,
    )


def _limits(limits: Limits) -> wire.Limits:
    return wire.Limits(minimum=limits.minimum, minima=dict(limits.minima), maxima=dict(limits.maxima))


def _log(alarm: wire.Alarm) -> None:
    """For whoever reads the log of the machine and not the floor."""
    if alarm.active:
        log.warning("alarm %s: %s%s", alarm.name, alarm.text, ", seen" if alarm.acked else "")
    else:
        log.info("alarm %s is over%s", alarm.name, "" if alarm.acked else ", nobody has seen it")


def alarm_event(alarm: wire.Alarm) -> Told:
    """The event of an alarm as it now stands."""
    data = {"name": alarm.name, "active": alarm.active, "acked": alarm.acked}
    return Told(kind="alarm", code=alarm.code, text=alarm.text, data=data)


def plain(message: wire.Message) -> dict[str, Any]:
    """A message as plain data."""
    body: dict[str, Any] = msgspec.to_builtins(message)
    return body


def _drawing(state: TableState) -> bool:
    return state.coup is not None and state.coup.launched
