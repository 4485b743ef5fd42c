"""What a person sees of a publish: which snapshot is used, a bar for every step, and a summary at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from pipeline import accuracy, build, checks, manifest
from pipeline import publish as publishing
from pipeline.anatomise import anatomise
from pipeline.facts import read_facts, read_measured
from pipeline.hub.snapshot import Snapshot
from pipeline.progress import bar


def publish(snapshot: Snapshot, output: Path) -> None:
    """Publishes with progress on standard error and a summary on standard output."""
    started = time.monotonic()
    print(f"Using the {snapshot.describe()}.", flush=True)
    done = publishing.publish(snapshot, bar, output)
    seconds = time.monotonic() - started
    print("\n".join(_summary(done, seconds)), flush=True)


def check(database: Path) -> int:
    """Prints the checks that fail, or how many passed. Returns the exit status."""
    if not database.exists():
        raise FileNotFoundError(f"{database} is not there; `make publish` builds it")
    failures = checks.run_checks(database)
    print("\n".join(failures) or f"all {sum(1 for _ in checks.all_checks())} checks passed")
    return 1 if failures else 0


def compare(snapshot: Snapshot) -> None:
    """Prints our error against the published measurements, from the book as it stands; nothing is written."""
    with duckdb.connect() as connection:
        build.load(connection, read_facts(), {**anatomise(snapshot, bar), "measured": read_measured()})
        build.run_sql(connection)
        accuracy.fill_accuracy(connection)
        print(accuracy.shown(connection), flush=True)


def _summary(done: publishing.Published, seconds: float) -> Iterator[str]:
    tables = done.folder / "tables"
    counts = json.loads((tables / manifest.FILE).read_text(encoding="utf-8"))["row_counts"]
    with duckdb.connect(str(tables / build.DATABASE), read_only=True) as connection:
        grades = connection.execute("SELECT anatomy_grade, count(*) FROM model GROUP BY ALL ORDER BY 2 DESC").fetchall()
        known, unknown = connection.execute(
            "SELECT count(total_bytes), count(unknown_reason) FROM footprint"
        ).fetchall()[0]
    yield ""
    yield f"  rebuilt      {', '.join(done.rebuilt) or 'nothing: no input has changed'}"
    yield f"  models       {counts['model']:,} ({', '.join(f'{grade} {count:,}' for grade, count in grades)}), rejected {counts['rejected']:,}"
    yield f"  GPUs         {counts['gpu']:,}"
    yield f"  footprints   {known:,} known, {unknown:,} unknown with a reason"
    yield f"  tables       {len(counts)} in {_size(tables)}"
    yield f"  site         {_size(done.folder / 'site', skip='tables')} in {sum(1 for _ in (done.folder / 'site').rglob('index.html')):,} pages"
    yield f"  took         {seconds:.1f} s"
    yield f"  open         {_shown(done.folder / 'site' / 'index.html')}   (or: make serve)"


def _size(folder: Path, skip: str | None = None) -> str:
    total = sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and (skip is None or skip not in path.relative_to(folder).parts[:1])
    )
    return f"{total / 2**20:,.0f} MiB"


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
