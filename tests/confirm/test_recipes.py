"""Mixes of formats that a config states: the explanation of a published total, to the element."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.anatomy import read_config
from pipeline.confirm.grade import grade
from pipeline.confirm.recipes import explain_mlx, explain_recipe
from tests.confirm.test_stored import HIDDEN, VOCAB, WEIGHTS, decoder
from tests.once import bundled_snapshot

FLASH, PRO = "nvidia/DeepSeek-V4-Flash-NVFP4", "nvidia/DeepSeek-V4-Pro-NVFP4"
DENSE, SPARSE = "ornith-ai/Ornith-1.5-9B-MLX-6bit", "ornith-ai/Ornith-1.5-35B-A3B-MLX-8bit"
ONE_BIT = "prism-ml/Bonsai-27B-mlx-1bit"
RECORDS = {r.model_id: r for r in bundled_snapshot().records if r.model_id in (FLASH, PRO, DENSE, SPARSE, ONE_BIT)}
ANATOMY = read_config(RECORDS[FLASH].config)


@pytest.mark.parametrize(
    ("model_id", "words"),
    [
        (FLASH, "experts: 4-bit floats counted in pairs, a scale per 16 (-121,198,608,384)"),
        (PRO, "experts of prediction layers: 4-bit floats counted in pairs, a scale per 32 (-11,890,851,840)"),
    ],
)  # fmt: skip
def test_experts_in_four_bits_beside_blocks_in_eight_come_out_to_the_element(model_id, words):
    record = RECORDS[model_id]
    found = grade(record, read_config(record.config))
    assert found.grade == "exact" and words in found.stored_note
    assert (found.stored_format, found.stored_bytes) == ("nvfp4", None)
    held = {part.tensor.tensor_class: part.dtype_id for part in found.parts if part.tensor.component == "text"}
    assert (held["expert"], held["shared-expert"], held["head"], held["norm"]) == ("nvfp4", "fp8", "bf16", "bf16")
    by_role = {part.tensor.role: part.dtype_id for part in found.parts}
    assert (by_role["mla_q_b"], by_role["indexer_weights"], by_role["compressor"]) == ("fp8", "bf16", "bf16")
    off = replace(record, stored_parameter_count=record.stored_parameter_count + 1)
    assert grade(off, read_config(off.config)).grade == "unknown"


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(["quant_method", "weight_block_size", "moe_quant_algo", "ignore"]),
    value=st.one_of(st.none(), st.integers(), st.text(max_size=4), st.lists(st.text(max_size=4))),
)
def test_a_recipe_that_says_something_else_explains_nothing_or_the_same(name, value):
    record = RECORDS[FLASH]
    config = {**record.config, "quantization_config": {**record.config["quantization_config"], name: value}}
    anatomy = read_config(record.config)
    explained = explain_recipe(anatomy, record.stored_parameter_count, config)
    assert (
        explained is None
        or anatomy.parameter_count + sum(n for _, n in explained.parts) == record.stored_parameter_count
    )


@pytest.mark.parametrize(
    ("model_id", "words"),
    [
        (
            DENSE,
            "5-bit integers, a scale and a bias per 32 or 6-bit integers, a scale and a bias per 64 (-6,994,329,600)",
        ),
        (SPARSE, "packed by MLX: 8-bit integers, a scale and a bias per 64"),
        (ONE_BIT, "packed by MLX: 1-bit integers, a scale and a bias per 128 (-25,632,727,040)"),
    ],
)
def test_what_mlx_packs_throughout_comes_out_to_the_element(model_id, words):
    record = RECORDS[model_id]
    found = grade(record, read_config(record.config))
    assert found.grade == "matched" and words in found.stored_note
    assert (found.stored_format, found.stored_bytes) == (None, None)
    off = replace(record, stored_parameter_count=record.stored_parameter_count + 1)
    assert grade(off, read_config(off.config)).grade == "unknown"


def test_a_total_that_counts_single_weights_is_not_read_as_words():
    record = replace(RECORDS[DENSE], parameters_kind="exact_safetensors")
    assert grade(record, read_config(record.config)).grade == "unknown"


@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 8])
def test_every_width_that_mlx_packs_is_told_by_the_total(bits, group):
    packed = WEIGHTS + 2 * VOCAB * HIDDEN  # embedding and head too; norms stay
    more = packed * bits // 32 + 2 * packed // group - packed
    total = decoder().parameter_count + more
    ((words, size),) = explain_mlx(decoder(), total).parts
    assert f"{bits}-bit integers, a scale and a bias per {group}" in words and size == more
    assert explain_mlx(decoder(), total + 1) is None
