"""Configs of the bundled snapshot with a few values changed to what JSON can hold and no model has.

`python -m tests.press.mutations COUNT SEED` reads them as a build does, and prints what went wrong. `mutated(count, seed)` gives the same
configs again for the same seed. A change takes a value at any depth and makes it absent, null, of
another type, zero, negative, enormous, empty, nested, or text that cannot be written.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.components import components
from pipeline.anatomy.fields import Fields
from pipeline.base.bounds import LARGEST_SIZE
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press.anatomise import UNREADABLE, anatomise
from tests.once import bundled_snapshot

NUMBERS = (0, 1, -1, 2, 3, 7, 13, 100, 4097, 10**4, 10**5, 10**6, 10**7, 10**8, 10**8 + 1, 10**12, 2**31, 2**63, 10**40)
FRACTIONS = (0.5, -0.5, 1e-300, 1e300, float("nan"), float("inf"), float("-inf"), -0.0, 1e8, 3.0)
WORDS = (
    "",
    "auto",
    "12",
    "-3",
    "10000000",
    "llama",
    "x" * 500,
    "\ud800",
    "a\udfffb",
    "\x1b]0;x\x07",
    "\u202e",
    "M-M*",
    "١٢",
)
SHAPES = (
    [],
    {},
    [[]],
    [{}],
    [None],
    [0],
    [1, 2],
    [0, 0, 0, 0],
    ["a"],
    [[1, 2], [3]],
    [10**8] * 4,
    {"a": {"b": [1]}},
    {"0": "a"},
)
NAMES = ("\ud800", "num_hidden_layers", "", "x" * 300)  # of fields that are added
MOST_CHANGES = 4
BATCH = 1000
MOST_BYTES = 2**30  # that a process may take beyond what it has before it reads the first config
MOST_SECONDS = 5  # of CPU for one config


@cache
def originals() -> tuple[Record, ...]:
    """A record for each set of fields that configs of the snapshot have."""
    found: dict[Any, Record] = {}
    for record in bundled_snapshot().records:
        if record.config:
            config = record.config
            form = (str(config.get("model_type")), str(config.get("_class_name")), str(config.get("architectures")))
            found.setdefault((*form, *sorted(config)), record)
    return tuple(found[form] for form in sorted(found))


def mutated(count: int, seed: int) -> Iterator[Record]:
    """Records with changed configs, named `mutant/<place>`."""
    chance = random.Random(seed)
    known = originals()
    for place in range(count):
        record = known[place % len(known)] if count >= len(known) else chance.choice(known)
        config = copy.deepcopy(dict(record.config))
        for _ in range(chance.randint(1, MOST_CHANGES)):
            change(config, chance)
        has_total = chance.random() < 0.5
        yield replace(
            record,
            model_id=f"mutant/{place}",
            config=config,
            stored_parameter_count=record.stored_parameter_count if has_total else None,
            parameters_kind=record.parameters_kind if has_total else None,
        )


def change(config: dict[str, Any], chance: random.Random) -> None:
    """Changes one value of a config, in place."""
    config.setdefault("model_type", None)  # an empty one has nothing to change
    holder, key = chance.choice(_places(config))
    way = chance.random()
    if way < 0.12:
        del holder[key]
    elif way < 0.45:
        holder[key] = chance.choice(NUMBERS)
    elif way < 0.52:
        holder[key] = chance.choice(FRACTIONS)
    elif way < 0.62:
        holder[key] = chance.choice(WORDS)
    elif way < 0.76:
        holder[key] = copy.deepcopy(chance.choice(SHAPES))
    elif way < 0.84:
        holder[key] = chance.choice((None, True, False))
    elif way < 0.90:
        holder[key] = [copy.deepcopy(holder.get(key) if isinstance(holder, dict) else holder[key])] * chance.choice(
            (1, 2, 50)
        )
    elif way < 0.94 and isinstance(holder, dict):
        holder[chance.choice(NAMES)] = copy.deepcopy(chance.choice(SHAPES))
    else:  # what another field says
        other, name = chance.choice(_places(config))
        holder[key] = copy.deepcopy(other[name])


def _places(node: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Where a value stands: in which object or list, under which name or number."""
    if depth == 5:
        return []
    found: list[tuple[Any, Any]] = []
    names = list(node) if isinstance(node, dict) else range(min(len(node), 12)) if isinstance(node, list) else ()
    for name in names:
        found.append((node, name))
        found += _places(node[name], depth + 1)
    return found


def main(count: int, seed: int) -> None:
    """Reads so many mutated configs as a build does, a few at a time, in little memory. Prints what a build must not do."""
    records = list(mutated(count, seed))
    _limit_memory()
    for start in range(0, count, BATCH):
        batch = tuple(records[start : start + BATCH])
        tables = anatomise(Snapshot(None, datetime.date(2026, 1, 2), "mutants", batch, {}))
        reasons = tables["rejected"]["reason"].to_list()
        if len(tables["model"]) + len(reasons) != len(batch):
            print(f"{len(batch)} records became {len(tables['model'])} models and {len(reasons)} reasons")
        for reason in reasons:
            if UNREADABLE in reason:
                print(reason)
    for record in each_number_alone() if seed == 0 else ():
        started = time.process_time()
        with contextlib.suppress(UnknownAnatomy, ContradictoryConfig):
            components(Fields(record.config), read_config(record.config))
        if time.process_time() - started > MOST_SECONDS:
            print(f"{record.model_id} takes {time.process_time() - started:.1f} s")


def each_number_alone() -> Iterator[Record]:
    """Each whole number of each kind of config in turn as large as a reader takes it for any other."""
    seen = set()
    for record in originals():
        config = copy.deepcopy(dict(record.config))
        for holder, key in _places(config):
            value, place = (
                holder[key],
                (str(config.get("model_type", config.get("_class_name"))), str(key), len(holder)),
            )
            if type(value) is int and place not in seen:
                seen.add(place)
                holder[key] = LARGEST_SIZE
                yield replace(record, config=config, model_id=f"{record.model_id} with {key}")
                holder[key] = value


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES,) * 2)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
