"""The words of SQL that rules are written in, for values of Python: as site/assets/sql_words.js has them for the browser."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any


def _spread(f: Callable) -> Callable:
    """Null where a part is null."""
    return lambda *parts: None if None in parts else f(*parts)


add, sub, mul = _spread(operator.add), _spread(operator.sub), _spread(operator.mul)
div = _spread(operator.truediv)
eq, ne = _spread(operator.eq), _spread(operator.ne)
floor, ceil = _spread(math.floor), _spread(math.ceil)
whole = _spread(round)  # halves go to the even neighbour, as DuckDB casts a double
concat = _spread(lambda a, b: f"{a}{b}")
starts_with = _spread(str.startswith)
printf = _spread(lambda form, value: form % value)
text = _spread(str)


def lt(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a < b


def le(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a <= b


def gt(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a > b


def ge(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a >= b


def case(*parts: Callable) -> Any:
    """Conditions and values in turn, then what holds otherwise; each is worked out where it is asked for."""
    for i in range(0, len(parts) - 1, 2):
        if parts[i]() is True:
            return parts[i + 1]()
    return parts[-1]()


def is_null(value: Any) -> bool:
    return value is None


def is_known(value: Any) -> bool:
    return value is not None


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def all_of(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def any_of(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def among(value: Any, *options: Any) -> bool | None:
    return any_of(*(eq(value, option) for option in options))


def coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


def least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


def get(row: dict | None, name: str) -> Any:
    return None if row is None else row.get(name)


def list_filter(rows: list | None, holds: Callable) -> list | None:
    return None if rows is None else [row for row in rows if holds(row) is True]


def at(rows: list | None, place: int | None) -> Any:
    if rows is None or place is None:
        return None
    found = rows[place - 1 : place] if place > 0 else rows[place : place + 1 or None]
    return found[0] if found else None


_length = len


def _len(rows: list | None) -> int | None:
    return None if rows is None else _length(rows)


len = _len
