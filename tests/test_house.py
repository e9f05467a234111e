"""The conventions of the house, as tests: what a reviewer would otherwise have to look for each time."""

import ast
import importlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.arguments import checked
from controller.commands import COMMANDS
from controller.tablectl import __main__ as tablectl
from controller.tablectl.envelope import arguments
from drivers import base
from rules import game, words

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("rules", "drivers", "controller", "hil")
TOP_LEVEL = {
    ".ci", ".gitignore", "ARCHITECTURE.md", "BENCHMARKS.md", "CHANGELOG.md", "DECISIONS.md", "LICENSE", "README.md",
    "config", "controller", "dev", "drivers", "hil", "pyproject.toml", "requirements-dev.lock", "requirements.lock",
    "rules", "systemd", "tests",
}  # fmt: skip
MADE_HERE = {
    ".git", ".venv", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__"
}  # fmt: skip
"""What tools leave behind; none of it is in the repository."""
ENTRIES = ("controller.__main__", "controller.tablectl.__main__", "hil.__main__", "hil.demo", "hil.vm.__main__")


def tree(folder: Path = ROOT) -> Iterator[Path]:
    """Every file of the project, without what tools leave."""
    for path in sorted(folder.iterdir()):
        if path.name in MADE_HERE or path.name.startswith(".coverage"):
            continue
        if path.is_dir():
            yield from tree(path)
        else:
            yield path


def sources(*rooms: str) -> list[Path]:
    return [path for room in rooms for path in tree(ROOT / room) if path.suffix == ".py"]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def test_the_top_level_is_as_described() -> None:
    here = {
        path.name for path in ROOT.iterdir() if path.name not in MADE_HERE and not path.name.startswith(".coverage")
    }
    assert here == TOP_LEVEL


def test_no_host_path_or_secret_of_a_workplace_is_in_the_tree() -> None:
    private = "-----BEGIN" + r"[A-Z ]*PRIVATE KEY"
    hosts = "|".join(
        ("pypi" + r"\.org", "python" + r"hosted\.org", "deb" + r"ian\.org", "npm" + r"js\.", "pi" + "wheels")
    )
    folders = "|".join(("/work" + "/", r"\.\./sha" + "red", "/var/tmp" + "/", "/home" + "/[a-z]"))
    forbidden = re.compile(f"{private}|{hosts}|{folders}")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tree()
        for match in [forbidden.search(path.read_text(errors="replace"))]
        if match
    ]
    assert not found


# --- the law ---------------------------------------------------------------------------------------------------------


def test_the_law_knows_no_floats() -> None:
    found = [
        place(path, node)
        for path in sources("rules")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        or (isinstance(node, ast.Name) and node.id == "float")
    ]
    assert not found


def spoken() -> tuple[set[str], set[str]]:
    """Literals outside the catalogue, and codes that are looked up in it by name."""
    literals: set[str] = set()
    asked: set[str] = set()
    for path in sources(*ROOMS):
        if path == ROOT / "rules/words.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                literals.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("words.text", "text") and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    asked.add(first.value)
    return literals, asked


def test_every_sentence_is_used_and_every_code_has_one() -> None:
    literals, asked = spoken()
    assert sorted(set(words.CATALOGUE) - literals) == []
    assert sorted(asked - set(words.CATALOGUE)) == []


def test_each_game_has_its_config_and_its_scenarios() -> None:
    tables = {path.stem: tomllib.loads(path.read_text())["game"] for path in (ROOT / "config/tables").glob("*.toml")}
    modules = {name: set(importlib.import_module(module).GAMES) for name, module in game.known_games().items()}
    assert set(tables.values()) <= set().union(*modules.values())
    assert [name for name, games in modules.items() if not games & set(tables.values())] == []
    played = {tomllib.loads(path.read_text())["table"] for path in (ROOT / "hil/scenarios").rglob("*.toml")}
    assert played == set(tables)


# --- devices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", base.known_families())
def test_each_device_has_its_protocol_its_simulator_and_its_tests(family: str) -> None:
    protocol = (ROOT / f"drivers/{family}/PROTOCOL.md").read_text()
    assert (ROOT / f"hil/devices/{family}.py").is_file()
    assert list((ROOT / "tests/drivers").rglob(f"*{family}*"))
    if base.load(family).kind == "bytes":
        frames = re.findall(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ ]){3,}[0-9A-Fa-f]{2}", protocol)
        assert len(set(frames)) >= 10


# --- modules ---------------------------------------------------------------------------------------------------------


def test_a_newcomer_finds_every_module_in_the_map() -> None:
    map_of_the_house = (ROOT / "ARCHITECTURE.md").read_text().partition("### Where to look")[2].partition("\n## ")[0]
    named: dict[str, set[str]] = {}
    room = ""
    for row in re.findall(r"^\| (.*)$", map_of_the_house, re.MULTILINE):
        room = row.partition("|")[0].strip() or room
        named.setdefault(room, set()).update(re.findall(r"`(\w+)/?`", row))
    described_elsewhere = {"games", *base.known_families()}  # their folders' own documents
    for room in ROOMS:
        for path in sources(room):
            if not described_elsewhere.intersection(path.relative_to(ROOT).parts) and not path.stem.startswith("__"):
                assert path.stem in named[room], path


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the house that this file imports anywhere, or names for `import_module`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return names & set(known)


def test_every_module_is_reached_from_a_program() -> None:
    known = {module_of(path): path for path in sources(*ROOMS)}
    # what is found by name at run time counts too
    waiting = [
        *ENTRIES,
        *game.known_games().values(),
        *(f"drivers.{family}" for family in base.known_families()),
        *(f"controller.tablectl.{name}" for name in {*tablectl.MODULES.values(), "online"}),
    ]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += imported(known[name], known)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    assert sorted(set(known) - reached) == []


# --- documents and packages ------------------------------------------------------------------------------------------


def test_links_between_documents_lead_somewhere() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in tree()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text())
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert not found


def test_the_commands_of_the_readme_are_commands() -> None:
    shown = [
        shlex.split(line, comments=True)
        for line in re.findall("^cmd (.*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    ]
    assert len(shown) > 5
    for name, *words_given, option, key in shown:
        right = COMMANDS[name]
        assert (option, key.removesuffix("-1")) in {("--key", role) for role in right.roles}
        if right.args is not None:
            checked(right.args, arguments(words_given))


def test_the_changelog_tells_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(version)}\]", changes, re.MULTILINE)
    assert re.search(r"^### Operator must act$", changes, re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    """Package by name with its version; each has hashes and nothing else."""
    text = (ROOT / name).read_text()
    entries = re.findall(r"^([\w.-]+)==(\S+) ((?:\\\n    --hash=sha256:[0-9a-f]{64} ?)+)$", text, re.MULTILINE)
    rest = re.sub(r"^#.*\n|^\S+==\S+ \\\n|^    --hash=sha256:[0-9a-f]{64}(?: \\)?\n|^\n", "", text, flags=re.MULTILINE)
    assert rest == ""
    return {package: version for package, version, _ in entries}


def test_locks_pin_every_package_by_hash_and_name_no_host() -> None:
    table, checks = pins("requirements.lock"), pins("requirements-dev.lock")
    assert table.items() <= checks.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    assert {re.split(r"[^\w.-]", name)[0] for name in wanted} <= set(table)
    extras = [name for extra in project["project"]["optional-dependencies"].values() for name in extra]
    assert {re.split(r"[^\w.-]", name)[0] for name in extras} <= set(checks)
