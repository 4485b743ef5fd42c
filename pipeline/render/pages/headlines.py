"""What a model's page says in one sentence: the answer at its head, the description that searches show, the picture beside a link."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.data.support import Support
from pipeline.render.draw.preview import Previews
from pipeline.render.pages import pipelines, sounds
from pipeline.render.pages.answer import SINGLE_GIB, Answers


class Pages(Protocol):
    """What sentences are made of: what all pages of models hold (models.py)."""

    site_url: str
    paths: dict[str, str]
    held: dict[str, dict]
    inference: dict[int, list[Any]]
    support: Support

    def opening(self, model: dict) -> tuple[int | None, int | None]: ...
    def own_format(self, number: int) -> tuple[str, ...]: ...


class Headlines:
    """Of models by their places in the book."""

    def __init__(self, book: Book, pages: Pages) -> None:
        self.book, self.pages, self.answers = book, pages, Answers(book, pages.support)
        self._last: tuple[int, tuple[str, str]] = (-1, ("", ""))
        self._previews, self._drawn = Previews(), {}

    @property
    def cards(self) -> list[tuple[int, int]]:
        """The sizes of single cards, which answers speak of."""
        return [card for card in self.answers.cards if card[0] <= SINGLE_GIB]

    def answer(self, number: int) -> tuple[str, str]:
        """The answer, and the scenarios that it speaks of; empty where no total is known."""
        if self._last[0] != number:  # a page, its description and its files ask in turn
            model = self.book.models[number]
            passed = self.pages.held["passes"].get(model["model_id"], {})
            given = passed.get("input", "") if passed.get("is_one_size") else ""
            said, told = self.answers.of(number, *self.pages.opening(model), given)
            if self.pages.own_format(number):  # its base's page says the rest
                said, told = (f"{text.rstrip('.').partition('; ')[0]}." if text else "" for text in (said, told))
            self._last = number, (said, told)
        return self._last[1]

    def said(self, number: int) -> tuple[str, str]:
        """The same, that of a pipeline and of sound too."""
        said = self.answer(number)
        return said if said[0] else (self.of_pipeline(number) or self.of_sound(number), "")

    def reason(self, number: int) -> str:
        """Why nothing is known of a model: the reason of most formats, since that of one engine says nothing of the others."""
        shown = self.pages.inference.get(self.pages.opening(self.book.models[number])[0], [])
        note = self.book.models[number]["anatomy_note"] or "nothing is published"
        found = Counter(self.book.reason(number, s) for s in shown).most_common(1)
        return (found[0][0] if found else note).rstrip(".")

    def of_pipeline(self, number: int) -> str:
        return self._held("pipelines", number, pipelines.sentence)

    def of_sound(self, number: int) -> str:
        return self._held("sounds", number, sounds.sentence)

    def _held(self, what: str, number: int, sentence: Callable) -> str:
        return sentence(self.pages.held[what].get(self.book.models[number]["model_id"]), self.cards)

    def description(self, number: int) -> str:
        """For search engines and previews: the answer itself, where there is one."""
        name = self.book.models[number]["model_id"]
        said = self.answer(number)[0] or self.of_pipeline(number)
        return f"{name}: {said[:1].lower()}{said[1:]}" if said else f"GPU memory of {name}: not known, and why."

    def described(self, number: int) -> str:
        """The page for search engines, as schema.org's WebPage."""
        model = self.book.models[number]
        found = {
            "@context": "https://schema.org",
            "@type": "WebPage",
            "name": words.shown(model["model_id"]),
            **(
                {"url": f"{self.pages.site_url}models/{self.pages.paths[model['model_id']]}/"}
                if self.pages.site_url
                else {}
            ),
            **({"dateModified": model["facts_as_of"]} if model["facts_as_of"] else {}),
            "about": {"@type": "SoftwareApplication", "name": words.shown(model["model_id"].rpartition("/")[2])},
        }
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")

    def picture(self, number: int) -> str:
        """The picture that other sites show beside a link to a model's page, whose name they show themselves: by what it says, because
        many models have the same answer, and a picture for each would be more than half the files of a site."""
        return f"assets/previews/{hashlib.sha256(self._pictured(number).encode()).hexdigest()[:16]}.png"

    def preview(self, number: int) -> bytes:
        """The content of that picture."""
        said = self._pictured(number)
        if said not in self._drawn:
            self._drawn[said] = self._previews.draw("GPU memory", "", said.split("; "))
        return self._drawn[said]

    def _pictured(self, number: int) -> str:
        said = (self.answer(number)[0] or self.of_pipeline(number)).rstrip(".")
        return said or "What it needs can be calculated"
