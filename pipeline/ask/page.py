"""Lines for whoever reads an answer: colours are for a terminal that has them, lines no wider than it is; a pipe has neither."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from pipeline.base.bounds import visible

from .sql_words import plain

NARROW = 64  # columns of a terminal below which a table leaves out where a format runs
WIDEST = 100
_COLOURS = {"fits": "32", "tight": "33", "no": "31", None: "2", "bold": "1", "dim": "2"}


class Page:
    """Lines for one reader: how wide, and whether in colours."""

    def __init__(self, file: TextIO) -> None:
        is_terminal = file.isatty()
        self.has_colours = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        wide = is_terminal or "COLUMNS" in os.environ
        self.width = max(20, min(WIDEST, shutil.get_terminal_size((80, 24)).columns if wide else WIDEST))
        self.lines: list[str] = []

    def coloured(self, text: str, kind: str | None) -> str:
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self.has_colours else text

    def say(self, text: str, kind: str | None = "plain", indent: str = "") -> None:
        behind = indent + "  " * text.startswith("- ")
        wrapped = textwrap.wrap(
            visible(plain(text)), self.width, initial_indent=indent, subsequent_indent=behind, break_on_hyphens=False
        )
        self.lines += [line if kind == "plain" else self.coloured(line, kind) for line in wrapped or [""]]

    def gap(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def verbatim(self, text: str) -> None:
        """What is pasted is never broken."""
        self.lines.append(f"  {visible(text)}")

    def table(
        self, heads: Sequence[str], rows: Iterable[Sequence[str]], kinds: Iterable[str | None], drop: int
    ) -> None:
        """Columns, the first to the left; `drop` is left out where the terminal is narrow."""
        table = [list(heads), *([visible(cell) for cell in row] for row in rows)]
        if self.width < NARROW:
            table = [[cell for k, cell in enumerate(row) if k != drop] for row in table]
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        left = [k for k, head in enumerate(table[0]) if head in ("", "format", "runs in", "model", "shared")]
        for row, kind in zip(table, ["dim", *kinds], strict=True):
            cells = [
                cell.ljust(w) if k in left else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            self.lines.append(self.coloured("  " + "  ".join(cells).rstrip(), kind))

    def text(self) -> str:
        return "\n".join(self.lines).rstrip("\n")


def say_problem(text: str, file: TextIO | None = None) -> None:
    file = file or sys.stderr
    page = Page(file)
    page.say(text)
    print(page.text(), file=file, flush=True)
