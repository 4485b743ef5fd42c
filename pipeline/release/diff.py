"""What two releases say otherwise, of any two: `make diff OLD=… NEW=…`."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.base.failures import Failure
from pipeline.press import changes
from pipeline.press.changes import Compared
from pipeline.release import kept, notes


def between(old: str, new: str) -> Compared:
    """Compares two releases, each a folder or an address. Raises Failure."""
    return changes.compare(kept.digest_of(old), kept.digest_of(new))


def text(found: Compared) -> str:
    return "\n".join(notes.lines(found.summary))


def write(found: Compared, folder: Path) -> list[Path]:
    """The comparison as tables, into an empty or a new folder: changes.csv, changed_verdicts.csv, changes.json."""
    if folder.exists() and any(folder.iterdir()):
        raise Failure(f"{folder} is not empty")
    folder.mkdir(parents=True, exist_ok=True)
    changes.write_tables(found, folder)
    (folder / changes.SUMMARY).write_text(
        json.dumps(found.summary, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    return sorted(folder.iterdir())
