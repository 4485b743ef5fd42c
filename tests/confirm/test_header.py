"""The census from tensor headers is the census from the config, class by class, as Transformers writes and quantisers pack them."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.anatomy import read_config
from pipeline.anatomy.rows import OPERATORS, TENSOR_CLASSES
from pipeline.confirm.header import PREDICTING, ROUTER_BIASES, read_header
from pipeline.confirm.packed import NotDescribed
from pipeline.hub.gguf_types import BLOCKS
from pipeline.hub.summary import problem_of, summarise
from tests.confirm.headers import FORMATS, as_gguf, of_layers, packed_by_libraries, repacked, written

PACKED = ("LlamaForCausalLM", "MixtralForCausalLM", "Qwen3ForCausalLM", "DeepseekV3ForCausalLM")


def by_class(config: dict) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for tensor in read_config(config).tensors:
        counts[tensor.tensor_class] += tensor.element_count
    return dict(counts)


@pytest.mark.parametrize("architecture", written())
def test_headers_as_the_library_writes_them_hold_what_the_config_describes(architecture):
    row = written()[architecture]
    census = read_header(row["header"])
    assert census.by_class() == by_class(row["config"])
    assert census.parameter_count == row["parameter_count"]
    assert sum(t.element_count for t in census.tensors()) == census.parameter_count
    assert all(t.tensor_class in TENSOR_CLASSES and t.operator in OPERATORS for t in census.tensors())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("architecture", PACKED)
def test_packed_formats_stand_for_the_same_elements_and_their_bytes_are_counted(architecture, name):
    row, (pack, size) = written()[architecture], FORMATS[name]
    header = repacked(row["header"], pack, is_taken(name))
    census = read_header(header)
    assert census.by_class() == by_class(row["config"])
    taken = [r for r in row["header"]["tensors"] if len(r[2]) == 2 and is_taken(name)(r[0])]
    plain = sum(2 * math.prod(r[2]) * r[3] for r in row["header"]["tensors"] if r not in taken)
    assert census.stored_bytes == plain + sum(size(*r[2]) * r[3] for r in taken)
    assert {name.split()[0]} <= {h.storage for h in census.held}
    # scales are rows of the files and none of the model
    assert sum(t.element_count for t in census.tensors()) == census.parameter_count == row["parameter_count"]


@pytest.mark.parametrize("row", packed_by_libraries(), ids=lambda row: f"{row['library']} {row['format']}")
def test_what_the_libraries_pack_is_one_matrix_again(row):
    tensors = [*row["tensors"], ["model.norm.weight", "BF16", [256]]]
    bits = int(row["format"][3]) if row["format"].startswith("int") else None  # as its config says
    census = read_header(summarise("safetensors", "f", 1, tensors), (bits, None))
    assert census.by_class() == {"feed-forward": 512 * 256, "norm": 256}
    assert {h.storage for h in census.held} == {"BF16", row["format"].split()[0]}
    widths = {"U8": 1, "I8": 1, "F8_E4M3": 1, "BF16": 2, "I32": 4, "F32": 4, "I64": 8}
    assert census.stored_bytes == sum(widths[dtype] * math.prod(shape) for _, dtype, shape in tensors)


def is_taken(name: str):
    # MLX packs embedding and head too
    return lambda p: of_layers(p) or (name.startswith("mlx") and p.endswith(("embed_tokens.weight", "lm_head.weight")))


@given(st.sampled_from([2, 4, 8]), st.sampled_from([32, 64, 128]), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_gptq_and_awq_are_told_apart_by_their_shapes(bits, group, outs, intos, is_awq):
    out, into = 32 * outs, 128 * intos
    shape = [into, out * bits // 32] if is_awq else [into * bits // 32, out]
    tensors = [
        ("model.layers.0.mlp.up_proj.qweight", "I32", shape),
        ("model.layers.0.mlp.up_proj.qzeros", "I32", [into // group, out * bits // 32]),
        ("model.layers.0.mlp.up_proj.scales", "F16", [into // group, out]),
    ]
    (held,) = [h for h in read_header(summarise("safetensors", "f", 1, tensors)).held if h.shape]
    assert (held.shape, held.storage) == ((out, into), f"{'awq' if is_awq else 'gptq'}-int{bits}")


def test_a_scale_beside_plain_weights_is_a_parameter_and_beside_packed_ones_it_is_not():
    tensors = [("a.norm.weight", "BF16", [8]), ("a.norm.scale", "BF16", [8])]
    assert read_header(summarise("safetensors", "f", 1, tensors)).parameter_count == 16
    tensors = [("a.up_proj.weight", "F8_E4M3", [128, 256]), ("a.up_proj.scale", "F8_E8M0", [1, 2])]
    assert read_header(summarise("safetensors", "f", 1, tensors)).parameter_count == 128 * 256


def test_experts_that_mlx_fuses_and_packs_are_matrices_of_each_expert():
    name = "model.layers.0.mlp.switch_mlp.gate_proj"
    tensors = [
        (f"{name}.weight", "U32", [4, 96, 8]),
        (f"{name}.scales", "BF16", [4, 96, 1]),
        (f"{name}.biases", "BF16", [4, 96, 1]),
    ]
    (experts,) = read_header(summarise("safetensors", "f", 1, [*tensors, ("norm.weight", "BF16", [64])])).tensors()[:1]
    assert (experts.tensor_class, experts.per_layer_count, experts.out_features, experts.in_features) == (
        "expert",
        4,
        96,
        64,
    )


def test_experts_that_all_layers_have_alike_are_so_many_a_layer_and_others_a_layer_each():
    names = [f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight" for layer in (0, 1) for expert in range(4)]
    for held, layers, each in ((names, 2, 4), (names[:-1], 7, 1)):
        (experts,) = read_header(summarise("safetensors", "f", 1, [(name, "BF16", [8, 4]) for name in held])).tensors()
        assert (experts.layer_count, experts.per_layer_count) == (layers, each)


def test_fused_experts_in_mxfp4_are_matrices_of_each_expert():
    tensors = [
        ("model.layers.0.mlp.experts.gate_up_proj_blocks", "U8", [4, 192, 2, 16]),
        ("model.layers.0.mlp.experts.gate_up_proj_scales", "U8", [4, 192, 2]),
        ("model.layers.0.mlp.experts.gate_up_proj_bias", "BF16", [4, 192]),
    ]
    census = read_header(summarise("safetensors", "f", 1, tensors))
    assert census.by_class() == {"expert": 4 * 192 * 64, "norm": 4 * 192}
    (experts,) = [t for t in census.tensors() if t.tensor_class == "expert"]
    assert (experts.per_layer_count, experts.out_features, experts.in_features) == (4, 192, 64)


@pytest.mark.parametrize("kind", sorted(BLOCKS.keys() - {"I8", "I16", "I32", "I64"}))
def test_every_gguf_type_has_its_elements_and_bytes(kind):
    elements, size = BLOCKS[kind]
    census = read_header(summarise("gguf", "f", 1, [("blk.0.ffn_up.weight", kind, [96, 4 * elements])]))
    assert census.stored_bytes == 96 * 4 * size
    assert census.by_class() == {"feed-forward": 96 * 4 * elements}


def test_gguf_names_are_the_same_classes_with_experts_fused():
    row = written()["MixtralForCausalLM"]
    census = read_header(as_gguf(row))
    assert census.by_class() == by_class(row["config"])
    assert census.beside() == {"rotary tables": 8}


def test_prediction_layers_and_router_biases_are_set_apart_and_the_rest_is_as_without_them():
    row = written()["DeepseekV3ForCausalLM"]
    rows = []
    for pattern, dtype, shape, count, layers in row["header"]["tensors"]:
        if layers.endswith("2"):  # as a fourth layer: the last one once more
            each = count // (int(layers[-1]) - int(layers[0]) + 1)
            rows.append([pattern, dtype, shape, count + each, layers[:-1] + "3"])
        else:
            rows.append([pattern, dtype, shape, count, layers])
    rows.append(["model.layers.*.eh_proj.weight", "BF16", [64, 128], 1, "3"])
    census = read_header({**row["header"], "tensors": rows})
    assert census.by_class() == by_class(row["config"])
    assert census.beside()[PREDICTING] > 64 * 128
    assert census.beside()[ROUTER_BIASES] == 2 * 4


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ([("a.weight", "U8", [64, 32])], "U8 without scales"),
        ([("a.weight", "U32", [64, 32])], "U32 words without scales"),
        ([("a.qweight", "I32", [64, 32])], "without zero points or scales"),
        ([("a.weight_packed", "I32", [64, 32])], "without scales"),
        ([("a.weight", "type 999", [64, 32])], "type 999"),
        ([("a.weight", "U32", [96, 8]), ("a.scales", "BF16", [96, 1]), ("a.biases", "BF16", [96, 1])], "how many bits"),
    ],
)
def test_what_is_packed_in_no_known_way_is_a_reason(tensors, reason):
    with pytest.raises(NotDescribed, match=reason):
        read_header(summarise("safetensors", "f", 1, tensors))


NAMES = st.sampled_from(
    [
        "model.layers.0.mlp.up_proj",
        "a",
        "lm_head",
        "model.embed_tokens",
        "x.experts.3.w1",
        "visual.blocks.1.attn.qkv",
        "<b>",
    ]
)
PARTS = st.sampled_from(
    [
        "weight_zero_point",
        "weight_shape",
        "weight",
        "qweight",
        "qzeros",
        "scales",
        "weight_packed",
        "weight_scale",
        "weight_scale_inv",
        "biases",
        "SCB",
        "bias",
    ]
)
SHAPES = st.lists(st.integers(0, 300), max_size=4)
SHAPES |= st.lists(st.sampled_from([0, 1, 8, 32, 64]), min_size=1, max_size=3)
DTYPES = st.sampled_from(["BF16", "F32", "F8_E4M3", "U8", "I8", "I32", "U32", "F4", "BOOL", "I64", "Q4_K", "type 77"])


@given(
    st.dictionaries(st.tuples(NAMES, PARTS), st.tuples(DTYPES, SHAPES), min_size=1, max_size=8),
    st.sampled_from([(None, None), (4, 32)]),
)
def test_any_header_is_a_census_or_a_reason(tensors, form):
    rows = [(f"{name}.{part}", dtype, shape) for (name, part), (dtype, shape) in tensors.items()]
    header = summarise("safetensors", "f", 1, rows)
    assert problem_of(header) is None
    try:
        census = read_header(header, form)
    except NotDescribed:
        return
    assert census.stored_element_count == sum(math.prod(shape) for _, _, shape in rows)
    assert census.stored_bytes >= 0
    assert sum(t.element_count for t in census.tensors()) == census.parameter_count
