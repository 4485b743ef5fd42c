"""Footprints that are asked for measurements and reports, kept: planning the question takes as long as all footprints of ten models.

An answer is made of what is asked, of the rows that its models have in the tables that `footprints` reads, and of formulas, facts and code. (The
browser is given these rows alone, and says the same.)
"""

from __future__ import annotations

import hashlib
import json

import duckdb
import pyarrow as pa

from pipeline.book.content import WEEKLY, rows_as_text
from pipeline.book.packs import Packs, fingerprint
from pipeline.book.reads import read_by

_TYPES = "types"


def answer(connection: duckdb.DuckDBPyConnection, asked: str, into: str, packs: Packs | None = None) -> None:
    """Puts what is answered to the scenarios of a table into a temporary one."""
    key = _key(connection, asked) if packs else ""
    for _keys, tables in packs.taken([key]) if packs else ():
        types = tables[_TYPES].to_pydict()
        columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(types["name"], types["type"], strict=True))
        connection.register("known", tables["answer"])
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {into} ({columns}); INSERT INTO {into} BY NAME FROM known")
        connection.unregister("known")
        return
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {into} AS FROM footprints('{asked}')")
    if packs:
        types = [row[:2] for row in connection.execute(f"DESCRIBE {into}").fetchall()]
        said = pa.table({"name": [name for name, _type in types], "type": [kind for _name, kind in types]})
        packs.put([key], {"answer": connection.sql(f"FROM {into}").to_arrow_table(), _TYPES: said})


def _key(connection: duckdb.DuckDBPyConnection, asked: str) -> str:
    named = f"(SELECT DISTINCT model_id FROM {asked})"
    said = rows_as_text(connection, read_by(connection, ["footprints"]), named, WEEKLY)
    query = f"""
        SELECT (SELECT sha256(string_agg(a::VARCHAR, ' ' ORDER BY a::VARCHAR)) FROM {asked} AS a),
            (SELECT sha256(string_agg(model_id || said, ' ' ORDER BY model_id, said)) FROM ({said}))
    """
    made_of = [asked, fingerprint(), connection.execute(query).fetchall()]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
