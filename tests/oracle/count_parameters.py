"""Counts the parameters of the models that transformers builds from configs: the truth that readers are held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_parameters.py --add more.jsonl    # {"model_type", "architecture", "config"} in each line
    python tests/oracle/count_parameters.py --vary              # add variations of every architecture in the file
    python tests/oracle/count_parameters.py                     # count all rows of parameters.csv anew

Models are built on the meta device, so that nothing is downloaded or allocated. A shared parameter counts once.
Columns, in elements: `linear` weights of modules whose type is exactly nn.Linear, `linear_subclass` of its subclasses and
of GPT-2's Conv1D, `other` everything else (embeddings, fused experts, norms, biases, convolutions).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import logging
import sys
import warnings
from collections import Counter
from pathlib import Path

FILE = Path(__file__).with_name("parameters.csv")
COLUMNS = [
    "model_type", "architecture", "config_json", "parameter_count", "linear", "linear_subclass", "other",
    "is_head_tied", "torch_version", "transformers_version",
]  # fmt: skip
# Fields that hold something for each layer: shortened with the layers when a variation is made.
FLAGS = (
    "attention_bias", "attention_out_bias", "mlp_bias", "use_bias", "bias", "qkv_bias", "use_qkv_bias", "qk_layernorm",
    "use_qk_norm", "tie_word_embeddings", "use_parallel_residual", "parallel_attn", "new_decoder_architecture",
    "multi_query", "enable_bias", "do_layer_norm_before", "layer_norm_elementwise_affine", "use_conv_bias",
    "mamba_conv_bias", "mamba_proj_bias", "mamba_rms_norm", "use_post_norm", "lm_head_bias", "attention_k_eq_v",
    "use_double_wide_mlp", "conv_bias", "block_auto_adjust_ff_dim", "attn_output_gate",
)  # fmt: skip
HEADS = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def build(model_type: str, architecture: str, config: dict):
    import torch
    import transformers

    settings = transformers.AutoConfig.for_model(model_type, **config)
    with torch.device("meta"):
        model = getattr(transformers, architecture)(settings)
        if hasattr(model, "tie_weights"):
            model.tie_weights()
    return model


def count(model_type: str, architecture: str, config: dict) -> dict:
    import torch
    import transformers

    model = build(model_type, architecture, config)
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
    head = model.get_output_embeddings()
    tied = head is not None and head.weight is model.get_input_embeddings().weight
    return {
        "parameter_count": sum(total.values()),
        "linear": total["linear"],
        "linear_subclass": total["linear_subclass"],
        "other": total["other"],
        "is_head_tied": str(tied).lower(),
        "torch_version": torch.__version__.split("+")[0],
        "transformers_version": transformers.__version__,
    }


def shorten(config: dict, layers: int) -> dict:
    """The same architecture with few layers, so that its variations are cheap to build."""
    names = [name for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers") if name in config]
    if not names or config[names[0]] <= layers or "attention_types" in config:
        return dict(config)
    before = config[names[0]]
    short = {k: v[:layers] if isinstance(v, list) and len(v) == before else v for k, v in config.items()}
    return {**short, names[0]: layers}


def variations(architecture: str, config: dict):
    short = shorten(config, 6)
    yield architecture, short
    for flag in FLAGS:
        if isinstance(short.get(flag), bool):
            yield architecture, {**short, flag: not short[flag]}
    if isinstance(short.get("num_key_value_heads"), int):
        yield architecture, {**short, "num_key_value_heads": 1}
    if isinstance(short.get("head_dim"), int):
        yield architecture, {**short, "head_dim": 2 * short["head_dim"]}
    for name in ("layer_types", "mlp_layer_types"):
        if name in short and short[name] is not None:
            yield architecture, {k: v for k, v in short.items() if k != name}
    if architecture.endswith("ForCausalLM"):
        for head in HEADS:
            yield architecture.removesuffix("ForCausalLM") + head, short


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", type=Path, help="JSON lines of configs to add")
    parser.add_argument("--vary", action="store_true", help="add variations of the largest config of each type")
    arguments = parser.parse_args()
    rows = {}
    if FILE.exists():
        with FILE.open(newline="") as file:
            rows = {(r["model_type"], r["architecture"], r["config_json"]): r for r in csv.DictReader(file)}
    wanted = list(rows) if not (arguments.add or arguments.vary) else []
    if arguments.add:
        for line in arguments.add.read_text().splitlines():
            entry = json.loads(line)
            text = json.dumps(entry["config"], separators=(",", ":"), sort_keys=True)
            wanted.append((entry["model_type"], entry["architecture"], text))
    if arguments.vary:
        ordered = sorted(rows.values(), key=lambda r: (r["model_type"], int(r["parameter_count"])))
        for model_type, group in itertools.groupby(ordered, key=lambda r: r["model_type"]):
            largest = max(group, key=lambda r: int(r["parameter_count"]))  # variations are shorter
            config = json.loads(largest["config_json"])
            for architecture, varied in variations(largest["architecture"], config):
                wanted.append((model_type, architecture, json.dumps(varied, separators=(",", ":"), sort_keys=True)))
    for key in wanted:
        try:
            row = count(key[0], key[1], json.loads(key[2]))
        except Exception as error:  # the library refuses: not a config of any model
            print(f"{key[0]} {key[1]}: {type(error).__name__}: {str(error)[:150]}", file=sys.stderr)
            continue
        rows[key] = dict(zip(COLUMNS[:3], key, strict=True)) | row
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


if __name__ == "__main__":
    main()
