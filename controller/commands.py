"""Commands: who may ask for what, and how an envelope is judged before anybody obeys it.

An envelope is `{"cmd": {id, name, table, issued_at, valid_s, operator, args}, "key", "sig"}`; `sig` is base64 Ed25519
over the canonical bytes of `cmd` by a key that the configuration lists with its role. Over the local socket the kernel
vouches for the peer, and `key` and `sig` may be missing. The order of the checks is that of `Authoriser.check`; each
refusal has its own code. A command is judged by the time at which it was issued, so that yesterday's "close" is never
obeyed today (field case 40); while the clock is not synchronised only the local socket counts, or `args.nonce` equal to
the current `state.nonce` (then a command may also seem to come from the future, for such a clock is behind).

Two persons (`outcome`, article 67-15): `args.second` is `{"operator", "key", "sig"}`, where another person signs with
another key the canonical bytes of the same `cmd` without `args.second`; then the first signs the whole.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from controller import arguments, wire
from controller.canonical import CanonicalError, canonical, parse
from controller.clock import Clock, rfc3339
from controller.config import Key
from rules.facts import Commanded
from rules.words import text

log = logging.getLogger(__name__)

MAX_BYTES: Final = 16_384
"""A command is a few hundred bytes; anything near this is no command."""
DEEPEST: Final = 16
"""Lists and objects within each other; what is deeper cannot be stored for certain."""
FUTURE: Final = timedelta(seconds=30)
"""How far the sender's clock may be ahead of ours."""
KEPT: Final = 32
"""Accepted ids that are remembered even after their validity, should the clock be set back: few, for they are written
with every commit, twice."""
MOST: Final = 4096
"""Accepted ids still valid beyond which nothing more is accepted (`busy`): 13 a second for five minutes."""
UNPROVEN: Final = frozenset({"malformed", "unknown", "retained", "unsigned", "bad_signature", "wrong_table", "busy"})
"""Codes that a stranger can provoke at will (field case 95)."""
BURST: Final = 120
"""Such refusals, and questions (`Right.asks`), are recorded one by one up to so many, then one a second."""

COMITE, CHEF, CROUPIER, TECHNICIEN = "comite", "chef", "croupier", "technicien"
ANY: Final = (COMITE, CHEF, CROUPIER, TECHNICIEN)


@dataclass(frozen=True, slots=True)
class Right:
    """Who may give a command."""

    roles: tuple[str, ...]
    local: bool = False
    """Anybody whom the local socket knows may give it too."""
    law: bool = True
    """It becomes a fact for the law; else the controller itself carries it out."""
    two_persons: bool = False
    asks: bool = False
    """It changes nothing: a screen that asks and asks must not fill the journal (`BURST`)."""
    args: type[wire.Message] | None = arguments.NoArgs
    """None: the game says which."""


COMMANDS: Final[Mapping[str, Right]] = {
    "open": Right((COMITE,), args=arguments.LimitsArgs),
    "close": Right((COMITE,), args=arguments.CloseArgs),
    "interrupt": Right((COMITE,)),
    "resume": Right((COMITE,)),
    "limits": Right((COMITE,), args=arguments.LimitsArgs),
    "options": Right((COMITE,), args=None),
    "attest": Right(ANY, args=arguments.AttestArgs),
    "announce": Right((CROUPIER,), local=True, args=arguments.AnnounceArgs),
    "stake": Right((CROUPIER,), local=True, args=arguments.StakeArgs),
    "choice": Right((CROUPIER,), local=True, args=arguments.ChoiceArgs),
    "confirm": Right((CROUPIER,), local=True, args=arguments.ConfirmArgs),
    "last_coup": Right((CHEF, COMITE)),
    "ack": Right((CHEF, COMITE), law=False, args=arguments.AckArgs),
    "resolve": Right((CHEF, COMITE), args=arguments.ResolveArgs),
    "void": Right((CHEF, COMITE), args=arguments.VoidArgs),
    "outcome": Right((CHEF,), two_persons=True, args=arguments.OutcomeArgs),
    "replay": Right(ANY, law=False, asks=True, args=arguments.ReplayArgs),
    "state": Right(ANY, law=False, asks=True),
    "health": Right(ANY, law=False, asks=True),
    "diag": Right((TECHNICIEN,), law=False, args=arguments.DiagArgs),
    "selftest": Right((TECHNICIEN,), law=False, args=arguments.DevicesArgs),
    "calibrate": Right((TECHNICIEN,), law=False, args=arguments.CalibrateArgs),
    "reopen": Right((TECHNICIEN,), law=False, args=arguments.DeviceArgs),
    "record": Right((TECHNICIEN,), law=False),
    "reset_counters": Right((TECHNICIEN,), law=False, args=arguments.DevicesArgs),
    "reset_statistics": Right((TECHNICIEN,), law=False),
    "log_level": Right((TECHNICIEN,), law=False, args=arguments.LogLevelArgs),
    "maintenance": Right((TECHNICIEN,), law=False, args=arguments.MaintenanceArgs),
}
"""Every command and its roles: the one place."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom the kernel names at the other end of the local socket."""

    who: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorised:
    """A command that may be obeyed: `args` are those of the law (no nonce; `second` is the second person's name)."""

    id: str
    name: str
    by: str
    role: str
    args: Mapping[str, Any]
    via: str
    """Name of the key, or of the local peer."""

    def fact(self, at_ns: int) -> Commanded:
        """The fact that the law hears (commands with `Right.law`)."""
        return Commanded(at_ns=at_ns, source="command", name=self.name, by=self.by, role=self.role, args=self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A command and what became of it: for the journal and the `event` of kind `command`."""

    id: str | None
    name: str
    by: str
    role: str
    via: str
    code: str
    text: str


class Refusal(Exception):  # noqa: N818
    """A command is not obeyed: `code` of the contract and a French sentence."""

    def __init__(self, code: wire.Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code: wire.Code = code
        self.text = sentence


@dataclass(slots=True, kw_only=True)
class Claim:
    """What an envelope says about itself, as far as it could be read: for the reply and the journal."""

    id: str | None = None
    name: str = ""
    by: str = ""
    role: str = ""
    via: str = ""


@dataclass(slots=True)
class Authoriser:
    """Judges envelopes. Keep `snapshot()` with every accepted command, in its commit, and give it back as `remembered`.

    `table` is `<site>/<table>`. Raises ValueError when a listed key is no Ed25519 public key.
    """

    table: str
    keys: Iterable[Key]
    clock: Clock
    remembered: Mapping[str, str] = field(default_factory=dict)
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    """For `state.nonce`; another one after every accepted command."""
    _keys: dict[str, tuple[str, Ed25519PublicKey]] = field(init=False)
    _accepted: dict[str, str] = field(init=False)
    """Until when (RFC 3339) by `<via>/<id>`, oldest first."""

    def __post_init__(self) -> None:
        self._keys = {key.name: (key.role, Ed25519PublicKey.from_public_bytes(key.raw)) for key in self.keys}
        self._accepted = dict(self.remembered)

    def snapshot(self) -> dict[str, str]:
        """The accepted ids that must not be accepted again, as plain data."""
        return dict(self._accepted)

    def check(
        self, payload: bytes, *, name: str | None = None, retained: bool = False, peer: Peer | None = None, claim: Claim
    ) -> Authorised:
        """The command in `payload`, or Refusal; `claim` is filled in either case.

        `name` is that of the topic and `peer` None; on the local socket `peer` is known and `name` None.
        """
        if retained:
            self.glance(payload, claim)
            raise Refusal("retained", text("cmd_retained"))
        envelope, signed = self._read(payload, claim)
        command = envelope.cmd
        right = COMMANDS.get(command.name)
        if right is None:
            raise Refusal("unknown", text("cmd_unknown", name=command.name, known=", ".join(COMMANDS)))
        if name is not None and name != command.name:
            raise Refusal("malformed", text("cmd_other_topic", name=command.name, topic=name))
        if command.table != self.table:
            raise Refusal("wrong_table", text("cmd_wrong_table", asked=command.table, table=self.table))
        roles = self._sender(envelope, signed, peer, claim)
        role = next((role for role in roles if role in right.roles), None)
        if role is None and right.local and peer is not None and roles:
            role = roles[0]
        if role is None:
            raise Refusal("unauthorised", text("cmd_unauthorised", name=command.name, roles=", ".join(right.roles)))
        claim.role = role
        memory = f"{claim.via}/{command.id}"
        if memory in self._accepted:  # before the age: a resend carries the time and the nonce of its first
            raise Refusal("repeated", text("cmd_repeated", id=command.id))
        self._fresh(command, local=peer is not None)
        args = {key: value for key, value in command.args.items() if key != "nonce"}
        if right.args is not None:
            try:
                args = arguments.checked(right.args, args)
            except ValueError as error:
                raise Refusal("malformed", str(error)) from None
        if right.two_persons:
            args["second"] = self._second(envelope, signed)
        self._remember(memory, command)
        return Authorised(id=command.id, name=command.name, by=command.operator, role=role, args=args, via=claim.via)

    def glance(self, payload: bytes, claim: Claim) -> None:
        """Read no more than what the reply must name."""
        with contextlib.suppress(Refusal):
            self._read(payload, claim)

    def _read(self, payload: bytes, claim: Claim) -> tuple[wire.Envelope, dict[str, Any]]:
        """The envelope, and the very value whose canonical bytes were signed."""
        if len(payload) > MAX_BYTES:
            raise Refusal("malformed", text("cmd_too_long", size=len(payload), most=MAX_BYTES))
        try:
            value = parse(payload)
            _bounded(value, DEEPEST)
            signed = value["cmd"] if isinstance(value, dict) and isinstance(value.get("cmd"), dict) else {}
            claim.id = signed["id"] if isinstance(signed.get("id"), str) else None
            claim.name, claim.by = str(signed.get("name", ""))[:64], str(signed.get("operator", ""))[:64]
            return msgspec.convert(value, wire.Envelope), signed
        except (CanonicalError, msgspec.ValidationError) as error:
            raise Refusal("malformed", text("cmd_malformed", why=error)) from None

    def _sender(
        self, envelope: wire.Envelope, signed: dict[str, Any], peer: Peer | None, claim: Claim
    ) -> tuple[str, ...]:
        """The roles of whoever vouches for the command: his key, or the kernel."""
        if not envelope.sig:
            if peer is None or not peer.roles:
                raise Refusal("unsigned", text("cmd_unsigned"))
            claim.via = f"local:{peer.who}"
            return peer.roles
        claim.via = envelope.key
        return (self._verified(envelope.key, envelope.sig, signed),)

    def _verified(self, key: str, sig: str, signed: Mapping[str, Any]) -> str:
        """The role of the key that signed the canonical bytes of `signed`."""
        if key not in self._keys:
            raise Refusal("bad_signature", text("cmd_unknown_key", key=key))
        role, public = self._keys[key]
        try:
            public.verify(base64.b64decode(sig, validate=True), canonical(signed))
        except (InvalidSignature, ValueError):  # ValueError: no base64
            raise Refusal("bad_signature", text("cmd_bad_signature", key=key)) from None
        return role

    def _fresh(self, command: wire.Command, *, local: bool) -> None:
        """Raise `stale` for a command that is too old, from the future, or that nothing proves to be new."""
        nonce = command.args.get("nonce")
        if nonce is not None and nonce != self.nonce:
            raise Refusal("stale", text("cmd_old_nonce"))
        issued, now = _moment(command.issued_at), self.clock.now()
        if now - issued > timedelta(seconds=command.valid_s):
            raise Refusal("stale", text("cmd_stale", issued=command.issued_at, valid=command.valid_s))
        if not local and not self.clock.synchronised():
            # A clock that nobody has set yet is behind: what is old even by it is old, what seems early may be new.
            if nonce is None:
                raise Refusal("stale", text("cmd_no_clock"))
        elif issued - now > FUTURE:
            raise Refusal("stale", text("cmd_from_future", issued=command.issued_at))

    def _second(self, envelope: wire.Envelope, signed: dict[str, Any]) -> str:
        """Name of the second person, who has signed the same command with a key of his own."""
        second = msgspec.convert(signed["args"]["second"], wire.Second)
        alone = {**signed, "args": {key: value for key, value in signed["args"].items() if key != "second"}}
        self._verified(second.key, second.sig, alone)
        first = self._keys.get(envelope.key)  # none where the kernel vouches for him
        one_key = first is not None and first[1] == self._keys[second.key][1]  # also when it is listed under two names
        if one_key or _person(second.operator) == _person(envelope.cmd.operator):
            raise Refusal("unauthorised", text("deux_personnes"))
        return second.operator

    def _remember(self, memory: str, command: wire.Command) -> None:
        now = self.clock.now()
        for known, label in list(self._accepted.items()):
            if len(self._accepted) <= KEPT:
                break
            if _moment(label) < now:
                del self._accepted[known]
        if len(self._accepted) >= MOST:
            raise Refusal("busy", text("cmd_busy"))
        until = max(now, _moment(command.issued_at)) + timedelta(seconds=command.valid_s)
        self._accepted[memory] = rfc3339(until)
        self.nonce = secrets.token_hex(8)


Execute = Callable[[Authorised], Awaitable[wire.Reply]]
"""Carries a command out and answers once its effect is committed: code `ok`, `rejected` or `busy` (or Refusal)."""


class Commands:
    """From a payload to its reply, for the floor and the local socket alike.

    `handle` never raises for anything that a sender can do. `record` is told every command with its final code, the
    refused ones too; what it makes of it (a journal row, an `event` of kind `command`) is the caller's business.
    """

    def __init__(
        self,
        *,
        authoriser: Authoriser,
        execute: Execute,
        record: Callable[[Heard], None],
        clock: Clock,
        most_at_once: int = 16,
    ) -> None:
        self._authoriser = authoriser
        self._execute = execute
        self._record = record
        self._clock = clock
        self._room = most_at_once
        self._tokens, self._refilled_ns = BURST, clock.mono_ns()
        self.unrecorded = 0
        """Refusals of strangers, and questions, that were counted only."""

    async def handle(
        self, payload: bytes, *, name: str | None = None, retained: bool = False, peer: Peer | None = None
    ) -> wire.Reply:
        """The reply to `payload` from `cmd/<name>`, or from the local socket (`name` None, `peer` known)."""
        claim = Claim(name=name or "", via=f"local:{peer.who}" if peer else "")
        if self._room <= 0:
            self._authoriser.glance(payload, claim)
            return self._answered(claim, wire.Reply(id=claim.id, ok=False, code="busy", text=text("cmd_busy")))
        self._room -= 1
        try:
            command = self._authoriser.check(payload, name=name, retained=retained, peer=peer, claim=claim)
            reply = msgspec.structs.replace(await self._execute(command), id=command.id)
        except Refusal as refusal:
            reply = wire.Reply(id=claim.id, ok=False, code=refusal.code, text=refusal.text)
        except Exception:  # a bug in one command must not take the link or the socket from all others (field case 1)
            log.exception("command %s of %s", claim.name, claim.via)
            reply = wire.Reply(id=claim.id, ok=False, code="rejected", text=text("cmd_erreur", name=claim.name))
        finally:
            self._room += 1
        return self._answered(claim, reply)

    def _answered(self, claim: Claim, reply: wire.Reply) -> wire.Reply:
        """The reply, once the command is recorded, where it changes something or there is room for another row."""
        at_will = COMMANDS[claim.name].asks if reply.ok else reply.code in UNPROVEN
        if at_will and not self._worth_a_row():
            self.unrecorded += 1
            return reply
        self._record(Heard(**asdict(claim), code=reply.code, text=reply.text))
        return reply

    def _worth_a_row(self) -> bool:
        now_ns = self._clock.mono_ns()
        gained = (now_ns - self._refilled_ns) // 1_000_000_000
        self._refilled_ns += gained * 1_000_000_000
        self._tokens = min(BURST, self._tokens + gained)
        if self._tokens <= 0:
            return False
        self._tokens -= 1
        return True


def _moment(label: str) -> datetime:
    """An RFC 3339 label as a moment; Refusal when no calendar has it, or not the day after."""
    try:
        moment = datetime.fromisoformat(label).astimezone(UTC)
        _ = moment + timedelta(days=1)  # the end of its validity must be a moment too
        return moment
    except (ValueError, OverflowError) as error:
        raise Refusal("malformed", text("cmd_malformed", why=error)) from None


def _person(name: str) -> str:
    return " ".join(name.casefold().split())


def _bounded(value: object, depth: int) -> None:
    """Raise CanonicalError for what is nested deeper than `depth` or no 64-bit number: no consumer could read it."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise CanonicalError("a number of more than 64 bits")
    if isinstance(value, dict | list):
        if depth == 0:
            raise CanonicalError(f"nested deeper than {DEEPEST}")
        for inner in value.values() if isinstance(value, dict) else value:
            _bounded(inner, depth - 1)
