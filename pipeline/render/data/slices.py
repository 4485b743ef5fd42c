"""What the browser reads: the scenarios and cards, the models, and the book's array in two orders.

`data/slices/<phase>_<format>_<engine>.bin` holds its scenarios one after the other, for contexts that many models have (the matrix fetches
one such file, and another for another format): little-endian float32, packed as zlib does. Models with the same numbers
share a row, and data/models.json says which row is whose. A model that reads less is told with the longest context it has,
which the matrix names beside the number. What a model's own page reads is in data/shapes.py.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Container
from pathlib import Path

from pipeline.book.commands import COUNTED
from pipeline.book.components import COMPONENTS
from pipeline.render import words
from pipeline.render.data import limits, rules
from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.support import ATTENTION, Support
from pipeline.render.environment import slug_gpu

LEVEL = 7  # 9 saves one byte in a hundred and takes three times as long


def support(known: Support) -> str:
    """Which card runs what, for every engine, format, phase and attention: what the calculator may be asked."""
    return _json(known.coded[1])


def scenarios(book: Book, opening: Scenario | None, known: Support) -> str:
    """Axes, cards and names: shared by the matrix and the model pages. Of what cards run, only what the scenarios ask."""
    kinds, coded = known.coded
    asked = {f"{s.engine_id} {s.phase_id} {ATTENTION}" for s in book.scenarios}
    runs = {key: codes for key, codes in coded["runs"].items() if _without_format(key) in asked}
    training = next((s.phase_id for s in book.scenarios if s.phase_id != "inference"), None)
    return _json(
        {
            "counts": book.counts,
            # the name of a slice is that of its parts; a format is named only where its engine is told with it
            "scenarios": [
                [*s.__dict__.values(), *([book.formats[s]] if book.formats[s] != s.dtype_id else [])]
                for s in book.scenarios
            ],
            "phases": [[p["phase_id"], p["name"]] for p in book["phase"] if _published(book, p["phase_id"])],
            "dtypes": [[d["dtype_id"], d["name"], d["engine_id"]] for d in book["dtype"]],
            "gpus": [
                [
                    g["gpu_id"],
                    slug_gpu(g["gpu_id"]),
                    g["name"],
                    g["short"],
                    g["segment"],
                    g["vendor"],
                    g["memory_gib_nominal"],
                    g["capacity_bytes"] // 1024,
                    kinds[g["gpu_id"]],
                    g["capacity_bytes"],
                    g["whole_bytes"] // 1024,
                ]
                for g in book.gpus
            ],
            "optimizers": {o["optimizer_id"]: o["name"] for o in book["optimizer"]},
            "kept": words.KEPT,
            "reasons": book.reasons,
            "components": COMPONENTS,
            "engines": [[e["engine_id"], e["name"]] for e in book["engine"]],
            "limits": limits.of_engines(book["constant"]),
            "server_share": next((c["value"] for c in book["constant"] if c["constant_id"] == "vllm_default_share"), 1),
            "server_counts": counts(book),
            "server_apart": apart(book),
            "wddm_share": next((c["value"] for c in book["constant"] if c["constant_id"] == "wddm_share"), None),
            "support": coded | {"runs": runs},
            "contexts": {kind: book.common_contexts(phases) for kind, phases in _kinds(book).items()},
            "common": [g["gpu_id"] for g in book.common],
            "opening": {
                "inference": _opening(book.default("inference")) | {"dtype": book.formats.get(opening)},
                "training": _opening(book.default(training)) if training else {},
            },
        }
    )


def counts(book: Book) -> list[int] | None:
    """Requests at once, and tokens of one step: what figures of vLLM count."""
    found = {c["constant_id"]: int(c["value"]) for c in book["constant"] if c["constant_id"] in COUNTED}
    return [found[name] for name in COUNTED] if len(found) == len(COUNTED) else None


def apart(book: Book) -> list[int] | None:
    """KiB that stand outside a server's share on one card, each of two, and each of four and more."""
    constants = {c["constant_id"]: c["value"] for c in book["constant"]}
    try:
        return [int(rules.in_python().apart_bytes(count, constants)) // 1024 for count in (1, 2, 4)]
    except KeyError:  # an older release
        return None


def _without_format(key: str) -> str:
    engine, _format, phase, attention = key.split(" ")
    return f"{engine} {phase} {attention}"


def _kinds(book: Book) -> dict[str, set[str]]:
    phases = {s.phase_id for s in book.scenarios}
    return {"inference": phases & {"inference"}, "training": phases - {"inference"}}


def models(book: Book, places: dict[str, str], rows_of: list[int], sounds: Container[str] = ()) -> str:
    """One array per column; words that repeat are looked up. `rows_of` are their rows in the slices; `sounds`, whose pages tell seconds."""
    rows = book.models
    sizes = [m["parameter_count"] or m["stored_parameter_count"] for m in rows]
    pipelines = {c["model_id"] for c in book["component"]}
    windowed = {layer["model_id"] for layer in book["attention_layer"] if layer["window_tokens"]}
    paths = {i: places[m["model_id"]] for i, m in enumerate(rows)}
    return _json(
        {
            "id": [m["model_id"] for m in rows],
            "row": rows_of,
            "size": [words.millions(size) for size in sizes],
            "pipelines": [i for i, m in enumerate(rows) if m["model_id"] in pipelines],
            "sounds": [i for i, m in enumerate(rows) if m["model_id"] in sounds],
            "windowed": [i for i, m in enumerate(rows) if m["model_id"] in windowed],
            "moe": [i for i, m in enumerate(rows) if (m["active_parameter_count"] or sizes[i] or 0) < (sizes[i] or 0)],
            "downloads": [m["downloads_30d"] for m in rows],
            "context": [m["max_context_tokens"] for m in rows],
            "gated": [i for i, m in enumerate(rows) if m["is_gated"]],
            "task": _coded([m["pipeline_tag"] for m in rows]),
            "licence": _coded([m["license"] for m in rows]),
            "family": _coded([m["family"] for m in rows]),
            "format": _coded([m["stored_format"] for m in rows]),
            # (those that run on fewer cards in some engines, by the type that says so)
            "limited": {i: m["model_type"] for i, m in enumerate(rows) if m.get("limited_engines")},
            "reason": _coded([_reason(book, i) for i in range(len(rows))]),
            "paths": {i: path for i, path in paths.items() if path != rows[i]["model_id"]},
        }
    )


def _reason(book: Book, model: int) -> str | None:
    """Why nothing of a model is known; None for a model of which something is."""
    if book.is_told(model) or not book.scenarios:
        return None
    return book.reason(model, book.scenarios[0])


class Slices:
    """Every scenario of a common context, each model by its row: models with the same numbers have one."""

    def __init__(self, book: Book) -> None:
        self.book = book
        common = {phase: set(book.common_contexts(phases)) for phases in _kinds(book).values() for phase in phases}
        self.scenarios = [s for s in book.scenarios if s.context_tokens in common[s.phase_id]]
        # who has the row of another one and reads as much as it has its numbers
        first: dict[tuple[int, int | None], int] = {}
        like = [first.setdefault((book.row(i), m["max_context_tokens"]), i) for i, m in enumerate(book.models)]
        read = {own for _row, own in first}
        told = {own: [place_of(book, scenario, own) for scenario in self.scenarios] for own in read}
        numbers: dict[bytes, int] = {}
        rows = {}
        for (_row, own), model in first.items():
            row = book.scenario_bytes(model, told[own])
            rows[model] = numbers.setdefault(row, len(numbers))
        self.rows = [rows[model] for model in like]
        self._distinct = list(numbers)

    def write(self, folder: Path) -> int:
        """One file for each format of a phase on an engine; returns the bytes written."""
        files: dict[str, list[int]] = defaultdict(list)
        for place, scenario in enumerate(self.scenarios):
            files[file_of(scenario)].append(place)
        target = folder / "data" / "slices"
        target.mkdir(parents=True)
        return sum(
            (target / f"{name}.bin").write_bytes(zlib.compress(b"".join(map(self._slice, places)), LEVEL))
            for name, places in files.items()
        )

    def _slice(self, place: int) -> bytes:
        step = 4 * self.book.width
        values = array("f", b"".join([row[place * step : (place + 1) * step] for row in self._distinct]))
        if sys.byteorder != "little":
            values.byteswap()
        return values.tobytes()


def file_of(scenario: Scenario) -> str:
    """The slice that holds a scenario."""
    return f"{scenario.phase_id}_{scenario.dtype_id}_{scenario.engine_id}"


def place_of(book: Book, scenario: Scenario, own: int | None) -> int:
    """Where the totals of a scenario stand for models that read `own` tokens."""
    if own and own < scenario.context_tokens:
        shorter = [s for s in _same_but_shorter(book, scenario) if s.context_tokens <= own]
        scenario = max(shorter, key=lambda s: s.context_tokens, default=scenario)
    return book.index[scenario]


def _same_but_shorter(book: Book, scenario: Scenario) -> list[Scenario]:
    return [s for s in book.but_for_context[scenario.but_for_context] if s.context_tokens < scenario.context_tokens]


def _published(book: Book, phase: str) -> bool:
    return any(s.phase_id == phase for s in book.scenarios)


def _opening(chosen: dict) -> dict:
    return {
        name.removesuffix("_id").removesuffix("_tokens"): value for name, value in chosen.items() if value is not None
    }


def _coded(values: list[str | None]) -> dict:
    known = sorted({v for v in values if v is not None})
    place = {v: i for i, v in enumerate(known)}
    return {"values": known, "of": [None if v is None else place[v] for v in values]}


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
