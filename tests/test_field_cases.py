"""The page of field cases says the truth: what it names is there, and each starred case has a test of its number."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROWS = re.findall(r"^\| (\d+)( ★)? \| .*? \| (.*) \|$", (TESTS / "FIELD_CASES.md").read_text(), re.MULTILINE)
STARS = 25


def defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def named(shown: str) -> list[tuple[Path, str]]:
    """Files and functions of a row; a name belongs to the file before it."""
    found: list[tuple[Path, str]] = []
    file: Path | None = None
    for path, name in re.findall(r"\]\((\S+\.py)\)|`(\w+)`", shown):
        if path:
            file = TESTS / path
        elif file is not None:
            found.append((file, name))
    return found


def test_what_the_page_names_is_there() -> None:
    missing = [f"{case}: {name}" for case, _, shown in ROWS for file, name in named(shown) if name not in defined(file)]
    assert not missing
    assert [int(case) for case, _, _ in ROWS] == sorted({int(case) for case, _, _ in ROWS})


def test_each_starred_case_has_a_test_of_its_number() -> None:
    starred = [(case, shown) for case, star, shown in ROWS if star]
    assert len(starred) == STARS
    for case, shown in starred:
        pattern = rf"test_(field_)?case_(\d+_)*0?{case}[a-z]?_"
        assert any(re.match(pattern, name) for _, name in named(shown)), case
