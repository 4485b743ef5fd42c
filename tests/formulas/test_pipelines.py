"""Diffusion pipelines against their real classes (tests/oracle/pipelines.csv, count_pipelines.py), and the ways to place their parts."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from tests.formulas.at_once import at_once

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "oracle" / "pipelines.csv").read_text(encoding="utf-8").splitlines())
)
TOLERANCE = 0.015
# by class, or model, and stage how much more may be told than is held
OVER = {
    # what was measured: five tensors of the widest layer, of which the count finds 4.75 (3.9 and 3.75 in fp32)
    ("AutoencoderKL", "decode"): 0.07,
    ("AutoencoderKLFlux2", "decode"): 0.07,
    # one frame alone, or the first five, hold fewer frames of the past
    ("AutoencoderKLWan", "decode"): 0.05,
    ("Wan-AI/Wan2.2-TI2V-5B", "decode"): 0.14,
    ("AutoencoderKLHunyuanVideo", "decode"): 0.11,
    # of tiles as many are told to wait as do in the largest pictures
    ("AutoencoderKLLTXVideo", "decode"): 0.14,
    ("AutoencoderKLCogVideoX", "decode"): 0.04,
    # the states of the other prompt wait beside
    ("Gemma3ForConditionalGeneration", "encode"): 0.23,
    # its convolutions are cut into parts where a tensor is above 2 GB, and small videos hold none of these parts
    ("AutoencoderKLMochi", "decode"): 0.12,
}
FLUX = "black-forest-labs/FLUX.1-dev"
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
NOT_RECORDED = "MiniMaxAI/MiniMax-Music3"
# what the snapshot has no pipeline of, by the widths of its config
OTHERS = {"stable-diffusion-v1-5/stable-diffusion-v1-5": "320, 0, NULL, 768, 0, 64, 'CrossAttnDownBlock2D'"}


@pytest.fixture(scope="module")
def pipelines(book, footprint_of):
    # (what footprint_of keeps is there before, or it would be gone with this transaction)
    book.execute("BEGIN")
    for name, widths in OTHERS.items():
        columns = "model_id, pipeline_part, class_name, parameter_count, hidden_size, width, head_count, text_width, latent_elements, token_pixels, plan"
        book.execute(
            f"INSERT INTO component ({columns}) VALUES ('{name}', 'denoiser', 'UNet2DConditionModel', 1, {widths})"
        )
    yield book
    book.execute("ROLLBACK")


WAYS = ("resident", "model", "group", "sequential")
UNKNOWN = {
    "no diffusion pipeline": {"model_id": "nobody/nothing"},
    "fp32, bf16 and fp16": {"model_id": SDXL, "dtype_id": "fp8"},
    "start at 1": {"model_id": SDXL, "images": 0},
    "single pictures": {"model_id": SDXL, "frames": 9},
    "decoding in tiles is not counted": {"model_id": SDXL, "is_tiled": True},
    "multiples of 32": {"model_id": "Lightricks/LTX-Video", "height": 720, "width": 1280},
    "does not record the config": {"model_id": NOT_RECORDED},
}
SIDES = (1024, 1536, 1792, 1984, 2048)
MIXED = list(product((1024, 1408), ("nf4", "gguf-q4_k_s"), ("nf4", "fp8")))


def of_mixed(side, denoiser, text):
    return {"width": side, "height": side, "denoiser_dtype_id": denoiser, "text_dtype_id": text, "model_id": FLUX}


@pytest.fixture(scope="module")
def whole(pipelines):
    """pipeline_of of every question here, by its name: the four ways to place the parts."""
    cases = {"usual": {}, "wider": {"width": 1536}, "three pictures": {"images": 3}, "fp32": {"dtype_id": "fp32"}}
    cases |= {side: {"width": side, "height": side} for side in (*SIDES, 65_536)} | UNKNOWN
    cases |= {mixed: of_mixed(*mixed) for mixed in MIXED}
    told = at_once(pipelines, "pipeline_of", ("model_id",), [{"model_id": SDXL} | case for case in cases.values()])
    order = lambda row: WAYS.index(row["placement"]) if row["placement"] else 0  # noqa: E731
    return {name: sorted(rows, key=order) for name, rows in zip(cases, told, strict=True)}


@pytest.fixture(scope="module")
def stages(pipelines):
    """pipeline_stages likewise."""
    cases = {dtype: {"model_id": SDXL, "dtype_id": dtype} for dtype in ("fp16", "bf16", "fp32")}
    cases |= {mixed: of_mixed(*mixed) for mixed in MIXED}
    told = at_once(pipelines, "pipeline_stages", ("model_id",), cases.values())
    return dict(zip(cases, told, strict=True))


@pytest.mark.full
def test_what_is_asked_alone_is_what_is_asked_with_others(pipelines, whole, stages):
    for macro, others in (("pipeline_of", whole["usual"]), ("pipeline_stages", stages["bf16"])):
        asked = pipelines.execute(f"FROM {macro}('{SDXL}')")
        columns = [column[0] for column in asked.description]
        alone = [dict(zip(columns, row, strict=True)) for row in asked.fetchall()]
        assert sorted(alone, key=str) == sorted(others, key=str) and alone


SIZES = ("width", "height", "frames", "text_tokens")


def predicted(book, rows):
    """What the part of each row holds, asked all at once."""
    given = [
        {name: int(row[name]) if row[name] else None for name in SIZES}
        | {name: row[name] for name in ("model_id", "dtype_id", "part")}
        | {"row": i, "images": int(row["sequences"]), "is_tiled": bool(row["tiled"])}
        for i, row in enumerate(rows)
    ]
    book.register("counted", pl.DataFrame(given).to_arrow())
    sizes = ", ".join(f"{name} := counted.{name}" for name in (*SIZES, "dtype_id", "images", "is_tiled"))
    found = book.execute(
        f"""SELECT DISTINCT counted.row, stage.activations_bytes
        FROM counted, LATERAL pipeline_stages(counted.model_id, {sizes}, sequences_each := 1) AS stage
        WHERE stage.pipeline_part = counted.part ORDER BY counted.row"""
    ).fetchall()
    book.unregister("counted")
    assert [i for i, _bytes in found] == list(range(len(rows)))
    return [held for _i, held in found]


def test_stages_hold_what_their_classes_hold(pipelines):
    """Never less than they hold, but for the tolerance; more only where a row of OVER says why."""
    # (Wan's autoencoder is counted in fp32 whatever is asked for, and a row in bf16 says what its class would hold)
    rows = [row for row in ROWS if (row["class"], row["dtype_id"]) != ("AutoencoderKLWan", "bf16")]
    rows = [row for row in rows if row["stage"] not in ("latents", "frames")]
    told = predicted(pipelines, rows)
    errors = {tuple(row.values())[:11]: held / int(row["peak_bytes"]) - 1 for row, held in zip(rows, told, strict=True)}
    assert len(errors) == len(rows) > 150
    over = {key: OVER.get((key[0], key[3])) or OVER.get((key[2], key[3]), TOLERANCE) for key in errors}
    assert not {key: f"{error:+.2%}" for key, error in errors.items() if not -TOLERANCE <= error <= over[key]}


def test_latents_of_pictures_take_what_their_autoencoders_hold(pipelines):
    """What a step of training takes that encodes its pictures itself."""
    rows = [row for row in ROWS if row["stage"] == "latents"]
    asked = "{'width': $2::BIGINT, 'height': $3::BIGINT, 'images': $4::BIGINT}"
    query = f"SELECT encoding_bytes(part, {asked}, $5::BIGINT) FROM part_of_pipeline AS part WHERE model_id = $1 AND pipeline_part = 'vae'"
    for row in rows:
        size = [int(row[name]) for name in ("width", "height", "sequences")]
        ((told,),) = pipelines.execute(
            query, [row["model_id"], *size, 4 if row["dtype_id"] == "fp32" else 2]
        ).fetchall()
        assert told == pytest.approx(int(row["peak_bytes"]), rel=TOLERANCE), row
    assert len(rows) > 5


def test_frames_that_go_in_take_less_than_those_that_come_out(pipelines):
    """Wan's image to video encodes as many frames as it makes, with the autoencoder that decodes them: the whole is that of the decode."""
    rows = [row for row in ROWS if row["stage"] == "frames"]
    told = predicted(pipelines, rows)
    assert len(rows) > 2 and all(held > int(row["peak_bytes"]) for row, held in zip(rows, told, strict=True))


def test_each_way_to_place_the_parts_holds_less_than_the_one_before(whole):
    resident, model, group, sequential = whole["usual"]
    assert tuple(row["placement"] for row in (resident, model, group, sequential)) == WAYS
    assert resident["total_bytes"] > model["total_bytes"] > group["total_bytes"] > sequential["total_bytes"]
    assert resident["weights_bytes"] == 2 * (2_567_463_684 + 123_060_480 + 694_659_840 + 83_653_863)
    for row in (resident, model, group, sequential):
        assert row["total_bytes"] == row["weights_bytes"] + row["activations_bytes"] + row["overhead_bytes"]


@pytest.mark.parametrize("side", SIDES)
def test_one_part_at_a_time_needs_no_less_than_one_module(whole, side):
    """The part that needs most is told with the blocks that lie unused beside its activations, at every size."""
    _resident, model, _group, sequential = whole[side]
    assert model["total_bytes"] > sequential["total_bytes"]
    assert model["peak_part"] == ("denoiser" if side < 1500 else "vae")


def test_an_autoencoder_in_fp16_decodes_in_fp32(stages):
    """SDXL's does, and other programs leave it no choice: what fits must fit it."""
    half, brain, full = ({s["pipeline_part"]: s for s in stages[dtype]} for dtype in ("fp16", "bf16", "fp32"))
    (decoder,) = (part for part, stage in half.items() if stage["stage"] == "decode")
    assert half[decoder]["activations_bytes"] == full[decoder]["activations_bytes"]
    assert half[decoder]["weights_bytes"] == full[decoder]["weights_bytes"]
    assert half["denoiser"] | {"dtype_id": "bf16"} == brain["denoiser"]


def test_more_of_anything_holds_more(whole):
    least, *more = (whole[name][0]["total_bytes"] for name in ("usual", "wider", "three pictures", "fp32"))
    assert least < min(more)


@pytest.mark.parametrize("reason", UNKNOWN)
def test_what_is_not_known_is_null_with_its_reason(whole, reason):
    assert whole[reason]
    for row in whole[reason]:
        assert reason in row["unknown_reason"]
        assert row["total_bytes"] is None and row["weights_bytes"] is None


def test_pictures_of_any_size_are_counted(whole):
    assert len(whole[65_536]) == 4 and all(row["total_bytes"] > 0 for row in whole[65_536])


def test_a_footprint_of_a_pipeline_says_where_to_ask(footprint_of):
    assert "pipeline_of" in footprint_of(SDXL)["unknown_reason"]


def test_verdicts_keep_the_error_band_free(pipelines, whole):
    resident = whole["usual"][0]
    needed, banded = resident["total_bytes"], resident["total_bytes"] * (1 + resident["error_band"])
    told = pipelines.execute(
        f"""SELECT gpu.gpu_id, gpu.capacity_bytes, told.verdict, told.headroom_bytes
        FROM gpu, LATERAL pipeline_fits_on(gpu.gpu_id, '{SDXL}') AS told
        WHERE gpu.vendor = 'nvidia' AND gpu.compute_capability >= '8' AND told.placement = 'resident' ORDER BY 1"""
    ).fetchall()
    for gpu, capacity, verdict, headroom in told:
        expected = "no" if needed > capacity else "tight" if banded > capacity else "fits"
        assert verdict == expected and headroom == capacity - needed, gpu
    assert {verdict for _gpu, _capacity, verdict, _headroom in told} == {"no", "tight", "fits"}


def test_the_band_reaches_where_any_part_ends(pipelines, whole, stages):
    """The part of the largest total is not always the one that may take most: activations spread wider than weights."""
    ((constants,),) = pipelines.execute("SELECT constants FROM constants_row").fetchall()
    ends_elsewhere = 0
    for mixed in MIXED:
        parts = stages[mixed]
        assert len(parts) > 2 and len(whole[mixed]) > 2
        for told in whole[mixed]:
            ends = {}
            for part in parts:
                held = {
                    "resident": sum(one["weights_bytes"] for one in parts),
                    "model": part["weights_bytes"],
                    "group": 2 * part["leaf_bytes"],
                    "sequential": part["leaf_bytes"],
                }[told["placement"]]
                activations = part["activations_bytes"]
                fixed = constants["process_context_bytes"] + constants["cublas_workspace_bytes"]
                total = held + activations * (1 + constants["unused_blocks_inference"]) + fixed
                ends[part["pipeline_part"]] = (
                    total * (1 + constants["error_band_pipeline"]) + constants["unused_blocks_spread"] * activations
                )
            if told["placement"] != "resident":  # (what is packed lies there together while it is loaded)
                module = max((part["leaf_bytes"] for part in parts if part["loaded_bytes"]), default=0)
                total = sum(part["loaded_bytes"] for part in parts) + module * (
                    1 + constants["unused_blocks_inference"]
                )
                ends["loading"] = (total + fixed) * (1 + constants["error_band_pipeline"])
                ends["loading"] += constants["unused_blocks_spread"] * module
            assert told["total_bytes"] * (1 + told["error_band"]) == pytest.approx(max(ends.values()), abs=8)
            ends_elsewhere += max(ends, key=ends.get) != told["peak_part"]
    assert ends_elsewhere


def test_a_verdict_that_is_not_known_has_a_reason(pipelines):
    asked = (
        ("no-card", SDXL, "no such GPU"),
        ("m4-max-128gb", SDXL, "Apple"),
        ("t4", SDXL, "bf16"),
        ("rtx-4090", NOT_RECORDED, "does not record the config"),
    )
    cases = [{"gpu_id": gpu, "model_id": model} for gpu, model, _reason in asked]
    told = at_once(pipelines, "pipeline_fits_on", ("gpu_id", "model_id"), cases)
    for rows, (*case, reason) in zip(told, asked, strict=True):
        assert rows and all(row["verdict"] is None and reason in row["unknown_reason"] for row in rows), case


def test_every_name_of_a_family_is_a_model_that_is_told(book):
    query = """
        SELECT family.said_name, plain.model_id, whole.unknown_reason
        FROM family_name AS family LEFT JOIN plain_model AS plain ON plain.name = plain_name(family.base_name)
            LEFT JOIN (SELECT model_id, max(unknown_reason) AS unknown_reason FROM component GROUP BY model_id) AS whole
            ON whole.model_id = plain.model_id
        WHERE plain.model_id IS NULL OR whole.unknown_reason IS NOT NULL
    """
    assert book.execute(query).fetchall() == []
    said = {"flux": "FLUX.1-dev", "sd 1.5": "stable-diffusion-v1-5", "SDXL": "stable-diffusion-xl-base-1.0"}
    said |= {"wan 2.2": "Wan2.2-T2V-A14B-Diffusers", "sd3": "stable-diffusion-3-medium-diffusers"}
    for name, model in said.items():
        assert book.execute("SELECT model_id FROM repository_of($1)", [name]).fetchall()[0][0].endswith("/" + model)
