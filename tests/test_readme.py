"""The examples of the README do what it says: each is run as it stands against a built database."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pipeline.press import remote
from pipeline.press.layers import LAYERS, WEIGHED
from pipeline.press.lookup import fill_footprints
from pipeline.render.addresses import REMOTE

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODELS = ["Qwen/Qwen3-8B", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B-Instruct"]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


ATTACHED = next(block for block in blocks("sql") if "ATTACH 'https://" in block)  # asked where the tables lie
QUERIES = [query.strip() for block in blocks("sql") if block != ATTACHED for query in block.split(";") if query.strip()]
COMMANDS = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def tables(book, tmp_path_factory):
    """A folder with the lookup of a few models, laid out as `build/`."""
    cursor = book.cursor()
    fill_footprints(cursor, models=MODELS)
    layered = "SELECT DISTINCT model_id, dtype_id FROM footprint WHERE engine_id = 'llama.cpp'"
    cursor.execute(f"INSERT INTO {LAYERS} BY NAME WITH layered AS ({layered}) {WEIGHED}")
    folder = tmp_path_factory.mktemp("readme") / "build" / "tables"
    folder.mkdir(parents=True)
    for name in ("footprint", "model"):
        cursor.execute(f"COPY {name} TO '{folder / name}.parquet'")
    yield cursor, folder.parents[1]
    cursor.execute(f"DELETE FROM footprint; DELETE FROM {LAYERS}")
    cursor.close()


@pytest.mark.some(12)
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_queries_give_rows(tables, query):
    cursor, folder = tables
    rows = cursor.execute(query.replace("'build/", f"'{folder}/build/")).fetchall()
    assert rows
    assert all(value is not None for value in rows[0][:2])
    named = dict(zip((column[0] for column in cursor.description), rows[0], strict=True))
    assert named.get("unknown_reason") is None


def test_tables_are_joined_where_they_lie(tables, tmp_path):
    _, folder = tables
    files = {name: folder / "build" / "tables" / f"{name}.parquet" for name in ("footprint", "model")}
    with duckdb.connect() as connection:
        remote.write(connection, tmp_path / REMOTE, {name: (file, str(file)) for name, file in files.items()})
        for query in ATTACHED.replace("https://…/tables", str(tmp_path)).strip().rstrip(";").split(";"):
            asked = connection.execute(query)
        assert [column[0] for column in asked.description] == ["dtype_id", "total_bytes"] and len(asked.fetchall()) > 20


@pytest.mark.parametrize("script", blocks("python"), ids=["polars"])
def test_python_examples_run(tables, script):
    _, folder = tables
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert "parameter_count" in done.stdout


@pytest.mark.some(2)
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith(".venv/bin/python") and " fits " not in c])
def test_source_commands_answer(command):
    arguments = shlex.split(command)[1:]
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    assert arguments[-1].split("/")[-1] in done.stdout


def test_a_model_of_ones_own_is_answered(config_path):
    (command,) = (c for c in COMMANDS if " fits path/to/config.json" in c)
    arguments = shlex.split(command.replace("path/to/config.json", str(config_path)))[1:]
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Yes: ") and "at 32,768 tokens" in " ".join(done.stdout.split())


def test_every_make_target_of_the_documents_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        name
        for text in (README, (ROOT / "CONTRIBUTING.md").read_text())
        for name in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.M)
    }
    assert named <= targets
