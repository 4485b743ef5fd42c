"""What a repository holds that has no config of its own, by the library that the Hub names: rows of tables/library/repository_kind.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from pipeline import ROOT

FILE = ROOT / "tables" / "library" / "repository_kind.csv"
COPY = "copy"  # of one whole model, in a container of its own
KINDS = (COPY, "adapter", "archive", "files")


@dataclass(frozen=True)
class RepositoryKind:
    library: str
    kind: str
    program: str  # what loads a copy
    words: str  # what the repository holds, where it is no copy
    source: str


def kind_of(library: str | None) -> RepositoryKind | None:
    return _all().get(library or "")


@cache
def _all() -> dict[str, RepositoryKind]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["library"]: RepositoryKind(**row) for row in csv.DictReader(file)}
