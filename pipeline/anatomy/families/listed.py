"""Classes whose tensors the library lists: every kind of tensor in terms of the config's fields, put into rows by a tool.

tables/library/module.jsonl has a line for each class (tests/oracle/list_modules.py made it from the classes themselves). It says what a model
weighs and not what its layers cache or compute, so that layers and widths stay unknown and a scenario has a reason. A field that may shape a
tensor and is described for one value only makes a config with another value unknown.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from functools import cache
from math import inf, isfinite
from typing import Any

from pipeline import ROOT
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of, label_count
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part
from pipeline.base.bounds import LARGEST_TOTAL

FILE = ROOT / "tables" / "library" / "module.jsonl"
TOWERS = {"vision": "vision-tower", "audio": "audio-tower"}
LABELS = "num_labels"
# Types with a reader of their own, which hands over the classes that it does not describe (read_listed).
BESIDE = ("clipseg", "owlv2")


@cache
def listed() -> Mapping[str, Mapping[str, list[dict[str, Any]]]]:
    """The lines by model_type and class; those of one class differ in what is pinned, and the class's own default comes first."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    for row in sorted(rows, key=lambda row: len(row["told"])):
        found.setdefault(row["model_type"], {}).setdefault(row["class_name"], []).append(row)
    return found


@family(*(model_type for model_type in listed() if model_type not in BESIDE))
def read_listed(fields: Fields) -> Anatomy:
    rows, name = listed().get(fields.text("model_type"), {}), architecture_of(fields)
    if name is None and len(rows) > 1:
        bare = [known for known in rows if known.endswith("Model")]  # what the library loads where no head is asked for
        if len(bare) != 1:
            raise UnknownAnatomy(f"{fields.where} names no class, and '{fields.text('model_type')}' has several")
        name = bare[0]
    lines = rows.get(name) if name else next(iter(rows.values()))
    if lines is None:
        raise UnknownAnatomy(f"class '{shown(name)}' is not described yet")
    reasons = []
    for row in lines:
        try:
            return _by_row(fields, row)
        except UnknownAnatomy as reason:
            reasons.append(reason)
    raise reasons[0]


def _by_row(fields: Fields, row: Mapping[str, Any]) -> Anatomy:
    for place, length in row["lengths"].items():
        _, entries = _at(fields, place, row["aliases"])
        if isinstance(entries, list) and len(entries) != length:
            raise UnknownAnatomy(f"{fields.where}.{place} has {len(entries)} entries, and {length} are described")
    for place in row["told"]:
        if not _at(fields, place, row["aliases"])[0]:
            raise UnknownAnatomy(f"{fields.where} has no {place}")
    values = {place: _held(fields, place, row) for place in row["fields"]}
    parts = _parts(fields, row, values)
    anatomy = Anatomy(
        model_type=fields.text("model_type"),
        architecture=row["class_name"],
        hidden_size=None,
        layer_count=None,
        vocab_size=None,
        is_head_tied=None,
        norm_kind=None,
        tensors=tuple(tensor for part in parts for tensor in part.tensors),
        is_block_parallel=None,
        has_flash_attention=None,
        hidden_dropout=None,
        attention_dropout=None,
        stored_extra={
            cause: _size(fields, term, values, is_signed=True) for cause, term in row.get("stored", {}).items()
        },
    )
    if anatomy.parameter_count > LARGEST_TOTAL:
        raise ContradictoryConfig(f"{fields.where} describes more than 10^15 parameters")
    return anatomy


def listed_parts(model_type: str) -> list[Part]:
    """The parts of a class of one shape, for a model that loads it beside its own."""
    (row,) = next(iter(listed()[model_type].values()))
    return _parts(Fields({}), row, row["fields"])


def _parts(fields: Fields, row: Mapping[str, Any], values: Mapping[str, Any]) -> list[Part]:
    parts: dict[tuple[str, str | None], Part] = {}
    for component, role, operator, count, *sides in row["tensors"]:
        kind = None if role == "head" else TOWERS.get(component)
        part = parts.setdefault((component, kind), Part(component, kind))
        number, *sides = (_size(fields, term, values) for term in (count, *sides))
        part.add(role, operator, *sides, count=number)
    return list(parts.values())


def _held(fields: Fields, place: str, row: Mapping[str, Any]) -> Any:
    """What the config has at a place, or what its class takes where it is silent."""
    default = row["fields"][place]
    if place == LABELS:
        count = label_count(fields)
        if count != default and place in row["pinned"]:
            raise UnknownAnatomy(f"a head of {count} labels is not described for {row['class_name']}")
        return count
    is_said, value = _at(fields, place, row["aliases"])
    if place in row["pinned"]:
        if is_said and value != default and (value or default):
            told = shown(json.dumps(value, default=str))
            raise UnknownAnatomy(f"{fields.where}.{place} is {told}, which is not described for {row['class_name']}")
        return default
    if not is_said and default is None:
        raise UnknownAnatomy(f"{fields.where} has no {place}")
    if is_said and value is None and default is not None:
        raise UnknownAnatomy(f"{fields.where}.{place} is null, which is not described for {row['class_name']}")
    value = value if is_said else default
    if isinstance(default, float):
        return Fields({place: value}, fields.where).number(place)
    size = Fields({place: value}, fields.where).count(place, least=0)
    if size < row["least"].get(place, 0):
        raise UnknownAnatomy(f"{fields.where}.{place} is {size}, which is not described for {row['class_name']}")
    return size


def _at(fields: Fields, place: str, aliases: Mapping[str, str]) -> tuple[bool, Any]:
    """Whether the config says something there, and what; the library knows some fields by a second name."""
    names = [place, *(alias + place[len(name) :] for alias, name in aliases.items() if _begins(place, name))]
    for name in names:
        inner: Any = fields.config
        for step in re.findall(r"[^.\[\]]+", name):
            if isinstance(inner, list) and step.isdigit() and int(step) < len(inner):
                inner = inner[int(step)]
            elif isinstance(inner, Mapping) and step in inner:
                inner = inner[step]
            elif inner is None or isinstance(inner, Mapping):
                break
            else:
                raise ContradictoryConfig(f"{fields.where}.{name} lies inside what is no object")
        else:
            return True, inner
    return False, None


def _begins(place: str, name: str) -> bool:
    return place == name or place.startswith(f"{name}[")


@cache
def _parsed(term: str) -> ast.expr:
    return ast.parse(term, mode="eval").body


def _size(fields: Fields, term: int | str, values: Mapping[str, Any], *, is_signed: bool = False) -> int:
    """A number, or what a term of fields comes to; a checkpoint may leave something out, too."""
    if isinstance(term, int):
        return term
    try:
        size = _worked_out(_parsed(term), values)
    except (ZeroDivisionError, OverflowError):
        size = inf
    if not isfinite(size) or not (-LARGEST_TOTAL if is_signed else 0) <= size <= LARGEST_TOTAL:
        raise ContradictoryConfig(f"{fields.where}: {term} is no size")
    return int(size)


def _worked_out(node: ast.expr, values: Mapping[str, Any]) -> float:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):  # a minus: the tool writes no other
        return -_worked_out(node.operand, values)
    if not isinstance(node, ast.BinOp):
        return values[ast.unparse(node)]
    left, right = _worked_out(node.left, values), _worked_out(node.right, values)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.FloorDiv):
        return left // right
    if isinstance(node.op, ast.Pow):
        return left**right
    raise ValueError(f"a term has {type(node.op).__name__}")
