"""Reading the newest snapshot of the Hub that the checkout has: `tables/hub`, whose README.md gives the form.

Nothing in a snapshot is trusted to be well formed. A line that cannot be read, or a record that contradicts itself,
becomes a row of `rejected` (model_id, reason, sources) and the rest is used; only a snapshot without a readable
`snapshot.json` is an error.
"""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline import ROOT
from pipeline.hub.careful import CONSTANTS, DEEPEST, Malformed, parse
from pipeline.hub.record import Record, is_model_id, read_record, shown, text_problem

FOLDER = ROOT / "tables" / "hub"
UNFINISHED = ".crawl-next"  # where a crawl writes before it renames
MOST_REASONS = 2_000  # characters for one model: files that list it a million times say no more by it
REJECTED_COLUMNS = ("model_id", "revision", "reason", "sources")


class SnapshotError(ValueError):
    """There is no usable snapshot; the message says where one was sought."""


@dataclass(frozen=True)
class Popularity:
    """What changes weekly: downloads of the 30 days before `facts_as_of`, and likes."""

    downloads_30d: int | None
    likes: int | None
    facts_as_of: str


@dataclass(frozen=True)
class Rejected:
    """A record that is not used. `model_id` is the place of the line where the record has no usable id."""

    model_id: str
    reason: str
    sources: str = ""


@dataclass(frozen=True)
class Snapshot:
    """Records and rejected rows sorted by model_id; popularity by model_id."""

    folder: Path
    date: datetime.date
    origin: str
    records: tuple[Record, ...]
    popularity: Mapping[str, Popularity]
    rejected: tuple[Rejected, ...] = field(default=())

    def age_days(self, today: datetime.date | None = None) -> int:
        return ((today or datetime.date.today()) - self.date).days

    def describe(self, today: datetime.date | None = None) -> str:
        """One line for people: which snapshot this is and how old."""
        age = self.age_days(today)
        old = "of today" if age == 0 else f"{age} day{'s'[: age != 1]} old"
        return (
            f"{self.origin} snapshot of the Hub of {self.date.isoformat()} ({old}): "
            f"{len(self.records):,} models, {len(self.rejected):,} rejected"
        )


def newest_snapshot(folder: Path = FOLDER) -> Snapshot:
    """The snapshot with the latest date among the folder itself and its subfolders. Raises SnapshotError.

    Of one day's snapshots a crawl goes before the bundled one. A crawl's folder is renamed when it is whole, so what is found
    is whole too, `.crawl-previous` included, which stands alone for the moment between two renames.
    """
    paths = [folder / "snapshot.json", *(folder / name / "snapshot.json" for name in _subfolders(folder))]
    found = [(_about(path), path.parent) for path in paths]
    dated = [
        ((about["snapshot_date"], str(about.get("crawled_at", ""))), about, where) for about, where in found if about
    ]
    if not dated:
        raise SnapshotError(
            f"no snapshot of the Hub in {folder}: it has no readable snapshot.json with a snapshot_date"
        )
    (date, _), about, where = max(dated, key=lambda found: found[0])
    return _read(where, date, about)


def snapshot_in(folder: Path) -> Snapshot:
    """The snapshot of this very folder, whatever lies beneath. Raises SnapshotError."""
    about = _about(folder / "snapshot.json")
    if about is None:
        raise SnapshotError(f"no snapshot of the Hub in {folder}")
    return _read(folder, about["snapshot_date"], about)


def _subfolders(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/snapshot.json") if path.parent.name != UNFINISHED)


def _about(path: Path) -> dict[str, Any] | None:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        return {**about, "snapshot_date": datetime.date.fromisoformat(about["snapshot_date"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _read(folder: Path, date: datetime.date, about: Mapping[str, Any]) -> Snapshot:
    records: dict[str, Record] = {}
    rejected: dict[str, Rejected] = {}

    def reject(model_id: str, reason: str, sources: str = "") -> None:
        before = rejected.get(model_id)
        if before and len(before.reason) > MOST_REASONS:
            return
        if before:
            reason, sources = f"{before.reason}; {reason}", before.sources or sources
        rejected[model_id] = Rejected(model_id, reason, sources)

    for place, line in _lines(sorted((folder / "model").glob("*.jsonl")), folder):
        raw, reason = _parse(line)
        record, reason = (None, reason) if reason else read_record(raw)
        if record is not None and record.model_id not in records:
            records[record.model_id] = record
        elif record is not None:
            reject(record.model_id, f"listed again at {place}; the first record is used", ";".join(record.source_ids))
        else:
            model_id = raw.get("model_id") if isinstance(raw, dict) else None
            known = is_model_id(model_id)
            reject(model_id if known else place, reason if known else f"{reason} ({shown(model_id)})", _cited(raw))
    for row in read_rejected(folder / "rejected.csv"):
        reject(row["model_id"], row["reason"], row["sources"])
    expected = about.get("record_count")
    if isinstance(expected, int) and not records and expected:
        raise SnapshotError(f"{folder} should hold {expected} models, but none can be read")
    popularity = dict(read_popularity(folder / "popularity.csv", reject))
    return Snapshot(
        folder,
        date,
        str(about.get("origin", "unnamed")),
        tuple(records[key] for key in sorted(records)),
        popularity,
        tuple(rejected[key] for key in sorted(rejected)),
    )


def read_rejected(path: Path) -> Iterator[dict[str, str]]:
    """Rows of rejected.csv: the models that a crawl could not take, at which commit and why."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.DictReader(file):
            values = [row.get(name) or "" for name in REJECTED_COLUMNS]
            if values[0] and values[2] and None not in row and not any(map(text_problem, values)):
                yield dict(zip(REJECTED_COLUMNS, values, strict=True))


def _lines(paths: Iterable[Path], folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if line.strip():
                yield f"{path.relative_to(folder).as_posix()}:{number}", line


def _parse(line: bytes) -> tuple[Any, str | None]:
    """The JSON value of a line, or why there is none."""
    try:
        return parse(line, deepest=DEEPEST + 1, refused=CONSTANTS), None  # a config is one deeper here than by itself
    except Malformed as problem:
        return None, f"not readable as JSON: {str(problem).removeprefix('not JSON: ')}"


def read_popularity(path: Path, reject: Callable[[str, str], None]) -> Iterator[tuple[str, Popularity]]:
    """Rows of popularity.csv; a row that cannot be read is rejected by its line."""
    names = ["model_id", "downloads_30d", "likes", "facts_as_of"]
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file)
        if next(reader, None) != names:
            return reject(f"{path.name}:1", f"the header is not {','.join(names)}")
        seen = set()
        for row in reader:
            place = f"{path.name}:{reader.line_num}"
            if len(row) != len(names) or not is_model_id(row[0]) or row[0] in seen or not row[3]:
                reject(place, f"not a row of model_id once, downloads, likes and date: {shown(row)}")
            elif not all(cell == "" or (cell.isascii() and cell.isdigit() and len(cell) < 16) for cell in row[1:3]):
                reject(place, f"downloads or likes of {row[0]} are no counts: {shown(row[1:3])}")
            else:
                seen.add(row[0])
                downloads, likes = (int(cell) if cell else None for cell in row[1:3])
                yield row[0], Popularity(downloads, likes, row[3])


def _cited(raw: Any) -> str:
    sources = raw.get("sources") if isinstance(raw, dict) else None
    return ";".join(s for s in sources if not text_problem(s)) if isinstance(sources, list) else ""
