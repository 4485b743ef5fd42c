"""The templates' environment: autoescape always on, and the filters that turn numbers and names into text."""

from __future__ import annotations

from pathlib import Path

import jinja2

from pipeline.render import words
from pipeline.render.book import Book

TEMPLATES = Path(__file__).resolve().parents[2] / "site" / "templates"
# What a stack of components is drawn and headed with: column, heading, page of the method.
COMPONENTS = (
    ("weights", "Weights", "weights"),
    ("kv_cache", "KV cache", "kv-cache"),
    ("kv_padding", "KV padding", "kv-cache"),
    ("state", "State", "state"),
    ("activations", "Activations", "activations"),
    ("gradients", "Gradients", "gradients"),
    ("optimizer", "Optimizer", "optimizer"),
    ("adapters", "Adapters", "adapters"),
    ("overhead", "Overhead", "overhead"),
)


def environment(book: Book) -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters |= {
        "gib": words.gib,
        "count": words.count,
        "tokens": words.tokens,
        "shown": words.shown,
        "sql_text": words.sql_text,
        "slug_gpu": slug_gpu,
        "exact": lambda number: "unknown" if number is None else f"{number:,}",
    }
    env.globals |= {"components": COMPONENTS, "most": book.counts[-1]}
    return env


def slug_gpu(gpu_id: str) -> str:
    """A card's folder: its id, made safe."""
    return words.slug(gpu_id).partition("/")[2]


def short_name(name: str) -> str:
    """A card's name without its maker and brand, for the head of a column."""
    for prefix in ("NVIDIA", "AMD", "Intel", "Apple", "Google", "GeForce", "Radeon", "Instinct", "Tesla"):
        name = name.removeprefix(f"{prefix} ")
    return name
