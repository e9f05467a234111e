"""Words that talk to a table: `state`, `health`, `cmd`, `diag`, `selftest`, `calibrate`, `watch`."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controller.config_file import load
from controller.errors import UnreachableError, UsageError
from controller.tablectl.envelope import arguments, envelope
from controller.tablectl.link import ANSWER_S, SELFTEST_S, Link


def run(options: argparse.Namespace) -> int:
    """Reach the table and do the word; the exit code."""
    if options.word == "watch":
        view = importlib.import_module("controller.tablectl.view")
        code: int = view.run(options, reach(options))
        return code
    with reach(options) as link:
        return WORDS[options.word](options, link)


def reach(options: argparse.Namespace) -> Link:
    """The way to the table that the options name; raises UsageError or UnreachableError."""
    if options.broker:
        if not options.base or options.base.strip("/").count("/") != 2:
            raise UsageError("--broker needs --base casino/SITE/TABLE")
        if not _is_broker(options.broker):
            allowed = "mqtt://HOST:PORT or mqtts://HOST:PORT; --username and --password-file say who you are"
            raise UsageError(f"--broker {options.broker}: {allowed}")
        password = _password(options.password_file)
        return _broker(options.broker, options.base, options.username, password, options.ca_file)
    if options.config is None:
        raise UsageError("which table? give --config FILE, or --broker URL with --base casino/SITE/TABLE")
    config = load(options.config)
    options.base = config.base
    try:
        local = importlib.import_module("controller.tablectl.local")
        link: Link = local.Local(Path(config.state.socket))
    except UnreachableError as unreachable:
        mqtt = config.mqtt
        try:
            password = _password(Path(mqtt.password_file) if mqtt.password_file else None)
            return _broker(mqtt.url, config.base, mqtt.username, password, mqtt.ca_file)
        except UnreachableError as error:
            raise UnreachableError(f"{unreachable}\n{error}") from error
    return link


def _is_broker(url: str) -> bool:
    try:
        parts = urlsplit(url)
        ours = parts.scheme in ("mqtt", "mqtts") and parts.username is None
        return ours and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        return False


def _broker(url: str, base: str, username: str, password: str, ca_file: str) -> Link:
    remote = importlib.import_module("controller.tablectl.remote")
    link: Link = remote.Remote(url, base, username, password, ca_file)
    return link


def _password(file: Path | None) -> str:
    try:
        return file.read_text().strip() if file is not None else ""
    except OSError as error:
        raise UsageError(f"password file {file}: {error.strerror}") from error


def _shown(data: Mapping[str, Any]) -> None:
    print(json.dumps(data, ensure_ascii=False, indent=2))


def _standing(link: Link, topic: str) -> dict[str, Any]:
    said = link.get(topic)
    if not said:
        raise UnreachableError(f"nothing stands on {topic}: the table has never been online here; is the base right?")
    return said


def _current(link: Link) -> None:
    """Raise UnreachableError when what was shown is only what the table said last."""
    if why := link.absent():
        raise UnreachableError(f"{why}: this is what it said last")


def _state(_options: argparse.Namespace, link: Link) -> int:
    _shown(_standing(link, "state"))
    _current(link)
    return 0


def _health(_options: argparse.Namespace, link: Link) -> int:
    said = _standing(link, "health")
    _shown(said)
    _current(link)
    troubled = [role for role, device in said["devices"].items() if device["state"] not in ("ok", "disabled")]
    troubled += [name for name, task in said["tasks"].items() if task["state"] != "running"]
    if troubled:
        print(f"not ok: {', '.join(troubled)}", file=sys.stderr)
    return 1 if troubled else 0


def _command(options: argparse.Namespace, link: Link) -> int:
    return _ordered(options, link, options.name, arguments(options.args))


def _diag(options: argparse.Namespace, link: Link) -> int:
    if options.ask:
        return _instrument(options, link)
    code = _ordered(options, link, "diag", {"role": options.role, "seconds": options.seconds}, quiet=True)
    if code == 0:
        for told in link.watch("diag", seconds=options.seconds):
            if told.topic == f"diag/{options.role}":
                print(json.dumps(told.body["sample"], ensure_ascii=False), flush=True)
    return code


def _instrument(options: argparse.Namespace, link: Link) -> int:
    said = {key: getattr(options, key, None) for key in ("role", "ask", "order", "value")}
    return _ordered(options, link, options.word, {key: value for key, value in said.items() if value})


def _ordered(
    options: argparse.Namespace, link: Link, name: str, args: Mapping[str, Any], *, quiet: bool = False
) -> int:
    """Give a command and show the reply; 1 when the answer is no."""
    key = (options.key_name or options.key.stem, options.key) if options.key else None
    second_key = getattr(options, "second_key", None)
    second = None
    if second_key is not None:
        second = (options.second_operator, options.second_key_name or second_key.stem, second_key)
    _, site, table = options.base.strip("/").split("/")
    state = link.get("state")  # while the table's clock is not trusted, its nonce proves that the command is new
    nonce = "" if state.get("clock_synchronised", True) else str(state["nonce"])
    asked = envelope(
        name, args, table=f"{site}/{table}", operator=options.operator, key=key, nonce=nonce, second=second
    )
    if why := link.absent():
        raise UnreachableError(why)
    reply = link.command(asked, SELFTEST_S if name == "selftest" else ANSWER_S)
    if not reply["ok"]:
        print(f"{name}: {reply['code']}: {reply['text']}", file=sys.stderr)
        return 1
    if not quiet:
        if reply["text"]:
            print(reply["text"])
        if reply["data"]:
            _shown(reply["data"])
    return 0


WORDS = {
    "state": _state,
    "health": _health,
    "cmd": _command,
    "diag": _diag,
    "selftest": _instrument,
    "calibrate": _instrument,
}
