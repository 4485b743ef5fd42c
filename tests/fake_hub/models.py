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


def gguf(tensors: dict[str, tuple[list[int], int]], tokens: int = 10, version: int = 3, data: bool = True) -> bytes:
    """A GGUF file: metadata with a tokenizer, then tensors: name → dims (as the file has them, inputs first), ggml type."""
    pairs = [
        _text("general.architecture") + struct.pack("<I", 8) + _text("llama"),
        _text("llama.block_count") + struct.pack("<II", 4, 2),
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


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
