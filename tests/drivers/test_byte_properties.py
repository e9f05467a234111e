"""What holds for any bytes: any split gives the same facts, garbage eats no good frame, nothing is invented."""

from __future__ import annotations

import random
from binascii import crc_hqx
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.console.decoder import Console
from drivers.console.decoder import Options as ConsoleOptions
from drivers.console.frames import FRAME_MAX
from drivers.slingshot2.decoder import Options as WheelOptions
from drivers.slingshot2.decoder import SlingShot2
from drivers.slingshot2.lines import LINE_MAX
from rules.facts import Announced, BallLaunched, Fact, PocketRead

MS = 1_000_000
T0 = 1_000_000_000

many = settings(deadline=None, derandomize=True, max_examples=150)


def frame(body: str) -> bytes:
    return b"$%s*%04X\r\n" % (body.encode(), crc_hqx(body.encode(), 0xFFFF))


def wheel() -> SlingShot2:
    return SlingShot2("wheel_sensor", WheelOptions())


def console() -> Console:
    decoder = Console("console", ConsoleOptions())
    decoder.feed(frame("0 K 0 HELLO 1 TC-KEYPAD-1 b7 1"), T0)
    decoder.take_output()
    return decoder


GAME = [
    b"*X;2;012; 8;0;165;0\r\n",
    b"*X;3;012; 8;0;165;0\r\n",
    b"*X;4;012; 8;0;165;0\r\n",
    b"17\r\n",
    b"*X;5;012;17;0;165;0\r\n",
    b"*X;2;013;17;0;165;0\r\n",
]
TALK = [
    frame("1 K 0 ANN faites_vos_jeux Anne"),
    frame("2 R 12 CHIP+ 1 cheval:11-14 500 J2"),
    frame("0 K 0 BEAT b7 3"),
    frame("3 K 0 ANN rien_ne_va_plus Anne"),
    frame("3 K 250 ANN rien_ne_va_plus Anne"),
    frame("4 K 0 RESULT 17"),
]
FAMILIES: list[Any] = [pytest.param(wheel, GAME, id="slingshot2"), pytest.param(console, TALK, id="console")]

junk = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="*$X;0123456789 ABCDEF\r\n", max_size=40).map(str.encode),
)


@pytest.mark.parametrize(("new", "stream"), FAMILIES)
@many
@given(data=st.data())
def test_any_split_gives_the_same_facts_and_the_same_output(
    new: Callable[[], Any], stream: list[bytes], data: st.DataObject
) -> None:
    noisy = b"".join(data.draw(junk) + line for line in stream)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(noisy)), max_size=12)))
    whole, cut = new(), new()
    expected = whole.feed(noisy, T0)
    pieces = [noisy[a:b] for a, b in zip([0, *cuts], [*cuts, len(noisy)], strict=True)]
    assert [fact for piece in pieces for fact in cut.feed(piece, T0)] == expected
    assert cut.take_output() == whole.take_output()
    assert cut.snapshot() == whole.snapshot()


@pytest.mark.parametrize(("new", "stream"), FAMILIES)
def test_one_byte_at_a_time_is_no_different(new: Callable[[], Any], stream: list[bytes]) -> None:
    whole, cut = new(), new()
    text = b"".join(stream)
    assert [fact for n in range(len(text)) for fact in cut.feed(text[n : n + 1], T0)] == whole.feed(text, T0)


@many
@given(noise=junk)
def test_garbage_before_a_status_line_does_not_eat_it(noise: bytes) -> None:
    decoder = wheel()
    before = decoder.health()["frames"]
    decoder.feed(GAME[0], T0)
    facts = decoder.feed(noise + GAME[1], T0)
    assert any(isinstance(fact, BallLaunched) for fact in facts)
    assert decoder.health()["frames"] == int(before or 0) + 2 + noise.count(GAME[0])


@many
@given(noise=junk)
def test_garbage_before_a_frame_does_not_eat_it(noise: bytes) -> None:
    decoder = console()
    facts = decoder.feed(noise + TALK[0], T0)
    assert [fact for fact in facts if isinstance(fact, Announced)] != []
    assert decoder.health()["frames"] == 2


@pytest.mark.parametrize("new", [wheel, console])
@many
@given(noise=st.binary(max_size=3000))
def test_no_bytes_raise_and_memory_is_bounded(new: Callable[[], Any], noise: bytes) -> None:
    decoder = new()
    decoder.feed(noise, T0)
    kept = decoder.snapshot().get("splitter") or decoder.snapshot()["scanner"]
    assert len(kept["partial"]) <= 2 * max(LINE_MAX + 1, FRAME_MAX)


# --- field case 76: one bad byte and the frame parser never recovers -------------------------------------------------


def announcements(facts: list[Fact]) -> list[str]:
    return [fact.by for fact in facts if isinstance(fact, Announced)]


def numbered(first: int, last: int) -> list[bytes]:
    return [frame(f"{n} K 0 ANN coup_nul n{n}") for n in range(first, last + 1)]


def damaged(line: bytes, how: str, rng: random.Random) -> bytes:
    at = rng.randrange(len(line) - 2)
    return {
        "flipped bit": line[:at] + bytes((line[at] ^ 1 << rng.randrange(8),)) + line[at + 1 :],
        "lost byte": line[:at] + line[at + 1 :],
        "inserted byte": line[:at] + bytes((rng.randrange(256),)) + line[at:],
        "cut short": line[:at],
        "start byte inside": line[:at] + line[:1] + line[at:],
    }[how]


@pytest.mark.parametrize("how", ["flipped bit", "lost byte", "inserted byte", "cut short", "start byte inside"])
def test_field_case_76_one_damage_costs_one_console_frame_at_most(how: str) -> None:
    rng = random.Random(how)
    for _ in range(200):
        decoder = console()
        good = numbered(1, 9)
        facts = decoder.feed(b"".join([*good[:4], damaged(good[4], how, rng), *good[5:]]), T0)
        assert announcements(facts) in (
            [f"n{n}" for n in (1, 2, 3, 4, 6, 7, 8, 9)],
            [f"n{n}" for n in range(1, 10)],  # the damage hit the line end, or added a byte before the frame
        )


@pytest.mark.parametrize("how", ["flipped bit", "lost byte", "inserted byte", "cut short", "start byte inside"])
def test_field_case_76_one_damage_costs_one_status_line_at_most(how: str) -> None:
    rng = random.Random(how)
    for _ in range(200):
        decoder = wheel()
        facts = decoder.feed(b"".join([GAME[0] * 3, damaged(GAME[0], how, rng), *GAME[0:5]]), T0)
        launched = [fact for fact in facts if isinstance(fact, BallLaunched)]
        numbers = [fact for fact in facts if isinstance(fact, PocketRead)]
        assert int(decoder.health()["frames"] or 0) in (7, 8)
        assert launched != []
        assert [fact.value for fact in numbers][-1:] == [17]


def test_field_case_76_a_frame_cut_by_a_silence_does_not_swallow_the_next() -> None:
    decoder = console()
    decoder.feed(numbered(1, 1)[0][:12], T0)
    assert announcements(decoder.feed(numbered(1, 1)[0], T0 + 1000 * MS)) == ["n1"]


def test_field_case_76_a_status_line_cut_by_a_silence_does_not_swallow_the_next() -> None:
    decoder = wheel()
    decoder.feed(GAME[0] + GAME[1][:12], T0)
    facts = decoder.feed(b"".join(GAME[1:5]), T0 + 1000 * MS)
    assert [fact.value for fact in facts if isinstance(fact, PocketRead)] == [17]
    assert decoder.health()["rejects"] == 1


def test_field_case_76_a_line_beyond_the_longest_is_one_damage_and_the_next_is_read() -> None:
    decoder = wheel()
    decoder.feed(b"*s " + b"F" * 10 * LINE_MAX + b"\r\n" + GAME[0], T0)
    assert (decoder.health()["rejects"], decoder.health()["frames"]) == (1, 1)


def test_field_case_76_frames_of_the_longest_kind_arrive() -> None:
    room = FRAME_MAX - len("$1 K 0 ANN coup_nul *FFFF")
    line = frame("1 K 0 ANN coup_nul " + "x" * room)
    assert len(line) == FRAME_MAX + 2
    assert announcements(console().feed(line, T0)) == ["x" * room]
    longer = frame("1 K 0 ANN coup_nul " + "x" * (room + 1))
    assert announcements(console().feed(longer + numbered(1, 1)[0], T0)) == ["n1"]


@pytest.mark.parametrize("new", [wheel, console])
def test_field_case_76_ten_mebibytes_of_noise_invent_nothing(new: Callable[[], Any]) -> None:
    decoder, rng = new(), random.Random(76)
    told = [type(fact).__name__ for n in range(160) for fact in decoder.feed(rng.randbytes(1 << 16), T0 + n)]
    assert set(told) <= {"Doubtful"}
    good = GAME if new is wheel else TALK
    assert decoder.feed(b"".join(good), T0 + 200) != []
