"""Who owns the end of a task: critical ones end the process, the others come back (field cases 94, 108)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from controller import supervisor
from controller.clock import Clock
from controller.errors import TaskFailedError
from controller.supervisor import Supervisor


class HandClock(Clock):
    """Monotonic time moved by hand."""

    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def mono_ns(self) -> int:
        return self.ns


async def fails() -> None:
    raise ValueError("boom")


async def returns() -> None:
    return


async def forever() -> None:
    await asyncio.Event().wait()


async def stray() -> None:
    """What it waits for is cancelled, not it."""
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waited.cancel()
    await waited


@pytest.mark.parametrize(
    ("run", "says"), [(fails, "ValueError: boom"), (returns, "ended by itself"), (stray, "waited for was cancelled")]
)
async def test_case_94_the_end_of_a_critical_task_ends_the_group(run: Callable[[], Awaitable[None]], says: str) -> None:
    owner = Supervisor(Clock())

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            owner.critical(group, "journal", run)
            owner.critical(group, "sequencer", forever)

    with pytest.raises(ExceptionGroup) as caught:
        await both()
    error = caught.value.exceptions[0]
    assert isinstance(error, TaskFailedError)
    assert "journal" in str(error)
    assert says in str(error)
    assert owner.reports["journal"].state == "ended"


async def test_a_critical_task_may_end_once_the_stop_has_begun() -> None:
    owner = Supervisor(Clock())
    owner.stopping = True
    async with asyncio.TaskGroup() as group:
        owner.critical(group, "journal", returns)
    assert owner.reports["journal"].state == "ended"


@pytest.mark.parametrize("run", [fails, returns, stray])
async def test_case_94_a_restartable_task_comes_back_and_is_named(
    run: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PAUSES_S", (0.0, 0.001))
    owner, runs, third = Supervisor(Clock()), 0, asyncio.Event()
    causes: list[str] = []

    async def job() -> None:
        nonlocal runs
        runs += 1
        if runs == 3:
            third.set()
            await forever()
        await run()

    async def down(why: str) -> None:
        causes.append(why)

    async with asyncio.TaskGroup() as group:
        task = owner.restartable(group, "chip header", job, down)
        await third.wait()
        report = owner.reports["chip header"]
        assert (report.restarts, report.state, len(causes)) == (2, "running", 2)
        assert causes == ["task_failed"] * 2
        task.cancel()


async def test_a_task_is_started_anew_on_request_and_still_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, runs, causes = Supervisor(Clock()), 0, []
    running = asyncio.Event()

    async def job() -> None:
        nonlocal runs
        runs += 1
        running.set()
        await forever()

    async def down(why: str) -> None:
        causes.append(why)

    async with asyncio.TaskGroup() as group:
        task = owner.restartable(group, "lines:header", job, down)
        for _ in range(3):
            await running.wait()
            running.clear()
            owner.restart("lines:header")
        await running.wait()
        assert (runs, causes, owner.reports["lines:header"].restarts) == (4, ["reopened"] * 3, 3)
        owner.restart("lines:header")
        task.cancel()  # the stop comes in the same moment: it is not lost
    assert task.cancelled()


async def test_the_pause_grows_and_a_stable_run_resets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pauses, runs = HandClock(), [], 0
    owner = Supervisor(clock)

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    async def job() -> None:
        nonlocal runs
        runs += 1
        if runs == 4:
            clock.ns += supervisor.STABLE_NS
        if runs == 5:
            owner.stopping = True
        raise OSError(runs)

    monkeypatch.setattr("controller.supervisor.asyncio.sleep", noted)
    async with asyncio.TaskGroup() as group:
        owner.restartable(group, "mqtt", job)
    first, second, third = supervisor.PAUSES_S[:3]
    assert pauses == [first, second, third, first]


async def test_case_94_silence_of_a_critical_task_is_named() -> None:
    clock = HandClock()
    owner = Supervisor(clock)
    async with asyncio.TaskGroup() as group:
        tasks = [owner.critical(group, name, forever) for name in ("sequencer", "journal")]
        tasks.append(owner.restartable(group, "mqtt", forever))
        clock.ns += 5_000_000_000
        owner.beat("sequencer")
        assert owner.silent(4_000_000_000) == ["journal 5.0 s"]
        assert owner.silent(6_000_000_000) == []
        for task in tasks:
            task.cancel()


async def test_case_109_every_worker_ends_when_it_is_cancelled_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 109: a cancellation is never lost, in the run, in `down` or in the pause."""
    monkeypatch.setattr(supervisor, "PAUSES_S", (0.0,))
    owner = Supervisor(Clock())

    async def job() -> None:
        await asyncio.sleep(0)
        raise OSError

    async def down(why: str) -> None:
        await asyncio.sleep(0)

    for turns in range(200):
        async with asyncio.TaskGroup() as group:
            task = owner.restartable(group, "device", job, down)
            for _ in range(turns % 7):
                await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()
