"""A model that is published packed is told in that format first, then in those that a repository of it is in or that its files become."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.ask.almanac import Almanac
from pipeline.ask.question import Card, Model, Use
from pipeline.ask.scenarios import formats_of, in_order, packed_in
from pipeline.book.facts import TABLES

NVIDIA, APPLE = Card("h200-sxm", "H200", "nvidia", 1), Card("m4-max-128gb", "M4 Max", "apple", 1)


@pytest.fixture
def almanac():
    """The formats of the almanac, and a work: published in integers of 4 bits, packed by another in NVFP4."""
    with duckdb.connect() as connection:
        for name in ("scenario_set", "dtype"):
            connection.execute(
                f"CREATE TABLE {name} AS FROM read_csv('{TABLES}/facts/{name}.csv', all_varchar := true)"
            )
        connection.execute(
            """
            ALTER TABLE dtype ALTER bits_per_weight TYPE DOUBLE;
            CREATE TABLE work (model_id VARCHAR, plain_name VARCHAR);
            INSERT INTO work VALUES ('maker/Model-1T', 'model-1t'), ('nvidia/Model-1T-NVFP4', 'model-1t'), ('other/Model', 'model');
            CREATE TABLE model (model_id VARCHAR, stored_format VARCHAR, family VARCHAR, downloads_30d BIGINT);
            INSERT INTO model VALUES ('maker/Model-1T', 'gptq-int4-g32-sym', NULL, 9), ('nvidia/Model-1T-NVFP4', 'nvfp4', NULL, 5),
                ('other/Model', 'awq-int4', NULL, 3);
            """
        )
        yield Almanac(connection, "a file", {}, "")


def told(almanac, stored="gptq-int4-g32-sym", card=NVIDIA, *, every=False, **use):
    model = Model("maker/Model-1T", "maker/Model-1T", {"stored_format": stored})
    return formats_of(almanac, model, card, Use(**use), every=every)


def test_its_own_format_is_first_and_what_nobody_packed_is_not_told(almanac):
    """`fits moonshotai/Kimi-K2.6` said "best in fp8", in which no repository is."""
    formats = told(almanac)
    assert formats[0] == ("gptq-int4-g32-sym", "vllm") and ("nvfp4", "vllm") in formats
    mixes = {dtype for dtype, engine in formats if engine == "llama.cpp"}
    assert mixes == {"gguf-q4_k_m", "gguf-q3_k_m", "gguf-q2_k"}, "more bits than its files have say no more"
    assert len(formats) == len(mixes) + 2
    assert {dtype for dtype, engine in told(almanac, card=APPLE) if engine == "mlx-lm"} == {"mlx-4bit"}


def test_of_8_bits_all_mixes_up_to_8_are_made(almanac):
    formats = told(almanac, "fp8")
    assert formats[0] == ("fp8", "vllm") and ("gguf-q8_0", "llama.cpp") in formats
    assert not {"bf16", "fp16", "int8", "nf4", "awq-int4", "gptq-int4"} & {dtype for dtype, _engine in formats}


def test_a_program_is_asked_in_what_it_loads(almanac):
    assert told(almanac, program="sglang", engine_id="sglang") == [("gptq-int4-g32-sym", "sglang"), ("nvfp4", "sglang")]
    assert all(dtype.startswith("gguf-") for dtype, _ in told(almanac, program="llama.cpp", engine_id="llama.cpp"))


def test_what_is_published_whole_or_is_trained_and_every_format_are_as_they_were(almanac):
    whole = told(almanac, "bf16")
    assert {"bf16", "fp8", "awq-int4", "gguf-q8_0", "nf4"} <= {dtype for dtype, _engine in whole}
    assert {dtype for dtype, _engine in told(almanac, phase_id="lora")} >= {"bf16", "fp16"}
    assert set(whole) < set(told(almanac, every=True))


def test_it_stands_before_what_weighs_more():
    rows = [
        {"dtype_id": dtype, "engine_id": "vllm", "verdict": "fits", "weights_bytes": size}
        for dtype, size in (("gguf-q4_k_m", 580), ("gptq-int4-g32-sym", 554), ("nvfp4", 560))
    ]
    model = Model("maker/Model-1T", "maker/Model-1T", {"stored_format": "gptq-int4-g32-sym"})
    order = [row["dtype_id"] for row in in_order(rows, [], packed_in(model, Use()))]
    assert order == ["gptq-int4-g32-sym", "gguf-q4_k_m", "nvfp4"]
    assert packed_in(model, Use(phase_id="lora")) is None
