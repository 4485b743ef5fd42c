"""What people reported and what was told otherwise: classes without fused attention, checkpoints in fp32, models that rank, files of gpt-oss."""

from __future__ import annotations

import pytest

GIB = 2**30
BGE, BERT, RANKS, WRITES = (
    "BAAI/bge-m3",
    "google-bert/bert-base-uncased",
    "Qwen/Qwen3-Reranker-0.6B",
    "Qwen/Qwen3-0.6B",
)


@pytest.fixture(scope="module")
def said(footprints):
    usual = {"dtype_id": "fp16", "phase_id": "inference", "context_tokens": 8192, "sequences": 8}
    asked = {
        "old": {"model_id": BGE, "engine_id": "transformers-4.44", "attention": "flash"},
        "old eager": {"model_id": BGE, "engine_id": "transformers-4.44", "attention": "eager"},
        "new": {"model_id": BGE, "engine_id": "transformers", "attention": "flash"},
        "old bert": {"model_id": BERT, "engine_id": "transformers-4.44", "attention": "flash", "context_tokens": 512},
        "old bert eager": {
            "model_id": BERT,
            "engine_id": "transformers-4.44",
            "attention": "eager",
            "context_tokens": 512,
        },
        "ranks": {"model_id": RANKS, "engine_id": "transformers", "attention": "flash"},
        "writes": {"model_id": WRITES, "engine_id": "transformers", "attention": "flash"},
        "ranks in vllm": {"model_id": RANKS, "engine_id": "vllm", "attention": "flash"},
        "writes in vllm": {"model_id": WRITES, "engine_id": "vllm", "attention": "flash"},
    }
    return dict(zip(asked, footprints([usual | scenario for scenario in asked.values()]), strict=True))


def test_a_class_without_fused_attention_holds_all_scores(said):
    """FlagOpen/FlagEmbedding issue 807: 64 texts of 8,192 tokens ask for 128 GiB, the scores of 16 heads in one layer. Of 8 it is an
    eighth, at least twice."""
    assert said["old"]["total_bytes"] == said["old eager"]["total_bytes"] > 2 * 128 / 8 * GIB
    assert said["new"]["total_bytes"] < 4 * GIB, "5.23 has fused attention for it"
    assert said["old bert"]["total_bytes"] < said["old bert eager"]["total_bytes"], "and 4.44 for BERT"


def test_a_model_that_ranks_works_out_the_logits_of_every_token(said):
    """Its card asks forward() and takes the last: 8 × 8,192 rows of 151,669 logits in 16 bits. A server does not."""
    logits = 8 * 8192 * 151_669 * 2
    beyond = said["ranks"]["activations_bytes"] - said["writes"]["activations_bytes"]
    assert logits * 0.9 < beyond < logits * 1.02
    served = [said[name]["activations_bytes"] for name in ("ranks in vllm", "writes in vllm")]
    assert served[0] == pytest.approx(served[1], rel=0.01)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("phase", "model", "dtype", "words"),
    [
        ("full-finetune", BERT, "fp32", "Transformers 5.23 to 5.24"),
        ("lora", BERT, "fp32", "Transformers 5.23 to 5.24"),
        ("qlora", BERT, "nf4", "Transformers 5.23 to 5.24"),
        ("full-finetune", RANKS, "bf16", "Transformers 5.23 to 5.24"),
        ("full-finetune", BGE, "bf16", "Transformers 5.23 to 5.24, of a checkpoint in 16 bits"),
    ],
)
def test_a_checkpoint_is_loaded_as_it_is_stored(footprint_of, phase, model, dtype, words):
    """Transformers 5 takes dtype="auto": of a file in fp32 it trains in fp32. TRL has a format of its own."""
    row = footprint_of(model, phase_id=phase, program="transformers", context_tokens=512)
    assert (row["dtype_id"], row["holds_for"]) == (dtype, words)
    if dtype == "fp32":
        plain = footprint_of(model, phase_id=phase, program="transformers", context_tokens=512, dtype_id="bf16")
        assert row["weights_bytes"] > 1.9 * plain["weights_bytes"]


def test_files_of_gpt_oss_keep_their_experts(book):
    """NousResearch/hermes-agent issue 116681: MXFP4, 17 bytes for 32 elements, in files of every name; what is made of a copy in 16 bits is
    packed anew, in Q8_0 with 34 bytes for as many."""
    query = "SELECT dtype_id, weights_bytes FROM weight WHERE model_id = $1 AND dtype_id IN ('gguf-q8_0', 'gguf-q4_k_m', 'gguf-mxfp4')"
    experts = 24 * 32 * 3 * 2880 * 2880  # layers, experts, matrices
    copy = dict(book.execute(query, ["unsloth/gpt-oss-20b-BF16"]).fetchall())
    for model in ("openai/gpt-oss-20b", "unsloth/gpt-oss-20b-GGUF"):
        held = dict(book.execute(query, [model]).fetchall())
        assert copy["gguf-q8_0"] - held["gguf-q8_0"] == experts * 17 / 32, model
        assert held["gguf-q8_0"] == held["gguf-mxfp4"] == copy["gguf-mxfp4"], model
        # what is in Q8_0 or in Q4_K_M is the rest of it, which is 1.8 of 20.9 billion elements
        assert 0 < held["gguf-q8_0"] - held["gguf-q4_k_m"] < 1.81e9 * 17 / 32, model
    for model in ("deepseek-ai/DeepSeek-V4-Flash", "Qwen/Qwen3-30B-A3B"):
        packed = dict(book.execute(query, [model]).fetchall())
        assert packed["gguf-q8_0"] > 1.5 * packed["gguf-mxfp4"], model


def test_torchtune_trains_over_four_bits_where_it_has_recipes_for_it(book):
    query = "SELECT gpu_id, runs FROM runs_on WHERE engine_id = 'torchtune' AND dtype_id = 'nf4' AND phase_id = 'qlora' AND gpu_id IN ('rtx-4090', 't4')"
    assert dict(book.execute(query).fetchall()) == {"rtx-4090": True}
