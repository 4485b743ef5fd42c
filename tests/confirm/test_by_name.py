"""Repositories of which only the name says a format: what their total, their size and their maker say of it, and what stays unknown."""

import csv
from dataclasses import replace

import pytest

from pipeline.confirm.by_name import FILE, family
from pipeline.confirm.stored_parts import bytes_of
from pipeline.hub.record import Record
from pipeline.press.anatomise import _read
from tests.once import bundled_snapshot


@pytest.fixture(scope="module")
def graded():
    known = {record.model_id: record for record in bundled_snapshot().records}
    return lambda model_id: (_read(known[model_id]), known[model_id])


# Bytes that the repository has, less what is not loaded: prediction layers, a tokenizer.
@pytest.mark.parametrize(
    ("model_id", "ahead_elements"),
    [
        ("cyankiwi/Qwen3.8-27B-AWQ-INT4", 424_699_392),  # groups of 32
        ("cyankiwi/Qwen3.8-27B-AWQ-BF16-INT4", 424_699_392),  # its linear attention in 16 bits
        ("soyrsoyr/Qwen3.8-27B-W4A16-AWQ-GPTQ", 424_699_392),  # the same, by its total
        ("huginnfork/Qwen3.8-27B-FP8", 424_699_392),  # the feed-forward alone
        ("Blackfrost-AI/Qwen3.8-27B-ABLITERATED-NVFP4", 0),
        ("ornith-ai/Ornith-1.5-35B-A3B-FP8", 844_640_768),
        ("sakamakismile/Qwen3.8-27B-MTP-NVFP4", 424_699_392),  # everything, as the format does
        ("RedHatAI/Qwen3.8-27B-NVFP4", 424_699_392),  # by a recipe that sources quote, late feed-forwards in 8 bits
    ],
)
def test_weights_are_what_a_repository_has(graded, model_id, ahead_elements):
    found, record = graded(model_id)
    assert bytes_of(found.parts) == pytest.approx(record.storage_bytes - 2 * ahead_elements, rel=0.007)


@pytest.mark.parametrize(
    ("model_id", "loaded_gb"),
    [
        ("RedHatAI/Qwen3.6-35B-A3B-NVFP4", 23.49),  # 21.88 GiB that vLLM loaded: linear attention and tower in 16 bits
        ("Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", 22.60),  # 21.05 GiB that vLLM loaded (issue 36973): the experts alone
        ("QuantTrio/Qwen3.6-35B-A3B-AWQ", 25.46 - 1.69),  # its files, less its prediction layer
        ("RadixArk/Qwen3.8-27B-NVFP4", 21.95 - 0.85),  # 20.44 GiB of files, less its prediction layer
        ("nvidia/Qwen3.8-27B-NVFP4", 21.95 - 0.85),  # of the same recipe
        ("Qwen/Qwen3.5-27B-GPTQ-Int4", 29.4),  # the feed-forward alone: 17.1e9 elements in 4.16 bits, 10.2e9 in 16
    ],
)
def test_what_makers_leave_in_16_bits_is_counted(graded, model_id, loaded_gb):
    found, _ = graded(model_id)
    assert bytes_of(found.parts) / 1e9 == pytest.approx(loaded_gb, rel=0.015)


def test_a_total_that_shows_groups_and_what_is_left_out_is_taken_at_its_word(graded):
    found, _ = graded("RedHatAI/Qwen3.5-9B-FP8-dynamic")  # 24 layers of linear attention in 16 bits
    assert found.stored_format == "fp8"
    assert {part.dtype_id for part in found.parts if part.tensor.tensor_class == "recurrent"} == {"bf16"}
    found, _ = graded("cyankiwi/MiniMax-M2.7-AWQ-4bit")
    assert {part.dtype_id for part in found.parts} == {"bf16", "gptq-int4-g32"}


def test_where_nothing_says_how_much_is_packed_there_is_no_number(graded):
    found, _ = graded("QUASAR-QAT/Qwen3.8-27B-QUASAR-NVFP4")  # 19.7 GB or 30.1
    assert found.parts is None and "only its name says its format" in found.stored_unknown_reason
    assert found.stored_format == "nvfp4"
    found, _ = graded("RedHatAI/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-FP8")  # 3 % between them: the larger
    assert "counted at the larger" in found.stored_note and found.stored_unknown_reason is None


def test_files_of_other_programs_are_not_read_as_the_format_that_their_name_says():
    record = Record("org/Some-8B-4bit")
    assert family(record) == "int4"
    for change in (
        {"library": "MLX"},
        {"library": "gguf"},
        {"parameters_kind": "exact_gguf", "library": "transformers"},
    ):
        assert family(replace(record, **change)) is None, change


def test_models_without_recurrent_layers_stay_as_their_format_packs_them(graded):
    for model_id in ("Qwen/Qwen3-14B-AWQ", "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", "mlx-community/Qwen3.8-27B-4bit"):
        found, _ = graded(model_id)
        assert found.parts is None and found.stored_unknown_reason is None


def test_a_tower_that_a_class_builds_is_counted_and_one_that_lies_apart_is_not(graded):
    for model_id, has_tower in (("RedHatAI/Qwen3.6-35B-A3B-NVFP4", True), ("drawais/Qwen3.6-27B-AWQ-INT4", False)):
        found, _ = graded(model_id)
        assert any(t.tensor_class == "vision-tower" for t in found.anatomy.tensors) == has_tower


def test_what_makers_pack_is_said_with_a_source():
    with (FILE.parents[1] / "facts" / "source.csv").open(newline="", encoding="utf-8") as file:
        known = {row["source_id"] for row in csv.DictReader(file)}
    with FILE.open(newline="", encoding="utf-8") as file:
        assert all(row["source"] in known for row in csv.DictReader(file))


def test_a_repository_that_is_published_packed_weighs_what_its_files_do(graded):
    """Its shape is another's, whose config is silent of how it is packed: experts in 4-bit integers of 32, all else in 16 bits."""
    found, record = graded("moonshotai/Kimi-K2.7-Code")
    assert found.stored_format == "gptq-int4-g32-sym"
    assert bytes_of(found.parts) == pytest.approx(record.storage_bytes, rel=0.001)
    assert graded("MiniMaxAI/MiniMax-M2")[0].stored_format == "fp8"


def test_layers_that_a_total_shows_in_8_bits_are_held_so(graded):
    """The total of unsloth/Qwen3.6-27B-NVFP4 counts the scales of all rows: what its successor holds, whose recipe sources quote."""
    ours, successor = graded("unsloth/Qwen3.6-27B-NVFP4")[0], graded("RedHatAI/Qwen3.8-27B-NVFP4")[0]
    assert bytes_of(ours.parts) == bytes_of(successor.parts)
    assert {part.dtype_id for part in ours.parts if part.tensor.tensor_class == "feed-forward"} == {"nvfp4", "fp8"}


def test_a_repository_as_large_as_8_bits_of_the_rest_make_it_holds_them(graded):
    found, record = graded("ornith-ai/Ornith-1.5-35B-A3B-NVFP4")
    assert {part.dtype_id for part in found.parts if part.tensor.tensor_class == "attention"} == {"fp8"}
    assert bytes_of(found.parts) == pytest.approx(record.storage_bytes - 2 * 844_640_768, rel=0.002)
    grown = replace(record, storage_bytes=record.storage_bytes + 10**9)  # of a history, maybe
    assert "counted in 16" in _read(grown).stored_note


@pytest.mark.parametrize(
    ("model_id", "is_counted"),
    [
        ("nvidia/DeepSeek-V3.1-NVFP4", True),  # attention is 3 % of it
        ("dangvansam/chandra-ocr-2-NVFP4A16", False),
    ],
)
def test_what_may_be_in_8_bits_is_counted_in_16_where_that_is_little_more(graded, model_id, is_counted):
    found, _ = graded(model_id)
    assert bool(found.parts) == is_counted and ("counted in 16" in (found.stored_note or "")) == is_counted
    assert (found.stored_unknown_reason is None) == is_counted
