"""Counts the parameters of Chronos-Bolt, Chronos-2 and Kronos as their own code builds them: forecasters.csv.

pip install -e '.[oracle]' chronos-forecasting einops pandas tqdm     # and github.com/shiyu-coder/Kronos on the path
python tests/oracle/count_forecasters.py Kronos     # counts the configs of all rows anew, or of the classes that are named so
"""

from __future__ import annotations

import csv
import importlib
import json
import sys
from pathlib import Path

FILE = Path(__file__).with_name("forecasters.csv")


KRONOS = "Kronos 67b630e6"


def build(architecture: str, config: dict):
    """The model, without weights, and what built it."""
    import transformers

    if architecture.startswith("Kronos"):
        return getattr(importlib.import_module("model.kronos"), architecture)(**config), KRONOS
    import chronos
    from chronos.chronos2.config import Chronos2CoreConfig
    from chronos.chronos2.model import Chronos2Model
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    kinds = {
        "ChronosBoltModelForForecasting": (ChronosBoltModelForForecasting, transformers.T5Config),
        "Chronos2Model": (Chronos2Model, Chronos2CoreConfig),
    }
    kind, settings = kinds[architecture]
    return kind(
        settings(**config)
    ), f"transformers {transformers.__version__}, chronos-forecasting {chronos.__version__}"


def main() -> None:
    import torch

    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    named = sys.argv[1:]
    for row in rows:
        if named and not row["architecture"].startswith(tuple(named)):
            continue
        model, versions = build(row["architecture"], json.loads(row["config_json"]))
        row["parameter_count"] = sum({id(p): p.numel() for p in model.parameters()}.values())
        row["linear"] = sum(m.weight.numel() for m in model.modules() if type(m) is torch.nn.Linear)
        row["library_versions"] = f"torch {torch.__version__.split('+')[0]}, {versions}"
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
