"""The simulated wheel sensor and console: against the documents' examples, and wired back to back with the drivers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from drivers.console.decoder import Console
from drivers.console.decoder import Options as ConsoleOptions
from drivers.slingshot2.decoder import Options as WheelOptions
from drivers.slingshot2.decoder import SlingShot2
from hil.devices import console, slingshot2
from hil.devices.console import Keypad
from hil.devices.slingshot2 import SlingShot2Wheel
from rules.facts import Announced, ChipPlaced, Chosen, DeviceBack, DeviceLost, Fact, Overrun, PocketRead
from tests.drivers.documents import Example, examples, fields

MS = 1_000_000
SECOND = 1_000 * MS


# --- against the documents -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "example", [e for e in examples("slingshot2") if not e.meaning.startswith("reject")], ids=lambda e: e.meaning
)
def test_simulated_wheel_speaks_the_examples(example: Example) -> None:
    kind, _, rest = example.meaning.partition(" ")
    wheel = SlingShot2Wheel()
    match kind:
        case "status":
            told = fields(rest)
            numbers = {name: int(told[name]) for name in ("state", "spins", "flags", "rpm10")}
            wheel.plan(0, last=told["last"], rotor=told["rotor"], **numbers)
            wheel.tick(0)
            said = wheel.take_output()
            said = said.removeprefix(slingshot2.number_line(told["last"])) if numbers["state"] == 5 else said
            assert said == example.raw
        case "number":
            wheel.plan(0, state=5, number=rest)
            wheel.tick(0)
            assert wheel.take_output().startswith(example.raw)
        case "command" | "answer" | "bonus":
            pass  # the next test plays commands with their answers; the simulated wheel has no bonus numbers
        case _:
            pytest.fail(example.meaning)


@pytest.mark.parametrize(
    ("state", "found"), [(2, "answer F BUSY"), (6, "answer F 12"), (6, "answer O 6 1 60 1159"), (6, "answer T h 60")]
)
def test_simulated_wheel_answers_the_commands_of_the_document(state: int, found: str) -> None:
    rows = examples("slingshot2")
    at = next(n for n, row in enumerate(rows) if row.meaning == found)
    command = next(row for row in reversed(rows[:at]) if row.direction == ">")
    wheel = SlingShot2Wheel()
    wheel.selftest = 12
    wheel.plan(0, state=state)
    wheel.feed(command.raw, 1)
    wheel.tick(61 * SECOND)
    assert rows[at].raw in wheel.take_output()


def test_bonus_numbers_are_no_results_and_tell_when_their_licence_is_over() -> None:
    told = {}
    for mode, days in ((1159, 90), (1159 | 32768, 90), (1159 | 32768, 999)):
        wheel, decoder = SlingShot2Wheel(mode=mode), SlingShot2("wheel_sensor", WheelOptions())
        wheel.licence_days = days
        end_ns = wheel.game(wheel.game(0, "17"), "4")
        facts, bonus = [], 0
        while wheel.due_ns() < end_ns:
            now_ns = wheel.due_ns()
            wheel.tick(now_ns)
            said = wheel.take_output()
            bonus += said.count(b"*Y;")
            facts += decoder.feed(said, now_ns)
        assert [fact.value for fact in facts if isinstance(fact, PocketRead)] == [17, 4]
        told[mode, days] = (facts, bonus, "licence" in str(decoder.health()["fault"]))
    assert [bonus for _, bonus, _ in told.values()] == [0, 12, 12]
    assert [expired for *_, expired in told.values()] == [False, False, True]
    assert len({str(facts) for facts, *_ in told.values()}) == 1


@pytest.mark.parametrize("example", [e for e in examples("console") if e.direction == "<"], ids=lambda e: e.meaning)
def test_simulated_keypad_speaks_the_examples(example: Example) -> None:
    body = example.meaning.strip("`")[1:-5]
    seq, who, age, name, *words = body.split(" ")
    assert console.frame(int(seq), who, int(age), name, *map(console.unescape, words)) == example.raw
    keypad = Keypad(boot=7)
    if name == "ACK":
        keypad.feed(console.frame(int(words[0]), "C", 0, "SHOW", "a"), 0)
        assert example.raw in keypad.take_output()
        return
    keypad._seq = 12 if int(seq) == 0 else int(seq)
    keypad.tick(0)
    assert (example.raw == keypad.take_output()) == (name == "HELLO")
    keypad.feed(next(e.raw for e in examples("console") if "HI" in e.meaning), 0)
    if int(seq):
        keypad.tell(0, name, *map(console.unescape, words), who=who)
        keypad._sends_ns = int(age) * MS
    keypad.tick(2 * SECOND)
    assert name == "HELLO" or example.raw in keypad.take_output()


@pytest.mark.parametrize("example", [e for e in examples("console") if e.direction == ">"], ids=lambda e: e.meaning)
def test_simulated_keypad_hears_the_examples(example: Example) -> None:
    keypad = Keypad(boot=7)
    keypad._seq = 12
    hi = next(e.raw for e in examples("console") if "HI" in e.meaning)
    match example.meaning.split()[3]:
        case "HI":
            keypad.feed(example.raw, 0)
            assert keypad.greeted
        case "WHO*7ACE`":
            keypad.feed(hi, 0)
            keypad.feed(example.raw, 5)
            keypad.tick(5)
            assert b"HELLO" in keypad.take_output()
        case "ACK":
            keypad.feed(hi, 0)
            keypad.announce(0, "coup_nul")
            keypad.tick(0)
            keypad.feed(example.raw, 5)
            keypad.tick(SECOND)
            assert keypad.take_output().count(b"ANN") == 1
        case "SHOW":
            keypad.feed(example.raw + example.raw, 0)
            assert keypad.shown == ["Rien ne va plus"]


def test_both_checksums_agree_with_the_document() -> None:
    assert console.crc16(b"123456789") == 0x29B1


# --- back to back ----------------------------------------------------------------------------------------------------

Channel = Callable[[bytes, int], list[bytes]]


def direct(data: bytes, now_ns: int) -> list[bytes]:
    del now_ns
    return [data]


def byte_at_a_time(data: bytes, now_ns: int) -> list[bytes]:
    del now_ns
    return [data[n : n + 1] for n in range(len(data))]


class Lossy:
    """Loses, flips, doubles and inserts bytes, seeded."""

    def __init__(self, seed: int, share: float = 0.002) -> None:
        self.rng = random.Random(f"lossy {seed}")
        self.share = share
        self.harm = 0

    def __call__(self, data: bytes, now_ns: int) -> list[bytes]:
        del now_ns
        out = bytearray()
        for byte in data:
            if self.rng.random() >= self.share:
                out.append(byte)
                continue
            self.harm += 1
            match self.rng.randrange(4):
                case 0:
                    pass
                case 1:
                    out.append(byte ^ 1 << self.rng.randrange(8))
                case 2:
                    out += bytes((byte, byte))
                case 3:
                    out += bytes((self.rng.randrange(256), byte))
        return [bytes(out)]


def converse(
    decoder: Any, peer: Any, until_ns: int, *, channel: Channel = direct, back: Channel = direct, step_ns: int = 10 * MS
) -> list[Fact]:
    """Run both ends in virtual time; returns what the driver told."""
    facts: list[Fact] = decoder.opened(0)
    for now_ns in range(0, until_ns, step_ns):
        peer.tick(now_ns)
        for piece in channel(peer.take_output(), now_ns):
            facts += decoder.feed(piece, now_ns)
        facts += decoder.tick(now_ns)
        for piece in back(decoder.take_output(), now_ns):
            peer.feed(piece, now_ns)
    return facts


GAMES = (("17", "cw"), ("0", "ccw"), ("36", "cw"), ("36", "ccw"), ("4", "cw"))


def games(wheel: SlingShot2Wheel, **how: Any) -> int:
    at_ns = SECOND
    for number, rotor in GAMES:
        at_ns = wheel.game(at_ns, number, rotor=rotor, **how)
    return at_ns + SECOND


@pytest.mark.parametrize("channel", [direct, byte_at_a_time])
@pytest.mark.parametrize("bare", [True, False])
def test_wheel_and_driver_play_games_over_a_good_line(channel: Channel, bare: bool) -> None:
    wheel = SlingShot2Wheel(bare=bare)
    decoder = SlingShot2("wheel_sensor", WheelOptions())
    facts = converse(decoder, wheel, games(wheel), channel=channel)
    told = [(type(fact).__name__, getattr(fact, "value", getattr(fact, "direction", None))) for fact in facts]
    expected = []
    for number, rotor in GAMES:
        ball = "ccw" if rotor == "cw" else "cw"
        expected += [("BallLaunched", ball), ("DropDue", None), ("PocketRead", int(number))]
    assert told == expected
    assert not any(fact.recovered for fact in facts if isinstance(fact, PocketRead))
    assert decoder.health()["rejects"] == decoder.health()["illegal"] - 1 == 0  # type: ignore[operator] # 6 to 2


def test_wheel_and_driver_recover_what_state_5_did_not_show() -> None:
    wheel = SlingShot2Wheel()
    decoder = SlingShot2("wheel_sensor", WheelOptions())
    facts = converse(decoder, wheel, games(wheel, shown=False))
    assert [(fact.value, fact.recovered) for fact in facts if isinstance(fact, PocketRead)] == [
        (int(number), True) for number, _ in GAMES
    ]


@pytest.mark.parametrize(
    "damage",
    [slingshot2.tail, slingshot2.interleaved, slingshot2.lost_byte, slingshot2.noise],
    ids=lambda damage: damage.__name__,
)
def test_wheel_lines_damaged_as_in_recordings_never_make_a_wrong_number(damage: Any) -> None:
    def now_and_then(line: bytes, rng: random.Random) -> bytes:
        harmed: bytes = damage(line, rng) if rng.random() < 0.1 else line
        return harmed

    wheel = SlingShot2Wheel()
    undamaged = SlingShot2("wheel_sensor", WheelOptions())
    converse(undamaged, wheel, games(wheel), step_ns=50 * MS)
    for seed in range(10):
        wheel = SlingShot2Wheel(seed=seed)
        wheel.damage = now_and_then
        decoder = SlingShot2("wheel_sensor", WheelOptions())
        facts = converse(decoder, wheel, games(wheel), step_ns=50 * MS)
        numbers = [fact.value for fact in facts if isinstance(fact, PocketRead)]
        assert numbers == [int(number) for number, _ in GAMES]
        assert damage is not slingshot2.noise or decoder.health()["frames"] == undamaged.health()["frames"]
        assert int(decoder.health()["rejects"] or 0) > 0


def test_a_flipped_bit_never_goes_unnoticed_by_the_second_source_rule() -> None:
    """No checksum guards a line: a wrong digit in the first state 5 is corrected by a recovered reading."""

    def first_five(line: bytes, rng: random.Random) -> bytes:
        del rng
        harmed = line.replace(b";17;", b";16;") if line.startswith(b"*X;5") and not seen else line
        seen.append(1) if line.startswith(b"*X;5") else None
        return harmed

    seen: list[int] = []
    wheel = SlingShot2Wheel(bare=False)
    wheel.damage = first_five
    decoder = SlingShot2("wheel_sensor", WheelOptions())
    end_ns = wheel.game(SECOND, "17")
    facts = converse(decoder, wheel, end_ns)
    assert [(fact.value, fact.recovered) for fact in facts if isinstance(fact, PocketRead)] == [(16, False), (17, True)]


def test_a_silent_wheel_is_lost_and_comes_back() -> None:
    wheel = SlingShot2Wheel()
    wheel.plan(10 * SECOND, silent_until_ns=20 * SECOND)
    facts = converse(SlingShot2("wheel_sensor", WheelOptions()), wheel, 30 * SECOND)
    assert [type(fact) for fact in facts] == [DeviceLost, DeviceBack]


def test_a_power_cut_of_the_wheel_begins_anew() -> None:
    wheel = SlingShot2Wheel()
    end_ns = wheel.game(SECOND, "17")
    wheel.plan(end_ns + SECOND, power=True)
    decoder = SlingShot2("wheel_sensor", WheelOptions())
    converse(decoder, wheel, end_ns + 3 * SECOND)
    assert decoder.health()["wheel_restarts"] == 1


@pytest.mark.parametrize(
    ("command", "args", "answer"),
    [("power_off", {}, "*P OK"), ("start", {}, "*u OK"), ("mode", {"value": 1157}, "*o 1157"),
     ("set", {"value": "h 161"}, "*T OK"), ("get", {"value": "s"}, "*T s 14.0 17.5"),
     ("version", {"value": "V"}, "*V 2.50"),
     ("position", {}, "*A 13"), ("calibrate", {}, "*C OK"), ("statistics", {}, "*w 31.2 52"), ("wins", {}, "*W NO")],
)  # fmt: skip
def test_wheel_answers_and_driver_keeps_the_answer(command: str, args: dict[str, object], answer: str) -> None:
    wheel = SlingShot2Wheel()
    decoder = SlingShot2("wheel_sensor", WheelOptions())
    decoder.command(command, args)
    converse(decoder, wheel, SECOND)
    assert decoder.sample()["answers"] == [answer]


def test_polled_and_restarted_wheel() -> None:
    wheel = SlingShot2Wheel()
    decoder = SlingShot2("wheel_sensor", WheelOptions())
    decoder.command("poll", {})
    decoder.command("restart", {})
    converse(decoder, wheel, SECOND)
    assert decoder.health()["frames"] == 3
    assert str(decoder.health()["wheel_state"]).startswith("1")


def evening(keypad: Keypad) -> None:
    """Some minutes at a table: 40 announcements, 40 stakes, 20 choices."""
    for n in range(20):
        at_ns = (5 + 6 * n) * SECOND
        keypad.announce(at_ns, "faites_vos_jeux", f"Anne {n}")
        keypad.place(at_ns + SECOND, "cheval:11-14", 500 + n, "J1")
        keypad.place(at_ns + SECOND, "plein:17", 200, "J$2", tableau=2, who="R")
        keypad.announce(at_ns + 2 * SECOND, "rien_ne_va_plus")
        keypad.choose(at_ns + 3 * SECOND, "J1", "zero", "prison")


class Evening(Keypad):
    """Keys are pressed as their time comes, and not before."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.coming: list[tuple[int, str, tuple[object, ...], str]] = []
        self.live = False
        evening(self)
        self.coming.sort(key=lambda entry: entry[0])
        self.live = True

    def tell(self, at_ns: int, name: str, *words: object, who: str = "K") -> None:
        if self.live:
            super().tell(at_ns, name, *words, who=who)
        else:
            self.coming.append((at_ns, name, words, who))

    def tick(self, now_ns: int) -> None:
        while self.coming and self.coming[0][0] <= now_ns:
            at_ns, name, words, who = self.coming.pop(0)
            self.tell(at_ns, name, *words, who=who)
        super().tick(now_ns)


def told(facts: list[Fact]) -> list[Fact]:
    return [fact for fact in facts if isinstance(fact, Announced | ChipPlaced | Chosen)]


def spoken(facts: list[Fact]) -> list[tuple[object, ...]]:
    return [
        (type(f).__name__, *(getattr(f, name, None) for name in ("code", "by", "spot", "cents", "player", "value")))
        for f in told(facts)
    ]


def undisturbed() -> list[Fact]:
    return converse(Console("console", ConsoleOptions()), Evening(), 130 * SECOND)


@pytest.mark.parametrize("channel", [direct, byte_at_a_time])
def test_keypad_and_driver_pass_an_evening_over_a_good_line(channel: Channel) -> None:
    keypad = Evening(boots_in_ns=2 * SECOND)
    facts = converse(Console("console", ConsoleOptions()), keypad, 130 * SECOND, channel=channel)
    assert len(told(facts)) == len(facts) == 100
    assert all(fact.until_ns % SECOND + 1 > 0 for fact in facts)


@pytest.mark.parametrize("seed", range(5))
def test_keypad_and_driver_lose_and_double_nothing_over_a_lossy_line(seed: int) -> None:
    there, back = Lossy(seed), Lossy(seed + 100)
    decoder = Console("console", ConsoleOptions(silence_ms=60_000))
    facts = converse(decoder, Evening(), 140 * SECOND, channel=there, back=back)
    assert there.harm > 10
    assert spoken(facts) == spoken(undisturbed())
    assert [fact for fact in facts if isinstance(fact, Overrun)] == []


def test_the_time_of_a_message_survives_its_repetition() -> None:
    cut = [True]

    def late(data: bytes, now_ns: int) -> list[bytes]:
        cut[0] = now_ns < 8 * SECOND or now_ns >= 9 * SECOND
        return [data] if cut[0] else []

    decoder = Console("console", ConsoleOptions())
    facts = told(converse(decoder, Evening(), 12 * SECOND, channel=late))
    (rnvp,) = [fact for fact in facts if isinstance(fact, Announced) and fact.code == "rien_ne_va_plus"]
    pressed_ns = 7 * SECOND
    assert rnvp.at_ns <= pressed_ns <= rnvp.until_ns + 10 * MS


def test_a_keypad_that_must_forget_leaves_a_hole_that_is_told() -> None:
    keypad, decoder = Keypad(), Console("console", ConsoleOptions())
    converse(decoder, keypad, SECOND)
    keypad.mute = True
    for n in range(console.QUEUE_MAX + 5):
        keypad.announce(SECOND + n, "coup_nul", f"n{n}")
    keypad.mute = False
    facts = []
    for now_ns in range(SECOND, 20 * SECOND, 10 * MS):
        keypad.tick(now_ns)
        facts += decoder.feed(keypad.take_output(), now_ns)
        keypad.feed(decoder.take_output(), now_ns)
    assert [fact.lost for fact in facts if isinstance(fact, Overrun)] == [5]
    assert len(told(facts)) == console.QUEUE_MAX


def test_a_restarted_keypad_is_greeted_again_and_texts_are_shown_once() -> None:
    keypad, decoder = Keypad(), Console("console", ConsoleOptions())
    converse(decoder, keypad, SECOND)
    decoder.command("show", {"text": "Faites vos jeux"})
    facts: list[Fact] = []
    for now_ns in range(SECOND, 8 * SECOND, 10 * MS):
        if now_ns == 3 * SECOND:
            keypad.restart(now_ns, boots_in_ns=SECOND)
            decoder.command("show", {"text": "Rien ne va plus"})
        keypad.tick(now_ns)
        facts += decoder.feed(keypad.take_output(), now_ns) + decoder.tick(now_ns)
        keypad.feed(decoder.take_output(), now_ns)
    assert keypad.shown == ["Faites vos jeux", "Rien ne va plus"]
    assert [getattr(fact, "why", "") for fact in facts] == ["device_restarted"]


def test_a_keypad_in_the_wrong_socket_is_not_greeted() -> None:
    keypad, decoder = Keypad(device="TC-KEYPAD-2"), Console("console", ConsoleOptions(device="TC-KEYPAD-1"))
    keypad.announce(0, "coup_nul")
    facts = converse(decoder, keypad, 5 * SECOND)
    assert [type(fact) for fact in facts] == [DeviceLost]
    assert not keypad.greeted
