"""A training that does not fit: what of it can be changed so that it does, by the same macros."""

from __future__ import annotations

import pytest

from tests.few import LARGE, TEXT


def by_help(helps):
    return {each["help"]: each for each in helps}


@pytest.mark.full
def test_what_is_recomputed_batched_and_kept_is_changed_until_it_fits(ask_json, ask, macro):
    asked = f"fits {TEXT} --gpu l40s --phase lora --context 4096 --batch 4 --checkpointing none".split()
    told = by_help(ask_json(*asked)["helps"])["easier"]
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


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "phase", "gpu", "less"),
    [(TEXT, "full-finetune", "h100-sxm", "lora"), (LARGE, "lora", "l40s", "qlora")],
)
def test_less_is_trained_where_nothing_else_helps(ask_json, ask, model, phase, gpu, less):
    helps = ask_json("fits", model, "--gpu", gpu, "--phase", phase)["helps"]
    first = next(each for each in helps if each["help"] == "phase")
    assert "easier" not in by_help(helps) and first["phase_id"] == less and first["verdict"] == "fits"
    _, out, _ = ask("fits", model, "--gpu", gpu, "--phase", phase)
    same = ask_json("fits", model, "--gpu", gpu, "--phase", less)["best"]
    assert f"(--phase {less})" in " ".join(out.split()) and same["total_bytes"] == first["total_bytes"]


@pytest.mark.full
def test_a_fine_tuning_names_every_way_that_takes_less_with_its_figures(ask_json, ask):
    helps = ask_json("fits", "finetune", TEXT, "on", "4090")["helps"]
    ways = [(each["phase_id"], each["program"], each["verdict"]) for each in helps if each["help"] == "phase"]
    assert [way[:2] for way in ways] == [("lora", None), ("qlora", None), ("qlora", "unsloth")]
    for each, (phase, program, verdict) in zip(helps, ways, strict=True):
        more = ["--program", program] if program else []
        told = ask_json("fits", TEXT, "--gpu", "4090", "--phase", phase, *more)
        assert verdict == told["verdict"]
        assert each["total_bytes"] in [row["total_bytes"] for row in told["formats"]]
    _, out, _ = ask("fits", "finetune", TEXT, "on", "4090")
    assert "QLoRA by Unsloth (--phase qlora --program unsloth): nf4-double (unsloth) fits" in " ".join(out.split())


def test_a_qlora_that_does_not_fit_is_told_by_the_trainer_that_takes_least(ask_json):
    (told,) = (
        each
        for each in ask_json("fits", TEXT, "--gpu", "3060-12gb", "--phase", "qlora")["helps"]
        if each["help"] == "phase"
    )
    assert (told["phase_id"], told["program"]) == ("qlora", "unsloth")


def test_of_what_fits_in_no_way_the_least_is_told_as_no_help(ask, ask_json):
    asked = ("fits", LARGE, "--gpu", "3060-12gb", "--phase", "lora")
    (told,) = (each for each in ask_json(*asked)["helps"] if each["help"] == "phase")
    assert told["verdict"] == "no"
    assert "What takes less:" in ask(*asked)[1] and "too much" in ask(*asked)[1]


def test_what_fits_needs_no_help(ask_json):
    assert ask_json("fits", TEXT, "--gpu", "h200-sxm", "--phase", "lora")["helps"] == []


def test_a_base_that_others_packed_is_not_trained_as_another(ask):
    for asked in (("qwen3-8b-gptq-int8",), ("qwen3", "8b", "awq")):
        status, out, problem = ask("fits", *asked, "--gpu", "h100-sxm", "--phase", "lora")
        assert status == 3 and not out and "what a training over a base in" in " ".join(problem.split())
        assert "vram-almanac fits Qwen/Qwen3-" in problem
