"""The models of the bundled snapshot that tests name, or facts: enough for all that asks of some models, in a quarter of the time.

Nobody keeps a list: a model that a test or a table begins to name, in whatever case, is there. Beside them stand those that they are made of, and those whose
own configs tell theirs (tests/full/test_named.py holds that they are then read as among all).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pipeline.book.facts import TABLES
from pipeline.confirm.grade import OWN_CONFIG
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from tests.once import bundled_snapshot

TESTS = Path(__file__).parent
NAMING = (TESTS, TABLES / "facts", TABLES / "measured.csv")
# a model of each kind, whose configs are read without any book, and names that people search for
_OF_ALL = ("golden/anatomy.csv", "golden/varied.csv", "browser/queries.csv")
_NAME = re.compile(r"[\w.\-]+/[\w.\-]+|[\w.\-]+")


@functools.cache
def named() -> frozenset[str]:
    """Their ids. What was measured may be of a copy that has another maker and is answered by the model of its name."""
    ids: dict[str, set[str]] = {}
    for record in bundled_snapshot().records:
        ids.setdefault(record.model_id.lower(), set()).add(record.model_id)
        ids.setdefault("unsloth/" + record.model_id.lower().partition("/")[2], set()).add(record.model_id)
    said = (word for path in _texts() for word in _NAME.findall(path.read_text(encoding="utf-8").lower()))
    return frozenset(model_id for word in ids.keys() & set(said) for model_id in ids[word])


def _texts() -> Iterator[Path]:
    for place in NAMING:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            is_of_all = place == TESTS and path.relative_to(TESTS).as_posix() in _OF_ALL
            if path.suffix in (".py", ".csv", ".jsonl", ".sql") and not is_of_all:
                yield path


def named_snapshot() -> Snapshot:
    """The bundled snapshot with them, and with what their anatomies rest on."""
    snapshot = bundled_snapshot()
    by_id = {record.model_id: record for record in snapshot.records}
    kept = _with_bases(named(), by_id)
    # whether a head is tied that no source speaks of is told by what the same makers say of their others
    told = {_kind(by_id[i]) for i in kept if by_id[i].config and by_id[i].config_kind not in OWN_CONFIG}
    kept |= {i for i, record in by_id.items() if record.config_kind in OWN_CONFIG and _kind(record) in told}
    records = tuple(record for record in snapshot.records if record.model_id in kept)
    return replace(snapshot, records=records, rejected=())


def _with_bases(ids: Iterable[str], by_id: dict[str, Record]) -> set[str]:
    kept, left = set(ids), list(ids)
    while left:
        base = by_id[left.pop()].base_model_id
        if base in by_id and base not in kept:
            kept.add(base)
            left.append(base)
    return kept


def _kind(record: Record) -> tuple[str, object]:
    return record.model_id.partition("/")[0].lower(), (record.config or {}).get("model_type")
