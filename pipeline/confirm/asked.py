"""The lenders that one record may ask: what comes of it is the same while these are.

Which they are follows from the record alone. Whoever works on one beside them cannot ask for others, so that nothing else enters what is kept of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from pipeline.confirm.completing import DIMS_ONLY, KIN, typed
from pipeline.confirm.lenders import Lenders, dims_of
from pipeline.confirm.repository_kind import parts_of
from pipeline.hub.record import Record

_NAMES = ("by_id", "known", "by_size", "by_part", "by_type", "by_dims")


def beside(lenders: Lenders, record: Record) -> Lenders:
    """As many of them as a record that is not lent on may ask. Asked for others, they fail."""
    config = record.config or {}
    is_of_type = record.config_kind in (DIMS_ONLY, "sibling")
    named = (typed(config) if record.config_kind == DIMS_ONLY else config).get("model_type")
    base, total = (record.base_model_id or "").lower(), record.stored_parameter_count
    some = copy(lenders)
    some.by_id = _Some(lenders.by_id, base)
    some.known = _Some(lenders.known, base, (parts_of(record.model_id) or "").lower())
    some.by_size = _Some(lenders.by_size, total)
    some.by_part = _Some(lenders.by_part, (total, True), (total, False))
    some.by_type = _Some(lenders.by_type, *((named, KIN.get(named)) if is_of_type and isinstance(named, str) else ()))
    some.by_dims = _Some(lenders.by_dims, dims_of(config))
    return some


def told(some: Lenders) -> Iterator[tuple[str, str, list[Record]]]:
    """Where they stand, and who, in their order."""
    for name in _NAMES:
        for key, held in getattr(some, name).items():
            those = held.values() if isinstance(held, dict) else [held] if isinstance(held, Record) else held
            yield name, repr(key), [one[0] if isinstance(one, tuple) else one for one in those]


class _Some(dict):
    """The entries of some keys, and no word on any other."""

    def __init__(self, whole: Mapping[Any, Any], *keys: Any) -> None:
        super().__init__((key, whole[key]) for key in dict.fromkeys(keys) if key in whole)
        self.may = frozenset(keys)

    def get(self, key: Any, default: Any = None) -> Any:
        if key not in self.may:
            raise LookupError(f"{key!r} is none of what this record may ask")
        return super().get(key, default)
