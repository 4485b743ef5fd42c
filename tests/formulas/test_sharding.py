"""What a user relies on when several GPUs train: parts add up, more sharing never needs more, impossible degrees say why."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

COMPONENTS = (
    "weights_bytes", "activations_bytes", "gradients_bytes", "optimizer_bytes", "adapters_bytes", "overhead_bytes",
)  # fmt: skip
LLAMA, LARGE, MOE = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B"
SCENARIO = st.fixed_dictionaries(
    {
        "model_id": st.sampled_from([LLAMA, MOE, "Qwen/Qwen3-0.6B"]),
        "phase_id": st.sampled_from(["pretrain", "full-finetune", "lora"]),
        "dtype_id": st.just("bf16"),
        "engine_id": st.sampled_from(["transformers", "deepspeed"]),
        "context_tokens": st.sampled_from([512, 2048, 8192]),
        "sequences": st.integers(1, 8),
        "checkpointing": st.sampled_from(["none", "full"]),
        "optimizer_id": st.sampled_from(["adamw", "adamw-8bit", "sgd"]),
    }
)
PLAIN = {
    "tensor_parallel": 1, "pipeline_parallel": 1, "context_parallel": 1, "expert_parallel": 1, "offload": "none",
    "sharding": "zero3", "gpu_count": 8,
}  # fmt: skip
BATCH = {"min_size": 45, "max_size": 45}
THOROUGH = settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def each(scenarios, **changes):
    return [scenario | PLAIN | changes for scenario in scenarios]


@pytest.mark.full
@THOROUGH
@given(scenarios=st.lists(SCENARIO, **BATCH))
def test_shards_add_up_and_more_gpus_never_need_more(footprints, scenarios):
    few, many = (footprints(each(scenarios, gpu_count=count)) for count in (8, 32))
    for before, after in zip(few, many, strict=True):
        assert before["unknown_reason"] is None, before["unknown_reason"]
        assert before["total_bytes"] == sum(before[part] for part in COMPONENTS)
        # experts that are fewer than GPUs are filled up: the first GPU then holds a whole one
        assert after["total_bytes"] <= before["total_bytes"]
        assert after["host_bytes"] == 0


@pytest.mark.full
@THOROUGH
@given(scenarios=st.lists(SCENARIO, **BATCH))
def test_offload_moves_and_does_not_lose(footprints, scenarios):
    scenarios = [scenario | {"engine_id": "deepspeed", "phase_id": "full-finetune"} for scenario in scenarios]
    ways = [footprints(each(scenarios, offload=offload)) for offload in ("none", "optimizer", "all")]
    for none, optimizer, everything in zip(*ways, strict=True):
        assert optimizer["optimizer_bytes"] == 0 < none["optimizer_bytes"]
        assert optimizer["total_bytes"] <= none["total_bytes"]
        assert 0 < optimizer["host_bytes"] <= everything["host_bytes"]
        assert none["optimizer_bytes"] <= optimizer["host_bytes"]
        assert everything["weights_bytes"] == 0


def test_one_of_everything_is_one_gpu(footprint_of):
    alone = footprint_of(LLAMA, phase_id="full-finetune")
    ones = {
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "context_parallel": 1,
        "expert_parallel": 1,
        "offload": "none",
    }
    assert footprint_of(LLAMA, phase_id="full-finetune", **ones) == alone
    assert alone["gpu_count"] == 1


def test_degrees_make_the_gpu_count_and_leave_the_rest_to_data(footprint_of):
    asked = {"phase_id": "pretrain", "engine_id": "megatron", "tensor_parallel": 4, "pipeline_parallel": 2}
    assert footprint_of(LLAMA, **asked)["gpu_count"] == 8
    more = footprint_of(LLAMA, **asked, gpu_count=32)
    assert more["sharding"] == "zero1"
    # Megatron: 6 + 12 ÷ DP bytes per parameter
    local = more["weights_bytes"] / 2
    assert more["gradients_bytes"] == pytest.approx(4 * local, rel=1e-6)
    assert more["optimizer_bytes"] == pytest.approx(12 * local / 4, rel=1e-6)


def test_tensor_parallel_is_what_sharding_tp_always_meant(footprint_of):
    by_name = footprint_of(LLAMA, phase_id="full-finetune", sharding="tp", gpu_count=4)
    assert by_name == footprint_of(LLAMA, phase_id="full-finetune", tensor_parallel=4)


@pytest.mark.full
def test_the_first_stage_of_a_pipeline_keeps_what_is_in_flight(footprint_of):
    asked = {"phase_id": "pretrain", "engine_id": "megatron", "pipeline_parallel": 8, "context_tokens": 8192}
    full, half = (footprint_of(LLAMA, **asked, micro_batches_in_flight=n)["activations_bytes"] for n in (8, 4))
    assert full > half


def test_longer_sequences_are_divided_by_context_parallelism(footprint_of):
    asked = {"phase_id": "full-finetune", "engine_id": "torchtitan", "checkpointing": "full", "gpu_count": 8}
    short = footprint_of(LLAMA, **asked, context_tokens=16384)["total_bytes"]
    long = footprint_of(LLAMA, **asked, context_tokens=131072, context_parallel=8)["total_bytes"]
    assert long == pytest.approx(short, rel=0.03)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("model", "scenario", "reason"),
    [
        (LLAMA, {"tensor_parallel": 3}, "32 attention heads do not divide by tensor_parallel 3"),
        (LLAMA, {"tensor_parallel": 0}, "start at 1"),
        (LLAMA, {"pipeline_parallel": 33}, "more stages than the 32 layers"),
        (LLAMA, {"tensor_parallel": 4, "gpu_count": 6}, "gpu_count 6 is no multiple of"),
        (LLAMA, {"expert_parallel": 2, "gpu_count": 8}, "no routed experts"),
        (MOE, {"expert_parallel": 3, "gpu_count": 6}, "128 experts do not divide by expert_parallel 3"),
        # (a remainder of one is a remainder)
        (MOE, {"expert_parallel": 127, "gpu_count": 127}, "128 experts do not divide by expert_parallel 127"),
        (MOE, {"expert_parallel": 16, "gpu_count": 8}, "does not divide the 8 GPUs that share the data"),
        (LLAMA, {"context_parallel": 3, "gpu_count": 3}, "context_tokens 2048 do not divide by context_parallel 3"),
        (LLAMA, {"offload": "cloud"}, "offload is none, optimizer or all"),
        (LLAMA, {"offload": "optimizer", "gpu_count": 8}, "offload with sharding zero3 in transformers is none or all"),
        (LLAMA, {"sharding": "tp", "tensor_parallel": 2, "gpu_count": 8}, "sharding is then ddp, zero1, zero2 or zero3"),
        (LLAMA, {"engine_id": "megatron", "sharding": "zero3", "gpu_count": 8}, "no source in the book says how megatron trains with sharding zero3"),
        (LLAMA, {"phase_id": "inference", "engine_id": "megatron"}, "megatron only trains"),
        (LLAMA, {"phase_id": "inference", "context_parallel": 2}, "for training"),
    ],
)  # fmt: skip
def test_impossible_degrees_say_why(footprint_of, model, scenario, reason):
    row = footprint_of(model, **({"phase_id": "full-finetune"} | scenario))
    assert reason in row["unknown_reason"]
    assert row["total_bytes"] is None
    assert row["host_bytes"] is None


@pytest.mark.full
@pytest.mark.parametrize("optimizer", ["adamw", "adamw-foreach"])
@pytest.mark.parametrize("tokens", [64, 4096])
def test_buckets_of_ddp_stand_beside_the_gradients_at_every_moment(footprints, optimizer, tokens):
    """tests/oracle/ddp_buckets.csv: by default real DistributedDataParallel holds the gradients' bytes once more, whatever runs."""
    file = Path(__file__).parents[1] / "oracle" / "ddp_buckets.csv"
    counted = [
        row for row in csv.DictReader(file.read_text().splitlines()) if row["gradient_as_bucket_view"] == "false"
    ]
    assert len(counted) > 4
    assert all(row["beside_bytes"] == row["parameter_bytes"] for row in counted)
    step = {
        "model_id": LLAMA, "phase_id": "full-finetune", "dtype_id": "bf16", "precision": "pure", "optimizer_id": optimizer,
        "context_tokens": tokens,
    }  # fmt: skip
    alone, both = footprints([step | {"gpu_count": n, "sharding": s} for n, s in ((1, "none"), (2, "ddp"))])
    peaks = [row["total_bytes"] - row["overhead_bytes"] for row in (alone, both)]
    assert peaks[1] - peaks[0] == both["gradients_bytes"]


@pytest.mark.full
def test_two_cards_talk_through_smaller_buffers_than_many(book, footprints):
    """NCCL's buffers by the number of GPUs (constants nccl_*): nothing else outside the tensors grows with it."""
    constant = dict(book.execute("SELECT constant_id, value FROM constant").fetchall())
    asked = {"model_id": LLAMA, "dtype_id": "gguf-q4_k_m", "context_tokens": 4096}
    (one,) = (row["overhead_bytes"] for row in footprints([asked]))
    shared = [asked | {"sharding": "tp", "gpu_count": count} for count in (2, 4, 8)]
    two, four, eight = (row["overhead_bytes"] for row in footprints(shared))
    assert two - one == constant["nccl_two_gpus_bytes"]
    assert four - one == eight - one == constant["nccl_many_gpus_bytes"]


@pytest.mark.full
@pytest.mark.parametrize(("sharding", "buffers"), [("zero2", 2), ("zero3", 1)])
def test_deepspeed_sets_its_buckets_aside_whole_for_adapters_too(footprint_of, sharding, buffers):
    """setup_buckets of its stage 1 and 2, and stage 3, take reduce_bucket_size elements in the precision of the gradients."""
    asked = {
        "phase_id": "lora",
        "engine_id": "deepspeed",
        "sharding": sharding,
        "gpu_count": 4,
        "checkpointing": "full",
    }
    usual, more = (footprint_of(LLAMA, **asked, reduce_bucket_elements=n)["activations_bytes"] for n in (None, 10**9))
    assert more - usual == buffers * 2 * (10**9 - 500_000_000)


@pytest.mark.full
def test_autocast_copies_nothing_where_weights_come_in_16_bits(footprint_of):
    """Accelerate's FSDP2 gathers in bf16 (MixedPrecisionPolicy) and DeepSpeed casts the weights: bf16: true is then mixed, from fp32 weights too.
    Steps of FSDP2 counted with and without autocast are equal to the byte."""
    step = {"phase_id": "full-finetune", "checkpointing": "full", "gpu_count": 8}
    for engine, sharding in (("transformers", "zero3"), ("deepspeed", "zero2"), ("deepspeed", "zero3")):
        way = step | {"engine_id": engine, "sharding": sharding}
        ways = (("mixed", "bf16"), ("amp", "bf16"), ("amp", "fp32"))
        mixed, amp, wide = (footprint_of(LLAMA, **way, precision=said, dtype_id=dtype) for said, dtype in ways)
        assert mixed == amp == wide
    # where each card holds all weights itself autocast has its copies
    both = [footprint_of(LLAMA, **step, sharding="ddp", precision=one, dtype_id="bf16") for one in ("mixed", "amp")]
    assert both[1]["weights_bytes"] == 2 * both[0]["weights_bytes"]


@pytest.mark.full
def test_deepspeed_on_one_card_keeps_what_it_keeps_on_several(footprints):
    """stage_1_and_2.py: fp32 masters, two states, weights and gradients in 16 bits, and an fp32 copy of the gradients while it steps."""
    step = {"model_id": LLAMA, "phase_id": "full-finetune", "dtype_id": "bf16", "checkpointing": "full"}
    step |= {"engine_id": "deepspeed", "context_tokens": 512}
    unsaid, *stages = footprints([step | {"sharding": way} for way in ("none", "zero1", "zero2", "zero3")])
    assert [row["sharding"] for row in (unsaid, *stages)] == ["none", "zero1", "zero2", "zero3"]
    parameters = stages[0]["weights_bytes"] / 2
    for row in (unsaid, *stages[:2]):
        # (buckets are let go before the step)
        assert row["total_bytes"] - row["overhead_bytes"] == pytest.approx(20 * parameters, rel=0.001)
        assert row["peak_moment"] == "optimizer"
    # ZeRO-3 steps by groups of 1e9 elements
    assert stages[2]["total_bytes"] < stages[1]["total_bytes"] - 3 * parameters
    two, three = footprints(
        [step | {"sharding": s, "offload": o} for s, o in (("zero2", "optimizer"), ("zero3", "all"))]
    )
    assert two["optimizer_bytes"] == three["weights_bytes"] == 0 < two["weights_bytes"]
    # masters, states, gradients in fp32, and the buffer in which masters go back to the card
    assert two["host_bytes"] == pytest.approx(18 * parameters, rel=1e-6)


@pytest.mark.full
def test_deepspeed_keeps_masters_of_fp32_weights_too(footprints):
    step = {"model_id": LLAMA, "phase_id": "full-finetune", "dtype_id": "fp32", "gpu_count": 8, "sharding": "zero3"}
    deepspeed, fsdp = footprints([step | {"engine_id": engine} for engine in ("deepspeed", "transformers")])
    assert deepspeed["optimizer_bytes"] == pytest.approx(1.5 * fsdp["optimizer_bytes"], rel=1e-6)


@pytest.mark.full
def test_a_trainer_is_asked_with_deepspeed_by_its_engine(footprint_of):
    asked = {"phase_id": "full-finetune", "engine_id": "deepspeed", "context_tokens": 2048}
    alone = footprint_of(LLAMA, **asked, checkpointing="full")
    swift = footprint_of(LLAMA, **asked, program="ms-swift")
    assert (swift["precision"], swift["optimizer_bytes"]) == ("mixed", alone["optimizer_bytes"])
    # whoever says the stage alone means DeepSpeed, on one card too
    said = footprint_of(LLAMA, phase_id="full-finetune", program="transformers", sharding="zero2", context_tokens=2048)
    assert (said["sharding"], said["precision"]) == ("zero2", "mixed")
    refused = footprint_of(LLAMA, **asked, program="torchtune")
    assert refused["total_bytes"] is None
    assert refused["unknown_reason"] == (
        "no source in the book says how torchtune trains with DeepSpeed; it is known of axolotl, llama-factory, ms-swift, transformers, trl"
    )


def test_experts_of_megatron_lie_over_tensor_ranks_too(footprint_of):
    """ms-swift's example (mcore_bridge/full/moe.sh): TP 4, PP 2 and EP 4 on 8 GPUs, 76 GiB each. A GPU holds a fourth of the experts of
    a stage either way."""
    step = {"phase_id": "full-finetune", "engine_id": "megatron", "checkpointing": "full", "context_tokens": 8192}
    step |= {"gpu_count": 8, "tensor_parallel": 4, "pipeline_parallel": 2}
    folded, divided = footprint_of(MOE, **step, expert_parallel=4), footprint_of(MOE, **step)
    assert folded["total_bytes"] / 2**30 == pytest.approx(76, rel=0.08)
    assert folded["weights_bytes"] == pytest.approx(divided["weights_bytes"], rel=1e-6)
    assert "expert_tensor_parallel_size 1" in folded["holds_for"] and divided["holds_for"] == "Megatron-LM 2025-03"
    wide = footprint_of(MOE, **step | {"pipeline_parallel": 1}, expert_parallel=8, sharding="zero1")
    assert wide["weights_bytes"] == pytest.approx(
        footprint_of(MOE, **step | {"pipeline_parallel": 1}, expert_parallel=2, sharding="zero1")["weights_bytes"],
        rel=1e-6,
    ), "8 over 2 GPUs that share the data and 4 of tensors, as 2 × 4"
    assert "nor these" in footprint_of(MOE, **step, expert_parallel=8)["unknown_reason"]
