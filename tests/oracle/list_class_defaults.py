"""Lists what transformers' config classes hold where a config is silent: the defaults that readers are held to.

    pip install -e '.[oracle]'
    python tests/oracle/list_class_defaults.py

Writes tables/library/class_default.jsonl: a line for each model_type that a reader describes, with the class's default config,
the names of the fields in it that the class works out from others (`derived`: heads of keys that are as many as heads, an inner size
that is twice the hidden size), the flags that may be null (`nullable`: its class refuses a null in any other), and the library's version. What is derived is no default: another size gives another value, so that
readers have to work it out too. The tests read every config whole, and with each of its fields left out in turn.
Left out: what shapes no tensor and no cache (token ids, initial values, epsilons), labels, and fields that are null.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import warnings
from pathlib import Path

FILE = Path(__file__).parents[2] / "tables" / "library" / "class_default.jsonl"
IDLE = (
    "token_id", "token_index", "initializer", "_std", "eps", "epsilon", "transformers_version", "_name_or_path", "id2label",
    "label2id", "dtype", "return_dict", "output_attentions", "output_hidden_states", "problem_type", "use_cache",
    "chunk_size_feed_forward", "loss", "_lambda", "pretraining_tp", "begin_suppress", "suppress_tokens", "prompt_length",
)  # fmt: skip


def slim(config: dict) -> dict:
    return {
        str(name): slim(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if value is not None and not any(part in str(name) for part in IDLE)
    }


def others(value: object) -> list:
    """Values that a field of this kind could have instead, the likeliest to be allowed first."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value, value + 1, value // 2]
    return [2 * value] if isinstance(value, float) else []


def derived(config_class: type) -> list[str]:
    """The fields whose default moves where another field is set to something else; those of nested configs by their place."""
    from transformers import PreTrainedConfig

    whole, found = config_class(), set()
    config = slim(whole.to_dict())
    for name in config:
        inner = getattr(whole, name, None) if isinstance(config[name], dict) else None
        if isinstance(inner, PreTrainedConfig):
            found |= {f"{name}.{place}" for place in derived(type(inner))}
    for name, value in config.items():
        for other in others(value):
            try:
                moved = slim(config_class(**{name: other}).to_dict())
            except Exception:  # a value that the class refuses: another may do
                continue
            found |= {key for key in config.keys() | moved.keys() if key != name and config.get(key) != moved.get(key)}
            break
    return sorted(found)


def nullable(config_class: type) -> list[str]:
    """The flags that a class takes a null in; those of nested configs by their place."""
    from transformers import PreTrainedConfig

    whole, found = config_class(), set()
    for name, value in slim(whole.to_dict()).items():
        inner = getattr(whole, name, None) if isinstance(value, dict) else None
        if isinstance(inner, PreTrainedConfig):
            found |= {f"{name}.{place}" for place in nullable(type(inner))}
        elif isinstance(value, bool):
            with contextlib.suppress(Exception):  # refused
                config_class(**{name: None})
                found.add(name)
    return sorted(found)


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    sys.path.insert(0, str(FILE.parents[2]))
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from pipeline.anatomy.families import reader_for
    from pipeline.anatomy.families.listed import listed  # their lines have the defaults

    lines = []
    for model_type in sorted(filter(reader_for, set(CONFIG_MAPPING.keys()) - listed().keys())):
        try:
            config = slim(CONFIG_MAPPING[model_type]().to_dict())
        except Exception as error:  # a class that has no default of its own
            print(f"{model_type}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)
            continue
        row = {"model_type": model_type, "config": {**config, "model_type": model_type}}
        row["derived"] = derived(CONFIG_MAPPING[model_type])
        if taken := nullable(CONFIG_MAPPING[model_type]):
            row["nullable"] = taken
        row["library_version"] = f"transformers {transformers.__version__}"
        lines.append(json.dumps(row, sort_keys=True, separators=(",", ":")))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} classes")


if __name__ == "__main__":
    main()
