"""What every message of a table must satisfy: the published schema, and for results the chain of proof.

The schema is the product's own AsyncAPI document (`tablectl schema`); it is applied here by an independent validator,
where one is installed.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from typing import Any

from hil.daemon import run_tool
from hil.floor import Chain, Heard, RigError


class Contract:
    """Checks messages one after the other."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.chain: Chain | None = None
        """Set once the public key is known."""
        self.checked: dict[str, int] = {}
        """How many messages were validated, by channel address."""
        self._channels: list[tuple[str, re.Pattern[str], Any]] = []
        for name, channel in document["channels"].items():
            below = channel["address"].split("/", 3)[3]
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(below)))
            (message,) = channel["messages"]
            schema = {"$ref": f"#/components/schemas/{message}", "components": document["components"]}
            self._channels.append((name, pattern, _validator(schema)))

    @staticmethod
    async def published() -> Contract:
        """The contract as the product publishes it; raises RigError."""
        code, out, err = await run_tool(["schema"])
        if code != 0:
            raise RigError(f"tablectl schema ended with {code}: {err.strip()}")
        return Contract(json.loads(out))

    def begin_anew(self, heard: Heard) -> None:
        """Results before this one were missed for a known reason: the chain is checked from here."""
        if self.chain is not None and heard.body["id"] not in self.chain.seen:
            self.chain.last, self.chain.number = heard.body["prev_hash"], heard.body["result_no"] - 1

    def check(self, heard: Heard) -> list[str]:
        """What is wrong with this message, in words."""
        if not heard.payload:
            return []
        for name, pattern, validator in self._channels:
            if pattern.fullmatch(heard.suffix):
                self.checked[name] = self.checked.get(name, 0) + 1
                try:
                    body = heard.body
                except ValueError:
                    return [f"{heard.suffix}: not JSON: {heard.payload[:80]!r}"]
                errors = validator.iter_errors(body) if validator is not None else ()
                wrong = [f"{heard.suffix}: {error.json_path}: {error.message}" for error in errors]
                if heard.suffix == "result" and self.chain is not None and not wrong:
                    wrong += self.chain.check(heard.payload)
                return wrong
        return [f"{heard.suffix}: no such address in the contract"]


def _validator(schema: Mapping[str, Any]) -> Any:
    """A validator of this schema; None where jsonschema, a development package, is not installed."""
    try:
        module = importlib.import_module("jsonschema")
    except ImportError:
        return None
    return module.Draft202012Validator(schema)
