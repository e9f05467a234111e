"""Do commands reach this table? A granted subscription proves nothing (field case 31): we send ourselves a message.

It is proved at each connection, and again from time to time, for rights may change under a live connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from controller import wire
from controller.clock import Clock
from controller.connection import Acked, Disconnected
from rules.words import text

PROBE: Final = "probe"
"""Our message comes to `cmd/probe`; there is no such command."""
PROBE_S: Final = 60.0
"""Between two proofs."""
PROBE_WAIT_S: Final = 5.0
"""How long our message may take; and the pause before the next one when it did not come."""


class CommandPath:
    """`run` is a worker of the floor, which tells when the link goes `up` and `down` and what was `heard`."""

    def __init__(
        self,
        base: str,
        *,
        publish: Callable[[str, bytes], Awaitable[Acked]],
        ready: asyncio.Event,
        clock: Clock,
        alarm: Callable[[str, str, str], None],
        clear: Callable[[str], None],
    ) -> None:
        """`ready` is set while the link is up and everything that stands has been said."""
        self.proof: wire.Proof = "untested"
        self._base, self._publish, self._ready, self._clock = base, publish, ready, clock
        self._alarm, self._clear = alarm, clear
        self._down = asyncio.Event()
        self._sent = b""
        self._came = asyncio.Event()

    def up(self) -> None:
        """The link is up."""
        self._down.clear()

    def down(self) -> None:
        """The link is gone; the next one is proved anew."""
        self.proof = "untested"
        self._down.set()

    def heard(self, payload: bytes) -> None:
        """Something came to `cmd/probe`; what is not our latest comes from a connection before, or from strangers."""
        if payload == self._sent:
            self._came.set()

    async def run(self) -> None:
        """Prove it for ever."""
        while True:
            await self._ready.wait()
            try:
                came = await self._comes()
            except Disconnected:
                continue
            if not self._ready.is_set():
                continue
            self._tell(came)
            with contextlib.suppress(TimeoutError):  # the next connection is proved at once
                async with asyncio.timeout(PROBE_S if came else PROBE_WAIT_S):
                    await self._down.wait()

    async def _comes(self) -> bool:
        """Does a message that we send come back; raises Disconnected."""
        self._came.clear()
        self._sent = self._message()
        acked = await self._publish(f"{self._base}/cmd/{PROBE}", self._sent)
        if acked.ok:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROBE_WAIT_S):
                    return await self._came.wait()
        return False

    def _tell(self, came: bool) -> None:
        self.proof = "verified" if came else "not_verified"
        if came:
            self._clear("mqtt:command_path")
        else:
            topic = f"{self._base}/cmd/#"
            self._alarm("mqtt:command_path", "mqtt_command_path", text("mqtt_command_path", topic=topic))

    def _message(self) -> bytes:
        command = wire.Command(
            id=secrets.token_hex(8),
            name=PROBE,
            table=self._base.partition("/")[2],
            issued_at=self._clock.utc(),
            valid_s=10,
            operator="table-controller",
            args={},
        )
        return wire.encode(wire.Envelope(cmd=command))
