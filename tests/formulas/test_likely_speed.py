"""Likely speeds: shares that a fit to published runs gives, held to runs that the fit has not seen."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

COLUMNS = (
    "serving_run.*, gpu.memory_bandwidth_gb_s * 1e9 AS bandwidth, product_tflops(gpu, coalesce(speed.product_bits, dtype.product_bits, 16)) * 1e12"
    " AS rate, speed.serving_speed_id AS speed_id"
)
RUNS = f"""
    SELECT {COLUMNS} FROM serving_run JOIN gpu USING (gpu_id) JOIN dtype USING (dtype_id) LEFT JOIN serving_speed AS speed
        ON list_contains(string_split(speed.programs, ' '), program) AND speed.vendor = gpu.vendor AND speed.has_experts = serving_run.has_experts
        AND coalesce(speed.segment, gpu.segment) = gpu.segment
"""
# what is left out together: a program, a model where two programs ran few of them, a card where there is one program alone, a source
APART = {
    "servers": "program",
    "servers-experts": "model_id",
    "servers-amd": "model_id",
    "servers-amd-experts": "model_id",
    "llama-cpp": "gpu_id",
    "llama-cpp-experts": "gpu_id",
    "llama-cpp-amd": "gpu_id",
    "llama-cpp-apple": "gpu_id",
    "mlx": "source",
}
# too few models or chips to leave one out: the band is that of the same program without experts
BORROWED = {"llama-cpp-apple-experts": "llama-cpp-apple", "mlx-experts": "mlx"}
# of these no published prompt tells the share of products: it is fitted with the rest
PRODUCTS_FITTED = {"servers-amd"}


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
    at_once = run["tensor_parallel"]
    cache = run["users"] * run["context_tokens"] * run["cache_token_bytes"]
    reading = (run["read_bytes"] / at_once + cache / (at_once if run["is_cache_divided"] else 1)) / run["bandwidth"]
    rated = product_share and run["rate"]
    work = 2 * run["multiplied_count"] * run["users"] / at_once / run["rate"] / product_share if rated else 0.0
    return reading, work, run["layer_count"], run["users"] / run["decode_tokens_per_second"]


def _solved(rows):
    """Least squares: what the columns but the last are multiplied with to come nearest to the last, by elimination."""
    size = len(rows[0]) - 1
    system = [[sum(row[i] * row[j] for row in rows) for j in range(size + 1)] for i in range(size)]
    for i in range(size):
        system[i] = [value / system[i][i] for value in system[i]]
        for j in range(size):
            if j != i:
                system[j] = [x - system[j][i] * y for x, y in zip(system[j], system[i], strict=True)]
    return [row[-1] for row in system]


def _fit(found, products=False, read_at_full=False):
    """Reading ÷ share, time of a layer, and multiplying ÷ share where that is fitted: least squares of the logarithm of said ÷ reported.

    Nothing is read faster than the card reads: a share that comes out above 1 is 1.
    """
    free = [i for i, is_free in enumerate((not read_at_full, True, products)) if is_free]
    shares = [1.0 if read_at_full else 1.2, 1e-4, 5.0 if products else 1.0]
    for _ in range(100):
        rows = []
        for reading, work, layers, told in found:
            parts = (reading, layers, work)
            said = sum(part * share for part, share in zip(parts, shares, strict=True))
            rows.append([*(parts[i] / said for i in free), math.log(told / said)])
        for i, step in zip(free, _solved(rows), strict=True):
            shares[i] = max(shares[i] + step, shares[i] / 5)
    return _fit(found, products, read_at_full=True) if shares[0] < 1 else shares


def _written(runs, speed_id):
    """Those that a row is fitted to: of llama.cpp one user."""
    return [run for run in runs if run["speed_id"] == speed_id and run["decode_tokens_per_second"] and (run["users"] == 1 or "llama" not in speed_id)]  # fmt: skip


def _known(runs, told):
    """Times of the runs of a row, with the share of products that is told or, where that is fitted too, at the full rate."""
    fitted = told["serving_speed_id"] in PRODUCTS_FITTED
    return [_times(run, 1 if fitted else told["product_share"]) for run in runs], fitted


def test_no_published_run_is_above_its_bound(runs):
    assert len(runs) > 120 and len({run["source"] for run in runs}) >= 8
    assert max(run["decode_share"] for run in runs if run["decode_share"]) < 1
    assert max(run["prefill_share"] for run in runs if run["prefill_share"]) < 1


@pytest.mark.parametrize("speed_id", [*APART, *BORROWED])
def test_the_shares_are_what_a_fit_to_the_runs_gives(runs, speeds, speed_id):
    told = speeds[speed_id]
    times, fitted = _known(_written(runs, speed_id), told)
    slower, layer, products = _fit(times, fitted)
    assert (round(1 / slower, 2), round(layer * 1e6)) == (told["bandwidth_share"], told["layer_microseconds"])
    assert not fitted or round(1 / products, 2) == told["product_share"]


@pytest.mark.parametrize("speed_id", list(APART))
def test_the_band_is_of_runs_that_the_fit_has_not_seen(runs, speeds, speed_id):
    """Without one program (or model, or card) at a time: nine tenths less one tenth of reported ÷ said lie between the ratios."""
    told, apart, ratios = speeds[speed_id], APART[speed_id], []
    mine = _written(runs, speed_id)
    times, fitted = _known(mine, told)
    for left_out in {run[apart] for run in mine}:
        slower, layer, products = _fit(
            [time for time, run in zip(times, mine, strict=True) if run[apart] != left_out], fitted
        )
        for (reading, work, layers, reported), run in zip(times, mine, strict=True):
            if run[apart] == left_out:
                ratios.append(reported / (reading * slower + work * products + layers * layer))
    tenths = statistics.quantiles(ratios, n=10)
    assert (round(tenths[0], 2), round(tenths[-1], 2)) == (told["quicker_ratio"], told["slower_ratio"])


def test_a_borrowed_band_holds_for_the_runs_that_there_are(runs, speeds):
    for speed_id, lender in BORROWED.items():
        told, mine = speeds[speed_id], _written(runs, speed_id)
        band = (told["quicker_ratio"], told["slower_ratio"])
        assert band == (speeds[lender]["quicker_ratio"], speeds[lender]["slower_ratio"])
        ratios = [run["decode_tokens_per_second_likely"] / run["decode_tokens_per_second"] for run in mine]
        assert len(mine) >= 5 and band[0] <= min(ratios) and max(ratios) <= band[1]


def test_of_experts_products_are_those_of_models_without(speeds):
    shares = ("product_share", "product_share_least", "product_share_most", "product_bits")
    for speed_id in ("servers", "servers-amd", "llama-cpp"):
        assert all(speeds[f"{speed_id}-experts"][name] == speeds[speed_id][name] for name in shares)


def test_several_users_of_llama_cpp_are_held_to_a_published_benchmark(runs, speeds):
    """Of the GB10 no rate is known: what its prompts are multiplied at, in the same file, stands for rate × share."""
    told, several = speeds["llama-cpp"], [run for run in runs if run["program"] == "llama.cpp" and run["users"] > 1]
    prompts = {run["model_id"]: run["prefill_tokens_per_second"] for run in runs if run["gpu_id"] == "gb10" and run["prefill_tokens_per_second"]}  # fmt: skip
    ratios = []
    for run in several:
        reading, _, layers, reported = _times(run, None)
        said = reading / told["bandwidth_share"] + run["users"] / prompts[run["model_id"]] + layers * told["layer_microseconds"] / 1e6  # fmt: skip
        ratios.append(reported / said)
    assert len(several) == 15 and told["quicker_ratio"] <= min(ratios) and max(ratios) <= told["slower_ratio"]


def test_prompts_are_read_with_the_middle_share_of_the_runs(runs, speeds):
    for speed_id in ("servers", "llama-cpp"):
        rows = [run for run in runs if run["speed_id"] == speed_id and run["prefill_tokens_per_second"] and run["rate"]]
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


@pytest.mark.full
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
    # nobody published several users of experts in llama.cpp that write different texts; of models without there are
    for users in (1, 4):
        of_experts = told("openai/gpt-oss-20b", sequences=users, dtype_id="gguf-mxfp4")
        assert (of_experts["decode_tokens_per_second_likely"] is None) == (users == 4)
        assert told("Qwen/Qwen3-8B", sequences=users, dtype_id="gguf-q4_k_m")["decode_tokens_per_second_likely"]
