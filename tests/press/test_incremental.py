"""Tables and pages that a build makes of what is kept are those of a build that begins with nothing, to the byte."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.book.packs import Packs
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press import build
from pipeline.render import render
from tests.once import bundled_snapshot

LAYERS = "num_hidden_layers"


def edited(snapshot: Snapshot, whole: Snapshot, chance: random.Random) -> Snapshot:
    """One model more, one less, and one with a layer less, which no total confirms."""
    records = [*chance.sample(snapshot.records, len(snapshot.records) - 1), chance.choice(whole.records)]
    place = chance.choice([i for i, record in enumerate(records) if (record.config or {}).get(LAYERS, 0) > 2])
    config = {**records[place].config, LAYERS: records[place].config[LAYERS] - 1}
    records[place] = replace(records[place], config=config, stored_parameter_count=None)
    one_each: dict[str, Record] = {record.model_id: record for record in records}
    return replace(snapshot, records=tuple(one_each[name] for name in sorted(one_each)))


def sums(folder: Path, snapshot: Snapshot, packs: Packs | None) -> dict[str, str]:
    tables, site = folder / "tables", folder / "site"
    tables.mkdir(parents=True)
    build.build_tables(tables, snapshot, packs=packs)
    render(tables, site, processes=0, packs=packs)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.full
def test_what_is_kept_makes_the_same_tables_and_pages_over_random_edits(tmp_path):
    whole, chance = bundled_snapshot(), random.Random(1)
    snapshot = replace(whole, records=tuple(sorted(chance.sample(whole.records, 30), key=lambda r: r.model_id)))
    for number in range(3):
        kept = sums(tmp_path / f"kept-{number}", snapshot, Packs(tmp_path / "packs"))
        assert kept == sums(tmp_path / f"anew-{number}", snapshot, None)
        snapshot = edited(snapshot, whole, chance)
