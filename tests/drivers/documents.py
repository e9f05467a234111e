"""Reads the examples out of a PROTOCOL.md: rows of three or more cells, of which the second is bytes in hex."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DRIVERS = Path(__file__).parents[2] / "drivers"
_HEX = re.compile(r"(?:[0-9A-F]{2} )*[0-9A-F]{2}")


class Example(NamedTuple):
    direction: str
    """`<` from the device, `>` to it."""
    raw: bytes
    meaning: str
    fact: str


def examples(family: str) -> list[Example]:
    """The hand-typed frames of a family, in the order of the document."""
    found = []
    for line in (DRIVERS / family / "PROTOCOL.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) >= 3 and cells[0] in ("<", ">") and _HEX.fullmatch(cells[1]):
            found.append(Example(cells[0], bytes.fromhex(cells[1]), cells[2], cells[3] if len(cells) > 3 else ""))
    assert len(found) >= 10, f"{family}: a protocol document has at least ten frames, this one {len(found)}"
    return found


def fields(text: str) -> dict[str, str]:
    """`a=1 b= c=x` as a dictionary."""
    return dict(part.split("=", 1) for part in text.split())
