"""Our verdicts on runs that people reported: none that did not run is told to fit, and few that ran are refused, each for a known reason."""

from __future__ import annotations

import pytest

from pipeline.book.facts import read_facts
from pipeline.press.outcomes import fill_outcomes

REPORTED = read_facts()["outcome"]["outcome_id"].to_list()
# what our own row says of a program, a build, a card, a checkpoint or a model that it does not describe
NOT_ANSWERED = {
    "dgx-spark-playbooks-79",
    "kaito-2132",
    "llama-cpp-16725",
    "llamafactory-10591",
    "llamafactory-10591-2",
    "llamafactory-9331",
    "llmfit-778-5",
    "notebooks-gemma3-27b-a100",
    "notebooks-gemma4-e4b-text",
    "notebooks-glm-flash-a100",
    "notebooks-granite4-0",
    "ollama-15634",
    "recipes-deepseek-v4-flash",
    "sglang-7691",
    "sglang-8362",
    "unsloth-7203",
    "unsloth-7203-2",
    "vllm-27706",
    "vllm-53961",
}
# What runs and is told not to, and why. None is hidden: the page of errors has them first.
REFUSED_NEEDLESSLY = {
    # logits of a whole batch, which servers of llama.cpp since June 2026 do not hold, a mix chosen tensor by tensor, and a tower of which nobody says
    # that it was left out
    "lukesdevlab-4",
}


@pytest.fixture(scope="module")
def told(book):
    fill_outcomes(book)
    found = {
        row[0]: row[1:]
        for row in book.execute(
            "SELECT outcome_id, judgement, verdict, total_bytes, capacity_bytes, unknown_reason FROM outcome"
        ).fetchall()
    }
    book.execute("DELETE FROM outcome")
    return found


@pytest.mark.parametrize("outcome_id", REPORTED)
def test_a_run_is_told_as_it_went(told, outcome_id):
    judgement, verdict, _total, _capacity, reason = told[outcome_id]
    if outcome_id in NOT_ANSWERED:
        assert judgement == "not known" and verdict is None and reason
    elif outcome_id in REFUSED_NEEDLESSLY:
        assert judgement == "needless refusal", "it is told rightly now: off this list"
    else:
        assert judgement == "right", told[outcome_id]


def _one(book, **said):
    row = {
        "outcome_id": "r",
        "gpu_count": 1,
        "phase_id": "inference",
        "source": "formats",
        "locator": "https://example.org",
    } | said
    book.execute("BEGIN")
    try:
        book.execute("DELETE FROM outcome_fact")
        book.execute(
            f"INSERT INTO outcome_fact ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values())
        )
        fill_outcomes(book)
        return book.execute("SELECT verdict, judgement, engine_setting, unknown_reason FROM outcome").fetchall()
    finally:
        book.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("outcome", "card", "judgement"),
    [
        ("ran", "rtx-4090", "right"),
        ("did not run", "rtx-4090", "false fits"),
        ("ran", "rtx-3060-8gb", "needless refusal"),
        ("did not run", "rtx-3060-8gb", "right"),
        ("ran out at another share", "rtx-4090", "false fits"),
    ],
)
def test_a_verdict_is_held_against_what_happened(book, outcome, card, judgement):
    asked = {"model_id": "Qwen/Qwen3-8B", "program": "llama.cpp", "dtype_id": "gguf-q8_0", "context_tokens": 8192}
    ((verdict, found, _setting, reason),) = _one(book, outcome=outcome, gpu_id=card, **asked)
    assert verdict and found == judgement and reason is None


def test_a_setting_that_cures_a_refusal_is_a_right_answer(book):
    asked = {"model_id": "Qwen/Qwen3-8B", "program": "vllm", "gpu_id": "rtx-4090"}
    ((verdict, found, setting, _reason),) = _one(book, outcome="refused by default", context_tokens=24576, **asked)
    assert verdict == "fits" and "--gpu-memory-utilization" in setting and found == "right"
    ((verdict, found, setting, _reason),) = _one(book, outcome="refused by default", context_tokens=1024, **asked)
    assert (verdict, found) == ("fits", "false fits") and "--gpu-memory-utilization" not in (setting or "")


def test_what_a_server_was_told_is_asked(book):
    """vLLM sets logits of 256 requests aside by itself. One that a report gave 16 of them has more room."""
    asked = {"model_id": "Qwen/Qwen3-8B", "program": "vllm", "gpu_id": "rtx-4090", "context_tokens": 32768}
    ((usual, _found, _setting, _reason),) = _one(book, outcome="ran", **asked)
    ((told, _found, setting, _reason),) = _one(book, outcome="ran", max_num_seqs=16, batched_tokens=1024, **asked)
    assert (usual, told) == ("tight", "fits") and "--max-num-seqs 16 --max-num-batched-tokens 1024" in setting


def test_what_is_not_there_is_not_known(book):
    ((verdict, found, _setting, reason),) = _one(
        book, outcome="ran", model_id="nobody/nothing", gpu_id="rtx-4090", program="vllm"
    )
    assert verdict is None and found == "not known" and "no such model" in reason
