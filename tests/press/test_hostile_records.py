"""One record that is hostile, or just odd, costs that record: the build of all others goes on, and says which one and why."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest
from test_anatomise import CONFIG, record, tables

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.components import components
from pipeline.anatomy.fields import Fields
from pipeline.base.bounds import MOST_REPEATS
from pipeline.confirm import borrowing
from pipeline.hub import gguf, summary
from pipeline.hub.gguf_config import config_of
from pipeline.hub.record import read_record
from pipeline.press import anatomise as room
from pipeline.press import kept_grades
from pipeline.press.anatomise import UNREADABLE
from pipeline.press.quarantine import hold
from tests.press.mutations import originals

HALF = "\ud800"
NEST: list = []
for _ in range(100_000):
    NEST = [NEST]


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": [f"{HALF}X"]},
        {"architectures": [HALF], "model_type": "sideways"},
        {"rope_scaling": {"a": [{"b": HALF}]}},
        {"rope_scaling": {HALF: 1}},
        {HALF: 1},
        {"architectures": ["\x1b]0;x\x07"]},
        {"note": NEST},
    ],
    ids=lambda changes: next(iter(changes)).encode("ascii", "replace").decode(),
)
def test_text_that_cannot_be_published_costs_its_own_record(changes):
    made = tables(record("good"), record("bad", **changes))
    assert made["model"]["model_id"].to_list() == ["org/good"]
    (row,) = made["rejected"].to_dicts()
    assert row["model_id"] == "org/bad" and row["sources"] == "a-source"
    assert row["reason"].isascii() and row["reason"].isprintable() and UNREADABLE not in row["reason"]


def test_a_snapshot_says_which_record_holds_half_a_character():
    for config in ({"a": HALF}, {HALF: 1}, {"a": [{"b": {HALF: 0}}]}):
        reason = read_record({"model_id": "org/bad", "config": config})[1]
        assert "half a character" in reason and reason.isprintable()


@pytest.mark.parametrize(
    "name", ["read_config", "grade_with_header", "settled", "_model_row", "components", "_family", "hold"]
)
@pytest.mark.parametrize("mistake", [IndexError("list index out of range"), MemoryError(), RecursionError("too deep")])
def test_a_mistake_at_any_stage_costs_one_model(monkeypatch, name, mistake):
    place = kept_grades if name == "settled" else room
    real, calls = getattr(place, name), []

    def fails_for_the_second(*about):
        calls.append(about)
        if len(calls) == 2:
            raise mistake
        return real(*about)

    monkeypatch.setattr(place, name, fails_for_the_second)
    made = tables(record("good"), record("unlucky", total=None))
    assert made["model"]["model_id"].to_list() == ["org/good"]
    (row,) = made["rejected"].to_dicts()
    assert row["model_id"] == "org/unlucky" and type(mistake).__name__ in row["reason"]


def test_a_relative_that_cannot_be_sought_costs_one_model(monkeypatch):
    def fails(*_):
        raise KeyError("x")

    monkeypatch.setattr(borrowing, "borrow", fails)
    made = tables(record("good"), replace(record("bare"), config=None, config_kind=None))
    assert made["model"]["model_id"].to_list() == ["org/good"]
    assert made["rejected"]["model_id"].to_list() == ["org/bare"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"layer_count": 2**63}, "no integer"),
        ({"layer_count": 1.5}, "no integer"),
        ({"layer_count": -1}, "less than"),
        ({"mechanism": "psychic"}, "none of its values"),
        ({"kind": None}, "is not known, but must be"),
        ({"kind": "a\u202eb"}, "control character"),
        ({"kind": "=1+1"}, "spreadsheet"),
        ({"kind": "@SUM(1)"}, "spreadsheet"),
    ],
)
def test_rows_that_would_stop_the_build_are_refused_with_their_model(row, reason):
    (good,) = tables(record("good"))["attention_layer"].to_dicts()
    hold({"attention_layer": [good]})
    with pytest.raises(ContradictoryConfig, match=reason):
        hold({"attention_layer": [good | row]})
    with pytest.raises(ContradictoryConfig, match=f"its attention_layer has '{good['kind']}' twice"):
        hold({"attention_layer": [good, good]})


# ---- counts that multiply

COUNTS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "layers_per_block", "num_res_blocks")


def deepest(config, names=COUNTS):
    """Where these fields stand, at any depth."""
    if isinstance(config, dict):
        for key, value in config.items():
            if key in names and type(value) is int:
                yield config, key
            yield from deepest(value, names)


@pytest.mark.parametrize("count", [MOST_REPEATS + 1, 10**6, 10**8])
def test_a_count_that_multiplies_is_refused_beyond_one_bound(count):
    seen = set()
    for original in originals():
        config = json.loads(json.dumps(dict(original.config)))
        for holder, key in deepest(config):
            kind = (str(config.get("model_type", config.get("_class_name"))), key)
            if kind in seen:
                continue
            seen.add(kind)
            before, holder[key] = holder[key], count
            try:
                anatomy = read_config(config)
                beside = config.get("part_configs", {})
                name = next((name for name, held in beside.items() if held is holder), "vae")
                part = next((p for p in components(Fields(config), anatomy) if p.pipeline_part == name), None)
                if part is not None and key in COUNTS[3:]:
                    assert part.parameter_count is None
                    told = (f"{name}.{key} is {count}", "not described", f"and not with this {key}")
                    assert any(reason in part.unknown_reason for reason in told), part.unknown_reason
                assert len(anatomy.predicting) < 100
            except (ContradictoryConfig, UnknownAnatomy) as reason:
                assert len(str(reason)) < 300
            holder[key] = before
    assert len(seen) > 10


def test_a_reason_names_the_field_that_repeats_too_often():
    config = CONFIG | {"num_hidden_layers": 10**7}
    with pytest.raises(
        ContradictoryConfig, match=r"config\.num_hidden_layers is 10000000, more than any model repeats"
    ):
        read_config(config)


def test_nested_counts_do_not_multiply_beyond_what_a_model_has():
    vae = {"_class_name": "AutoencoderKL", "block_out_channels": [8] * 1000, "layers_per_block": 10_000}
    vae["latent_channels"] = 4
    config = next(r.config for r in originals() if r.config.get("_class_name") == "SD3Transformer2DModel")
    config = {**config, "_vae_config": vae}
    (part,) = (p for p in components(Fields(config), read_config(config)) if p.pipeline_part == "vae")
    assert part.parameter_count is None and "more than 100,000 rows" in part.unknown_reason


def test_a_summary_of_headers_does_not_name_more_layers_than_any_model_has():
    rows = [[f"a{i}.*.weight", "BF16", [1], 1, "0-999999"] for i in range(3)]
    held = {"format": "safetensors", "file": "model.safetensors", "file_count": 1, "tensors": rows}
    assert "layers" in summary.problem_of(held)
    assert summary.problem_of(held | {"tensors": [[*rows[0][:4], "0-99"]]}) is None
    assert "layers" in summary.problem_of(held | {"tensors": [[*rows[0][:4], ",".join(["0-9999"] * 50)]]})


def test_a_gguf_file_of_too_many_blocks_gives_no_config():
    sizes = {"embedding_length": 64, "context_length": 512, "attention.head_count": 4, "attention.head_count_kv": 2}
    metadata = {"general.architecture": "llama", **{f"llama.{name}": size for name, size in sizes.items()}}
    tensors = [("token_embd.weight", "F16", [100, 64])]
    assert config_of(metadata | {"llama.block_count": 2}, tensors)["num_hidden_layers"] == 2
    assert config_of(metadata | {"llama.block_count": 10**7}, tensors) is None
    assert config_of(metadata | {"llama.block_count": MOST_REPEATS + 1}, tensors) is None


def test_a_gguf_array_longer_than_any_number_of_layers_is_passed_over():
    def array(count: int) -> bytes:
        return struct.pack("<IQ", 4, count) + b"\0\0\0\0" * count

    assert len(gguf._Reader(array(3)).value(9)) == 3
    assert gguf._Reader(array(MOST_REPEATS + 1)).value(9) is None


@pytest.mark.parametrize(
    ("model_type", "path", "value", "field"),
    [
        ("wav2vec2", ("conv_stride",), [0, 2], None),
        ("wav2vec2", ("conv_stride",), ["a"], None),
        ("wav2vec2", ("conv_dim",), [[1]], None),
        ("gemma3", ("vision_config", "image_size"), 1, None),
        ("idefics3", ("vision_config", "image_size"), 1, None),
        ("llama4", ("vision_config", "image_size"), 1, None),
        ("llama4", ("vision_config", "pixel_shuffle_ratio"), 1e300, None),
        ("ernie4_5_vl_moe", ("text_config", "moe_intermediate_size"), [], "moe_intermediate_size"),
    ],
)
def test_odd_sizes_of_a_tower_are_a_reason_and_no_mistake_of_ours(model_type, path, value, field):
    found = 0
    for original in originals():
        if original.config.get("model_type") != model_type:
            continue
        config = json.loads(json.dumps(dict(original.config)))
        holder = config
        for name in path[:-1]:
            holder = holder.setdefault(name, {}) if isinstance(holder.get(name, {}), dict) else {}
        holder[path[-1]] = value
        found += 1
        try:
            assert not read_config(config).towers
        except (ContradictoryConfig, UnknownAnatomy) as reason:
            assert field is None or field in str(reason)
    assert found or model_type in ("wav2vec2", "ernie4_5_vl_moe")


@pytest.mark.parametrize("patch", [[], ["a"], {}, [0], "x"])
def test_a_denoiser_with_an_odd_patch_has_no_widths(patch):
    config = next(r.config for r in originals() if r.config.get("_class_name") == "SD3Transformer2DModel")
    anatomy = read_config(config)
    assert components(Fields(config), anatomy)[0].hidden_size
    assert components(Fields({**config, "patch_size": patch}), anatomy)[0].hidden_size is None
