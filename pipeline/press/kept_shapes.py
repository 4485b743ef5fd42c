"""Shapes and weights of models, and the hash of both, by all that is known of each: who is as it was has the rows that it had, and filling a
workshop costs little more than those of the models that changed.

What tables/sql makes of a model's shape and weights it makes of the rows of this model alone, but for SAID_BY_OTHERS; a test holds that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import duckdb
import pyarrow as pa

from pipeline.book.content import CONTENT, SHAPE, WEEKLY, WEIGHT, content_of, rows_as_text
from pipeline.book.packs import Packs, fingerprint
from pipeline.press.held import renamed

KEPT = (SHAPE, WEIGHT)
_ROWS = (*KEPT, CONTENT)
# tables with a row for each model of which another model's row says something
SAID_BY_OTHERS = ("keeps_experts",)
# what these are made of: they hold all models whenever it is asked
_OF_ALL = ("model", "work")
_GIVEN = "(SELECT unnest($models::VARCHAR[]))"


def fill(
    connection: duckdb.DuckDBPyConnection, frames: Iterable[str], make: Callable[[Sequence[str]], None], packs: Packs
) -> None:
    """Fills the tables KEPT, which are there without rows, and makes that of their contents. `frames` are the tables of what is known of models;
    `make` makes tables, and what they are made of."""
    make(SAID_BY_OTHERS)
    models = _keys(connection, frames)
    rows: dict[str, list[pa.Table]] = {name: [] for name in _ROWS}
    for found, tables in packs.taken(models):
        names = {key: models.pop(key) for key in found}
        for name in _ROWS:
            rows[name].append(renamed(tables[name], "key", "model_id", names))
    if models:
        new = _made(connection, frames, make, list(models.values()))
        names = {model: key for key, model in models.items()}
        packs.put(list(models), {name: renamed(new[name], "model_id", "key", names) for name in _ROWS})
        for name in _ROWS:
            rows[name].append(new[name])
    connection.execute(f"CREATE TABLE {CONTENT} AS FROM ({content_of(connection)}) LIMIT 0")
    for name, tables in rows.items():
        for table in tables:
            connection.register("known", table)
            connection.execute(f"INSERT INTO {name} BY NAME FROM known")
            connection.unregister("known")


def _keys(connection: duckdb.DuckDBPyConnection, frames: Iterable[str]) -> dict[str, str]:
    """The models by a hash of all that is known of each."""
    said = rows_as_text(connection, [*sorted(frames), *SAID_BY_OTHERS], "(SELECT model_id FROM model) AS asked", WEEKLY)
    query = (
        "SELECT sha256(concat_ws(' ', 'shapes', $formulas, model_id, string_agg(said, ' ' ORDER BY said))), model_id"
    )
    query = f"{query} FROM ({said}) GROUP BY model_id"
    return dict(connection.execute(query, {"formulas": fingerprint()}).fetchall())


def _made(
    connection: duckdb.DuckDBPyConnection,
    frames: Iterable[str],
    make: Callable[[Sequence[str]], None],
    models: Sequence[str],
) -> Mapping[str, pa.Table]:
    """The rows of some models. They are made where these are alone, in a transaction that is undone."""
    connection.execute("BEGIN")
    try:
        alone = f"WHERE model_id NOT IN {_GIVEN}"
        for name in set(frames) - set(_OF_ALL):
            connection.execute(f"DELETE FROM {name} {alone}", {"models": models})
        make(KEPT)
        for name in KEPT:  # every model may have a row
            connection.execute(f"DELETE FROM {name} {alone}", {"models": models})
        made = {name: name for name in KEPT} | {CONTENT: f"({content_of(connection)})"}
        return {name: connection.sql(f"FROM {rows} ORDER BY ALL").to_arrow_table() for name, rows in made.items()}
    finally:
        connection.execute("ROLLBACK")
