"""GGUF files of which llama.cpp reads names and sizes, and nothing else: the tensors are a hole as large as they would be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

Shapes = dict[str, tuple[int, ...]]  # by name, as ggml has them: the fastest dimension first


def write(path: Path, arch: str, keys: dict, tensors: Shapes, is_fp32: Callable[[str], bool]) -> None:
    """`keys` by their whole names; a tuple is an array of 64 bits. Vectors and what `is_fp32` names in 32 bits, the rest in 16. Wants gguf of llama.cpp's source on the path."""
    import gguf
    import numpy

    file = gguf.GGUFWriter(path, arch)
    add = {
        bool: file.add_bool,
        int: file.add_uint32,
        float: file.add_float32,
        list: file.add_array,
        tuple: lambda name, values: file.add_key_value(
            name, list(values), gguf.GGUFValueType.ARRAY, sub_type=gguf.GGUFValueType.UINT64
        ),
        str: file.add_string,
    }
    for name, value in keys.items():
        add[type(value)](name, value)
    total = 0
    for name, shape in tensors.items():
        kind = numpy.dtype(numpy.float32 if len(shape) == 1 or is_fp32(name) else numpy.float16)
        size = int(numpy.prod(shape)) * kind.itemsize
        file.add_tensor_info(name, shape[::-1], kind, size, None)
        total += -(-size // 32) * 32
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_ti_data_to_file()
    file.close()
    os.truncate(path, path.stat().st_size + total + 64)
