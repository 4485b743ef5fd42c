"""A model that the almanac does not hold, from its own config.json: on one card, what every format and every way to train it takes.

`book_of` makes the almanac of this one model, with the tables and formulas of the others; `told` puts the view `compatibility` of it in words.
Sizes are shown in GiB; a number that is not known has its reason.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb

from pipeline import build
from pipeline.anatomise import anatomise
from pipeline.facts import read_facts, read_measured
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.lookup import fill_footprints

MODEL_ID = "own/model"
TRAINING_TOKENS = 2048
_FIELDS = "phase_id, dtype_id, engine_id, total_bytes, verdict, gpu_count_needed, max_context_tokens, unknown_reason"


class OwnModelError(ValueError):
    """Why there is no answer: no config, one that nobody understands, no such card, no such context."""


def book_of(config_path: Path, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    """The almanac of the model that a config.json describes, in memory or in a new file. Raises OwnModelError and OSError."""
    try:
        config = json.loads(config_path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OwnModelError(f"{config_path.name} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise OwnModelError(f"{config_path.name} is no config: a JSON object was expected")
    if database is not None and database.exists():
        raise OwnModelError(f"{database} is there already")
    if database is not None and not database.parent.is_dir():
        raise OwnModelError(f"{database.parent} is no folder")
    record = Record(MODEL_ID, config=config, config_kind="verbatim")
    frames = anatomise(Snapshot(config_path.parent, datetime.date.today(), "own", (record,), {}))
    if rejected := frames["rejected"]["reason"].to_list():
        raise OwnModelError(f"{config_path.name} contradicts itself: {rejected[0]}")
    if frames["model"]["anatomy_grade"][0] == "unknown":
        raise OwnModelError(frames["model"]["anatomy_note"][0])
    connection = duckdb.connect(str(database or ":memory:"))
    facts = read_facts()
    build.load(connection, facts, {**frames, "measured": read_measured()})
    build.run_sql(connection)
    fill_footprints(connection, facts["scenario_set"])
    return connection


def told(connection: duckdb.DuckDBPyConnection, gpu_id: str, context_tokens: int) -> str:
    """What of the model fits the card, a line for each format, then for each way to train it. Raises OwnModelError."""
    capacity = _capacity(connection, gpu_id)
    model = connection.execute(
        "SELECT parameter_count, layer_count, max_context_tokens, anatomy_note FROM model WHERE model_id = $id",
        {"id": MODEL_ID},
    ).fetchall()[0]
    context = _context(connection, context_tokens)
    lines = [
        f"{model[0]:,} parameters, {model[1]:,} layers, context {f'{model[2]:,}' if model[2] else 'not said'}. {model[3]}.",
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


def _capacity(connection: duckdb.DuckDBPyConnection, gpu_id: str) -> int:
    try:
        found = connection.execute(
            "SELECT capacity_bytes FROM gpu WHERE gpu_id = (SELECT known_gpu($gpu_id))", {"gpu_id": gpu_id}
        ).fetchall()
    except duckdb.InvalidInputException as error:
        raise OwnModelError(str(error).removeprefix("Invalid Input Error: ")) from None
    return found[0][0]


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
        "phase_id <> 'inference' AND optimizer_id = 'adamw' AND checkpointing = 'full'"
        if is_training
        else "phase_id = 'inference'"
    )
    return connection.execute(
        f"SELECT {_FIELDS} FROM compatibility WHERE gpu_id = $gpu_id AND context_tokens = $context AND sequences = 1 AND {recipe} "
        "ORDER BY phase_id DESC, total_bytes DESC NULLS LAST, dtype_id, engine_id",
        {"gpu_id": gpu_id, "context": context},
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
