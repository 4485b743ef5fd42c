"""What keeps a release back: models, answers, accuracy or the promise lost, each told with its numbers; and how it is let through knowingly."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import polars as pl
import pytest

from pipeline.base.failures import Failure
from pipeline.book import promise
from pipeline.press import changes, digest, gates, manifest
from pipeline.press import publish as publishing
from pipeline.press.digest import Digest
from pipeline.press.measures import take
from pipeline.release import notes
from tests.press.test_changes import BEFORE, VERSIONS
from tests.press.test_publish import SNAPSHOT, contents, run, stages  # noqa: F401

MEASURES = {
    "rows": {"model": 1000.0, "gpu": 156.0, "footprint": 1e6, "support": 60.0, "rejected": 9.0},
    "models": {"all": 1000.0, "text-generation": 600.0, "depth-estimation": 4.0},
    "coverage_models": {"all": 0.6, "text-generation": 0.9, "depth-estimation": 0.5},
    "coverage_downloads": {"all": 0.66, "text-generation": 0.9, "depth-estimation": 0.5},
    "compared": {"peak_allocated lora transformers A": 6.0},
    "error_median": {"peak_allocated lora transformers A": 0.01},
    "error_p95": {"peak_allocated lora transformers A": 0.03},
    "wrong_fits": {"peak_allocated lora transformers A": 0.0},
}
PROMISE = promise.describe()


def release(measures=None, schema=None):
    return replace(BEFORE, basis=BEFORE.basis | {"measures": measures or MEASURES, "promise": schema or PROMISE})


def with_measure(measure, kind, value):
    changed = copy.deepcopy(MEASURES)
    if value is None:
        del changed[measure][kind]
    else:
        changed[measure][kind] = value
    return changed


def test_a_release_like_the_last_passes_and_so_does_the_first():
    assert gates.refused(release(), release()) == [] == gates.refused(None, release())


@pytest.mark.parametrize(
    ("measure", "kind", "value", "said"),
    [
        ("rows", "model", 949.0, "rows: rows of the table model fell from 1,000 to 949; at most 5 % may be lost"),
        ("rows", "gpu", 155.0, "rows: rows of the table gpu fell from 156 to 155; none may be lost"),
        ("rows", "support", None, "rows: rows of the table support fell from 60 to 0; at most 50 % may be lost"),
        ("models", "text-generation", 400.0, "fell from 600 to 400"),
        ("coverage_models", "all", 0.58, "fell from 60.00 % to 58.00 %; at most 1 points may be lost"),
        ("coverage_downloads", "text-generation", 0.7, "text-generation fell from 90.00 % to 70.00 %"),
        ("compared", "peak_allocated lora transformers A", 5.0, "none may be lost"),
        ("error_median", "peak_allocated lora transformers A", 0.03, "rose from 1.00 % to 3.00 %"),
        ("error_p95", "peak_allocated lora transformers A", 0.07, "at most 3 points may be added"),
        ("wrong_fits", "peak_allocated lora transformers A", 1.0, "rose from 0 to 1; it may not rise"),
    ],
)
def test_what_is_lost_is_told_with_its_numbers_its_row_and_its_reason(measure, kind, value, said):
    (told,) = gates.refused(release(), release(with_measure(measure, kind, value)))
    line = int(told.rpartition("tables/gate.csv:")[2].partition(":")[0])
    row = gates.FILE.read_text(encoding="utf-8").splitlines()[line - 1]
    assert said in told and row.startswith(f"{measure},")


@pytest.mark.parametrize(
    ("measure", "kind", "value"),
    [
        ("rows", "model", 951.0),
        ("rows", "model", 2000.0),
        ("models", "depth-estimation", None),  # four models are no kind to measure by
        ("coverage_models", "depth-estimation", 0.0),
        ("coverage_models", "all", 0.595),
        ("error_p95", "peak_allocated lora transformers A", 0.05),
        ("error_p95", "peak_allocated lora transformers A", 0.0),
        ("compared", "peak_allocated lora transformers A", 7.0),
    ],
)
def test_what_moves_within_its_bounds_or_for_the_better_passes(measure, kind, value):
    assert gates.refused(release(), release(with_measure(measure, kind, value))) == []


def test_a_broken_promise_keeps_a_release_back_unless_its_version_says_so():
    changed = copy.deepcopy(PROMISE)
    del changed["tables"]["gpu"]["columns"]["capacity_bytes"]
    (told,) = gates.refused(release(), release(schema=changed))
    assert told == "promise: column gpu.capacity_bytes is gone: a major version"
    assert gates.refused(release(), release(schema=changed | {"schema_version": "2.0.0"})) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("models,all,falls,x,share,,why", "could not convert"),
        ("model,all,falls,0.1,share,,why", "gate.csv:2: a row names a measure"),
        ("models,all,moves,0.1,share,,why", "a row names a measure"),
        ("models,all,falls,0.1,share,,", "a reason"),
    ],
)
def test_a_gate_that_cannot_be_used_is_an_error_with_its_line(tmp_path, row, said):
    (tmp_path / "gate.csv").write_text(f"measure,kind,moves,most,as,least_models,reason\n{row}\n")
    with pytest.raises(gates.GateError, match=said):
        gates.gates(tmp_path / "gate.csv")


def test_measures_are_those_of_the_tables(tmp_path):
    pl.DataFrame(
        {"model_id": ["a", "b", "c"], "pipeline_tag": ["text", "text", None], "downloads_30d": [10, 30, None]}
    ).write_parquet(tmp_path / "model.parquet")
    pl.DataFrame(
        {
            "metric": ["m", "n"], "phase_id": ["p", "p"], "engine_id": ["e", "e"], "strict_set": ["A", "A"], "row_count": [2, 0],
            "median_error": [-0.1, None], "p95_error": [0.2, None], "wrong_fits_count": [1, None],
        }
    ).write_parquet(tmp_path / "accuracy.parquet")  # fmt: skip
    found = take(tmp_path, ["a"])
    assert found["models"] == {"all": 3, "none": 1, "text": 2} and found["rows"] == {"model": 3, "accuracy": 2}
    assert found["coverage_models"] == {"all": round(1 / 3, 6), "none": 0, "text": 0.5}
    assert found["coverage_downloads"] == {"all": 0.25, "text": 0.25}
    assert (found["error_median"], found["compared"]) == ({"m p e A": 0.1}, {"m p e A": 2})


@pytest.fixture
def gated(stages, monkeypatch):  # noqa: F811
    """A publish whose tables have lost a card since the last release."""
    ran, root, folder = stages
    now = release(with_measure("rows", "gpu", 155.0))

    def write(tables, sources, versions, kept, records, packs):
        (tables / changes.SUMMARY).write_text('{"since": null}')
        digest.write(now, tables)
        return now

    run(root, folder)
    digest.keep(release(), root / publishing.RELEASE)
    monkeypatch.setattr(publishing.changes, "write", write)
    return ran, root, folder


def test_a_publish_that_a_gate_refuses_publishes_nothing_and_says_why(gated):
    _ran, root, folder = gated
    before = contents(folder)
    with pytest.raises(publishing.PublishError) as refused:
        run(root, folder)
    said = str(refused.value)
    assert "the release is refused, and the last one stays: 1 gate failed" in said
    assert "fell from 156 to 155" in said and "ARGS=\"--accept 'the reason" in said
    assert contents(folder) == before and manifest.damage(folder / "tables") == []


def test_it_is_published_knowingly_and_the_reason_stays_in_the_notes(gated):
    _ran, root, folder = gated
    done = publishing.publish(SNAPSHOT, lambda rows, **_: rows, folder, root, accept="that card was never sold")
    assert done.rebuilt == ("tables", "site")
    summary = json.loads((folder / "tables" / changes.SUMMARY).read_text())
    assert (
        summary["accepted"]["reason"] == "that card was never sold" and "156 to 155" in summary["accepted"]["gates"][0]
    )
    told = "\n".join(notes.lines(summary))
    assert "The reason: that card was never sold" in told and "fell from 156 to 155" in told


def test_an_older_snapshot_than_the_last_is_kept_back():
    old = replace(release(), basis=release().basis | {"snapshot_date": "2026-01-01"})
    (told,) = gates.refused(release(), old)
    assert "it is of 2026-01-01, and that of the last release of 2026-01-02" in told
    assert gates.refused(old, release()) == []


def test_a_lower_version_than_the_last_is_an_error():
    with pytest.raises(Failure, match=r"1\.0\.0, and 2\.0\.0 was released before"):
        gates.refused(release(schema=PROMISE | {"schema_version": "2.0.0"}), release())


def test_a_digest_from_before_there_were_measures_refuses_nothing():
    old = Digest(BEFORE.models, BEFORE.numbers, VERSIONS | {"capacities": {}})
    assert gates.refused(old, release()) == []
