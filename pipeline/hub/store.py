"""The crawl's snapshot on disk, `tables/hub/crawl/`: read shard by shard, written beside and swapped in whole.

Memory stays at one shard and an index: the records of the bundled snapshot and of the last crawl are never all held.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.hub.listing import SOURCE
from pipeline.hub.record import is_model_id, read_record
from pipeline.hub.snapshot import REJECTED_COLUMNS, UNFINISHED, Popularity, read_popularity, read_rejected

CRAWL = "crawl"
PREVIOUS = ".crawl-previous"
# Counts up when what a crawl settles for good is settled by other rules: what earlier ones set aside is then asked for once more.
# 2: only the Hub's own word settles anything.
RULES = 2
# In place of a revision in rejected.csv: the Hub has no such model; or it has it under another name
GONE, RENAMED = "gone", "renamed"
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """What is remembered of each record while the crawl runs."""

    sha: str | None  # the commit that its crawled facts are of
    is_removed: bool
    base_model_id: str | None
    is_header_due: bool = False
    has_header_problem: bool = False
    has_own_config: bool = False  # the Hub gave one


@dataclass
class Store:
    """`folder` has the bundled snapshot (or none) and, in `crawl`, that of the last crawl (or none)."""

    folder: Path
    known: dict[str, Known] = field(default_factory=dict)
    popularity: dict[str, Popularity] = field(default_factory=dict)
    rejected: dict[str, dict[str, str]] = field(default_factory=dict)
    rules: int = RULES  # by which the last crawl settled things

    def load(self) -> None:
        """Mends what a killed swap left, and reads the index of all records."""
        self._recover()
        for path in (self.folder, self.folder / CRAWL):
            for raw in self._shards(path, sorted(p.name for p in (path / "model").glob("*.jsonl"))):
                self.known.update((model_id, _known(record)) for model_id, record in raw.items())
            self.popularity.update(read_popularity(path / "popularity.csv", lambda *_: None))
        self.rejected = {row["model_id"]: row for row in read_rejected(self.folder / CRAWL / "rejected.csv")}
        for model_id, row in self.rejected.items():
            if row["revision"] == RENAMED:  # it stands under its new name
                self.known.pop(model_id, None)
                self.popularity.pop(model_id, None)
        rules = self._about().get("rules", 1)
        self.rules = rules if isinstance(rules, int) else 1

    def is_whole(self, date: str, model_count: int = 0) -> bool:
        """Whether a whole crawl of this date, of as many models, is there already."""
        about = self._about()
        count = about.get("model_count")
        is_large = not isinstance(count, int) or count >= model_count
        return about.get("snapshot_date") == date and about.get("is_partial") is False and is_large

    def raw(self, model_id: str) -> tuple[Raw | None, Raw | None]:
        """The records of a model in the bundled snapshot and in the last crawl."""
        shard = _shard(model_id)
        bundled, crawled = (next(self._shards(path, [shard])) for path in (self.folder, self.folder / CRAWL))
        return bundled.get(model_id), crawled.get(model_id)

    def _about(self) -> dict[str, Any]:
        try:
            about = json.loads((self.folder / CRAWL / "snapshot.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return about if isinstance(about, dict) else {}

    def _recover(self) -> None:
        if (self.folder / PREVIOUS).exists() and not (self.folder / CRAWL).exists():
            (self.folder / PREVIOUS).rename(self.folder / CRAWL)
        shutil.rmtree(self.folder / PREVIOUS, ignore_errors=True)
        shutil.rmtree(self.folder / UNFINISHED, ignore_errors=True)

    def _shards(self, path: Path, names: Iterable[str]) -> Iterator[dict[str, Raw]]:
        for name in names:
            yield dict(_records(path / "model" / name))

    def write(
        self,
        model_ids: Iterable[str],
        build: Callable[[str, Raw | None, Raw | None], Raw | None],
        rejected: Mapping[str, Mapping[str, str]],
        popularity: Mapping[str, Popularity],
        about: dict[str, Any],
    ) -> tuple[int, dict[str, dict[str, str]]]:
        """Writes a snapshot beside the last one, for `swap` to put in its place. `build(model_id, bundled, crawled)` gives a record or None to leave the model out.

        A record that fails its checks becomes a rejected row, and what was known before is kept. Returns the records written
        and all rejected rows.
        """
        following = self.folder / UNFINISHED
        shutil.rmtree(following, ignore_errors=True)
        (following / "model").mkdir(parents=True)
        rejected = {model_id: dict(row) for model_id, row in rejected.items()}
        count, sources = 0, set()
        by_shard: dict[str, list[str]] = {}
        for model_id in model_ids:
            by_shard.setdefault(_shard(model_id), []).append(model_id)
        for shard, members in sorted(by_shard.items()):
            bundled, crawled = (next(self._shards(p, [shard])) for p in (self.folder, self.folder / CRAWL))
            lines = []
            for model_id in sorted(members):
                before = crawled.get(model_id) or bundled.get(model_id)
                raw = build(model_id, bundled.get(model_id), crawled.get(model_id))
                line, reason = _checked(raw)
                if reason:
                    rejected[model_id] = _row(model_id, str((raw or {}).get("revision") or ""), reason)
                    raw, (line, reason) = before, _checked(before)
                if line is not None and reason is None:
                    lines.append(line)
                    sources |= _cited(raw or {})
            if lines:
                _write(following / "model" / shard, b"".join(lines))
                count += len(lines)
        _write(following / "popularity.csv", _popularity_csv(popularity))
        _write(following / "rejected.csv", _csv(REJECTED_COLUMNS, (rejected[key] for key in sorted(rejected))))
        about = {"format": 1, "rules": RULES, **about, "record_count": count, "sources": sorted(sources)}
        # last of all: a folder without it is no snapshot
        _write(following / "snapshot.json", (json.dumps(about, indent=1) + "\n").encode())
        for folder in (following / "model", following):
            _sync(folder)
        return count, rejected

    def set_apart(self, where: Path) -> None:
        """What was written goes elsewhere, and the last snapshot stays."""
        shutil.rmtree(where, ignore_errors=True)
        shutil.move(self.folder / UNFINISHED, where)

    def swap(self) -> None:
        """Two renames; `load` mends a stop between them, and readers find the previous snapshot meanwhile."""
        following = self.folder / UNFINISHED
        current, previous = self.folder / CRAWL, self.folder / PREVIOUS
        shutil.rmtree(previous, ignore_errors=True)
        if current.exists():
            current.rename(previous)
        following.rename(current)
        _sync(self.folder)
        shutil.rmtree(previous, ignore_errors=True)


def _shard(model_id: str) -> str:
    return f"{model_id[0].lower()}.jsonl"


def _records(path: Path) -> Iterator[tuple[str, Raw]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                raw = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(raw, dict) and is_model_id(raw.get("model_id")):
                yield raw["model_id"], raw


def _known(raw: Raw) -> Known:
    is_crawled = SOURCE in raw.get("sources", ())
    return Known(
        raw.get("revision") if is_crawled else None,
        "removed_at" in raw,
        raw.get("base_model_id"),
        raw.get("is_header_due") is True,
        "header_problem" in raw,
        SOURCE in raw.get("config_sources", ()),
    )


def _checked(raw: Raw | None) -> tuple[bytes | None, str | None]:
    """The line of a record, or why there is none; None and None for no record."""
    if raw is None:
        return None, None
    reason = read_record(dict(raw))[1]
    if reason:
        return None, reason
    try:
        text = json.dumps(raw, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return None, "a number that is none in JSON"
    try:
        return text.encode("utf-8") + b"\n", None
    except UnicodeEncodeError:
        return None, "half a character in its text"


def _row(model_id: str, revision: str, reason: str) -> dict[str, str]:
    return {"model_id": model_id, "revision": revision, "reason": reason, "sources": SOURCE}


def _cited(raw: Raw) -> set[str]:
    keys = ("sources", "parameters_sources", "parameters_by_dtype_sources", "config_sources")
    return {source.partition(":")[0] for key in keys for source in raw.get(key, ())}


def _popularity_csv(popularity: Mapping[str, Popularity]) -> bytes:
    names = ("model_id", "downloads_30d", "likes", "facts_as_of")
    rows = (
        {"model_id": key, **{name: getattr(popularity[key], name) for name in names[1:]}} for key in sorted(popularity)
    )
    return _csv(names, rows)


def _csv(names: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> bytes:
    class Lines(list):
        write = list.append

    lines = Lines()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([row[name] for name in names] for row in rows)
    return "".join(lines).encode("utf-8")


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
