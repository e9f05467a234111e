"""The AsyncAPI 3 document of the floor contract, generated from the types of `controller.wire` (`tablectl schema`)."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from controller.commands import COMMANDS
from controller.wire import TOPICS, Topic

_PARAMETERS: Final = {
    "site": "the casino, as in the configuration",
    "table": "the apparatus, as in the configuration",
    "tableau": "number of the tableau, from 1",
    "name": "name of the command",
    "role": "role of the device in the configuration",
}
_ARGUMENTS: Final = {
    name: {"type": "object", "description": "the game's own"}
    if right.args is None
    else {"$ref": f"#/components/schemas/{right.args.__name__}"}
    for name, right in COMMANDS.items()
}
"""Schema of `cmd.args` by command; `nonce` may always be there."""
BASE: Final = "casino/{site}/{table}"


def document(version: str) -> dict[str, Any]:
    """The document as plain data; `version` is that of the product."""
    kinds = list(dict.fromkeys(row.message for row in TOPICS))
    arguments = {right.args for right in COMMANDS.values() if right.args is not None}
    schemas_of = [*kinds, *sorted(arguments, key=lambda kind: kind.__name__)]
    _, schemas = msgspec.json.schema_components(schemas_of, ref_template="#/components/schemas/{name}")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Table controller: floor contract",
            "version": version,
            "description": "MQTT 5, UTF-8 JSON. At least once: consumers keep ids. Times are labels, order is seq.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {channel(row): _channel(row) for row in TOPICS},
        "operations": {f"{'send' if row.sent else 'receive'}_{channel(row)}": _operation(row) for row in TOPICS},
        "components": {
            "messages": {
                kind.__name__: {
                    "name": kind.__name__,
                    "summary": (kind.__doc__ or "").splitlines()[0],
                    "contentType": "application/json",
                    "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
                }
                for kind in kinds
            },
            "schemas": schemas,
        },
    }


def channel(row: Topic) -> str:
    """Name of a row's channel: `settlement_tableau` for `settlement/{tableau}`."""
    return re.sub(r"\W+", "_", row.suffix).strip("_")


def _channel(row: Topic) -> dict[str, Any]:
    address = f"{BASE}/{row.suffix}"
    name = row.message.__name__
    commands = {} if row.sent else {"x-arguments": _ARGUMENTS}
    return {
        **commands,
        "address": address,
        "description": row.what,
        "parameters": {
            parameter: {"description": _PARAMETERS[parameter]} for parameter in re.findall(r"\{(\w+)\}", address)
        },
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
    }


def _operation(row: Topic) -> dict[str, Any]:
    reference = f"#/channels/{channel(row)}"
    operation: dict[str, Any] = {
        "action": "send" if row.sent else "receive",
        "channel": {"$ref": reference},
        "summary": row.what,
        "messages": [{"$ref": f"{reference}/messages/{row.message.__name__}"}],
        "bindings": {"mqtt": {"qos": 1, "retain": row.retained, "bindingVersion": "0.2.0"}},
    }
    if not row.sent:
        operation["reply"] = {
            "address": {"location": "$message.header#/responseTopic", "description": "else reply/{name}"},
            "channel": {"$ref": "#/channels/reply_name"},
            "messages": [{"$ref": "#/channels/reply_name/messages/Reply"}],
        }
    return operation
