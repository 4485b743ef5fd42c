"""The snapshot of the Hub: what the bundled one holds, and that no malformed line can stop or mislead a build."""

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.book.facts import TABLES, read_table
from pipeline.book.schema import FACTS
from pipeline.hub.record import EXACT_KINDS, Record, read_record
from pipeline.hub.snapshot import FOLDER, SnapshotError, newest_snapshot, snapshot_in


@pytest.fixture(scope="module")
def bundled():
    return snapshot_in(FOLDER)


def write_snapshot(folder, *lines, date="2026-01-02", popularity=None):
    (folder / "model").mkdir(parents=True, exist_ok=True)
    about = {"snapshot_date": date, "origin": "crawl", "record_count": len(lines)}
    (folder / "snapshot.json").write_text(json.dumps(about))
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "model" / "a.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    if popularity is not None:
        (folder / "popularity.csv").write_text("model_id,downloads_30d,likes,facts_as_of\n" + popularity)
    return folder


GOOD = {"model_id": "org/good", "stored_parameter_count": 10, "parameters_kind": "exact_safetensors", "sources": ["a"]}


def test_the_bundled_snapshot_is_read_whole(bundled):
    assert len(bundled.records) == json.loads((FOLDER / "snapshot.json").read_text())["record_count"]
    assert bundled.rejected == ()
    assert len(bundled.popularity) > 3000


def test_every_source_of_the_bundled_snapshot_is_in_the_book(bundled):
    known = set(read_table(TABLES / "facts" / "source.csv", FACTS["source"])["source_id"])
    cited = {source for record in bundled.records for source in record.source_ids}
    assert cited <= known
    assert set(json.loads((FOLDER / "snapshot.json").read_text())["sources"]) <= known


def test_every_config_of_the_bundled_snapshot_says_how_far_it_may_be_trusted(bundled):
    for record in bundled.records:
        if record.config is not None:
            assert record.config_kind and record.config_source and record.config_sources, record.model_id


def test_no_context_is_that_of_a_copy_cut_for_a_chip(bundled):
    """LLM-TPU keeps configs with the length that it compiled: MiniCPM-V 2.6 "read 512 tokens"."""
    cut = ("max_position_embeddings", "seq_length")
    for record in bundled.records:
        if str(record.config_source).startswith("llm-tpu") and record.config:
            inner = record.config.get("llm_config") or record.config
            assert all(inner.get(name, 4096) > 1024 for name in cut), record.model_id


def test_only_exact_totals_count_as_stored_totals(bundled):
    for record in bundled.records:
        assert record.stored_parameter_count is None or record.parameters_kind in EXACT_KINDS, record.model_id
        assert record.approximate_parameter_count is None or record.parameters_kind in ("rounded", "estimate")


def test_files_are_sorted_and_small_so_that_a_diff_shows_a_change_line_by_line():
    for path in (FOLDER / "model").glob("*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        ids = [json.loads(line)["model_id"] for line in lines]
        assert ids == sorted(ids), path.name
        assert all(
            line == json.dumps(json.loads(line), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            for line in lines
        )
        assert path.stat().st_size < 1.5e6, path.name


def test_date_and_age_are_said(tmp_path):
    snapshot = newest_snapshot(write_snapshot(tmp_path, GOOD))
    assert snapshot.age_days(datetime.date(2026, 1, 12)) == 10
    said = snapshot.describe(datetime.date(2026, 1, 3))
    assert "2026-01-02" in said and "1 day old" in said and "crawl" in said


def test_the_newest_of_several_snapshots_is_taken(tmp_path):
    write_snapshot(tmp_path, GOOD, date="2026-01-02")
    write_snapshot(tmp_path / "later", GOOD, {"model_id": "org/new"}, date="2026-02-03")
    snapshot = newest_snapshot(tmp_path)
    assert snapshot.date == datetime.date(2026, 2, 3)
    assert len(snapshot.records) == 2


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"snapshot_date": "soon"}', '{"snapshot_date": 3}', "\x00"])
def test_no_readable_snapshot_is_an_error_for_people(tmp_path, content):
    if content is not None:
        (tmp_path / "snapshot.json").write_text(content)
    with pytest.raises(SnapshotError, match="no snapshot of the Hub in"):
        newest_snapshot(tmp_path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**GOOD, "stored_parameter_count": -1}, "stored_parameter_count is -1"),
        ({**GOOD, "stored_parameter_count": 0}, "stored_parameter_count is 0"),
        ({**GOOD, "stored_parameter_count": 1.5}, "not a whole number"),
        ({**GOOD, "stored_parameter_count": True}, "not a whole number"),
        ({**GOOD, "stored_parameter_count": "10"}, "not a whole number"),
        ({**GOOD, "stored_parameter_count": 10**18}, "outside 1 to"),
        ({**GOOD, "parameters_kind": "estimate"}, "no exact total"),
        ({**GOOD, "parameters_kind": "guess"}, "none of exact_safetensors"),
        ({**GOOD, "storage_bytes": -5}, "storage_bytes is -5"),
        ({**GOOD, "parameters_by_dtype": {"BF16": -5}}, "parameters_by_dtype"),
        ({**GOOD, "is_gated": "yes"}, "neither true nor false"),
        ({**GOOD, "config": [1]}, "config is [1], not an object"),
        ({**GOOD, "config_kind": "verbatim"}, "without a config"),
        ({**GOOD, "license": "a\x1b[31mred"}, "control character"),
        ({**GOOD, "license": "x" * 5000}, "longer than"),
        ({**GOOD, "sources": "a"}, "not a list of texts"),
        ({**GOOD, "colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_a_record_that_contradicts_itself_is_rejected_and_the_others_are_used(tmp_path, line, reason):
    snapshot = newest_snapshot(write_snapshot(tmp_path, line, {**GOOD, "model_id": "org/other"}))
    assert [record.model_id for record in snapshot.records] == ["org/other"]
    (rejected,) = snapshot.rejected
    assert rejected.model_id == "org/good"
    assert reason in rejected.reason


@pytest.mark.parametrize(
    "model_id",
    [
        "good",
        "a/b/c",
        "../b",
        "a/..",
        "a/../b",
        "/etc/passwd",
        "a/b\n",
        "a/b c",
        "a/\x00",
        "a\\b/c",
        "",
        None,
        5,
        "-a/b",
        "a/.b",
        "a/" + "b" * 99,
    ],
)
def test_a_record_without_a_usable_id_is_rejected_by_its_line(tmp_path, model_id):
    snapshot = newest_snapshot(write_snapshot(tmp_path, GOOD, {**GOOD, "model_id": model_id}))
    assert len(snapshot.records) == 1
    (rejected,) = snapshot.rejected
    assert rejected.model_id == "model/a.jsonl:2"
    assert "model_id is not organisation/name" in rejected.reason


@pytest.mark.parametrize(
    "line", ["{", "nonsense", "[1]", "3", '{"model_id": NaN}', '{"a":1,"a":2}', "[" * 100000, "9" * 5000]
)
def test_a_line_that_is_no_record_is_rejected_by_its_line(tmp_path, line):
    snapshot = newest_snapshot(write_snapshot(tmp_path, line, GOOD))
    assert [record.model_id for record in snapshot.records] == ["org/good"]
    assert snapshot.rejected[0].model_id == "model/a.jsonl:1"


def test_a_model_listed_twice_keeps_its_first_record(tmp_path):
    snapshot = newest_snapshot(write_snapshot(tmp_path, GOOD, {**GOOD, "stored_parameter_count": 99}))
    assert [record.stored_parameter_count for record in snapshot.records] == [10]
    assert "listed again at model/a.jsonl:2" in snapshot.rejected[0].reason


def test_text_that_is_not_utf8_is_rejected_by_its_line(tmp_path):
    write_snapshot(tmp_path, GOOD)
    with (tmp_path / "model" / "a.jsonl").open("ab") as file:
        file.write(b'{"model_id": "org/\xff"}\n')
    assert newest_snapshot(tmp_path).rejected[0].model_id == "model/a.jsonl:2"


@pytest.mark.parametrize(
    "row", ["org/good,-5,1,2026-01", "org/good,1e9,1,2026-01", "../x,1,1,2026-01", "org/good,1,1", "org/good,1,1,"]
)
def test_popularity_that_is_no_count_is_rejected_by_its_line(tmp_path, row):
    snapshot = newest_snapshot(write_snapshot(tmp_path, GOOD, popularity=f"org/fine,7,,2026-01\n{row}\n"))
    assert snapshot.popularity["org/fine"].downloads_30d == 7
    assert snapshot.popularity["org/fine"].likes is None
    assert [rejected.model_id for rejected in snapshot.rejected] == ["popularity.csv:3"]


def test_a_snapshot_whose_models_are_all_gone_is_an_error(tmp_path):
    write_snapshot(tmp_path, GOOD)
    (tmp_path / "model" / "a.jsonl").unlink()
    with pytest.raises(SnapshotError, match="should hold 1 models"):
        newest_snapshot(tmp_path)


def test_a_crawl_that_is_being_written_is_not_read(tmp_path):
    write_snapshot(tmp_path, GOOD, date="2026-01-02")
    write_snapshot(tmp_path / ".crawl-next", GOOD, {"model_id": "org/new"}, date="2026-02-03")
    assert len(newest_snapshot(tmp_path).records) == 1
    # the last crawl, for the moment between two renames
    write_snapshot(tmp_path / ".crawl-previous", GOOD, {"model_id": "org/new"}, date="2026-02-03")
    assert len(newest_snapshot(tmp_path).records) == 2


def test_rejected_rows_of_a_crawl_are_read_and_odd_ones_left_out(tmp_path):
    write_snapshot(tmp_path, GOOD)
    rows = [
        "model_id,revision,reason,sources",
        'org/bad,abc,"not JSON, at all",huggingface-hub',
        "org/x",
        ",,,",
        "a,b,\x1b,c",
        "a,b,c,d,e",
    ]
    (tmp_path / "rejected.csv").write_text("\n".join(rows) + "\n")
    (rejected,) = newest_snapshot(tmp_path).rejected
    assert (rejected.model_id, rejected.reason, rejected.sources) == ("org/bad", "not JSON, at all", "huggingface-hub")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(sorted(GOOD)), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*Record.__dataclass_fields__, "colour"]), JSON) | JSON)
def test_whatever_json_comes_is_a_record_or_a_reason(raw):
    for value in (raw, {**GOOD, **raw} if isinstance(raw, dict) else raw):
        record, reason = read_record(value)
        assert (record is None) != (reason is None)
        if record:
            assert record.model_id.count("/") == 1 and record.source_ids is not None
