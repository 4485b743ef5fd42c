"""Asking for what cannot be: a null total with a reason that a person understands, never a number and never an error."""

from __future__ import annotations

import pytest

from tests.conftest import macro_of

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
WHISPER = "openai/whisper-large-v3"
COMPONENTS = ("weights_bytes", "kv_cache_bytes", "activations_bytes", "overhead_bytes", "total_bytes", "error_band")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "said",
    [
        {"model_id": "nobody/nothing"},
        {"phase_id": "LoRA", "lora_rank": 8, "lora_dropout": 0},
        {"dtype_id": "fp8", "engine_id": "vllm", "gpu_count": 8, "data_parallel": 8},
    ],
    ids=str,
)
def test_what_tests_ask_is_what_the_macro_says(footprint_of, book, said):
    said = {"model_id": LLAMA} | said
    columns, rows = macro_of(book, said)
    assert footprint_of(**said) == dict(zip(columns, rows[0], strict=True))


def test_a_table_that_was_made_since_changes_no_answer(footprint_of, book):
    """It is another catalogue for a plan that is kept."""
    before = footprint_of(LLAMA)
    book.execute("CREATE OR REPLACE TEMP TABLE made_between AS SELECT 1 AS one")
    between = footprint_of(LLAMA)
    book.execute("DROP TABLE made_between")
    assert before == between == footprint_of(LLAMA) and before["total_bytes"] > 0


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("model", "scenario", "reason"),
    [
        ("nobody/nothing", {}, "no such model"),
        ('nobody/it\'s "quoted"; DROP TABLE model', {}, "no such model"),
        (LLAMA, {"dtype_id": "fp3"}, "no such dtype: fp3"),
        (LLAMA, {"phase_id": "dreaming"}, "no such phase: dreaming"),
        (LLAMA, {"engine_id": "abacus"}, "no such engine: abacus"),
        (LLAMA, {"kv_dtype_id": "q9"}, "no such KV dtype: q9"),
        (LLAMA, {"kv_dtype_id": "q8_0", "engine_id": "vllm"}, "vllm is not described with a KV cache in q8_0"),
        (LLAMA, {"attention": "masked", "engine_id": "vllm"}, "which vllm has not"),
        (LLAMA, {"kv_dtype_id": "fp8"}, "transformers is not described with a KV cache in fp8"),
        (LLAMA, {"context_tokens": 0}, "start at 1"),
        (LLAMA, {"sequences": -1}, "start at 1"),
        (LLAMA, {"gpu_count": 0}, "start at 1"),
        (LLAMA, {"gpu_count": 3, "dtype_id": "fp8"}, "32 attention heads do not divide by tensor_parallel 3"),
        (LLAMA, {"gpu_count": 33, "dtype_id": "gguf-q4_k_m"}, "more stages than the 32 layers"),
        (LLAMA, {"gpu_count": 2, "sharding": "none"}, "several GPUs need a sharding"),
        (LLAMA, {"gpu_count": 2, "sharding": "shards"}, "sharding is none, ddp"),
        (LLAMA, {"phase_id": "full-finetune", "dtype_id": "nf4"}, "gradients cannot flow into nf4"),
        (LLAMA, {"phase_id": "lora", "dtype_id": "nf4"}, "a quantised base is QLoRA"),
        (LLAMA, {"phase_id": "qlora", "dtype_id": "bf16"}, "QLoRA needs a base in nf4, nf4-double or int8"),
        (LLAMA, {"phase_id": "lora", "lora_rank": 0}, "lora_rank starts at 1"),
        (LLAMA, {"phase_id": "lora", "lora_targets": "everything"}, "lora_targets is attention, query-value"),
        (LLAMA, {"phase_id": "lora", "lora_targets": "experts"}, "no routed experts"),
        (
            "mistralai/Mixtral-8x7B-v0.1",
            {"phase_id": "qlora", "lora_targets": "experts"},
            "adapters of quantised routed experts are not established",
        ),
        (
            "mistralai/Mixtral-8x7B-v0.1",
            {"phase_id": "qlora", "dtype_id": "nf4-experts", "precision": "amp"},
            "does not give them: precision := pure",
        ),
        (
            "mistralai/Mixtral-8x7B-v0.1",
            {"phase_id": "qlora", "dtype_id": "nf4-experts", "lora_targets": "all-linear"},
            "attention, experts or attention-experts",
        ),
        (LLAMA, {"phase_id": "qlora", "dtype_id": "nf4-experts"}, "packs routed experts, and the model has none"),
        (LLAMA, {"phase_id": "lora", "lora_dropout": 1}, "lora_dropout := 1.0 is no share from 0 to below 1"),
        (LLAMA, {"phase_id": "lora", "reduce_bucket_elements": 7}, "reduce_bucket_elements is of DeepSpeed"),
        (LLAMA, {"reduce_bucket_elements": 7}, "reduce_bucket_elements belongs to the phases of training"),
        (LLAMA, {"expandable_segments": True}, "expandable_segments belongs to the phases of training"),
        (LLAMA, {"trains_embeddings": True}, "trains_embeddings belongs to the phases lora and qlora"),
        (LLAMA, {"phase_id": "lora", "trains_embeddings": "some"}, "trains_embeddings"),
        (LLAMA, {"phase_id": "lora", "trains_embeddings": True, "gpu_count": 2}, "is counted on one GPU alone"),
        (LLAMA, {"phase_id": "lora", "lora_dropout": 0.1, "adapter": "dora"}, "what DoRA keeps with lora_dropout"),
        (LLAMA, {"phase_id": "lora", "checkpointing": "selective", "adapter": "dora"}, "what DoRA keeps under"),
        (LLAMA, {"phase_id": "lora", "adapter": "prefix"}, "adapter is lora, rslora or dora"),
        (LLAMA, {"phase_id": "lora", "adapter": "x"}, "adapter is lora, rslora or dora"),
        (LLAMA, {"phase_id": "qlora", "adapter": "lora2"}, "adapter is lora, rslora or dora"),
        (LLAMA, {"phase_id": "pretrain", "adapter": "dora"}, "adapter belongs to the phases lora and qlora"),
        ("mistralai/Mixtral-8x7B-v0.1", {"phase_id": "lora", "adapter": "dora"}, "no DoRA of routed experts"),
        (
            LLAMA,
            {"phase_id": "pretrain", "loss": "half"},
            "loss is full, chunked, fused, fused-by-free, fused-at-once, cut, logged, logged-blocks, logged-copy, one-pass,",
        ),
        (LLAMA, {"phase_id": "pretrain", "gradient_accumulation": 0}, "gradient_accumulation starts at 1"),
        (
            LLAMA,
            {"phase_id": "pretrain", "context_tokens": 131_073},
            "context_tokens := 131073 is beyond the 131072 tokens",
        ),
        (LLAMA, {"context_tokens": 131_073}, "beyond the 131072 tokens of this model (max_context_tokens := n"),
        (LLAMA, {"context_tokens": 9_000, "max_context_tokens": 8_192}, "beyond the 8192 tokens"),
        (
            "openai-community/gpt2",
            {"context_tokens": 1_025, "max_context_tokens": 4_096},
            "1024 positions that this model has learned",
        ),
        (LLAMA, {"phase_id": "pretrain", "optimizer_id": "hope"}, "no such optimizer: hope"),
        (
            LLAMA,
            {"phase_id": "pretrain", "optimizer_id": "galore-adamw", "optimizer_rank": 0},
            "optimizer_rank starts at 1",
        ),
        (
            LLAMA,
            {"phase_id": "lora", "optimizer_id": "apollo"},
            "projects the gradients of whole matrices: pretrain or full-finetune",
        ),
        (
            LLAMA,
            {"phase_id": "lora", "optimizer_id": "lomo"},
            "frees gradients of whole weights: pretrain or full-finetune",
        ),
        (
            LLAMA,
            {"phase_id": "full-finetune", "optimizer_id": "adamw-in-backward", "gradient_accumulation": 4},
            "uses each gradient as it comes: without gradient_accumulation",
        ),
        (
            LLAMA,
            {"phase_id": "full-finetune", "optimizer_id": "adamw-in-backward", "gpu_count": 4},
            "is counted on one GPU alone",
        ),
        (LLAMA, {"phase_id": "pretrain", "optimizer_id": "apollo", "gpu_count": 2}, "sharding := ddp"),
        (LLAMA, {"phase_id": "pretrain", "precision": "half"}, "precision is mixed, amp or pure"),
        (LLAMA, {"phase_id": "pretrain", "checkpointing": "sometimes"}, "checkpointing is none, full or selective"),
        (LLAMA, {"attention": "blind"}, "attention is flash, eager or masked"),
        (LLAMA, {"dtype_id": "mxfp4"}, "routed experts"),
        (WHISPER, {"dtype_id": "gguf-q8_0"}, "llama.cpp cannot load this architecture"),
    ],
)
def test_impossible_scenarios_say_why(footprint_of, model, scenario, reason):
    row = footprint_of(model, **scenario)
    assert reason in row["unknown_reason"]
    assert all(row[column] is None for column in COMPONENTS)


def test_a_cache_of_llama_cpp_takes_the_bits_of_its_blocks(footprint_of):
    """Blocks of 32: 24 bytes in Q5_1, 22 in Q5_0, 20 in Q4_1 (ggml-common.h)."""
    scenario = {"dtype_id": "gguf-q4_k_m", "context_tokens": 8192}
    whole = footprint_of(LLAMA, **scenario)["kv_cache_bytes"]
    for held, block in (("q5_1", 24), ("q5_0", 22), ("q4_1", 20)):
        row = footprint_of(LLAMA, kv_dtype_id=held, **scenario)
        assert row["kv_cache_bytes"] * 64 == whole * block and row["total_bytes"]


def test_a_model_of_unknown_anatomy_gives_the_reason_of_its_anatomy(book, footprint_of):
    model, note = book.execute(
        "SELECT model_id, anatomy_note FROM model WHERE anatomy_grade = 'unknown' ORDER BY downloads_30d DESC LIMIT 1"
    ).fetchall()[0]
    row = footprint_of(model)
    assert row["total_bytes"] is None
    assert note in row["unknown_reason"]


def test_defaults_are_those_of_the_dtype_and_phase(footprint_of):
    assert footprint_of(LLAMA)["engine_id"] == "transformers"
    assert footprint_of(LLAMA, dtype_id="gguf-q4_k_m")["engine_id"] == "llama.cpp"
    assert footprint_of(LLAMA, dtype_id="fp8")["engine_id"] == "vllm"
    assert footprint_of(LLAMA, phase_id="full-finetune")["precision"] == "mixed"
    assert footprint_of(LLAMA, phase_id="full-finetune", dtype_id="fp32")["precision"] == "pure"
    assert footprint_of(LLAMA, phase_id="lora")["lora_rank"] == 16
    assert footprint_of(LLAMA, phase_id="pretrain", gpu_count=8)["sharding"] == "zero3"
    assert footprint_of(LLAMA, gpu_count=2, dtype_id="fp8")["sharding"] == "tp"


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "cached"), [("intfloat/e5-mistral-7b-instruct", 32_768), ("bigcode/starcoder2-7b", 16_384)]
)
def test_llama_cpp_caches_the_whole_context_where_it_knows_no_window(book, footprint_of, model, cached):
    """It loads these as models without windows, whatever their config says."""
    row = footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=cached, max_context_tokens=cached)
    per_token = book.execute(
        "SELECT sum(layer_count * elements_per_token) FROM attention_layer WHERE model_id = $model", {"model": model}
    ).fetchall()[0][0]
    assert row["kv_cache_bytes"] + row["kv_padding_bytes"] == 2 * per_token * cached
    windowed = footprint_of("google/gemma-3-12b-it", dtype_id="gguf-q4_k_m", context_tokens=cached)
    whole = footprint_of("google/gemma-3-12b-it", dtype_id="bf16", context_tokens=cached)
    assert windowed["kv_padding_bytes"] < whole["kv_padding_bytes"]


@pytest.mark.full
def test_a_phase_starts_in_the_format_that_it_is_usual_in(footprint_of, book):
    formats = {phase: footprint_of(LLAMA, phase_id=phase)["dtype_id"] for phase in ("inference", "lora", "qlora")}
    assert formats == {"inference": "bf16", "lora": "bf16", "qlora": "nf4"}
    [(dtype, verdict)] = book.execute(
        "SELECT dtype_id, verdict FROM fits_on('rtx-4090', $1, phase_id := 'qlora', checkpointing := 'full')", [LLAMA]
    ).fetchall()
    assert (dtype, verdict) == ("nf4", "fits")
