"""What a card and the CPU hold of models that llama.cpp shares between them: the table `cpu_split`, asked of a card."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.render.data.rules import in_python


class Split(NamedTuple):
    """The most layers that a card takes of `layer_count` (the output is one), or of a mixture of experts all of them but the experts of some."""

    gpu_layers: int
    layer_count: int
    cpu_expert_layers: int
    host_bytes: int

    @property
    def flags(self) -> str:
        return f"-ngl 99 --n-cpu-moe {self.cpu_expert_layers}" if self.cpu_expert_layers else f"-ngl {self.gpu_layers}"


class Splits:
    """Of some models in one format; none where the release has no such table."""

    def __init__(self, folder: Path, models: Iterable[str], dtype_id: str) -> None:
        file = folder / "cpu_split.parquet"
        self._ways: dict[str, list[tuple]] = {}
        if not file.exists():
            return
        names = ("gpu_layers", "cpu_expert_layers", "gpu_bytes", "host_bytes", "error_band")
        found = pl.scan_parquet(file).filter(pl.col("model_id").is_in(list(models)), dtype_id=dtype_id)
        for model, *way in found.select("model_id", *names).collect().rows():
            self._ways.setdefault(model, []).append(tuple(way))

    def best(self, model: str, capacity_bytes: int) -> Split | None:
        """None where nothing is known, no layer fits, or all do. Experts on the CPU, where they may be, keep more of the model on the card."""
        takes = in_python().takes
        taken = [way for way in self._ways.get(model, ()) if takes(way[2], way[4], capacity_bytes)]
        if not taken:
            return None
        most = max(way[0] for way in self._ways[model])
        whole = [way for way in taken if way[0] == most]
        layers, experts, _gpu, host, _band = min(whole, key=lambda way: way[1]) if whole else max(taken)
        return None if layers == 0 or (layers == most and not experts) else Split(layers, most, experts, host)
