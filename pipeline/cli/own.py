"""A model that the almanac does not hold, from its own config.json: the almanac of this one model, with the tables and formulas of the others.

Who asks it asks the same macros (pipeline/ask).
"""

from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import polars as pl

from pipeline.base.bounds import visible
from pipeline.base.caches import cache_folder
from pipeline.base.failures import Failure, OwnModelError
from pipeline.cli.describe import config_in
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press import blank
from pipeline.press.anatomise import UNREADABLE, anatomise
from pipeline.press.lookup import fill_footprints

MODEL_ID = "own/model"


def book_of(config_path: Path, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    """The almanac of the model that a config.json describes. Raises OwnModelError and OSError.

    In memory it is made for one question, and holds no published scenario. In a new file it has all of them.
    """
    if database is not None:
        _config(config_path)
        _check_place(database)
    frames = _anatomy(config_path)
    connection = _filled(frames, database)
    if database is not None:
        try:
            connection.execute("PRAGMA enable_optimizer")
            fill_footprints(connection)
        except BaseException:
            connection.close()
            database.unlink(missing_ok=True)
            raise
    return connection


def write(config_path: Path, database: Path) -> None:
    """The same as a new file that is to be asked, without a published scenario."""
    _filled(_anatomy(config_path), database).close()


def _anatomy(config_path: Path) -> dict[str, pl.DataFrame]:
    config = _config(config_path)
    record = Record(MODEL_ID, config=config, config_kind="verbatim")
    frames = anatomise(Snapshot(config_path.parent, datetime.date.today(), "own", (record,), {}))
    if rejected := frames["rejected"]["reason"].to_list():
        # a reader's own mistake comes with its place in the reader
        raise OwnModelError(f"{config_path}{'' if UNREADABLE in rejected[0] else ' contradicts itself'}: {rejected[0]}")
    if frames["model"]["anatomy_grade"][0] == "unknown":
        raise OwnModelError(visible(frames["model"]["anatomy_note"][0]))
    return frames


def _filled(frames: dict[str, pl.DataFrame], database: Path | None) -> duckdb.DuckDBPyConnection:
    connection = blank.copied(cache_folder(), database)
    try:
        connection.execute("SET threads = 1")  # one model is no work to share
        # of one model the plan of a question takes longer than its answer, however the plan is
        connection.execute("PRAGMA disable_optimizer")
        blank.fill(connection, frames)
    except BaseException:
        connection.close()
        if database is not None:
            database.unlink(missing_ok=True)
        raise
    return connection


def _config(path: Path) -> dict:
    try:
        config = config_in(path)
    except Failure as problem:
        raise OwnModelError(str(problem)) from None
    if not isinstance(config, dict):
        raise OwnModelError(f"{path.name} is no config: a JSON object was expected")
    if not config:
        raise OwnModelError(f"{path.name} is no config: it is empty")
    return config


def _check_place(database: Path) -> None:
    if database.exists():
        raise OwnModelError(f"{database} is there already")
    if not database.parent.is_dir():
        raise OwnModelError(f"{database.parent} is no folder")
