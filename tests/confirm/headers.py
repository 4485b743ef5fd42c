"""Headers for tests: those that Transformers wrote (tests/oracle/headers.jsonl), and what quantisers make of them by their rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "oracle" / "headers.jsonl"
Row = list[Any]  # pattern, dtype, shape, count, layers


@lru_cache
def written() -> dict[str, dict[str, Any]]:
    """By architecture: its config, the count of its parameters, and the summary of its headers."""
    found = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        own = {"model_type": row["model_type"], "architectures": [row["architecture"]]}
        found[row["architecture"]] = {**row, "config": {**row["config"], **own}}
    return found


def packed_by_libraries() -> list[dict[str, Any]]:
    """What quantisers made of one matrix of 512 × 256 (tests/oracle/packed.jsonl)."""
    text = FILE.with_name("packed.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def repacked(
    header: dict[str, Any], pack: Callable[[str, Row], list[Row]], is_taken: Callable[[str], bool]
) -> dict[str, Any]:
    """The header with every matrix whose name is taken as the format has it."""
    rows = []
    for row in header["tensors"]:
        pattern, _, shape, _, _ = row
        is_matrix = pattern.endswith(".weight") and len(shape) == 2 and is_taken(pattern)
        rows += pack(pattern.removesuffix(".weight"), row) if is_matrix else [row]
    return {**header, "tensors": rows}


def of_layers(pattern: str) -> bool:
    """What quantisers take: the linear layers of the blocks, not routers."""
    is_linear = pattern.endswith(("_proj.weight", "w1.weight", "w2.weight", "w3.weight"))
    return ".layers." in pattern and is_linear


def _rows(module: str, row: Row, parts: dict[str, tuple[str, list[int]]]) -> list[Row]:
    return [[f"{module}.{part}", dtype, shape, row[3], row[4]] for part, (dtype, shape) in parts.items()]


def _per(size: int, by: int) -> int:
    return -(-size // by)


def gptq(group: int, bits: int = 4):
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        groups = _per(into, group)
        return _rows(
            module,
            row,
            {
                "qweight": ("I32", [into * bits // 32, out]),
                "qzeros": ("I32", [groups, out * bits // 32]),
                "scales": ("F16", [groups, out]),
                "g_idx": ("I32", [into]),
            },
        )

    return pack, lambda out, into: out * into * bits // 8 + _per(into, group) * (out * bits // 8 + 2 * out) + 4 * into


def awq(group: int, bits: int = 4):
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        groups = _per(into, group)
        return _rows(
            module,
            row,
            {
                "qweight": ("I32", [into, out * bits // 32]),
                "qzeros": ("I32", [groups, out * bits // 32]),
                "scales": ("F16", [groups, out]),
            },
        )

    return pack, lambda out, into: out * into * bits // 8 + _per(into, group) * (out * bits // 8 + 2 * out)


def nf4(is_nested: bool):
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        blocks = _per(out * into, 64)
        parts = {
            "weight": ("U8", [out * into // 2, 1]),
            "weight.absmax": ("U8", [blocks]) if is_nested else ("F32", [blocks]),
            "weight.quant_map": ("F32", [16]),
            "weight.quant_state.bitsandbytes__nf4": ("U8", [100]),
        }
        if is_nested:
            parts["weight.nested_absmax"] = ("F32", [_per(blocks, 256)])
            parts["weight.nested_quant_map"] = ("F32", [256])
        return _rows(module, row, parts)

    def size(out: int, into: int) -> int:
        blocks = _per(out * into, 64)
        nested = blocks + 4 * _per(blocks, 256) + 4 * 256
        return out * into // 2 + 4 * 16 + 100 + (nested if is_nested else 4 * blocks)

    return pack, size


def int8_by_row():
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        return _rows(module, row, {"weight": ("I8", [out, into]), "SCB": ("F32", [out]), "weight_format": ("U8", [])})

    return pack, lambda out, into: out * into + 4 * out + 1


def compressed(bits: int, group: int):
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        parts = {
            "weight_packed": ("I32", [out, into * bits // 32]),
            "weight_scale": ("BF16", [out, into // group]),
            "weight_shape": ("I64", [2]),
        }
        return _rows(module, row, parts)

    return pack, lambda out, into: out * into * bits // 8 + 2 * out * (into // group) + 16


def fp8_blocks():
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        scale = ("F32", [_per(out, 128), _per(into, 128)])
        return _rows(module, row, {"weight": ("F8_E4M3", [out, into]), "weight_scale_inv": scale})

    return pack, lambda out, into: out * into + 4 * _per(out, 128) * _per(into, 128)


def nvfp4(is_compressed: bool):
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        values, second = ("weight_packed", "weight_global_scale") if is_compressed else ("weight", "weight_scale_2")
        return _rows(
            module,
            row,
            {
                values: ("U8", [out, into // 2]),
                "weight_scale": ("F8_E4M3", [out, into // 16]),
                second: ("F32", [1] if is_compressed else []),
                "input_global_scale" if is_compressed else "input_scale": ("F32", [1] if is_compressed else []),
            },
        )

    return pack, lambda out, into: out * into // 2 + out * into // 16 + 8


def mxfp4():
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        parts = {"weight_packed": ("U8", [out, into // 2]), "weight_scale": ("U8", [out, into // 32])}
        return _rows(module, row, parts)

    return pack, lambda out, into: out * into // 2 + out * into // 32


def mlx(bits: int, group: int):
    def pack(module: str, row: Row) -> list[Row]:
        out, into = row[2]
        scales = ("BF16", [out, into // group])
        return _rows(module, row, {"weight": ("U32", [out, into * bits // 32]), "scales": scales, "biases": scales})

    return pack, lambda out, into: out * into * bits // 8 + 4 * out * (into // group)


FORMATS = {
    "gptq-int4": gptq(32),
    "gptq-int8": gptq(32, 8),
    "awq-int4": awq(32),
    "nf4 nested": nf4(True),
    "nf4": nf4(False),
    "int8": int8_by_row(),
    "int4": compressed(4, 32),
    "int8 words": compressed(8, 32),
    "fp8": fp8_blocks(),
    "nvfp4": nvfp4(False),
    "nvfp4 compressed": nvfp4(True),
    "mxfp4": mxfp4(),
    "mlx-4bit": mlx(4, 32),
    "mlx-8bit": mlx(8, 32),
}

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers.*.input_layernorm": "blk.*.attn_norm",
    "model.layers.*.post_attention_layernorm": "blk.*.ffn_norm",
    "model.layers.*.self_attn.q_proj": "blk.*.attn_q",
    "model.layers.*.self_attn.k_proj": "blk.*.attn_k",
    "model.layers.*.self_attn.v_proj": "blk.*.attn_v",
    "model.layers.*.self_attn.o_proj": "blk.*.attn_output",
    "model.layers.*.mlp.gate_proj": "blk.*.ffn_gate",
    "model.layers.*.mlp.up_proj": "blk.*.ffn_up",
    "model.layers.*.mlp.down_proj": "blk.*.ffn_down",
    "model.layers.*.block_sparse_moe.gate": "blk.*.ffn_gate_inp",
    "model.layers.*.block_sparse_moe.experts.*.w1": "blk.*.ffn_gate_exps",
    "model.layers.*.block_sparse_moe.experts.*.w2": "blk.*.ffn_down_exps",
    "model.layers.*.block_sparse_moe.experts.*.w3": "blk.*.ffn_up_exps",
}


def as_gguf(row: dict[str, Any], kind: str = "F32") -> dict[str, Any]:
    """The header as llama.cpp writes it: its names, experts fused, matrices of one type, rotary factors beside."""
    rows = [["rope_freqs.weight", "F32", [8], 1, ""]]
    for pattern, _, shape, count, layers in row["header"]["tensors"]:
        name, fused = GGUF_NAMES[pattern.removesuffix(".weight")], "experts" in pattern
        dtype = kind if len(shape) > 1 else "F32"
        rows.append([f"{name}.weight", dtype, [4, *shape] if fused else shape, count // 4 if fused else count, layers])
    return {"format": "gguf", "file": "a-Q8_0.gguf", "file_count": 1, "tensors": rows}
