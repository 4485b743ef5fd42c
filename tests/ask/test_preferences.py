"""`fits --objective`: trainings on preferences in the words of a terminal, equal to the macro of the published file."""

import pytest

from tests.few import LARGE, SMALL, TEXT

SAID = ("fits", SMALL, "--gpu", "h100-sxm", "--objective")


def words(told):
    return " ".join(told[1].split())


def test_a_training_on_preferences_is_what_the_macro_says(ask_json, ask, macro):
    told = ask_json(*SAID, "DPO")
    (row,) = macro("FROM preference_fits_on('h100-sxm', 'dpo', $m, phase_id := 'lora')", m=SMALL)
    assert told["preferred"] == row and (told["verdict"], told["status"]) == ("fits", 0)
    assert f"DPO of {SMALL} by LoRA in fp32 needs" in words(ask(*SAID, "dpo"))
    assert "at 1,024 tokens and 8 pairs at once" in words(ask(*SAID, "dpo"))


@pytest.mark.full
def test_what_generates_stands_beside_the_step(ask_json, ask, macro):
    asked = (*SAID, "grpo", "--generator", "vllm-colocate", "--batch", 4)
    told = ask_json(*asked)
    query = "FROM preference_fits_on('h100-sxm', 'grpo', $m, phase_id := 'lora', sequences := 4, generator := 'vllm-colocate')"
    assert told["preferred"] == macro(query, m=SMALL)[0] and told["preferred"]["generator_bytes"] > 0
    said = words(ask(*asked))
    assert "vllm-colocate beside it" in said and "4 answers at once" in said and "vllm_gpu_memory_utilization" in said


@pytest.mark.full
def test_several_cards_train_by_copies_as_it_was_counted(ask_json):
    told = ask_json("fits", LARGE, "--gpu", "2xh100-sxm", "--objective", "dpo", "--batch", 1)
    assert told["preferred"]["gpu_count"] == 2 and told["preferred"]["unknown_reason"] is None


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (("ppo",), 2, "it is one of dpo, grpo, kto, orpo, reward"),
        (("dpo", "--phase", "inference"), 2, "--objective is of a training"),
        (("dpo", "--free", "10GiB"), 2, "without --free"),
        (("dpo", "--program", "llama-factory"), 3, "Unknown: how llama-factory does DPO was not counted"),
        # (reasons of the macro: tests/formulas/test_generator.py asks them)
        pytest.param(
            ("dpo", "--generator", "vllm-colocate"), 3, "DPO generates nothing while it trains", marks=pytest.mark.full
        ),
        pytest.param(("grpo", "--generator", "sglang"), 3, "no such generator: sglang", marks=pytest.mark.full),
    ],
)
def test_what_cannot_be_asked_says_what_can(ask, more, status, said):
    found, out, error = ask(*SAID, *more)
    assert found == status and said in " ".join((out + error).split())


@pytest.mark.full
def test_a_release_that_only_the_objective_was_counted_in_is_answered(ask_json):
    """TRL 1.8's own loss for supervised training is not described; that of its DPO is."""
    told = ask_json(*SAID, "dpo", "--program", "trl 1.8")
    assert told["verdict"] == "fits" and told["preferred"]["holds_for"] == "TRL 1.8.0 to 1.13.0"


@pytest.mark.full
def test_another_program_is_not_told_as_trl(ask_json):
    """With the defaults of LLaMA-Factory the reason spoke of a loss that nobody had named."""
    told = ask_json(*SAID, "dpo", "--program", "llama-factory")
    assert told["verdict"] is None and told["reason"].startswith(
        "how llama-factory does DPO was not counted; known: program := trl"
    )


def test_a_generator_is_of_rewards(ask):
    status, _out, said = ask("fits", SMALL, "--gpu", "h100-sxm", "--generator", "vllm-colocate")
    assert status == 2 and "--objective grpo" in said


def test_what_was_chosen_is_said(ask_json, ask):
    """Its program's own choices, as of other trainings: who starts it otherwise holds more or less."""
    told = ask_json(*SAID, "dpo")["choices"]
    assert (told["checkpointing"], told["lora_targets"], told["lora_rank"]) == ("full", "query-value", 16)
    said = words(ask(*SAID, "dpo"))
    assert "rank 16 on the projections of queries and values, 8 pairs at once, every layer recomputed" in said


@pytest.mark.full
def test_what_does_not_fit_says_what_does(ask_json, ask, macro):
    asked = ("fits", SMALL, "--gpu", "rtx-3060-12gb", "--objective", "dpo", "--context", 4096)
    told = ask_json(*asked)
    assert told["verdict"] == "no" and told["helps"]
    query = "FROM preference_fits_on('rtx-3060-12gb', 'dpo', $m, context_tokens := 4096"
    for each in told["helps"]:
        phase = "qlora" if "qlora" in each["options"] else "lora"
        one = ", sequences := 1" if "--batch 1" in each["options"] else ""
        (row,) = macro(f"{query}, phase_id := '{phase}'{one})", m=SMALL)
        assert row["verdict"] == "fits" and row["total_bytes"] == each["total_bytes"]
    assert f"- {told['helps'][0]['options']}: it fits" in words(ask(*asked))


@pytest.mark.full
def test_a_plan_says_on_how_many_cards_it_fits(ask_json, ask, macro):
    one = ask_json("plan", SMALL, "--gpu", "h100-sxm", "--objective", "dpo")["cards"][0]
    assert [plan["gpu_count"] for plan in one["plans"]] == [1] and one["verdict"] == "fits"
    asked = ("plan", TEXT, "--gpu", "rtx-4090", "--objective", "dpo", "--batch", 1, "--sharding", "zero3")
    (plan,) = ask_json(*asked)["cards"][0]["plans"]
    query = (
        "FROM preference_fits_on('rtx-4090', 'dpo', $m, phase_id := 'lora', sequences := 1, sharding := 'zero3', "
        "engine_id := 'deepspeed', gpu_count := $n)"
    )
    (row,) = macro(query, m=TEXT, n=plan["gpu_count"])
    assert plan["total_bytes"] == row["total_bytes"] and (plan["sharding"], row["verdict"]) == ("zero3", "fits")
    said = words(ask(*asked))
    assert f"{plan['gpu_count']} × GeForce RTX 4090: {TEXT} can be fine-tuned by LoRA (DPO)" in said
