"""What models of one shape share, for the scripts of the site: `data/shapes/<number>.bin`, each a few of them.

A copy, a fine-tune or a quantisation of a model has its layers and so its numbers: of three known models two are such. So what is
large is there once by shape, named by what it holds, and pages point to it. So many files would be more than page hosts take: those whose
names begin alike lie in one, which begins with how many they are and, of each, its name, its place and its length. Each is one zlib stream, which browsers unpack
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
from pathlib import Path
from typing import NamedTuple

from pipeline.render.data.calculator import KEY, OF_ALL

FOLDER = "data/shapes"
FILES = 512  # at 10,000 models some four shapes in each, 45 kB
LEVEL = 9
_NAME = 16
_ENTRY = struct.Struct(f"<{_NAME}sII")


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


def file_of(name: str) -> str:
    """The file that holds a shape."""
    return f"{int(name[:3], 16) % FILES}.bin"


def gather(site: Path) -> None:
    """Puts the shapes that were written one by one, each under its name, into their files."""
    by_file: dict[str, list[Path]] = {}
    for path in sorted((site / FOLDER).glob(f"{'?' * _NAME}.bin")):
        by_file.setdefault(file_of(path.stem), []).append(path)
    for name, paths in by_file.items():
        (site / FOLDER / name).write_bytes(_packed([Shape(path.stem, path.read_bytes()) for path in paths]))
        for path in paths:
            path.unlink()


def _packed(shapes: list[Shape]) -> bytes:
    place = 4 + _ENTRY.size * len(shapes)
    entries = []
    for shape in shapes:
        entries.append(_ENTRY.pack(shape.name.encode(), place, len(shape.content)))
        place += len(shape.content)
    return struct.pack("<I", len(shapes)) + b"".join(entries) + b"".join(shape.content for shape in shapes)


def unpacked(content: bytes) -> dict[str, bytes]:
    """The shapes in the content of a file, by name: how the browser finds one."""
    (count,) = struct.unpack_from("<I", content)
    entries = [_ENTRY.unpack_from(content, 4 + i * _ENTRY.size) for i in range(count)]
    return {name.decode(): content[place : place + length] for name, place, length in entries}


def read(content: bytes) -> tuple[dict, array]:
    """The JSON and the totals of a shape: how the browser reads it."""
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
