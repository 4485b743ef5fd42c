"""Vision models and pairs of encoders: published totals."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy, read_config
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.towers.vision import vision_tower

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
SO400M = {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "intermediate_size": 4304}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (  # google/vit-base-patch16-224
            {"model_type": "vit", **BASE, "num_labels": 1000, "architectures": ["ViTForImageClassification"]},
            86_567_656,
        ),
        (  # openai/clip-vit-large-patch14
            {
                "model_type": "clip",
                "projection_dim": 768,
                "text_config": BASE,
                "vision_config": {**LARGE, "patch_size": 14},
            },
            427_616_513,
        ),
        (  # google/siglip-so400m-patch14-384
            {
                "model_type": "siglip",
                "text_config": {**SO400M, "vocab_size": 32000},
                "vision_config": {**SO400M, "image_size": 384, "patch_size": 14},
            },
            877_960_498,
        ),
        (
            {"model_type": "dinov2", **BASE, "mlp_ratio": 4, "image_size": 518, "patch_size": 14},
            86_580_480,
        ),  # dinov2-base
        (  # microsoft/resnet-50
            {
                "model_type": "resnet",
                "hidden_sizes": [256, 512, 1024, 2048],
                "depths": [3, 4, 6, 3],
                "num_labels": 1000,
                "architectures": ["ResNetForImageClassification"],
            },
            25_557_032,
        ),
    ],
)
def test_published_totals(config, total):
    assert read_config(config).parameter_count == total


def test_a_tower_caches_nothing_and_every_tensor_is_of_its_class():
    (part,) = vision_tower(Fields({"model_type": "siglip_vision_model"}))
    assert {t.tensor_class for t in part.tensors} == {"vision-tower"}
    assert {a.elements_per_token for a in part.attention} == {0}


def test_a_class_that_is_not_described_is_no_guess():
    with pytest.raises(UnknownAnatomy, match="is not described yet"):
        read_config({"model_type": "vit", **BASE, "architectures": ["ViTForMaskedImageModeling"]})
