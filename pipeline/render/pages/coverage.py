"""How much of what people download has an answer: two queries of the published file, which the page shows as they are."""

from __future__ import annotations

from pathlib import Path

from pipeline.base.readonly import reading
from pipeline.render import words

LEAST_SHARE, UNKNOWN = 0.005, 60  # of all downloads, for a task of its own; so many of the unknown are named

COUNTED = """SELECT coalesce(pipeline_tag, 'no task named') AS task, count(*) AS models,
    count(*) FILTER (anatomy_grade <> 'unknown') AS known,
    sum(downloads_30d) AS downloads,
    sum(downloads_30d) FILTER (anatomy_grade <> 'unknown') AS answered,
    sum(downloads_30d) FILTER (holds IS NULL) AS of_one_model,
    sum(downloads_30d) FILTER (anatomy_grade = 'unknown' AND model_id IN (SELECT model_id FROM repository_file)) AS by_file
FROM model GROUP BY ROLLUP (coalesce(pipeline_tag, 'no task named')) ORDER BY downloads DESC NULLS LAST"""
WITHOUT = """SELECT model_id, downloads_30d, anatomy_note FROM model
WHERE anatomy_grade = 'unknown' AND downloads_30d IS NOT NULL ORDER BY downloads_30d DESC, model_id LIMIT {}"""


def coverage(folder: Path, paths: dict[str, str]) -> dict:
    """What the page is filled with; without rows where the file has none."""
    database = folder / "almanac.duckdb"
    if not database.exists():
        return {"tasks": [], "unknown": []}
    with reading(database) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        views = {name for (name,) in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}
        if not {"model", "repository_file"} <= tables | views:
            return {"tasks": [], "unknown": []}
        rows = connection.execute(COUNTED).fetchall()
        unknown = connection.execute(WITHOUT.format(UNKNOWN)).fetchall()
    told = [_row(row) for row in rows]
    whole = next(row for row in told if row["task"] is None)
    tasks = [row for row in told if row["task"] and row["downloads"] >= LEAST_SHARE * whole["downloads"]]
    return {
        "whole": whole,
        "tasks": tasks,
        "query": COUNTED,
        "unknown": [{"name": n, "path": paths[n], "downloads": words.count(d), "why": w} for n, d, w in unknown],
    }


def _row(row: tuple) -> dict:
    task, models, known, *counts = row
    downloads, answered, of_one, by_file = (number or 0 for number in counts)
    return {
        "task": task,
        "models": models,
        "known": known,
        "downloads": downloads,
        "shown": words.count(downloads),
        "share": _share(answered, downloads),
        "of_one_model": _share(answered, max(of_one, answered)),
        "with_files": _share(answered + by_file, downloads),
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
