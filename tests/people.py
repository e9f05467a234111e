"""People who command a table in the tests: their keys, and envelopes as they sign them."""

import base64
import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.canonical import canonical
from controller.clock import rfc3339
from controller.config import Key, Role

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Person:
    """A key of the configuration and whoever holds it."""

    name: str
    role: Role
    operator: str
    secret: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def raw(self) -> bytes:
        """The public key, 32 bytes."""
        return self.secret.public_key().public_bytes_raw()

    @property
    def public(self) -> str:
        """The public key as the configuration spells it."""
        return base64.b64encode(self.raw).decode()

    @property
    def key(self) -> Key:
        """Its row in the configuration."""
        return Key(name=self.name, role=self.role, public=self.public)

    def sign(self, command: dict[str, Any]) -> str:
        """base64 signature over the canonical bytes."""
        return base64.b64encode(self.secret.sign(canonical(command))).decode()

    def command(self, command_name: str, args: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        """The `cmd` object, issued now; `changes` replace fields."""
        return {
            "id": f"c{next(_numbers)}",
            "name": command_name,
            "table": "demo/t-1",
            "issued_at": rfc3339(datetime.now(UTC)),
            "valid_s": 30,
            "operator": self.operator,
            "args": args or {},
            **changes,
        }

    def envelope(self, command_name: str, args: dict[str, Any] | None = None, **changes: Any) -> bytes:
        """A signed envelope."""
        return self.enclose(self.command(command_name, args, **changes))

    def enclose(self, command: dict[str, Any]) -> bytes:
        """The envelope of this `cmd`, signed."""
        return canonical({"cmd": command, "key": self.name, "sig": self.sign(command)})


COMITE = Person("comite-1", "comite", "Mme Comite")
CHEF = Person("chef-1", "chef", "M. Chef")
CROUPIER = Person("croupier-1", "croupier", "M. Croupier")
TECHNICIEN = Person("tech-1", "technicien", "Mme Technique")
ALL = (COMITE, CHEF, CROUPIER, TECHNICIEN)
KEYS = tuple(person.key for person in ALL)


def seconds_ago(seconds: float) -> str:
    """A label of that moment; negative = in the future."""
    return rfc3339(datetime.now(UTC) - timedelta(seconds=seconds))
