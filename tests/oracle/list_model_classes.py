"""Lists the classes that readers are held to: each is built without weights and has as many parameters as its reader says, or it is left out.

    pip install -e '.[oracle]'
    python tests/oracle/list_model_classes.py            # all model_types
    python tests/oracle/list_model_classes.py --only t5  # those whose name has "t5" in it
    python tests/oracle/list_model_classes.py --new      # only classes that are not listed yet

Writes tables/library/model_class.csv: `model_type`, `class_name`, `head` (where the name does not tell it), `held_by` and `source`.
What holds a class: `counted` (transformers builds it, in the class's default config with few layers and with every flag turned that ties a
head, and with seven labels), `total` (the published total of a model whose config names it), `code` (read in the code that its repository has,
or a former name of a counted class). Lines that are not `counted` are written by hand or, for `total`, found in the snapshot. A class of the
library whose count differs is left out and shown: it is unknown until its reader knows it.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import logging
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from count_multimodal import shorten

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tables" / "library" / "model_class.csv"
COLUMNS = ["model_type", "class_name", "head", "held_by", "source"]
TEXTS = ("text_config", "decoder", "thinker_config")
TIE = "tie_word_embeddings"


def classes() -> dict[str, list[str]]:
    """The names that transformers exports, by the model_type of their config, and what its auto classes build for a model_type."""
    import transformers
    from transformers.models.auto import modeling_auto

    found = defaultdict(set)
    for name in dir(transformers):
        kind = (
            getattr(transformers, name, None)
            if name[0].isupper() and not name.startswith(("TF", "Flax", "Auto"))
            else None
        )
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            found[getattr(kind.config_class, "model_type", "")].add(name)
    for table in dir(modeling_auto):
        if table.startswith("MODEL_") and table.endswith("_MAPPING_NAMES"):
            for model_type, names in getattr(modeling_auto, table).items():
                found[model_type].update((names,) if isinstance(names, str) else names)
    for model_type, text in texts().items():  # people publish the language model alone under the type of the whole
        found[model_type].update(name for name in found[text] if name.endswith("ForCausalLM"))
    is_model = lambda name: name and "PreTrained" not in name and "Pretrained" not in name  # noqa: E731
    return {model_type: sorted(filter(is_model, names)) for model_type, names in found.items()}


def texts() -> dict[str, str]:
    """The model_type of the language model that a class's default config nests."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found = {}
    for model_type in CONFIG_MAPPING:
        with contextlib.suppress(Exception):  # a class without a default of its own
            found[model_type] = CONFIG_MAPPING[model_type]().text_config.model_type
    return found


def build(model_type: str, class_name: str, config: dict) -> tuple[int, bool, dict]:
    """Parameters of the class in this config, whether its head is its embedding, and the config as the library writes it."""
    import torch
    import transformers

    settings = transformers.AutoConfig.for_model(model_type, **{k: v for k, v in config.items() if k != "model_type"})
    for inner in (settings, getattr(settings, "text_config", None)):
        if inner is not None and getattr(inner, "decoder_start_token_id", 0) is None:
            inner.decoder_start_token_id = 0
    kind = getattr(transformers, class_name)
    if kind.config_class is not type(
        settings
    ):  # the language model of a config that nests it, as AutoModelForCausalLM takes it
        settings = settings.get_text_config() if isinstance(settings.get_text_config(), kind.config_class) else settings
    with torch.device("meta"):
        model = kind(settings)
        model.tie_weights()
    count = sum({id(p): p.numel() for p in model.parameters()}.values())
    head, embedding = model.get_output_embeddings(), None
    if head is not None and getattr(head, "weight", None) is not None:
        embedding = model.get_input_embeddings()
    return count, embedding is not None and head.weight is getattr(embedding, "weight", None), settings.to_dict()


def starts(model_type: str) -> Iterator[dict]:
    """Configs to begin with: the class's default, short and whole, and those of the committed counts where it has none that can be built."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        default = json.loads(json.dumps(CONFIG_MAPPING[model_type]().to_dict(), default=str))
        yield shorten(default)
        yield default
        heads = default.get("num_attention_heads")
        if isinstance(heads, int) and "head_dim" in default:  # a class that takes no default without it
            yield shorten(default) | {"head_dim": default["hidden_size"] // heads}
    except Exception as error:
        print(f"{model_type}: no default ({type(error).__name__} {str(error)[:80]})", file=sys.stderr)
    for name in ("parameters_multimodal.csv", "parameters.csv"):
        with Path(__file__).with_name(name).open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["model_type"] == model_type]
        yield from (
            json.loads(row["config_json"]) for row in sorted(rows, key=lambda row: int(row["parameter_count"]))[:3]
        )


def variations(config: dict) -> Iterator[dict]:
    """Every way to say whether the head is tied, at the top and nested, said or left out; and seven labels."""
    yield config
    yield {**{k: v for k, v in config.items() if k not in ("id2label", "label2id")}, "num_labels": 7}
    bare = {k: v for k, v in config.items() if k != TIE}
    for said in ({}, {TIE: True}, {TIE: False}):
        yield bare | said
        for place in TEXTS:
            inner = config.get(place)
            if isinstance(inner, dict) and inner:
                inner = {k: v for k, v in inner.items() if k != TIE}
                yield from ({**bare, **said, place: inner | own} for own in ({}, {TIE: True}, {TIE: False}))


def difference(model_type: str, class_name: str) -> str | None:
    """What keeps the class from being held to its reader; None where nothing does."""
    from pipeline.anatomy.families import reader_for
    from pipeline.anatomy.fields import Fields

    why = "cannot be built"
    for config in starts(model_type):
        try:
            build(model_type, class_name, config)
        except Exception as error:
            why = f"cannot be built: {type(error).__name__} {str(error)[:80]}"
            continue
        for varied in variations(config):
            try:
                count, is_tied, written = build(model_type, class_name, varied)
            except Exception:
                continue  # not a config of any model
            # labels are said as the library writes them; the rest as it was left out
            said = {**varied, **{k: written[k] for k in ("id2label",) if "num_labels" in varied and k in written}}
            try:
                anatomy = reader_for(model_type)(
                    Fields({**said, "model_type": model_type, "architectures": [class_name]})
                )
            except Exception as error:
                why = f"reader: {type(error).__name__} {str(error)[:80]}"
                if varied is config:
                    break
                continue
            if anatomy.parameter_count != count or (is_tied and not anatomy.is_head_tied):
                flags = {name: said.get(name, {}).get(TIE) for name in TEXTS if isinstance(said.get(name), dict)}
                return f"{count:,} parameters, {anatomy.parameter_count:,} read; tied {said.get(TIE)} {flags or ''}"
        else:
            return None
    return why


def confirmed_by_totals(known: dict[tuple[str, str], dict]) -> Iterator[dict]:
    """Classes of code of their own that a record of the snapshot names, where its published total or headers are what the reader says."""
    from pipeline.anatomy import model_classes
    from pipeline.confirm.header_grade import grade_with_header
    from pipeline.hub.snapshot import newest_snapshot

    from pipeline.anatomy import read_config  # isort: skip
    import pipeline.anatomy as anatomy_package

    checked = anatomy_package.with_described_classes
    anatomy_package.with_described_classes = lambda config, model_type: config
    try:
        for record in newest_snapshot().records:
            config = record.config or {}
            names = config.get("architectures") or []
            names = [names] if isinstance(names, str) else names
            model_type = config.get("model_type") or config.get("_class_name")
            model_type = model_classes.DRAFT if config.get("dflash_config") else model_type
            if len(names) != 1 or not model_type or (model_type, names[0]) in known:
                continue
            try:
                found = grade_with_header(record, read_config(config), may_be_packed=False)
            except Exception:
                continue
            if found.grade in ("exact", "matched"):
                source = ";".join(
                    dict.fromkeys(s.partition(":")[0] for s in record.parameters_sources or record.sources)
                )
                yield dict(zip(COLUMNS, (model_type, names[0], "", "total", source), strict=True))
    finally:
        anatomy_package.with_described_classes = checked


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the model_types to look at; the others stay as they are")
    parser.add_argument(
        "--new", action="store_true", help="only classes that are not listed; the others stay as they are"
    )
    arguments = parser.parse_args()
    import transformers

    from pipeline.anatomy.families import reader_for
    from pipeline.anatomy.families.listed import listed  # list_modules.py keeps their lines

    source, rows = f"transformers-{transformers.__version__}", {}
    if FILE.exists():
        with FILE.open(newline="", encoding="utf-8") as file:
            kept = list(csv.DictReader(file))
        if not arguments.new:
            kept = [
                r
                for r in kept
                if r["held_by"] == "code" or arguments.only not in r["model_type"] or r["model_type"] in listed()
            ]
        rows = {(row["model_type"], row["class_name"]): row for row in kept}
    for model_type, names in sorted(classes().items()):
        if not reader_for(model_type) or arguments.only not in model_type or model_type in listed():
            continue
        for class_name in names:
            if rows.get((model_type, class_name), {}).get("held_by") in (
                ("code", "counted") if arguments.new else ("code",)
            ):
                continue
            why = difference(model_type, class_name)
            if why is None:
                values = (model_type, class_name, "", "counted", source)
                rows[model_type, class_name] = dict(zip(COLUMNS, values, strict=True))
            else:
                print(f"{model_type} {class_name}: {why}", file=sys.stderr)
    for row in confirmed_by_totals(rows):
        rows.setdefault((row["model_type"], row["class_name"]), row)
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))
    print(f"{len(rows)} classes")


if __name__ == "__main__":
    main()
