"""What is made once for all workers of a run: the first that needs it makes it, the others wait and take what lies there."""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Callable
from pathlib import Path

from pipeline.hub.snapshot import Snapshot, newest_snapshot

FOLDER = "ALMANAC_TESTS_ONCE"  # what names the folder to all workers


def once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder of the run that `make` fills. Nobody changes what lies in it: who wants to works on a copy."""
    folder = Path(os.environ[FOLDER]) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = folder.with_suffix(".making")
            making.mkdir()  # left behind by a maker that failed: then all who need it fail, and not only the first
            make(making)
            making.rename(folder)
    return folder


@functools.cache
def bundled_snapshot() -> Snapshot:
    """The snapshot that lies in the repository, read once for each worker."""
    return newest_snapshot()
