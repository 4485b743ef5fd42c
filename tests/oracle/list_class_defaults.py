"""Lists what transformers' config classes hold where a config is silent: the defaults that readers are held to.

    pip install -e '.[oracle]'
    python tests/oracle/list_class_defaults.py

Writes tables/library/class_default.jsonl: a line for each model_type that a reader describes, with the class's default config
and the library's version. The tests read every one of them whole, and with each of its fields left out in turn.
Left out: what shapes no tensor and no cache (token ids, initial values, epsilons), labels, and fields that are null.
"""

from __future__ import annotations

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


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    sys.path.insert(0, str(FILE.parents[2]))
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from pipeline.anatomy.families import reader_for

    lines = []
    for model_type in sorted(filter(reader_for, CONFIG_MAPPING)):
        try:
            config = slim(CONFIG_MAPPING[model_type]().to_dict())
        except Exception as error:  # a class that has no default of its own
            print(f"{model_type}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)
            continue
        row = {"model_type": model_type, "config": {**config, "model_type": model_type}}
        row["library_version"] = f"transformers {transformers.__version__}"
        lines.append(json.dumps(row, sort_keys=True, separators=(",", ":")))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} classes")


if __name__ == "__main__":
    main()
