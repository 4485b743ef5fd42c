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


# Runs that nobody reported, for what our verdicts say of a run by how it went: judged with the reported ones, since a question is mostly its plan.
_PACKED = {"model_id": "Qwen/Qwen3-8B", "program": "llama.cpp", "dtype_id": "gguf-q8_0", "context_tokens": 8192}
_SERVED = {"model_id": "Qwen/Qwen3-8B", "program": "vllm", "gpu_id": "rtx-4090"}
_LARGE, _SMALL = {"gpu_id": "rtx-4090"}, {"gpu_id": "rtx-3060-8gb"}
MADE_UP = {
    "ran-on-a-large-card": {"outcome": "ran", **_PACKED, **_LARGE},
    "not-on-a-large-card": {"outcome": "did not run", **_PACKED, **_LARGE},
    "ran-on-a-small-card": {"outcome": "ran", **_PACKED, **_SMALL},
    "not-on-a-small-card": {"outcome": "did not run", **_PACKED, **_SMALL},
    "not-at-that-share": {"outcome": "ran out at another share", **_PACKED, **_LARGE},
    "long-by-default": {"outcome": "refused by default", "context_tokens": 24576, **_SERVED},
    "short-by-default": {"outcome": "refused by default", "context_tokens": 1024, **_SERVED},
    "as-it-is-started": {"outcome": "ran", "context_tokens": 32768, **_SERVED},
    "with-few-requests": {"outcome": "ran", "context_tokens": 32768, "max_num_seqs": 16, "batched_tokens": 1024, **_SERVED},
    "of-no-model": {"outcome": "ran", **_SERVED, "model_id": "nobody/nothing"},
}  # fmt: skip


@pytest.fixture(scope="module")
def told(book):
    """By run what is said of it: verdict, how that is judged, the setting that is told with it, the reason where it is unknown."""
    usual = {"gpu_count": 1, "phase_id": "inference", "source": "formats", "locator": "https://example.org"}
    book.execute("BEGIN")
    try:
        for outcome_id, said in MADE_UP.items():
            row = {"outcome_id": outcome_id} | usual | said
            book.execute(
                f"INSERT INTO outcome_fact ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values())
            )
        fill_outcomes(book)
        query = "SELECT outcome_id, verdict, judgement, engine_setting, unknown_reason FROM outcome"
        return {row[0]: row[1:] for row in book.execute(query).fetchall()}
    finally:
        book.execute("ROLLBACK")


@pytest.mark.parametrize("outcome_id", REPORTED)
def test_a_run_is_told_as_it_went(told, outcome_id):
    verdict, judgement, _setting, reason = told[outcome_id]
    if outcome_id in NOT_ANSWERED:
        assert judgement == "not known" and verdict is None and reason
    elif outcome_id in REFUSED_NEEDLESSLY:
        assert judgement == "needless refusal", "it is told rightly now: off this list"
    else:
        assert judgement == "right", told[outcome_id]


@pytest.mark.parametrize(
    ("outcome_id", "judgement"),
    [
        ("ran-on-a-large-card", "right"),
        ("not-on-a-large-card", "false fits"),
        ("ran-on-a-small-card", "needless refusal"),
        ("not-on-a-small-card", "right"),
        ("not-at-that-share", "false fits"),
    ],
)
def test_a_verdict_is_held_against_what_happened(told, outcome_id, judgement):
    verdict, found, _setting, reason = told[outcome_id]
    assert verdict and found == judgement and reason is None


def test_a_setting_that_cures_a_refusal_is_a_right_answer(told):
    verdict, found, setting, _reason = told["long-by-default"]
    assert verdict == "fits" and "--gpu-memory-utilization" in setting and found == "right"
    verdict, found, setting, _reason = told["short-by-default"]
    assert (verdict, found) == ("fits", "false fits") and "--gpu-memory-utilization" not in (setting or "")


def test_what_a_server_was_told_is_asked(told):
    """vLLM sets logits of 256 requests aside by itself. One that a report gave 16 of them has more room."""
    usual, few = told["as-it-is-started"], told["with-few-requests"]
    assert (usual[0], few[0]) == ("tight", "fits") and "--max-num-seqs 16 --max-num-batched-tokens 1024" in few[2]


def test_what_is_not_there_is_not_known(told):
    verdict, found, _setting, reason = told["of-no-model"]
    assert verdict is None and found == "not known" and "no such model" in reason
