"""A crawl of models as they are: configs of the bundled snapshot, served by the Hub, read, merged and graded."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from pipeline.hub.snapshot import FOLDER, snapshot_in
from pipeline.press.anatomise import anatomise
from tests.fake_hub.models import row

COUNT = 60


@pytest.fixture(scope="module")
def bundled():
    return snapshot_in(FOLDER)


@pytest.fixture
def served(case, bundled):
    """The bundled snapshot beneath, and a Hub that has some of its models with their own configs."""
    shutil.copytree(FOLDER / "model", case.folder / "model")
    for name in ("snapshot.json", "popularity.csv"):
        shutil.copy(FOLDER / name, case.folder)
    own = [r for r in bundled.records if r.config_kind == "verbatim" and r.stored_parameter_count]
    case.hub.granted = {None}
    chosen = own[:: max(1, len(own) // COUNT)][:COUNT]
    for record in chosen:
        total = {"total": record.stored_parameter_count, "parameters": dict(record.parameters_by_dtype or {}) or None}
        more = {"safetensors": total, "gated": "auto" if record.is_gated else False}
        case.hub.models.append(row(record.model_id, **more))
        case.hub.files[record.model_id, "config.json"] = json.dumps(record.config).encode()
    return case, {record.model_id for record in chosen}


def grades(snapshot, chosen):
    frames = anatomise(replace(snapshot, records=tuple(r for r in snapshot.records if r.model_id in chosen)))
    return {r["model_id"]: r["anatomy_grade"] for r in frames["model"].iter_rows(named=True)}


@pytest.mark.full
def test_models_of_the_book_come_out_of_a_crawl_as_well_known_as_before(served, bundled):
    case, chosen = served
    done = case.crawl(recheck_count=0)
    assert (done.read, done.written, done.rejected) == (len(chosen), len(bundled.records), 0)
    crawled = case.snapshot()
    assert crawled.origin == "crawl"
    assert {r.model_id for r in crawled.records} == {r.model_id for r in bundled.records}
    untouched = {r.model_id: r for r in bundled.records if r.model_id not in chosen}
    assert {r.model_id: r for r in crawled.records if r.model_id not in chosen} == untouched
    before, after = (grades(s, chosen) for s in (bundled, crawled))
    assert after == before and len(after) == len(chosen)
    for record in crawled.records:
        if record.model_id in chosen:
            assert record.config_kind == "verbatim" and record.revision
    stable = case.stable()
    again = case.crawl(recheck_count=0)
    assert (again.read, case.stable() == stable) == (0, True)


def test_a_model_rejected_by_the_crawl_and_by_anatomy_is_one_row(case):
    """The older record contradicts itself, and the newer commit cannot be read: the published key is still unique."""
    liar = {"stored_parameter_count": 5, "parameters_kind": "exact_safetensors", "parameters_sources": ["s"]}
    shape = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 99,
    }
    config = {
        "config": {**shape, "intermediate_size": 64},
        "config_kind": "quoted",
        "config_source": "s",
        "config_sources": ["s"],
    }
    case.bundle({"model_id": "org/a", "sources": ["s"], **liar, **config})
    case.hub.models.append(row("org/a"))
    case.hub.files["org/a", "config.json"] = b"<html>"
    case.crawl()
    rejected = anatomise(case.snapshot())["rejected"]
    assert rejected["model_id"].to_list() == ["org/a"]
    assert "HTML" in rejected["reason"][0] and "published total" in rejected["reason"][0]


def test_files_kept_elsewhere_are_followed_there_without_the_token(case, monkeypatch):
    """The Hub sends large files to storage of another name; that is no request of the Hub's count."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_a_test")
    case.add("org/a")
    seen = []

    def redirect(handler):
        if "/resolve/" in handler.path:
            port = handler.server.server_port
            handler.reply(302, b"", Location=f"http://localhost:{port}/storage/config")
            return True
        if handler.path == "/storage/config":
            seen.append(handler.headers.get("authorization"))
            handler.reply(200, b'{"model_type": "llama"}')
            return True
        return False

    case.hub.faults.append(redirect)
    done = case.crawl(trending_share=0)
    assert seen == [None]
    assert done.requests == {"api": 1, "file": 1, "storage": 1}
    assert case.records()["org/a"]["config"] == {"model_type": "llama"}
