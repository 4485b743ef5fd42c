"""A shape that nothing confirms is answered where it is likely the model's own, and withheld where something speaks against it."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from pipeline import ROOT
from pipeline.anatomy import read_config
from pipeline.confirm.borrowing import Lenders, settled
from pipeline.confirm.grade import grade
from pipeline.confirm.repository_kind import FILE, HOLDS, KINDS
from pipeline.confirm.unconfirmed import sizes_named
from pipeline.hub.record import Record
from pipeline.press.anatomise import _read
from tests.anatomy import small_model

FACTS = ROOT / "tables" / "facts"
LLAMA = {**small_model.LLAMA, "num_key_value_heads": 4}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
WIDE = {**LLAMA, "intermediate_size": 2 * LLAMA["intermediate_size"]}
BERT = {
    "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 512, "vocab_size": 3000, "max_position_embeddings": 64, "type_vocab_size": 2,
}  # fmt: skip
COUNT = read_config(LLAMA).parameter_count
BASE = Record(
    "org/base", config=LLAMA, config_kind="verbatim", stored_parameter_count=COUNT, parameters_kind="exact_safetensors"
)
BARE = Record(
    "org/bare", config=LLAMA, config_kind="sibling", config_source="shape of org/base [somewhere]; dims equal"
)
TABLE = replace(BARE, config_kind="library_table", config_source="a-library: its table")


def answered(record: Record, *lenders: Record):
    read = [(r, grade(r, read_config(r.config))) for r in lenders]
    own = _read(record)
    return settled(Lenders([*read, (record, own)]), record, own)[1]


def known(model_id, config):
    return replace(BASE, model_id=model_id, config=config, stored_parameter_count=read_config(config).parameter_count)


def test_a_library_s_word_on_the_very_checkpoint_is_answered_and_said_to_be_unconfirmed():
    found = answered(TABLE)
    assert (found.grade, found.is_confirmed, found.anatomy.parameter_count) == ("derived", False, COUNT)
    assert found.note == "A library's table, not confirmed: no exact total is published"


def test_a_config_of_its_own_without_a_total_needs_no_wider_band():
    found = answered(replace(BARE, config_kind="verbatim"))
    assert (found.grade, found.is_confirmed) == ("derived", True)


def test_a_total_that_contradicts_stays_unknown():
    found = answered(replace(TABLE, stored_parameter_count=COUNT + COUNT // 50, parameters_kind="exact_safetensors"))
    assert found.grade == "unknown"


def test_of_all_models_with_its_dims_the_largest_stands_for_it():
    larger = known("org/with-biases", {**LLAMA, "attention_bias": True})
    found = answered(BARE, BASE, larger)
    assert found.note.startswith("As org/with-biases, which has its dims; not confirmed")
    assert found.anatomy.parameter_count == larger.stored_parameter_count > COUNT
    assert answered(BARE, BASE).note.startswith("The shape of org/base, not confirmed")


def test_dims_that_models_of_different_sizes_share_answer_nothing_unless_a_name_tells_the_size():
    assert answered(BARE, BASE, known("org/wide", WIDE)).grade == "unknown"
    count = read_config(WIDE).parameter_count
    found = answered(replace(BARE, model_id=f"org/copy-{count / 1e6:.3f}m"), BASE, known("org/wide", WIDE))
    assert found.anatomy.parameter_count == count


def test_models_of_one_base_vouch_for_each_other_before_those_that_only_share_their_dims():
    kin = replace(BASE, base_model_id="org/ancestor")
    assert answered(replace(BARE, base_model_id="org/other"), kin, known("org/wide", WIDE)).grade == "unknown"
    found = answered(replace(BARE, base_model_id="org/ancestor"), kin, known("org/wide", WIDE))
    assert (found.grade, found.anatomy.parameter_count) == ("derived", COUNT)


def test_nobody_vouches_for_itself():
    assert answered(BARE).grade == "unknown"


@pytest.mark.parametrize(
    "changes",
    [
        {"model_id": "org/bare-70B"},
        {"model_id": "org/Bare-VL"},
        {"model_id": "org/bare-speech"},
        {"pipeline_tag": "image-text-to-text"},
        {"pipeline_tag": "audio-text-to-text"},
        {"approximate_parameter_count": 2 * COUNT},
    ],
)
def test_what_speaks_against_a_shape_leaves_it_unknown(changes):
    assert answered(replace(BARE, **changes), BASE).grade == "unknown"
    assert answered(replace(TABLE, **changes)).grade == "unknown"


def test_experts_are_in_no_published_dim_so_that_only_a_size_in_the_name_tells_their_number():
    base = known("org/experts", MIXTRAL)
    bare = replace(BARE, config=MIXTRAL)
    assert answered(bare, base).grade == "unknown"
    named = replace(bare, model_id=f"org/bare-{base.stored_parameter_count / 1e6:.3f}m")
    assert answered(named, base).grade == "derived"


def test_a_copy_whose_name_tells_its_container_is_as_the_original_that_a_row_names():
    copy = Record("litert-community/gemma-4-E2B-it-litert-lm", approximate_parameter_count=3 * COUNT)
    found = answered(copy, known("google/gemma-4-E2B-it", LLAMA))
    # (its files are packed: an estimate made of their size tells nothing)
    assert found.grade == "derived" and "of which it is a copy for LiteRT-LM" in found.note
    assert answered(replace(copy, model_id="litert-community/other-litert-lm"), BASE).grade == "unknown"
    assert answered(replace(copy, library="peft"), known("google/gemma-4-E2B-it", LLAMA)).grade == "unknown"


def test_a_copy_in_another_container_is_as_its_base_and_an_adapter_is_not():
    copy = Record("org/copy", base_model_id="Org/Base", library="litert-lm")
    found = answered(copy, BASE)
    assert found.note.startswith(
        "As org/base, of which it is a copy for LiteRT-LM, where other programs load the original"
    )
    for library in ("peft", "diffusers", "transformers", None):
        assert answered(replace(copy, library=library), BASE).grade == "unknown"
    for name in ("copy-LoRA", "copy-Eagle3", "copy-mmproj", "copy.MTP"):
        assert answered(replace(copy, model_id=f"org/{name}"), BASE).grade == "unknown"


def test_a_copy_of_a_named_model_has_its_experts_without_a_size_in_its_name():
    """As of Gemma 4 E2B for LiteRT-LM, whose type has members with experts: the base is named, and so is their number."""
    copy = Record("org/copy", base_model_id="org/experts", library="litert-lm")
    assert answered(copy, known("org/experts", MIXTRAL)).grade == "derived"


def test_an_encoder_that_was_fine_tuned_is_as_its_base_and_what_writes_is_not():
    bert = known("org/bert", BERT)
    tuned = Record("me/spam", base_model_id="org/bert", pipeline_tag="text-classification")
    found = answered(tuned, bert)
    assert (found.grade, found.is_confirmed) == ("derived", False)
    assert found.note == "As org/bert, which it was fine-tuned from; not confirmed: no exact total is published"
    for other in (
        replace(tuned, pipeline_tag="text-generation"),
        replace(tuned, pipeline_tag=None),
        replace(tuned, library="peft"),
        replace(tuned, model_id="me/spam-lora"),
        replace(tuned, stored_parameter_count=7, parameters_kind="exact_safetensors"),
        replace(tuned, model_id="me/spam-7b"),
        replace(tuned, base_model_id="org/base"),
    ):
        assert answered(other, bert, BASE).grade == "unknown"


def test_a_repository_without_a_config_says_what_it_holds_where_its_library_tells():
    files = grade(Record("org/files", library="diffusion-single-file"), None)
    assert files.note.startswith("No config is known: it holds files of several models")
    assert grade(Record("org/plain", library="transformers"), None).note == "No config is known"
    rows = list(csv.DictReader(FILE.read_text(encoding="utf-8").splitlines()))
    sources = {
        row["source_id"] for row in csv.DictReader((FACTS / "source.csv").read_text(encoding="utf-8").splitlines())
    }
    for row in rows:
        assert row["kind"] in KINDS and row["source"] in sources
        assert bool(row["program"]) is (row["kind"] == "copy") is not bool(row["words"])
    assert [row["library"] for row in rows] == sorted({row["library"] for row in rows})


def test_a_repository_of_several_models_says_so_by_its_id():
    with HOLDS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (FACTS / "source.csv").open(newline="") as file:
        sources = {row["source_id"] for row in csv.DictReader(file)}
    assert rows and {row["source"] for row in rows} <= sources
    # those that hold the files of one model are told by it
    assert all(row["words"] or row["copy_of"] for row in rows)
    for row in (row for row in rows if row["words"]):
        found = answered(Record(row["model_id"], base_model_id="org/bert"), known("org/bert", BERT))
        assert found.note == f"No config is known: {row['words']}"


def test_names_speak_of_all_parameters_and_not_of_those_that_are_active():
    assert sizes_named("org/Qwen3-30B-A3B") == [30e9]
    assert sizes_named("org/opt-125m_int8") == [125e6]
    assert sizes_named("org/Mixtral-8x7B-v0.1-4bit") == [56e9]
    assert sizes_named("org/gemma-4-E4B-it-w4a16") == []


LISTED = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")


def listed(config, **more):
    """A record of which a third party lists dims alone."""
    dims = {name: config[name] for name in LISTED if name in config}
    width = {"ffn_width_reported": config["intermediate_size"]}
    return replace(BARE, config=dims, config_kind="partial", config_source=None, **width | more)


def test_of_an_encoder_listed_dims_are_all_that_weighs():
    usual = {
        **BERT,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
    }
    usual |= {"max_position_embeddings": 512}
    found = answered(listed(usual))
    assert (found.grade, found.is_confirmed) == ("derived", False)
    assert found.anatomy.parameter_count == read_config(usual).parameter_count
    assert "as a third party lists them" in found.note


def test_of_an_encoder_whose_embedding_has_a_width_of_its_own_they_are_not():
    electra = {**BERT, "model_type": "electra", "architectures": ["ElectraModel"], "embedding_size": 64}
    assert answered(listed(electra)).grade == "unknown"


def test_others_with_listed_dims_are_as_the_largest_known_model_that_has_them_all():
    found = answered(listed(LLAMA), known("org/other", LLAMA), known("org/wide", WIDE))
    assert (found.grade, found.is_confirmed, found.anatomy.parameter_count) == ("derived", False, COUNT)
    assert found.note.startswith("As org/other, which has its dims")


@pytest.mark.parametrize(
    "record",
    [
        listed(LLAMA),  # nobody known has them
        listed(LLAMA, ffn_width_reported=None),  # how wide it is, is open
        listed(LLAMA, ffn_width_reported=7),
        listed({**LLAMA, "num_key_value_heads": 2}),
        listed(LLAMA, stored_parameter_count=COUNT + COUNT // 50, parameters_kind="exact_safetensors"),
        listed(LLAMA, pipeline_tag="image-text-to-text"),
        listed(LLAMA, approximate_parameter_count=2 * COUNT),
    ],
)
def test_listed_dims_alone_are_withheld(record):
    vouching = [] if record == listed(LLAMA) else [known("org/other", LLAMA)]
    assert answered(record, *vouching).grade == "unknown"


def test_listed_dims_that_known_models_of_two_sizes_have_are_withheld_unless_its_name_says_a_size():
    tied = {**LLAMA, "tie_word_embeddings": not LLAMA.get("tie_word_embeddings", False)}
    assert answered(listed(LLAMA), known("org/one", LLAMA), known("org/two", tied)).grade == "unknown"


def test_listed_dims_with_experts_are_withheld():
    """How many there are is no dim."""
    assert answered(listed(MIXTRAL), known("org/other", MIXTRAL)).grade == "unknown"
