"""Where a fact comes from: `source_of("gpu/rtx-4090")`, `source_of("constant/cuda_gap_ratio")`, `source_of("model/Qwen/Qwen3-8B")`.

A name is a table of the book, a slash and the key of a row; for tables whose key has several parts, the first part. Every
row comes with its values and with the sources it cites, in lines for people.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.book.facts import SOURCE_COLUMNS, TABLES, read_facts, read_measured, source_ids
from pipeline.book.schema import COLUMNS, FACTS, PUBLISHED, Table
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Popularity, newest_snapshot

_MEASURED = "measured"
_MODEL = "model"
_NEAR = 5
_LONGEST = 160
_MEASURES = (
    "byte",
    "bit",
    "GiB",
    "MiB",
    "GB/s",
    "TFLOPS",
    "TOPS",
    "W",
    "USD",
    "s",
)  # units told beside a value; what is counted tells its name


class UnknownName(LookupError):
    """No fact has this name; the message lists the nearest ones."""

    def __init__(self, name: str, near: Iterable[str]):
        near = list(near)
        hint = "; did you mean " + ", ".join(near) if near else ""
        super().__init__(f"no fact is called {name[:_LONGEST]!r}{hint}")
        self.near = near


def source_of(name: str, tables: Path = TABLES) -> list[str]:
    """Lines that show a fact and its sources. Raises UnknownName with near misses."""
    table, _, key = name.strip().partition("/")
    if table == _MODEL:
        return _model_lines(key, name, tables)
    if table == _MEASURED:
        frame, kind = read_measured(tables / "measured.csv"), PUBLISHED[_MEASURED]
        facts: Mapping[str, pl.DataFrame] = {}
    else:
        facts = read_facts(tables / "facts")
        if table not in facts:
            raise UnknownName(name, _near_anywhere(name, facts, tables))
        frame, kind = facts[table], FACTS[table]
    rows = frame.filter(pl.col(kind.key[0]).cast(pl.String) == key)
    if rows.is_empty():
        raise UnknownName(name, [f"{table}/{one}" for one in _near(key, _keys(frame, kind))])
    lines = []
    for row in rows.iter_rows(named=True):
        lines.append(f"{table}/{'/'.join(str(row[part]) for part in kind.key if row[part] is not None)}")
        lines += _values((column, value) for column, value in row.items() if column not in (*kind.key, *SOURCE_COLUMNS))
        lines += _cited(row, facts)
    return lines


def _model_lines(model_id: str, name: str, tables: Path) -> list[str]:
    snapshot = newest_snapshot(tables / "hub")
    records = {record.model_id: record for record in snapshot.records}
    record = records.get(model_id)
    if record is None:
        raise UnknownName(name, [f"{_MODEL}/{one}" for one in _near(model_id, list(records))])
    sources = read_facts(tables / "facts")["source"]
    lines = [f"{_MODEL}/{model_id}", f"  from the {snapshot.describe()}"]
    lines += _record_values(record, snapshot.popularity.get(model_id))
    for what, cited in (
        ("popularity and licence", record.sources),
        ("published total", record.parameters_sources),
        ("elements by dtype", record.parameters_by_dtype_sources),
        ("config", record.config_sources),
    ):
        for source in cited:
            lines += _source_lines(what, source, sources)
    return lines


def _record_values(record: Record, popularity: Popularity | None) -> list[str]:
    shown = {
        "downloads_30d": popularity and popularity.downloads_30d,
        "likes": popularity and popularity.likes,
        "facts_as_of": popularity and popularity.facts_as_of,
        "license": record.license,
        "stored_parameter_count": record.stored_parameter_count,
        "approximate_parameter_count": record.approximate_parameter_count,
        "parameters_kind": record.parameters_kind,
        "config_kind": record.config_kind,
        "config_source": record.config_source,
        "config_note": record.config_note,
        "config_inferred_fields": ", ".join(record.config_inferred_fields) or None,
    }
    return list(_values(shown.items()))


def _values(items: Iterable[tuple[str, Any]]) -> Iterable[str]:
    """`column: value unit`, without what is unknown."""
    for name, value in items:
        if value is None:
            continue
        unit = COLUMNS.unit_of(name)
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        yield f"  {name}: {shown}" + (f" {unit}" if unit in _MEASURES else "")


def _cited(row: Mapping[str, Any], facts: Mapping[str, pl.DataFrame]) -> list[str]:
    lines = []
    for column in SOURCE_COLUMNS:
        for source in source_ids(row.get(column)):
            if "source" in facts:
                what = "source" if column == "source" else column.removesuffix("_source")
                lines += _source_lines(what, source, facts["source"])
            else:
                lines.append(f"  source: {source}")
    return lines


def _source_lines(what: str, cited: str, sources: pl.DataFrame) -> list[str]:
    """A source with title, publisher, licence and place. `cited` is its id, perhaps with a place inside: id:path."""
    source_id, _, place = cited.partition(":")
    found = sources.filter(pl.col("source_id") == source_id)
    if found.is_empty():
        return [f"  {what}: {cited} (not in source.csv)"]
    row = found.row(0, named=True)
    about = ", ".join(row[key] for key in ("publisher", "licence", "retrieved") if row[key])
    lines = [f"  {what}: {row['title']} [{source_id}]{f' ({about})' if about else ''}"]
    lines += [f"    at {at}" for at in (row["locator"], place) if at]
    return lines


def _keys(frame: pl.DataFrame, kind: Table) -> list[str]:
    """The first part of every key, as text: some tables count, and one has rules of any name."""
    return frame[kind.key[0]].cast(pl.String).drop_nulls().unique().to_list()


def _near(name: str, known: list[str]) -> list[str]:
    """Names that contain the words, else those that are spelled alike."""
    wanted = name.lower()
    holding = sorted((one for one in known if wanted and wanted in one.lower()), key=lambda one: (len(one), one))
    lowered = {one.lower(): one for one in known}
    alike = [lowered[one] for one in difflib.get_close_matches(wanted, list(lowered), _NEAR, 0.6)]
    return list(dict.fromkeys([*holding, *alike]))[:_NEAR]


def _near_anywhere(name: str, facts: Mapping[str, pl.DataFrame], tables: Path) -> list[str]:
    """For a name without a table, or with a wrong one: the key in any table, else the tables themselves."""
    wrong_table, _, key = name.partition("/")
    found = []
    for table, frame in facts.items():
        found += [f"{table}/{one}" for one in _near(key or wrong_table, _keys(frame, FACTS[table]))[:2]]
    models = [record.model_id for record in newest_snapshot(tables / "hub").records]
    found += [f"{_MODEL}/{one}" for one in (_near(name, models) or (_near(key, models) if key else []))]
    exact = [one for one in found if one.partition("/")[2].lower() in (name.lower(), key.lower())]
    return (exact or found)[:_NEAR] or [f"{table}/..." for table in (*facts, _MEASURED, _MODEL)]
