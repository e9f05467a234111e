"""What joins a port and its decoders, whatever the port: feed what was read, tick what is due, hand the facts on.

`Feeder` keeps the order *flight recorder, decoder, inbox*. The task of a port waits until there is something to read or
its decoder is due, reads whatever is there, feeds it, and ticks only then, so that a tick never overtakes input that
already waits in the kernel.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Generic, TypeVar

from drivers.base import ByteDecoder, Decoder, Edge, EdgeDecoder, Emit, Tap, fed
from rules.facts import Fact

D_co = TypeVar("D_co", bound=Decoder, covariant=True)


class Feeder(Generic[D_co]):
    """One decoder with its outlets. Every method returns after the inbox has taken the facts (back-pressure)."""

    __slots__ = ("_emit", "_tap", "decoder", "role")

    def __init__(self, role: str, decoder: D_co, emit: Emit, tap: Tap | None = None) -> None:
        self.role = role
        self.decoder = decoder
        self._emit = emit
        self._tap = tap

    def due_ns(self) -> int | None:
        """When `tick` is due (CLOCK_MONOTONIC); None = nothing pending."""
        return self.decoder.due_ns()

    async def edges(self: Feeder[EdgeDecoder], edges: Sequence[Edge]) -> None:
        """Feed level changes, in order of their time."""
        if self._tap is not None:
            self._tap.edges(self.role, edges)
        await self._hand_on(self.decoder.feed(edges))

    async def received(self: Feeder[ByteDecoder], data: bytes, at_ns: int) -> None:
        """Feed bytes, stamped when they were read."""
        unread_ns = self._tap.received(self.role, data, at_ns) if self._tap is not None else 0
        await self._hand_on(fed(self.decoder, data, at_ns, unread_ns))

    async def tick(self, now_ns: int) -> None:
        """Tick the decoder if something is due; call it after the port was drained."""
        due = self.decoder.due_ns()
        if due is None or due > now_ns:
            return
        if self._tap is not None:
            self._tap.ticked(self.role, now_ns)
        await self._hand_on(self.decoder.tick(now_ns))

    async def opened(self, at_ns: int) -> None:
        """The port is open (again)."""
        if self._tap is not None:
            self._tap.opened(self.role, at_ns)
        await self._hand_on(self.decoder.opened(at_ns))

    async def lost(self, at_ns: int, why: str) -> None:
        """The port is gone."""
        if self._tap is not None:
            self._tap.lost(self.role, at_ns, why)
        await self._hand_on(self.decoder.lost(at_ns, why))

    async def _hand_on(self, facts: list[Fact]) -> None:
        if facts:
            await self._emit(facts)


class Backoff:
    """Waiting times between attempts to reopen: full jitter under a ceiling that doubles from 0.5 s to 5 s."""

    __slots__ = ("_ceiling_s",)

    def __init__(self) -> None:
        self._ceiling_s = 0.5

    def next_s(self) -> float:
        """Seconds to wait before the next attempt."""
        wait = random.uniform(0.05, self._ceiling_s)  # noqa: S311 - jitter, not a secret
        self._ceiling_s = min(2 * self._ceiling_s, 5.0)
        return wait

    def reset(self) -> None:
        """The port was open: begin anew."""
        self._ceiling_s = 0.5


async def readable(fd: int, until_ns: int | None = None) -> bool:
    """True when `fd` can be read, False when CLOCK_MONOTONIC has reached `until_ns` first. Reads nothing itself."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bool] = loop.create_future()

    def settle(value: bool) -> None:
        if not ready.done():
            ready.set_result(value)

    timer = None if until_ns is None else loop.call_at(until_ns / 1e9, settle, False)
    loop.add_reader(fd, settle, True)
    try:
        return await ready
    finally:
        loop.remove_reader(fd)
        if timer is not None:
            timer.cancel()
