"""What MkDocs knows nothing of: models and cards in the search index, and the site map of every page."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

from pipeline import ROOT
from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.environment import slug_gpu
from pipeline.render.paths import LISTED

_DATE = re.compile(r"\d{4}(-\d\d){0,2}")  # as site maps have them
WORDS = ROOT / "site" / "search_words.csv"


def write_index(folder: Path, book: Book, paths: dict[str, str]) -> int:
    """Write `search/index.json`: models by downloads with their levels, organisations, cards, the prose, and what people say
    instead of a name. The file that the theme fetches on every page keeps the settings alone. Returns the number of entries."""
    file = folder / "search" / "search_index.json"
    index = json.loads(file.read_text(encoding="utf-8"))
    pages = _prose([d for d in index["docs"] if "ALMANAC" not in d["title"]])
    content = entries(book, paths) | {"pages": pages, "words": said()}
    (folder / "search" / "index.json").write_text(_json(content), encoding="utf-8")
    file.write_text(_json(index | {"docs": []}), encoding="utf-8")
    return sum(len(content[kind]) for kind in ("models", "organisations", "cards", "pages"))


def entries(book: Book, paths: dict[str, str]) -> dict:
    """Models, organisations and cards as the browser's search reads them (site/assets/find.js)."""
    ids = [m["model_id"] for m in book.models]
    makers = Counter(path.partition("/")[0] for path in paths.values())
    names = {paths[i].partition("/")[0]: i.rpartition("/")[0] for i in reversed(ids)}
    common = {g["gpu_id"] for g in book.common}
    return {
        "models": [words.shown(i) for i in ids],
        "levels": "".join(map(str, book.works.levels)),
        "paths": {i: paths[name] for i, name in enumerate(ids) if paths[name] != words.shown(name)},
        # those that have a page of their own
        "organisations": [
            [folder, words.shown(names[folder]), f"{n} models"]
            for folder, n in sorted(makers.items(), key=lambda item: (-item[1], item[0]))
            if n >= LISTED and names[folder]
        ],
        "cards": [
            [
                slug_gpu(g["gpu_id"]),
                words.shown(g["name"]),
                _plain(g["short"]),
                _about(g),
                g["architecture"],
                int(g["gpu_id"] in common),
            ]
            for g in book.gpus
        ],
    }


def _plain(short: str) -> str:
    """A card's name without its memory, which people leave out."""
    return re.sub(r"\s*\b\d+ ?GB\b", "", words.shown(short)).strip()


def _about(gpu: dict) -> str:
    return f"{gpu['memory_gib_nominal']:g} GB, {gpu['vendor'].upper()}, {gpu['segment']}"


def said(file: Path = WORDS) -> dict[str, list[str]]:
    """What people say, by what to look for instead: other words, or pages by their address. Nothing: it need not be found."""
    with file.open(encoding="utf-8", newline="") as lines:
        # q8_0 is read as the browser reads it, with one number of two parts
        key = lambda text: re.sub(r"(?<=\d)_(?=\d)", ".", text)  # noqa: E731
        return {key(row["said"]): [way for way in row["instead"].split(";") if way] for row in csv.DictReader(lines)}


def said_of_names() -> str:
    """`data/words.json`: of what people say that which speaks of models, for the fields that filter them by name."""
    names = {
        text: [way for way in ways if "/" not in way]
        for text, ways in said().items()
        if not ways or any("/" not in way for way in ways)
    }
    return _json(names)


def _prose(docs: list[dict]) -> list[list[str]]:
    """Address, title and plain text; a section is named after its page, and one without text of its own is left to its page."""
    titles = {d["location"]: d["title"] for d in docs}
    pages = []
    for doc in docs:
        page, _, section = doc["location"].partition("#")
        text = html.unescape(re.sub(r"<[^>]+>", " ", doc["text"]))
        if not section:
            pages.append([page, html.unescape(doc["title"]), " ".join(text.split())])
        elif text.strip():
            title = html.unescape(f"{titles.get(page, '')}: {doc['title']}")
            pages.append([doc["location"], title, " ".join(text.split())])
    return pages


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def replace_worker(folder: Path, worker: str, version: str) -> None:
    """Put our search in the place of the theme's, which knows neither sizes nor copies, under the name that its pages ask for."""
    (theirs,) = (folder / "assets" / "javascripts" / "workers").glob("search.*.js")
    theirs.write_text(worker.replace("VERSION", version), encoding="utf-8")
    # what only theirs asks for, and what only who works on the theme does
    shutil.rmtree(folder / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for unused in (folder / "assets").rglob("*.map"):
        unused.unlink()


def write_sitemap(folder: Path, site_url: str, dates: dict[str, str]) -> int:
    """Every page that the folder holds; returns how many. `dates` are those of the data, by path, the release's under the empty one: the same
    tables give the same file. A site that does not know its address has no site map."""
    pages = sorted(p.parent.relative_to(folder).as_posix() for p in folder.rglob("index.html"))
    (folder / "sitemap.xml.gz").unlink(missing_ok=True)  # MkDocs writes both; this one holds the time of writing
    if not site_url:
        (folder / "sitemap.xml").unlink(missing_ok=True)
        return len(pages)
    rows = ""
    for page in pages:
        date = dates.get(page, dates.get("", ""))
        told = f"<lastmod>{date}</lastmod>" if _DATE.fullmatch(date) else ""
        rows += f"<url><loc>{escape(site_url + ('' if page == '.' else f'{page}/'))}</loc>{told}</url>\n"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    (folder / "sitemap.xml").write_text(f"{head}{rows}</urlset>\n", encoding="utf-8")
    return len(pages)
