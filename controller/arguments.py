"""The arguments of each command: one type a command, and what is said to whoever gives others.

A key that a command does not know is refused and never passed over: `open` with a misspelt minimum must not open at the
usual one. What the values mean is the law's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.inspect import BoolType, IntType, LiteralType, StrType, StructType, Type, UnionType, type_info

from controller.wire import Message, Second
from rules.words import text

Word = Annotated[str, Meta(min_length=1)]
Value = int | Word
"""A result as the game spells it: a number, `"00"`, a colour."""


class NoArgs(Message, kw_only=True, frozen=True):
    """`interrupt`, `resume`, `last_coup`, `state`, `health`, `record`: nothing to say."""


class LimitsArgs(Message, kw_only=True, frozen=True):
    """`open`, `limits`: the minimum in cents, and maxima in cents by bet."""

    minimum_cents: int | UnsetType = UNSET
    maxima: dict[str, int] | UnsetType = UNSET


class CloseArgs(Message, kw_only=True, frozen=True):
    """`close`: for a while, or until the next seance."""

    end_of_seance: bool | UnsetType = UNSET


class AttestArgs(Message, kw_only=True, frozen=True):
    """`attest`: what was checked."""

    what: Word


class AnnounceArgs(Message, kw_only=True, frozen=True):
    """`announce`: what was said at the table."""

    code: Word


class StakeArgs(Message, kw_only=True, frozen=True):
    """`stake`: chips put down, or taken back with `remove`; their `cents`, or how many `jetons` of a colour."""

    spot: Word
    cents: int | UnsetType = UNSET
    jetons: int | UnsetType = UNSET
    chip: Word | UnsetType = UNSET
    player: Word
    tableau: int | UnsetType = UNSET
    remove: bool | UnsetType = UNSET


class ChoiceArgs(Message, kw_only=True, frozen=True):
    """`choice`: what a player decided about a stake, an offer, or the value of his chips of a colour (cents)."""

    player: Word
    what: Word
    value: Value
    tableau: int | UnsetType = UNSET


class ConfirmArgs(Message, kw_only=True, frozen=True):
    """`confirm`: the result as a person read it; without it, that the doubtful reading is right."""

    value: Value | UnsetType = UNSET


class ResolveArgs(Message, kw_only=True, frozen=True, rename={"verdict": "as"}):
    """`resolve`: a held coup is `valid` (with this outcome) or `void`, a doubtful `stake` `accepted` or `refused`."""

    verdict: Literal["valid", "void", "accepted", "refused"]
    outcome: Value | UnsetType = UNSET
    stake: Word | UnsetType = UNSET
    why: str | UnsetType = UNSET


class VoidArgs(Message, kw_only=True, frozen=True):
    """`void`: why the coup does not count."""

    why: str | UnsetType = UNSET


class OutcomeArgs(Message, kw_only=True, frozen=True):
    """`outcome`: the result by hand, and the second person who vouches for it (article 67-15)."""

    value: Value
    second: Second


class AckArgs(Message, kw_only=True, frozen=True):
    """`ack`: the alarm that was seen."""

    name: Word


class ReplayArgs(Message, kw_only=True, frozen=True):
    """`replay`: results after this row once more."""

    after_seq: Annotated[int, Meta(ge=0)] = 0


class DiagArgs(Message, kw_only=True, frozen=True):
    """`diag`: samples of a device, for how long and how often; or what to `ask` it, with a value where it takes one."""

    role: Word
    ask: Word | UnsetType = UNSET
    value: Value | UnsetType = UNSET
    seconds: Annotated[int, Meta(ge=1, le=300)] = 10
    every_ms: Annotated[int, Meta(ge=100, le=10_000)] = 200


class DeviceArgs(Message, kw_only=True, frozen=True):
    """`reopen`: one device."""

    role: Word


class CalibrateArgs(Message, kw_only=True, frozen=True):
    """`calibrate`: what a device, or all, have learned; or an `order` to one, with a value where it takes one."""

    role: Word | UnsetType = UNSET
    order: Word | UnsetType = UNSET
    value: Value | UnsetType = UNSET


class DevicesArgs(Message, kw_only=True, frozen=True):
    """`selftest`, `reset_counters`: one device, or all."""

    role: Word | UnsetType = UNSET


class LogLevelArgs(Message, kw_only=True, frozen=True):
    """`log_level`: how much is logged."""

    level: Literal["debug", "info", "warning", "error"]


class MaintenanceArgs(Message, kw_only=True, frozen=True):
    """`maintenance`: begin or end."""

    on: bool


def checked(kind: type[Message], args: Mapping[str, Any]) -> dict[str, Any]:
    """`args` with the defaults of `kind`; raises ValueError that names the wrong key and what is allowed (French)."""
    info = type_info(kind)
    assert isinstance(info, StructType)
    spelt = {field.encode_name: _spelt(field.type) for field in info.fields}
    for name in args:
        if name not in spelt:
            allowed = ", ".join(f"{known} ({what})" for known, what in spelt.items())
            raise ValueError(text("cmd_argument_inconnu", name=name, allowed=allowed or "aucun"))
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        try:
            if name in args:
                msgspec.convert(args[name], field.type)
            elif field.required:
                raise msgspec.ValidationError
        except msgspec.ValidationError:
            raise ValueError(text("cmd_argument", name=name, allowed=spelt[name])) from None
    return dict(msgspec.to_builtins(msgspec.convert(args, kind)))


def _spelt(kind: Type) -> str:
    """A type as the sender is told."""
    match kind:
        case IntType(ge=None):
            return "nombre entier"
        case IntType(ge=least, le=None):
            return f"nombre entier à partir de {least}"
        case IntType(ge=least, le=most):
            return f"{least}..{most}"
        case StrType():
            return "texte"
        case BoolType():
            return "true, false"
        case LiteralType(values=values):
            return ", ".join(map(str, values))
        case UnionType(types=types):
            return " ou ".join(map(_spelt, types))
        case StructType(fields=fields):
            return "objet avec " + ", ".join(field.encode_name for field in fields)
        case _:
            return "objet de nombres entiers"
