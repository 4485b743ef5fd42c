"""Counts the parameters of models that are not plain text decoders, as transformers and diffusers build them.

    pip install -e '.[oracle]'
    python tests/oracle/count_multimodal.py --add more.jsonl [--vary]   # {"model_type", "architecture", "config"} in each line
    python tests/oracle/count_multimodal.py                             # count all rows of parameters_multimodal.csv anew

A model_type that is a class name ("FluxTransformer2DModel") is built by diffusers. `--vary` adds, for every line, the same
model with few layers and each of its flags turned, which is cheap and finds what a reader ignores. Columns as in
`count_parameters.py`; rows are unique by model_type, architecture and count.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import sys
import warnings
from collections import Counter
from pathlib import Path

FILE = Path(__file__).with_name("parameters_multimodal.csv")
COLUMNS = [
    "model_type", "architecture", "config_json", "parameter_count", "linear", "linear_subclass", "other", "library_versions",
]  # fmt: skip
LAYERS = (
    "num_hidden_layers",
    "encoder_layers",
    "decoder_layers",
    "depth",
    "num_layers",
    "num_decoder_layers",
    "n_layers",
)
IDLE = (
    "dropout",
    "eps",
    "token_id",
    "initializer",
    "_std",
    "token_index",
    "layerdrop",
    "epsilon",
    "transformers_version",
)


def build(model_type: str, architecture: str, config: dict):
    import torch

    if model_type[0].isupper():
        import inspect

        import diffusers

        kind = getattr(diffusers, architecture)
        known = inspect.signature(kind.__init__).parameters
        with torch.device("meta"):
            return kind(**{k: v for k, v in config.items() if k in known}), f"diffusers {diffusers.__version__}"
    import transformers

    settings = transformers.AutoConfig.for_model(model_type, **{k: v for k, v in config.items() if k != "model_type"})
    if model_type in ("t5", "mt5", "umt5", "longt5") and getattr(settings, "decoder_start_token_id", None) is None:
        settings.decoder_start_token_id = 0
    kind = getattr(transformers, architecture)
    with torch.device("meta"):
        model = kind(settings)
        model.tie_weights()
    return model, f"transformers {transformers.__version__}"


def count(model_type: str, architecture: str, config: dict) -> dict:
    import torch

    model, library = build(model_type, architecture, config)
    seen: set[int] = set()
    total: Counter[str] = Counter()
    for module in model.modules():
        is_linear = isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            kind = "other"
            if is_linear and name == "weight":
                kind = "linear" if type(module) is torch.nn.Linear else "linear_subclass"
            total[kind] += parameter.numel()
    return {
        "parameter_count": sum(total.values()),
        **{kind: total[kind] for kind in ("linear", "linear_subclass", "other")},
        "library_versions": f"torch {torch.__version__.split('+')[0]}, {library}",
    }


def slim(config):
    """Without what shapes no tensor."""
    if not isinstance(config, dict):
        return config
    return {
        k: slim(v)
        for k, v in config.items()
        if v is not None
        and not any(part in k for part in IDLE)
        and k not in ("per_layer_config", "image_grid_pinpoints")
    }


def shorten(config: dict, layers: int = 4) -> dict:
    """The same model with few layers, in all its nested configs."""
    short = {k: shorten(v, layers) if isinstance(v, dict) else v for k, v in config.items()}
    for name in LAYERS:
        before = config.get(name)
        if isinstance(before, int) and before > layers:
            short[name] = layers
            lists = {k: v[:layers] for k, v in short.items() if isinstance(v, list) and len(v) == before}
            short |= lists
    for name in ("cross_attention_layers", "deepstack_visual_indexes", "global_attn_indexes"):
        if isinstance(config.get(name), list):
            short[name] = [1, 2]
    return short


def variations(config: dict):
    short = shorten(config)
    yield short
    for name, value in short.items():
        if isinstance(value, bool):
            yield {**short, name: not value}
        if isinstance(value, dict):
            for inner, flag in value.items():
                if isinstance(flag, bool):
                    yield {**short, name: {**value, inner: not flag}}


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", type=Path, help="JSON lines of configs to add")
    parser.add_argument("--vary", action="store_true", help="add variations of the added lines too")
    arguments = parser.parse_args()
    wanted = []
    if FILE.exists():
        with FILE.open(newline="") as file:
            wanted += [(r["model_type"], r["architecture"], json.loads(r["config_json"])) for r in csv.DictReader(file)]
    for line in arguments.add.read_text().splitlines() if arguments.add else []:
        added = json.loads(line)
        model_type, architecture, config = added["model_type"], added["architecture"], slim(added["config"])
        wanted.append((model_type, architecture, config))
        if arguments.vary:
            wanted += [(model_type, architecture, varied) for varied in variations(config)]
    rows: dict[tuple, dict] = {}
    for model_type, architecture, config in wanted:
        try:
            counted = count(model_type, architecture, config)
        except Exception as error:
            print(f"{model_type} {architecture}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)
            continue
        key = (model_type, architecture, counted["parameter_count"])
        text = json.dumps(config, sort_keys=True, separators=(",", ":"))
        if key not in rows or len(text) < len(rows[key]["config_json"]):
            rows[key] = {"model_type": model_type, "architecture": architecture, "config_json": text, **counted}
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))
    print(f"{len(rows)} models")


if __name__ == "__main__":
    main()
