"""The table's own Ed25519 key: made once, kept with the state, its public half beside it for everybody to read.

Results, the journal's seal and its exports are signed with it. Formats: `signing.key` is the base64 of the 32 private
bytes (readable by the owner only), `signing.pub` the base64 of the 32 public bytes; signatures are base64.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from controller.errors import ControllerError
from controller.files import write_atomically

KEY_FILE: Final = "signing.key"
PUBLIC_FILE: Final = "signing.pub"


class KeyFileError(ControllerError):
    """The signing key cannot be used; the message says which file and what to do."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key that signs."""

    private: Ed25519PrivateKey
    public: str = field(init=False)
    """base64 of the 32 public bytes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "public", base64.b64encode(self.private.public_key().public_bytes_raw()).decode())

    def sign(self, data: bytes) -> str:
        """The signature over `data`, base64."""
        return base64.b64encode(self.private.sign(data)).decode()


def verify(public: str, data: bytes, sig: str) -> bool:
    """Is `sig` (base64) the signature over `data` by the key `public` (base64)? False for anything malformed."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
        key.verify(base64.b64decode(sig, validate=True), data)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def key_of(folder: Path, file: str = "") -> SigningKey:
    """The table's key: `file`, or that of the state folder, which is made on first start. Raises KeyFileError.

    The public half is written to `signing.pub` of the state folder in either case.
    """
    path = Path(file) if file else folder / KEY_FILE
    try:
        if not file and not path.exists():
            fresh = base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw())
            write_atomically(path, fresh + b"\n", mode=0o600)
        key = read_key(path)
        public = folder / PUBLIC_FILE
        text = key.public + "\n"
        if not public.exists() or public.read_text(errors="replace") != text:
            write_atomically(public, text.encode(), mode=0o644)
    except OSError as error:
        raise KeyFileError(f"signing key {path}: {error.strerror or error}") from None
    return key


def read_key(path: Path) -> SigningKey:
    """The key of a file; raises KeyFileError, or OSError where there is none."""
    if path.stat().st_mode & 0o077:
        raise KeyFileError(f"signing key {path} can be read by others: chmod 600 {path}")
    try:
        raw = base64.b64decode(path.read_bytes().strip(), validate=True)
        return SigningKey(Ed25519PrivateKey.from_private_bytes(raw))
    except (binascii.Error, ValueError):
        raise KeyFileError(
            f"signing key {path} is not the base64 of 32 bytes: restore it from its backup, or move it away for a new"
            " key (consumers must then be given the new signing.pub)"
        ) from None


def read_public(path: Path) -> str:
    """The public key (base64) of a file; raises KeyFileError, or OSError where there is none."""
    text = path.read_text(errors="replace").strip()
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise KeyFileError(f"public key {path} is not the base64 of 32 bytes") from None
    return text
