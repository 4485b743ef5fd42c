"""Encoder-decoders of text and speech: published totals, and the two caches of a decoder."""

from __future__ import annotations

import pytest

from pipeline.anatomy import read_config

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
