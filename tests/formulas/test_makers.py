"""A base model asked in a packed format weighs what repositories of it weigh: makers leave parts of some architectures in 16 bits."""

from __future__ import annotations

import csv

import pytest

from pipeline.book.facts import TABLES

# A base, a format, and the repository that is most used of those that hold its shape in it.
USUAL = [
    ("Qwen/Qwen3.6-35B-A3B", "awq-int4", "QuantTrio/Qwen3.6-35B-A3B-AWQ"),
    ("Qwen/Qwen3.6-35B-A3B", "awq-int4", "cyankiwi/Qwen3.6-35B-A3B-AWQ-4bit"),
    ("Qwen/Qwen3.6-35B-A3B", "gptq-int4", "Qwen/Qwen3.5-35B-A3B-GPTQ-Int4"),
    ("Qwen/Qwen3.6-35B-A3B", "nvfp4", "RedHatAI/Qwen3.6-35B-A3B-NVFP4"),
    ("Qwen/Qwen3.6-35B-A3B", "nvfp4", "nvidia/Qwen3.6-35B-A3B-NVFP4"),
    ("Qwen/Qwen3.6-27B", "awq-int4", "cyankiwi/Qwen3.6-27B-AWQ-INT4"),
    ("Qwen/Qwen3.6-27B", "gptq-int4", "Qwen/Qwen3.5-27B-GPTQ-Int4"),
    ("Qwen/Qwen3.6-27B", "nvfp4", "Inferact/Qwen3.8-27B-NVFP4"),
    ("Qwen/Qwen3.6-27B", "fp8", "Qwen/Qwen3.6-27B-FP8"),
    ("Qwen/Qwen3.5-9B", "w8a8-int8", "RedHatAI/Qwen3.5-9B-quantized.w8a8"),
    ("google/gemma-4-31B-it", "nvfp4", "nvidia/Gemma-4-31B-IT-NVFP4"),
    ("google/gemma-4-26B-A4B-it", "nvfp4", "nvidia/Gemma-4-26B-A4B-NVFP4"),
    ("google/gemma-4-26B-A4B-it", "awq-int4", "cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit"),
    ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "awq-int4", "cyankiwi/Qwen3-Coder-30B-A3B-Instruct-AWQ-4bit"),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "gptq-int4", "RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16"),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvfp4", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "dtype", "repository"), USUAL)
def test_a_base_weighs_no_less_than_the_repositories_that_people_load(book, base, dtype, repository):
    query = "SELECT weights_bytes FROM weight WHERE model_id = $1 AND dtype_id = $2"
    (told,), (held,) = (book.execute(query, asked).fetchall()[0] for asked in ([base, dtype], [repository, "stored"]))
    assert 0.995 * held <= told <= 1.12 * held


def test_a_table_of_n_grams_is_in_fp8_where_the_experts_are_in_nvfp4(book):
    """RadixArk's repository has 135.2 GB (vllm-project/vllm issue 53960), 47.7 GiB of them the table (sgl-project/sglang pull 37995); what its total
    has besides the model's parameters is the layer that predicts, in 16 bits."""
    query = "SELECT weights_bytes, input_bytes FROM weight WHERE model_id = 'Qwen/Qwen3.8-Flash-Next' AND dtype_id = $1"
    (whole, rows), (_, sixteen) = (book.execute(query, [dtype]).fetchall()[0] for dtype in ("nvfp4", "bf16"))
    assert sixteen - rows == pytest.approx(47.7 * 2**30, rel=0.001)
    predicts = 179_999_981_459 - 177_392_830_576
    assert whole + 2 * predicts == pytest.approx(135.2e9, rel=0.001)
    query = "SELECT note FROM model_packing WHERE model_id = 'Qwen/Qwen3.8-Flash-Next' AND dtype_id = 'nvfp4'"
    assert "others keep it in 16 bits" in book.execute(query).fetchall()[0][0]


@pytest.mark.parametrize(
    ("model_id", "held_gb"),
    [
        ("Inferact/Muse-Glimmer-30B-NVFP4-W4A4", 25.42),  # its files, as vLLM's recipe tells
        ("unsloth/Qwen3.8-27B-NVFP4", 23.4376 - 2 * 0.4247),  # less the prediction layer in 16 bits
        (
            "mistralai/Mistral-Small-4-119B-2603",
            120.9,
        ),  # 117.9e9 weights in 8 bits, tower, projector, head and embedding in 16
    ],
)
def test_a_shape_that_was_lent_is_weighed_as_sources_say_that_it_is_packed(book, model_id, held_gb):
    (held,) = book.execute(
        "SELECT weights_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'stored'", [model_id]
    ).fetchall()[0]
    assert held / 1e9 == pytest.approx(held_gb, rel=0.002)


def test_a_repository_whose_table_of_n_grams_is_in_fp8_weighs_it_so(book):
    """All of it on two cards of 96 GB (kubesimplify/website pull 267), which 16 bits of the table would not leave room for."""
    query = "SELECT weights_bytes, embedding_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'stored'"
    whole, tables = book.execute(query, ["Qwen/Qwen3.8-Flash-Next-FP8"]).fetchall()[0]
    assert 51_200_245_760 < tables < 53e9 and 182e9 < whole < 184e9


def test_a_repository_weighs_what_its_own_config_or_total_says(book):
    """Rows of makers are for models that are not published in the format: this one packs all, recurrent layers too."""
    query = "SELECT weights_bytes FROM weight WHERE model_id = 'Qwen/Qwen3.6-27B-FP8' AND dtype_id = $1"
    asked, stored = (book.execute(query, [dtype]).fetchall()[0][0] for dtype in ("fp8", "stored"))
    assert asked == stored < 31e9


def test_blocks_hold_what_the_weights_say_of_them(book):
    query = """
        SELECT (SELECT sum(layer_bytes) FROM layer_weights('Qwen/Qwen3.6-35B-A3B', dtype_id := $1)), layer_bytes
        FROM weight WHERE model_id = 'Qwen/Qwen3.6-35B-A3B' AND dtype_id = $1
    """
    for dtype in ("awq-int4", "nvfp4", "bf16"):
        blocks, whole = book.execute(query, [dtype]).fetchall()[0]
        assert blocks == pytest.approx(whole, rel=1e-4)


def test_what_makers_leave_out_names_types_and_formats_that_there_are(book):
    with (TABLES / "facts" / "weight_format.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model_types"]]
    known = {name for (name,) in book.execute("SELECT DISTINCT model_type FROM model").fetchall()}
    assert rows and {name for row in rows for name in row["model_types"].split()} <= known
    assert all(row["note"] for row in rows), "what people are told"
