"""What programs read: `api/v1/`, in plain JSON with a JSON Schema for each kind of file.

    index.json                   every model with its grade, every card: what there is, and where
    models/<organisation>/<name>.json
                                 a model: its facts, the bytes of every component at every context that is known, and what each card
                                 does with it. The model's page reads the same file; nothing is told twice.
    gpus/<id>.json               a card: its facts, what it gives, the models that fit it
    plans/<organisation>/<name>.json
                                 how many cards so many users take, and how long a training of so much data, of models that many ask about
    badges/                      pictures and shields.io endpoints, named by what they say and so shared
    schema/<kind>.schema.json    what each of these files holds

A model of which nothing is known has no file: the index says why. What is nought everywhere is left out of a row, and so is what is
unknown or does not apply: the schemas say of each name what its absence means. How the names and promises may change is in
CHANGELOG.md.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable

from pipeline.book.schema import ENUMS, PUBLISHED
from pipeline.render.data.book import PARTS

VERSION = "1.0.0"
ROOT = "api/v1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERDICTS = ("fits", "shorter", "multi-gpu", "tight", "no", "unknown")
TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}
# Parts that hardly ever change with the context: one number says them then
MAY_BE_ONE = ("kv_padding_bytes", "state_bytes", "activations_bytes", "overhead_bytes")
# Of a model the index repeats what one chooses by.
LISTED = ("model_id", "anatomy_grade", "parameter_count", "max_context_tokens", "downloads_30d", "pipeline_tag")


def text(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def plain(row: dict, without: tuple[str, ...] = ()) -> dict:
    """A row of a table without its nulls."""
    return {
        k: v.isoformat() if isinstance(v, datetime.date) else v
        for k, v in row.items()
        if v is not None and k not in without
    }


def footprint(key: tuple[str, str, str], points: list, published: list[int], opening: dict) -> dict:
    """What a phase takes in one format on one engine (`reach.read` has the points): one sequence on one card, along the contexts that are
    published. Other sequences, cards and contexts are the database's to tell."""
    contexts, totals, bands, parts, _more = points
    kept = [i for i, context in enumerate(contexts) if context in published]
    along = lambda values: [values[i] for i in kept]  # noqa: E731
    row = dict(zip(("phase_id", "dtype_id", "engine_id"), key, strict=True))
    row |= {name: opening[name] for name in ("optimizer_id", "checkpointing") if opening.get(name)}
    row |= {"context_tokens": along(contexts)}
    row |= {c: along(value) if isinstance(value, list) else value for c, value in parts.items()}
    row |= {c: _same(row[c]) for c in MAY_BE_ONE if isinstance(row.get(c), list)}
    return row | {"total_bytes": along(totals), "error_band": _same(along(bands))}


def _same(values: list):
    """One number for a list of the same: most parts of most rows are."""
    return values[0] if values and len(set(values)) == 1 else values


def cards(found: Iterable[tuple[str, tuple]]) -> list[dict]:
    """What each card does (`ByCard.best`), cards of one answer together."""
    groups: dict[tuple, list[str]] = {}
    for gpu_id, best in found:
        count = best.gpu_count if best.verdict in ("multi-gpu", "tight") else None
        groups.setdefault(best._replace(max_sequences=None, gpu_count=count), []).append(gpu_id)
    return [plain(best._asdict()) | {"gpu_ids": ids} for best, ids in groups.items()]


def gpu(row: dict, opening: dict, runs: list[dict]) -> dict:
    """A card, and the models that one of it runs."""
    return {
        "api_version": VERSION,
        "gpu": plain({c: row[c] for c in PUBLISHED["gpu"].column_names}),
        "phase_id": "inference",
        "context_tokens": opening["context_tokens"],
        "sequences": opening["sequences"],
        "runs": runs,
    }


def runs(found: Iterable[tuple[str, tuple]]) -> list[dict]:
    """Of what a card does with models those that one of it runs: by verdict, format and engine the longest context of each."""
    groups: dict[tuple, dict[str, int]] = {}
    for model_id, (verdict, dtype_id, engine_id, most_tokens, *_rest) in found:
        if verdict in ("fits", "shorter"):
            groups.setdefault((verdict, dtype_id, engine_id), {})[model_id] = most_tokens
    names = ("verdict", "dtype_id", "engine_id")
    order = sorted(groups, key=lambda key: (VERDICTS.index(key[0]), key[1:]))
    return [dict(zip(names, key, strict=True)) | {"max_context_tokens": groups[key]} for key in order]


RANKS, FIGURES = (
    3,
    4,
)  # the fewest cards that do it and the next two numbers; figures of speeds and hours that mean something


def plan(model_id: str, path: str, serving: list[dict], training: list[dict]) -> dict:
    """What the tables of plans have of a model, row by row, as far as RANKS: the tables have every number of cards."""
    return {
        "api_version": VERSION,
        "path": path,
        "model_id": model_id,
        "serving": _ranked(serving),
        "training": _ranked(training),
    }


def _ranked(rows: list[dict]) -> list[dict]:
    kept = [plain(row, ("model_id",)) for row in rows if (row["plan_rank"] or 0) <= RANKS]
    return [{k: float(f"{v:.{FIGURES}g}") if isinstance(v, float) else v for k, v in row.items()} for row in kept]


def index(manifest: dict, models: list[dict], gpus: list[dict], plans: Iterable[str] = ()) -> dict:
    """What there is. A model with a file has its `path`, any other the reason why it has none; `plans` are the paths of files of plans."""
    told = ("data_version", "schema_version", "snapshot_date")
    here = {k: manifest[k] for k in told if manifest.get(k)}
    return {"api_version": VERSION, **here, "models": models, "gpus": gpus, "plans": sorted(plans)}


# ---- the schemas: what a table's columns mean is said in the dictionary alone


def schemas() -> dict[str, dict]:
    """By kind of file."""
    return {
        "index": _schema("What the almanac holds", _index()),
        "model": _schema("A model: what it needs and what cards do with it", _model()),
        "gpu": _schema("A card: what it gives and which models it runs", _gpu()),
        "plan": _schema("How many cards a model takes for users and trainings, and how long", _plan()),
        "badge": _schema("An endpoint badge of shields.io", _badge()),
    }


def _schema(title: str, content: dict) -> dict:
    return {"$schema": DIALECT, "title": title, **content}


def _object(properties: dict, optional: Iterable[str] = ()) -> dict:
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _column(table: str, name: str) -> dict:
    column = next(c for c in PUBLISHED[table].columns if c.name == name)
    found: dict = {"type": TYPES[column.type], "description": column.meaning}
    if column.least is not None:
        found["minimum"] = column.least
    if name in ENUMS:
        found["enum"] = list(ENUMS[name])
    return found


def _row(table: str, without: tuple[str, ...] = ()) -> dict:
    """A row of a table: what may be null may be absent."""
    names = [n for n in PUBLISHED[table].column_names if n not in without]
    return _object({n: _column(table, n) for n in names}, PUBLISHED[table].nullable)


def _list(items: dict, **more) -> dict:
    return {"type": "array", "items": items, **more}


_WORD = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}
_VERSION = {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"}
_IDS = {
    "phase_id": {"enum": list(ENUMS["phase_id"]), "description": "What is done with the model"},
    "dtype_id": {**_WORD, "description": "Format of the weights (table dtype)"},
    "engine_id": {**_WORD, "description": "Program that runs it (table engine)"},
}


def _along(number: dict, description: str) -> dict:
    """A number for each place of the axis, or the one that it is at all of them."""
    return {
        "oneOf": [number, _list(number)],
        "description": f"{description}; one number where it is the same at every one",
    }


_BYTES = {
    **{c: {**_COUNT, "description": f"{c.removesuffix('_bytes')}, at every context alike; absent: 0"} for c in PARTS},
    "kv_cache_bytes": _list(_COUNT, description="kv_cache, for each of context_tokens; absent: 0 at all"),
    **{c: _along(_COUNT, f"{c.removesuffix('_bytes')}, for each of context_tokens; absent: 0") for c in MAY_BE_ONE},
}
_BAND = _along(
    {"type": "number", "minimum": 0}, "For each total our error as a share of it: plan with total × (1 + band)"
)
_TOTAL = _list(_COUNT, description="The sum of the components, for each place of the axis")


def _index() -> dict:
    model = _object(
        {n: _column("model", n) for n in LISTED}
        | {
            "path": {**_WORD, "description": "The model's file is models/<path>.json, its page models/<path>/"},
            "unknown_reason": {**_WORD, "description": "Why it has no file; absent where it has one"},
        },
        [*PUBLISHED["model"].nullable, "unknown_reason"],
    )
    gpu = _object(
        {n: _column("gpu", n) for n in ("gpu_id", "name", "capacity_bytes")}
        | {"path": {**_WORD, "description": "The card's file is gpus/<path>.json, its page gpus/<path>/"}},
    )
    told = {
        "data_version": {**_WORD, "description": "The release, as manifest.json has it"},
        "schema_version": {**_VERSION, "description": "Version of the tables' schema"},
        "snapshot_date": {**_WORD, "description": "When the Hub was read last"},
    }
    plans = _list(_WORD, description="Paths of the models with a file plans/<path>.json")
    return _object({"api_version": _VERSION, **told, "models": _list(model), "gpus": _list(gpu), "plans": plans}, told)


def _plan() -> dict:
    return _object(
        {
            "api_version": _VERSION,
            "path": {**_WORD, "description": "The model's page is models/<path>/"},
            "model_id": _column("model", "model_id"),
            "serving": _list(
                _row("plan_serving", ("model_id",)),
                description=f"Rows of the table plan_serving to plan_rank {RANKS}",
            ),
            "training": _list(
                _row("plan_training", ("model_id",)),
                description=f"Rows of the table plan_training to plan_rank {RANKS}",
            ),
        }
    )


def _model() -> dict:
    ids = {**_IDS, "optimizer_id": _WORD, "checkpointing": _WORD}
    footprint = _object(
        {
            **ids,
            "context_tokens": _list(_COUNT, description="Contexts of one sequence, or lengths in training, upwards"),
            **_BYTES,
            "total_bytes": _TOTAL,
            "error_band": _BAND,
        },
        ["optimizer_id", "checkpointing", *PARTS],
    )
    unknown = _object({**_IDS, "unknown_reason": {**_WORD, "description": "Why there is no number"}})
    card = _object(
        {
            "verdict": {"enum": list(VERDICTS), "description": _SAID},
            **{k: _IDS[k] for k in ("dtype_id", "engine_id")},
            "max_context_tokens": {**_COUNT, "description": "Longest context of one sequence, our error included"},
            "gpu_count": {**_COUNT, "description": "Cards that it takes; absent: one, or none is enough"},
            "gpu_ids": _list(_WORD, minItems=1, uniqueItems=True),
        },
        ["dtype_id", "engine_id", "max_context_tokens", "gpu_count"],
    )
    verdicts = _object(
        {
            "phase_id": {"const": "inference"},
            "context_tokens": _COUNT,
            "sequences": _COUNT,
            "cards": _list(card),
        }
    )
    stage = _object(
        {
            "pipeline_part": _WORD,
            "class_name": _WORD,
            "weights_bytes": _COUNT,
            "activations_bytes": _COUNT,
            "unknown_reason": _WORD,
        },
        ["class_name", "weights_bytes", "activations_bytes", "unknown_reason"],
    )
    placement = _object(
        {
            "placement": _WORD,
            "total_bytes": _COUNT,
            "error_band": {"type": "number", "minimum": 0},
            "unknown_reason": _WORD,
        },
        ["total_bytes", "error_band", "unknown_reason"],
    )
    trained = _object(
        {
            "base": _WORD,
            "placement": _WORD,
            "total_bytes": _COUNT,
            "error_band": {"type": "number", "minimum": 0},
        }
    )
    pipeline = _object(
        {
            "dtype_id": _WORD,
            "width_pixels": _COUNT,
            "height_pixels": _COUNT,
            "frame_count": _COUNT,
            "parts": _list(stage),
            "placements": _list(placement),
            "training": _list(trained),
        },
        ["training"],
    )
    return _object(
        {
            "api_version": _VERSION,
            "path": {**_WORD, "description": "The model's page is models/<path>/"},
            "model": _row("model"),
            "answer": {"type": "string", "description": "The answer of the page; empty where none is known"},
            "answer_scenarios": {"type": "string", "description": "What exactly it is the answer to"},
            "shape": {
                "type": "string",
                "pattern": "^[0-9a-f]{16}$",
                "description": "Models with one shape have the same numbers: what the formulas ask and all totals are alike",
            },
            "footprints": _list(footprint),
            "unknown": _list(unknown, description="What is published without a number, and why"),
            "verdicts": verdicts
            | {"description": "What each card does at one context; absent where no limit is known"},
            "badges": {
                "type": "object",
                "additionalProperties": _WORD,
                "description": "The verdict of common cards in a few words, by gpu_id: for badges that read this file",
            },
            "pipeline": pipeline | {"description": "Of a pipeline of several models its parts and the whole"},
            "tensor_class": _list(_row("tensor_class", ("model_id",))),
            "attention_layer": _list(_row("attention_layer", ("model_id",))),
        },
        ["shape", "verdicts", "badges", "pipeline"],
    )


_SAID = (
    "fits: the context_tokens of the verdicts, our error included; shorter: not those, but max_context_tokens; multi-gpu: gpu_count "
    "of them; tight: gpu_count of them, without our error; no: not on as many as were worked out; unknown: no source says that the card runs one of its formats"
)


def _gpu() -> dict:
    run = _object(
        {
            "verdict": {"enum": ["fits", "shorter"], "description": _SAID},
            **{k: _IDS[k] for k in ("dtype_id", "engine_id")},
            "max_context_tokens": {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 1},
                "description": "By model_id the longest context of one sequence, in the best format that the card holds",
            },
        }
    )
    return _object(
        {
            "api_version": _VERSION,
            "gpu": _row("gpu"),
            "phase_id": {"const": "inference"},
            "context_tokens": _COUNT,
            "sequences": _COUNT,
            "runs": _list(run),
        }
    )


def _badge() -> dict:
    return _object(
        {"schemaVersion": {"const": 1}, "label": {"type": "string"}, "message": _WORD, "color": _WORD}, ["color"]
    )
