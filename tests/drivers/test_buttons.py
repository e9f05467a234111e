"""Contacts: the time of the first edge, the confirmation of the quiet, and nothing that ever latches."""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.base import Edge
from drivers.buttons import FAMILY
from drivers.buttons.decoder import Contact, Options
from rules.facts import Announced, DeviceBack, DeviceLost, Doubtful, Fact, LidClosed, LidOpened

MS = 1_000_000
ROLE = "button.rien_ne_va_plus"
END = 10**12
SOON = 20_000 * MS


def edge(at_ms: float, level: int, seq: int = 0) -> Edge:
    return Edge(ROLE, level, round(at_ms * MS), seq)


def told(edges: list[Edge], options: Options | None = None, end_ns: int = END) -> list[Fact]:
    contact = Contact(ROLE, options or Options())
    return contact.feed(edges) + contact.tick(end_ns)


def pressed(at_ms: float) -> Announced:
    return Announced(at_ns=round(at_ms * MS), source=ROLE, code="rien_ne_va_plus")


def test_the_document_says_what_the_decoder_does() -> None:
    text = (Path(__file__).parents[2] / "drivers/buttons/PROTOCOL.md").read_text("utf-8")
    rows = re.findall(r"^\| \d+ \| `([0-9a-f ]+)`", text, re.MULTILINE)
    assert len(rows) == 10
    contact, facts = Contact(ROLE, Options()), []
    for row in rows:
        at_ns, kind, offset, _, line_seqno = struct.unpack("<QIIII", bytes.fromhex(row))
        assert offset == 23
        facts += contact.feed([Edge(ROLE, int(kind == 1), at_ns, line_seqno)])
    facts += contact.tick(END)
    stuck = Doubtful(at_ns=38_000 * MS, source=ROLE, device=ROLE, why="stuck")
    assert facts == [pressed(1000), pressed(6000), pressed(8000), stuck]
    assert {name: contact.health()[name] for name in ("presses", "pulses", "gaps")} == {
        "presses": 3,
        "pulses": 1,
        "gaps": 1,
    }


def test_case_54_twenty_bounces_are_one_press() -> None:
    bounces = [edge(1000 + n / 4, n % 2 == 0) for n in range(21)]
    assert told(bounces, end_ns=SOON) == [pressed(1000)]


def test_case_55_a_pulse_shorter_than_the_debounce_never_latches_the_button() -> None:
    assert told([edge(1000, 1), edge(1005, 0), edge(2000, 1)], end_ns=SOON) == [pressed(2000)]
    # the release was lost: the next press shows as a repeated level and the contact rests where it is
    lost_release = [edge(1000, 1), edge(3000, 1), edge(3100, 0), edge(4000, 1)]
    assert told(lost_release, end_ns=SOON) == [pressed(1000), pressed(4000)]


def test_a_button_held_down_is_told_as_stuck_once() -> None:
    contact = Contact(ROLE, Options(stuck_s=5))
    assert contact.feed([edge(1000, 1)]) == []
    assert contact.due_ns() == 1020 * MS
    assert contact.tick(1020 * MS) == [pressed(1000)]
    assert contact.due_ns() == 6000 * MS
    assert [type(fact) for fact in contact.tick(END)] == [Doubtful]
    assert contact.due_ns() is None


def test_a_lid_has_two_facts() -> None:
    options = Options(kind="lid")
    contact = Contact("lid", options)
    facts = contact.feed([Edge("lid", 1, 1000 * MS), Edge("lid", 0, 2000 * MS)]) + contact.tick(END)
    assert facts == [LidClosed(at_ns=1000 * MS, source="lid"), LidOpened(at_ns=2000 * MS, source="lid")]


def test_a_chip_that_goes_takes_what_was_settling_with_it() -> None:
    contact = Contact(ROLE, Options())
    assert contact.opened(0) == []
    contact.feed([edge(1000, 1)])
    assert contact.lost(1001 * MS, "unplugged") == [
        DeviceLost(at_ns=1001 * MS, source=ROLE, device=ROLE, why="unplugged")
    ]
    assert contact.lost(1002 * MS, "cannot_open") == []
    assert contact.tick(END) == []
    assert contact.health()["lost"] == "unplugged"
    assert contact.opened(2000 * MS) == [DeviceBack(at_ns=2000 * MS, source=ROLE, device=ROLE)]
    assert contact.feed([edge(3000, 1)]) + contact.tick(4000 * MS) == [pressed(3000)]
    assert contact.sample()["settled"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [({"kind": "pedal"}, "button or lid"), ({"settle_ms": 0}, "1 to 500"), ({"stuck_s": 0}, "1 to 3600")],
)
def test_impossible_options_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FAMILY.options(**options)


EDGES = st.lists(st.tuples(st.integers(1, 60_000), st.booleans()), max_size=30).map(
    lambda steps: [edge(sum(gap for gap, _ in steps[: n + 1]), int(level), n + 1) for n, (_, level) in enumerate(steps)]
)


@given(EDGES, st.lists(st.integers(0, 30), max_size=4))
def test_any_split_and_any_freeze_tell_the_same(edges: list[Edge], cuts: list[int]) -> None:
    whole = told(edges)
    contact, facts = Contact(ROLE, Options()), []
    bounds = [0, *sorted(min(cut, len(edges)) for cut in cuts), len(edges)]
    for begin, end in pairwise(bounds):
        thawed = Contact(ROLE, Options())
        thawed.restore(contact.snapshot())
        contact = thawed
        facts += contact.feed(edges[begin:end])
    assert facts + contact.tick(END) == whole
