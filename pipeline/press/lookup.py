"""The default lookup: footprints of every model whose anatomy is known, in every published scenario.

Two in three models have the shape and the weights of another one (fine-tunes, re-uploads): a footprint is worked out once for each
distinct pair and written for every model that shares it. Nothing else of a model enters a footprint; a test holds that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.base.progress import Progress, quiet
from pipeline.book.components import COMPONENTS
from pipeline.book.content import SHAPE, WEIGHT, row_text, rows_as_text
from pipeline.book.packs import Packs, fingerprint
from pipeline.book.schema import PUBLISHED
from pipeline.press.flat import grid
from pipeline.press.side_by_side import side_by_side

_PAIRS_PER_STEP = 4_000
# DuckDB writes groups of so many rows as they come: fewer go through its log, and what several inserts leave of a group is put together when the
# file is left. Both are written twice
_GROUP_ROWS = 122_880
_ROWS_AT_ONCE = 4 * _GROUP_ROWS
# what stays the same from row to row stands next to itself: a third less to store than by context first
ORDER = "model_id, dtype_id, phase_id, engine_id, gpu_count, optimizer_id, checkpointing, sequences, context_tokens"
# purpose of the scenarios, and the table that holds their footprints
_PURPOSES = tuple(zip(grid.PURPOSES, ("footprint", "ladder"), strict=True))
# what limits are read off, and what pages draw of a total
LADDER = (
    *("model_id", "dtype_id", "phase_id", "engine_id", "context_tokens", "sequences", "kv_dtype_id", "optimizer_id"),
    *("precision", "checkpointing", "gpu_count", "total_bytes", "error_band"),
    *(part.column for part in COMPONENTS),
)
# the lookup shares by one way only: the degrees of the others, and the host's memory, are left to footprint_of
_COLUMNS_OF = {"footprint": PUBLISHED["footprint"].column_names, "ladder": LADDER}
_ANSWERED = ", ".join(dict.fromkeys([*_COLUMNS_OF["footprint"], *LADDER]))
# a total is the sum of its parts, and null where one of them is: it is not kept
_HELD = {table: tuple(name for name in names if name != "total_bytes") for table, names in _COLUMNS_OF.items()}
# what each layer weighs, in the formats whose layers may lie beside the CPU
LAYERS = "layer_weight"
# its rows for the pairs of model and format in a relation `layered`
WEIGHED = """
    SELECT model_id, dtype_id, list(layer_bytes ORDER BY block) AS layer_bytes, list(expert_bytes ORDER BY block) AS expert_bytes,
        max(matrix_bytes) AS matrix_bytes
    FROM layer_weights_in('layered') GROUP BY ALL ORDER BY ALL
"""
LAYER_COLUMNS = "model_id VARCHAR, dtype_id VARCHAR, layer_bytes BIGINT[], expert_bytes BIGINT[], matrix_bytes BIGINT"
_SUM = " + ".join(f"held.{part.column}" for part in COMPONENTS)


def of_twins(table: str) -> str:
    """Footprints or the ladder for every model, from what was worked out for the first of its kind, as a query."""
    other = {"model_id": "twin.model_id", "total_bytes": f"{_SUM} AS total_bytes"}
    return (
        f"SELECT {', '.join(other.get(name, f'held.{name}') for name in _COLUMNS_OF[table])} "
        f"FROM twin JOIN twin_{table} AS held ON held.model_id = twin.first_id AND held.dtype_id = twin.dtype_id"
    )


def fill_footprints(
    connection: duckdb.DuckDBPyConnection,
    progress: Progress = quiet,
    models: Sequence[str] | None = None,
) -> None:
    """Fills the tables `footprint` and `ladder` with rows of their own for every model, or for some."""
    work_out(connection, progress, models)
    for _purpose, table in _PURPOSES:
        connection.execute(f"INSERT INTO {table} BY NAME FROM ({of_twins(table)}) ORDER BY {ORDER}")
    connection.execute("DROP TABLE twin; DROP TABLE twin_footprint; DROP TABLE twin_ladder")


def share_footprints(
    connection: duckdb.DuckDBPyConnection,
    progress: Progress = quiet,
    packs: Packs | None = None,
) -> None:
    """The same as views: what models have in common is there once. Takes the place of the two tables, which must be empty. Rows that `packs`
    have are not worked out again."""
    work_out(connection, progress, packs=packs)
    for _purpose, table in _PURPOSES:
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE VIEW {table} AS {of_twins(table)}")
    _weigh_layers(connection, packs)


_OF_LAYERS = ("twin_layer", "twin_split")
# what the layers of a model weigh, and how they are split, is made of these rows, and of some columns of `model`
_LAYERED_OF = (SHAPE, WEIGHT, "tensor", "attention_layer", "feed_forward_layer")


def _weigh_layers(connection: duckdb.DuckDBPyConnection, packs: Packs | None = None) -> None:
    """`layer_weight` and `cpu_split` as views: what the layers of the first of each twins weigh in the formats of llama.cpp that are published,
    and what a card and the CPU hold of them."""
    connection.execute(
        """
        CREATE OR REPLACE TABLE layered AS
        SELECT DISTINCT held.model_id, held.dtype_id FROM twin_footprint AS held
        JOIN weight ON weight.model_id = held.model_id AND weight.dtype_id = held.dtype_id
        WHERE held.engine_id = 'llama.cpp' AND weight.layer_bytes > 0
        """
    )
    keys = _layer_keys(connection) if packs else {}
    known = [_known_layers(tables, found, keys) for found, tables in packs.taken(keys)] if packs else []
    there = [keys[key] for found, _rows in known for key in found]
    connection.execute("DELETE FROM layered WHERE list_contains($there, model_id)", {"there": there})
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE twin_layer AS {WEIGHED};
        -- of these alone, as long as it is the table that `cpu_split` reads
        INSERT INTO {LAYERS} BY NAME FROM twin_layer;
        CREATE OR REPLACE TABLE twin_split AS FROM cpu_split;
        DROP TABLE {LAYERS};
        DROP TABLE layered
        """
    )
    left = {key: model for key, model in keys.items() if model not in set(there)}
    if packs and left:
        made = {name: connection.sql(f"FROM {name} ORDER BY ALL").to_arrow_table() for name in _OF_LAYERS}
        names = {model: key for key, model in left.items()}
        packs.put(list(left), {name: _renamed(rows, "model_id", "key", names) for name, rows in made.items()})
    for _found, tables in known:
        for name, rows in tables.items():
            connection.register("known", rows)
            connection.execute(f"INSERT INTO {name} BY NAME FROM known")
            connection.unregister("known")
    pairs = "twin.first_id AND held.dtype_id = twin.dtype_id"
    for name, held in zip((LAYERS, "cpu_split"), _OF_LAYERS, strict=True):
        connection.execute(
            f"CREATE OR REPLACE VIEW {name} AS "
            f"SELECT twin.model_id, held.* EXCLUDE (model_id) FROM twin JOIN {held} AS held ON held.model_id = {pairs}"
        )


def _layer_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The models of `layered` by a hash of all that what is said of their layers is made of."""
    query = f"""
        WITH said AS (
            {rows_as_text(connection, _LAYERED_OF, "layered")}
            UNION ALL SELECT model_id, dtype_id FROM layered
        )
        SELECT sha256(concat_ws(' ', 'layers', $formulas, model_id, any_value(model.stored_format), any_value(model.model_type),
            any_value(model_id IN (SELECT kept.model_id FROM keeps_experts AS kept)), string_agg(said, ' ' ORDER BY said))), model_id
        FROM said JOIN model USING (model_id) GROUP BY model_id
    """
    return dict(connection.execute(query, {"formulas": fingerprint()}).fetchall())


def _known_layers(
    tables: Mapping[str, pa.Table], found: Sequence[str], models: Mapping[str, str]
) -> tuple[Sequence[str], dict[str, pa.Table]]:
    names = {key: models[key] for key in found}
    return found, {name: _renamed(tables[name], "key", "model_id", names) for name in _OF_LAYERS}


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
    for _purpose, table in _PURPOSES:
        connection.execute(
            f"CREATE OR REPLACE TABLE twin_{table} AS SELECT {', '.join(_HELD[table])} FROM {table} LIMIT 0"
        )
    tables = {table: _Growing(connection, f"twin_{table}") for _purpose, table in _PURPOSES}
    if packs:
        _take(connection, packs, tables)
    prepare(connection)
    left = steps(connection)
    for step, found in zip(progress(left, desc="footprints"), side_by_side(connection, _worked_out, left), strict=True):
        for table, rows in found.items():
            tables[table].append(rows)
        if packs:
            _keep(connection, packs, step, found)
    for growing in tables.values():
        growing.put(1)
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
    made_of = f"sha256(concat_ws(' ', $formulas, {row_text(connection, SHAPE)}, of_formats))" if packs else "NULL"
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE pair_key AS
        WITH weighed AS (
            SELECT model_id, count(*) AS pair_count, string_agg({row_text(connection, WEIGHT)}, ' ' ORDER BY dtype_id) AS of_formats
            FROM weight SEMI JOIN twin ON twin.first_id = weight.model_id AND twin.model_id = weight.model_id AND twin.dtype_id = weight.dtype_id
            GROUP BY model_id
        )
        SELECT model_id, pair_count, {made_of} AS key FROM weighed JOIN shape USING (model_id) ORDER BY model_id
        """,
        {"formulas": fingerprint()} if packs else {},
    )


class _Growing:
    """A table and rows that wait for it: they are put there in whole groups."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self.connection, self.table = connection, table
        self.waiting: list[pa.Table] = []

    def append(self, rows: pa.Table) -> None:
        self.waiting.append(rows)
        self.put(_ROWS_AT_ONCE)

    def put(self, at_once: int) -> None:
        """Puts as many of those that wait as are a multiple of so many."""
        count = sum(rows.num_rows for rows in self.waiting) // at_once * at_once
        if count:
            rows = pa.concat_tables(self.waiting, promote_options="default")  # columns stand in any order
            # a thread takes a batch at a time: each of these is a group
            batches = rows.slice(0, count).combine_chunks().to_batches(max_chunksize=_GROUP_ROWS)
            self.connection.register("known", pa.Table.from_batches(batches))
            self.connection.execute(f"INSERT INTO {self.table} BY NAME FROM known")
            self.connection.unregister("known")
            self.waiting = [rows.slice(count)]


def _take(connection: duckdb.DuckDBPyConnection, packs: Packs, growing: Mapping[str, _Growing]) -> None:
    """What was worked out before; what is left in `pair_key` was not."""
    models = dict(connection.execute("SELECT key, model_id FROM pair_key").fetchall())
    for found, tables in packs.taken(models):
        names = {key: models[key] for key in found}
        for table, whole in growing.items():
            whole.append(_renamed(tables[table], "key", "model_id", names))
        connection.execute("DELETE FROM pair_key WHERE list_contains($found, key)", {"found": found})


def _renamed(rows: pa.Table, column: str, other: str, names: Mapping[str, str]) -> pa.Table:
    """The rows that have one of some names in a column, with what it stands for in another one's place. (A join took as long as all else.)"""
    places = pc.index_in(rows[column].combine_chunks(), pa.array(list(names), pa.string()))
    meant = pa.array(list(names.values()), pa.string()).take(places)
    return rows.drop_columns(column).append_column(other, meant).filter(pc.is_valid(places))


def _keep(
    connection: duckdb.DuckDBPyConnection, packs: Packs, step: Sequence[str], found: Mapping[str, pa.Table]
) -> None:
    """Keeps what was worked out for some models, by key."""
    query = "SELECT model_id, key FROM pair_key WHERE list_contains($models, model_id)"
    keys = dict(connection.execute(query, {"models": step}).fetchall())
    packs.put(list(keys.values()), {table: _renamed(rows, "model_id", "key", keys) for table, rows in found.items()})


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
    return {
        table: connection.sql(
            f"SELECT {', '.join(_HELD[table])} FROM ({rows}) WHERE purpose = '{purpose}' ORDER BY {ORDER}"
        ).to_arrow_table()
        for purpose, table in _PURPOSES
    }


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
