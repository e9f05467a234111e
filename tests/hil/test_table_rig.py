"""The words of table-rig, and how the demo tells what it hears."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hil import __main__ as program
from hil import scenario
from hil.contract import Contract
from hil.demo import demo_of, main, told
from hil.floor import Heard
from hil.rig import Rig
from hil.run import Outcome, run_virtual
from hil.scenario import ScenarioError
from hil.tables import table


def test_list_names_every_scenario_and_its_law(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(path.stem in out for path in scenario.all_scenarios())
    assert "R-RC-08" in out
    assert "(live only)" in out


def test_run_plays_a_scenario_through_the_products_own_replay(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["run", "roue-signal"]) == 0
    assert capsys.readouterr().out.startswith("ok   roue-signal (virtual, ")


def test_run_says_what_did_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "faux.toml"
    path.write_text(scenario.find("roue-signal").read_text())
    path.with_suffix(".expected.jsonl").write_text('{"out": "CoupEnded", "status": "void"}\n')
    assert program.main(["run", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAIL faux")
    assert "missing: " in out
    assert "unexpected: " in out


def test_a_trace_that_the_product_refuses_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "faux.toml"
    path.write_text(scenario.find("roue-signal").read_text() + "\n[options]\nsegments = []\n")
    path.with_suffix(".expected.jsonl").write_text('{"why": "nothing"}\n')
    outcome = asyncio.run(run_virtual(scenario.load(path)))
    assert outcome.wrong[0].startswith("tablectl replay ended with 2")
    assert "segments" in outcome.wrong[0]


def test_bad_use_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["run", "nothing-like-it"]) == 2
    assert program.main(["tell", "/nowhere/control.sock", "unplug", "wheel"]) == 2
    assert program.main(["report", "--json", "/nowhere/report.json"]) == 2
    err = capsys.readouterr().err
    assert "no scenario 'nothing-like-it'; there are: " in err
    assert "/nowhere/control.sock: No such file" in err
    assert "/nowhere/report.json: No such file" in err


def test_a_reader_who_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as gone:
        done = subprocess.run([sys.executable, "-m", "hil", "list"], stdout=gone, stderr=subprocess.PIPE, check=True)
    assert done.stderr == b""


def test_a_report_has_versions_and_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        program, "all_scenarios", lambda: [scenario.find("roue-signal"), scenario.find("rf-prison-kill")]
    )
    assert program.main(["report", "--json", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert [run["scenario"] for run in report["runs"]] == ["roue-signal"]  # the other one can only be played live
    assert set(report["versions"]) == {"python", "machine", "kernel", "table-controller", "mosquitto"}
    assert "1 of 1 held" in capsys.readouterr().out


async def test_a_running_rig_takes_orders_and_answers_what_it_cannot_do() -> None:
    before = {thread.name for thread in threading.enumerate()}
    rig = Rig(table("roulette-francaise"))
    try:
        await rig.start(daemon=False)

        async def tell(*words: str) -> int:
            return await asyncio.to_thread(program.tell_rig, rig.control, *words)

        plugged = []
        for verb in ("unplug", "plug"):
            assert await tell(verb, "wheel_sensor") == 0
            plugged.append(rig.ttys["wheel_sensor"].plugged)
        assert plugged == [False, True]
        assert await tell("unplug", "wheel") == await tell("plug", "wheel") == 0
        running = []
        for what in ("down", "up"):
            assert await tell("broker", what) == 0
            running.append(rig.broker.process is not None)
        assert running == [False, True]
        assert await tell("unplug", "the moon") == 1
    finally:
        await rig.close()
    assert not rig.folder.exists()
    assert not [t for t in threading.enumerate() if t.name not in before and not t.name.startswith("asyncio_")]


def test_every_table_with_a_demo_scenario_has_one_and_others_are_named() -> None:
    assert demo_of("roue-de-la-chance").demo
    with pytest.raises(ScenarioError, match="no table 'x'"):
        demo_of("x")
    with pytest.raises(SystemExit):
        main(["--coups", "0"])


def heard(suffix: str, retained: bool = False, **body: Any) -> Heard:
    return Heard(suffix, json.dumps(body).encode(), retained)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (heard("status", state="online", reason="started"), "status       online (started)"),
        (heard("status", True, state="offline", reason="stopped"), "status       offline (stopped)"),
        (heard("event", kind="annonce", text="Rien ne va plus"), "annonce      Rien ne va plus"),
        (heard("event", kind="alarm", text="Console perdue", data={"active": True}), "alarm        Console perdue"),
        (
            heard("event", kind="alarm", text="Console perdue", data={"active": False}),
            "alarm        terminée : Console perdue",
        ),
        (heard("state"), ""),
        (Heard("result/last", b"", False), ""),
        (
            heard("result", result_no=2, coup=2, status="held", outcome={"colour": "vert"}, per_turn=2400,
                  travel_counts=7200, reasons=[{"code": "rnvp_absent"}]),
            "RESULTAT     no 2 coup 2: held vert, 3.00 tours; rnvp_absent",
        ),
        (
            heard("result", result_no=1, coup=1, status="valid", outcome={"number": 0}, reasons=[]),
            "RESULTAT     no 1 coup 1: valid 0",
        ),
        (
            heard("settlement/1", lines=[{"player": "A", "type": "noir", "net": 500}, {"player": "B", "type": "pair",
                  "net": None}]),
            "reglement    A noir +500, B pair None",
        ),
        (heard("settlement/1", lines=[]), ""),
    ],
)  # fmt: skip
def test_the_demo_tells_what_it_hears(message: Heard, line: str) -> None:
    assert told(message) == line


async def test_the_contract_refuses_what_is_not_in_it() -> None:
    contract = await Contract.published()
    assert contract.check(heard("nonsense", a=1)) == ["nonsense: no such address in the contract"]
    assert contract.check(Heard("status", b"no json", False))[0].startswith("status: not JSON")
    assert any("state" in problem for problem in contract.check(heard("status", reason="started")))
    assert contract.check(Heard("result/last", b"", True)) == []


def test_an_outcome_in_plain_data() -> None:
    outcome = Outcome(scenario="x", how="live", decisions=3, wrong=("a",))
    assert not outcome.held
    assert outcome.plain() == {"scenario": "x", "how": "live", "decisions": 3, "wrong": ("a",), "late_ms": 0}
