"""A digest of what was published, small enough to keep in the checkout: the numbers that pages open with, and what they rest on.

    digest.csv    a line per model: its revision, a hash of its anatomy, and a cell per format and phase, `total_bytes error_band`
    digest.json   versions, hashes of formulas and facts, constants, engine versions, capacities, and which card does not run what

Totals are those of one GPU, one sequence, AdamW and full checkpointing, at 8192 tokens in inference and 2048 in training, or at the
longest published context that the model reads where that is less.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import polars as pl

NUMBERS, BASIS = "digest.csv", "digest.json"
CONTEXTS = {"inference": 8192}
TRAINING_CONTEXT = 2048
ANATOMY = ("tensor_class", "attention_layer", "feed_forward_layer")
_WHO = ("model_id", "revision", "anatomy")


@dataclass(frozen=True)
class Digest:
    """`models` holds revision and anatomy by model, `numbers` (total, band) by model and scenario, `basis` what they rest on."""

    models: dict[str, tuple[str, str]]
    numbers: dict[str, dict[str, tuple[int, float]]]
    basis: dict


def take(tables: Path, sources: Path, versions: dict) -> Digest:
    """The digest of the tables in a folder; `sources` is the book that they were made of."""
    anatomies = _anatomies(tables)
    rows = pl.read_parquet(tables / "model.parquet", columns=["model_id", "revision"]).sort("model_id").rows()
    models = {model_id: (revision or "", anatomies.get(model_id, "")) for model_id, revision in rows}
    values = lambda name, key, value: dict(pl.read_parquet(tables / f"{name}.parquet").select(key, value).rows())  # noqa: E731
    basis = versions | {
        "formulas": _hashes(sources / "sql", "*.sql"),
        "facts": _hashes(sources / "facts", "*.csv"),
        "constants": values("constant", "constant_id", "value"),
        "engines": values("engine", "engine_id", "engine_version"),
        "capacities": values("gpu", "gpu_id", "capacity_bytes"),
    }
    numbers = _numbers(tables)
    return Digest(
        models, numbers, basis | {"refusals": _refusals(tables, {s for cells in numbers.values() for s in cells})}
    )


def _refusals(tables: Path, scenarios: set[str]) -> dict[str, dict[str, str]]:
    """By scenario the cards that do not run it, with fused attention as everywhere in the digest: `no` where a source says so,
    `untold` where none says that they do. A checkpoint as published runs where its own format does, and is not told here."""
    file = tables / "runs_on.parquet"
    if not file.exists():
        return {}
    rows = pl.read_parquet(file).filter(pl.col("attention") == "flash", pl.col("runs").is_null() | ~pl.col("runs"))
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for phase, dtype, engine, gpu, runs in (
        rows.select("phase_id", "dtype_id", "engine_id", "gpu_id", "runs").sort(pl.all()).rows()
    ):
        if (scenario := f"{phase} {dtype} {engine}") in scenarios:
            found[scenario][gpu] = "untold" if runs is None else "no"
    return dict(found)


def _numbers(tables: Path) -> dict[str, dict[str, tuple[int, float]]]:
    wanted = pl.col("phase_id").replace_strict(CONTEXTS, default=TRAINING_CONTEXT, return_dtype=pl.Int64)
    scenario = ["phase_id", "dtype_id", "engine_id"]
    frame = (
        pl.scan_parquet(tables / "footprint.parquet")
        .filter(
            pl.col("gpu_count") == 1,
            pl.col("sequences") == 1,
            pl.col("context_tokens") <= wanted,
            pl.col("optimizer_id").is_null() | (pl.col("optimizer_id") == "adamw"),
            pl.col("checkpointing").is_null() | (pl.col("checkpointing") == "full"),
            pl.col("total_bytes").is_not_null(),
        )
        .select("model_id", *scenario, "context_tokens", "total_bytes", "error_band")
        .collect()
        .sort("model_id", *scenario, "context_tokens")
        .unique(["model_id", *scenario], keep="last", maintain_order=True)
    )
    numbers: dict[str, dict[str, tuple[int, float]]] = defaultdict(dict)
    for model_id, phase, dtype, engine, _context, total, band in frame.rows():
        numbers[model_id][f"{phase} {dtype} {engine}"] = total, band or 0.0
    return dict(numbers)


def _anatomies(tables: Path) -> dict[str, str]:
    """A hash of the rows that describe a model."""
    digests = defaultdict(hashlib.sha256)
    for name in ANATOMY:
        file = tables / f"{name}.parquet"
        if file.exists():
            frame = pl.read_parquet(file)
            for row in frame.select("model_id", pl.exclude("model_id")).sort(pl.all()).rows():
                digests[row[0]].update(repr((name, *row[1:])).encode())
    return {model_id: digest.hexdigest()[:12] for model_id, digest in digests.items()}


def _hashes(folder: Path, pattern: str) -> dict[str, str]:
    return {
        f.relative_to(folder).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest()[:12]
        for f in sorted(folder.rglob(pattern))
    }


def write(digest: Digest, folder: Path) -> None:
    scenarios = sorted({s for cells in digest.numbers.values() for s in cells})
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NUMBERS).open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*_WHO, *scenarios])
        for model_id, facts in digest.models.items():
            cells = digest.numbers.get(model_id, {})
            out.writerow(
                [model_id, *facts, *(f"{cells[s][0]} {cells[s][1]:g}" if s in cells else "" for s in scenarios)]
            )
    (folder / BASIS).write_text(json.dumps(digest.basis, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read(folder: Path) -> Digest | None:
    """The digest that a folder keeps; None where it keeps none."""
    if not (folder / NUMBERS).exists() or not (folder / BASIS).exists():
        return None
    with (folder / NUMBERS).open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        _, _, _, *scenarios = next(rows)
        models, numbers = {}, {}
        for model_id, revision, anatomy, *cells in rows:
            models[model_id] = revision, anatomy
            known = {s: cell.split() for s, cell in zip(scenarios, cells, strict=True) if cell}
            if known:
                numbers[model_id] = {s: (int(total), float(band)) for s, (total, band) in known.items()}
    return Digest(models, numbers, json.loads((folder / BASIS).read_text(encoding="utf-8")))
