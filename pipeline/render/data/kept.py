"""What pages say of a model whose content is that of another, or as it was at the last build: worked out once, and kept (pipeline/book/packs.py).

A key is a hash of all that a value is made of: the content of its model (pipeline/book/content.py), what else of it is read, and formulas, facts,
code, templates and libraries. What is kept is plain values, and what is not known comes out the same, only later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from pipeline import ROOT
from pipeline.base.readonly import reading
from pipeline.book.content import CONTENT, WEEKLY, rows_as_text
from pipeline.book.packs import Packs, fingerprint
from pipeline.book.reads import Reads

# what makes a site, beside what makes tables
_MADE_OF = (ROOT / "pipeline" / "render", ROOT / "pipeline" / "base", ROOT / "site", ROOT / "mkdocs.yml")
_LIBRARIES = ("polars", "duckdb", "jinja2", "markupsafe")

Make = Callable[[list[str]], Mapping[str, Any]]


def contents(database: Path) -> dict[str, str]:
    """By model a hash of all that its numbers are made of; empty where the release does not say it."""
    if not database.exists():
        return {}
    with reading(database) as connection:
        known = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = $name", {"name": CONTENT})
        return dict(connection.execute(f"FROM {CONTENT}").fetchall()) if known.fetchall() else {}


def rows_in(connection: duckdb.DuckDBPyConnection, tables: Iterable[str], models: Sequence[str]) -> dict[str, str]:
    """By model a hash of all its rows in some tables, but for what changes weekly."""
    query = f"""
        WITH asked AS (SELECT unnest($models::VARCHAR[]) AS model_id)
        SELECT model_id, sha256(string_agg(said, ' ' ORDER BY said)) FROM ({rows_as_text(connection, tables, "asked", WEEKLY)}) GROUP BY model_id
    """
    return dict(connection.execute(query, {"models": list(models)}).fetchall())


@cache
def made_of() -> str:
    """Of all that a site is made of but the models."""
    digest = hashlib.sha256(fingerprint().encode())
    digest.update(" ".join(f"{name} {version(name)}" for name in _LIBRARIES).encode())
    files = (path for top in _MADE_OF for path in (top.rglob("*") if top.is_dir() else [top]))
    for path in sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Kept:
    """`contents` by model; `shared` is all else that values are made of and code is not: what the tables as a whole say."""

    def __init__(self, contents: Mapping[str, str], shared: object = None, packs: Packs | None = None) -> None:
        self.contents, self.packs = contents, packs
        self.shared = hashed(made_of() if packs else "", shared)

    def by_content(self, what: str, models: Sequence[str], make: Make, own: Mapping[str, object]) -> dict[str, Any]:
        """What `make` gives for some models, as JSON has it: it is asked for one of each content, and for those alone that are not known.
        `own` is what it reads of a model beside its content."""
        keys = {name: self.key(what, name, own[name]) for name in models}
        told = self.by_key(what, keys, make)
        return {name: told[key] for name, key in keys.items()}

    def by_key(self, what: str, keys: Mapping[str, str], make: Make) -> dict[str, Any]:
        """The same by key: models of one content share their values."""
        found = self.values(what, keys, lambda names: {name: _json(value) for name, value in make(names).items()})
        return {key: json.loads(found[key]) for key in set(keys.values())}

    def lacking(self, keys: Iterable[str]) -> set[str]:
        """Those that have to be worked out."""
        wanted = set(keys)
        return wanted - self.packs.places(wanted).keys() if self.packs else wanted

    def values(
        self, what: str, keys: Mapping[str, str], make: Callable[[list[str]], Mapping[str, bytes]]
    ) -> dict[str, bytes]:
        """By key what is known of it, or what `make` gives for the first name that has it."""
        found = self.packs.values(set(keys.values()), what) if self.packs else {}
        first: dict[str, str] = {}
        for name, key in keys.items():
            if key not in found:
                first.setdefault(key, name)
        if first:
            made = make(list(first.values()))
            new = {key: made[name] for key, name in first.items()}
            if self.packs:
                self.packs.keep(new, what)
            found |= new
        return found

    def key(self, what: str, model: str, own: object) -> str:
        """One without a content is like no other."""
        return hashed(what, self.shared, self.contents.get(model) or {"only": model}, own)


class Answers:
    """What macros of the published file answer of models, kept by the rows of these that the macros read."""

    def __init__(self, kept: Kept, database: Path) -> None:
        self.kept, self.database = kept, database
        self._reads: Reads | None = None

    def of(
        self, what: str, models: Sequence[str], macros: tuple[str, ...], make: Make, asked: object = None
    ) -> dict[str, Any]:
        """What `make` gives of some models, which asks these macros, or others with the same tables; `asked` is what it asks them beside models.
        Names (of tables, for those whose text is put together) stand for themselves. What is not answered is left out."""
        with reading(self.database) as connection:
            self._reads = self._reads or Reads(connection)
            tables = self._reads.by(macros)
            rows = rows_in(connection, tables, models) if tables else {}
        own = {name: [name, rows.get(name), asked] for name in models}
        found = self.kept.by_content(what, models, lambda some: dict.fromkeys(some) | make(some), own)
        return {name: found[name] for name in models if found[name] is not None}


def hashed(*parts: object) -> str:
    texts = (json.dumps(part, separators=(",", ":"), sort_keys=True, default=str) for part in parts)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
