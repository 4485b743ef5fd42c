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
end configs that no term was made from are counted: a class of which one differs is not listed. (module_shapes.py has what a class holds,
module_changes.py its fields changed, module_terms.py the terms.)
"""

from __future__ import annotations

import ast
import csv
import json
import logging
import random
import re
import sys
import warnings
from math import prod
from pathlib import Path

from count_multimodal import shorten
from list_model_classes import COLUMNS
from list_model_classes import FILE as CLASSES
from module_changes import Seen, importance
from module_shapes import VIRTUAL, lengths, merged, places, put, shapes
from module_terms import names_in, term, value_of

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tables" / "library" / "module.jsonl"
COUNTS = Path(__file__).with_name("modules.csv")
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
    used = {ast.unparse(node) for _, sizes in rows for s in sizes if isinstance(s, str) for node in names_in(s)}
    stored = STORED.get(model_type, {})
    used |= {ast.unparse(node) for text in stored.values() for node in names_in(text)}
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
