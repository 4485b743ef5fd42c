"""Whether an engine runs a format on a card at all: cited lines, spelled out, and no verdict where it does not or nobody says."""

from __future__ import annotations

import pytest

from pipeline.book.facts import read_facts
from tests.formulas.at_once import at_once

SMALL = "Qwen/Qwen3-0.6B"


def runs(book, engine, dtype, gpu, phase="inference", attention="flash"):
    rows = book.execute(
        "SELECT runs, how FROM runs_on WHERE (engine_id, running_id, gpu_id, phase_id, attention) = ($1, $2, $3, $4, $5)",
        [engine, dtype, gpu, phase, attention],
    ).fetchall()
    return rows[0] if rows else (None, None)


def test_every_line_speaks_of_engines_formats_and_cards_that_exist(book):
    known = {row[0] for table in ("engine", "dtype", "gpu") for row in book.execute(f"FROM {table}").fetchall()}
    known |= {
        row[0]
        for row in book.execute(
            "SELECT DISTINCT architecture FROM gpu UNION SELECT compute_capability FROM gpu"
        ).fetchall()
    }
    for line in read_facts()["support"].iter_rows(named=True):
        assert line["runs"] or line["how"], f"line {line['support_rank']} refuses without a reason"
        words = f"{line['engine_ids'] or ''} {line['targets'] or ''}".split()
        exact = [word for word in words if "*" not in word and not word.startswith("gfx")]
        assert not [word for word in exact if word not in known], line["support_rank"]


@pytest.mark.parametrize(
    ("engine", "dtype", "gpu", "expected"),
    [
        ("vllm", "bf16", "t4", False),
        ("vllm", "fp16", "t4", True),
        ("vllm", "bf16", "a100-sxm-80gb", True),
        ("vllm", "fp8", "rtx-3090", True),
        ("vllm", "mxfp4", "t4", False),
        ("vllm", "bf16", "m4-max-128gb", False),
        ("vllm", "fp8", "mi300x", True),
        ("vllm", "fp8", "mi210", False),
        ("vllm", "awq-int4", "mi300x", None),
        ("llama.cpp", "gguf-q4_k_m", "m4-max-128gb", True),
        ("llama.cpp", "gguf-q4_k_m", "gtx-1050-ti", True),
        ("llama.cpp", "gguf-q4_k_m", "tpu-v5e", False),
        ("transformers", "nf4", "m4-max-128gb", None),
        ("transformers", "bf16", "rtx-4090", True),
        ("transformers", "bf16", "t4", None),
        ("transformers", "fp16", "t4", True),
        ("llama.cpp", "awq-int4", "rtx-4090", None),
    ],
)
def test_what_runs_where(book, engine, dtype, gpu, expected):
    assert runs(book, engine, dtype, gpu)[0] is expected


@pytest.mark.parametrize(
    ("engine", "model_type", "gpu", "does"),
    [
        ("vllm", "deepseek_v32", "a100-sxm-80gb", False),  # its sparse attention has kernels from Hopper on
        ("vllm", "deepseek_v32", "h200-sxm", True),
        ("vllm", "deepseek_v32", "mi300x", True),
        ("vllm", "deepseek_v4", "mi300x", None),
        ("sglang", "glm_moe_dsa", "a100-sxm-80gb", None),
    ],
)
def test_a_line_may_be_of_models_of_one_type_alone(book, engine, model_type, gpu, does):
    assert runs(book, engine, f"fp8/{model_type}", gpu)[0] is does
    others = runs(book, engine, "fp8", "a100-sxm-80gb" if engine == "vllm" else "h200-sxm")
    assert others[0] is True, "and of no other"


def test_models_name_the_engines_in_which_they_run_on_fewer_cards(book):
    rows = book.execute("SELECT DISTINCT model_type, limited_engines FROM model WHERE limited_engines IS NOT NULL")
    lines = read_facts()["support"].iter_rows(named=True)
    named = {one for line in lines for one in (line["model_types"] or "").split()}
    found = rows.fetchall()
    assert {model_type for model_type, _ in found} <= named and {engines for _, engines in found} <= {"sglang vllm"}


def test_training_in_bf16_wants_a_card_with_fused_attention_for_it(book):
    assert runs(book, "transformers", "bf16", "t4", "lora")[0] is None
    assert runs(book, "transformers", "bf16", "t4", "lora", "eager")[0] is True
    assert runs(book, "transformers", "nf4", "t4", "qlora")[0] is True


@pytest.mark.full
def test_a_card_that_does_not_run_it_has_no_verdict_but_a_reason(book):
    def ask(card, **scenario):
        named = "".join(f", {name} := '{value}'" for name, value in scenario.items())
        return book.execute(
            f"SELECT verdict, unknown_reason, total_bytes FROM fits_on('{card}', '{SMALL}'{named})"
        ).fetchall()[0]

    verdict, reason, total = ask("t4", engine_id="vllm")
    assert verdict is None and "compute capability 8.0" in reason and total > 0
    assert ask("t4", engine_id="vllm", dtype_id="fp16")[:2] == ("fits", None)
    assert ask("m4-max-128gb", dtype_id="gguf-q4_k_m")[:2] == ("fits", None)
    # the checkpoint as published runs where its format does
    assert ask("t4", dtype_id="stored")[0] is None
    assert ask("rtx-4090", dtype_id="stored")[:2] == ("fits", None)
    # and a pair that nobody has written about is not known, which is not the same as running
    assert ask("rtx-4090", engine_id="llama.cpp", dtype_id="awq-int4")[:2] == (
        None,
        "no source in the book says that this engine runs this format on this card",
    )


def test_every_verdict_is_of_a_pair_that_runs(book):
    """The published order: the first line that speaks of a pair decides, and each pair has one line."""
    assert book.execute(
        "SELECT count(*) FROM (SELECT 1 FROM runs_on GROUP BY engine_id, running_id, phase_id, attention, gpu_id HAVING count(*) > 1)"
    ).fetchall() == [(0,)]
    kinds = dict(book.execute("SELECT runs, count(*) FROM runs_on GROUP BY ALL").fetchall())
    assert set(kinds) == {True, False, None}


READS_FP8 = {"rtx-4090": True, "h100-sxm": True, "mi300x": True, "rtx-3090": True, "t4": False, "mi210": False}


@pytest.fixture(scope="module")
def cached(book):
    """By macro what is said of a cache in 8 bits on each card; and of one in 16."""
    asked = {"model_id": SMALL, "engine_id": "vllm", "dtype_id": "fp16"}  # (T4 runs no bf16)
    first = ("gpu_id", "model_id")
    told = {}
    for name, macro, dtype in (
        ("fits", "fits_on", "fp8"),
        ("in 16 bits", "fits_on", "bf16"),
        ("limits", "limits_on", "fp8"),
        ("several", "on_several_gpus", "fp8"),
    ):
        cases = [asked | {"gpu_id": card, "kv_dtype_id": dtype} for card in READS_FP8]
        told[name] = dict(zip(READS_FP8, at_once(book, macro, first, cases), strict=True))
    return told


@pytest.mark.full
@pytest.mark.parametrize(("card", "held"), READS_FP8.items())
def test_an_8_bit_cache_has_a_verdict_only_where_a_source_says_that_the_card_reads_it(cached, card, held):
    """Triton has no such type below compute capability 8.9; there vLLM takes FlashInfer, from 8.0 on."""
    (row,) = cached["fits"][card]
    assert row["verdict"] == ("fits" if held else None)
    assert (row["unknown_reason"] or "").startswith("" if held else "no source in the book says that a cache in fp8")
    assert [row["verdict"] for row in cached["in 16 bits"][card]] == ["fits"]
    assert [row["max_context_tokens"] is not None for row in cached["limits"][card]] == [held]
    several = cached["several"][card]
    assert several and {row["verdict"] is not None for row in several} == {held}


@pytest.mark.full
def test_an_8_bit_cache_is_read_on_older_cards_where_flashinfer_reads_the_model(book):
    """Two RTX 3090 run Qwen3.6-27B with --kv-cache-dtype fp8; models whose layers only Triton runs there are refused."""
    asked = (
        ("Qwen/Qwen3.6-27B", "vllm", True),  # states, and attention of 256-wide heads
        ("openai/gpt-oss-20b", "vllm", False),  # sinks
        ("google/gemma-3-4b-it", "vllm", False),  # pictures that look both ways
        ("google/gemma-4-31B-it", "vllm", False),  # heads of 512
        ("deepseek-ai/DeepSeek-V2-Lite", "vllm", False),  # a latent
        (SMALL, "sglang", True),  # from 0.5.19 on
    )
    usual = {"gpu_id": "rtx-3090", "kv_dtype_id": "fp8", "context_tokens": 2048, "dtype_id": "bf16"}
    cases = [usual | {"model_id": model, "engine_id": engine} for model, engine, _is_read in asked]
    for (row,), (model, _engine, is_read) in zip(
        at_once(book, "fits_on", ("gpu_id", "model_id"), cases), asked, strict=True
    ):
        assert (row["unknown_reason"] is None) == is_read, (model, row["unknown_reason"])
    asked = f"FROM fits_on('a100-sxm-80gb', '{SMALL}', program := 'vllm', program_version := $1, kv_dtype_id := 'fp8')"
    told = [book.execute(f"SELECT verdict {asked}", [version]).fetchall() for version in ("0.11", "0.28")]
    assert told == [[(None,)], [("fits",)]]


@pytest.mark.full
def test_what_flashinfer_works_in_is_counted_beside_a_cache_in_fp8(footprint_of, book):
    """394 MiB for each group of layers, taken when the cache is there already."""
    workspace = book.execute("SELECT constants.vllm_flashinfer_workspace_bytes FROM constants_row").fetchall()[0][0]
    for engine, model, groups in (("vllm", SMALL, 1), ("vllm", "google/gemma-2-2b-it", 2), ("sglang", SMALL, 0)):
        small, large = (
            footprint_of(model, dtype_id="bf16", engine_id=engine, kv_dtype_id=held)["overhead_bytes"]
            for held in ("bf16", "fp8")
        )
        assert large - small == groups * workspace


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "columns", "width"),
    [("Qwen/Qwen2-Audio-7B-Instruct", 156_032, 4096), ("Qwen/Qwen2.5-Omni-7B", 152_064, 3584)],
)
def test_a_class_that_works_out_every_logit_of_a_prompt_is_told_so(footprint_of, model, columns, width):
    """Two bytes for each column and each of the hidden states that they are made of, and eight for the token's id (count_inference.py); a tower
    that nobody asked about may add a hundredth or two."""
    short, long = (
        footprint_of(model, dtype_id="bf16", engine_id="transformers", context_tokens=n) for n in (2048, 4096)
    )
    more = long["activations_bytes"] - short["activations_bytes"]
    assert 0.999 < more / (2048 * (2 * (columns + width) + 8)) < 1.03
    assert footprint_of(model, dtype_id="bf16", engine_id="vllm")["total_bytes"]
