"""Files of the state folder that survive a power cut whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int = 0o640) -> None:
    """Put `data` in the place of `path`: written aside, synced, renamed, folder synced. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        unfinished.unlink()
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, mode)  # whatever the umask
        file.write(data)
        file.flush()
        os.fsync(fd)
    unfinished.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names in `folder` (new, renamed, removed) as durable as the files themselves. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
