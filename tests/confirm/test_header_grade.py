"""What a config and headers say together: agreement is exact, the headers decide where they differ, and alone they give weights."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.confirm.borrowing import Lenders, settled
from pipeline.confirm.header_grade import grade_with_header
from pipeline.hub.record import Record
from tests.confirm.headers import FORMATS, as_gguf, of_layers, repacked, written

LLAMA, QWEN, DEEPSEEK = (written()[f"{name}ForCausalLM"] for name in ("Llama", "Qwen2", "DeepseekV3"))
COUNT = LLAMA["parameter_count"]


def record(row=LLAMA, header=None, **more) -> Record:
    plain = {"config": row["config"], "config_kind": "verbatim", "header": header or row["header"]}
    return Record(model_id="org/model", **{**plain, **more})


def graded(given: Record):
    try:
        anatomy = read_config(given.config) if given.config else UnknownAnatomy("no config")
    except UnknownAnatomy as reason:
        anatomy = reason
    return grade_with_header(given, anatomy)


def with_rows(row, *rows):
    return {**row["header"], "tensors": [*row["header"]["tensors"], *map(list, rows)]}


def test_headers_confirm_a_config_without_any_published_total():
    found = graded(record())
    assert (found.grade, found.anatomy.parameter_count, found.stored_bytes) == ("exact", COUNT, 2 * COUNT)
    assert found.stored_format == "bf16"
    assert found.anatomy.attention == read_config(LLAMA["config"]).attention


@pytest.mark.parametrize("kind", ["sibling", "reconstructed", "library_defaults"])
def test_another_models_shape_is_matched_where_the_headers_hold_it(kind):
    assert graded(record(config_kind=kind)).grade == "matched"


def test_another_models_shape_of_the_same_total_is_told_apart_by_its_layers():
    """Two key-value heads more, and a feed-forward narrower by just as much; a norm takes up what is left."""
    lent = {**LLAMA["config"], "num_key_value_heads": 4, "intermediate_size": 96 - 21}
    missing = read_config(lent).parameter_count - COUNT
    header = with_rows(LLAMA, ["model.extra_norm.weight", "BF16", [missing], 1, ""])
    found = graded(record(header=header, config=lent, config_kind="sibling"))
    assert (found.grade, found.anatomy.layer_count) == ("derived", None)


def test_a_tied_head_that_is_stored_again_is_one_parameter_and_said():
    found = graded(record(QWEN, with_rows(QWEN, ("lm_head.weight", "BF16", [500, 64], 1, ""))))
    assert (found.grade, found.anatomy.parameter_count) == ("exact", QWEN["parameter_count"])
    assert "tied head stored again (+32,000)" in found.stored_note
    assert found.stored_bytes == 2 * (QWEN["parameter_count"] + 32_000)


def test_a_head_beside_a_siblings_tie_is_counted_as_its_own():
    given = record(QWEN, with_rows(QWEN, ("lm_head.weight", "BF16", [500, 64], 1, "")), config_kind="sibling")
    found = graded(given)
    assert (found.grade, found.anatomy.parameter_count) == ("matched", QWEN["parameter_count"] + 32_000)


def test_a_siblings_tied_head_that_is_not_stored_stays_tied():
    found = graded(record(QWEN, config_kind="sibling"))
    assert (found.grade, found.anatomy.parameter_count) == ("matched", QWEN["parameter_count"])
    assert found.anatomy.is_head_tied and graded(record(QWEN)).grade == "exact"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("model.layers.*.self_attn.rotary_emb.inv_freq", "F32", [8], 3, "0-2")], "rotary tables (+24)"),
        (
            [("model.mtp.layers.*.mlp.up_proj.weight", "BF16", [96, 64], 1, "0")],
            "multi-token prediction layers (+6,144)",
        ),
        ([("model.position_ids", "I64", [1, 128], 1, "")], "position ids (+128)"),
        ([("model.layers.*.self_attn.k_scale", "F32", [], 3, "0-2")], "scales of an fp8 cache (+3)"),
    ],
)
def test_what_a_checkpoint_holds_besides_is_named_and_not_counted(rows, words):
    found = graded(record(header=with_rows(LLAMA, *rows)))
    assert (found.grade, found.anatomy.parameter_count) == ("exact", COUNT)
    assert words in found.stored_note


def test_router_biases_that_a_config_counts_as_parameters_are_taken_in():
    row = written()["Lfm2MoeForCausalLM"]
    assert graded(record(row)).grade == "exact"
    assert "router bias buffers" in graded(record(DEEPSEEK)).stored_note


@pytest.mark.parametrize("total", [None, COUNT, COUNT + 5])
def test_a_published_total_that_is_not_what_the_files_hold_is_said(total):
    note = graded(record(stored_parameter_count=total, parameters_kind=total and "exact_safetensors")).stored_note
    assert note.startswith(f"The files hold {COUNT:,} elements: {COUNT:,} parameters")
    assert ("in its own way" in note) is (total == COUNT + 5)


@pytest.mark.parametrize("name", FORMATS)
def test_a_packed_checkpoint_is_exact_and_its_format_is_said(name):
    found = graded(record(header=repacked(LLAMA["header"], FORMATS[name][0], of_layers)))
    assert (found.grade, found.anatomy.parameter_count) == ("exact", COUNT)
    kind = name.split()[0]
    is_ours = kind in ("gptq-int4", "awq-int4", "nf4", "int8", "fp8", "nvfp4", "mxfp4")
    assert found.stored_format == (kind if is_ours else None)
    assert "scales, zero points and tables" in found.stored_note


def test_bits_that_the_shapes_leave_open_are_those_of_the_config():
    row = {"tensors": [["a.weight_packed", "I32", [96, 12], 1, ""], ["a.weight_scale", "BF16", [96, 3], 1, ""]]}
    header = {"format": "safetensors", "file": "f", "file_count": 1, **row}
    groups = {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int", "group_size": 16}}}}
    named = {"model_type": "nobody_knows", "quantization_config": groups}
    assert graded(record(header=header, config=named)).anatomy.parameter_count == 96 * 48


def test_layers_that_agree_keep_the_configs_cache_where_the_embedding_differs():
    found = graded(record(config={**LLAMA["config"], "vocab_size": 490}))
    assert (found.grade, found.anatomy.parameter_count, found.anatomy.vocab_size) == ("derived", COUNT, 500)
    assert found.anatomy.attention and "embedding 32,000 instead of 31,360" in found.note


@pytest.mark.parametrize("changed", [{"num_key_value_heads": 4}, {"num_hidden_layers": 2}, {"intermediate_size": 100}])
def test_layers_that_differ_leave_weights_and_no_cache(changed):
    found = graded(record(config={**LLAMA["config"], **changed}))
    assert (found.grade, found.anatomy.parameter_count) == ("derived", COUNT)
    assert found.anatomy.attention == () and found.anatomy.layer_count is None
    assert "does not describe this checkpoint" in found.note


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"config": None, "config_kind": None}, "no config is known"),
        ({"config": {"model_type": "nobody_knows"}}, "'nobody_knows' is not described"),
        ({"config_kind": "partial"}, "only some dims are known"),
    ],
)
def test_headers_alone_give_weights_and_say_what_is_missing(more, reason):
    found = graded(record(**more))
    assert (found.grade, found.anatomy.parameter_count, found.stored_format) == ("derived", COUNT, "bf16")
    assert reason in found.note and found.anatomy.hidden_size is None


def test_headers_in_an_unknown_form_leave_the_config_as_it_was_without_them():
    header = {**LLAMA["header"], "tensors": [["a.weight", "U8", [64, 64], 1, ""]]}
    given = record(header=header, stored_parameter_count=COUNT, parameters_kind="exact_safetensors")
    found = graded(given)
    assert found.grade == "exact" and found.census is None
    assert "Its tensor headers are not used: a.weight holds U8 without scales" in found.note


def test_headers_a_hundred_times_the_config_are_a_contradiction():
    header = with_rows(LLAMA, ("model.embed_tokens_2.weight", "BF16", [10**6, 64], 1, ""))
    with pytest.raises(ContradictoryConfig, match="tensor headers hold"):
        graded(record(header=header))


def test_names_that_are_not_understood_do_not_undo_a_total_that_is_explained():
    odd = [[p.replace("up_proj.weight", "inv_freq"), *rest] for p, *rest in LLAMA["header"]["tensors"]]
    given = record(header={**LLAMA["header"], "tensors": odd})
    given = replace(given, stored_parameter_count=COUNT, parameters_kind="exact_safetensors")
    found = graded(given)
    assert (found.grade, found.anatomy.parameter_count) == ("exact", COUNT)


def test_a_gguf_repository_without_a_config_has_the_shape_and_cache_of_its_base_where_its_header_holds_it():
    base = replace(record(stored_parameter_count=COUNT, parameters_kind="exact_safetensors"), model_id="org/base")
    made = record(header=as_gguf(LLAMA, "Q8_0"), config=None, config_kind=None, base_model_id="org/base")
    made = replace(made, stored_parameter_count=COUNT + 8, parameters_kind="exact_gguf", gguf_file="a-Q8_0.gguf")
    other = replace(made, model_id="org/other", header=as_gguf(written()["MixtralForCausalLM"], "Q8_0"))
    known = [(r, graded(r)) for r in (base, made, other)]
    found = {r.model_id: settled(Lenders(known), r, g)[1] for r, g in known}
    assert (found["org/model"].grade, found["org/model"].anatomy.attention) == (
        "matched",
        found["org/base"].anatomy.attention,
    )
    matrices = sum(r[2][0] * r[2][1] * r[3] for r in LLAMA["header"]["tensors"] if len(r[2]) == 2)
    assert found["org/model"].stored_bytes == matrices * 34 // 32 + 4 * (COUNT - matrices + 8)
    assert found["org/model"].stored_format == "gguf-q8_0"
    # made of the same base, but its header holds another model: weights alone
    assert (found["org/other"].grade, found["org/other"].anatomy.layer_count) == ("derived", None)
    assert found["org/other"].anatomy.parameter_count == written()["MixtralForCausalLM"]["parameter_count"]


def test_of_many_classes_that_differ_some_are_named_and_the_others_counted():
    changed = {"num_key_value_heads": 4, "intermediate_size": 100, "vocab_size": 490, "hidden_size": 128}
    note = graded(record(config={**LLAMA["config"], **changed})).note
    assert note.count(" instead of ") == 4 and " and 1 more classes" in note


@pytest.mark.parametrize(("size", "count"), [(0, None), (1, 1)])
def test_headers_of_one_parameter_are_headers_and_of_none_are_not(size, count):
    rows = [["model.layers.*.input_layernorm.weight", "BF16", [size], 1, "0"]]
    header = {"format": "safetensors", "file": "f", "file_count": 1, "tensors": rows}
    found = graded(record(header=header, config={"model_type": "nobody_knows"}))
    assert (found.anatomy and found.anatomy.parameter_count) == count


def test_a_checkpoint_whose_experts_are_in_4_bit_floats_is_told_by_them_whatever_else_is_in_16():
    row = written()["MixtralForCausalLM"]
    header = repacked(row["header"], FORMATS["mxfp4"][0], lambda name: ".experts." in name)
    assert graded(record(row, header)).stored_format == "mxfp4"
    dense = repacked(LLAMA["header"], FORMATS["mxfp4"][0], lambda name: ".mlp." in name)
    assert graded(record(header=dense)).stored_format is None
