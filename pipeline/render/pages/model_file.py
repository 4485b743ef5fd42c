"""What a model has beside its page: the file for programs, which the page's own scripts read too, badges, and the picture beside a link."""

from __future__ import annotations

from pipeline.render.data import api, badges, shapes
from pipeline.render.pages import pipelines
from pipeline.render.pages.models import ModelPages


def files(pages: ModelPages, number: int) -> dict[str, str | bytes]:
    """What a model has beside its page, by path from the root of the site: nothing where nothing is known, which the page alone has to
    say. What other models may have as well is named by what it holds."""
    if not pages.is_told(number):
        return {}
    shape = pages.shape(number)
    said = dict([badges.memory(*pages.badge(number))])
    for gpu_id, best in pages.verdicts(number, pages.book.common):
        said |= badges.of_card(pages.short[gpu_id], gpu_id, best)
    return {
        f"{api.ROOT}/models/{pages.paths[pages.book.models[number]['model_id']]}.json": api.text(told(pages, number)),
        **({f"{shapes.FOLDER}/{shape.name}.bin": shape.content} if shape else {}),
        **{f"{api.ROOT}/badges/{name}.svg": drawn for name, drawn in said.items()},
        pages.headlines.picture(number): pages.headlines.preview(number),
    }


def told(pages: ModelPages, number: int) -> dict:
    """What programs and the page's own scripts read of a model."""
    model = pages.book.models[number]
    name, points = model["model_id"], pages.points(number)
    inference, training = pages.shown(number)
    answer, exactly = pages.headlines.said(number)
    order = pages.order(number)
    shape = pages.shape(number)
    pipeline = pages.held["pipelines"].get(name)
    content = {
        "api_version": api.VERSION,
        "path": pages.paths[name],
        "model": api.plain(model),
        "answer": answer,
        "answer_scenarios": exactly,
        **({"shape": shape.name} if shape else {}),
        "footprints": [
            api.footprint(
                k, points[k], pages.contexts if k[0] == "inference" else pages.lengths, pages.book.openings[k[0]]
            )
            for k in order
            if k in points
        ],
        "unknown": [
            dict(zip(("phase_id", "dtype_id", "engine_id"), key, strict=True))
            | {"unknown_reason": pages.book.reason(number, scenario)}
            for key, scenario in zip(order, inference + training, strict=True)
            if key not in points
        ],
    }
    if pages.by_card.formats(number):
        content["verdicts"] = {
            "phase_id": "inference",
            "context_tokens": pages.opening(model)[0] or pages.wanted[0],
            "sequences": 1,
            "cards": api.cards(pages.verdicts(number, pages.book.gpus)),
        }
        content["badges"] = {
            gpu_id: badges.told(best, model["stored_format"])
            for gpu_id, best in pages.verdicts(number, pages.book.common)
        }
    if pipeline:
        content["pipeline"] = pipelines.as_json(pipeline)
    for table, held in (("tensor_class", "tensors"), ("attention_layer", "layers")):
        content[table] = [api.plain(row, ("model_id",)) for row in pages.held[held].get(name, ())]
    return content
