"""One model as a snapshot of the Hub gives it, and the checks that a record must pass before anything reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pipeline.base.bounds import CONTROL, LARGEST_TOTAL
from pipeline.book.schema import ENUMS
from pipeline.hub import careful, summary

EXACT_KINDS = ("exact_safetensors", "exact_gguf", "exact_packed_elements")
LONGEST_TEXT = 2000
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"
_MODEL_ID = re.compile(rf"{_NAME}/{_NAME}")


@dataclass(frozen=True)
class Record:
    """What the Hub, or sources about it, say of one model. Absent means unknown."""

    model_id: str
    revision: str | None = None
    pipeline_tag: str | None = None
    library: str | None = None
    license: str | None = None
    is_gated: bool | None = None
    is_private: bool | None = None
    created_at: str | None = None
    last_modified: str | None = None
    removed_at: str | None = None  # date of the crawl that first found the model gone
    base_model_id: str | None = None
    stored_parameter_count: int | None = None  # elements; only totals of EXACT_KINDS
    approximate_parameter_count: int | None = None  # elements, rounded or estimated
    parameters_kind: str | None = None
    parameters_by_dtype: Mapping[str, int] | None = None  # elements by safetensors dtype
    gguf_file: str | None = None  # the file that elements_by_gguf_type is of
    elements_by_gguf_type: Mapping[str, int] | None = None  # elements by ggml type
    header: Mapping[str, Any] | None = None  # a summary of the tensor headers (pipeline/hub/summary.py)
    header_problem: str | None = None  # why the headers are not used
    is_header_due: bool | None = None  # they were not asked for: the crawl had spent its requests for headers
    config: Mapping[str, Any] | None = None
    config_kind: str | None = None
    config_source: str | None = None
    config_note: str | None = None
    config_inferred_fields: tuple[str, ...] = ()
    config_agreeing_sources: int | None = None
    context_length_reported: int | None = None
    ffn_width_reported: int | None = None
    storage_bytes: int | None = None
    quantization_hint: str | None = None
    sources: tuple[str, ...] = ()
    parameters_sources: tuple[str, ...] = ()
    parameters_by_dtype_sources: tuple[str, ...] = ()
    config_sources: tuple[str, ...] = ()

    @property
    def source_ids(self) -> tuple[str, ...]:
        """Every source of the record, each once: ids of source.csv without the place inside the source."""
        cited = (*self.sources, *self.parameters_sources, *self.parameters_by_dtype_sources, *self.config_sources)
        return tuple(dict.fromkeys(source.partition(":")[0] for source in cited))


def is_model_id(value: Any) -> bool:
    """Whether the value is organisation/name as the Hub allows it: no path tricks, no control characters."""
    return isinstance(value, str) and bool(_MODEL_ID.fullmatch(value)) and ".." not in value


def read_record(raw: Any) -> tuple[Record | None, str | None]:
    """A record from its JSON value, or the reason why it is rejected."""
    if not isinstance(raw, dict):
        return None, f"a record is an object, not {shown(raw)}"
    if not is_model_id(raw.get("model_id")):
        return None, "model_id is not organisation/name"
    values = {key: value for key, value in raw.items() if value is not None}
    for key, value in values.items():
        check = _CHECKS.get(key)
        if check is None:
            return None, f"unknown field {shown(key)}"
        complaint = check(value)
        if complaint:
            return None, f"{key} is {shown(value)}, {complaint}"
        if isinstance(value, list):
            values[key] = tuple(value)
    kind, total = values.get("parameters_kind"), values.get("stored_parameter_count")
    if total is not None and kind not in EXACT_KINDS:
        return None, f"stored_parameter_count {total} comes with parameters_kind {kind}, which is no exact total"
    if "config_kind" in values and "config" not in values:
        return None, f"config_kind {values['config_kind']} without a config"
    return Record(**values), None


def _whole(least: int) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return "not a whole number"
        return None if least <= value <= LARGEST_TOTAL else f"outside {least} to {LARGEST_TOTAL}"

    return check


def text_problem(value: Any) -> str | None:
    if not isinstance(value, str):
        return "not text"
    if len(value) > LONGEST_TEXT:
        return f"longer than {LONGEST_TEXT} characters"
    return "text with a control character" if CONTROL.search(value) else None


def _texts(value: Any) -> str | None:
    return None if isinstance(value, list) and not any(map(text_problem, value)) else "not a list of texts"


def _one_of(name: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in ENUMS[name] else f"none of {', '.join(ENUMS[name])}"


def _counts(value: Any) -> str | None:
    fits = isinstance(value, dict) and all(not text_problem(k) and not _whole(0)(v) for k, v in value.items())
    return None if fits else "not element counts by dtype"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "neither true nor false"


_SPECIAL: dict[str, Callable[[Any], str | None]] = {
    "is_gated": _flag,
    "is_private": _flag,
    "is_header_due": _flag,
    "header": summary.problem_of,
    "stored_parameter_count": _whole(1),
    "approximate_parameter_count": _whole(1),
    "context_length_reported": _whole(1),
    "ffn_width_reported": _whole(1),
    "storage_bytes": _whole(0),
    "config_agreeing_sources": _whole(0),
    "parameters_kind": _one_of("parameters_kind"),
    "config_kind": _one_of("config_kind"),
    "parameters_by_dtype": _counts,
    "elements_by_gguf_type": _counts,
    "config": lambda value: careful.problem_of(value) if isinstance(value, dict) else "not an object",
    "config_inferred_fields": _texts,
    "sources": _texts,
    "parameters_sources": _texts,
    "parameters_by_dtype_sources": _texts,
    "config_sources": _texts,
}
_CHECKS = {f.name: _SPECIAL.get(f.name, text_problem) for f in fields(Record)}


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
