"""A large table as a Parquet file, a block of models at a time: memory stays flat, and one of which nothing changed is copied as it is.

A block is a group of rows of the file, and is kept by what it is made of: the rows of its models that formulas read, and formulas, facts and
code. Where blocks end is told by the ids of models alone: a model that comes or goes changes its own block, not those after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

from pipeline.book.content import CONTENT, content_of
from pipeline.book.packs import Packs, fingerprint
from pipeline.press.splice import Spliced


@dataclass(frozen=True)
class Cut:
    """How many models a block has: between two numbers, and there it ends after one model of so many."""

    least: int
    most: int
    one_of: int
    together: int  # blocks that are worked out in one question: that is planned anew each time it is asked


@dataclass(frozen=True)
class Block:
    """Models that follow one another, and a hash of all that their rows are made of."""

    models: tuple[str, ...]
    key: str = ""


# by model a hash of what its numbers are made of, where there is something to keep them in
Contents = Mapping[str, str]
# gives the file of each of some blocks, in their order
WorkOut = Callable[[Sequence[Block]], Iterator[bytes]]


def write(contents: Contents, path: Path, cut: Cut, pattern: bytes, work_out: WorkOut, packs: Packs | None) -> int:
    """Writes the file of these models, whose columns are those of `pattern`. Returns its rows. What `packs` hold is copied from there."""
    blocks = blocks_of(contents, path.name, cut, packs)
    known = packs.places([block.key for block in blocks]) if packs else {}
    with Spliced(path, pattern) as file:
        for start in range(0, len(blocks), cut.together):
            some = blocks[start : start + cut.together]
            kept = [packs.content(known[b.key], path.name) if b.key in known else None for b in some]
            left = [block for block, content in zip(some, kept, strict=True) if content is None]
            made = work_out(left) if left else iter(())
            for block, content in zip(some, kept, strict=True):
                if content is None:
                    content = next(made)
                    if packs:
                        packs.put_files([block.key], {path.name: content})
                file.append(content, {"model_id": (block.models[0], block.models[-1])})
    return file.rows


def contents_of(connection: duckdb.DuckDBPyConnection, packs: Packs | None) -> Contents:
    """All models that have footprints, in their order."""
    # (asked of the view, every row would be put together first)
    shared = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'twin_footprint'").fetchall()
    own = "SELECT DISTINCT model_id AS first_id, dtype_id FROM twin_footprint"
    known = f"twin SEMI JOIN ({own}) USING (first_id, dtype_id)" if shared else "footprint"
    models = [model for (model,) in connection.execute(f"SELECT DISTINCT model_id FROM {known} ORDER BY 1").fetchall()]
    if packs is None:
        return dict.fromkeys(models, "")
    content = dict(connection.execute(f"FROM {CONTENT}" if shared else content_of(connection)).fetchall())
    return {model: content[model] for model in models}


def blocks_of(contents: Contents, name: str, cut: Cut, packs: Packs | None) -> list[Block]:
    """The blocks of some models; they have keys where there is something to keep them in."""
    found: list[Block] = []
    begun: list[str] = []
    for model in contents:
        begun.append(model)
        ends = not hashlib.sha256(model.encode()).digest()[0] % cut.one_of
        if len(begun) >= cut.most or (ends and len(begun) >= cut.least):
            found.append(Block(tuple(begun)))
            begun = []
    if begun:
        found.append(Block(tuple(begun)))
    if packs is None:
        return found
    made_of = f"{name} {fingerprint()} polars {pl.__version__} pyarrow {pa.__version__}"
    return [Block(b.models, _hash(made_of, *(f"{model} {contents[model]}" for model in b.models))) for b in found]


def _hash(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
