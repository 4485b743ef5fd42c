"""A command names the repository whose weights were counted, or none: makers of one format leave different parts of a model unpacked."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.ask.almanac import Almanac
from pipeline.ask.formats import in_its_format
from pipeline.ask.helps import commands_of, held_otherwise
from pipeline.ask.models import model_of
from pipeline.ask.problems import Unknown
from pipeline.ask.question import Model, Use
from pipeline.book.commands import is_counted, repositories

BASE, TOTAL = "maker/Model-27B", 27_000_000_000
ROW = {
    "dtype_id": "nvfp4", "engine_id": "vllm", "verdict": "fits", "share_is_free": True, "sequences": 1, "context_tokens": 4096,
    "engine_setting": None, "kv_dtype_id": "bf16",
}  # fmt: skip


class _Almanac(Almanac):
    """A file of a base model, counted whole in 18 GB of nvfp4, and of repositories of it."""

    def __init__(self, of: dict[str, int | None], total: int | None = None) -> None:
        super().__init__(duckdb.connect(), "a file of the test", {})
        self.connection.execute(
            """
            CREATE TABLE model (model_id VARCHAR, stored_format VARCHAR, family VARCHAR, downloads_30d BIGINT, parameter_count BIGINT,
                predicting_parameter_count BIGINT, stored_parameter_count BIGINT, anatomy_grade VARCHAR, anatomy_note VARCHAR,
                base_model_id VARCHAR, pipeline_tag VARCHAR, library VARCHAR);
            CREATE TABLE work (model_id VARCHAR, plain_name VARCHAR, lead_model_id VARCHAR);
            CREATE TABLE weight (model_id VARCHAR, dtype_id VARCHAR, weights_bytes BIGINT);
            CREATE TABLE dtype (dtype_id VARCHAR, engine_id VARCHAR, bits_per_weight DOUBLE);
            CREATE TABLE component (model_id VARCHAR);
            INSERT INTO dtype VALUES ('nvfp4', 'vllm', 4.5);
            CREATE MACRO known_model(asked) AS asked;
            CREATE MACRO repository_of(asked) AS TABLE SELECT 'maker/Model-27B' AS model_id, 'nvfp4' AS dtype_id, 'nvfp4' AS dtype_named,
                NULL AS note, NULL AS beyond_bytes, NULL AS ollama_tag;
            """
        )
        for place, (name, size) in enumerate({BASE: 18_000_000_000, **of}.items()):
            is_known = total is None or name == BASE
            self.connection.execute(
                "INSERT INTO model VALUES ($1, $2, 'm', $3, $4, 400000000, $5, $6, '', NULL, 'text-generation', NULL)",
                [
                    name,
                    None if name == BASE else "nvfp4",
                    9 - place,
                    TOTAL,
                    total,
                    "derived" if is_known else "unknown",
                ],
            )
            self.connection.execute("INSERT INTO work VALUES ($1, 'model-27b', $2)", [name, BASE])
            self.connection.execute("INSERT INTO weight VALUES ($1, 'nvfp4', $2)", [name, size])

    def value(self, query, values=()):
        return super().value(query, values) if "runs_on" not in query else False

    def model(self) -> Model:
        (row,) = self.rows("FROM model WHERE model_id = $id", {"id": BASE})
        return Model(BASE, BASE, row)


@pytest.mark.parametrize(
    ("of", "named"),
    [
        ({"a/Model-27B-NVFP4": None}, None),
        ({"a/Model-27B-NVFP4": 21_000_000_000}, None),
        ({"a/Model-27B-NVFP4": 17_000_000_000}, None),
        ({"a/Model-27B-NVFP4": 21_000_000_000, "b/Model-27B-NVFP4": 18_100_000_000}, "b/Model-27B-NVFP4"),
    ],
)
def test_a_command_names_no_repository_of_other_weights(of, named):
    almanac = _Almanac(of)
    found = commands_of(almanac, almanac.model(), [ROW], 1)
    assert [line["command"].split()[2] for line in found] == ([named] if named else [])
    told = held_otherwise(almanac, almanac.model(), "nvfp4")
    assert [row["model"] for row in told.get("repositories", ())] == ([] if named else list(of))


def test_on_pages_it_is_the_same_and_a_model_names_its_own_files():
    weights = {(BASE, "fp8"): 100, ("a/Model-27B-FP8", "fp8"): 102, ("b/Model-27B-FP8", "fp8"): 101}
    named = [("a/Model-27B-FP8", "fp8"), ("b/Model-27B-FP8", "fp8"), ("c/Model-27B-GGUF", None)]
    assert repositories(named, BASE, weights) == {"fp8": "b/Model-27B-FP8", "gguf": "c/Model-27B-GGUF"}
    assert repositories(named, BASE, {}) == {"gguf": "c/Model-27B-GGUF"}
    assert is_counted("a/Model-27B-FP8", "fp8", "a/Model-27B-FP8", {})


@pytest.mark.parametrize(
    ("total", "is_told"), [(21_000_000_000, False), (17_500_000_000, True), (27_400_000_000, True)]
)
def test_a_total_above_the_format_of_its_name_is_not_counted_as_that_format(total, is_told):
    """Each element takes a byte or more, but where the total counts the parameters themselves."""
    almanac = _Almanac({"a/Model-27B-NVFP4": None}, total)
    model = model_of(almanac, "a/Model-27B-NVFP4")
    if is_told:
        assert in_its_format(almanac, model, Use())[1].dtype_id == "nvfp4"
        return
    with pytest.raises(Unknown, match="21,000,000,000 elements"):
        in_its_format(almanac, model, Use())
    assert in_its_format(almanac, model, Use(dtype_id="bf16"))[1].dtype_id == "bf16"
