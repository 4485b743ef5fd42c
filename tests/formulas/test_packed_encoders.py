"""Text encoders of pipelines as Transformers packs their classes (tests/oracle/packed_encoders.csv, count_packed_encoders.py)."""

from __future__ import annotations

import csv
from pathlib import Path

from tests.formulas.at_once import at_once

PATH = Path(__file__).parents[1] / "oracle" / "packed_encoders.csv"
ROWS = list(csv.DictReader(PATH.read_text(encoding="utf-8").splitlines()))
TOLERANCE = 0.005
# a matrix is told as if it were unpacked at the very peak, and of 8 bits as if all of its columns were outliers
OVER = {"fp8": 0.02, "nf4": 0.02, "int8": 0.075}
# its peak is the logits of a long template, or states of the other prompt wait, beside which nothing is unpacked
LOGITS = ("Qwen2_5_VLForConditionalGeneration", "Gemma3ForConditionalGeneration")
FLUX = "black-forest-labs/FLUX.1-dev"

ASKED = """
    SELECT asked.place, told.weights_bytes, told.activations_bytes, told.unknown_reason
    FROM (SELECT unnest($1::INTEGER[]) AS place, unnest($2::VARCHAR[]) AS model_id, unnest($3::VARCHAR[]) AS part,
        unnest($4::VARCHAR[]) AS dtype_id, unnest($5::INTEGER[]) AS text_tokens) AS row,
        LATERAL (SELECT row.*) AS asked,
        pipeline_stages(asked.model_id, text_tokens := asked.text_tokens, text_dtype_id := asked.dtype_id) AS told
    WHERE told.pipeline_part = asked.part ORDER BY asked.place
"""


def test_packed_encoders_hold_what_their_classes_hold(book):
    columns = [[row[name] for row in ROWS] for name in ("model_id", "part", "dtype_id")]
    texts = [int(row["text_tokens"]) for row in ROWS]
    told = book.execute(ASKED, [list(range(len(ROWS))), *columns, texts]).fetchall()
    assert len(told) == len(ROWS) >= 14
    wrong = {}
    for row, (_place, weights, activations, reason) in zip(ROWS, told, strict=True):
        assert reason is None, (row, reason)
        weighed = int(row["weights_bytes"])
        held = (weights + activations) / (weighed + int(row["peak_bytes"])) - 1
        if abs(weights / weighed - 1) > TOLERANCE or not -TOLERANCE <= held <= OVER[row["dtype_id"]] + 0.05 * (
            row["class"] in LOGITS
        ):
            wrong[tuple(row.values())[:4]] = (weights / weighed - 1, held)
    assert not wrong


def test_parts_that_are_not_meant_stay_as_they_are(book):
    """CLIP and the autoencoder in 16 bits, the denoiser in its own format."""
    asked = ((None, None), ("nf4", None), ("int8", "nf4"))
    cases = [{"model_id": FLUX, "text_dtype_id": text, "denoiser_dtype_id": denoiser} for text, denoiser in asked]
    plain, text, both = (
        {part["pipeline_part"]: part["weights_bytes"] for part in parts}
        for parts in at_once(book, "pipeline_stages", ("model_id",), cases)
    )
    changed = {part for part in plain if plain[part] != text[part]}
    assert changed == {"text_encoder_2"} and {p for p in plain if plain[p] != both[p]} == {"denoiser", "text_encoder_2"}
    assert text["text_encoder_2"] < both["text_encoder_2"] < plain["text_encoder_2"]


def test_what_is_not_known_is_null_with_its_reason(book):
    asked = (
        ({"text_dtype_id": "gguf-q8_0"}, "Transformers unpacks a GGUF file as it loads"),
        ({"text_dtype_id": "nothing"}, "is not known"),
        ({"text_dtype_id": "nf4", "dtype_id": "fp16"}, "packed text encoders are counted beside bf16"),
        ({"text_dtype_id": "nf4", "dtype_id": "fp32"}, "packed text encoders are counted beside bf16"),
    )
    told = at_once(book, "pipeline_of", ("model_id",), [{"model_id": FLUX} | case for case, _reason in asked])
    for rows, (case, reason) in zip(told, asked, strict=True):
        assert rows and all(row["total_bytes"] is None and reason in row["unknown_reason"] for row in rows), case


def test_a_packed_t5_says_for_which_releases_it_is_told(book):
    """Before its release 5 Transformers kept what T5 names in 32 bits, 2.0 GB more of T5-XXL."""
    flux, other = "black-forest-labs/FLUX.1-dev", "Qwen/Qwen-Image"
    asked = ((flux, "nf4"), (flux, "int8"), (flux, None), (other, "nf4"))
    cases = [{"model_id": model, "denoiser_dtype_id": "nf4", "text_dtype_id": text} for model, text in asked]
    told = [{row["holds_for"] for row in rows} for rows in at_once(book, "pipeline_of", ("model_id",), cases)]
    eight = "bitsandbytes 0.48 and later with Transformers 5"
    assert told == [{"Transformers 5"}, {eight}, {None}, {None}]
