"""What pages say of models whose forward pass was counted whole: what it was counted with."""

from __future__ import annotations

from pathlib import Path

from pipeline.base.readonly import reading
from pipeline.book.passes import TOLD


def read(folder: Path) -> dict[str, dict]:
    """By model; of tables without formulas, or from before such rows, none."""
    database = folder / "almanac.duckdb"
    if not database.exists():
        return {}
    with reading(database) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if not {"model", "forward_pass"} <= tables:
            return {}
        rows = connection.execute(TOLD)
        names = [column[0] for column in rows.description]
        return {row[0]: dict(zip(names, row, strict=True)) for row in rows.fetchall()}
