"""`tablectl`: reads its words, then loads only what the question needs."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from controller.errors import ConfigError, ControllerError, UnreachableError, UsageError

EXITS = "exit codes: 0 done, 1 the answer is no, 2 bad use or input, 3 not reachable"
MODULES = {
    "settle": "settle",
    "replay": "offline",
    "schema": "offline",
    "keygen": "offline",
    "journal": "journal",
    "results": "results",
}
"""Module by word; every other word talks to a table (`online`)."""


def parser() -> argparse.ArgumentParser:
    """The words of tablectl."""
    top = argparse.ArgumentParser(prog="tablectl", description="Looks at a table and asks things of it.", epilog=EXITS)
    top.add_argument("--config", type=Path, metavar="FILE", help="the table's TOML: its local socket, else its broker")
    top.add_argument("--broker", metavar="URL", help="mqtt://HOST:PORT or mqtts://HOST:PORT, together with --base")
    top.add_argument("--base", metavar="TOPIC", help="casino/SITE/TABLE")
    top.add_argument("--username", default="", help="user at the broker")
    top.add_argument("--password-file", type=Path, metavar="FILE", help="file with his password")
    top.add_argument("--ca-file", default="", metavar="FILE", help="CA of an mqtts broker")
    words = top.add_subparsers(dest="word", required=True, metavar="WORD")

    watch = words.add_parser("watch", help="live view; plain lines when not on a terminal")
    watch.add_argument("--plain", action="store_true", help="plain lines on a terminal too")
    watch.add_argument("--seconds", type=float, help="end after so long")
    words.add_parser("state", help="where the table stands")
    words.add_parser("health", help="how its instruments are; exit 1 when one of them is not ok")

    results = words.add_parser("results", help="results from the journal (--config) or as they come (--broker)")
    results.add_argument("--verify", type=Path, metavar="KEY", help="public key file: check hashes, signatures, chain")
    results.add_argument("--after", type=int, default=0, metavar="SEQ", help="only those after this seq")
    results.add_argument("--seconds", type=float, default=None, help="with --broker: listen so long")

    command = words.add_parser("cmd", help="give a command: cmd open minimum_cents=500 --key FILE --operator NAME")
    command.add_argument("name", metavar="NAME")
    command.add_argument("args", nargs="*", metavar="KEY=VALUE", help="VALUE as JSON, else as text")
    diag = words.add_parser("diag", help="live samples of a device, or its answer: diag wheel_sensor settings")
    diag.add_argument("role", metavar="ROLE")
    diag.add_argument("ask", nargs="?", metavar="QUESTION", help="a command of the device that changes nothing")
    diag.add_argument("value", nargs="?", metavar="VALUE")
    diag.add_argument("--seconds", type=int, default=10)
    selftest = words.add_parser("selftest", help="a device's own test, or the controller's")
    selftest.add_argument("role", nargs="?", metavar="ROLE")
    calibrate = words.add_parser(
        "calibrate", help="what devices have learned; with ROLE how one is put into service; or an order to it"
    )
    calibrate.add_argument("role", nargs="?", metavar="ROLE")
    calibrate.add_argument(
        "order", nargs="?", metavar="ORDER", help="a command of the device; the table closed if it changes something"
    )
    calibrate.add_argument("value", nargs="?", metavar="VALUE")
    for signed in (command, diag, selftest, calibrate):
        signed.add_argument("--key", type=Path, metavar="FILE", help="private key (`tablectl keygen`); else the kernel")
        signed.add_argument("--key-name", default="", help="its name in the config (default: the file's stem)")
        signed.add_argument("--operator", default=_user(), help="your name (default: the user)")
    command.add_argument("--second-key", type=Path, metavar="FILE", help="key of the second person (outcome)")
    command.add_argument("--second-key-name", default="", help="its name in the config (default: the file's stem)")
    command.add_argument("--second-operator", default="", help="name of the second person")

    journal = words.add_parser("journal", help="the table's journal: verify, export, show")
    journal.add_argument("what", choices=("verify", "export", "show"))
    journal.add_argument("file", nargs="?", type=Path, metavar="FILE", help="journal or export (default: of --config)")
    journal.add_argument("--key", type=Path, metavar="PUB", help="public key of the table, for the signatures")
    journal.add_argument("--after", type=int, default=0, metavar="SEQ", help="show: only rows after this one")

    replay = words.add_parser("replay", help="run a trace through the pipeline, print its decisions")
    replay.add_argument("trace", type=Path, metavar="TRACE")
    replay.add_argument("--config", dest="replay_config", type=Path, metavar="FILE", help="instead of the header's")
    words.add_parser("settle", help="the law as a function: JSON cases on stdin, answers on stdout")
    words.add_parser("schema", help="AsyncAPI document of the floor contract")
    keygen = words.add_parser("keygen", help="make a key pair; prints the public key for the config")
    keygen.add_argument("file", type=Path, metavar="FILE")
    return top


def _user() -> str:
    with contextlib.suppress(OSError, KeyError):  # a user id without a name
        return getpass.getuser()
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one word; the exit code."""
    options = parser().parse_args(argv)
    try:
        return run(options)
    except (UsageError, ConfigError) as error:
        print(f"tablectl {options.word}: {error}", file=sys.stderr)
        return 2
    except UnreachableError as error:
        print(f"tablectl {options.word}: {error}", file=sys.stderr)
        return 3
    except ControllerError as error:
        print(f"tablectl {options.word}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `tablectl ... | head`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - so that the interpreter's last flush says nothing
        return 0
    except KeyboardInterrupt:
        return 0


def run(options: argparse.Namespace) -> int:
    """Load the module of the word and do it."""
    module = importlib.import_module(f"controller.tablectl.{MODULES.get(options.word, 'online')}")
    code: int = module.run(options)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
