"""Which models to crawl: lists by downloads and by trend, what is included by hand, bases of others, known ones not seen for long.

Lists cost a request per page; every other model costs one of its own, unless an organisation has several that are wanted: then a page
of its models is read first.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter

from pipeline.hub.asking import PAGE_ROWS, Asker, Progress, Query, Selection
from pipeline.hub.client import Hub
from pipeline.hub.journal import Journal
from pipeline.hub.settings import Settings
from pipeline.hub.store import GONE, RENAMED, Store
from pipeline.hub.traffic import Unavailable

SEVERAL = 4  # models of one organisation that are wanted, for which a page of its models is read


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
    asker = Asker(hub, journal, settings, progress)
    asker.read_lists([_of_tag(*query) for query in queries(settings)])
    found = _some(asker.found)
    # a budget that the lists have spent leaves the rest for the next crawl
    wanted = _wanted(found, store, settings)
    names = Counter(model_id.partition("/")[0] for model_id in wanted)
    unlisted = {key for key, known in store.known.items() if key not in found.listed and not known.is_removed}
    asker.read_lists(
        [_of_organisation(name) for name, count in names.items() if count >= SEVERAL],
        only=unlisted | set(wanted),
        desc="organisations",
    )
    asker.ask_singly([key for key in wanted if key not in found.listed and key not in found.unusable])
    return found


def first_pages(hub: Hub, journal: Journal, settings: Settings, progress: Progress) -> Selection:
    """One page of each list by downloads, which is what a dry run reads. Raises as `select` does."""
    asked = [query for query in queries(settings) if query[1] == "downloads"]
    asker = Asker(hub, journal, settings, progress)
    asker.read_lists([_of_tag(tag, order, min(most, PAGE_ROWS)) for tag, order, most in asked])
    return _some(asker.found)


def _some(found: Selection) -> Selection:
    if not found.listed and not found.unusable:
        raise Unavailable(found.problems[0] if found.problems else "the Hub lists no models")
    return found


def _of_tag(tag: str, order: str, most: int) -> Query:
    return Query(f"{tag} by {order}", (("pipeline_tag", tag), ("sort", order)), most)


def _of_organisation(name: str) -> Query:
    return Query(f"of {name}", (("author", name), ("sort", "downloads")), PAGE_ROWS)


def _wanted(found: Selection, store: Store, settings: Settings) -> list[str]:
    """Models without a list, each once: included by hand and never read, bases of what is listed, known ones that were not seen for long."""
    cutoff = (datetime.date.today() - datetime.timedelta(days=settings.recheck_days)).isoformat()
    seen = {key: popularity.facts_as_of for key, popularity in store.popularity.items()}
    excluded = settings.excluded()

    def is_open(key: str) -> bool:
        """Whether nothing is known of it from this crawl, nor for good: those that are would take the places of others each time."""
        settled = not settings.is_again and store.rejected.get(key, {}).get("revision") in (GONE, RENAMED)
        is_found = key in found.listed or key in found.unusable
        return not (settled or is_found or excluded.reason(key))

    bases = Counter(row.facts.get("base_model_id") for row in found.listed.values())
    named = [base for base, _ in sorted(bases.items(), key=lambda b: (-b[1], str(b[0]))) if base]
    read = {
        key for key, known in store.known.items() if known.sha or known.is_removed
    }  # others know of it from elsewhere
    included = [key for key in settings.included() if key not in read and is_open(key)]
    fresh = [base for base in named if base not in store.known and is_open(base)]
    unseen = [
        key
        for key in sorted(store.known, key=lambda key: (seen.get(key, ""), key))
        if seen.get(key, "") < cutoff and not store.known[key].is_removed and is_open(key)
    ]
    return [*dict.fromkeys([*included, *fresh[: settings.base_model_count], *unseen[: settings.recheck_count]])]
