"""What the readers of configs make of one model of each kind, as a digest for each table: tests/golden/anatomy.csv.

    python -m tests.golden.anatomy               # after a change of a reader: says what changed and writes the file anew
    python -m tests.golden.anatomy --of FOLDER   # prints the digests of the snapshot in that folder (code_mutants.py asks so)

The rows are no truth of their own (that is what tests/oracle and published totals hold): they hold every number and branch of a reader that
no total feels, a layer's heads or a tower's tiles.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb
import polars as pl

from pipeline.hub.snapshot import newest_snapshot, snapshot_in
from pipeline.press.anatomise import anatomise

PATH = Path(__file__).with_name("anatomy.csv")
TABLES = ("model", "tensor", "attention_layer", "feed_forward_layer", "tower", "component", "component_tensor", "stored_part", "stored_tensor")  # fmt: skip
# what changes weekly, and names of sources, which are no work of a reader
_NOT_READ = {"downloads_30d", "likes", "facts_as_of", "revision", "sources", "is_gated", "license", "pipeline_tag", "library", "created_at", "config_source"}  # fmt: skip

Digests = dict[str, tuple[str, ...]]


def digests(frames: Mapping[str, pl.DataFrame]) -> Digests:
    """By model: eight digits for each of TABLES, '' where it has no rows."""
    found: dict[str, dict[str, str]] = {}
    with duckdb.connect() as connection:
        for name in TABLES:
            frame = frames[name].select(pl.exclude(_NOT_READ))
            connection.register("rows", frame.to_arrow())
            asked = "SELECT model_id, md5(string_agg(said, ' ' ORDER BY said))[:8] FROM (SELECT model_id, to_json(r)::VARCHAR AS said FROM rows AS r) GROUP BY model_id"
            for model_id, digest in connection.execute(asked).fetchall():
                found.setdefault(model_id, {})[name] = digest
            connection.unregister("rows")
    return {model_id: tuple(those.get(name, "") for name in TABLES) for model_id, those in found.items()}


def one_of_each(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    """The most downloaded model of each type, class and grade, and of each that has parts."""
    kind = ["model_type", "architecture", "anatomy_grade", "config_kind"]
    models = frames["model"].sort(["downloads_30d", "model_id"], descending=[True, False], nulls_last=True)
    chosen = set(models.unique(kind, keep="first", maintain_order=True)["model_id"])
    parts = (
        frames["component"]
        .join(models.select("model_id", "downloads_30d"), on="model_id")
        .sort(["downloads_30d", "model_id"], descending=[True, False], nulls_last=True)
    )
    return sorted(chosen | set(parts.unique(["class_name"], keep="first", maintain_order=True)["model_id"]))


def read() -> Digests:
    with PATH.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return {row[0]: tuple(row[1:]) for row in rows[1:]}


def differences(expected: Digests, said: Digests) -> list[str]:
    """The models and tables of the file that are not as it says."""
    return [
        f"{model_id}: {', '.join(name for name, was, now in zip(TABLES, row, said[model_id], strict=True) if was != now)}"
        if model_id in said
        else f"{model_id}: is not there"
        for model_id, row in expected.items()
        if said.get(model_id) != row
    ]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--of"]:
        for model_id, row in sorted(digests(anatomise(snapshot_in(Path(arguments[1])))).items()):
            print(model_id, *row)
        return 0
    frames = anatomise(newest_snapshot())
    said = digests(frames)
    if PATH.exists():
        print("\n".join(differences(read(), said)) or "nothing has changed")
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model_id", *TABLES])
        writer.writerows([model_id, *said[model_id]] for model_id in one_of_each(frames))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
