"""What the tables of a build take: cold, after one model changed, and unchanged (`make bench-build`, `EVERY=10` for every tenth model).

Writes tests/bench/build.csv: for each stage seconds and seconds of CPU of this process, on one machine and in one run, so that the columns
can be compared with each other, and in its first line what machine and how many models. The model that changes has one layer fewer.
"""

from __future__ import annotations

import csv
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.press import build
from pipeline.press.packs import Packs

TABLE = Path(__file__).with_suffix(".csv")
MODEL, FIELD = "Qwen/Qwen3-0.6B", "num_hidden_layers"


class Stages:
    """A progress that keeps what each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, tuple[float, float]] = {}
        self.began = time.perf_counter(), time.process_time()

    def __call__(self, rows: Iterable[Any], *, desc: str, total: int | None = None, **_how: Any) -> Iterator[Any]:
        yield from rows
        self.end(desc)

    def end(self, name: str) -> None:
        """All since the last stage belongs to this one."""
        now = time.perf_counter(), time.process_time()
        self.seconds[name] = now[0] - self.began[0], now[1] - self.began[1]
        self.began = now


def changed(snapshot: Snapshot) -> Snapshot:
    """The same with one model of another shape, which no total confirms."""
    place = next(i for i, record in enumerate(snapshot.records) if record.model_id == MODEL)
    record = snapshot.records[place]
    config = {**record.config, FIELD: record.config[FIELD] - 1}
    other = replace(record, config=config, stored_parameter_count=None)
    return replace(snapshot, records=(*snapshot.records[:place], other, *snapshot.records[place + 1 :]))


def main(every: int = 1) -> None:
    whole = newest_snapshot()
    # the one that changes is among them
    start = next(i for i, record in enumerate(whole.records) if record.model_id == MODEL) % every
    snapshot = replace(whole, records=whole.records[start::every])
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        for name, asked in (("cold", snapshot), ("changed", changed(snapshot)), ("unchanged", snapshot)):
            folder, stages = Path(scratch, name), Stages()
            folder.mkdir()
            build.build_tables(folder, asked, stages, Packs(Path(scratch, "packs")))
            stages.end("the rest")
            found[name] = stages.seconds
            total = [sum(taken[i] for taken in stages.seconds.values()) for i in (0, 1)]
            found[name]["all"] = total[0], total[1]
            print(f"{name}: {total[0]:.0f} s, {total[1]:.0f} s of CPU", file=sys.stderr, flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    libraries = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "polars", "pyarrow"))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(
            f"# {len(snapshot.records):,} models on {os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}, {libraries}; "
            f"at most {memory:,} MiB\n"
        )
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["stage", *(f"{name}_{what}" for name in found for what in ("seconds", "cpu_seconds"))])
        for stage in found["cold"]:
            out.writerow([stage, *(f"{number:.1f}" for name in found for number in found[name].get(stage, (0, 0)))])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
