"""One page per organisation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pipeline.render import paths
from pipeline.render.pages.models import ModelPages


def pages_of(pages: ModelPages) -> Iterator[tuple[str, str, str]]:
    """Folder, name and page of every organisation."""
    groups = defaultdict(list)
    for model in pages.book.models:
        groups[pages.paths[model["model_id"]].partition("/")[0]].append(model)
    for folder in sorted(groups):
        if len(groups[folder]) < paths.LISTED:
            continue  # its only model's page says all
        rows = [pages.entry(model) for model in groups[folder]]
        name = groups[folder][0]["model_id"].rpartition("/")[0] or "(no organisation)"
        yield folder, name, pages.organisation.render(organisation=name, rows=rows)
