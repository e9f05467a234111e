"""Logging: one JSON line a record on standard error (journald), from a thread, bounded, repetitions counted.

A full queue drops records and counts them; logging never makes the loop wait. The same sentence within a minute is
told once and then counted, so that a fault that repeats for days does not fill the card (field case 95).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import logging.handlers
import queue
import sys
import time
from collections.abc import Iterator
from typing import Final

QUEUE_MAX: Final = 1000
"""Records that may wait for the writer. Policy: the newest is dropped and counted."""
REPEAT_S: Final = 60.0
KNOWN_MAX: Final = 256
"""Sentences whose repetition is watched; beyond, the oldest is forgotten."""


class Line(logging.Formatter):
    """A record as a JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without the line feed."""
        body: dict[str, object] = {
            "level": record.levelname.lower(),
            "from": record.name,
            "task": getattr(record, "task", None),
            "text": record.getMessage(),
        }
        if repeats := getattr(record, "repeats", 0):
            body["repeats"] = repeats
        if record.exc_info:
            body["trace"] = self.formatException(record.exc_info)
        return json.dumps({key: value for key, value in body.items() if value is not None}, ensure_ascii=False)


class Once(logging.Filter):
    """Passes a sentence once a minute; the next time it passes it says how often it was held back."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """True when the record is to be written; also notes the running task."""
        with contextlib.suppress(RuntimeError):
            task = asyncio.current_task()
            record.task = task.get_name() if task is not None else None
        key, now = (record.name, record.getMessage()), time.monotonic()
        told, held = self._known.get(key, (-REPEAT_S, 0))
        if now - told < REPEAT_S:
            self._known[key] = (told, held + 1)
            return False
        record.repeats = held
        self._known.pop(key, None)
        self._known[key] = (now, 0)
        if len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return True


class Queued(logging.handlers.QueueHandler):
    """Hands records to the writer's thread; drops when it cannot keep up."""

    dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Never waits."""
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """The formatter of the writer wants the exception itself."""
        return record


def set_level(level: str) -> None:
    """`debug`, `info`, `warning` or `error`."""
    logging.getLogger().setLevel(level.upper())


@contextlib.contextmanager
def logging_to_stderr(level: str) -> Iterator[Queued]:
    """Log as long as the context lasts; what waits is written at its end, and the level is as it was before."""
    records: queue.Queue[logging.LogRecord] = queue.Queue(QUEUE_MAX)
    front, writer = Queued(records), logging.StreamHandler(sys.stderr)
    writer.setFormatter(Line())
    front.addFilter(Once())
    listener = logging.handlers.QueueListener(records, writer)
    root = logging.getLogger()
    before = root.level
    root.addHandler(front)
    set_level(level)
    logging.captureWarnings(capture=True)
    listener.start()
    try:
        yield front
    finally:
        root.removeHandler(front)
        root.setLevel(before)
        logging.captureWarnings(capture=False)
        listener.stop()
