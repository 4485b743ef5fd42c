"""A question in one breath is what its options say, and no word of it is passed over in silence."""

from __future__ import annotations

import pytest

from pipeline.ask.sentence_name import _needed
from pipeline.ask.sentence_words import _IS_PROGRAM
from tests.few import SEEING, SMALL, TEXT


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("sentence", "options"),
    [
        ("qwen3 8b 4090", ["--gpu", "rtx-4090"]),
        ("qwen3-8b q4 on a 3060 12gb", ["--format", "q4_k_m", "--gpu", "rtx-3060-12gb"]),
        ("does Qwen/Qwen3-8B fit in 24gb?", ["--gpu", "24gb"]),
        ("can i run qwen3 8b with vllm 0.27 on two l4, 16k context", ["--program", "vllm 0.27", "--gpu", "2xl4", "--context", "16384"]),
        ("qwen3 8b ollama 3090 4 users kv q8_0", ["--program", "ollama", "--gpu", "rtx-3090", "--users", "4", "--kv", "q8_0"]),
        ("qwen3 8b lora batch 2 2x h100 sxm", ["--phase", "lora", "--users", "2", "--gpu", "2xh100-sxm"]),
        ("qwen3 8b vllm 4090 16384", ["--program", "vllm", "--gpu", "rtx-4090", "--context", "16384"]),
        ("lora qwen3 8b on a 4090", ["--phase", "lora", "--gpu", "rtx-4090"]),
        ("qwen3 8b full fine-tuning 8192 tokens h200 sxm", ["--phase", "full-finetune", "--context", "8192", "--gpu", "h200-sxm"]),
        ("qwen3 8b 3090 + 3060 12gb", ["--gpu", "rtx-3090 + rtx-3060-12gb"]),
        ("how much vram for qwen3 8b on 2x3090?", ["--gpu", "2xrtx-3090"]),
        ("4090 qwen3 8b q4", ["--gpu", "rtx-4090", "--format", "gguf-q4_k_m"]),
        ("qwen3 8b 2x4090 q4", ["--gpu", "2xrtx-4090", "--format", "gguf-q4_k_m"]),
        ("dpo qwen3 8b h100 sxm trl", ["--objective", "dpo", "--gpu", "h100-sxm", "--program", "trl"]),
        ("qlora Qwen/Qwen3-8B 4090", ["--phase", "qlora", "--gpu", "4090"]),
        ("finetune qwen3 8b qlora on a 4090", ["--phase", "qlora", "--gpu", "4090"]),
        ("lora fine-tuning of qwen3 8b 4090", ["--phase", "lora", "--gpu", "4090"]),
        ("fine-tuned qwen3 8b h200 sxm", ["--phase", "full-finetune", "--gpu", "h200-sxm"]),
        ("full finetune qwen3 8b 8xh100 sxm zero3", ["--phase", "full-finetune", "--gpu", "8xh100-sxm", "--sharding", "zero3"]),
        ("qwen3 8b full context 4090", ["--context", "40960", "--gpu", "rtx-4090"]),
        ("qwen3 8b 16k x 4 users 4090", ["--context", "16384", "--users", "4", "--gpu", "rtx-4090"]),
        ("qwen3 8b 8k sequence 4090 qlora", ["--context", "8192", "--gpu", "rtx-4090", "--phase", "qlora"]),
        ("sft qwen3 8b 4k seq h200 sxm", ["--phase", "full-finetune", "--context", "4096", "--gpu", "h200-sxm"]),
        ("pretrain qwen3 8b from scratch h200 sxm", ["--phase", "pretrain", "--gpu", "h200-sxm"]),
        ("grpo qwen3 8b with vllm colocate h200 sxm", ["--objective", "grpo", "--generator", "vllm-colocate", "--gpu", "h200-sxm"]),
        ("est-ce que qwen3 8b tourne sur rtx 3060 12go", ["--gpu", "rtx-3060-12gb"]),
        ("cabe o qwen3 8b na minha 4090", ["--gpu", "rtx-4090"]),
        ("qwen3 8b vllm tp 2 2x4090", ["--program", "vllm", "--tensor-parallel", "2", "--gpu", "2xrtx-4090"]),
        ("qwen3 8b lora rank 64 adamw 8bit 4090 no gradient checkpointing",
         ["--phase", "lora", "--rank", "64", "--optimizer", "adamw-8bit", "--gpu", "rtx-4090", "--checkpointing", "none"]),
    ],
)  # fmt: skip
def test_what_stands_behind_a_model_is_what_an_option_says(ask_json, sentence, options):
    told, same = ask_json("fits", *sentence.split()), ask_json("fits", TEXT, *options)
    assert told.pop("heard").startswith(f"{sentence} is asked as ")
    told.pop("taken", None)  # how the model was called
    assert told == {name: value for name, value in same.items() if name != "taken"}


def test_a_word_of_the_models_own_name_is_no_option():
    """The 4k of Phi-3-mini-4k is in no almanac so small that tests ask it: the rule alone."""

    class Names:
        def repository(self, name):
            known = "microsoft/Phi-3-mini-4k-instruct" if name.startswith("phi 3 mini") else None
            return {"model_id": known, "dtype_id": None, "dtype_named": None}

    assert _needed(Names(), ["phi", "3", "mini", "4k"]) == 4
    assert _needed(Names(), ["phi", "3", "mini", "4k", "16k"]) == 4


@pytest.mark.full
def test_a_fine_tuning_by_a_program_of_which_adapters_alone_are_known_is_of_them(ask_json):
    """Who fine-tunes with Unsloth was told that a full fine-tuning is not known."""
    told = ask_json("fits", "finetune qwen3 8b with unsloth on a 4090")
    assert told["use"]["phase_id"] == "qlora" and told["verdict"] == "fits"
    assert told["heard"].endswith("--phase qlora --program unsloth --gpu 4090.")
    assert ask_json("fits", "finetune", SMALL, "trl", "h100-sxm")["use"]["phase_id"] == "full-finetune"


def test_names_of_programs_are_those_that_the_formulas_answer_to(macro):
    """They are looked up apart, since the formulas plan a program whole to say that there is one."""
    known = {row["name"] for row in macro("SELECT DISTINCT program_name AS name FROM internal.program_name")}
    heard = {name for name in (*known, "no program", "") if next(iter(macro(_IS_PROGRAM, name=name)[0].values()))}
    assert len(known) > 30 and heard == known


def test_words_of_a_name_are_of_the_name(ask_json):
    told = ask_json("fits", "qwen3", "8b", "q4", "--gpu", "rtx-4090")
    assert "heard" not in told and [row["dtype_id"] for row in told["formats"]] == ["gguf-q4_k_m"]


def test_a_tag_that_is_pasted_has_options_behind_it_too(ask_json):
    told = ask_json("fits", "ollama run qwen3:8b on a 3060 12gb")
    assert "--gpu '3060 12gb'" in told["heard"] and told["verdict"] == "fits"


def test_what_a_name_passes_over_is_heard(ask_json):
    """A file or a format that the almanac does not describe is a name whatever stands behind it."""
    told = ask_json("fits", "qwen3 8b exl3 4090 16k")
    assert told["heard"] == "qwen3 8b exl3 4090 16k is asked as qwen3 8b exl3 --gpu 4090 --context 16384."


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("qwen3 8b abliterated 4090", "qwen3 8b is a model, and abliterated beside it is no card, program, format"),
        ("qwen3 8b 4090 5090", "says --gpu twice: 4090 and 5090 (cards of two kinds together: 4090 + 5090)"),
        ("qwen3 8b lora qlora 4090", "says --phase twice: lora and qlora"),
        ("qwen3 8b vllm 4o90", "4o90 beside it is no card"),
        ("qwen3 8b lora fast 4090", "fast beside it is no card"),
        ("on the with", "is not in this almanac"),
    ],
)
def test_a_word_that_says_nothing_is_named(ask, sentence, said):
    status, _, problem = ask("fits", *sentence.split())
    assert status == 2 and said in " ".join(problem.split())


def test_a_card_and_its_memory_apart_are_one_card(ask, ask_json):
    assert ask_json("fits", *["qwen3", "8b", "3060", "32k", "12gb"])["card"]["gpu_id"] == "rtx-3060-12gb"
    for sentence, size in (("qwen3 8b rtx 2080 ti 22gb", "22"), ("qwen3 8b 2x 4090 48gb", "48")):
        status, _, problem = ask("fits", *sentence.split())
        said = " ".join(problem.split())
        assert status == 2 and f"GB in this almanac, not {size}." in said and "is asked by its memory: --free" in said


def test_a_device_that_is_no_card_is_told_how_it_is_asked(ask):
    for device in ("steam deck", "npu", "iphone"):
        status, _, problem = ask("fits", *f"qwen3 8b {device}".split())
        assert status == 2 and "vram-almanac fits qwen3 8b --free 10GiB" in " ".join(problem.split())


def test_an_amount_in_mb_is_asked_as_one(ask_json):
    told = ask_json("fits", *["qwen3", "8b", "10000mb"])
    assert told["card"]["usable_bytes"] == 10_000 * 10**6
    assert ask_json("fits", "qwen3 8b", "--free", "20g")["card"]["usable_bytes"] == 20 * 10**9


def test_lengths_are_read_as_people_write_them(ask_json):
    for said, tokens in (("1e4", 10_000), ("1.5k", 1536), ("32k", 32_768)):
        assert ask_json("fits", "qwen3 8b", "--gpu", "4090", "--context", said)["best"]["context_tokens"] == tokens


def test_more_cards_than_there_are_is_no_name_of_one(ask):
    status, _, problem = ask("fits", "qwen3 8b", "--gpu", "999999999x3090")
    assert status == 2 and "too many cards" in problem


def test_a_number_apart_from_its_sign_counts_cards_with_long_names(ask_json):
    told = ask_json("fits", *["qwen3", "8b", "on", "4", "x", "mac", "studio", "m3", "ultra", "512gb"])
    assert (told["card"]["gpu_id"], told["card"]["count"]) == ("m3-ultra-512gb", 4)


def test_what_an_option_says_is_not_said_again(ask):
    status, _, problem = ask("fits", "qwen3 8b 4090", "--gpu", "rtx-3090")
    assert status == 2 and "says --gpu twice: rtx-3090 and 4090" in " ".join(problem.split())


def test_a_plan_is_asked_so_too(ask_json):
    told, same = ask_json("plan", "qwen3 8b lora 3090"), ask_json("plan", TEXT, "--phase", "lora", "--gpu", "rtx-3090")
    assert told.pop("taken") == f"qwen3 8b is taken as {TEXT}."
    assert told.pop("heard") == "qwen3 8b lora 3090 is asked as qwen3 8b --phase lora --gpu 3090." and told == same


def test_the_memory_of_the_computer_is_no_card(ask_json):
    told = ask_json("fits", "qwen3 8b 3060 12gb 64gb ram")
    assert "--gpu '3060 12gb' --ram 64GiB." in told["heard"] and told["use"]["ram_bytes"] == 64 * 2**30
    told = ask_json("what", "3060 12gb 64gb of ddr5")
    assert "--ram 64GiB" in told["heard"] and told["beside"]["ram_bytes"] == 64 * 2**30
    assert "--ram 64GiB is asked by fits" in ask_json("plan", "qwen3 8b 3060 12gb 64gb ram")["heard"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("q8 cache", ["--kv", "q8_0"]),
        ("q8 kv", ["--kv", "q8_0"]),
        ("kv cache q4", ["--kv", "q4_0"]),
        ("-ctk q8_0 -ctv q8_0", ["--kv", "q8_0"]),
        ("ctx 32k", ["--context", "32768"]),
        ("flash attn off", ["--attention", "eager"]),
        ("-ngl 20", ["-ngl", "20"]),
        ("no mmproj", ["--no-mmproj"]),
    ],
)
def test_words_of_people_who_run_at_home(ask_json, words, options):
    told, same = ask_json("fits", f"qwen3 8b 4090 {words}"), ask_json("fits", TEXT, "--gpu", "rtx-4090", *options)
    assert told["formats"] == same["formats"] and told["verdict"] == same["verdict"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("3060 12gb", ["--gpu", "rtx-3060-12gb"]),
        ("4090 for vision 4k", ["--gpu", "rtx-4090", "--for", "vision", "--context", "4096"]),
        ("h100 sxm full fine-tuning", ["--gpu", "h100-sxm", "--for", "full"]),
    ],
)
def test_what_fits_a_card_is_asked_in_words(ask_json, words, options):
    told, same = ask_json("what", *words.split()), ask_json("what", *options)
    assert told.pop("heard").startswith(f"{words} is asked as what fits --gpu ")
    assert told == same


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("4090 please hello", "hello is no card"),
        ("4090 5090", "says --gpu twice"),
        ("4090 zero3", "--sharding zero3, which what is not asked"),
    ],
)
def test_a_word_that_says_nothing_of_a_card_is_named(ask, words, said):
    status, _, problem = ask("what", *words.split())
    assert status == 2 and said in " ".join(problem.split())


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "model", "card"),
    [
        ("kann ich qwen3 8b auf einer rtx 3090 laufen lassen", TEXT, "rtx-3090"),
        ("est-ce que qwen3 8b tourne sur une rtx 3090", TEXT, "rtx-3090"),
        ("qwen3 8b能在3090上跑吗", TEXT, "rtx-3090"),
        ("qwen3 8b kaggle 2xt4", TEXT, "t4"),
    ],
)
def test_a_question_may_be_of_other_languages_and_of_a_lender_s_card(ask_json, asked, model, card):
    told = ask_json("fits", asked)
    assert (told["model"], told["card"]["gpu_id"]) == (model, card)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("qwen3 8b on colab", "colab has several cards"),
        ("qwen3 8b rtx 6070", "rtx 6070 is no card of this almanac"),
        ("qwen3 8b 3090 exl2", "exl2 is no format of this almanac"),
        ("qwen3 8b exl2 5.0bpw 3090", "exl2 is no format of this almanac"),
        ("Qwen3-8B-Nonesuch 3090", "Of its family and size is"),
        ("qwen3 8b on cpu only", "without a card is not counted here"),
    ],
)
def test_what_is_not_here_is_told_by_its_name(ask, asked, said):
    status, _, problem = ask("fits", asked)
    assert status == 2 and said in " ".join(problem.split())


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("qwen3 8b or qwen3 14b on 3060 12gb", ["qwen3 8b --gpu '3060 12gb'", "qwen3 14b --gpu '3060 12gb'"]),
        ("qwen3 8b vs 14b q4 4090", ["qwen3 8b --format gguf-q4_k_m --gpu 4090", "qwen3 14b --format gguf-q4_k_m"]),
        ("qwen3 8b or gemma 27b 4090", ["qwen3 8b --gpu 4090", "gemma 27b --gpu 4090"]),
    ],
)
def test_of_two_models_it_is_said_how_each_is_asked(ask, sentence, asked):
    """It was said that “or” is no option."""
    status, _out, said = ask("fits", *sentence.split())
    said = " ".join(said.split())
    assert status == 2 and "names two models" in said
    assert all(f"vram-almanac fits {one}" in said for one in asked), said


def test_of_two_cards_it_is_said_that_they_are_two(ask):
    status, _out, said = ask("fits", "qwen3", "8b", "3060", "12gb", "or", "4090")
    assert status == 2 and "says --gpu twice: 3060 12gb and 4090" in " ".join(said.split())


@pytest.mark.full
def test_images_without_a_number_are_one(ask, ask_json):
    one, told = (ask_json("fits", SEEING, *words, "4090") for words in (("1", "image"), ("with", "images")))
    assert told["use"]["images"] == 1 and told["formats"] == one["formats"] and "--images 1" in told["heard"]
    assert "is not asked about images" in ask("fits", TEXT, "with", "images", "4090")[2]
