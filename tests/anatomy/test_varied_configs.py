"""What readers make of configs whose fields are varied one at a time (tests/golden/varied.csv): no branch beside published configs changes unseen,
and whatever a field holds, the answer is an anatomy or a reason."""

from __future__ import annotations

import pytest

from tests.golden import varied


@pytest.fixture(scope="module")
def kinds():
    return varied.kinds()


@pytest.mark.some(40)
@pytest.mark.parametrize("model_id", varied.read())
def test_every_variation_is_read_as_the_file_has_it(model_id, kinds):
    meant = f"where that is meant, `python -m tests.golden.varied` writes them anew; `--of {model_id}` tells each"
    assert varied.digest_of(*kinds[model_id]) == varied.read()[model_id], meant


def test_the_file_has_a_model_of_each_type(kinds):
    assert kinds.keys() == varied.read().keys()


def test_what_one_variation_reaches_is_felt(kinds, monkeypatch):
    config, others = next(of for of in kinds.values() if of[0].get("model_type") == "qwen3")
    before, read = varied.digest_of(config, others), varied.said
    monkeypatch.setattr(varied, "said", lambda c: read(c) + " and more" * (c.get("attention_bias") is True))
    assert config.get("attention_bias") is not True
    assert varied.digest_of(config, others) != before


def test_fields_are_varied_where_they_are_nested_too():
    config = {"model_type": "a", "heads": 2, "text_config": {"is_tied": True, "kinds": ["x", "y"]}}
    told = dict(varied.variations(config, [{"heads": 2, "width": 5, "text_config": {"rank": 8}}]))
    assert told["heads absent"] == {"model_type": "a", "text_config": config["text_config"]}
    assert told["heads 3"]["heads"] == 3 and told["heads 4"]["heads"] == 4
    assert told["text_config.is_tied False"]["text_config"] == {"is_tied": False, "kinds": ["x", "y"]}
    assert told["text_config.kinds turned round"]["text_config"]["kinds"] == ["y", "x"]
    assert told["width 5"]["width"] == 5 and told["text_config.rank 8"]["text_config"]["rank"] == 8
    assert config["text_config"] == {"is_tied": True, "kinds": ["x", "y"]}
