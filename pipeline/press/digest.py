"""A digest of what was published, small enough to keep in the checkout: the numbers that pages open with, and what they rest on.

    digest.csv    a line per model: its revision, hashes of its record and of its anatomy, and a cell per format and phase,
                  `total_bytes error_band`
    digest.json   versions; hashes of what decides (formulas, facts, code); constants, engine versions, capacities, which card does
                  not run what; what the gates measure; what the promise speaks of

Totals are those of one GPU, one sequence, AdamW and full checkpointing, at 8192 tokens in inference and 2048 in training, or at the
longest published context that the model reads where that is less.

Hashes are of what can move a number, so that a comment or a source that is spelt otherwise is no cause: formulas without their
comments, facts without their notes, code without its docstrings, a model's anatomy without its popularity.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import ROOT
from pipeline.base import swap
from pipeline.base.readonly import reading
from pipeline.book import promise
from pipeline.book.packs import Packs, digest_of, fingerprint
from pipeline.hub.record import Record
from pipeline.press import measures

NUMBERS, BASIS = "digest.csv", "digest.json"
DATABASE = "almanac.duckdb"
CONTEXTS = {"inference": 8192}
TRAINING_CONTEXT = 2048
# the tables that describe a model, and of their columns those that tell of it and decide nothing
ANATOMY = (
    "model", "tensor", "tensor_class", "attention_layer", "feed_forward_layer", "tower", "component",
    "component_tensor", "stored_tensor", "stored_part",
)  # fmt: skip
_TOLD = (
    "revision", "pipeline_tag", "library", "license", "is_gated", "downloads_30d", "likes", "facts_as_of", "created_at",
    "anatomy_note", "stored_parameter_note", "config_source", "config_note", "sources", "base_model_id", "anatomy_grade",
)  # fmt: skip
# fields of a record that tell where and when, and not what
_RECORDED = (
    "model_id", "revision", "license", "library", "is_gated", "created_at", "last_modified", "config_source", "config_note",
    "config_agreeing_sources", "storage_bytes", "sources", "parameters_sources", "parameters_by_dtype_sources",
    "config_sources", "pipeline_tag",
)  # fmt: skip
_NOTES = {"source", "locator", "note", "confidence", "applies_to", "reason", "unit", "memory_reported_source"}
# what makes numbers of facts, by room: readers of models, and what runs the formulas
CODE = {
    "anatomy": ("anatomy",),
    "confirm": ("confirm", "press/anatomise.py"),
    "hub": ("hub/snapshot.py", "hub/record.py", "hub/summary.py"),
    "book": ("book/facts.py", "book/scenario.py"),
    "press": (
        "press/build.py",
        "press/formulas.py",
        "press/lookup.py",
        "press/held.py",
        "press/layers.py",
        "press/compatibility.py",
        "press/flat",
    ),
}
_WHO = ("model_id", "revision", "anatomy", "record")
_COMMENT = re.compile(r"--[^\n]*")


class Seen(NamedTuple):
    """What is kept of a model beside its numbers: the commit, and hashes of its anatomy and of the Hub's word that it was read from."""

    revision: str = ""
    anatomy: str = ""
    record: str = ""  # empty: kept before records were


@dataclass(frozen=True)
class Digest:
    """`models` holds what is kept of each, `numbers` (total, band) by model and scenario, `basis` what they rest on."""

    models: dict[str, Seen]
    numbers: dict[str, dict[str, tuple[int, float]]]
    basis: dict


def take(
    tables: Path,
    sources: Path,
    versions: dict,
    records: Iterable[Record] = (),
    code: Path = ROOT,
    packs: Packs | None = None,
) -> Digest:
    """The digest of the tables in a folder; `sources` is the book that they were made of, `records` the snapshot, `code` the checkout.
    What `packs` know of formulas and code is not asked again."""
    anatomies, said = _anatomies(tables), {record.model_id: _record(record) for record in records}
    rows = pl.read_parquet(tables / "model.parquet", columns=["model_id", "revision"]).sort("model_id").rows()
    models = {m: Seen(revision or "", anatomies.get(m, ""), said.get(m, "")) for m, revision in rows}
    values = lambda name, key, value: dict(pl.read_parquet(tables / f"{name}.parquet").select(key, value).rows())  # noqa: E731
    numbers = _numbers(tables)
    basis = versions | {
        "formulas": {
            name: _hash(" ".join(_COMMENT.sub("", text).split())) for name, text in _texts(sources / "sql", "*.sql")
        },
        "facts": {name: _hash(_facts(text)) for name, text in _texts(sources / "facts", "*.csv")}
        | {f"library/{name}": _hash(text) for name, text in _texts(sources / "library", "*.*") if name != "README.md"},
        "code": _kept(packs, "code", digest_of([code / "pipeline"], [".py"]) if packs else "", lambda: _code(code)),
        "constants": values("constant", "constant_id", "value"),
        "engines": values("engine", "engine_id", "engine_version"),
        "capacities": values("gpu", "gpu_id", "capacity_bytes"),
        "refusals": _refusals(tables, {s for cells in numbers.values() for s in cells}),
        "measures": measures.take(tables, numbers.keys()),
        "promise": _kept(packs, "promise", fingerprint() if packs else "", lambda: _promised(tables / DATABASE)),
    }
    return Digest(models, numbers, basis)


def _kept(packs: Packs | None, what: str, of: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, as JSON has it: of the same text it is the same."""
    if packs is None:
        return make()
    key = _hash(f"{what} {of}", 64)
    known = packs.values([key], what)
    if key not in known:
        known = {key: json.dumps(make()).encode()}
        packs.keep(known, what)
    return json.loads(known[key])


def _promised(database: Path) -> dict[str, Any]:
    """What the release promises; of tables without their database all but what macros answer."""
    if not database.exists():
        return promise.describe()
    with reading(database) as connection:
        return promise.describe(connection)


def _refusals(tables: Path, scenarios: set[str]) -> dict[str, dict[str, str]]:
    """By scenario the cards that do not run it, with fused attention as everywhere in the digest: `no` where a source says so,
    `untold` where none says that they do. A checkpoint as published runs where its own format does, and is not told here."""
    file = tables / "runs_on.parquet"
    if not file.exists():
        return {}
    rows = pl.read_parquet(file).filter(pl.col("attention") == "flash", pl.col("runs").is_null() | ~pl.col("runs"))
    if (
        "running_id" in rows.columns
    ):  # (rows of one type of models stand beside those of all; a release from before has none)
        rows = rows.filter(pl.col("running_id") == pl.col("dtype_id"))
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for phase, dtype, engine, gpu, runs in (
        rows.select("phase_id", "dtype_id", "engine_id", "gpu_id", "runs").sort(pl.all()).rows()
    ):
        if (scenario := f"{phase} {dtype} {engine}") in scenarios:
            found[scenario][gpu] = "untold" if runs is None else "no"
    return dict(found)


def _numbers(tables: Path) -> dict[str, dict[str, tuple[int, float]]]:
    wanted = pl.col("phase_id").replace_strict(CONTEXTS, default=TRAINING_CONTEXT, return_dtype=pl.Int64)
    scenario = ["phase_id", "dtype_id", "engine_id"]
    frame = (
        pl.scan_parquet(tables / "footprint.parquet")
        .filter(
            pl.col("gpu_count") == 1,
            pl.col("sequences") == 1,
            pl.col("context_tokens") <= wanted,
            pl.col("optimizer_id").is_null() | (pl.col("optimizer_id") == "adamw"),
            pl.col("checkpointing").is_null() | (pl.col("checkpointing") == "full"),
            pl.col("total_bytes").is_not_null(),
        )
        .select("model_id", *scenario, "context_tokens", "total_bytes", "error_band")
        .collect()
        .sort("model_id", *scenario, "context_tokens")
        .unique(["model_id", *scenario], keep="last", maintain_order=True)
    )
    numbers: dict[str, dict[str, tuple[int, float]]] = defaultdict(dict)
    for model_id, phase, dtype, engine, _context, total, band in frame.rows():
        # as it is written: a number that is kept and read again is the same
        numbers[model_id][f"{phase} {dtype} {engine}"] = total, float(f"{band or 0.0:g}")
    return dict(numbers)


def _anatomies(tables: Path) -> dict[str, str]:
    """A hash of the rows that describe a model: what is null in them is left out, so that a new column alone changes none."""
    digests = defaultdict(hashlib.sha256)
    for name in ANATOMY:
        file = tables / f"{name}.parquet"
        if file.exists():
            frame = pl.read_parquet(file)
            names = sorted(set(frame.columns) - {"model_id", *(_TOLD if name == "model" else ())})
            rows = defaultdict(list)
            for model_id, *values in frame.select("model_id", *names).rows():
                rows[model_id].append(repr([(n, v) for n, v in zip(names, values, strict=True) if v is not None]))
            for model_id, lines in rows.items():
                digests[model_id].update(repr((name, sorted(lines))).encode())
    return {model_id: digest.hexdigest()[:12] for model_id, digest in digests.items()}


def _record(record: Record) -> str:
    """What of a record can decide its model's anatomy."""
    said = {name: value for name, value in vars(record).items() if name not in _RECORDED and value not in (None, ())}
    return _hash(json.dumps(said, sort_keys=True, default=list))


def _facts(text: str) -> str:
    """The rows of a file of facts without what only tells where they are from."""
    rows = csv.DictReader(text.splitlines())
    return json.dumps([{k: v for k, v in row.items() if k not in _NOTES} for row in rows])


def _code(top: Path) -> dict[str, str]:
    """A hash of the code of each room, and of the libraries that run it."""
    found = {}
    for room, places in CODE.items():
        files = [f for place in places for f in _files(top / "pipeline" / place)]
        found[room] = _hash("\n".join(_bare(f.read_text(encoding="utf-8")) for f in files))
    lock = top / "requirements.lock"
    pinned = re.findall(r"^(?:duckdb|polars)==\S+", lock.read_text(encoding="utf-8"), re.M) if lock.exists() else []
    return found | {"libraries": " ".join(pinned)}


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place] * place.exists()


def _bare(text: str) -> str:
    """Code as it runs: no comments, no layout, no docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def _texts(folder: Path, pattern: str) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob(pattern)):
        yield file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")


def _hash(text: str, length: int = 12) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def keep(digest: Digest, folder: Path) -> None:
    """Writes a digest into a folder of its own, which takes the place of the one before at once: what is kept is whole, whenever this
    is stopped."""
    built = folder.with_name(f".{folder.name}-next")
    shutil.rmtree(built, ignore_errors=True)
    write(digest, built)
    swap.put(built, folder)


def last(folder: Path) -> Digest | None:
    """The digest of the last release, kept by `keep`."""
    swap.recover(folder)
    return read(folder)


def write(digest: Digest, folder: Path) -> None:
    scenarios = sorted({s for cells in digest.numbers.values() for s in cells})
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NUMBERS).open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*_WHO, *scenarios])
        for model_id, facts in digest.models.items():
            cells = digest.numbers.get(model_id, {})
            out.writerow(
                [model_id, *facts, *(f"{cells[s][0]} {cells[s][1]:g}" if s in cells else "" for s in scenarios)]
            )
    (folder / BASIS).write_text(json.dumps(digest.basis, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read(folder: Path) -> Digest | None:
    """The digest that a folder keeps; None where it keeps none."""
    if not (folder / NUMBERS).exists() or not (folder / BASIS).exists():
        return None
    return parse((folder / NUMBERS).read_text(encoding="utf-8"), (folder / BASIS).read_text(encoding="utf-8"))


def parse(numbers_csv: str, basis_json: str) -> Digest:
    """A digest from the text of its two files. Raises ValueError and KeyError where they are none."""
    rows = csv.reader(numbers_csv.splitlines())
    header = next(rows, [])
    # digests from before records were kept have a column less
    who = [name for name in header if name in _WHO]
    if header[: len(who)] != who or "model_id" not in who:
        raise ValueError(f"{NUMBERS} is no digest: its first line is {','.join(header)[:80]!r}")
    models, numbers = {}, {}
    for row in rows:
        said = dict(zip(header, row, strict=True))
        model_id = said["model_id"]
        models[model_id] = Seen(*(said.get(name, "") for name in Seen._fields))
        known = {s: cell.split() for s, cell in zip(header[len(who) :], row[len(who) :], strict=True) if cell}
        if known:
            numbers[model_id] = {s: (int(total), float(band)) for s, (total, band) in known.items()}
    basis: Mapping[str, Any] = json.loads(basis_json)
    if not isinstance(basis, dict) or not isinstance(basis.get("data_version"), str):
        raise ValueError(f"{BASIS} is no digest: it names no data version")
    return Digest(models, numbers, basis)
