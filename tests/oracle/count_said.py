"""Counts what a class makes of a field that is written down otherwise than its default: null, a flag that ties, a size that it derives itself.

    pip install -e '.[oracle]'
    python tests/oracle/count_said.py [--only t5]       # model_types whose name has "t5" in it; the rows of others stay

Writes said.csv: `model_type`, `class_name`, `said` (what is put over the class's default config with few layers, nested names joined by dots),
`becomes` (what the class holds there in place of a null), `parameter_count`, `is_head_tied` and `library_version`. A list of names in `said`
is of those that may be null without a change of the count. What the library refuses has no row.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from count_multimodal import shorten
from list_model_classes import ROOT, TEXTS, TIE, build

FILE = Path(__file__).with_name("said.csv")
COLUMNS = ["model_type", "class_name", "said", "becomes", "parameter_count", "is_head_tied", "library_version"]
# What shapes nothing, and lengths, which no config may leave out.
IDLE = (
    "dropout", "eps", "token_id", "token_index", "initializer", "_std", "layerdrop", "rope", "dtype", "scal", "factor", "softcap",
    "coef", "loss", "mask_", "temperature", "architectures", "model_type", "max_position", "_act", "activation", "label",
)  # fmt: skip
PREFERRED = ("ForConditionalGeneration", "ForCausalLM", "LMHeadModel", "ForMaskedLM", "Model")


def places(config: dict, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Fields that a null may be written in, those of nested configs too."""
    for name, value in config.items():
        if value is not None and not any(part in name for part in IDLE):
            yield (*before, name)
        if isinstance(value, dict) and "model_type" in value:
            yield from places(value, (*before, name))


def put(config: dict, place: tuple[str, ...], value) -> dict:
    """The config with a value at a place. `tests/anatomy/test_said.py` does the same."""
    name, *rest = place
    return {**config, name: put(config[name], tuple(rest), value) if rest else value}


def ways(config: dict) -> Iterator[dict[str, object]]:
    """Nulls one by one; the flag that ties at the top and nested; sizes that the class derives, said otherwise."""
    for place in places(config):
        yield {".".join(place): None}
    for top in (True, False):
        yield {TIE: top}
        for text in TEXTS:
            if isinstance(config.get(text), dict) and config[text]:
                yield from ({TIE: top, f"{text}.{TIE}": inner} for inner in (True, False))


def derived(model_type: str, config: dict) -> Iterator[dict[str, object]]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[model_type]
    declared = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set(config)
    for name in sorted(config.keys() - declared - {"model_type"}):
        value = config[name]
        if isinstance(value, bool):
            yield {name: not value}
        elif isinstance(value, int) and value > 1 and not any(part in name for part in IDLE):
            yield from ({name: 2 * value}, {name: value // 2})


def rows_of(model_type: str, class_name: str, config: dict, version: str) -> Iterator[dict]:
    def row(said, becomes, count, is_tied):
        tied = str(is_tied).lower()
        text = json.dumps(said, separators=(",", ":"))
        return dict(zip(COLUMNS, (model_type, class_name, text, becomes, count, tied, version), strict=True))

    base, base_tied, _ = build(model_type, class_name, config)
    idle = []
    for said in [*ways(config), *derived(model_type, config)]:
        changed = config
        for name, value in said.items():
            changed = put(changed, tuple(name.split(".")), value)
        try:
            count, is_tied, written = build(model_type, class_name, changed)
        except Exception:
            continue  # the library refuses
        (name, value), *more = said.items()
        held = written
        for part in name.split("."):
            held = held.get(part) if isinstance(held, dict) else None
        becomes = json.dumps(held, default=str) if value is None and isinstance(held, bool | int | float | str) else ""
        if value is None and not more and count == base and not becomes:
            idle.append(name)
        else:
            yield row(said, becomes, count, is_tied)
    yield row(idle, "", base, base_tied)


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", help="part of the model_types to count; the rows of others stay as they are"
    )
    parser.add_argument(
        "--half", type=int, default=None, help="0 or 1: every second model_type, into said.csv.0 or said.csv.1"
    )
    arguments = parser.parse_args()
    import transformers

    from pipeline.anatomy.class_defaults import class_defaults
    from pipeline.anatomy.model_classes import described

    rows, file = [], FILE if arguments.half is None else Path(f"{FILE}.{arguments.half}")
    if FILE.exists():
        with FILE.open(newline="") as kept:
            rows = [row for row in csv.DictReader(kept) if arguments.only and arguments.only not in row["model_type"]]
    for number, (model_type, default) in enumerate(sorted(class_defaults().items())):
        names = described().get(model_type, {})
        class_name = next((name for end in PREFERRED for name in names if name.endswith(end)), next(iter(names), None))
        if class_name is None or arguments.only not in model_type or arguments.half not in (None, number % 2):
            continue
        for config in (shorten(default), default):
            try:
                rows += rows_of(model_type, class_name, config, f"transformers {transformers.__version__}")
                break
            except Exception as error:
                print(f"{model_type} {class_name}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)
        with file.open("w", newline="") as whole:
            writer = csv.DictWriter(whole, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(rows, key=lambda row: (row["model_type"], row["said"])))


if __name__ == "__main__":
    main()
