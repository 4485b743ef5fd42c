"""One row of the Hub's listing: the facts that it gives for nothing, and the files that are worth a request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.hub.client import is_sha
from pipeline.hub.record import is_model_id, read_record, shown

SOURCE = "huggingface-hub"
# What a listing may be asked. The Hub answers a field that its lists do not know with 400 and no rows: `usedStorage`, `baseModels` and
# `childrenModelCount` are for a single model alone (github.com/huggingface/huggingface_hub, pull request 3182).
EXPAND = (
    "createdAt",
    "disabled",
    "downloads",
    "gated",
    "gguf",
    "lastModified",
    "library_name",
    "likes",
    "pipeline_tag",
    "private",
    "safetensors",
    "sha",
    "siblings",
    "tags",
)
EXPAND_ONE = (*EXPAND, "usedStorage")
NEEDED = ("sha", "siblings")  # without these no model can be read; all else has another source, or stays unknown
CONFIGS = (
    "config.json",
    "model_index.json",
    "adapter_config.json",
    "quantize_config.json",
    "quant_config.json",
    "hf_quant_config.json",
)
MOST_FILES = 400
# packed weights: several values in one stored element
_PACKED = ("I32", "U32", "U8", "I16", "U16", "F4")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+ ()-]{0,150}")
_COMPONENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,60}/[A-Za-z0-9_][A-Za-z0-9._-]{0,150}")


@dataclass(frozen=True)
class Listed:
    """A model as the listing has it. `facts` are keys of a record; `files` those of its files that may be asked for."""

    model_id: str
    sha: str
    facts: Mapping[str, Any]
    files: tuple[str, ...]
    downloads: int | None = None
    likes: int | None = None
    is_closed: bool = False  # gated or private: its files may be refused, and that is no fault

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Listed:
        return cls(**{**value, "files": tuple(value["files"])})


@dataclass(frozen=True)
class Unusable:
    """A row of the listing that cannot be used. Where it names no model, `model_id` is made from what it says."""

    model_id: str
    sha: str
    reason: str


def read_row(item: Any) -> Listed | Unusable:
    """A row of `/api/models` with EXPAND, or `/api/models/{id}` with EXPAND_ONE, checked. Never raises."""
    model_id = item.get("id", item.get("modelId")) if isinstance(item, dict) else None
    if not is_model_id(model_id):
        given = model_id if isinstance(item, dict) else item
        return Unusable(_place(given), "", f"model_id is not organisation/name ({shown(given)})")
    sha = item.get("sha")
    if not is_sha(sha):
        return Unusable(model_id, "", f"its revision is {shown(sha)}, not a commit")
    if item.get("disabled") is True:
        return Unusable(model_id, sha, "disabled by the Hub")
    facts = {key: value for key, value in _facts(item).items() if value is not None}
    reason = read_record({**facts, "model_id": model_id, "revision": sha, "sources": [SOURCE]})[1]
    if reason:
        return Unusable(model_id, sha, reason)
    is_closed = bool(facts.get("is_gated") or facts.get("is_private"))
    return Listed(model_id, sha, facts, _files(item), _count(item, "downloads"), _count(item, "likes"), is_closed)


def _place(value: Any) -> str:
    """A stable name for a row without a usable one: whatever it says stays out of ids."""
    return f"listing:{hashlib.sha256(repr(value).encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def _facts(item: Mapping[str, Any]) -> dict[str, Any]:
    gated = item.get("gated")
    tags = item.get("tags")
    tags = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    return {
        "pipeline_tag": item.get("pipeline_tag"),
        "library": item.get("library_name"),
        "license": _tagged(tags, "license:"),
        "is_gated": gated in ("auto", "manual", True) if gated is not None else None,
        "is_private": True if item.get("private") is True else None,
        "created_at": item.get("createdAt"),
        "last_modified": item.get("lastModified"),
        "base_model_id": next((b for b in _all_tagged(tags, "base_model:") if is_model_id(b)), None),
        "storage_bytes": item.get("usedStorage") or None,
        **_totals(item),
    }


def _totals(item: Mapping[str, Any]) -> dict[str, Any]:
    """The totals that the Hub has read from headers itself. A malformed one is left in, for the record's check to find."""
    safetensors, gguf = item.get("safetensors"), item.get("gguf")
    found: dict[str, Any] = {}
    if isinstance(gguf, Mapping) and gguf:
        found["context_length_reported"] = gguf.get("context_length") or None
        found["stored_parameter_count"], found["parameters_kind"] = gguf.get("total"), "exact_gguf"
    if isinstance(safetensors, Mapping) and safetensors.get("total"):
        counts = safetensors.get("parameters")
        found["stored_parameter_count"] = safetensors["total"]
        found["parameters_by_dtype"] = counts or None
        found["parameters_kind"] = kind_of(counts)
    if not found.get("stored_parameter_count"):
        found.pop("stored_parameter_count", None)
        found.pop("parameters_kind", None)
    return found


def kind_of(counts: Any) -> str:
    """Whether a total of safetensors counts weights, or stored elements that hold several weights each."""
    if isinstance(counts, Mapping) and all(isinstance(n, int) for n in counts.values()):
        packed = sum(n for dtype, n in counts.items() if dtype in _PACKED)
        if 100 * packed > sum(counts.values()):
            return "exact_packed_elements"
    return "exact_safetensors"


def _all_tagged(tags: list[str], prefix: str) -> list[str]:
    return [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)]


def _tagged(tags: list[str], prefix: str) -> str | None:
    return next(iter(_all_tagged(tags, prefix)), None)


def _count(item: Mapping[str, Any], name: str) -> int | None:
    value = item.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def _files(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that may be read: configs, and weights for their headers. Odd names are left out, never asked for."""
    siblings = item.get("siblings")
    names = [s.get("rfilename") for s in siblings if isinstance(s, dict)] if isinstance(siblings, list) else []
    kept = []
    for name in names:
        if not isinstance(name, str) or ".." in name:
            continue
        is_weight = name.endswith((".safetensors", ".safetensors.index.json", ".gguf"))
        if (_FILE.fullmatch(name) and (name in CONFIGS or is_weight)) or (
            _COMPONENT.fullmatch(name) and (is_weight or name.endswith("/config.json"))
        ):
            kept.append(name)
    return tuple(sorted(sorted(set(kept), key=_rank)[:MOST_FILES]))


def _rank(name: str) -> tuple[int, str]:
    """Which files go before others where a repository has very many: what describes the model, then the library's own weights."""
    if name.endswith(".json"):
        return (0 if name in CONFIGS else 1), name
    return (2 if name.endswith(".safetensors") else 3), name
