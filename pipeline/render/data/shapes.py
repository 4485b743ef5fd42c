"""What models of one shape share, for the scripts of the site: `data/shapes/<digest>.bin`.

A copy, a fine-tune or a quantisation of a model has its layers and so its numbers: of three known models two are such. So what is
large lies in a file by shape, named by what it holds, and pages point to it. A file is one zlib stream, which browsers unpack
themselves (`shape` in site/assets/almanac.js): four bytes that say how long the JSON is, the JSON (`rows` that the formulas ask
of a model, by table, the `points` that limits of any card are read off, and the `plot` of them), and every total of the book in its order, as
little-endian float32. What a stranger needs is told in plain JSON: `api/v1/`.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from array import array
from typing import NamedTuple

from pipeline.render.data.calculator import KEY, OF_ALL

FOLDER = "data/shapes"
LEVEL = 9


class Shape(NamedTuple):
    name: str
    content: bytes


def of(tables: dict[str, list[dict]] | None, points: dict, plot: str, totals: bytes) -> Shape:
    """The file of a model whose formulas ask these tables, and its name by what is packed in it: not by how it was packed."""
    told = {"rows": _nameless(tables or {}), "points": points, "plot": plot}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)  # the totals begin where a float may
    whole = struct.pack("<I", len(text)) + text + totals
    return Shape(hashlib.sha256(whole).hexdigest()[:16], zlib.compress(whole, LEVEL))


def read(content: bytes) -> tuple[dict, array]:
    """The JSON and the totals of a file: how the browser reads it."""
    whole = zlib.decompress(content)
    (size,) = struct.unpack_from("<I", whole)
    return json.loads(whole[4 : 4 + size]), array("f", whole[4 + size :])


def _nameless(tables: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """Without the name of the model, which the browser puts back (`rowsOf` in site/assets/almanac.js)."""
    return {
        name: [{k: v for k, v in row.items() if k != KEY} for row in rows]
        for name, rows in tables.items()
        if name not in OF_ALL
    }
