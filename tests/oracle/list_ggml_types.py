"""The types of tensors that GGUF files name by a number, as the `gguf` package has them: tests/oracle/ggml_types.csv.

pip install gguf==0.19.0 && python tests/oracle/list_ggml_types.py
"""

from __future__ import annotations

import csv
from importlib.metadata import version
from pathlib import Path

from gguf.constants import GGML_QUANT_SIZES

with Path(__file__).with_name("ggml_types.csv").open("w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["number", "gguf_type", "block_elements", "block_bytes", "version"])
    for kind, (elements, size) in sorted(GGML_QUANT_SIZES.items()):
        writer.writerow([kind.value, kind.name, elements, size, f"gguf-{version('gguf')}"])
