"""The published database in the DuckDB versions since 1.2, each in a folder of its own (make check-full; needs a package registry)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.book.scenario import TYPES
from pipeline.press import build, publish
from tests.formulas import old_readers

DATABASE = publish.ROOT / "build" / "tables" / build.DATABASE


@pytest.mark.full
@pytest.mark.parametrize("version", ["1.2.2", "1.3.2", "1.5.5"])
def test_every_version_opens_the_file_and_answers_every_macro(version, tmp_path):
    assert DATABASE.exists(), "make publish builds it"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        tmp_path,
    ]
    subprocess.run([*command, f"duckdb=={version}"], check=True, capture_output=True)
    asked = old_readers.queries(DATABASE)
    found, answers = old_readers.ask(tmp_path, DATABASE, asked, old_readers.scenario(list(TYPES)))
    assert found == version
    assert dict(zip(asked, answers, strict=True)) == dict.fromkeys(asked, True)
