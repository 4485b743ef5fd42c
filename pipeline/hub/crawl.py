"""The crawl: lists first, then configs and headers of models whose commit changed, then a new snapshot in place of the last.

A crawl that is stopped leaves the snapshot as it was and goes on where it stopped the next time; one that runs out of budget,
or that the Hub fails, writes what it has as a partial snapshot. Whatever a model does, it costs that model and no other.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.hub.careful import Malformed
from pipeline.hub.client import Hub, Refused, has_token
from pipeline.hub.details import read_model
from pipeline.hub.headers import Allowance
from pipeline.hub.journal import Journal
from pipeline.hub.listing import SOURCE, Listed
from pipeline.hub.merge import facts_of, merged, removed
from pipeline.hub.select import GONE, Selection, queries, select
from pipeline.hub.settings import Settings
from pipeline.hub.snapshot import Popularity
from pipeline.hub.store import CRAWL, Store
from pipeline.hub.traffic import BodyTooLarge, BudgetSpent, HubError, Stopped, Traffic, Unavailable

FAILURES_IN_A_ROW = 20  # models that the Hub fails one after the other: then it is down, and the crawl ends
Progress = Callable[..., Any]


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
    pending: int = 0  # changed, but not read: the next crawl's
    written: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the Hub would not tell; the crawl is whole all the same

    @property
    def is_partial(self) -> bool:
        return bool(self.problems or self.pending)


@dataclass
class _Run:
    settings: Settings
    hub: Hub
    journal: Journal
    store: Store
    found: Selection
    date: str
    failed: dict[str, str] = field(default_factory=dict)  # not reached this time; asked again the next
    allowance: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self.allowance = Allowance(self.settings.header_requests)

    def pending(self) -> list[Listed]:
        """Listed models whose commit nobody has read yet, then those whose headers are due from an earlier crawl."""
        listed = [row for row in self.found.listed.values() if not self._is_done(row)]
        due = [row for row in listed if self._is_read(row) and self._is_header_due(row)]
        return [row for row in listed if not self._is_read(row)] + due

    def _is_header_due(self, row: Listed) -> bool:
        known = self.store.known.get(row.model_id)
        return known is not None and known.is_header_due and self.allowance.left > 0

    def _is_done(self, row: Listed) -> bool:
        return self.journal.has(row.model_id, row.sha)

    def _is_read(self, row: Listed) -> bool:
        if self.settings.is_again:
            return False
        known = self.store.known.get(row.model_id)
        rejected = self.store.rejected.get(row.model_id, {})
        return (known is not None and known.sha == row.sha) or rejected.get("revision") == row.sha

    def read_all(self, todo: list[Listed]) -> Iterator[str]:
        """Reads models in a few threads and gives each id as it is done. Ends early when the budget or the Hub is at its end."""
        failures, rest, running = 0, iter(todo), set()
        with ThreadPoolExecutor(self.settings.threads) as pool:
            try:
                while True:
                    # only a few wait at a time: memory is for those under way
                    while len(running) < 2 * self.settings.threads and (row := next(rest, None)) is not None:
                        running.add(pool.submit(self._read, row))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        model_id, problem = _result(future)
                        failures = failures + 1 if isinstance(problem, Unavailable) else 0
                        if isinstance(problem, BudgetSpent) or failures >= FAILURES_IN_A_ROW:
                            self.found.problems.append(str(problem))
                            return
                        yield model_id
            finally:
                self.hub.traffic.stop()  # wakes what waits for its turn
                pool.shutdown(cancel_futures=True)

    def _read(self, row: Listed) -> tuple[str, HubError | None]:
        try:
            outcome: dict[str, Any] = {"facts": read_model(self.hub, row, self.allowance)}
        except Refused as refusal:
            outcome = {"gone": str(refusal)} if refusal.is_gone else {"reason": str(refusal)}
        except (Malformed, BodyTooLarge) as problem:
            outcome = {"reason": str(problem)}
        except (BudgetSpent, Stopped) as problem:
            return row.model_id, problem
        except HubError as problem:
            self.failed[row.model_id] = f"not reached: {problem}"
            return row.model_id, problem
        except Exception as bug:
            # a mistake of ours costs this model, and is tried again by the next crawl
            self.failed[row.model_id] = f"the crawl's own mistake: {type(bug).__name__}: {str(bug)[:120]}"
            return row.model_id, None
        self.journal.add(row.model_id, row.sha, outcome)
        return row.model_id, None

    def build(self, model_id: str, bundled: Any, crawled: Any) -> Any:
        """The record to write for a model, or None for none."""
        before = crawled if crawled and SOURCE in crawled.get("sources", ()) else None
        kept = merged(bundled, facts_of(before)) if before else bundled or crawled
        if before and "removed_at" in before:
            kept["removed_at"] = before["removed_at"]
        row = self.found.listed.get(model_id)
        outcome = self.journal.get(model_id, row.sha) if row else None
        if model_id in self.found.gone or (outcome and "gone" in outcome):
            return removed(kept, self.date) if kept else None
        if outcome and "facts" in outcome:
            facts = outcome["facts"]
        elif row and before and before.get("revision") == row.sha and not outcome:
            facts = {key: value for key, value in facts_of(before).items() if key != "is_private"}
        else:
            return kept
        return merged(bundled, {**facts, **row.facts, "model_id": model_id, "revision": row.sha})

    def rejected(self) -> dict[str, dict[str, str]]:
        """A row per model that could not be taken; those of earlier crawls hold until their models are seen again."""
        rows: dict[str, dict[str, str]] = {}
        for model_id, row in self.store.rejected.items():
            listed = self.found.listed.get(model_id)
            if (listed is None and (row["revision"] == GONE or self.found.problems)) or (
                listed is not None and listed.sha == row["revision"] and not self.settings.is_again
            ):
                rows[model_id] = row
        for listed in self.found.listed.values():
            outcome = self.journal.get(listed.model_id, listed.sha)
            reason = (outcome or {}).get("reason") or (outcome or {}).get("gone")
            if reason:
                rows[listed.model_id] = _rejected(listed.model_id, listed.sha, reason)
        for model_id, reason in self.failed.items():
            rows[model_id] = _rejected(model_id, "", reason)
        for unusable in self.found.unusable.values():
            # a known model that is gone is a record with `removed_at`, not a bad one
            if not (unusable.model_id in self.found.gone and unusable.model_id in self.store.known):
                rows[unusable.model_id] = _rejected(unusable.model_id, unusable.sha, unusable.reason)
        return rows

    def popularity(self) -> dict[str, Popularity]:
        found = dict(self.store.popularity)
        for row in self.found.listed.values():
            if row.downloads is not None or row.likes is not None:
                found[row.model_id] = Popularity(row.downloads, row.likes, self.date)
        return found


def crawl(settings: Settings, progress: Progress, say: Callable[[str], None] = print) -> Crawled:
    """Crawls and writes the snapshot. Raises Unavailable where the Hub gives no list at all, JournalError where another runs."""
    traffic = Traffic(settings.limits(has_token()), budget=settings.budget)
    cache = settings.work / "raw"
    with Journal(settings.work).opened() as journal, Hub(settings.endpoint, traffic, settings.patience, cache) as hub:
        store = Store(settings.folder)
        store.load()
        found = select(hub, journal, store, settings, progress)
        run = _Run(settings, hub, journal, store, found, datetime.date.today().isoformat())
        todo = run.pending()
        done = Crawled(settings.folder / CRAWL, listed=len(found.listed))
        done.resumed = sum(journal.has(row.model_id, row.sha) for row in found.listed.values())
        done.unchanged = done.listed - done.resumed - len(todo)
        if settings.is_dry_run:
            _explain(run, todo, say)
        else:
            for _ in progress(run.read_all(todo), desc="models", total=len(todo)):
                pass
            _finish(run, done, len(todo))
        done.requests, done.problems, done.notes = dict(traffic.asked), found.problems, hub.notes
        return done


def _finish(run: _Run, done: Crawled, todo: int) -> None:
    left = {row.model_id for row in run.pending()}
    done.pending = len(left - run.failed.keys())  # one that fails at every try does not make the crawl partial for ever
    done.read = todo - len(left)
    rejected = run.rejected()
    excluded = run.settings.excluded()
    model_ids = [key for key in {**run.store.known, **run.found.listed} if excluded.reason(key) is None]
    is_partial = bool(done.pending or run.found.problems)
    now = datetime.datetime.now(datetime.UTC)
    about = {
        "snapshot_date": run.date,
        "origin": "partial crawl" if is_partial else "crawl",
        "crawled_at": now.isoformat(timespec="seconds"),
        "is_partial": is_partial,
    }
    done.written, rejected = run.store.write(model_ids, run.build, rejected, run.popularity(), about)
    done.rejected = len(rejected)
    outcomes = (run.journal.get(row.model_id, row.sha) for row in run.found.listed.values())
    done.removed = len(run.found.gone & run.store.known.keys()) + sum("gone" in (o or {}) for o in outcomes)
    if not is_partial:
        run.journal.clear()


def _explain(run: _Run, todo: list[Listed], say: Callable[[str], None]) -> None:
    """What a crawl would ask: the lists are read for it, and nothing else."""
    files = sum(_requests_of(row, run.settings) for row in todo)
    seconds = run.hub.traffic.seconds_for("file", files)
    say(
        f"lists: {len(queries(run.settings))}, of {len(run.found.listed):,} models; {len(run.found.unusable):,} unusable rows"
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
    is_asked = settings.header_requests > 0 or "parameters_by_dtype" not in row.facts
    return configs + int(is_asked and any(not n.endswith(".json") for n in row.files))


def _result(future: Future[tuple[str, HubError | None]]) -> tuple[str, HubError | None]:
    return future.result()


def _rejected(model_id: str, revision: str, reason: str) -> dict[str, str]:
    clean = "".join(c if c.isprintable() else "\ufffd" for c in reason)[:500]
    return {"model_id": model_id, "revision": revision, "reason": clean, "sources": SOURCE}
