"""The line peer against a reader that knows only the kernel's records."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from hil.devices.lines import LineChip, Pulse, record
from tests.drivers.documents import examples, fields

RECORD = struct.Struct("=QIIII24x")


async def opened(tmp_path: Path) -> tuple[LineChip, asyncio.StreamReader, asyncio.StreamWriter]:
    chip = LineChip(tmp_path / "chip.sock", {"wheel.a": 17, "wheel.b": 27}, {"lamp": 5, "buzzer": 13})
    await chip.start()
    reader, writer = await asyncio.open_unix_connection(str(chip.path))
    await chip.connected.wait()
    return chip, reader, writer


def test_the_document_says_what_a_record_is() -> None:
    for example in examples("ports"):
        if example.direction == "<":
            at_ns, kind, offset, *numbers = map(int, fields(example.meaning).values())
            assert record(Pulse(at_ns, "any", int(kind == 1)), offset, *numbers) == example.raw + bytes(24)


async def test_records_carry_the_stamp_and_both_numberings(tmp_path: Path) -> None:
    chip, reader, writer = await opened(tmp_path)
    chip.play([Pulse(1001, "wheel.a", 1), Pulse(1002, "wheel.b", 1), Pulse(1003, "wheel.a", 0, gap=4)])
    records = [RECORD.unpack(await reader.readexactly(48)) for _ in range(3)]
    assert records == [(1001, 1, 17, 1, 1), (1002, 1, 27, 2, 1), (1003, 2, 17, 7, 6)]
    writer.close()
    await chip.close()


async def test_nobody_connected_loses_edges_and_a_new_request_counts_from_one(tmp_path: Path) -> None:
    chip, reader, writer = await opened(tmp_path)
    chip.play([Pulse(1, "wheel.a", 1)])
    await reader.readexactly(48)
    gone = asyncio.Event()
    writer.close()
    while chip.connected.is_set():
        gone.clear()
        await asyncio.sleep(0)
    chip.play([Pulse(2, "wheel.a", 0), Pulse(3, "wheel.a", 1)])
    assert chip.dropped == 2
    reader, writer = await asyncio.open_unix_connection(str(chip.path))
    await chip.connected.wait()
    chip.play([Pulse(4, "wheel.a", 0)])
    assert RECORD.unpack(await reader.readexactly(48)) == (4, 2, 17, 1, 1)
    writer.close()
    await chip.close()


async def test_output_values_switch_only_what_the_mask_names(tmp_path: Path) -> None:
    chip, _, writer = await opened(tmp_path)
    told: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    chip.on_output = lambda role, level: told.put_nowait((role, level))
    writer.write(struct.pack("=QQ", 1 << 5 | 1 << 13, 1 << 5))
    assert await told.get() == ("lamp", 1)
    assert chip.levels == {"lamp": 1, "buzzer": 0}
    writer.write(struct.pack("=QQ", 0, 1 << 5 | 1 << 13))
    assert await told.get() == ("lamp", 0)
    assert told.empty()
    writer.close()
    await chip.close()
    assert not chip.path.exists()
