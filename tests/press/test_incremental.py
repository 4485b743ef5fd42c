"""Tables and pages that a build makes of what is kept are those of a build that begins with nothing, to the byte."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import ROOT
from pipeline.book.packs import Packs
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from tests.once import bundled_snapshot
from tests.press.small_build import some, sums

LAYERS = "num_hidden_layers"


def edited(snapshot: Snapshot, whole: Snapshot, chance: random.Random) -> Snapshot:
    """One model more, one less, and one with a layer less, which no total confirms."""
    records = [*chance.sample(snapshot.records, len(snapshot.records) - 1), chance.choice(whole.records)]
    place = chance.choice([i for i, record in enumerate(records) if (record.config or {}).get(LAYERS, 0) > 2])
    config = {**records[place].config, LAYERS: records[place].config[LAYERS] - 1}
    records[place] = replace(records[place], config=config, stored_parameter_count=None)
    one_each: dict[str, Record] = {record.model_id: record for record in records}
    return replace(snapshot, records=tuple(one_each[name] for name in sorted(one_each)))


@pytest.mark.full
def test_what_is_kept_makes_the_same_tables_and_pages_over_random_edits(tmp_path):
    whole, chance, snapshot = bundled_snapshot(), random.Random(1), some(30)
    for number in range(3):
        kept = sums(tmp_path / f"kept-{number}", snapshot, Packs(tmp_path / "packs"))
        assert kept == sums(tmp_path / f"anew-{number}", snapshot, None)
        snapshot = edited(snapshot, whole, chance)


# a file of the checkout, what stands there and what then stands there, and how the names of files begin of which one must be another
EDITS = {
    "a card": ("tables/facts/gpu.csv", ",16,15360,14930,", ",16,15360,12000,", ["tables/gpu.parquet", "site/gpus/t4/"]),
    "a constant": (
        "tables/facts/constant.csv",
        "vllm_default_share,0.9,",
        "vllm_default_share,0.8,",
        ["tables/constant.parquet", "tables/almanac.duckdb"],
    ),
    "a formula": (
        "tables/sql/overhead/overhead.sql",
        "ELSE constants.nccl_many_gpus_bytes",
        "ELSE constants.nccl_many_gpus_bytes + 1048576",
        ["tables/footprint.parquet", "tables/compatibility.parquet", "site/models/", "site/data/slices/"],
    ),
    "a template": ("site/templates/model.html", '<p class="crumb">', '<p class="crumb other">', ["site/models/"]),
}


def built(checkout: Path, folder: Path, packs: Path | None) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.press.small_build", str(folder), "8", *([str(packs)] if packs else [])]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.full
def test_a_changed_fact_formula_or_template_makes_anew_what_is_made_of_it(tmp_path):
    """One after the other in one checkout, with what all builds before have kept."""
    checkout = tmp_path / "checkout"
    for name in ("pipeline", "tables", "site"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "requirements.lock", "tests/press/small_build.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    before = built(checkout, tmp_path / "before", tmp_path / "packs")
    for number, (what, (file, old, new, others)) in enumerate(EDITS.items()):
        path = checkout / file
        text = path.read_text(encoding="utf-8")
        assert old in text, what
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        kept = built(checkout, tmp_path / f"kept-{number}", tmp_path / "packs")
        assert kept == built(checkout, tmp_path / f"anew-{number}", None), what
        changed = {name for name, told in kept.items() if before.get(name) != told}
        for begins in others:
            assert any(name.startswith(begins) for name in changed), (what, begins)
        if file.startswith("site"):
            assert not any(name.startswith("tables") for name in changed), what
        before = kept
