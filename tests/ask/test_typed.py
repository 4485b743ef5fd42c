"""What people type in forums and chats: flags of programs that were pasted, other number forms, other letters, questions that are asked elsewhere. What is
understood is answered as its options are, and nothing is passed over in silence."""

from __future__ import annotations

import re

import pytest

from tests.few import EXPERTS, SMALL, TEXT


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("sentence", "options"),
    [
        ("qwen3 8b lora 3090 seq 1024", ["--phase", "lora", "--gpu", "rtx-3090", "--context", "1024"]),
        ("qwen3 8b lora max_seq_length=1024 3090 bs 2", ["--phase", "lora", "--gpu", "rtx-3090", "--context", "1024", "--batch", "2"]),
        ("qwen3 8b 4090 num_ctx 16384", ["--gpu", "rtx-4090", "--context", "16384"]),
        ("qwen3 8b 4090 context: 16k", ["--gpu", "rtx-4090", "--context", "16384"]),
        ("qwen3 8b mit 16.384 Tokens auf rtx 4090", ["--gpu", "rtx-4090", "--context", "16384"]),
        ("qwen3 8b 4090 16 384 tokens", ["--gpu", "rtx-4090", "--context", "16384"]),
        ("qwen3 8b max context 4090", ["--gpu", "rtx-4090"]),
        ("qwen3 8b 4090 8 concurrent", ["--gpu", "rtx-4090", "--users", "8"]),
        ("qwen3 8b 8 concurrent users 4090", ["--gpu", "rtx-4090", "--users", "8"]),
        (
            "vllm qwen3 8b 2x4090 --tensor-parallel-size 2 --gpu-memory-utilization 0.85 --max-num-seqs 64",
            ["--program", "vllm", "--gpu", "2xrtx-4090", "--tensor-parallel", "2", "--share", "0.85", "--max-num-seqs", "64"],
        ),
        ("llama-server -m qwen3-8b-q4_k_m.gguf -c 16384 -ngl 99 -fa on rtx 4090",
         ["--format", "q4_k_m", "--context", "16384", "-ngl", "99", "--attention", "flash", "--gpu", "rtx-4090"]),
        ("qwen3 8b on 2 3090", ["--gpu", "2xrtx-3090"]),
        ("qwen3 8b 2 3090s", ["--gpu", "2xrtx-3090"]),
        ("qwen3 8b tabbyapi exl3 6bpw 3090", ["--program", "tabbyapi", "--format", "exl3-6bpw", "--gpu", "rtx-3090"]),
        ("ms-swift full qwen3 8b h200 sxm", ["--program", "ms-swift", "--phase", "full-finetune", "--gpu", "h200-sxm"]),
        ("sft qwen3 8b lora 4090", ["--phase", "lora", "--gpu", "rtx-4090"]),
        ("best quant for qwen3 8b on 4090", ["--gpu", "rtx-4090"]),
        ("qwen3 8b на rtx 4090", ["--gpu", "rtx-4090"]),
    ],
)  # fmt: skip
def test_what_is_typed_is_what_an_option_says(ask_json, sentence, options):
    told, same = ask_json("fits", sentence), ask_json("fits", TEXT, *options)
    assert (told["verdict"], told["formats"], told["card"]) == (same["verdict"], same["formats"], same["card"])


@pytest.mark.parametrize(
    ("tag", "behind", "dtype"),
    [
        ("qwen3:8b-q8_0", "rtx 3090", "gguf-q8_0"),
        ("qwen3:8b-q8_0", "on a 24gb", "gguf-q8_0"),
        ("ollama run qwen3:8b-q8_0", "3090", "gguf-q8_0"),
        ("qwen3:8b", "q8 3090", "gguf-q8_0"),
    ],
)
def test_what_stands_behind_a_tag_is_no_part_of_it(ask_json, tag, behind, dtype):
    """`qwen3:8b-q8_0 3090` was asked as a tag without a mix, in four bits, and of no card."""
    told = ask_json("fits", f"{tag} {behind}")
    assert [row["dtype_id"] for row in told["formats"]] == [dtype] and told["card"]["capacity_bytes"] > 22 * 2**30


def test_a_tag_with_another_word_behind_it_is_no_name(macro):
    rows = macro("FROM repository_of('qwen3:8b-q8_0 3090')") + macro("FROM repository_of('qwen3:8b banana')")
    assert [row["model_id"] for row in rows] == [None, None]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("qwen3:8b banana 4090", "qwen3:8b is a model, and banana beside it is no card"),
        ("qwen3 8b дообучить rtx 4090", "дообучить beside it is no card"),
        ("qwen3 8b 0 tokens 4090", "qwen3 8b is a model, and 0 beside it is no card"),
        ("qwen3 8b 4090 8 zebras", "8 beside it is no card"),
    ],
)
def test_a_word_that_nobody_understands_is_named(ask, sentence, said):
    """Beside a model's name it was taken for a part of that: "nobody here has read whether it has the same shape"."""
    status, _, problem = ask("fits", sentence)
    assert status == 2 and said in " ".join(problem.split())


@pytest.mark.parametrize("sentence", ["gpt-4o 4090", "claude opus 4090", "gpt-3.5 turbo 4090"])
def test_a_model_that_nobody_can_download_is_none_that_was_made_with_it(ask, sentence):
    status, _, problem = ask("fits", sentence)
    assert status == 2 and "is not in this almanac" in problem


def test_the_size_of_a_picture_is_no_number_of_cards(ask_json):
    """Behind a card 512x512 were 512 cards, and the picture was of 1024 pixels."""
    told = ask_json("fits", "sdxl 24gb 512x512")
    assert (told["card"]["count"], told["use"]["image_width"], told["use"]["image_height"]) == (1, 512, 512)
    told = ask_json("fits", "qwen3 8b 4090x2")
    assert (told["card"]["gpu_id"], told["card"]["count"]) == ("rtx-4090", 2)


def test_a_number_behind_the_memory_of_a_card_is_not_passed_over(ask):
    status, _, problem = ask("fits", "qwen3 8b 3060 12gb 512")
    assert status == 2 and "512 beside it is no card" in " ".join(problem.split())


def test_a_size_that_is_said_is_one_of_the_models_name(macro):
    """gemma 31b was gemma-3-1b, of the same letters and digits."""
    rows = macro(
        "SELECT known.name, r.model_id FROM (SELECT unnest(['qwen 38b', 'qwen3 8b', 'qwen3-0.6b']) AS name) AS known, LATERAL (FROM repository_of(known.name)) AS r"
    )
    assert {row["name"]: row["model_id"] for row in rows} == {"qwen 38b": None, "qwen3 8b": TEXT, "qwen3-0.6b": SMALL}


def test_words_tell_a_model_that_begins_so_or_lacks_few_of_them(macro):
    """gpt-4o was a model of 7B that mends grammar, with seven words more in its name; claude opus one of Qwen's."""
    cases = {
        (True, "llama", 9, 1): True,
        (False, "llama scout", 3, 2): True,
        (False, "gpt-4o", 7, 2): False,
        (False, "nemotron 49b", 9, 2): True,
    }
    for (begins, asked, unsaid, found), told in cases.items():
        query = "SELECT internal.is_told($begins, $asked, $unsaid, $found) AS told"
        assert macro(query, begins=begins, asked=asked, unsaid=unsaid, found=found) == [{"told": told}]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("how many 3090s for qwen3 8b", "vram-almanac plan qwen3 8b --gpu 3090s."),
        ("how many users can i serve with qwen3 8b on a 4090", "the calculator of the site says"),
        ("tokens per second qwen3 8b 4090", "How fast it is, is not told here"),
        ("qwen3 8b lora rank 16 alpha 32 h100 sxm", "The alpha of a LoRA takes no memory"),
    ],
)
def test_what_is_asked_elsewhere_is_said_beside_the_answer(ask_json, sentence, said):
    told = ask_json("fits", sentence)
    assert said in told["heard"] and told["verdict"] == "fits"


@pytest.mark.full
def test_bits_alone_are_those_of_the_program(ask_json):
    """Six bits of MLX were told as the mix of llama.cpp, which MLX does not run: "not known"."""
    for bits in (3, 6, 8):
        told = ask_json("fits", f"qwen3 8b {bits}bit mlx m2 max 64gb")
        assert [row["dtype_id"] for row in told["formats"]] == [f"mlx-{bits}bit"] and told["verdict"] == "fits"


@pytest.mark.full
def test_a_format_that_two_engines_have_is_told_of_both(ask_json):
    """MXFP4 on a card of AMD was "not known", as vLLM's; with Ollama too."""
    told = ask_json("fits", "gpt-oss-20b mxfp4 rx 7900 xtx")
    assert (told["model"], told["verdict"], told["best"]["engine_id"]) == (EXPERTS, "fits", "llama.cpp")
    assert [row["dtype_id"] for row in told["formats"]] == ["gguf-mxfp4", "mxfp4"]
    told = ask_json("fits", EXPERTS, "--format", "mxfp4", "--program", "ollama", "--gpu", "rx-7900-xtx")
    assert [row["dtype_id"] for row in told["formats"]] == ["gguf-mxfp4"] and told["verdict"] == "fits"


def test_without_a_card_it_is_said_how_much_it_needs(ask, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    status, told, problem = ask("fits", "how much vram for qwen3 8b")
    assert (
        status == 2
        and problem.startswith("No card of this machine was found")
        and told.startswith(f"What {TEXT} needs to run at 8,192 tokens")
    )
    assert re.search(r"Q4_K_M +llama.cpp +6\.\d .* 8 GB\n", told) and "20480" not in told
    status, _, problem = ask("fits", TEXT, "--json")
    assert status == 2 and "No card" in problem


@pytest.mark.full
def test_a_card_that_no_engine_is_known_to_run_on_is_not_known(ask, ask_json, macro):
    """A TPU was told to share a model with the CPU in llama.cpp, which does not run there, and that none of all models fits a Gaudi."""
    (row,) = macro(f"FROM layers_that_fit('tpu-v5e', '{TEXT}')")
    assert row["gpu_layers"] is None and row["unknown_reason"] == "llama.cpp has no backend for TPUs"
    told = ask_json("fits", "qwen3 32b tpu v5e 64gb ram")
    assert told["verdict"] is None and [each["help"] for each in told["helps"] if each["help"] == "layers"] == []
    status, out, _ = ask("what", "gaudi 3")
    assert status == 3 and out.startswith("Not known: llama.cpp has no backend for Gaudi")


def test_a_format_behind_its_option_is_what_a_name_says(ask_json):
    for said, dtype in (("q4", "gguf-q4_k_m"), ("awq", "awq-int4"), ("Q8", "gguf-q8_0")):
        told = ask_json("fits", TEXT, "--format", said, "--gpu", "rtx-4090")
        assert [row["dtype_id"] for row in told["formats"]] == [dtype]


def test_the_memory_of_a_card_may_stand_behind_its_option(ask_json):
    """Nobody quotes --gpu 3060 12gb: the second word was another card."""
    for words in (("fits", f"{TEXT} 12gb", "--gpu", "3060"), ("what", "--gpu", "3060", "12gb")):
        assert ask_json(*words)["card"]["gpu_id"] == "rtx-3060-12gb"


def test_a_question_needs_no_command(ask):
    """`vram-almanac qwen3 8b on 3090` was told that qwen3 is none of four commands."""
    assert ask("qwen3", "8b", "on", "3090") == ask("fits", "qwen3 8b on 3090")
    status, _, said = ask("fit", "qwen3 8b")
    assert status == 2 and "Near it: fits" in said


def test_help_is_shown_where_it_is_looked_for(ask):
    whole = ask("--help")
    assert whole[0] == 0 and ask("help") == whole
    assert ask("help", "fits") == ask("fits", "--help") != whole
    assert ask() == (2, "", whole[1])


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("4090", ["4090"]),
        ("what's the biggest model for 16gb vram", ["16gb vram"]),
        ("which model for coding on my 4090?", ["4090", "--for", "code"]),
        ("code 24gb 32k context", ["24gb", "--for", "code", "--context", "32768"]),
    ],
)
def test_a_card_without_a_model_is_asked_what_fits_it(ask, question, options):
    """Whose name is no more than what it is for is no model: code was taken for the newest model with the word in its name."""
    status, told, said = ask(question)
    assert (status, _answer(told), said) == (ask("what", *options)[0], _answer(ask("what", *options)[1]), "")


def _answer(told: str) -> str:
    """Without the sentence that says how a question was understood."""
    return told.partition(" is asked as ")[0].rpartition("\n")[0]


def test_what_is_asked_of_a_model_alone_is_not_asked_of_all(ask):
    status, _, said = ask("4090", "-ngl", "20")
    assert status == 2 and said.startswith("4090 names no model")


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("qwen3 32b 4090 with 16gb ram", ["--gpu", "rtx-4090", "--ram", "16gb"]),  # (no laptop's 4090 of 16 GB)
        ("qwen3 8b 4090 with 8 bit kv cache", ["--gpu", "rtx-4090", "--kv", "q8_0"]),
        ("qwen3 8b 4090 41k", ["--gpu", "rtx-4090", "--context", "40960"]),  # (all that it reads, in thousands)
    ],
)
def test_words_beside_each_other_are_not_taken_for_another_thing(ask_json, question, options):
    model, *_ = question.partition(" 4090")
    told, asked = ask_json("fits", question), ask_json("fits", model, *options)
    for answer in (told, asked):
        answer.pop("heard", None)
    assert told == asked


def test_what_is_for_embeddings_lists_what_embeds(ask):
    """The word was passed over, and what chats was listed."""
    assert "to embed text" in ask("what", "4090", "for", "embeddings")[1]
    status, _, said = ask("what", "4090 for video")
    assert status == 2 and "for chat, code, embed, full" in " ".join(said.split())


def test_how_many_cards_a_training_takes_is_asked_of_the_training(ask):
    told = " ".join(ask("fits", "how many 4090 for full finetune qwen3 8b")[1].split())
    assert "vram-almanac plan qwen3 8b --gpu 4090 --phase full-finetune" in told


def test_of_a_board_that_shares_its_memory_it_is_said_that_all_of_it_is_counted_on(ask):
    """“Yes: 6.9 of 7.4 GiB” of a Jetson Orin Nano, whose system holds a part of the 7.4."""
    assert "what the system and other programs hold" in " ".join(
        ask("fits", TEXT, "--gpu", "jetson-orin-nano-8gb")[1].split()
    )
    assert "other programs hold" not in " ".join(ask("fits", TEXT, "--gpu", "rtx-4090")[1].split())
