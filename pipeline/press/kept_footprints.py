"""Footprints that are asked for measurements and reports, kept: planning the question takes as long as all footprints of ten models.

An answer is made of what is asked, of the rows that its models have in the tables that `footprints` reads, and of formulas, facts and code. (The
browser is given these rows alone, and says the same.) Inference and training are kept apart, as they are planned: a model of which one was
measured is asked about that alone.
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
# what `footprints` puts together, and how the phases of what each answers compare with inference
_SIDES = {"footprints_of_inference": "=", "footprints_of_training": "<>"}


def answer(connection: duckdb.DuckDBPyConnection, asked: str, into: str, packs: Packs | None = None) -> None:
    """Puts what is answered to the scenarios of a table into a temporary one."""
    for side, compared in _SIDES.items():
        # (of an unknown phase nothing is told here)
        rows = f"(FROM {asked} WHERE coalesce(lower(phase_id::VARCHAR) {compared} 'inference', true))"
        key = _key(connection, side, asked, rows) if packs else ""
        if not (packs and _take(connection, side, packs, key)):
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {side} AS FROM {side}('{asked}')")
            if packs:
                _keep(connection, side, packs, key)
    both = " UNION ALL BY NAME ".join(f"FROM {side}" for side in _SIDES)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {into} AS {both}")
    connection.execute("; ".join(f"DROP TABLE {side}" for side in _SIDES))


def _take(connection: duckdb.DuckDBPyConnection, side: str, packs: Packs, key: str) -> bool:
    for _keys, tables in packs.taken([key]):
        types = tables[_TYPES].to_pydict()
        columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(types["name"], types["type"], strict=True))
        connection.register("known", tables["answer"])
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {side} ({columns}); INSERT INTO {side} BY NAME FROM known")
        connection.unregister("known")
        return True
    return False


def _keep(connection: duckdb.DuckDBPyConnection, side: str, packs: Packs, key: str) -> None:
    types = [row[:2] for row in connection.execute(f"DESCRIBE {side}").fetchall()]
    said = pa.table({"name": [name for name, _type in types], "type": [kind for _name, kind in types]})
    packs.put([key], {"answer": connection.sql(f"FROM {side}").to_arrow_table(), _TYPES: said})


def _key(connection: duckdb.DuckDBPyConnection, side: str, asked: str, rows: str) -> str:
    named = f"(SELECT DISTINCT model_id FROM {rows})"
    said = rows_as_text(connection, read_by(connection, [side]), named, WEEKLY)
    query = f"""
        SELECT (SELECT sha256(string_agg(a::VARCHAR, ' ' ORDER BY a::VARCHAR)) FROM {rows} AS a),
            (SELECT sha256(string_agg(model_id || said, ' ' ORDER BY model_id, said)) FROM ({said}))
    """
    made_of = [asked, side, fingerprint(), connection.execute(query).fetchall()]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
