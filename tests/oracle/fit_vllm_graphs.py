"""Fits what CUDA graphs take in vLLM to the layers of a model: where three rows of tables/facts/constant.csv come from.

    python -m tests.oracle.fit_vllm_graphs

Measured are the rows `cuda_graphs` of tables/measured.csv on one GPU (vLLM 0.19.0 on an H100, all defaults). Of dense models: the slope of least
squares, and above zero layers as much as puts no measurement above the line. Of mixtures of experts: the mean of what they take beyond it.
"""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

from tests.once import bundled_snapshot

MEASURED = Path(__file__).parents[2] / "tables" / "measured.csv"


def main() -> None:
    with MEASURED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "cuda_graphs"]
    # (other releases capture other lengths)
    rows = [row for row in rows if row["framework"] == "vLLM V1 0.19.0" and row["parallelism"] == "1 GPU"]
    names = {row["model_id"] for row in rows}
    configs = {record.model_id: record.config for record in bundled_snapshot().records if record.model_id in names}
    points = [(configs[row["model_id"]], int(row["value_bytes"])) for row in rows]
    dense = [(c["num_hidden_layers"], size) for c, size in points if "num_experts_per_tok" not in c]
    experts = [(c["num_hidden_layers"], size) for c, size in points if "num_experts_per_tok" in c]
    slope, _ = statistics.linear_regression(*zip(*dense, strict=True))
    least = max(size - slope * layers for layers, size in dense)
    beyond = [size - slope * layers - least for layers, size in experts]
    print(f"vllm_graphs_bytes,{least:.0f}   of {len(dense)} runs of dense models")
    print(f"vllm_graphs_bytes_per_layer,{slope:.0f}")
    print(f"vllm_graphs_experts_bytes,{statistics.mean(beyond):.0f}   {min(beyond):.0f} to {max(beyond):.0f}")


if __name__ == "__main__":
    main()
