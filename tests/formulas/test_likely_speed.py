"""Likely speeds: shares that a fit to published runs gives, held to runs that the fit has not seen."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

COLUMNS = (
    "serving_run.*, gpu.memory_bandwidth_gb_s * 1e9 AS bandwidth, product_tflops(gpu, coalesce(speed.product_bits, dtype.product_bits, 16)) * 1e12"
    " AS rate, speed.serving_speed_id AS speed_id"
)
RUNS = f"""
    SELECT {COLUMNS} FROM serving_run JOIN gpu USING (gpu_id) JOIN dtype USING (dtype_id) JOIN serving_speed AS speed
        ON list_contains(string_split(speed.programs, ' '), program) AND speed.vendor = gpu.vendor AND speed.has_experts = serving_run.has_experts
"""
# what is left out together: a program, or a card where there is one program alone
APART = {"servers": "program", "llama-cpp": "gpu_id", "llama-cpp-apple": "gpu_id"}


@pytest.fixture(scope="module")
def runs(book):
    result = book.execute(RUNS)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module")
def speeds(book):
    result = book.execute("FROM serving_speed")
    names = [column[0] for column in result.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in result.fetchall()}


def _times(run, product_share):
    """Of a step: reading at full bandwidth, multiplying at the share of the rate, layers, and what was reported; seconds."""
    cache = run["users"] * run["context_tokens"] * run["cache_token_bytes"]
    at_once = run["tensor_parallel"]
    reading = (run["read_bytes"] + cache) / at_once / run["bandwidth"]
    work = 2 * run["multiplied_count"] * run["users"] / at_once / run["rate"] / product_share if product_share else 0.0
    return reading, work, run["layer_count"], run["users"] / run["decode_tokens_per_second"]


def _fit(found):
    """Reading ÷ share and time of a layer, by least squares of what they say ÷ what was reported − 1."""
    rows = [(reading / told, layers / told, 1 - work / told) for reading, work, layers, told in found]
    aa, ab, bb = (sum(x * y for x, y in pairs) for pairs in ([(a, a) for a, _, _ in rows], [(a, b) for a, b, _ in rows], [(b, b) for _, b, _ in rows]))  # fmt: skip
    ay, by = sum(a * y for a, _, y in rows), sum(b * y for _, b, y in rows)
    return (bb * ay - ab * by) / (aa * bb - ab * ab), (aa * by - ab * ay) / (aa * bb - ab * ab)


def _written(runs, speed_id):
    return [run for run in runs if run["speed_id"] == speed_id and run["decode_tokens_per_second"]]


def test_no_published_run_is_above_its_bound(runs):
    assert len(runs) > 120 and len({run["source"] for run in runs}) >= 8
    assert max(run["decode_share"] for run in runs if run["decode_share"]) < 1
    assert max(run["prefill_share"] for run in runs if run["prefill_share"]) < 1


@pytest.mark.parametrize("speed_id", list(APART))
def test_the_shares_are_what_a_fit_to_the_runs_gives(runs, speeds, speed_id):
    told = speeds[speed_id]
    slower, layer = _fit([_times(run, told["product_share"]) for run in _written(runs, speed_id)])
    assert (round(1 / slower, 2), round(layer * 1e6)) == (told["bandwidth_share"], told["layer_microseconds"])


@pytest.mark.parametrize("speed_id", list(APART))
def test_the_band_is_of_runs_that_the_fit_has_not_seen(runs, speeds, speed_id):
    """Without one program (or one card) at a time: nine tenths less one tenth of reported ÷ said lie between the ratios."""
    told, apart, ratios = speeds[speed_id], APART[speed_id], []
    mine = _written(runs, speed_id)
    for left_out in {run[apart] for run in mine}:
        slower, layer = _fit([_times(run, told["product_share"]) for run in mine if run[apart] != left_out])
        for run in mine:
            if run[apart] == left_out:
                reading, work, layers, reported = _times(run, told["product_share"])
                ratios.append(reported / (reading * slower + work + layers * layer))
    tenths = statistics.quantiles(ratios, n=10)
    assert (round(tenths[0], 2), round(tenths[-1], 2)) == (told["quicker_ratio"], told["slower_ratio"])


def test_of_experts_three_runs_are_the_band(runs, speeds):
    told, layers_took, ratios = speeds["servers-experts"], [], []
    mine = _written(runs, "servers-experts")
    for run in mine:
        reading, work, layers, reported = _times(run, told["product_share"])
        layers_took.append((reported - reading / told["bandwidth_share"] - work) / layers * 1e6)
        ratios.append(run["decode_tokens_per_second_likely"] / run["decode_tokens_per_second"])
    assert len(mine) == 3 and round(statistics.median(layers_took)) == told["layer_microseconds"]
    assert (round(min(ratios), 2), round(max(ratios), 2)) == (told["quicker_ratio"], told["slower_ratio"])
    shares = ("bandwidth_share", "product_share", "product_share_least", "product_share_most")
    assert all(told[name] == speeds["servers"][name] for name in shares)


def test_prompts_are_read_with_the_middle_share_of_the_runs(runs, speeds):
    for speed_id in ("servers", "llama-cpp"):
        rows = [run for run in runs if run["speed_id"] == speed_id and run["prefill_tokens_per_second"]]
        shares = [r["prefill_tokens_per_second"] * 2 * r["multiplied_count"] / r["gpu_count"] / r["rate"] for r in rows]
        told = speeds[speed_id]
        quarters = [round(share, 2) for share in statistics.quantiles(shares, n=4)]
        assert quarters == [told["product_share_least"], told["product_share"], told["product_share_most"]]


def test_the_method_pages_tell_how_many_and_how_near(runs, speeds):
    pages = Path(__file__).parents[2] / "site" / "docs" / "method"
    page = (pages / "plans.md").read_text(encoding="utf-8")
    assert f"{len(runs)} published speeds" in page
    assert f"{len(runs)} published runs" in (pages / "speed.md").read_text(encoding="utf-8")
    for speed_id, told in speeds.items():
        row = (
            f"| {len(_written(runs, speed_id))} | {100 * told['bandwidth_share']:.0f} % | {told['layer_microseconds']:.0f} µs "
            f"| {told['quicker_ratio']:.2f} to {told['slower_ratio']:.2f} times |"
        )
        assert row in page, speed_id


def test_what_the_rows_say_of_a_model_is_what_the_book_says(book):
    """Tensors and caches of a run are those of its model; kept in the row, so that a snapshot without the model has them."""
    query = """
        SELECT serving_run_id, run.read_bytes, likely_read_bytes(model, weight, run.users), run.multiplied_count, model.token_elements,
            run.layer_count, model.layer_count, run.has_experts, model.expert_count_max > 0, run.cache_token_bytes, (SELECT sum(
            layer.layer_count * layer.elements_per_token) FROM attention_layer AS layer WHERE layer.model_id = run.model_id
            AND layer.component = 'text')
        FROM serving_run AS run JOIN shape AS model USING (model_id)
        JOIN weight ON weight.model_id = run.model_id AND weight.dtype_id = run.dtype_id
    """
    rows = book.execute(query).fetchall()
    assert len(rows) == book.execute("SELECT count(*) FROM serving_run").fetchall()[0][0]
    for name, read, ours, multiplied, elements, layers, depth, has_experts, knows, cache, cached in rows:
        assert read == pytest.approx(ours, rel=1e-6) and (multiplied, layers, has_experts) == (
            elements,
            depth,
            knows,
        ), name
        assert cache in (cached, 2 * cached), name


def test_a_small_model_on_a_fast_card_stays_far_below_its_bound(book):
    def told(model, **more):
        named = "".join(
            f", {name} := '{value}'" if isinstance(value, str) else f", {name} := {value}"
            for name, value in more.items()
        )
        cursor = book.execute(f"FROM speed_on('h100-sxm', '{model}'{named})")
        return dict(zip([c[0] for c in cursor.description], cursor.fetchall()[0], strict=True))

    small, large = told("Qwen/Qwen3-0.6B", engine_id="vllm"), told("Qwen/Qwen3-32B", engine_id="vllm")
    share = lambda row: row["decode_tokens_per_second_likely"] / row["decode_tokens_per_second_most"]  # noqa: E731
    assert share(small) < 0.3 < share(large) < 0.88
    for row in (small, large):
        low, likely, high, most = (row[f"decode_tokens_per_second_{end}"] for end in ("low", "likely", "high", "most"))
        assert low < likely < high <= most
    # nobody published several users of llama.cpp, and experts there
    for more in ({"sequences": 4, "dtype_id": "gguf-q4_k_m"}, {"gpu_count": 1, "dtype_id": "gguf-mxfp4"}):
        model = "openai/gpt-oss-20b" if more["dtype_id"] == "gguf-mxfp4" else "Qwen/Qwen3-8B"
        assert told(model, **more)["decode_tokens_per_second_likely"] is None
