"""What was worked out before is taken only where nothing that it is made of changed, and where it is as it was written."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.book import packs
from pipeline.book.content import CONTENT
from pipeline.book.packs import Packs
from pipeline.book.schema import PUBLISHED
from pipeline.press import build, held, lookup

# small, of several kinds: few formats fit, so that a question is answered soon
MODELS = ["Qwen/Qwen3-0.6B", "BAAI/bge-m3", "openai-community/gpt2", "google/gemma-3-270m"]
WORKED_OUT = ("twin", *(of(table) for table in held.COLUMNS for of in (held.numbers, held.scenarios)))
ROWS = {"footprint": pa.table({"key": ["a", "b", "b"], "total_bytes": [1, 2, 3]})}


def taken(folder: Path, keys: list[str]) -> dict[str, list[int]]:
    found = {}
    for has, tables in Packs(folder).taken(keys):
        rows = tables["footprint"].to_pylist()
        found |= {key: [row["total_bytes"] for row in rows if row["key"] == key] for key in has}
    return found


def only_pack(folder: Path) -> Path:
    (pack,) = folder.iterdir()
    return pack


def test_what_is_kept_is_taken_by_its_key_and_no_other(tmp_path):
    assert taken(tmp_path / "none", ["a"]) == {}
    assert Packs(tmp_path).put(["a", "b", "without rows"], ROWS)
    assert taken(tmp_path, ["b", "c", "without rows"]) == {"b": [2, 3], "without rows": []}
    # of two packs that hold a key one is asked
    assert Packs(tmp_path).put(["b"], ROWS)
    assert taken(tmp_path, ["a", "b"]) == {"a": [1], "b": [2, 3]}


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("harm", [cut, flip, Path.unlink])
@pytest.mark.parametrize("name", [packs.FILE, "footprint.parquet"])
def test_what_is_damaged_is_not_used(tmp_path, harm, name):
    Packs(tmp_path).put(["a", "b"], ROWS)
    harm(only_pack(tmp_path) / name)
    assert taken(tmp_path, ["a", "b"]) == {}
    # and it is made anew
    Packs(tmp_path).put(["a", "b"], ROWS)
    assert taken(tmp_path, ["a"]) == {"a": [1]}


def test_what_was_begun_and_never_ended_is_not_used(tmp_path, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(packs, "sealed", end)
    with pytest.raises(KeyboardInterrupt):
        Packs(tmp_path).put(["a"], ROWS)
    assert list(tmp_path.iterdir()) == []
    half = tmp_path / f"{packs._MAKING}killed"
    half.mkdir()
    assert taken(tmp_path, ["a"]) == {}
    Packs(tmp_path).tidy()
    assert half.exists(), "another build may be at it"
    monkeypatch.setattr(packs, "_LEFT_SECONDS", -1)
    Packs(tmp_path).tidy()
    assert not half.exists()


def test_a_folder_that_takes_nothing_is_no_hindrance(tmp_path):
    (tmp_path / "file").write_text("")
    kept = Packs(tmp_path / "file" / "packs")
    assert not kept.put(["a"], ROWS)
    assert list(kept.taken(["a"])) == []
    kept.tidy()


def test_what_was_used_least_recently_goes_first(tmp_path):
    for key in "abc":
        assert Packs(tmp_path).put([key], {"footprint": pa.table({"key": [key], "total_bytes": [1]})})
    small = Packs(tmp_path, most_bytes=1)
    assert taken(tmp_path, ["a"]) and list(small.taken(["b"]))
    small.tidy()
    assert taken(tmp_path, ["a", "b", "c"]) == {"b": [1]}, "what this run used stays, whatever the bound"


@pytest.fixture
def shelf(book: duckdb.DuckDBPyConnection):
    """`shelve(…)` has a cursor hold the models of a dict, each with the content of the model that it names."""
    cursor = book.cursor()
    held = [
        name
        for (name,) in book.execute(
            "SELECT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, schema_name, table_name) "
            "WHERE column_name = 'model_id' AND NOT duckdb_tables.temporary AND database_name = current_database()"
        ).fetchall()
    ]

    def shelve(contents: dict[str, str], kept: Packs | None = None) -> dict[str, list[tuple]]:
        cursor.execute("CREATE OR REPLACE TEMP TABLE content (shelved_as VARCHAR, content VARCHAR)")
        cursor.executemany("INSERT INTO content VALUES (?, ?)", list(contents.items()))
        for table in held:
            cursor.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT held.* REPLACE (shelved_as AS model_id) "
                f"FROM {book_name}.{table} AS held JOIN content ON content = held.model_id"
            )
        lookup.work_out(cursor, packs=kept)
        return {table: cursor.execute(f"FROM {table} ORDER BY ALL").fetchall() for table in WORKED_OUT}

    book_name = book.execute("SELECT current_database()").fetchall()[0][0] + ".main"
    yield shelve
    for table in (*WORKED_OUT, CONTENT):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
    cursor.close()


def edits(count: int, seed: int) -> list[dict[str, str]]:
    """Snapshots that follow one another: models come, go, and have another content."""
    chance = random.Random(seed)
    names = [f"org/model-{place}" for place in range(5)]
    snapshots = [dict(zip(names, MODELS, strict=False))]
    for _ in range(count):
        next_one = dict(snapshots[-1])
        name = chance.choice(names)
        if name in next_one and len(next_one) > 2 and chance.random() < 0.4:
            del next_one[name]
        else:
            next_one[name] = chance.choice(MODELS)
        snapshots.append(next_one)
    return snapshots


def hold_equal(shelve, tmp_path, monkeypatch, snapshots) -> None:
    worked_out: list[str] = []
    work_out = lookup._worked_out
    monkeypatch.setattr(
        lookup, "_worked_out", lambda connection, models: worked_out.extend(models) or work_out(connection, models)
    )
    monkeypatch.setattr(held, "_ROWS_AT_ONCE", 1000)  # few: rows of several packs in one group, and of one in several
    known: set[str] = set()
    anew = {}
    for contents in snapshots:
        worked_out.clear()
        found = shelve(contents, Packs(tmp_path))
        first = {contents[name] for name in worked_out}
        assert first.isdisjoint(known), "what was worked out before is not worked out again"
        known |= first
        worked_out.clear()
        which = tuple(sorted(contents.items()))
        anew[which] = anew.get(which) or shelve(contents)
        assert found == anew[which]
    assert known == {content for contents in snapshots for content in contents.values()}


@pytest.mark.full
def test_a_snapshot_that_changed_is_as_if_it_were_worked_out_anew(shelf, tmp_path, monkeypatch):
    hold_equal(shelf, tmp_path, monkeypatch, edits(2, seed=1))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_edits_are_as_if_all_were_worked_out_anew(shelf, tmp_path, monkeypatch, seed):
    hold_equal(shelf, tmp_path, monkeypatch, edits(12, seed))


def test_files_that_no_model_enters_are_brought_as_they_were_or_not_at_all(tmp_path):
    kept, written = Packs(tmp_path / "packs"), [tmp_path / "gpu.parquet", tmp_path / "gpu.csv"]
    entered = PUBLISHED.keys() - {"gpu"}
    first = build._SameFiles(kept, entered)
    assert not first.bring("gpu", written)
    pq.write_table(pa.table({"gpu_id": ["t4"]}), written[0])
    written[1].write_text("gpu_id\nt4\n")
    first.keep("gpu", written)
    first.keep("model", [tmp_path / "which models enter"])
    first.end()
    other = [tmp_path / "other" / path.name for path in written]
    other[0].parent.mkdir()
    again = build._SameFiles(Packs(kept.folder), entered)
    assert again.bring("gpu", other) and not again.bring("model", other)
    assert [path.read_bytes() for path in other] == [path.read_bytes() for path in written]
    assert again.rows_of(other[0]).to_pylist() == [{"gpu_id": "t4"}]
    cut(next(kept.folder.glob("*/gpu.csv")))
    assert not build._SameFiles(Packs(kept.folder), entered).bring("gpu", other)


def test_kept_rows_go_to_the_model_that_has_their_content_now():
    rows = pa.table({"key": ["a", "b", "a", "gone"], "n": [1, 2, 3, 4]})
    assert held.renamed(rows, "key", "model_id", {"b": "org/two", "a": "org/one"}).to_pylist() == [
        {"n": 1, "model_id": "org/one"}, {"n": 2, "model_id": "org/two"}, {"n": 3, "model_id": "org/one"},
    ]  # fmt: skip
    assert held.renamed(rows, "key", "model_id", {}).num_rows == 0


@pytest.mark.full
def test_another_formula_takes_nothing_from_the_one_before(shelf, tmp_path, monkeypatch):
    contents = {"org/model": MODELS[1]}
    before = shelve_keys(shelf, contents, tmp_path)
    monkeypatch.setattr(lookup, "fingerprint", lambda: "of other formulas")
    assert before.isdisjoint(shelve_keys(shelf, contents, tmp_path))


def shelve_keys(shelve, contents, folder) -> set[str]:
    asked: set[str] = set()

    class Watched(Packs):
        def taken(self, keys):
            asked.update(keys)
            return super().taken(keys)

    shelve(contents, Watched(folder))
    assert len(asked) == 1
    return asked


def test_a_clock_that_jumps_costs_time_and_no_rows(tmp_path, monkeypatch):
    """A year ahead while another build is at a pack, which is then removed under its hands; and back."""
    assert Packs(tmp_path).put(["a"], ROWS)
    (now,) = [path.stat().st_mtime for path in tmp_path.iterdir()]
    real = packs.sealed

    def meanwhile(manifest):
        with monkeypatch.context() as ahead:
            ahead.setattr(packs.time, "time", lambda: now + 365 * 24 * 3600)
            Packs(tmp_path).tidy()
        return real(manifest)

    with monkeypatch.context() as other:
        other.setattr(packs, "sealed", meanwhile)
        assert not Packs(tmp_path).put(["b"], ROWS)
    assert taken(tmp_path, ["a", "b"]) == {"a": [1]}
    monkeypatch.setattr(packs.time, "time", lambda: 0.0)
    Packs(tmp_path).tidy()
    assert Packs(tmp_path).put(["b"], ROWS) and taken(tmp_path, ["b"]) == {"b": [2, 3]}


def test_of_many_values_those_that_are_asked_for_come_and_no_other(tmp_path, monkeypatch):
    """They lie in groups, of which the others are not unpacked."""
    values = {f"{number:03}": bytes([number]) * 1_000 for number in range(200)}
    monkeypatch.setattr(packs, "_GROUP_BYTES", 10_000)
    assert Packs(tmp_path).keep(values, "page") and Packs(tmp_path).keep({}, "page")
    file = pq.ParquetFile(only_pack(tmp_path) / "page.parquet")
    assert 15 < file.num_row_groups < 30
    for asked in (["000", "007", "199"], ["100"], list(values), ["none"]):
        assert Packs(tmp_path).values(asked, "page") == {key: values[key] for key in asked if key in values}


@pytest.mark.parametrize("name", [packs.FILE, "page.parquet"])
def test_what_was_found_damaged_and_is_kept_again_is_used(tmp_path, name):
    """By those who read its manifest before."""
    kept = Packs(tmp_path)
    kept.keep({"a": b"said"}, "page")
    flip(only_pack(tmp_path) / name)
    assert kept.values(["a"], "page") == {}
    kept.keep({"a": b"said"}, "page")
    assert kept.values(["a"], "page") == {"a": b"said"}
