"""Every table that the almanac reads from its book or publishes: its columns, its key, what may be null.

Tables are declared in tables/schema/table.csv: `of` says whether one is kept by hand (`facts`: tables/facts/*.csv), what the Hub said
(`snapshot`: tables/hub, read through pipeline.hub.snapshot) or `published`; `key` and `columns` are lists separated by blanks. `name?`
marks a column that may be null (unknown, or not applicable), `<components>` stands for the components of a footprint. Type, unit and
meaning of each name are declared once, in tables/schema/column.csv. Types: string, integer (signed 64 bit), number (double), boolean,
date. The macros that people ask for by name are those of tables/schema/macro.csv; all other macros are how these are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipeline.anatomy.rows import GRIDS, MECHANISMS, OPERATORS, READERS, RECURRENCES, TENSOR_CLASSES
from pipeline.book.columns import COLUMNS, Column, SchemaError, declared
from pipeline.book.columns import PATH as COLUMN_PATH
from pipeline.book.components import COMPONENTS

__all__ = ["COLUMNS", "DUCKDB_TYPES", "FACTS", "MACROS", "PUBLISHED", "SNAPSHOT", "Column", "SchemaError", "Table"]

DUCKDB_TYPES = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}

# begins the reason of a `rejected` row whose model the Hub has under another name; its new id follows
NOW_NAMED = "now named "

ENUMS = {
    "anatomy_grade": ("exact", "matched", "derived", "unknown"),
    "phase_id": ("inference", "pretrain", "full-finetune", "lora", "qlora"),
    "verdict": ("fits", "tight", "multi-gpu", "no"),
    "outcome": ("ran", "did not run", "refused by default", "ran out at another share"),
    "judgement": ("right", "false fits", "needless refusal", "not known"),
    "capacity_basis": ("measured", "imputed"),
    "confidence": ("high", "medium", "low"),
    "tensor_class": TENSOR_CLASSES,
    "operator": OPERATORS,
    "mechanism": MECHANISMS,
    "recurrence": RECURRENCES,
    "reader": READERS,
    "grid": GRIDS,
    "norm_kind": ("rms", "layer"),
    "purpose": ("lookup", "ladder", "opening"),
    "window_use": ("never", "always", "listed"),
    "reads_prompt": (
        "whole",
        "profile",
        "profile-of-prompts",
        "chunk",
        "compute-buffer",
        "pieces",
        "matrix-by-matrix",
        "matrix-by-matrix-rotated",
    ),
    "logits_of": ("last", "all", "handed-over"),
    "rotations_in": ("model", "layers", "cache"),
    "file_part": (
        "whole",
        "denoiser",
        "text_encoder",
        "image_encoder",
        "vae",
        "controlnet",
        "adapter",
        "detector",
    ),
    "gap": (
        "load",
        "memory",
        "packing",
        "speed",
        "unfused",
        "fused",
        "rotated",
        "experts",
        "in-place",
        "in-half",
        "block",
    ),
    "vendor": ("nvidia", "amd", "intel", "apple", "google"),
    "segment": ("consumer", "workstation", "datacenter", "unified", "embedded", "tpu"),
    "tflops_basis": ("read", "ratio", "recalled", "none"),
    "parameters_kind": ("exact_safetensors", "exact_gguf", "exact_packed_elements", "rounded", "estimate"),
    "config_kind": (
        "verbatim",
        "quoted",
        "sibling",
        "reconstructed",
        "library_defaults",
        "library_table",
        "partial",
        "assumed",
    ),
}


@dataclass(frozen=True)
class Table:
    """A table by name: what a row is, its key, its columns in order, which of them may be null."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    nullable: frozenset[str]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


FOLDER = COLUMN_PATH.parent
_OF = ("facts", "snapshot", "published")
_ALL_COMPONENTS = "<components>"


def read_tables(path: Path = FOLDER / "table.csv") -> dict[str, dict[str, Table]]:
    """The tables of each of `facts`, `snapshot` and `published`, in their order. Raises SchemaError."""
    found: dict[str, dict[str, Table]] = {of: {} for of in _OF}
    wrong = []
    for line, row in declared(path, ["name", "of", "meaning", "key", "columns"]):
        try:
            wrong += [f"{path.name}:{line}: {problem}" for problem in _add(found, row)]
        except SchemaError as error:
            wrong.append(f"{path.name}:{line}: {error}")
    if wrong:
        raise SchemaError("\n".join(wrong))
    return found


def _add(found: dict[str, dict[str, Table]], row: dict[str, str]) -> Iterable[str]:
    table = _table(row["name"], row["meaning"], row["key"], row["columns"])
    if not table.meaning:
        yield f"table {table.name}: has no meaning"
    if missing := [name for name in table.key if name not in table.column_names]:
        yield f"table {table.name}: its key has {', '.join(missing)}, and its columns have not"
    if len(set(table.column_names)) < len(table.columns):
        yield f"table {table.name}: names a column twice"
    for of in row["of"].split() or [""]:
        if of not in _OF:
            yield f"table {table.name}: is of {of!r}, which is none of {', '.join(_OF)}"
        elif table.name in found[of]:
            yield f"table {table.name}: is declared twice for {of}"
        else:
            found[of][table.name] = table


def _table(name: str, meaning: str, key: str, columns: str) -> Table:
    names = columns.replace(_ALL_COMPONENTS, " ".join(f"{part.column}?" for part in COMPONENTS)).split()
    bare = [n.removesuffix("?") for n in names]
    return Table(
        name,
        meaning,
        tuple(key.split()),
        tuple(COLUMNS.of(n, name) for n in bare),
        frozenset(b for b, n in zip(bare, names, strict=True) if n.endswith("?")),
    )


FACTS, SNAPSHOT, PUBLISHED = read_tables().values()
MACROS = tuple(row["macro"] for _line, row in declared(FOLDER / "macro.csv", ["macro", "meaning"]))
