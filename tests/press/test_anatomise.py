"""One bad record never stops a build: it is a row of `rejected` or a model of unknown anatomy, each with its reason."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from pipeline.hub.record import Record
from pipeline.hub.snapshot import Popularity, Rejected, Snapshot
from pipeline.press import anatomise as room
from pipeline.press.anatomise import UNREADABLE, anatomise

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
# 2 × (q, o: 64·64 each; k, v: 64·32 each; three of 64·128; two norms) + embedding and head of 100·64 + the last norm
COUNT = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64


def record(name: str, total: int | None = COUNT, **changes) -> Record:
    return Record(
        model_id=f"org/{name}",
        config=CONFIG | changes,
        config_kind="verbatim",
        stored_parameter_count=total,
        parameters_kind="exact_safetensors" if total else None,
        sources=("a-source",),
    )


def tables(*records: Record, rejected: tuple[Rejected, ...] = ()):
    snapshot = Snapshot(
        folder=None,
        date=datetime.date(2026, 1, 2),
        origin="test",
        records=records,
        popularity={"org/good": Popularity(7, 3, "2026-01")},
        rejected=rejected,
    )
    return anatomise(snapshot)


def test_a_good_record_becomes_a_model_with_a_census():
    made = tables(record("good"))
    (model,) = made["model"].to_dicts()
    assert model["anatomy_grade"] == "exact"
    assert model["parameter_count"] == COUNT
    assert (model["downloads_30d"], model["likes"], model["facts_as_of"]) == (7, 3, "2026-01")
    assert made["tensor"]["element_count"].sum() == COUNT
    assert made["attention_layer"].select("layer_count", "elements_per_token").rows() == [(2, 2 * 2 * 16)]
    assert made["rejected"].is_empty()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record("bad", num_hidden_layers=-2), "num_hidden_layers"),
        (record("bad", num_attention_heads=3, num_key_value_heads=2), "3"),
        (record("bad", hidden_size="wide"), "hidden_size"),
        (record("bad", total=COUNT * 1000), "published total"),
        (record("bad", total=COUNT // 1000), "published total"),
    ],
)
def test_a_contradiction_is_quarantined_and_the_build_goes_on(bad, reason):
    made = tables(bad, record("good"))
    assert made["model"]["model_id"].to_list() == ["org/good"]
    (row,) = made["rejected"].to_dicts()
    assert row["model_id"] == "org/bad"
    assert reason in row["reason"]
    assert row["sources"] == "a-source"


@pytest.mark.parametrize(
    ("unclear", "reason"),
    [
        (replace(record("x"), config=None, config_kind=None), "config"),
        (record("x", vocab_size=None), "vocab_size"),
        (record("x", total=None, model_type="nobody_knows"), "nobody_knows"),
        (replace(record("x", total=None), config_kind="partial"), "dims"),
        (replace(record("x", total=None), config_kind="assumed"), "source"),
    ],
)
def test_what_is_not_determined_is_unknown_with_its_reason_and_shows_no_figure(unclear, reason):
    made = tables(unclear)
    (model,) = made["model"].to_dicts()
    assert model["anatomy_grade"] == "unknown"
    assert reason in model["anatomy_note"]
    assert model["parameter_count"] is None
    assert made["tensor"].is_empty()


def test_lines_that_the_snapshot_could_not_read_are_published_as_rejected():
    made = tables(record("good"), rejected=(Rejected("model/a.jsonl:7", "not readable as JSON"),))
    assert made["rejected"]["reason"].to_list() == ["not readable as JSON"]


def test_a_mistake_in_a_reader_costs_one_model(monkeypatch):
    real = room.read_config

    def reader(config):
        if config["vocab_size"] == 101:
            raise IndexError("list index out of range")
        return real(config)

    monkeypatch.setattr(room, "read_config", reader)
    made = tables(record("good"), record("unlucky", vocab_size=101))
    assert made["model"]["model_id"].to_list() == ["org/good"]
    assert made["rejected"]["reason"].to_list() == [f"{UNREADABLE}: IndexError: list index out of range"]


def test_no_reader_fails_on_the_bundled_snapshot(anatomies):
    failed = anatomies["rejected"].filter(anatomies["rejected"]["reason"].str.starts_with(UNREADABLE))
    assert failed.is_empty(), failed.rows()


def test_a_head_that_may_be_its_own_is_counted_where_the_shape_is_not_the_models_own():
    """A total with room for a second embedding: stored twice by a model that says it is tied and by its makers' copies, maybe loaded twice elsewhere."""
    own = record("own", tie_word_embeddings=True)
    copy = replace(record("copy", tie_word_embeddings=True), config_kind="sibling")
    elsewhere = replace(copy, model_id="other/taken-over")
    rows = tables(own, copy, elsewhere)["model"].select("model_id", "parameter_count", "anatomy_grade").rows()
    once = COUNT - 100 * 64
    assert sorted(rows) == [
        ("org/copy", once, "matched"),
        ("org/own", once, "exact"),
        ("other/taken-over", COUNT, "derived"),
    ]
