"""`table-controller`: `run --config FILE` is the daemon, `check --config FILE` prints the resolved configuration."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from controller.app import App
from controller.clock import Clock
from controller.config import Config, toml
from controller.config_file import check_machine, load
from controller.errors import ConfigError, ControllerError
from controller.logs import logging_to_stderr
from controller.notify import Notifier

log = logging.getLogger("controller")

REFUSED = 2
"""Exit code for a configuration that is refused."""
OPENING_S = 60.0
"""A damaged journal of years may take so long to be set aside and salvaged (field case 93)."""
FAILED = 1
"""Exit code when the daemon cannot start, or a critical task has failed: systemd restarts."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a program; its exit code."""
    parser = argparse.ArgumentParser(prog="table-controller", description="Watches one table of a casino.")
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
    for word, meaning in (("run", "the daemon"), ("check", "check the configuration and print it with all defaults")):
        words.add_parser(word, help=meaning).add_argument("--config", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(argv)
    try:
        config = load(options.config)
        check_machine(config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return REFUSED
    if options.word == "check":
        print(toml(config.resolved()), end="")
        return 0
    return _run(config)


def _run(config: Config) -> int:
    """The daemon, until it is told to stop or a critical task fails."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # `kill -USR1` shows where every thread is
    with logging_to_stderr(config.log.level):
        log.info("configuration %s: %s", config.where, config.digest())
        try:
            asyncio.run(_live(config))
        except ControllerError as error:
            log.critical("%s", error)
            return FAILED
        except BaseExceptionGroup as failed:
            for leaf in leaves(failed):
                log.critical("ends: %s", leaf, exc_info=None if isinstance(leaf, ControllerError) else leaf)
            return FAILED
    return 0


async def _live(config: Config) -> None:
    notifier = Notifier()
    notifier.extend(OPENING_S)
    await App(config, Clock(), notifier).run()


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The exceptions inside nested groups."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


if __name__ == "__main__":
    sys.exit(main())
