"""Words that are no model's own name: which of a maker's models is meant by them."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.ask import contexts, near
from pipeline.ask.almanac import Almanac
from pipeline.ask.problems import Wrong
from pipeline.ask.question import Model, Use
from pipeline.ask.values import ALL_TOKENS

MODELS = """
    SELECT * FROM (VALUES
        ('meta/Llama-3.1-8B', 'text-generation', 'exact', 8000, 32, 10), ('meta/Llama-3.1-8B-Instruct', 'text-generation', 'exact', 8000, 32, 90),
        ('other/Llama-3.1-8B-Instruct', 'text-generation', 'exact', 8000, 32, 99), ('meta/Llama-3.1-70B-Instruct', 'text-generation', 'exact', 70000, 80, 50),
        ('google/gemma-3-12b-pt', 'image-text-to-text', 'exact', 12000, 48, 10), ('google/gemma-3-12b-it', 'image-text-to-text', 'exact', 12000, 48, 70),
        ('mist/M-7B-v0.1', 'text-generation', 'exact', 7000, 32, 9), ('mist/M-7B-Instruct-v0.1', 'text-generation', 'exact', 7000, 32, 8),
        ('mist/M-8B', 'text-generation', 'exact', 8100, 32, 9), ('mist/M-8B-Instruct', 'text-generation', 'unknown', 8100, 32, 8),
        ('code/star-3b', 'text-generation', 'exact', 3000, 30, 9)
    ) AS rows(model_id, pipeline_tag, anatomy_grade, parameter_count, layer_count, downloads_30d)
"""


@pytest.fixture
def almanac():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE model AS {MODELS}")
        yield Almanac(connection, "made up", {}, "")


@pytest.mark.parametrize(
    ("said", "found", "meant"),
    [
        ("llama 3.1 8b", "meta/Llama-3.1-8B", "meta/Llama-3.1-8B-Instruct"),
        ("llama-3.1-8b q4_k_m", "meta/Llama-3.1-8B", "meta/Llama-3.1-8B-Instruct"),
        ("gemma 3 12b", "google/gemma-3-12b-pt", "google/gemma-3-12b-it"),
        ("m 7b v0.1", "mist/M-7B-v0.1", "mist/M-7B-Instruct-v0.1"),
        ("meta/Llama-3.1-8B", "meta/Llama-3.1-8B", None),  # (an id is itself, and so is a name as the Hub has it)
        ("Llama-3.1-8B", "meta/Llama-3.1-8B", None),
        ("llama 3.1 8b base", "meta/Llama-3.1-8B", None),
        ("llama 3.1 8b instruct", "meta/Llama-3.1-8B-Instruct", None),
        ("m 8b", "mist/M-8B", None),  # (of the other nothing is known)
        ("star 3b", "code/star-3b", None),
    ],
)
def test_who_runs_a_model_by_words_means_the_one_that_is_tuned_to_answer(almanac, said, found, meant):
    (row,) = almanac.rows("FROM model WHERE model_id = $id", {"id": found})
    tuned = near.tuned_of(almanac, said, row)
    assert (tuned and tuned["model_id"]) == meant
    assert tuned is None or tuned["base_id"] == found


def test_a_context_that_is_too_long_names_those_of_its_maker_and_size_that_read_it():
    rows = """
        SELECT *, 'qwen3_moe' AS model_type, 30 AS parameter_count FROM (VALUES
            ('Q/30B', 40, NULL, 9), ('Q/30B-2507', 256, NULL, 5), ('Q/30B-2507-FP8', 256, 'fp8', 50), ('Q/30B-Coder', 256, NULL, 7),
            ('Other/30B', 256, NULL, 99), ('Q/30B-Base', 32, NULL, 3)
        ) AS rows(model_id, max_context_tokens, stored_format, downloads_30d)
    """
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE model AS {rows}")
        known = Almanac(connection, "made up", {}, "")
        (row,) = known.rows("FROM model WHERE model_id = 'Q/30B'")
        model = Model("Q/30B", "Q/30B", row)
        contexts.check(known, model, Use(phase_id="inference", context_tokens=40))
        with pytest.raises(Wrong, match=r"Of its maker and size these read as much: Q/30B-Coder, Q/30B-2507$"):
            contexts.check(known, model, Use(phase_id="inference", context_tokens=128))
        with pytest.raises(Wrong, match=r"\(--context 40 is all of it\)$"):
            contexts.check(known, model, Use(phase_id="inference", context_tokens=512))
        assert contexts.asked_of(ALL_TOKENS, model) == 40
        with pytest.raises(Wrong, match="how much Q/30B does is not known here"):
            contexts.asked_of(ALL_TOKENS, Model("Q/30B", "Q/30B", row | {"max_context_tokens": None}))


def test_a_name_of_another_place_is_none_of_words(almanac):
    for said in ("someone/qwen3", "qwen3:8b", "model.Q4_K_M.gguf", "3b", "C:\\models\\x"):
        assert near.meant_by(almanac, said) is None
