"""Encoders of text: totals that the Hub publishes for real checkpoints, and what each class adds."""

from __future__ import annotations

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
SMALL = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
BERT = {"model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2}
XLM = {"model_type": "xlm-roberta", "vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        ({**BERT, **BASE, "architectures": ["BertForPreTraining"]}, 110_106_428),  # bert-base-uncased
        ({**BERT, **SMALL, "architectures": ["BertModel"]}, 22_713_216),  # all-MiniLM-L6-v2 without 512 position ids
        ({**XLM, **BASE, "architectures": ["XLMRobertaForMaskedLM"]}, 278_295_186),  # xlm-roberta-base
        (
            {
                "model_type": "modernbert",
                "vocab_size": 50368,
                **BASE,
                "num_hidden_layers": 22,
                "intermediate_size": 1152,
            },
            149_655_232,  # ModernBERT-base
        ),
    ],
)
def test_published_totals(config, total):
    assert read_config(config).parameter_count == total


def test_a_config_without_a_class_explains_what_others_add():
    anatomy = read_config({**BERT, **SMALL})
    assert anatomy.architecture == "BertModel"
    assert anatomy.stored_extra["position ids"] == 512
    assert anatomy.stored_extra["masked-language-model head"] == 384 * 385 + 2 * 384 + 30522


def test_an_encoder_caches_nothing():
    (layer,) = read_config({**BERT, **BASE}).attention
    assert (layer.mechanism, layer.layer_count, layer.elements_per_token) == ("bidirectional", 12, 0)


def test_a_bert_that_decodes_caches_its_tokens_and_the_encoders():
    anatomy = read_config({**BERT, **BASE, "is_decoder": True, "add_cross_attention": True})
    assert {a.mechanism: a.elements_per_token for a in anatomy.attention} == {"full": 1536, "cross": 1536}


def test_roberta_never_uses_the_rows_up_to_its_padding_index():
    assert read_config({**XLM, **BASE}).max_context_tokens == 512


def test_what_is_missing_or_impossible_is_said():
    with pytest.raises(UnknownAnatomy, match="config has no hidden_size"):
        read_config({"model_type": "bert", "num_hidden_layers": 12})
    with pytest.raises(ContradictoryConfig, match="does not divide"):
        read_config({**BERT, **BASE, "num_attention_heads": 7})


NOMIC_MOE = {
    "model_type": "nomic_bert", "architectures": ["NomicBertModel"], "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": 3072,
    "vocab_size": 250048, "type_vocab_size": 1, "num_experts": 8, "moe_top_k": 2, "moe_every_n_layers": 2, "activation_function": "gelu",
    "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True, "prenorm": False,
}  # fmt: skip


def test_nomic_with_experts_has_its_published_total():
    """475,292,928, of which its card says that 305 million are active."""
    anatomy = read_config(NOMIC_MOE)
    assert (anatomy.parameter_count, anatomy.active_parameter_count) == (475_292_928, 305_423_616)


@pytest.mark.parametrize(
    "other", [{"qkv_proj_bias": False}, {"prenorm": True}, {"activation_function": "swiglu"}, {"moe_every_n_layers": 0}]
)
def test_nomic_with_experts_otherwise_is_not_described(other):
    with pytest.raises(UnknownAnatomy):
        read_config(NOMIC_MOE | other)


@pytest.mark.parametrize("broken", [{"moe_every_n_layers": 1}, {"num_experts": "many"}, {"moe_top_k": 0}])
def test_nomic_with_broken_experts_is_set_aside(broken):
    with pytest.raises(ContradictoryConfig):
        read_config(NOMIC_MOE | broken)
