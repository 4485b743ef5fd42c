"""The page of changed numbers: what the comparison with the last release says, in words."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.environment import slug_gpu

FILE = "changes.json"
LISTED = 500
# Why a number moved, as the comparison calls it; what is not told apart is several of them.
CAUSES = {
    "snapshot": "the Hub says otherwise",
    "reader": "its anatomy is read otherwise",
    "card": "capacity of a card",
    "support": "what a card runs",
}
# What numbers rest on, as a heading for what of it changed.
KINDS = {
    "schema": "Version of the schema",
    "formulas": "Formula files",
    "facts": "Tables of facts",
    "code": "Code",
    "constants": "Constants",
    "engines": "Engine versions",
    "capacities": "Capacity of cards",
    "support": "What cards run",
}


def read(folder: Path) -> dict:
    """The comparison beside the tables; without one, that of a first release."""
    file = folder / FILE
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"since": None}


def page(book: Book, paths: dict[str, str]) -> dict:
    """What the template shows."""
    found = read(book.folder)
    if found["since"] is None:
        return {"since": None, "accepted": found.get("accepted")}
    names = {g["gpu_id"]: g["short"] for g in book.gpus}
    return {
        "since": found["since"],
        "compared": found["compared"],
        "underneath": [
            (KINDS[kind], [_underneath(kind, c) for c in rows]) for kind, rows in found["underneath"].items()
        ],
        "added": _linked(found["added"], paths),
        "removed": found["removed"],
        "newly_known": _linked(found.get("newly_known", []), paths),
        "withdrawn": _linked(found.get("withdrawn", []), paths),
        "moved": found.get("numbers", {}).get("moved"),
        "causes": [(CAUSES.get(kind, kind), told) for kind, told in found.get("causes", {}).items()],
        "accepted": found.get("accepted"),
        "added_gpus": [
            (g["name"], slug_gpu(g["gpu_id"])) for g in book.gpus if g["gpu_id"] in found.get("added_gpus", ())
        ],
        "removed_gpus": found.get("removed_gpus", []),
        "number": len(found["models"]),
        "verdicts": sum(m["verdicts"] for m in found["models"]),
        "models": [_row(m, paths, names) for m in found["models"][:LISTED]],
    }


def _linked(models: list[str], paths: dict[str, str]) -> list[tuple[str, str | None]]:
    return [(m, paths.get(m)) for m in models]


def _underneath(kind: str, change: str | list) -> str:
    if isinstance(change, str):
        return change
    *name, old, new = change
    text = lambda v: "none" if v is None else words.gib(v, 2) + " GiB" if kind == "capacities" else f"{v}"  # noqa: E731
    return f"{name[0] + ': ' if name else ''}{text(old)} → {text(new)}"


def _row(model: dict, paths: dict[str, str], names: dict[str, str]) -> dict:
    scenario, old, new = model["where"] or ("", None, None)
    return {
        "name": model["model_id"],
        "path": paths.get(model["model_id"]),
        "changed": f"{model['changed']} of {model['of']}",
        "most": "–" if model["most"] is None else percent(model["most"]),
        "where": scenario,
        "old": old,
        "new": new,
        "known": model["known"],
        "unknown": model["unknown"],
        "verdicts": model["verdicts"],
        "examples": [f"{s} on {names.get(g, g)}: {was} → {now}" for s, g, was, now in model["examples"]],
        "why": ", ".join(model["why"]),
    }


def percent(share: float) -> str:
    return f"{100 * share:+.{1 if abs(share) < 1 else 0}f} %".replace("-", "−")
