"""What single checkpoints hold beyond their config is a row, and applies only to the configs that the row is for."""

import csv
import json

from pipeline.anatomy.families import reader_for
from pipeline.confirm.gaps import FILE, fillings_of

STEP = {"model_type": "step3p7", "hidden_size": 64}


def filled(config, kind="verbatim"):
    found = (filling.changed(config) for filling in fillings_of(config.get("model_type"), kind))
    return [one for one in found if one]


def test_a_field_that_the_config_does_not_state_is_filled_in():
    ((words, config),) = filled(STEP)
    assert "96 heads" in words
    assert config == STEP | {"attention_other_setting": {"num_attention_heads": 96}}


def test_a_field_that_the_config_states_is_left_alone():
    assert filled(STEP | {"attention_other_setting": {"num_attention_heads": 64}}) == []


def test_a_filling_for_one_kind_of_config_is_tried_for_no_other():
    config = {"model_type": "mpnet", "max_position_embeddings": 512}
    ((words, changed),) = filled(config, "library_defaults")
    assert words.startswith("514 rows") and changed["max_position_embeddings"] == 514
    assert filled(config, "verbatim") == []


def test_a_default_of_a_class_is_only_replaced_where_it_is_that_default():
    llava = {"model_type": "vipllava", "text_config": {"vocab_size": 32000, "hidden_size": 64}, "vision_config": {}}
    ((_, changed),) = filled(llava, "library_defaults")
    assert changed["text_config"] == {"vocab_size": 32064, "hidden_size": 64}
    assert filled(llava | {"text_config": {"vocab_size": 32001}}, "library_defaults") == []


def test_what_a_source_quotes_stays_where_the_rest_is_filled_in():
    quoted = {"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": {"hidden_size": 1024}}}
    ((_, whole),) = filled(quoted, "quoted")
    text = whole["thinker_config"]["text_config"]
    assert (text["hidden_size"], text["num_attention_heads"]) == (1024, 32)


def test_a_value_may_be_that_of_another_field_and_is_none_where_that_is_missing():
    pooled = {"model_type": "glm5_next", "text_config": {"index_kpool": 16, "hidden_size": 96}}
    seeing = pooled | {"vision_config": {"out_hidden_size": 48}}
    ((_, changed),) = filled(seeing, "library_table")
    assert (changed["text_config"]["index_kpool"], changed["vision_config"]["out_hidden_size"]) == (4, 96)
    assert filled(pooled, "library_table") == []


def test_every_row_is_of_a_described_type_and_can_be_read():
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 30
    for row in rows:
        assert all(reader_for(name) for name in row["model_types"].split()), row
        assert row["value_json"].startswith("@") or json.loads(row["value_json"]) is not None
        assert row["stated"] in ("", "any", "kept") or json.loads(row["stated"]) is not None
