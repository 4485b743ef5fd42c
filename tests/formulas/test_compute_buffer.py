"""llama.cpp's compute buffer against the buffers that its own code reserves (tests/oracle/compute_buffer.csv, count_compute_buffer.py)."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from tests.formulas.set_aside import SET_ASIDE

COUNTED = list(
    csv.DictReader(
        (Path(__file__).parents[1] / "oracle" / "compute_buffer.csv").read_text(encoding="utf-8").splitlines()
    )
)
ROWS = [row for row in COUNTED if not row["output_tokens"]]
SERVED = [row for row in COUNTED if row["output_tokens"]]  # (by a server, which reserves logits of few tokens)
PICKED = ("Qwen3.8-Flash", "DeepSeek-V3.2", "DeepSeek-V4", "GLM-5", "MiniMax-M3")  # (attention that an index picks)
# (latent attention, experts that all tokens see, biases of positions: an upper bound)
BOUNDED = ("deepseek-ai/", "Kimi-K2", "GLM-4", "ERNIE-4.5", "Qwen1.5-MoE", "Llama-4", "flan-t5")
# (the last stream may lie behind the masks: an upper bound, by no more than these)
BEHIND = (
    "Qwen3.5",
    "Qwen3.8-27B",
    "Nemotron-H",
    "Nemotron-3-Nano",
    "North-Mini",
    "gemma-4-E2B",
    "gemma-4-31B",
    "Qwen3-TTS",
    "falcon-mamba",
)
# (streams that one size of an architecture wants and another does not)
BEHIND += ("gemma-2-9b", "gemma-3n", "Qwen3-VL-32B", "phi-4", "Mistral-Nemo", "Devstral-2")
GEMMA = {"model_id": "google/gemma-4-12B-it", "dtype_id": "gguf-q4_k_m"}


@pytest.fixture(scope="module")
def towers(book):
    """What a model that sees has set aside beside its text (test_tower_buffer.py): these rows are of text."""
    return {attention: dict(book.execute(SET_ASIDE, [attention]).fetchall()) for attention in ("flash", "eager")}


def scenario_of(row: dict[str, str]) -> dict:
    return (
        {name: row[name] for name in ("model_id", "kv_dtype_id", "attention")}
        | {name: int(row[name]) for name in ("context_tokens", "sequences", "gpu_count")}
        | {"dtype_id": "gguf-q4_k_m", "max_context_tokens": int(row["context_tokens"])}
    )


@pytest.fixture(scope="module")
def all_errors(footprints, towers):
    """Predicted ÷ counted − 1, by scenario."""
    asked = [scenario_of(row) for row in ROWS]
    answers = footprints(asked)
    return {
        tuple(scenario.values()): (
            (answer["activations_bytes"] - towers[row["attention"]].get(row["model_id"], 0)) / int(row["buffer_bytes"])
            - 1,
            int(row["buffer_bytes"]),
        )
        for scenario, answer, row in zip(asked, answers, ROWS, strict=True)
    }


@pytest.fixture(scope="module")
def errors(all_errors):
    """Of rows that numbers may have been fitted to."""
    pairs = zip(all_errors.items(), ROWS, strict=True)
    return {key: error for (key, error), row in pairs if row["is_held"] == "false" and not is_borrowing(key)}


def is_borrowing(key: tuple) -> bool:
    """Layers that read what others cache, on several GPUs."""
    return any(name in key[0] for name in ("gemma-4-E", "gemma-3n")) and key[5] > 1


def test_rows_that_nothing_was_fitted_to_are_not_told_too_small(all_errors):
    """(58 drawn at random over the models that are counted, and contexts and GPUs between those that an index's numbers are fitted to.)"""
    held = [error for error, row in zip(all_errors.values(), ROWS, strict=True) if row["is_held"] == "true"]
    assert len(held) > 100
    assert min(error for error, _ in held) > -0.031
    assert sum(error < -0.01 for error, _ in held) <= len(held) // 20
    assert statistics.median(abs(error) for error, _ in held) < 0.015


def test_buffers_are_those_that_llama_cpp_reserves(errors):
    """(Where free blocks of its allocator are too small, a buffer grows by some MiB that no formula knows.)"""
    errors = {key: error for key, error in errors.items() if not (is_picked(key) or is_bounded(key) or is_behind(key))}
    assert len(errors) > 150
    outside = {
        key: f"{error:+.2%}"
        for key, (error, counted) in errors.items()
        if not -0.06 <= error <= 0.035 and abs(error) * counted > 2**24
    }
    assert not outside
    assert statistics.median(abs(error) for error, _ in errors.values()) < 0.001


def is_picked(key: tuple) -> bool:
    return any(name in key[0] for name in PICKED)


def is_bounded(key: tuple) -> bool:
    return not is_picked(key) and any(name in key[0] for name in BOUNDED)


def is_behind(key: tuple) -> bool:
    return not is_picked(key) and not is_bounded(key) and any(name in key[0] for name in BEHIND)


def test_a_stream_behind_the_masks_is_counted_with_them(errors):
    """North-Mini-Code at 131,072 tokens: 652.5 MiB where its logits are 512; Nemotron-H-56B on two GPUs 1,217.7."""
    errors = {key: error for key, error in errors.items() if is_behind(key)}
    assert len(errors) > 90
    outside = {
        key: f"{error:+.2%}"
        for key, (error, counted) in errors.items()
        if error * counted < -max(0.035 * counted, 2**24) or error * counted > 3 * 2**30 // 2**3
    }
    assert not outside


def test_a_server_reserves_logits_of_few_tokens(footprints, towers):
    """Qwen3-8B at 8,192 tokens: 100 MiB where a program that asks for logits of every token holds 304. Of an architecture that was not counted
    so, of a build before, and where nobody says which build it is, all are told."""
    served = [scenario_of(row) | {"program": "llama.cpp", "program_version": "b11312"} for row in SERVED]
    told = [
        (
            row["model_id"],
            few["activations_bytes"] - towers[row["attention"]].get(row["model_id"], 0),
            int(row["buffer_bytes"]),
        )
        for row, few in zip(SERVED, footprints(served), strict=True)
        if few["activations_bytes"] is not None  # (in no release that was read)
    ]
    assert len(told) > 800
    assert statistics.median(abs(held / counted - 1) for _, held, counted in told) < 0.015
    # (of those whose attention is picked all logits are told, and what is told is short by as much as in the rows above)
    assert not [row for row in told if row[1] < 0.97 * row[2] - 2**22 and not any(name in row[0] for name in PICKED)]


def test_logits_of_all_tokens_are_told_where_a_build_before_is_named_or_none(footprints):
    served = [scenario_of(row) | {"program": "llama.cpp"} for row in SERVED[::9]]
    few, plain, before, by_engine = (
        [row["activations_bytes"] for row in footprints([scenario | more for scenario in served])]
        for more in (
            {"program_version": "b11312"},
            {},
            {"program_version": "b9700"},
            {"program": None, "engine_id": "llama.cpp"},
        )
    )
    rows = [row for row in zip(few, plain, before, by_engine, strict=True) if row[0] is not None]
    assert len(rows) > 80 and sum(row[0] < row[1] for row in rows) > 30
    assert all(row[0] < row[1] + 2**23 and row[2] in (None, row[1]) and row[1] == row[3] for row in rows)


def test_layers_that_read_what_another_gpu_caches_have_copies_of_it(all_errors):
    """Gemma 4 E2B on two GPUs at 131,072 tokens 5,240 MiB; E4B 1,118 on two, whose second caches for itself, 7,328 on three and 5,248 on four, for
    eight sequences 37,714. (GPUs in the middle may have fewer such layers than all have, and the last fewer: an upper bound.)"""
    far = {key: error for key, (error, _) in all_errors.items() if is_borrowing(key)}
    assert len(far) > 40
    assert min(far.values()) > -0.012
    assert max(far.values()) < 0.55
    assert statistics.median(far.values()) < 0.01
    assert all(error < 0.025 for key, error in far.items() if key[2] == "flash" and key[3:6] == (131_072, 8, 4))


def test_buffers_of_latent_attention_and_shared_experts_are_not_less_than_is_reserved(errors):
    """DeepSeek-V3 at 131,072 tokens: 506 MiB, and 33,402 without flash attention, 132,986 for four sequences."""
    errors = {key: error for key, error in errors.items() if is_bounded(key)}
    assert len(errors) > 120
    outside = {
        key: f"{error:+.2%}"
        for key, (error, counted) in errors.items()
        if not -0.05 <= error <= 0.12 and not -(2**24) <= error * counted <= 5 * 2**24
    }
    assert not outside
    assert statistics.median(error for error, _ in errors.values()) >= 0


def test_without_flash_attention_scores_are_of_the_cells_of_all_sequences(footprints):
    asked = [
        {"model_id": "Qwen/Qwen3-8B", "dtype_id": "gguf-q4_k_m", "context_tokens": tokens, "sequences": sequences}
        | {"attention": "eager"}
        for tokens, sequences in ((32_768, 1), (8192, 4))
    ]
    one, four = (row["activations_bytes"] for row in footprints(asked))
    assert one == four


def test_heads_without_a_kernel_are_told_without_flash_attention(footprint_of):
    """llama.cpp's fattn.cu has no case for heads of 160 and 56, and `auto` switches it off. A packed cache switches it on, for the processor; its
    blocks of 32 do not divide 56 and 80, and it ends: "K cache type q8_0 with block size 32 does not divide n_embd_head_k=80"."""
    sarashina, short = "sbintuitions/sarashina2.2-3b-instruct-v0.1", {"dtype_id": "gguf-q4_k_m", "context_tokens": 4096}
    for model_id in (sarashina, "OuteAI/Lite-Oute-1-300M"):
        usual, eager = (footprint_of(model_id, **short, attention=kind) for kind in (None, "eager"))
        assert usual["activations_bytes"] == eager["activations_bytes"]
    for model_id in ("Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "XiaomiMiMo/MiMo-V2-Flash", "google/gemma-4-E4B-it"):
        long = short | {"context_tokens": 32_768}
        usual, eager = (footprint_of(model_id, **long, attention=kind) for kind in (None, "eager"))
        assert usual["activations_bytes"] < eager["activations_bytes"], (
            "heads of 128, 576, 192 with 128, and 256 with 512"
        )
    reasons = {
        sarashina: "the processor attends",
        "OuteAI/Lite-Oute-1-300M": "do not divide heads of 56",
        "EleutherAI/pythia-2.8b": "do not divide heads of 80",
        "Qwen/Qwen3-8B": None,
    }
    for model_id, why in reasons.items():
        row = footprint_of(model_id, dtype_id="gguf-q4_k_m", context_tokens=2048, kv_dtype_id="q8_0")
        assert why is row["unknown_reason"] if why is None else why in row["unknown_reason"]
    row = footprint_of("Qwen/Qwen3-8B", **short, kv_dtype_id="q8_0", attention="eager")
    assert "without fused attention" in row["unknown_reason"]


def test_layers_that_borrow_leave_the_cache_to_the_first_gpus(footprints):
    """Where llama.cpp puts each layer's cache at 131,072 tokens (of 42 layers of Gemma 4 E4B 24 cache, every sixth the whole context, 512 MiB, and
    the others 1,024 cells, 2 MiB; of 35 of E2B 15, every fifth, half as much): of E4B on two GPUs 3 and 19 of the first, on three 2 and 13; on four
    the second has 2 and 9, and the first 1 and 10; of E2B on two all, on three 2 and 10, on four 1 and 8 of the first, 2 and 4 of the second."""
    counted = {
        ("google/gemma-4-E4B-it", 2): 3 * 512 + 19 * 2,
        ("google/gemma-4-E4B-it", 3): 2 * 512 + 13 * 2,
        ("google/gemma-4-E4B-it", 4): 2 * 512 + 9 * 2,
        ("google/gemma-4-E2B-it", 2): 3 * 256 + 12,
        ("google/gemma-4-E2B-it", 3): 2 * 256 + 10,
        ("google/gemma-4-E2B-it", 4): 2 * 256 + 4,
    }
    scenario = {"dtype_id": "gguf-q4_k_m", "context_tokens": 131_072}
    rows = footprints([scenario | {"model_id": model_id, "gpu_count": gpus} for model_id, gpus in counted])
    for row, mib in zip(rows, counted.values(), strict=True):
        assert 1 <= (row["kv_cache_bytes"] + row["kv_padding_bytes"]) / (mib << 20) < 1.01


def test_buffers_of_models_with_an_index_grow_with_the_context(errors):
    """At a million tokens 13.2 GiB of GLM-5.3-Flash, 19.3 of MiniMax-M3 (30.5 on two GPUs at 131,072), where windows and masks are 2."""
    errors = {key: error for key, error in errors.items() if is_picked(key)}
    assert len(errors) > 55
    outside = {
        key: f"{error:+.2%}"
        for key, (error, counted) in errors.items()
        if not -0.06 <= error <= 0.1 and not -(2**26) <= error * counted <= 2**29
    }
    assert not outside
    assert statistics.median(abs(error) for error, _ in errors.values()) < 0.04


def test_tables_that_single_rows_are_read_of_stay_in_the_computers_memory(footprint_of, book):
    """ggml-org/llama.cpp pull 27742: 27,466 MiB of Qwen3.8-Flash-Next's n-gram table on the CPU in IQ4_NL; 78,056 on the card."""
    row = footprint_of("Qwen/Qwen3.8-Flash-Next", dtype_id="gguf-q4_k_m", context_tokens=131072)
    (whole, table), *_ = book.execute("""
        SELECT weights_bytes, input_bytes FROM weight WHERE model_id = 'Qwen/Qwen3.8-Flash-Next' AND dtype_id = 'gguf-q4_k_m'
    """).fetchall()
    assert table > 51.2e9 * 4.5 / 8
    assert row["weights_bytes"] == whole - table == pytest.approx(78_056 * 2**20, rel=0.04)


def test_llama_cpp_caches_more_of_an_index_than_its_key(footprint_of):
    """Its own account at 131,072 tokens: keys and values of MiniMax-M3's index, key, gate and pooled key of GLM-5.3-Flash."""
    for model_id, counted in (
        ("MiniMaxAI/MiniMax-M3", 15_360 + 3_648),
        ("zai-org/GLM-5.3-Flash", 1_408 + 1_056),
        ("Qwen/Qwen3.8-Flash-Next", 3_072 + 384),
    ):
        assert footprint_of(model_id, dtype_id="gguf-q4_k_m", context_tokens=131072)["kv_cache_bytes"] == counted << 20


def test_a_long_context_takes_its_mask_and_a_packed_cache_is_unpacked(footprints, towers):
    """Gemma 4 12B, four slots that share 262,144 cells: 821 MiB with a cache in Q8_0, where logits and two streams are 527."""
    asked = [
        {**GEMMA, "context_tokens": tokens, "sequences": 4, "kv_dtype_id": held, "max_context_tokens": None}
        for tokens in (1024, 65_536)
        for held in ("bf16", "q8_0")
    ]
    held = [row["activations_bytes"] - towers["flash"][GEMMA["model_id"]] for row in footprints(asked)]
    short, short_packed, long, long_packed = (size / 2**20 for size in held)
    assert short == short_packed == pytest.approx(527, abs=0.1)
    assert long == pytest.approx(527, abs=0.1)  # the mask's 256 MiB are free again when the logits come
    assert 820.8 <= long_packed < 1.01 * 820.8


def test_the_first_of_several_gpus_has_a_layer_more_where_the_head_is_one(footprints):
    """Of 32 layers and a head on two GPUs llama.cpp gives the first 17 and the last 15 and the head (its log: layer 0 to 16 assigned to the first)."""
    asked = [
        {
            "model_id": "meta-llama/Llama-3.1-8B-Instruct",
            "dtype_id": "gguf-q4_k_m",
            "context_tokens": 32_768,
            "gpu_count": gpus,
        }
        for gpus in (1, 2)
    ]
    one, two = footprints(asked)
    assert two["kv_cache_bytes"] == one["kv_cache_bytes"] * 17 / 32
    assert two["weights_bytes"] > one["weights_bytes"] / 2


def test_layers_on_several_gpus_have_four_copies_of_the_mask(footprints):
    asked = [
        {"model_id": "Qwen/Qwen3-8B", "dtype_id": "gguf-q4_k_m", "context_tokens": tokens, "gpu_count": 2}
        for tokens in (8192, 40_960)
    ]
    near, far = (row["activations_bytes"] for row in footprints(asked))
    assert far - near == 4 * 512 * 2 * (40_960 - 8192)


def test_llama_cpp_leaves_out_what_speaks_of_an_omni_model(footprint_of, book):
    """ggml-org/llama.cpp pull 21489: the cache of Qwen2.5-Omni-3B is 1,152 MiB at 32,768 tokens, that of its thinker's 36 layers, and 5.6 GiB are
    held in all with what it sees and hears with."""
    scenario = {"dtype_id": "gguf-q4_k_m", "context_tokens": 32768}
    row = footprint_of("Qwen/Qwen2.5-Omni-3B", **scenario)
    assert row["kv_cache_bytes"] == 1152 << 20
    assert 5.6 * 2**30 <= row["total_bytes"] < 1.08 * 5.6 * 2**30
    whole = footprint_of("Qwen/Qwen2.5-Omni-3B", dtype_id="bf16", context_tokens=32768, engine_id="transformers")
    assert whole["kv_cache_bytes"] > row["kv_cache_bytes"], "what loads the half that speaks caches for it, too"
