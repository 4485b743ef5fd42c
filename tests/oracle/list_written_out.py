"""Lists the architectures whose classes in Transformers have no fused attention: their scores are written out, whatever is asked for.

    pip install '.[oracle]'
    python tests/oracle/list_written_out.py    # writes tables/library/written_out.csv

A class without `_supports_sdpa` refuses PyTorch's fused kernels. Left out: recurrent types, which have no scores, those whose attention is
sparse (blocks, windows, samples: their scores are fewer than all pairs), and towers that compute in windows of their own.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

FILE = Path(__file__).parents[2] / "tables" / "library" / "written_out.csv"
MAPS = ("", "_FOR_CAUSAL_LM", "_FOR_SEQ_TO_SEQ_CAUSAL_LM", "_FOR_IMAGE_TEXT_TO_TEXT")
NOT_DENSE = {
    "bigbird_pegasus", "led", "longformer", "yoso",  # sparse
    "mamba", "mamba2", "falcon_mamba",  # recurrent
    "donut-swin", "maskformer-swin", "swinv2", "vitdet",  # in windows
}  # fmt: skip


def main() -> None:
    import transformers
    from transformers.models.auto import modeling_auto

    warnings.filterwarnings("ignore")
    supports: dict[str, set[bool]] = {}
    for which in MAPS:
        for model_type, names in getattr(modeling_auto, f"MODEL{which}_MAPPING_NAMES").items():
            for name in (names,) if isinstance(names, str) else names:
                if (kind := getattr(transformers, name, None)) is not None:
                    supports.setdefault(model_type, set()).add(bool(getattr(kind, "_supports_sdpa", False)))
    with FILE.with_name("model_class.csv").open(newline="", encoding="utf-8") as file:
        described = {row["model_type"] for row in csv.DictReader(file)}
    listed = sorted(name for name in described - NOT_DENSE if supports.get(name) == {False})
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model_type", "source"])
        writer.writerows((name, f"transformers-{transformers.__version__}") for name in listed)


if __name__ == "__main__":
    main()
