"""What the readers of configs make of one config of each type when its fields are varied one at a time, as a digest for each: tests/golden/varied.csv.

    python -m tests.golden.varied                # after a change of a reader: names the models whose digest changed and writes the file anew
    python -m tests.golden.varied --of owner/name    # every variation of that model's config, and what is read of it: to compare with another revision
    python -m tests.golden.varied --check NAME ...    # ends with 1 at the first of them, or of all, whose digest is not the file's (code_mutants.py asks so)

anatomy.csv holds what configs as they are published reach; this holds the branches beside: a field that is absent, switched, none, one, a step
larger, twice as large, more than any model repeats, a list that is shorter, longer, turned round or as long as readers allow, a name that nobody knows, or as another config of
the type has it, in the config and in what is nested in it; what belongs together at once (lists of one length, equal numbers, sizes of two sides beside
a flag); a field that its reader asks for and the config leaves to its class, or asks for only beside another change, other than it is; each class that the type has;
what its class takes by default, whole; one whole config of it for each class and set of fields; and every config that tests/oracle counts, class by class. What is varied is the
most downloaded one that is read; configs that name no type are of one kind where their fields are. A type that no published config has is named by
itself, and varied from the first that is counted, or from what its class takes by default. The rows are no truth of their own (tests/oracle holds perturbed configs to the libraries by their totals); they hold what a change of
a reader did not mean to change, heads and tiles that no total feels among it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.components import components
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.model_classes import described
from pipeline.anatomy.untyped import type_told
from pipeline.hub.snapshot import newest_snapshot

PATH = Path(__file__).with_name("varied.csv")
ORACLE = Path(__file__).parents[1] / "oracle"
# tables of it that count a class by its config
_COUNTED = ("parameters", "parameters_multimodal", "modules", "parts")
# what no reader asks, or says the same of every model
_PASSED_OVER = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "id2label", "label2id", "auto_map", "quantization_config"}  # fmt: skip
_KINDS = "layer_types"
_DEPTH = 3
_OTHERS = 2  # values of other configs of the type, for each field
# longer than what is told of a name
_UNKNOWN = "ANameThatNobodyHasGivenToAnythingAndThatIsLongerThanWhatAReasonTellsOfItForNothing"
_HUGE = 10**7  # more than any model repeats
_WORDS = 60  # of a value, in the words for a variation
_ENTRIES = 4  # of a list that are changed one at a time
_LENGTHS = (0, 20, 21, 100, 101, 1000, 1001)  # about which readers end
_ABSENT = object()

Config = Mapping[str, Any]
Place = tuple[str, ...]


class Kind(NamedTuple):
    """A config of a type, others of that type, and those that tests/oracle counts."""

    config: Config
    others: list[Config]
    counted: list[Config]


def kinds() -> dict[str, tuple[Config, list[Config]]]:
    """By the most downloaded model of each type its config, and the configs of others of that type."""
    snapshot = newest_snapshot()
    downloads = {name: told.downloads_30d or 0 for name, told in snapshot.popularity.items()}
    by_type: dict[str, list[Any]] = {}
    for record in snapshot.records:
        told = (record.config or {}).get("model_type") or (record.config or {}).get("_class_name")
        if isinstance(told, str):
            by_type.setdefault(told, []).append(record)
    found = {}
    for _type, records in sorted(by_type.items()):
        first, *others = sorted(records, key=lambda r: (-downloads.get(r.model_id, 0), r.model_id))
        found[first.model_id] = (first.config, [other.config for other in others])
    return found


def untyped() -> dict[str, tuple[Config, list[Config]]]:
    """The same of configs that name no type: those of one kind have the same fields."""
    by_fields: dict[Any, list[Any]] = {}
    for record in newest_snapshot().records:
        if record.config and _type_of(record.config) is None:
            told = type_told(record.config)
            by_fields.setdefault(told or frozenset(record.config), []).append(record)
    return {those[0].model_id: (those[0].config, [one.config for one in those[1:]]) for those in by_fields.values()}


@cache
def counted() -> dict[str, list[Config]]:
    """By type the configs that tests/oracle counts, each with the class that was counted."""
    csv.field_size_limit(sys.maxsize)
    found: dict[str, list[Config]] = {}
    for name in _COUNTED:
        with (ORACLE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if name == "parts":
                    told, held = row["class_name"], {"_class_name": row["class_name"]}
                else:
                    told = row["model_type"]
                    held = {"model_type": told, "architectures": [row["architecture"]]}
                found.setdefault(told, []).append(json.loads(row["config_json"]) | held)
    return found


@cache
def all_kinds() -> dict[str, Kind]:
    """Those of the snapshot by the model, and by their type those that are counted alone."""
    found, there = {}, counted()
    for model_id, (config, others) in (kinds() | untyped()).items():
        read = next(
            (one for one in (config, *others) if not _is_refused(said(one))), config
        )  # or nothing of it is held
        beside = [one for one in (config, *others) if one is not read]
        found[model_id] = Kind(read, beside, there.get(_type_of(config), []))
    published = {_type_of(kind.config) for kind in found.values()}
    for told, (first, *others) in sorted(there.items()):
        if told not in published:
            found[told] = Kind(first, others, [first, *others])
    held = {_type_of(kind.config) for kind in found.values()}
    for told in sorted(described().keys() & class_defaults().keys() - held):
        config = default_of(told)
        if not _is_refused(said(config)):
            found[told] = Kind(config, [], [])
    return found


def default_of(told: str) -> Config:
    """What the class of a type takes where no config says anything, under the first of its classes."""
    return {**class_defaults()[told], "model_type": told, "architectures": [next(iter(described()[told]))]}


def _type_of(config: Config) -> str | None:
    told = config.get("model_type") or config.get("_class_name")
    return told if isinstance(told, str) else None


def _is_refused(told: str) -> bool:
    return told.startswith(("UnknownAnatomy", "ContradictoryConfig"))


def places(config: Config, before: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every field and its value, of what is nested too."""
    for name, value in config.items():
        if name in _PASSED_OVER:
            continue
        yield (*before, name), value
        if isinstance(value, dict) and len(before) + 1 < _DEPTH:
            yield from places(value, (*before, name))


def variations(config: Config, others: list[Config]) -> Iterator[tuple[str, Config]]:
    """What is varied, in words, and the config that comes of it."""
    own = dict(places(config))
    yield from _of_each(config)
    # (what else a config says of its layers is asked only where it does not list their kinds)
    for place, value in own.items():
        if isinstance(value, list) and place[-1].endswith(_KINDS):
            without = _with(config, place, _ABSENT)
            yield from ((f"{'.'.join(place)} absent, {name}", changed) for name, changed in _of_each(without))
            yield from _of_nulls(without)
    yield from _of_nulls_left_out(config)
    yield from _together(config, own)
    yield from _of_pairs(config, own)
    elsewhere: dict[Place, dict[str, Any]] = {}
    for other in others:
        for place, value in places(other):
            if (
                not isinstance(value, dict)
                and len(elsewhere.get(place, ())) < _OTHERS
                and own.get(place, _ABSENT) != value
            ):
                elsewhere.setdefault(place, {})[json.dumps(value, default=str)] = value
    for place, values in sorted(elsewhere.items()):
        for text, value in values.items():
            if (changed := _with(config, place, value)) is not None:
                yield f"{'.'.join(place)} {text[:_WORDS]}", changed


def _of_each(config: Config) -> Iterator[tuple[str, Config]]:
    """Each field that it has, and each that it leaves to its class, in turn."""
    for place, value in places(config):
        yield from _of_one(config, place, value)
    for place, value in left_out(config).items():
        yield from _of_left_out(config, place, value)


def _of_nulls(config: Config) -> Iterator[tuple[str, Config]]:
    """Beside each flag that is switched, a size that is null (a window that the flag is about)."""
    own = dict(places(config))
    for flag in (place for place, value in own.items() if isinstance(value, bool)):
        for null in (place for place, value in own.items() if value is None):
            changed = {flag: not own[flag], null: 2}
            yield f"{'.'.join(flag)} {not own[flag]}, {'.'.join(null)} 2", _with_all(config, changed)


def _of_nulls_left_out(config: Config) -> Iterator[tuple[str, Config]]:
    """The same of what lies beside one another and is left to the class."""
    left = left_out(config)
    for flag in (place for place, value in left.items() if isinstance(value, bool)):
        switched = _with(config, flag, not left[flag])
        for null in (place for place, value in left.items() if value is None and place[:-1] == flag[:-1]):
            if switched is not None and (changed := _with(switched, null, 2)) is not None:
                yield f"{'.'.join(flag)} {not left[flag]}, {'.'.join(null)} 2", changed


def _of_one(config: Config, place: Place, value: Any) -> Iterator[tuple[str, Config]]:
    yield f"{'.'.join(place)} absent", _with(config, place, _ABSENT)
    if isinstance(value, bool):
        yield f"{'.'.join(place)} {not value}", _with(config, place, not value)
    elif isinstance(value, int | float):
        for other in dict.fromkeys((0, 1, 2, value + 1, value * 2, _HUGE)):
            yield f"{'.'.join(place)} {other}", _with(config, place, other)
        yield f"{'.'.join(place)} of two sides", _with(config, place, [value, value * 2])
    elif isinstance(value, str):
        yield f"{'.'.join(place)} unknown", _with(config, place, _UNKNOWN)
    elif isinstance(value, list) and value:
        yield f"{'.'.join(place)} shorter", _with(config, place, value[:-1])
        yield f"{'.'.join(place)} longer", _with(config, place, [*value, value[-1]])
        for length in _LENGTHS:
            yield f"{'.'.join(place)} of {length}", _with(config, place, (value * length)[:length])
        if value[::-1] != value:
            yield f"{'.'.join(place)} turned round", _with(config, place, value[::-1])
        for changed in _changed_once(value):
            yield f"{'.'.join(place)} {changed[:_ENTRIES]}", _with(config, place, changed)
        if isinstance(value[0], str):
            yield f"{'.'.join(place)} unknown", _with(config, place, [_UNKNOWN, *value[1:]])


def _together(config: Config, own: Mapping[Place, Any]) -> Iterator[tuple[str, Config]]:
    """Lists that are as long as one another, which readers hold to each other, and numbers that are the same, are changed all at once."""
    alike: dict[Any, list[Place]] = {}
    for place, value in own.items():
        if isinstance(value, list) and value and not place[-1].endswith(_KINDS):
            alike.setdefault((place[:-1], len(value)), []).append(place)
        elif isinstance(value, int) and value > 1:
            alike.setdefault(value, []).append(place)
    for those in alike.values():
        if len(those) < 2:
            continue
        names = " and ".join(".".join(place) for place in those)[:_WORDS]
        if isinstance(own[those[0]], list):
            for length in (None, *_LENGTHS, len(own[those[0]]) - 1, len(own[those[0]]) + 1):
                changed = {p: _ABSENT if length is None else (own[p] * (length + 1))[:length] for p in those}
                yield f"{names} of {length}", _with_all(config, changed)
        else:
            for other in (1, 2, own[those[0]] + 1, own[those[0]] * 2):
                yield f"{names} {other}", _with_all(config, dict.fromkeys(those, other))


def _of_pairs(config: Config, own: Mapping[Place, Any]) -> Iterator[tuple[str, Config]]:
    """Beside each flag that is switched, sizes that may have two sides have them."""
    sides = {}
    for place, value in own.items():
        if type(value) is int or (isinstance(value, list) and len(value) == 2 and value[0] == value[1]):
            two = [value, value * 2] if type(value) is int else [value[0], value[1] * 2]
            if type(value) is not int or not _is_refused(said(_with(config, place, two))):
                sides[place] = two
    if not sides:
        return
    flags = {place: value for place, value in own.items() if isinstance(value, bool)}
    flags |= {place: value for place, value in left_out(config).items() if value in (True, False, None)}
    for flag, value in flags.items():
        if type(value) is not int and (switched := _with(config, flag, not value)) is not None:
            for place, two in sides.items():
                yield f"{'.'.join(flag)} {not value}, {'.'.join(place)} {two}", _with(switched, place, two)


def _with_all(config: Config, changes: Mapping[Place, Any]) -> Config:
    for place, value in changes.items():
        config = _with(config, place, value)
    return config


def _changed_once(values: list) -> list[list]:
    """One number of them is none, one or twice as large, or one flag switched."""
    few = [[one, *values[1:]] for one in (0, 1)] if type(values[0]) is int else []
    return few + [
        [*values[:at], not one if isinstance(one, bool) else one * 2, *values[at + 1 :]]
        for at, one in enumerate(values[:_ENTRIES])
        if isinstance(one, int | float)
    ]


def _of_left_out(config: Config, place: Place, value: Any) -> Iterator[tuple[str, Config]]:
    for other in _others_than(value):
        if (changed := _with(config, place, other)) is not None:
            yield f"{'.'.join(place)} said {str(other)[:_WORDS]}", changed


def left_out(config: Config) -> dict[Place, Any]:
    """What its reader asks for and does not find there, with what the class takes instead."""
    found = asked_for(config)[1]
    return {place: value for place, (is_there, value) in found.items() if not is_there}


def asked_for(config: Config) -> tuple[str, dict[Place, tuple[bool, Any]]]:
    """What is said of a config, and what its reader asks for: whether that is there, and what it or its class says."""
    found: dict[Place, tuple[bool, Any]] = {}
    raw = Fields.raw

    def noted(fields: Fields, *names: str, default: Any = None) -> Any:
        value, name = raw(fields, *names), names[0]
        if value is not None:
            name = next(name for name in names if fields.config.get(name) is not None)
        if name not in _PASSED_OVER:
            there = (value is not None, fields.by_class(*names) if value is None else value)
            found.setdefault((*fields.where.split(".")[1:], name), there)
        return default if value is None else value

    Fields.raw = noted
    try:
        return said(config), found
    finally:
        Fields.raw = raw


def _others_than(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (0, value + 1)
    if isinstance(value, str):
        return (_UNKNOWN,)
    if isinstance(value, list) and value:
        return (value[:-1], [*value, value[-1]], *_changed_once(value))
    return () if value else (True, 2, [1, 2])


def _with(config: Config, place: Place, value: Any) -> dict[str, Any] | None:
    """A copy with another value there, and around it what is left out; None where something else lies there."""
    name, *rest = place
    if rest:
        around = config.get(name, {})
        if not isinstance(around, dict):
            return None
        value = _with(around, tuple(rest), value)
    return {key: held for key, held in {**config, name: value}.items() if held is not _ABSENT}


def said(config: Config) -> str:
    """What is read of a config, or why not."""
    try:
        anatomy = read_config(config)
        parts = components(Fields(dict(config)), anatomy)
        sums = (anatomy.parameter_count, anatomy.loaded_element_count, anatomy.active_parameter_count)
        return json.dumps([anatomy, sums, parts], default=_plain, sort_keys=True)
    except (UnknownAnatomy, ContradictoryConfig) as reason:
        return f"{type(reason).__name__}: {reason}"


def _plain(held: Any) -> Any:
    # (dataclasses.asdict copies every row: twice the time of reading them)
    return vars(held) if is_dataclass(held) else str(held)


def asked(kind: Kind) -> Iterator[tuple[str, Config]]:
    """All that is asked of a type, in words, and the configs."""
    yield from variations(kind.config, kind.others)
    for name in described().get(kind.config.get("model_type"), ()):
        yield f"class {name}", {**kind.config, "architectures": [name]}
    for labels in ({}, {"0": "a", "1": "b", "2": "c"}):
        yield f"{len(labels)} labels", {**kind.config, "id2label": labels}
    seen = {_form(kind.config)}
    for config in kind.others:
        if _form(config) not in seen:
            seen.add(_form(config))
            yield f"other {len(seen)}", config
    for place, config in enumerate(kind.counted):
        yield f"counted {place} {config.get('architectures', [_type_of(config)])[0]}", config
    told = _type_of(kind.config)
    if told in described() and told in class_defaults():
        yield "default of the class", default_of(told)


def _form(config: Config) -> tuple[str, frozenset[str]]:
    """Class and fields."""
    return repr(config.get("architectures")), frozenset(config)


def answers(kind: Kind) -> Iterator[tuple[str, str]]:
    """All that is asked of a type, in words, and what is read. A field that is asked for only where something else is changed is varied
    beside that change."""
    known: set[Place] = set(asked_for(kind.config)[1])
    for name, config in asked(kind):
        told, found = asked_for(config)
        yield name, told
        if not _is_refused(told):
            for place, (is_there, value) in found.items():
                if place not in known:
                    known.add(place)
                    beside = (_of_one if is_there else _of_left_out)(config, place, value)
                    yield from (
                        (f"{name}, {further}", said(changed)) for further, changed in beside if changed is not None
                    )


def digest_of(kind: Kind) -> str:
    """Eight digits of all that is read of it."""
    digest = hashlib.sha256()
    for name, told in answers(kind):
        digest.update(f"{name}\0{told}\0".encode())
    return digest.hexdigest()[:8]


def digests() -> dict[str, str]:
    return {name: digest_of(kind) for name, kind in all_kinds().items()}


def read() -> dict[str, str]:
    with PATH.open(encoding="utf-8", newline="") as file:
        return {row["kind"]: row["digest"] for row in csv.DictReader(file)}


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--of"]:
        for name, told in answers(all_kinds()[arguments[1]]):
            print(name, told, sep="\t")
        return 0
    if arguments[:1] == ["--check"]:
        held, there = read(), all_kinds()
        return 0 if all(held.get(name) == digest_of(there[name]) for name in arguments[1:] or there) else 1
    now = digests()
    if PATH.exists():
        before = read()
        changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        print("\n".join(changed) or "nothing has changed")
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "digest"])
        writer.writerows(now.items())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
