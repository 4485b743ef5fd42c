"""The tiny almanac with thousands of models: the same few many times over, as the browser is told them."""

from __future__ import annotations

import re

from tests.render.tiny_models import MODELS

TIMES = 700


def many_models(page) -> int:
    """Let `page` read every model TIMES times from now on. Returns how many there are."""
    page.route("**/data/models.json*", lambda route: route.fulfill(json=_repeated(route.fetch().json())))
    return TIMES * len(MODELS)


def _repeated(models: dict) -> dict:
    n = len(models["id"])
    paths = {str(k * n + int(i)): path for k in range(TIMES) for i, path in models["paths"].items()}
    return {
        "id": [model_id if k == 0 else f"{model_id}-{k}" for k in range(TIMES) for model_id in models["id"]],
        "paths": paths,
        **{name: models[name] * TIMES for name in ("row", "size", "downloads", "context")},
        **{name: [k * n + i for k in range(TIMES) for i in models[name]] for name in ("moe", "gated")},
        **{
            name: {"values": models[name]["values"], "of": models[name]["of"] * TIMES}
            for name in ("task", "licence", "family", "format", "reason")
        },
    }


def sheets(pdf: bytes) -> int:
    """How many sheets a PDF of the browser has."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
