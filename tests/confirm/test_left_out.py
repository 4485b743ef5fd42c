"""What each quantiser's config takes and leaves out, on one small Llama of six layers and on a mixture of experts."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.anatomy import read_config
from pipeline.confirm.left_out import Undecided, recipe
from pipeline.confirm.stored import Explanation, explain_total
from pipeline.confirm.stored_parts import parts
from tests.anatomy import small_model

LAYERS = 6
LLAMA = {**small_model.LLAMA, "num_hidden_layers": LAYERS}
EXPERTS = {
    "model_type": "qwen3_moe",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "moe_intermediate_size": 256,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "vocab_size": 32000,
}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
INT4 = {"quant_method": "gptq", "bits": 4, "group_size": 128}
WEIGHTS8 = {"num_bits": 8, "type": "float"}
WEIGHTS4 = {"num_bits": 4, "type": "float", "group_size": 16}


def grouped(targets=("Linear",), weights=WEIGHTS8, **more):
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": list(targets), "weights": weights}},
        **more,
    }


def held(quantization, config=LLAMA, explanation=None):
    """Layers that are held in a format, by class or role of the matrix."""
    config = {**config, "quantization_config": quantization}
    found = parts(read_config(config), config, explanation)
    counts: dict[str, Counter] = {}
    for part in found or ():
        for name in (part.tensor.tensor_class, part.tensor.role):
            counts.setdefault(name, Counter())[part.dtype_id] = max(
                counts.get(name, Counter())[part.dtype_id], part.layer_count
            )
    return {name: dict(count) for name, count in counts.items()}


def test_without_a_list_every_matrix_of_the_layers_is_quantised_and_the_ends_are_not():
    found = held(FP8)
    assert found["attention"] == found["feed-forward"] == {"fp8": LAYERS}
    assert found["head"] == found["embedding"] == {"bf16": 1} and found["norm"] == {"bf16": LAYERS} | found["norm"]


ATTENTION = [f"model.layers.{i}.self_attn.{p}_proj" for i in range(LAYERS) for p in "qkvo"]
FIRST = [f"model.layers.0.mlp.{p}_proj" for p in ("gate", "up", "down")]


@pytest.mark.parametrize(
    "quantization",
    [
        {**FP8, "modules_to_not_convert": ATTENTION},
        {**FP8, "ignored_layers": ATTENTION},
        {**FP8, "modules_to_not_convert": ["self_attn.q_proj", "k_proj", "v_proj", "o_proj"]},
        {**FP8, "modules_to_not_convert": ["model.layers.*.self_attn"]},
        {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ATTENTION},
        grouped(ignore=ATTENTION),
        grouped(ignore=["lm_head", "re:.*self_attn.*"]),
        grouped(ignore=[r"re:model\.layers\.\d+\.self_attn\.(q|k|v|o)_proj$"]),
        grouped(targets=[r"re:.*mlp\.(gate|up|down)_proj$"]),
        grouped(targets=[f"model.layers.{i}.mlp.{p}_proj" for i in range(LAYERS) for p in ("gate", "up", "down")]),
        {"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["*self_attn*", "lm_head"]},
        {
            "quant_method": "modelopt",
            "quant_algo": "FP8",
            "ignore": [f"model.layers.{i}.self_attn*" for i in range(LAYERS)],
        },
        {"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "exclude_modules": ["self_attn"]}},
        {
            "quant_method": "modelopt",
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {f"model.layers.*.mlp.{p}_proj": {"quant_algo": "FP8"} for p in ("gate", "up", "down")},
        },
        {
            "quant_method": "quark",
            "exclude": ["lm_head", "*self_attn*"],
            "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}},
        },
        {
            "quant_method": "quark",
            "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
            "layer_quant_config": {"*self_attn*": {"weight": None}},
        },
        {
            "quant_method": "auto-round",
            "data_type": "fp8",
            "bits": 8,
            "extra_config": {name: {"bits": 16} for name in ATTENTION},
        },
        {"quant_method": "auto-round", "data_type": "fp8", "bits": 8, "extra_config": {r".*self_attn.*": {"bits": 16}}},
    ],
)
def test_attention_that_is_left_out_stays_in_16_bits(quantization):
    found = held(quantization)
    assert found["attention"] == {"bf16": LAYERS}
    assert found["feed-forward"] == {"fp8": LAYERS}


@pytest.mark.parametrize(
    ("quantization", "taken"),
    [
        ({**INT4, "modules_in_block_to_quantize": [["self_attn.q_proj", "self_attn.o_proj"], ["mlp.up_proj"]]},
         {"attention_q", "attention_o", "ffn_up"}),
        ({**INT4, "dynamic": {r"-:.*mlp\.down_proj.*": {}, r"-:.*self_attn.*": {}}}, {"ffn_gate", "ffn_up"}),
        ({"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["self_attn", "down_proj"]}, {"ffn_gate", "ffn_up"}),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": ["self_attn", "mlp.down_proj"]},
         {"ffn_gate", "ffn_up"}),
    ],
)  # fmt: skip
def test_integers_are_held_where_their_quantiser_takes_them(quantization, taken):
    found = held(quantization)
    roles = [role for role in found if role.startswith(("attention_", "ffn_"))]
    assert {role for role in roles if "bf16" not in found[role]} == taken


def test_single_layers_are_counted_one_by_one():
    assert held({**FP8, "modules_to_not_convert": FIRST})["feed-forward"] == {"fp8": LAYERS - 1, "bf16": 1}
    tens = {**LLAMA, "num_hidden_layers": 12}
    first = held({**FP8, "modules_to_not_convert": ["model.layers.1"]}, tens)
    assert first["attention"] == {"fp8": 11, "bf16": 1}, "layers 10 and 11 begin with the same letters"
    assert held(grouped(ignore=["re:model.layers.[02].*"]))["attention"] == {"fp8": LAYERS - 2, "bf16": 2}


def test_groups_of_two_formats_are_held_each_in_its_own():
    recipe_of_two = grouped(targets=["re:.*mlp.*"], weights=WEIGHTS4)
    recipe_of_two["config_groups"]["group_1"] = {"targets": ["re:.*self_attn.*"], "weights": WEIGHTS8}
    found = held(recipe_of_two)
    assert (found["feed-forward"], found["attention"]) == ({"nvfp4": LAYERS}, {"fp8": LAYERS})
    changed = held({**INT4, "dynamic": {r"+:.*self_attn.*": {"bits": 8}}})
    assert (changed["feed-forward"], changed["attention"]) == ({"gptq-int4": LAYERS}, {"gptq-int8": LAYERS})


def test_a_head_is_quantised_where_it_is_named():
    assert held({**INT4, "lm_head": True})["head"] == {"gptq-int4": 1}
    assert held(grouped(targets=["Linear", "lm_head"]))["head"] == {"fp8": 1}
    assert held(grouped())["head"] == {"bf16": 1}


def test_experts_go_by_their_own_names_and_routers_stay():
    found = held({**FP8, "modules_to_not_convert": ["lm_head", "mlp.gate"]}, EXPERTS)
    assert (found["expert"], found["router"], found["attention"]) == (
        {"fp8": LAYERS},
        {"bf16": LAYERS},
        {"fp8": LAYERS},
    )
    alone = held(grouped(ignore=["re:.*self_attn.*", "re:.*mlp.gate$", "lm_head"], weights=WEIGHTS4), EXPERTS)
    assert (alone["expert"], alone["attention"]) == ({"nvfp4": LAYERS}, {"bf16": LAYERS})
    kept = held(grouped(ignore=["re:.*mlp.experts.*"]), EXPERTS)
    assert (kept["expert"], kept["attention"]) == ({"bf16": LAYERS}, {"fp8": LAYERS})


@pytest.mark.parametrize("layer", [0, 2, 3, LAYERS - 1])
def test_a_list_may_name_any_one_layer(layer):
    found = held({**FP8, "modules_to_not_convert": [f"model.layers.{layer}.self_attn.o_proj"]})
    assert found["attention_o"] == {"bf16": 1, "fp8": LAYERS - 1}


def test_the_total_says_which_of_those_that_a_config_allows_are_quantised():
    """Lists are shortened when they are copied: this one names the attention of one layer, the total shows none at all."""
    anatomy = read_config(LLAMA)
    scales = (LAYERS - 2) * (2 * 1280 + 512)
    listed = {"quant_method": "fbgemm_fp8", "modules_to_not_convert": [*FIRST, *FIRST_AND_LAST, *ATTENTION[:4]]}
    explanation = explain_total(anatomy, anatomy.parameter_count + scales, None)
    assert explanation.storage.spared_layers == 2
    found = held(listed, explanation=explanation)
    assert (found["attention"], found["feed-forward"]) == ({"bf16": LAYERS}, {"fp8": LAYERS - 2, "bf16": 2})
    alone = parts(anatomy, LLAMA, explanation)
    assert sum(p.element_count for p in alone if p.dtype_id == "fp8") == (LAYERS - 2) * 3 * 1280 * 512


FIRST_AND_LAST = [f"model.layers.{i}.mlp.{p}_proj" for i in (0, LAYERS - 1) for p in ("gate", "up", "down")]


@pytest.mark.parametrize(
    ("quantization", "words"),
    [
        (grouped(ignore=["re:.*wonderful.*"]), "names modules that are not described: re:.*wonderful.*"),
        ({**FP8, "modules_to_not_convert": ["model.layers.0.odd_one"]}, "odd_one"),
        (grouped(targets=["OddLinear"]), "modules of the class OddLinear"),
        (grouped(weights={"num_bits": 4, "type": "int", "group_size": 16}), "a form that is not described"),
        ({"quant_method": "hqq"}, "the quantiser 'hqq' packs weights"),
        (grouped(ignore=["re:("]), "which is no pattern"),
        (grouped(ignore=["re:(.+)+x"]), "which is not searched for"),
        (grouped(ignore=["re:.*.*.*.*x"]), "which is not searched for"),
        (grouped(ignore=["re:(.|m*)*x"]), "which is not searched for"),
        ({**INT4, "dynamic": {"+:" + "x" * 99: {"bits": 3}}}, f"the rule '+:{'x' * 58}' packs weights"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"x": {"quant_algo": "MXFP8"}}},
         "MXFP8"),
    ],
)  # fmt: skip
def test_what_is_not_understood_leaves_the_whole_undecided(quantization, words):
    with pytest.raises(Undecided, match=re.escape(words)):
        held(quantization)


def test_a_config_without_a_quantiser_and_a_total_that_shows_none_have_no_parts():
    assert recipe(LLAMA) is None
    assert parts(read_config(LLAMA), LLAMA, Explanation(())) is None


NOISE = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**40) | st.text(max_size=8) | st.sampled_from(["re:(", "re:.*", "*", "[", "Linear", "-:.*", "lm_head"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
KEYS = [
    "quant_method", "ignore", "config_groups", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "exclude_modules", "exclude",
    "dynamic", "modules_in_block_to_quantize", "quantized_layers", "layer_quant_config", "global_quant_config", "extra_config", "bits",
    "quant_algo", "quantization", "group_size", "producer",
]  # fmt: skip
METHODS = [
    "fp8",
    "gptq",
    "awq",
    "compressed-tensors",
    "modelopt",
    "quark",
    "auto-round",
    "bitsandbytes",
    "mxfp4",
    "",
    None,
]


@pytest.mark.full
@settings(max_examples=300, deadline=None)
@given(
    noise=st.dictionaries(st.sampled_from(KEYS), NOISE, max_size=5),
    method=st.sampled_from(METHODS),
)
def test_whatever_a_config_says_ends_as_parts_of_the_whole_or_as_undecided(noise, method):
    config = {**LLAMA, "quantization_config": {"quant_method": method, "bits": 4, **noise}}
    anatomy = read_config(LLAMA)
    try:
        found = parts(anatomy, config, None)
    except Undecided as reason:
        assert str(reason)
    else:
        assert found is None or sum(p.element_count for p in found) == anatomy.parameter_count


def test_a_rule_of_auto_round_leaves_out_what_has_16_bits_and_nothing_of_fewer():
    whole = {"quant_method": "auto-round", "bits": 4, "group_size": 128}
    assert held(whole)["attention"] == {"gptq-int4": LAYERS}
    packed = held({**whole, "packing_format": "auto_round:auto_awq"})
    assert packed["attention"] == {"awq-int4": LAYERS}
    mixed = held({**whole, "extra_config": {r".*self_attn.*": {"bits": 8}, r".*down_proj.*": {"bits": 16}}})
    assert mixed["attention"] == {"gptq-int8": LAYERS}
    assert (mixed["ffn_down"], mixed["ffn_up"]) == ({"bf16": LAYERS}, {"gptq-int4": LAYERS})
    with pytest.raises(Undecided):
        held({**whole, "bits": 5})
