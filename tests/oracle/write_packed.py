"""What quantisers make of one matrix: name, dtype and shape of every tensor, as the libraries themselves pack it.

    pip install -e '.[oracle]'
    python tests/oracle/write_packed.py     # writes packed.jsonl anew

The matrix is 512 × 256, of a module called `up_proj`. A row has the format, the library with its version, and the tensors.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

FILE = Path(__file__).with_name("packed.jsonl")
OUT, INTO = 512, 256
MODULE = "model.layers.0.mlp.up_proj"
_DTYPES = {
    "uint8": "U8", "int8": "I8", "int32": "I32", "int64": "I64", "float8_e4m3fn": "F8_E4M3", "float8_e8m0fnu": "F8_E8M0",
    "float16": "F16", "bfloat16": "BF16", "float32": "F32",
}  # fmt: skip
_COMPRESSED = {
    "int4": ("pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}),
    "int4 with zero points": (
        "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": False}
    ),
    "int8 words": ("pack-quantized", {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}),
    "int8": ("int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}),
    "fp8": ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}),
    "fp8 blocks": (
        "float-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128], "symmetric": True}
    ),
    "nvfp4": (
        "nvfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
    ),
    "mxfp4": (
        "mxfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
    ),
}  # fmt: skip


def by_bitsandbytes() -> Iterator[tuple[str, dict]]:
    import bitsandbytes
    import torch

    weight = torch.randn(OUT, INTO, dtype=torch.bfloat16)
    for name, is_nested in (("nf4", False), ("nf4 nested", True)):
        values, state = bitsandbytes.functional.quantize_4bit(weight, quant_type="nf4", compress_statistics=is_nested)
        yield name, {"weight": values, **{f"weight.{k}": v for k, v in state.as_dict(packed=True).items()}}


def by_compressed_tensors() -> Iterator[tuple[str, dict]]:
    import torch
    from compressed_tensors.compressors import compress_module
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.lifecycle import initialize_module_for_quantization

    for name, (form, weights) in _COMPRESSED.items():
        module = torch.nn.Linear(INTO, OUT, bias=False, dtype=torch.bfloat16)
        scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights), format=form)
        initialize_module_for_quantization(module, scheme)
        module.quantization_scheme = scheme
        for parameter, value in module.named_parameters():
            if parameter.endswith("scale"):
                value.data.fill_(1)
        compress_module(module)
        yield name, module.state_dict()


def main() -> None:
    warnings.filterwarnings("ignore")
    lines = []
    for library, packed in (("bitsandbytes", by_bitsandbytes()), ("compressed-tensors", by_compressed_tensors())):
        for name, tensors in packed:
            dtypes = {key: _DTYPES[str(value.dtype).removeprefix("torch.")] for key, value in tensors.items()}
            rows = [[f"{MODULE}.{key}", dtypes[key], list(value.shape)] for key, value in sorted(tensors.items())]
            row = {"format": name, "library": library, "version": version(library), "tensors": rows}
            lines.append(json.dumps(row, separators=(",", ":"), sort_keys=True))
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
