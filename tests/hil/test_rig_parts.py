"""Parts of the rig that the daemon leans on: serial cables, simulated peers, rigged tables, the chain of results."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import tomllib
import tty
from pathlib import Path
from typing import Any

import pytest

from drivers.base import Edge
from drivers.cups.decoder import Cups
from drivers.cups.decoder import Options as CupOptions
from hil import tables
from hil.bench import Bench, Cue
from hil.devices.console import Keypad
from hil.devices.slingshot2 import SlingShot2Wheel
from hil.floor import Chain, RigError, Signer, canonical, command
from hil.peers import acknowledged, cue, keypad_of, peers_for, type_in
from hil.rig import Rig
from hil.scenario import Action, Play, ScenarioError
from hil.tty import Tty
from rules.facts import PocketRead

SECOND = 1_000_000_000


def opened(cable: Tty) -> int:
    """The daemon's end."""
    fd = os.open(cable.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    tty.setraw(fd)
    return fd


def read(fd: int) -> bytes:
    ready, _, _ = select.select([fd], [], [], 5)
    assert ready
    return os.read(fd, 100)


def test_a_cable_carries_bytes_both_ways_and_loses_them_while_nobody_listens(tmp_path: Path) -> None:
    cable = Tty(tmp_path / "tty")
    cable.plug()
    cable.send(b"nobody hears this")
    assert not cable.opened()
    fd = opened(cable)
    assert cable.opened()
    cable.send(b"hello")
    assert read(fd) == b"hello"
    os.write(fd, b"back")
    assert cable.receive() == b"back"
    os.close(fd)
    assert cable.receive() == b""
    cable.unplug()


def test_a_pulled_cable_is_the_end_of_the_file_and_its_name_is_gone(tmp_path: Path) -> None:
    cable = Tty(tmp_path / "tty")
    cable.plug()
    fd = opened(cable)
    cable.unplug()
    assert not cable.path.exists()
    assert read(fd) == b""
    os.close(fd)
    cable.send(b"into the air")
    assert cable.receive() == b""
    cable.plug()
    fd = opened(cable)
    cable.send(b"again")
    assert read(fd) == b"again"
    os.close(fd)
    cable.unplug()
    cable.unplug()


def test_the_keypad_says_what_the_croupier_types() -> None:
    keypad = Keypad()
    keypad.tick(0)
    keypad.feed(acknowledged(keypad.take_output()), 1)
    assert keypad.greeted
    stake = {"spot": "rouge", "cents": 500, "player": "Anne", "tableau": 1}
    for verb, value in [
        ("say", "dernier_coup"),
        ("stake", stake),
        ("stake", {**stake, "remove": True}),
        ("choose", {"player": "Anne", "what": "zero", "value": "prison"}),
        ("confirm", True),
        ("confirm", "rouge"),
        ("result", 17),
    ]:
        type_in(keypad, verb, value, SECOND)
    said: list[str] = []
    for ms in range(20):
        keypad.tick(SECOND + ms * 1_000_000)
        output = keypad.take_output()
        said += [
            line.split("*")[0].split(" ", 3)[3] for line in output.decode().splitlines() if not line.startswith("$0")
        ]
        keypad.feed(acknowledged(output), SECOND + ms * 1_000_000)
    assert said == [
        "ANN dernier_coup croupier",
        "CHIP+ 1 rouge 500 Anne",
        "CHIP- 1 rouge 500 Anne",
        "CHOICE 1 Anne zero prison",
        "ANN confirme croupier",
        "RESULT rouge",
        "RESULT 17",
    ]
    with pytest.raises(ScenarioError, match="cannot kill"):
        type_in(keypad, "kill", "daemon", 0)


def test_the_sensor_shows_what_its_cues_say() -> None:
    wheel = SlingShot2Wheel()
    wheel.plan(0, state=2)
    cues = [
        Cue(at_ns=1 * SECOND, what="rotor", rpm=20.0, rotor="ccw"),
        Cue(at_ns=2 * SECOND, what="ball", flags=2),
        Cue(at_ns=3 * SECOND, what="slow"),
        Cue(at_ns=4 * SECOND, what="number", number=17),
        Cue(at_ns=5 * SECOND, what="ready"),
        Cue(at_ns=6 * SECOND, what="ball"),
        Cue(at_ns=7 * SECOND, what="ready", number=8),
    ]
    cue({"wheel_sensor": wheel}, cues)
    wheel.tick(8 * SECOND)
    lines = [line for line in wheel.take_output().decode().splitlines() if line.startswith("*X")]
    states = [line.split(";") for line in lines[::2]]
    assert [(s[1], s[2], s[3].strip(), s[4], s[5], s[6]) for s in states] == [
        ("2", "001", "", "0", "000", "0"),
        ("2", "001", "", "0", "200", "1"),
        ("3", "001", "", "2", "200", "1"),
        ("4", "001", "", "2", "200", "1"),
        ("5", "001", "17", "0", "200", "1"),
        ("2", "002", "17", "0", "200", "1"),
        ("3", "002", "17", "0", "200", "1"),
        ("2", "003", "8", "0", "200", "1"),
        ("2", "003", "8", "0", "200", "1"),
    ]


def test_only_the_rigs_own_addresses_differ_from_the_shipped_table(tmp_path: Path) -> None:
    shipped = tables.table("roulette-francaise")
    rigged = tables.on_the_rig(shipped, tmp_path, "mqtt://127.0.0.1:9", [Signer("chef-1", "chef")])
    assert tomllib.loads(tables.toml(rigged)) == rigged
    changed = {key for key in rigged if shipped.get(key) != rigged[key]}
    assert changed == {"chips", "devices", "mqtt", "state", "keys"}
    assert {role for role in shipped["devices"] if shipped["devices"][role] != rigged["devices"][role]} == {
        "wheel_sensor",
        "console",
    }
    assert rigged["state"]["folder"] == str(tmp_path / "state")
    assert tables.line_offsets(shipped, "header")["wheel.b"] == 27
    assert tables.lamp_offsets(shipped, "header")["buzzer"] == 13


def test_an_unknown_table_or_an_unsuitable_play_is_refused_in_words() -> None:
    with pytest.raises(ScenarioError, match=r"no table 'x'; config/tables has: .*roue-de-la-chance"):
        tables.table("x")
    roue, rf = Bench(tables.table("roue-de-la-chance")), Bench(tables.table("roulette-francaise"))
    with pytest.raises(ScenarioError, match="throw is not for this table's vertical wheel: spin, drawn, hand"):
        roue.play(Play(kind="throw"), 0)
    for kind in ("spin", "drawn"):
        with pytest.raises(ScenarioError, match="is not for this table's cylinder: throw, hand"):
            rf.play(Play(kind=kind, how={"direction": "cw", "counts": 1}), 0)
    late = Action(at="touched", ms=0, verb="press", value="coup_nul")
    with pytest.raises(ScenarioError, match="moments did not come in this play: touched"):
        roue.play(Play(kind="spin", how={"direction": "cw", "speed": 1.5}, actions=(late,)), 0)
    for verb, value, said in (
        ("press", "stop", "rien_ne_va_plus"),
        ("unplug", "moon", "wheel"),
        ("plug", "x", "console"),
    ):
        what = Action(at="start", ms=0, verb=verb, value=value)
        with pytest.raises(ScenarioError, match=f"{verb} '{value}': this table has .*{said}"):
            roue.play(Play(actions=(what,)), 0)
    table = tables.table("roue-de-la-chance")
    table["devices"]["shoe"] = {"family": "shoe", "match": {}}
    with pytest.raises(ScenarioError, match="no simulator for the family 'shoe'"):
        peers_for(table, 0, 0)
    with pytest.raises(ScenarioError, match="no keypad"):
        keypad_of({})
    table["devices"]["second"] = table["devices"]["wheel"]
    with pytest.raises(ScenarioError, match="tables with one encoder, this one has: wheel, second"):
        Bench(table)
    with pytest.raises(ScenarioError, match="nothing that draws craps; games: roue_de_la_chance, "):
        Bench({"game": "craps"})


BOULE = {
    "game": "boule",
    "devices": {"console": {"family": "console"}},
    "options": {"cuvettes": [1, 2, 3, 4, 5, 6, 7, 8, 9] * 2},
}
VINGT_TROIS = {
    "game": "vingt_trois",
    "devices": {"wheel": {"family": "encoder", "chip": "header", "counts_per_turn": 2000, "direction": "ccw"}},
    "options": {"plateau": [[n % 14 + 1, "rouge"] for n in range(27)]},
}
SEEN = Action(at="read", ms=500, verb="result", value="seen")


@pytest.mark.parametrize(("how", "numbers"), [({}, range(1, 10)), ({"number": 7}, [7]), ({"cell": 12}, [4])])
def test_a_basin_without_sensors_has_a_ball_that_a_croupier_reads(how: dict[str, Any], numbers: list[int]) -> None:
    bench = Bench(BOULE)
    script = bench.play(Play(kind="throw", how=how, actions=(SEEN,)), SECOND)
    assert not script.pulses + script.cues
    assert not bench.roles
    assert script.deeds[0].action.value in numbers
    assert list(script.moments) == ["start", "thrown", "dropped", "settled", "read"]
    assert not Bench(BOULE).coast(9 * SECOND)
    lifted = Bench(BOULE).play(Play(kind="throw", how={**how, "picked_up_ms": 1500}), SECOND)
    assert list(lifted.moments) == ["start", "thrown"]


WITH_CUPS = {**BOULE, "devices": {"cups": {"family": "cups", "chip": "header", "lines": list(range(18))}}}
THREE_THROWS = [{"cell": 4}, {"cell": 4}, {"cell": 9}]


def cups_of(plays: list[Play], noise: str = "L0") -> list[str]:
    """What the cups of a basin tell of these plays, one after the other."""
    bench, decoder = Bench(WITH_CUPS, noise=noise), Cups("cups", CupOptions())
    facts, now, seqs = [], SECOND, dict.fromkeys(range(18), 0)
    for play in plays:
        script = bench.play(play, now)
        for pulse in script.pulses:
            cell = int(pulse.line.rpartition(".")[2])
            seqs[cell] += 1 + pulse.gap
            facts += decoder.feed([Edge(pulse.line, pulse.level, pulse.at_ns, seqs[cell])])
        facts += decoder.tick(now := script.ends_ns)
    return [
        f"{type(fact).__name__} {fact.cell if isinstance(fact, PocketRead) else getattr(fact, 'why', '')}".strip()
        for fact in facts
    ]


def thrown(*deeds: tuple[str, int, str, str], **how: Any) -> Play:
    actions = tuple(Action(at=at, ms=ms, verb=verb, value=value) for at, ms, verb, value in deeds)
    return Play(kind="throw", how=how, actions=actions)


@pytest.mark.parametrize("noise", ["clean", "L0", "L1", "L2", "L3"])
def test_the_cups_of_a_basin_tell_where_the_ball_lies_coup_after_coup(noise: str) -> None:
    assert cups_of([thrown(**how) for how in THREE_THROWS], noise) == [f"PocketRead {cell}" for cell in (4, 4, 9)]


def test_what_goes_wrong_at_cups() -> None:
    rest = Play(pause_ms=3000)
    assert cups_of([thrown(cell=4, hops={"ms": 2500, "cell": 7}), rest]) == ["PocketRead 4", "PocketRead 7"]
    assert cups_of([thrown(cell=4, sensor={"also": 7})]) == ["Doubtful two_cups"]
    assert cups_of([thrown(cell=4, sensor={"misses": ["cup"]}), rest]) == ["Doubtful no_cup"]
    assert cups_of([thrown(cell=4, picked_up_ms=2000), thrown(cell=5)]) == ["PocketRead 5"]
    stuck = [thrown(("start", 500, "unplug", "cups.2"), cell=9), thrown(("settled", 900, "plug", "cups.2"), cell=8)]
    assert cups_of(stuck)[-1] == "PocketRead 8"
    cut = thrown(("thrown", 500, "unplug", "cups"), ("read", 500, "plug", "cups"), cell=9)
    assert cups_of([cut, thrown(cell=3)]) == ["DeviceLost unplugged", "DeviceBack", "PocketRead 3"]
    with pytest.raises(ScenarioError, match=r"unplug 'cups.18': this table has cups, cups.0, "):
        Bench(WITH_CUPS).play(thrown(("start", 0, "unplug", "cups.18")), SECOND)


async def test_lines_that_somebody_unplugs_by_hand_are_pulled_up() -> None:
    rig = Rig(tables.table("boule"))
    try:
        sent = []
        for verb, what in (
            ("unplug", "cups.3"), ("unplug", "cups.3"), ("plug", "cups.3"), ("plug", "cups.3"),
            ("unplug", "cups"), ("plug", "cups"),
        ):  # fmt: skip
            await rig.disturb(verb, what)
            sent.append(rig.chips["header"].dropped)
        assert sent == [1, 1, 2, 2, 20, 38]
        with pytest.raises(RigError, match=r"unplug cups.18\? unplug\|plug console, cups; kill daemon"):
            await rig.disturb("unplug", "cups.18")
    finally:
        await rig.close()


def test_a_plate_turns_the_way_it_is_pushed_and_its_ball_lies_in_a_cell() -> None:
    bench = Bench(VINGT_TROIS)
    how = {"direction": "cw", "speed": 8.0, "cell": 12}
    script = bench.play(Play(kind="spin", how=how, actions=(SEEN,)), SECOND)
    assert script.deeds[0].action.value == "13 12"
    assert bench.apparatus.angle < -6, "an encoder that rises with ccw falls"
    assert len({pulse.line for pulse in script.pulses}) == 3
    before = bench.apparatus.angle
    bench.play(Play(kind="hand", how={"direction": "ccw", "counts": 500, "ms": 900}), script.ends_ns)
    assert bench.apparatus.angle == pytest.approx(before + 1.5708, abs=1e-3)


@pytest.mark.parametrize("how", [{"number": 0}, {"cell": 18}, {"number": 2, "cell": 0}])
def test_a_cell_that_is_not_there_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="this basin has no such cell"):
        Bench(BOULE).play(Play(kind="throw", how=how), SECOND)


def result(key: Signer, number: int, before: str, **more: Any) -> bytes:
    body = {"id": f"e/{number}", "result_no": number, "prev_hash": before, "status": "valid", **more}
    digest = hashlib.sha256(before.encode() + b"\n" + canonical(body)).digest()
    sig = base64.b64encode(key.key.sign(digest)).decode()
    return canonical({**body, "hash": digest.hex(), "sig": sig})


def test_the_chain_accepts_what_proves_itself_and_names_what_does_not() -> None:
    key = Signer("table", "table")
    first = result(key, 1, "0" * 64)
    second = result(key, 2, json.loads(first)["hash"])
    chain = Chain.of(key.public)
    assert chain.check(first) == chain.check(second) == chain.check(first) == []
    assert chain.check(second.replace(b'"valid"', b'"void"')) == ["e/2: came again with other bytes"]
    for wrong, said in [
        (result(key, 4, json.loads(second)["hash"]), "result_no 4 after 2"),
        (result(key, 3, "0" * 64), "prev_hash"),
        (result(Signer("other", "x"), 3, json.loads(second)["hash"]), "signature"),
        (result(key, 3, json.loads(second)["hash"]).replace(b'"valid"', b'"void"'), "hash is not that of the body"),
    ]:
        fresh = Chain.of(key.public)
        fresh.check(first)
        fresh.check(second)
        assert any(said in problem for problem in fresh.check(wrong)), said


def test_a_command_is_signed_over_its_canonical_bytes() -> None:
    signer = Signer("chef-1", "chef")
    envelope = signer.envelope(command("demo/rf-1", "resolve", "chef-1", {"as": "valid"}))
    assert envelope["key"] == "chef-1"
    signer.key.public_key().verify(base64.b64decode(envelope["sig"]), canonical(envelope["cmd"]))
