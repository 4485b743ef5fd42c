"""How many GPUs a training takes: truths that everybody who trained at that size knows."""

from __future__ import annotations

import pytest

from tests.formulas.at_once import one_each

LARGE, LARGEST = "meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-405B"


@pytest.fixture
def plans_for(book):
    def ask(gpu_id, model_id, **scenario):
        named = "".join(f", {name} := ${name}" for name in scenario)
        result = book.execute(
            f"FROM plans_for($gpu_id, $model_id{named})", {"gpu_id": gpu_id, "model_id": model_id, **scenario}
        )
        columns = [column[0] for column in result.description]
        return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]

    return ask


@pytest.mark.full
def test_a_full_fine_tuning_of_70b_needs_more_than_one_node(plans_for):
    plans = plans_for("h100-sxm", LARGE)
    best = plans[0]
    assert best["verdict"] == "multi-gpu"
    assert 16 <= best["gpu_count"] <= 32
    assert min(plan["gpu_count"] for plan in plans) >= 16
    assert [plan["plan_rank"] for plan in plans] == list(range(1, len(plans) + 1))
    assert best["total_bytes"] * (1 + best["error_band"]) <= best["capacity_bytes"]


def test_offload_brings_70b_to_one_node(footprint_of, book):
    row = footprint_of(
        LARGE, phase_id="full-finetune", checkpointing="full", engine_id="deepspeed", offload="optimizer", gpu_count=8
    )
    assert row["total_bytes"] * (1 + row["error_band"]) < 80e9
    # 16 bytes per parameter stay with the host
    assert 8 * row["host_bytes"] == pytest.approx(16 * 70.55e9, rel=0.01)


@pytest.mark.full
def test_the_plan_of_the_llama_3_paper_fits_its_cards(footprint_of):
    """Tensor 8 × pipeline 16 × data 64 and 128 on H100 of 80 GB, 8,192 tokens. The paper freed what it could of 16 micro-batches in flight:
    here they are either recomputed, or half as many."""
    for saved in ({"checkpointing": "full"}, {"micro_batches_in_flight": 8}):
        for gpus in (8192, 16384):
            row = footprint_of(
                LARGEST, phase_id="pretrain", engine_id="megatron", context_tokens=8192, tensor_parallel=8,
                pipeline_parallel=16, gpu_count=gpus, **saved,
            )  # fmt: skip
            assert row["total_bytes"] < 80e9


def test_one_gpu_is_enough_where_it_is(plans_for):
    best = plans_for("rtx-4090", "Qwen/Qwen3-0.6B")[0]
    assert (best["gpu_count"], best["verdict"], best["sharding"]) == (1, "fits", "none")


@pytest.mark.full
def test_every_sensible_way_is_searched_and_named(plans_for):
    """Recomputing is tried where nobody says, and taken only where it saves a card; each way to share is named with it."""
    plans = plans_for("rtx-4090", "Qwen/Qwen3-8B", phase_id="lora")
    assert (plans[0]["gpu_count"], plans[0]["checkpointing"]) == (2, "full")
    assert not any(p["gpu_count"] <= 2 for p in plans if (p["sharding"], p["checkpointing"]) == ("zero3", "none"))
    assert {"zero3", "tp"} <= {plan["sharding"] for plan in plans}
    (asked,) = {
        plan["checkpointing"] for plan in plans_for("rtx-4090", "Qwen/Qwen3-8B", phase_id="lora", checkpointing="none")
    }
    assert asked == "none"
    small = plans_for("rtx-4090", "Qwen/Qwen3-0.6B")
    assert small[0]["checkpointing"] == "none", "nothing is computed twice where it fits as it is"
    assert {"ddp", "zero1", "zero2", "zero3"} <= {plan["sharding"] for plan in small}


@pytest.mark.full
def test_a_way_that_is_tight_is_told_on_the_cards_that_it_fits_on(plans_for):
    """Stages take the total and its error band on 4 cards, and ZeRO-3 not before them: each card holds the scales of all that bitsandbytes packs,
    and it is not divided by tensors."""
    plans = plans_for("rtx-4090", "Qwen/Qwen3-32B", phase_id="qlora", engine_id="transformers", checkpointing="full")
    best = plans[0]
    assert (best["gpu_count"], best["verdict"], best["sharding"], best["pipeline_parallel"]) == (
        4,
        "multi-gpu",
        "pp",
        4,
    )
    assert {plan["tensor_parallel"] for plan in plans} == {1}


SMALL = {"model_id": "Qwen/Qwen3-0.6B"}


@pytest.fixture(scope="module")
def without(book):
    """The one row of each case that has no plan, by its name."""
    cases = {
        "a card that does not run it": SMALL | {"gpu_id": "t4", "dtype_id": "bf16"},
        "too large": {"gpu_id": "gtx-1060-6gb", "model_id": LARGEST, "dtype_id": "fp16", "attention": "eager"},
        "no such card": SMALL | {"gpu_id": "abacus"},
        "a format that is not trained": SMALL | {"gpu_id": "h100-sxm", "dtype_id": "nf4"},
    }
    return one_each(book, "plans_for", ("gpu_id", "model_id"), cases)


def test_a_card_that_does_not_run_the_format_has_no_plan(without):
    row = without["a card that does not run it"]
    assert row["verdict"] is None
    assert "compute capability" in row["unknown_reason"]


def test_nothing_fits_and_no_such_card_are_told(without):
    assert without["too large"]["verdict"] == "no"
    assert without["no such card"]["unknown_reason"].startswith("no such GPU: abacus (nearest: ")
    untrainable = without["a format that is not trained"]
    assert untrainable["verdict"] is None
    assert "gradients cannot flow" in untrainable["unknown_reason"]
