"""What the numbers of a model are made of, as one hash: models of the same content have the same footprints, limits and verdicts.

Asked of a build's workshop and of the published file alike: what is worked out for one of them holds for all, and while it is the same
nothing has to be worked out again (packs.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import duckdb

# All that a footprint takes from a model: a row of one, and a row per dtype of the other.
SHAPE, WEIGHT = "shape", "weight"
CONTENT = "model_content"  # the answer, which a build asks for once: those who write its files and its pages read it
# what of a model no number is made of
WEEKLY = ("downloads_30d", "likes", "facts_as_of")


def content_of(connection: duckdb.DuckDBPyConnection) -> str:
    """A query: of each model a hash of all that its footprints, and whether cards run them, are made of."""
    return f"""
        WITH weighed AS (
            SELECT model_id, string_agg({row_text(connection, WEIGHT)}, ' ' ORDER BY dtype_id) AS of_formats FROM weight GROUP BY model_id
        )
        SELECT model_id, sha256(concat_ws(' ', coalesce(model.stored_format, ''), {row_text(connection, SHAPE)}, of_formats)) AS content
        FROM shape JOIN model USING (model_id) JOIN weighed USING (model_id)
    """


def keep_contents(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes a table of the answer, where there is none yet."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {CONTENT} AS {content_of(connection)}")


def rows_as_text(
    connection: duckdb.DuckDBPyConnection, tables: Iterable[str], asked: str, without: Collection[str] = ()
) -> str:
    """A query: every row of some tables as one text (`said`), by model, of the models of a relation."""
    return " UNION ALL ".join(
        f"SELECT model_id, '{name} ' || {row_text(connection, name, without)} AS said FROM {name} SEMI JOIN {asked} USING (model_id)"
        for name in tables
    )


def row_text(connection: duckdb.DuckDBPyConnection, table: str, without: Collection[str] = ()) -> str:
    """A row as one text, without the name of its model and some columns."""
    left_out = {"model_id", *without}
    columns = [row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall() if row[0] not in left_out]
    packed = ", ".join(f'"{name}" := {table}."{name}"' for name in columns)
    return f"to_json(struct_pack({packed}))::VARCHAR"
