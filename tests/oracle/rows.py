"""What the tools that count have in common: the configs of the snapshot, and a table whose rows wait for a count or are counted again."""

from __future__ import annotations

import argparse
import csv
import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

Row = dict[str, str]
SNAPSHOT = Path(__file__).parents[2] / "tables" / "hub" / "model"


def configs() -> dict[str, dict]:
    """By model_id."""
    records = (json.loads(line) for path in SNAPSHOT.glob("*.jsonl") for line in path.open(encoding="utf-8"))
    return {record["model_id"]: record["config"] for record in records if record.get("config")}


def changed(config: dict, changes: str) -> dict:
    """The config with values of its own in it: `vision_config.depth=12 vocab_size=1024`."""
    made = json.loads(json.dumps(config))
    for change in changes.split():
        path, _, value = change.partition("=")
        *parts, field = path.split(".")
        inner = made
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[field] = json.loads(value)
    return made


def count_rows(path: Path, told: str, name: Callable[[Row], str], count: Callable[[Row], Row]) -> None:
    """`name` says what a row is of, `count` what it holds: columns by name. A row that cannot be counted stays as it is, and says why."""
    parser = argparse.ArgumentParser(description=told, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--again", default=None, help="part of the names of models, types or classes whose rows are counted anew"
    )
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["peak_bytes"] and not (asked.again and asked.again in name(row)):
            continue
        try:
            row |= count(row)
        except Exception as error:
            print(f"{name(row)}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
