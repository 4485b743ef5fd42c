"""Models for the fake Hub: true to life in form, small in size."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

from pipeline.hub.gguf_types import bytes_of as gguf_bytes
from pipeline.hub.gguf_types import type_name

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 172,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA_COUNT = 2 * 1000 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 172 + 2 * 64) + 64


def sha_of(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def row(model_id: str, version: int = 1, files: tuple[str, ...] = ("config.json",), **more: Any) -> dict[str, Any]:
    """A row of the listing, with all that may be expanded."""
    number = int(sha_of(model_id)[:6], 16)
    return {
        "_id": sha_of(model_id)[:24],
        "id": model_id,
        "sha": sha_of(f"{model_id} {version}"),
        "pipeline_tag": "text-generation",
        "library_name": "transformers",
        "gated": False,
        "private": False,
        "disabled": False,
        "createdAt": "2025-01-02T03:04:05.000Z",
        "lastModified": f"2025-02-0{version}T03:04:05.000Z",
        "downloads": number,
        "likes": number % 1000,
        "trendingScore": number % 50,
        "usedStorage": 1000 + number,
        "tags": ["transformers", "license:apache-2.0", "region:us"],
        "siblings": [{"rfilename": name} for name in (".gitattributes", "README.md", *files)],
        **more,
    }


def plain(model_id: str, **more: Any) -> dict[str, Any]:
    """A row whose totals the Hub has read itself."""
    totals = {"parameters": {"BF16": LLAMA_COUNT}, "total": LLAMA_COUNT}
    return row(model_id, **{"safetensors": totals, "files": ("config.json", "model.safetensors"), **more})


def config(**more: Any) -> bytes:
    return json.dumps({**LLAMA, **more}).encode()


def safetensors(tensors: dict[str, tuple[str, list[int], int]], length: int | None = None, data: bool = True) -> bytes:
    """A file of tensors: name → dtype, shape, bytes. `length` is told instead of the header's own."""
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return raw_safetensors(json.dumps(header).encode(), at if data else 0, length)


def raw_safetensors(header: bytes, size: int = 0, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + b"\0" * size


def gguf(
    tensors: dict[str, tuple[list[int], int]],
    tokens: int = 10,
    version: int = 3,
    data: bool = True,
    metadata: dict[str, Any] | None = None,
) -> bytes:
    """A GGUF file: metadata with a tokenizer, then tensors: name → dims (as the file has them, inputs first), ggml type."""
    metadata = {"general.architecture": "llama", "llama.block_count": 2} if metadata is None else metadata
    pairs = [
        *(_text(name) + _value(value) for name, value in metadata.items()),
        _text("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, tokens)
        + b"".join(_text(f"token {i}") for i in range(tokens)),
        _text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, tokens) + b"\0" * 4 * tokens,
    ]
    body, at = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs), 0
    for name, (dims, kind) in tensors.items():
        body += _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)
        size = gguf_bytes(type_name(kind), dims[::-1]) or 4 * math.prod(dims)
        at += -(-size // 32) * 32
    return body + b"\0" * (-len(body) % 32) + b"\0" * (at if data else 0)


def llama_gguf(**changed: Any) -> bytes:
    """LLAMA as llama.cpp's converter writes it, in 16 bits; `changed` goes over its metadata, `.` written as `__`; None leaves out."""
    h, kv, wide = LLAMA["hidden_size"], 32, LLAMA["intermediate_size"]
    tensors: dict[str, tuple[list[int], int]] = {"token_embd.weight": ([h, 1000], 1), "output.weight": ([h, 1000], 1)}
    tensors["output_norm.weight"] = ([h], 0)
    for layer in range(LLAMA["num_hidden_layers"]):
        shapes = {"attn_norm": [h], "ffn_norm": [h], "attn_q": [h, h], "attn_k": [h, kv], "attn_v": [h, kv]}
        shapes |= {"attn_output": [h, h], "ffn_gate": [h, wide], "ffn_up": [h, wide], "ffn_down": [wide, h]}
        tensors |= {f"blk.{layer}.{name}.weight": (dims, len(dims) - 1) for name, dims in shapes.items()}
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.context_length": 2048,
        "llama.embedding_length": h,
        "llama.feed_forward_length": wide,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
    }
    metadata |= {name.replace("__", "."): value for name, value in changed.items()}
    return gguf(tensors, metadata={name: value for name, value in metadata.items() if value is not None})


def _value(value: Any) -> bytes:
    """A GGUF value with its type before it: text, a truth, a whole number, a float or a list of one of these."""
    for kind, number, form in ((bool, 7, "<?"), (int, 4, "<I"), (float, 6, "<f")):
        if isinstance(value, kind):
            return struct.pack("<I", number) + struct.pack(form, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    items = [_value(item) for item in value]
    return struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(items)) + b"".join(item[4:] for item in items)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
