"""What a class holds, told apart by names without numbers, and where a config says its sizes."""

from __future__ import annotations

import json
import re
from math import prod

from module_terms import sum_of

IDLE = re.compile(
    r"dropout|^drop_path|(^|_)(eps|epsilon)$|(^|_)norm_eps|token_id$|initializer|init_std$|layerdrop|rope_(theta|scaling|parameters)|dtype|_act$"
    r"|activation(_function)?$|id2label|label2id|(^|_)loss|_cost$|loss_coefficient|mask_(time|feature)_|transformers_version|architectures|return_dict"
    r"|output_(attentions|hidden_states)$|use_cache|problem_type|chunk_size_feed|^is_encoder_decoder$|attn_implementation|_name_or_path|hidden_act"
    r"|task_specific_params"
)
VIRTUAL = "num_labels"
ROLES = (
    (r"(^|\.|_)(qkv|in_proj)(_proj)?$", "attention_qkv"),
    (r"(^|\.|_)(q|query|q_proj|wq|query_proj|linear_q)$", "attention_q"),
    (r"(^|\.|_)(k|key|k_proj|wk|key_proj|linear_k)$", "attention_k"),
    (r"(^|\.|_)(v|value|v_proj|wv|value_proj|linear_v)$", "attention_v"),
    (r"(^|\.|_)kv(_proj)?$", "attention_kv"),
    (r"att[a-z_0-9]*\.(.*\.)?(out_proj|o_proj|output\.dense|proj|dense|linear_out|o|wo)$", "attention_o"),
    (r"(^|\.)(gate_proj|w1|ffn_gate)$", "ffn_gate"),
    (r"(^|\.)(fc1|up_proj|intermediate\.dense|intermediate_dense|lin1|wi|linear1|w3)$", "ffn_up"),
    (r"(^|\.)(fc2|down_proj|output\.dense|output_dense|lin2|wo|linear2|w2)$", "ffn_down"),
)  # fmt: skip
COMPONENTS = (
    (r"vision|visual|image|pixel|backbone", "vision"),
    (r"audio|speech|mel|spectrogram", "audio"),
    (r"(^|\.)decoder", "decoder"),
    (r"text|language", "text"),
    (r"(^|\.)encoder", "encoder"),
)
INPUTS = {"pixel_values": "vision", "input_values": "audio", "input_features": "audio"}


def places(config: dict, before: str = ""):
    """The fields of a config, nested ones and entries of short lists of numbers too: place and value."""
    for name, value in config.items():
        place = f"{before}{name}"
        if IDLE.search(name) or place == "model_type":
            continue
        if isinstance(value, dict):
            yield from places(value, f"{place}.")
        elif isinstance(value, list) and 0 < len(value) <= 8 and all(type(v) is int for v in value):
            yield from ((f"{place}[{i}]", v) for i, v in enumerate(value))
        else:
            yield place, value


def lengths(config: dict, before: str = "") -> dict[str, int]:
    """The lists among them whose entries are fields, and how many each has."""
    found = {}
    for place, _ in places(config, before):
        if place.endswith("]"):
            name = place.rpartition("[")[0]
            found[name] = found.get(name, 0) + 1
    return found


def put(config: dict, place: str, value):
    """The config with a value at a place."""
    changed = json.loads(json.dumps(config))
    *way, last = re.findall(r"[^.\[\]]+", place)
    inner = changed
    for step in way:
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    inner[int(last) if isinstance(inner, list) else last] = value
    return changed


def shapes(model_type: str, class_name: str, config: dict) -> dict[tuple, list]:
    """By kind (name without numbers, which of its shapes, operator, role, component): count and sides."""
    import torch
    import transformers

    settings = transformers.AutoConfig.for_model(model_type, **{k: v for k, v in config.items() if k != "model_type"})
    kind = getattr(transformers, class_name)
    with torch.device("meta"):
        model = kind(settings)
        model.tie_weights()
    return tensors_of(model, INPUTS.get(getattr(model, "main_input_name", ""), "text"))


def tensors_of(model, main: str) -> dict[tuple, list]:
    """The tensors of a module that is built; `main` is the part that those belong to whose name tells none."""
    import torch

    found: dict[tuple, list] = {}
    numbers: dict[str, list] = {}
    seen = set()
    for path, module in model.named_modules():
        linear = isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            sides = tuple(parameter.shape)
            if linear and name == "weight":
                operator = "linear" if type(module) is torch.nn.Linear else "linear-subclass"
                if type(module).__name__ == "Conv1D":
                    sides = sides[::-1]
                role = next((role for pattern, role in ROLES if re.search(pattern, path)), "projection")
            elif isinstance(module, torch.nn.Embedding):
                operator, role = "embedding", "position_embedding" if "pos" in path else "embedding"
            elif name == "weight" and len(sides) > 2:
                operator, role = "conv", "conv"
            elif len(sides) < 2:
                operator, role = (
                    "vector",
                    "bias" if name == "bias" else "norm" if "orm" in type(module).__name__ else "scale",
                )
            else:
                operator, role = "parameter", "parameter"
            component = next((c for pattern, c in COMPONENTS if re.search(pattern, path)), main)
            template = re.sub(r"(?<=\.)\d+(?=\.|$)", "*", f".{path}.{name}")
            known = numbers.setdefault(template, [])
            if (operator, sides) not in known:
                known.append((operator, sides))
            key = (template, known.index((operator, sides)), operator, role, component, len(sides))
            found.setdefault(key, [0, *sides])[0] += 1
    return found


def numbered(found: dict[tuple, list]) -> dict[str, int]:
    """How many tensors have a name, numbers aside."""
    counts: dict[str, int] = {}
    for (template, *_), (number, *_) in found.items():
        counts[template] = counts.get(template, 0) + number
    return counts


def merged(rows) -> list[list]:
    """Tensors of one kind and size together: component, role, operator, count, sides."""
    alike: dict[tuple, list] = {}
    for (_, _, operator, role, component, _), (count, *sides) in rows:
        if operator == "linear" and role == "projection" and any(w in str(sides[0]) for w in ("vocab", VIRTUAL)):
            role = "head"
        if operator not in ("linear", "linear-subclass", "embedding"):
            number = prod(s for s in sides if isinstance(s, int))
            terms = [s if re.fullmatch(r"[\w.\[\]]+", s) else f"({s})" for s in sides if isinstance(s, str)]
            sides = [" * ".join(([str(number)] if number != 1 else []) + terms) if terms else number]
        alike.setdefault((component, role, operator, *sides), []).append(count)
    tensors = []
    for (component, role, operator, *sides), counts in alike.items():
        number = sum(c for c in counts if isinstance(c, int))
        terms = [c for c in counts if isinstance(c, str)]
        tensors.append([component, role, operator, sum_of(number, terms), *sides])
    return tensors
