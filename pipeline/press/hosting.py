"""Whether hosts take the built site, and releases its tables: `python -m pipeline hosting`. The limits, each with its source, are rows
of site/hosts.csv; site/kinds.csv says of each kind of file how large one may be, so that a site stays small while models are added."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pipeline import ROOT
from pipeline.base.failures import Failure
from pipeline.render.addresses import limits

KINDS = ROOT / "site" / "kinds.csv"

_WORDS = {
    "site_bytes": "bytes in all",
    "file_count": "files",
    "file_bytes": "bytes in one file",
    "folder_entries": "entries in one folder",
}
_HAS = {"site": "the site has", "tables": "the tables have"}


@dataclass(frozen=True)
class Size:
    """What a host counts of a folder. `largest` is the file of `file_bytes`, `fullest` the folder of `folder_entries`."""

    site_bytes: int
    file_count: int
    file_bytes: int
    largest: str
    folder_entries: int
    fullest: str

    def told(self) -> str:
        return f"{self.site_bytes:,} bytes in {self.file_count:,} files, the largest {self.file_bytes:,} bytes ({self.largest})"


def measure(site: Path) -> Size:
    """The size of a site. Raises FileNotFoundError where the folder holds none."""
    if not (site / "index.html").exists():
        raise FileNotFoundError(f"{site} holds no site; `make publish` builds it")
    return measure_folder(site)


def measure_folder(folder: Path) -> Size:
    sizes, entries = {}, {}
    for top, folders, names in os.walk(folder):
        entries[os.path.relpath(top, folder)] = len(folders) + len(names)
        sizes |= {
            os.path.relpath(path, folder): os.path.getsize(path) for name in names for path in [os.path.join(top, name)]
        }
    if not sizes:
        raise FileNotFoundError(f"{folder} is empty")
    largest = max(sizes, key=lambda name: (sizes[name], name))
    fullest = max(entries, key=lambda name: (entries[name], name))
    return Size(sum(sizes.values()), len(sizes), sizes[largest], largest, entries[fullest], fullest)


def too_large(size: Size, of: str = "site", host: str | None = None) -> Iterator[str]:
    """Each limit that a site, or the `tables` of a release, is beyond, as a sentence; of one host, or of all. Raises Failure for a
    host that is not listed."""
    rows = limits()
    if host is not None and host not in {row["host"] for row in rows}:
        raise Failure(f"no host {host}: {', '.join(sorted({row['host'] for row in rows}))}")
    for row in rows:
        have, most = getattr(size, row["what"]), int(row["most"])
        if row["of"] == of and host in (None, row["host"]) and have > most:
            what = {"file_bytes": f" ({size.largest})", "folder_entries": f" ({size.fullest})"}.get(row["what"], "")
            yield f"{row['host']} takes {most:,} {_WORDS[row['what']]}, {_HAS[of]} {have:,}{what}: {row['source']}"


@dataclass
class Kind:
    """Files of one kind: a line of site/kinds.csv, and what a site has of them. The first line whose pattern a path has is its kind."""

    name: str
    paths: str
    most_bytes: int | None
    file_count: int = 0
    site_bytes: int = 0
    file_bytes: int = 0
    largest: str = ""

    def told(self) -> str:
        return f"{self.name:32}{self.file_count:8,} files {self.site_bytes:14,} bytes, the largest {self.file_bytes:,} ({self.largest})"


def by_kind(site: Path, file: Path = KINDS) -> list[Kind]:
    """What the site has of each kind. Raises ValueError for a file of none."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    kinds = [Kind(row["kind"], row["paths"], int(row["most_bytes"]) if row["most_bytes"] else None) for row in rows]
    for top, _folders, names in os.walk(site):
        for name in names:
            path = os.path.join(top, name)
            relative, size = Path(os.path.relpath(path, site)).as_posix(), os.path.getsize(path)
            kind = next((k for k in kinds if _is_of(relative, k.paths)), None)
            if kind is None:
                raise ValueError(f"{relative} is of no kind in {file.name}")
            kind.file_count, kind.site_bytes = kind.file_count + 1, kind.site_bytes + size
            if size > kind.file_bytes:
                kind.file_bytes, kind.largest = size, relative
    return kinds


def _is_of(path: str, pattern: str) -> bool:
    """A pattern with a star in its folders means so many folders; one that ends with a star alone all below."""
    is_deep = pattern.endswith("*") or "/" not in pattern
    return fnmatchcase(path, pattern) and (is_deep or path.count("/") == pattern.count("/"))


def too_heavy(kinds: list[Kind]) -> Iterator[str]:
    """Each kind with a file that is larger than it may be, as a sentence."""
    for kind in kinds:
        if kind.most_bytes is not None and kind.file_bytes > kind.most_bytes:
            yield f"{kind.name} may have {kind.most_bytes:,} bytes each, {kind.largest} has {kind.file_bytes:,}: site/kinds.csv"
