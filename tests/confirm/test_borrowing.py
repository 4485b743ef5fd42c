"""Shapes of relatives: who may lend one, what a published total has to confirm, and what stays unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.anatomy import read_config
from pipeline.confirm.borrowing import TWO_SHAPES, Lenders, lent_on, settled
from pipeline.confirm.completing import completions
from pipeline.confirm.grade import Graded, grade
from pipeline.confirm.stored import extras_by_sum
from pipeline.hub.record import Record
from tests.anatomy import small_model
from tests.once import bundled_snapshot

LLAMA = {**small_model.LLAMA, "torch_dtype": "bfloat16"}
COUNT = read_config(LLAMA).parameter_count
BASE = Record("org/base", config=LLAMA, config_kind="verbatim", stored_parameter_count=COUNT)
BASE = replace(BASE, parameters_kind="exact_safetensors")
BARE = replace(BASE, model_id="org/bare", config=None, config_kind=None)
DIMS = {k: LLAMA[k] for k in ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")}
UNKNOWN = Graded("unknown", "No config is known")


def borrowed(record: Record, *lenders: Record) -> tuple[Record, Graded]:
    graded = [(lender, grade(lender, read_config(lender.config))) for lender in lenders]
    return settled(Lenders([*graded, (record, UNKNOWN)]), record, UNKNOWN)


def test_a_base_model_lends_its_shape_where_the_total_comes_out():
    record, found = borrowed(replace(BARE, base_model_id="Org/Base"), BASE)
    assert (found.grade, record.config_kind) == ("matched", "sibling")
    assert found.note.startswith("The shape of org/base, and the published total is its count")
    assert found.anatomy.parameter_count == COUNT
    assert found.stored_format is None, "how the base is stored says nothing about its copy"


def test_a_base_model_whose_count_is_another_lends_nothing():
    record = replace(BARE, base_model_id="org/base", stored_parameter_count=COUNT + 1)
    assert borrowed(record, BASE) == (record, UNKNOWN)
    silent = replace(record, stored_parameter_count=None)
    assert borrowed(silent, BASE) == (silent, UNKNOWN)


def test_a_shape_that_was_lent_is_lent_on_to_what_was_made_of_it_and_to_gguf_files():
    dims = replace(
        BARE,
        model_id="org/dims",
        config=DIMS | {"num_key_value_heads": 1},
        config_kind="partial",
        ffn_width_reported=1280,
    )
    copies = [
        replace(BARE, model_id="org/made", base_model_id="org/dims", stored_parameter_count=COUNT),
        replace(BARE, model_id="org/file", parameters_kind="exact_gguf"),
        replace(BARE, model_id="org/another"),
        replace(BARE, model_id="org/larger", base_model_id="org/dims", stored_parameter_count=COUNT + 1),
    ]
    lenders = Lenders([])
    own = [settled(lenders, record, UNKNOWN) for record in (dims, *copies)]
    assert [found.grade for _, found in own] == ["matched", *["unknown"] * 4]
    grades = {record.model_id: found.grade for record, found in lent_on(own)}
    assert grades.pop("org/dims") == grades.pop("org/made") == grades.pop("org/file") == "matched"
    assert set(grades.values()) == {"unknown"}


def test_a_gguf_file_may_hold_rotary_factors_and_no_packed_weights():
    record = replace(BARE, base_model_id="org/base", parameters_kind="exact_gguf")
    assert "rotary factors" in borrowed(replace(record, stored_parameter_count=COUNT + 64), BASE)[1].stored_note
    scales = 4 * (16 + 4 + 4 + 16 + 40 + 40 + 40)
    packed = replace(record, stored_parameter_count=COUNT + scales)
    assert borrowed(packed, BASE)[1].grade == "unknown"
    assert borrowed(replace(packed, parameters_kind="exact_safetensors"), BASE)[1].grade == "matched"


def test_an_equal_total_confirms_a_shape_unless_two_shapes_have_it():
    assert borrowed(BARE, BASE)[1].grade == "matched"
    grouped = {**LLAMA, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
    other = replace(BASE, model_id="org/other", config=grouped)
    assert read_config(grouped).parameter_count == COUNT
    record, found = borrowed(BARE, BASE, other)
    assert (found.grade, found.note) == ("unknown", TWO_SHAPES)
    assert record == BARE


def test_a_small_total_is_no_evidence():
    small = {**LLAMA, "vocab_size": 100, "hidden_size": 64, "intermediate_size": 64}
    count = read_config(small).parameter_count
    lender = replace(BASE, config=small, stored_parameter_count=count)
    assert borrowed(replace(BARE, stored_parameter_count=count), lender)[1].grade == "unknown"


def test_stated_dims_choose_the_lender_and_overrule_it():
    dims = DIMS | {"num_hidden_layers": 6}
    count = read_config({**LLAMA, "num_hidden_layers": 6}).parameter_count
    record = replace(BARE, config=dims, config_kind="partial", stored_parameter_count=count)
    found = borrowed(record, BASE)[1]
    assert found.grade == "matched" and found.anatomy.layer_count == 6
    assert "under its own dims" in found.note
    contradicted = replace(record, config=DIMS | {"num_attention_heads": 8}, stored_parameter_count=COUNT)
    assert borrowed(contradicted, BASE)[1].grade == "unknown", "heads leave no trace in the total of this shape"


def test_a_width_that_a_source_does_not_place_is_tried_where_one_may_be_missing():
    wide = {**LLAMA, "intermediate_size": 2560, "num_key_value_heads": 4}
    record = replace(BARE, config=DIMS, config_kind="partial", ffn_width_reported=2560)
    record = replace(record, stored_parameter_count=read_config(wide).parameter_count)
    kept, found = borrowed(record)
    assert (found.grade, kept.config_kind) == ("matched", "reconstructed")


def test_a_class_name_stands_for_the_type_that_a_source_leaves_out():
    dims = {
        "architectures": ["GPTBigCodeForCausalLM"],
        "n_embd": 512,
        "n_head": 8,
        "n_inner": 2048,
        "n_layer": 4,
        "vocab_size": 9000,
    }
    whole = dims | {"model_type": "gpt_bigcode", "n_positions": 4096}
    record = replace(BARE, config=dims, config_kind="partial", context_length_reported=4096)
    record = replace(record, stored_parameter_count=read_config(whole).parameter_count)
    found = borrowed(record)[1]
    assert (found.grade, found.anatomy.model_type, found.anatomy.max_context_tokens) == ("matched", "gpt_bigcode", 4096)
    silent = replace(record, context_length_reported=None)
    assert "4,096 positions" in borrowed(silent)[1].note, "the total tells how long its table of positions is"
    assert borrowed(replace(record, config=dims | {"architectures": ["OddForCausalLM"]}))[1].grade == "unknown"


def test_widths_keep_the_proportion_of_the_class_where_a_source_gives_none():
    text = {
        "model_type": "opt",
        "hidden_size": 1024,
        "ffn_dim": 4096,
        "word_embed_proj_dim": 1024,
        "num_hidden_layers": 6,
    }
    text |= {"num_attention_heads": 16, "vocab_size": 50304}
    whole = {"model_type": "blip-2", "vision_config": {}, "qformer_config": {}, "text_config": text}
    dims = {k: text[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")}
    record = replace(BARE, config=dims | {"model_type": "blip-2"}, config_kind="partial")
    record = replace(record, stored_parameter_count=read_config(whole).parameter_count)
    assert borrowed(record)[1].grade == "matched"
    other = replace(record, stored_parameter_count=record.stored_parameter_count + 1024)
    assert borrowed(other)[1].grade == "unknown"


def test_a_width_of_lfm2_may_be_meant_as_it_stands():
    dims = {
        "model_type": "lfm2",
        "hidden_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "vocab_size": 9000,
    }
    whole = dims | {"intermediate_size": 1536, "block_auto_adjust_ff_dim": False, "num_key_value_heads": 8}
    whole |= {"layer_types": ["conv"] * 4 + ["full_attention"] * 2}
    record = replace(BARE, config=dims | {"num_key_value_heads": 8}, config_kind="partial", ffn_width_reported=1536)
    found = borrowed(replace(record, stored_parameter_count=read_config(whole).parameter_count))[1]
    assert found.grade == "matched"
    assert sum(a.layer_count for a in found.anatomy.attention if a.elements_per_token) == 2


def test_an_encoder_made_of_a_decoder_lends_no_lack_of_a_cache():
    gemma = {"model_type": "gemma3_text", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 6}
    gemma |= {
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "vocab_size": 9000,
        "sliding_window": 512,
    }
    count = read_config(gemma).parameter_count
    lender = replace(BASE, config=gemma | {"use_bidirectional_attention": True}, stored_parameter_count=count)
    found = borrowed(replace(BARE, stored_parameter_count=count), lender)[1]
    assert found.grade == "matched" and all(layer.elements_per_token for layer in found.anatomy.attention)


def test_a_gguf_file_has_the_shape_of_a_model_without_its_towers_and_an_embedding_one_without_its_head():
    llava = {"model_type": "llava", "text_config": LLAMA, "vision_config": {"model_type": "clip_vision_model"}}
    whole = read_config(llava)
    lender = replace(BASE, config=llava, stored_parameter_count=whole.parameter_count)
    text = sum(t.element_count for t in whole.tensors if t.component == "text")
    bare = replace(BARE, stored_parameter_count=text)
    assert borrowed(bare, lender)[1].grade == "unknown"
    assert borrowed(replace(bare, parameters_kind="exact_gguf"), lender)[1].grade == "matched"
    headless = replace(BARE, stored_parameter_count=COUNT - 32000 * 512)
    assert borrowed(headless, BASE)[1].grade == "unknown"
    assert borrowed(replace(headless, pipeline_tag="feature-extraction"), BASE)[1].grade == "matched"


def test_windows_are_taken_from_a_model_of_the_same_dims_only():
    windowed = {**LLAMA, "model_type": "mistral", "sliding_window": 4096}
    lender = replace(BASE, config=windowed)
    dims = DIMS | {"model_type": "mistral"}
    same = replace(BARE, config=dims, config_kind="partial")
    assert borrowed(same, lender)[1].anatomy.attention[0].window_tokens == 4096
    longer = read_config({**windowed, "num_hidden_layers": 6}).parameter_count
    other = replace(same, config=dims | {"num_hidden_layers": 6}, stored_parameter_count=longer)
    assert borrowed(other, lender)[1].grade == "unknown"


def test_an_architecture_of_its_own_keeps_its_name_and_says_whose_caches_it_shows():
    record = replace(BARE, config=DIMS | {"model_type": "sideways"}, config_kind="partial")
    found = borrowed(record, BASE)[1]
    assert (found.grade, found.anatomy.model_type) == ("matched", "sideways")
    assert "'sideways' is not described" in found.note
    described = replace(record, config=DIMS | {"model_type": "mistral"})
    assert borrowed(described, BASE)[1].grade == "unknown", "a described architecture is not read as another"


# What a Llama's checkpoint may hold beside its parameters: files of before mid-2023 have the frequencies of every layer.
ROTARY = LLAMA["num_hidden_layers"] * (LLAMA["hidden_size"] // LLAMA["num_attention_heads"] // 2)
CACHE_SCALES = 2 * LLAMA["num_hidden_layers"]


def with_dims(off, **changes):
    return replace(BARE, config=DIMS, config_kind="partial", stored_parameter_count=COUNT + off, **changes)


def test_a_shape_allows_its_own_count_and_what_its_checkpoints_are_known_to_hold():
    """Every total that confirms a shape is one of these, so that none is matched by chance."""
    anatomy, again = read_config(LLAMA), LLAMA["vocab_size"] * LLAMA["hidden_size"]
    held = [0, ROTARY, again, again + ROTARY]
    assert sorted(extras_by_sum(anatomy, has_cache_scales=False)) == held
    assert sorted(extras_by_sum(anatomy)) == sorted([*held, *(size + CACHE_SCALES for size in held)])
    assert CACHE_SCALES not in extras_by_sum(anatomy, is_gguf=True), "llama.cpp keeps no scales of a cache"
    found = borrowed(with_dims(ROTARY), BASE)[1]
    assert found.grade == "matched" and "rotary frequencies" in found.stored_note


@pytest.mark.parametrize("off", [CACHE_SCALES, ROTARY + CACHE_SCALES])
def test_scales_of_an_fp8_cache_are_only_found_where_something_speaks_of_a_quantised_checkpoint(off):
    assert borrowed(with_dims(off), BASE)[1].grade == "unknown"
    named = replace(with_dims(off), model_id="org/bare-FP8-dynamic")
    assert "scales of an fp8 cache" in borrowed(named, BASE)[1].stored_note
    assert borrowed(with_dims(off, quantization_hint="compressed-tensors"), BASE)[1].grade == "matched"


@settings(max_examples=50, deadline=None)
@given(off=st.integers(-100_000, 100_000).filter(lambda n: n not in (0, ROTARY)))
@example(off=CACHE_SCALES)
@example(off=ROTARY + CACHE_SCALES)
@example(off=ROTARY - 1)
@example(off=2 * ROTARY)
@example(off=-ROTARY)
def test_no_total_near_the_count_confirms_anything(off):
    assert borrowed(with_dims(off), BASE)[1].grade == "unknown"
    bare = replace(with_dims(off), config=None, config_kind=None)
    assert borrowed(bare, BASE)[1].grade == "unknown"


hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(LLAMA)), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.full
@settings(max_examples=200, deadline=None)
@given(changes=st.dictionaries(st.sampled_from([*LLAMA, "text_config", "architectures"]), hostile, max_size=4))
def test_hostile_dims_end_as_unknown_or_as_the_confirmed_shape(changes):
    record = replace(BARE, config=DIMS | changes, config_kind="partial", ffn_width_reported=1280)
    _, found = borrowed(record, BASE)
    assert found.grade == "unknown" or (found.stored_note and found.anatomy.parameter_count)


@pytest.mark.parametrize(
    ("model_id", "count", "words"),
    [
        ("unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", 30_532_122_624, "number of parameters"),
        ("unsloth/Qwen3.8-27B-GGUF", 26_895_998_464, "multi-token prediction layers (+424,699,392)"),
        ("unsloth/gemma-4-E4B-it-GGUF", 7_463_013_376, "rotary factors of a GGUF file (+256)"),
        ("unsloth/Muse-Glimmer-30B-GGUF", 27_854_780_928, "norms of queries and keys (+13,312)"),
        ("unsloth/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-GGUF", 31_577_937_344, "router bias of prediction layers"),
        ("nvidia/GLM-5.3-NVFP4", 743_377_000_704, "4-bit floats counted in pairs (-362,387,865,600)"),
        ("Inferact/Qwen3.8-27B-NVFP4", 27_356_728_560, "quantised: attention, feed-forward, recurrent-output"),
        ("RadixArk/Kimi-K3-DSpark", 2_249_289_601, "number of parameters"),
        ("z-lab/Qwen3-8B-DFlash-b16", 1_048_626_432, "number of parameters"),
        ("jinaai/jina-embeddings-v2-small-en", 32_690_688, "number of parameters"),
        ("SupraLabs/Supra2-100M-Instruct", 100_684_032, "number of parameters"),
        ("lmstudio-community/ERNIE-4.5-21B-A3B-MLX-4bit", 21_825_437_888, "which MLX leaves out (-1,728)"),
    ],
)
def test_models_of_the_snapshot_that_a_relative_confirms(everything, model_id, count, words):
    row = everything[model_id]
    assert (row["anatomy_grade"], row["parameter_count"]) == ("matched", count)
    assert words in row["stored_parameter_note"]


def test_a_relative_under_whose_dims_the_head_may_be_tied_or_its_own_confirms_no_more_than_a_total(everything):
    """A head of its own, and a tied one that is stored again, give the same total."""
    row = everything["OpenGVLab/InternVL3_5-1B-HF"]
    assert (row["anatomy_grade"], row["parameter_count"]) == ("derived", 1_060_897_792)
    assert "Whether its head is tied is open" in row["anatomy_note"]


def test_a_draft_has_no_embedding_and_no_head_of_its_own():
    draft = {**LLAMA, "model_type": "qwen3", "dflash_config": {"target_layer_ids": [1, 2], "markov_rank": 16}}
    anatomy = read_config(draft)
    own = {t.role: t.element_count for t in anatomy.tensors}
    assert {t.tensor_class for t in anatomy.tensors}.isdisjoint({"embedding", "head"})
    assert own["projector"] == 512 * 2 * 512
    assert (own["markov"], own["confidence"]) == (2 * 32000 * 16, 512 + 16)


def test_a_rebuilt_shape_names_what_no_source_gives(everything):
    assert "In no source: architectures, dflash_config" in everything["z-lab/Qwen3-8B-DFlash-b16"]["anatomy_note"]


@pytest.fixture(scope="module")
def everything(anatomies):
    return {row["model_id"]: row for row in anatomies["model"].to_dicts()}


@pytest.mark.parametrize(("named", "words"), [("deepseek_ocr2", ""), ("deepseek_vl_v2", "'deepseek_vl_v2' is not")])
def test_dims_of_an_ocr_model_are_completed_where_its_total_comes_out(named, words):
    dims = {"hidden_size": 1280, "num_attention_heads": 10, "num_hidden_layers": 12, "vocab_size": 129280}
    record = replace(
        BARE, config={**dims, "model_type": named}, config_kind="partial", stored_parameter_count=3389119360
    )
    _, found = borrowed(record)
    assert found.grade == "matched" and words in found.note
    assert [a.elements_per_token for a in found.anatomy.attention if a.component == "text"] == [2 * 1280]
    assert borrowed(replace(record, stored_parameter_count=3389119361))[1].grade == "unknown"


def test_diffusion_gemma_is_gemma_4_and_a_block_for_its_last_guess():
    lender = next(r for r in bundled_snapshot().records if r.model_id == "google/gemma-4-26B-A4B")
    record = next(r for r in bundled_snapshot().records if r.model_id == "google/diffusiongemma-26B-A4B-it")
    _, found = borrowed(record, lender)
    alone = read_config(lender.config)
    assert found.grade == "matched" and found.anatomy.parameter_count == record.stored_parameter_count
    assert found.anatomy.parameter_count - alone.parameter_count == 3 * 2816 * 2112 + 2816
    assert found.anatomy.attention[:2] == alone.attention[:2]


def test_a_context_that_a_source_states_is_its_own_and_a_strangers_is_not_taken():
    long = replace(BASE, config={**LLAMA, "max_position_embeddings": 4096})
    of_base = replace(BARE, base_model_id="org/base")
    assert borrowed(of_base, long)[1].anatomy.max_context_tokens == 4096
    assert borrowed(replace(of_base, context_length_reported=777), long)[1].anatomy.max_context_tokens == 777
    assert borrowed(BARE, long)[1].anatomy.max_context_tokens is None, "an equal shape says nothing of it"
    assert borrowed(replace(BARE, context_length_reported=777), long)[1].anatomy.max_context_tokens == 777


def test_a_config_of_its_own_that_nobody_understands_is_not_read_as_a_relatives():
    own = replace(BARE, model_id="org/own", base_model_id="org/base", config={"model_type": "nobody_knows"})
    for kind, grade_ in (("verbatim", "unknown"), ("partial", "matched")):
        record = replace(own, config_kind=kind, config=own.config if kind == "verbatim" else DIMS)
        lent = lent_on([(BASE, grade(BASE, read_config(LLAMA))), (record, UNKNOWN)])
        assert lent[1][1].grade == grade_, kind


def test_no_completion_changes_what_a_source_states_or_says_what_none_does():
    """A head of a width of its own, a table of positions of an unknown length, a model without a layer."""
    for dims in (
        DIMS | {"head_dim": 64},
        {"model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 2, "vocab_size": 500},
        {"model_type": "llama"},
        {"model_type": "llama", "num_attention_heads": 4},
        {"model_type": "llama", "hidden_size": 64},
        {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 0},
        {"model_type": "lfm2", "num_hidden_layers": 0},
        {"model_type": "lfm2", "num_hidden_layers": True},
    ):
        record = replace(BARE, config=dims, config_kind="partial")
        found = [config for config, _ in completions(record)]
        assert found and all(config.items() >= dims.items() for config in found)
        assert not any(value is None for config in found for value in config.values())


@pytest.mark.parametrize(
    ("model_type", "name"),
    [("opt", "ffn_dim"), ("t5", "d_ff"), ("gemma3", "intermediate_size"), ("nobody_knows", "intermediate_size")],
)
def test_a_width_that_is_reported_is_what_the_class_calls_it(model_type, name):
    record = replace(BARE, config={"model_type": model_type}, config_kind="partial", ffn_width_reported=96)
    assert {"model_type": model_type, name: 96} in [config for config, _ in completions(record)]


def test_of_two_lenders_the_one_that_is_known_better_is_named():
    """Whoever has a config of its own, then one that somebody lists, and last one that was assumed."""
    kinds = ("assumed", "sibling", "verbatim")
    lenders = [replace(BASE, model_id=f"org/{number}", config_kind=kind) for number, kind in enumerate(kinds)]
    assert borrowed(BARE, *lenders)[1].note.startswith("The shape of org/2")
    assert borrowed(BARE, *lenders[:2])[1].note.startswith("The shape of org/1")
