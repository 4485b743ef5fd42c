"""What a packed copy may hold beyond what most hold: in the error band, so that what fits fits however the copy was packed."""

from __future__ import annotations

import csv

import polars as pl
import pytest

from pipeline.book.facts import TABLES

MIXTURE, DENSE, RECURRENT = "mistralai/Mixtral-8x7B-Instruct-v0.1", "Qwen/Qwen3-8B", "Qwen/Qwen3.5-9B"
IN_16_BITS = ("attention", "recurrent", "shared-expert", "feed-forward")


def spread_of(book, model_id: str, dtype_id: str) -> int | None:
    query = "SELECT packing_spread_bytes FROM weight WHERE model_id = $1 AND dtype_id = $2"
    return book.execute(query, [model_id, dtype_id]).fetchall()[0][0]


def elements(named: dict[str, pl.DataFrame], model_id: str, *classes: str) -> int:
    tensor = named["tensor"].filter(pl.col("model_id") == model_id, pl.col("tensor_class").is_in(classes))
    return tensor.filter(pl.col("operator").is_in(["linear", "linear-subclass", "expert"]))["element_count"].sum()


def test_of_a_mixture_all_but_its_experts_may_stay_in_16_bits(book, named):
    """Counted by hand: 4.125 bits as most pack (128 elements share a scale), 16 of what is no expert, 4.625 of experts in groups of 32."""
    rest, experts = elements(named, MIXTURE, *IN_16_BITS), elements(named, MIXTURE, "expert")
    (bits,) = {
        float(row["element_bits"])
        for row in csv.DictReader((TABLES / "facts" / "weight_format.csv").read_text(encoding="utf-8").splitlines())
        if row["dtype_id"] == "awq-int4"
        and row["operator"] == "linear"
        and not row["tensor_class"]
        and not row["model_types"]
    }
    assert rest > 0 and experts > 0
    assert spread_of(book, MIXTURE, "awq-int4") == pytest.approx(
        (rest * (16 - bits) + experts * (4.625 - bits)) / 8, abs=2
    )


def test_nothing_is_added_where_all_known_ways_agree(book):
    assert (
        spread_of(book, DENSE, "awq-int4")
        == spread_of(book, MIXTURE, "bf16")
        == spread_of(book, MIXTURE, "gguf-q4_k_m")
        == 0
    )


def test_the_format_that_a_checkpoint_is_published_in_is_what_it_is(book):
    query = """
        SELECT count(*), max(packing_spread_bytes) FROM weight JOIN model USING (model_id)
        WHERE dtype_id = stored_format AND dtype_id IN ('fp8', 'awq-int4', 'gptq-int4', 'nvfp4') AND weights_bytes IS NOT NULL
    """
    ((count, most),) = book.execute(query).fetchall()
    assert count > 20 and most == 0


@pytest.mark.parametrize("gpu_count", [1, 2])
def test_the_band_has_room_for_it_and_the_total_stays(book, footprint_of, gpu_count):
    """The same question with the spread left out of the table is off by that much, of the weights that are on the card."""
    said = {"dtype_id": "awq-int4", "engine_id": "vllm", "context_tokens": 4096, "gpu_count": gpu_count}
    told = footprint_of(MIXTURE, **said)
    usual = footprint_of(MIXTURE, **said | {"dtype_id": "fp16"})
    weights, spread = book.execute(
        "SELECT weights_bytes, packing_spread_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'awq-int4'",
        [MIXTURE],
    ).fetchall()[0]
    beyond = (told["error_band"] * told["total_bytes"]) - spread * told["weights_bytes"] / weights
    # what is left is what a format that nobody packs otherwise has: the engine's own band, and what does not hang on the weights
    own = usual["error_band"] * usual["total_bytes"] - 0.05 * usual["total_bytes"]
    assert beyond - 0.05 * told["total_bytes"] == pytest.approx(own, rel=0.05, abs=64 * 2**20)
