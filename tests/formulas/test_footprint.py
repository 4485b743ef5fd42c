"""What a user relies on of the formulas, over random scenarios: they only grow with what should make them grow, and they add up."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

COMPONENTS = (
    "weights_bytes",
    "kv_cache_bytes",
    "kv_padding_bytes",
    "state_bytes",
    "activations_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "adapters_bytes",
    "overhead_bytes",
)
MODELS = st.sampled_from(
    [
        "meta-llama/Llama-3.1-8B-Instruct",  # grouped heads
        "Qwen/Qwen3-0.6B",  # tied, query and key norms
        "Qwen/Qwen3-30B-A3B",  # experts
        "deepseek-ai/DeepSeek-V3",  # latent attention
        "google/gemma-3-27b-it",  # windows, a vision tower
        "openai/gpt-oss-20b",  # windows and experts, no fused attention
        "mistralai/Mixtral-8x7B-v0.1",
    ]
)
INFERENCE = st.fixed_dictionaries(
    {
        "model_id": MODELS,
        "dtype_id": st.sampled_from(
            ["fp32", "bf16", "fp8", "int8", "nf4", "awq-int4", "gguf-q8_0", "gguf-q4_k_m", "gguf-q2_k"]
        ),
        "context_tokens": st.integers(1, 131_072),
        "sequences": st.integers(1, 32),
        "max_context_tokens": st.just(262_144),  # beyond what some of these models say of themselves
    }
)
TRAINING = st.fixed_dictionaries(
    {
        "model_id": MODELS,
        "phase_id": st.sampled_from(["pretrain", "full-finetune", "lora"]),
        "dtype_id": st.sampled_from(["bf16", "fp32"]),
        "context_tokens": st.integers(1, 16_384),
        "sequences": st.integers(1, 8),
        "checkpointing": st.sampled_from(["none", "full"]),
        "optimizer_id": st.sampled_from(["adamw", "adamw-8bit", "sgd", "adafactor"]),
        "gpu_count": st.just(1),
        "sharding": st.just("none"),
    }
)
# planning the formula costs more than running it: every example is a batch of scenarios
BATCH = {"min_size": 40, "max_size": 40}
THOROUGH = settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def changed(scenarios, **changes):
    """The same scenarios, each with a change: a value, or a function of the old one."""
    return [
        scenario | {name: change(scenario[name]) if callable(change) else change for name, change in changes.items()}
        for scenario in scenarios
    ]


def side_by_side(footprints, *batches):
    """Batches of scenarios answered in one query, for its planning takes longer than its answers: rows of the same place together."""
    answers = footprints([scenario for batch in batches for scenario in batch])
    size = len(batches[0])
    return zip(*(answers[place : place + size] for place in range(0, len(answers), size)), strict=True)


def adds_up(row):
    assert row["unknown_reason"] is None, row["unknown_reason"]
    assert all(row[component] >= 0 for component in COMPONENTS), row
    assert row["total_bytes"] == sum(row[component] for component in COMPONENTS)


@THOROUGH
@given(scenarios=st.lists(INFERENCE, **BATCH))
def test_inference_adds_up_and_grows_with_context_and_sequences(footprints, scenarios):
    longer = changed(scenarios, context_tokens=lambda tokens: tokens + 1000)
    busier = changed(scenarios, sequences=lambda count: count + 1)
    for row, long, busy in side_by_side(footprints, scenarios, longer, busier):
        adds_up(row)
        assert long["total_bytes"] >= row["total_bytes"]
        assert busy["total_bytes"] >= row["total_bytes"]
        assert long["kv_cache_bytes"] >= row["kv_cache_bytes"]
        assert row["weights_bytes"] == long["weights_bytes"] == busy["weights_bytes"]


@pytest.mark.full
@THOROUGH
@given(scenarios=st.lists(TRAINING, **BATCH))
def test_training_adds_up_and_grows(footprints, scenarios):
    longer = changed(scenarios, context_tokens=lambda tokens: tokens + 512)
    wider = changed(scenarios, sequences=lambda count: count + 1)
    for row, long, wide in side_by_side(footprints, scenarios, longer, wider):
        adds_up(row)
        assert long["total_bytes"] >= row["total_bytes"]
        assert wide["total_bytes"] >= row["total_bytes"]


@pytest.mark.full
@THOROUGH
@given(scenarios=st.lists(TRAINING, **BATCH))
def test_checkpointing_pays(footprints, scenarios):
    kept, recomputed = (changed(scenarios, checkpointing=kind) for kind in ("none", "full"))
    for without, having in side_by_side(footprints, kept, recomputed):
        # one layer is worked on beside the gradients of all others, which a model with little kept may feel
        assert having["total_bytes"] <= without["total_bytes"] * 1.02


@pytest.mark.full
@THOROUGH
@given(scenarios=st.lists(TRAINING, **BATCH), gpus=st.sampled_from([2, 4, 8, 16]))
def test_each_stage_of_zero_needs_no_more_than_the_one_before(footprints, scenarios, gpus):
    # (with states: DeepSpeed copies its part of weights in fp32, which an optimizer without any does not pay for)
    stages = [
        changed(scenarios, gpu_count=gpus, sharding=stage, optimizer_id="adamw")
        for stage in ("ddp", "zero1", "zero2", "zero3")
    ]
    # of the states; what a framework gathers for a moment may be more than a small model saves
    for rows in side_by_side(footprints, *stages):
        held = [sum(row[f"{part}_bytes"] for part in ("weights", "gradients", "optimizer")) for row in rows]
        assert held == sorted(held, reverse=True)


@pytest.mark.full
@THOROUGH
@given(
    scenarios=st.lists(
        st.fixed_dictionaries(
            {
                "model_id": MODELS,
                "phase_id": st.just("lora"),
                "lora_rank": st.integers(1, 256),
                "lora_targets": st.sampled_from(["attention", "query-value", "all-linear"]),
            }
        ),
        **BATCH,
    )
)
def test_adapters_are_linear_in_rank(footprints, scenarios):
    ones = changed(scenarios, lora_rank=1)
    for scenario, (one, row) in zip(scenarios, side_by_side(footprints, ones, scenarios), strict=True):
        if row["adapters_bytes"] is None:  # latent attention has no projections of queries and values
            assert "query-value" in row["unknown_reason"]
            continue
        assert row["adapters_bytes"] == scenario["lora_rank"] * one["adapters_bytes"]
        assert row["gradients_bytes"] == row["adapters_bytes"]
        assert row["total_bytes"] >= one["total_bytes"]


def test_fewer_bits_never_need_more(any_book):
    order = ["fp32", "bf16", "gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-q4_k_m", "gguf-q3_k_m", "gguf-q2_k"]
    sizes = any_book.execute(
        "SELECT model_id, list(weights_bytes ORDER BY list_position($order, dtype_id)) FROM weight "
        # rows too short for blocks fall back to wider formats: those of convolutions are, and of what has no file in GGUF; and what only
        # sees is never in blocks: in 16 bits, its vectors in 32
        "WHERE list_contains($order, dtype_id) AND model_id IN (FROM shape SELECT model_id "
        "WHERE hidden_size % 256 = 0 AND NOT is_pipeline AND NOT cannot_load(shape, 'llama.cpp') AND shape.caches IS NOT NULL) "
        "GROUP BY model_id",
        {"order": order},
    ).fetchall()
    assert len(sizes) > 200
    for model, falling in sizes:
        assert falling == sorted(falling, reverse=True), model


@pytest.mark.full
@THOROUGH
@given(scenarios=st.lists(INFERENCE, **BATCH), gpus=st.sampled_from([2, 4, 8]))
def test_tensor_parallel_divides_weights_but_never_below_their_share(footprints, scenarios, gpus):
    alone = changed(scenarios, gpu_count=1, sharding="none", engine_id="vllm")
    shared = changed(scenarios, gpu_count=gpus, sharding="tp", engine_id="vllm")
    for one, many in side_by_side(footprints, alone, shared):
        assert one["weights_bytes"] / gpus <= many["weights_bytes"] < one["weights_bytes"]
        assert one["kv_cache_bytes"] // gpus <= many["kv_cache_bytes"] <= one["kv_cache_bytes"]


@pytest.mark.full
def test_windows_stop_growing(footprint_of):
    """Every other layer of gpt-oss sees 128 tokens: beyond, only half of the layers grow."""
    short, long = (footprint_of("openai/gpt-oss-20b", context_tokens=c)["kv_cache_bytes"] for c in (10_000, 20_000))
    per_layer_token = 2 * 8 * 64 * 2
    assert long - short == 12 * 10_000 * per_layer_token


def test_latent_attention_is_replicated_under_tensor_parallelism(footprint_of):
    alone = footprint_of("deepseek-ai/DeepSeek-V3", dtype_id="fp8", context_tokens=8192)
    shared = footprint_of("deepseek-ai/DeepSeek-V3", dtype_id="fp8", context_tokens=8192, gpu_count=8)
    assert shared["kv_cache_bytes"] == alone["kv_cache_bytes"] == 575_668_224


@pytest.mark.full
def test_few_kv_heads_are_replicated(footprint_of):
    """Eight KV heads on sixteen GPUs: each holds one, not half of one."""
    eight, sixteen = (
        footprint_of("meta-llama/Llama-3.1-8B-Instruct", dtype_id="fp8", tensor_parallel=n)["kv_cache_bytes"]
        for n in (8, 16)
    )
    assert eight == sixteen


# files that llama.cpp's own selection made: gated delta nets have their queries, keys and values under the name of joined attention's
@pytest.mark.parametrize("dtype, gib", [("gguf-q4_k_m", 15.401), ("gguf-iq4_xs", 14.036)])
def test_a_hybrid_weighs_what_its_file_does(book, dtype, gib):
    query = """
        SELECT weights_bytes - second_file_bytes(model_id) FROM weight WHERE model_id = 'Qwen/Qwen3.6-27B' AND dtype_id = $1
    """
    [(text,)] = book.execute(query, [dtype]).fetchall()
    assert text / 2**30 == pytest.approx(gib, abs=0.001)
