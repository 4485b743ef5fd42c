"""Reasons in a reader's words: the one place where the SQL's names of arguments become names of fields.

A reason of the tables names what it speaks of as SQL does (`context_tokens := 131072`), for whoever asks in SQL. Pages and the
calculator say it without: by RULES, in order, then by the names of engines, formats and optimizers, then LABELS for any argument that is
left. The browser applies the same list (`plain` in site/assets/calculator.js), so a pattern is written in what Python's and JavaScript's
regular expressions share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

# argument of the macros: what people call it
LABELS = {
    "context_tokens": "context",
    "max_context_tokens": "stretched context",
    "gpu_count": "number of GPUs",
    "model_id": "model",
    "engine_id": "engine",
    "dtype_id": "format",
    "phase_id": "phase",
    "kv_dtype_id": "cache format",
    "optimizer_id": "optimizer",
    "optimizer_rank": "optimizer’s rank",
    "lora_rank": "LoRA rank",
    "lora_targets": "LoRA targets",
    "gradient_accumulation": "micro-batches in a step",
    "tensor_parallel": "tensor-parallel GPUs",
    "pipeline_parallel": "pipeline stages",
    "context_parallel": "context-parallel GPUs",
    "expert_parallel": "expert-parallel GPUs",
    "data_parallel": "data-parallel ranks",
    "decode_context_parallel": "GPUs that deal out the cache",
    "batched_tokens": "tokens read in a step",
    "max_num_seqs": "requests run at once",
    "text_only": "what it sees with left out",
    "enforce_eager": "no CUDA graphs",
    "max_loras": "adapters served at once",
    "max_lora_rank": "largest rank of an adapter",
    "micro_batches_in_flight": "micro-batches in flight",
    "sequence_parallel": "sequence parallelism",
    "image_width": "image width",
    "image_height": "image height",
    "audio_seconds": "audio",
    "lora_dropout": "LoRA dropout",
    "reduce_bucket_elements": "DeepSpeed’s reduce bucket",
    "expandable_segments": "expandable segments",
    "trains_embeddings": "embedding and head trained",
    "program_version": "version",
}
# What is better said otherwise than by the label alone. `$1` is what the first bracket holds.
RULES = (
    (r" \(table \w+\)", ""),
    (r"context_tokens := (\d+) is beyond the (\d+) positions", "a context of $1 tokens is beyond the $2 positions"),
    (
        r"context_tokens := (\d+) is beyond the (\d+) tokens of this model( \(max_context_tokens := n where its positions are stretched\))?",
        "a context of $1 tokens is beyond the $2 that this model reads, unless its positions are stretched",
    ),
    (
        r"context_tokens (\d+) do not divide by context_parallel (\d+)",
        "a context of $1 tokens does not divide among $2 context-parallel GPUs",
    ),
    (
        r"context_tokens, sequences and gpu_count start at 1",
        "the context, the sequences and the number of GPUs start at 1",
    ),
    (
        r"a diffusion pipeline runs in stages: .*",
        "this is a pipeline of several models that run in stages: it is asked by the size of a picture, not by tokens",
    ),
    (r"pipeline_of\(model_id\) is what diffusers holds", "what diffusers holds is on the pages of pipelines"),
    (
        r"pipeline_of\(model_id\) says what one holds, pipeline_fits_on\(gpu_id, model_id\) whether it fits",
        "what one holds, and on which cards it fits, is on its own page",
    ),
    # parts of pipelines, by what they do
    (r"\bvae: ", "autoencoder: "),
    (r"\b(transformer|unet)_2: ", "second denoiser: "),
    (r"\b(text|image)_encoder_(\d): ", "$1 encoder $2: "),
    (r"\b(text|image)_encoder: ", "$1 encoder: "),
    (
        r"\b(autoencoder|denoiser|[a-z]+ denoiser|[a-z]+ encoder|[a-z]+ encoder \d): the snapshot does not record the config of this component",
        "the config of its $1 is not at hand",
    ),
    (
        r"\b(autoencoder|denoiser|[a-z]+ denoiser|[a-z]+ encoder|[a-z]+ encoder \d): what this part holds while it runs is not established yet",
        "what its $1 holds while it runs is not known yet",
    ),
    (
        r"\b(autoencoder|denoiser|[a-z]+ denoiser|[a-z]+ encoder|[a-z]+ encoder \d): what (\w+) holds while it runs is not established yet",
        "what its $1 ($2) holds while it runs is not known yet",
    ),
    (
        r"\b(denoiser|[a-z]+ denoiser|[a-z]+ encoder|[a-z]+ encoder \d): how (\w+) is held in ([\w-]+) is not known \(table denoiser_format\)",
        "how its $1 ($2) is kept in $3 is not known: no source says which of its layers such a file holds apart",
    ),
    (
        r"\bdenoiser: what a training step of (\w+) holds is not counted yet \(table denoiser_training\)",
        "what a training step of its denoiser ($1) holds is not known yet",
    ),
    (
        r"\bdenoiser: a training step of (\w+) is not counted over a base in ([\w-]+) with checkpointing full",
        "a training step of its denoiser ($1) over a base in $2 is not known yet",
    ),
    (
        r"\bdenoiser: a training step of (\w+) is not counted over a base in ([\w-]+) with checkpointing none",
        "a training step of its denoiser ($1) over a base in $2 that keeps all activations is not known yet",
    ),
    (r"\bdenoiser: its blocks have a further attention", "the blocks of its denoiser have a further attention"),
    (r"\bdenoiser: makes single pictures", "it makes single pictures"),
    (
        r"(\bautoencoder|\bdenoiser|\bsecond denoiser|[a-z]+ encoder|[a-z]+ encoder \d): what (this part|\w+) holds while it encodes is not established yet",
        "what its $1 ($2) holds while it encodes is not known yet",
    ),
    (
        r"width, height, frames, images, lora_rank and text_tokens start at 1",
        "width, height, frames, pictures, rank and words start at 1",
    ),
    (r"with checkpointing none and full", "with all layers recomputed or none"),
    (r"\bautoencoder: autoencoder '(\w+)' is not described yet", "its autoencoder ($1) is not described yet"),
    (r"its class \w+ is there", "its class is there"),
    (r"expert_parallel (\d+) does not divide", "$1 expert-parallel GPUs do not divide"),
    (
        r"(\d+) (attention heads|experts) do not divide by (?:tensor|expert)_parallel (\d+)",
        "$1 $2 do not divide among $3 GPUs",
    ),
    (r"(\d+) KV heads and tensor_parallel (\d+) do not divide", "$1 KV heads do not divide among $2 GPUs"),
    (r"pipeline_parallel: more stages than the 1 layers", "more stages than the one layer"),
    (r"pipeline_parallel: more stages", "more stages"),
    (r"expert_parallel: the model", "the model"),
    (r"gpu_count (\d+) (is|leaves)", "$1 GPUs $2"),
    (r"(\d+) GPUs is no multiple", "$1 GPUs are no multiple"),
    (r"(\d+) GPUs leaves", "$1 GPUs leave"),
    (r"lora_targets := query-value", "LoRA on queries and values"),
    (r"lora_targets := experts", "LoRA on experts"),
    (r"lora_targets is ", "LoRA targets are "),
    (r"attention := '?(\w+)'?", "$1 attention"),
    (r"(checkpointing|loss) := (\w+)", "$2 $1"),
    (r"dtype_id := (\S+)", "$1"),
    (r"the phases lora and qlora", "LoRA and QLoRA"),
    (r"\bpretrain or full-finetune\b", "pre-training or full fine-tuning"),
    (r"\b(text|image)_encoder_(\d)", "$1 encoder $2"),
    (r"\b(text|image)_encoder\b", "$1 encoder"),
    (r"no such dtype", "no such format"),
    (r"program_version := (.*) is no version", "$1 is no version"),
    (r"program_version is of a program: program := (\w+)", "a version is that of a program, which is not named"),
    (r"no such KV dtype", "no such cache format"),
    (r"\b(\w+) := '?([\w.+-]+)'?", "$1 $2"),
)
GROUPED = re.compile(r"(?<![\d.])\d{5,}(?![\d.]*\d)")

Rules = list[tuple[str, str]]


def rules(tables: dict[str, list[dict]]) -> Rules:
    """All pairs of a pattern and what stands for it, in the order that they are applied in."""
    named = [
        (row[key], row["name"])
        for table, key in (("engine", "engine_id"), ("dtype", "dtype_id"), ("optimizer", "optimizer_id"))
        for row in tables.get(table, ())
        # an id that is a word of its own, as `stored` or `bf16`, is one in a sentence too; so is what names formats on every page
        if table == "engine" or "_" in row[key] or (table == "optimizer" and "-" in row[key])
    ]
    named.sort(key=lambda pair: -len(pair[0]))
    ids = [(rf"(?<![\w./-]){re.escape(i).replace('/', '[/]')}(?![\w-]|[.]\w)", name) for i, name in named if i != name]
    labels = [(rf"\b{name}\b", label) for name, label in sorted(LABELS.items(), key=lambda pair: -len(pair[0]))]
    return [*RULES, *ids, *labels]


def teller(pairs: Rules) -> Callable[[str], str]:
    """A function that says a reason by these rules."""
    compiled = [(re.compile(pattern), re.sub(r"\$(\d)", r"\\\1", text)) for pattern, text in pairs]

    @cache  # cards and models give the same few reasons
    def plain(reason: str) -> str:
        for pattern, text in compiled:
            reason = pattern.sub(text, reason)
        return GROUPED.sub(lambda m: f"{int(m[0]):,}", reason)

    return plain
