"""Programs that people run: a question that names one gets its defaults and its engine, for the versions that were read, or a reason."""

import pytest

from pipeline.book.facts import read_facts
from pipeline.book.schema import ENUMS

MODEL = "Qwen/Qwen3-8B"
OLDER = "Qwen/Qwen2.5-7B-Instruct"  # every version that was read has its class


@pytest.mark.full
def test_what_a_question_leaves_unsaid_is_the_programs_default(footprint_of):
    asked = footprint_of(MODEL, program="ollama")
    said = footprint_of(MODEL, dtype_id="gguf-q4_k_m", engine_id="llama.cpp", context_tokens=4096)
    # (and what it leaves free of the card, for which it moves layers to the CPU)
    assert asked["total_bytes"] == said["total_bytes"] + 1024 * 2**20 and asked["holds_for"].startswith("Ollama 0.31.2")
    assert (asked["program"], asked["engine_id"], asked["context_tokens"]) == ("ollama", "llama.cpp", 4096)
    more = footprint_of(MODEL, program="Ollama", context_tokens=9000, dtype_id="gguf-q8_0")
    assert (more["context_tokens"], more["dtype_id"], more["engine_id"]) == (9000, "gguf-q8_0", "llama.cpp")


@pytest.mark.full
def test_a_context_that_depends_on_the_card_is_said_to(footprint_of, book):
    """A macro that has no card tells the least that Ollama takes, and that a larger card takes more."""
    asked = footprint_of(MODEL, program="ollama")["holds_for"]
    assert "at 4096 tokens, its own default on GPUs of less than 23 GiB together" in asked
    assert "32768 from 23 GiB on, 262144 from 47 GiB on" in asked
    assert footprint_of(MODEL, program="ollama", context_tokens=4096)["holds_for"] == "Ollama 0.31.2 to 0.33"
    (on_card,) = book.execute(f"SELECT holds_for FROM fits_on('rtx-4090', '{MODEL}', program := 'ollama')").fetchall()[
        0
    ]
    assert on_card == asked


@pytest.mark.parametrize(
    ("version", "gib", "tokens"),
    [
        (None, 11.6, 4096), (None, 22.99, 4096), (None, 23, 32768), ("0.30", 46.99, 32768), ("0.33.1", 47, 262144),
        ("0.15.5", 80, 262144), ("0.15.4", 80, 4096), ("0.12", 24, 4096),
    ],
)  # fmt: skip
def test_own_context_of_a_program_by_version_and_memory(book, version, gib, tokens):
    query = "SELECT context_tokens FROM own_context_of('Ollama', version := $1, gpu_bytes := $2) WHERE is_taken"
    assert book.execute(query, [version, int(gib * 2**30)]).fetchall() == [(tokens,)]


def test_no_other_version_and_no_other_program_has_that_context(book):
    for program, version in (("ollama", "0.40"), ("ollama", "0.11"), ("vllm", None), ("nobody", None)):
        assert not book.execute("FROM own_context_of($1, version := $2, gpu_bytes := 1)", [program, version]).fetchall()


def test_the_least_context_by_card_is_that_of_the_program(book):
    rows = """SELECT step.context_tokens, program.context_tokens FROM program_context AS step JOIN program USING (program_id)
        WHERE least_gib = 0 AND version_number(program.min_version) >= version_number(step.min_version)
            AND version_number(program.max_version) < version_after(step.max_version)"""
    found = book.execute(rows).fetchall()
    assert found and all(least == said for least, said in found)


@pytest.mark.full
def test_a_server_that_takes_all_that_the_model_reads_is_answered_so(footprint_of):
    assert footprint_of(MODEL, program="vllm")["context_tokens"] == 40960
    assert footprint_of(MODEL, program="vllm", context_tokens=2048)["context_tokens"] == 2048


def test_a_default_is_never_more_than_the_model_reads(footprint_of, book):
    (short,) = book.execute(
        "SELECT model_id FROM shape WHERE max_context_tokens < 4096 AND layer_count IS NOT NULL ORDER BY 1 LIMIT 1"
    ).fetchall()
    (most,) = book.execute("SELECT max_context_tokens FROM shape WHERE model_id = $1", short).fetchall()
    assert footprint_of(short[0], program="ollama")["context_tokens"] == most[0]


def test_training_programs_have_their_own_recipe(footprint_of):
    row = footprint_of(MODEL, program="llama factory", phase_id="lora")
    said = dict(checkpointing="full", precision="mixed", lora_rank=8, lora_targets="all-linear", sequences=8)
    assert {name: row[name] for name in said} == said
    assert row["total_bytes"] == footprint_of(MODEL, phase_id="lora", context_tokens=2048, **said)["total_bytes"]
    plain = footprint_of(MODEL, program="trl", program_version="1.0", phase_id="full-finetune")
    assert (plain["dtype_id"], plain["precision"], plain["sequences"]) == ("fp32", "amp", 8) and plain["total_bytes"]


MIXTURE = "Qwen/Qwen3-30B-A3B-Instruct-2507"
SHARED = "zai-org/GLM-4.5-Air"  # beside its routed experts it has a shared one, and a dense layer


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
@pytest.mark.parametrize("phase", ["lora", "full-finetune"])
def test_a_trainer_whose_rows_are_as_long_as_the_data_is_not_told_at_all_that_the_model_reads(footprint_of, phase):
    """ms-swift leaves out rows from max_length on, which is the model's own context: Qwen3-30B-A3B "needed" 3,930 GiB."""
    assert (
        footprint_of(
            MIXTURE, program="ms-swift", phase_id=phase, lora_targets="attention" if phase == "lora" else None
        )["context_tokens"]
        == 2048
    )


def test_who_names_no_version_gets_the_newest_that_has_an_answer_and_is_told_which(footprint_of):
    """vLLM 0.9.0 is known to differ, and not by how much: what is answered says that it is not of it. Of TRL each release is known."""
    trl = footprint_of(MODEL, program="trl", phase_id="lora")
    assert trl["holds_for"] == "TRL 1.15 to 1.16" and trl["lora_dropout"] == 0.05 and trl["total_bytes"]
    older = footprint_of(MODEL, program="trl", program_version="1.2", phase_id="lora")
    assert older["holds_for"] == "TRL 0.24 to 1.2" and trl["total_bytes"] < 0.8 * older["total_bytes"]
    between = footprint_of(MODEL, program="trl", program_version="1.10", phase_id="lora")
    assert (
        between["holds_for"] == "TRL 1.7 to 1.12" and trl["total_bytes"] < between["total_bytes"] < older["total_bytes"]
    )
    mixture = footprint_of("Qwen/Qwen3-30B-A3B", program="trl", phase_id="lora")
    assert mixture["total_bytes"] and mixture["holds_for"] == "TRL 1.15 to 1.16, Transformers 5.16 or later"
    assert footprint_of(MODEL, program="vllm")["holds_for"] == "vLLM 0.20 to 0.33"
    earlier = footprint_of(MODEL, program="vllm", program_version="0.9.1")
    assert earlier["total_bytes"] is None and "first engine" in earlier["unknown_reason"]


@pytest.mark.full
def test_a_program_whose_engine_depends_on_the_card_is_told_by_the_card(book, footprint_of):
    """vLLM 0.9.2 to 0.10.1 asks for compute capability 8.0 before it starts its second engine (_is_v1_supported_oracle); 0.10.2 does not."""
    said = "dtype_id := 'fp16', context_tokens := 4096, program := 'vLLM', program_version := $1"
    asked = f"SELECT verdict, total_bytes, unknown_reason FROM fits_on($2, '{OLDER}', {said})"
    later = footprint_of(OLDER, program="vllm", program_version="0.11", dtype_id="fp16", context_tokens=4096)
    (told,) = book.execute(asked, ["0.10.1.1", "a100-pcie-40gb"]).fetchall()
    assert told == ("fits", later["total_bytes"], None)
    for card in ("quadro-rtx-6000", "mi300x"):  # Turing, and what has no such number
        (told,) = book.execute(asked, ["0.9.2", card]).fetchall()
        assert told[0] is None and "on GPUs of compute capability 8.0 and later alone" in told[2]
    assert book.execute(asked, ["0.10.2", "quadro-rtx-6000"]).fetchall()[0][0] == "fits"
    reach = f"SELECT max_context_tokens, unknown_reason FROM limits_on('quadro-rtx-6000', '{OLDER}', {said})"
    assert book.execute(reach, ["0.10"]).fetchall()[0][0] is None and book.execute(reach, ["0.10.2"]).fetchall()[0][0]
    alone = footprint_of(OLDER, program="vllm", program_version="0.10", dtype_id="fp16", context_tokens=4096)
    assert alone["holds_for"].endswith("on GPUs of compute capability 8.0 and later")


@pytest.mark.parametrize(
    ("model", "said", "why"),
    [
        ("Qwen/Qwen3-8B", {"kv_dtype_id": "fp8"}, "a cache in kv_dtype_id := fp8"),
        ("Qwen/Qwen3-30B-A3B", {"gpu_count": 2, "data_parallel": 2, "expert_parallel": 2}, "data_parallel"),
        ("deepseek-ai/DeepSeek-V2-Lite", {}, "latent attention"),
        ("google/gemma-3-27b-it", {}, "models that see or hear"),
        ("ibm-granite/granite-4.0-h-tiny", {}, "recurrent layers"),
        ("openai/gpt-oss-120b", {"gpu_count": 2, "pipeline_parallel": 2}, "pipeline_parallel of layers with windows"),
    ],
)  # fmt: skip
def test_what_was_not_read_of_a_version_is_not_told_as_of_the_next(footprint_of, model, said, why):
    row = footprint_of(model, program="vllm", program_version="0.10.1", context_tokens=4096, **said)
    assert row["total_bytes"] is None and f"is not described for {why}" in row["unknown_reason"], row["unknown_reason"]


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
def test_unsloth_packs_routed_experts_and_adapts_them(footprint_of):
    """moe_utils_bnb4bit.py of unsloth_zoo, and the experts' parameters that the usual names of targets reach."""
    row = footprint_of("Qwen/Qwen3-30B-A3B", program="unsloth", phase_id="qlora")
    assert (row["dtype_id"], row["lora_targets"]) == ("nf4-double-experts", "attention-experts")
    assert row["weights_bytes"] < 17e9
    plain = footprint_of(
        "Qwen/Qwen3-30B-A3B", program="unsloth", phase_id="qlora", dtype_id="nf4-double", lora_targets="attention"
    )
    assert plain["weights_bytes"] > 59e9


@pytest.mark.full
def test_unsloth_is_its_own_engine_from_the_version_that_was_read(footprint_of):
    row = footprint_of(MODEL, program="unsloth", phase_id="qlora")
    assert (row["engine_id"], row["dtype_id"], row["loss"]) == ("unsloth", "nf4-double", "fused")
    said = dict(phase_id="qlora", dtype_id="nf4-double", checkpointing="full", precision="amp", context_tokens=2048)
    assert 0 < row["total_bytes"] < footprint_of(MODEL, **said)["total_bytes"] and row["host_bytes"] > 0


MEMORY_DECIDES = {"model_id": "meta-llama/Llama-3.1-8B-Instruct", "program": "unsloth", "phase_id": "qlora"}


def test_unsloth_before_2026_10_needs_no_less_than_after(footprint_of):
    """Chunks of half of what is free: room for all tokens' logits and their gradients in 16 bits, or, where the chunks are rounded up, for what
    the second step holds beyond the first."""
    said = MEMORY_DECIDES | {"sequences": 2, "optimizer_id": "adamw-8bit"}
    newest = footprint_of(**said, program_version="2026.10")
    rounded_up = footprint_of(**said, program_version="2026.8")
    at_once = footprint_of(**said, program_version="2025.12.8")
    assert newest["total_bytes"] < rounded_up["total_bytes"] < at_once["total_bytes"]
    assert at_once["activations_bytes"] >= 2 * 2 * 2 * 2048 * 128256
    # what it then holds more, at most: gradients and two states of the adapters in fp32, and seven hidden states
    more = rounded_up["total_bytes"] - newest["total_bytes"]
    assert more <= 3 * rounded_up["adapters_bytes"] + 7 * 2 * 2 * 2048 * 4096


def test_unsloth_of_july_2025_makes_no_logits_of_many_tokens(footprint_of):
    """Cut cross-entropy from 1,025 tokens on; of fewer the logits, over which their gradient is written."""
    said = MEMORY_DECIDES | {"optimizer_id": "adamw-8bit"}
    held = {
        tokens: footprint_of(**said, program_version="2025.7.5", context_tokens=tokens, sequences=1)[
            "activations_bytes"
        ]
        for tokens in (256, 512, 1024, 1025, 32768)
    }
    assert list(held.values()) == sorted(held.values())
    # what logits of all these tokens would take, in 16 bits and with their gradient
    whole = footprint_of(
        MEMORY_DECIDES["model_id"], phase_id="qlora", engine_id="unsloth", dtype_id="nf4-double", precision="amp",
        checkpointing="full", lora_rank=16, lora_targets="all-linear", context_tokens=32768, loss="full",
    )  # fmt: skip
    assert whole["activations_bytes"] - held[32768] > 2 * 2 * (32768 - 1024) * 128256
    # (of a release whose layers are counted alike)
    by_free = footprint_of(**said, context_tokens=32768, sequences=1, program_version="2026.8")
    assert held[32768] <= by_free["activations_bytes"]


def test_unsloth_of_july_2025_is_read_for_cards_that_its_loss_runs_on(book):
    """Before compute capability 7.5 it makes all logits."""
    asked = "SELECT verdict, unknown_reason FROM fits_on($1, $2, phase_id := 'qlora', program := 'unsloth', program_version := '2025.7')"
    ((verdict, _),) = book.execute(asked, ["t4", MODEL]).fetchall()
    ((older, reason),) = book.execute(asked, ["v100-pcie-16gb", MODEL]).fetchall()
    assert verdict and older is None and "7.5" in reason


def test_a_chunk_that_the_memory_decides_is_never_more_than_its_bound(footprint_of):
    """From 2026.7 on a chunk takes at most 4 GiB, whatever trains."""
    said = MEMORY_DECIDES | {"context_tokens": 131072, "lora_rank": 512}
    more = footprint_of(**said, program_version="2026.9.14")["total_bytes"] - footprint_of(**said)["total_bytes"]
    assert 0 < more < 4 * 2**30


@pytest.mark.parametrize(
    ("version", "asked", "words"),
    [
        ("2026.6", {"context_tokens": 32768}, "one where it would be two"),
        ("2026.6", {"model_id": "google/gemma-2-2b-it"}, "models of type llama, mistral, qwen2, qwen3 alone"),
        ("2026.9", {"model_id": "Qwen/Qwen3-30B-A3B"}, "models of type llama, mistral, qwen2, qwen3 alone"),
        ("2026.9", {"model_id": "Qwen/Qwen3-30B-A3B", "loss": "fused-by-free"}, "qwen2, qwen3 alone"),
        ("2026.9", {"loss": "fused"}, "its own loss alone: loss := fused-by-free"),
        ("2026.9", {"phase_id": "full-finetune"}, "kernels of its own"),
        ("2025.7", {"loss": "fused-at-once"}, "its own loss alone: loss := cut"),
        ("2025.7", {"model_id": "google/gemma-2-2b-it"}, "models of type llama, mistral, qwen2, qwen3 alone"),
        ("2025.8", {}, "is not known (known: 2025.7, 2025.9 to 2026.6, 2026.7 to 2026.9, 2026.10)"),
    ],
)
def test_what_was_not_read_of_unsloth_is_unknown(footprint_of, version, asked, words):
    row = footprint_of(**(MEMORY_DECIDES | asked), program_version=version)
    assert row["total_bytes"] is None and words in row["unknown_reason"]


def test_a_loss_by_free_memory_is_of_unsloth_alone(footprint_of):
    row = footprint_of(MODEL, phase_id="lora", loss="fused-by-free")
    assert row["total_bytes"] is None and "engine_id := unsloth" in row["unknown_reason"]
    capped = footprint_of("google/gemma-2-2b-it", phase_id="lora", engine_id="unsloth", loss="fused-by-free")
    assert capped["total_bytes"] is None and "capped" in capped["unknown_reason"]
    unread = footprint_of("Qwen/Qwen3-30B-A3B", phase_id="lora", engine_id="unsloth", loss="fused-at-once")
    assert unread["total_bytes"] is None and "models of type qwen3_moe" in unread["unknown_reason"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("version", "holds_for"),
    [
        ("0.7.3.post1", "vLLM 0.6.4 to 0.7"),
        ("0.6.4", "vLLM 0.6.4 to 0.7"),
        ("v0.19.1", "vLLM 0.11 to 0.19"),
        ("0.11", "vLLM 0.11 to 0.19"),
        ("0.33.2", "vLLM 0.20 to 0.33"),
        ("0.27", "vLLM 0.20 to 0.33"),
        ("0.28.9", "vLLM 0.20 to 0.33"),
    ],
)
def test_a_version_is_answered_by_what_holds_for_it(footprint_of, version, holds_for):
    assert footprint_of(OLDER, program="vllm", program_version=version)["holds_for"] == holds_for


@pytest.mark.full
def test_a_version_older_than_the_class_of_a_model_has_no_answer(footprints):
    """Nor has one that left it out, or a trainer whose Transformers is older; each says from which version on, or up to which, it is known."""
    cases = {
        (
            MODEL,
            "vllm",
            "0.7.3",
        ): "vLLM 0.7.3 is not known for this model: its class Qwen3ForCausalLM is known from 0.8.4 on",
        (
            MODEL,
            "transformers",
            "4.44",
        ): "Transformers 4.44 is not known for this model: its class qwen3 is known from 4.51 on",
        ("openai/gpt-oss-20b", "vllm", "0.7"): "GptOssForCausalLM is known from 0.10.1 on",
        ("openai/gpt-oss-20b", "transformers", "4.44.2"): "gpt_oss is known from 4.55 on",
        ("google/gemma-4-31B-it", "sglang", "0.5.10"): "is known from 0.5.11 on",
        ("google/gemma-4-31B-it", "vllm", "0.18.1"): "is known from 0.19 on",
        ("deepseek-ai/DeepSeek-V4-Flash", "llama.cpp", "b9900"): "deepseek_v4 is known from b10567 on",
        ("deepseek-ai/DeepSeek-V3.2", "llama.cpp", "b9500"): "deepseek_v32 is known from b10567 on",
        ("Qwen/Qwen3.8-Flash-Next", "llama.cpp", "b9988"): "llama.cpp b9988 is not known for this model",
        # (a build is said with its letter, which people leave out)
        (
            "Qwen/Qwen3.8-Flash-Next",
            "llama.cpp",
            "9900",
        ): "llama.cpp b9900 is not known for this model: its class qwen4_exp is known from b10660",
        ("zai-org/GLM-5.3-Flash", "llama.cpp", "b11000"): "is known from b11312 on",
        ("zai-org/GLM-5.3-Flash", "ollama", "0.32"): "is known in no release that was read",
        ("poolside/Laguna-XS-2.1", "llama.cpp", "b9976"): "laguna is known from b10454 on",
        ("poolside/Laguna-XS-2.1", "ollama", "0.32.3"): "laguna is known from 0.32.15 on",
        ("deepseek-ai/DeepSeek-V4-Flash", "ollama", "0.30"): "deepseek_v4 is known in no release that was read",
        ("baichuan-inc/Baichuan2-7B-Chat", "vllm", "0.31"): "BaichuanForCausalLM is known up to 0.24.0",
    }
    known = {
        (MODEL, "vllm", "0.11"): "vLLM 0.11 to 0.19",
        (MODEL, "vllm", None): "vLLM 0.20 to 0.33",
        ("google/gemma-4-31B-it", "vllm", "0.19.0"): "vLLM 0.19",
        ("baichuan-inc/Baichuan2-7B-Chat", "vllm", None): "vLLM 0.20 to 0.24.0",
        (
            "deepseek-ai/DeepSeek-V4-Flash",
            "llama.cpp",
            None,
        ): "llama.cpp b10567 to b11312, with logits of all tokens (a build that is named may hold fewer)",
        (MODEL, "llama.cpp", "b9900"): "llama.cpp b9701 to b11312",
        (MODEL, "llama.cpp", "b9700"): "llama.cpp b9410 to b9700",
    }
    formats = {"llama.cpp": "gguf-q4_k_m", "ollama": "gguf-q4_k_m"}
    names = ("model_id", "program", "program_version", "dtype_id")
    rows = footprints(
        [dict(zip(names, (*case, formats.get(case[1], "bf16")), strict=True)) for case in (*cases, *known)]
    )
    for case, row in zip((*cases, *known), rows, strict=True):
        if case in cases:
            assert row["total_bytes"] is None and row["holds_for"] is None and cases[case] in row["unknown_reason"]
        else:
            assert row["total_bytes"] and row["holds_for"] == known[case]


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


@pytest.mark.some(1)
@pytest.mark.parametrize("version", ["0.5", "0.6.3", "0.34", "1"])
def test_a_version_that_nobody_read_has_no_answer(footprint_of, version):
    row = footprint_of(MODEL, program="vllm", program_version=version)
    assert row["total_bytes"] is None and row["holds_for"] is None
    assert (
        row["unknown_reason"]
        == f"vLLM {version} is not known (known: 0.6.4 to 0.7, 0.8, 0.9 to 0.9.1, 0.9.2 to 0.10.1, 0.10.2, 0.11 to 0.19, 0.20 to 0.33)"
    )


@pytest.mark.full
def test_which_engine_a_version_starts_by_itself_decides(footprint_of, book):
    """vLLM 0.8.1 did not start a Qwen2.5-32B in 8 bits on two RTX 3090 (vllm-project/vllm issue 17238), which its first engine would have:
    by itself it runs the second, with the logits of 1024 requests."""
    row = footprint_of(OLDER, program="vllm", program_version="0.8.1")
    assert row["total_bytes"] is None and "second engine" in row["unknown_reason"]
    # issue 10517, a Llama-3.1-8B on one RTX 3090 with 0.6.4: 20,000 tokens start, 29,000 do not (the whole prompt is profiled), 35,000 do (a chunk is)
    settings = [
        book.execute(
            "SELECT engine_setting FROM fits_on('rtx-3090', 'meta-llama/Llama-3.1-8B-Instruct', program := 'vllm', "
            "program_version := '0.6.4', context_tokens := $1)",
            [tokens],
        ).fetchall()[0][0]
        for tokens in (20000, 29000, 35000)
    ]
    # (the share takes in the error band, so it is told a little above the 0.9 with which they started)
    assert settings == [f"--gpu-memory-utilization {share}" for share in ("0.92", "0.98", "0.91")]


REFUSED = {
    "a name that nobody has": ({"program": "olama"}, "no such program: olama (nearest: ollama"),
    "a server asked to train": ({"program": "ollama", "phase_id": "qlora"}, "qlora is done by program := "),
    "a trainer asked to serve": (
        {"program": "trl"},
        "TRL has no inference (it has full-finetune, lora, pretrain, qlora)",
    ),
    "more cards than a machine has": (
        {"program": "unsloth", "phase_id": "qlora", "gpu_count": 16},
        "on several machines: program := ",
    ),
    "what no formula describes": ({"program": "unsloth", "phase_id": "full-finetune"}, "kernels of its own"),
    "a version that is none": ({"program": "vllm", "program_version": "new"}, "is no version"),
    "a version of nothing": ({"program_version": "1.0"}, "program_version is of a program"),
    "another program's engine": (
        {"program": "ollama", "engine_id": "vllm"},
        "Ollama runs engine_id := llama.cpp, not vllm",
    ),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_program_cannot_do_has_a_reason(footprint_of, case):
    asked, reason = REFUSED[case]
    row = footprint_of(MODEL, **asked)
    assert row["total_bytes"] is None and reason in row["unknown_reason"]


def test_no_program_is_answered_with_the_numbers_of_an_engine_that_is_not_its_own(book):
    """Either a row names an engine or it says why nothing is known."""
    rows = book.execute("SELECT engine_id, unknown_reason FROM program").fetchall()
    assert all((engine is None) != (reason is None) for engine, reason in rows)


@pytest.mark.full
def test_the_share_of_the_card_is_that_of_the_version(book):
    need = "SELECT engine_setting FROM fits_on('rtx-4090', $model, program := 'vllm', program_version := $version, context_tokens := $tokens)"

    def share(version, tokens):
        asked = {"model": MODEL, "version": version, "tokens": tokens}
        return book.execute(need, asked).fetchall()[0][0]

    assert share("0.19", 20000) == "--gpu-memory-utilization 0.92"
    assert share("0.26", 20000) is None


@pytest.mark.full
def test_what_a_large_card_reads_at_a_time_is_said_where_it_would_not_start(book):
    """vLLM keeps in the cache of a window what two steps read, which is 16384 tokens on an H100 and 32768 on a B200, where footprints count
    8192 (0.28.0, SlidingWindowSpec.max_admission_blocks_per_request)."""

    def setting(gpu, model, tokens, requests=1):
        asked = f"'{gpu}', '{model}', program := 'vllm', context_tokens := {tokens}, sequences := {requests}"
        return book.execute(f"SELECT engine_setting FROM fits_on({asked})").fetchall()[0][0] or ""

    windowed, whole = "google/gemma-3-27b-it", "Qwen/Qwen3-32B"
    flag = "--max-num-batched-tokens"
    assert f"{flag} 4096" in setting("h100-sxm", windowed, 120000) and flag not in setting("h100-sxm", windowed, 8000)
    assert flag not in setting("h100-sxm", whole, 12000)
    assert f"{flag} 8192" in setting("b200", whole, 40000, 10)


@pytest.mark.full
def test_every_macro_that_takes_a_scenario_takes_a_program(book):
    limits = "SELECT engine_id, context_tokens FROM limits_on('rtx-4090', $1, program := 'ollama')"
    assert book.execute(limits, [MODEL]).fetchall() == [("llama.cpp", 4096)]
    book.execute(f"CREATE OR REPLACE TEMP TABLE of_program AS SELECT '{MODEL}' AS model_id, 'ollama' AS program")
    fits = "SELECT dtype_id, holds_for FROM fits_in('of_program', 'rtx-4090', is_plain := false)"
    assert book.execute(fits).fetchall() == [("gguf-q4_k_m", "Ollama 0.31.2 to 0.33")]


def test_versions_of_a_program_do_not_overlap(book):
    twice = """
        SELECT a.program_id, a.phase_id FROM program_row AS a JOIN program_row AS b
        ON a.program_id = b.program_id AND a.phase_id = b.phase_id AND a.from_number < b.from_number
            AND a.below_number > b.from_number
    """
    assert book.execute(twice).fetchall() == []
    newest = "SELECT program_id, phase_id FROM program_row WHERE is_newest GROUP BY ALL HAVING count(*) > 1"
    assert book.execute(newest).fetchall() == []
    assert (
        book.execute("SELECT program_name, phase_id FROM program_name GROUP BY ALL HAVING count(*) > 1").fetchall()
        == []
    )


def test_what_a_program_says_belongs_to_its_phases():
    for row in read_facts()["program"].to_dicts():
        phases = row["phase_ids"].split()
        assert set(phases) <= set(ENUMS["phase_id"])
        if "inference" in phases:
            assert not any(row[name] for name in ("optimizer_id", "checkpointing", "precision", "loss", "lora_rank"))
        if row["lora_rank"] or row["lora_targets"]:
            assert set(phases) <= {"lora", "qlora"}


def test_a_server_is_asked_in_16_bits_where_nobody_knows_what_a_checkpoint_holds(footprint_of):
    """As the terminal answers, and as vLLM loads one in 32 bits; of a repository of GGUF that is no answer."""
    unsaid = "Qwen/Qwen3-30B-A3B-Instruct-2507"
    for program in ("vllm", "sglang"):
        told = footprint_of(unsaid, program=program)
        assert told["holds_for"].endswith(", of a checkpoint in 16 bits") and told["dtype_id"] == "bf16"
        assert told["total_bytes"] == footprint_of(unsaid, program=program, dtype_id="bf16")["total_bytes"]
        assert "16 bits" not in footprint_of("Qwen/Qwen3-8B", program=program)["holds_for"]
    assert footprint_of("AtomicChat/Qwen3.8-27B-GGUF", program="vllm")["total_bytes"] is None


def test_the_training_of_an_embedding_model_says_that_logits_are_counted(footprint_of):
    """Its class can write, and a trainer of embeddings works out no logits."""
    asked = footprint_of(
        "Qwen/Qwen3-Embedding-4B", phase_id="lora", program="ms-swift", lora_rank=8, context_tokens=512, sequences=8
    )
    assert asked["holds_for"].endswith(", trained to write (trained to embed it makes no logits and takes less)")
    assert "trained to write" not in footprint_of("Qwen/Qwen3-Embedding-4B")["holds_for"]
    assert "trained to write" not in footprint_of(MODEL, phase_id="lora", program="ms-swift", lora_rank=8)["holds_for"]
    assert "trained to write" not in footprint_of("BAAI/bge-m3", phase_id="lora")["holds_for"]  # (an encoder)
