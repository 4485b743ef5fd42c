"""Tables and pages of a few models, and the checksum of each file: `python -m tests.press.small_build FOLDER MODELS [PACKS]` prints them, of the
checkout that it is run in."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from dataclasses import replace
from pathlib import Path

from pipeline.book.packs import Packs
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.press import build
from pipeline.render import render


def some(count: int) -> Snapshot:
    whole = newest_snapshot()
    records = sorted(random.Random(1).sample(whole.records, count), key=lambda record: record.model_id)
    return replace(whole, records=tuple(records))


def sums(folder: Path, snapshot: Snapshot, packs: Packs | None) -> dict[str, str]:
    tables, site = folder / "tables", folder / "site"
    tables.mkdir(parents=True)
    build.build_tables(tables, snapshot, packs=packs)
    render(tables, site, processes=0, packs=packs)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


if __name__ == "__main__":
    kept = Packs(Path(sys.argv[3])) if len(sys.argv) > 3 else None
    print(json.dumps(sums(Path(sys.argv[1]), some(int(sys.argv[2])), kept)))
