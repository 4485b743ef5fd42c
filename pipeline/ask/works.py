"""The repositories that hold one model, and the formats that their files are in."""

from __future__ import annotations

from pipeline.book import commands as pasted

from .almanac import Almanac, Row
from .question import Model


def same_of(almanac: Almanac, model: Model) -> list[Row]:
    """The repositories that hold a model, by their names, with the format that their files tell: its own first, then the most downloaded."""
    same = almanac.rows(
        """
        SELECT other.model_id, model.stored_format FROM work AS own JOIN work AS other ON other.plain_name = own.plain_name
        JOIN model ON model.model_id = other.model_id JOIN model AS self ON self.model_id = own.model_id
        WHERE own.model_id = $id AND (self.family IS NULL OR model.family IS NULL OR model.family = self.family)
        ORDER BY other.model_id <> $id, model.downloads_30d DESC NULLS LAST, other.model_id
        """,
        {"id": model.model_id},
    ) or [{"model_id": model.model_id, "stored_format": model.row["stored_format"]}]
    # its own files before those of others, in the format that their name tells
    if model.repository or (model.is_itself and model.dtype_id):
        same = [{"model_id": model.repository or model.model_id, "stored_format": model.dtype_id}, *same]
    return same


def held_of(almanac: Almanac, model: Model) -> set[str]:
    """The formats that some repository of a model is in, as far as files and names tell."""
    return {pasted.kind(row["model_id"], row["stored_format"]) for row in same_of(almanac, model)}
