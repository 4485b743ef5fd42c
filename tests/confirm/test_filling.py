"""What a source leaves out of a config is filled in only where the published total then equals the count, and is said."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pipeline.anatomy import read_config
from pipeline.confirm.candidates import FILLED, candidates
from pipeline.confirm.filling import _sliding_heads, fillings, wholes, without
from pipeline.confirm.grade import grade
from pipeline.hub.record import Record

BERT = {"model_type": "bert", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
BERT |= {
    "num_attention_heads": 4,
    "vocab_size": 500,
    "max_position_embeddings": 100,
    "type_vocab_size": 2,
    "num_labels": 5,
}
HEAD = 64 * 65 + 2 * 64 + 500  # a dense layer, a norm, a bias over the vocabulary
POOLER = 64 * 65


def graded(config, total, kind="reconstructed", **changes):
    record = Record("org/model", config=config, config_kind=kind, stored_parameter_count=total)
    record = replace(record, parameters_kind="exact_safetensors", **changes)
    return grade(record, read_config(config))


def bare(config):
    return read_config(config | {"architectures": ["BertModel"]}).parameter_count


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (HEAD - POOLER, "the class BertForMaskedLM"),
        (5 * 65, "the class BertForSequenceClassification"),
        (-POOLER, "The checkpoint leaves out the pooler"),
    ],
)
def test_the_class_of_a_config_that_names_none_is_told_by_the_total(difference, words):
    found = graded(BERT, bare(BERT) + difference)
    assert found.grade == "matched" and words in found.note
    assert found.anatomy.parameter_count == bare(BERT) + difference


def test_a_class_that_the_config_names_is_not_filled_in():
    config = BERT | {"architectures": ["BertModel"]}
    assert graded(config, bare(BERT) + HEAD - POOLER).grade == "unknown"


def test_rows_of_positions_for_padding_are_only_filled_into_tables_of_a_library():
    config = {key: value for key, value in BERT.items() if key != "type_vocab_size"} | {"model_type": "mpnet"}
    total = read_config(config).parameter_count + 2 * 64
    found = graded(config, total, "library_defaults")
    assert found.grade == "matched" and "102 rows of positions" in found.note
    assert graded(config, total, "verbatim").grade != "matched"


def test_what_changes_nothing_is_no_filling():
    record = Record("org/model", config=BERT, config_kind="reconstructed")
    anatomy = read_config(BERT)
    for what, filled in fillings(record, anatomy):
        assert (filled.tensors, filled.stored_extra) != (anatomy.tensors, anatomy.stored_extra), what
    assert not any("attention_bias" in what for what, _ in fillings(record, anatomy))


def test_a_config_of_its_own_that_had_to_be_filled_in_is_no_longer_exact():
    config = {"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 2, "vocab_size": 500, "max_position_embeddings": 64, "tie_word_embeddings": False}
    total = read_config(config | {"rotary_pct": 1.0}).parameter_count
    frequencies = read_config(config | {"rotary_pct": 1.0}).stored_extra["rotary frequencies"]
    found = graded(config, total + frequencies, "verbatim")
    assert found.grade == "matched" and "rotary positions over whole heads" in found.note


def test_a_sibling_with_another_head_is_read_without_it():
    llama = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    llama |= {"num_attention_heads": 4, "vocab_size": 500, "tie_word_embeddings": False}
    judge = llama | {"architectures": ["LlamaForSequenceClassification"]}
    total = read_config(llama | {"architectures": ["LlamaForCausalLM"]}).parameter_count
    found = graded(judge, total, "sibling")
    assert found.grade == "matched" and found.anatomy.parameter_count == total


def test_parts_are_left_out_with_their_biases():
    anatomy = read_config(BERT | {"architectures": ["BertModel"]})
    assert anatomy.parameter_count - without(anatomy, "pooler").parameter_count == POOLER


STARCODER = {"model_type": "gpt_bigcode", "n_embd": 64, "n_head": 4, "n_inner": 128, "n_layer": 2, "vocab_size": 500}


def test_a_table_of_positions_is_as_long_as_the_total_says():
    whole = read_config(STARCODER | {"n_positions": 4096})
    for beside in (0, whole.stored_extra["tied head stored again"]):
        found = graded(STARCODER, whole.parameter_count + beside, "assumed")
        assert found.grade == "matched" and "4,096 positions" in found.note
        assert found.anatomy.max_context_tokens == 4096
    assert graded(STARCODER, whole.parameter_count + 64, "assumed").grade == "unknown"
    stated = STARCODER | {"n_positions": 1024}
    assert graded(stated, whole.parameter_count, "assumed").grade == "unknown"


def test_a_few_tokens_more_than_its_base_are_rows_of_the_vocabulary():
    llama = {"model_type": "llama", "hidden_size": 96, "intermediate_size": 136, "num_hidden_layers": 2}
    llama |= {"num_attention_heads": 4, "vocab_size": 500, "tie_word_embeddings": False}
    count = read_config(llama).parameter_count
    found = graded(llama, count + 5 * 2 * 96, "sibling")
    assert found.grade == "matched" and "a vocabulary of 505" in found.note and found.anatomy.vocab_size == 505
    assert graded(llama, count + 96, "sibling").grade == "unknown", "half a token"
    assert graded(llama, count + 400 * 2 * 96, "sibling").grade == "unknown", "scales may be as many"
    named = Record("org/model-FP8", config=llama, config_kind="sibling", stored_parameter_count=count + 5 * 2 * 96)
    assert grade(replace(named, parameters_kind="exact_safetensors"), read_config(llama)).grade == "unknown"


def test_what_is_filled_in_is_not_said_by_the_config_alone_and_what_is_left_out_of_it_is():
    told = {what: alone for what, _, alone in candidates(Record("org/model", config=BERT), read_config(BERT))}
    assert told["The checkpoint leaves out the pooler"] is True
    assert len({what.startswith(FILLED) for what in told}) == 2
    assert all(alone is not what.startswith(FILLED) for what, alone in told.items())


@pytest.mark.parametrize(
    ("heads", "shared", "counts"),
    [(4, 2, [2, 4, 6, 8]), (1023, 1023, [1023, 2046]), (1024, 1024, []), (4, 0, []), (4, 8, []), (4, True, [])],
)
def test_layers_that_slide_have_heads_that_share_keys_evenly(heads, shared, counts):
    config = {"model_type": "laguna", "num_attention_heads": heads, "num_key_value_heads": shared}
    found = _sliding_heads(Record("org/model", config=config), SimpleNamespace(layer_count=5))
    assert [each["num_attention_heads_per_layer"] for _, each in found] == [[heads, n, n, n, heads] for n in counts]


def test_rows_for_padding_are_part_of_the_whole_that_a_total_decides_about():
    roberta = BERT | {"model_type": "roberta", "architectures": ["RobertaModel"]}
    ((words, whole),) = wholes(Record("org/model", config=roberta, config_kind="library_table"))
    rows = roberta["max_position_embeddings"] + 2
    assert words.startswith(f"{rows:,} rows of positions")
    assert [t.out_features for t in whole.tensors if t.role == "position_embedding"] == [rows]
