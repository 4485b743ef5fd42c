"""What a model's page says of files that not every program loads: for which they are, whose figures stand there, the second file of GGUF."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.base.readonly import reading

_TOWERS = {"vision-tower", "audio-tower", "projector"}
_COLUMNS = ("container_id", "program_name", "engine_id", "original_id", "second_file_bytes", "is_sensing")
_HERE = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'internal' AND table_name = 'model_container'"


def read(folder: Path) -> dict[str, dict]:
    """By model; nothing of a file without formulas."""
    with reading(folder / "almanac.duckdb") as connection:
        if not connection.execute(_HERE).fetchone()[0]:
            return {}
        rows = connection.execute(f"SELECT model_id, {', '.join(_COLUMNS)} FROM internal.model_container").fetchall()
    return {name: dict(zip(_COLUMNS, values, strict=True)) for name, *values in sorted(rows)}


def told(
    held: dict | None, tensors: Iterable[Mapping[str, Any]], paths: Mapping[str, str], is_known: bool
) -> dict | None:
    """What stands on the page: the program, the original with its page, and the second file where it is not among the figures."""
    if held is None:
        return None
    is_counted = any(row["tensor_class"] in _TOWERS for row in tensors)
    has_second = held["container_id"] == "gguf" and is_known and not is_counted
    return held | {
        "path": paths.get(held["original_id"] or ""),
        "is_known": is_known,
        "second_file_bytes": held["second_file_bytes"] if has_second else None,
        "is_second_unknown": bool(has_second and held["is_sensing"] and not held["second_file_bytes"]),
        "is_text_alone": bool(has_second and (held["second_file_bytes"] or held["is_sensing"])),
    }
