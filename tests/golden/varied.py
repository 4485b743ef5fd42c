"""What the readers of configs make of one config of each type when its fields are varied one at a time, as a digest for each: tests/golden/varied.csv.

    python -m tests.golden.varied                # after a change of a reader: names the models whose digest changed and writes the file anew
    python -m tests.golden.varied --of owner/name    # every variation of that model's config, and what is read of it: to compare with another revision
    python -m tests.golden.varied --digests      # prints the digests (code_mutants.py asks so)

anatomy.csv holds what configs as they are published reach; this holds the branches beside: a field that is absent, switched, a step larger,
twice as large, turned round, or as another config of the type has it, in the config and in what is nested in it. The rows are no truth of their own
(tests/oracle holds perturbed configs to the libraries); they hold what a change of a reader did not mean to change.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.components import components
from pipeline.anatomy.fields import Fields
from pipeline.hub.snapshot import newest_snapshot

PATH = Path(__file__).with_name("varied.csv")
# what no reader asks, or says the same of every model
_PASSED_OVER = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "id2label", "label2id", "auto_map", "quantization_config"}  # fmt: skip
_DEPTH = 3
_OTHERS = 2  # values of other configs of the type, for each field
_ABSENT = object()

Config = Mapping[str, Any]
Place = tuple[str, ...]


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
    for place, value in own.items():
        yield f"{'.'.join(place)} absent", _with(config, place, _ABSENT)
        if isinstance(value, bool):
            yield f"{'.'.join(place)} {not value}", _with(config, place, not value)
        elif isinstance(value, int | float):
            for other in dict.fromkeys((value + 1, value * 2)):
                yield f"{'.'.join(place)} {other}", _with(config, place, other)
        elif isinstance(value, list) and value[::-1] != value:
            yield f"{'.'.join(place)} turned round", _with(config, place, value[::-1])
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
                yield f"{'.'.join(place)} {text[:60]}", changed


def _with(config: Config, place: Place, value: Any) -> dict[str, Any] | None:
    """A copy with another value there; None where nothing lies around that place."""
    name, *rest = place
    if rest:
        if not isinstance(config.get(name), dict):
            return None
        value = _with(config[name], tuple(rest), value)
    return {key: held for key, held in {**config, name: value}.items() if held is not _ABSENT}


def said(config: Config) -> str:
    """What is read of a config, or why not."""
    try:
        anatomy = read_config(config)
        parts = components(Fields(dict(config)), anatomy)
        return json.dumps([asdict(anatomy), [asdict(part) for part in parts]], default=str, sort_keys=True)
    except (UnknownAnatomy, ContradictoryConfig) as reason:
        return f"{type(reason).__name__}: {reason}"


def digest_of(config: Config, others: list[Config]) -> str:
    """Eight digits of all that is read of its variations."""
    digest = hashlib.sha256()
    for name, varied in variations(config, others):
        digest.update(f"{name}\0{said(varied)}\0".encode())
    return digest.hexdigest()[:8]


def digests() -> dict[str, str]:
    return {model_id: digest_of(*of) for model_id, of in kinds().items()}


def read() -> dict[str, str]:
    with PATH.open(encoding="utf-8", newline="") as file:
        return {row["model_id"]: row["digest"] for row in csv.DictReader(file)}


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--of"]:
        for name, varied in variations(*kinds()[arguments[1]]):
            print(name, said(varied), sep="\t")
        return 0
    now = digests()
    if arguments[:1] == ["--digests"]:
        print("\n".join(f"{model_id} {digest}" for model_id, digest in now.items()))
        return 0
    if PATH.exists():
        before = read()
        changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        print("\n".join(changed) or "nothing has changed")
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model_id", "digest"])
        writer.writerows(now.items())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
