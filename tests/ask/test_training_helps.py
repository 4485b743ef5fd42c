"""A training that does not fit: what of it can be changed so that it does, by the same macros."""

from __future__ import annotations

import pytest

from tests.few import LARGE, TEXT


def by_help(told):
    return {each["help"]: each for each in told["helps"]}


def test_what_is_recomputed_batched_and_kept_is_changed_until_it_fits(ask_json, ask, macro):
    asked = f"fits {TEXT} --gpu l40s --phase lora --context 4096 --batch 4 --checkpointing none".split()
    told = by_help(ask_json(*asked))["easier"]
    assert told["changes"] == {"checkpointing": "full", "sequences": 1}
    (row,) = macro(
        "SELECT total_bytes FROM footprint_of($m, 'bf16', 'lora', context_tokens := 4096, checkpointing := 'full', sequences := 1)",
        m=TEXT,
    )
    assert told["total_bytes"] == row["total_bytes"] and told["verdict"] == "fits"
    _, out, _ = ask(*asked)
    assert "Every layer recomputed (--checkpointing full) and one sequence at a time (--batch 1): bf16" in " ".join(
        out.split()
    )


@pytest.mark.parametrize(
    ("model", "phase", "gpu", "less"),
    [(TEXT, "full-finetune", "h100-sxm", "lora"), (LARGE, "lora", "l40s", "qlora")],
)
def test_less_is_trained_where_nothing_else_helps(ask_json, ask, model, phase, gpu, less):
    told = by_help(ask_json("fits", model, "--gpu", gpu, "--phase", phase))
    assert "easier" not in told and told["phase"]["phase_id"] == less and told["phase"]["verdict"] == "fits"
    _, out, _ = ask("fits", model, "--gpu", gpu, "--phase", phase)
    same = ask_json("fits", model, "--gpu", gpu, "--phase", less)["best"]
    assert f"(--phase {less})" in out and same["total_bytes"] == told["phase"]["total_bytes"]


def test_what_fits_needs_no_help(ask_json):
    assert ask_json("fits", TEXT, "--gpu", "h200-sxm", "--phase", "lora")["helps"] == []


def test_a_base_that_others_packed_is_not_trained_as_another(ask):
    for asked in (("qwen3-8b-gptq-int8",), ("qwen3", "8b", "awq")):
        status, out, problem = ask("fits", *asked, "--gpu", "h100-sxm", "--phase", "lora")
        assert status == 3 and not out and "what a training over a base in" in " ".join(problem.split())
        assert "vram-almanac fits Qwen/Qwen3-" in problem
