"""What a checkpoint may hold: parts that it leaves out, and a head that is or is not the embedding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.anatomy import read_config
from pipeline.confirm.candidates import IS_TIED, LEAVES_HEAD, TIED_AGAIN, candidates, with_own_head
from pipeline.hub.record import Record
from tests.anatomy import small_model

LLAMA = {k: v for k, v in small_model.LLAMA.items() if k != "tie_word_embeddings"}
BERT = {
    "model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "vocab_size": 1000, "max_position_embeddings": 64, "type_vocab_size": 2,
}  # fmt: skip


def told(config, **changes):
    record = Record("org/model", config=config, config_kind="verbatim", **changes)
    return [what for what, _held, _is_own in candidates(record, read_config(config))]


def test_a_head_that_becomes_its_own_takes_no_other_remark_with_it():
    tied = read_config({**LLAMA, "tie_word_embeddings": True})
    tied = replace(tied, stored_extra={**tied.stored_extra, "rotations": 7})
    assert TIED_AGAIN in tied.stored_extra
    own = with_own_head(tied)
    assert own.stored_extra == {k: v for k, v in tied.stored_extra.items() if k != TIED_AGAIN}
    assert own.is_head_tied is False and own.parameter_count == tied.parameter_count + tied.stored_extra[TIED_AGAIN]


@pytest.mark.parametrize("architecture, is_told", [("BertModel", True), ("BertForSequenceClassification", False)])
def test_a_pooler_is_left_out_by_bare_models_alone(architecture, is_told):
    assert ("The checkpoint leaves out the pooler" in told({**BERT, "architectures": [architecture]})) is is_told


def test_nothing_is_left_out_that_a_model_does_not_have():
    assert not any("pooler" in what or "masked" in what for what in told(LLAMA))


@pytest.mark.parametrize(
    "config, kind, task, is_tied",
    [
        (LLAMA, "reconstructed", "text-generation", True),
        (LLAMA, "sibling", None, True),
        (LLAMA, "verbatim", "text-generation", False),  # absent is what the class defaults to
        (LLAMA, "reconstructed", "sentence-similarity", False),
        ({**LLAMA, "tie_word_embeddings": False}, "reconstructed", "text-generation", False),
        ({**LLAMA, "tie_word_embeddings": False}, "sibling", "text-generation", True),  # the lender's word
        ({**LLAMA, "architectures": ["LlamaForSequenceClassification"]}, "reconstructed", "text-generation", False),
    ],
)
def test_a_missing_head_is_the_embedding_of_what_writes_where_nobody_says_otherwise(config, kind, task, is_tied):
    record = Record("org/model", config=config, config_kind=kind, pipeline_tag=task)
    anatomy = read_config(config)
    found = {what: held for what, held, _is_own in candidates(record, anatomy) if what in (IS_TIED, LEAVES_HEAD)}
    (what,) = found
    assert what == (IS_TIED if is_tied else LEAVES_HEAD)
    held = found[what]
    assert held.is_head_tied is (True if is_tied else anatomy.is_head_tied)
    assert held.stored_extra.get(TIED_AGAIN) == (32000 * 512 if is_tied else None)


def test_a_source_that_inferred_the_tie_has_not_said_it():
    config = {**LLAMA, "tie_word_embeddings": False}
    given = {"config": config, "config_kind": "reconstructed", "config_inferred_fields": ("tie_word_embeddings",)}
    found = [what for what, _, _ in candidates(Record("org/model", **given), read_config(config))]
    assert IS_TIED in found and LEAVES_HEAD not in found
