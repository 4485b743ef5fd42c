"""How many cards so many users take: weights once in each copy, a cache for every user, and what people take for it."""

from __future__ import annotations

import pytest

from pipeline.press.plans import fill_plans
from tests.conftest import FEW_ROWS

LARGE, SMALL, MIDDLE = "deepseek-ai/DeepSeek-R1", "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"


COLUMNS = ["gpu_id", "model_id", "dtype_id", "users", "context_tokens", "kv_dtype_id", "engine_id"]
QUESTIONS = {
    ("h100-sxm", SMALL, "bf16", 1), ("h100-sxm", SMALL, "bf16", 8), ("h100-sxm", SMALL, "bf16", 100_000),
    *((gpu, LARGE, "stored", users) for gpu in ("h100-sxm", "h200-sxm") for users in (1, 3)),
    ("rtx-4090", MIDDLE, "bf16", 8),
}  # fmt: skip
WRONG = {
    ("rtx-4090", SMALL, "bf16", "0", "8192"): "users starts at 1",
    ("rtx-4090", SMALL, "bf16", "1000000000000", "8192"): "users := 1000000000000 is ",
    ("rtx-4090", SMALL, "bf16", "many", "8192"): "users := many is no whole number",
    ("rtx-4090", SMALL, "bf16", "1", "0"): "context_tokens starts at 1",
    ("rtx-4090", SMALL, "bf16", "1", "900000"): "context_tokens := 900000 is beyond",
    ("rtx-4099", SMALL, "bf16", "1", "8192"): "no such GPU: rtx-4099",
    ("rtx-4090", "Qwen/Qwen3-9999B", "bf16", "1", "8192"): "no such model in this snapshot",
    ("rtx-4090", SMALL, "abc", "1", "8192"): "no such dtype: abc",
}


def asked(book, questions):
    """What serving_plans_in answers to questions, as dicts."""
    book.execute(f"CREATE OR REPLACE TEMP TABLE asked_plan ({', '.join(f'{name} VARCHAR' for name in COLUMNS)})")
    book.executemany("INSERT INTO asked_plan VALUES (?, ?, ?, ?, ?, NULL, NULL)", questions)
    result = book.execute("FROM serving_plans_in('asked_plan') ORDER BY ALL")
    columns = [column[0] for column in result.description]
    return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module")
def plans(book):
    """All plans of QUESTIONS, which are planned once, by the question and in their order."""
    found = {question: [] for question in QUESTIONS}
    for plan in asked(book, [(*question, 8192) for question in QUESTIONS]):
        found[plan["gpu_id"], plan["model_id"], plan["dtype_id"], plan["users"]].append(plan)
    return found


def test_weights_are_held_once_and_caches_for_every_user(plans, footprint_of):
    best = plans["h100-sxm", SMALL, "bf16", 8][0]
    assert (best["gpu_count"], best["copy_count"], best["copy_users"], best["verdict"]) == (1, 1, 8, "fits")
    told = footprint_of(SMALL, dtype_id="bf16", engine_id="vllm", context_tokens=8192, sequences=8)
    assert best["total_bytes"] == told["total_bytes"] and best["weights_bytes"] == told["weights_bytes"]
    assert best["caches_bytes"] == told["kv_cache_bytes"] + told["kv_padding_bytes"]
    one = plans["h100-sxm", SMALL, "bf16", 1][0]
    assert best["caches_bytes"] == 8 * one["caches_bytes"] and best["weights_bytes"] == one["weights_bytes"]
    # the mistake: a model for every user
    assert best["weights_times_users_bytes"] == 8 * best["weights_bytes"]
    assert best["gpu_count_by_weights_times_users"] == 2 > best["gpu_count"]


def test_three_users_of_deepseek_r1_take_no_more_cards_than_one(plans):
    """671B in its own format: 8 cards of 141 GB or 16 of 80 GB, whether one asks or three; weights × 3 would be 2 TB."""
    for users in (1, 3):
        counts = [plans[gpu, LARGE, "stored", users][0]["gpu_count"] for gpu in ("h200-sxm", "h100-sxm")]
        assert counts == [8, 16]
    best = plans["h100-sxm", LARGE, "stored", 3][0]
    assert (best["copy_gpu_count"], best["tensor_parallel"], best["pipeline_parallel"]) == (16, 8, 2)
    assert best["gpu_count_by_weights_times_users"] == 24


def test_each_number_of_cards_is_told_with_its_best_way(plans):
    """A copy takes as few cards as hold its users; more cards are more copies, and fewer users on each."""
    rows = sorted(plans["rtx-4090", MIDDLE, "bf16", 8], key=lambda plan: plan["plan_rank"])
    plans = {plan["gpu_count"]: plan for plan in rows}
    assert list(plans) == [4, 8, 16, 32, 64, 2, 1] and [p["plan_rank"] for p in plans.values()] == list(range(1, 8))
    assert [(n, plans[n]["verdict"]) for n in (1, 2, 4)] == [(1, "no"), (2, "tight"), (4, "multi-gpu")]
    ways = {n: (plans[n]["copy_count"], plans[n]["copy_gpu_count"], plans[n]["copy_users"]) for n in (4, 8, 16, 64)}
    assert ways == {4: (2, 2, 4), 8: (4, 2, 2), 16: (8, 2, 1), 64: (8, 8, 1)}
    assert all(
        p["copy_count"] * p["copy_gpu_count"] == n and p["copy_count"] * p["copy_users"] >= 8 for n, p in plans.items()
    )
    assert all(p["total_bytes"] + p["headroom_bytes"] == p["capacity_bytes"] for p in plans.values())


@pytest.mark.full
def test_the_bound_of_speed_is_that_of_one_copy_for_each_of_its_users(plans, book):
    best = next(p for p in plans["rtx-4090", MIDDLE, "bf16", 8] if p["gpu_count"] == 8)
    query = "SELECT decode_tokens_per_second_most, prefill_tokens_per_second_most FROM speed_on('rtx-4090', $1, engine_id := 'vllm', sequences := 2, gpu_count := 2)"
    decode, prefill = book.execute(query, [MIDDLE]).fetchall()[0]
    assert best["user_tokens_per_second_most"] == pytest.approx(decode / 2)
    assert best["decode_tokens_per_second_most"] == pytest.approx(8 * decode / 2)
    assert best["prefill_tokens_per_second_most"] == pytest.approx(4 * prefill)


def test_what_is_likely_lies_below_the_bound_with_its_band(plans):
    """DeepSeek-R1 on eight H200: 55 tokens a second for each of three users, where the bare bound is 746."""
    best = plans["h200-sxm", LARGE, "stored", 3][0]
    assert best["user_tokens_per_second_likely"] == pytest.approx(55, abs=1)
    assert best["user_tokens_per_second_most"] == pytest.approx(746, abs=1)
    for rows in plans.values():
        for plan in rows:
            ends = [plan[f"user_tokens_per_second_{end}"] for end in ("low", "likely", "high", "most")]
            assert None in ends or ends == sorted(ends)
            first = (plan["first_token_seconds_least"], plan["first_token_seconds_likely"])
            assert None in first or first[0] < first[1]


@pytest.mark.full
def test_stages_make_room_and_no_token_quicker(book):
    """Two servers hold half the layers each: one after another they read what eight cards read that hold all of them."""
    query = """
        SELECT decode_most(model, weight, shared, gpu), decode_likely(model, weight, dtype, shared, gpu, speed)
        FROM footprint_of('Qwen/Qwen3-32B', dtype_id := 'bf16', engine_id := 'vllm', sequences := 8, tensor_parallel := 8, pipeline_parallel := $stages,
            gpu_count := 8 * $stages) AS shared
        JOIN gpu ON gpu_id = 'h100-sxm' JOIN shape AS model ON model.model_id = shared.model_id JOIN dtype ON dtype.dtype_id = 'bf16'
        JOIN weight ON weight.model_id = shared.model_id AND weight.dtype_id = 'bf16'
        JOIN engine_speed AS speed ON is_speed_of(speed, 'vllm', gpu, false)
    """
    (one,), (two,) = (book.execute(query, {"stages": stages}).fetchall() for stages in (1, 2))
    assert one[0] < two[0] < 1.2 * one[0] and one[1] < two[1] < 1.2 * one[1]


def test_the_machine_around_the_cards(plans):
    """A core for each process of vLLM, the weights once in memory and on disk, cards at the limit of their power."""
    rows = {plan["gpu_count"]: plan for plan in plans["rtx-4090", MIDDLE, "bf16", 8]}
    # 4 cards as 2 copies: 2 API servers, 2 engines, 4 workers, a coordinator; 64 as 8 copies, one on each server
    assert (rows[4]["server_cpu_count"], rows[2]["server_cpu_count"], rows[64]["server_cpu_count"]) == (9, 4, 11)
    assert rows[4]["server_memory_bytes"] == pytest.approx(rows[4]["disk_bytes"], rel=0.02)
    assert rows[4]["power_kw_most"] == pytest.approx(4 * 0.45)


@pytest.mark.full
def test_bad_questions_have_a_reason_and_no_number(book):
    told = asked(book, list(WRONG))
    nothing = ("verdict", "decode_tokens_per_second_most", "user_tokens_per_second_likely")
    assert all(plan[name] is None for plan in told for name in nothing)
    # of no users there are no weights × users either
    few = ("total_bytes", "weights_times_users_bytes", "gpu_count_by_weights_times_users")
    assert all(plan[name] is None for plan in told for name in few if str(plan["unknown_reason"]).startswith("users "))
    for question, why in WRONG.items():
        assert any(p["unknown_reason"].startswith(why) for p in told if (p["gpu_id"], p["model_id"]) == question[:2]), (
            why
        )


def test_more_users_than_an_engine_takes_are_told(plans):
    rows = plans["h100-sxm", SMALL, "bf16", 100_000]
    assert {plan["verdict"] for plan in rows} == {"no"}
    assert all("requests at once on each copy" in plan["unknown_reason"] for plan in rows)


@pytest.mark.full
def test_the_published_plans_are_what_the_macro_answers(book):
    cursor = book.cursor()
    cursor.execute("BEGIN")
    try:
        cursor.execute(
            "UPDATE plan_set SET dtype_ids = 'stored', data_sizes = NULL, gpu_ids = 'h100-sxm', user_counts = '3', contexts = '8192'"
        )
        fill_plans(cursor)
        columns = "plan_rank, gpu_count, copy_count, total_bytes, decode_tokens_per_second_most"
        query = f"SELECT {columns} FROM plan_serving WHERE model_id = $1 ORDER BY plan_rank"
        rows = cursor.execute(query, [LARGE]).fetchall()
        macro = f"SELECT {columns} FROM plan_for('H100-SXM', $1, dtype_id := 'stored', users := 3)"
        assert (
            rows == [row for row in cursor.execute(macro, [LARGE.upper()]).fetchall() if row[1] >= 16]
            and len(rows) == 3
        )
        assert cursor.execute("SELECT count(DISTINCT model_id) FROM plan_serving").fetchall()[0][0] == 14
    finally:
        cursor.execute("ROLLBACK")


@pytest.mark.full
def test_thousands_of_questions_at_once_stay_within_little_memory(whole_book):
    """What is beside a question (the ids that its words may mean, the model's row) is looked up, and not carried along by every row."""
    whole_book.execute("CREATE OR REPLACE TEMP TABLE asked_plan AS SELECT gpu_id, model_id, 'bf16' AS dtype_id, '1' AS users, '4096' AS context_tokens, NULL::VARCHAR AS kv_dtype_id, NULL::VARCHAR AS engine_id FROM (FROM gpu ORDER BY gpu_id LIMIT 20), (FROM model ORDER BY model_id LIMIT 100)")  # fmt: skip
    limits = whole_book.execute("SELECT current_setting('memory_limit'), current_setting('temp_directory')").fetchall()[
        0
    ]
    [(used,)] = whole_book.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
    whole_book.execute(f"SET temp_directory = ''; SET memory_limit = '{int(used / 1e6) + 500}MB'")
    whole_book.execute("RESET disabled_optimizers")
    try:
        [(told,)] = whole_book.execute("SELECT count(*) FROM serving_plans_in('asked_plan')").fetchall()
    finally:
        whole_book.execute(FEW_ROWS)
        whole_book.execute(f"SET memory_limit = '{limits[0]}'; SET temp_directory = '{limits[1]}'")
    assert told == 2000 * 7
