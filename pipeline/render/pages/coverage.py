"""How much of what people download has an answer: two queries of the published file, which the page shows as they are."""

from __future__ import annotations

from pathlib import Path

from pipeline.base.readonly import reading
from pipeline.book.sounds import WAS_RUN, WRITES
from pipeline.render import words

LEAST_SHARE, UNKNOWN = 0.005, 60  # of all downloads, for a task of its own; so many of the unknown are named

# models of which a total of memory is told: by the table that says so. What these leave out is known by its weights alone, or not at all
TOTALS = {
    "footprint": "SELECT model_id FROM footprint WHERE total_bytes IS NOT NULL",
    "pipeline_compatibility": "SELECT model_id FROM pipeline_compatibility WHERE total_bytes IS NOT NULL",
    "sound_class": f"SELECT model_id FROM model WHERE {WRITES} OR {WAS_RUN}",
}
COUNTED = """WITH told AS ({totals})
SELECT coalesce(pipeline_tag, 'no task named') AS task, count(*) AS models,
    count(*) FILTER (model_id IN (FROM told)) AS told,
    count(*) FILTER (anatomy_grade <> 'unknown') AS known,
    sum(downloads_30d) AS downloads,
    sum(downloads_30d) FILTER (model_id IN (FROM told)) AS answered,
    sum(downloads_30d) FILTER (anatomy_grade <> 'unknown') AS weighed,
    sum(downloads_30d) FILTER (holds IS NULL) AS of_one_model,
    sum(downloads_30d) FILTER (anatomy_grade = 'unknown' AND model_id IN (SELECT model_id FROM repository_file)) AS by_file
FROM model GROUP BY ROLLUP (coalesce(pipeline_tag, 'no task named')) ORDER BY downloads DESC NULLS LAST"""
# what a repository is: its pipeline, what it holds, the container of its files
KINDS = """WITH told AS ({totals})
SELECT CASE
        WHEN model_id IN (SELECT model_id FROM component WHERE unknown_reason IS NOT NULL
            OR class_name IS NULL OR class_name NOT IN (SELECT class_name FROM pipeline_stage))
            THEN 'pipelines of pictures, videos and sound of which a part is not known'
        WHEN model_id IN (SELECT model_id FROM component) THEN 'whole pipelines of pictures, videos and sound'
        WHEN contains(holds, 'adapter') THEN 'adapters'
        WHEN holds IS NOT NULL OR files > 0 THEN 'files of several models, or no single one'
        WHEN program_name IS NOT NULL THEN 'copies for ' || program_name
        ELSE 'one model in the usual files' END AS kind, count(*) AS models,
    count(*) FILTER (model_id IN (FROM told)) AS told,
    count(*) FILTER (anatomy_grade = 'unknown' AND files > 0) AS told_by_file, sum(downloads_30d) AS downloads,
    sum(downloads_30d) FILTER (model_id IN (FROM told)) AS answered,
    sum(downloads_30d) FILTER (anatomy_grade <> 'unknown') AS weighed,
    sum(downloads_30d) FILTER (anatomy_grade = 'unknown' AND files > 0) AS by_file
FROM model LEFT JOIN internal.model_container AS held USING (model_id)
    LEFT JOIN (SELECT model_id, count(*) AS files FROM repository_file GROUP BY model_id) AS listed USING (model_id)
GROUP BY kind ORDER BY downloads DESC NULLS LAST, kind"""
WITHOUT = """SELECT model_id, downloads_30d, anatomy_note FROM model
WHERE anatomy_grade = 'unknown' AND downloads_30d IS NOT NULL ORDER BY downloads_30d DESC, model_id LIMIT {}"""


def coverage(folder: Path, paths: dict[str, str]) -> dict:
    """What the page is filled with; without rows where the file has none."""
    database = folder / "almanac.duckdb"
    if not database.exists():
        return {"tasks": [], "kinds": [], "unknown": []}
    with reading(database) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        views = {name for (name,) in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}
        if not {"model", "repository_file"} <= tables | views:
            return {"tasks": [], "kinds": [], "unknown": []}
        found = [query for name, query in TOTALS.items() if name in tables | views]
        totals = "\n    UNION ".join(found or ["SELECT model_id FROM model WHERE false"])
        counted = COUNTED.format(totals=totals)
        # (the table of containers is one of the formulas' own, which a file without formulas has not)
        kinds = connection.execute(KINDS.format(totals=totals)).fetchall() if "model_container" in tables else []
        rows = connection.execute(counted).fetchall()
        unknown = connection.execute(WITHOUT.format(UNKNOWN)).fetchall()
    told = [_row(row) for row in rows]
    whole = next(row for row in told if row["task"] is None)
    tasks = [row for row in told if row["task"] and row["downloads"] >= LEAST_SHARE * whole["downloads"]]
    return {
        "whole": whole,
        "tasks": tasks,
        "query": counted,
        "kinds": [_kind(row) for row in kinds],
        "unknown": [{"name": n, "path": paths[n], "downloads": words.count(d), "why": w} for n, d, w in unknown],
    }


def _row(row: tuple) -> dict:
    task, models, told, known, *counts = row
    downloads, answered, weighed, of_one, by_file = (number or 0 for number in counts)
    return {
        "task": task,
        "models": models,
        "told": told,
        "known": known,
        "downloads": downloads,
        "shown": words.count(downloads),
        "share": _share(answered, downloads),
        "weighed": _share(weighed, downloads),
        "of_one_model": _share(answered, max(of_one, answered)),
        "with_files": _share(weighed + by_file, downloads),
    }


def _kind(row: tuple) -> dict:
    kind, models, told, told_by_file, *counts = row
    downloads, answered, weighed, by_file = (number or 0 for number in counts)
    return {
        "kind": kind,
        "models": models,
        "told": told,
        "told_by_file": told_by_file,
        "shown": words.count(downloads),
        "share": _share(answered, downloads),
        "weighed": _share(weighed, downloads),
        "with_files": _share(weighed + by_file, downloads),
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
