"""Grades: what each promises to a reader, on made-up records and on the whole bundled snapshot."""

from dataclasses import replace

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.confirm.grade import OWN_CONFIG, grade
from pipeline.hub.record import Record
from tests.anatomy import small_model
from tests.once import bundled_snapshot

LLAMA = {**small_model.LLAMA, "max_position_embeddings": 2048}
ANATOMY = read_config(LLAMA)
COUNT = ANATOMY.parameter_count
RECORD = Record(
    "org/model", config=LLAMA, config_kind="verbatim", stored_parameter_count=COUNT, parameters_kind="exact_safetensors"
)


def graded(**changes):
    record = replace(RECORD, **changes)
    return grade(record, read_config(record.config) if record.config else UnknownAnatomy("none"))


@pytest.mark.parametrize("kind", ["verbatim", "quoted"])
def test_its_own_config_with_the_published_total_is_exact(kind):
    found = graded(config_kind=kind)
    assert found.grade == "exact"
    assert found.note.startswith("Its own config")
    assert found.stored_note == "The published total is the number of parameters"


@pytest.mark.parametrize("kind", ["sibling", "reconstructed", "library_defaults", "library_table", "assumed"])
def test_another_shape_with_the_published_total_is_matched(kind):
    found = graded(config_kind=kind, config_source="shape of org/base [somewhere:config.json]; dims and total equal")
    assert found.grade == "matched"
    assert "Windows and context leave no trace in a count" in found.note
    if kind == "sibling":
        assert found.note.startswith("The shape of org/base, and the published total is its count")


def test_how_a_sibling_cuts_its_images_is_nobody_elses():
    """LLaVA 1.6 has the dims of LLaVA 1.5 and cuts images into tiles, which 1.5 does not: five times the tokens."""
    records = {r.model_id: r for r in bundled_snapshot().records}
    own, other = records["liuhaotian/llava-v1.5-7b"], records["liuhaotian/llava-v1.6-vicuna-7b"]
    assert read_config(other.config).towers
    assert grade(own, read_config(own.config)).anatomy.towers
    found = grade(other, read_config(other.config))
    assert found.grade == "matched" and not found.anatomy.towers and "cut into tiles" in found.note


def test_its_own_config_without_a_total_is_derived():
    found = graded(stored_parameter_count=None, parameters_kind=None)
    assert found.grade == "derived" and "no exact total is published" in found.note


@pytest.mark.parametrize("kind", ["sibling", "reconstructed", "library_defaults", "library_table", "assumed"])
def test_another_shape_without_a_total_stays_unknown(kind):
    found = graded(config_kind=kind, stored_parameter_count=None, parameters_kind=None)
    assert found.grade == "unknown" and found.anatomy is None


def test_dims_alone_never_become_a_footprint():
    found = graded(config_kind="partial")
    assert found.grade == "unknown" and found.anatomy is None


def test_a_model_without_a_config_is_unknown_with_a_reason():
    assert graded(config=None, config_kind=None).note == "No config is known"
    reason = grade(RECORD, UnknownAnatomy("architecture 'new' is not described yet"))
    assert (reason.grade, reason.note) == ("unknown", "Architecture 'new' is not described yet")


def test_a_config_that_its_total_contradicts_is_unknown_and_says_by_how_much():
    found = graded(stored_parameter_count=COUNT + COUNT // 50)
    assert found.grade == "unknown" and found.anatomy is None
    assert "+2.000%" in found.note and "unexplained" in found.note


def test_a_negligible_difference_leaves_its_own_config_derived_and_a_sibling_unknown():
    off = COUNT + COUNT // 5000
    assert graded(stored_parameter_count=off).grade == "derived"
    assert "not explained" in graded(stored_parameter_count=off).stored_note
    assert graded(stored_parameter_count=off, config_kind="sibling").grade == "unknown"


def test_a_total_of_packed_elements_in_an_unknown_mix_confirms_nothing():
    packed = {"parameters_kind": "exact_packed_elements", "stored_parameter_count": COUNT * 2 // 3}
    quantised = {**LLAMA, "quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}}
    found = graded(config=quantised, **packed)
    assert found.grade == "unknown" and "packed elements" in found.note


@pytest.mark.parametrize("total", [COUNT * 101, COUNT // 101])
def test_a_total_a_hundred_times_its_config_is_a_contradiction(total):
    with pytest.raises(ContradictoryConfig, match="the published total is"):
        graded(stored_parameter_count=total)


def test_a_rounded_total_is_no_total():
    found = graded(stored_parameter_count=None, approximate_parameter_count=COUNT, parameters_kind="rounded")
    assert found.grade == "derived"


def test_a_packed_repack_of_a_siblings_shape_is_matched_with_its_format():
    config = {**LLAMA, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    scales = 4 * (16 + 4 + 4 + 16 + 40 + 40 + 40)
    found = graded(config=config, config_kind="sibling", stored_parameter_count=COUNT + scales)
    assert (found.grade, found.stored_format) == ("matched", "fp8")
    assert "128 × 128" in found.stored_note


ROWS = 4 * (512 + 128 + 128 + 512 + 1280 + 1280 + 512)  # of all matrices: as many biases, or scales of 8-bit weights


def test_switches_that_a_source_left_out_are_filled_in_where_the_total_says_so():
    found = graded(config_kind="reconstructed", stored_parameter_count=COUNT + ROWS)
    assert found.grade == "matched" and "attention_bias and mlp_bias" in found.note
    assert found.anatomy.parameter_count == COUNT + ROWS
    listed = {**LLAMA, "attention_bias": False}
    assert graded(config=listed, config_kind="reconstructed", stored_parameter_count=COUNT + ROWS).grade == "unknown"


def test_its_own_config_that_had_to_be_filled_in_is_matched_and_no_longer_exact():
    queries = 4 * (512 + 128 + 128 + 512)
    found = graded(stored_parameter_count=COUNT + queries)
    assert found.grade == "matched" and found.anatomy.parameter_count == COUNT + queries


def test_biases_and_scales_that_count_the_same_are_not_guessed_apart():
    changes = {"config_kind": "reconstructed", "stored_parameter_count": COUNT + ROWS}
    assert graded(model_id="org/model-FP8", **changes).grade == "unknown"
    hinted = graded(quantization_hint="GPTQ-Int4", **changes)
    assert (hinted.grade, hinted.stored_format) == ("matched", "gptq-int4")
    assert hinted.anatomy.parameter_count == COUNT


def test_a_checkpoint_without_its_head_is_graded_as_what_it_holds():
    found = graded(stored_parameter_count=COUNT - 32000 * 512)
    assert found.grade == "exact" and "leaves out the output head" in found.note
    assert found.anatomy.parameter_count == COUNT - 32000 * 512


@pytest.mark.parametrize("kind", ["reconstructed", "sibling"])
def test_a_model_that_writes_has_its_embedding_for_a_head_where_its_total_holds_no_other(kind):
    """Nobody said whether it is tied: the head that its count leaves no room for is no reason to leave out its logits."""
    config = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}
    changes = {"config": config, "config_kind": kind, "stored_parameter_count": COUNT - 32000 * 512}
    found = graded(**changes, pipeline_tag="text-generation")
    assert found.grade == "matched" and "it is tied" in found.note
    assert found.anatomy.is_head_tied and found.anatomy.parameter_count == COUNT - 32000 * 512
    assert graded(**changes).anatomy.is_head_tied  # nor does one whose task nobody said
    embedder = graded(**changes, pipeline_tag="feature-extraction")
    assert embedder.anatomy.is_head_tied is False and "leaves out the output head" in embedder.note


def test_a_head_of_its_own_that_a_source_states_is_left_out_where_it_is_missing():
    stated = {**LLAMA, "tie_word_embeddings": False}
    found = graded(config=stated, config_kind="reconstructed", stored_parameter_count=COUNT - 32000 * 512)
    assert found.anatomy.is_head_tied is False and "leaves out the output head" in found.note


def test_the_format_is_told_from_dtype_counts_or_config_and_bytes_follow():
    assert graded(config={**LLAMA, "torch_dtype": "bfloat16"}).stored_format == "bf16"
    assert graded(config={**LLAMA, "torch_dtype": "bfloat16"}).stored_bytes == 2 * COUNT
    counted = graded(parameters_by_dtype={"F32": COUNT})
    assert (counted.stored_format, counted.stored_bytes) == ("fp32", 4 * COUNT)
    assert graded().stored_format is None


def test_a_name_that_speaks_of_another_format_casts_doubt_on_the_dtype():
    config = {**LLAMA, "torch_dtype": "bfloat16"}
    assert graded(model_id="org/model-FP8", config=config).stored_format is None
    assert graded(model_id="org/model-w4a16", config=config).stored_format is None


# The whole bundled snapshot.


@pytest.mark.parametrize(("model_id", "is_quantised", "is_said"), [
    ("org/model", True, True), ("org/model", False, False), ("org/model-w4a16", True, True),
])  # fmt: skip
def test_why_nothing_is_said_of_what_is_packed_is_told_of_what_is_quantised_alone(model_id, is_quantised, is_said):
    """A quantiser that takes modules of an unknown class leaves its parts undecided; a config without one has none to tell of."""
    quantiser = {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "targets": ["Nobody"], "weights": {"num_bits": 4, "type": "int", "group_size": 128}}}}}  # fmt: skip
    found = graded(model_id=model_id, config={**LLAMA, **(quantiser if is_quantised else {})})
    assert (found.stored_unknown_reason is not None) is is_said


def graded_alone(record):
    """Without what a sibling or a header could add."""
    try:
        anatomy = read_config(record.config) if record.config else UnknownAnatomy("none")
    except UnknownAnatomy as reason:
        anatomy = reason
    return grade(record, anatomy)


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.full)])
def test_every_grade_keeps_its_promise(every):
    for record in bundled_snapshot().records[::every]:
        model_id, found = record.model_id, graded_alone(record)
        total = record.stored_parameter_count
        assert found.note, model_id
        assert (found.anatomy is None) == (found.grade == "unknown"), model_id
        if found.grade in ("exact", "derived"):
            assert record.config_kind in OWN_CONFIG, model_id
        if found.grade in ("exact", "matched"):
            assert total and found.stored_note, model_id
        if found.grade == "derived" and total and record.parameters_kind != "exact_packed_elements":
            assert abs(total - found.anatomy.parameter_count) < 0.1 * total, model_id
        if record.config_kind in ("partial", None):
            assert found.grade == "unknown", model_id


@pytest.mark.parametrize(
    ("model_id", "count"),
    [
        ("Qwen/Qwen3-0.6B", 596_049_920),  # the Hub's total counts the tied head twice
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704),
    ],
)
def test_known_models_have_their_known_counts(model_id, count):
    found = graded_alone(next(record for record in bundled_snapshot().records if record.model_id == model_id))
    assert found.grade != "unknown"
    assert found.anatomy.parameter_count == count


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.full)])
def test_notes_are_for_people(every):
    for record in bundled_snapshot().records[::every]:
        model_id, found = record.model_id, graded_alone(record)
        for note in (found.note, found.stored_note or ""):
            assert "None" not in note and "Traceback" not in note and note == note.strip(), model_id
        assert found.note[:1].isupper(), model_id
