"""Golden numbers and rules of reading: contexts, windows, heads, caches, what checkpoints store beside the model."""

from __future__ import annotations

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.context import context_tokens
from pipeline.anatomy.parts.windows import (
    FULL,
    SLIDING,
    last_of_period,
    last_of_period_after_dense,
    layers_without_rope,
    upper_layers,
)

LLAMA_8B = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def test_llama_3_1_8b():
    anatomy = read_config(LLAMA_8B)
    assert anatomy.parameter_count == anatomy.active_parameter_count == 8_030_261_248
    (layer,) = anatomy.attention
    assert (layer.kind, layer.layer_count, layer.elements_per_token) == ("full", 32, 2 * 8 * 128)
    (block,) = anatomy.feed_forward
    assert (block.kind, block.layer_count, block.width, block.is_gated) == ("dense", 32, 14336, True)
    assert not anatomy.is_head_tied
    assert anatomy.max_context_tokens is None


def test_a_tied_head_counts_once_and_may_be_stored_again():
    tied = read_config(LLAMA_8B | {"tie_word_embeddings": True})
    assert read_config(LLAMA_8B).parameter_count - tied.parameter_count == 128256 * 4096
    assert tied.is_head_tied
    assert tied.stored_extra["tied head stored again"] == 128256 * 4096


@pytest.mark.parametrize(
    ("architecture", "elements"),
    [
        ("LlamaModel", 0),
        ("LlamaForCausalLM", 128256 * 4096),
        ("LlamaForSequenceClassification", 2 * 4096),
        ("LlamaForTokenClassification", 2 * 4096 + 2),
        ("LlamaForQuestionAnswering", 2 * 4096 + 2),
    ],
)
def test_what_is_on_top(architecture, elements):
    bare = read_config(LLAMA_8B | {"architectures": ["LlamaModel"]}).parameter_count
    assert read_config(LLAMA_8B | {"architectures": [architecture]}).parameter_count - bare == elements


def test_labels_are_counted():
    config = LLAMA_8B | {
        "architectures": ["LlamaForSequenceClassification"],
        "id2label": {"0": "x", "1": "y", "2": "z"},
    }
    heads = [tensor for tensor in read_config(config).tensors if tensor.tensor_class == "head"]
    assert [tensor.out_features for tensor in heads] == [3]


@pytest.mark.parametrize(
    ("config", "allowed", "trained"),
    [
        ({}, None, None),
        ({"max_position_embeddings": 4096}, 4096, None),
        ({"n_positions": 1024}, 1024, None),
        # extended already: the config states the original and the longer length (Llama 3.1, Phi-3)
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192},
            },
            131072,
            8192,
        ),
        ({"max_position_embeddings": 131072, "original_max_position_embeddings": 4096}, 131072, 4096),
        # switched on but not multiplied yet (Qwen with YaRN)
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            },
            131072,
            32768,
        ),
        # no original is stated: the length stands
        ({"max_position_embeddings": 16384, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384, None),
        # one group for each kind of layer
        (
            {
                "max_position_embeddings": 32768,
                "rope_parameters": {
                    "sliding_attention": {"rope_type": "default"},
                    "full_attention": {"factor": 8, "original_max_position_embeddings": 32768},
                },
            },
            262144,
            32768,
        ),
    ],
)
def test_contexts(config, allowed, trained):
    assert context_tokens(Fields(config)) == (allowed, trained)


@pytest.mark.parametrize(
    "scaling", ["yarn", [1], {"factor": "four", "original_max_position_embeddings": 10}, {"factor": -1}]
)
def test_broken_rope_is_a_contradiction(scaling):
    with pytest.raises(ContradictoryConfig):
        context_tokens(Fields({"max_position_embeddings": 8, "rope_scaling": scaling}))


def test_qwen_windows_need_their_switch():
    config = {"sliding_window": 100, "max_window_layers": 2}
    assert upper_layers(Fields(config), 4) == [None] * 4
    assert upper_layers(Fields(config | {"use_sliding_window": True}), 4) == [None, None, 100, 100]


def test_smollm3_slides_where_it_has_no_rope_and_only_with_its_switch():
    """As SmolLM3Config makes its layer_types."""
    said = {"model_type": "smollm3", "sliding_window": 64, "no_rope_layers": [1, 0, 1, 1]}
    assert layers_without_rope(Fields(said | {"use_sliding_window": True}), 4) == [None, 64, None, None]
    assert layers_without_rope(Fields(said), 4) == [None] * 4
    every_third = {
        "model_type": "smollm3",
        "sliding_window": 64,
        "no_rope_layer_interval": 3,
        "use_sliding_window": True,
    }
    assert layers_without_rope(Fields(every_third), 6) == [None, None, 64, None, None, 64]
    assert layers_without_rope(Fields({"use_sliding_window": True, "model_type": "smollm3"}), 4) == [None] * 4


def test_patterns_of_windows():
    rule, said = last_of_period(3), {"sliding_window": 64}
    assert rule(Fields(said), 4) == [64, 64, None, 64]
    assert rule(Fields(said | {"sliding_window_pattern": 2}), 4) == [64, None, 64, None]
    assert rule(Fields(said | {"sliding_window_pattern": "LLLG"}), 4) == [64, 64, 64, None]
    assert rule(Fields({"sliding_window": None}), 4) == [None] * 4
    assert rule(Fields(said | {"layer_types": [FULL, SLIDING]}), 2) == [None, 64]


def test_a_config_that_is_silent_takes_its_window_from_its_class_and_no_other_has_one():
    rule = last_of_period(2)
    assert rule(Fields({"model_type": "gemma2"}), 4) == [4096, None, 4096, None]
    assert rule(Fields({"model_type": "gemma2", "sliding_window": None}), 4) == [None] * 4
    assert rule(Fields({}), 4) == [None] * 4


def test_what_a_class_works_out_from_other_fields_is_no_default():
    """Llama's class has 32 heads of 128 and as many key-value heads; a model of 8 heads that says neither has 8 of each."""
    config = {k: v for k, v in LLAMA_8B.items() if k not in ("num_key_value_heads", "head_dim")}
    (layer,) = read_config(config | {"num_attention_heads": 8, "hidden_size": 512}).attention
    assert (layer.kv_head_count, layer.head_dim) == (8, 64)
    (layer,) = read_config(config | {"model_type": "mistral", "num_attention_heads": 16}).attention
    assert layer.kv_head_count == 8  # Mistral's class has eight, whatever the heads


def test_layers_of_an_unknown_kind_are_no_guess():
    with pytest.raises(UnknownAnatomy, match="kind"):
        last_of_period(3)(Fields({"layer_types": ["full_attention", "telepathy"]}), 2)
    with pytest.raises(ContradictoryConfig, match="entries"):
        last_of_period(3)(Fields({"layer_types": ["full_attention"]}), 2)
    with pytest.raises(UnknownAnatomy, match="sliding_window"):
        layers_without_rope(Fields({"model_type": "smollm3", "layer_types": [SLIDING, FULL]}), 2)


def test_a_window_that_a_config_does_not_state():
    """Mistral's class would assume 4096; files that mean it say so, and files of later versions say null."""
    mistral = LLAMA_8B | {"model_type": "mistral"}
    assert read_config(mistral).attention[0].window_tokens is None
    assert read_config(mistral | {"sliding_window": 4096}).attention[0].window_tokens == 4096


def test_heads_that_cannot_be_shared():
    with pytest.raises(ContradictoryConfig, match="share"):
        read_config(LLAMA_8B | {"num_key_value_heads": 5})
    with pytest.raises(ContradictoryConfig, match="divide"):
        read_config(LLAMA_8B | {"num_attention_heads": 24, "num_key_value_heads": 8})


def test_an_encoder_made_of_a_decoder_is_told_by_what_its_class_caches_all_the_same():
    (layer,) = read_config(LLAMA_8B | {"model_type": "qwen2", "is_causal": False}).attention
    assert (layer.mechanism, layer.elements_per_token) == ("bidirectional", 2 * 8 * 128)


def test_falcon_40b_needs_its_eight_heads_only():
    falcon = {
        "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
        "num_kv_heads": 8, "new_decoder_architecture": True, "vocab_size": 65024,
    }  # fmt: skip
    (layer,) = read_config(falcon).attention
    assert layer.elements_per_token == 2 * 8 * 64


def test_experts_that_a_token_passes():
    mixtral = LLAMA_8B | {"model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8}
    anatomy = read_config(mixtral)
    assert anatomy.parameter_count == 46_702_792_704
    assert anatomy.active_parameter_count == 12_879_925_248
    assert not any(t.operator == "linear" and t.tensor_class in ("expert", "router") for t in anatomy.tensors)
    with pytest.raises(ContradictoryConfig, match="experts per token"):
        read_config(mixtral | {"num_experts_per_tok": 9})


def test_deepseek_v3_caches_a_latent_and_stores_a_prediction_layer():
    anatomy = read_config(
        {
            "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
            "num_attention_heads": 128, "vocab_size": 129280, "moe_intermediate_size": 2048,
            "num_nextn_predict_layers": 1,
        }
    )  # fmt: skip
    assert anatomy.parameter_count == 671_026_404_352
    assert [(a.mechanism, a.elements_per_token) for a in anatomy.attention] == [("mla", 576)]
    extra = anatomy.stored_extra
    assert extra["router bias buffers"] == 58 * 256
    assert extra["embedding and head of prediction layers"] == 2 * 129280 * 7168
    assert anatomy.parameter_count + sum(extra.values()) == 684_489_845_504


def test_layers_of_different_widths_are_groups():
    blocks = [
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 2.625}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 5.25}},
        {"attention": {"n_heads_in_group": 4}, "ffn": {"replace_with_linear": True}},
    ]
    config = LLAMA_8B | {"model_type": "nemotron-nas", "num_hidden_layers": 3, "block_configs": blocks}
    anatomy = read_config(config)
    assert [(a.kind, a.layer_count, a.kv_head_count) for a in anatomy.attention] == [("full", 1, 4), ("full-2", 1, 8)]
    assert sorted(f.kind for f in anatomy.feed_forward) == ["dense", "dense-2"]


def test_experts_of_remote_code_are_not_read_as_dense():
    with pytest.raises(UnknownAnatomy, match="experts"):
        read_config(LLAMA_8B | {"model_type": "minicpm", "num_experts": 8})


def test_more_than_any_model():
    with pytest.raises(ContradictoryConfig, match="parameters"):
        read_config(LLAMA_8B | {"hidden_size": 10**8, "num_attention_heads": 10**4, "num_key_value_heads": 10**4})


@pytest.mark.parametrize(
    ("scaling", "allowed", "trained"),
    [
        (None, 32_768, None),
        ({"rope_type": "default", "rope_theta": 1e6}, 32_768, None),
        # YaRN, written into a config whose length is still the trained one (Qwen) and into one that states the result (gpt-oss)
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}, 131_072, 32_768),
        ({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096}, 32_768, 4096),
        # longrope states both lengths, and its factors are lists
        (
            {
                "rope_type": "longrope",
                "short_factor": [1.0],
                "long_factor": [2.0],
                "original_max_position_embeddings": 4096,
            },
            32_768,
            4096,
        ),
        # llama3 always states the result
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 32_768, 8192),
        # linear and dynamic say by how much, and never from where: the length stands as it is
        ({"rope_type": "linear", "factor": 2.0}, 32_768, None),
        ({"type": "dynamic", "factor": 2.0}, 32_768, None),
        # mrope only splits the rotated dims among time, height and width
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, 32_768, None),
        # a group for each kind of layer: that of full attention decides
        (
            {"sliding_attention": {"rope_type": "default"}, "full_attention": {"rope_type": "linear", "factor": 8.0}},
            32_768,
            None,
        ),
    ],
)
def test_every_way_of_scaling_positions(scaling, allowed, trained):
    assert context_tokens(Fields({"max_position_embeddings": 32_768, "rope_scaling": scaling})) == (allowed, trained)
    assert context_tokens(Fields({"max_position_embeddings": 32_768, "rope_parameters": scaling})) == (allowed, trained)


def test_layers_after_dense_ones_begin_a_period_of_their_own():
    config = {
        "model_type": "cohere2_moe",
        "first_k_dense_replace": 3,
        "prefix_dense_sliding_window_pattern": 2,
        "sliding_window": 64,
    }
    assert last_of_period_after_dense(Fields(config), 9) == [64, None, 64, 64, 64, 64, None, 64, 64]
    silent = {
        "model_type": "cohere2_moe",
        "first_k_dense_replace": 1,
    }  # the class's period of the dense ones is 1, its window 4096
    assert last_of_period_after_dense(Fields(silent), 5) == [None, 4096, 4096, 4096, None]
    with pytest.raises(UnknownAnatomy, match="no sliding_window"):
        last_of_period_after_dense(Fields(config | {"sliding_window": None}), 9)
