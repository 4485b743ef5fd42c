"""Denoisers in packed formats against their real classes (tests/oracle/packed_denoisers.csv, count_packed_denoisers.py) and published files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline.anatomy.families import reader_for
from pipeline.anatomy.fields import Fields
from tests.formulas.at_once import at_once

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[1] / "oracle" / "packed_denoisers.csv").read_text(encoding="utf-8").splitlines()
    )
)
TOLERANCE = 0.01
# a matrix is told as if it were unpacked at the very peak; of small pictures that is a larger part of these classes
OVER = 0.04
OVER_OF = {"ZImageTransformer2DModel": 0.06, "Flux2Transformer2DModel": 0.055}
FLUX = "black-forest-labs/FLUX.1-dev"
# bytes of files that this converter made, as a program lists what it downloads (github.com/utensils/mold at a34ff7a0, manifest.rs), and of
# FLUX.2 and Chroma as the Hub lists them (city96/FLUX.2-dev-gguf, silveroxides/Chroma1-HD-GGUF)
FILES = {
    (FLUX, "gguf-q8_0"): 12_708_281_504,  # city96/FLUX.1-dev-gguf
    (FLUX, "gguf-q6_k"): 9_857_000_736,
    (FLUX, "gguf-q5_k_m"): 8_421_981_344,  # TheLounger/Jib_Mix_Flux_v7_Beta-GGUF
    (FLUX, "gguf-q4_k_m"): 6_934_297_760,
    (FLUX, "gguf-q3_k_m"): 5_370_969_248,
    ("Qwen/Qwen-Image", "gguf-q8_0"): 21_761_817_120,  # city96/Qwen-Image-gguf
    ("Qwen/Qwen-Image", "gguf-q6_k"): 16_824_990_240,
    ("Qwen/Qwen-Image", "gguf-q5_k_m"): 14_934_899_232,
    ("Qwen/Qwen-Image", "gguf-q4_k_m"): 13_065_746_976,
    ("Qwen/Qwen-Image", "gguf-q3_k_m"): 9_679_567_392,
    ("Qwen/Qwen-Image", "gguf-q2_k"): 7_062_518_304,
    ("black-forest-labs/FLUX.2-dev", "gguf-q4_k_s"): 19_299_128_288,
    ("lodestones/Chroma", "gguf-q4_0"): 5_432_053_920,
    ("lodestones/Chroma", "gguf-q4_k_m"): 5_566_533_792,
}

ASKED = """
    SELECT asked.place, told.weights_bytes, told.activations_bytes, told.unknown_reason
    FROM (SELECT unnest($1::INTEGER[]) AS place, unnest($2::VARCHAR[]) AS model_id, unnest($3::VARCHAR[]) AS dtype_id,
        unnest($4::INTEGER[]) AS width, unnest($5::INTEGER[]) AS height, unnest($6::INTEGER[]) AS frames,
        unnest($7::INTEGER[]) AS text_tokens, unnest($8::INTEGER[]) AS sequences) AS row,
        LATERAL (SELECT row.*) AS asked, pipeline_stages(asked.model_id, width := asked.width, height := asked.height,
            frames := asked.frames, text_tokens := asked.text_tokens, images := asked.sequences, sequences_each := 1,
            denoiser_dtype_id := asked.dtype_id) AS told
    WHERE told.pipeline_part = 'denoiser' ORDER BY asked.place
"""


def test_packed_denoisers_hold_what_their_classes_hold(book):
    numbers = ("width", "height", "frames", "text_tokens", "sequences")
    columns = [[row[name] for row in ROWS] for name in ("model_id", "dtype_id")]
    columns += [[int(row[name]) for row in ROWS] for name in numbers]
    told = book.execute(ASKED, [list(range(len(ROWS))), *columns]).fetchall()
    assert len(told) == len(ROWS) > 30
    wrong = {}
    for row, (_place, weights, activations, reason) in zip(ROWS, told, strict=True):
        assert reason is None, (row, reason)
        weighed = int(row["weights_bytes"])
        held = weighed + int(row["peak_bytes"])
        over, most = (weights + activations) / held - 1, OVER_OF.get(row["class"], OVER)
        if abs(weights / weighed - 1) > TOLERANCE or not -TOLERANCE <= over <= most:
            wrong[tuple(row.values())[:6]] = (weights / weighed - 1, over)
    assert not wrong


def test_files_have_their_size(book):
    """But for their headers, and vectors that a file has in fp32."""
    found = book.execute(
        "SELECT model_id, dtype_id, weights_bytes FROM denoiser_weight WHERE pipeline_part = 'denoiser'"
    ).fetchall()
    rows = {(model, dtype): weights for model, dtype, weights in found}
    assert {name: rows[name] for name in FILES} == pytest.approx(FILES, rel=0.002)


def test_layers_that_refine_stand_apart_in_any_number():
    """Those of Z-Image, told from its blocks by their number: a config with three has three, and one of twelve blocks too."""
    config = {"_class_name": "ZImageTransformer2DModel"}
    for said, refining in (({}, 2), ({"n_refiner_layers": 3}, 3), ({"n_layers": 12}, 2)):
        tensors = reader_for("ZImageTransformer2DModel")(Fields(config | said)).tensors
        blocks = {(t.layer_count, t.per_layer_count) for t in tensors if t.role == "ffn_down"}
        assert blocks == {(said.get("n_layers", 30), 1), (refining, 1)}


def test_what_bitsandbytes_packs_weighs_what_it_weighs_elsewhere(any_book):
    query = """
        SELECT count(*), count(*) FILTER (packed.weights_bytes <> weight.weights_bytes)
        FROM denoiser_weight AS packed JOIN weight USING (model_id, dtype_id) WHERE pipeline_part = 'denoiser' AND dtype_id IN ('nf4', 'nf4-double', 'int8')
    """
    ((compared, other),) = any_book.execute(query).fetchall()
    assert compared > 50 and other == 0


def test_what_bitsandbytes_packs_lies_on_the_card_together_before_offload_begins(book):
    """from_pretrained puts it there unless a device_map says otherwise, and enable_model_cpu_offload moves it away only then."""
    bits = [{"model_id": FLUX, "denoiser_dtype_id": dtype, "text_dtype_id": dtype} for dtype in ("int8", "nf4")]
    others = [{"model_id": FLUX, "denoiser_dtype_id": dtype} for dtype in ("gguf-q4_k_s", "fp8")]
    *stages, of_gguf, of_floats = at_once(book, "pipeline_stages", ("model_id",), bits + others)
    for parts, rows in zip(stages, at_once(book, "pipeline_of", ("model_id",), bits), strict=True):
        loaded = [(part["loaded_bytes"], part["weights_bytes"]) for part in parts if part["loaded_bytes"]]
        assert len(loaded) == 2 and all(held == weights for held, weights in loaded)
        least = sum(weights for _, weights in loaded)
        assert rows and all(row["total_bytes"] > least for row in rows)
        assert {(row["placement"], row["weights_bytes"]) for row in rows if row["peak_part"] == "loading"} == {
            (where, least) for where in ("model", "group", "sequential")
        }
    # a file of GGUF, and 8-bit floats, are loaded on the CPU
    for parts in (of_gguf, of_floats):
        assert parts and sum(part["loaded_bytes"] for part in parts) == 0


def test_eight_bits_are_told_for_the_releases_that_move_them(book):
    """Before, enable_model_cpu_offload leaves a part of bitsandbytes' 8 bits on the card for good."""
    query = "SELECT DISTINCT holds_for FROM pipeline_of($1, denoiser_dtype_id := 'int8')"
    assert book.execute(query, [FLUX]).fetchall() == [("bitsandbytes 0.48 and later with Transformers 5",)]


def test_a_class_or_a_format_that_nobody_described_has_a_reason(book):
    asked = (
        ("krea/Krea-2-Raw", "gguf-q4_k_s", "how Krea2Transformer2DModel is held in gguf-q4_k_s is not known"),
        # which blocks of FLUX.2 files of mixed types hold apart no source says
        (
            "black-forest-labs/FLUX.2-dev",
            "gguf-q4_k_m",
            "how Flux2Transformer2DModel is held in gguf-q4_k_m is not known",
        ),
        (FLUX, "gguf-iq2_m", "how FluxTransformer2DModel is held in gguf-iq2_m is not known"),
        (FLUX, "nothing", "is held in nothing is not known"),
        # rows of 2,432 do not divide into groups of 256: converters write another format in their place
        ("stabilityai/stable-diffusion-3.5-large", "gguf-q4_k_s", "is held in gguf-q4_k_s is not known"),
    )
    cases = [{"model_id": model, "denoiser_dtype_id": dtype} for model, dtype, _said in asked]
    cases += [{"model_id": FLUX, "dtype_id": "fp32", "denoiser_dtype_id": "fp8"}]
    told = at_once(book, "pipeline_of", ("model_id",), cases)
    for rows, said in zip(told, [*(said for *_, said in asked), "beside bf16 and fp16"], strict=True):
        assert rows and all(row["total_bytes"] is None and said in row["unknown_reason"] for row in rows), said
