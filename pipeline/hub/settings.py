"""What to crawl and how: the rows of tables/hub/*.csv, and what the command line says instead."""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import constants

from pipeline.hub.record import is_model_id
from pipeline.hub.snapshot import FOLDER
from pipeline.hub.transport import Patience

WORK = FOLDER.parent.parent / ".cache" / "hub"
WINDOW_SECONDS = 300


class SettingsError(ValueError):
    """A row of tables/hub/*.csv cannot be used; the message names file and row."""


@dataclass(frozen=True)
class Settings:
    """`folder` holds the bundled snapshot and gets the crawled one; `work` is where an interrupted crawl goes on."""

    folder: Path = FOLDER
    work: Path = WORK
    lists: Path = FOLDER  # where crawl.csv, include.csv, exclude.csv and limit.csv are
    endpoint: str = constants.ENDPOINT
    model_count: int = 5000  # most downloaded models over all pipeline tags, by the share of each
    trending_share: float = 0.1  # so many more, by what trends now
    base_model_count: int = 500  # models that others derive from and no list has, at most
    recheck_count: int = 500  # known models that no list has any more, at most; the longest unseen first
    recheck_days: int = 28  # and only those not seen for so long
    threads: int = 8  # requests under way at a time
    budget: int | None = None  # requests
    header_requests: int = 10_000  # for tensor headers, of all models together; 0: only where the Hub gives no total
    is_dry_run: bool = False
    is_accepted: bool = False  # a crawl counts however many known models it loses
    is_again: bool = False  # asks for models too whose commit is known
    patience: Patience = field(default_factory=Patience)
    rates: Mapping[str, float] | None = None  # requests per window by kind; by default those of limit.csv

    def shares(self) -> dict[str, float]:
        """The share of `model_count` by pipeline tag."""
        try:
            return {
                row["pipeline_tag"]: float(row["share"]) for row in self._rows("crawl.csv", "pipeline_tag", "share")
            }
        except ValueError as error:
            raise SettingsError(f"tables/hub/crawl.csv: {error}") from None

    def limits(self, has_token: bool) -> Mapping[str, float]:
        """Requests per WINDOW_SECONDS by kind. A paid token's higher limit is learnt from the Hub's answers."""
        if self.rates is not None:
            return self.rates
        kind = "free" if has_token else "none"
        for row in self._rows("limit.csv", "token", "api_requests", "file_requests", "window_seconds"):
            if row["token"] == kind:
                scale = WINDOW_SECONDS / float(row["window_seconds"])
                return {"api": scale * float(row["api_requests"]), "file": scale * float(row["file_requests"])}
        raise SettingsError(f"tables/hub/limit.csv has no row for token {kind}")

    def included(self) -> list[str]:
        found = [row["model_id"] for row in self._rows("include.csv", "model_id", "kind", "reason", "named_in")]
        for model_id in found:
            if not is_model_id(model_id):
                raise SettingsError(f"tables/hub/include.csv: {model_id[:80]!r} is not organisation/name")
        return found

    def excluded(self) -> Excluded:
        return Excluded({row["pattern"]: row["reason"] for row in self._rows("exclude.csv", "pattern", "reason")})

    def _rows(self, name: str, *columns: str) -> list[dict[str, str]]:
        with (self.lists / name).open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != columns:
                raise SettingsError(f"tables/hub/{name}: the columns are not {', '.join(columns)}")
            rows = list(reader)
        for row in rows:
            if not all(row.get(column) for column in columns):
                raise SettingsError(f"tables/hub/{name}: a row of {row.get(columns[0])!r} is not whole")
        return rows


@dataclass(frozen=True)
class Excluded:
    """Why models are left out, by pattern of their id (`*` is anything)."""

    reasons: Mapping[str, str]

    def reason(self, model_id: str) -> str | None:
        for pattern, reason in self.reasons.items():
            if fnmatch.fnmatchcase(model_id, pattern):
                return reason
        return None
