"""The same facts and code are the same bytes: on any number of cores, in any locale, time zone, hash seed and order of folders."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import duckdb
import pytest

from pipeline.book.packs import Packs
from pipeline.press import blank, formulas, same_bytes
from pipeline.render.addresses import REMOTE
from tests.once import blank_folder
from tests.press import elsewhere
from tests.render.tiny_tables import rendered


def sums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.full
@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems' allocators do not hand out zeros; the content is held below"
)
@pytest.mark.parametrize("allocator", ["", *map(str, Path("/usr/lib").glob("*/libjemalloc.so.2"))])
def test_a_file_of_the_same_rows_is_the_same_bytes(tmp_path, monkeypatch, allocator):
    """Whatever order the rows came in, which is what several threads and packs make of it, and whether packs keep the file without rows or
    not; with the allocator that `make` brings too."""
    monkeypatch.setenv("LD_PRELOAD", allocator)
    written, packs = [], Packs(tmp_path / "packs")
    for number, (order, keeping) in enumerate([("ASC", None), ("DESC", packs), ("ASC", packs)]):
        workshop, path = tmp_path / f"{number}.workshop", tmp_path / f"{number}.duckdb"
        with blank.copied(blank_folder(), workshop) as connection:
            connection.execute(
                f"CREATE TABLE apart AS SELECT i, md5(i::VARCHAR) AS word FROM range(9000) AS r(i) ORDER BY i {order};"
                f"CREATE TABLE shuffled AS FROM source ORDER BY source_id {order};"
                "DELETE FROM source; INSERT INTO source FROM shuffled; DROP TABLE shuffled"
            )
            arguments = formulas.arguments_of(connection)
        with same_bytes.writing(workshop, path, arguments, keeping):
            pass
        written.append(path.read_bytes())
    assert written[0] == written[1] == written[2]
    assert len(list(packs.folder.iterdir())) == 1
    with duckdb.connect(str(tmp_path / "2.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*), min(i) FROM internal.apart").fetchall() == [(9000, 0)]
        assert connection.execute("SELECT count(*) > 100 FROM source").fetchall() == [(True,)]


@pytest.mark.full
def test_a_file_of_views_is_the_same_bytes_and_names_nothing_of_this_machine(tmp_path):
    written = []
    for name in ("one", "another"):
        folder = tmp_path / name
        folder.mkdir()
        near = {table: folder / f"{table}.parquet" for table in ("gpu", "model")}
        for file in near.values():
            duckdb.execute(f"COPY (SELECT 1 AS a, 'b' AS b) TO '{file}' (FORMAT parquet)")
        path = folder / REMOTE
        roots = {"gpu": "https://a.example/it's", "model": "https://b.example/deep"}
        same_bytes.write_remote(path, {table: (near[table], f"{roots[table]}/{table}.parquet") for table in near})
        with duckdb.connect(str(path), read_only=True) as connection:
            told = connection.execute("SELECT file_of('gpu'), file_of('model')").fetchall()
        assert told == [("https://a.example/it's/gpu.parquet", "https://b.example/deep/model.parquet")]
        written.append(path.read_bytes())
    assert str(tmp_path).encode() not in written[0]
    assert written[0] == written[1] or sys.platform != "linux"


def test_a_file_that_cannot_be_written_says_why(tmp_path):
    with duckdb.connect(str(tmp_path / "workshop.duckdb")):
        pass
    with pytest.raises(same_bytes.WriteError, match=r"almanac\.duckdb could not be written: .*no_such_folder"):
        same_bytes.write(tmp_path / "workshop.duckdb", tmp_path / "no_such_folder" / "almanac.duckdb", {})


@pytest.mark.full
def test_a_site_that_is_rendered_elsewhere_is_the_same(tmp_path):
    elsewhere.run("site", tmp_path / "site")
    assert sums(tmp_path / "site") == sums(rendered())


@pytest.mark.full
def test_what_is_published_elsewhere_is_the_same(tmp_path):
    """Tables and site of every 80th model."""
    elsewhere.publish(tmp_path / "here", 80)
    elsewhere.run("publish", tmp_path / "there", 80)
    assert sums(tmp_path / "here") == sums(tmp_path / "there")
