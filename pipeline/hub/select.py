"""Which models to crawl: lists by downloads and by trend, what is included by hand, bases of others, known ones not seen for long.

Lists cost a request per page; every other model here costs one of its own.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline.hub.client import Hub, Refused
from pipeline.hub.journal import Journal
from pipeline.hub.listing import EXPAND, EXPAND_ONE, NEEDED, Listed, Unusable, read_row
from pipeline.hub.settings import Settings
from pipeline.hub.store import Store
from pipeline.hub.traffic import BudgetSpent, HubError, Stopped, Unavailable

PAGE_ROWS = 1000  # the Hub may give fewer
ASKED = "models asked for one by one"
GONE = "gone"  # in place of a revision: named by somebody, but the Hub has no such model


@dataclass
class Selection:
    """Models by id, in the order they were found; `problems` are why the lists are not whole."""

    listed: dict[str, Listed] = field(default_factory=dict)
    unusable: dict[str, Unusable] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def take(self, row: Listed | Unusable) -> None:
        """The first row of a model counts: a listing that changes between pages gives some twice."""
        if row.model_id in self.listed or row.model_id in self.unusable:
            return
        if isinstance(row, Listed):
            self.listed[row.model_id] = row
        else:
            self.unusable[row.model_id] = row


Progress = Callable[..., Any]


def queries(settings: Settings) -> list[tuple[str, str, int]]:
    """The lists to read: pipeline tag, order, rows."""
    found = []
    for tag, share in settings.shares().items():
        most = math.ceil(settings.model_count * share)
        found.append((tag, "downloads", most))
        if settings.trending_share:
            found.append((tag, "trendingScore", math.ceil(most * settings.trending_share)))
    return [query for query in found if query[2] > 0]


def select(hub: Hub, journal: Journal, store: Store, settings: Settings, progress: Progress) -> Selection:
    """Raises Unavailable where not a single row of a list could be read, and Stopped."""
    found = Selection()
    excluded = settings.excluded()
    asked = queries(settings)
    for query in progress(asked, desc="lists", total=len(asked)):
        try:
            for row in _rows_of(hub, journal, query):
                if excluded.reason(row.model_id) is None:
                    found.take(row)
        except Stopped:
            raise
        except HubError as problem:
            found.problems.append(f"list {query[0]} by {query[1]}: {problem}")
            if isinstance(problem, BudgetSpent) or (isinstance(problem, Unavailable) and not found.listed):
                break
    if not found.listed and not found.unusable:
        raise Unavailable(found.problems[0] if found.problems else "the Hub lists no models")
    # a budget that the lists have spent leaves the rest for the next crawl
    _ask_singly(hub, journal, _wanted(found, store, settings), found, progress)
    return found


def _rows_of(hub: Hub, journal: Journal, query: tuple[str, str, int]) -> Iterator[Listed | Unusable]:
    tag, order, most = query
    name = f"{hub.endpoint} {tag} {order} {most}"
    kept = journal.list_rows(name)
    if kept is not None:
        yield from map(_from_json, kept)
        return
    params = {"pipeline_tag": tag, "sort": order, "limit": min(most, PAGE_ROWS), "expand": EXPAND}
    rows: list[Listed | Unusable] = []
    problem: HubError | None = None
    for page in hub.pages(params, NEEDED):
        if isinstance(page, HubError):
            problem = page
            continue
        fresh = [read_row(item) for item in itertools.islice(page, most - len(rows))]
        rows += fresh
        yield from fresh
        if len(rows) >= most:
            break
    if problem is not None:
        raise problem
    journal.keep_list(name, map(_to_json, rows))


def _wanted(found: Selection, store: Store, settings: Settings) -> list[str]:
    """Models without a list, each once: included by hand, bases of what is listed, known ones that were not seen for long."""
    cutoff = (datetime.date.today() - datetime.timedelta(days=settings.recheck_days)).isoformat()
    seen = {key: popularity.facts_as_of for key, popularity in store.popularity.items()}
    bases = Counter(row.facts.get("base_model_id") for row in found.listed.values())
    named = [base for base, _ in sorted(bases.items(), key=lambda b: (-b[1], str(b[0]))) if base]
    fresh = [base for base in named if base not in found.listed and base not in store.known]
    unseen = [
        key
        for key in sorted(store.known, key=lambda key: (seen.get(key, ""), key))
        if key not in found.listed and not store.known[key].is_removed
    ]
    included = [key for key in settings.included() if key not in store.known]
    excluded = settings.excluded()
    wanted = dict.fromkeys([*included, *fresh[: settings.base_model_count]])
    wanted |= dict.fromkeys([key for key in unseen if seen.get(key, "") < cutoff][: settings.recheck_count])
    return [
        key
        for key in wanted
        if key not in found.listed
        and key not in found.unusable
        and excluded.reason(key) is None
        and (settings.is_again or store.rejected.get(key, {}).get("revision") != GONE)
    ]


def _ask_singly(hub: Hub, journal: Journal, wanted: list[str], found: Selection, progress: Progress) -> None:
    name = f"{hub.endpoint} {ASKED}"
    kept = {row["asked"]: row for row in journal.list_rows(name) or () if "asked" in row}
    failures = 0
    for model_id in progress(wanted, desc="others", total=len(wanted)) if wanted else ():
        row = kept.get(model_id)
        if row is None:
            try:
                answer = read_row(hub.info(model_id, EXPAND_ONE, NEEDED))
                row = {"asked": model_id, "row": _to_json(_named(answer, model_id))}
            except Stopped:
                raise
            except Refused as refusal:
                reason = str(refusal)
                row = {"asked": model_id, "gone" if refusal.is_gone else "refused": reason}
            except HubError as problem:
                found.problems.append(str(problem))
                failures += 1
                if isinstance(problem, BudgetSpent) or failures >= 3:
                    return
                continue
            failures = 0
            journal.extend_list(name, row)
        if "row" in row:
            found.take(_from_json(row["row"]))
        elif "gone" in row:
            found.gone.add(model_id)
            or_private = "" if "RepoNotFound" in row["gone"] else ", or none for us"
            found.take(Unusable(model_id, GONE, f"the Hub has no such model{or_private} ({row['gone']})"))
        else:
            found.take(Unusable(model_id, "", row["refused"]))


def _named(row: Listed | Unusable, asked: str) -> Listed | Unusable:
    """A model that was renamed answers under its new name; what was asked for then is not what came."""
    if row.model_id == asked:
        return row
    return Unusable(asked, GONE, f"now named {row.model_id}")


def _to_json(row: Listed | Unusable) -> dict[str, Any]:
    return row.to_json() if isinstance(row, Listed) else {"unusable": [row.model_id, row.sha, row.reason]}


def _from_json(value: dict[str, Any]) -> Listed | Unusable:
    return Unusable(*value["unusable"]) if "unusable" in value else Listed.from_json(value)
