"""Groups of rows of several files in one file: every reader finds them, and what is no such file is refused."""

from __future__ import annotations

import io

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.press.splice import Spliced, SpliceError

CUT_FOOTER = b"PAR1" + b"\x19\xfc" + b"\x02\x00\x00\x00" + b"PAR1"
NAMES = [f"org/model-{i:03}" for i in range(40)]


def frame(names: list[str]) -> pl.DataFrame:
    """More than fourteen groups and columns: then lists are told otherwise in a footer."""
    rows = pl.DataFrame(
        {"model_id": names, "total_bytes": [2**40 + i for i, _ in enumerate(names)]},
        schema={"model_id": pl.String, "total_bytes": pl.Int64},
    )
    return rows.with_columns(
        kind=pl.when(pl.col("total_bytes") % 3 == 0).then(None).otherwise(pl.lit("ü")).cast(pl.Categorical),
        **{f"column_{i}": pl.lit(i, pl.Int64) for i in range(20)},
    )


def written(rows: pl.DataFrame, **how: object) -> bytes:
    rows.write_parquet(file := io.BytesIO(), statistics=False, **how)
    return file.getvalue()


def by_arrow(rows: pl.DataFrame) -> bytes:
    """With page indexes, which have places of their own."""
    pq.write_table(rows.to_arrow(), file := io.BytesIO(), write_page_index=True, use_dictionary=["kind"])
    return file.getvalue()


@pytest.mark.parametrize("write", [written, by_arrow])
def test_every_reader_finds_all_rows_in_their_order(tmp_path, write):
    path = tmp_path / "whole.parquet"
    parts = [frame(NAMES[start : start + 2]) for start in range(0, len(NAMES), 2)]
    with Spliced(path, write(frame([]))) as file:
        for part in parts:
            file.append(write(part), {"model_id": (part["model_id"][0], part["model_id"][-1])})
    whole = pl.concat(parts)
    assert file.rows == whole.height
    assert pl.read_parquet(path).equals(whole)
    assert pl.scan_parquet(path).filter(pl.col("model_id") == NAMES[7]).collect().height == 1
    assert pq.read_table(path).to_pydict() == whole.to_dict(as_series=False)
    connection = duckdb.connect()
    assert connection.execute(f"FROM '{path}'").fetchall() == whole.rows()
    assert connection.execute(f"SELECT total_bytes FROM '{path}' WHERE model_id = ?", [NAMES[39]]).fetchall() == [
        (2**40 + 1,)
    ]
    groups = pq.read_metadata(path)
    assert groups.num_row_groups == len(parts)
    ranges = [groups.row_group(i).column(0).statistics for i in range(groups.num_row_groups)]
    assert [(r.min, r.max, r.null_count) for r in ranges] == [(p["model_id"][0], p["model_id"][-1], 0) for p in parts]


def test_a_file_without_groups_is_a_file(tmp_path):
    with Spliced(tmp_path / "none.parquet", written(frame([]))) as file:
        file.append(written(frame([])), {})
    assert file.rows == 0
    assert pl.read_parquet(tmp_path / "none.parquet").equals(frame([]))


def test_what_is_no_such_file_is_refused(tmp_path):
    whole = written(frame(NAMES))
    other = written(frame(NAMES).rename({"kind": "other"}))
    with Spliced(tmp_path / "file.parquet", whole) as file:
        for content in (b"", whole[:-9], whole[4:], b"PAR1" + b"\xff" * 4 + b"PAR1", CUT_FOOTER, other):
            with pytest.raises(SpliceError):
                file.append(content, {})
    assert pa.parquet.read_table(tmp_path / "file.parquet").num_rows == 0
