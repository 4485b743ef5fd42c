"""What diffusion pipelines hold, as the macros `pipeline_of` and `pipeline_stages` of the published file say: in bf16, for one picture
of 1024 × 1024 pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
from markupsafe import Markup

from pipeline.base.readonly import reading
from pipeline.render import words
from pipeline.render.data.book import BAND_UNIT

DTYPE, SIDE_PIXELS = "bf16", 1024
PLACED = {
    "resident": "all parts on the card",
    "model": "one part on the card at a time",
    "sequential": "one module on the card at a time",
}


def read(folder: Path, models: list[str], plainly: Callable[[str], str] = str) -> dict[str, dict[str, list[dict]]]:
    """By model its `parts` and the whole under each of the `placements`; none where the file has no such formulas.
    Reasons are said `plainly`."""
    with reading(folder / "almanac.duckdb") as connection:
        query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name IN ('pipeline_of', 'pipeline_stages')"
        if len(connection.execute(query).fetchall()) < 2:
            return {}
        asked = (("parts", "pipeline_stages"), ("placements", "pipeline_of"))
        rows = {name: _rows(connection, macro, models, plainly) for name, macro in asked}
    return {
        model: {
            "parts": sorted(rows["parts"].get(model, ()), key=lambda row: row["pipeline_part"]),
            "placements": sorted(
                rows["placements"].get(model, ()), key=lambda row: list(PLACED).index(row["placement"])
            ),
        }
        for model in models
    }


def _rows(
    connection: duckdb.DuckDBPyConnection, macro: str, models: list[str], plainly: Callable[[str], str]
) -> dict[str, list[dict]]:
    """Of all models in one question: that is planned anew each time it is asked, which takes longer than the answers."""
    result = connection.execute(
        f"SELECT asked.model_id, told.* FROM (SELECT unnest($models::VARCHAR[]) AS model_id) AS asked, "
        f"{macro}(asked.model_id, dtype_id := '{DTYPE}', width := {SIDE_PIXELS}, height := {SIDE_PIXELS}) AS told",
        {"models": models},
    )
    names = [column[0] for column in result.description][1:]
    found: dict[str, list[dict]] = {model: [] for model in models}
    for model, *values in result.fetchall():
        row = dict(zip(names, values, strict=True))
        if row.get("unknown_reason"):
            row["unknown_reason"] = plainly(row["unknown_reason"])
        found[model].append(row)
    return found


def told(pipeline: dict | None) -> dict | None:
    """What a page shows: the placements whose total is known, the parts, and why where no total is."""
    if not pipeline:
        return None
    whole = [p | {"placed": PLACED.get(p["placement"], p["placement"])} for p in pipeline["placements"]]
    known = [p for p in whole if p["total_bytes"] is not None]
    return {"known": known, "parts": pipeline["parts"], "reason": next((p["unknown_reason"] for p in whole), "")}


def as_json(pipeline: dict) -> dict:
    """For programs: the parts, and the whole by where they are; what is unknown has its reason."""
    rows = lambda of, names: [{k: row[k] for k in names if row.get(k) is not None} for row in pipeline[of]]  # noqa: E731
    return {
        "dtype_id": DTYPE,
        "width_pixels": SIDE_PIXELS,
        "height_pixels": SIDE_PIXELS,
        "parts": rows("parts", ("pipeline_part", "class_name", "weights_bytes", "activations_bytes", "unknown_reason")),
        "placements": rows("placements", ("placement", "total_bytes", "error_band", "unknown_reason")),
    }


def totals(placement: dict) -> list[float]:
    """As `words.judge` takes them: KiB on one card, and the error band, that of several cards beside it."""
    band = round((placement.get("error_band") or 0) * BAND_UNIT)
    return [placement["total_bytes"] / 1024, band, band]


def sentence(pipeline: dict | None, cards: list[tuple[int, int]] = ()) -> str:
    """The answer of a pipeline's page; empty where no whole is known. `cards`: nominal GiB and capacity in KiB, smallest first."""
    known = told(pipeline)["known"] if pipeline else []
    parts = [f"{words.gib(p['total_bytes'])} GiB with {p['placed']}{_where(p, cards)}" for p in known]
    return f"In {DTYPE}, at {SIDE_PIXELS} × {SIDE_PIXELS} pixels: {'; '.join(parts)}." if parts else ""


def _where(placement: dict, cards: list[tuple[int, int]]) -> str:
    size = _smallest(placement, cards)
    return f" (one {size} GB card)" if size else ""


def _smallest(placement: dict, cards: list[tuple[int, int]]) -> int | None:
    """Nominal GiB of the smallest card that it fits on, error band included."""
    return next((n for n, capacity in cards if words.judge(totals(placement), [1], capacity)[0] == "fits"), None)


def for_badge(pipeline: dict | None, cards: list[tuple[int, int]]) -> tuple[str | None, bool]:
    """`16 GB in bf16`, or with one part at a time where not all of them fit on one card; and whether anything is known."""
    known = told(pipeline)["known"] if pipeline else []
    for placement in known[:2]:
        size = _smallest(placement, cards)
        if size:
            return f"{size} GB in {DTYPE}{'' if placement['placement'] == 'resident' else ', offloaded'}", True
    return None, bool(known)


def verdicts(pipeline: dict, gpus: list[dict], refusals: list) -> list[tuple[str, Markup]]:
    """A row for each way to place the parts: its name, and a cell for each card, which may not run the format (`refusals`)."""
    rows = []
    for p in pipeline["known"]:
        cards = [(g["capacity_bytes"] // 1024, refusal) for g, refusal in zip(gpus, refusals, strict=True)]
        cells = [words.verdict_cell(totals(p), [1], capacity, refusal=refusal) for capacity, refusal in cards]
        rows.append((p["placed"], Markup("".join(cells))))
    return rows
