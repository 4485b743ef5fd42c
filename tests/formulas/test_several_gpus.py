"""From one card to many: the rows are the forward formula's, the limits are where it stops fitting, and impossible counts say why."""

from __future__ import annotations

import pytest


def ask(book, card, model, **scenario):
    named = "".join(f", {name} := ${name}" for name in scenario)
    result = book.execute(f"FROM on_several_gpus($card, $model{named})", {"card": card, "model": model} | scenario)
    names = [column[0] for column in result.description]
    return {row[names.index("gpu_count")]: dict(zip(names, row, strict=True)) for row in result.fetchall()}


@pytest.mark.full
@pytest.mark.parametrize(
    ("card", "model", "dtype"),
    [
        ("h100-sxm", "deepseek-ai/DeepSeek-V3", "fp8"),
        pytest.param("rtx-4090", "meta-llama/Llama-3.1-8B-Instruct", "bf16", marks=pytest.mark.full),
        pytest.param("rtx-4090", "meta-llama/Llama-3.3-70B-Instruct", "awq-int4", marks=pytest.mark.full),
        pytest.param("rtx-3060-12gb", "google/gemma-3-27b-it", "gguf-q4_k_m", marks=pytest.mark.full),
    ],
)
def test_the_limits_of_every_count_fit_and_the_next_step_does_not(book, footprint_of, card, model, dtype):
    [(capacity,)] = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = $1", [card]).fetchall()
    [(allowed,)] = book.execute("SELECT max_context_tokens FROM shape WHERE model_id = $1", [model]).fetchall()

    def need(**scenario):
        row = footprint_of(model, dtype_id=dtype, **scenario)
        return row["total_bytes"] * (1 + row["error_band"])

    for count, row in ask(book, card, model, dtype_id=dtype, context_tokens=4096).items():
        if count > 8:
            continue
        alone = footprint_of(model, dtype_id=dtype, context_tokens=4096, gpu_count=count)
        assert row["total_bytes"] == alone["total_bytes"]
        assert (row["verdict"] in ("fits", "multi-gpu")) == (need(context_tokens=4096, gpu_count=count) <= capacity)
        longest, most = row["max_context_tokens"], row["max_sequences"]
        if longest:
            assert need(context_tokens=longest, gpu_count=count) <= capacity * (1 + 1e-6)
            if longest < (allowed or 1048576):
                assert need(context_tokens=longest + 1024, gpu_count=count) > capacity
        if most:
            assert need(context_tokens=4096, sequences=most, gpu_count=count) <= capacity * (1 + 1e-6)
            if most < 256:
                assert need(context_tokens=4096, sequences=most + 1, gpu_count=count) > capacity


@pytest.mark.full
def test_a_model_too_large_for_a_server_takes_several(book):
    rows = ask(book, "h100-sxm", "deepseek-ai/DeepSeek-V3", dtype_id="fp8", context_tokens=8192)
    assert rows[8]["verdict"] == "no" and rows[16]["verdict"] == "multi-gpu"
    assert [rows[n]["stages"] for n in (8, 16, 32)] == [1, 2, 4]
    totals = [rows[n]["total_bytes"] for n in sorted(rows)]
    assert totals == sorted(totals, reverse=True)
    # two stages hold half of the layers each, and what is not divided by a pipeline twice
    assert rows[8]["total_bytes"] / 2 < rows[16]["total_bytes"] < rows[8]["total_bytes"]


@pytest.mark.full
def test_servers_that_are_joined_hold_what_their_stage_holds(book, footprint_of):
    """Llama 3.1 405B in bf16 over 2 × 8 by hand: 63 of 126 layers, each divided by 8, and an eighth of the larger end."""
    model = "meta-llama/Llama-3.1-405B-Instruct"
    row = footprint_of(model, engine_id="vllm", context_tokens=8192, gpu_count=16)
    assert (row["sharding"], row["tensor_parallel"], row["pipeline_parallel"]) == ("tp+pp", 8, 2)
    attention, mlp, norms = 16384 * 128 * (2 * 128 + 2 * 8), 3 * 16384 * 53248, 2 * 16384
    assert row["weights_bytes"] == pytest.approx(
        63 * 2 * ((attention + mlp) / 8 + norms) + 2 * 128256 * 16384 / 8, rel=1e-4
    )
    # one of 8 KV heads a GPU: keys and values of 128 elements in two bytes, 63 layers
    assert row["kv_cache_bytes"] == 8192 * 63 * 2 * 128 * 2
    asked_back = footprint_of(model, engine_id="vllm", context_tokens=8192, gpu_count=16, sharding=row["sharding"])
    assert asked_back == row
    assert (
        footprint_of(model, engine_id="vllm", context_tokens=8192, tensor_parallel=4, pipeline_parallel=2)["gpu_count"]
        == 8
    )
    refused = footprint_of(model, engine_id="transformers", context_tokens=8192, tensor_parallel=4, pipeline_parallel=2)
    assert "not by both" in refused["unknown_reason"]


@pytest.mark.full
def test_llama_cpp_shares_a_model_among_fifteen_cards_at_most(footprint_of):
    """Its scheduler has 16 backends, the CPU one of them (source llama-cpp-backends)."""
    asked = {"dtype_id": "gguf-q6_k", "engine_id": "llama.cpp", "context_tokens": 8192}
    assert footprint_of("deepseek-ai/DeepSeek-V3", gpu_count=15, **asked)["total_bytes"]
    told = footprint_of("deepseek-ai/DeepSeek-V3", gpu_count=16, **asked)
    assert (told["total_bytes"], told["unknown_reason"]) == (None, "llama.cpp shares a model among 15 GPUs at most")


def test_an_impossible_count_says_why(book):
    rows = ask(book, "l40s", "Qwen/Qwen2.5-0.5B-Instruct", dtype_id="fp8", context_tokens=4096)
    assert rows[1]["verdict"] == "fits"
    assert rows[8]["verdict"] is None and "do not divide by tensor_parallel 8" in rows[8]["unknown_reason"]
    assert rows[16]["verdict"] is None and rows[16]["unknown_reason"]
    assert "no such GPU" in ask(book, "no-such-card", "Qwen/Qwen3-0.6B")[1]["unknown_reason"]
    assert "compute capability" in ask(book, "t4", "Qwen/Qwen3-0.6B", engine_id="vllm")[1]["unknown_reason"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("argument", "value"), [("context_tokens", "1.5"), ("sequences", "2.5"), ("context_tokens", "1e30::DOUBLE")]
)
def test_a_number_that_is_none_has_a_reason_and_no_verdict(book, argument, value):
    rows = book.execute(
        f"SELECT total_bytes, verdict, max_context_tokens, unknown_reason FROM on_several_gpus('h100-sxm', 'meta-llama/Llama-3.1-8B-Instruct', {argument} := {value})"
    ).fetchall()
    assert rows
    for total, verdict, most, reason in rows:
        assert total is None and verdict is None and most is None
        assert reason.startswith(f"{argument} := ")


@pytest.mark.full
def test_null_is_what_is_taken_where_nothing_is_said(book):
    asked = "SELECT * FROM on_several_gpus('h100-sxm', '{}'{}) ORDER BY gpu_count"
    said = book.execute(asked.format("meta-llama/Llama-3.1-8B-Instruct", "")).fetchall()
    assert (
        book.execute(
            asked.format("meta-llama/Llama-3.1-8B-Instruct", ", context_tokens := NULL, sequences := NULL")
        ).fetchall()
        == said
    )


@pytest.mark.full
def test_fits_on_says_whether_it_fits_on_the_cards_that_were_named(book):
    asked = "SELECT verdict FROM fits_on('rtx-4090', 'Qwen/Qwen3-32B', dtype_id := 'bf16', engine_id := 'vllm', gpu_count := $1)"
    assert [book.execute(asked, [count]).fetchall() for count in (1, 8)] == [[("no",)], [("fits",)]]
