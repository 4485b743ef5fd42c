"""`--program`: what the question leaves unsaid is what the program does by itself."""

import pytest

from tests.ask.conftest import EXPERTS, SMALL, TEXT

CARD = ("--gpu", "rtx-4090")


def test_a_program_answers_with_its_engine_its_context_and_its_versions(ask_json, ask):
    told = ask_json("fits", TEXT, *CARD, "--program", "ollama")
    assert {row["engine_id"] for row in told["formats"]} == {"llama.cpp"}
    assert told["use"]["context_tokens"] == 4096 and told["use"]["sequences"] == 1
    assert told["formats"][0]["holds_for"] == "Ollama 0.30 to 0.33"
    assert "Holds for Ollama 0.30 to 0.33" in ask("fits", TEXT, *CARD, "--program", "Ollama")[1]


@pytest.mark.parametrize("asked", ["vllm 0.19", "vllm==0.19.1", "vLLM v0.19", "vllm@0.19"])
def test_a_version_is_said_as_people_write_it(ask_json, asked):
    told = ask_json("fits", TEXT, *CARD, "--program", asked, "--context", "4096", "--format", "bf16")
    assert [row["holds_for"] for row in told["formats"]] == ["vLLM 0.11 to 0.19"]


def test_a_training_takes_the_programs_recipe(ask_json):
    told = ask_json("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--program", "llama-factory")
    assert told["use"]["sequences"] == 8 and told["use"]["context_tokens"] == 2048
    assert (
        ask_json("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--program", "llama-factory", "--users", "2")[
            "use"
        ]["sequences"]
        == 2
    )


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        (("--program", "olama"), 2, "nearest: ollama"),
        (("--program", "ollama", "--phase", "qlora"), 2, "qlora is done by program := "),
        (("--program", "unsloth", "--phase", "full-finetune"), 3, "kernels of its own"),
        (("--program", "vllm 0.5"), 3, "known: 0.6.4 to 0.7, 0.8, 0.9 to 0.10, 0.11 to 0.19, 0.20 to 0.33"),
    ],
)
def test_what_a_program_cannot_do_is_told_with_what_can(ask, asked, status, words):
    ended, _out, error = ask("fits", TEXT, *CARD, *asked)
    assert ended == status and words in " ".join(error.split())


def test_a_version_that_lacks_the_models_class_says_from_which_it_is_there(ask):
    ended, out, error = ask("fits", TEXT, *CARD, "--program", "vllm 0.7.3")
    said = " ".join((out + error).split())
    assert ended == 3 and "0.7.3" in said and "from 0.8.4 on" in said and "None" not in said


@pytest.mark.parametrize(
    ("model", "program", "words"),
    [(TEXT, "mlx", "MLX runs on CUDA too"), (EXPERTS, "transformers", "no source in the book says")],
)
def test_a_program_that_has_no_format_here_says_why(ask, model, program, words):
    """A model published in MXFP4 is not told to need its 16 bits in Transformers, which loads what is published."""
    status, said, _ = ask("fits", model, *CARD, "--program", program)
    assert status == 3 and words in said


def test_a_build_of_llama_cpp_is_told_from_where_on_its_masks_are_small(ask_json, ask):
    told = ask_json("fits", TEXT, *CARD, "--program", "llama.cpp b9500")
    assert told["verdict"] == "fits" and told["formats"][0]["holds_for"] == "llama.cpp b9410 to b11258"
    status, said, error = ask("fits", TEXT, *CARD, "--program", "llama.cpp b4500")
    assert status == 3 and "builds before b9410 made the mask" in " ".join((said + error).split())


def test_a_context_that_is_not_the_programs_own_is_not_said_to_be(ask):
    own, none = (ask("fits", TEXT, *CARD, "--program", program)[1] for program in ("llama-cpp-python", "koboldcpp"))
    assert "what was not said is its own default." in own and "at 512 tokens" in " ".join(own.split())
    assert "but for the context: it has none that a source tells." in " ".join(none.split())


@pytest.mark.parametrize(
    "program", ["vllm", "sglang", "llama.cpp", "ollama", "lm-studio", "koboldcpp", "transformers", "mlx-lm"]
)
def test_every_program_of_inference_is_answered_without_a_format(ask_json, program):
    card = "m4-max-64gb" if program == "mlx-lm" else "rtx-4090"
    told = ask_json("fits", SMALL, "--gpu", card, "--program", program)
    assert told["verdict"] == "fits" and len(told["formats"]) > 2
