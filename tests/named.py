"""The models of the bundled snapshot that tests name, or facts: enough for all that asks of some models, in a quarter of the time.

Nobody keeps a list: a model that a test or a table begins to name, in whatever case, is there. Beside them stand those that they are made of, and those whose
own configs tell theirs (tests/full/test_named.py holds that they are then read as among all).
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pipeline.book.facts import TABLES
from pipeline.confirm.contexts import kin_type
from pipeline.confirm.grade import OWN_CONFIG
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from tests.once import bundled_snapshot

TESTS = Path(__file__).parent
README = TESTS.parent / "README.md"  # whose questions are asked too
# a model of each kind, whose configs are read without any book, and names that people search for
_OF_ALL = ("golden/anatomy.csv", "golden/varied.csv", "browser/queries.csv")
_TEXTS = (".py", ".csv", ".jsonl", ".sql")
_COPY = re.compile(r"^unsloth/|(-unsloth)?-bnb-4bit$")
_NAME = re.compile(r"[\w.\-]+/[\w.\-]+|[\w.\-]+")


@functools.cache
def named() -> frozenset[str]:
    """Their ids. Tables also name a model without its maker (a tag of Ollama), or by a copy that unsloth made of it (a measurement)."""
    by_id, by_name = defaultdict(set), defaultdict(set)
    for record in bundled_snapshot().records:
        by_id[record.model_id.lower()].add(record.model_id)
        by_name[record.model_id.lower().partition("/")[2]].add(record.model_id)
    tests, tables = _words([TESTS, README]), _words([TABLES / "facts", TABLES / "measured.csv"])
    found = [by_id[word] for word in by_id.keys() & (tests | tables)]
    found += [by_name[word] for word in by_name.keys() & {_COPY.sub("", word) for word in tables}]
    return frozenset().union(*found)


def _words(places: Iterable[Path]) -> set[str]:
    paths = (path for place in places for path in (place.rglob("*") if place.is_dir() else [place]))
    texts = (
        p
        for p in paths
        if p == README
        or (p.suffix in _TEXTS and not (p.is_relative_to(TESTS) and p.relative_to(TESTS).as_posix() in _OF_ALL))
    )
    return {word for path in texts for word in _NAME.findall(path.read_text(encoding="utf-8").lower())}


def named_snapshot() -> Snapshot:
    """The bundled snapshot with them, and with what their anatomies rest on."""
    snapshot = bundled_snapshot()
    by_id = {record.model_id: record for record in snapshot.records}
    kept = _with_bases(named(), by_id)
    # whether a head is tied that no source speaks of is told by what the same makers say of their others
    told = {_kind(by_id[i]) for i in kept if by_id[i].config and by_id[i].config_kind not in OWN_CONFIG}
    kept |= {i for i, record in by_id.items() if record.config_kind in OWN_CONFIG and _kind(record) in told}
    # how long a context it takes that a list alone reports, by one of its type that takes as much
    reported = {(_type(by_id[i]), by_id[i].context_length_reported) for i in kept if by_id[i].context_length_reported}
    kept |= {
        i
        for i, record in by_id.items()
        if record.config_kind in OWN_CONFIG and (_type(record), _positions(record)) in reported
    }
    # and what has no config at all is known by whoever holds as many parameters
    totals = {by_id[i].stored_parameter_count for i in kept if not by_id[i].config} - {None}
    kept |= {i for i, record in by_id.items() if record.config and record.stored_parameter_count in totals}
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


def _type(record: Record) -> str:
    return kin_type((record.config or {}).get("model_type"))


def _positions(record: Record) -> object:
    config = record.config or {}
    return (config.get("text_config") or config).get("max_position_embeddings")
