"""The demo as people run it: its first line, its end, its cleaning up, and what it says when something fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from hil.contract import Contract
from hil.demo import demo
from hil.floor import Chain, Consumer

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
FIRST = re.compile(r"demo: mqtt://127\.0\.0\.1:(\d+)/(casino/[\w-]+/[\w-]+)\n")


class Running:
    """A demo in a process of its own; its temporary files go where the test can see them."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, port: int, base: str) -> None:
        self.process, self.folder, self.port, self.base = process, folder, port, base
        self.lines: list[str] = []

    @staticmethod
    async def start(folder: Path, *arguments: str) -> Running:
        process = await asyncio.create_subprocess_exec(
            "env", "--default-signal=HUP", sys.executable, "-m", "hil.demo", *arguments,  # also under nohup
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
        assert process.stdout is not None
        first = FIRST.fullmatch((await process.stdout.readline()).decode())
        assert first is not None
        return Running(process, folder, int(first[1]), first[2])

    async def line(self, like: str) -> str:
        """Read on until a line is like that."""
        assert self.process.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                while text := (await self.process.stdout.readline()).decode():
                    self.lines.append(text)
                    if re.search(like, text):
                        return text
        self.process.terminate()
        raise AssertionError(f"no line like {like!r} in:\n{''.join(self.lines)}{await self.said()}")

    async def said(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    def processes(self) -> dict[int, str]:
        """Command line by process id of everything that was started with a file in this folder."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                text = (entry / "cmdline").read_text().replace("\0", " ")
                if str(self.folder) in text:
                    found[int(entry.name)] = text
        return found

    def shoot(self, like: str) -> None:
        """Kill -9 the one process of this demo whose command line is like that."""
        (victim,) = [pid for pid, text in self.processes().items() if like in text]
        os.kill(victim, signal.SIGKILL)

    def left_behind(self) -> list[str]:
        """Files and processes that should be gone."""
        return [*left_in(self.folder), *self.processes().values()]


def left_in(folder: Path) -> list[str]:
    """Files that should be gone."""
    return [str(path) for path in folder.iterdir()]


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose name leaves room for a socket's."""
    return tmp_path_factory.mktemp("d")


@pytest.mark.parametrize("table", ["roue-de-la-chance", "roulette-francaise"])
async def test_the_demo_ends_by_itself_after_its_valid_results(table: str, short: Path) -> None:
    running = await Running.start(short, "--table", table, "--coups", "1")
    socket.create_connection(("127.0.0.1", running.port)).close()  # the address is that of a broker that listens
    consumer = Consumer(running.port, running.base)
    await running.line("table-rig tell")
    await consumer.start()
    try:
        contract = await Contract.published()
        contract.chain = Chain.of((await running.line("results are signed by")).split()[-1])
        await running.line("RESULTAT .* valid")
        assert await running.process.wait() == 0
        assert [problem for heard in consumer.heard for problem in contract.check(heard)] == []
        assert {"status", "state", "event", "result"} <= set(contract.checked)
    finally:
        await consumer.stop()
    assert await running.said() == ""
    assert running.left_behind() == []


async def test_the_demo_survives_being_looked_at_and_cleans_up_when_told_to_go(short: Path) -> None:
    running = await Running.start(short, "--table", "roulette-francaise")
    control = (await running.line("table-rig tell")).split()[3]
    await running.line("status +online")

    async def tell(*words: str) -> None:
        teller = await asyncio.create_subprocess_exec(sys.executable, "-m", "hil", "tell", control, *words)
        assert await teller.wait() == 0

    await tell("unplug", "wheel_sensor")
    await running.line("wheel_sensor")
    await tell("plug", "wheel_sensor")
    running.shoot("mosquitto")
    await running.line("the broker is dead")
    await running.line("status +online")
    await tell("kill", "daemon")
    await running.line("status +online")
    running.process.send_signal(signal.SIGTERM)
    assert await running.process.wait() == 0
    assert running.left_behind() == []


async def test_a_daemon_that_dies_ends_the_demo_with_its_reason(short: Path) -> None:
    running = await Running.start(short, "--coups", "3")
    await running.line("status +online")
    running.shoot("table.toml")
    assert await running.process.wait() == 1
    assert "the daemon died with -9" in await running.said()
    assert running.left_behind() == []


async def test_a_terminal_that_is_closed_ends_it_and_leaves_no_trace(short: Path) -> None:
    running = await Running.start(short)
    await running.line("status +online")
    running.process.send_signal(signal.SIGHUP)
    assert await running.process.wait() == 0
    assert running.left_behind() == []


@pytest.mark.parametrize(("whither", "lines"), [("| head -1", FIRST), ("> /dev/full", re.compile(""))])
async def test_a_reader_who_goes_away_ends_a_demo_without_end_and_leaves_no_trace(
    short: Path, whither: str, lines: re.Pattern[str]
) -> None:
    process = await asyncio.create_subprocess_shell(
        f"{sys.executable} -m hil.demo {whither}",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "TMPDIR": str(short)},
    )  # fmt: skip
    out, err = await process.communicate()
    assert lines.fullmatch(out.decode())
    assert err == b""
    assert left_in(short) == []


async def test_an_unknown_table_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert await demo("roulette-martienne", 1) == 1
    assert "no table 'roulette-martienne'; config/tables has:" in capsys.readouterr().err
