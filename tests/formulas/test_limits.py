"""The longest context and the most sequences to the token: what is told fits, and one step more does not."""

from __future__ import annotations

import pytest

# card and scenario: training on one card and several, a context shared by four, inference; where the card, the model or the engine ends it
ASKED = [
    ("rtx-4090", {"model_id": "Qwen/Qwen3-8B", "phase_id": "qlora", "dtype_id": "nf4", "checkpointing": "full"}),
    ("rtx-4090", {"model_id": "Qwen/Qwen3-0.6B", "phase_id": "full-finetune", "sequences": 3}),
    ("rtx-4090", {"model_id": "Qwen/Qwen3-0.6B", "phase_id": "lora", "loss": "fused", "checkpointing": "selective"}),
    ("rtx-3090", {"model_id": "Qwen/Qwen3-0.6B", "phase_id": "pretrain", "dtype_id": "fp32", "attention": "eager"}),
    ("h100-sxm", {"model_id": "openai/gpt-oss-20b", "phase_id": "lora", "checkpointing": "full"}),
    ("h100-sxm", {"model_id": "Qwen/Qwen3-8B", "phase_id": "full-finetune", "checkpointing": "full", "gpu_count": 4}),
    (
        "h100-sxm",
        {"model_id": "Qwen/Qwen3-8B", "phase_id": "full-finetune", "engine_id": "torchtitan", "gpu_count": 16,
         "tensor_parallel": 2, "context_parallel": 4, "sharding": "zero3", "checkpointing": "full"},
    ),
    ("rtx-4090", {"model_id": "Qwen/Qwen3-8B", "engine_id": "vllm", "context_tokens": 512}),
]  # fmt: skip


@pytest.fixture
def limits_on(book):
    def ask(gpu_id, **scenario):
        named = "".join(f", {name} := ${name}" for name in scenario if name != "model_id")
        result = book.execute(f"FROM limits_on($gpu_id, $model_id{named})", {"gpu_id": gpu_id, **scenario})
        columns = [column[0] for column in result.description]
        (row,) = result.fetchall()
        return dict(zip(columns, row, strict=True))

    return ask


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("gpu_id", "scenario"),
    # each takes seconds: one of training and one of inference here, all of them in `make check-full`
    [
        pytest.param(*one, marks=[] if place in (0, len(ASKED) - 1) else pytest.mark.full)
        for place, one in enumerate(ASKED)
    ],
    ids=lambda part: part if isinstance(part, str) else part["model_id"],
)
def test_a_limit_fits_and_one_step_more_does_not(book, footprints, limits_on, gpu_id, scenario):
    capacity = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = ?", [gpu_id]).fetchall()[0][0]
    told = limits_on(gpu_id, **scenario)
    asked = scenario | {"context_tokens": told["context_tokens"], "sequences": told["sequences"]}
    bounds = set()
    for name, limit, step in (
        ("context_tokens", "max_context", scenario.get("context_parallel", 1)),
        ("sequences", "max_sequences", 1),
    ):
        most = told["max_context_tokens" if limit == "max_context" else limit]
        bound = told[f"{limit}_bound"]
        bounds.add(bound)
        points = [most] * (most > 0) + [most + step] * (bound == "card")
        for at, row in zip(points, footprints([asked | {name: at} for at in points]), strict=True):
            fits = row["total_bytes"] * (1 + row["error_band"]) <= capacity
            assert fits == (at == most), (name, at, bound)
    assert "card" in bounds


@pytest.mark.full
def test_a_longer_or_larger_step_never_needs_less(footprints):
    """What the search relies on: between two places of which one fits, no scenario that is smaller fails and none that is larger fits."""
    models = [
        "Qwen/Qwen3-0.6B",
        "google/gemma-3-1b-it",
        "openai/gpt-oss-20b",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "google-t5/t5-small",
    ]
    recipes = (
        {"phase_id": "full-finetune", "checkpointing": "none", "loss": "full", "attention": "flash"},
        {"phase_id": "lora", "checkpointing": "full", "loss": "fused", "attention": "flash"},
        {"phase_id": "lora", "checkpointing": "none", "loss": "chunked", "attention": "eager"},
    )
    steps = range(1, 3000, 37)
    runs = [
        [{"model_id": model, axis: at, other: 2, "max_context_tokens": 4096, **recipe} for at in steps]
        for recipe in recipes
        for axis, other in (("context_tokens", "sequences"), ("sequences", "context_tokens"))
        for model in models
    ]
    totals = [row["total_bytes"] for row in footprints([scenario for run in runs for scenario in run])]
    assert None not in totals
    for place, asked in enumerate(runs):
        run = totals[place * len(steps) : (place + 1) * len(steps)]
        assert run == sorted(run), asked[0]


@pytest.mark.parametrize("phase_id", ["lora", "qlora"])
def test_what_adapters_need_with_their_margin_never_falls_along_the_context(footprints, phase_id):
    """The margin for logits that may be lost goes away as the context grows, more slowly than the total grows; beyond it is a share alone."""
    models = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "google/gemma-3-1b-it", "meta-llama/Llama-2-7b-hf"]
    contexts = range(256, 20_000, 192)
    asked = {"phase_id": phase_id, "checkpointing": "full", "loss": "full", "max_context_tokens": 32_768}
    rows = footprints(
        [asked | {"model_id": model, "context_tokens": tokens} for model in models for tokens in contexts]
    )
    for place, model in enumerate(models):
        run = rows[place * len(contexts) : (place + 1) * len(contexts)]
        needs = [round(row["total_bytes"] * (1 + row["error_band"])) for row in run]
        assert needs == sorted(needs), model
        shares = [row["error_band"] for row in run]
        assert max(shares) > 0.11 and shares[-1] == pytest.approx(0.1), (model, max(shares), shares[-1])


@pytest.mark.full
def test_what_is_not_answered_has_a_reason(limits_on):
    for gpu_id, model_id, reason in (
        ("4090", "Qwen/Qwen3-8B", "no such GPU: 4090 (nearest: rtx-4090"),
        ("rtx-4090", "Qwen3-8B", "no such model in this snapshot (nearest: Qwen/Qwen3-8B"),
    ):
        row = limits_on(gpu_id, model_id=model_id)
        assert row["unknown_reason"].startswith(reason)
        assert (row["max_context_tokens"], row["max_sequences"], row["max_context_bound"]) == (None, None, None)
    not_one = limits_on("rtx-3060-12gb", model_id="Qwen/Qwen3-8B", phase_id="full-finetune")
    assert (not_one["max_context_tokens"], not_one["max_sequences"], not_one["unknown_reason"]) == (0, 0, None)


@pytest.mark.full
def test_null_sequences_are_one(limits_on):
    asked = {"model_id": "Qwen/Qwen3-0.6B", "context_tokens": 4096}
    assert limits_on("rtx-4090", sequences=None, **asked) == limits_on("rtx-4090", **asked)
