"""A model larger than the card where a person says how much memory the computer has: that is the first line."""

from __future__ import annotations

import pytest

from tests.few import EXPERTS

LARGE = "Qwen/Qwen3-32B"
CARD = ("--gpu", "rtx-3060-12gb")
WAY = "dtype_id := $d, context_tokens := 8192"


def test_named_memory_is_the_answer(ask, ask_json, macro):
    """A larger model, or the experts of a mixture, as layers_that_fit has it; without the words it stays a No."""
    for model in (LARGE, EXPERTS):
        told = ask_json("fits", model, *CARD, "--ram", "64GB", "--context", 8192)
        way = told["beside"]
        (row,) = macro(f"FROM layers_that_fit('rtx-3060-12gb', $m, {WAY})", m=model, d=way["dtype_id"])
        has_experts = row["cpu_expert_layers"] is not None
        assert way["host_bytes"] == row["cpu_expert_host_bytes" if has_experts else "host_bytes"]
        assert told["verdict"] == "fits" and told["status"] == 0 and way["is_held"]
        out = " ".join(ask("fits", model, *CARD, "--ram", "64GB", "--context", 8192)[1].split())
        flags = f"-ngl 99 --n-cpu-moe {row['cpu_expert_layers']}" if has_experts else f"-ngl {row['gpu_layers']}"
        assert out.startswith("Yes, with ") and f"({flags})" in out and " of 64.0 GiB of RAM" in out
        assert all(flags in each["command"] for each in told["commands"])
        assert ask("fits", model, *CARD, "--context", 8192)[0] == 1


def test_too_little_memory_is_no(ask):
    status, out, _ = ask("fits", LARGE, *CARD, "--ram", "8GB", "--context", 8192, "--format", "Q8_0")
    assert status == 1 and out.startswith("No: ") and "Nor does it with 8.0 GiB of RAM" in " ".join(out.split())


@pytest.mark.full
def test_of_one_memory_there_is_no_other(ask_json):
    told = ask_json("fits", LARGE, "--gpu", "apple-m4-16gb", "--ram", "64GB")
    assert told["verdict"] == "no" and "beside" not in told


@pytest.mark.full
def test_so_many_layers_as_they_are_said(ask, ask_json, macro):
    """-ngl and --n-cpu-moe: what the card holds then, whether it does or not, and how many would fit."""
    (most,) = macro(f"FROM layers_that_fit('rtx-3060-12gb', $m, {WAY})", m=LARGE, d="gguf-q4_k_m")
    asked = ("fits", LARGE, *CARD, "--context", 8192)
    fitting = ask_json(*asked, "-ngl", most["gpu_layers"])
    assert fitting["verdict"] == "fits" and fitting["way"]["gpu_bytes"] == most["gpu_bytes"]
    status, out, _ = ask(*asked, "-ngl", most["gpu_layers"] + 5)
    assert status == 1 and f"The most that fit are {most['gpu_layers']} (-ngl {most['gpu_layers']})" in " ".join(
        out.split()
    )
    whole = ask_json(*asked, "-ngl", 99)
    assert "way" not in whole and whole["verdict"] == "no"


@pytest.mark.parametrize("flag", ["-ngl", "--n-cpu-moe"])
def test_of_several_cards_nobody_says(ask, flag):
    status, _, said = ask("fits", EXPERTS, "--gpu", "2xrtx-3060-12gb", flag, 3, "--context", 8192)
    assert status == 3, said
