"""The published database in older DuckDB versions, each in an environment of its own (make check-full; needs a package registry)."""

from __future__ import annotations

import json
import subprocess
import venv

import pytest

from pipeline import build, publish

DATABASE = publish.ROOT / "build" / "tables" / build.DATABASE
QUERIES = [
    "SELECT count(*) > 0 FROM footprint",
    "SELECT total_bytes > 0 FROM footprint_of('Qwen/Qwen3-8B', context_tokens := 40000, sequences := 7)",
    "SELECT verdict IS NOT NULL FROM fits_on('rtx-4090', 'Qwen/Qwen3-8B')",
    "SELECT count(*) > 0 FROM what_fits('rtx-3060-12gb')",
    "SELECT count(*) > 0 FROM compatibility WHERE model_id = 'Qwen/Qwen3-8B' AND verdict = 'fits'",
]
PROGRAM = """
import json, sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
print(json.dumps([connection.execute(query).fetchall()[0][0] for query in json.loads(sys.argv[2])]))
"""


@pytest.mark.full
@pytest.mark.parametrize("version", ["1.2.2", "1.3.2", "1.5.3"])
def test_old_versions_open_the_file_and_run_its_formulas(version, tmp_path):
    assert DATABASE.exists(), "make publish builds it"
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", f"duckdb=={version}"], check=True, capture_output=True)
    done = subprocess.run(
        [python, "-c", PROGRAM, DATABASE, json.dumps(QUERIES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True] * len(QUERIES)
