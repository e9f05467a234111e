"""Replay: the same bytes twice, virtual time in order of due time, errors with line and field."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from controller import replay as module
from controller.codec import decode_fact, encode_state
from controller.config import toml
from controller.errors import ConfigError
from controller.replay import ReplayError, replay, write
from controller.tablectl.__main__ import main
from drivers.base import Edge
from hil import scenario, virtual
from hil.devices.console import Keypad
from hil.peers import acknowledged
from tests.controller.parts import config

SECOND = 1_000_000_000
HEADER: dict[str, Any] = {"v": 1, "game": "roue_de_la_chance", "config": {}}


def trace(folder: Path, *lines: object, header: object = HEADER) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in (header, *lines)))
    return path


def signed(what: str, role: str, at_ns: int = 1) -> dict[str, Any]:
    return command("attest", at_ns, role=role, what=what)


def command(name: str, at_ns: int = 1, *, role: str = "comite", **args: Any) -> dict[str, Any]:
    body = {"name": name, "by": role, "role": role, "args": args}
    return {"in": "Commanded", "source": "command", "at_ns": at_ns, **body}


OPENING = [signed("verification", "comite"), signed("verification", "croupier"), command("open", minimum_cents=200)]


def outs(path: Path, **options: Any) -> list[tuple[int, str]]:
    return [(out.after, type(out.decision).__name__) for out in replay(path, **options)]


def test_each_decision_says_after_which_line_it_was_taken(tmp_path: Path) -> None:
    path = trace(tmp_path, *OPENING, "", {"out": "PhaseChanged", "after": 4}, command("close", 2))
    told = outs(path)
    assert (4, "PhaseChanged") in told
    assert {after for after, _ in told} <= {2, 3, 4, 7}
    assert any(after == 7 for after, _ in told)


def test_rule_timers_elapse_before_the_next_line_and_at_the_end(tmp_path: Path) -> None:
    start = {"in": "SpinStarted", "source": "wheel", "at_ns": 10 * SECOND, "direction": "cw"}
    short = {"house": {"draw_max_ms": 30_000}}
    header = {**HEADER, "config": short}
    path = trace(tmp_path, *OPENING, start, command("state", 100 * SECOND), header=header)
    told = list(replay(path))
    ended = [out for out in told if type(out.decision).__name__ == "CoupEnded"]
    assert [out.after for out in ended] == [5]  # due at 40 s: after the start, before the line at 100 s
    assert [out.after for out in replay(trace(tmp_path, *OPENING, start, header=header))][-1] == 5  # drained


def test_decoders_tick_in_virtual_time(tmp_path: Path) -> None:
    """A press is told once it has settled, with the time of its first edge; nothing ticks but time itself."""
    press = {"in": "Edge", "source": "button.faites_vos_jeux", "level": 1, "at_ns": SECOND}
    release = {**press, "level": 0, "at_ns": 2 * SECOND}
    told = outs(trace(tmp_path, press, release))
    assert told == [(2, "Ignored")]


def test_decoders_come_before_timers_of_the_same_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Slow:
        due = 30 * SECOND

        def __init__(self, *_: object) -> None:
            self.left: int | None = None

        def due_ns(self) -> int | None:
            return self.left

        def opened(self, at_ns: int) -> list[Any]:
            self.left = self.due
            return []

        def tick(self, now_ns: int) -> list[Any]:
            order.append(f"tick {now_ns}")
            self.left = None
            return []

    real = module.Pipeline.elapse

    def elapse(self: module.Pipeline, name: str, at_ns: int) -> Any:
        order.append(f"{name} {at_ns}")
        return real(self, name, at_ns)

    monkeypatch.setattr(module.Pipeline, "elapse", elapse)
    table = config(house={"draw_max_ms": 30_000})
    pipeline = module.Pipeline(table)
    slow = Slow()
    pipeline._roles["console"] = module._Role(table.devices["console"], slow)
    for line in OPENING:
        list(pipeline.step([decode_fact(line)]))
    list(pipeline.step(pipeline.raw({"in": "Opened", "source": "console", "at_ns": 0})))
    start = {"in": "SpinStarted", "source": "wheel", "at_ns": 0, "direction": "cw"}
    list(pipeline.step([decode_fact(start)]))
    list(pipeline.fire(60 * SECOND))
    assert order[0] == f"tick {30 * SECOND}"
    assert order[1].endswith(f" {30 * SECOND}")


def test_a_decoder_that_never_rests_is_an_error_and_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRES_MAX", 50)
    monkeypatch.setattr("drivers.buttons.decoder.Contact.due_ns", lambda self: 5)
    monkeypatch.setattr("drivers.buttons.decoder.Contact.tick", lambda self, now_ns: [])
    with pytest.raises(ReplayError, match=r"trace\.jsonl:2: more than 50 timers before 10 ns"):
        outs(trace(tmp_path, command("state", 10)))


def test_recorded_time_moves_only_by_its_lines(tmp_path: Path) -> None:
    header = {**HEADER, "clock": "recorded", "config": {"house": {"draw_max_ms": 30_000}}}
    start = {"in": "SpinStarted", "source": "wheel", "at_ns": 10 * SECOND, "direction": "cw"}
    late = {"in": "TimerElapsed", "name": "tirage", "source": "timer", "at_ns": 40 * SECOND}
    overtaken = {**late, "at_ns": 39 * SECOND}
    told = outs(trace(tmp_path, *OPENING, start, command("state", 100 * SECOND), overtaken, late, header=header))
    assert [after for after, name in told if name == "CoupEnded"] == [8]
    assert all(after != 7 for after, _ in told)
    assert "CoupEnded" not in [name for _, name in outs(trace(tmp_path, *OPENING, start, header=header))]


def test_state_and_drivers_of_the_header_are_restored(tmp_path: Path) -> None:
    whole = outs(trace(tmp_path, *OPENING, command("close", 2)))
    pipeline = module.Pipeline(config())
    for line in OPENING:
        list(pipeline.step([decode_fact(line)]))
    button = pipeline.role("button.coup_nul")
    button.decoder.feed([Edge("button.coup_nul", 1, SECOND)])
    header = {
        **HEADER,
        "state": encode_state(pipeline.state),
        "drivers": {"button.coup_nul": button.decoder.snapshot()},
    }
    told = outs(trace(tmp_path, command("close", 2), header=header))
    assert [name for after, name in told if after == 2][:1] == [name for after, name in whole if after == 5][:1]
    assert told[-1][1] == "Ignored"  # the press that had been half seen settles after the last line


@pytest.mark.parametrize("name", ["roue-trois-tours", "rf-zero-moitie", "rf-slingshot-debranche"])
def test_the_same_trace_gives_the_same_bytes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = next(path for path in scenario.all_scenarios() if path.stem == name)
    path = tmp_path / "trace.jsonl"
    virtual.write(scenario.load(found), path)
    said = []
    for _ in range(2):
        assert main(["replay", str(path)]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert [json.loads(line)["after"] for line in said[0].splitlines()] == sorted(
        json.loads(line)["after"] for line in said[0].splitlines()
    )
    assert (
        hashlib.sha256("\n".join(write(replay(path))).encode() + b"\n").digest()
        == hashlib.sha256(said[0].encode()).digest()
    )


def test_bytes_and_lost_ports_go_through_the_decoders(tmp_path: Path) -> None:
    lines: Sequence[dict[str, Any]] = [
        {"in": "Opened", "source": "console", "at_ns": SECOND},
        {"in": "Bytes", "source": "console", "hex": "ff00", "at_ns": 2 * SECOND},
        {"in": "Lost", "source": "console", "why": "unplugged", "at_ns": 3 * SECOND},
        {"in": "Tick", "source": "console", "at_ns": 4 * SECOND},
    ]
    assert outs(trace(tmp_path, *lines)) == [(4, "AlarmRaised")]


def test_a_config_by_hand_and_a_header_without_one(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(toml(config(house={"declared_minimum_cents": 1000}).resolved()))
    path = trace(tmp_path, *OPENING, header={"v": 1, "game": "roue_de_la_chance"})
    assert "PhaseChanged" in [name for _, name in outs(path)]
    assert "Refused" in [name for _, name in outs(path, config=mine)]  # 200 is under the declared minimum


WRONG: list[tuple[object, str]] = [
    ("{", "2: not JSON"),
    ("[" * 100_000, "2: not JSON: maximum recursion depth"),
    ("[]", "2: must be a JSON object, not list"),
    ({"at_ns": 1}, "2: in: no input None; there are: Edge, Bytes"),
    ({"in": "Spun", "at_ns": 1}, "2: in: no input 'Spun'"),
    ({"in": "SpinStarted", "at_ns": 1, "source": "wheel"}, "2: .*direction"),
    ({"in": "SpinStarted", "at_ns": 1, "source": "wheel", "direction": "up"}, "2: direction: "),
    ({"in": "SpinSlowed", "at_ns": "1", "source": "wheel"}, "2: at_ns: "),
    ({"in": "SpinSlowed", "at_ns": 1, "source": "wheel", "speed": 3}, "2: speed: unknown field"),
    ({"in": "Edge", "source": "wheel.a", "level": 1}, "2: at_ns: must be a whole number of nanoseconds .*, not None"),
    ({"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": 10**40}, "2: at_ns: .* from 0 to "),
    ({"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": -1}, "2: at_ns: .* from 0 to "),
    ({"in": "SpinSlowed", "at_ns": 2**61 + 1, "source": "wheel"}, "2: at_ns: .* from 0 to "),
    ({"in": "SpinSlowed", "at_ns": 1, "until_ns": 2**64, "source": "wheel"}, "2: until_ns: .* from 0 to "),
    ({"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": 1.5}, "2: at_ns: "),
    ({"in": "Edge", "source": "wheel.c", "level": 1, "at_ns": 1}, "2: source: no line 'wheel.c'; .*wheel.a, wheel.b"),
    ({"in": "Edge", "source": "wheel.a", "level": 2, "at_ns": 1}, "2: level: must be 0 or 1, not 2"),
    ({"in": "Edge", "source": "wheel.a", "level": True, "at_ns": 1}, "2: level: "),
    ({"in": "Edge", "source": "wheel.a", "at_ns": 1}, "2: level: missing in Edge"),
    ({"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": 1, "seq": "1"}, "2: seq: "),
    ({"in": "Edge", "source": "wheel.a", "level": 1, "at_ns": 1, "hex": ""}, "2: hex: unknown field of Edge"),
    ({"in": "Bytes", "source": "rail", "hex": "00", "at_ns": 1}, "2: source: no device 'rail'; .*wheel, console"),
    ({"in": "Bytes", "source": "wheel", "hex": "00", "at_ns": 1}, "2: source: 'wheel' is a device of lines"),
    ({"in": "Bytes", "source": "console", "hex": "0", "at_ns": 1}, "2: hex: must be hexadecimal"),
    ({"in": "Bytes", "source": "console", "hex": 7, "at_ns": 1}, "2: hex: "),
    ({"in": "Bytes", "source": "console", "at_ns": 1}, "2: hex: missing in Bytes"),
    ({"in": "Bytes", "source": "console", "hex": "", "at_ns": 1, "unread_ns": -1}, "2: unread_ns: must be a whole"),
    ({"in": "Lost", "source": "console", "at_ns": 1}, "2: why: missing"),
    ({"in": "Lost", "source": "console", "why": 1, "at_ns": 1}, "2: why: must be a text"),
]


@pytest.mark.parametrize(("line", "says"), WRONG, ids=range(len(WRONG)))
def test_a_line_that_is_not_of_the_format_is_named(line: object, says: str, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=rf"trace\.jsonl:{says}"):
        outs(trace(tmp_path, line))


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("", "1: v: the first line must be a header"),
        ({"v": 2, "game": "roue_de_la_chance"}, "1: v: "),
        ({**HEADER, "clock": "sun"}, "1: clock: 'sun' is not one of: virtual, recorded"),
        ({**HEADER, "drivers": []}, "1: drivers: must be an object"),
        ({**HEADER, "drivers": {"rail": {}}}, "1: drivers: no device 'rail'"),
        (
            {**HEADER, "drivers": {"console": {"x": 1}}},
            "1: drivers.console: is no snapshot of a device of family console",
        ),
        ({**HEADER, "state": {"phase": "lune"}}, "1: phase: "),
    ],
)
def test_a_header_that_is_not_of_the_format_is_named(header: object, says: str, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=rf"trace\.jsonl:{says}"):
        outs(trace(tmp_path, header=header))


def test_a_wrong_configuration_in_the_header_is_refused_by_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.jsonl:1: config: house\.x = 1: unknown key"):
        outs(trace(tmp_path, header={**HEADER, "config": {"house": {"x": 1}}}))


def test_bytes_that_may_have_waited_unread_happened_that_much_earlier(tmp_path: Path) -> None:
    """What a frozen process reads late is no late stake: its instant is an interval, also in the record."""
    keypad = Keypad()
    keypad.tick(0)
    frame = keypad.take_output()
    keypad.feed(acknowledged(frame), 0)
    keypad.place(9 * SECOND, "vert", 200, "Anne")
    keypad.tick(9 * SECOND)
    frame += keypad.take_output()
    call = {"in": "Announced", "at_ns": 8 * SECOND, "source": "button.rien_ne_va_plus", "code": "rien_ne_va_plus"}
    read = {"in": "Bytes", "source": "console", "hex": frame.hex(), "at_ns": 9 * SECOND}
    assert "StakeRefused" in [name for _, name in outs(trace(tmp_path, *OPENING, call, read))]
    told = [name for _, name in outs(trace(tmp_path, *OPENING, call, read | {"unread_ns": 2 * SECOND}))]
    assert "StakeDoubtful" in told
    assert "StakeRefused" not in told


def test_tablectl_exits_2_with_line_and_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(trace(tmp_path, {"in": "Spun"}))]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "trace.jsonl:2: in: no input 'Spun'" in said.err
    assert main(["replay", str(tmp_path / "none.jsonl")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["replay", str(trace(tmp_path, header={"v": 1, "game": "poker"}))]) == 2
    assert "trace.jsonl:1: no shipped table plays 'poker'" in capsys.readouterr().err


def test_a_trace_is_read_line_by_line(tmp_path: Path) -> None:
    """The decisions before a bad line come out: nothing is held in memory until the end."""
    path = trace(tmp_path, *OPENING, "{")
    told = replay(path)
    assert next(told).after == 2
    with pytest.raises(ReplayError, match="5: not JSON"):
        list(told)
