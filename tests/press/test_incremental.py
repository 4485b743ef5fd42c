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


# a file of the checkout, what stands there, what then stands there, and whether tables are made of it
EDITS = {
    "a card": ("tables/facts/gpu.csv", ",16,15360,14930,", ",16,15360,12000,", True),
    "a constant": ("tables/facts/constant.csv", "vllm_default_share,0.9,", "vllm_default_share,0.8,", True),
    "a formula": (
        "tables/sql/overhead/overhead.sql",
        "ELSE constants.nccl_many_gpus_bytes",
        "ELSE constants.nccl_many_gpus_bytes + 1048576",
        True,
    ),
    "a template": ("site/templates/model.html", '<p class="crumb">', '<p class="crumb other">', False),
}
# how the names of files begin of which one must be another
OF_TABLES = (
    "tables/gpu.parquet",
    "tables/constant.parquet",
    "tables/footprint.parquet",
    "tables/almanac.duckdb",
    "site/gpus/t4/",
    "site/models/",
)
OF_PAGES = ("site/models/",)
PRINTS = """
from pipeline.book.packs import fingerprint
from pipeline.press.kept_grades import made_of as of_models
from pipeline.render.data.kept import made_of as of_pages
print(fingerprint(), of_models(), of_pages())
"""


def checkout_in(folder: Path) -> Path:
    """Another one, of which a test changes files."""
    for name in ("pipeline", "tables", "site"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "requirements.lock", "tests/press/small_build.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def edit(checkout: Path, what: str) -> None:
    file, old, new, _is_of_tables = EDITS[what]
    text = (checkout / file).read_text(encoding="utf-8")
    assert old in text, what
    (checkout / file).write_text(text.replace(old, new, 1), encoding="utf-8")


def said(checkout: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.full
def test_a_changed_fact_formula_or_template_is_part_of_every_key_that_it_must_be(tmp_path):
    checkout = checkout_in(tmp_path / "checkout")
    before = said(checkout, "-c", PRINTS).split()
    for what, (*_edit, is_of_tables) in EDITS.items():
        edit(checkout, what)
        found = said(checkout, "-c", PRINTS).split()
        changed = [one != other for one, other in zip(before, found, strict=True)]
        assert changed == ([True, True, True] if is_of_tables else [False, False, True]), what
        before = found


@pytest.mark.full
def test_what_is_made_of_changed_facts_formulas_and_templates_is_made_anew(tmp_path):
    """In one checkout one after the other, with what all builds before have kept."""
    checkout, packs = checkout_in(tmp_path / "checkout"), str(tmp_path / "packs")

    def built(name: str, *kept: str) -> dict[str, str]:
        return json.loads(said(checkout, "-m", "tests.press.small_build", str(tmp_path / name), "4", *kept))

    before = built("before", packs)
    for of_tables, others in ((True, OF_TABLES), (False, OF_PAGES)):
        for what, (*_edit, is_of_tables) in EDITS.items():
            if is_of_tables == of_tables:
                edit(checkout, what)
        kept = built(f"kept-{of_tables}", packs)
        assert kept == built(f"anew-{of_tables}")
        changed = {name for name, told in kept.items() if before.get(name) != told}
        assert all(any(name.startswith(begins) for name in changed) for begins in others), changed
        assert of_tables or not any(name.startswith("tables") for name in changed)
        before = kept
