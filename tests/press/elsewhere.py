"""Another machine, as far as one can be had here: one core, folders that are listed backwards, and by environment another time zone, locale
and hash seed. `python -m tests.press.elsewhere site FOLDER` renders the small tables there, `publish FOLDER MODELS` publishes every n-th model."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OTHER = {"TZ": "Pacific/Kiritimati", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "12345"}


def run(what: str, *arguments: object) -> None:
    command = [sys.executable, "-m", "tests.press.elsewhere", what, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | OTHER, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


class _Backwards:
    """os.scandir with the entries in the opposite order of their names."""

    def __init__(self, *where: object) -> None:
        with _scandir(*where) as entries:
            self.entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

    def __enter__(self) -> _Backwards:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> _Backwards:
        return self

    def __next__(self) -> os.DirEntry:
        return next(self.entries)

    def close(self) -> None:
        self.entries = iter(())


_scandir, _listdir = os.scandir, os.listdir


def move() -> None:
    """From now on this process is elsewhere."""
    os.scandir = _Backwards
    os.listdir = lambda *where: sorted(_listdir(*where), reverse=True)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def site(folder: Path) -> None:
    from tests.render.tiny_tables import published

    published(folder)


def publish(folder: Path, every: int) -> None:
    from pipeline.base.progress import quiet
    from pipeline.hub.snapshot import newest_snapshot
    from pipeline.press import publish as publishing

    whole = newest_snapshot()
    publishing.publish(replace(whole, records=whole.records[::every]), quiet, folder)


if __name__ == "__main__":
    move()
    if sys.argv[1] == "site":
        site(Path(sys.argv[2]))
    else:
        publish(Path(sys.argv[2]), int(sys.argv[3]))
