"""What was read of a model before, by all that it is read from: its record, what others may lend it, and the code that reads.

Nine tenths of reading a snapshot goes into totals that have to be explained and shapes that are tried on, and next week's records are nearly
those of this week. A value is plain dataclasses of ours: nothing else is taken from a pack, whoever wrote it. What went wrong is not kept.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any

from pipeline import ROOT
from pipeline.anatomy import ContradictoryConfig
from pipeline.book.facts import TABLES
from pipeline.book.packs import Packs, digest_of, fingerprint
from pipeline.confirm.asked import beside, told
from pipeline.confirm.borrowing import is_open, settled
from pipeline.confirm.grade import Graded
from pipeline.confirm.lenders import Confirmed, Lenders
from pipeline.hub.record import Record
from pipeline.press.quarantine import guarded

# beside formulas and facts, which everything that is kept names
_MADE_OF = (TABLES / "library", *(ROOT / "pipeline" / room for room in ("anatomy", "base", "confirm", "hub")))
_OURS = ("pipeline.anatomy.", "pipeline.confirm.", "pipeline.hub.record")
# a key, or None of what is found as soon as it is asked; and what is asked about
Asked = tuple[str | None, tuple[Any, ...]]


class KeptGrades:
    """`packs` may be None: then all is read anew."""

    def __init__(self, packs: Packs | None = None) -> None:
        self.packs = packs
        self._records: dict[int, str] = {}  # texts by identity: a lender is named by many

    def each(self, what: str, work: Callable[..., Any], asked: Sequence[Asked]) -> Iterator[Any]:
        """What `work` gives about each, in their order, or the ContradictoryConfig that it raised."""
        known = self.packs.values({key for key, _about in asked if key}, what) if self.packs else {}
        new: dict[str, bytes] = {}
        for key, about in asked:
            found = loaded(known[key]) if key in known else None
            if found is None:
                try:
                    found = guarded(work, *about)
                except ContradictoryConfig as reason:
                    yield reason
                    continue
                if self.packs and key:
                    new[key] = pickle.dumps(found, protocol=5)
            yield found
        if self.packs:
            self.packs.keep(new, what)

    def of_record(self, record: Record) -> str | None:
        """The key of what is read of a record alone."""
        return _hash("read", made_of(), self._text(record)) if self.packs else None

    def settled(self, lenders: Lenders, those: Sequence[Confirmed]) -> Iterator[Confirmed | ContradictoryConfig]:
        """Each as `settled` has it. One that is open is asked about beside the lenders that it may ask, and nothing else enters."""
        asked = [self._asked(lenders, record, found) for record, found in those]
        return self.each("settled", settled, asked)

    def _asked(self, lenders: Lenders, record: Record, found: Graded) -> Asked:
        if self.packs is None or not is_open(record, found):
            return None, (lenders, record, found)
        try:
            some = guarded(beside, lenders, record)
        except ContradictoryConfig:  # it is told, and not kept, by whoever meets it again
            return None, (lenders, record, found)
        those = [(*where, *map(self._text, lent)) for *where, lent in told(some)]
        key = _hash("settled", made_of(), self._text(record), json.dumps(those), *sorted(some.routing))
        return key, (some, record, found)

    def _text(self, record: Record) -> str:
        """A hash of a record, which lives as long as this does."""
        found = self._records.get(id(record))
        if found is None:
            found = self._records[id(record)] = _hash(json.dumps(vars(record), default=str))
        return found


@cache
def made_of() -> str:
    return _hash(fingerprint(), digest_of(_MADE_OF, (".csv", ".jsonl", ".py")), *map(str, sys.version_info[:2]))


def _hash(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


class _Ours(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        if module.startswith(_OURS):
            found = super().find_class(module, name)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of what is kept")


def loaded(value: bytes) -> Graded | Confirmed | None:
    """What was kept; None where it is something else."""
    try:
        found = _Ours(io.BytesIO(value)).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError):
        return None
    kinds = tuple(map(type, found)) if isinstance(found, tuple) else type(found)
    return found if kinds in (Graded, (Record, Graded)) else None
