"""What a reason says in words of SQL, said in those of the terminal: its options, and where it has none plain words.

Reasons are texts of the formulas, which everybody reads that asks them: `sharding := ddp` is `--sharding ddp` here.
"""

from __future__ import annotations

import re

# the options of arguments that the terminal takes, by their names in SQL
OPTIONS = {
    "checkpointing": "--checkpointing",
    "context_tokens": "--context",
    "data_parallel": "--data-parallel",
    "dtype_id": "--format",
    "engine_id": "--program",
    "frames": "--frames",
    "free_bytes": "--free",
    "generator": "--generator",
    "images": "--images",
    "kv_dtype_id": "--kv",
    "lora_dropout": "--lora-dropout",
    "lora_rank": "--rank",
    "lora_targets": "--lora-targets",
    "offload": "--offload",
    "optimizer_id": "--optimizer",
    "phase_id": "--phase",
    "pipeline_parallel": "--pipeline-parallel",
    "program": "--program",
    "seconds": "--seconds",
    "sequences": "--users",
    "sharding": "--sharding",
    "tensor_parallel": "--tensor-parallel",
}
# its tables, and arguments that say nothing to whom has no SQL
_LEFT_OUT = re.compile(r" \(table \w+\)|(?:, and|:) attention := 'eager' says what (?:is needed without|bf16 needs)")
# macros that a reason points to, and what of the terminal tells the same
_MACROS = (
    ("pipeline_of(model_id) is what diffusers holds", "what diffusers holds is told where no program is named"),
    (
        "pipeline_of(model_id) says what one holds, pipeline_fits_on(gpu_id, model_id) whether it fits",
        "what one holds and whether it fits is told where no program is named",
    ),
    (
        "pipeline_of(model_id) says what it holds, pipeline_stages(model_id) by part",
        "fits says what it holds on one card",
    ),
)
_ARGUMENT = re.compile(r"([a-z_][a-z0-9_]*) := (?:'([^']*)'|([\w.+-]*))")
# how cards share the work, before what is wrong with that, or with how many do
_SHARED = re.compile(r"\b[a-z]+_parallel: ")
_CARDS = re.compile(r"\b[a-z]+_parallel (\d+)\b")
_HEADS = re.compile(r"\b(\d+) attention heads do not divide by tensor_parallel (\d+)")
_WORDS = {"program_version": "version", "false": "off", "true": "on", "n": "N"}


def plain(reason: str) -> str:
    """A reason as the terminal says it."""
    for said, meant in _MACROS:
        reason = reason.replace(said, meant)
    reason = _HEADS.sub(_staged, _ARGUMENT.sub(_said, _LEFT_OUT.sub("", reason)))
    return _CARDS.sub(r"\1 cards", _SHARED.sub("", reason))


def _staged(found: re.Match[str]) -> str:
    """With the way that does run: as many cards in stages of the most that divide the heads."""
    heads, cards = int(found[1]), int(found[2])
    tensor = next((n for n in range(cards - 1, 0, -1) if cards % n == 0 and heads % n == 0), None)
    if tensor is None:
        return found[0]
    way = f"--program vllm --tensor-parallel {tensor} --pipeline-parallel {cards // tensor}"
    return f"{heads} attention heads do not divide by {cards} cards: {way}"


def _said(found: re.Match[str]) -> str:
    name, value = found[1], found[2] if found[2] is not None else found[3]
    if (name, value) == ("loss", "fused"):
        return "--liger"
    what = OPTIONS.get(name) or _WORDS.get(name) or name.removesuffix("_id").replace("_", " ").strip()
    return f"{what} {_WORDS.get(value, value)}".rstrip() if value else what
