"""Lists what the classes of Transformers hold, as rows: for every kind of tensor how many there are and how large, in terms of the config.

    pip install -e '.[oracle]'
    python tests/oracle/list_modules.py detr esm:EsmModel     # all classes of a model_type, or one of them, anew
    python tests/oracle/list_modules.py detr:DetrModel:backbone_config.backbone=resnet101     # a line beside it, with this said
    python tests/oracle/list_modules.py --count [detr]        # counts configs that no term was made from: modules.csv

Writes tables/library/module.jsonl, a line for each class:

    model_type, class_name
    fields   by place what the config takes where it is silent: of all fields that shape a tensor, or may
    pinned   the places among them of which only this value is described (a flag, a word, what the tool could not put into a term)
    lengths  of lists whose entries are fields: a config with more or fewer is not described
    aliases  second names of fields
    told     fields that a config has to say for this line (another backbone than the class takes)
    least    the smallest value of a size that the terms hold for, where 1 or 0 leaves a layer out
    tensors  component, role, operator, count, then the sizes: outputs and inputs of a matrix or a table, else all sides of one tensor.
             Count and sizes are numbers or terms of fields ("hidden_size", "image_size // patch_size * 4 + 1")
    stored   terms of what checkpoints hold besides, by cause (STORED)
    library_version

How: the class is built without weights in its default config, with few layers; then with every field changed by itself, and with several
changed at once. Tensors are told apart by their names without numbers. A field that changes nothing is idle and left out. Sizes are put into
terms of the fields that move them, and a term has to give every size that was seen; where none does, a field is pinned to its default. At the
end configs that no term was made from are counted: a class of which one differs is not listed.
"""

from __future__ import annotations

import ast
import csv
import itertools
import json
import logging
import random
import re
import sys
import warnings
from fractions import Fraction
from math import prod
from pathlib import Path

from count_multimodal import shorten
from list_model_classes import COLUMNS
from list_model_classes import FILE as CLASSES

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tables" / "library" / "module.jsonl"
COUNTS = Path(__file__).with_name("modules.csv")
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
MOST_TERMS = 4
# What is not said by default: sizes that a class has no default for, and words of which every published checkpoint says another.
SAID = {
    "esm": {"vocab_size": 33, "mask_token_id": 32, "position_embedding_type": "rotary", "emb_layer_norm_before": False},
}
# What checkpoints hold besides, by cause: buffers of the class, or what older versions of it wrote.
STORED = {
    "csm": {
        "its codec (Mimi, 79,308,609 elements), which this checkpoint leaves out": "-79308609",
    },
    "esm": {
        "positions that rotary layers do not read": "max_position_embeddings * hidden_size + max_position_embeddings",
        "rotary frequencies": "num_hidden_layers * (hidden_size // num_attention_heads // 2)",
    },
    "tipsv2": {
        "its temperature, which this checkpoint leaves out": "-1",
    },
    "moshi": {
        "codebooks of its codec, which are buffers": "16842784",  # 32 of 2048 rows: sums, how often each is used, and a flag
    },
    "parakeet_tdt": {
        "running means and variances": "2 * encoder_config.num_hidden_layers * encoder_config.hidden_size",
    },
    "speecht5": {
        "tables of positions, which older versions wrote": "(max_text_positions + max_speech_positions) * hidden_size",
        "running means and variances": "2 * (speech_decoder_postnet_layers - 1) * speech_decoder_postnet_units + 2 * num_mel_bins + speech_decoder_postnet_layers",
    },
}  # fmt: skip
JOINT, HELD_OUT = 9, 6


class Left(Exception):
    """Why a class is not listed."""


def classes(model_type: str) -> list[str]:
    """The names of the classes of one type that Transformers exports."""
    import importlib

    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[model_type]
    module = importlib.import_module(kind.__module__.replace("configuration_", "modeling_"))
    found = [
        name
        for name, made in vars(module).items()
        if isinstance(made, type) and getattr(made, "config_class", None) is kind
    ]
    skipped = ("Backbone", "PreTrainedModel")
    return sorted(name for name in found if hasattr(transformers, name) and not name.endswith(skipped))


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


def others(value):
    """Values that a field may have instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [3 * value, 2 * value, 5 * value, value + 1, value + 2, value // 2] if value > 0 else [1, 2]
    if isinstance(value, float):
        return [2 * value, value / 2] if value else [1.0]
    return [True, 16] if value is None else []


class Seen:
    """One class: what was built, and what it said."""

    def __init__(self, model_type: str, class_name: str, config: dict):
        self.names, self.config = (model_type, class_name), config
        self.base = shapes(*self.names, config)
        self.values = dict(places(config)) | {VIRTUAL: 2}
        self.pinned: set[str] = set()
        self.moves: dict[str, list] = {}
        self.samples: list[tuple[dict, dict]] = [({}, self.base)]

    def build(self, changes: dict) -> dict:
        config = self.config
        for place, value in changes.items():
            config = config | {VIRTUAL: value} if place == VIRTUAL else put(config, place, value)
        return shapes(*self.names, config)

    def look(self) -> None:
        """Every field by itself."""
        for place, value in self.values.items():
            if isinstance(value, str | list | dict):
                self.pinned.add(place)
                continue
            fine, has_moved, has_other = [], False, False
            for other in others(value):
                try:
                    built = self.build({place: other})
                except Exception:
                    continue
                if built.keys() != self.base.keys() and numbered(built) == numbered(self.base):
                    continue  # two stages became alike: nothing to learn from
                has_other |= built.keys() != self.base.keys()
                has_moved |= built != self.base
                fine.append((other, built))
                if len(fine) == (3 if has_moved else 2 if isinstance(value, int) else 1):
                    break
            if has_other or not fine or (has_moved and (isinstance(value, bool | None) or len(fine) < 2)):
                self.pinned.add(place)
            elif has_moved:
                self.moves[place] = [other for other, _ in fine]
                self.samples += [({place: other}, built) for other, built in fine]

    def mix(self, how_many: int, rng: random.Random) -> list[tuple[dict, dict]]:
        """Several fields at once."""
        found, tries = [], 0
        free = sorted(self.moves.keys() - self.pinned)
        while free and len(found) < how_many and tries < 3 * how_many:
            tries += 1
            chosen = [place for place in free if rng.random() < min(0.5, 4 / len(free))] or [rng.choice(free)]
            changes = {place: rng.choice(self.moves[place]) for place in chosen}
            try:
                built = self.build(changes)
            except Exception:
                continue
            if built.keys() != self.base.keys() and numbered(built) == numbered(self.base):
                continue
            if built.keys() != self.base.keys():
                self.pinned.add(min(chosen, key=importance))
                return self.mix(how_many, rng)
            found.append((changes, built))
        return found

    def at(self, changes: dict) -> dict:
        return {place: self.values[place] for place in self.moves} | changes


def importance(place: str) -> int:
    """Which fields a config is most likely to change: they are pinned last."""
    order = (
        "hidden_size",
        "d_model",
        "layers",
        "vocab",
        "intermediate",
        "ffn",
        "embed_dim",
        "heads",
        "image_size",
        "num_labels",
    )
    return next((len(order) - i for i, part in enumerate(order) if part in place), 0) - 20 * ("[" in place)


def monomials(fields: list[str]) -> list[str]:
    atoms = list(fields)
    ratios = [f"{a} // {b}" for a, b in itertools.permutations(fields, 2)]
    found = [*atoms, *ratios, *(f"{a} * {b}" for a, b in itertools.combinations_with_replacement(atoms, 2))]
    found += [f"{a} * {b} // {c}" for c in fields for a, b in itertools.combinations([f for f in fields if f != c], 2)]
    found += [f"({r}) ** 2" for r in ratios]
    found += [f"({r}) * {f}" for r in ratios for f in fields]
    found += [f"({r}) * ({s})" for r, s in itertools.combinations(ratios, 2)]
    found += [" * ".join(three) for three in itertools.combinations(fields, 3)]
    return found


def value_of(term: str, values: dict) -> float:
    return eval(compile(ast.fix_missing_locations(_Named(values).visit(ast.parse(term, mode="eval"))), "", "eval"))


class _Named(ast.NodeTransformer):
    def __init__(self, values: dict):
        self.values = values

    def _held(self, node):
        return ast.copy_location(ast.Constant(self.values[ast.unparse(node)]), node)

    visit_Name = visit_Attribute = visit_Subscript = _held


def combined(number: Fraction, monomial: str) -> str:
    text = monomial if re.fullmatch(r"[\w.\[\]]+", monomial) or "//" not in monomial else f"({monomial})"
    if number.numerator != 1:
        text = f"{number.numerator} * {text}"
    return f"{text} // {number.denominator}" if number.denominator != 1 else text


def term(points: list[tuple[dict, int]], fields: list[str]) -> str | int | None:
    """What gives these sizes from these fields: a number, one monomial or two, times whole numbers and plus one."""
    sizes = {size for _, size in points}
    if len(sizes) == 1:
        return sizes.pop()
    if not fields or len(fields) > MOST_TERMS:
        return None
    tried = []
    for monomial in monomials(fields):
        try:
            held = [value_of(monomial, values) for values, _ in points]
        except (ZeroDivisionError, OverflowError):
            continue
        if len(set(held)) == 1:
            continue
        tried.append((monomial, held))
        first, other = 0, next(i for i, v in enumerate(held) if v != held[0])
        step = Fraction(points[other][1] - points[first][1]) / Fraction(held[other] - held[first])
        step = step.limit_denominator(64)
        rest = points[first][1] - int(held[first] * step // 1)
        text = combined(step, monomial) + (f" + {rest}" if rest > 0 else f" - {-rest}" if rest else "")
        if step and all(int(value_of(text, values)) == size for values, size in points):
            return text
    for (one, a), (two, b) in itertools.combinations(tried[:40], 2):
        rows = [(x, y, size) for x, y, (_, size) in zip(a, b, points, strict=True)]
        x0, y0, s0 = rows[0]
        found = None
        for (x1, y1, s1), (x2, y2, s2) in itertools.combinations(rows[1:10], 2):
            d = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
            if d:
                p = Fraction((s1 - s0) * (y2 - y0) - (s2 - s0) * (y1 - y0)) / Fraction(d)
                q = Fraction((x1 - x0) * (s2 - s0) - (x2 - x0) * (s1 - s0)) / Fraction(d)
                found = p, q, s0 - p * Fraction(x0) - q * Fraction(y0)
                break
        if found is None or any(n.denominator != 1 for n in found) or not found[0] or not found[1]:
            continue
        p, q, rest = found
        if len({(x, y) for x, y, _ in rows}) >= 5 and all(
            p * Fraction(x) + q * Fraction(y) + rest == s for x, y, s in rows
        ):
            text = f"{combined(p, one)} + {combined(q, two)}" + (f" + {rest}" if rest else "")
            return text.replace("+ -", "- ")
    return None


def rows_of(seen: Seen) -> list[list]:
    """The tensors as terms; fields that no term was found for are pinned on the way."""
    rows = []
    for key, base in seen.base.items():
        sizes = []
        for which in range(len(base)):
            while True:
                samples = [(c, b) for c, b in seen.samples if not (c.keys() & seen.pinned)]
                points = [(seen.at(changes), built[key][which]) for changes, built in samples]
                alone = {p for c, b in samples if len(c) == 1 for p in c if b[key][which] != base[which]}
                found = term(points, sorted(alone, key=importance, reverse=True))
                if found is not None:
                    break
                if not (alone or seen.moves.keys() - seen.pinned):
                    raise Left(f"{key[0]} moves by no field")
                seen.pinned.add(min(alone or seen.moves.keys() - seen.pinned, key=importance))
            sizes.append(found)
        rows.append([key, sizes])
    return rows


def listed(model_type: str, class_name: str, told: dict) -> dict:
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    said = SAID.get(model_type, {})
    default = json.loads(json.dumps(CONFIG_MAPPING[model_type](**said).to_dict(), default=str))
    for place, value in told.items():
        default = put(default, place, value)
    whole = dict(places(default)) | {k: None for k, v in said.items() if type(v) is int}
    try:
        seen = Seen(model_type, class_name, shorten(default, 3))
    except Exception:  # stages are named by their number
        seen = Seen(model_type, class_name, default)
    seen.look()
    rng = random.Random(class_name)
    seen.samples += seen.mix(JOINT, rng)
    rows = rows_of(seen)
    before = len(seen.pinned)
    rows = rows_of(seen)  # with all pins known
    if len(seen.pinned) != before:
        raise Left("its terms do not settle")
    for changes, built in seen.mix(HELD_OUT, rng):
        values = seen.at(changes)
        for key, sizes in rows:
            given = [int(value_of(str(s), values)) for s in sizes]
            if given != built[key]:
                raise Left(f"{key[0]} is {built[key]} where terms give {given}: {changes}")
    used = {ast.unparse(node) for _, sizes in rows for s in sizes if isinstance(s, str) for node in _names(s)}
    stored = STORED.get(model_type, {})
    used |= {ast.unparse(node) for text in stored.values() for node in _names(text)}
    tensors = merged(rows)
    fields = {p: (seen.values | {VIRTUAL: 2} | whole)[p] for p in sorted(used | seen.pinned)}
    aliases = getattr(CONFIG_MAPPING[model_type], "attribute_map", {})
    if "backbone_config.backbone" in fields:  # how older files name it
        aliases = aliases | {"backbone": "backbone_config.backbone"}
    return (
        {
            "model_type": model_type,
            "class_name": class_name,
            "fields": fields,
            "pinned": sorted(seen.pinned - used),
            "lengths": lengths(seen.config)
            | {k: v for k, v in lengths(default).items() if not any(p.startswith(f"{k}[") for p in fields)},
            "aliases": {
                k: v for k, v in sorted(aliases.items()) if any(p == v or p.startswith(f"{v}[") for p in fields)
            },
            "tensors": tensors,
            **({"stored": stored} if stored else {}),
            "library_version": f"transformers {transformers.__version__}",
        }
        if not seen.pinned & used
        else _raise("a term of a pinned field")
    )


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
        tensors.append([component, role, operator, _sum(number, terms), *sides])
    return tensors


def probed(row: dict) -> dict:
    """With the least that a size may be, where 1 or 0 makes another model than the terms say (a layer that is left out)."""
    default = json.loads(json.dumps(_default(row["model_type"]), default=str))
    for place, value in _pins(row).items():
        if value != dict(places(default)).get(place, value):
            default = put(default, place, value)
    default = shorten(default, 3) if not row["lengths"] else default
    values = dict(places(default)) | {VIRTUAL: 2}
    least = {}
    for place, value in row["fields"].items():
        if place in row["pinned"] or place == VIRTUAL or not isinstance(value, int) or value < 2:
            continue
        for small in (1, 0):
            try:
                built = shapes(row["model_type"], row["class_name"], put(default, place, small))
            except Exception:
                continue
            held = {p: values.get(p, v) for p, v in row["fields"].items()} | {place: small}
            try:
                said = sum(prod(int(value_of(str(s), held)) for s in sizes) for _, _, _, *sizes in row["tensors"])
            except ZeroDivisionError:
                said = None
            if said != sum(prod(sizes) for sizes in built.values()):
                least[place] = small + 1
                break
    return row | {"least": least}


def _raise(reason: str):
    raise Left(reason)


def _sum(number: int, terms: list[str]):
    if not terms:
        return number
    counted = {t: terms.count(t) for t in dict.fromkeys(terms)}
    texts = [
        t if n == 1 else f"{n} * {t}" if re.fullmatch(r"[\w.\[\]]+", t) else f"{n} * ({t})" for t, n in counted.items()
    ]
    return " + ".join([*texts, *([str(number)] if number else [])])


def _names(text: str):
    """The outermost names of a term: text_config.hidden_size is one."""
    stack = [ast.parse(text, mode="eval").body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            yield node
        else:
            stack += list(ast.iter_child_nodes(node))


def _value(text: str):
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    if sys.argv[1:2] == ["--count"]:
        return count(sys.argv[2:])
    for asked in sys.argv[1:]:
        model_type, only, *told = [*asked.split(":"), ""][: 2 + asked.count(":")]
        told = {place: _value(text) for place, text in (part.split("=") for part in told if part)}
        for class_name in [only] if only else classes(model_type):
            try:
                row = listed(model_type, class_name, told)
            except Exception as error:
                print(f"{model_type} {class_name}: NOT {type(error).__name__} {str(error)[:300]}", flush=True)
                continue
            row = probed(row | {"told": sorted(told)})
            print(f"{model_type} {class_name}: {len(row['tensors'])} rows, pinned {row['pinned']}", flush=True)
            write(row)


def count(model_types: list[str]) -> None:
    """Counts every listed class anew, or those of some types, in its whole default config and in some that the terms were not made from:
    modules.csv. Those of other packages stay (list_packages.py)."""
    from count_multimodal import count as counted

    with COUNTS.open(newline="", encoding="utf-8") as file:
        known = [*csv.reader(file)][1:]
    found = [row for row in known if "transformers" not in row[-1] or (model_types and row[0] not in model_types)]
    for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        if not row["library_version"].startswith("transformers") or (
            model_types and row["model_type"] not in model_types
        ):
            continue
        names, said = (row["model_type"], row["class_name"]), SAID.get(row["model_type"], {})
        free = sorted(
            place for place, value in row["fields"].items() if place not in row["pinned"] and place != VIRTUAL
        )
        default = json.loads(json.dumps(_default(row["model_type"]), default=str))
        for place, value in _pins(row).items():
            if value != dict(places(default)).get(place, value):
                default, said = put(default, place, value), said | {place: value}
        rng, tries = random.Random(names[1]), 0
        changes: list[dict] = [{}]
        while len(changes) < 4 and tries < 30:
            tries += 1
            chosen = {place: row["fields"][place] for place in rng.sample(free, min(3, len(free)))}
            chosen = {
                p: rng.choice([2 * v, 3 * v, v + 8, v // 2 or 1]) for p, v in chosen.items() if isinstance(v, int)
            }
            chosen = {p: max(v, row["least"].get(p, 0)) for p, v in chosen.items()}
            changed = default
            try:
                for place, value in chosen.items():
                    changed = put(changed, place, value)
                shapes(*names, changed)
            except Exception:
                continue
            changes.append(chosen)
        for chosen in changes:
            changed = default
            for place, value in chosen.items():
                changed = put(changed, place, value)
            kept = {name: changed[name] for name in {re.split(r"[.\[]", place)[0] for place in [*chosen, *said]}}
            try:
                held = counted(*names, changed)
            except Exception as error:
                print(f"{names[1]}: {type(error).__name__} {str(error)[:100]}", flush=True)
                continue
            found.append([*names, json.dumps(kept, sort_keys=True, separators=(",", ":")), *held.values()])
    with COUNTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            [
                "model_type",
                "architecture",
                "config_json",
                "parameter_count",
                "linear",
                "linear_subclass",
                "other",
                "library_versions",
            ]
        )
        writer.writerows(sorted(found, key=lambda row: row[:2]))
    print(f"{len(found)} counts")


def _names_of(row: dict) -> tuple[str, str]:
    return row["model_type"], row["class_name"]


def _pins(row: dict) -> dict:
    """What tells lines of one class apart."""
    return {place: row["fields"][place] for place in row["pinned"]}


def _default(model_type: str) -> dict:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type](**SAID.get(model_type, {})).to_dict()


def write(row: dict) -> None:
    """Into the list, and into the list of described classes."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    rows = {(*_names_of(held), json.dumps(_pins(held))): held for held in [*map(json.loads, lines), row]}
    FILE.write_text(
        "".join(f"{json.dumps(rows[key], separators=(',', ':'))}\n" for key in sorted(rows)), encoding="utf-8"
    )
    with CLASSES.open(newline="", encoding="utf-8") as file:
        described = {(held["model_type"], held["class_name"]): held for held in csv.DictReader(file)}
    key = row["model_type"], row["class_name"]
    described[key] = dict(zip(COLUMNS, (*key, "", "counted", row["library_version"].replace(" ", "-")), strict=True))
    with CLASSES.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(described[key] for key in sorted(described))


if __name__ == "__main__":
    main()
