"""`fits` of diffusion pipelines: by where their parts lie, and by what is made."""

import duckdb
import pytest

from pipeline.ask import pictures
from pipeline.render.data.made import wishes
from tests.few import PIPELINE, TEXT

CARD = ("--gpu", "rtx-3060-12gb")


def test_a_diffusion_pipeline_is_told_by_where_its_parts_lie(ask_json, ask):
    told = ask_json("fits", PIPELINE, "--gpu", "rtx-3060-12gb")
    assert told["verdict"] == "fits" and {row["placement"] for row in told["placements"]} == {
        "resident",
        "model",
        "group",
        "sequential",
    }
    packed = [row["denoiser_dtype_id"] for row in told["placements"] if row.get("denoiser_dtype_id")]
    # of a class that no source describes in GGUF there is none
    assert packed == ["fp8", "nf4"] or told["best"]["placement"] == "resident"
    named = ask_json("fits", PIPELINE, "--gpu", "rtx-3060-12gb", "--format", "nf4")
    assert {row["denoiser_dtype_id"] for row in named["placements"]} == {"nf4"} and named["verdict"] == "fits"
    assert ask_json("fits", PIPELINE, "--gpu", "rtx-3060-12gb", "--format", "Q8_0")["verdict"] is None
    assert ask("fits", PIPELINE, "--free", "10GiB")[0] == 3


def test_lora_of_a_pipeline_is_told_where_its_step_was_counted(ask_json, ask):
    """Any other training of it has a reason, never the answer of making pictures."""
    card = ("--gpu", "rtx-3060-12gb")
    told = ask_json("fits", PIPELINE, *card, "--phase", "lora")
    assert told["verdict"] == "fits" and {row["placement"] for row in told["placements"]} == {"resident", "cached"}
    assert "can be fine-tuned by LoRA" in ask("fits", PIPELINE, *card, "--phase", "lora")[1]
    packed = ask_json("fits", PIPELINE, *card, "--phase", "qlora")
    assert packed["verdict"] is None and "not counted over a base in nf4" in packed["reason"]
    assert "LoRA adapters alone" in ask_json("fits", PIPELINE, *card, "--phase", "full-finetune")["reason"]


def test_a_video_is_as_long_and_wide_as_the_first_screen_asks():
    wish = next(wish for wish in wishes() if wish.unit == "frames" and wish.side)
    assert {"width": wish.side[0], "height": wish.side[1], "frames": wish.usual} == pictures.VIDEO


def placed(told):
    return {
        row["placement"]: row["total_bytes"]
        for row in told["placements"]
        if not row.get("denoiser_dtype_id") and not row.get("text_dtype_id")
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "made", "words"),
    [
        ((), "width := 1024", "for a picture of 1,024 × 1,024 pixels"),
        (("--image-size", "2048x1536"), "width := 2048, height := 1536", "for a picture of 2,048 × 1,536 pixels"),
        (("--images", 4), "images := 4", "for 4 pictures of 1,024 × 1,024 pixels"),
        (("--users", 2, "--images", 2), "images := 4", "for 4 pictures of 1,024 × 1,024 pixels"),
    ],
)
def test_what_is_made_is_what_is_counted_and_told(ask_json, ask, folder, asked, made, words):
    """A size that was taken and passed over: 2,048 × 2,048 pixels "fitted" a card that they do not."""
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        rows = connection.execute(f"SELECT placement, total_bytes FROM pipeline_of('{PIPELINE}', {made})").fetchall()
    card = ("--gpu", "h100-sxm")  # (on a smaller one all is asked in few bits too)
    assert placed(ask_json("fits", PIPELINE, *card, *asked)) == dict(rows)
    assert words in " ".join(ask("fits", PIPELINE, *card, *asked)[1].split())


def test_larger_pictures_take_more_in_training_too(ask_json):
    small, large = (
        placed(ask_json("fits", PIPELINE, *CARD, "--phase", "lora", "--image-size", size))
        for size in ("512x512", "1024x1024")
    )
    assert small.keys() == large.keys() and all(small[name] < large[name] for name in small)


def test_diffusers_may_be_named_and_what_others_hold_is_not_known(ask_json, ask):
    assert placed(ask_json("fits", PIPELINE, *CARD, "--program", "diffusers 0.42")) == placed(
        ask_json("fits", PIPELINE, *CARD)
    )
    for program, said in (
        ("diffusers 0.30", "known: 0.42"),
        ("vllm", "a pipeline of several parts"),
        ("comfyui", "ComfyUI"),
    ):
        status, _out, problem = ask("fits", PIPELINE, *CARD, "--program", program)
        assert status == 3 and said in " ".join(problem.split())


@pytest.mark.parametrize(
    ("model", "asked", "said"),
    [
        (PIPELINE, ("--frames", 9), "makes pictures"),
        (PIPELINE, ("--context", 4096), "holds no context"),
        (PIPELINE, ("--kv", "q8_0"), "holds no context"),
        (PIPELINE, ("--seconds", 5), "--seconds is of sound"),
        (TEXT, ("--frames", 9), "--frames is of what makes videos"),
        (TEXT, ("--phase", "lora", "--image-size", "512x512"), "How much images take in a training is not known"),
    ],
)
def test_what_is_no_part_of_the_question_is_not_passed_over(ask, model, asked, said):
    status, out, problem = ask("fits", model, *CARD, *asked)
    assert status == 2 and not out and said in " ".join(problem.split())
