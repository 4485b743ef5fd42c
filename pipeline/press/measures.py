"""What the gates measure of a release: how much there is, how much of what people download has an answer, how far off we are.

A measure has a value for each kind of thing that it speaks of: rows by table, coverage by the Hub's task, errors by metric, phase,
engine and set of measurements (`all` is all of them).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

Measures = dict[str, dict[str, float]]
ALL = "all"
# what each measures, in words, with its unit
WORDS = {
    "rows": ("rows of the table", "count"),
    "models": ("models of the kind", "count"),
    "coverage_models": ("models of the kind with a footprint", "share"),
    "coverage_downloads": ("downloads of models of the kind that have a footprint", "share"),
    "compared": ("measurements compared with", "count"),
    "error_median": ("median error against the measurements of", "share"),
    "error_p95": ("error that 95 % of the measurements stay below, of", "share"),
    "wrong_fits": ("verdicts “fits” that a measurement contradicts, of", "count"),
    "false_fits": ("verdicts “fits” on runs that people reported not to run, of", "count"),
}


def take(tables: Path, known: Collection[str]) -> Measures:
    """The measures of the tables in a folder; `known` are the models that have a footprint."""
    found: Measures = {"rows": {f.stem: float(_rows(f)) for f in sorted(tables.glob("*.parquet"))}}
    return found | _coverage(tables, known) | _accuracy(tables) | _outcomes(tables)


def _rows(file: Path) -> int:
    return pl.scan_parquet(file).select(pl.len()).collect().item()


def _coverage(tables: Path, known: Collection[str]) -> Measures:
    columns = ["model_id", "pipeline_tag", "downloads_30d"]
    models = pl.read_parquet(tables / "model.parquet", columns=columns).with_columns(
        pl.col("pipeline_tag").fill_null("none"), pl.col("downloads_30d").fill_null(0),
        is_known=pl.col("model_id").is_in(list(known)),
    )  # fmt: skip
    counted = pl.concat([models, models.with_columns(pipeline_tag=pl.lit(ALL))]).group_by("pipeline_tag").agg(
        pl.len().alias("models"),
        pl.col("is_known").mean().alias("coverage_models"),
        (pl.col("downloads_30d").filter("is_known").sum() / pl.col("downloads_30d").sum()).alias("coverage_downloads"),
    )  # fmt: skip
    rows = counted.sort("pipeline_tag").to_dicts()
    return {
        name: {row["pipeline_tag"]: round(float(row[name]), 6) for row in rows if row[name] == row[name]}
        for name in ("models", "coverage_models", "coverage_downloads")
    }


def _accuracy(tables: Path) -> Measures:
    file = tables / "accuracy.parquet"
    if not file.exists():
        return {}
    found: Measures = {"compared": {}, "error_median": {}, "error_p95": {}, "wrong_fits": {}}
    columns = {
        "compared": "row_count",
        "error_median": "median_error",
        "error_p95": "p95_error",
        "wrong_fits": "wrong_fits_count",
    }
    for row in pl.read_parquet(file).sort("metric", "phase_id", "engine_id", "strict_set").to_dicts():
        kind = " ".join(str(row[name]) for name in ("metric", "phase_id", "engine_id", "strict_set"))
        for measure, column in columns.items():
            if row.get("row_count") and row.get(column) is not None:
                found[measure][kind] = round(abs(float(row[column])), 6)
    return found


def _outcomes(tables: Path) -> Measures:
    file = tables / "outcome.parquet"
    if not file.exists():  # an older release
        return {}
    return {"false_fits": {ALL: float((pl.read_parquet(file)["judgement"] == "false fits").sum())}}
