"""From the snapshot's records to the tables of anatomy: model, tensor, stored_tensor, attention_layer, feed_forward_layer, rejected.

One bad record never stops a build: what cannot be read becomes a model of unknown anatomy with its reason, what contradicts
itself a row of `rejected`.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

import polars as pl

from pipeline.anatomy import Anatomy, ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.components import components
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import AttentionLayer, FeedForwardLayer, Tensor, Tower
from pipeline.base.bounds import visible
from pipeline.base.progress import Progress, quiet
from pipeline.book.facts import POLARS_TYPES, TABLES
from pipeline.book.packs import Packs
from pipeline.book.schema import PUBLISHED
from pipeline.confirm.borrowing import Lenders, lent_on
from pipeline.confirm.contexts import Known, contexts_of, with_context
from pipeline.confirm.grade import Graded
from pipeline.confirm.header import Census
from pipeline.confirm.header_grade import grade_with_header
from pipeline.confirm.own_class import in_its_class
from pipeline.confirm.repository_kind import words_on
from pipeline.confirm.stored_parts import Part
from pipeline.confirm.ties import Kin, kin_of, with_tie
from pipeline.hub.careful import problem_of
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Popularity, Snapshot
from pipeline.press.kept_grades import KeptGrades
from pipeline.press.quarantine import UNREADABLE, guarded, hold

__all__ = ["UNREADABLE", "anatomise"]

_PARTS = (
    ("tensor", Tensor),
    ("attention_layer", AttentionLayer),
    ("feed_forward_layer", FeedForwardLayer),
    ("tower", Tower),
)
_OF_ANATOMY = (
    "model_type",
    "architecture",
    "parameter_count",
    "active_parameter_count",
    "max_context_tokens",
    "trained_context_tokens",
    "predicting_layer_count",
    "predicting_parameter_count",
    "hidden_size",
    "layer_count",
    "vocab_size",
    "is_head_tied",
    "norm_kind",
    "is_block_parallel",
    "has_flash_attention",
    "hidden_dropout",
    "attention_dropout",
)
_OF_RECORD = (
    "revision",
    "pipeline_tag",
    "library",
    "license",
    "is_gated",
    "stored_parameter_count",
    "base_model_id",
    "created_at",
    "config_kind",
    "config_source",
)


def anatomise(snapshot: Snapshot, progress: Progress = quiet, packs: Packs | None = None) -> dict[str, pl.DataFrame]:
    """Frames by table name, typed as the schema says, sorted by key. What `packs` hold of a model is not read again."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rejected = {
        r.model_id: {"model_id": r.model_id, "reason": r.reason, "sources": r.sources} for r in snapshot.rejected
    }
    kept = KeptGrades(packs)
    records = [in_its_class(record) for record in snapshot.records]
    asked = [(kept.of_record(record), (record,)) for record in records]
    readable = []
    read = zip(records, kept.each("read", _read, asked), strict=True)
    for record, found in progress(read, desc="anatomy", total=len(asked)):
        if isinstance(found, ContradictoryConfig):
            _reject(rejected, record, str(found))
        else:
            readable.append((record, found))
    own = []
    for (record, _found), one in zip(readable, kept.settled(Lenders(readable), readable), strict=True):
        if isinstance(one, ContradictoryConfig):
            _reject(rejected, record, str(one))
        else:
            own.append(one)
    own = lent_on(own)
    kin, contexts = kin_of(own), contexts_of(own)
    for record, found in own:
        try:
            held = guarded(_rows_of, record, found, kin, contexts, snapshot)
        except ContradictoryConfig as reason:
            _reject(rejected, record, str(reason))
            continue
        for name, those in held.items():
            rows[name] += those
        if record.header_problem:
            _reject(rejected, record, f"its tensor headers are set aside: {record.header_problem}")
    rows["rejected"] = list(rejected.values())
    names = (
        "model",
        "rejected",
        "stored_tensor",
        "stored_part",
        "component",
        "component_tensor",
        *(name for name, _ in _PARTS),
    )
    return {name: _frame(name, rows[name]) for name in names}


def _rows_of(
    record: Record, found: Graded, kin: Kin, contexts: Known, snapshot: Snapshot
) -> dict[str, list[dict[str, Any]]]:
    """All that one model adds to the tables, held to their schema."""
    graded = with_context(record, with_tie(record, found, kin), contexts)
    rows = {"model": [_model_row(record, graded, snapshot.popularity.get(record.model_id), snapshot)]}
    if graded.anatomy:
        rows |= {name: _part_rows(record.model_id, graded.anatomy, name, kind) for name, kind in _PARTS}
        parts = components(Fields(record.config or {}), graded.anatomy)
        told = [vars(part) | {"model_id": record.model_id} for part in parts]
        rows["component_tensor"] = [row for each in told for row in _encoder_rows(each, each.pop("tensors"))]
        rows["component"] = told
    if graded.census:
        rows["stored_tensor"] = _stored_rows(record.model_id, graded.census)
    rows["stored_part"] = _held_rows(record.model_id, graded.parts or ())
    hold(rows)
    return rows


def _reject(rejected: dict[str, dict[str, Any]], record: Record, reason: str) -> None:
    """One row per model: a crawl may have rejected a newer commit of it already."""
    reason, before = visible(reason), rejected.get(record.model_id)
    if before:
        before["reason"] = f"{before['reason']}; {reason}"
    else:
        sources = ";".join(record.source_ids)
        rejected[record.model_id] = {"model_id": record.model_id, "reason": reason, "sources": sources}


def _read(record: Record) -> Graded:
    if problem := problem_of(record.config):
        raise ContradictoryConfig(f"its config is not used: {problem}")
    try:
        anatomy: Anatomy | UnknownAnatomy = read_config(record.config) if record.config else UnknownAnatomy("no config")
    except UnknownAnatomy as reason:
        anatomy = reason
    return grade_with_header(record, anatomy)


def _model_row(
    record: Record,
    graded: Graded,
    popularity: Popularity | None,
    snapshot: Snapshot,
) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in _OF_RECORD}
    # a model whose anatomy is not confirmed shows no figure of it
    if graded.anatomy:
        row |= {name: getattr(graded.anatomy, name) for name in _OF_ANATOMY}
        if row["max_context_tokens"] is None:
            row["max_context_tokens"] = counted_tokens().get((row["model_type"], row["parameter_count"]))
    else:
        named = record.config.get("model_type") if record.config else None
        row["model_type"] = named if isinstance(named, str) else None
    return row | {
        "model_id": record.model_id,
        "family": _family(row["model_type"]),
        "anatomy_grade": graded.grade,
        "anatomy_note": graded.note,
        "holds": None if graded.anatomy else words_on(record.model_id, record.library),
        "is_shape_confirmed": graded.is_confirmed if graded.anatomy else None,
        "stored_parameter_note": graded.stored_note,
        "stored_format": graded.stored_format,
        "stored_bytes": graded.stored_bytes,
        "stored_unknown_reason": graded.stored_unknown_reason,
        "limited_engines": limited_engines().get(row["model_type"]),
        "downloads_30d": popularity.downloads_30d if popularity else None,
        "likes": popularity.likes if popularity else None,
        "facts_as_of": popularity.facts_as_of if popularity else snapshot.date.isoformat(),
        "sources": ";".join(record.source_ids),
    }


@cache
def counted_tokens() -> Mapping[tuple[str | None, int], int]:
    """The tokens of the longest input that was counted, by type and parameters: what a model reads whose config does not say it."""
    with (TABLES / "facts" / "forward_pass.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(row["pass_type"], int(row["parameter_count"])): int(row["most_tokens"]) for row in rows}


@cache
def limited_engines() -> Mapping[str | None, str]:
    """By model_type the engines whose lines of support.csv name it, each by its id."""
    found: dict[str | None, set[str]] = defaultdict(set)
    with (TABLES / "facts" / "support.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for model_type in row["model_types"].split():
                found[model_type] |= set(row["engine_ids"].split())
    return {model_type: " ".join(sorted(engines)) for model_type, engines in found.items()}


def _family(model_type: str | None) -> str | None:
    """The group that people browse by: a model_type without what only marks its part or its experts."""
    if model_type is None:
        return None
    name = model_type.lower().replace("-", "_")
    for suffix in ("_text", "_moe", "_vl", "_unified", "_lite"):
        name = name.removesuffix(suffix)
    return name


def _part_rows(model_id: str, anatomy: Anatomy, name: str, kind: type) -> list[dict[str, Any]]:
    parts = {
        "tensor": _merged(anatomy.tensors),
        "attention_layer": anatomy.attention,
        "feed_forward_layer": anatomy.feed_forward,
        "tower": anatomy.towers,
    }
    names = [field.name for field in fields(kind)]
    extra = ("element_count",) if name == "tensor" else ()
    return [{"model_id": model_id, **{n: getattr(part, n) for n in (*names, *extra)}} for part in parts[name]]


def _encoder_rows(part: dict[str, Any], tensors: Iterable[Tensor]) -> list[dict[str, Any]]:
    """Of a text encoder: alike whether they are its tower's or its own."""
    names = ("tensor_class", "role", "operator", "layer_count", "per_layer_count", "out_features", "in_features")
    of = {name: part[name] for name in ("model_id", "pipeline_part")}
    alike = _merged(replace(t, component="text-encoder") for t in tensors)
    return [of | {n: getattr(t, n) for n in (*names, "element_count")} for t in alike]


def _stored_rows(model_id: str, census: Census) -> list[dict[str, Any]]:
    """What the files hold, by class and format."""
    sums: dict[tuple, list[int]] = defaultdict(lambda: [0, 0, 0])
    for held in census.held:
        what = held.what
        counts = sums[what.component, what.tensor_class, held.storage, held.is_in_layers, what.beside]
        for place, count in enumerate((held.element_count, held.stored_element_count, held.stored_bytes)):
            counts[place] += count
    names = ("component", "tensor_class", "storage", "is_in_layers", "not_loaded_reason")
    counted = ("element_count", "stored_element_count", "stored_bytes")
    return [
        {"model_id": model_id, **dict(zip(names, key, strict=True)), **dict(zip(counted, counts, strict=True))}
        for key, counts in sums.items()
    ]


def _held_rows(model_id: str, parts: Iterable[Part]) -> list[dict[str, Any]]:
    """What the checkpoint holds in which format, as its config or its total says."""
    counts: dict[tuple, int] = defaultdict(int)
    for part in parts:
        t = part.tensor
        place = (t.component, t.tensor_class, t.role, t.operator, part.dtype_id, part.layer_count, t.layer_count > 1)
        counts[*place, t.out_features, t.in_features] += t.per_layer_count
    names = (
        "component",
        "tensor_class",
        "role",
        "operator",
        "dtype_id",
        "layer_count",
        "is_in_layers",
        "out_features",
        "in_features",
    )
    rows = [
        {"model_id": model_id, **dict(zip(names, key, strict=True)), "per_layer_count": n} for key, n in counts.items()
    ]
    for row in rows:
        row["element_count"] = (
            row["layer_count"] * row["per_layer_count"] * row["out_features"] * (row["in_features"] or 1)
        )
    return rows


def _merged(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Tensors that differ in nothing but where they stand become one row, with as many a layer as there are."""
    counts: dict[tuple, int] = defaultdict(int)
    for t in tensors:
        counts[t.component, t.tensor_class, t.role, t.operator, t.layer_count, t.out_features, t.in_features] += (
            t.per_layer_count
        )
    return [Tensor(*place, count, out, into) for (*place, out, into), count in counts.items()]


def _frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    table = PUBLISHED[name]
    schema = {column.name: POLARS_TYPES[column.type] for column in table.columns}
    return pl.DataFrame(
        [[row.get(column) for column in schema] for row in rows], schema=schema, orient="row", infer_schema_length=None
    ).sort(table.key, nulls_last=True, maintain_order=True)
