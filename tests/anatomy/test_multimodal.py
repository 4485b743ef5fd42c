"""Vision-language models: published totals, and whose layers and cache they have."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy, read_config

LLAVA = {
    "model_type": "llava",
    "text_config": {"model_type": "llama", "vocab_size": 32064, "max_position_embeddings": 4096},
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
}
QWEN = {
    "model_type": "qwen2_5_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": False,
    "vision_config": {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
    },
}
GEMMA = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "sliding_window": 1024,
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "image_size": 896,
        "patch_size": 14,
        "vision_use_head": False,
    },
}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (LLAVA, 7_063_427_072),
        (QWEN, 8_292_166_656),
        (GEMMA, 4_300_079_472),
    ],  # llava-1.5-7b-hf, Qwen2.5-VL-7B, gemma-3-4b
)
def test_published_totals(config, total):
    assert read_config(config).parameter_count == total


def test_layers_cache_and_context_are_the_language_models():
    anatomy = read_config(QWEN)
    assert (anatomy.layer_count, anatomy.hidden_size, anatomy.max_context_tokens) == (28, 3584, 128000)
    cached = {a.component: a.elements_per_token for a in anatomy.attention}
    assert cached == {"text": 2 * 4 * 128, "vision": 0}
    assert {t.component for t in anatomy.tensors} == {"text", "vision", "projector"}


def test_a_causal_class_builds_the_language_model_alone():
    alone = read_config({**GEMMA, "architectures": ["Gemma3ForCausalLM"]})
    assert {t.component for t in alone.tensors} == {"text"}


def test_a_tower_that_is_not_described_leaves_the_model_unknown():
    with pytest.raises(UnknownAnatomy, match="config has no vision_config"):
        read_config({k: v for k, v in GEMMA.items() if k != "vision_config"})
    with pytest.raises(UnknownAnatomy, match="is not described yet"):
        read_config({**LLAVA, "text_config": {"model_type": "no-such-model"}})


def test_a_name_of_a_tower_is_no_tower():
    """LLaVA's first files name a repository; only where its width is the class default's is there something to read."""
    flat = {
        "model_type": "llava",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
        "mm_hidden_size": 1024,
        "mm_projector_type": "mlp2x_gelu",
    }
    assert read_config(flat).parameter_count == 7_062_902_784  # liuhaotian/llava-v1.5-7b
    with pytest.raises(UnknownAnatomy):
        read_config({**flat, "mm_hidden_size": 1152})


def test_an_encoder_alone_is_without_what_the_whole_model_puts_after_it():
    """Qwen3ASREncoder ends in ln_post; Qwen3ASRModel owns the two matrices into the text's width (transformers 5.23.0, modeling_qwen3_asr.py)."""
    hearing = {
        "model_type": "qwen3_asr_encoder",
        "d_model": 64,
        "encoder_layers": 2,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 128,
        "downsample_hidden_size": 8,
        "num_mel_bins": 16,
        "output_dim": 32,
    }
    text = {
        "model_type": "qwen3",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    text |= {"num_key_value_heads": 1, "head_dim": 16, "vocab_size": 100}
    whole = read_config(
        {"model_type": "qwen3_asr", "architectures": ["Qwen3ASRModel"], "audio_config": hearing, "text_config": text}
    )
    convolutions = (9 * 8 + 8) + 2 * (9 * 8 * 8 + 8) + (8 * 2) * 64
    layer = 4 * (64 * 64 + 64) + (64 * 128 + 128) + (128 * 64 + 64) + 4 * 64
    alone = read_config(hearing)
    assert alone.parameter_count == convolutions + 2 * layer + 2 * 64
    assert whole.parameter_count - alone.parameter_count - (64 * 64 + 64) - (64 * 32 + 32) == _qwen3(text)


def _qwen3(text):
    return read_config(text | {"architectures": ["Qwen3Model"], "tie_word_embeddings": True}).parameter_count


def test_florence_is_one_shape_under_the_names_of_either_code():
    """Microsoft's code and Transformers name the widths and places of DaViT differently: none of them may fall back to a default."""
    text = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    text |= {
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "vocab_size": 512,
        "max_position_embeddings": 32,
    }
    said = {"model_type": "florence2", "text_config": text, "tie_word_embeddings": True}
    stages = {
        "depths": [1, 2],
        "patch_size": [7, 3],
        "patch_prenorm": [False, True],
        "num_heads": [2, 4],
        "projection_dim": 64,
    }
    theirs = stages | {"dim_embed": [32, 64], "image_pos_embed": {"max_pos_embeddings": 20}}
    ours = stages | {"embed_dim": [32, 64], "max_position_embeddings": 20}
    first = read_config(
        said | {"vision_config": theirs | {"visual_temporal_embedding": {"max_temporal_embeddings": 10}}}
    )
    second = read_config(said | {"vision_config": ours | {"max_temporal_embeddings": 10}})
    assert first.tensors == second.tensors and first.stored_extra == second.stored_extra
    assert first.stored_extra["waves of frames, which nothing learns"] == 10 * 64
    assert (
        first.parameter_count < read_config(said | {"vision_config": theirs | {"dim_embed": [64, 128]}}).parameter_count
    )
