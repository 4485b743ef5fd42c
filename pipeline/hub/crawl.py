"""The crawl: lists first, then configs and headers of models whose commit changed, then a new snapshot in place of the last.

A crawl that is stopped leaves the snapshot as it was and goes on where it stopped the next time; one that runs out of budget,
or that the Hub fails, writes what it has as a partial snapshot. What it brings is told before the last snapshot makes room, and a crawl
that would lose more than a few known models is kept apart.
"""

from __future__ import annotations

import csv
import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.hub.asking import Progress
from pipeline.hub.client import Hub, has_token
from pipeline.hub.headers import is_needed
from pipeline.hub.journal import Journal
from pipeline.hub.listing import Listed
from pipeline.hub.merge import others_of
from pipeline.hub.reading import Reading
from pipeline.hub.select import first_pages, queries, select
from pipeline.hub.settings import Settings
from pipeline.hub.snapshot import UNFINISHED, Snapshot, SnapshotError, newest_snapshot, snapshot_in
from pipeline.hub.store import CRAWL, Store
from pipeline.hub.traffic import Traffic

MOST_LOST = 0.05  # of the known models; a crawl that would lose more has met something else than a Hub that changed
FEW_LOST = 5  # models, which are never too many
MOST_FAILED, FEW_FAILED = (
    0.01,
    20,
)  # of the listed models, and models: where more were not reached, the crawl is not whole
APART, FLIPPED = "apart", "flipped.csv"


@dataclass
class Brought:
    """What a new snapshot changes: `lines` for people, and the known models that would become worse known, each with why."""

    lines: list[str] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    flipped: list[tuple[str, ...]] = field(default_factory=list)  # model, scenario, card, verdict before and now


Compare = Callable[[Snapshot, Snapshot], Brought]


@dataclass
class Crawled:
    """What a crawl did. Counts are of models, `requests` of requests by kind."""

    folder: Path
    listed: int = 0
    unchanged: int = 0
    read: int = 0
    resumed: int = 0  # read by an earlier crawl that did not end
    rejected: int = 0
    removed: int = 0
    renamed: int = 0
    pending: int = 0  # changed, but not read: the next crawl's
    written: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the Hub would not tell; the crawl is whole all the same
    brought: list[str] = field(default_factory=list)  # what it changes, for people
    kept_apart: str = ""  # why the last snapshot stays

    @property
    def is_partial(self) -> bool:
        return bool(self.problems or self.pending)


def crawl(
    settings: Settings, progress: Progress, say: Callable[[str], None] = print, compare: Compare | None = None
) -> Crawled:
    """Crawls and writes the snapshot. Raises Unavailable where the Hub gives no list at all, JournalError where another runs.

    `compare` tells what the new snapshot changes, before it takes the place of the last.
    """
    traffic = Traffic(settings.limits(has_token()), budget=settings.budget, learning=settings.rates is None)
    cache = settings.work / "answers"
    with Journal(settings.work).opened() as journal, Hub(settings.endpoint, traffic, settings.patience, cache) as hub:
        store = Store(settings.folder)
        store.load()
        if settings.is_dry_run:
            found = first_pages(hub, journal, settings, progress)
        else:
            found = select(hub, journal, store, settings, progress)
        run = Reading(settings, hub, journal, store, found, datetime.date.today().isoformat(), has_token())
        todo = run.pending()
        done = Crawled(settings.folder / CRAWL, listed=len(found.listed), notes=hub.notes)
        asked_for = {row.model_id for row in todo}
        resumed = (row for row in found.listed.values() if row.model_id not in asked_for)
        done.resumed = sum(journal.has(row.model_id, row.sha) for row in resumed)
        done.unchanged = done.listed - done.resumed - len(todo)
        if settings.is_dry_run:
            _explain(run, todo, say)
        else:
            for _ in progress(run.read_all(todo), desc="models", total=len(todo), note=run.told):
                pass
            _finish(run, done, len(todo), compare)
        done.requests, done.problems = dict(traffic.asked), found.problems
        return done


def _finish(run: Reading, done: Crawled, todo: int, compare: Compare | None) -> None:
    if run.allowance.problem:
        run.found.problems.append(run.allowance.problem)
    left = {row.model_id for row in run.pending()}
    done.pending = len(left - run.failed.keys())  # one that fails at every try does not make the crawl partial for ever
    if len(run.failed) > max(FEW_FAILED, MOST_FAILED * done.listed):
        first = next(iter(run.failed.values()))
        run.found.problems.append(f"{len(run.failed):,} models were not reached, the first since: {first}")
    done.read = todo - len(left)
    excluded, renamed = run.settings.excluded(), run.found.renamed
    known = [key for key in run.store.known if key not in renamed or key in run.found.listed]
    model_ids = [key for key in dict.fromkeys([*known, *run.found.listed]) if excluded.reason(key) is None]
    heirs = {
        new: {**heir, "model_id": new} for old, new in renamed.items() if (heir := _under_old_name(run.store, old))
    }
    is_partial = bool(done.pending or run.found.problems)
    about = {
        "snapshot_date": run.date,
        "origin": "partial crawl" if is_partial else "crawl",
        "crawled_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "is_partial": is_partial,
        "model_count": run.settings.model_count,
    }
    rejected = run.rejected()
    done.written, rejected = run.store.write(model_ids, run.build(heirs), rejected, run.popularity(), about)
    done.rejected, done.renamed = len(rejected), len(renamed.keys() & run.store.known.keys())
    outcomes = (run.journal.get(row.model_id, row.sha) for row in run.found.listed.values())
    done.removed = len(run.found.gone & run.store.known.keys()) + sum("gone" in (o or {}) for o in outcomes)
    _take_place(run, done, compare)
    if not is_partial and not done.kept_apart:
        run.journal.clear()


def _under_old_name(store: Store, model_id: str) -> dict[str, Any] | None:
    """What other sources say of a model that the Hub has under another name now."""
    bundled, crawled = store.raw(model_id)
    return others_of(bundled or crawled or {})


def _take_place(run: Reading, done: Crawled, compare: Compare | None) -> None:
    """Says what the new snapshot changes, and puts it in the place of the last unless it would lose too much."""
    lost = dict(run.lost)
    if compare:
        try:
            before = newest_snapshot(run.settings.folder)
        except SnapshotError:
            before = None  # there is nothing to compare with
        if before:
            brought = compare(before, snapshot_in(run.settings.folder / UNFINISHED))
            # a renamed model is known as well as before, under its new name
            lost = {key: why for key, why in brought.lost.items() if key not in run.found.renamed} | lost
            done.brought = [*brought.lines, *_kept(brought.flipped, run.settings.work / FLIPPED)]
    count = sum(not known.is_removed for known in run.store.known.values())
    if len(lost) > max(FEW_LOST, MOST_LOST * count) and not run.settings.is_accepted:
        why = ", ".join(f"{number:,} since {reason}" for reason, number in Counter(lost.values()).most_common())
        where = run.settings.work / APART
        run.store.set_apart(where)
        done.kept_apart = (
            f"{len(lost):,} of {count:,} known models would be lost ({why}; the first are {', '.join(sorted(lost)[:3])}). "
            f"The last snapshot stays, and this one is kept in {where}: `make crawl ARGS=--accept` takes it all the same"
        )
    else:
        run.store.swap()


def _kept(flipped: list[tuple[str, ...]], path: Path) -> list[str]:
    """Writes every verdict that flips; says where they are."""
    path.unlink(missing_ok=True)
    if not flipped:
        return []
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("model_id", "scenario", "gpu_id", "before", "now"), *flipped])
    return [f"  all of them are in {path}"]


def _explain(run: Reading, todo: list[Listed], say: Callable[[str], None]) -> None:
    """What a crawl would ask, as far as the first page of each list by downloads tells."""
    files = sum(_requests_of(row, run.settings) for row in todo)
    seconds = run.hub.traffic.seconds_for("file", files)
    listed = len(run.found.listed)
    pages = sum(-(-most // 1000) for _, _, most in queries(run.settings))
    say(
        f"lists: {len(queries(run.settings))}, of some {pages} pages; their first pages by downloads have {listed:,} models, "
        f"and {len(run.found.unusable):,} unusable rows"
    )
    say(f"would read {len(todo):,} models in about {files:,} requests, {seconds / 60:.0f} minutes at the Hub's limit")
    for row in todo[:20]:
        say(f"  {row.model_id}@{row.sha[:12]}")
    if len(todo) > 20:
        say(f"  … and {len(todo) - 20:,} more")


def _requests_of(row: Listed, settings: Settings) -> int:
    """About how many requests a model takes: headers are one, or two where they are long."""
    parts = sum(name.count("/") == 1 and name.endswith("config.json") for name in row.files)
    configs = 1 + min(parts, 8) if "model_index.json" in row.files else int("config.json" in row.files)
    is_asked = settings.header_requests > 0 or is_needed(row)
    return configs + int(is_asked and any(not n.endswith(".json") for n in row.files))
