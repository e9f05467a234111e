"""The SlingShot 2 decoder against its document, a recording of a real wheel, and what goes wrong on real lines."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from drivers.base import load
from drivers.slingshot2.codes import ADVICE, COMMANDS, FLAGS, SELFTEST
from drivers.slingshot2.decoder import Options, SlingShot2
from drivers.slingshot2.lines import LINE_MAX, Answer, Bare, Bonus, Status, read
from rules.facts import (
    BallLaunched,
    BallLost,
    DeviceBack,
    DeviceLost,
    Direction,
    Doubtful,
    DropDue,
    Fact,
    PocketRead,
    SpinStarted,
)
from tests.drivers.documents import Example, examples, fields
from tests.recording import recording

MS = 1_000_000
ROLE = "wheel_sensor"


class Wheel:
    """Feeds a decoder with one status line every 500 ms."""

    def __init__(self, **options: Any) -> None:
        self.decoder = SlingShot2(ROLE, Options(**options))
        self.now_ns = 1_000_000_000
        self.spins, self.last, self.rotor, self.rpm10 = 12, "8", 0, 165

    def line(self, state: int, flags: int = 0) -> bytes:
        parts = (str(state), f"{self.spins:03}", f"{self.last:>2}", f"{flags:X}", f"{self.rpm10:03}", str(self.rotor))
        return b"*X;" + ";".join(parts).encode() + b"\r\n"

    def say(self, *states: int, flags: int = 0, times: int = 1) -> list[Fact]:
        """Facts that these states, each on `times` lines, make."""
        facts: list[Fact] = []
        for state in states:
            for _ in range(times):
                self.now_ns += 500 * MS
                facts += self.decoder.feed(self.line(state, flags), self.now_ns)
        return facts

    def raw(self, data: bytes) -> list[Fact]:
        self.now_ns += 20 * MS
        return self.decoder.feed(data, self.now_ns)

    def in_flight(self, **options: Any) -> list[Fact]:
        return self.say(2, 3, 4)


def kinds(facts: Sequence[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def whys(facts: list[Fact]) -> list[str]:
    return [fact.why for fact in facts if isinstance(fact, BallLost | Doubtful | DeviceLost)]


# --- the document ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", examples("slingshot2"), ids=lambda example: f"{example.direction}{example.meaning}")
def test_driver_reads_and_writes_the_examples_of_the_document(example: Example) -> None:
    kind, _, rest = example.meaning.partition(" ")
    line = read(example.raw.removesuffix(b"\r\n"))
    match kind:
        case "status":
            told = fields(rest)
            assert isinstance(line, Status)
            assert line == Status(
                int(told["state"]),
                int(told["spins"]),
                told["last"],
                int(told["flags"]),
                int(told["rpm10"]),
                told["rotor"] == "ccw",
            )
        case "number":
            assert line == Bare(rest)
        case "answer":
            assert line == Answer(rest[0], rest[2:])
        case "bonus":
            assert line == Bonus(int(rest))
        case "reject":
            assert line is None
            decoder = SlingShot2(ROLE, Options())
            decoder.feed(example.raw, 1)
            assert decoder.health()["rejects"] == 1
        case "command":
            name, *args = rest.split()
            decoder = SlingShot2(ROLE, Options())
            decoder.command(name, dict(arg.split("=") for arg in args))
            assert decoder.take_output() == example.raw
            assert decoder.take_output() == b""
        case _:
            pytest.fail(f"the document has an example of an unknown kind: {kind}")


def test_every_sum_of_flags_is_legal_and_lower_case_is_not() -> None:
    for flags in range(16):
        line = read(f"*X;4;001; 9;{flags:X};158;0".encode())
        assert isinstance(line, Status)
        assert line.flags == flags
    assert read(b"*X;4;001; 9;a;158;0") is None


@pytest.mark.parametrize(
    "line",
    [b"*X;0;001; 9;0;158;0", b"*X;8;001; 9;0;158;0", b"*X;4;000; 9;0;158;0", b"*X;4;257; 9;0;158;0",
     b"*X;4;001;09;0;158;0", b"*X;4;001;9 ;0;158;0", b"*X;4;001; 9;0;158;2", b"*X;4;001; 9;0;158;0 ", b"*X",
     b"*  NO", b"*) NO", b"40", b"017", b"7 ", b"", b"*P  OK", b"*Y;7;001", b"x" * (LINE_MAX + 1)],
)  # fmt: skip
def test_a_line_that_is_wrong_in_one_place_is_no_line(line: bytes) -> None:
    assert read(line) is None


# --- the recording of a real wheel -----------------------------------------------------------------------------------


def test_recording_of_a_real_wheel_has_five_launches_no_number_and_five_silences() -> None:
    decoder = SlingShot2(ROLE, Options())
    facts = [fact for at_ns, line in recording() for fact in decoder.feed(line, at_ns)]
    assert Counter(kinds(facts)) == {
        "BallLaunched": 5, "DropDue": 5, "BallLost": 5, "Doubtful": 5, "DeviceLost": 5, "DeviceBack": 5,
    }  # fmt: skip
    assert [fact.why for fact in facts if isinstance(fact, BallLost)] == ["sensor_stuck"] * 5
    assert {fact.why for fact in facts if isinstance(fact, DeviceLost)} == {"silence"}
    coups = [fact for fact in facts if isinstance(fact, BallLaunched | DropDue | BallLost)]
    assert kinds(coups) == ["BallLaunched", "DropDue", "BallLost"] * 5
    assert decoder.health()["rejects"] == 1
    assert decoder.sample()["rejected"] == ["30 30 3b 30"]


def test_recording_gives_the_same_facts_however_its_bytes_are_cut() -> None:
    lines = [entry for entry in recording() if entry[0] < 700 * 1000 * MS]
    whole, cut = SlingShot2(ROLE, Options(rotor=True)), SlingShot2(ROLE, Options(rotor=True))
    rng = random.Random(5)
    for at_ns, line in lines:
        expected = whole.feed(line, at_ns)
        edges = sorted(rng.sample(range(len(line) + 1), rng.randrange(4)))
        pieces = [line[a:b] for a, b in zip([0, *edges], [*edges, len(line)], strict=True)]
        assert [fact for piece in pieces for fact in cut.feed(piece, at_ns)] == expected
    assert cut.snapshot() == whole.snapshot()


def test_snapshot_taken_anywhere_continues_as_if_nothing_had_happened() -> None:
    lines = [entry for entry in recording() if entry[0] < 700 * 1000 * MS]
    reference, thawed = SlingShot2(ROLE, Options()), SlingShot2(ROLE, Options())
    for number, (at_ns, line) in enumerate(lines):
        expected = reference.feed(line, at_ns)
        facts = thawed.feed(line[:9], at_ns)
        if number % 7 == 0:
            frozen = json.loads(json.dumps(thawed.snapshot()))
            thawed = SlingShot2(ROLE, Options())
            thawed.restore(frozen)
        assert facts + thawed.feed(line[9:], at_ns) == expected
    assert thawed.health() == reference.health()


# --- a game ----------------------------------------------------------------------------------------------------------


def test_a_game_is_told_once_on_its_edges() -> None:
    wheel = Wheel(lead_ms=4000)
    assert wheel.say(2, times=18) == []
    launched_ns = wheel.now_ns + 500 * MS
    assert wheel.say(3, times=8) == [BallLaunched(at_ns=launched_ns, source=ROLE, direction=Direction.CCW)]
    closed_ns = wheel.now_ns + 500 * MS
    assert wheel.say(4, times=52) == [DropDue(at_ns=closed_ns, source=ROLE, drop_at_ns=closed_ns + 4000 * MS)]
    wheel.last = "17"
    assert wheel.raw(b"17\r\n") == []
    read_ns = wheel.now_ns + 500 * MS
    assert wheel.say(5, times=11) == [PocketRead(at_ns=read_ns, source=ROLE, value=17)]
    wheel.spins += 1
    assert wheel.say(2, times=18) == []


def test_the_ball_runs_against_the_rotor_in_both_senses() -> None:
    wheel = Wheel()
    wheel.rotor = 1
    assert [fact.direction for fact in wheel.say(2, 3) if isinstance(fact, BallLaunched)] == [Direction.CW]


@pytest.mark.parametrize("first", ["number", "status"])
def test_number_and_status_in_either_order_are_one_reading(first: str) -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.last = "25"
    facts = wheel.raw(b"25\r\n") + wheel.say(5) if first == "number" else wheel.say(5) + wheel.raw(b"25\r\n")
    assert [fact for fact in facts if isinstance(fact, PocketRead)] == [
        PocketRead(at_ns=facts[0].at_ns, source=ROLE, value=25)
    ]
    assert kinds(facts + wheel.say(5, times=5)) == ["PocketRead"]


@pytest.mark.parametrize(
    ("pockets", "printed", "value"),
    [(37, " 0", 0), (37, "36", 36), (38, "00", "00"), (39, "38", "000"), (40, "39", "0000"), (37, "00", None),
     (38, "38", None), (39, "39", None), (40, "37", None), (37, "", None)],
)  # fmt: skip
def test_a_printed_number_means_what_the_wheel_has(pockets: int, printed: str, value: int | str | None) -> None:
    wheel = Wheel(pockets=pockets)
    wheel.in_flight()
    wheel.last = printed.strip()
    facts = wheel.say(5, times=3)
    if value is None:
        assert whys(facts) == ["number_unreadable"]
        wheel.spins += 1
        assert whys(wheel.say(2)) == ["number_unreadable"]
    else:
        assert facts == [PocketRead(at_ns=facts[0].at_ns, source=ROLE, value=value)]


@pytest.mark.parametrize("states", [(3, 2), (3, 4, 2), (3, 4, 6), (3, 4, 1), (3, 4, 3)])
def test_a_missed_state_5_is_recovered_from_the_next_line(states: tuple[int, ...]) -> None:
    wheel = Wheel()
    wheel.say(2, *states[:-1])
    wheel.spins, wheel.last = 13, "31"
    facts = wheel.say(states[-1])
    assert facts[0] == PocketRead(at_ns=wheel.now_ns, source=ROLE, value=31, recovered=True)
    assert kinds(facts[1:]) == (["BallLaunched"] if states[-1] == 3 else [])
    assert wheel.decoder.health()["illegal"] == 1 if states != (3, 4, 6) else True


def test_a_bare_number_before_a_missed_state_5_makes_the_reading_a_real_one() -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.raw(b"31\r\n")
    wheel.spins, wheel.last = 13, "31"
    assert wheel.say(2) == [PocketRead(at_ns=wheel.now_ns, source=ROLE, value=31)]


def test_the_same_number_again_is_recovered_by_the_spin_counter_which_wraps_at_256() -> None:
    wheel = Wheel()
    wheel.spins = 256
    wheel.in_flight()
    wheel.spins = 1
    assert wheel.say(2) == [PocketRead(at_ns=wheel.now_ns, source=ROLE, value=8, recovered=True)]


def test_several_spins_missed_are_counted_and_no_number_is_told() -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.spins, wheel.last = 15, "31"
    assert whys(wheel.say(2)) == ["number_missed"]
    assert wheel.decoder.health()["missed_spins"] == 2


def test_a_wheel_that_was_switched_off_in_flight_has_no_result() -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.spins, wheel.last = 1, ""
    assert whys(wheel.say(6)) == ["wheel_restarted"]
    assert wheel.decoder.health()["wheel_restarts"] == 1
    assert kinds(wheel.say(1, 2, 3, 4)) == ["BallLaunched", "DropDue"]


def test_a_wheel_that_began_anew_and_has_played_again_meanwhile_is_no_recovery() -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.spins, wheel.last = 2, "31"
    assert whys(wheel.say(2)) == ["wheel_restarted"]


def test_a_bare_number_that_the_status_contradicts_needs_a_second_source() -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.raw(b"0\r\n")  # what is left of a status line that lost its head
    wheel.last = "17"
    facts = wheel.say(5)
    assert whys(facts) == ["numbers_disagree"]
    assert facts[-1] == PocketRead(at_ns=wheel.now_ns, source=ROLE, value=17, recovered=True)


def test_a_bare_number_after_the_reading_is_compared_and_elsewhere_only_counted() -> None:
    wheel = Wheel()
    assert wheel.raw(b"9\r\n") == []
    assert wheel.say(2) + wheel.raw(b"9\r\n") == []
    assert wheel.decoder.health()["strays"] == 2
    wheel.say(3, 4)
    wheel.last = "17"
    wheel.say(5)
    assert whys(wheel.raw(b"18\r\n")) == ["numbers_disagree"]


def test_another_number_in_state_5_counts_when_two_lines_say_it() -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.last = "17"
    wheel.say(5)
    wheel.last = "16"
    assert wheel.say(5) == []
    wheel.last = "17"
    assert wheel.say(5) == []
    wheel.last = "16"
    facts = wheel.say(5, times=4)
    assert whys(facts) == ["number_changed"]
    assert facts[-1] == PocketRead(at_ns=facts[0].at_ns, source=ROLE, value=16, recovered=True)
    wheel.last = "00"
    assert wheel.say(5, times=3) == []


# --- joining in the middle, odd steps --------------------------------------------------------------------------------


def test_the_first_line_tells_no_edge_that_nobody_saw() -> None:
    assert Wheel().say(5, times=3) == []
    assert Wheel().say(6, times=3) == []
    assert kinds(Wheel().say(4, times=3)) == ["BallLaunched"]
    assert kinds(Wheel().say(3, times=3)) == ["BallLaunched"]


def test_the_first_status_line_confirms_a_number_that_was_told_just_before_it() -> None:
    wheel = Wheel()
    wheel.last = "17"
    facts = wheel.raw(b"17\r\n") + wheel.say(5, 5)
    assert kinds(facts) == ["BallLaunched", "PocketRead"]
    assert facts[1] == PocketRead(at_ns=facts[0].at_ns, source=ROLE, value=17)
    wheel = Wheel()
    wheel.last = "17"
    assert wheel.raw(b"7\r\n") + wheel.say(5, 5) == []


def test_a_missed_state_3_or_4_is_made_up_for() -> None:
    assert kinds(Wheel().say(2, 4)) == ["BallLaunched", "DropDue"]
    wheel = Wheel()
    wheel.say(2)
    wheel.last = "17"
    facts = wheel.say(5)
    assert kinds(facts) == ["BallLaunched", "PocketRead"]
    assert isinstance(facts[-1], PocketRead)
    assert facts[-1].recovered
    wheel = Wheel()
    wheel.say(2, 3)
    wheel.last = "17"
    assert wheel.say(5) == [PocketRead(at_ns=wheel.now_ns, source=ROLE, value=17)]


@pytest.mark.parametrize("odd", [2, 3, 4])
def test_one_damaged_digit_around_state_5_makes_no_second_coup(odd: int) -> None:
    wheel = Wheel()
    wheel.in_flight()
    wheel.last = "17"
    wheel.say(5)
    assert wheel.say(odd, 5, 5) == []


# --- flags -----------------------------------------------------------------------------------------------------------


def test_flag_2_turns_the_ball_with_the_rotor_and_back() -> None:
    wheel = Wheel()
    directions = [
        fact.direction
        for facts in (wheel.say(2, 3), wheel.say(3, flags=2, times=3), wheel.say(3), wheel.say(2, flags=2))
        for fact in facts
        if isinstance(fact, BallLaunched)
    ]
    assert directions == [Direction.CCW, Direction.CW, Direction.CCW]
    other = Wheel()
    first = other.say(2) + other.say(3, flags=2, times=4)
    assert [fact.direction for fact in first if isinstance(fact, BallLaunched)] == [Direction.CW]


def test_flag_8_is_not_minded_in_the_first_three_seconds_of_state_3() -> None:
    wheel = Wheel()
    wheel.say(2, 3)
    assert wheel.say(3, flags=8, times=5) == []
    assert whys(wheel.say(3, flags=8, times=4)) == ["launch_failed"]
    assert wheel.say(2, flags=8) == []


def test_flag_1_in_state_4_must_stand_for_five_seconds() -> None:
    wheel = Wheel()
    wheel.in_flight()
    assert wheel.say(4, flags=1, times=10) == []
    assert wheel.say(4) == []
    facts = wheel.say(4, flags=1, times=12)
    assert whys(facts) == ["not_detected"]
    wheel.last = "17"
    assert kinds(wheel.say(5)) == ["PocketRead"]


def test_flag_4_is_told_on_its_edge_and_at_a_closed_wheel_only_when_somebody_wants_to_play() -> None:
    wheel = Wheel()
    assert wheel.say(6, flags=4, times=5) == []
    assert whys(wheel.say(1, flags=4, times=3)) == ["sensor_stuck"]
    assert wheel.say(1) == []
    assert whys(wheel.say(2, flags=5, times=2)) == ["sensor_stuck"]
    assert "capteur" in str(wheel.decoder.health()["advice"]).lower()


@pytest.mark.parametrize(
    ("state", "flags", "why"),
    [(6, 0, "table_closed"), (2, 0, "new_game"), (1, 0, "new_game"), (7, 0, "not_in_the_track"), (6, 4, "sensor_stuck"),
     (6, 1, "not_detected"), (6, 8, "launch_failed"), (6, 2, "with_the_rotor"), (7, 1, "not_detected"),
     (6, 15, "sensor_stuck")],
)  # fmt: skip
def test_a_coup_without_a_number_ends_with_its_flag_or_state(state: int, flags: int, why: str) -> None:
    wheel = Wheel()
    wheel.in_flight()
    facts = wheel.say(state, flags=flags, times=3)
    assert [fact.why for fact in facts if isinstance(fact, BallLost)] == [why]


def test_a_silence_of_a_stuck_wheel_ends_its_coup_by_the_flag_once() -> None:
    wheel = Wheel()
    wheel.say(2, 3, 4)
    wheel.say(4, flags=4)
    facts = wheel.decoder.tick(wheel.now_ns + 2000 * MS)
    assert kinds(facts) == ["BallLost", "DeviceLost"]
    assert whys(facts) == ["sensor_stuck", "silence"]
    assert facts[0].at_ns == facts[1].at_ns
    wheel.now_ns += 80_000 * MS
    assert kinds(wheel.say(6, flags=4)) == ["DeviceBack"]
    healthy = Wheel()
    healthy.say(2, 3, 4)
    assert kinds(healthy.decoder.tick(healthy.now_ns + 2000 * MS)) == ["DeviceLost"]


def test_a_relaunch_out_of_state_4_ends_one_flight_and_begins_another() -> None:
    wheel = Wheel()
    wheel.in_flight()
    assert kinds(wheel.say(3, 4)) == ["BallLost", "BallLaunched", "DropDue"]


# --- the rotor, where no encoder watches it --------------------------------------------------------------------------


def senses(facts: list[Fact]) -> list[Direction]:
    return [fact.direction for fact in facts if isinstance(fact, SpinStarted)]


def test_rotor_is_told_when_it_comes_up_changes_its_sense_or_launches_unchanged() -> None:
    wheel = Wheel(rotor=True)
    wheel.rpm10 = 0
    assert wheel.say(6, times=2) == []
    wheel.rpm10 = 49
    assert wheel.say(1) == []
    wheel.rpm10 = 160
    assert senses(wheel.say(1, 2, 3, 4)) == [Direction.CW]
    wheel.last = "17"
    assert senses(wheel.say(5)) == []
    wheel.spins, wheel.rotor = 13, 1
    assert senses(wheel.say(2, 2, 3, 4)) == [Direction.CCW]
    wheel.last = "18"
    wheel.say(5)
    wheel.spins = 14
    assert kinds(wheel.say(2, 2, 3)) == ["SpinStarted", "BallLaunched"]


def test_rotor_is_left_to_the_encoder_by_default() -> None:
    wheel = Wheel()
    wheel.rotor = 1
    assert senses(wheel.say(1, 2, 3, 4)) == []


# --- silence, damage, other devices ----------------------------------------------------------------------------------


def test_silence_is_told_at_its_due_time_and_ends_with_a_good_line() -> None:
    wheel = Wheel()
    assert wheel.decoder.due_ns() is None
    wheel.say(6)
    due_ns = wheel.now_ns + 2000 * MS
    assert wheel.decoder.due_ns() == due_ns
    assert wheel.decoder.tick(due_ns - 1) == []
    assert wheel.decoder.tick(due_ns + 5) == [DeviceLost(at_ns=due_ns, source=ROLE, device=ROLE, why="silence")]
    assert wheel.decoder.due_ns() is None
    assert wheel.decoder.feed(b"*P OK\r\n", due_ns + 10) == []
    back_ns = due_ns + 20
    assert wheel.decoder.feed(wheel.line(6), back_ns) == [DeviceBack(at_ns=back_ns, source=ROLE, device=ROLE)]
    assert "Le cylindre" in ADVICE["silence"]


def test_lines_that_waited_unread_are_no_silence() -> None:
    wheel = Wheel()
    wheel.say(6)
    late_ns = wheel.now_ns + 2100 * MS
    assert wheel.decoder.feed(wheel.line(6) * 4, late_ns, 2100 * MS) == []
    assert wheel.decoder.tick(late_ns) == []
    assert [fact.why for fact in wheel.decoder.tick(late_ns + 2000 * MS) if isinstance(fact, DeviceLost)] == ["silence"]


def test_a_late_tick_changes_nothing() -> None:
    wheel = Wheel()
    wheel.say(6)
    due_ns = wheel.now_ns + 2000 * MS
    facts = wheel.decoder.feed(wheel.line(6), due_ns + 30_000 * MS)
    assert [(type(fact), fact.at_ns) for fact in facts] == [
        (DeviceLost, due_ns),
        (DeviceBack, due_ns + 30_000 * MS),
    ]


def test_idle_lines_are_no_alarm() -> None:
    wheel = Wheel()
    assert wheel.say(6, times=500) == []


def test_unplugged_is_told_once_and_a_half_line_does_not_survive_it() -> None:
    wheel = Wheel()
    wheel.in_flight()
    assert wheel.raw(b"*X;5;012;1") == []
    at_ns = wheel.now_ns
    assert whys(wheel.decoder.lost(at_ns, "unplugged")) == ["unplugged"]
    assert wheel.decoder.lost(at_ns + 1, "absent") == []
    assert wheel.decoder.opened(at_ns + 2) == []
    assert wheel.raw(b"7;0;165;0\r\n") == []
    wheel.last = "17"
    assert kinds(wheel.say(5)) == ["DeviceBack", "PocketRead"]


def test_field_case_72_another_device_on_the_port_is_named_and_tells_nothing_of_a_game() -> None:
    decoder = SlingShot2(ROLE, Options())
    decoder.opened(0)
    facts = [fact for n in range(60) for fact in decoder.feed(b"$0 K 0 BEAT b7 12*ACA2\r\n", n * 100 * MS)]
    assert kinds(facts) == ["Doubtful", "DeviceLost"]
    assert decoder.health()["lost"] == "wrong_device"
    assert "autre appareil" in str(decoder.health()["advice"])


def test_field_case_73_a_second_reader_shows_as_a_bad_link_within_ten_lines() -> None:
    wheel = Wheel()
    facts: list[Fact] = []
    for _ in range(5):  # every other half of a line went to somebody else
        facts += wheel.say(2) + wheel.raw(wheel.line(2)[9:])
    assert whys(facts) == ["bad_link"]
    assert wheel.decoder.health()["fault"] == ADVICE["bad_link"]
    assert wheel.say(2, times=20) == []
    assert wheel.decoder.health()["fault"] is None


def test_field_case_74_a_modem_manager_probes_the_port() -> None:
    wheel = Wheel()
    wheel.decoder.opened(wheel.now_ns)
    assert wheel.raw(b"AT\rAT+GCAP\r\n\x00~") == []
    assert kinds(wheel.say(2, 3)) == ["BallLaunched"]


def test_field_case_81_a_port_that_drops_out_at_a_launch_is_told_and_the_number_is_still_read() -> None:
    wheel = Wheel()
    for spin in range(100):
        wheel.last = str(spin % 37)
        assert kinds(wheel.say(2, 3)) == ["BallLaunched"]
        assert kinds(wheel.decoder.lost(wheel.now_ns + 10 * MS, "unplugged")) == ["DeviceLost"]
        wheel.decoder.opened(wheel.now_ns + 310 * MS)
        assert kinds(wheel.say(3, 4)) == ["DeviceBack", "DropDue"]
        wheel.last = str((spin + 1) % 37)
        assert [fact.value for fact in wheel.say(5) if isinstance(fact, PocketRead)] == [(spin + 1) % 37]
        wheel.spins = wheel.spins % 256 + 1
    assert wheel.decoder.health()["lost"] is None


def test_field_case_84_a_uart_that_garbles_one_byte_of_a_hundred_is_a_bad_link_that_names_it() -> None:
    wheel, rng = Wheel(), random.Random(84)
    facts: list[Fact] = []
    for _ in range(200):
        wheel.now_ns += 500 * MS
        line = bytes(rng.randrange(256) if rng.random() < 0.01 else byte for byte in wheel.line(2))
        facts += wheel.decoder.feed(line, wheel.now_ns)
    assert "bad_link" in whys(facts)
    assert not [fact for fact in facts if isinstance(fact, PocketRead)]
    assert "9600 8N1, console du système coupée" in ADVICE["bad_link"]


def test_interleaved_and_torn_lines_cost_only_themselves() -> None:
    wheel = Wheel()
    wheel.say(3, times=20)
    facts = wheel.raw(b"6; 9;0;158;0\r\n*X;4;14*X;*X;4;012; 8;0;158;0\r\n*  NO\r\n*) NO\r\n")
    assert kinds(facts) == ["DropDue", "Doubtful"]
    assert whys(facts) == ["bad_link"]
    assert wheel.decoder.health()["rejects"] == 5
    assert wheel.decoder.health()["link"] == "bad"
    wheel.say(4, times=20)
    assert wheel.decoder.health()["link"] == "good"


def test_a_pause_inside_a_line_parts_it() -> None:
    wheel = Wheel()
    wheel.say(3)
    wheel.raw(b"*X;4;012")
    wheel.now_ns += 450 * MS
    assert wheel.raw(b"; 8;0;158;0\r\n") == []
    assert wheel.decoder.health()["rejects"] == 2


# --- self-test and commands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(SELFTEST))
def test_every_self_test_code_says_what_to_do(code: int) -> None:
    wheel = Wheel()
    name, advice = SELFTEST[code]
    facts = wheel.raw(b"*F %d\r\n" % code)
    assert whys(facts) == [f"selftest_{name}"]
    health = wheel.decoder.health()
    assert (health["selftest"], health["advice"], health["fault"]) == (name, advice, advice)
    reborn = SlingShot2(ROLE, Options())  # the daemon was started anew: only a good test ends the fault
    reborn.restore({"learned": wheel.decoder.snapshot()["learned"]})
    assert reborn.health()["fault"] == advice
    assert wheel.raw(b"*F 0\r\n") == []
    health = wheel.decoder.health()
    assert (health["selftest"], health["advice"], health["fault"]) == (None, None, None)


def test_a_busy_self_test_and_an_unknown_code() -> None:
    wheel = Wheel()
    assert wheel.raw(b"*F BUSY\r\n") == []
    assert whys(wheel.raw(b"*F 42\r\n")) == ["selftest_42"]
    assert wheel.decoder.sample()["answers"] == ["*F BUSY", "*F 42"]


def test_a_fault_stays_until_it_is_mended_and_a_passing_flag_is_none() -> None:
    wheel = Wheel()
    wheel.say(6, flags=4)
    assert wheel.decoder.health()["fault"] is None  # a closed wheel may be stuck, nobody plays
    wheel.say(2, flags=4)
    assert wheel.decoder.health()["fault"] == ADVICE["sensor_stuck"]
    wheel.raw(b"*F 2\r\n")
    assert wheel.decoder.health()["fault"] == f"{ADVICE['sensor_stuck']} {SELFTEST[2][1]}"
    wheel.say(2, flags=8)
    assert wheel.decoder.health()["fault"] == SELFTEST[2][1]
    for _ in range(5):
        wheel.raw(b"00;0\r\n")
    assert ADVICE["bad_link"] in str(wheel.decoder.health()["fault"])


@pytest.mark.parametrize(
    ("asked", "said", "ok", "text"),
    [("selftest", b"*F BUSY", False, "occupé"), ("selftest", b"*F 12", False, SELFTEST[12][1]),
     ("selftest", b"*F 0", True, "*F 0"), ("selftest", b"*F 42", False, "appeler le fabricant"),
     ("settings", b"*O 6 1 60 1159", True, "*O 6 1 60 1159"), ("power_off", b"*P NO", False, "refusé"),
     ("position", b"*A 13", True, "*A 13")],
)  # fmt: skip
def test_the_answer_to_a_command_reaches_who_asked(asked: str, said: bytes, ok: bool, text: str) -> None:
    wheel = Wheel()
    assert wheel.decoder.command(asked, {}).answer_s > 0
    wheel.raw(b"*X;6;001;  ;0;000;0\r\n*d 12:00\r\n")
    assert wheel.decoder.take_answer() is None
    wheel.raw(said + b"\r\n")
    answer = wheel.decoder.take_answer()
    assert answer is not None
    assert (answer.ok, text in answer.text) == (ok, True)
    wheel.raw(said + b"\r\n")  # nobody has asked again
    assert wheel.decoder.take_answer() is None


def test_what_changes_a_wheel_is_no_question() -> None:
    asks = SlingShot2(ROLE, Options()).asks
    assert asks == {"settings", "get", "version", "position", "clock", "poll", "statistics", "wins", "misfires", "log"}


@pytest.mark.parametrize("line", [b"*Y;1;007;999\r\n", b"*Y;1;999\r\n"])
def test_an_expired_licence_shows_in_health(line: bytes) -> None:
    wheel = Wheel()
    wheel.raw(line)
    assert wheel.decoder.health()["advice"] == ADVICE["licence"]
    wheel.raw(b"*Y;1;007;30\r\n*Y;2;008\r\n")
    assert wheel.decoder.health()["advice"] is None


def test_health_and_sample_show_the_wheel() -> None:
    wheel = Wheel()
    wheel.say(2, flags=8)
    health = wheel.decoder.health()
    assert (health["wheel_state"], health["flags"]) == ("2 place your bets", "launch_failed")
    assert health["advice"] == ADVICE["launch_failed"]
    assert wheel.decoder.sample()["now"]["meaning"] == "place your bets"
    assert set(FLAGS.values()) <= set(ADVICE)


@pytest.mark.parametrize(
    ("name", "args", "line"),
    [("mode", {"value": 1159}, "*o 1159"), ("set", {"value": "h 120"}, "*T h 120"), ("log", {"value": "e"}, "*s e"),
     ("restart", {}, "*R"), ("statistics", {}, "*w"), ("start_ccw", {}, "*u 3"), ("get", {"value": "h"}, "*T H"),
     ("version", {"value": "v"}, "*v")],
)  # fmt: skip
def test_commands_become_lines(name: str, args: dict[str, object], line: str) -> None:
    wheel = Wheel()
    assert wheel.decoder.command(name, args).text == line
    assert wheel.decoder.take_output() == line.encode() + b"\r\n"


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [("explode", {}, "selftest"), ("selftest", {"value": 1}, "no arguments"), ("mode", {"value": "a"}, "65535"),
     ("mode", {"value": True}, "65535"), ("set", {"value": "h 60\r*P 0"}, "small letter"), ("get", {}, "letter"),
     ("set", {"value": "h *P"}, "small letter"), ("log", {"value": "x"}, "t, r or e"),
     ("get", {"value": "é"}, "letter"), ("mode", {"value": 65536}, "65535"),
     ("version", {"value": "X"}, "K, S, V or v")],
)  # fmt: skip
def test_a_wrong_command_is_refused_with_what_is_allowed(name: str, args: dict[str, object], told: str) -> None:
    decoder = SlingShot2(ROLE, Options())
    with pytest.raises(ValueError, match=told):
        decoder.command(name, args)
    assert decoder.take_output() == b""
    assert "selftest" in COMMANDS


def test_commands_for_a_wheel_that_is_gone_are_not_kept() -> None:
    decoder = SlingShot2(ROLE, Options())
    decoder.command("restart", {})
    decoder.lost(1, "unplugged")
    assert decoder.take_output() == b""


@pytest.mark.parametrize(
    ("options", "told"),
    [({"pockets": 36}, "37, 38, 39 or 40"), ({"lead_ms": -1}, "30000"), ({"silence_ms": 500}, "1200 to 60000")],
)
def test_impossible_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Options(**options)


def test_family_is_found_by_name() -> None:
    family = load("slingshot2")
    assert (family.kind, family.baud, family.lines) == ("bytes", 9600, ())
    assert isinstance(family.decoder(ROLE, family.options()), SlingShot2)
