"""Whether a page host takes the built site: `python -m pipeline hosting`. The limits, each with its source, are rows of site/hosts.csv."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.render.addresses import limits

_WORDS = {"site_bytes": "bytes in all", "file_count": "files", "file_bytes": "bytes in one file"}


@dataclass(frozen=True)
class Size:
    """What a host counts of a site. `largest` is the file of `file_bytes`."""

    site_bytes: int
    file_count: int
    file_bytes: int
    largest: str

    def told(self) -> str:
        return f"{self.site_bytes:,} bytes in {self.file_count:,} files, the largest {self.file_bytes:,} bytes ({self.largest})"


def measure(site: Path) -> Size:
    """The size of a folder. Raises FileNotFoundError where it holds no site."""
    if not (site / "index.html").exists():
        raise FileNotFoundError(f"{site} holds no site; `make publish` builds it")
    paths = [os.path.join(top, name) for top, _folders, names in os.walk(site) for name in names]
    sizes = {os.path.relpath(path, site): os.path.getsize(path) for path in paths}
    largest = max(sizes, key=lambda name: (sizes[name], name))
    return Size(sum(sizes.values()), len(sizes), sizes[largest], largest)


def too_large(size: Size) -> Iterator[str]:
    """Each limit that the site is beyond, as a sentence."""
    for row in limits():
        have, most = getattr(size, row["what"]), int(row["most"])
        if have > most:
            where = f" ({size.largest})" if row["what"] == "file_bytes" else ""
            yield f"{row['host']} takes {most:,} {_WORDS[row['what']]}, the site has {have:,}{where}: {row['source']}"
