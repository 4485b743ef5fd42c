"""Encoder-decoders of text and speech: published totals, and the two caches of a decoder."""

from __future__ import annotations

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config

T5 = {
    "model_type": "t5",
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_heads": 8,
    "vocab_size": 32128,
}
FLAN = {**T5, "d_ff": 1024, "num_layers": 8, "num_heads": 6, "feed_forward_proj": "gated-gelu"}
WHISPER = {
    "model_type": "whisper",
    "d_model": 1280,
    "encoder_layers": 32,
    "decoder_layers": 32,
    "encoder_attention_heads": 20,
    "decoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "decoder_ffn_dim": 5120,
    "vocab_size": 51866,
    "num_mel_bins": 128,
    "max_target_positions": 448,
}
BART = {"model_type": "bart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "vocab_size": 50265}


@pytest.mark.parametrize(
    ("config", "total"),
    [(T5, 60_506_624), (WHISPER, 1_543_490_560), (BART, 406_291_456)],  # t5-small, whisper-large-v3, bart-large
)
def test_published_totals(config, total):
    assert read_config(config).parameter_count == total


def test_flan_t5_stores_a_separate_head():
    anatomy = read_config(FLAN)
    assert anatomy.is_head_tied
    assert anatomy.parameter_count + anatomy.stored_extra["separate head in the checkpoint"] == 76_961_152


def test_a_decoder_caches_its_own_tokens_and_the_encoders():
    layers = {a.mechanism: a for a in read_config(WHISPER).attention}
    assert layers["full"].layer_count == layers["cross"].layer_count == 32
    assert layers["full"].elements_per_token == layers["cross"].elements_per_token == 2 * 1280
    assert layers["bidirectional"].elements_per_token == 0
    assert read_config(WHISPER).max_context_tokens == 448


def test_a_decoder_alone_has_no_encoder():
    whole, half = read_config(BART), read_config({**BART, "architectures": ["BartForCausalLM"]})
    assert {t.component for t in half.tensors} == {"decoder"}
    assert half.parameter_count == 254_084_096 < whole.parameter_count


def test_a_merged_attention_caches_the_text_and_the_encoder_with_one_set_of_matrices():
    side = {
        "hidden_size": 128,
        "num_hidden_layers": 7,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
    }
    side |= {"intermediate_size": 256, "vocab_size": 1000, "sliding_window": 64, "max_position_embeddings": 512}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1}
    config = {"model_type": "t5gemma2", "encoder": {"text_config": side, "vision_config": vision}, "decoder": side}
    found = read_config(config)
    caches = {a.kind: (a.layer_count, a.elements_per_token) for a in found.attention if a.elements_per_token}
    assert caches == {"decoder": (1, 128), "decoder-sliding": (6, 128), "cross": (7, 128)}
    queries = [t for t in found.tensors if (t.component, t.role) == ("decoder", "attention_q")]
    assert sum(t.layer_count for t in queries) == 7
    with pytest.raises(ContradictoryConfig, match="differ in width"):
        read_config(config | {"decoder": side | {"hidden_size": 256}})


def test_a_composed_model_is_known_by_both_of_its_parts():
    encoder = {"model_type": "deit", "hidden_size": 96, "image_size": 64, "intermediate_size": 192}
    encoder |= {"num_attention_heads": 4, "num_hidden_layers": 3, "patch_size": 16}
    decoder = {"model_type": "trocr", "d_model": 128, "decoder_attention_heads": 4, "decoder_ffn_dim": 256}
    decoder |= {
        "decoder_layers": 2,
        "vocab_size": 1000,
        "max_position_embeddings": 64,
        "cross_attention_hidden_size": 96,
    }
    config = {"model_type": "vision-encoder-decoder", "encoder": encoder, "decoder": decoder}
    (tower,) = read_config(config).towers
    assert (tower.reader, tower.tokens_each, tower.class_tokens) == ("cross-attention", 16, 2)
    with pytest.raises(UnknownAnatomy, match="'deit' with a decoder 'gpt2'"):
        read_config(config | {"decoder": decoder | {"model_type": "gpt2"}})
    with pytest.raises(UnknownAnatomy, match="'donut-swin'"):
        read_config(config | {"encoder": encoder | {"model_type": "donut-swin"}})
    with pytest.raises(ContradictoryConfig, match="80 elements"):
        read_config(config | {"decoder": decoder | {"cross_attention_hidden_size": 80}})
