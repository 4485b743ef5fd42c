"""A record from what the Hub says now, what it said at the last crawl, and what other sources say.

The Hub goes first, group by group: a total with its kind, counts by dtype, a config with all that describes it. What the Hub
does not give keeps its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.hub.listing import SOURCE

LISTED = [
    "revision",
    "pipeline_tag",
    "library",
    "license",
    "is_gated",
    "is_private",
    "created_at",
    "last_modified",
    "base_model_id",
    "storage_bytes",
    "context_length_reported",
    "gguf_file",
    "elements_by_gguf_type",
    "header",
    "header_problem",
    "is_header_due",
]
# group → the keys that come and go together, and where their sources are
GROUPS = {
    "parameters_sources": ("stored_parameter_count", "approximate_parameter_count", "parameters_kind"),
    "parameters_by_dtype_sources": ("parameters_by_dtype",),
    "config_sources": (
        "config",
        "config_kind",
        "config_source",
        "config_note",
        "config_inferred_fields",
        "config_agreeing_sources",
    ),
}

Raw = Mapping[str, Any]


def merged(base: Raw | None, facts: Raw) -> dict[str, Any]:
    """`facts` (keys of a record, model_id among them) over a record of other sources."""
    record = {key: value for key, value in (base or {}).items() if key != "removed_at"}
    for sources, keys in GROUPS.items():
        if facts.get(keys[0]) is not None:
            for key in keys:
                record.pop(key, None)
            record[sources] = [SOURCE]
    record |= {key: value for key, value in facts.items() if value is not None}
    others = [source for source in record.get("sources", ()) if source != SOURCE]
    record["sources"] = [SOURCE, *others]
    return record


def facts_of(record: Raw) -> dict[str, Any]:
    """What the Hub once said of a record: so that `merged(base, facts_of(merged(base, facts)))` changes nothing."""
    if SOURCE not in record.get("sources", ()):
        return {}
    found = {key: record[key] for key in ("model_id", *LISTED) if key in record}
    for sources, keys in GROUPS.items():
        if SOURCE in record.get(sources, ()):
            found |= {key: record[key] for key in keys if key in record}
    return found


def others_of(record: Raw) -> dict[str, Any] | None:
    """What other sources say of a record, or None: so that `merged(others_of(merged(base, facts)), facts)` keeps what they give."""
    others = [source for source in record.get("sources", ()) if source != SOURCE]
    if not others:
        return None
    if others == list(record["sources"]):
        return {key: value for key, value in record.items() if key != "removed_at"}
    said = {*LISTED, "removed_at", "sources"}
    for sources, keys in GROUPS.items():
        if SOURCE in record.get(sources, ()):
            said |= {sources, *keys}
    return {key: value for key, value in record.items() if key not in said} | {"sources": others}


def removed(record: Raw, date: str) -> dict[str, Any]:
    """A record of a model that the Hub no longer has: kept as it was, with the date of the first crawl that missed it."""
    return {**record, "removed_at": record.get("removed_at") or date}
