"""One scenario of each game in real time against the unmodified daemon, and the prison stake over kill -9."""

from __future__ import annotations

import pytest

from hil.live import LATE_MS, play_live
from hil.scenario import find, load

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["roue-mises", "rf-prison-kill"])
async def test_live(name: str) -> None:
    for _ in range(3):
        outcome = await play_live(load(find(name)))
        if outcome.held or outcome.late_ms <= LATE_MS:
            break  # a rig that was itself late showed the daemon what no table would: play it again
    assert outcome.wrong == ()
