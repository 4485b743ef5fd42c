"""Counts the parameters of Chronos-Bolt and Chronos-2 as their own package builds them: forecasters.csv.

pip install -e '.[oracle]' chronos-forecasting
python tests/oracle/count_forecasters.py     # counts the configs of all rows anew
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

FILE = Path(__file__).with_name("forecasters.csv")


def main() -> None:
    import chronos
    import torch
    import transformers
    from chronos.chronos2.config import Chronos2CoreConfig
    from chronos.chronos2.model import Chronos2Model
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    kinds = {
        "ChronosBoltModelForForecasting": (ChronosBoltModelForForecasting, transformers.T5Config),
        "Chronos2Model": (Chronos2Model, Chronos2CoreConfig),
    }
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        kind, settings = kinds[row["architecture"]]
        with torch.device("meta"):
            model = kind(settings(**json.loads(row["config_json"])))
        row["parameter_count"] = sum({id(p): p.numel() for p in model.parameters()}.values())
        row["linear"] = sum(m.weight.numel() for m in model.modules() if type(m) is torch.nn.Linear)
        versions = (torch.__version__.split("+")[0], transformers.__version__, chronos.__version__)
        row["library_versions"] = "torch {}, transformers {}, chronos-forecasting {}".format(*versions)
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
