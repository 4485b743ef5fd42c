"""Techniques of training on one model: what everybody knows of each, in our numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXT = "Qwen/Qwen3-8B"


@pytest.fixture(scope="module")
def told(book):
    result = book.execute("FROM techniques_for('h100-sxm', $1)", [TEXT])
    columns = [column[0] for column in result.description]
    rows = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
    assert [row["technique_rank"] for row in rows] == list(range(1, 18))
    return {row["technique_id"]: row for row in rows}


def test_every_technique_is_held_against_the_plain_one(told, footprint_of):
    plain = footprint_of(TEXT, phase_id="full-finetune", context_tokens=2048)
    assert told["plain"]["total_bytes"] == plain["total_bytes"] and told["plain"]["saved_bytes"] == 0
    assert all(row["saved_bytes"] == plain["total_bytes"] - row["total_bytes"] for row in told.values())
    assert all(row["verdict"] for row in told.values())
    reasons = {name: row["unknown_reason"] for name, row in told.items() if row["unknown_reason"]}
    assert reasons == {"fp32": "no rate of 32-bit products is kept"} and told["fp32"]["token_seconds_likely"] is None
    lora = footprint_of(TEXT, phase_id="lora", context_tokens=2048)
    assert told["lora"]["total_bytes"] == lora["total_bytes"]


def test_what_each_saves_and_costs(told):
    saved = {name: row["saved_bytes"] for name, row in told.items()}
    assert saved["zero3"] > saved["zero2"] > saved["zero1"] > 0
    assert saved["adamw-8bit"] > saved["lion"] > 0 and saved["qlora"] > saved["lora"] > 0 and saved["checkpointing"] > 0
    assert saved["fp32"] < 0 and saved["eager"] < 0 and saved["accumulation"] < 0
    assert told["offload"]["host_bytes"] > 0 == told["plain"]["host_bytes"]
    ratio = {name: row["operations_ratio"] for name, row in told.items()}
    assert ratio["plain"] == 1 and 1.3 < ratio["checkpointing"] < 4 / 3  # the head is not run again
    assert 2 / 3 < ratio["lora"] == ratio["qlora"] < 0.75
    assert (told["plain"]["verdict"], told["zero3"]["verdict"], told["lora"]["verdict"]) == ("no", "multi-gpu", "fits")


@pytest.mark.full
def test_what_each_takes_of_time(told, book):
    """A token: its operations at the card's rate, and its part of the update, which moves every state once."""
    least = {name: row["token_seconds_least"] for name, row in told.items() if name != "fp32"}
    assert all(told[name]["token_seconds_likely"] > seconds for name, seconds in least.items())
    assert least["checkpointing"] > least["plain"] == least["eager"] > least["adamw-8bit"] > least["accumulation"]
    assert least["lora"] == pytest.approx(least["qlora"], rel=0.01) and least["lora"] < least["plain"] / 2
    assert least["zero3"] < least["zero1"] < least["plain"] / 8 < least["tensor-parallel"]
    update = {name: row["update_seconds"] for name, row in told.items()}
    # 12 bytes of states and fp32 copy read and written, 2 of gradients, 2 of weights: 28 for each parameter
    assert update["plain"] == pytest.approx(28 * 8.19e9 / 3.35e12, rel=0.01)
    assert update["offload"] == pytest.approx(2 * 2 * 8.19e9 / 2 / 63e9, rel=0.01) and update["lora"] < 0.001
    for gpu, model, why in (("gtx-1080-ti", TEXT, "no rate of 16-bit"), ("h100-sxm", "BAAI/bge-m3", "how many of its")):
        rows = book.execute(
            "SELECT token_seconds_likely, unknown_reason FROM techniques_for($1, $2) WHERE technique_id <> 'fp32'",
            [gpu, model],
        ).fetchall()
        assert all(seconds is None and reason for seconds, reason in rows)
        assert any(reason.startswith(why) for _seconds, reason in rows)


def drafted(book, gpu, model, draft, **more):
    named = "".join(f", {name} := ${name}" for name in more)
    result = book.execute(
        f"FROM drafted_on($gpu, $model, $draft{named})", {"gpu": gpu, "model": model, "draft": draft, **more}
    )
    return dict(zip([column[0] for column in result.description], result.fetchall()[0], strict=True))


@pytest.mark.full
def test_a_draft_takes_its_weights_and_caches_and_gains_for_one_user(book, footprint_of):
    small = "Qwen/Qwen3-0.6B"
    draft = footprint_of(small, dtype_id="bf16", context_tokens=8192, engine_id="vllm")
    held = draft["weights_bytes"] + draft["kv_cache_bytes"] + draft["kv_padding_bytes"]
    one = drafted(book, "h100-sxm", "Qwen/Qwen3-32B", small, engine_id="vllm")
    assert one["draft_bytes"] == held
    gain = one["drafted_tokens_per_second_low"] / one["decode_tokens_per_second_likely"]
    assert 1.5 < gain < 2.3 and one["drafted_tokens_per_second_high"] / one[
        "drafted_tokens_per_second_low"
    ] == pytest.approx(2.78 / 2.52)
    # many users multiply already as much as the card can
    many = drafted(book, "h100-sxm", TEXT, small, engine_id="vllm", sequences=256, context_tokens=1024)
    assert many["drafted_tokens_per_second_low"] < 1.2 * many["decode_tokens_per_second_likely"]


def test_a_published_run_with_a_draft_and_without(book):
    """Llama 3.1 8B with Llama 3.2 1B in Q8_0 on an RTX 3060, five drafted and 526 of 730 kept in 146 rounds: 32.49 and 55.47 tokens a second."""
    told = drafted(
        book, "rtx-3060-12gb", "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.2-1B-Instruct",
        dtype_id="gguf-q8_0", context_tokens=512, draft_tokens=5, step_tokens=1 + 526 / 146,
    )  # fmt: skip
    assert told["decode_tokens_per_second_likely"] == pytest.approx(32.49, rel=0.15)
    assert 1 < told["drafted_tokens_per_second_low"] / 55.47 < 1.5
    page = (Path(__file__).parents[2] / "site" / "docs" / "method" / "plans.md").read_text(encoding="utf-8")
    alone, both = told["decode_tokens_per_second_likely"], told["drafted_tokens_per_second_low"]
    assert f"where we say {alone:.1f} and, with what it kept of five\ndrafted, {both:.0f}: " in page


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("gpu", "model", "draft", "why"),
    [
        ("h100-sxm", TEXT, "meta-llama/Llama-3.2-1B-Instruct", "vllm refuses a draft of 128256 tokens"),
        ("h100-sxm", "Qwen/Qwen3-0.6B", TEXT, "a draft has to be smaller"),
        ("h100-sxm", TEXT, "Qwen/No-Such", "the draft: "),
        ("no-card", TEXT, "Qwen/Qwen3-0.6B", "no such GPU"),
    ],
)
def test_a_draft_that_cannot_be_has_a_reason(book, gpu, model, draft, why):
    told = drafted(book, gpu, model, draft, engine_id="vllm")
    assert told["unknown_reason"].startswith(why) and told["drafted_tokens_per_second_low"] is None
