"""`tablectl journal verify|export|show`: the journal as an auditor sees it, with or without a running daemon."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from controller.audit import export, show, verify, verify_export
from controller.config_file import load
from controller.errors import ControllerError, UsageError
from controller.journal_file import NAME
from controller.signing import KEY_FILE, SigningKey, read_key, read_public

SQLITE = b"SQLite format 3\0"


def run(options: argparse.Namespace) -> int:
    """Do one of them; the exit code."""
    try:
        return {"verify": _verify, "export": _export, "show": _show}[options.what](options)
    except ControllerError as error:
        raise UsageError(str(error)) from error


def _verify(options: argparse.Namespace) -> int:
    """Silent proof is no proof: `ok` on standard output, or the first bad row and exit 1."""
    path = journal_of(options)
    key = public_key(options.key)
    if _is_journal(path):
        bad = verify(path, key)
    else:
        with path.open(encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
            bad = verify_export(lines, key)
    print(f"ok {path}" if bad is None else str(bad))
    if bad is None and key is None:
        print("checked against the key that it carries; give --key PUB to prove whose it is", file=sys.stderr)
    return 0 if bad is None else 1


def _export(options: argparse.Namespace) -> int:
    key = signing_key(options)
    for line in export(journal_of(options), key):
        sys.stdout.write(line + "\n")
    return 0


def _show(options: argparse.Namespace) -> int:
    for line in show(journal_of(options), options.after + 1):
        sys.stdout.write(line + "\n")
    return 0


def journal_of(options: argparse.Namespace) -> Path:
    """The file named, or that of the configuration; raises UsageError."""
    if getattr(options, "file", None) is not None:
        path: Path = options.file
    elif options.config is not None:
        path = Path(load(options.config).state.folder) / NAME
    else:
        raise UsageError("which journal? give FILE, or --config FILE before the word")
    if not path.is_file():
        raise UsageError(f"no journal {path}")
    return path


def public_key(path: Path | None) -> str | None:
    """The public key of a file (`signing.pub`); raises UsageError."""
    try:
        return None if path is None else read_public(path)
    except ControllerError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"public key {path}: {error.strerror}") from error


def signing_key(options: argparse.Namespace) -> SigningKey:
    """The table's own key, by which an export is signed; raises UsageError."""
    if options.config is None:
        raise UsageError("an export is signed by the table: give --config FILE before the word")
    state = load(options.config).state
    path = Path(state.signing_key_file) if state.signing_key_file else Path(state.folder) / KEY_FILE
    try:
        return read_key(path)
    except OSError as error:
        raise UsageError(f"signing key {path}: {error.strerror}") from error


def _is_journal(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE
