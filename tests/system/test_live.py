"""One scenario of each game in real time against the unmodified daemon, and the prison stake over kill -9."""

from __future__ import annotations

import pytest

from hil.live import play_live
from hil.scenario import find, load

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", ["roue-trois-tours", "rf-slingshot-debranche", "rf-prison-kill"])
async def test_live(name: str) -> None:
    outcome = await play_live(load(find(name)))
    assert outcome.wrong == ()
