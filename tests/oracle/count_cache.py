"""Counts what transformers keeps in its cache after a prompt: the truth that attention_layer rows are held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_cache.py

One short model of every architecture in parameters.csv reads prompts of 96 and 160 tokens on the meta device, with a
window of 64 tokens where its config has one. `cache_elements` counts the elements of all tensors of its cache.
"""

from __future__ import annotations

import csv
import itertools
import json
import logging
import sys
import warnings
from pathlib import Path

from count_parameters import FILE as PARAMETERS
from count_parameters import build, shorten

FILE = Path(__file__).with_name("cache.csv")
COLUMNS = ["model_type", "architecture", "config_json", "tokens", "cache_elements", "transformers_version"]
WINDOWS = ("sliding_window", "attention_chunk_size", "window_size")
LENGTHS = (96, 160)


def elements(cache) -> int:
    """All tensors that the cache's layers hold, states included, each storage view once."""
    import torch

    seen: dict[int, int] = {}
    pending = [cache]
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            if value.numel() > 1:  # single values are positions
                seen[id(value)] = value.numel()
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("transformers"):
            pending += [v for k, v in vars(value).items() if k not in ("config", "cumulative_length", "device")]
    return sum(seen.values())


def count(model, tokens: int) -> int:
    import torch

    with torch.device("meta"), torch.no_grad():
        prompt = torch.zeros((1, tokens), dtype=torch.long)
        output = model(input_ids=prompt, use_cache=True)
        cache = getattr(output, "past_key_values", None)
        return elements(cache if cache is not None else output.cache_params)


def main() -> None:
    import torch
    import transformers

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with PARAMETERS.open(newline="") as file:
        models = [r for r in csv.DictReader(file) if r["architecture"].endswith(("ForCausalLM", "LMHeadModel"))]
    rows = []
    for model_type, group in itertools.groupby(models, key=lambda r: r["model_type"]):
        row = max(group, key=lambda r: int(r["parameter_count"]))  # the variations are shorter
        config = shorten(json.loads(row["config_json"]), 14)
        config |= {name: 64 for name in WINDOWS if isinstance(config.get(name), int)}
        text = json.dumps(config, separators=(",", ":"), sort_keys=True)
        try:
            model = build(model_type, row["architecture"], config).eval().to(torch.bfloat16)
            for tokens in LENGTHS:
                rows.append(
                    [model_type, row["architecture"], text, tokens, count(model, tokens), transformers.__version__]
                )
        except Exception as error:
            print(f"{model_type}: {type(error).__name__}: {str(error)[:120]}", file=sys.stderr)
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
