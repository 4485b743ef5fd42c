"""What a person sees of a publish: which snapshot is used, a bar for every step, and a summary at the end."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from pipeline import accuracy, build, checks, manifest
from pipeline import publish as publishing
from pipeline.anatomise import anatomise
from pipeline.facts import read_facts, read_measured
from pipeline.hub.crawl import Crawled
from pipeline.hub.crawl import crawl as crawl_hub
from pipeline.hub.journal import JournalError
from pipeline.hub.reach import why_unreachable
from pipeline.hub.settings import Settings
from pipeline.hub.snapshot import Snapshot
from pipeline.hub.store import Store
from pipeline.hub.traffic import HubError, Unavailable
from pipeline.progress import bar


def publish(snapshot: Snapshot, output: Path) -> None:
    """Publishes with progress on standard error and a summary on standard output."""
    started = time.monotonic()
    print(f"Using the {snapshot.describe()}.", flush=True)
    done = publishing.publish(snapshot, bar, output)
    seconds = time.monotonic() - started
    print("\n".join(_summary(done, seconds)), flush=True)


def crawl(settings: Settings) -> int:
    """Crawls with a bar for lists and models, and a summary. Returns the exit status: 0 whole, 3 partial."""
    started = time.monotonic()
    problem = why_unreachable(settings.endpoint)
    if problem:
        raise Unavailable(f"the Hub does not answer ({problem}); the snapshot is as it was")
    done = crawl_hub(settings, bar)
    if settings.is_dry_run:
        print(f"asked {sum(done.requests.values()):,} requests for the lists; nothing was written", flush=True)
        return 0
    print("\n".join(_crawl_summary(done, time.monotonic() - started)), flush=True)
    return 3 if done.is_partial else 0


def refresh(settings: Settings) -> None:
    """Crawls before a publish where the Hub answers; otherwise says in one line why the last snapshot is used."""
    if Store(settings.folder).is_whole(datetime.date.today().isoformat()):
        print("The snapshot is of today: the Hub is not asked again.", flush=True)
        return
    problem = why_unreachable(settings.endpoint)
    if problem:
        print(f"The Hub does not answer ({problem}): publishing from the last snapshot.", flush=True)
        return
    print("Crawling the Hub first (Ctrl-C stops it, and the next run goes on; --no-crawl leaves it out).", flush=True)
    try:
        crawl(settings)
    except (HubError, JournalError, OSError) as error:
        print(f"The crawl failed ({error}): publishing from the last snapshot.", flush=True)


def _crawl_summary(done: Crawled, seconds: float) -> Iterator[str]:
    asked = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.requests.items()))
    yield ""
    yield f"  listed       {done.listed:,} models: {done.unchanged:,} unchanged, {done.read + done.resumed:,} read"
    yield f"  written      {done.written:,} records to {_shown(done.folder)}"
    yield f"  rejected     {done.rejected:,}, each with its reason in rejected.csv; gone from the Hub {done.removed:,}"
    yield f"  requests     {sum(done.requests.values()):,} ({asked or 'none'}) in {seconds:.1f} s"
    if done.is_partial:
        yield f"  partial      {done.pending:,} models are left; the next crawl goes on with them"
    for problem in [*done.problems[:5], *done.notes[:5]]:
        yield f"               {problem}"


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
