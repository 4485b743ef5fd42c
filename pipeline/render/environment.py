"""The templates' environment: autoescape always on, and the filters that turn numbers and names into text."""

from __future__ import annotations

import jinja2

from pipeline import ROOT
from pipeline.book.components import COMPONENTS
from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.pages import errors

TEMPLATES = ROOT / "site" / "templates"


def environment(book: Book) -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    sources = {s["source_id"]: s for s in book["source"]}
    env.filters |= {
        "cited": lambda text: cited(text, sources),
        "gib": words.gib,
        "count": words.count,
        "percent": words.percent,
        "tokens": words.tokens,
        "shown": words.shown,
        "marked": words.marked,
        "sql_text": words.sql_text,
        "slug_gpu": slug_gpu,
        "exact": lambda number: "unknown" if number is None else f"{number:,}",
    }
    env.globals |= {
        "components": COMPONENTS,
        "most": {
            "inference": book.published_counts(["inference"])[-1],
            "training": book.published_counts(book.counts_of.keys() - {"inference"} or ["inference"])[-1],
            "joined": book.counts[-1],
        }
        if book.counts
        else {},
    }
    return env


def cited(text: str | None, sources: dict[str, dict]) -> list[dict]:
    """What a `source` column names: ids separated by `;`, as titles with an address where there is one."""
    out = []
    for part in filter(None, (text or "").split(";")):
        source = sources.get(part.strip())
        title = (
            f"{source['publisher']}: {source['title']}"
            if source and source["publisher"]
            else source and source["title"]
        )
        where = (source and source["locator"]) or ""
        address = errors.address_of(where)
        out.append({"title": title or part.strip(), "address": address, "where": "" if address else where})
    return out


def slug_gpu(gpu_id: str) -> str:
    """A card's folder: its id, made safe."""
    return words.slug(gpu_id).partition("/")[2]


def short_names(names: list[str]) -> list[str]:
    """Names for the heads of columns; a name that would stand for two cards keeps its whole length."""
    short = [short_name(name) for name in names]
    return [s if short.count(s) == 1 else name for s, name in zip(short, names, strict=True)]


def short_name(name: str) -> str:
    """A card's name without its maker, brand and edition."""
    for word in (" Blackwell", " Workstation", " Edition", " Generation"):
        name = name.replace(word, "")
    for prefix in ("NVIDIA", "AMD", "Intel", "Apple", "Google", "GeForce", "Radeon", "Instinct", "Tesla"):
        name = name.removeprefix(f"{prefix} ")
    return name
