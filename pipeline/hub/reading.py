"""Reading the models of a crawl, and the record and the rejected row that each of them gets. Whatever a model does, it costs that model
and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline.hub.answers import Refused
from pipeline.hub.asking import Selection
from pipeline.hub.careful import Malformed
from pipeline.hub.client import Hub
from pipeline.hub.crew import each
from pipeline.hub.details import read_model
from pipeline.hub.headers import Allowance, is_needed
from pipeline.hub.journal import Journal
from pipeline.hub.listing import SOURCE, Listed
from pipeline.hub.merge import facts_of, merged, others_of, removed
from pipeline.hub.settings import Settings
from pipeline.hub.snapshot import Popularity
from pipeline.hub.store import GONE, RENAMED, RULES, Store
from pipeline.hub.traffic import BodyTooLarge, BudgetSpent, HubError, Silent, Stopped, Unavailable

FAILURES_IN_A_ROW = 20  # models that the Hub fails one after the other: then it is down, and the crawl ends
_HEADERS = ("header", "header_problem", "is_header_due")


@dataclass
class Reading:
    settings: Settings
    hub: Hub
    journal: Journal
    store: Store
    found: Selection
    date: str
    has_token: bool
    failed: dict[str, str] = field(default_factory=dict)  # not reached this time; asked again the next
    lost: dict[str, str] = field(default_factory=dict)  # known models that would be living ones no more, and why
    allowance: Allowance = field(init=False)
    count: int = 0  # models read
    total: int = 0
    asked_before: int = 0

    def __post_init__(self) -> None:
        self.allowance = Allowance(self.settings.header_requests)
        self.is_trusted = self.store.rules >= RULES  # what the last crawl settled for good
        outcomes = ((row, self.journal.get(row.model_id, row.sha)) for row in self.found.listed.values())
        # read by a crawl that did not end, but for their headers
        self.half_read = {row.model_id for row, o in outcomes if o and o.get("facts", {}).get("is_header_due")}

    def pending(self) -> list[Listed]:
        """Listed models whose commit nobody has read yet, then those whose headers are due from an earlier crawl."""
        listed = [row for row in self.found.listed.values() if not self.journal.has(row.model_id, row.sha)]
        due = [row for row in self.found.listed.values() if self._is_header_due(row)]
        return [row for row in listed if not self._is_read(row)] + due

    def _is_header_due(self, row: Listed) -> bool:
        if self.allowance.left < 1 and not is_needed(row):
            return False
        if self.journal.has(row.model_id, row.sha):
            return row.model_id in self.half_read
        known = self.store.known.get(row.model_id)
        return known is not None and known.is_header_due and self._is_read(row)

    def _is_read(self, row: Listed) -> bool:
        if self.settings.is_again:
            return False
        if self.store.rejected.get(row.model_id, {}).get("revision") == row.sha:
            return self.is_trusted
        known = self.store.known.get(row.model_id)
        if known is None or known.sha != row.sha or (known.has_header_problem and not self.is_trusted):
            return False
        # a token may have been let in since
        is_open_now = row.is_closed and self.has_token and not known.has_own_config and "config.json" in row.files
        return not is_open_now

    def told(self) -> str:
        """How the reading goes on, for people: requests, the Hub's quota, and how long that makes it."""
        told = self.hub.traffic.told()
        done, asked = self.count, self.hub.traffic.asked["file"] - self.asked_before
        if done < 20:
            return told
        minutes = self.hub.traffic.seconds_until("file", round((self.total - done) * asked / done)) / 60
        return f"{told}, about {minutes:.0f} min left at the Hub's limit" if minutes >= 1 else told

    def read_all(self, todo: list[Listed]) -> Iterator[str]:
        """Reads models in a few threads and gives each id as it is done. Ends early when the budget or the Hub is at its end."""
        failures, self.count, self.total = 0, 0, len(todo)
        self.asked_before = self.hub.traffic.asked["file"]
        for row, problem in each(self._read, todo, self.settings.threads, self.hub.traffic.stop):
            failures = failures + 1 if isinstance(problem, Unavailable) else 0
            if isinstance(problem, BudgetSpent | Silent) or failures >= FAILURES_IN_A_ROW:
                self.found.problems.append(str(problem))
                return
            self.count += 1
            yield row.model_id

    def _read(self, row: Listed) -> HubError | None:
        try:
            outcome: dict[str, Any] = {"facts": read_model(self.hub, row, self.allowance)}
        except Refused as refusal:
            outcome = {"gone": str(refusal)} if refusal.is_gone else {"reason": str(refusal)}
        except (Malformed, BodyTooLarge) as problem:
            outcome = {"reason": str(problem)}
        except (BudgetSpent, Stopped, Silent) as problem:
            return problem
        except HubError as problem:
            self.failed[row.model_id] = f"not reached: {problem}"
            return problem
        except Exception as bug:
            # a mistake of ours costs this model, and is tried again by the next crawl
            self.failed[row.model_id] = f"the crawl's own mistake: {type(bug).__name__}: {str(bug)[:120]}"
            return None
        self.journal.add(row.model_id, row.sha, outcome)
        self.half_read.discard(row.model_id)
        return None

    def build(self, heirs: dict[str, Any]) -> Callable[[str, Any, Any], Any]:
        """What makes the record of a model from those of the bundled snapshot and of the last crawl, or None for none. `heirs`: what is
        known of a model under its old name."""

        def build(model_id: str, bundled: Any, crawled: Any) -> Any:
            record = self._record(model_id, bundled or heirs.get(model_id), crawled)
            known = self.store.known.get(model_id)
            if known and not known.is_removed and (record is None or "removed_at" in record):
                self.lost[model_id] = "the Hub has them no more"
            return record

        return build

    def _record(self, model_id: str, bundled: Any, crawled: Any) -> Any:
        before = crawled if crawled and SOURCE in crawled.get("sources", ()) else None
        bundled = bundled or (others_of(crawled) if crawled else None)
        row = self.found.listed.get(model_id)
        outcome = self.journal.get(model_id, row.sha) if row else None
        said = facts_of(before) if before else {}
        if not self.is_trusted and "header_problem" in said and not outcome:
            said = {**{key: value for key, value in said.items() if key != "header_problem"}, "is_header_due": True}
        kept = merged(bundled, said) if before else bundled or crawled
        if before and "removed_at" in before:
            kept["removed_at"] = before["removed_at"]
        if model_id in self.found.gone or (outcome and "gone" in outcome):
            return removed(kept, self.date) if kept else None
        if outcome and "facts" in outcome:
            facts = _with_known(outcome["facts"], said, row)
        elif row and before and before.get("revision") == row.sha and not outcome:
            facts = {key: value for key, value in said.items() if key != "is_private"}
        else:
            return kept
        return merged(bundled, {**facts, **row.facts, "model_id": model_id, "revision": row.sha})

    def rejected(self) -> dict[str, dict[str, str]]:
        """A row per model that could not be taken; those of earlier crawls hold until their models are seen again."""
        rows: dict[str, dict[str, str]] = {}
        for model_id, row in self.store.rejected.items():
            is_settled = row["revision"] in (GONE, RENAMED)
            if model_id not in self.found.listed and (is_settled or self.found.problems):
                rows[model_id] = row
        for listed in self.found.listed.values():
            outcome = self.journal.get(listed.model_id, listed.sha)
            before = self.store.rejected.get(listed.model_id)
            if outcome is None and before and before["revision"] == listed.sha and not self.settings.is_again:
                rows[listed.model_id] = before if self.is_trusted else {**before, "revision": ""}
            elif outcome and "reason" in outcome:
                rows[listed.model_id] = rejected_row(listed.model_id, listed.sha, outcome["reason"])
            elif outcome and "gone" in outcome:  # where a list has it again it is there again, at whatever commit
                rows[listed.model_id] = rejected_row(listed.model_id, "", outcome["gone"])
        for model_id, reason in [*self.failed.items()]:
            rows[model_id] = rejected_row(model_id, "", reason)
        for unusable in self.found.unusable.values():
            # a known model that is gone is a record with `removed_at`, not a bad one
            if not (unusable.model_id in self.found.gone and unusable.model_id in self.store.known):
                rows[unusable.model_id] = rejected_row(unusable.model_id, unusable.sha, unusable.reason)
        return rows

    def popularity(self) -> dict[str, Popularity]:
        found = {key: value for key, value in self.store.popularity.items() if key not in self.found.renamed}
        for row in self.found.listed.values():
            if row.downloads is not None or row.likes is not None:
                found[row.model_id] = Popularity(row.downloads, row.likes, self.date)
        return found


def _with_known(facts: dict[str, Any], said: dict[str, Any], row: Listed) -> dict[str, Any]:
    """What was read now, with what the Hub said before and does not take back: at the same commit whatever could not be read this time,
    and the config of an older one where the files of the new one are closed to us."""
    if said.get("revision") == row.sha:
        headers = {} if facts.get("is_header_due") and "header" in said else {key: facts.get(key) for key in _HEADERS}
        facts = {**said, **{key: value for key, value in facts.items() if key not in _HEADERS}, **headers}
        return {key: value for key, value in facts.items() if key != "is_private"}
    if row.is_closed and "config" not in facts and "config" in said:
        kept = {key: value for key, value in said.items() if key.startswith("config")}
        note = f"of commit {str(said.get('revision'))[:12]}: the files of the newer one are not open to us"
        notes = [n for n in str(kept.get("config_note") or "").split("; ") if n and not n.startswith("of commit ")]
        return {**facts, **kept, "config_note": "; ".join([*notes, note])}
    return facts


def rejected_row(model_id: str, revision: str, reason: str) -> dict[str, str]:
    clean = "".join(c if c.isprintable() else "\ufffd" for c in reason)[:500]
    return {"model_id": model_id, "revision": revision, "reason": clean, "sources": SOURCE}
