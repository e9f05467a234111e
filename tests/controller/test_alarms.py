"""The alarm book: latched until acknowledged and gone (R18), the same after a restart (R5)."""

import json

import msgspec
import pytest

from controller.alarms import AlarmBook

AT, LATER = "2026-01-31T20:00:00.000Z", "2026-01-31T20:05:00.000Z"


def names(book: AlarmBook) -> list[tuple[str, bool, bool]]:
    return [(alarm.name, alarm.active, alarm.acked) for alarm in book.listed()]


def raised(*more: str) -> AlarmBook:
    book = AlarmBook()
    for name in ("device:wheel", *more):
        assert book.activate(name, "appareil_perdu", "Appareil perdu", AT) is not None
    return book


def test_r18_an_alarm_stays_until_it_is_gone_and_acknowledged() -> None:
    book = raised()
    assert book.clear("device:wheel") is not None
    assert names(book) == [("device:wheel", False, False)]
    assert book.ack("device:wheel", "M. Chef", LATER) is not None
    assert names(book) == []


def test_r18_acknowledging_first_is_enough_once_the_cause_is_gone() -> None:
    book = raised("mqtt:link")
    acked = book.ack("device:wheel", "M. Chef", LATER)
    assert acked is not None
    assert (acked.acked_by, acked.acked_at, acked.since) == ("M. Chef", LATER, AT)
    assert names(book) == [("device:wheel", True, True), ("mqtt:link", True, False)]
    book.clear("device:wheel")
    assert names(book) == [("mqtt:link", True, False)]


def test_a_cause_that_returns_needs_a_new_acknowledgement() -> None:
    book = raised()
    book.clear("device:wheel")
    again = book.activate("device:wheel", "appareil_perdu", "Appareil perdu", LATER)
    assert again is not None
    assert (again.active, again.acked, again.since) == (True, False, LATER)


def test_the_same_again_is_no_change() -> None:
    book = raised()
    assert book.activate("device:wheel", "appareil_perdu", "Appareil perdu", LATER) is None
    changed = book.activate("device:wheel", "appareil_perdu", "Appareil perdu (débranché)", LATER)
    assert changed is not None
    assert changed.since == AT
    assert book.clear("mqtt:link") is None
    book.ack("device:wheel", "M. Chef", LATER)
    assert book.ack("device:wheel", "Mme Comite", LATER) is None
    book.clear("device:wheel")
    assert book.clear("device:wheel") is None


def test_an_unknown_alarm_is_refused_with_what_there_is() -> None:
    with pytest.raises(LookupError, match="there are: device:wheel"):
        raised().ack("device:whel", "M. Chef", AT)
    with pytest.raises(LookupError, match="there are: none"):
        AlarmBook().ack("x", "M. Chef", AT)


def test_r5_a_restart_changes_nothing() -> None:
    book = raised("mqtt:link")
    book.ack("mqtt:link", "M. Chef", LATER)
    restored = AlarmBook(json.loads(json.dumps(book.snapshot())))
    assert restored.listed() == book.listed()
    assert restored.activate("device:wheel", "appareil_perdu", "Appareil perdu", LATER) is None


def test_a_damaged_snapshot_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        AlarmBook([{"name": "x"}])
