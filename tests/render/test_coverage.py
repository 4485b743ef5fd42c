"""The coverage page by kind of repository: each is counted once, under what it is."""

import duckdb
import pytest

from pipeline.render.pages.coverage import coverage

# name, holds, grade, downloads, program of the container
MODELS = [
    ("a/plain", None, "declared", 100, None),
    ("a/unread", None, "unknown", 50, None),
    ("a/files", "files of several models", "unknown", 40, None),
    ("a/untold", "files of several models", "unknown", 10, None),
    ("a/adapter", "an adapter", "unknown", 7, None),
    ("a/pictures", None, "declared", 30, None),
    ("a/half", None, "declared", 20, None),
    ("a/half-named", None, "declared", 5, None),
    ("a/copy-ov", None, "declared", 60, "OpenVINO"),
]
WEIGHED = ("a/half", "a/half-named")  # by their weights alone
PARTS = [
    ("a/pictures", "Known", None),
    ("a/half", "Known", None),
    ("a/half", "Other", None),
    ("a/half-named", "Known", "not recorded"),
]


@pytest.fixture
def folder(tmp_path):
    with duckdb.connect(str(tmp_path / "almanac.duckdb")) as connection:
        connection.execute("CREATE SCHEMA internal")
        connection.execute("CREATE TABLE internal.model_container (model_id VARCHAR, program_name VARCHAR)")
        connection.execute(
            "CREATE TABLE model (model_id VARCHAR, holds VARCHAR, anatomy_grade VARCHAR, downloads_30d BIGINT, "
            "pipeline_tag VARCHAR, anatomy_note VARCHAR)"
        )
        connection.execute("CREATE TABLE component (model_id VARCHAR, class_name VARCHAR, unknown_reason VARCHAR)")
        connection.execute("CREATE TABLE pipeline_stage (class_name VARCHAR)")
        connection.execute("CREATE TABLE repository_file (model_id VARCHAR, path VARCHAR)")
        for name, holds, grade, downloads, program in MODELS:
            connection.execute("INSERT INTO model VALUES (?, ?, ?, ?, NULL, 'why')", [name, holds, grade, downloads])
            if program:
                connection.execute("INSERT INTO internal.model_container VALUES (?, ?)", [name, program])
        connection.executemany("INSERT INTO component VALUES (?, ?, ?)", PARTS)
        connection.execute("CREATE TABLE footprint (model_id VARCHAR, total_bytes BIGINT)")
        totals = [(name, None if name in WEIGHED else 1) for name, _holds, grade, *_ in MODELS if grade != "unknown"]
        connection.executemany("INSERT INTO footprint VALUES (?, ?)", totals)
        connection.execute("INSERT INTO pipeline_stage VALUES ('Known')")
        connection.execute("INSERT INTO repository_file VALUES ('a/files', 'one'), ('a/files', 'two')")
    return tmp_path


def test_each_repository_is_counted_once_under_its_kind(folder):
    kinds = coverage(folder, {name: name for name, *_ in MODELS})["kinds"]
    told = {
        row["kind"]: (row["models"], row["told"], row["told_by_file"], row["share"], row["with_files"]) for row in kinds
    }
    assert told == {
        "one model in the usual files": (2, 1, 0, "66.7 %", "66.7 %"),
        "copies for OpenVINO": (1, 1, 0, "100.0 %", "100.0 %"),
        "files of several models, or no single one": (2, 0, 1, "0.0 %", "80.0 %"),
        "whole pipelines of pictures, videos and sound": (1, 1, 0, "100.0 %", "100.0 %"),
        "pipelines of pictures, videos and sound of which a part is not known": (2, 0, 0, "0.0 %", "100.0 %"),
        "adapters": (1, 0, 0, "0.0 %", "0.0 %"),
    }
    assert [row["models"] for row in kinds][:2] == [2, 1]  # the most downloaded first


def test_a_file_without_formulas_has_no_kinds(folder):
    with duckdb.connect(str(folder / "almanac.duckdb")) as connection:
        connection.execute("DROP TABLE internal.model_container")
    page = coverage(folder, {name: name for name, *_ in MODELS})
    assert page["kinds"] == [] and page["whole"]["models"] == len(MODELS)


def test_what_only_weights_are_known_of_is_not_answered(folder):
    whole = coverage(folder, {name: name for name, *_ in MODELS})["whole"]
    assert (whole["told"], whole["known"]) == (3, 5)
    assert (whole["share"], whole["weighed"]) == ("59.0 %", "66.8 %")  # 190 and 215 of 322
