"""Bounds of speed: what a token reads, and that no measured run is faster than the bound."""

from __future__ import annotations

import statistics

import pytest

from tests.formulas.at_once import one_each

# of one user on one card, by whom the usual share of llama.cpp is told
RUNS = "FROM serving_run WHERE source = 'gpu-benchmarks-llama' AND gpu_count = 1 ORDER BY ALL"


def speed(book, gpu, model, **arguments):
    named = ", ".join(f"{name} := ${name}" for name in arguments)
    result = book.execute(
        f"FROM speed_on($gpu, $model{', ' + named if named else ''})", {"gpu": gpu, "model": model} | arguments
    )
    names = [column[0] for column in result.description]
    return dict(zip(names, result.fetchall()[0], strict=True))


CHAT = dict(gpu="rtx-4090", model="Qwen/Qwen3-8B")
SERVED = dict(gpu="h100-sxm", model="Qwen/Qwen3-8B", dtype_id="fp8")
WITHOUT = (
    ("rtx-4090", "BAAI/bge-m3", "it writes no tokens: it reads them all at once"),
    ("rtx-4090", "google/diffusiongemma-26B-A4B-it", "it writes a block of tokens"),
    ("m5-ultra-256gb", "Qwen/Qwen3-8B", "the bandwidth of the card is not known"),
    ("rtx-9999", "Qwen/Qwen3-8B", "no such GPU: rtx-9999"),
    ("rtx-4090", "Qwen/Qwen3-9999B", "no such model in this snapshot"),
)


@pytest.fixture(scope="module")
def bounds(book):
    """What is said of each case, by its name."""
    cases = {
        "one": CHAT | dict(dtype_id="gguf-q4_k_m", context_tokens=8192),
        "split": CHAT | dict(dtype_id="gguf-q4_k_m", context_tokens=512, gpu_count=2),
        "alone": CHAT | dict(dtype_id="gguf-q4_k_m", context_tokens=512),
        "shared": SERVED | dict(gpu_count=2),
        "single": SERVED,
        "eight": SERVED | dict(sequences=8),
        "16 bits": SERVED | dict(dtype_id="bf16"),
    }
    cases |= {why: dict(gpu=gpu, model=model) for gpu, model, why in WITHOUT}
    return one_each(book, "speed_on", ("gpu", "model"), cases)


@pytest.mark.full
def test_what_is_asked_alone_is_what_is_asked_with_others(book, bounds):
    assert speed(book, "h100-sxm", "Qwen/Qwen3-8B", dtype_id="fp8") == bounds["single"]


@pytest.fixture(scope="module")
def runs(book):
    """Every measured run, with the share that it reached of its bound."""
    result = book.execute(RUNS)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module")
def shares(runs):
    return [run["decode_share"] for run in runs]


def test_no_measured_run_is_faster_than_its_bound(shares):
    assert len(shares) == 42 and max(shares) < 1 and min(shares) > 0.25


@pytest.mark.full
def test_the_share_of_a_run_is_of_what_the_macro_says(book, runs):
    for run in runs[:: len(runs) // 3]:
        asked = {name: run[name] for name in ("dtype_id", "context_tokens")}
        bound = speed(book, run["gpu_id"], run["model_id"], engine_id="llama.cpp", **asked)
        told = run["decode_tokens_per_second"] / bound["decode_tokens_per_second_most"]
        assert run["decode_share"] == pytest.approx(told, rel=0.01)


def test_the_usual_share_is_the_middle_half_of_the_runs(book, shares):
    low, high = book.execute("SELECT decode_share_low, decode_share_high FROM constants").fetchall()[0]
    lower, _, upper = statistics.quantiles(shares, n=4)
    assert (low, high) == (round(lower, 2), round(upper, 2))


def test_a_token_reads_all_weights_but_the_embeddings(book):
    query = "SELECT weights_bytes, embedding_bytes, read_bytes FROM weight WHERE model_id = $1 AND dtype_id = $2"
    for dtype in ("bf16", "gguf-q4_k_m", "stored"):
        whole, embeddings, read = book.execute(query, ["Qwen/Qwen3-8B", dtype]).fetchall()[0]
        assert read == whole - embeddings
    # tied to the output they are its matrix
    whole, embeddings, read = book.execute(query, ["Qwen/Qwen3-0.6B", "bf16"]).fetchall()[0]
    assert embeddings > 0 and read == whole


def test_of_experts_a_token_reads_those_that_it_is_sent_to(book):
    query = "SELECT sum(element_count) FILTER (tensor_class = 'expert'), sum(element_count) FILTER (tensor_class = 'embedding'), sum(element_count) FROM tensor WHERE model_id = $1"
    experts, embeddings, whole = book.execute(query, ["Qwen/Qwen3-30B-A3B"]).fetchall()[0]
    read = book.execute(
        "SELECT read_bytes FROM weight WHERE model_id = 'Qwen/Qwen3-30B-A3B' AND dtype_id = 'bf16'"
    ).fetchall()[0][0]
    assert read == pytest.approx(2 * (whole - embeddings - experts + experts * 8 / 128), rel=1e-6)


def test_the_bound_is_bandwidth_over_bytes_and_grows_with_what_reads_at_once(bounds):
    one, split, alone, shared, single, eight = (
        bounds[name] for name in ("one", "split", "alone", "shared", "single", "eight")
    )
    assert one["decode_tokens_per_second_most"] == pytest.approx(1008e9 / (one["read_bytes"] + one["cache_bytes"]))
    assert one["cache_bytes"] == 36 * 2 * 8 * 128 * 2 * 8192
    # layers that are split run one after another: two cards are no faster for one user
    assert split["decode_tokens_per_second_most"] == pytest.approx(alone["decode_tokens_per_second_most"], rel=0.01)
    assert shared["decode_tokens_per_second_most"] == pytest.approx(2 * single["decode_tokens_per_second_most"])
    assert (
        single["decode_tokens_per_second_most"]
        < eight["decode_tokens_per_second_most"]
        < 8 * single["decode_tokens_per_second_most"]
    )


def test_a_prompt_is_multiplied_with_every_weight_that_it_passes(book, bounds):
    told, quick = bounds["16 bits"], bounds["single"]
    elements = book.execute(
        "SELECT sum(element_count) FROM tensor WHERE model_id = 'Qwen/Qwen3-8B' AND tensor_class NOT IN ('embedding', 'head')"
    ).fetchall()[0][0]
    assert told["prefill_tokens_per_second_most"] == pytest.approx(989e12 / (2 * elements), rel=1e-3)
    # products of 8 bits are faster than those of 16: a bound that left them out would be none
    assert quick["prefill_tokens_per_second_most"] > 1.9 * told["prefill_tokens_per_second_most"]


@pytest.mark.parametrize("why", [why for *_, why in WITHOUT])
def test_what_has_no_bound_has_a_reason(bounds, why):
    told = bounds[why]
    assert told["decode_tokens_per_second_most"] is None and told["unknown_reason"].startswith(why)
