"""SIGKILL at any moment of a real process that commits: what it reported is there, and nothing is half there."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controller.audit import verify
from controller.journal_file import NAME
from controller.results import first_fault
from controller.signing import PUBLIC_FILE, read_public
from tests.controller.journals import opened

WRITER = """
import os, sys
from pathlib import Path
from tests.controller.journals import opened

with opened(Path(sys.argv[1]), crash=True) as table:
    while True:
        batch = table.coup() if table.state.coup_no % 3 else table.note()
        if not batch.results:
            table.play()
            batch = table.commit()
        if table.scribe.seq % 5 == 0:
            table.journal.mark_sent(batch.messages[0].id)
        if table.scribe.seq % 7 == 0:
            table.journal.tidy()
        told = f"{table.scribe.epoch} {table.scribe.seq} {table.state.coup_no} {table.journal._sent}\\n"
        os.write(1, told.encode())
"""
"""Tells epoch, seq, coup and the last message sent, each time after they were reported as committed."""


@pytest.mark.parametrize("seed", range(4))
def test_case_98_what_was_reported_survives_a_kill(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    epoch, last_seq, last_coup = "", 0, 0
    for life in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path.cwd()
        ) as writer:
            assert writer.stdout is not None
            told = [writer.stdout.readline().split() for _ in range(chance.randrange(1, 30))]
            for _ in range(chance.randrange(0, 3000)):  # somewhere within the next commit
                os.sched_yield()
            writer.send_signal(signal.SIGKILL)
            told += [line.split() for line in writer.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
        said_epoch, seq, coup, sent = told[-1]
        assert epoch in {"", said_epoch.decode()}, "a kill is no reason for a new epoch"
        epoch = said_epoch.decode()
        assert verify(tmp_path / NAME, read_public(tmp_path / PUBLIC_FILE)) is None
        with opened(tmp_path, crash=life % 2 == 0) as table:
            assert table.journal.found.reason == ""
            assert table.scribe.epoch == epoch
            assert table.journal.head.seq > int(seq) >= last_seq
            assert table.state.coup_no in {int(coup), int(coup) + 1}
            assert table.state.coup_no >= last_coup
            assert table.journal.unsent(limit=1)[0].id > int(sent)
            results = table.journal.results_after(0, limit=10**6)
            assert first_fault(results, table.key.public) == ""
            assert [json.loads(payload)["coup"] for payload in results] == list(range(1, table.state.coup_no + 1))
            unsent = [message for message in table.journal.unsent(limit=10**6) if message.suffix == "result"]
            assert [message.payload for message in unsent] == results[len(results) - len(unsent) :]
            last_seq, last_coup = table.journal.head.seq, table.state.coup_no
