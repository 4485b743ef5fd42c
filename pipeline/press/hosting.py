"""Whether hosts take the built site, and releases its tables: `python -m pipeline hosting`. The limits, each with its source, are rows
of site/hosts.csv."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.base.failures import Failure
from pipeline.render.addresses import limits

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
