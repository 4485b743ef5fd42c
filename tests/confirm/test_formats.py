"""Which of our formats a config declares, by the dialect of its quantiser: what is not plainly one of ours is none."""

from __future__ import annotations

import pytest

from pipeline.confirm.formats import declared_format, is_quantised

PACKED = {"group_size": 64, "bits": 4, "mode": "affine"}
EIGHT = {"group_size": 64, "bits": 8}


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        (PACKED, "mlx-4bit"),
        ({"group_size": 64, "bits": 8}, "mlx-8bit"),
        ({"group_size": 32, "bits": 4}, "mlx-4bit-g32"),
        ({"group_size": 32, "bits": 4, "mode": "mxfp4"}, "mlx-mxfp4"),
        ({"group_size": 32, "bits": 8}, None),
        ({"group_size": 64, "bits": "4"}, None),
        ({"group_size": [64], "bits": 4}, None),
        (PACKED | {"model.layers.0.mlp.gate": EIGHT, "model.layers.0.mlp.shared_expert_gate": EIGHT}, "mlx-4bit"),
        (PACKED | {"model.layers.0.mlp.gate_proj": EIGHT}, None),  # a mix: not one of ours
        (PACKED | {"lm_head": False}, None),
        ({}, None),
    ],
)
def test_mlx_names_its_bits_and_group_for_all_matrices(quantization, expected):
    """MLX writes the same words twice, the second time as `quantization_config` without a method."""
    config = {"model_type": "qwen3", "quantization": quantization, "quantization_config": quantization}
    assert declared_format(config) == expected
    assert is_quantised(config)


def test_a_checkpoint_of_mlx_in_16_bits_declares_no_format():
    assert declared_format({"model_type": "qwen3", "torch_dtype": "bfloat16"}) is None


@pytest.mark.parametrize(("size", "symmetric", "expected"), [(32, True, "gptq-int4-g32-sym"), (32, False, "gptq-int4-g32"), (64, True, "gptq-int4-g64"), (16, True, None)])  # fmt: skip
def test_integers_of_compressed_tensors_are_told_by_how_many_share_a_scale(size, symmetric, expected):
    weights = {"num_bits": 4, "type": "int", "group_size": size, "symmetric": symmetric}
    config = {
        "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": weights}}}
    }
    assert declared_format(config) == expected
