"""What is asked wrongly, and what nobody knows: said with what is near, or with the reason."""

from __future__ import annotations

import json

import pytest

from tests.few import TEXT, WEIGHED


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["plan", TEXT, "--gpu", "h100-sxm", "--train-on", "1GB"], 2, "--train-on is of a training"),
        (["plan", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--train-on", "0"], 2, "is no amount of text"),
        (["plan", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--train-on", "0 tokens"], 2, "is no amount of text"),
        (
            ["plan", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--train-on", "1GB", "--days", "0"],
            2,
            "no number above 0",
        ),
        (["fits", "Qwen/Qwen3-8"], 2, "Near it: Qwen/Qwen3-8B"),
        (["fits", TEXT, "--gpu", "rtx-409"], 2, "Near it: rtx-4090"),
        (["fits", TEXT, "--gpu", "0xrtx-4090"], 2, "0 cards hold nothing"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--users", "0"], 2, "it starts at 1"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--users", "many"], 2, "is no whole number"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--context", "999999"], 2, "reads 40,960 tokens at most"),
        (["what", "--gpu", "rtx-4090", "--context", "max"], 2, "no model is asked about"),
        (["fits", TEXT, "--free", "10"], 2, "is no amount of memory"),
        (["fits", TEXT, "--free", "0GiB"], 2, "is no amount of memory"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--format", "Q4_K_N"], 2, "Near it: gguf-q4_k_m"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--kv", "q3"], 2, "is no format of a cache"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--kv", "q8_0", "--phase", "lora"], 2, "--kv is of inference"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--rank", "8"], 2, "--rank is of a LoRA"),
        (["fits", TEXT, "--gpu", "rtx-4090", "--lora-targets", "attention"], 2, "--lora-targets is of a LoRA"),
        (
            ["fits", TEXT, "--gpu", "rtx-4090", "--phase", "lora", "--lora-targets", "k_proj"],
            2,
            "'k_proj' was not counted",
        ),
        (
            ["fits", TEXT, "--gpu", "rtx-4090", "--phase", "lora", "--lora-dropout", "1"],
            2,
            "no number from 0 to below 1",
        ),
        (["fits", TEXT, "--gpu", "rtx-4090", "--liger"], 2, "--liger is of a training"),
        (
            ["fits", TEXT, "--gpu", "rtx-4090", "--phase", "lora", "--program", "trl", "--liger"],
            2,
            "multiplies the head by tiles of its own",
        ),
        (["fits", TEXT, "--gpu", "rtx-4090", "--keep", "x.duckdb"], 2, "--keep is for a config.json"),
        (["what", "--gpu", "rtx-4090", "--for", "singing"], 2, "it is one of chat, code"),
        (["plan", TEXT, "--gpu", "rtx-509"], 2, "Near it: rtx-5090"),
        (
            ["fits", TEXT, "--gpu", "rtx-4090", "--contxt", "8192"],
            2,
            "no option of vram-almanac fits. Near it: --context",
        ),
        (["fits", "--gup=rtx-4090", TEXT], 2, "'--gup' is no option of vram-almanac fits. Near it: --gpu"),
        (["what", "--formt", "q4_k_m"], 2, "no option of vram-almanac what. Near it: --format"),
        (["fits", TEXT, "--quant", "4bit"], 2, "'--quant' is no option of vram-almanac fits. Here it is --format"),
        (["fits", TEXT, "--tp", "2"], 2, "Here it is --gpu (of several cards: --gpu 2xrtx-3090)"),
        (["plan", TEXT, "--quantisation", "4"], 2, "no option of vram-almanac plan. It has: --help, --gpu"),
        (["plan", TEXT, "--phase", "lroa"], 2, "'lroa' is none of inference, lora, qlora"),
        (["plan", TEXT, "--phase", "full-fintune"], 2, "Near it: full-finetune"),
        (["fit", TEXT], 2, "Near it: fits"),
        (["fits", TEXT, "--share", "0"], 2, "'0' is no share of a card, above 0 and up to 1"),
        (["fits", TEXT, "--share", "1", "--gpu", "rtx-4090"], 2, "--share is of vLLM"),
        (["fits", TEXT, "--lora-dropout", "1"], 2, "'1' is no number from 0 to below 1"),
        (["fits", "Qwen3-8B", "hello"], 2, "Of it Qwen3-8B is a model, and hello beside it is no card"),
        (["plan", "Qwen3-8B", "hello"], 2, "Of it Qwen3-8B is a model, and hello beside it is no card"),
        (["what", "Qwen3-8B"], 2, "Qwen3-8B names a model, which is asked by fits: vram-almanac fits Qwen3-8B"),
        (["fits", TEXT, "--phase", "grpo"], 2, "--objective grpo"),
        (["completion", "bsh"], 2, "Near it: bash"),
        (["fits", ""], 2, "argument MODEL: it is empty"),
        (["what", "--gpu", " "], 2, "argument --gpu: it is empty"),
    ],
)
def test_a_wrong_question_says_what_is_near(ask, arguments, status, said):
    ended, out, err = ask(*arguments)
    assert (ended, out) == (status, "") and said in " ".join(err.split())


def test_a_reason_names_no_argument_of_a_macro(ask):
    status, out, _err = ask("fits", TEXT, "--gpu", "1000xrtx-4090")
    assert status == 3 and out.startswith("Not known: more stages than the 36 layers.")


def test_what_nobody_knows_has_its_reason(ask, macro):
    (row,) = macro("SELECT model_id, anatomy_note FROM model WHERE anatomy_grade = 'unknown' LIMIT 1")
    status, _, err = ask("fits", row["model_id"], "--gpu", "rtx-4090")
    assert status == 3 and err.startswith("Not known: ")
    # a format that a card does not run is unknown, and no "no"
    status, out, _ = ask("fits", TEXT, "--gpu", "gtx-1080", "--format", "fp8")
    assert status == 3 and out.startswith("Not known: ")


def test_a_problem_is_json_too(ask):
    status, out, err = ask("fits", "Qwen/Qwen3-8", "--json")
    assert status == 2 and '"status": 2' in out and "Near it" in err
    status, out, err = ask("fits", TEXT, "--gpu", "rtx-4090", "--contxt", "8192", "--json")
    told = json.loads(out)
    assert told["status"] == status == 2 and told["problem"].endswith("Near it: --context") and told["problem"] in err


def test_a_name_rearranges_no_terminal(ask):
    _, _, err = ask("fits", "evil\x1b[2Jname", "--gpu", "rtx-4090")
    assert "\x1b" not in err and "\\u001b" in err


@pytest.mark.full
def test_of_what_only_weights_are_known_they_are_told_and_the_reason_of_no_single_engine(ask, ask_json):
    told = ask_json("fits", WEIGHED, "--gpu", "rtx-4090")
    assert told["verdict"] is None and told["weights_bytes"] == 3_591_350_116
    assert told["reason"].startswith("only its tensors are known")
    ended, out, _error = ask("fits", WEIGHED, "--gpu", "rtx-4090")
    assert ended == 3 and "Its weights alone take 3.3 GiB in bf16." in " ".join(out.split())
