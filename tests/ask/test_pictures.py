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


def test_parts_that_are_not_on_the_card_are_said_to_wait_in_the_computers_memory(ask_json, ask, macro):
    """A Yes for a card of 6 GB was one for a computer that holds all of it, and did not say so."""
    (held,) = macro("SELECT sum(weights_bytes) AS size FROM pipeline_stages($model)", model=PIPELINE)
    asked = ("fits", PIPELINE, "--gpu", "rtx-3060-8gb", "--format", "bf16")
    told = ask_json(*asked)
    assert told["verdict"] == "fits" and told["best"]["placement"] != "resident"
    assert told["waiting_bytes"] == held["size"]
    said = f"All its parts, {held['size'] / 2**30:.1f} GiB of weights, wait in the computer's memory"
    assert said in " ".join(ask(*asked)[1].split())
    assert "That is more than the 2.0 GiB that it has" in " ".join(ask(*asked, "--ram", "2GB")[1].split())
    resident = ask_json("fits", PIPELINE, "--gpu", "rtx-4090")
    assert (resident["best"]["placement"], resident["waiting_bytes"]) == ("resident", None)


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


@pytest.mark.some(1)
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


@pytest.mark.full
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
        (
            TEXT,
            ("--phase", "full", "--image-size", "512x512"),
            "How much images take in a training is known of LoRA and QLoRA",
        ),
    ],
)
def test_what_is_no_part_of_the_question_is_not_passed_over(ask, model, asked, said):
    status, out, problem = ask("fits", model, *CARD, *asked)
    assert status == 2 and not out and said in " ".join(problem.split())


@pytest.mark.full
@pytest.mark.parametrize("phase", [(), ("--phase", "lora")])
def test_a_card_before_ampere_is_told_in_fp16(ask_json, ask, folder, phase):
    """As diffusers is used there (torch_dtype=torch.float16): bf16, in which it was asked alone, has no answer on it."""
    told = ask_json("fits", PIPELINE, "--gpu", "t4", *phase)
    assert told["verdict"] == "fits" and {row["dtype_id"] for row in told["placements"]} == {"fp16"}
    assert "torch_dtype=torch.float16" in told["taken"]
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        macro, more = ("pipeline_training_fits_on", ", checkpointing := 'full'") if phase else ("pipeline_fits_on", "")
        query = f"SELECT placement, total_bytes FROM {macro}('t4', '{PIPELINE}', dtype_id := 'fp16'{more})"
        assert placed(told) == dict(connection.execute(query).fetchall())
    out = " ".join(ask("fits", PIPELINE, "--gpu", "t4", *phase)[1].split())
    assert ", in fp16, for a picture" in out and "Counted in fp16 (torch_dtype=torch.float16)" in out


def test_what_is_packed_has_the_rest_in_fp16_there(ask_json):
    told = ask_json("fits", PIPELINE, "--gpu", "t4", "--format", "nf4")
    assert told["verdict"] == "fits"
    assert {(row["denoiser_dtype_id"], row["dtype_id"]) for row in told["placements"]} == {("nf4", "fp16")}


@pytest.mark.full
def test_where_fp16_is_not_known_either_the_reason_is_its_own(ask_json):
    told = ask_json("fits", PIPELINE, "--gpu", "v100-sxm2-32gb")
    assert told["verdict"] is None and "below compute capability 7.5 is not settled" in told["reason"]
    assert not any(row.get("dtype_id") for row in ask_json("fits", PIPELINE, *CARD)["placements"])


@pytest.mark.full
def test_diffusers_trains_pipelines_and_no_trainer_of_text_is_offered(ask_json, ask):
    asked = ("fits", PIPELINE, *CARD, "--phase", "lora")
    assert placed(ask_json(*asked, "--program", "diffusers")) == placed(ask_json(*asked))
    assert "LoRA adapters alone" in ask_json(*asked[:-1], "full-finetune", "--program", "diffusers")["reason"]
    for program in ("deepspeed", "vllm", "llama-factory"):
        status, _out, problem = ask(*asked, "--program", program)
        said = " ".join(problem.split())
        assert status == 3 and "a pipeline of several parts" in said and "is done by" not in said
    assert ask(*asked, "--program", "nobody")[0] == 2
