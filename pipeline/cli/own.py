"""A model that the almanac does not hold, from its own config.json: on one card, what every format and every way to train it takes.

`book_of` makes the almanac of this one model, with the tables and formulas of the others; `told` puts the view `compatibility` of it in words.
Sizes are shown in GiB; a number that is not known has its reason.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import polars as pl

from pipeline.base.bounds import visible
from pipeline.base.failures import Failure
from pipeline.book.facts import read_facts, read_measured
from pipeline.book.schema import PUBLISHED
from pipeline.cli.describe import config_in
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press import build
from pipeline.press.anatomise import UNREADABLE, anatomise
from pipeline.press.flat import flatten
from pipeline.press.lookup import fill_footprints

MODEL_ID = "own/model"
TRAINING_TOKENS = 2048
_RECIPE = {"optimizer_ids": "adamw", "checkpointings": "full"}  # of the trainings that are told
_FIELDS = "phase_id, dtype_id, engine_id, total_bytes, verdict, gpu_count_needed, max_context_tokens, unknown_reason"


class OwnModelError(ValueError):
    """Why there is no answer: no config, one that nobody understands, no such card, no such context."""


def book_of(config_path: Path, database: Path | None = None, only_gpu: str | None = None) -> duckdb.DuckDBPyConnection:
    """The almanac of the model that a config.json describes, in memory or in a new file. Raises OwnModelError and OSError.

    With `only_gpu` it holds that card alone, and of the scenarios those that `told` tells.
    """
    config = _config(config_path)
    if database is not None:
        _check_place(database)
    record = Record(MODEL_ID, config=config, config_kind="verbatim")
    frames = anatomise(Snapshot(config_path.parent, datetime.date.today(), "own", (record,), {}))
    if rejected := frames["rejected"]["reason"].to_list():
        # a reader's own mistake comes with its place in the reader
        raise OwnModelError(f"{config_path}{'' if UNREADABLE in rejected[0] else ' contradicts itself'}: {rejected[0]}")
    if frames["model"]["anatomy_grade"][0] == "unknown":
        raise OwnModelError(visible(frames["model"]["anatomy_note"][0]))
    facts = read_facts()
    if only_gpu is not None:
        facts["gpu"] = facts["gpu"].filter(gpu_id=only_gpu)
        facts["scenario_set"] = _narrowed(facts["scenario_set"])
    connection = duckdb.connect(str(database or ":memory:"))
    connection.execute("SET threads = 1")  # one model is no work to share
    try:
        build.load(connection, facts, {**frames, "measured": read_measured()})
        build.run_sql(connection)
        if database is not None:
            flatten(connection)  # what is kept is asked again; of one question the making takes as long as it saves
        # of one model the plan of a question takes longer than its answer, however the plan is
        connection.execute("PRAGMA disable_optimizer")
        fill_footprints(connection, facts["scenario_set"])
        connection.execute("PRAGMA enable_optimizer")
    except BaseException:
        connection.close()
        if database is not None:
            database.unlink(missing_ok=True)
        raise
    return connection


def answer(config_path: Path, gpu_id: str, context_tokens: int, database: Path | None = None) -> str:
    """What of the model of a config.json fits a card, in lines. What is wrong with the question is said before any work.

    Raises OwnModelError and OSError.
    """
    _config(config_path)
    if database is not None:
        _check_place(database)
    gpu_id = _check(read_facts(), gpu_id, context_tokens)
    with book_of(config_path, database, gpu_id if database is None else None) as connection:
        text = told(connection, gpu_id, context_tokens)
    return text if database is None else f"{text}\n\nkept in {database}: FROM footprint_of('{MODEL_ID}')"


def _narrowed(scenario_sets: pl.DataFrame) -> pl.DataFrame:
    """The scenarios that `told` tells, and those between them: of one sequence, and of training with _RECIPE."""
    rows = []
    for row in scenario_sets.to_dicts():
        wanted = {"sequence_counts": "1"} | ({} if row["phase_ids"] == "inference" else _RECIPE)
        if all(value in (row[name] or "").split() for name, value in wanted.items()):
            rows.append(row | wanted)
    return pl.DataFrame(rows, schema=scenario_sets.schema)


def _config(path: Path) -> dict:
    try:
        config = config_in(path)
    except Failure as problem:
        raise OwnModelError(str(problem)) from None
    if not isinstance(config, dict):
        raise OwnModelError(f"{path.name} is no config: a JSON object was expected")
    return config


def _check_place(database: Path) -> None:
    if database.exists():
        raise OwnModelError(f"{database} is there already")
    if not database.parent.is_dir():
        raise OwnModelError(f"{database.parent} is no folder")


def _check(facts: Mapping[str, pl.DataFrame], gpu_id: str, context_tokens: int) -> str:
    """The id of the card as the book spells it. Raises OwnModelError where no almanac can have the answer: the book knows its cards and contexts before it is built."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE model ({build.declared_columns(PUBLISHED['model'])})")
        for name in ("gpu", "dtype", "phase", "optimizer", "engine", "kv_dtype"):
            connection.register(name, facts[name].to_arrow())
        for name in ("words", "ask/nearest"):
            connection.execute((build.SQL / f"{name}.sql").read_text(encoding="utf-8"))
        gpu_id = _known(connection, gpu_id)
    lookup = facts["scenario_set"].filter(purpose="lookup").select("phase_ids", "contexts").rows()
    published = {int(n) for phases, contexts in lookup if "inference" in phases.split() for n in contexts.split()}
    if context_tokens < min(published):
        raise OwnModelError(f"--context starts at {min(published):,}, the shortest that is worked out")
    return gpu_id


def told(connection: duckdb.DuckDBPyConnection, gpu_id: str, context_tokens: int) -> str:
    """What of the model fits the card, a line for each format, then for each way to train it. Raises OwnModelError."""
    capacity = _capacity(connection, gpu_id)
    model = connection.execute(
        "SELECT parameter_count, layer_count, max_context_tokens, anatomy_note FROM model WHERE model_id = $id",
        {"id": MODEL_ID},
    ).fetchall()[0]
    context = _context(connection, context_tokens)
    lines = [
        f"{model[0]:,} parameters, {model[1]:,} layers, context {f'{model[2]:,}' if model[2] else 'not said'}. {visible(model[3])}.",
        f"{gpu_id} gives one process {_gib(capacity)}.",
        "",
        *(
            [f"{context:,} of the {context_tokens:,} tokens asked for: the next shorter context that is worked out"]
            * (context < context_tokens)
        ),
        *_table(f"one sequence of {context:,} tokens", _rows(connection, gpu_id, context, is_training=False)),
    ]
    training = _rows(connection, gpu_id, TRAINING_TOKENS, is_training=True)
    if training:
        lines += ["", *_table(f"training, {TRAINING_TOKENS:,} tokens, AdamW, full checkpointing", training)]
    return "\n".join(lines)


def _known(connection: duckdb.DuckDBPyConnection, gpu_id: str) -> str:
    """The id, where the book has such a card."""
    try:
        return connection.execute("SELECT known_gpu($gpu_id)", {"gpu_id": gpu_id}).fetchall()[0][0]
    except duckdb.InvalidInputException as error:
        raise OwnModelError(visible(str(error).removeprefix("Invalid Input Error: "))) from None


def _capacity(connection: duckdb.DuckDBPyConnection, gpu_id: str) -> int:
    known = {"gpu_id": _known(connection, gpu_id)}
    return connection.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = $gpu_id", known).fetchall()[0][0]


def _context(connection: duckdb.DuckDBPyConnection, asked: int) -> int:
    """The longest published context that is no longer than what is asked."""
    contexts = connection.execute(
        "SELECT DISTINCT context_tokens FROM footprint WHERE phase_id = 'inference'"
    ).fetchall()
    shorter = [tokens for (tokens,) in contexts if tokens <= asked]
    if not shorter:
        raise OwnModelError(f"--context starts at {min(contexts)[0]:,}, the shortest that is worked out")
    return max(shorter)


def _rows(connection: duckdb.DuckDBPyConnection, gpu_id: str, context: int, *, is_training: bool) -> list[tuple]:
    recipe = (
        "phase_id <> 'inference' AND optimizer_id = $optimizer_ids AND checkpointing = $checkpointings"
        if is_training
        else "phase_id = 'inference'"
    )
    return connection.execute(
        f"SELECT {_FIELDS} FROM compatibility WHERE gpu_id = $gpu_id AND context_tokens = $context AND sequences = 1 AND {recipe} "
        "ORDER BY phase_id DESC, total_bytes DESC NULLS LAST, dtype_id, engine_id",
        {"gpu_id": gpu_id, "context": context} | (_RECIPE if is_training else {}),
    ).fetchall()


def _table(title: str, rows: list[tuple]) -> Iterator[str]:
    yield title
    yield f"  {'':<32} {'per GPU':>11}  {'verdict':<10} {'GPUs':>4} {'longest context':>16}"
    for phase, dtype, engine, total, verdict, gpu_count, longest, reason in rows:
        name = f"{dtype} in {engine}" if phase == "inference" else f"{phase} {dtype}"
        if verdict is None:
            yield f"  {name:<32} {_gib(total):>11}  unknown: {reason}"
        else:
            reach = f"{longest:,}" if longest else "-"
            yield f"  {name:<32} {_gib(total):>11}  {verdict:<10} {gpu_count or '-':>4} {reach:>16}"


def _gib(size: int | None) -> str:
    return "-" if size is None else f"{size / 2**30:,.1f} GiB"
