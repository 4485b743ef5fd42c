"""How footprints are held: the numbers of a model, and beside them the number of their scenario, whose own columns are there once.

Some 600 scenarios stand behind millions of rows, and each would be told in some fifteen columns again: written so, a table took twice as long
and a tenth more room. `footprint` and the ladder are views that put both together:

    twin_footprint       model_id, dtype_id, scenario, context_tokens, the components, and what else is the model's own
    footprint_scenario   scenario, and all else that a row of `footprint` says

and so for the ladder. While a build works, a scenario is known by the hash of what it says, so that rows can be kept and put together in any
order; in the published file it has a number, which stands in the order of what it says.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.book.components import COMPONENTS
from pipeline.book.schema import PUBLISHED

# what limits are read off, and what pages draw of a total
LADDER = (
    *("model_id", "dtype_id", "phase_id", "engine_id", "context_tokens", "sequences", "kv_dtype_id", "optimizer_id"),
    *("precision", "checkpointing", "gpu_count", "total_bytes", "error_band"),
    *(part.column for part in COMPONENTS),
)
# the lookup shares by one way only: the degrees of the others, and the host's memory, are left to footprint_of
COLUMNS = {"footprint": tuple(PUBLISHED["footprint"].column_names), "ladder": LADDER}
# what stays the same from row to row stands next to itself: a third less to store than by context first
_IN_ORDER = ("phase_id", "engine_id", "gpu_count", "optimizer_id", "checkpointing", "sequences")
ORDER = f"model_id, dtype_id, {', '.join(_IN_ORDER)}, context_tokens"
_OF_MODEL = ("model_id", "dtype_id", "context_tokens")
_FOUND = (*(part.column for part in COMPONENTS), "error_band", "peak_moment", "unknown_reason")
_SUM = " + ".join(f"held.{part.column}" for part in COMPONENTS)
# DuckDB writes groups of so many rows as they come: fewer go through its log, and what several inserts leave of a group is put together when the
# file is left. Both are written twice
_GROUP_ROWS = 122_880
_ROWS_AT_ONCE = 4 * _GROUP_ROWS


class ScenarioError(RuntimeError):
    """Two scenarios have one hash."""


def numbers(table: str) -> str:
    """The table of the rows."""
    return f"twin_{table}"


def scenarios(table: str) -> str:
    """The table of what their scenarios say."""
    return f"{table}_scenario"


def _said(table: str) -> tuple[str, ...]:
    """What a scenario says. (A total is the sum of its parts, and null where one of them is: it is not kept.)"""
    return tuple(name for name in COLUMNS[table] if name not in (*_OF_MODEL, *_FOUND, "total_bytes"))


def _held(table: str) -> str:
    """The columns of the table of rows, asked of whole ones."""
    found = ", ".join(name for name in _FOUND if name in COLUMNS[table])
    return f"model_id, dtype_id, {_hash(table)} AS scenario, context_tokens, {found}"


def _hash(table: str) -> str:
    return f"hash({', '.join(_said(table))})"


def begin(connection: duckdb.DuckDBPyConnection, table: str) -> Growing:
    """Makes both tables, which hold nothing yet, beside `table`, whose columns they have."""
    connection.execute(f"CREATE OR REPLACE TABLE {numbers(table)} AS SELECT {_held(table)} FROM {table} LIMIT 0")
    return Growing(connection, table)


def apart(connection: duckdb.DuckDBPyConnection, table: str, rows: str) -> dict[str, pa.Table]:
    """Whole rows, which a query gives, as both tables have them."""
    said = f"SELECT DISTINCT {_hash(table)} AS scenario, {', '.join(_said(table))} FROM ({rows})"
    return {
        numbers(table): connection.sql(f"SELECT {_held(table)} FROM ({rows}) ORDER BY {ORDER}").to_arrow_table(),
        scenarios(table): connection.sql(f"{said} ORDER BY scenario").to_arrow_table(),
    }


class Growing:
    """Both tables, and rows that wait for the one of them: they are put there in whole groups."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self.connection, self.table = connection, table
        self._waiting: list[pa.Table] = []
        self._said: list[pa.Table] = []

    def append(self, rows: pa.Table, said: pa.Table) -> None:
        """Some rows, and the scenarios that these have: other ones may stand among them."""
        self._waiting.append(rows)
        self._said.append(said)
        self._put(_ROWS_AT_ONCE)

    def end(self) -> None:
        """Puts all there that waits. Raises ScenarioError where two scenarios have one hash."""
        self._put(1)
        table, rows = scenarios(self.table), numbers(self.table)
        columns = ", ".join(_said(self.table))
        self.connection.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT 0::UBIGINT AS scenario, {columns} FROM {self.table} LIMIT 0"
        )
        if self._said:
            self.connection.register("known", pa.concat_tables(self._said, promote_options="default"))
            self.connection.execute(
                f"INSERT INTO {table} BY NAME SELECT DISTINCT * FROM known "
                f"SEMI JOIN (SELECT DISTINCT scenario FROM {rows}) AS asked USING (scenario)"
            )
            self.connection.unregister("known")
        counted = self.connection.execute(f"SELECT count(*) = count(DISTINCT scenario) FROM {table}").fetchall()
        if counted != [(True,)]:
            raise ScenarioError(f"two scenarios of {self.table} have one hash")

    def _put(self, at_once: int) -> None:
        """Puts as many of those that wait as are a multiple of so many."""
        count = sum(rows.num_rows for rows in self._waiting) // at_once * at_once
        if count:
            rows = pa.concat_tables(self._waiting, promote_options="default")  # columns stand in any order
            # a thread takes a batch at a time: each of these is a group
            batches = rows.slice(0, count).combine_chunks().to_batches(max_chunksize=_GROUP_ROWS)
            self.connection.register("known", pa.Table.from_batches(batches))
            self.connection.execute(f"INSERT INTO {numbers(self.table)} BY NAME FROM known")
            self.connection.unregister("known")
            self._waiting = [rows.slice(count)]


def of_twins(table: str) -> str:
    """Footprints or the ladder for every model, from what was worked out for the first of its kind, as a query."""
    own = {name: f"held.{name}" for name in (*_OF_MODEL, *_FOUND)}
    own |= {"model_id": "twin.model_id", "total_bytes": f"{_SUM} AS total_bytes"}
    return (
        f"SELECT {', '.join(own.get(name, f'asked.{name}') for name in COLUMNS[table])} "
        f"FROM twin JOIN {numbers(table)} AS held ON held.model_id = twin.first_id AND held.dtype_id = twin.dtype_id "
        f"JOIN {scenarios(table)} AS asked ON asked.scenario = held.scenario"
    )


def published(source: str, name: str) -> str | None:
    """One of these tables as the published file has it, in its order, as a query to a build's schema `source`; None for another table."""
    for table in COLUMNS:
        told = f"{source}.{scenarios(table)}"
        said = ", ".join(dict.fromkeys([*(key for key in _IN_ORDER if key in _said(table)), *_said(table)]))
        numbered = f"SELECT scenario, row_number() OVER (ORDER BY {said})::INTEGER AS number FROM {told}"
        numbered = f"({numbered}) AS numbered USING (scenario)"
        if name == scenarios(table):
            return f"SELECT told.* REPLACE (number AS scenario) FROM {told} AS told JOIN {numbered} ORDER BY scenario"
        if name == numbers(table):
            rows = f"{source}.{name} AS held JOIN {numbered}"
            order = "model_id, dtype_id, number, context_tokens"
            return f"SELECT held.* REPLACE (number AS scenario) FROM {rows} ORDER BY {order}"
    return None


def renamed(rows: pa.Table, column: str, other: str, names: Mapping[str, str]) -> pa.Table:
    """The rows that have one of some names in a column, with what it stands for in another one's place. (A join took as long as all else.)"""
    held = rows[column].combine_chunks()
    held = held if pa.types.is_dictionary(held.type) else held.dictionary_encode()
    meant = pa.array([names.get(name) for name in held.dictionary.to_pylist()], pa.string()).take(held.indices)
    told = rows.drop_columns(column).append_column(other, meant)
    return told.filter(pc.is_valid(meant)) if meant.null_count else told
