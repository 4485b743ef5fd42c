"""What a repository holds that has no config of its own: by the library that the Hub names (rows of tables/library/repository_kind.csv), or
by its id, where it names none or several models lie in it (repository_holds.csv)."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache

from pipeline import ROOT

FILE = ROOT / "tables" / "library" / "repository_kind.csv"
HOLDS = FILE.with_name("repository_holds.csv")
CONTAINERS = ROOT / "tables" / "facts" / "container.csv"
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


def container_named(model_id: str) -> str | None:
    """The program that loads a copy whose container its name tells (tables/facts/container.csv), where the Hub names no library."""
    return next((row["program_name"] for row in _containers() if re.search(row["name_pattern"], model_id, re.I)), None)


def words_on(model_id: str, library: str | None) -> str | None:
    """What it holds, where it is neither one model nor a copy of one."""
    kind, held = kind_of(library), _holds().get(model_id.lower())
    return (held and held["words"]) or (kind.words if kind else None) or None


def parts_of(model_id: str) -> str | None:
    """The one model whose parts a repository of single files holds, in several formats."""
    held = _holds().get(model_id.lower())
    return (held and held["copy_of"]) or None


@cache
def _containers() -> list[dict[str, str]]:
    with CONTAINERS.open(newline="", encoding="utf-8") as file:
        return sorted(csv.DictReader(file), key=lambda row: int(row["container_rank"]))


@cache
def _holds() -> dict[str, dict[str, str]]:
    with HOLDS.open(newline="", encoding="utf-8") as file:
        return {row["model_id"].lower(): row for row in csv.DictReader(file)}


@cache
def _all() -> dict[str, RepositoryKind]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["library"]: RepositoryKind(**row) for row in csv.DictReader(file)}
