"""Pages of models from the last build: a page of which nothing changed is stamped into today's shell, and not rendered again.

What a page is made of is said by `ModelPages.made_of`: its model's own rows, what of other models stands on it, and the content that its numbers
are made of. A pack holds the pages of some models and, once each, the files beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pipeline.book.packs import Packs
from pipeline.render import words
from pipeline.render.pages.model_file import files as files_of
from pipeline.render.pages.models import ModelPages
from pipeline.render.shell import Shell

PAGE, FILE = "page", "site_file"  # the tables of a pack


class Page(NamedTuple):
    """What a model's page says, without the shell that all pages share; its picture and files by their paths in the site."""

    body: str
    description: str
    picture: str | None
    files: Mapping[str, bytes]


def page_of(pages: ModelPages, number: int) -> Page:
    """Renders it."""
    body, files = pages.render(number), files_of(pages, number)
    content = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    return Page(body, pages.headlines.description(number), pages.headlines.picture(number) if files else None, content)


def write(pages: ModelPages, shell: Shell, site_dir: Path, number: int, page: Page) -> None:
    """A model's page, and what else the site holds of it."""
    name = pages.book.models[number]["model_id"]
    path = f"models/{pages.paths[name]}"
    picture = f"{pages.site_url}{page.picture}" if page.picture else None
    html = shell.stamp(words.shown(name), words.shown(page.description), page.body, f"{pages.site_url}{path}/", picture)
    write_page(f"{site_dir}/{path}", html)
    for file, content in page.files.items():
        write_once(f"{site_dir}/{file}", content)


# (paths as text: taking them apart took as long as writing)
def write_page(folder: Path | str, html: str, files: dict[str, str] | None = None) -> None:
    """A page, and files beside it by name."""
    for name, content in {"index.html": html, **(files or {})}.items():
        _put(f"{folder}/{name}", content.encode(), os.O_TRUNC)


def write_once(file: Path | str, content: bytes) -> None:
    """A file of one model, or named by what it holds: whoever comes first writes it."""
    with suppress(FileExistsError):
        _put(str(file), content, os.O_EXCL)


def _put(file: str, content: bytes, how: int) -> None:
    try:
        new = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o666)
    except FileNotFoundError:  # as the first of a folder finds it
        os.makedirs(os.path.dirname(file), exist_ok=True)
        new = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o666)
    with open(new, "wb", buffering=0) as opened:
        left = memoryview(content)
        while left:  # a full disk writes a part
            left = left[opened.write(left) :]


class KeptPages:
    """The pages that packs hold, by the place of their model. `keys` are those of all models; none where nothing can be kept."""

    def __init__(self, pages: ModelPages) -> None:
        self.packs = pages.kept.packs if pages.packs else None
        self.keys: list[str] = []
        self.there: set[int] = set()
        if self.packs:
            self.keys = [pages.kept.key(PAGE, *pages.made_of(n)) for n in range(len(pages.book.models))]
            known = self.packs.places(self.keys)
            self.there = {number for number, key in enumerate(self.keys) if key in known}

    def taken(self) -> Iterator[tuple[int, Page]]:
        """The pages that are there; what was damaged since is not among them."""
        wanted: dict[str, list[int]] = {}
        for number in self.there:
            wanted.setdefault(self.keys[number], []).append(number)
        for found, tables in self.packs.taken(wanted) if self.packs else ():
            files = dict(zip(*(tables[FILE][column].to_pylist() for column in ("name", "content")), strict=True))
            held = set(found)
            for key, told in zip(*(tables[PAGE][column].to_pylist() for column in ("key", "told")), strict=True):
                if key in held:
                    body, description, picture, names = json.loads(told)
                    for number in wanted[key]:
                        yield number, Page(body, description, picture, {name: files[name] for name in names})


def keep(packs: Packs, keys: Sequence[str], made: Sequence[Page]) -> None:
    """Keeps some pages in one pack."""
    files = {name: content for page in made for name, content in page.files.items()}
    told = [
        json.dumps([page.body, page.description, page.picture, list(page.files)], ensure_ascii=False) for page in made
    ]
    tables = {
        PAGE: pa.table({"key": pa.array(keys, pa.string()), "told": pa.array(told, pa.large_string())}),
        FILE: pa.table(
            {"name": pa.array(list(files), pa.string()), "content": pa.array(list(files.values()), pa.large_binary())}
        ),
    }
    packs.put(keys, tables)
