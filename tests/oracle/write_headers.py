"""Tensor headers as Transformers writes them: builds small models from configs, saves them, and keeps what their headers say.

    pip install -e '.[oracle]'
    python tests/oracle/write_headers.py --add more.jsonl    # {"model_type", "architecture", "config"} in each line
    python tests/oracle/write_headers.py                     # write all rows of headers.jsonl anew

The names are those of checkpoints on the Hub, since `save_pretrained` gives tensors back the names that they were published
under. A row has the summary that a crawl would keep, the parameters that the model has, and the versions of the libraries.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path

from count_parameters import build, count

FILE = Path(__file__).with_name("headers.jsonl")
sys.path.insert(0, str(FILE.parents[2]))


def write(model_type: str, architecture: str, config: dict) -> dict:
    import safetensors
    import torch
    import transformers

    from pipeline.hub.safetensors import read_header, read_tensors
    from pipeline.hub.summary import summarise

    counted = count(model_type, architecture, config)
    model = build(model_type, architecture, config).to_empty(device="cpu").to(torch.bfloat16)
    model.tie_weights()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        name = "model.safetensors"
        content = (Path(folder) / name).read_bytes()
    headers = [(name, *read_header(lambda start, stop: (content[start:stop], len(content))))]
    return {
        "model_type": model_type,
        "architecture": architecture,
        "config": config,
        "parameter_count": counted["parameter_count"],
        "header": summarise("safetensors", name, 1, read_tensors(headers)),
        "torch_version": torch.__version__.split("+")[0],
        "transformers_version": transformers.__version__,
        "safetensors_version": safetensors.__version__,
    }


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", type=Path, help="JSON lines of configs to add")
    arguments = parser.parse_args()
    rows = {}
    if FILE.exists():
        known = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
        rows = {(row["model_type"], row["architecture"]): row for row in known}
    wanted = list(rows.values())
    if arguments.add:
        wanted = [json.loads(line) for line in arguments.add.read_text(encoding="utf-8").splitlines()]
    for entry in wanted:
        place = entry["model_type"], entry["architecture"]
        try:
            rows[place] = write(*place, entry["config"])
        except Exception as error:  # the library refuses: not a config of any model
            print(f"{place}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    lines = [json.dumps(rows[place], separators=(",", ":"), sort_keys=True) for place in sorted(rows)]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
