"""The console line's decoder against its document: handshake, numbering, messages, texts, and other devices."""

from __future__ import annotations

import json
from binascii import crc_hqx
from collections.abc import Sequence
from typing import Any

import pytest

from drivers.base import load
from drivers.console.decoder import ADVICE, ROOM, SHOW_TRIES, SHOWS_MAX, WIRE_NS, Console, Options
from drivers.console.frames import FRAME_MAX, Frame, beginning, checksum, decode, encode
from rules.facts import (
    FACTS,
    Announced,
    ChipPlaced,
    Chosen,
    DeviceBack,
    DeviceLost,
    Doubtful,
    Fact,
    Origin,
    Overrun,
    PocketRead,
)
from rules.words import CATALOGUE
from tests.drivers.documents import Example, examples, fields

MS = 1_000_000
ROLE = "console"
START_NS = 10_000_000_000


def frame(body: str) -> bytes:
    return b"$%s*%04X\r\n" % (body.encode(), crc_hqx(body.encode(), 0xFFFF))


class Line:
    """A decoder and the time, with a device of which the test says every word."""

    def __init__(self, *, greeted: bool = True, **options: Any) -> None:
        self.decoder = Console(ROLE, Options(**options))
        self.now_ns = START_NS
        self.decoder.opened(self.now_ns)
        if greeted:
            assert self.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 12") == []
            assert self.heard() == ["0 C 0 HI b7"]

    def say(self, *bodies: str, after_ms: int = 100) -> list[Fact]:
        self.now_ns += after_ms * MS
        return self.decoder.feed(b"".join(frame(body) for body in bodies), self.now_ns)

    def heard(self) -> list[str]:
        """Bodies of what the controller has said since."""
        bodies = []
        for line in self.decoder.take_output().decode().splitlines():
            body = line[1:-5]
            assert line.encode() + b"\r\n" == frame(body)
            bodies.append(body)
        return bodies


def kinds(facts: Sequence[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def whys(facts: Sequence[Fact]) -> list[str]:
    return [fact.why for fact in facts if isinstance(fact, Doubtful | DeviceLost)]


# --- the document ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", examples("console"), ids=lambda example: f"{example.direction}{example.meaning}")
def test_driver_reads_and_writes_the_examples_of_the_document(example: Example) -> None:
    text = example.meaning.strip("`")
    assert example.raw == text.encode() + b"\r\n"
    found = decode(example.raw.rstrip())
    assert found is not None
    assert encode(*found) == example.raw
    if example.fact:
        decoder = Console(ROLE, Options())
        decoder.feed(frame(f"0 K 0 HELLO 1 TC-KEYPAD-1 b7 {found.seq}"), START_NS)
        (fact,) = decoder.feed(example.raw, START_NS)
        kind, _, rest = example.fact.partition(" ")
        told = fields(rest)
        assert type(fact) is FACTS[kind]
        assert {name: str(getattr(fact, name)) for name in told} == told
        assert fact.until_ns == START_NS - found.age_ms * MS


def test_the_checksum_is_the_one_of_the_document() -> None:
    assert checksum(b"123456789") == 0x29B1


@pytest.mark.parametrize(
    "body",
    ["1 K 0 ann x", "01 K 0 ANN x", "1 X 0 ANN x", "1 K -1 ANN x", "1 K 0 ANN  x", "1 K 0 ANN x ", "10000 K 0 ANN x",
     "1 K 0 A x", "1 K 0 ANN x\ty", "1 K 0 ANN %FF", "", "1 K 0", "1 K 0 ANN é"],
)  # fmt: skip
def test_a_frame_with_a_right_checksum_and_a_wrong_form_is_rejected(body: str) -> None:
    assert decode(frame(body).rstrip()) is None
    line = Line()
    assert line.say(body) == []
    assert line.decoder.health()["rejects"] == 1
    assert line.heard() == []


def test_words_carry_every_character_and_a_frame_has_its_limit() -> None:
    text = "J. Dupont $5*2 100% été"
    assert decode(encode(1, "C", 0, "SHOW", [text]).rstrip()) == Frame(1, "C", 0, "SHOW", (text,))
    longest = FRAME_MAX - len("$1 C 0 SHOW *FFFF")
    assert len(encode(1, "C", 0, "SHOW", ["x" * longest]).rstrip()) == FRAME_MAX
    with pytest.raises(ValueError, match="too many"):
        encode(1, "C", 0, "SHOW", ["x" * (longest + 1)])


# --- handshake -------------------------------------------------------------------------------------------------------


def test_nothing_is_sent_before_the_device_has_spoken() -> None:
    """Field case 75: opening the port resets the device, and it boots for seconds."""
    line = Line(greeted=False)
    for second in range(1, 6):
        assert line.decoder.tick(START_NS + second * 1000 * MS) == []
        assert line.decoder.take_output() == b""
    assert line.decoder.feed(b"\r\nboot v3.1\r\n", START_NS + 5100 * MS) == []
    assert line.heard() == []
    line.now_ns = START_NS + 5200 * MS
    assert line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 1") == []
    assert line.heard() == ["0 C 0 HI b7"]


def test_field_case_74_a_modem_manager_probes_the_port() -> None:
    line = Line(greeted=False)
    assert line.decoder.feed(b"AT\rAT+GCAP\r\rAT\r", START_NS) == []
    assert line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 1", "1 K 0 ANN rien_ne_va_plus Anne")[-1:] != []
    assert line.decoder.health()["rejects"] == 0
    assert line.decoder.health()["junk_bytes"] == 11


def test_after_a_restart_of_the_controller_the_device_is_asked_and_its_messages_wait() -> None:
    line = Line(greeted=False)
    assert line.say("12 K 0 ANN rien_ne_va_plus Anne") == []
    assert line.heard() == ["0 C 0 WHO"]
    assert line.say("0 K 0 BEAT b7 12") == []
    assert line.heard() == []  # asked half a second ago
    assert line.say("0 K 0 BEAT b7 12", after_ms=500) == []
    assert line.heard() == ["0 C 0 WHO"]
    assert line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 12") == []
    assert kinds(line.say("12 K 9 ANN rien_ne_va_plus Anne")) == ["Announced"]
    assert line.heard() == ["0 C 0 HI b7", "0 C 0 ACK 12"]


@pytest.mark.parametrize("hello", ["1 TC-KEYPAD-2 b7 12", "2 TC-KEYPAD-1 b7 12", "1 TC-KEYPAD-1 b7 0"])
def test_field_case_72_the_wrong_device_is_named_and_no_data_is_taken(hello: str) -> None:
    line = Line(greeted=False, device="TC-KEYPAD-1")
    facts = line.say(f"0 K 0 HELLO {hello}")
    assert facts == [DeviceLost(at_ns=line.now_ns, source=ROLE, device=ROLE, why="wrong_device")]
    assert line.say("12 K 0 ANN rien_ne_va_plus Anne", "0 K 0 BEAT b7 13", f"0 K 0 HELLO {hello}") == []
    assert line.heard() == []
    assert hello.split()[1] in str(line.decoder.health()["advice"])
    facts = line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b8 1", "1 K 0 ANN coup_nul Anne")
    assert kinds(facts) == ["DeviceBack", "Announced"]
    assert line.decoder.health()["stranger"] is None


def test_a_device_of_another_kind_is_a_wrong_device_when_the_time_is_up() -> None:
    line = Line(greeted=False)
    line.decoder.feed(b"*X;6;001;  ;0;000;0\r\n", START_NS + 10)
    due_ns = START_NS + 6000 * MS
    assert line.decoder.due_ns() == due_ns
    assert kinds(line.decoder.tick(due_ns)) == ["DeviceLost"]
    assert line.decoder.health()["advice"] == ADVICE["wrong_device"]


def test_an_echo_of_our_own_frames_is_damage() -> None:
    line = Line()
    assert line.say("0 C 0 HI b7") == []
    assert line.decoder.health()["rejects"] == 1


# --- numbering -------------------------------------------------------------------------------------------------------


def test_a_message_is_acknowledged_each_time_and_told_once() -> None:
    line = Line()
    first = line.say("12 K 40 ANN rien_ne_va_plus Anne")
    until_ns = line.now_ns - 40 * MS
    assert first == [
        Announced(at_ns=until_ns - WIRE_NS, until_ns=until_ns, source=ROLE, code="rien_ne_va_plus", by="Anne")
    ]
    assert line.say("12 K 290 ANN rien_ne_va_plus Anne") == []
    assert line.heard() == ["0 C 0 ACK 12", "0 C 0 ACK 12"]
    assert line.decoder.health()["duplicates"] == 1


def test_numbers_wrap_after_9999() -> None:
    line = Line(greeted=False)
    line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 9999")
    facts = line.say("9999 K 0 ANN coup_nul", "1 K 0 ANN coup_nul", "9999 K 0 ANN coup_nul", "2 K 0 ANN coup_nul")
    assert kinds(facts) == ["Announced"] * 3


@pytest.mark.parametrize("body", ["15 K 0 ANN coup_nul", "0 K 0 BEAT b7 15", "0 K 0 HELLO 1 TC-KEYPAD-1 b7 15"])
def test_a_hole_in_the_numbers_is_told(body: str) -> None:
    line = Line()
    facts = line.say(body)
    assert facts[0] == Overrun(at_ns=line.now_ns, source=ROLE, device=ROLE, lost=3)
    assert line.say("0 K 0 BEAT b7 15") == []
    assert line.decoder.health()["lost_messages"] == 3


def test_a_beat_that_repeats_what_we_have_is_no_hole() -> None:
    line = Line()
    line.say("12 K 0 ANN coup_nul")
    assert line.say("0 K 0 BEAT b7 12") == []
    assert line.say("13 K 0 ANN coup_nul") != []


def test_a_pulled_plug_loses_nothing_when_the_device_kept_its_power() -> None:
    line = Line()
    line.say("12 K 0 ANN faites_vos_jeux Anne")
    assert whys(line.decoder.lost(line.now_ns, "unplugged")) == ["unplugged"]
    assert line.decoder.lost(line.now_ns, "absent") == []
    assert line.decoder.take_output() == b""
    assert line.decoder.opened(line.now_ns) == []
    assert line.say("13 K 900 ANN rien_ne_va_plus Anne") == []
    assert line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 13") == [DeviceBack(at_ns=line.now_ns, source=ROLE, device=ROLE)]
    (fact,) = line.say("13 K 3000 ANN rien_ne_va_plus Anne")
    assert fact.until_ns == line.now_ns - 3000 * MS


def test_a_device_that_was_switched_off_may_have_lost_something() -> None:
    line = Line()
    line.say("12 K 0 ANN faites_vos_jeux Anne")
    assert line.say("0 K 0 BEAT b8 1") == []
    assert "0 C 0 WHO" in line.heard()
    assert whys(line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b8 1")) == ["device_restarted"]
    assert kinds(line.say("1 K 0 ANN rien_ne_va_plus Anne")) == ["Announced"]
    assert line.decoder.health()["device_restarts"] == 1


# --- presence --------------------------------------------------------------------------------------------------------


def test_silence_loses_the_device_and_its_next_beat_brings_it_back() -> None:
    line = Line()
    due_ns = line.now_ns + 3000 * MS
    assert line.decoder.due_ns() == due_ns
    assert line.decoder.tick(due_ns) == [DeviceLost(at_ns=due_ns, source=ROLE, device=ROLE, why="silence")]
    assert line.decoder.health()["advice"] == ADVICE["silence"]
    line.now_ns = due_ns
    assert kinds(line.say("0 K 0 BEAT b7 12")) == ["DeviceBack"]
    assert line.decoder.health()["advice"] is None


def test_beats_that_waited_unread_are_no_silence() -> None:
    line = Line()
    beats, late_ns = frame("0 K 0 BEAT b7 12") * 3, line.now_ns + 3500 * MS
    assert line.decoder.feed(beats, late_ns, 3500 * MS) == []
    assert line.decoder.tick(late_ns) == []
    assert kinds(line.decoder.tick(late_ns + 3000 * MS)) == ["DeviceLost"]


def test_beats_keep_it_there() -> None:
    line = Line()
    assert [fact for _ in range(100) for fact in line.say("0 K 0 BEAT b7 12", after_ms=1000)] == []


def test_field_case_73_a_second_reader_shows_as_a_bad_link_within_ten_frames() -> None:
    """Field case 84 too: a UART whose speed follows the processor's."""
    line = Line()
    facts: list[Fact] = []
    for _ in range(5):
        facts += line.decoder.feed(frame("0 K 0 BEAT b7 12")[:-9] + frame("0 K 0 BEAT b7 12"), line.now_ns)
    assert whys(facts) == ["bad_link"]
    assert line.decoder.health()["advice"] == ADVICE["bad_link"]


# --- messages --------------------------------------------------------------------------------------------------------


def test_keypad_is_a_person_and_reader_a_sensor() -> None:
    line = Line()
    facts = line.say(
        "12 K 0 CHIP+ 1 rouge 500 J1", "13 R 0 CHIP+ 2 rouge 500 J1", "14 K 0 RESULT 0", "15 R 0 RESULT 17 4"
    )
    assert [fact.origin for fact in facts] == [Origin.PERSON, Origin.SENSOR] * 2
    assert [fact.tableau for fact in facts if isinstance(fact, ChipPlaced)] == [1, 2]
    assert [(fact.value, fact.cell) for fact in facts if isinstance(fact, PocketRead)] == [(0, None), (17, 4)]


def test_a_choice_names_player_and_offer() -> None:
    line = Line()
    (fact,) = line.say("12 K 0 CHOICE 1 J%201 zero retire")
    assert isinstance(fact, Chosen)
    assert (fact.player, fact.what, fact.value) == ("J 1", "zero", "retire")


@pytest.mark.parametrize(
    "message",
    ["CHIP+ 1 rouge -5 J1", "CHIP+ 1 rouge 0 J1", "CHIP+ 0 rouge 5 J1", "CHIP+ x rouge 5 J1", "CHIP+ 1 rouge 5",
     "CHIP- 1 rouge 5 J1 a b", "ANN", "ANN a b c", "ANN a%0Ab", "RESULT", "RESULT 17 x", "CHOICE 1 J1 zero", "JUMP 1",
     "RESULT 17 -1", "CHIP+ 1 rouge 5.0 J1", "CHIP+ 1 rouge 0x J1", "CHIP+ 1 rouge x J1"],
)  # fmt: skip
def test_a_right_frame_with_a_strange_message_is_acknowledged_and_doubted(message: str) -> None:
    line = Line()
    assert whys(line.say(f"12 K 0 {message}")) == ["not_understood"]
    assert line.heard() == ["0 C 0 ACK 12"]
    assert line.decoder.health()["strange"] == 1
    assert kinds(line.say("13 K 0 ANN coup_nul")) == ["Announced"]


def test_an_unnumbered_stranger_is_doubted_too() -> None:
    assert whys(Line().say("0 K 0 JUMP 1")) == ["not_understood"]
    assert whys(Line().say("0 K 0 ANN coup_nul")) == ["not_understood"]


def test_an_age_before_the_clock_began_is_cut_off() -> None:
    line = Line()
    (fact,) = line.say("12 K 99999999 ANN coup_nul")
    assert (fact.at_ns, fact.until_ns) == (0, 0)


# --- texts for the keypad --------------------------------------------------------------------------------------------


def test_a_text_is_sent_until_it_is_acknowledged() -> None:
    line = Line()
    assert "queued" in line.decoder.command("show", {"text": "Rien ne va plus"}).text
    assert line.decoder.due_ns() == 0
    assert line.decoder.tick(line.now_ns) == []
    assert line.heard() == ["1 C 0 SHOW Rien%20ne%20va%20plus"]
    assert line.decoder.due_ns() == line.now_ns + 1000 * MS
    assert line.say("0 K 0 BEAT b7 12", after_ms=1000) == []
    assert line.heard() == ["1 C 0 SHOW Rien%20ne%20va%20plus"]
    assert line.say("0 K 0 ACK 1") == []
    assert line.say("0 K 0 BEAT b7 12", after_ms=1000) == []
    assert line.heard() == []
    line.decoder.command("show", {"text": ""})
    line.decoder.tick(line.now_ns)
    assert line.heard() == ["2 C 0 SHOW"]


@pytest.mark.parametrize(
    ("text", "shown"), [("x" * 231, "x" * 230), ("é" * 60, "%C3%A9" * 38), ("x é" * 99, "x%20%C3%A9" * 23)]
)
def test_of_a_text_that_is_too_long_the_beginning_is_shown(text: str, shown: str) -> None:
    line = Line()
    line.decoder.command("show", {"text": text})
    line.decoder.tick(line.now_ns)
    assert line.heard() == [f"1 C 0 SHOW {shown}"]


def test_every_sentence_for_the_croupier_is_shown_whole() -> None:
    for sentence in CATALOGUE.values():
        assert beginning(sentence, ROOM) == sentence


def test_a_text_that_nobody_shows_is_given_up_and_the_next_goes_on() -> None:
    line = Line()
    line.decoder.command("show", {"text": "a"})
    line.decoder.command("show", {"text": "b"})
    for _ in range(SHOW_TRIES + 1):
        line.say("0 K 0 BEAT b7 12", after_ms=1000)
    assert line.heard() == ["1 C 0 SHOW a"] * SHOW_TRIES + ["2 C 0 SHOW b"]
    assert line.decoder.health()["unshown"] == 1


def test_texts_wait_for_the_handshake_are_bounded_and_do_not_outlive_the_port() -> None:
    line = Line(greeted=False)
    for n in range(SHOWS_MAX + 3):
        line.decoder.command("show", {"text": str(n)})
    assert line.decoder.tick(line.now_ns) == []
    assert line.heard() == []
    assert line.decoder.sample()["texts_waiting"] == SHOWS_MAX
    line.say("0 K 0 HELLO 1 TC-KEYPAD-1 b7 1")
    line.decoder.tick(line.now_ns)
    assert line.heard() == ["0 C 0 HI b7", "4 C 0 SHOW 3"]
    line.decoder.lost(line.now_ns, "unplugged")
    assert line.decoder.health()["unshown"] == SHOWS_MAX + 3


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [("selftest", {}, "show"), ("show", {"text": 5}, "printable"), ("show", {"line": "a"}, "`text` alone"),
     ("show", {"text": "a\nb"}, "printable"), ("who", {"x": 1}, "who")],
)  # fmt: skip
def test_a_wrong_command_is_refused_with_what_is_allowed(name: str, args: dict[str, object], told: str) -> None:
    line = Line()
    with pytest.raises(ValueError, match=told):
        line.decoder.command(name, args)
    assert line.heard() == []


def test_who_asks_the_device() -> None:
    line = Line()
    line.decoder.command("who", {})
    assert line.heard() == ["0 C 0 WHO"]


# --- the rest --------------------------------------------------------------------------------------------------------


def test_a_snapshot_goes_on_in_the_middle_of_everything() -> None:
    line = Line()
    line.decoder.command("show", {"text": "a"})
    line.say("12 K 0 ANN coup_nul Anne")
    line.heard()
    line.decoder.feed(b"$13 K 0 ANN coup", line.now_ns)
    frozen = json.loads(json.dumps(line.decoder.snapshot()))
    thawed = Console(ROLE, Options())
    thawed.restore(frozen)
    rest = frame("13 K 0 ANN coup_nul Anne")[len(b"$13 K 0 ANN coup") :]
    at_ns = line.now_ns + 400 * MS
    assert thawed.feed(rest, at_ns) == line.decoder.feed(rest, at_ns) != []
    later_ns = at_ns + 1000 * MS
    assert thawed.tick(later_ns) == line.decoder.tick(later_ns)
    assert thawed.take_output() == line.decoder.take_output() != b""
    assert thawed.snapshot() == line.decoder.snapshot()


def test_the_rest_of_a_frame_after_a_long_pause_is_not_trusted() -> None:
    line = Line()
    whole = frame("12 K 0 ANN coup_nul Anne")
    assert line.decoder.feed(whole[:10], line.now_ns) == []
    assert line.decoder.feed(whole[10:], line.now_ns + 501 * MS) == []
    assert line.decoder.health()["rejects"] == 1


def test_sample_shows_the_last_frames() -> None:
    line = Line()
    line.say("12 K 0 ANN coup_nul")
    line.decoder.feed(b"$broken*0000", line.now_ns)
    sample = line.decoder.sample()
    assert (sample["greeted"], sample["expected"]) == (True, 13)
    assert sample["frames"][-1].startswith("$12 K 0 ANN coup_nul*")
    assert sample["rejected"] == [b"$broken*0000".hex(" ")]


@pytest.mark.parametrize(
    ("options", "told"), [({"silence_ms": 100}, "1500 to 60000"), ({"device": "a b"}, "ASCII without spaces")]
)
def test_impossible_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Options(**options)


def test_family_is_found_by_name() -> None:
    family = load("console")
    assert (family.kind, family.baud, family.lines) == ("bytes", 115200, ())
    assert isinstance(family.decoder(ROLE, family.options()), Console)
