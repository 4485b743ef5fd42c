"""Checks of the data: each is a query that returns the bad rows, derived from the schema or kept in tables/checks/*.sql.

A check that returns rows stops a publish and is named with the first of them. What packs know to have passed is a footprint's content, and is not
asked of it again: most of the time goes into millions of rows that are as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from pipeline.base.progress import Progress, quiet
from pipeline.base.readonly import reading
from pipeline.book.content import CONTENT
from pipeline.book.facts import TABLES
from pipeline.book.packs import Packs, digest_of, fingerprint
from pipeline.book.schema import ENUMS, PUBLISHED, Table
from pipeline.press.held import of_twins

FOLDER = TABLES / "checks"
_SHOWN = 3
# columns that name a row of another table wherever they stand
_REFERENCES = ("model_id", "gpu_id", "dtype_id", "phase_id", "engine_id", "optimizer_id", "kv_dtype_id")
# tables about what others measured or listed: they may name models, formats and phases that the almanac does not have
_OF_OTHERS = ("measured", "prediction", "accuracy", "rejected", "correction")
# tables about published and reported runs, listed files and heads for drafts: a crawl of another list may lack their models, and nothing else of theirs
_OF_OTHER_MODELS = (*_OF_OTHERS, "serving_run", "outcome", "repository_file", "draft_head")
_MATERIALISED = [table for table in PUBLISHED.values() if table.name != "compatibility"]


def run_checks(database: Path, progress: Progress = quiet, packs: Packs | None = None) -> list[str]:
    """What is wrong with a built database: one line per failed check. Empty means that all passed."""
    failures = []
    with reading(database) as connection:
        keys = _keys(connection) if packs else {}
        passed = packs.places(keys) if packs else {}
        left = [keys[key] for key in keys.keys() - passed.keys()] if packs else None
        asked = list(all_checks(_shares_footprints(connection, left)))
        for name, query in progress(asked, desc="checks", total=len(asked)):
            rows = connection.execute(f"FROM ({query}) LIMIT {_SHOWN}").fetchall()
            if rows:
                failures.append(f"{name}: {'; '.join(map(str, rows))}")
    if packs and not failures:
        for pack in set(passed.values()):
            packs.use(pack)
        packs.put_files(sorted(keys.keys() - passed.keys()), {})
    return failures


def _keys(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The models that have footprints of their own, by a hash of all that these, and what is asked of them, are made of."""
    query = f"""
        SELECT model_id, content, string_agg(dtype_id, ' ' ORDER BY dtype_id) FROM twin JOIN {CONTENT} USING (model_id)
        WHERE model_id = first_id GROUP BY ALL
    """
    made_of = f"checks {fingerprint()} {digest_of([FOLDER], ['.sql'])}"
    found = connection.execute(query).fetchall()
    return {hashlib.sha256(" ".join([made_of, *row]).encode()).hexdigest(): row[0] for row in found}


def count_of(database: Path) -> int:
    """How many checks a built database is put to."""
    with reading(database) as connection:
        return sum(1 for _ in all_checks(_shares_footprints(connection)))


def all_checks(are_shared: bool = False) -> Iterator[tuple[str, str]]:
    """Name and query of every check. Where footprints are shared, those of a model that has its own are asked for all that share them."""
    for table in _MATERIALISED:
        if are_shared and table.name == "footprint":
            yield from _SHARED
            of_first = _schema_checks(table, _OF_FIRST)
            yield from (check for check in of_first if check[0] != "footprint: model_id exists")
        else:
            yield from _schema_checks(table, table.name)
    for path in sorted(FOLDER.glob("*.sql")):
        yield path.stem, path.read_text(encoding="utf-8").strip().rstrip(";")


# a row of `footprint` is one of `twin_footprint` under the name of another model: those of the first of each are all there are
_OF_FIRST = "footprint_of_first"
_SHARED = (
    (
        "footprint: who shares does so once",
        "SELECT model_id, dtype_id, count(*) FROM twin GROUP BY ALL HAVING count(*) > 1",
    ),
    (
        "footprint: who is shared has its own",
        "SELECT DISTINCT twin.first_id, twin.dtype_id FROM twin ANTI JOIN twin AS own ON own.model_id = twin.first_id "
        "AND own.first_id = twin.first_id AND own.dtype_id = twin.dtype_id",
    ),
    ("footprint: model_id exists", "SELECT DISTINCT model_id FROM twin ANTI JOIN model USING (model_id)"),
)


def _shares_footprints(connection: duckdb.DuckDBPyConnection, left: Sequence[str] | None = None) -> bool:
    """Whether the file has footprints as a view; then those of the first of each, or of some models that are left, are one, too."""
    if not connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = 'footprint' AND NOT internal").fetchall():
        return False
    own = "twin.model_id = twin.first_id"
    if left is not None:
        connection.execute("CREATE TEMP TABLE asked AS SELECT unnest($left::VARCHAR[]) AS model_id", {"left": left})
        own += " AND held.model_id IN (SELECT model_id FROM temp.asked)"
    connection.execute(f"CREATE TEMP VIEW {_OF_FIRST} AS {of_twins('footprint')} WHERE {own}")
    return True


def _schema_checks(table: Table, relation: str) -> Iterator[tuple[str, str]]:
    key = ", ".join(f'"{c}"' for c in table.key)
    # (a number for each key first: grouping millions of rows by a dozen words takes three times as long)
    twice = f"SELECT hash({key}) FROM {relation} GROUP BY ALL HAVING count(*) > 1"
    yield (
        f"{table.name}: key is unique",
        f"SELECT {key}, count(*) FROM {relation} WHERE hash({key}) IN ({twice}) GROUP BY ALL HAVING count(*) > 1",
    )
    bounded = [c for c in table.columns if c.least is not None]
    if bounded:
        wrong = " OR ".join(f'"{c.name}" < {c.least}' for c in bounded)
        yield f"{table.name}: numbers are in range", f"SELECT {key} FROM {relation} WHERE {wrong}"
    for column in table.columns:
        if column.name in ENUMS and not (table.name in _OF_OTHERS and column.name in _REFERENCES):
            allowed = ", ".join(f"'{value}'" for value in ENUMS[column.name])
            yield (
                f"{table.name}: {column.name} is one of its values",
                f'SELECT {key}, "{column.name}" FROM {relation} WHERE "{column.name}" NOT IN ({allowed})',
            )
        home = column.name.removesuffix("_id")
        others = _OF_OTHER_MODELS if column.name == "model_id" else _OF_OTHERS
        if column.name in _REFERENCES and home != table.name and table.name not in others:
            yield (
                f"{table.name}: {column.name} exists",
                f'SELECT DISTINCT "{column.name}" FROM {relation} ANTI JOIN {home} USING ("{column.name}") '
                f'WHERE "{column.name}" IS NOT NULL',
            )
