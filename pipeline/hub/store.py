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
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """What is remembered of each record while the crawl runs."""

    sha: str | None  # the commit that its crawled facts are of
    is_removed: bool
    base_model_id: str | None
    is_header_due: bool = False


@dataclass
class Store:
    """`folder` has the bundled snapshot (or none) and, in `crawl`, that of the last crawl (or none)."""

    folder: Path
    known: dict[str, Known] = field(default_factory=dict)
    popularity: dict[str, Popularity] = field(default_factory=dict)
    rejected: dict[str, dict[str, str]] = field(default_factory=dict)

    def load(self) -> None:
        """Mends what a killed swap left, and reads the index of all records."""
        self._recover()
        for path in (self.folder, self.folder / CRAWL):
            for raw in self._shards(path, sorted(p.name for p in (path / "model").glob("*.jsonl"))):
                self.known.update((model_id, _known(record)) for model_id, record in raw.items())
            self.popularity.update(read_popularity(path / "popularity.csv", lambda *_: None))
        self.rejected = {row["model_id"]: row for row in read_rejected(self.folder / CRAWL / "rejected.csv")}

    def is_whole(self, date: str) -> bool:
        """Whether a whole crawl of this date is there already."""
        try:
            about = json.loads((self.folder / CRAWL / "snapshot.json").read_text(encoding="utf-8"))
            return about["snapshot_date"] == date and about["is_partial"] is False
        except (OSError, ValueError, KeyError, TypeError):
            return False

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
        """Writes and swaps in a snapshot. `build(model_id, bundled, crawled)` gives a record or None to leave the model out.

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
        about = {"format": 1, **about, "record_count": count, "sources": sorted(sources)}
        # last of all: a folder without it is no snapshot
        _write(following / "snapshot.json", (json.dumps(about, indent=1) + "\n").encode())
        for folder in (following / "model", following):
            _sync(folder)
        self._swap(following)
        return count, rejected

    def _swap(self, following: Path) -> None:
        """Two renames; `load` mends a stop between them, and readers find the previous snapshot meanwhile."""
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
    is_due = raw.get("is_header_due") is True
    return Known(raw.get("revision") if is_crawled else None, "removed_at" in raw, raw.get("base_model_id"), is_due)


def _checked(raw: Raw | None) -> tuple[bytes | None, str | None]:
    """The line of a record, or why there is none; None and None for no record."""
    if raw is None:
        return None, None
    reason = read_record(dict(raw))[1]
    if reason:
        return None, reason
    text = json.dumps(raw, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
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
