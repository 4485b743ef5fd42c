"""Counts what transformers keeps in its cache after a prompt: the truth that attention_layer rows are held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_cache.py

One short model of every architecture in parameters.csv, and of every one in parameters_multimodal.csv that generates, reads prompts
of 96 and 160 tokens on the meta device, with a window of 64 tokens where its config has one; models with an encoder find as many
in what it made. Code that asks for values runs on the CPU, all zeros, without the width of what no cache holds. `cache_elements` counts
the elements of all tensors of its cache, 0 where the class keeps none.
"""

from __future__ import annotations

import csv
import itertools
import json
import logging
import sys
import warnings
from pathlib import Path

from count_multimodal import FILE as MULTIMODAL
from count_multimodal import build as build_multimodal
from count_multimodal import shorten as shorten_parts
from count_parameters import FILE as PARAMETERS
from count_parameters import build, shorten

FILE = Path(__file__).with_name("cache.csv")
COLUMNS = ["model_type", "architecture", "config_json", "tokens", "cache_elements", "transformers_version"]
WINDOWS = ("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size")
UNSEEN = {"vocab_size": 2048, "vocab_size_per_layer_input": 2048, "intermediate_size": 128, "ffn_dim": 128, "encoder_ffn_dim": 128,
          "decoder_ffn_dim": 128, "moe_intermediate_size": 32, "num_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
          "num_experts_per_tok": 2}  # fmt: skip
MOST_ON_CPU = 1_500_000_000  # elements
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


def count(model, tokens: int, device: str) -> int:
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    with torch.device(device), torch.no_grad():
        prompt = torch.full((1, tokens), 3)
        inputs = {"input_ids": prompt}
        if model.config.is_encoder_decoder:
            width = model.get_encoder().config.hidden_size
            inputs = {"encoder_outputs": BaseModelOutput(torch.zeros((1, tokens, width), dtype=torch.bfloat16))}
            inputs["decoder_input_ids"] = prompt
        output = model(**inputs, use_cache=True)
        return elements([getattr(output, name, None) for name in ("past_key_values", "cache_params")])


def runnable(made, device: str):
    """The model in 16 bits; on the CPU every weight is zero. Rotations of images that do not fill a short config's heads are cut anew."""
    import torch

    model = (made[0] if isinstance(made, tuple) else made).eval().to(torch.bfloat16)
    if device == "cpu":
        if sum(p.numel() for p in model.parameters()) > MOST_ON_CPU:
            raise MemoryError("too large for the CPU")
        model.to_empty(device="cpu")
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.data.zero_()
    for module in model.modules():
        sections, pairs = getattr(module, "mrope_section", None), getattr(module, "inv_freq", None)
        if isinstance(sections, list) and pairs is not None and sum(sections) != pairs.numel():
            third = pairs.numel() // 3
            module.mrope_section = [pairs.numel() - 2 * third, third, third]
    return model


def narrow(config: dict) -> dict:
    """The config without the width of what no cache holds."""
    small = {name: narrow(value) if isinstance(value, dict) else value for name, value in config.items()}
    return small | {
        name: size for name, size in UNSEEN.items() if isinstance(config.get(name), int) and config[name] > size
    }


def windowed(config: dict) -> dict:
    """The config with windows of 64 tokens wherever it has any, in its nested configs too."""
    small = {name: windowed(value) if isinstance(value, dict) else value for name, value in config.items()}
    return small | {name: 64 for name in WINDOWS if isinstance(config.get(name), int)}


def models():
    """(model_type, architecture, config, how to build it) of one short model of each architecture; variations are shorter."""
    with PARAMETERS.open(newline="") as file:
        plain = [r for r in csv.DictReader(file) if r["architecture"].endswith(("ForCausalLM", "LMHeadModel"))]
    with MULTIMODAL.open(newline="") as file:
        parts = [
            r for r in csv.DictReader(file) if r["architecture"].endswith(("ForConditionalGeneration", "ForCausalLM"))
        ]
    known = {row["model_type"] for row in plain}
    parts = [row for row in parts if row["model_type"] not in known]
    for rows, cut, make in (
        (plain, lambda c: shorten(c, 14), build),
        (parts, lambda c: shorten_parts(c, 8), build_multimodal),
    ):
        for model_type, group in itertools.groupby(rows, key=lambda r: r["model_type"]):
            row = max(group, key=lambda r: (r["architecture"].endswith("Generation"), int(r["parameter_count"])))
            yield model_type, row["architecture"], windowed(cut(json.loads(row["config_json"]))), make


def main() -> None:
    csv.field_size_limit(sys.maxsize)
    import transformers

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rows = []
    for model_type, architecture, config, make in models():
        for device, tried in (("meta", config), ("cpu", narrow(config))):
            text = json.dumps(tried, separators=(",", ":"), sort_keys=True)
            try:
                model = runnable(make(model_type, architecture, tried), device)
                counts = [(tokens, count(model, tokens, device)) for tokens in LENGTHS]
            except Exception as error:
                print(f"{model_type} on {device}: {type(error).__name__}: {str(error)[:120]}", file=sys.stderr)
                continue
            rows += [
                [model_type, architecture, text, tokens, held, transformers.__version__] for tokens, held in counts
            ]
            break
    rows.sort(key=lambda row: row[0])
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
