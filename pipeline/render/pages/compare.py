"""Up to four cards side by side: every card's figures as ready text, so that the page only picks columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby, islice

from pipeline.render.environment import environment, slug_gpu
from pipeline.render.pages.gpus import GpuPages

TOGETHER = 16  # cards whose texts are one file: a page of four fetches four at most
OPENING = ("rtx-4090", "rtx-5090", "l40s", "h100-sxm")


class Compare:
    def __init__(self, cards: GpuPages) -> None:
        self.cards = cards
        self.figures = {gpu["gpu_id"]: cards.figures(gpu) for gpu in cards.book.gpus}
        less = {gpu["gpu_id"]: cards.under_windows(gpu) for gpu in cards.book.gpus}
        self.under_windows = {gpu_id: cards.figures(gpu) for gpu_id, gpu in less.items() if gpu}
        first = next(iter(self.figures.values()), [])
        self.labels = [(group, what) for group, what, _text in first]

    def data(self) -> str:
        """`data/compare.json`: what the rows are, and in which file the texts of a card lie."""
        return _json({"labels": self.labels, "file": {gpu_id: i // TOGETHER for i, gpu_id in enumerate(self.figures)}})

    def files(self) -> dict[str, str]:
        """`data/figures/<n>.json`: of some cards each one's texts in the order of the rows, under Linux and, where they are others, Windows."""
        return {
            f"figures/{n}.json": _json({gpu_id: self._texts(gpu_id) for gpu_id, _rows in some})
            for n, some in enumerate(_batched(self.figures.items()))
        }

    def _texts(self, gpu_id: str) -> dict[str, list[str]]:
        systems = {"linux": self.figures, "windows": self.under_windows}
        return {
            system: [text for _group, _what, text in rows[gpu_id]] for system, rows in systems.items() if gpu_id in rows
        }

    def _beside(self, gpus: list[dict], row: int) -> list[str]:
        return [self.figures[gpu["gpu_id"]][row][2] for gpu in gpus]

    def _is_shown(self, row: int, texts: list[str]) -> bool:
        """A format that none of them is known to run is left out, as compare.js does."""
        return self.labels[row][0] == self.labels[0][0] or any(text[:1].isdigit() for text in texts)

    def body(self) -> str:
        """The page without JavaScript: a few common cards."""
        known = self.cards.book.gpus
        chosen = [g for i in OPENING for g in known if g["gpu_id"] == i] or known[:4]
        rows = [
            (
                group,
                [(what, texts) for i, (_group, what) in part if self._is_shown(i, texts := self._beside(chosen, i))],
            )
            for group, part in groupby(enumerate(self.labels), key=lambda row: row[1][0])
        ]
        template = environment(self.cards.book).get_template("compare.html")
        return template.render(gpus=[g | {"slug": slug_gpu(g["gpu_id"])} for g in chosen], groups=rows)


def _batched(items: Iterable) -> Iterator[list]:
    left = iter(items)
    while some := list(islice(left, TOGETHER)):
        yield some


def _json(value: list | dict) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
