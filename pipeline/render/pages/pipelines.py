"""What diffusion pipelines hold, as the macros `pipeline_of` and `pipeline_stages` of the published file say: in bf16, for one picture
of 1024 × 1024 pixels, or for the video that site/made.csv asks for where the autoencoder makes videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
from markupsafe import Markup

from pipeline.base.readonly import reading
from pipeline.render import words
from pipeline.render.data.book import BAND_UNIT
from pipeline.render.data.made import PICTURE, TILED, size_of
from pipeline.render.pages import packed_pipelines

DTYPE = "bf16"
TOLD = ("resident", "model", "model-tiled", "sequential")  # what a sentence says: the ways that most take
PLACED = {
    "resident": "all parts on the card",
    "model": "one part on the card at a time",
    "group": "one module on the card and the next one on its way",
    "sequential": "one module on the card at a time",
    "resident-tiled": "all parts on the card, decoded in tiles",
    "model-tiled": "one part at a time, decoded in tiles",
    "group-tiled": "one module and the next one on its way, decoded in tiles",
    "sequential-tiled": "one module at a time, decoded in tiles",
}
# What pages say of training: LoRA over a base in 16 bits and in 4, all layers recomputed, one picture or video at a time.
TRAINED = {
    "cached": "the denoiser alone on the card, latents and text made before",
    "resident": "all parts on the card",
}
BASES = (None, "nf4")


def read(folder: Path, models: list[str], plainly: Callable[[str], str] = str) -> dict[str, dict[str, list[dict]]]:
    """By model its `parts` and the whole under each of the `placements`; none where the file has no such formulas.
    Reasons are said `plainly`."""
    with reading(folder / "almanac.duckdb") as connection:
        query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name IN ('pipeline_of', 'pipeline_stages')"
        if len(connection.execute(query).fetchall()) < 2:
            return {}
        videos = _videos(connection)
        sized: dict[bool, list[str]] = {}
        for model in models:
            sized.setdefault(model in videos, []).append(model)
        found = {
            model: pipeline
            for makes_videos, some in sized.items()
            for model, pipeline in _pipelines(connection, some, size_of(makes_videos), plainly).items()
        }
        for makes_videos, some in sized.items():
            for model, rows in _training(connection, some, size_of(makes_videos), plainly).items():
                found[model]["training"] = rows
            for model, rows in packed_pipelines.read(connection, some, size_of(makes_videos), DTYPE).items():
                found[model]["packed"] = rows
        return found


def _videos(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Pipelines whose autoencoder makes videos; none in a file that does not say so."""
    query = "SELECT 1 FROM information_schema.columns WHERE table_name = 'pipeline_stage' AND column_name = 'frames_at_once'"
    if not connection.execute(query).fetchall():
        return set()
    query = """
        SELECT DISTINCT model_id FROM component JOIN pipeline_stage USING (class_name)
        WHERE stage = 'decode' AND frames_at_once <> 1
    """
    return {model for (model,) in connection.execute(query).fetchall()}


def _pipelines(
    connection: duckdb.DuckDBPyConnection, models: list[str], size: dict[str, int], plainly: Callable[[str], str]
) -> dict[str, dict]:
    """Of models that are told of one size."""
    parts = _rows(connection, "pipeline_stages", models, size, plainly)
    placements = _rows(connection, "pipeline_of", models, size, plainly)
    if size["frames"] > 1:
        tiled = _rows(connection, "pipeline_of", models, size | {"is_tiled": True}, plainly)
        for model, rows in tiled.items():
            placements[model] += [row | {"placement": row["placement"] + TILED} for row in rows]
    order = list(PLACED)
    return {
        model: {
            "size": size,
            "parts": sorted(parts[model], key=lambda row: row["pipeline_part"]),
            "placements": sorted(placements[model], key=lambda row: order.index(row["placement"])),
        }
        for model in models
    }


def _training(
    connection: duckdb.DuckDBPyConnection, models: list[str], size: dict[str, int], plainly: Callable[[str], str]
) -> dict[str, list[dict]]:
    """By model what LoRA of its denoiser takes; none in a file without such formulas."""
    query = "SELECT 1 FROM duckdb_functions() WHERE function_name = 'pipeline_training_of'"
    if not models or not connection.execute(query).fetchall():
        return {}
    found: dict[str, list[dict]] = {model: [] for model in models}
    for base in BASES:
        asked = {k: size[k] for k in ("width", "height", "frames")} | {"checkpointing": "'full'"}
        asked |= {"denoiser_dtype_id": f"'{base}'"} if base else {}
        for model, rows in _rows(connection, "pipeline_training_of", models, asked, plainly).items():
            known = [row | {"base": base or DTYPE} for row in rows if row["total_bytes"] is not None]
            found[model] += sorted(known, key=lambda row: row["total_bytes"])
    return found


def _rows(
    connection: duckdb.DuckDBPyConnection, macro: str, models: list[str], size: dict, plainly: Callable[[str], str]
) -> dict[str, list[dict]]:
    """Of all models in one question: that is planned anew each time it is asked, which takes longer than the answers."""
    asked = ", ".join(
        f"{name} := {str(value).lower()}" for name, value in size.items() if (name, value) != ("frames", 1)
    )
    result = connection.execute(
        f"SELECT asked.model_id, told.* FROM (SELECT unnest($models::VARCHAR[]) AS model_id) AS asked, "
        f"{macro}(asked.model_id, dtype_id := '{DTYPE}', {asked}) AS told",
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


def told(pipeline: dict | None, cards: list[tuple[int, int]] = ()) -> dict | None:
    """What a page shows: the placements whose total is known, the parts, and why where no total is. `cards` as in `sentence`."""
    if not pipeline:
        return None
    whole = [p | {"placed": PLACED.get(p["placement"], p["placement"])} for p in pipeline["placements"]]
    known = [p for p in whole if p["total_bytes"] is not None]
    size = pipeline.get("size", PICTURE)
    reason = next((p["unknown_reason"] for p in whole), "")
    training = [
        row | {"placed": TRAINED.get(row["placement"], row["placement"]), "card_gb": _smallest(row, cards)}
        for row in pipeline.get("training", [])
    ]
    of = {"parts": pipeline["parts"], "reason": reason, "size": size, "made": _made(size), "training": training}
    one = packed_pipelines.ONE + (TILED if size["frames"] > 1 else "")
    shown = {"known": known, "one": one, "packed": packed_pipelines.told(pipeline, lambda p: _smallest(p, cards))} | of
    return shown | {"packed_said": packed_pipelines.sentence(shown)}


def _sides(size: dict[str, int]) -> str:
    return f"{size['width']} × {size['height']} pixels"


def _made(size: dict[str, int]) -> str:
    return (
        f"a video of {size['frames']} frames of {_sides(size)}"
        if size["frames"] > 1
        else f"one picture of {_sides(size)}"
    )


def _asked(size: dict[str, int]) -> str:
    return f"{size['frames']} frames of {_sides(size)}" if size["frames"] > 1 else f"at {_sides(size)}"


def as_json(pipeline: dict) -> dict:
    """For programs: the parts, and the whole by where they are; what is unknown has its reason."""
    rows = lambda of, names: [{k: row[k] for k in names if row.get(k) is not None} for row in pipeline[of]]  # noqa: E731
    return {
        "dtype_id": DTYPE,
        "width_pixels": pipeline.get("size", PICTURE)["width"],
        "height_pixels": pipeline.get("size", PICTURE)["height"],
        "frame_count": pipeline.get("size", PICTURE)["frames"],
        "parts": rows("parts", ("pipeline_part", "class_name", "weights_bytes", "activations_bytes", "unknown_reason")),
        "placements": rows("placements", ("placement", "total_bytes", "error_band", "unknown_reason")),
    } | (
        {"training": rows("training", ("base", "placement", "total_bytes", "error_band"))}
        if pipeline.get("training")
        else {}
    )


def totals(placement: dict) -> list[float]:
    """As `words.judge` takes them: KiB on one card, and its error band."""
    band = round((placement.get("error_band") or 0) * BAND_UNIT)
    return [placement["total_bytes"] / 1024, band]


def sentence(pipeline: dict | None, cards: list[tuple[int, int]] = ()) -> str:
    """The answer of a pipeline's page; empty where no whole is known. `cards`: nominal GiB and capacity in KiB, smallest first."""
    shown = told(pipeline) if pipeline else None
    known = [p for p in shown["known"] if p["placement"] in TOLD] if shown else []
    parts = [f"{words.gib(p['total_bytes'])} GiB with {p['placed']}{_where(p, cards)}" for p in known]
    if not parts:
        return ""
    weights = [part.get("weights_bytes") for part in shown["parts"]]
    waits = any(not p["placement"].startswith("resident") for p in known) and weights and all(weights)
    more = (
        f" Parts that are not on the card wait in the computer's memory: all of them are {words.gib(sum(weights))} GiB."
        if waits
        else ""
    )
    return f"In {DTYPE}, {_asked(shown['size'])}: {'; '.join(parts)}.{more}"


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
