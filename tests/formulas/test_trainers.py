"""What trainers do by themselves: their recipes, what of experts they adapt, how they share weights."""

import pytest

from tests.formulas.program_models import MIXTURE, MODEL, OLDER, SHARED


def test_training_programs_have_their_own_recipe(footprint_of):
    row = footprint_of(MODEL, program="llama factory", phase_id="lora")
    said = dict(checkpointing="full", precision="mixed", lora_rank=8, lora_targets="all-linear", sequences=8)
    assert {name: row[name] for name in said} == said
    assert row["total_bytes"] == footprint_of(MODEL, phase_id="lora", context_tokens=2048, **said)["total_bytes"]
    plain = footprint_of(MODEL, program="trl", program_version="1.0", phase_id="full-finetune")
    assert (plain["dtype_id"], plain["precision"], plain["sequences"]) == ("fp32", "amp", 8) and plain["total_bytes"]


@pytest.mark.full
@pytest.mark.parametrize(("program", "version"), [("ms-swift", "4.6"), ("llama-factory", "0.9.5")])
def test_who_names_linear_layers_adapts_no_fused_experts(footprint_of, program, version):
    """Both resolve "all-linear" themselves, into names of modules, among which experts that are one tensor are not. ms-swift had no answer for its
    dropout, which peft's adapters of experts do not take, and LLaMA-Factory 6 GiB too many."""
    said = dict(program=program, program_version=version, phase_id="lora", context_tokens=2048)
    row = footprint_of(MIXTURE, **said)
    assert row["lora_targets"] == "linear-layers" and row["holds_for"].endswith(
        ", Transformers 5" + ", peft 0.19 or later" * (program == "ms-swift")
    )
    assert row["total_bytes"] == footprint_of(MIXTURE, **said, lora_targets="attention")["total_bytes"]
    assert footprint_of(MODEL, **said)["lora_targets"] == "all-linear"  # without experts there is nothing to tell apart


@pytest.mark.full
def test_names_of_shared_experts_are_taken_for_routed_ones_since_peft_0_19(footprint_of):
    said = dict(program="ms-swift", phase_id="lora", context_tokens=2048)
    refused = footprint_of(SHARED, **said)
    assert (
        refused["total_bytes"] is None
        and "stops with an error. With a dropout of 0 it trains" in refused["unknown_reason"]
    )
    routed = footprint_of(SHARED, **said, lora_dropout=0)["adapters_bytes"]
    older = footprint_of(SHARED, **said, program_version="4.1")  # with peft 0.18
    named = footprint_of(SHARED, phase_id="lora", lora_targets="linear-layers", lora_rank=8)
    attention = footprint_of(SHARED, phase_id="lora", lora_targets="attention", lora_rank=8)
    assert (
        routed > 20 * older["adapters_bytes"]
        and older["adapters_bytes"] == named["adapters_bytes"] > attention["adapters_bytes"]
    )


@pytest.mark.full
@pytest.mark.parametrize(
    "model", ["Qwen/Qwen3-VL-30B-A3B-Instruct", "google/gemma-4-26B-A4B-it", "microsoft/Phi-3.5-MoE-instruct"]
)
def test_peft_adapts_experts_of_the_classes_that_it_knows_alone(footprint_of, model):
    """Of the others all-linear is their linear layers (peft 0.21.2): told with experts' adapters, gemma-4-26B took 8 GiB too many."""
    rows = [footprint_of(model, phase_id="lora", lora_targets=each) for each in ("all-linear", "linear-layers")]
    assert rows[0]["total_bytes"] == rows[1]["total_bytes"]
    known = [
        footprint_of(MIXTURE, phase_id="lora", lora_targets=each)["adapters_bytes"]
        for each in ("all-linear", "linear-layers")
    ]
    assert known[0] > 20 * known[1]


@pytest.mark.full
@pytest.mark.parametrize("phase", ["lora", "qlora"])
def test_axolotls_own_kernels_are_counted_where_every_layer_is_recomputed(footprint_of, phase):
    """Its examples say gradient_checkpointing: true, and one layer at a time is all that its kernels change then."""
    said = dict(program="axolotl", phase_id=phase, lora_rank=16, lora_targets="all-linear")
    usual = footprint_of(MODEL, **said)
    assert usual["checkpointing"] == "full" and usual["total_bytes"] is not None
    assert usual["holds_for"].startswith("Axolotl 0.19 with gradient_checkpointing: true")
    kept = footprint_of(MODEL, checkpointing="none", **said)
    assert kept["total_bytes"] is None and kept["unknown_reason"].endswith("recomputed it is: checkpointing := full")
    # an adapter that its kernels gathered stays on every card
    parts = footprint_of(MODEL, gpu_count=2, **said)
    assert parts["total_bytes"] is None and parts["unknown_reason"].endswith("each GPU it is: sharding := zero2")
    whole = footprint_of(MODEL, gpu_count=2, sharding="ddp", **said)
    assert whole["total_bytes"] is not None


def test_axolotl_prepares_fsdp2_itself_and_makes_no_fp32_copies(footprint_of):
    """Accelerate's preparation, in whose place it puts its own, casts what is trained to fp32: 16 bytes of a parameter where 8 are held."""
    said = dict(program="axolotl", phase_id="full-finetune", context_tokens=4096, gpu_count=8)
    plain, zero = (
        footprint_of(MODEL, **said, sharding="zero3"),
        footprint_of(MODEL, **said, sharding="zero3", engine_id="deepspeed"),
    )
    assert (plain["precision"], zero["precision"]) == ("pure", "mixed")
    assert footprint_of(MODEL, **said, sharding="zero2")["precision"] == "mixed"  # which is DeepSpeed's
    assert footprint_of(MODEL, **said | {"program": "ms-swift"}, sharding="zero3")["precision"] == "mixed"


@pytest.mark.some(1)
@pytest.mark.parametrize("way", [("zero2", "deepspeed"), ("zero3", "deepspeed"), ("zero2", None), ("zero3", None)])
def test_trl_multiplies_its_head_in_tiles_on_several_cards_too(footprint_of, way):
    """tests/oracle/sharded_peaks.csv has its steps under FSDP2; DeepSpeed casts the model, and gathers the head for the tiles."""
    shared = {"program": "trl", "sharding": way[0], "engine_id": way[1], "gpu_count": 8}
    whole = footprint_of(MODEL, phase_id="full-finetune", program_version="1.2", **shared)
    tiles = footprint_of(MODEL, phase_id="full-finetune", **shared)
    assert (tiles["loss"], tiles["precision"]) == ("tiled", "mixed")
    assert (
        tiles["activations_bytes"] < 0.7 * whole["activations_bytes"]
        and tiles["optimizer_bytes"] == whole["optimizer_bytes"]
    )
    lora = footprint_of(MODEL, phase_id="lora", **shared)
    # TRL loads a base in fp32: FSDP2 keeps the shards so, DeepSpeed casts all of it
    parameters = footprint_of(MODEL, dtype_id="bf16")["weights_bytes"] / 2
    held = {"zero2": 2 * parameters, "zero3": parameters * (2 if way[1] else 4) / 8}[way[0]]
    assert lora["weights_bytes"] == pytest.approx(held, rel=0.001)
    between = footprint_of(MODEL, phase_id="lora", program_version="1.10", **shared)
    assert between["total_bytes"] is None and "(program_version := 1.16) and up to 1.6" in between["unknown_reason"]
    # by parts of 256 tokens over a head in 16 bits: the logits of a part in place of a tile's
    parts = footprint_of(MODEL, phase_id="full-finetune", program_version="1.14", **shared)
    assert parts["loss"] == "recomputed" and 0.97 < parts["total_bytes"] / tiles["total_bytes"] < 1.2
    liger = footprint_of(MODEL, phase_id="lora", program_version="1.10", loss="fused", **shared)
    # (1.5 logs a copy of the logits beside the loss of 1.2)
    logged = footprint_of(MODEL, phase_id="full-finetune", program_version="1.5", **shared)
    assert whole["total_bytes"] <= logged["total_bytes"] < 1.5 * whole["total_bytes"] and liger["total_bytes"]


def test_routed_experts_in_megatron_bridge_share_an_adapter(footprint_of):
    """Its pull request 4581: 29.9 GB of each of four cards; one adapter for each expert, multiplied out, would be 133 GiB."""
    shared = {"gpu_count": 4, "tensor_parallel": 4, "expert_parallel": 4, "sharding": "zero1", "context_tokens": 4096}
    row = footprint_of("Qwen/Qwen3-30B-A3B", program="megatron-bridge", phase_id="lora", sequences=1, **shared)
    assert (row["engine_id"], row["lora_rank"]) == ("megatron", 32)
    assert 29.9e9 / 2**30 <= row["total_bytes"] / 2**30 < 32
    attention = footprint_of(
        "Qwen/Qwen3-30B-A3B", engine_id="megatron", phase_id="lora", lora_rank=32, lora_targets="attention", **shared
    )
    # hidden and twice the width of gate and up, width and hidden of the way down, of 48 layers
    assert row["adapters_bytes"] - attention["adapters_bytes"] == 4 * 32 * 48 * (2048 + 2 * 768 + 768 + 2048)


@pytest.mark.full
def test_a_trainer_loads_what_its_transformers_loads(footprints):
    """LLaMA-Factory 0.9.3 allows Transformers up to 4.52.4, 0.9.5 up to 5.6.0. torchtune has models of its own, and no Qwen3 among them."""
    asked = [
        {"model_id": "Qwen/Qwen3.5-27B", "program": "llama-factory", "program_version": version, "phase_id": "lora"}
        for version in ("0.9.3", "0.9.5", None)
    ]
    earlier, later, newest = footprints(asked)
    assert earlier["total_bytes"] is None and "its class qwen3_5 is known from 0.9.5 on" in earlier["unknown_reason"]
    assert later["total_bytes"] == newest["total_bytes"] > 0 and later["holds_for"] == "LLaMA-Factory 0.9.5"
    own = [{"model_id": model, "program": "torchtune", "phase_id": "full-finetune"} for model in (MODEL, OLDER)]
    strange, known = footprints(own)
    assert strange["total_bytes"] is None and "qwen3 is known in no release that was read" in strange["unknown_reason"]
    assert known["total_bytes"] > 0 and known["holds_for"] == "torchtune 0.5 to 0.6"


def test_the_training_of_an_embedding_model_says_that_logits_are_counted(footprint_of):
    """Its class can write, and a trainer of embeddings works out no logits."""
    asked = footprint_of(
        "Qwen/Qwen3-Embedding-4B", phase_id="lora", program="ms-swift", lora_rank=8, context_tokens=512, sequences=8
    )
    assert asked["holds_for"].endswith(", trained to write (trained to embed it makes no logits and takes less)")
    assert "trained to write" not in footprint_of("Qwen/Qwen3-Embedding-4B")["holds_for"]
    assert "trained to write" not in footprint_of(MODEL, phase_id="lora", program="ms-swift", lora_rank=8)["holds_for"]
    assert "trained to write" not in footprint_of("BAAI/bge-m3", phase_id="lora")["holds_for"]  # (an encoder)
