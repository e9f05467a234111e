"""Commands as tablectl sends them: an envelope, signed where a key is given (the floor contract)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from controller.canonical import CanonicalError, canonical
from controller.clock import Clock
from controller.errors import ControllerError, UsageError
from controller.signing import SigningKey, read_key

VALID_S: Final = 60


def arguments(words: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as arguments: a value that is JSON counts as such, any other is a text; raises UsageError."""
    args: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not KEY=VALUE")
        try:
            args[key] = json.loads(value)
        except (ValueError, RecursionError):
            args[key] = value
    return args


def envelope(
    name: str,
    args: Mapping[str, Any],
    *,
    table: str,
    operator: str,
    key: tuple[str, Path] | None,
    nonce: str = "",
    second: tuple[str, str, Path] | None = None,
) -> dict[str, Any]:
    """An envelope for `table` (`<site>/<table>`); raises UsageError.

    `key` is the name of a key in the table's configuration and the file of its private half; without one the local
    socket vouches for us. `second` is (operator, key name, key file) of the second person where two must sign.
    """
    if not operator:
        raise UsageError("who are you? give --operator NAME")
    command: dict[str, Any] = {
        "id": secrets.token_hex(8),
        "name": name,
        "table": table,
        "issued_at": Clock().utc(),
        "valid_s": VALID_S,
        "operator": operator,
        "args": {**args, **({"nonce": nonce} if nonce else {})},
    }
    try:
        if second is not None:
            person, key_name, file = second
            sig = _key(file).sign(canonical(command))
            command["args"] = {**command["args"], "second": {"operator": person, "key": key_name, "sig": sig}}
        spelled = canonical(command)
        if key is None:
            return {"cmd": command}
        return {"cmd": command, "key": key[0], "sig": _key(key[1]).sign(spelled)}
    except CanonicalError as error:
        raise UsageError(str(error)) from error


def _key(file: Path) -> SigningKey:
    try:
        return read_key(file)
    except OSError as error:
        raise UsageError(f"key {file}: {error.strerror}; `tablectl keygen FILE` makes one") from error
    except ControllerError as error:
        raise UsageError(str(error)) from error
