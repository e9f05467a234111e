"""tablectl and table-controller from the shell: answers on stdout, reasons on stderr, exit codes as promised."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from controller.__main__ import leaves
from controller.__main__ import main as daemon
from controller.canonical import canonical
from controller.clock import Clock
from controller.commands import Authoriser, Claim
from controller.config import Key, toml
from controller.config_file import load, shipped_tables
from controller.errors import ConfigError, UnreachableError, UsageError
from controller.local_socket import LocalSocket
from controller.signing import read_key, verify
from controller.tablectl import screen, view
from controller.tablectl.__main__ import main
from controller.tablectl.envelope import arguments, envelope
from controller.tablectl.link import Told
from controller.tablectl.local import Local
from controller.wire import Reply

CASE = {
    "game": "roulette_francaise", "kind": "settlement",
    "bets": [{"id": "a", "player": "J1", "type": "pair", "stake": 600, "choices": ["prison", "retire"]}],
    "outcome": {"numbers": [0, 0]},
}  # fmt: skip


def run(
    words: Sequence[str], capsys: pytest.CaptureFixture[str], *, stdin: str = "", monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


# --- settle ----------------------------------------------------------------------------------------------------------


def test_settle_answers_one_case_with_one_and_a_list_with_a_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(["settle"], capsys, stdin=json.dumps(CASE), monkeypatch=monkeypatch)
    answer = {"net": {"a": -450}, "status": {"a": "partial"}, "net_by_player": {"J1": -450}}
    assert (code, json.loads(out), err) == (0, answer, "")
    code, out, _ = run(["settle"], capsys, stdin=json.dumps([CASE, CASE]), monkeypatch=monkeypatch)
    assert (code, json.loads(out)) == (0, [answer, answer])
    code, out, _ = run(["settle"], capsys, stdin="[]", monkeypatch=monkeypatch)
    assert (code, json.loads(out)) == (0, [])


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        ("{", "standard input is not JSON"),
        ("", "standard input is not JSON"),
        ("7", "/"),
        (json.dumps([CASE, {**CASE, "kind": "x"}]), "/1/kind"),
        (json.dumps([CASE, {**CASE, "game": "poker"}]), "/1/game"),
        (json.dumps({**CASE, "outcome": {"numbers": [0.5]}}), "/outcome/numbers/0: 0.5 is not a result"),
        ('{"game":"a","game":"b"}', "standard input is not JSON: key 'game' appears twice"),
        ("[" * 100_000, "standard input is not JSON: maximum recursion depth"),
        (json.dumps(CASE).replace("600", "6" * 5000), "a number of 5000 digits; at most 64"),
        (json.dumps(CASE).replace("600", "6" * 65), "a number of 65 digits; at most 64"),
        (json.dumps(CASE).replace("600", "1e9999999999"), "the number 1e9999999999; at most 64 digits"),
        (json.dumps(CASE).replace("J1", "\\ud800"), "half a character"),
    ],
)
def test_settle_says_where_a_case_is_wrong_and_nothing_else(
    stdin: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(["settle"], capsys, stdin=stdin, monkeypatch=monkeypatch)
    assert (code, out) == (2, "")
    assert err.startswith("tablectl settle: ")
    assert says in err


def test_settle_loads_the_law_and_nothing_else() -> None:
    """A thousand cases in one call must not pay for a daemon."""
    script = (
        "import sys; from controller.tablectl.__main__ import main; code = main(['settle']);"
        "print(','.join(m for m in ('asyncio','msgspec','paho','gpiozero','cryptography') if m in sys.modules));"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps([CASE] * 1000), capture_output=True, text=True, check=True
    )
    answers, loaded = done.stdout.splitlines()
    assert len(json.loads(answers)) == 1000
    assert loaded == ""


# --- keys and envelopes ----------------------------------------------------------------------------------------------


def keygen(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    file = folder / f"{name}.key"
    assert main(["keygen", str(file)]) == 0
    return file, capsys.readouterr().out.strip()


def test_keygen_makes_a_private_file_and_prints_the_public_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, public = keygen(tmp_path, "chef-1", capsys)
    assert file.stat().st_mode & 0o777 == 0o600
    assert verify(public, b"x", read_key(file).sign(b"x"))
    assert main(["keygen", str(file)]) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert main(["keygen", str(tmp_path / "no" / "folder")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_arguments_are_json_where_they_can_be_and_text_otherwise() -> None:
    words = ["minimum_cents=500", "why=late call", 'value="17"', "on=true", "x=00", "empty=", "eq=a=b", "l=[1]"]
    assert arguments(words) == {
        "minimum_cents": 500, "why": "late call", "value": "17", "on": True, "x": "00", "empty": "", "eq": "a=b",
        "l": [1],
    }  # fmt: skip
    for wrong in ("open", "=1"):
        with pytest.raises(UsageError, match="is not KEY=VALUE"):
            arguments([wrong])


def test_what_tablectl_signs_the_daemon_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chef, chef_public), (second, second_public) = (keygen(tmp_path, name, capsys) for name in ("chef-1", "comite-1"))
    keys = (
        Key(name="chef-1", role="chef", public=chef_public),
        Key(name="comite-1", role="comite", public=second_public),
    )
    judge = Authoriser("demo/t-1", keys, Clock())
    asked = envelope(
        "outcome", {"value": 17}, table="demo/t-1", operator="Mme Chef", key=("chef-1", chef), nonce=judge.nonce,
        second=("M. Comité", "comite-1", second),
    )  # fmt: skip
    heard = judge.check(json.dumps(asked).encode(), name="outcome", claim=Claim())
    assert (heard.by, heard.role, heard.args) == ("Mme Chef", "chef", {"value": 17, "second": "M. Comité"})


def test_an_envelope_needs_a_name_a_key_and_plain_values(tmp_path: Path) -> None:
    def asked(**changes: Any) -> dict[str, Any]:
        options: dict[str, Any] = {"table": "demo/t-1", "operator": "x", "key": None}
        return envelope("open", changes.pop("args", {}), **{**options, **changes})

    assert set(asked()) == {"cmd"}
    with pytest.raises(UsageError, match="not Unicode"):
        asked(args={"code": "\udcff"})  # what a shell makes of a byte that is no UTF-8
    with pytest.raises(UsageError, match="who are you"):
        asked(operator="")
    with pytest.raises(UsageError, match="tablectl keygen FILE"):
        asked(key=("a", tmp_path / "none.key"))
    (tmp_path / "open.key").write_text(base64.b64encode(bytes(32)).decode())
    (tmp_path / "open.key").chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        asked(key=("a", tmp_path / "open.key"))
    (tmp_path / "open.key").chmod(0o600)
    with pytest.raises(UsageError, match="float"):
        asked(key=("a", tmp_path / "open.key"), args={"x": 1.5})


# --- use and errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["state"], 2, "which table? give --config FILE, or --broker URL"),
        (["--broker", "mqtt://127.0.0.1:1", "state"], 2, "--broker needs --base"),
        (["--broker", "mqtt://127.0.0.1:1", "--base", "casino/x", "state"], 2, "--broker needs --base"),
        (["--broker", "mqtt://127.0.0.1:1", "--base", "casino/a/b", "state"], 3, "the broker mqtt://127.0.0.1:1"),
        (["--config", "/nowhere.toml", "state"], 2, "cannot be read"),
        (["journal", "verify"], 2, "which journal?"),
        (["journal", "export", "/dev/null"], 2, "an export is signed by the table"),
        (["journal", "verify", "/nowhere"], 2, "no journal /nowhere"),
        (["results"], 2, "which journal?"),
        (["results", "--verify", __file__], 2, "is not the base64 of 32 bytes"),
        (["--broker", "http://x", "--base", "casino/a/b", "state"], 2, "mqtt://HOST:PORT"),
        (["--broker", "mqtt://x:99999", "--base", "casino/a/b", "state"], 2, "mqtt://HOST:PORT"),
        (["--broker", "mqtt://me:secret@x", "--base", "casino/a/b", "state"], 2, "--password-file"),
        (
            ["--broker", "mqtt://x:1", "--base", "casino/a/b", "--password-file", "/nowhere", "state"],
            2,
            "password file",
        ),
    ],
)
def test_bad_use_says_what_to_do(
    words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    got, out, err = run(words, capsys, monkeypatch=monkeypatch)
    assert (got, out) == (code, "")
    assert says in err


def test_an_unknown_word_is_bad_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dance"])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_neither_socket_nor_broker_names_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tomllib.loads(shipped_tables()["roue-de-la-chance"].read_text())
    table["state"]["socket"] = str(tmp_path / "cmd.sock")
    table["mqtt"]["url"] = "mqtt://127.0.0.1:1"
    (tmp_path / "t.toml").write_text(toml(table))
    code, _, err = run(["--config", str(tmp_path / "t.toml"), "state"], capsys, monkeypatch=monkeypatch)
    assert code == 3
    assert "is the daemon running" in err
    assert "the broker mqtt://127.0.0.1:1" in err


def test_schema_prints_the_contract(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run(["schema"], capsys, monkeypatch=monkeypatch)
    assert code == 0
    assert json.loads(out)["asyncapi"] == "3.0.0"


def test_a_reader_that_goes_away_is_no_error() -> None:
    shell = f"{sys.executable} -m controller.tablectl schema | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


# --- table-controller check ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(shipped_tables()))
def test_check_prints_a_configuration_that_reads_back(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon(["check", "--config", str(shipped_tables()[name])]) == 0
    printed = tmp_path / "printed.toml"
    printed.write_text(capsys.readouterr().out)
    assert load(printed).resolved() == load(shipped_tables()[name]).resolved()


def test_check_exits_2_with_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.toml").write_text('schema = 1\nsite = "a b"\n')
    assert daemon(["check", "--config", str(tmp_path / "t.toml")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert all(key in said.err for key in ("t.toml: site = 'a b'", "t.toml: table", "t.toml: game"))


def test_nested_groups_are_told_leaf_by_leaf() -> None:
    one, two = ConfigError("x", []), ValueError("y")
    assert list(leaves(ExceptionGroup("a", [ExceptionGroup("b", [one]), two]))) == [one, two]


# --- the local link --------------------------------------------------------------------------------------------------


async def test_the_local_link_asks_commands_and_watches(tmp_path: Path) -> None:
    path = tmp_path / "cmd.sock"

    async def handle(payload: bytes, _peer: object) -> Reply:
        name = json.loads(payload)["cmd"]["name"]
        return Reply(id="1", ok=True, code="ok", text=name)

    served = LocalSocket(path, handle=handle, queries={"state": lambda: {"phase": "ferme"}}, vouched=())

    def talk() -> list[Any]:
        with Local(path) as link:
            said: list[Any] = [link.get("state"), link.command({"cmd": {"name": "open"}})["text"]]
            told = link.watch("event", seconds=5)
            loop.call_soon_threadsafe(later)
            said.append(next(told))
            said.append(list(link.watch("event", seconds=0.05)))
            return said

    def later() -> None:
        group.create_task(tell())

    async def tell() -> None:
        while not told_once.done():
            served.tell("event", b'{"code":"x"}')
            await asyncio.sleep(0.01)

    loop = asyncio.get_running_loop()
    told_once: asyncio.Future[None] = loop.create_future()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(served.run())
        while not path.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        state, text, told, _ = await asyncio.to_thread(talk)
        told_once.set_result(None)
        task.cancel()
    assert (state, text, told) == ({"phase": "ferme"}, "open", Told("event", {"code": "x"}))


async def test_a_daemon_that_goes_away_is_not_reachable(tmp_path: Path) -> None:
    path = tmp_path / "cmd.sock"
    server = await asyncio.start_unix_server(lambda _reader, writer: writer.close(), path)
    async with server:

        def ask() -> None:
            with Local(path) as link:
                link.get("state")

        with pytest.raises(UnreachableError, match=r"cmd\.sock"):
            await asyncio.to_thread(ask)


# --- the view --------------------------------------------------------------------------------------------------------

STATE = {
    "at": "2026-01-31T12:00:00.000Z", "clock_synchronised": True, "game": "roue_de_la_chance", "seance": 1,
    "partie": 2, "coup": 3, "phase": "lance", "step": "", "interrupted": False, "maintenance": False,
    "limits": {"minimum": 200, "minima": {}, "maxima": {}}, "last_direction": "cw", "epoch": "e", "seq": 9,
    "alarms": [], "options": {"marqueurs": {"bleu": {"player": "Anne", "cents": 1000}}},
}  # fmt: skip
HEALTH = {
    "at": "2026-01-31T12:00:01.000Z", "clock_synchronised": False, "loop_lag_ms": 1, "unsent": 0,
    "devices": {"wheel": {"state": "ok"}, "console": {"state": "lost", "text": "unplugged"}},
    "tasks": {"mqtt": {"state": "waiting"}},
}  # fmt: skip
RESULT = {
    "id": "e/9", "at": "2026-01-31T12:00:02.000Z", "clock_synchronised": True, "result_no": 4, "coup": 3,
    "status": "held", "outcome": {"number": 17, "colour": "noir"}, "reasons": [{"code": "sens"}],
    "travel_counts": 7300, "per_turn": 2400, "direction": "cw", "sources": {"wheel": 17},
}  # fmt: skip
EVENT = {
    "at": "2026-01-31T12:00:03.000Z", "clock_synchronised": True, "kind": "incident", "code": "sens",
    "text": "Même sens", "requirement": "R-GEN-07",
}  # fmt: skip
SETTLEMENT = {
    "at": "2026-01-31T12:00:04.000Z", "clock_synchronised": True,
    "lines": [{"player": "J1", "type": "cheval", "on": [11, 14], "stake": 200, "status": "win", "net": 3400}],
}  # fmt: skip
ALARM = {"name": "device:console", "code": "x", "text": "Perdu", "active": True, "acked": True, "acked_by": "Chef"}
SAID = [
    Told("status", {"state": "online", "reason": "started"}),
    Told("state", STATE), Told("state", STATE), Told("health", HEALTH), Told("health", HEALTH),
    Told("result/last", {**RESULT, "id": "e/8"}), Told("event", EVENT), Told("result", RESULT),
    Told("result/last", RESULT), Told("settlement/1", SETTLEMENT),
    Told("state", {**STATE, "phase": "litige", "step": "x", "interrupted": True, "maintenance": True,
                   "alarms": [ALARM]}),
]  # fmt: skip


def test_plain_lines_say_what_is_new_once() -> None:
    lines: list[str] = []
    view.plain(view.Table(), iter(SAID), lines.append)
    assert lines == [
        "         status   online (started)",
        "12:00:00 state    seance 1, partie 2, coup 3, lance",
        "12:00:01~ health   console lost, task mqtt waiting",
        "12:00:03 incident Même sens [R-GEN-07]",
        "12:00:02 result   no 4, coup 3: 17 noir, held (sens)",
        "12:00:04 payment  J1 cheval 11-14, 2,00 EUR: win 34,00 EUR",
        "12:00:00 state    seance 1, partie 2, coup 3, litige, x, interrompue, MAINTENANCE, alarm device:console",
    ]


def test_amounts_are_written_as_people_write_them() -> None:
    assert [view.euros(amount) for amount in (-250, 1005, "75/2")] == ["-2,50 EUR", "10,05 EUR", "75/2 cent"]
    held = {"player": "A", "type": "rouge", "on": [], "stake": 200, "status": "held", "net": None}
    assert view.payment(held) == "A rouge, 2,00 EUR: held"


def test_who_begins_to_watch_is_told_why_there_is_an_alarm() -> None:
    lines = view.Table().hear(Told("state", {**STATE, "alarms": [ALARM]}))
    assert lines == [
        "12:00:00 state    seance 1, partie 2, coup 3, lance, alarm device:console",
        "12:00:00 alarm    Perdu",
    ]


def test_the_screen_shows_the_same_table() -> None:
    console = Console(record=True, width=160, file=io.StringIO())
    table = view.Table()
    console.print(screen.picture("casino/demo/roue-1", table))
    assert "rien encore" in console.export_text()
    for told in SAID:
        table.hear(told)
    console.print(screen.picture("casino/demo/roue-1", table))
    shown = console.export_text()
    for words in (
        "litige",
        "2,00 EUR",
        "3.04 cw",
        "held (sens)",
        "console",
        "Perdu",
        "Chef",
        "34,00 EUR",
        "MAINT",
        "jetons bleu",
    ):
        assert words in shown


def test_the_screen_is_drawn_until_the_messages_end(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    class Live:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Live:
            return self

        def __exit__(self, *_: object) -> None: ...

        def update(self, picture: object) -> None:
            drawn.append(picture)

    monkeypatch.setattr(screen, "Live", Live)
    screen.show("casino/demo/roue-1", view.Table(), iter(SAID))
    assert len(drawn) == len(SAID)


def test_canonical_bytes_are_what_is_signed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, public = keygen(tmp_path, "a", capsys)
    asked = envelope("open", {"é": 1}, table="a/b", operator="x", key=("a", file))
    assert verify(public, canonical(asked["cmd"]), asked["sig"])
    assert asked["cmd"]["valid_s"] <= 300
    assert time.strptime(asked["cmd"]["issued_at"][:19], "%Y-%m-%dT%H:%M:%S")
