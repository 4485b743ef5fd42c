"""How sizes, formats, engines and cards are named in sentences."""

from __future__ import annotations

from typing import Any

GIB = 2**30
VERDICTS = {"fits": "fits", "tight": "barely", "no": "no", None: "unknown"}
PHASES = {
    "inference": "run", "lora": "be fine-tuned by LoRA", "qlora": "be fine-tuned by QLoRA",
    "full-finetune": "be fine-tuned in full", "pretrain": "be trained from the start",
}  # fmt: skip
ENGINES = {
    "llama.cpp": "llama.cpp",
    "vllm": "vLLM",
    "transformers": "Transformers",
    "mlx-lm": "MLX",
    "mlx-vlm": "MLX-VLM",
    "sglang": "SGLang",
    "deepspeed": "DeepSpeed",
    "exllamav3": "ExLlamaV3",
}
_PLACEMENTS = {
    "resident": "all parts on the card",
    "model": "one part at a time",
    "group": "one module and the next one",
    "sequential": "one module at a time",
    "cached": "the denoiser alone, latents and text made before",
}


def placed(row: dict[str, Any]) -> str:
    """How a pipeline's parts are placed, and what its denoiser and its text encoders are packed in."""
    packed = row.get("denoiser_dtype_id")
    told = _PLACEMENTS.get(row["placement"], row["placement"])
    told += ", decoded in tiles" if row.get("is_tiled") else ""
    parts = "denoiser and text encoders" if row.get("text_dtype_id") else "denoiser"
    whole = row["dtype_id"] if row.get("dtype_id") not in (None, "bf16") else None  # (which is what is told unasked)
    if packed:
        return f"{told}, {parts} in {format_name(packed)}" + (f" and the rest in {whole}" if whole else "")
    return f"{told}, in {whole}" if whole else told


def cards(card: dict[str, Any]) -> str:
    if card["gpu_id"] is None:
        return card["name"]
    return f"{card['count']} × {card['name']}" if card["count"] > 1 else f"one {card['name']}"


def format_name(dtype: str) -> str:
    return dtype.removeprefix("gguf-").upper() if dtype.startswith("gguf-") else dtype


def engine_name(row: dict[str, Any]) -> str:
    return ENGINES.get(row["engine_id"], row["engine_id"])


def gib_of(size: int | None) -> str:
    return "?" if size is None else f"{size / GIB:,.1f}"


def reach_of(row: dict[str, Any]) -> str:
    found, whole = row["max_context_tokens"], row["model_context_tokens"]
    if found is None:
        return "?"
    if not found:
        return "–"
    return f"{found:,} (all)" if whole and found >= whole else f"{found:,}"


def in_short(number: int | None) -> str:
    if not number:
        return "?"
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)
