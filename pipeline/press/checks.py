"""Checks of the data: each is a query that returns the bad rows, derived from the schema or kept in tables/checks/*.sql.

A check that returns rows stops a publish and is named with the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.base.progress import Progress, quiet
from pipeline.base.readonly import reading
from pipeline.book.facts import TABLES
from pipeline.book.schema import ENUMS, PUBLISHED, Table

FOLDER = TABLES / "checks"
_SHOWN = 3
# columns that name a row of another table wherever they stand
_REFERENCES = ("model_id", "gpu_id", "dtype_id", "phase_id", "engine_id", "optimizer_id", "kv_dtype_id")
# tables about what others measured or listed: they may name models, formats and phases that the almanac does not have
_OF_OTHERS = ("measured", "prediction", "accuracy", "rejected", "correction")
# tables about published and reported runs, listed files and heads for drafts: a crawl of another list may lack their models, and nothing else of theirs
_OF_OTHER_MODELS = (*_OF_OTHERS, "serving_run", "outcome", "repository_file", "draft_head")
_MATERIALISED = [table for table in PUBLISHED.values() if table.name != "compatibility"]


def run_checks(database: Path, progress: Progress = quiet) -> list[str]:
    """What is wrong with a built database: one line per failed check. Empty means that all passed."""
    failures = []
    asked = list(all_checks())
    with reading(database) as connection:
        for name, query in progress(asked, desc="checks", total=len(asked)):
            rows = connection.execute(f"FROM ({query}) LIMIT {_SHOWN}").fetchall()
            if rows:
                failures.append(f"{name}: {'; '.join(map(str, rows))}")
    return failures


def all_checks() -> Iterator[tuple[str, str]]:
    """Name and query of every check."""
    for table in _MATERIALISED:
        yield from _schema_checks(table)
    for path in sorted(FOLDER.glob("*.sql")):
        yield path.stem, path.read_text(encoding="utf-8").strip().rstrip(";")


def _schema_checks(table: Table) -> Iterator[tuple[str, str]]:
    key = ", ".join(f'"{c}"' for c in table.key)
    # (a number for each key first: grouping millions of rows by a dozen words takes three times as long)
    twice = f"SELECT hash({key}) FROM {table.name} GROUP BY ALL HAVING count(*) > 1"
    yield (
        f"{table.name}: key is unique",
        f"SELECT {key}, count(*) FROM {table.name} WHERE hash({key}) IN ({twice}) GROUP BY ALL HAVING count(*) > 1",
    )
    bounded = [c for c in table.columns if c.least is not None]
    if bounded:
        wrong = " OR ".join(f'"{c.name}" < {c.least}' for c in bounded)
        yield f"{table.name}: numbers are in range", f"SELECT {key} FROM {table.name} WHERE {wrong}"
    for column in table.columns:
        if column.name in ENUMS and not (table.name in _OF_OTHERS and column.name in _REFERENCES):
            allowed = ", ".join(f"'{value}'" for value in ENUMS[column.name])
            yield (
                f"{table.name}: {column.name} is one of its values",
                f'SELECT {key}, "{column.name}" FROM {table.name} WHERE "{column.name}" NOT IN ({allowed})',
            )
        home = column.name.removesuffix("_id")
        others = _OF_OTHER_MODELS if column.name == "model_id" else _OF_OTHERS
        if column.name in _REFERENCES and home != table.name and table.name not in others:
            yield (
                f"{table.name}: {column.name} exists",
                f'SELECT DISTINCT "{column.name}" FROM {table.name} ANTI JOIN {home} USING ("{column.name}") '
                f'WHERE "{column.name}" IS NOT NULL',
            )
