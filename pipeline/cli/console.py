"""What a person sees of a publish: which snapshot is used, a bar for every step, and a summary at the end."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import polars as pl

from pipeline.base.caches import cache_folder
from pipeline.base.failures import interruptible
from pipeline.base.progress import bar
from pipeline.book.facts import read_facts, read_measured
from pipeline.book.packs import Packs
from pipeline.hub.crawl import Crawled
from pipeline.hub.crawl import crawl as crawl_hub
from pipeline.hub.journal import JournalError
from pipeline.hub.look import look_at_hub
from pipeline.hub.reach import why_unreachable
from pipeline.hub.settings import Settings
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.hub.store import Store
from pipeline.hub.traffic import HubError, Unavailable
from pipeline.press import accuracy, brought, build, changes, checks, formulas, hosting, manifest
from pipeline.press import publish as publishing
from pipeline.press.anatomise import anatomise


def publish(snapshot: Snapshot, output: Path, accept: str = "", anew: bool = False) -> None:
    """Publishes with progress on standard error and a summary on standard output. `accept` is the reason to publish what a gate
    refuses. What was worked out for earlier builds is kept in the folder for caches, and not used where all is to be made `anew`."""
    started = time.monotonic()
    print(f"Using the {snapshot.describe()}.", flush=True)
    packs = None if anew else Packs(cache_folder() / "packs")
    done = publishing.publish(
        snapshot, bar, output, say=lambda line: print(line, flush=True), accept=accept, packs=packs
    )
    seconds = time.monotonic() - started
    _tell(_summary(done, seconds))


def spread(address: str | None, workers: int) -> int:
    """Has the footprints of the newest snapshot worked out by a cluster. Returns the exit status: what failed is left to the build."""
    from pipeline.press import spread as spreading

    packs = Packs(cache_folder() / "packs")
    told = spreading.spread(newest_snapshot(), packs, spreading.over_dask(address, workers), bar)
    print(
        f"{told.done:,} shards were worked out and kept in {packs.folder}; `make publish` finds them there.", flush=True
    )
    for why, count in Counter(told.failed).items():
        print(f"error: {count:,} shards were not, and are left to the build: {why}", file=sys.stderr)
    return 1 if told.failed else 0


def publish_as_it_comes(settings: Settings, output: Path, accept: str = "", anew: bool = False) -> None:
    """Publishes from what the Hub says now. Where nothing is published yet, what there is goes first: nobody waits for a crawl to see
    the almanac."""
    if is_built(output):
        refresh(settings)
        publish(newest_snapshot(settings.folder), output, accept, anew)
        return
    publish(newest_snapshot(settings.folder), output, accept, anew)
    print(
        f"That is whole, and lies in {_shown(output)}. Next the Hub is crawled, and then it is published again; Ctrl-C leaves it as it is.",
        flush=True,
    )
    if refresh(settings, otherwise="what is published stays"):
        publish(newest_snapshot(settings.folder), output, accept, anew)


def is_built(output: Path) -> bool:
    return (output / "tables" / build.DATABASE).exists() and (output / "site" / "index.html").exists()


def crawl(settings: Settings) -> int:
    """Crawls with a bar for lists and models, and a summary. Returns the exit status: 0 whole, 3 partial or kept apart."""
    problem = why_unreachable(settings.endpoint)
    if problem:
        raise Unavailable(f"the Hub does not answer ({problem}); the snapshot is as it was")
    done = _crawled(settings)
    return 3 if done.is_partial or done.kept_apart else 0


def look(settings: Settings) -> int:
    """Says whether the Hub still behaves as the crawl assumes, and what a crawl would ask; writes nothing. Returns the exit status: 0 where
    it does, 3 where something differs."""
    problem = why_unreachable(settings.endpoint)
    if problem:
        raise Unavailable(f"the Hub does not answer ({problem})")
    found = look_at_hub(settings)
    _tell(found.lines())
    if found.is_silent:
        return 3
    done = crawl_hub(replace(settings, is_dry_run=True), bar)
    count = found.request_count + sum(done.requests.values())
    _tell([*done.problems[:5], f"asked {count:,} requests; nothing was written"])
    return 3 if found.differs or done.problems else 0


def refresh(settings: Settings, otherwise: str = "publishing from the last snapshot") -> bool:
    """Crawls where the Hub answers; else says in one line why not, and what is done `otherwise`. Returns whether there is a new snapshot."""
    if Store(settings.folder).is_whole(datetime.date.today().isoformat(), settings.model_count):
        print("The snapshot is of today: the Hub is not asked again.", flush=True)
        return False
    problem = why_unreachable(settings.endpoint)
    if problem:
        print(f"The Hub does not answer ({problem}): {otherwise}.", flush=True)
        return False
    print("Crawling the Hub (Ctrl-C stops it, and the next run goes on; --no-crawl leaves it out).", flush=True)
    try:
        return not _crawled(settings).kept_apart
    except (HubError, JournalError, OSError) as error:
        print(f"The crawl failed ({error}): {otherwise}.", flush=True)
        return False


def _crawled(settings: Settings) -> Crawled:
    started = time.monotonic()
    done = crawl_hub(settings, bar, compare=partial(brought.brought, progress=bar))
    _tell(_crawl_summary(done, time.monotonic() - started))
    return done


def _tell(lines: Iterable[str]) -> None:
    """Prints lines; a blank one is for the eye, and stays out of a log."""
    print("\n".join(line for line in lines if line or sys.stdout.isatty()), flush=True)


def _crawl_summary(done: Crawled, seconds: float) -> Iterator[str]:
    asked = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.requests.items()))
    yield ""
    yield f"  listed       {done.listed:,} models: {done.unchanged:,} unchanged, {done.read + done.resumed:,} read"
    yield f"  written      {done.written:,} records{'' if done.kept_apart else f' to {_shown(done.folder)}'}"
    yield (
        f"  rejected     {done.rejected:,}, each with its reason in rejected.csv; "
        f"gone from the Hub {done.removed:,}, renamed {done.renamed:,}"
    )
    yield f"  requests     {sum(done.requests.values()):,} ({asked or 'none'}) in {seconds:.1f} s"
    for line in done.brought:
        yield f"  {line}"
    if done.kept_apart:
        yield f"  kept apart   {done.kept_apart}"
    if done.is_partial:
        yield f"  partial      {done.pending:,} models are left; the next crawl goes on with them"
    for problem in [*done.problems[:5], *done.notes[:5]]:
        yield f"               {problem}"


def check(database: Path) -> int:
    """Prints the files that are not as they were published and the checks that fail, or how many passed. Returns the exit status."""
    if not database.exists():
        raise FileNotFoundError(f"{database} is not there; `make publish` builds it")
    tables, site = database.parent, database.parent.with_name("site")
    failures = [*manifest.damage(tables, bar), *(manifest.damage(site, bar) if site.exists() else ())]
    if not any(problem.startswith(f"{tables.name}/{database.name}:") for problem in failures):
        failures += checks.run_checks(database, bar)
    count = sum(len(manifest.read(part).get("files", ())) for part in (tables, site))
    if failures:
        print("\n".join(failures))
        return 1
    print(f"all {checks.count_of(database)} checks passed, and {count:,} files are as they were published")
    return 0


def hosting_of(site: Path, host: str | None = None) -> int:
    """Prints the size of a built site, by kind, and what it, or the tables beside it, is beyond: limits of hosts and our own. Returns
    the exit status."""
    size, kinds = hosting.measure(site), hosting.by_kind(site)
    print(f"{site} has {size.told()}", *(kind.told() for kind in kinds if kind.file_count), sep="\n", flush=True)
    problems = [*hosting.too_large(size, host=host), *hosting.too_heavy(kinds)]
    tables = site.with_name("tables")
    if tables.is_dir():
        problems += hosting.too_large(hosting.measure_folder(tables), "tables", host)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def compare(snapshot: Snapshot) -> None:
    """Prints our error against the published measurements, from the book as it stands; nothing is written."""
    with duckdb.connect() as connection, interruptible(connection):
        formulas.load(connection, read_facts(), {**anatomise(snapshot, bar), "measured": read_measured()})
        formulas.run_sql(connection)
        accuracy.fill_accuracy(connection)
        print(accuracy.shown(connection), flush=True)


def _summary(done: publishing.Published, seconds: float) -> Iterator[str]:
    tables = done.folder / "tables"
    counts = manifest.read(tables)["row_counts"]
    # from Parquet: whoever has the DuckDB file open does not matter
    grades = pl.scan_parquet(tables / "model.parquet").group_by("anatomy_grade").len().collect().rows()
    grades.sort(key=lambda row: (-row[1], row[0]))
    known, unknown = (
        pl.scan_parquet(tables / "footprint.parquet")
        .select(pl.col("total_bytes").count(), pl.col("unknown_reason").count())
        .collect()
        .row(0)
    )
    yield ""
    yield f"  rebuilt      {', '.join(done.rebuilt) or 'nothing: no input has changed'}"
    if done.damaged:
        more = f" and {len(done.damaged) - 3:,} more" if len(done.damaged) > 3 else ""
        yield f"  was damaged  {'; '.join(done.damaged[:3])}{more}"
    yield f"  models       {counts['model']:,} ({', '.join(f'{grade} {count:,}' for grade, count in grades)}), rejected {counts['rejected']:,}"
    yield f"  GPUs         {counts['gpu']:,}"
    yield f"  footprints   {known:,} known, {unknown:,} unknown with a reason"
    yield f"  tables       {len(counts)} in {_size(tables)}"
    yield f"  site         {_size(done.folder / 'site', skip='tables')} in {sum(1 for _ in (done.folder / 'site').rglob('index.html')):,} pages"
    yield f"  compared     {_compared(tables)}"
    yield f"  took         {seconds:.1f} s"
    yield f"  open         {_shown(done.folder / 'site' / 'index.html')}   (or: make serve)"


def _compared(tables: Path) -> str:
    """What the gates said, in a line: with no release to compare with they say nothing."""
    found = json.loads((tables / changes.SUMMARY).read_text(encoding="utf-8"))
    if accepted := found.get("accepted"):
        return f"{len(accepted['gates'])} gates refused it, published all the same: {accepted['reason']}"
    since = found["since"]
    return (
        f"with {since['data_version']}: no gate refuses it"
        if since
        else "with nothing: no release is kept (make release)"
    )


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
