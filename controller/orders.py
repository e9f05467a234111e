"""Carries authorised commands out: those of the law become facts, the others are the controller's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import UNSET

from controller import wire
from controller.clock import Clock
from controller.commands import COMMANDS, Authorised
from controller.commits import Commits
from controller.instruments import Instruments
from controller.logs import set_level
from controller.recorder import Recorder
from controller.sequencer import Sequencer
from controller.standing import Standing, plain
from controller.statistics import Statistics
from rules.decisions import Decision, Refused
from rules.facts import Fact
from rules.seance import CLOSED
from rules.words import text

DISK_S: Final = 20.0
"""A command whose row is not on the disk by then is answered `busy`: it was heard, it is not yet certain."""
FORM: Final = frozenset({"option_inconnue", "argument_manquant", "commande_impossible"})
"""Codes of the law for arguments that only the game can judge."""
RESULTS_MAX: Final = 1000
"""Results that one `replay` sends."""
SHOWN_MAX: Final = 20
"""Of these, how many stand in the reply itself."""


class Sample(Protocol):
    """Sends live samples of a device for a limited time; False where the floor's task does not run."""

    def __call__(self, role: str, take: Callable[[], Mapping[str, Any]], for_s: float, every_ms: int) -> bool:
        """`take` makes one sample."""
        ...


class Refuse(Exception):  # noqa: N818
    """A command cannot be carried out; the text says why, the requirement names the text of law where it is that."""

    def __init__(self, why: str, code: wire.Code = "rejected", requirement: str = "") -> None:
        super().__init__(why)
        self.code: wire.Code = code
        self.requirement = requirement


class Orders:
    """`execute` is what `controller.commands.Commands` calls."""

    def __init__(
        self,
        *,
        sequencer: Sequencer,
        instruments: Instruments,
        standing: Standing,
        commits: Commits,
        recorder: Recorder,
        statistics: Statistics,
        sample: Sample,
        restart: Callable[[str], None],
        health: Callable[[], wire.Health],
        mode: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """`sample` is `Floor.sample`, `mode` is `Floor.mode`, `restart` starts a task anew (`Supervisor.restart`)."""
        self._sequencer, self._instruments, self._standing = sequencer, instruments, standing
        self._commits, self._recorder, self._sample, self._report = commits, recorder, sample, health
        self._statistics = statistics
        self._restart, self._mode, self._clock = restart, mode, clock
        self._own: Mapping[str, Callable[[Authorised], Awaitable[tuple[str, dict[str, Any]]]]] = {
            "ack": self._ack,
            "replay": self._replay,
            "state": self._state,
            "health": self._health,
            "diag": self._diag,
            "selftest": self._selftest,
            "calibrate": self._calibrate,
            "reopen": self._reopen,
            "record": self._record,
            "reset_counters": self._reset_counters,
            "reset_statistics": self._reset_statistics,
            "log_level": self._log_level,
            "maintenance": self._maintenance,
        }
        assert set(self._own) == {name for name, right in COMMANDS.items() if not right.law}

    async def execute(self, command: Authorised) -> wire.Reply:
        """The reply, once the effect is committed."""
        try:
            if COMMANDS[command.name].law:
                said, data = await self._law(command)
            else:
                said, data = await self._own[command.name](command)
        except Refuse as refused:
            return wire.Reply(
                id=command.id,
                ok=False,
                code=refused.code,
                text=str(refused),
                requirement=refused.requirement or UNSET,
            )
        except TimeoutError:
            return wire.Reply(id=command.id, ok=False, code="busy", text=text("cmd_pas_encore_ecrite"))
        return wire.Reply(id=command.id, ok=True, code="ok", text=said, data=data)

    async def _law(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        return "", _decided(await self._asked(command.fact(self._clock.mono_ns())))

    async def _asked(self, fact: Fact) -> tuple[Decision, ...]:
        """The law's decisions on a fact, on the disk; raises Refuse with its refusal, TimeoutError while it is full."""
        if self._sequencer.full():
            raise TimeoutError
        async with asyncio.timeout(DISK_S):
            decisions = await self._sequencer.ask(fact)
        for decision in decisions:
            if isinstance(decision, Refused):
                code: wire.Code = "malformed" if decision.code in FORM else "rejected"
                raise Refuse(decision.text, code, decision.requirement)
        return decisions

    async def _written(self) -> None:
        """What the command changed is on the disk; raises TimeoutError while it is full."""
        async with asyncio.timeout(DISK_S):
            await self._sequencer.written()

    async def _ack(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        try:
            self._standing.ack(command.args["name"], command.by)
        except LookupError as error:
            known = ", ".join(alarm.name for alarm in self._standing.alarms.listed())
            raise Refuse(text("cmd_sans_alarme", name=command.args["name"], known=known or "-")) from error
        await self._written()
        return "", {}

    async def _replay(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        results, sent = await self._commits.replay(command.args["after_seq"], RESULTS_MAX)
        return "", {
            "results": len(results),
            "sent": sent,
            "more": len(results) == RESULTS_MAX,
            "last_seq": json.loads(results[-1])["seq"] if results else None,
            "first": [json.loads(payload) for payload in results[:SHOWN_MAX]],
        }

    async def _state(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        return "", self._standing.state_body()

    async def _health(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        return "", plain(self._report())

    async def _diag(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        role = self._role(command)
        if "ask" in command.args:
            return await self._answer(role, command.args["ask"], command, asks=True)
        seconds, every_ms = command.args["seconds"], command.args["every_ms"]
        sent = self._sample(role, lambda: self._instruments.sample(role), seconds, every_ms)
        return "", {"role": role, "seconds": seconds if sent else 0, "now": self._instruments.sample(role)}

    async def _selftest(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        """A device's own test where it has one; else what the controller finds wrong with itself."""
        if "role" in command.args:
            return await self._answer(self._role(command), "selftest", command)
        health = plain(self._report())
        troubles = [f"{role}: {d['state']}" for role, d in health["devices"].items() if d["state"] in ("lost", "stale")]
        troubles += [f"task {name}: {t['state']}" for name, t in health["tasks"].items() if t["state"] != "running"]
        troubles += [f"journal: {health['journal']['trouble']}"] if health["journal"].get("trouble") else []
        troubles += [] if health["disk"]["durable"] else ["state folder: not durable"]
        troubles += [] if health["mqtt"].get("connected") else ["mqtt: not connected"]
        if troubles:
            raise Refuse(text("cmd_autotest", troubles="; ".join(troubles)))
        return "", {"devices": sorted(health["devices"]), "tasks": sorted(health["tasks"])}

    async def _calibrate(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        """What the devices that learn have learned, and how one is put into service; or an order to one."""
        if "order" in command.args:
            return await self._answer(self._role(command), command.args["order"], command)
        roles = self._roles(command)
        samples = {role: self._instruments.sample(role) for role in roles}
        learned = {role: sample for role, sample in samples.items() if "learned" in sample}
        if not learned:
            raise Refuse(text("cmd_rien_a_calibrer", roles=", ".join(roles)))
        return self._instruments.guide(roles[0]) if "role" in command.args else "", learned

    async def _answer(
        self, role: str, order: str, command: Authorised, *, asks: bool = False
    ) -> tuple[str, dict[str, Any]]:
        """What the device answers; with `asks` only to what changes nothing; the rest while the table does not play."""
        args = {"value": command.args["value"]} if "value" in command.args else {}
        try:
            harmless = self._instruments.asks(role)
            if asks and order not in harmless:
                raise Refuse(text("cmd_appareil_change", order=order, role=role, known=", ".join(sorted(harmless))))
            orders = self._instruments.orders(role)
            if order not in orders:
                raise Refuse(text("cmd_appareil_sans_ordre", order=order, role=role, known=", ".join(sorted(orders))))
            if order not in harmless and not self._standing.maintenance and self._sequencer.state.phase not in CLOSED:
                raise Refuse(text("cmd_appareil_en_jeu", order=order, role=role))
            answer = await self._instruments.ask(role, order, args)
        except ValueError as error:
            raise Refuse(text("cmd_appareil", role=role, why=error)) from error
        if not answer.ok:
            raise Refuse(text("cmd_appareil", role=role, why=answer.text))
        return answer.text, {"role": role}

    async def _reopen(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        """Close the port of a device and open it anew; devices of lines share that of their chip."""
        task = self._instruments.task_of(self._role(command))
        self._restart(task)
        return "", {"task": task, "roles": self._instruments.roles_of(task)}

    async def _record(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        try:
            path = await self._recorder.record(self._sequencer.wake)
        except OSError as error:
            raise Refuse(text("cmd_non_enregistre", file=error.filename, why=error.strerror)) from error
        return text("cmd_enregistre", file=path.name), {"file": str(path)}

    async def _reset_counters(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        roles = self._roles(command)
        self._instruments.reset_counters(roles)
        return "", {"roles": roles}

    async def _reset_statistics(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        """The wheel was levelled or mended: its counts begin anew."""
        self._statistics.reset(command.by)
        await self._written()
        return "", {}

    async def _log_level(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        set_level(command.args["level"])
        return "", {"level": command.args["level"]}

    async def _maintenance(self, command: Authorised) -> tuple[str, dict[str, Any]]:
        on = command.args["on"]
        why_not = self._standing.maintain(on, command.by)
        if why_not:
            raise Refuse(why_not)
        self._mode("maintenance" if on else "")
        await self._written()
        return "", {"maintenance": on}

    def _role(self, command: Authorised) -> str:
        """The device that the command names; raises Refuse naming those that there are."""
        role: str = command.args.get("role", "")
        if role not in self._instruments.decoders:
            raise Refuse(text("cmd_sans_appareil", role=role, known=", ".join(self._instruments.decoders)))
        return role

    def _roles(self, command: Authorised) -> list[str]:
        """That device, or all where none is named."""
        return [self._role(command)] if "role" in command.args else list(self._instruments.decoders)


def _decided(decisions: Sequence[Decision]) -> dict[str, Any]:
    return {"decisions": [type(decision).__name__ for decision in decisions]}
