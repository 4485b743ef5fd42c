"""Writes DuckDB files so that the same content is the same bytes: in a process of its own, where memory is handed out empty.

DuckDB writes whole blocks, and into their unused ends what its buffers happened to hold (https://github.com/duckdb/duckdb/issues/23382):
no two files are alike, and a published one would hold scraps of what else this process read. So the allocators of that process are told
to hand out zeros: jemalloc, which DuckDB brings along on Linux, that of the C library, and a jemalloc that takes its place. FSST is left out, because whether it is used
is decided by a random sample, and one thread writes, because several take blocks as they come. Where a system has neither allocator
(macOS), the content is the same and the bytes may differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from pipeline import ROOT
from pipeline.book.packs import Packs
from pipeline.press import file, remote

# MALLOC_PERTURB_ fills what is handed out with the complement of its value
_EMPTY = {"DUCKDB_JE_MALLOC_CONF": "zero:true", "MALLOC_CONF": "zero:true", "MALLOC_PERTURB_": "255"}
_SETTINGS = (
    "SET threads = 1",
    "SET disabled_compression_methods = 'fsst'",
    # one checkpoint, at the end: where others fall depends on how fast the log grows
    "SET checkpoint_threshold = '1TB'",
)


class WriteError(RuntimeError):
    """The file was not written; the message is what DuckDB says."""


def write(source: Path, path: Path, arguments: Mapping[str, str]) -> None:
    """Writes almanac.duckdb from a database that nobody has open. `arguments` are those of `file.write`."""
    with writing(source, path, arguments):
        pass


@contextmanager
def writing(
    source: Path, path: Path, arguments: Mapping[str, str], packs: Packs | None = None
) -> Iterator[Callable[[], None]]:
    """The same beside what is done meanwhile, since it takes one core: the file is whole when the block ends, or when what is given is called.
    Until then the database may be read, and not written. An error of the block ends it. `packs` are those of `file.write`."""
    kept = str(packs.folder) if packs else None
    with _writing(path, {"source": str(source), "arguments": dict(arguments), "packs": kept}) as wait:
        yield wait


def write_remote(path: Path, places: Mapping[str, tuple[Path, str]]) -> None:
    """Writes the file of views over Parquet files that lie elsewhere. `places` are those of `remote.write`."""
    with _writing(path, {"places": {name: [str(near), far] for name, (near, far) in places.items()}}):
        pass


@contextmanager
def _writing(path: Path, told: Mapping[str, Any]) -> Iterator[Callable[[], None]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "pipeline.press.same_bytes", str(path)],
        cwd=ROOT,
        env=os.environ | _EMPTY | {"PYTHONUTF8": "1"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def wait() -> None:
        said = child.stderr.read().decode(errors="replace").strip()
        if child.wait():
            raise WriteError(f"{path.name} could not be written: {said.rpartition(chr(10))[2] or child.returncode}")

    try:
        # the pipe stays open: its end tells the child that nobody waits any more
        child.stdin.write(json.dumps(told).encode() + b"\n")
        child.stdin.flush()
        yield wait
        wait()
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stderr.close()


def main(path: Path) -> None:
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_caller, daemon=True).start()
    with duckdb.connect() as connection:
        for setting in _SETTINGS:
            connection.execute(setting)
        if "places" in told:
            remote.write(connection, path, {name: (Path(near), far) for name, (near, far) in told["places"].items()})
            return
        connection.execute(f"ATTACH '{file.quoted(told['source'])}' AS workshop (READ_ONLY)")
        connection.execute("USE workshop")
        file.write(connection, path, told["arguments"], Packs(Path(told["packs"])) if told["packs"] else None)


def _end_with_caller() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
