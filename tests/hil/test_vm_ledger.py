"""The ledger of the machine's proof: each way in which a table could cheat a floor is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from controller.audit import export
from hil.floor import Chain, Heard
from hil.vm.ledger import Book, Ledger
from tests.controller.journals import opened


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Heard], str]:
    """Public key, messages as the floor hears them, and the export of three coups."""
    with opened(tmp_path_factory.mktemp("evening")) as table:
        told = [message for _ in range(3) for message in table.coup().messages]
        heard = [Heard(message.suffix, message.payload, False) for message in told]
        return table.key.public, heard, "\n".join(export(table.journal.path, table.key))


def ledger(public: str, heard: list[Heard]) -> Ledger:
    made = Ledger(Chain.of(public))
    for message in heard:
        made.hear(message)
    return made


def test_what_was_heard_is_what_was_kept(evening: tuple[str, list[Heard], str]) -> None:
    public, heard, kept = evening
    floor = ledger(public, [*heard, *heard])  # at least once: again is no fault
    assert floor.against(Book.of(kept)) == []
    assert [result["result_no"] for result in floor.results] == [1, 2, 3]
    assert floor.unsettled() == []
    assert [line["status"] for line in floor.lines_of("m1")] == ["win"] * 3


def without(suffix: str, number: int) -> Callable[[list[Heard], Book], tuple[list[Heard], Book]]:
    def change(heard: list[Heard], book: Book) -> tuple[list[Heard], Book]:
        gone = [message for message in heard if message.suffix == suffix][number]
        return [message for message in heard if message is not gone], book

    return change


def forgotten(heard: list[Heard], book: Book) -> tuple[list[Heard], Book]:
    return heard, replace(book, results=book.results[:-1])


def another(heard: list[Heard], book: Book) -> tuple[list[Heard], Book]:
    last = book.results[-1].replace(b'"valid"', b'"void"')
    return heard, replace(book, results=[*book.results[:-1], last])


def other_words(heard: list[Heard], book: Book) -> tuple[list[Heard], Book]:
    event = next(message for message in heard if message.suffix == "event")
    return [*heard, replace(event, payload=event.payload.replace(b"annonce", b"anomaly"))], book


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("result", 0), "result_no 2 after 0"),
        (without("result", 1), "result_no 3 after 1"),
        (without("result", 2), "is in the journal and was never heard"),
        (forgotten, "result 3 was heard and is not in the journal"),
        (another, "result 3 was heard and has other bytes in the journal"),
        (other_words, "came again with other bytes"),
    ],
)
def test_each_disagreement_is_named(
    evening: tuple[str, list[Heard], str],
    change: Callable[[list[Heard], Book], tuple[list[Heard], Book]],
    said: str,
) -> None:
    public, heard, kept = evening
    told, book = change(heard, Book.of(kept))
    assert any(said in fault for fault in ledger(public, told).against(book))


def test_a_coup_that_was_not_paid_is_named(evening: tuple[str, list[Heard], str]) -> None:
    public, heard, _ = evening
    told, _ = without("settlement/1", 1)(heard, Book([], []))
    floor = ledger(public, told)
    assert floor.unsettled() == [floor.results[1]["id"]]


def status(boot: str) -> Heard:
    return Heard("status", json.dumps({"boot": boot, "state": "online"}).encode(), False)


def test_the_state_of_an_earlier_run_is_not_that_of_the_next(evening: tuple[str, list[Heard], str]) -> None:
    alarm = {"name": "device:wheel", "active": True}
    state = Heard("state", json.dumps({"phase": "lance", "alarms": [alarm]}).encode(), False)
    floor = ledger(evening[0], [status("a"), state, Heard("event", b"", False)])
    assert floor.alarms() == {"device:wheel"}
    floor.hear(status("a"))
    assert floor.state["phase"] == "lance"
    floor.hear(status("b"))
    assert floor.state == {}


def row(kind: str, fact: Mapping[str, object] | None = None, *decisions: Mapping[str, object]) -> dict[str, object]:
    return {"seq": 1, "kind": kind, "body": {"fact": fact, "decisions": list(decisions)}}


def test_the_book_knows_what_was_committed_before_the_last_start() -> None:
    turn = {"in": "SpinStarted", "direction": "cw"}
    phase = {"out": "PhaseChanged", "coup": 4, "phase": "lance"}
    stakes = [{"out": "StakeAccepted", "id": f"m{n}", "cents": n} for n in (1, 2, 0)]
    rows = [row("start"), row("step", turn, phase, *stakes), row("start")]
    later = row("step", turn | {"direction": "ccw"}, phase | {"phase": "litige"})
    book = Book.of("\n".join(json.dumps(line) for line in (*rows, later)))
    left = book.before_the_last_start()
    assert (left.last_turn(), left.stands(), left.stakes()) == ("cw", (4, "lance"), {"m1": 1, "m2": 2})
    assert (book.last_turn(), book.stands()) == ("ccw", (4, "litige"))
    assert Book.of("").last_turn() is None
