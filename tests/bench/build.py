"""What the tables of a build take: cold, after one model changed, and unchanged (`make bench-build`, `EVERY=10` for every tenth model).

Writes three tables, each of one machine and one run, so that its columns can be compared with each other; the first line of each says what machine:

    build.csv   by stage: seconds, seconds of CPU (with those of other processes), the most memory that this process held (MiB)
    floor.csv   the two large files: rows a second of CPU worked out and written, beside a plain write of the same rows and a
                fill of as much memory
    pages.csv   the site of these tables: pages a second of CPU, and what it took by stage

How what streams grows with the number of models is measured by many.py. The model that changes has one layer fewer.
"""

from __future__ import annotations

import contextlib
import csv
import math
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

import polars as pl

from pipeline.book.packs import Packs
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.press import build
from pipeline.render import render

TABLE = Path(__file__).with_suffix(".csv")
FLOOR, PAGES = (TABLE.with_name(f"{name}.csv") for name in ("floor", "pages"))
MODEL, FIELD = "Qwen/Qwen3-0.6B", "num_hidden_layers"
WRITTEN = {"compatibility": "tables: compatibility", "footprint": "tables: footprint"}
PLAIN_ROWS = 10_000_000  # as many as are written plainly: a part of the larger file, at the same rate


class Stages:
    """A progress that keeps what each step took: seconds, seconds of CPU, MiB."""

    def __init__(self) -> None:
        self.taken: dict[str, tuple[float, float, int]] = {}
        self.began = time.perf_counter(), cpu_seconds()
        forget_peak()

    def __call__(self, rows: Iterable[Any], *, desc: str, total: int | None = None, **_how: Any) -> Iterator[Any]:
        for row in rows:
            yield row
            if desc == "tables" and row[0] in WRITTEN:
                self.end(WRITTEN[row[0]])
        self.end(desc)

    def end(self, name: str) -> None:
        """All since the last stage belongs to this one, and to others of its name: tables and site have a manifest each."""
        now = time.perf_counter(), cpu_seconds()
        seconds, cpu, mib = self.taken.get(name, (0, 0, 0))
        self.taken[name] = seconds + now[0] - self.began[0], cpu + now[1] - self.began[1], max(mib, peak_mib())
        self.began = now
        forget_peak()


def cpu_seconds() -> float:
    """Of this process and those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def forget_peak() -> None:
    """On Linux the peak of a process can be begun anew (man 5 proc, clear_refs); elsewhere it is that of the whole run."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) // 1024 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**20


def changed(snapshot: Snapshot) -> Snapshot:
    """The same with one model of another shape, which no total confirms."""
    place = next(i for i, record in enumerate(snapshot.records) if record.model_id == MODEL)
    record = snapshot.records[place]
    config = {**record.config, FIELD: record.config[FIELD] - 1}
    other = replace(record, config=config, stored_parameter_count=None)
    return replace(snapshot, records=(*snapshot.records[:place], other, *snapshot.records[place + 1 :]))


def of_every(whole: Snapshot, every: int) -> Snapshot:
    """Every so many models; the one that changes is among them."""
    start = next(i for i, record in enumerate(whole.records) if record.model_id == MODEL) % every
    return replace(whole, records=whole.records[start::every])


def built(folder: Path, snapshot: Snapshot, packs: Packs | None) -> dict[str, tuple[float, float, int]]:
    folder.mkdir()
    stages = Stages()
    build.build_tables(folder, snapshot, stages, packs)
    stages.end("the rest")
    taken = stages.taken
    whole = [sum(one[i] for one in taken.values()) for i in (0, 1)]
    return taken | {"all": (whole[0], whole[1], max(one[2] for one in taken.values()))}


def floors(folder: Path, stages: dict[str, tuple[float, float, int]]) -> Iterator[list[object]]:
    """Each large file beside a plain write of its rows, as a reader has them, and a fill of as many bytes of memory."""
    for name, stage in WRITTEN.items():
        path = folder / f"{name}.parquet"
        rows = pl.scan_parquet(path).select(pl.len()).collect().item()
        plain = pl.scan_parquet(path).head(PLAIN_ROWS).collect()
        began = time.process_time()
        plain.write_parquet(folder / "plain.parquet", row_group_size=1_000_000)
        wrote = time.process_time()
        filled = bytearray(plain.estimated_size())
        filled[:] = b"\x01" * len(filled)
        fill = time.process_time() - wrote
        share = rows / plain.height
        seconds, plain_seconds = stages[stage][1], (wrote - began) * share
        yield [
            name,
            rows,
            *(f"{s:.1f}" for s in (seconds, plain_seconds, fill * share)),
            *(round(rows / s) for s in (seconds, plain_seconds)),
            f"{seconds / plain_seconds:.2f}",
        ]


def exponent(points: list[tuple[int, float]]) -> str:
    """The slope of a line through logarithms."""
    x, y = ([math.log(point[i]) for point in points] for i in (0, 1))
    middle, height = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)
    return f"{slope:.2f}"


def write(path: Path, header: list[str], rows: Iterable[list[object]], models: int) -> None:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "polars", "pyarrow"))
    with path.open("w", encoding="utf-8", newline="") as file:
        where = f"{os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}, {libraries}"
        file.write(f"# {models:,} models on {where}\n")
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)


def say(name: str, taken: dict[str, tuple[float, float, int]]) -> None:
    seconds, cpu, mib = taken["all"]
    print(f"{name}: {seconds:.0f} s, {cpu:.0f} s of CPU, {mib:,} MiB at most", file=sys.stderr, flush=True)


def main(every: int = 1) -> None:
    whole = newest_snapshot()
    snapshot = of_every(whole, every)
    models = len(snapshot.records)
    found: dict[str, dict[str, tuple[float, float, int]]] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".build-bench-") as scratch:
        for name, asked in (("cold", snapshot), ("changed", changed(snapshot)), ("unchanged", snapshot)):
            found[name] = built(Path(scratch, name), asked, Packs(Path(scratch, "packs")))
            say(name, found[name])
        measures = ("seconds", "cpu_seconds", "mib")
        lines = [[s, *(f"{n:.1f}" for name in found for n in found[name].get(s, (0, 0, 0)))] for s in found["cold"]]
        write(TABLE, ["stage", *(f"{name}_{what}" for name in found for what in measures)], lines, models)
        columns = ["table", "rows", "cpu_seconds", "plain_write_cpu_seconds", "memory_fill_cpu_seconds"]
        columns += ["rows_a_cpu_second", "plain_rows_a_cpu_second", "times_plain_write"]
        write(FLOOR, columns, floors(Path(scratch, "cold"), found["cold"]), models)
        stages = Stages()
        pages = render(Path(scratch, "cold"), Path(scratch, "site"), stages)["pages"]
        stages.end("the rest")
        whole_cpu = sum(one[1] for one in stages.taken.values())
        lines = [[name, *(f"{n:.1f}" for n in one)] for name, one in stages.taken.items()]
        lines.append([f"all, {pages} pages: {pages / whole_cpu:.1f} a second of CPU", "", f"{whole_cpu:.1f}", ""])
        write(PAGES, ["stage", "seconds", "cpu_seconds", "mib"], lines, models)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
