"""The preview picture of a model: its name and the answer, as a PNG of 1200 × 630 that other sites show beside a link.

Set from letters that were drawn once (site/letters, tests/browser/draw_letters.py says how): no font and no drawing library is
needed, the same text gives the same bytes, and a picture takes a few milliseconds. Other characters than those become `?`.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from functools import cached_property, partial

from pipeline.render import words
from pipeline.render.shell import ROOT

LETTERS = ROOT / "site" / "letters" / "letters.json"
SHADES = 16  # from ink to paper; after them comes the red of the rule
WIDTH, HEIGHT = 1200, 630
PAPER, INK, RED = (0xFD, 0xFB, 0xF6), (0x1F, 0x1D, 0x1A), (0x7A, 0x2E, 0x1D)
LEFT, RIGHT = 76, 1140
LINES = {"large": 80, "middle": 58, "text": 50}
STRIDE = WIDTH + 1  # each row of a PNG begins with the number of its filter


class Letters:
    """Text as rows of shades."""

    @cached_property
    def drawn(self) -> dict[str, dict[str, tuple[int, int, int, list[bytes]]]]:
        sets = json.loads(LETTERS.read_text(encoding="utf-8"))
        unpack = lambda row: bytes(int(shade, 16) for shade in row)  # noqa: E731
        return {
            name: {c: (wide, x, y, [unpack(row) for row in rows.split()]) for c, (wide, x, y, rows) in letters.items()}
            for name, letters in sets.items()
        }

    def width(self, text: str, size: str) -> int:
        letters = self.drawn[size]
        return sum(letters.get(c, letters["?"])[0] for c in text)

    def put(self, picture: bytearray, text: str, size: str, x: int, baseline: int) -> None:
        letters = self.drawn[size]
        for c in text:
            wide, left, top, rows = letters.get(c, letters["?"])
            place = (baseline + top) * STRIDE + 1 + x + left
            for row in rows:
                picture[place : place + len(row)] = row
                place += STRIDE
            x += wide

    def wrapped(self, text: str, size: str, wide: int) -> list[str]:
        """Lines no wider than `wide`, broken at spaces, or after a hyphen, dot or slash where a word is too long."""
        lines, line = [], ""
        for piece in _pieces(text):
            if line and self.width((line + piece).rstrip(), size) > wide:
                lines.append(line.rstrip())
                line = ""
            while self.width(piece, size) > wide:
                cut = next(n for n in range(len(piece), 0, -1) if self.width(piece[:n], size) <= wide)
                lines.append(piece[:cut])
                piece = piece[cut:]
            line += piece
        return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: str) -> list[str]:
    pieces, piece = [], ""
    for c in text:
        piece += c
        if c in " -./_":
            pieces.append(piece)
            piece = ""
    return [*pieces, piece] if piece else pieces


class Previews:
    def __init__(self) -> None:
        self.letters = Letters()
        self.empty = bytes([0, *[SHADES - 1] * WIDTH]) * HEIGHT

    def draw(self, name: str, facts: str, sentences: list[str]) -> Callable[[], bytes]:
        """The name, a line of facts below it, and the answer, a part on each line; called, it gives the PNG.

        Packing takes most of the time and lets other threads run, so it is left to whoever writes the file.
        """
        picture, letters = bytearray(self.empty), self.letters
        for row in range(56, HEIGHT - 56):
            picture[row * STRIDE + 41 : row * STRIDE + 49] = bytes([SHADES]) * 8
        organisation, _, leaf = words.shown(name).rpartition("/")
        for line in letters.wrapped(organisation, "text", RIGHT - LEFT)[:1]:
            letters.put(picture, line, "text", LEFT, 92)
        size = "large" if letters.width(leaf, "large") <= RIGHT - LEFT else "middle"
        baseline = 92
        for line in letters.wrapped(leaf, size, RIGHT - LEFT)[:2]:
            baseline += LINES[size]
            letters.put(picture, line, size, LEFT, baseline)
        baseline += LINES["text"] + 6
        letters.put(picture, facts, "text", LEFT, baseline)
        baseline += 34
        for line in [line for s in sentences for line in letters.wrapped(s, "text", RIGHT - LEFT)]:
            if baseline + LINES["text"] > HEIGHT - 90:
                break
            baseline += LINES["text"]
            letters.put(picture, line, "text", LEFT, baseline)
        foot = "VRAM Almanac"
        letters.put(picture, foot, "text", RIGHT - letters.width(foot, "text"), HEIGHT - 60)
        return partial(_png, picture)


def _png(rows: bytearray) -> bytes:
    ramp = [
        tuple(round(i + (p - i) * n / (SHADES - 1)) for i, p in zip(INK, PAPER, strict=True)) for n in range(SHADES)
    ]
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    packer = zlib.compressobj(4)
    body = packer.compress(rows) + packer.flush()
    palette = bytes(value for colour in (*ramp, RED) for value in colour)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(*c) for c in ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", body), (b"IEND", b""))
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
