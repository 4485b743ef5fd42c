"""Diffusion pipelines with their denoiser, or it and the text encoders, in fewer bits, as `pipeline_of` says: few run them in 16 bits."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from pipeline.render import words

# The denoiser, and the text encoders where they are packed too.
FORMATS = (
    ("fp8", None),
    ("gguf-q8_0", None),
    ("gguf-q4_k_s", None),
    ("nf4", None),
    ("fp8", "fp8"),
    ("nf4", "nf4"),
)
ARGUMENTS = {"denoiser_dtype_id", "text_dtype_id", "is_tiled"}
WHOLE, ONE = "resident", "model"  # the ways to place the parts that are told: the fastest, and the one that most take


def read(connection: duckdb.DuckDBPyConnection, models: list[str], size: dict[str, int], dtype: str) -> dict[str, list]:
    """By model a row for each of the formats in which both totals are known; none where the file has no such formulas. A video is decoded in tiles."""
    query = "SELECT parameters FROM duckdb_functions() WHERE function_name = 'pipeline_of'"
    if not models or not any(set(row) >= ARGUMENTS for (row,) in connection.execute(query).fetchall()):
        return {}
    formats = ", ".join(f"({i}, '{d}', nullif('{t or ''}', ''))" for i, (d, t) in enumerate(FORMATS))
    query = f"""
        SELECT asked.model_id, packed.place, told.placement, told.total_bytes, told.error_band, told.peak_part
        FROM (SELECT unnest($models::VARCHAR[]) AS model_id) AS asked
        CROSS JOIN (VALUES {formats}) AS packed(place, denoiser, text),
        pipeline_of(asked.model_id, dtype_id := '{dtype}', width := {size["width"]}, height := {size["height"]},
            frames := {size["frames"]}, is_tiled := {size["frames"] > 1}, denoiser_dtype_id := packed.denoiser,
            text_dtype_id := packed.text) AS told
        WHERE told.total_bytes IS NOT NULL AND told.placement IN ('{WHOLE}', '{ONE}')
    """
    found: dict[tuple[str, int], dict] = {}
    for model, place, placement, total, band, peak in connection.execute(query, {"models": models}).fetchall():
        row = {"total_bytes": total, "error_band": band, "is_loading": peak == "loading"}
        found.setdefault((model, place), {})[placement] = row
    rows: dict[str, list] = {}
    for (model, place), of in sorted(found.items()):
        if {WHOLE, ONE} <= of.keys():
            denoiser, text = FORMATS[place]
            rows.setdefault(model, []).append({"denoiser": denoiser, "text": text, **of})
    return rows


def told(pipeline: dict, smallest: Callable[[dict], int | None]) -> list[dict]:
    """What a page shows of each format: both totals, and the smallest card of each."""
    return [
        {
            "name": words.format_name(row["denoiser"]),
            "text": words.format_name(row["text"]) if row["text"] else "",
            "whole": row[WHOLE] | {"card_gb": smallest(row[WHOLE])},
            "one": row[ONE] | {"card_gb": smallest(row[ONE])},
        }
        for row in pipeline.get("packed", [])
    ]


def sentence(shown: dict) -> str:
    """What the first screen says of fewer bits, one part on the card at a time: of the formats that need less than 16 bits do."""
    plain = next((p["total_bytes"] for p in shown["known"] if p["placement"] == shown["one"]), None)
    least = plain
    said: dict[str, list[str]] = {}  # by what is needed the formats that need it
    for row in shown["packed"] if plain else ():
        needed = row["one"]["total_bytes"]
        if needed >= (least if row["text"] else plain):
            continue
        least = min(least, needed)
        size = row["one"]["card_gb"]
        loading = " while it is loaded" if row["one"]["is_loading"] else ""
        need = f"{words.gib(needed)} GiB{loading}{f' (one {size} GB card)' if size else ''}"
        said.setdefault(need, []).append(f"{row['name']} with the text encoders" if row["text"] else row["name"])
    parts = [f"{' or '.join(filter(None, (', '.join(of[:-1]), of[-1])))} {need}" for need, of in said.items()]
    return f"One part on the card at a time, denoiser in {'; '.join(parts)}." if parts else ""
