"""Published totals follow from shapes: one small decoder, stored in every way that checkpoints are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.anatomy.rows import Anatomy, AttentionLayer, Tensor
from pipeline.confirm.formats import bytes_by_counts, declared_format, format_by_counts, plain_format
from pipeline.confirm.stored import explain_total, matrices

LAYERS, HIDDEN, FFN, VOCAB = 4, 512, 1280, 32000


def decoder(experts=0, extra=None, is_head_tied=False):
    def linear(tensor_class, role, out, into, operator="linear", count=1):
        return Tensor("text", tensor_class, role, operator, LAYERS, count, out, into)

    feed_forward = (
        (
            linear("expert", "expert_gate_up", 2 * FFN, HIDDEN, "expert", experts),
            linear("expert", "expert_down", HIDDEN, FFN, "expert", experts),
        )
        if experts
        else (
            linear("feed-forward", "ffn_gate", FFN, HIDDEN),
            linear("feed-forward", "ffn_up", FFN, HIDDEN),
            linear("feed-forward", "ffn_down", HIDDEN, FFN),
        )
    )
    tensors = (
        Tensor("text", "embedding", "embedding", "embedding", 1, 1, VOCAB, HIDDEN),
        linear("attention", "attention_q", HIDDEN, HIDDEN),
        linear("attention", "attention_k", 128, HIDDEN),
        linear("attention", "attention_v", 128, HIDDEN),
        linear("attention", "attention_o", HIDDEN, HIDDEN),
        *feed_forward,
        Tensor("text", "norm", "norm", "vector", LAYERS, 2, HIDDEN),
        *(() if is_head_tied else (Tensor("text", "head", "head", "linear", 1, 1, VOCAB, HIDDEN),)),
    )
    layer = AttentionLayer("full", "full", LAYERS, head_count=4, kv_head_count=1, head_dim=128, elements_per_token=256)
    return Anatomy(
        "llama", None, HIDDEN, LAYERS, VOCAB, is_head_tied, "rms", tensors, (layer,), stored_extra=extra or {}
    )


# [out, in] of the quantised matrices of one layer
LINEARS = [
    (HIDDEN, HIDDEN),
    (128, HIDDEN),
    (128, HIDDEN),
    (HIDDEN, HIDDEN),
    (FFN, HIDDEN),
    (FFN, HIDDEN),
    (HIDDEN, FFN),
]
WEIGHTS = LAYERS * sum(out * into for out, into in LINEARS)
MATRICES = LAYERS * len(LINEARS)
ROWS = LAYERS * sum(out for out, _ in LINEARS)


def test_the_matrices_are_those_that_a_checkpoint_holds():
    found = [m for rows in matrices(decoder()).values() for m in rows]
    assert sum(m.count * m.out * m.into for m in found) == WEIGHTS + VOCAB * HIDDEN
    experts = matrices(decoder(experts=8))["expert"]
    assert (experts[0].count, experts[0].out, experts[0].into) == (LAYERS * 8 * 2, FFN, HIDDEN)  # gate and up apart


def test_a_total_that_is_the_count_needs_no_words():
    explanation = explain_total(decoder(), decoder().parameter_count)
    assert explanation.parts == () and explanation.storage is None


def test_extras_add_up_in_any_combination():
    anatomy = decoder(extra={"position ids": 512, "tied head stored again": 16_384_000, "pooler": 77})
    explanation = explain_total(anatomy, anatomy.parameter_count + 512 + 77)
    assert dict(explanation.parts) == {"position ids": 512, "pooler": 77}


@pytest.mark.parametrize(
    ("words", "extra", "dtype_id"),
    [
        ("128 × 128", LAYERS * (16 + 4 + 4 + 16 + 40 + 40 + 40), "fp8"),
        ("a weight and an input scale per matrix", 2 * MATRICES, "fp8"),
        ("pairs", -WEIGHTS // 2, "nvfp4"),
        ("pairs, a scale per 16", -WEIGHTS // 2 + WEIGHTS // 16, "nvfp4"),
        ("pairs, a scale per 16 and two per matrix", -WEIGHTS // 2 + WEIGHTS // 16 + 2 * MATRICES, "nvfp4"),
        ("a scale per 128 and the shape", WEIGHTS // 128 + 2 * MATRICES, "gptq-int4"),
        ("32-bit words, a scale per 128 and the shape", -WEIGHTS * 7 // 8 + WEIGHTS // 128 + 2 * MATRICES, "gptq-int4"),
        (
            "32-bit words, a scale and a zero point per 128",
            WEIGHTS // 128 // 8 - WEIGHTS * 7 // 8 + WEIGHTS // 128,
            "awq-int4",
        ),
    ],
)
def test_packed_totals_are_reproduced_to_the_element(words, extra, dtype_id):
    explanation = explain_total(decoder(), decoder().parameter_count + extra)
    assert words in explanation.parts[-1][0]
    assert explanation.parts[-1][1] == extra
    assert explanation.storage.dtype_id == dtype_id
    assert explanation.groups == {"attention", "feed-forward"} and explanation.is_whole
    assert explain_total(decoder(), decoder().parameter_count + extra + 1) is None


def test_nf4_is_told_up_to_the_text_beside_each_matrix():
    blocks = WEIGHTS // 64
    nested = LAYERS * sum(-(-out * into // 64 // 256) for out, into in LINEARS)
    total = decoder().parameter_count + 2 * blocks + nested + MATRICES * (272 + 2 * 172)
    explanation = explain_total(decoder(), total)
    assert explanation.storage.dtype_id == "nf4"
    # half a byte per weight, a byte per 64, 16 bits for embedding, head and norms
    rest = decoder().parameter_count - WEIGHTS
    assert explanation.stored_bytes == pytest.approx(WEIGHTS / 2 + blocks + 2 * rest, rel=0.001)


@pytest.mark.parametrize(("text_bytes", "is_told"), [(149, False), (150, True), (190, True), (191, False)])
def test_a_text_beside_each_matrix_of_nf4_has_150_to_190_bytes(text_bytes, is_told):
    nested = LAYERS * sum(-(-out * into // 64 // 256) for out, into in LINEARS)
    total = decoder().parameter_count + 2 * WEIGHTS // 64 + nested + MATRICES * (272 + 2 * text_bytes)
    assert (explain_total(decoder(), total) is not None) is is_told


def test_scales_per_row_may_be_of_two_formats_and_the_config_decides():
    total = decoder().parameter_count + ROWS
    assert explain_total(decoder(), total).is_ambiguous
    assert not explain_total(decoder(), total, "gptq-int4").is_ambiguous
    assert explain_total(decoder(), total, "gptq-int4").storage.has_own_bias


def test_experts_alone_may_be_quantised():
    anatomy = decoder(experts=8)
    packed = LAYERS * 8 * 3 * FFN * HIDDEN
    explanation = explain_total(anatomy, anatomy.parameter_count - packed // 2)
    assert explanation.groups == {"expert"}
    assert not explanation.is_whole and explanation.stored_bytes is None  # the rest may be of any format


def test_a_prediction_layer_is_quantised_like_the_others():
    layer = sum(out * into for out, into in LINEARS)
    anatomy = decoder(extra={"multi-token prediction layers": layer + 999})
    scales = (LAYERS + 1) * (16 + 4 + 4 + 16 + 40 + 40 + 40)
    explanation = explain_total(anatomy, anatomy.parameter_count + layer + 999 + scales)
    assert [size for _, size in explanation.parts] == [layer + 999, scales]


def test_only_repacks_are_searched_for_quantised_matrices():
    total = decoder().parameter_count - WEIGHTS // 2
    assert explain_total(decoder(), total, is_repack=False) is None


@given(st.integers(1, 10**13))
def test_any_total_ends_in_an_answer(total):
    explanation = explain_total(decoder(), total)
    if explanation:
        assert decoder().parameter_count + sum(size for _, size in explanation.parts) == total


BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128]}
W4A16 = {"num_bits": 4, "type": "int", "group_size": 128}
NVFP4 = {"num_bits": 4, "type": "float", "group_size": 16}


@pytest.mark.parametrize(
    ("quantization", "dtype_id"),
    [
        (BLOCKS, "fp8"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}, "mxfp4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, None),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128}, "awq-int4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}, None),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": W4A16}}}, "gptq-int4"),
        ({"quant_method": "modelopt", "config_groups": {"group_0": {"weights": NVFP4}}}, "nvfp4"),
        ({"config_groups": {"a": {"weights": NVFP4}, "b": {"weights": W4A16}}}, None),
        ({**BLOCKS, "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"]}, None),
        ({**BLOCKS, "modules_to_not_convert": ["visual.blocks.0.attn.qkv", "lm_head"]}, "fp8"),
        ({"quant_method": "quark"}, None),
        ({"quant_method": 5, "bits": "four"}, None),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": 3}}, None),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": [4]}}}}, None),
        ({"quant_method": "fp8", "modules_to_not_convert": [None, 7]}, "fp8"),
    ],
)
def test_the_declared_format_is_read_in_every_dialect(quantization, dtype_id):
    assert declared_format({"quantization_config": quantization}) == dtype_id
    assert declared_format({"text_config": {"quantization_config": quantization}}) == dtype_id


def test_experts_of_another_format_are_no_single_format():
    assert declared_format({"quantization_config": BLOCKS, "expert_dtype": "fp4"}) is None


def test_the_plain_dtype_is_read_from_config_or_counts():
    assert plain_format({"torch_dtype": "bfloat16"}) == "bf16"
    assert plain_format({"text_config": {"dtype": "torch.float16"}}) == "fp16"
    assert plain_format({"dtype": 3}) is None
    assert format_by_counts({"F32": 100, "I64": 2}) == "fp32"
    assert format_by_counts({"BF16": 50, "U8": 50}) is None
    assert bytes_by_counts({"F32": 100, "I64": 2}, 102) == 416
    assert bytes_by_counts({"U8": 10}, 20) is None
    assert declared_format({}, "AWQ-4bit") == "awq-int4"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(["quant_method", "config_groups", "weights", "bits", "ignore", "type", "num_bits"]), x
            )
        ),
        max_leaves=12,
    )
)
def test_no_quantization_config_is_too_odd_to_read(value):
    for config in ({"quantization_config": value}, {"text_config": value}, {"dtype": value}):
        declared_format(config)
        plain_format(config)


def test_a_checkpoint_of_single_dtypes_weighs_what_each_of_them_takes():
    """By the widths of safetensors; a dtype of no whole bytes leaves the size open."""
    widths = {
        "F32": 4,
        "BF16": 2,
        "F16": 2,
        "F8_E4M3": 1,
        "F8_E5M2": 1,
        "I64": 8,
        "I32": 4,
        "I16": 2,
        "I8": 1,
        "BOOL": 1,
    }
    for name, width in widths.items():
        assert bytes_by_counts({name: 1000}, 1000) == 1000 * width, name
    assert bytes_by_counts({"BF16": 1000, "F32": 10}, 1010) == 2040
    assert bytes_by_counts({"BF16": 1000, "F4": 10}, 1010) is None
    assert bytes_by_counts({"BF16": 1000}, 1010) is None


ATTENTION = LAYERS * sum(out * into for out, into in LINEARS[:4])
FEED_FORWARD = WEIGHTS - ATTENTION


def test_what_lies_beside_a_feed_forward_in_4_bit_floats_is_in_8_bits_or_in_16():
    """No recipe has integers of 4 bits there."""
    floats = FEED_FORWARD // 16 - FEED_FORWARD // 2
    total = decoder().parameter_count + floats
    found = explain_total(decoder(), total + LAYERS * (16 + 4 + 4 + 16))
    assert found.storage.dtype_id == "nvfp4" and found.groups == {"feed-forward"} and found.eights == {"attention"}
    assert explain_total(decoder(), total).groups == {"feed-forward"}
    assert explain_total(decoder(), total + ATTENTION // 128 - ATTENTION * 7 // 8) is None


def test_layers_of_a_feed_forward_that_are_in_8_bits_show_where_scales_of_rows_do():
    """As Unsloth packs them: of the last layers of Qwen3.6-27B the feed-forward is in 8 bits, as attention is."""
    layer, rows = FEED_FORWARD // LAYERS, 2 * HIDDEN + 2 * 128
    scales = LAYERS * rows + (2 * FFN + HIDDEN)  # of attention, and of one layer's feed-forward
    floats = 3 * (layer // 16 - layer // 2) + 3 * 3 * 2  # of the other three, with two numbers for each matrix
    found = explain_total(decoder(), decoder().parameter_count + scales + floats)
    assert found.storage.dtype_id == "nvfp4" and found.storage.spared_layers == 1
    assert found.groups == {"feed-forward"} and found.eights == {"attention"}


def test_gate_and_up_of_an_expert_have_scales_of_their_own_or_common_ones():
    """Mistral Small 4 holds them as one matrix."""
    anatomy = decoder(experts=8)
    for matrices_of_one, is_fused in ((3, False), (2, True)):
        found = explain_total(anatomy, anatomy.parameter_count + 2 * LAYERS * (4 + 8 * matrices_of_one))
        assert found.storage.dtype_id == "fp8" and found.storage.is_fused == is_fused
