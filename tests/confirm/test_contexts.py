"""How long a context a model takes, where its config is lent: as a list reports it, where that is believable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.anatomy import read_config
from pipeline.confirm.contexts import REPORTED, contexts_of, with_context
from pipeline.confirm.grade import Graded
from pipeline.hub.record import Record
from tests.anatomy import small_model


def model(kind="sibling", positions=None, reported=None, **changes):
    config = {k: v for k, v in small_model.LLAMA.items() if k != "max_position_embeddings"} | changes
    config |= {"max_position_embeddings": positions} if positions else {}
    record = Record(f"org/{kind}-{positions}", config=config, config_kind=kind, context_length_reported=reported)
    anatomy = read_config(config)
    return record, Graded("matched", "The shape of another", anatomy=anatomy)


KNOWN = contexts_of([model("verbatim", 8192), model("quoted", 131072), model("sibling", 262144)])


def context(pair):
    return with_context(*pair, KNOWN).anatomy.max_context_tokens


@pytest.mark.parametrize("reported", [8192, 131072])
def test_what_a_list_reports_is_taken_where_one_with_its_own_config_takes_as_much(reported):
    found = with_context(*model(reported=reported), KNOWN)
    assert found.anatomy.max_context_tokens == reported and REPORTED in found.note


@pytest.mark.parametrize(
    "pair",
    [
        model(reported=None),
        model(reported=65536),  # no known model of the type takes it
        model(reported=262144),  # known of a lent config alone
        model(reported=8192, model_type="qwen2"),  # of another type
        model("verbatim", reported=8192),  # its own config leaves it out
    ],
)
def test_what_nothing_bears_out_stays_unknown(pair):
    assert context(pair) is None and REPORTED not in with_context(*pair, KNOWN).note


def test_a_mixture_of_experts_bears_out_the_dense_model_of_its_type():
    record, found = model("verbatim", 262144)
    moe = replace(found, anatomy=replace(found.anatomy, model_type="qwen3_moe"))
    dense = replace(found, anatomy=replace(found.anatomy, model_type="qwen3", max_context_tokens=None))
    lent = replace(record, config_kind="sibling", context_length_reported=262144)
    assert with_context(lent, dense, contexts_of([(record, moe)])).anatomy.max_context_tokens == 262144


def test_what_a_list_fills_in_by_itself_is_no_report():
    known = contexts_of([model("verbatim", 4096)])
    assert with_context(*model(reported=4096), known).anatomy.max_context_tokens is None


def test_what_a_config_says_is_not_changed_and_a_model_without_a_shape_stays_without():
    assert context(model(positions=8192, reported=131072)) == 8192
    unknown = Graded("unknown", "No config is known")
    assert with_context(model(reported=8192)[0], unknown, KNOWN) is unknown
