"""The guard round everything that is done for one record: whatever goes wrong with it costs that record, and no build.

`guarded(work, record)` gives what the work gives, or raises ContradictoryConfig with a reason for `rejected`. `hold` checks the rows that
one model adds to the tables against the schema, as the checks of a built database would, while it is known whose rows they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pipeline.anatomy import ContradictoryConfig
from pipeline.base.bounds import CONTROL, visible
from pipeline.book.schema import ENUMS, PUBLISHED, Column, Table

UNREADABLE = "the reader of this architecture failed"
_LARGEST = 2**63 - 1
_FORMULA = ("=", "+", "-", "@")  # tables are published as CSV too, which people open in a spreadsheet
Result = TypeVar("Result")
Rows = Mapping[str, Iterable[Mapping[str, Any]]]


def guarded(work: Callable[..., Result], *about: Any) -> Result:
    """What `work(*about)` gives. Its own mistakes, and memory that it asks for in vain, become a ContradictoryConfig."""
    try:
        return work(*about)
    except ContradictoryConfig:
        raise
    except Exception as bug:
        # a mistake of ours; the suite holds the bundled snapshot, and what it makes of mutated configs, free of these
        raise ContradictoryConfig(f"{UNREADABLE}: {_told(bug)}") from bug


def _told(bug: Exception) -> str:
    """The kind of a mistake, what it says, and which reader made it."""
    place, trace = "", bug.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.startswith(("pipeline.anatomy.", "pipeline.confirm.")):
            place = f" (in {name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return visible(f"{type(bug).__name__}: {bug}"[:300] + place)


def hold(rows: Rows) -> None:
    """Raises ContradictoryConfig where a row could not be published: it would stop the build of all others."""
    for name, those in rows.items():
        table, seen = PUBLISHED[name], set()
        for row in those:
            for column in table.columns:
                problem = _problem(row.get(column.name), column, table)
                if problem:
                    raise ContradictoryConfig(visible(f"{column.name} of its {name} {problem}"))
            key = tuple(row.get(column) for column in table.key)
            if key in seen:
                raise ContradictoryConfig(visible(f"its {name} has {', '.join(map(str, key[1:]))[:80]!r} twice"))
            seen.add(key)


def _problem(value: Any, column: Column, table: Table) -> str | None:
    if value is None:
        return None if column.name in table.nullable else "is not known, but must be"
    if not _IS_OF[column.type](value):
        return f"is {ascii(value)[:60]}, which is no {column.type}"
    if column.least is not None and value < column.least:
        return f"is {value}, less than {column.least:g}"
    allowed = ENUMS.get(column.name)
    if allowed and value not in allowed:
        return f"is {ascii(value)[:60]}, none of its values"
    if column.type == "string" and CONTROL.search(value):
        return f"is {ascii(value)[:60]}, which has a control character"
    if column.type == "string" and value.startswith(_FORMULA):
        return f"is {ascii(value)[:60]}, which a spreadsheet would run as a formula"
    return None


_IS_OF: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int and abs(value) <= _LARGEST,
    "number": lambda value: type(value) in (int, float) and math.isfinite(value),
    "boolean": lambda value: type(value) is bool,
}
