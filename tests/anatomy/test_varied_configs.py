"""What readers make of configs whose fields are varied one at a time (tests/golden/varied.csv): no branch beside published configs changes unseen,
and whatever a field holds, the answer is an anatomy or a reason."""

from __future__ import annotations

import pytest

from tests.golden import varied


@pytest.fixture(scope="module")
def kinds():
    return varied.all_kinds()


@pytest.mark.some(8)
@pytest.mark.parametrize("name", varied.read())
def test_every_variation_is_read_as_the_file_has_it(name, kinds):
    meant = f"where that is meant, `python -m tests.golden.varied` writes them anew; `--of {name}` tells each"
    assert varied.digest_of(kinds[name]) == varied.read()[name], meant


def test_the_file_has_a_model_of_each_type(kinds):
    assert kinds.keys() == varied.read().keys()


def test_a_type_that_no_published_config_has_is_varied_from_one_that_is_counted(kinds):
    first = kinds["vivit"].config
    assert not any(kind.config.get("model_type") == "vivit" for name, kind in kinds.items() if name != "vivit")
    asked = dict(varied.asked(kinds["vivit"]))
    assert asked[f"counted 0 {first['architectures'][0]}"] == first and len(kinds["vivit"].counted) > 1
    assert "architectures absent" in asked


def test_fields_that_are_left_to_the_class_are_said_otherwise(kinds):
    config = {k: v for k, v in kinds["vivit"].config.items() if k != "qkv_bias"}
    assert varied.left_out(config)["qkv_bias",] is True
    told = dict(varied.variations(config, []))
    assert told["qkv_bias said False"] == config | {"qkv_bias": False}
    assert {k for k in told if " said " in k} >= {"num_channels said 0", "num_channels said 4"}


def test_what_is_read_only_where_kinds_of_layers_are_not_listed_is_varied_without_the_list():
    config = {"model_type": "cohere2_moe", "layer_types": ["full_attention"] * 2, "first_k_dense_replace": 1}
    told = dict(varied.variations(config, []))
    assert told["layer_types absent, first_k_dense_replace 0"] == {
        "model_type": "cohere2_moe", "first_k_dense_replace": 0,
    }  # fmt: skip


def test_what_one_variation_reaches_is_felt(kinds, monkeypatch):
    kind = next(kind for kind in kinds.values() if kind.config.get("model_type") == "qwen3")
    before, read = varied.digest_of(kind), varied.said
    monkeypatch.setattr(varied, "said", lambda c: read(c) + " and more" * (c.get("attention_bias") is True))
    assert kind.config.get("attention_bias") is not True
    assert varied.digest_of(kind) != before


def test_fields_are_varied_where_they_are_nested_too():
    config = {"model_type": "a", "heads": 2, "text_config": {"is_tied": True, "kinds": ["x", "y"]}}
    told = dict(varied.variations(config, [{"heads": 2, "width": 5, "text_config": {"rank": 8}}]))
    assert told["heads absent"] == {"model_type": "a", "text_config": config["text_config"]}
    assert [told[f"heads {count}"]["heads"] for count in (0, 3, 4)] == [0, 3, 4]
    assert told["text_config.is_tied False"]["text_config"] == {"is_tied": False, "kinds": ["x", "y"]}
    assert told["text_config.kinds turned round"]["text_config"]["kinds"] == ["y", "x"]
    assert told["width 5"]["width"] == 5 and told["text_config.rank 8"]["text_config"]["rank"] == 8
    assert config["text_config"] == {"is_tied": True, "kinds": ["x", "y"]}


def test_what_belongs_together_is_varied_at_once():
    config = {"model_type": "a", "widths": [4, 8], "depths": [2, 3], "heads": 6, "inner": {"heads": 6}}
    told = dict(varied.variations(config, []))
    assert [told["widths and depths of 3"][name] for name in ("widths", "depths")] == [[4, 8, 4], [2, 3, 2]]
    assert "widths" not in told["widths and depths of None"] and "depths" not in told["widths and depths of None"]
    assert told["heads and inner.heads 12"] == config | {"heads": 12, "inner": {"heads": 12}}


def test_sizes_have_two_sides_beside_each_flag(kinds):
    config = next(kind.config for kind in kinds.values() if kind.config.get("model_type") == "beit")
    side = config["image_size"]
    told = dict(varied.variations({**config, "use_relative_position_bias": False}, []))
    both = told[f"use_relative_position_bias True, image_size {[side, 2 * side]}"]
    assert (both["use_relative_position_bias"], both["image_size"]) == (True, [side, 2 * side])


def test_what_is_asked_for_only_beside_another_change_is_varied_there(kinds, monkeypatch):
    monkeypatch.setattr(
        varied, "said", lambda c: str(varied.Fields(c).raw("depth") if varied.Fields(c).raw("is_deep") else 0)
    )
    kind = varied.Kind({"is_deep": False, "depth": 3}, [], [])
    told = dict(varied.answers(kind))
    assert told["is_deep True"] == "3" and told["is_deep True, depth 4"] == "4" and told["depth 4"] == "0"
