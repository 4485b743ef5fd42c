"""The default lookup: footprints of every model whose anatomy is known, in every published scenario.

Two in three models have the shape and the weights of another one (fine-tunes, re-uploads): a footprint is worked out once for each
distinct pair and written for every model that shares it. Nothing else of a model enters a footprint; a test holds that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import polars as pl
import pyarrow as pa

from pipeline.base.progress import Progress, quiet
from pipeline.book.content import CONTENT, SHAPE, WEIGHT, keep_contents
from pipeline.book.packs import Packs, fingerprint
from pipeline.press import held, layers
from pipeline.press.flat import grid
from pipeline.press.side_by_side import side_by_side

_PAIRS_PER_STEP = 4_000
# purpose of the scenarios, and the table that holds their footprints
_PURPOSES = tuple(zip(grid.PURPOSES, held.COLUMNS, strict=True))
_ANSWERED = ", ".join(dict.fromkeys(name for columns in held.COLUMNS.values() for name in columns))


def fill_footprints(
    connection: duckdb.DuckDBPyConnection,
    progress: Progress = quiet,
    models: Sequence[str] | None = None,
) -> None:
    """Fills the tables `footprint` and `ladder` with rows of their own for every model, or for some."""
    work_out(connection, progress, models)
    for _purpose, table in _PURPOSES:
        connection.execute(f"INSERT INTO {table} BY NAME FROM ({held.of_twins(table)}) ORDER BY {held.ORDER}")
        connection.execute(f"DROP TABLE {held.numbers(table)}; DROP TABLE {held.scenarios(table)}")
    connection.execute("DROP TABLE twin")


def share_footprints(
    connection: duckdb.DuckDBPyConnection,
    progress: Progress = quiet,
    packs: Packs | None = None,
) -> None:
    """The same as views: what models have in common is there once. Takes the place of the two tables, which must be empty. Rows that `packs`
    have are not worked out again."""
    if packs is None:
        keep_contents(connection)
    work_out(connection, progress, packs=packs)
    for _purpose, table in _PURPOSES:
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE VIEW {table} AS {held.of_twins(table)}")
    layers.weigh(connection, packs)


def work_out(
    connection: duckdb.DuckDBPyConnection,
    progress: Progress = quiet,
    models: Sequence[str] | None = None,
    packs: Packs | None = None,
    twins: pl.DataFrame | None = None,
) -> None:
    """Makes `twin`, and the rows of the first of each: `twin_footprint`, `twin_ladder`. In steps, so that memory stays flat and progress shows.
    Whoever works out a part says which `twins` they are among all models."""
    if twins is None:
        find_twins(connection, models)
    else:
        connection.register("twin_rows", twins.to_arrow())
        connection.execute("CREATE OR REPLACE TABLE twin AS FROM twin_rows")
        connection.unregister("twin_rows")
    find_keys(connection, packs)
    tables = {table: held.begin(connection, table) for _purpose, table in _PURPOSES}
    if packs:
        _take(connection, packs, tables)
    prepare(connection)
    left = steps(connection)
    for step, found in zip(progress(left, desc="footprints"), side_by_side(connection, _worked_out, left), strict=True):
        for table, growing in tables.items():
            growing.append(found[held.numbers(table)], found[held.scenarios(table)])
        if packs:
            _keep(connection, packs, step, found)
    for growing in tables.values():
        growing.end()
    for name in ("bend", "pair_key", grid.DERIVED):
        connection.execute(f"DROP TABLE {name}")


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """What all steps read: what is derived of models, and their bends."""
    for statement in grid.statements(connection, "models"):
        connection.execute(statement)
    _find_bends(connection)


# what programs make of a model's name: nothing that is worked out beforehand names a program
_OF_PROGRAMS = ("repositories",)


def find_twins(connection: duckdb.DuckDBPyConnection, models: Sequence[str] | None = None) -> None:
    """`twin`: for each model and dtype the first model of the same shape and weights, which is worked out for all of them."""
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE twin AS
        WITH same_shape AS (
            SELECT model_id, min(model_id) OVER (PARTITION BY {_facts(connection, SHAPE, "model_id", *_OF_PROGRAMS)}) AS shape_id
            FROM shape WHERE $models IS NULL OR list_contains($models, model_id)
        )
        SELECT
            model_id, dtype_id,
            min(model_id) OVER (PARTITION BY shape_id, dtype_id, {_facts(connection, WEIGHT, "model_id", "dtype_id")}) AS first_id
        FROM same_shape JOIN weight USING (model_id)
        """,
        {"models": None if models is None else list(models)},
    )


def _find_bends(connection: duckdb.DuckDBPyConnection) -> None:
    """`bend`: the contexts at which the total of a model bends, found once for each; asked beside the grid they took as long as all answers."""
    connection.execute(
        """
        CREATE OR REPLACE TABLE bend AS
        SELECT model_id, unnest(ladder_contexts(shape, constants)) AS context_tokens FROM shape CROSS JOIN constants
        WHERE model_id IN (SELECT model_id FROM pair_key)
        """
    )


def _facts(connection: duckdb.DuckDBPyConnection, table: str, *keys: str) -> str:
    columns = [row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()]
    return ", ".join(f'{table}."{column}"' for column in columns if column not in keys)


def find_keys(connection: duckdb.DuckDBPyConnection, packs: Packs | None = None) -> None:
    """`pair_key`: of each model that is worked out the number of its formats, and a hash of all that its rows are made of."""
    if packs:
        keep_contents(connection)
    made_of = f"sha256(concat_ws(' ', $formulas, content, of_formats)) AS key FROM own JOIN {CONTENT} USING (model_id)"
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE pair_key AS
        WITH own AS (
            SELECT model_id, count(*) AS pair_count, string_agg(dtype_id, ' ' ORDER BY dtype_id) AS of_formats
            FROM twin WHERE model_id = first_id GROUP BY model_id
        )
        SELECT model_id, pair_count, key FROM (SELECT own.*, {made_of if packs else "NULL AS key FROM own"}) ORDER BY model_id
        """,
        {"formulas": fingerprint()} if packs else {},
    )


def _take(connection: duckdb.DuckDBPyConnection, packs: Packs, growing: Mapping[str, held.Growing]) -> None:
    """What was worked out before; what is left in `pair_key` was not."""
    models = dict(connection.execute("SELECT key, model_id FROM pair_key").fetchall())
    for found, tables in packs.taken(models):
        names = {key: models[key] for key in found}
        for table, whole in growing.items():
            rows = held.renamed(tables[held.numbers(table)], "key", "model_id", names)
            whole.append(rows, tables[held.scenarios(table)])
        connection.execute("DELETE FROM pair_key WHERE list_contains($found, key)", {"found": found})


def _keep(
    connection: duckdb.DuckDBPyConnection, packs: Packs, step: Sequence[str], found: Mapping[str, pa.Table]
) -> None:
    """Keeps what was worked out for some models, by key."""
    query = "SELECT model_id, key FROM pair_key WHERE list_contains($models, model_id)"
    keys = dict(connection.execute(query, {"models": step}).fetchall())
    kept = {
        held.numbers(table): held.renamed(found[held.numbers(table)], "model_id", "key", keys) for table in held.COLUMNS
    }
    packs.put(list(keys.values()), found | kept)


def steps(connection: duckdb.DuckDBPyConnection) -> list[list[str]]:
    """The models of each step."""
    found: list[list[str]] = []
    pairs = 0
    for model_id, count in connection.execute("SELECT model_id, pair_count FROM pair_key ORDER BY 1").fetchall():
        if not found or pairs + count > _PAIRS_PER_STEP:
            found.append([])
            pairs = 0
        found[-1].append(model_id)
        pairs += count
    return found


def _worked_out(connection: duckdb.DuckDBPyConnection, models: Sequence[str]) -> dict[str, pa.Table]:
    """The rows of some models by table. Both purposes in one question: that is planned anew each time it is asked, and planning takes as
    long as thousands of answers."""
    for side in grid.SIDES:
        worked_out_of(connection, models, side)
    # of several ways to share the one that needs least; where they need the same, or nothing is known, ZeRO-3 before ZeRO-2
    # (a window over the same rows took three times as long)
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE chosen AS
        SELECT arg_max(rowid, (total_bytes IS NOT NULL, -needed(total_bytes, error_band), sharding)) AS row
        FROM answer_training GROUP BY model_id, place, context_tokens
        """
    )
    rows = "FROM answer_serving UNION ALL (FROM answer_training WHERE rowid IN (SELECT row FROM chosen))"
    found: dict[str, pa.Table] = {}
    for purpose, table in _PURPOSES:
        found |= held.apart(connection, table, f"FROM ({rows}) WHERE purpose = '{purpose}'")
    return found


def worked_out_of(connection: duckdb.DuckDBPyConnection, models: Sequence[str], side: str) -> None:
    """`answer_serving` or `answer_training`: every way to share, for each purpose."""
    # a tier works out what the formulas ask only where it can be divided
    connection.execute("SET SESSION error_on_division_by_zero = false")
    _ask(connection, models, side)
    *tiers, answers = grid.statements(connection, side)
    for statement in tiers:
        connection.execute(statement)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE answer_{side} AS SELECT {_ANSWERED}, {', '.join(grid.HANDED_ON)} FROM ({answers})"
    )


def _ask(connection: duckdb.DuckDBPyConnection, models: Sequence[str], side: str) -> None:
    """`asked_serving` or `asked_training`: the scenarios of some models, for each purpose."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE asked_{side} AS
        WITH wanted AS (
            SELECT model_id, twin.dtype_id, shape.max_context_tokens, coalesce(shape.parameter_count, 0) AS parameter_count
            FROM twin JOIN shape USING (model_id) WHERE first_id = model_id AND list_contains($models, model_id)
        ),
        grid AS (FROM {grid.GRID} WHERE (phase_id = 'inference') = {str(side == "serving").lower()}),
        shortest AS (SELECT purpose, min(context_tokens) AS tokens FROM {grid.GRID} GROUP BY purpose),
        -- a model that reads less than the shortest context is answered for all that it reads
        shared AS (
            SELECT wanted.model_id, grid.* EXCLUDE (least_parameter_count) REPLACE (
                iif(grid.context_tokens = shortest.tokens, least(grid.context_tokens, wanted.max_context_tokens), grid.context_tokens)
                AS context_tokens)
            FROM wanted JOIN grid USING (dtype_id) JOIN shortest USING (purpose)
            WHERE coalesce(grid.context_tokens = shortest.tokens OR grid.context_tokens <= wanted.max_context_tokens, true)
                AND wanted.parameter_count >= grid.least_parameter_count
        )
        FROM shared WHERE purpose = 'lookup'
        -- a model's own bends are points of its ladder, besides those that all models share
        UNION ALL (
            FROM shared WHERE purpose = 'ladder'
            UNION
            SELECT wanted.model_id, grid.* EXCLUDE (least_parameter_count) REPLACE (bend.context_tokens AS context_tokens)
            FROM wanted JOIN grid USING (dtype_id) JOIN bend USING (model_id)
            WHERE grid.purpose = 'ladder'
        )
        """,
        {"models": models},
    )
