"""Asking the Hub for rows of models: by lists, or one by one; side by side, as fast as its quota lets us.

Where the Hub fails several times in a row, no more is asked; what came until then counts, and the crawl says that it is not whole.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.book.schema import NOW_NAMED
from pipeline.hub.answers import Doubtful, Refused
from pipeline.hub.client import Hub
from pipeline.hub.crew import each
from pipeline.hub.journal import Journal
from pipeline.hub.listing import EXPAND, EXPAND_ONE, NEEDED, Listed, Unusable, read_row
from pipeline.hub.record import is_model_id
from pipeline.hub.settings import Settings
from pipeline.hub.store import GONE, RENAMED
from pipeline.hub.traffic import BodyTooLarge, BudgetSpent, HubError, Silent, Stopped, Unavailable

PAGE_ROWS = 1000  # the Hub may give fewer
FEWER_ROWS = 100  # where a large page takes the Hub too long, or is more than we read
FAILURES_IN_A_ROW = 3  # lists, or models asked for one by one
ASKED = "models asked for one by one"
Progress = Callable[..., Any]
Row = Listed | Unusable


@dataclass
class Selection:
    """Models by id, in the order they were found; `problems` are why the lists are not whole."""

    listed: dict[str, Listed] = field(default_factory=dict)
    unusable: dict[str, Unusable] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)  # what we know a model as → what the Hub does
    problems: list[str] = field(default_factory=list)

    def take(self, row: Listed | Unusable) -> None:
        """The first row of a model counts: a listing that changes between pages gives some twice."""
        if row.model_id in self.listed or row.model_id in self.unusable:
            return
        if isinstance(row, Listed):
            self.listed[row.model_id] = row
        else:
            self.unusable[row.model_id] = row


@dataclass(frozen=True)
class Query:
    """A list to read: what it is of, what is asked for it, and how many rows of it."""

    name: str
    params: tuple[tuple[str, str], ...]
    most: int


@dataclass
class Asker:
    """`found` takes what comes, in the order in which it was asked for, whatever answers first."""

    hub: Hub
    journal: Journal
    settings: Settings
    progress: Progress
    found: Selection = field(default_factory=Selection)
    _end: HubError | None = None  # why nothing more is asked
    _failures: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read_lists(self, asked: Sequence[Query], only: set[str] | None = None, desc: str = "lists") -> None:
        """Takes the rows of lists; of `only` these models, where they are given."""
        # the first goes alone, so that is the shortest; a long one that takes the Hub too long is one among others then
        shortest = sorted(asked, key=lambda query: query.most)[:1]
        answers = dict(self._each(self._list, [*shortest, *(q for q in asked if q not in shortest)], desc))
        excluded, left_out = self.settings.excluded(), 0
        for query in asked:
            rows, problem = answers[query]
            for row in rows:
                if excluded.reason(row.model_id) is None and (only is None or row.model_id in only):
                    self.found.take(row)
            if problem is None:
                continue
            left_out += problem is self._end and not rows
            if problem is not self._end or left_out == 1:
                self.found.problems.append(f"list {query.name}: {problem}")
        if left_out > 1:
            self.found.problems.append(f"{left_out - 1} more lists were not read for that")

    def ask_singly(self, wanted: Sequence[str]) -> None:
        """Takes models that no list has, gone and renamed ones too."""
        name = f"{self.hub.endpoint} {ASKED}"
        kept = {row["asked"]: row for row in self.journal.list_rows(name) or () if "asked" in row}

        def ask(model_id: str) -> dict[str, Any]:
            if model_id in kept:
                return kept[model_id]
            row = self._one(model_id)
            if "failed" not in row:
                self.journal.extend_list(name, row)
            return row

        answers = dict(self._each(ask, wanted, "others"))
        for model_id in wanted:
            self._take_answer(model_id, answers[model_id])
        if self._end is not None and wanted and str(self._end) not in "".join(self.found.problems):
            self.found.problems.append(str(self._end))

    def _each(self, work: Callable[[Any], Any], items: Sequence[Any], desc: str) -> Iterator[tuple[Any, Any]]:
        def answers() -> Iterator[tuple[Any, Any]]:
            # the first goes alone: it tells which fields the Hub refuses, and how much it allows
            for part in (items[:1], items[1:]):
                threads = min(self.settings.threads, len(part))
                yield from each(work, part, threads, self.hub.traffic.stop) if part else ()

        if not items:
            return iter(())
        return iter(self.progress(answers(), desc=desc, total=len(items), note=self.hub.traffic.told))

    def _list(self, query: Query) -> tuple[list[Row], HubError | None]:
        name = f"{self.hub.endpoint} {query.name} {query.most}"
        kept = self.journal.list_rows(name)
        if kept is not None:
            return [_from_json(row) for row in kept], None
        if self._end is not None:
            return [], self._end
        rows, problem = self._pages(query, PAGE_ROWS)
        if not rows and query.most > FEWER_ROWS and _is_heavy(problem):
            rows, problem = self._pages(query, FEWER_ROWS)
        self._note(problem)
        if problem is None:
            self.journal.keep_list(name, map(_to_json, rows))
        return rows, problem

    def _pages(self, query: Query, size: int) -> tuple[list[Row], HubError | None]:
        """The rows of a list in pages of so many, and why they are not all."""
        params = {**dict(query.params), "limit": min(query.most, size), "expand": EXPAND}
        rows: list[Row] = []
        problem: HubError | None = None
        try:
            for page in self.hub.pages(params, query.most, NEEDED):
                if isinstance(page, HubError):
                    problem = page
                else:
                    rows += [read_row(item) for item in itertools.islice(page, query.most - len(rows))]
        except Stopped:
            raise
        except HubError as error:
            problem = error
        return rows, problem

    def _one(self, model_id: str) -> dict[str, Any]:
        if self._end is not None:
            return {"asked": model_id, "failed": None}
        problem: HubError | None = None
        try:
            answer = read_row(self.hub.info(model_id, EXPAND_ONE, NEEDED))
            if not is_model_id(answer.model_id):  # somebody in between answers in JSON too
                raise Doubtful(f"what answers for it names no model: {answer.reason}")
            row = {"asked": model_id, "row": _to_json(answer)}
        except Stopped:
            raise
        except Refused as refusal:
            row = {"asked": model_id, "gone" if refusal.is_gone else "refused": str(refusal)}
        except HubError as error:
            problem, row = error, {"asked": model_id, "failed": str(error)}
        self._note(problem)
        return row

    def _note(self, problem: HubError | None) -> None:
        with self._lock:
            self._failures = self._failures + 1 if isinstance(problem, Unavailable) else 0
            if self._end is None and (isinstance(problem, BudgetSpent | Silent) or self._failures >= FAILURES_IN_A_ROW):
                self._end = problem

    def _take_answer(self, model_id: str, answer: dict[str, Any]) -> None:
        found = self.found
        if "row" in answer:
            row = _from_json(answer["row"])
            if row.model_id != model_id:  # it was renamed, and answers under its new name
                found.renamed[model_id] = row.model_id
                found.take(Unusable(model_id, RENAMED, f"{NOW_NAMED}{row.model_id}"))
            if self.settings.excluded().reason(row.model_id) is None:
                found.take(row)
        elif "gone" in answer:
            found.gone.add(model_id)
            or_private = "" if "RepoNotFound" in answer["gone"] else ", or none for us"
            found.take(Unusable(model_id, GONE, f"the Hub has no such model{or_private} ({answer['gone']})"))
        elif "refused" in answer:
            found.take(Unusable(model_id, "", answer["refused"]))
        elif answer["failed"] is not None:
            found.take(Unusable(model_id, "", f"not reached: {answer['failed']}"))


def _is_heavy(problem: HubError | None) -> bool:
    """Whether a page may have failed for its size alone."""
    if isinstance(problem, Silent):  # nothing else is answered either
        return False
    return isinstance(problem, BodyTooLarge) or any(word in str(problem) for word in ("Timeout", "status 504"))


def _to_json(row: Row) -> dict[str, Any]:
    return row.to_json() if isinstance(row, Listed) else {"unusable": [row.model_id, row.sha, row.reason]}


def _from_json(value: dict[str, Any]) -> Row:
    return Unusable(*value["unusable"]) if "unusable" in value else Listed.from_json(value)
