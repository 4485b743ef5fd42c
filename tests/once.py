"""What is made once for all workers of a run: the first that needs it makes it, the others wait and take what lies there."""

from __future__ import annotations

import fcntl
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.base.caches import cache_folder
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.press import blank

FOLDER = "ALMANAC_TESTS_ONCE"  # what names the folder to all workers


def once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder of the run that `make` fills. Nobody changes what lies in it: who wants to works on a copy."""
    folder = Path(os.environ.get(FOLDER) or _of_a_script().name) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = folder.with_suffix(".making")
            making.mkdir()  # left behind by a maker that failed: then all who need it fail, and not only the first
            make(making)
            making.rename(folder)
    return folder


@functools.cache
def _of_a_script() -> tempfile.TemporaryDirectory:
    """Gone with the process: a script is a run of its own."""
    return tempfile.TemporaryDirectory(prefix="once-")


@contextmanager
def first_alone(name: str) -> Iterator[None]:
    """Who comes first does it alone, the others wait and then do it side by side."""
    done = Path(os.environ[FOLDER]) / name
    with done.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield
        done.touch()


def blank_folder() -> Path:
    """Where the almanac of no model is kept (pipeline/press/blank.py): fifteen seconds of a core, which those that begin together would each take."""
    once("blank", lambda _folder: blank.kept(cache_folder()))
    return cache_folder()


@functools.cache
def bundled_snapshot() -> Snapshot:
    """The snapshot that lies in the repository, read once for each worker."""
    return newest_snapshot()
