"""How many cards a model takes, as `plan` tells it and as `fits` helps, and which of several that go by one name."""

from __future__ import annotations

import pytest

from pipeline.ask import words
from tests.few import LARGE, TEXT


def test_several_cards(ask_json, ask):
    one = ask_json("fits", LARGE, "--gpu", "rtx-3090", "--format", "Q8_0")
    two = ask_json("fits", LARGE, "--gpu", "2xrtx-3090", "--format", "Q8_0")
    assert (one["verdict"], two["verdict"]) == ("no", "fits") and two["formats"][0]["gpu_count"] == 2
    assert ask_json("fits", LARGE, "--gpu", "GeForce RTX 3090 ×2", "--format", "gguf-q8_0")["formats"] == two["formats"]
    assert "2 × GeForce RTX 3090" in ask("fits", LARGE, "--gpu", "2xrtx-3090", "--format", "Q8_0")[1]


def test_plan_says_how_many_cards(ask_json, ask, macro):
    told = ask_json("plan", TEXT, "--gpu", "rtx-4090", "--phase", "full-finetune")
    rows = macro("FROM plans_for('rtx-4090', $m, phase_id := 'full-finetune') ORDER BY plan_rank LIMIT 5", m=TEXT)
    (each,) = told["cards"]
    assert [p["total_bytes"] for p in each["plans"]] == [r["total_bytes"] for r in rows]
    _, out, _ = ask("plan", TEXT, "--gpu", "rtx-4090", "--phase", "full-finetune")
    assert out.startswith(f"{rows[0]['gpu_count']} × GeForce RTX 4090: ")
    both = ask_json("plan", LARGE, "--gpu", "rtx-3060-12gb", "--gpu", "h100-sxm")
    counts = [card["plans"][0]["gpu_count"] for card in both["cards"]]
    assert counts[0] > counts[1] == 1


@pytest.mark.full
def test_plan_says_how_cards_share_users_and_what_weights_times_users_would_be(ask_json, ask, macro):
    told = ask_json("plan", TEXT, "--gpu", "h100-sxm", "--users", "8", "--format", "fp8")
    (each,) = told["cards"]
    rows = macro("FROM plan_for('h100-sxm', $m, dtype_id := 'fp8', users := 8)", m=TEXT)
    assert [r["total_bytes"] for r in each["serving"]] == [r["total_bytes"] for r in rows]
    _, out, _ = ask("plan", TEXT, "--gpu", "h100-sxm", "--users", "8", "--format", "fp8")
    assert (
        "weights once in each copy" in out
        and rows[0]["gpu_count_by_weights_times_users"] == 1
        and "1 card: the usual mistake" in " ".join(out.split())
    )
    assert not ask_json("plan", TEXT, "--gpu", "h100-sxm", "--format", "fp8")["cards"][0]["serving"]


@pytest.mark.full
def test_plan_says_how_long_a_training_takes(ask_json, ask, macro):
    asked = ("plan", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--train-on", "1GB", "--price", "2")
    told = ask_json(*asked)
    rows = macro(
        "FROM plan_training_for('h100-sxm', $m, data_bytes := 1000000000, price_per_gpu_hour := 2) LIMIT 5",
        m=TEXT,
    )
    (each,) = told["cards"]
    assert [(p["gpu_count"], p["hours"], p["cost"]) for p in each["plans"]] == [
        (r["gpu_count"], r["hours"], r["cost"]) for r in rows
    ]
    assert each["verdict"] == "fits" and told["work"] == {
        "data_bytes": 10**9,
        "data_tokens": None,
        "days": 1.0,
        "price": 2.0,
    }
    status, out, _ = ask(*asked)
    assert (
        status == 0
        and out.startswith("1 × H100 SXM5 80GB: ")
        and "1 GB of text, within 1 day: " in " ".join(out.split())
    )
    status, out, _ = ask("plan", TEXT, "--gpu", "rtx-4090", "--phase", "lora", "--train-on", "10TB")
    assert status == 1 and out.startswith("Not in 1 day: on ")
    status, out, _ = ask("plan", TEXT, "--gpu", "gtx-1080-ti", "--phase", "lora", "--train-on", "1MB")
    assert status == 3 and "no rate of 16-bit products is known" in out


@pytest.mark.some(1)
@pytest.mark.parametrize("command", ["fits", "plan"])
def test_three_cards_are_tried_where_two_do_not_hold_it(ask_json, command):
    """A model that three cards hold was told to take four, as a page and the question of three contradicted."""
    card = next(
        card
        for card in ("rtx-3060-8gb", "gtx-1060-6gb", "rtx-3080")
        if ask_json("fits", LARGE, "--gpu", f"3x{card}", "--format", "q4_k_m")["verdict"] == "fits"
        and ask_json("fits", LARGE, "--gpu", f"2x{card}", "--format", "q4_k_m")["verdict"] != "fits"
    )
    told = ask_json(command, LARGE, "--gpu", card, "--format", "q4_k_m")
    if command == "fits":
        (told,) = (each for each in told["helps"] if each["help"] == "cards")
        assert told["gpu_count"] == 3
    else:
        assert [plan["gpu_count"] for plan in told["cards"][0]["plans"]] == [3]


def test_cards_of_one_name_of_which_the_smallest_is_not_known_say_so():
    """llama 4 scout awq h100 ended in a KeyError: the one of 80 GB is not known, that of 94 holds it."""
    larger = {
        "help": "larger",
        "name": "H100 NVL",
        "dtype_id": "awq-int4",
        "engine_id": "vllm",
        "max_context_tokens": 8192,
    }
    answer = {"helps": [larger], "verdict": None, "card": {"name": "H100 PCIe"}}
    assert words._of_its_name(answer) == "H100 PCIe: not known; H100 NVL: yes, in awq-int4 (vLLM), up to 8,192. "


def test_cards_of_one_name_say_which_of_them_holds_it(ask_json, ask, macro):
    """Asked of the one that gives least, which most people do not have."""
    asked = ("fits", LARGE, "--gpu", "m4 max", "--format", "bf16")
    told = ask_json(*asked)
    larger = told["helps"][0]
    assert told["verdict"] == "no" and (larger["help"], larger["gpu_id"]) == ("larger", "m4-max-128gb")
    (row,) = macro(
        "FROM fits_on('m4-max-128gb', $m, dtype_id := 'bf16', engine_id := $e)", m=LARGE, e=larger["engine_id"]
    )
    assert row["verdict"] == "fits" and row["total_bytes"] == larger["total_bytes"]
    out = " ".join(ask(*asked)[1].split())
    assert "If yours is Apple M4 Max 128GB" in out
    assert out.startswith(f"{told['card']['name']}: no; Apple M4 Max 128GB: yes, in bf16 ")


def test_who_says_how_large_a_card_is_is_told_of_a_card_of_that_size(ask_json, ask):
    """The least of them is one that hardly anybody has: it stands in the note, and not in the answer."""
    told = ask_json("fits", TEXT, "--gpu", "12gb", "--format", "Q4_K_M")
    assert told["card"]["name"] == "12 GB NVIDIA card" and told["card"]["gpu_id"] in told["card"]["notes"][0]
    out = ask("fits", TEXT, "--gpu", "2x12gb", "--format", "bf16")[1]
    assert " on 2 × 12 GB NVIDIA cards, best in bf16 " in " ".join(out.split())
