"""Counts what transformers keeps in its cache after a prompt: the truth that attention_layer rows are held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_cache.py

One short model of every architecture in parameters.csv, and of every one in parameters_multimodal.csv that generates, reads prompts
of 96 and 160 tokens on the meta device, with a window of 64 tokens where its config has one; models with an encoder find as many
in what it made. Code that asks for values runs on the CPU, all zeros, without the width of what no cache holds, or on tensors that hold
nothing (hollow.py). Where a short config does not run (layers that share their cache with one that was cut off, no layer that attends),
the whole one is tried, and two that the snapshot has. `cache_elements` counts the elements of all tensors of its cache, 0 where the
class keeps none.

    python tests/oracle/count_cache.py --only step3p7,bamba     # counts these anew, leaves the other rows
"""

from __future__ import annotations

import argparse
import contextlib
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
from hollow import Hollow
from rows import configs

FILE = Path(__file__).with_name("cache.csv")
COLUMNS = ["model_type", "architecture", "config_json", "tokens", "cache_elements", "transformers_version"]
WINDOWS = ("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size")
UNSEEN = {"vocab_size": 2048, "vocab_size_per_layer_input": 2048, "intermediate_size": 128, "ffn_dim": 128, "encoder_ffn_dim": 128,
          "decoder_ffn_dim": 128, "moe_intermediate_size": 32, "num_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
          "num_experts_per_tok": 2}  # fmt: skip
MOST_ON_CPU = 1_500_000_000  # elements
LENGTHS = (96, 160)
# Classes whose defaults never attend: where a layer of a short one does.
ATTENDS = {
    "bamba": {"attn_layer_indices": [9]},
    "granitemoehybrid": {"layer_types": ["mamba"] * 9 + ["attention"] + ["mamba"] * 4},
}
# Classes that can look both ways, and are counted so too: a class that writes on caches all the same.
BOTH_WAYS = {
    "gemma": True,
    "gemma2": True,
    "gemma3": True,
    "gemma3_text": True,
    "gemma4_text": "all",
    "paligemma": True,
}


def both_ways(config: dict, flag: bool | str) -> dict:
    if "text_config" in config:
        return {**config, "text_config": both_ways(config["text_config"], flag)}
    return {**config, "use_bidirectional_attention": flag}


def elements(cache) -> int:
    """All tensors that the cache's layers hold, states included, each storage view once."""
    import torch

    seen: dict[int, int] = {}
    pending = [cache]
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            if value.numel() > 1 and value.is_floating_point():  # single values and integers are tokens and positions
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

    mode = Hollow() if device == "hollow" else contextlib.nullcontext()
    with torch.device("cpu" if device == "hollow" else device), mode, torch.no_grad():
        prompt = torch.full((1, tokens), 3)
        inputs = {"input_ids": prompt}
        if model.config.is_encoder_decoder:
            width = model.get_encoder().config.hidden_size
            inputs = {"encoder_outputs": BaseModelOutput(torch.zeros((1, tokens, width), dtype=torch.bfloat16))}
            inputs["encoder_outputs"].attention_mask = None  # some classes return one with it
            inputs["decoder_input_ids"] = prompt
        output = model(**inputs, use_cache=True)
        return elements([getattr(output, name, None) for name in ("past_key_values", "cache_params")])


def runnable(made, device: str):
    """The model in 16 bits; on the CPU every weight is zero. Rotations of images that do not fill a short config's heads are cut anew."""
    import torch

    model = (made[0] if isinstance(made, tuple) else made).eval().to(torch.bfloat16)
    if device == "hollow":
        model.to_empty(device="cpu")
        for tensor in model.buffers():
            tensor.data.fill_(int(not tensor.is_floating_point()))  # sizes of tables divide
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
    """(model_type, what can be tried in turn: architecture, config, how to build it); variations are shorter."""
    with PARAMETERS.open(newline="") as file:
        plain = [r for r in csv.DictReader(file) if r["architecture"].endswith(("ForCausalLM", "LMHeadModel"))]
    with MULTIMODAL.open(newline="") as file:
        parts = [
            r for r in csv.DictReader(file) if r["architecture"].endswith(("ForConditionalGeneration", "ForCausalLM"))
        ]
    published = [config for config in configs().values() if config.get("architectures")]
    known = {row["model_type"] for row in plain}
    parts = [row for row in parts if row["model_type"] not in known]
    for rows, cut, make in (
        (plain, lambda c: shorten(c, 14), build),
        (parts, lambda c: shorten_parts(c, 8), build_multimodal),
    ):
        for model_type, group in itertools.groupby(rows, key=lambda r: r["model_type"]):
            best = sorted(group, key=lambda r: (r["architecture"].endswith("Generation"), int(r["parameter_count"])))
            tried = [(best[-1]["architecture"], json.loads(best[-1]["config_json"]))]
            if model_type in ATTENDS:
                name, config = tried[0]
                tried = [(name, cut(config) | ATTENDS[model_type])]
            tried += [
                (
                    config["architectures"][0],
                    {k: v for k, v in config.items() if k not in ("architectures", "model_type")},
                )
                for config in published
                if config.get("model_type") == model_type
            ]
            short = [(name, windowed(how(config)), make) for name, config in tried[:3] for how in (cut, dict)]
            yield model_type, short
            if flag := BOTH_WAYS.get(model_type):
                yield model_type, [(name, both_ways(config, flag), make) for name, config, make in short]


def held(model_type: str, tried: list) -> list[list]:
    """Rows of the first of what can be tried that runs."""
    import transformers

    for (architecture, config, make), (device, how) in itertools.product(
        tried, (("meta", dict), ("cpu", narrow), ("hollow", dict))
    ):
        small = how(config)
        try:
            model = runnable(make(model_type, architecture, small), device)
            most = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None) or LENGTHS[1]
            lengths = LENGTHS if most > LENGTHS[1] else (48, 96)
            counts = [(tokens, count(model, tokens, device)) for tokens in lengths]
        except Exception as error:
            print(f"{model_type} on {device}: {type(error).__name__}: {str(error)[:120]}", file=sys.stderr)
            continue
        text = json.dumps(small, separators=(",", ":"), sort_keys=True)
        return [
            [model_type, architecture, text, tokens, elements, transformers.__version__] for tokens, elements in counts
        ]
    return []


def main() -> None:
    csv.field_size_limit(sys.maxsize)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="model types, separated by commas, whose rows are counted anew")
    only = parser.parse_args().only
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rows = []
    if only:
        with FILE.open(newline="") as file:
            rows = [row for row in itertools.islice(csv.reader(file), 1, None) if row[0] not in only.split(",")]
    for model_type, tried in models():
        if not only or model_type in only.split(","):
            rows += held(model_type, tried)
    rows.sort(key=lambda row: (row[0], row[1], int(row[3])))
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
