"""What is asked of a model that sees: images in a prompt, their size, and what is told where nobody asks."""

from __future__ import annotations

import pytest

from tests.few import COPIES, SEEING, TEXT


def total(told, dtype="gguf-q4_k_m"):
    return next(row["total_bytes"] for row in told["formats"] if row["dtype_id"] == dtype)


@pytest.mark.full
def test_images_take_more_where_they_are_larger_than_what_is_set_aside(ask_json):
    """llama.cpp warms a tower of Qwen's up with 1,472 × 1,472 pixels, which smaller images run in."""
    asked = ("fits", SEEING, "--gpu", "rtx-4090", "--format", "Q4_K_M", "--context", "16k")
    none, small, large = (
        total(ask_json(*asked, *more))
        for more in ((), ("--images", "2"), ("--images", "1", "--image-size", "2048x2048"))
    )
    assert none == small
    assert round((large - small) / 2**20, 1) == round((453_246_976 - 234_148_096) / 2**20, 1)


def test_the_command_of_vllm_names_as_many_images_as_are_counted(ask_json):
    asked = ("fits", SEEING, "--gpu", "rtx-4090", "--format", "bf16", "--context", "8k")
    alone, seeing = (
        next(line["command"] for line in ask_json(*asked, *more)["commands"] if line["engine"] == "vLLM")
        for more in ((), ("--images", "2"))
    )
    assert '{"image": 0, "video": 0}' in alone and '{"image": 2, "video": 0}' in seeing


@pytest.mark.full
def test_no_command_is_pasted_that_runs_text_alone(ask_json):
    told = ask_json("fits", SEEING, "--gpu", "rtx-4090", "--images", "1")
    assert told["commands"]
    assert not any("convert_hf_to_gguf" in line["command"] for line in told["commands"])
    assert not any("text-generation" in line["command"] for line in told["commands"])


@pytest.mark.full
def test_a_person_is_told_what_was_counted(ask):
    _status, out, _problem = ask("fits", SEEING, "--gpu", "rtx-4090")
    assert "Counted with text alone" in out and "--images 1" in out
    _status, out, _problem = ask("fits", SEEING, "--gpu", "rtx-4090", "--images", "3", "--image-size", "640x480")
    assert "with 3 images of 640 × 480 pixels among them" in out and "Counted with text alone" not in out


def test_nobody_is_sent_to_images_where_the_program_reads_text_only(ask):
    _status, out, _problem = ask("fits", SEEING, "--gpu", "m4-max-64gb", "--program", "mlx", "--format", "mlx-4bit")
    assert "Counted with text alone: MLX LM reads text only." in out and "--images 1" not in out


def test_bad_questions_about_images(ask):
    for more, said in (
        ((TEXT, "--images", "1"), "nothing says that its files hold what sees them"),
        ((SEEING, "--images", "0"), "starts at 1"),
        ((SEEING, "--image-size", "640"), "is no size of an image"),
        ((SEEING, "--image-size", "0x4"), "is no size of an image"),
        (
            (SEEING, "--images", "1", "--phase", "pretrain"),
            "Leave out --images: the training is answered with text alone",
        ),
        (
            (SEEING, "--image-size", "9x9", "--phase", "full-finetune"),
            "or leave out --phase: what running the model with images",
        ),
        ((SEEING, "--images", "1", "--draft", "mtp"), "leave out --images, or --draft"),
        ((SEEING, "--images", "1", "--seconds", "9"), "--images or --seconds"),
    ):
        status, _out, problem = ask("fits", *more, "--gpu", "rtx-4090")
        assert status == 2 and said in " ".join(problem.split()), (more, problem)


@pytest.mark.full
def test_a_file_of_gguf_is_answered_with_the_second_one_that_sees(ask_json):
    own, copy = (ask_json("fits", name, "--gpu", "rtx-4090", "--images", "1") for name in (SEEING, COPIES[0]))
    assert total(own) == total(copy) and {row["engine_id"] for row in copy["formats"]} == {"llama.cpp"}


@pytest.mark.full
def test_images_that_fill_the_context_are_no_answer(ask):
    status, out, _problem = ask("fits", SEEING, "--gpu", "rtx-4090", "--images", "40", "--context", "8k")
    assert status == 3 and "more than the context" in out


@pytest.mark.full
def test_llama_cpp_makes_an_image_smaller_before_it_reads_it(ask):
    """4,096 tokens at most of Qwen's; the processor of Transformers would make 16,384 of this one."""
    asked = ("fits", SEEING, "--gpu", "rtx-4090", "--images", "1", "--image-size", "4096x4096", "--context", "8k")
    status, _out, _problem = ask(*asked, "--format", "Q4_K_M")
    assert status == 0
    status, out, _problem = ask(*asked, "--format", "bf16")
    assert status == 3 and "16384 tokens, more than the context" in out


@pytest.mark.full
def test_a_training_of_what_sees_says_that_it_counts_text_alone(ask, ask_json):
    """A LoRA of Qwen2.5-VL on a card of 32 GB was a plain Yes, and ran out of memory with pictures of 512 × 512 pixels."""
    for more in (("--phase", "lora"), ("--objective", "dpo")):
        asked = ("fits", SEEING, "--gpu", "h100-sxm", *more)
        said = " ".join(ask(*asked)[1].split())
        assert ask_json(*asked)["is_text_alone"] is True
        assert "of text alone" in said and "a training on images takes more" in said
    asked = ("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora")
    assert "is_text_alone" not in ask_json(*asked) and "text alone" not in ask(*asked)[1]
    running = ask_json("fits", SEEING, "--gpu", "h100-sxm", "--format", "bf16", "--images", "1")
    assert running["is_text_alone"] is False


@pytest.mark.full
@pytest.mark.parametrize(("phase", "dtype"), [("lora", "bf16"), ("qlora", "nf4")])
def test_adapters_are_told_of_a_training_on_images(ask, ask_json, phase, dtype):
    """Who leaves what a model sees with as it is, and who adapts it too; of all other layers there is a reason."""
    asked = ("fits", SEEING, "--gpu", "h100-sxm", "--phase", phase, "--context", 2048)
    alone, seen = (ask_json(*asked, "--program", "ms-swift", *more) for more in ((), ("--images", 1)))
    assert total(seen, dtype) > total(alone, dtype) and seen["is_text_alone"] is False
    assert total(ask_json(*asked, "--images", 1), dtype) > total(ask_json(*asked), dtype)
    status, out, _problem = ask(*asked, "--images", 1, "--program", "axolotl", "--lora-targets", "all-linear")
    assert status == 3 and "--lora-targets attention" in " ".join(out.split())


def test_what_a_model_sees_with_can_be_left_out(ask_json, ask, macro):
    """llama.cpp loads it as a second file, or not."""
    asked = ("fits", SEEING, "--gpu", "rtx-3090", "--format", "Q4_K_M", "--context", 8192)
    whole, alone = ask_json(*asked)["best"], ask_json(*asked, "--no-mmproj")["best"]
    [row] = macro("SELECT tower_bytes FROM weight WHERE model_id = $m AND dtype_id = 'gguf-q4_k_m'", m=SEEING)
    assert whole["weights_bytes"] - alone["weights_bytes"] == row["tower_bytes"] > 0
    assert whole["activations_bytes"] > alone["activations_bytes"]
    assert "--no-mmproj" in " ".join(ask(*asked, "--no-mmproj")[1].split())
    for wrong in (("--program", "ollama"), ("--program", "vllm"), ("--images", 1), ("--phase", "lora")):
        status, _out, said = ask(*asked, "--no-mmproj", *wrong)
        assert status == 2 and "--no-mmproj" in said


def test_what_a_model_sees_with_is_offered_to_be_left_out_where_that_is_what_is_missing(ask_json, ask):
    """It was asked with the shorter formulas, which know of no such thing, and so was never offered to who said nothing else."""
    asked = ("fits", SEEING, "--free", "3.5GiB", "--context", 8192)
    told = ask_json(*asked)
    (text,) = (one for one in told["helps"] if one["help"] == "text")
    alone = ask_json(*asked, "--no-mmproj", "--format", text["dtype_id"])
    assert told["verdict"] == "no" and alone["verdict"] == "fits"
    assert text["total_bytes"] == alone["best"]["total_bytes"] and text["engine_id"] == "llama.cpp"
    assert "Without what it sees with (--no-mmproj)" in " ".join(ask(*asked)[1].split())


def test_images_that_do_not_go_into_the_usual_context_are_asked_of_a_larger_one(ask_json, macro):
    """It was “not known”: the images alone are more than the context, which nobody had said."""
    ((row),) = macro("FROM image_tokens_of($m, image_width := 1920, image_height := 1080)", m=SEEING)
    count = 8192 // row["prompt_tokens"] + 1
    asked = ("fits", SEEING, "--gpu", "rtx-4090", "--images", count, "--image-size", "1920x1080")
    told = ask_json(*asked)
    tokens = told["best"]["context_tokens"]
    assert count * row["prompt_tokens"] + 1024 <= tokens < count * row["prompt_tokens"] + 2048 and tokens % 1024 == 0
    assert f"images are {count * row['prompt_tokens']:,} tokens: asked of a context of {tokens:,}" in told["taken"]
    assert ask_json(*asked, "--context", tokens)["best"] == told["best"]
    # who says a context is asked of that
    assert "more than the context of 4096" in ask_json(*asked, "--context", 4096)["reason"]
