"""A real publish of models whose ids, licences, tags, notes and configs are hostile: every page, JSON file and CSV file is what it would be of
others, under a name that any disk takes, and the command answers."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import xml.dom.minidom
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import ROOT
from pipeline.base.progress import quiet
from pipeline.book.packs import Packs
from pipeline.hub.record import LONGEST_TEXT, is_model_id, read_record
from pipeline.hub.snapshot import newest_snapshot
from pipeline.press.publish import publish
from tests.render.test_hostile_text import Elements, is_text

TEXT = (
    "x\"'`></title></script></style>--><evil-tag evil=1 onload=evil()><svg/onload=evil()>&quot;{{7*7}}{%evil%}${7*7} "
    "../../../etc/passwd ;DROP TABLE model;-- \\ %00 $(touch evil) "
)
# that are words of paths, of scripts or of systems, or differ by case alone, and the longest that the Hub has
IDS = (
    "index/html", "con/aux", "api/v1", "models/index.html", "gpu/rtx-4090", "assets/style.css", "x/" + "y" * 96, "z" * 96 + "/" + "w" * 96,
    "_/_", "a.b-c/__init__.py", "org/Model", "org/model", "Org/MODEL", "org/model.json", "org/_", "null/undefined", "true/1e999", "0/0",
    "model/constructor", "__proto__/toString", "a/b.html", "org/card", "org/x.csv",
)  # fmt: skip
OTHERS = ("Qwen/Qwen3-0.6B", "openai/gpt-oss-20b", "black-forest-labs/FLUX.1-dev")
# of names of files: what is not of the id itself stands as ~ and two digits
NAME = re.compile(r"[A-Za-z0-9._~-]+")


def records(whole):
    base = next(record for record in whole.records if record.model_id == "Qwen/Qwen3-0.6B")
    for number, model_id in enumerate(IDS):
        assert is_model_id(model_id)
        config = dict(base.config) | ({}, {"architectures": [TEXT]}, {"model_type": TEXT}, {TEXT: TEXT})[number % 4]
        told = dict.fromkeys(("pipeline_tag", "library", "config_source", "config_note", "quantization_hint"), TEXT)
        told |= {
            "license": "L" * LONGEST_TEXT if number % 3 else TEXT,
            "base_model_id": OTHERS[0] if number % 2 else TEXT,
        }
        told |= {"model_id": model_id, "config": config, "config_kind": base.config_kind, "sources": list(base.sources)}
        record, reason = read_record(told)
        assert record is not None, reason
        yield record


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder, whole = tmp_path_factory.mktemp("hostile"), newest_snapshot()
    (folder / "root").mkdir()
    for name in ("tables", "pipeline", "site", "mkdocs.yml", "requirements.lock"):
        (folder / "root" / name).symlink_to(ROOT / name)
    others = [record for record in whole.records if record.model_id in OTHERS]
    some = sorted([*records(whole), *others], key=lambda record: record.model_id)
    publish(
        replace(whole, records=tuple(some)), quiet, folder / "build", folder / "root", packs=Packs(folder / "packs")
    )
    return folder / "build"


def files(build: Path, suffix: str) -> list[Path]:
    return [path for path in sorted(build.rglob(f"*{suffix}")) if path.is_file()]


@pytest.mark.full
def test_every_file_has_a_name_that_any_disk_takes(build):
    paths = [path.relative_to(build).as_posix() for path in build.rglob("*")]
    assert [path for path in paths if not all(map(NAME.fullmatch, path.split("/")))] == []
    assert max(len(path.rpartition("/")[2]) for path in paths) <= 200
    assert [name for name, count in Counter(map(str.lower, paths)).items() if count > 1] == []


@pytest.mark.full
def test_pages_make_no_element_of_a_text_and_their_data_can_be_read(build):
    pages = files(build, ".html")
    assert len(pages) > 100
    assert [path.name for path in pages if not is_text(path.read_text(encoding="utf-8"))] == []
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "49" not in text or TEXT[:4] not in text or "{{7*7}}" in text, path
        for data in re.findall(r'<script type="application/(?:ld\+)?json"[^>]*>(.*?)</script>', text, re.S):
            json.loads(data)
    assert any("evil" in page.read_text(encoding="utf-8") for page in pages) and Elements("<evil-tag>").tags


@pytest.mark.full
def test_json_csv_and_drawings_can_be_read(build):
    for path in files(build, ".json"):
        json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(name))
    for path in files(build, ".csv"):
        with path.open(encoding="utf-8", newline="") as file:
            assert len({len(row) for row in csv.reader(file)}) <= 1, path
    for path in (*files(build, ".svg"), *files(build, ".xml")):
        xml.dom.minidom.parse(str(path))


@pytest.mark.full
@pytest.mark.parametrize(
    "asked",
    [IDS[7], "org/model", "x\"; rm -rf /; '", "{{7*7}}", "'; DROP TABLE model; --", "A" * 100_000, "a\nb\x1b[31m"],
)
def test_the_command_answers_in_words(build, asked):
    command = [sys.executable, "-m", "pipeline", "fits", asked, "--gpu", "rtx-4090", "--data", str(build / "tables")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode in (0, 2) and "Traceback" not in run.stderr, run.stderr
    assert "\x1b" not in run.stdout + run.stderr and len(run.stdout + run.stderr) < 6_000
