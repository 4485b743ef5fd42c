"""What the site holds for programs beside the files of models, which their pages are written with: the index, the cards, the schemas, and
the endpoints of badges."""

from __future__ import annotations

from pathlib import Path

from pipeline.render.data import api, badges
from pipeline.render.environment import slug_gpu
from pipeline.render.pages.models import ModelPages


def write(site: Path, pages: ModelPages, manifest: dict) -> None:
    folder = site / api.ROOT
    for name in ("gpus", "schema", "badges", "plans"):
        (folder / name).mkdir(parents=True)

    def put(name: str, content: dict) -> None:
        (folder / f"{name}.json").write_text(api.text(content), encoding="utf-8")

    book = pages.book
    plans = {pages.paths[name]: (name, *tables) for name, tables in _plans(book).items() if name in pages.paths}
    models = [_model(pages, n) for n in range(len(book.models))]
    put("index", api.index(manifest, models, [_gpu(g) for g in book.gpus], plans))
    for path, (model_id, serving, training) in plans.items():
        (folder / "plans" / path).parent.mkdir(parents=True, exist_ok=True)
        put(f"plans/{path}", api.plan(model_id, path, serving, training))
    # cards that give the same and run the same do the same with every model
    kinds, _coded = pages.support.coded
    alike = {g["gpu_id"]: (g["capacity_bytes"], kinds[g["gpu_id"]]) for g in book.gpus}
    firsts = list({alike[g["gpu_id"]]: g for g in book.gpus}.values())
    found: dict[str, list] = {g["gpu_id"]: [] for g in firsts}
    for number, model in enumerate(book.models):
        for gpu_id, best in pages.verdicts(number, firsts):
            found[gpu_id].append((model["model_id"], best))
    runs = {alike[gpu_id]: api.runs(those) for gpu_id, those in found.items()}
    for gpu in book.gpus:
        content = api.gpu(gpu, book.openings["inference"], runs[alike[gpu["gpu_id"]]])
        put(f"gpus/{slug_gpu(gpu['gpu_id'])}", content)
    for kind, schema in api.schemas().items():
        put(f"schema/{kind}.schema", schema)
    for name, endpoint in badges.endpoints(book.counts[1:]).items():
        put(f"badges/{name}", endpoint)


def _plans(book) -> dict[str, tuple[list[dict], list[dict]]]:
    """The rows of both tables of plans, by model."""
    found: dict[str, tuple[list[dict], list[dict]]] = {}
    for place, name in enumerate(("plan_serving", "plan_training")):
        for row in book[name]:
            found.setdefault(row["model_id"], ([], []))[place].append(row)
    return found


def _model(pages: ModelPages, number: int) -> dict:
    model = pages.book.models[number]
    row = api.plain({name: model[name] for name in api.LISTED}) | {"path": pages.paths[model["model_id"]]}
    return row if pages.is_told(number) else row | {"unknown_reason": pages.headlines.reason(number)}


def _gpu(gpu: dict) -> dict:
    return {name: gpu[name] for name in ("gpu_id", "name", "capacity_bytes")} | {"path": slug_gpu(gpu["gpu_id"])}
