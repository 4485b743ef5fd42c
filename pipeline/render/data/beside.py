"""What the first screen reads where somebody says how much RAM there is: mixtures whose experts llama.cpp keeps there, from the table `cpu_split`.

`data/window/<file>-ram.json` is fetched only then. All caches of such a model are on the card, so that what the card holds less than the whole
(data/window/<file>.json) is the same at every context:

    splits    for each column of the file null, or [held, brought, bytes, layers, bytes, layers, …]: what RAM holds of the whole (its input
              embeddings), what the card holds more once experts are elsewhere (a matrix that is brought over), and what the experts of a
              layer weigh, of so many layers one after another
    work      the places of works, each with the place of its `split`
"""

from __future__ import annotations

import json
from itertools import groupby, pairwise

import polars as pl

from pipeline.base.failures import Failure
from pipeline.book import beside
from pipeline.render.data.book import Book
from pipeline.render.data.window import Window

SYSTEM = "host_system_bytes"


def files(book: Book, window: Window) -> dict[str, str]:
    """By name below `data/window/`: of lists that llama.cpp runs, and nothing where the release has no such table."""
    table = book.folder / "cpu_split.parquet"
    if not table.exists():
        return {}
    system = next(constant["value"] for constant in book["constant"] if constant["constant_id"] == SYSTEM)
    models = {window.alike[book.models[i]["model_id"]] for of in window.of_file.values() for i in of["works"]}
    held = _held(pl.scan_parquet(table).filter(pl.col("model_id").is_in(list(models))))
    found = {}
    for name, of in window.of_file.items():
        if any((phase, engine) != ("inference", "llama.cpp") for phase, _dtype, engine in of["columns"]):
            continue
        splits: dict[str, int] = {}
        work, split = [], []
        for k, i in enumerate(of["works"]):
            model = window.alike[book.models[i]["model_id"]]
            lines = of["shapes"][of["places"][k]]
            ways = [
                None if line is None else held.get((model, dtype))
                for (_phase, dtype, _engine), line in zip(of["columns"], lines, strict=True)
            ]
            if any(ways):
                work.append(k)
                split.append(splits.setdefault(json.dumps(ways, separators=(",", ":")), len(splits)))
        told = {"system": int(system), "part": beside.PARTS["experts"], "flags": beside.FLAGS["experts"]}
        told |= {"work": work, "split": split, "splits": [json.loads(text) for text in splits]}
        found[f"{name}-ram.json"] = json.dumps(told, separators=(",", ":"))
    return found


def _held(table: pl.LazyFrame) -> dict[tuple[str, str], list[int]]:
    """By model and format what lies where, of models with experts."""
    who = ["model_id", "dtype_id"]
    rows = (
        table.filter(pl.col("gpu_layers") == pl.col("gpu_layers").max().over(who))
        .sort(*who, "cpu_expert_layers")
        .group_by(who, maintain_order=True)
        .agg("gpu_bytes", "host_bytes")
        .filter(pl.col("gpu_bytes").list.len() > 1)
        .collect()
    )
    return {(model, dtype): _steps(model, gpu, host) for model, dtype, gpu, host in rows.rows()}


def _steps(model: str, gpu_bytes: list[int], host_bytes: list[int]) -> list[int]:
    """Of the whole, and of the experts of ever more layers in RAM."""
    moved = [b - a for a, b in pairwise(host_bytes)]
    brought = {
        gpu + host - gpu_bytes[0] - host_bytes[0] for gpu, host in zip(gpu_bytes[1:], host_bytes[1:], strict=True)
    }
    if len(brought) > 1:
        raise Failure(f"{model}: what its experts leave on the card and in RAM does not add up to the same (cpu_split)")
    runs = [(size, len(list(layers))) for size, layers in groupby(moved)]
    return [host_bytes[0], brought.pop(), *(number for run in runs for number in run)]
