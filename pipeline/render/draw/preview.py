"""The preview picture of a model: its name and the answer, as a PNG of 1200 × 630 that other sites show beside a link.

Set from letters that were drawn once (site/letters, tests/browser/draw_letters.py says how): no font and no drawing library is
needed, the same text gives the same bytes, and a picture takes a few milliseconds. Other characters than those become `?`.
"""

from __future__ import annotations

import json
import struct
import zlib
from functools import cached_property, lru_cache
from typing import NamedTuple

from pipeline import ROOT
from pipeline.render import words

LETTERS = ROOT / "site" / "letters" / "letters.json"
SHADES = 16  # from ink to paper; after them comes the red of the rule
WIDTH, HEIGHT = 1200, 630
PAPER, INK, RED = (0xFD, 0xFB, 0xF6), (0x1F, 0x1D, 0x1A), (0x7A, 0x2E, 0x1D)
LEFT, RIGHT = 76, 1140
LINES = {"large": 80, "middle": 58, "text": 50}
MARGIN, FOOT = 56, HEIGHT - 60  # rows above and below the rule; the baseline of the last line
ADLER = 65521
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

    @cached_property
    def reach(self) -> dict[str, tuple[int, int]]:
        """How far the letters of a size reach above and below their baseline."""
        return {
            size: (-min(y for _w, _x, y, _r in letters.values()), max(y + len(r) for _w, _x, y, r in letters.values()))
            for size, letters in self.drawn.items()
        }

    def width(self, text: str, size: str) -> int:
        letters = self.drawn[size]
        return sum(letters.get(c, letters["?"])[0] for c in text)

    def put(self, rows: bytearray, text: str, size: str, x: int, baseline: int) -> None:
        letters = self.drawn[size]
        for c in text:
            wide, left, top, shades = letters.get(c, letters["?"])
            place = (baseline + top) * STRIDE + 1 + x + left
            for row in shades:
                rows[place : place + len(row)] = row
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
    """A picture is a pile of bands, each packed by itself: a line of text, or the paper between two of them. Many pictures share
    a line ("LoRA needs one 24 GB card"), which is then set and packed once."""

    def __init__(self) -> None:
        self.letters = Letters()
        paper = bytearray([0, *[SHADES - 1] * WIDTH])
        self.outside = bytes(paper)  # a row above and below the rule, and one beside it
        paper[41:49] = bytes([SHADES]) * 8
        self.beside = bytes(paper)
        self._line, self._paper = lru_cache(maxsize=4096)(self._set), lru_cache(maxsize=None)(self._blank)
        self._wrapped = lru_cache(maxsize=4096)(self.letters.wrapped)

    def draw(self, name: str, facts: str, sentences: list[str]) -> bytes:
        """The name, a line of facts below it, and the answer, a part on each line, as a PNG."""
        letters = self.letters
        organisation, _, leaf = words.shown(name).rpartition("/")
        lines = [(line, "text", LEFT, 92) for line in letters.wrapped(organisation, "text", RIGHT - LEFT)[:1]]
        size = "large" if letters.width(leaf, "large") <= RIGHT - LEFT else "middle"
        baseline = 92
        for line in letters.wrapped(leaf, size, RIGHT - LEFT)[:2]:
            baseline += LINES[size]
            lines.append((line, size, LEFT, baseline))
        baseline += LINES["text"] + 6
        lines.append((facts, "text", LEFT, baseline))
        baseline += 34
        above, below = letters.reach["text"]
        for line in [line for s in sentences for line in self._wrapped(s, "text", RIGHT - LEFT)]:
            baseline += LINES["text"]
            if baseline + below > FOOT - above:
                break
            lines.append((line, "text", LEFT, baseline))
        lines.append(("VRAM Almanac", "text", RIGHT - letters.width("VRAM Almanac", "text"), FOOT))
        return _png(self._bands(lines))

    def _bands(self, lines: list[tuple[str, str, int, int]]) -> list[Packed]:
        bands, at = [], 0
        for text, size, x, baseline in lines:
            above, below = self.letters.reach[size]
            top, height = baseline - above, above + below
            bands += [self._paper(at, top), self._line(text, size, x, min(height, HEIGHT - MARGIN - top))]
            at = top + height
        return [*bands, self._paper(at, HEIGHT)]

    def _set(self, text: str, size: str, x: int, beside: int) -> Packed:
        """A line of text; the rule stands beside so many of its rows."""
        above, below = self.letters.reach[size]
        rows = bytearray(self.beside * beside + self.outside * (above + below - beside))
        self.letters.put(rows, text, size, x, above)
        return Packed.of(rows)

    def _blank(self, top: int, end: int) -> Packed:
        beside = max(0, min(end, HEIGHT - MARGIN) - max(top, MARGIN))
        before = max(0, min(end, MARGIN) - top)
        return Packed.of(
            self.outside * before + self.beside * beside + self.outside * (max(0, end - top) - before - beside)
        )


class Packed(NamedTuple):
    """Rows that were packed by themselves, so that they can follow any others, and the checksum of what they hold."""

    body: bytes
    size: int
    checksum: int

    @classmethod
    def of(cls, rows: bytes | bytearray) -> Packed:
        packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        return cls(packer.compress(rows) + packer.flush(zlib.Z_SYNC_FLUSH), len(rows), zlib.adler32(rows))


def _stream(bands: list[Packed]) -> bytes:
    """The bands as one zlib stream: its header, they, an empty last block, and their checksums joined (RFC 1950)."""
    low, high = 1, 0
    for band in bands:
        high = (high + (band.checksum >> 16) + band.size * (low - 1)) % ADLER
        low = (low + (band.checksum & 0xFFFF) - 1) % ADLER
    return b"\x78\x9c" + b"".join(band.body for band in bands) + b"\x03\x00" + struct.pack(">HH", high, low)


def _png(bands: list[Packed]) -> bytes:
    ramp = [
        tuple(round(i + (p - i) * n / (SHADES - 1)) for i, p in zip(INK, PAPER, strict=True)) for n in range(SHADES)
    ]
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    palette = bytes(value for colour in (*ramp, RED) for value in colour)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(*c) for c in ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", _stream(bands)), (b"IEND", b""))
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
