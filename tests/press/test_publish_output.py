"""What may be published to, and what is found when somebody has been at it: nobody's files are deleted, and damage is made good."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from pipeline.__main__ import main
from pipeline.base.readonly import reading
from pipeline.cli import serve
from pipeline.press import manifest, output
from pipeline.press import publish as publishing
from tests.press.test_publish import contents, run, stages  # noqa: F401

HOLD = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("SELECT 1")
print("open", flush=True)
sys.stdin.read()
"""


def someone_elses(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("thesis")
    return folder


def refused(root, folder, why):
    before = contents(folder) if folder.is_dir() else None
    with pytest.raises(publishing.PublishError, match=why):
        run(root, folder)
    assert before is None or contents(folder) == before


@pytest.mark.parametrize(
    "names",
    [
        ("t.txt",),
        ("tables/t.txt",),
        ("site/t.txt",),
        ("tables/facts/gpu.csv", "site/docs/index.md"),
        (".git/HEAD",),
        ("fingerprints.json",),
        ("tables/almanac.duckdb", "tables/notes.txt"),
    ],
    ids=" ".join,
)
def test_a_folder_that_holds_anything_else_is_refused_and_stays(stages, tmp_path, names):  # noqa: F811
    ran, root, _ = stages
    refused(root, someone_elses(tmp_path / "mine", *names), "no part of a release")
    assert ran == []


@pytest.mark.parametrize("name", ["t.txt", "tables/t.txt", "site/CNAME", "site/tables/mine.csv", "mkdocs/index.html"])
def test_a_file_that_somebody_put_into_a_release_is_not_lost(stages, name):  # noqa: F811
    ran, root, folder = stages
    run(root, folder)
    someone_elses(folder, name)
    (root / "tables/facts/gpu.csv").write_text("2")
    refused(root, folder, name.partition("/")[0] if name.startswith(("t.txt", "mkdocs")) else name)
    assert ran == ["tables", "site"]


def test_an_empty_folder_and_a_release_of_ours_are_taken(stages):  # noqa: F811
    _ran, root, folder = stages
    folder.mkdir()
    run(root, folder)
    (root / "tables/facts/gpu.csv").write_text("2")
    # what an open shell and a desktop leave is nobody's work
    (folder / "tables" / "almanac.duckdb.wal").touch()
    (folder / ".DS_Store").touch()
    assert run(root, folder).rebuilt == ("tables", "site")
    assert not (folder / "tables" / "almanac.duckdb.wal").exists()


def test_a_release_from_before_there_were_seals_is_taken(stages, tmp_path):  # noqa: F811
    _ran, root, _ = stages
    old = someone_elses(tmp_path / "old", "tables/almanac.duckdb", "site/assets/almanac/page.js", "fingerprints.json")
    assert run(root, old).rebuilt == ("tables", "site")
    assert not (old / "fingerprints.json").exists()


def test_a_link_a_file_and_a_mount_point_are_refused_before_the_build(stages, tmp_path, monkeypatch):  # noqa: F811
    ran, root, folder = stages
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    refused(root, tmp_path / "link", "symbolic link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    refused(root, tmp_path / "nowhere", "symbolic link")
    (tmp_path / "file").write_text("mine")
    refused(root, tmp_path / "file", "is a file")
    assert (tmp_path / "file").read_text() == "mine"
    run(root, folder)
    ran.clear()
    with monkeypatch.context() as mounted:
        mounted.setattr(Path, "is_mount", lambda path: path == folder)
        refused(root, folder, "mount point")
    shutil.move(folder / "tables", tmp_path / "moved")
    (folder / "tables").symlink_to(tmp_path / "moved")
    refused(root, folder, "tables is a symbolic link")
    assert ran == []


@pytest.mark.parametrize("name", [".build-next", ".build-previous"])
def test_a_folder_beside_it_that_is_none_of_ours_is_refused_and_stays(stages, name):  # noqa: F811
    ran, root, folder = stages
    beside = someone_elses(folder.with_name(name), "tables/t.txt")
    refused(root, folder, f"{name} is in the way")
    assert (beside / "tables" / "t.txt").read_text() == "thesis" and ran == []
    shutil.rmtree(beside)
    beside.symlink_to(folder.parent)
    refused(root, folder, "symbolic link")


def test_what_a_killed_build_of_ours_left_is_no_obstacle(stages):  # noqa: F811
    _ran, root, folder = stages
    left = output._marked(output.following(folder))
    someone_elses(left, "tables/half.parquet")
    assert run(root, folder).rebuilt == ("tables", "site")
    assert not left.exists()


def test_the_command_refuses_before_it_asks_the_hub(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pipeline.cli.console.refresh", lambda settings: pytest.fail("the Hub is asked"))
    monkeypatch.setattr("pipeline.cli.console.publish", lambda snapshot, folder: pytest.fail("a build is begun"))
    folder = someone_elses(tmp_path / "p", "t.txt")
    assert main(["publish", "--output", str(folder)]) == 1
    assert "holds t.txt" in capsys.readouterr().err
    monkeypatch.chdir(folder)
    assert main(["publish", "--output", "."]) == 1
    assert main(["publish", "--output", "/"]) == 1
    assert (folder / "t.txt").read_text() == "thesis"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no call that exchanges two folders")
def test_there_is_no_moment_without_tables(tmp_path):
    folder, gone, ended = tmp_path / "build", [], threading.Event()
    someone_elses(folder, "tables/almanac.duckdb")

    def watch():
        while not ended.is_set():
            try:
                os.stat(folder / "tables")
            except FileNotFoundError:
                gone.append(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(200):
        someone_elses(tmp_path / ".build-next", f"tables/{number}")
        output.put_in_place(tmp_path / ".build-next" / "tables", folder)
    ended.set()
    watcher.join()
    assert gone == [] and [file.name for file in (folder / "tables").iterdir()] == ["199"]


def test_where_folders_cannot_be_exchanged_two_renames_do(stages, monkeypatch):  # noqa: F811
    _ran, root, folder = stages
    monkeypatch.setattr(output, "_exchanged", lambda one, other: False)
    run(root, folder)
    (root / "tables/facts/gpu.csv").write_text("2")
    assert run(root, folder).rebuilt == ("tables", "site")
    assert sorted(p.name for p in folder.parent.iterdir()) == [".build.lock", "build", "root"]
    # stopped between them
    output._marked(output.previous(folder))
    (folder / "tables").rename(output.previous(folder) / "tables")
    assert run(root, folder).rebuilt == ()


def edit(path, content=b"x"):
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("name", "rebuilt"),
    [
        ("tables/almanac.duckdb", ("tables", "site")),
        ("tables/datapackage.json", ("tables", "site")),
        ("tables/manifest.json", ("tables", "site")),
        ("site/index.html", ("site",)),
        ("site/manifest.json", ("site",)),
    ],
)
@pytest.mark.parametrize("how", ["missing", "short", "other"])
def test_damage_is_found_told_and_made_good(stages, name, rebuilt, how):  # noqa: F811
    _ran, root, folder = stages
    run(root, folder)
    whole = contents(folder)
    path = folder / name
    content = path.read_bytes()
    path.unlink() if how == "missing" else edit(
        path, content[:-9] if how == "short" else bytes([content[0] ^ 1]) + content[1:]
    )
    assert manifest.damage(path.parent)
    done = run(root, folder)
    assert done.rebuilt == rebuilt
    assert any(name in problem for problem in done.damaged)
    assert contents(folder).keys() == whole.keys()
    assert manifest.damage(folder / "tables") == manifest.damage(folder / "site") == []
    assert run(root, folder).rebuilt == ()


def test_a_manifest_with_an_edited_number_is_no_manifest(stages):  # noqa: F811
    _ran, root, folder = stages
    run(root, folder)
    path = folder / "tables" / "manifest.json"
    told = json.loads(path.read_text())
    told["row_counts"]["model"] += 1
    edit(path, json.dumps(told).encode())
    assert manifest.read(folder / "tables") == {}


def test_published_files_are_read_only_and_can_be_replaced_and_removed(stages):  # noqa: F811
    _ran, root, folder = stages
    run(root, folder)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()}
    assert modes == {0o444}
    (root / "tables/facts/gpu.csv").write_text("2")
    run(root, folder)
    subprocess.run(["rm", "-rf", folder], check=True, stdin=subprocess.DEVNULL)
    assert not folder.exists()


def test_the_address_of_the_site_is_part_of_the_site_and_of_no_table(stages, monkeypatch):  # noqa: F811
    _ran, root, folder = stages
    run(root, folder)
    monkeypatch.setenv("SITE_URL", "https://almanac.example/")
    assert run(root, folder).rebuilt == ("site",)
    assert manifest.read(folder / "site")["site_url"] == "https://almanac.example/"
    assert run(root, folder).rebuilt == ()
    monkeypatch.setenv("TABLES_URL", "https://files.example/tables")
    assert run(root, folder).rebuilt == ("site",)
    monkeypatch.setenv("SITE_URL", "almanac.example")
    with pytest.raises(publishing.PublishError, match=r"SITE_URL is 'almanac.example', which is no address"):
        run(root, folder)


@pytest.fixture
def held(tmp_path):
    """A database that another process has open for writing, as a shell without `-readonly` does."""
    path = tmp_path / "held" / "tables" / "almanac.duckdb"
    path.parent.mkdir(parents=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE model AS SELECT 'a' AS model_id, 'exact' AS anatomy_grade")
        connection.execute("COPY model TO '" + str(path.with_name("model.parquet")) + "'")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout.readline() == "open\n"
        with pytest.raises(duckdb.IOException, match="lock"):
            duckdb.connect(str(path), read_only=True)
        yield path
        shell.stdin.close()


def test_a_shell_that_has_the_database_open_does_not_stop_our_readers(held):
    with reading(held) as connection:
        assert connection.execute("FROM model").fetchall() == [("a", "exact")]
    with reading(held) as connection, pytest.raises(duckdb.Error):
        connection.execute("CREATE TABLE mine AS SELECT 1")


def test_a_database_that_is_none_is_not_taken_for_a_lock(tmp_path):
    (tmp_path / "almanac.duckdb").write_text("lock " * 1000)
    with pytest.raises(duckdb.Error), reading(tmp_path / "almanac.duckdb"):
        pass


def test_a_table_too_large_for_a_page_host_is_served_from_beside_the_site(tmp_path):
    someone_elses(tmp_path, "site/index.html", "site/tables/gpu.csv", "tables/almanac.duckdb", "tables/gpu.csv", "x")
    with serve.server(tmp_path / "site") as running:
        handler = running.RequestHandlerClass.func
        found = handler.__new__(handler)
        found.directory = str(tmp_path / "site")
        path = lambda asked: os.path.relpath(found.translate_path(asked), tmp_path)  # noqa: E731
        assert path("/tables/almanac.duckdb") == "tables/almanac.duckdb"
        assert path("/tables/gpu.csv") == "site/tables/gpu.csv"
        assert path("/almanac.duckdb") == "site/almanac.duckdb"
        assert path("/tables/../../x") == "site/x"
        assert path("/tables/") == "site/tables"


def test_a_strangers_site_beside_tables_of_ours_is_refused(tmp_path):
    """Each part has to be ours: a manifest of tables says nothing of a folder `site`."""
    output_folder = tmp_path / "release"
    (output_folder / "tables").mkdir(parents=True)
    (output_folder / "tables" / "almanac.duckdb").write_bytes(b"")
    (output_folder / "site").mkdir()
    (output_folder / "site" / "thesis.html").write_text("years of work", encoding="utf-8")
    assert not manifest.read(output_folder / "site")
    with pytest.raises(publishing.PublishError, match="would be deleted"):
        output.refuse(output_folder)
    assert (output_folder / "site" / "thesis.html").read_text(encoding="utf-8") == "years of work"
