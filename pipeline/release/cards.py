"""The cards of what lies on the Hub: README.md with a head that the Hub reads and a body for people, from the data dictionary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from huggingface_hub import DatasetCardData, SpaceCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline import ROOT
from pipeline.book.schema import PUBLISHED
from pipeline.press import changes, manifest
from pipeline.release import notes
from pipeline.release.build import Build

FOLDER = ROOT / "site" / "cards"
OPENS_WITH = "model"  # the table that the Hub shows first
# https://huggingface.co/docs/hub/datasets-cards: the words for how many rows there are
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B")


def of_dataset(build: Build, repo: str) -> str:
    """The card of the data set that holds the tables of a build."""
    about = manifest.read(build.tables)
    counts: Mapping[str, int] = about["row_counts"]
    # of a table without rows there is nothing to show
    tables = [
        PUBLISHED[name] for name, count in counts.items() if count and (build.tables / f"{name}.parquet").exists()
    ]
    tables.sort(key=lambda table: table.name != OPENS_WITH)
    head = DatasetCardData(
        language="en",
        license="cc-by-4.0",
        pretty_name="VRAM Almanac",
        size_categories=_size(max(counts.values(), default=0)),
        tags=["gpu", "memory", "vram", "inference", "fine-tuning"],
        configs=[
            {"config_name": table.name, "data_files": f"{table.name}.parquet"}
            | ({"default": True} if table.name == OPENS_WITH else {})
            for table in tables
        ],
    )
    summary = json.loads((build.tables / changes.SUMMARY).read_text(encoding="utf-8"))
    site = manifest.read(build.site).get("site_url")
    body = _body(
        "dataset.md",
        repo=repo,
        models=counts.get("model", 0),
        tables=tables,
        site=site,
        notes="\n".join(line.replace("## ", "### ") for line in notes.lines(summary)),
        data_version=build.data_version,
        schema_version=about["schema_version"],
    )
    return _card(head.to_yaml(), body)


def of_space(build: Build) -> str:
    """The card of the static Space that shows the pages of a build."""
    dataset = _dataset_of(manifest.read(build.site).get("tables_url") or "")
    head = SpaceCardData(
        title="VRAM Almanac",
        emoji="📏",
        colorFrom="blue",
        colorTo="green",
        sdk="static",
        app_file="index.html",
        pinned=False,
        license="mit",
        short_description="Which AI models fit my GPU?",
        **({"datasets": [dataset]} if dataset else {}),
    )
    return _card(head.to_yaml(), _body("space.md", data_version=build.data_version, dataset=dataset))


def _dataset_of(address: str) -> str:
    """The data set that an address leads into; empty where it leads elsewhere."""
    _, found, rest = address.partition("huggingface.co/datasets/")
    return "/".join(rest.split("/")[:2]) if found else ""


def _size(rows: int) -> str:
    return _SIZES[min(max(len(str(rows)) - 3, 0), len(_SIZES) - 1)]


def _body(name: str, **values: Any) -> str:
    # Markdown is no HTML: the Hub takes out of it what is none
    env = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
    return env.get_template(name).render(**values)


def _card(head: str, body: str) -> str:
    return f"---\n{head.strip()}\n---\n\n{body}"
