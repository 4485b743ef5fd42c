"""The table `work`: of each model the one that stands for it and its copies, and its name without the words for formats."""

from __future__ import annotations

import polars as pl

from pipeline.book.schema import PUBLISHED


def work_of(models: pl.DataFrame) -> pl.DataFrame:
    """A row for each row of the table `model`. Who stands for a work is one whose memory is known, where there is one."""
    # (pages know works; a question about one config needs none of them)
    from pipeline.render.data.relatives import stem
    from pipeline.render.data.works import Works

    rows = models.sort([pl.col("downloads_30d").fill_null(0), "model_id"], descending=[True, False]).to_dicts()
    found = Works(rows).leaders(lambda i: rows[i]["anatomy_grade"] != "unknown")
    table = [
        {"model_id": row["model_id"], "lead_model_id": rows[lead]["model_id"], "plain_name": stem(row["model_id"])}
        for row, lead in zip(rows, found, strict=True)
    ]
    return pl.DataFrame(
        sorted(table, key=lambda row: row["model_id"]),
        schema=dict.fromkeys(PUBLISHED["work"].column_names, pl.String),
    )
