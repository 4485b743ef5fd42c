"""Denoisers of diffusion pipelines: published totals."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy, read_config

FLUX = {
    "model_type": "FluxTransformer2DModel",
    "in_channels": 64,
    "num_layers": 19,
    "num_single_layers": 38,
    "num_attention_heads": 24,
    "guidance_embeds": True,
}
QWEN = {
    "model_type": "QwenImageTransformer2DModel",
    "in_channels": 64,
    "num_layers": 60,
    "num_attention_heads": 24,
    "attention_head_dim": 128,
}
SD15 = {"model_type": "UNet2DConditionModel", "cross_attention_dim": 768}
SDXL = {
    "model_type": "UNet2DConditionModel",
    "block_out_channels": [320, 640, 1280],
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "transformer_layers_per_block": [1, 2, 10],
    "attention_head_dim": [5, 10, 20],
    "cross_attention_dim": 2048,
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "projection_class_embeddings_input_dim": 2816,
}
SD35 = {
    "model_type": "SD3Transformer2DModel",
    "in_channels": 16,
    "num_layers": 38,
    "num_attention_heads": 38,
    "attention_head_dim": 64,
    "caption_projection_dim": 2432,
    "pos_embed_max_size": 192,
    "qk_norm": "rms_norm",
}


@pytest.mark.parametrize(
    ("config", "total"),
    [(FLUX, 11_901_408_320), (QWEN, 20_430_401_088), (SD15, 859_520_964), (SDXL, 2_567_463_684)],
)
def test_published_totals(config, total):
    anatomy = read_config(config)
    assert anatomy.parameter_count == total
    assert {t.tensor_class for t in anatomy.tensors} == {"denoiser"}
    assert {a.mechanism for a in anatomy.attention} == {"bidirectional"}


def test_stable_diffusion_3_stores_its_fixed_positions():
    anatomy = read_config(SD35)
    assert anatomy.parameter_count + anatomy.stored_extra["fixed positions"] == 8_146_280_768


def test_a_block_that_is_not_described_is_named():
    with pytest.raises(UnknownAnatomy, match="AttnDownBlock2D"):
        read_config({**SDXL, "down_block_types": ["AttnDownBlock2D"] * 3})
