"""Words that need no table: `replay`, `schema`, `keygen`."""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from importlib.metadata import version

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.asyncapi import document
from controller.errors import UsageError
from controller.replay import replay, write
from controller.signing import SigningKey


def run(options: argparse.Namespace) -> int:
    """Do one of them; the exit code."""
    return {"replay": _replay, "schema": _schema, "keygen": _keygen}[options.word](options)


def _replay(options: argparse.Namespace) -> int:
    """Every decision of the trace as a line of JSON; same trace, same bytes."""
    try:
        for line in write(replay(options.trace, options.replay_config or options.config)):
            sys.stdout.write(line + "\n")
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UsageError(f"{options.trace}: {error.strerror}") from error
    return 0


def _schema(_options: argparse.Namespace) -> int:
    json.dump(document(version("table-controller")), sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")
    return 0


def _keygen(options: argparse.Namespace) -> int:
    """A new private key in FILE (readable by the owner only), its public key on standard output."""
    key = SigningKey(Ed25519PrivateKey.generate())
    try:
        with os.fdopen(os.open(options.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(base64.b64encode(key.private.private_bytes_raw()).decode() + "\n")
    except FileExistsError as error:
        raise UsageError(f"{options.file} exists; a key is never overwritten") from error
    except OSError as error:
        raise UsageError(f"{options.file}: {error.strerror}") from error
    print(key.public)
    return 0
