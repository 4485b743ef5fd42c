"""What a config.json is answered from, kept in the folder for caches: the second question about a model begins where the first one ended.

A file of each config, by the config and by all that reads it; the newest few stay. Little is imported here: who finds his file reads no config.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path

import duckdb

from pipeline import ROOT
from pipeline.base.caches import cache_folder

KEPT = 8  # files of some 10 MB each
_LEFT_SECONDS = 3600  # a folder that is older was left by a run that was killed
_LARGEST_BYTES = 4 * 1024**2
_MADE_OF = ("pipeline", "tables/facts", "tables/schema", "tables/sql", "tables/library")
_SUFFIXES = (".py", ".csv", ".sql", ".jsonl")


def book_of(config_path: Path) -> duckdb.DuckDBPyConnection:
    """The almanac of the model that a config.json describes, to be asked. Raises OwnModelError and OSError."""
    path = _place(config_path)
    if path is not None and path.exists():
        try:
            return _opened(path)
        except duckdb.Error:  # damaged: made anew
            path.unlink(missing_ok=True)
    from pipeline.cli import own

    if path is not None and _made(config_path, path):
        return _opened(path)
    return own.book_of(config_path)


def forget(config_path: Path) -> None:
    """Removes the file of a config, which does not answer."""
    if path := _place(config_path):
        path.unlink(missing_ok=True)


def _opened(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(path), read_only=True)
    try:
        connection.execute("SET threads = 1")  # one model is no work to share
    except BaseException:
        connection.close()
        raise
    return connection


def _made(config_path: Path, path: Path) -> bool:
    """Whether the folder takes the file."""
    from pipeline.cli import own

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="own-") as making:
            own.write(config_path, Path(making, path.name))
            Path(making, path.name).replace(path)
        _tidied(path.parent)
    except (OSError, duckdb.IOException):
        return False
    return path.exists()


def _tidied(folder: Path) -> None:
    for left in folder.glob("own-*/"):
        if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
            for file in left.iterdir():
                file.unlink(missing_ok=True)
            left.rmdir()
    files = sorted(folder.glob("own-*.duckdb"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in files[KEPT:]:
        old.unlink(missing_ok=True)


def _place(config_path: Path) -> Path | None:
    """Where the file of a config is, or would be; None of what is no config that anybody reads."""
    try:
        if config_path.stat().st_size > _LARGEST_BYTES:
            return None
        told = config_path.read_bytes()
    except OSError:
        return None
    digest = hashlib.sha256(duckdb.__version__.encode())
    for file in sorted(file for top in _MADE_OF for file in (ROOT / top).rglob("*") if file.suffix in _SUFFIXES):
        found = file.stat()
        digest.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    digest.update(told)
    return cache_folder() / f"own-{digest.hexdigest()[:24]}.duckdb"
