"""How long a training takes and what finishes in time: operations that everybody counts alike, shares that were published, whole trainings
that were."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from pipeline.press.plans import fill_plans
from tests.formulas.at_once import at_once

with (Path(__file__).parents[1] / "golden" / "trainings.csv").open(encoding="utf-8", newline="") as lines:
    WHOLE = list(csv.DictReader(lines))
TEXT, EXPERTS, LARGE = "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.1-70B"


@pytest.fixture(scope="module")
def plans(book):
    """plan_training_for, each question asked once."""
    kept = {}

    def ask(gpu_id, model_id, **question):
        key = (gpu_id, model_id, *sorted(question.items()))
        if key not in kept:
            named = "".join(f", {name} := ${name}" for name in question)
            asked = {"gpu_id": gpu_id, "model_id": model_id, **question}
            result = book.execute(f"FROM plan_training_for($gpu_id, $model_id{named})", asked)
            columns = [column[0] for column in result.description]
            kept[key] = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
        return kept[key]

    return ask


@pytest.fixture(scope="module")
def lora(plans):
    return plans("h100-sxm", TEXT, data_bytes=1_000_000_000, price_per_gpu_hour=2)


def test_operations_are_six_for_each_parameter_and_twelve_for_attention(book):
    """2 forward and 4 backward for each weight; frozen weights take no gradient of their own; recomputing is one forward pass more, without the head."""
    of = "SELECT training_operations(1000, 900, 10, $1, $2)"
    told = {
        (phase, saved): book.execute(of, [phase, saved]).fetchall()[0][0]
        for phase in ("pretrain", "full-finetune", "lora", "qlora")
        for saved in ("none", "selective", "full")
    }
    assert told["pretrain", "none"] == told["full-finetune", "none"] == 6 * 1000 + 6 * 10
    assert (
        told["pretrain", "full"] == 6 * 1000 + 2 * 900 + 8 * 10 and told["pretrain", "selective"] == 6 * 1000 + 8 * 10
    )
    assert (
        told["lora", "none"] == told["qlora", "none"] == 4 * 1000 + 6 * 10 and told["lora", "full"] == 4000 + 1800 + 80
    )


def test_published_shares_are_worked_out_again(book):
    """The utilisation that LLM Foundry prints of its own runs, recomputing counted (HFU): 56.76, 46.44 and 71.1 %."""
    share = "SELECT hardware_share FROM training_run WHERE run_id = $1"
    printed = {
        "mpt-70b-h100-sxm-64-2048": 0.5676,
        "mpt-7b-h100-sxm-8-2048": 0.4644,
        "mpt-70b-a100-sxm-80gb-64-2048": 0.711,
    }
    for run, expected in printed.items():
        assert book.execute(share, [run]).fetchall()[0][0] == pytest.approx(expected, rel=0.02)
    least, most = book.execute("SELECT min(hardware_share), max(hardware_share) FROM training_run").fetchall()[0]
    assert 0.05 < least < most < 1


def test_the_time_is_operations_over_what_runs_reached(lora, book):
    best = lora[0]
    elements = book.execute(
        "SELECT sum(element_count) FROM tensor WHERE model_id = $1 AND tensor_class <> 'embedding'", [TEXT]
    ).fetchall()[0][0]
    norms = 2e6
    attended = 36 * 32 * 256 * 2048
    assert best["operations_per_token"] == pytest.approx(4 * elements + 6 * attended, abs=6 * norms)
    assert best["data_tokens"] == pytest.approx(1e9 / 3.94, rel=1e-6)
    tokens = best["step_count"] * best["global_batch_tokens"]
    assert best["data_tokens"] <= tokens < best["data_tokens"] + best["global_batch_tokens"]
    hours = tokens * best["operations_per_token"] / (best["gpu_count"] * 989e12 * best["hardware_share"]) / 3600
    assert best["hours"] == pytest.approx(hours)
    assert best["hours_least"] < best["hours"] < best["hours_most"] <= 24
    assert best["cost"] == pytest.approx(2 * best["gpu_hours"])
    assert best["energy_kwh_most"] == pytest.approx(0.7 * best["gpu_hours"])


def test_the_fewest_cards_that_hold_it_and_finish_come_first(lora):
    """1 GB is a day's work for one H100, 5.6 of which do an hour's: one card where one suffices."""
    assert (lora[0]["gpu_count"], lora[0]["verdict"], lora[0]["sharding"], lora[0]["finishes"]) == (
        1,
        "fits",
        "none",
        "yes",
    )
    in_time = [p["gpu_count"] for p in lora if p["finishes"] == "yes" and p["verdict"] in ("fits", "multi-gpu")]
    assert in_time == sorted(in_time) and len(in_time) > 4
    assert all(
        p["gradient_accumulation"] * p["data_parallel"] * p["sequences"] * 2048 == p["global_batch_tokens"]
        for p in lora
    )
    # a batch of 128 sequences feeds no more copies than that
    assert max(p["data_parallel"] for p in lora) <= 128 and all(
        p["global_batch_tokens"] <= 1.5 * 128 * 2048 for p in lora
    )


@pytest.mark.full
def test_less_time_takes_more_cards(plans, lora):
    quick = plans("h100-sxm", TEXT, data_bytes=1_000_000_000, days=0.04)[0]
    assert quick["gpu_count"] > lora[0]["gpu_count"] and quick["finishes"] == "yes" and quick["hours_most"] <= 0.96
    never = plans("rtx-4090", TEXT, data_bytes=10**13)
    assert {p["finishes"] for p in never} == {"no"} and "does not finish in time" in never[0]["unknown_reason"]


@pytest.mark.full
def test_the_machine_around_the_cards(plans, lora, book):
    """Each by its stated rule: cores, memory, disk, what cards send."""
    for plan in lora[:4]:
        cards = min(plan["gpu_count"], 8)
        assert plan["server_cpu_count"] == cards * 3 + 4
        assert plan["server_memory_usual_bytes"] == cards * 80 * 2**30
        assert plan["server_memory_bytes"] == pytest.approx(2 * 8.19e9, rel=0.01)
        assert plan["power_kw_most"] == pytest.approx(0.7 * plan["gpu_count"])
    rows = plans("h100-sxm", TEXT, phase_id="full-finetune", data_bytes=10**9)
    sharded = next(plan for plan in rows if plan["sharding"] == "zero3")
    seconds = sharded["hours"] * 3600 / sharded["step_count"]
    sent = 6 * 8.19e9 * sharded["gradient_accumulation"] / seconds / 1e9
    assert sharded["network_gb_s_least"] == pytest.approx(sent, rel=0.01) and sharded["link_gb_s_least"] is None
    # 80 layers of 8192 over 2 stages of 8 cards, 16 micro-batches of 4096 tokens in 10 s: 4 sums a layer, sent and fetched
    step = (
        "{'tensor_parallel': 8, 'pipeline_parallel': 2, 'checkpointing': 'none', 'micro_tokens': 4096, 'micro_batches': 16, "
        "'step_seconds': 10, 'data_parallel': 4, 'sharding': NULL, 'phase_id': 'pretrain'}"
    )
    link, network = book.execute(f"SELECT link_gb_s({step}, 80, 8192), network_gb_s({step}, 70000000000)").fetchall()[0]
    assert link == pytest.approx(4 * 2 * 2 * 40 * 8192 * 7 / 8 * 4096 * 16 / 10 / 1e9)
    assert network == pytest.approx(4 * 70e9 / 16 / 10 / 1e9)


@pytest.mark.full
def test_what_keeps_up_with_its_links_is_taken(plans):
    """Of ways that are as quick what sends least: no plan over several servers asks more than one adapter of each card sends."""
    rows = plans("h100-sxm", TEXT, phase_id="full-finetune", data_bytes=10**9)
    far = [plan["network_gb_s_least"] for plan in rows if plan["gpu_count"] > 8]
    assert len(far) > 4 and all(rate is None or rate <= 50 for rate in far)
    (server,) = [plan for plan in rows if plan["gpu_count"] == 8]
    assert server["sharding"] == "zero2" and server["network_gb_s_least"] < 10
    # of experts few are multiplied and all are sent: 1115 GB/s with ZeRO-3
    assert all(
        (plan["network_gb_s_least"] or 0) <= 50
        for plan in plans("h100-sxm", EXPERTS, phase_id="full-finetune", data_bytes=10**9)
    )


@pytest.mark.full
def test_larger_micro_batches_are_searched_where_that_saves_sending(plans, footprint_of):
    asked = {"phase_id": "lora", "data_bytes": 10**9}
    (four,) = [plan for plan in plans("h100-sxm", LARGE, **asked) if plan["gpu_count"] == 4]
    (kept,) = [plan for plan in plans("h100-sxm", LARGE, sequences=1, **asked) if plan["gpu_count"] == 4]
    assert (four["sharding"], four["sequences"], kept["sequences"]) == ("zero3", 2, 1)
    assert kept["sharding"] == "zero3" and four["hours"] == kept["hours"]
    assert four["network_gb_s_least"] == pytest.approx(kept["network_gb_s_least"] / 2)
    names = ("phase_id", "context_tokens", "sequences", "sharding", "gpu_count", "checkpointing", "engine_id")
    assert four["total_bytes"] == footprint_of(LARGE, **{name: four[name] for name in names})["total_bytes"]
    # no micro-batch is larger than the data or the batch but the smallest that there is
    for size in (1_000, 10**9):
        for plan in plans("h100-sxm", TEXT, phase_id="full-finetune", data_bytes=size):
            micro = plan["data_parallel"] * plan["sequences"] * plan["context_tokens"]
            assert plan["sequences"] == 1 or micro <= min(plan["data_tokens"], 128 * 2048)


def test_who_waits_is_told_by_the_links_of_a_card(book):
    """450 GB/s of NVLink each way, 31.5 of a bus; to other servers 50 where the bus gives more; nothing is known of others' buses."""
    query = "SELECT wait_ratio($2, $3, gpu, $4, constants) FROM gpu CROSS JOIN constants WHERE gpu_id = $1"
    for gpu, network, link, scale, ratio in (
        ("h100-sxm", 900.0, None, "server", 2), ("h100-sxm", 100.0, None, "many", 2), ("h100-sxm", 20.0, 1350.0, "many", 3),
        ("rtx-4090", 63.0, None, "server", 2), ("rtx-4090", 63.0, None, "many", 2), ("mi300x", 900.0, 900.0, "server", 1),
        ("mi300x", 100.0, None, "many", 2), ("h100-sxm", None, None, "one", 1), ("h100-sxm", 10.0, 10.0, "server", 1),
    ):  # fmt: skip
        assert book.execute(query, [gpu, network, link, scale]).fetchall() == [(pytest.approx(ratio),)], (gpu, scale)


@pytest.mark.full
def test_of_experts_those_that_a_token_passes_are_counted(plans):
    """3B of 30B: about as quick as a model of 3B, and held like one of 30."""
    told = plans("h100-sxm", EXPERTS, phase_id="full-finetune", data_bytes=10**9)[0]
    assert 6 * 3.0e9 < told["operations_per_token"] < 10 * 3.4e9
    assert told["gpu_count"] >= 8 and told["server_memory_bytes"] == pytest.approx(2 * 30.5e9, rel=0.01)
    assert told["disk_bytes"] == pytest.approx(1e9 + 4e9 / 3.94 + 30 * 30.5e9, rel=0.01)


@pytest.mark.full
@pytest.mark.some(3)
@pytest.mark.parametrize("run", WHOLE, ids=lambda run: run["run"])
def test_whole_trainings_lie_in_the_band(whole, run):
    best = whole[run["run"]]
    reported = float(run["gpu_hours"])
    assert best["gpu_count"] * best["hours_least"] <= reported <= best["gpu_count"] * best["hours_most"]


@pytest.mark.full
def test_the_factor_of_whole_trainings_is_that_of_the_published_ones(whole, book):
    names = "whole_run_factor, whole_run_factor_least, whole_run_factor_most"
    factor, least, most = book.execute(f"SELECT {names} FROM constants").fetchall()[0]
    ratios = [float(run["gpu_hours"]) / (whole[run["run"]]["gpu_hours"] / factor) for run in WHOLE]
    assert round(statistics.median(ratios), 2) == factor
    assert least == pytest.approx(min(ratios), abs=0.01) and least <= min(ratios)
    assert most == pytest.approx(max(ratios), abs=0.01) and most >= max(ratios)


@pytest.mark.full
def test_each_whole_training_is_judged_by_the_others(whole, book):
    """The factor is fitted to all eight: what it is worth shows when each is left out in turn."""
    page = (Path(__file__).parents[2] / "site" / "docs" / "method" / "plans.md").read_text(encoding="utf-8")
    (factor,) = book.execute("SELECT whole_run_factor FROM constants").fetchall()[0]
    ratios = {run["run"]: float(run["gpu_hours"]) / (whole[run["run"]]["gpu_hours"] / factor) for run in WHOLE}
    inside = 0
    for name, ratio in ratios.items():
        others = [other for run, other in ratios.items() if run != name]
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {name},")]
        assert float(line.split("|")[3]) == round(ratio / statistics.median(others), 2)
        inside += min(others) <= ratio <= max(others)
    assert inside == 6 and "Six of the eight lie in the band" in page


def test_the_method_page_tells_these_ratios_and_shares(whole, book):
    page = (Path(__file__).parents[2] / "site" / "docs" / "method" / "plans.md").read_text(encoding="utf-8")
    (factor,) = book.execute("SELECT whole_run_factor FROM constants").fetchall()[0]
    for run in WHOLE:
        ratio = float(run["gpu_hours"]) / (whole[run["run"]]["gpu_hours"] / factor)
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {run['run']},")]
        assert float(line.split("|")[2]) == round(ratio, 2)
    share = "round(100 * quantile_cont(hardware_share, $q))::INT"
    query = f"SELECT {share.replace('$q', '0.25')}, {share.replace('$q', '0.75')} FROM training_run WHERE (phase_id IN ('lora', 'qlora')) = $1"
    for is_adapter, words in ((False, "of weights reached {} to {} %"), (True, "of adapters {} to {} %")):
        assert words.format(*book.execute(query, [is_adapter]).fetchall()[0]) in page
    assert f"from {book.execute('SELECT count(*) FROM training_run').fetchall()[0][0]} published speeds" in page


@pytest.fixture(scope="module")
def whole(book):
    """The best plan of each whole training, by its name."""
    cases = [
        {
            "gpu_id": run["gpu_id"], "model_id": run["model_id"], "phase_id": "pretrain", "data_tokens": float(run["tokens"]),
            "context_tokens": int(run["context_tokens"]), "days": 100,
        }
        for run in WHOLE
    ]  # fmt: skip
    told = at_once(book, "plan_training_for", ("gpu_id", "model_id"), cases)
    return {run["run"]: min(rows, key=lambda row: row["plan_rank"]) for run, rows in zip(WHOLE, told, strict=True)}


WRONG = {
    ("rtx-4090", TEXT, "lora", None, 1.0): "no data: ",
    ("rtx-4090", TEXT, "lora", 0.0, 1.0): "there has to be data",
    ("rtx-4090", TEXT, "lora", 1e6, 0.0): "the time has to be more than 0",
    ("rtx-4090", TEXT, "inference", 1e6, 1.0): "a training is pretrain",
    ("gtx-1080-ti", TEXT, "lora", 1e6, 1.0): "no rate of 16-bit products is known for this card",
    ("rtx-4090", TEXT, "lora", 1e30, 1.0): "there is more data than is worked out",
    ("rtx-4090", TEXT, "qlora", 1e6, 1.0): "no way to share it is known",
}


WRONG_NUMBERS = (
    ({"bytes_per_token": 0}, "bytes_per_token has to be"),
    ({"bytes_per_token": -4}, "bytes_per_token has to be"),
    ({"price_per_gpu_hour": -1}, "a price cannot"),
    ({"global_batch_tokens": 0}, "global_batch_tokens starts"),
)


@pytest.mark.full
def test_bad_questions_have_a_reason_and_no_number(book, plans):
    """Asked all at once, beside no way to share at all."""
    names = ("gpu_id", "model_id", "phase_id", "data_bytes", "days")
    more = ("data_tokens", "bytes_per_token", "global_batch_tokens", "price_per_gpu_hour")
    columns = (*(f"{name} VARCHAR" for name in names[:3]), *(f"{name} DOUBLE" for name in (*names[3:], *more)))
    book.execute(f"CREATE OR REPLACE TEMP TABLE wrong_training ({', '.join(columns)})")
    asked = [dict(zip(names, question, strict=True)) for question in WRONG]
    asked += [
        dict(zip(names, ("h100-sxm", TEXT, "lora", 1e9, 1.0), strict=True)) | said for said, _why in WRONG_NUMBERS
    ]
    values = [[question.get(name) for name in (*names, *more)] for question in asked]
    book.executemany(f"INSERT INTO wrong_training VALUES ({', '.join('?' * len(columns))})", values)
    book.execute(
        "CREATE OR REPLACE TEMP VIEW wrong_asked AS SELECT *, NULL::VARCHAR AS dtype_id, 1::DOUBLE AS epochs FROM wrong_training"
    )
    book.execute("CREATE OR REPLACE TEMP TABLE no_way AS FROM plans_for(NULL, NULL) LIMIT 0")
    told = book.execute(
        "SELECT unknown_reason, gpu_count, hours, cost FROM training_plans_in('wrong_asked', 'no_way')"
    ).fetchall()
    assert all(row[1:] == (None, None, None) for row in told) and len(told) == len(asked)
    for why in (*WRONG.values(), *(why for _said, why in WRONG_NUMBERS)):
        assert any(reason.startswith(why) for reason, *_ in told), why
    (row,) = plans("h100-sxm", TEXT, data_bytes=10**9, sequences="abc")
    assert row["unknown_reason"].startswith("sequences := abc is no whole number") and row["hours"] is None
    (unknown,) = plans("rtx-4099", "Qwen/Qwen3-9999B", data_bytes=10**6)
    assert unknown["unknown_reason"].startswith("no such GPU: rtx-4099") and unknown["hours"] is None


def test_a_model_whose_active_part_nobody_knows_has_a_reason(book):
    query = """
        SELECT training_reason({'phase_id': 'lora', 'data_bytes': 1e6, 'data_tokens': NULL, 'days': 1, 'epochs': 1, 'dtype_id': NULL,
            'bytes_per_token': NULL, 'global_batch_tokens': NULL, 'price_per_gpu_hour': NULL}, gpu, NULL, constants)
        FROM gpu CROSS JOIN constants WHERE gpu_id = 'rtx-4090'
    """
    assert book.execute(query).fetchall() == [("how many of its parameters a token passes is not known",)]


@pytest.mark.full
def test_the_published_plans_are_what_the_macro_answers(book, plans):
    cursor = book.cursor()
    cursor.execute("BEGIN")
    try:
        cursor.execute("DELETE FROM plan_set WHERE phase_ids = 'inference'")
        cursor.execute("UPDATE plan_set SET phase_ids = 'lora', gpu_ids = 'h100-sxm', model_ids = $1", [TEXT])
        fill_plans(cursor)
        columns = ("plan_rank", "gpu_count", "hours", "finishes", "sharding")
        query = f"SELECT {', '.join(columns)} FROM plan_training WHERE data_bytes = 1000000000 ORDER BY plan_rank"
        asked = plans("h100-sxm", TEXT, data_bytes=1_000_000_000, price_per_gpu_hour=2)
        assert cursor.execute(query).fetchall() == [tuple(p[name] for name in columns) for p in asked]
        assert cursor.execute("SELECT count(DISTINCT data_bytes) FROM plan_training").fetchall() == [(5,)]
    finally:
        cursor.execute("ROLLBACK")
