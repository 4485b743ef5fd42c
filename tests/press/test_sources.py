"""One question, one answer: where is this figure from?"""

import pytest

from pipeline.book.facts import TABLES, read_table
from pipeline.book.schema import FACTS
from pipeline.press.sources import UnknownName, source_of


def test_a_card_comes_with_its_values_and_with_the_place_they_were_read_at():
    lines = source_of("gpu/rtx-4090")
    assert lines[0] == "gpu/rtx-4090"
    assert "  memory_mib_reported: 24,564 MiB" in lines
    assert any("Ada GPU architecture" in line for line in lines)
    assert any("memory_reported" in line and "nvidia-smi" in line for line in lines)


def test_a_constant_comes_with_unit_and_confidence():
    text = "\n".join(source_of("constant/cuda_gap_ratio"))
    assert "value: 0.0021" in text and "unit: ratio" in text and "confidence: medium" in text
    assert "[capacity-survey]" in text


def test_a_model_comes_with_snapshot_total_and_config():
    text = "\n".join(source_of("model/Qwen/Qwen3-8B"))
    assert "snapshot of the Hub of" in text
    assert "stored_parameter_count: 8,190,735,360" in text
    assert "config_kind: verbatim" in text and "Qwen--Qwen3-8B_config.json" in text
    assert "CC-BY-4.0" in text


def test_a_measurement_comes_with_its_citation():
    assert any(line.startswith("  source: github.com/QwenLM/Qwen3 @5c4e69c") for line in source_of("measured/gt0001"))


def test_a_key_of_several_parts_shows_all_rows_of_the_first():
    heads = [line for line in source_of("weight_format/nf4") if not line.startswith(" ")]
    assert "weight_format/nf4" in heads and "weight_format/nf4/linear" in heads


@pytest.mark.some(3)
@pytest.mark.parametrize("table", ["dtype", "engine", "phase", "optimizer", "kv_dtype", "constant", "gpu"])
def test_every_fact_shows_a_source_that_is_known(table):
    keys = read_table(TABLES / "facts" / f"{table}.csv", FACTS[table])[FACTS[table].key[0]]
    for key in keys.to_list()[::9] or keys:
        lines = source_of(f"{table}/{key}")
        assert any("source: " in line for line in lines), key
        assert not any("not in source.csv" in line for line in lines), key


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpu/rtx-409", "gpu/rtx-4090"),
        ("gpu/RTX-4090", "gpu/rtx-4090"),
        ("rtx-4090", "gpu/rtx-4090"),
        ("model/qwen3-8b", "model/Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B", "model/Qwen/Qwen3-8B"),
        ("constant/cuda_gap", "constant/cuda_gap_ratio"),
        ("xyzzy", "model/..."),
        ("", "model/..."),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(name, hint):
    with pytest.raises(UnknownName, match="no fact is called") as error:
        source_of(name)
    assert hint in error.value.near


def test_an_unknown_name_cannot_write_to_the_terminal():
    with pytest.raises(UnknownName) as error:
        source_of("gpu/\x1b[31m")
    assert "\x1b" not in str(error.value)
