"""Where configurations come from: a file, a shipped table, the header of a trace (`config_check` judges them).

`config/tables/*.toml` are the shipped tables and the reference of the form.
"""

from __future__ import annotations

import grp
import pwd
import ssl
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from controller.config import Config
from controller.config_check import from_data
from controller.errors import ConfigError, Problem, UsageError
from controller.signing import KeyFileError, read_key


def tables_folder() -> Path:
    """Where the shipped tables are: `config/tables` of the source tree, `controller/tables` when installed."""
    package = Path(__file__).parent
    source = package.parent / "config" / "tables"
    return source if source.is_dir() else package / "tables"


def shipped_tables() -> dict[str, Path]:
    """The shipped tables by name (`roue-de-la-chance`)."""
    return {path.stem: path for path in sorted(tables_folder().glob("*.toml"))}


def read_toml(path: Path) -> dict[str, Any]:
    """The file as plain data; raises ConfigError with line and column when it is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), [Problem("file", None, f"cannot be read: {error.strerror}")]) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), [Problem("file", None, f"is not TOML: {error}")]) from error


def load(path: Path) -> Config:
    """The configuration of this file; raises ConfigError with all its problems."""
    return from_data(read_toml(path), str(path))


def check_machine(config: Config) -> None:
    """What only this machine can tell: files that must be read, people of `[[local]]`; raises ConfigError."""
    problems: list[Problem] = []

    def tried(key: str, value: str, read: Callable[[str], object], allowed: str) -> None:
        try:
            read(value)
        except OSError as error:
            problems.append(Problem(key, value, f"cannot be read: {error.strerror}; {allowed}"))
        except (KeyError, ValueError, KeyFileError) as error:
            problems.append(Problem(key, value, f"{error.args[0]}; {allowed}"))

    key_file, password, ca = config.state.signing_key_file, config.mqtt.password_file, config.mqtt.ca_file
    if key_file:
        tried("state.signing_key_file", key_file, lambda path: read_key(Path(path)), "a key of `tablectl keygen FILE`")
    if password:
        tried("mqtt.password_file", password, lambda path: Path(path).read_text(), "a text file with the password")
    if ca:
        tried("mqtt.ca_file", ca, lambda path: ssl.create_default_context(cafile=path), "certificates in PEM")
    for number, person in enumerate(config.local, 1):
        if person.user:
            tried(f"local[{number}].user", person.user, pwd.getpwnam, "a user of this machine")
        else:
            tried(f"local[{number}].group", person.group, grp.getgrnam, "a group of this machine")
    if problems:
        raise ConfigError(config.where, problems)


def load_for_replay(header: Mapping[str, Any], path: Path | None = None, where: str = "header") -> Config:
    """The configuration of a trace: `path`, else the header's `config`, else the shipped table of the header's `game`.

    The header's `config` is an object of the file's shape (missing sections, and missing keys of `house`, `options` and
    the single-valued sections, are those of the shipped table of the game), the path of a file, or the name of a
    shipped table. `where` is the header's place in messages. Raises ConfigError or UsageError.
    """
    given = header.get("config")
    game_id = header.get("game")
    if path is not None or (isinstance(given, str) and given):
        named = path or _named(str(given), where)
        config = load(named)
        if game_id not in (None, config.game.id):
            raise UsageError(f"{where}: game is {game_id!r} but {str(named)!r} is a table of {config.game.id!r}")
        return config
    if given is not None and not isinstance(given, dict | str):
        raise UsageError(f"{where}: config must be an object, a path or a table name, not {given!r}")
    data: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    data.setdefault("game", game_id)
    if game_id not in (None, data["game"]):
        raise UsageError(f"{where}: game is {game_id!r} but its config says {data['game']!r}")
    return from_data(_completed(data, where), f"{where}: config")


def _named(name: str, where: str) -> Path:
    tables = shipped_tables()
    if name in tables:
        return tables[name]
    if not Path(name).is_file():
        raise UsageError(f"{where}: config {name!r} is neither a file nor a shipped table ({', '.join(tables)})")
    return Path(name)


def _completed(data: dict[str, Any], where: str) -> dict[str, Any]:
    """A partial configuration completed from the shipped table of its game."""
    for table in shipped_tables().values():
        shipped = read_toml(table)
        if shipped.get("game") == data["game"]:
            merged = shipped | data
            for section in ("house", "options", "mqtt", "state"):
                if isinstance(data.get(section), dict):
                    merged[section] = shipped.get(section, {}) | data[section]
            return merged
    existing = ", ".join(sorted(str(read_toml(table).get("game")) for table in shipped_tables().values()))
    raise UsageError(f"{where}: no shipped table plays {data['game']!r}; there are: {existing}")
