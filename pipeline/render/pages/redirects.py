"""Old addresses stay. A model that the Hub renamed leads to the new one: a crawl that asked for the old name and was answered under
another one says so in `rejected`, and `site/redirects.csv` (old and new id) holds what no crawl has seen. A model of the last release
that is listed no more keeps a page that says so.
"""

from __future__ import annotations

import csv
from pathlib import Path

from markupsafe import Markup

from pipeline import ROOT
from pipeline.book.schema import NOW_NAMED
from pipeline.render import words

FILE = ROOT / "site" / "redirects.csv"
PAGE = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>\n'
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">\n'
    '{canonical}<meta name="robots" content="noindex">'
    '<meta http-equiv="refresh" content="0; url={address}"></head>\n'
    '<body><h1>Renamed</h1><p>Now <a href="{address}">{name}</a>.</p></body></html>\n'
)
GONE = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>\n'
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">\n'
    '{canonical}<meta name="robots" content="noindex"></head>\n'
    "<body><h1>{name}</h1><p>Listed no more: the Hub has no such model now, or it is asked for too rarely. "
    '<a href="{site}">All models</a> · <a href="{site}models/">by name</a></p></body></html>\n'
)


class RedirectError(ValueError):
    """A line of the file leads to no model."""


CANONICAL = Markup('<link rel="canonical" href="{}">')
ROOT_FROM_MODEL = "../../../"  # as pages link, so that the site need not know its address


def _canonical(site_url: str, path: str) -> Markup:
    return CANONICAL.format(f"{site_url}models/{path}/") if site_url else Markup("")


def write_gone(folder: Path, site_url: str, paths: dict[str, str], removed: list[str]) -> list[str]:
    """A page for each model of the last release that has none now."""
    written, taken = [], {path.lower() for path in paths.values()}
    for old in removed:
        target = folder / "models" / words.slug(old)
        if old in paths or words.slug(old).lower() in taken or (target / "index.html").exists():
            continue
        target.mkdir(parents=True, exist_ok=True)
        canonical = _canonical(site_url, words.slug(old))
        page = GONE.format(name=words.shown(old), canonical=canonical, site=ROOT_FROM_MODEL)
        (target / "index.html").write_text(page, encoding="utf-8")
        written.append(old)
        taken.add(words.slug(old).lower())
    return written


def renamed(rejected: list[dict], paths: dict[str, str], file: Path = FILE) -> dict[str, str]:
    """Old and new id of every model that has a page under its new one. What a line of the file leads to must be a model."""
    new_of = {
        r["model_id"]: r["reason"].removeprefix(NOW_NAMED)
        for r in rejected
        if (r["reason"] or "").startswith(NOW_NAMED)
    }
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        if row["new_id"] not in paths:
            raise RedirectError(f"{file.name}: {row['new_id']!r} is no model of this snapshot")
        new_of[row["old_id"]] = row["new_id"]
    found = {}
    for old, new in new_of.items():
        seen = {old}
        while new not in paths and new in new_of and new not in seen:  # renamed more than once
            seen.add(new)
            new = new_of[new]
        if new in paths:
            found[old] = new
    return found


def write(folder: Path, site_url: str, paths: dict[str, str], moved: dict[str, str]) -> list[str]:
    """A page at every old address. An old id that is a model again keeps its page."""
    written, taken = [], {path.lower() for path in paths.values()}
    for old, new in sorted(moved.items()):
        target = folder / "models" / words.slug(old)
        # where file systems do not tell upper from lower case, a page at the old spelling would be written over the model's own
        if old in paths or words.slug(old).lower() in taken or target.exists():
            continue
        target.mkdir(parents=True)
        address, canonical = f"{ROOT_FROM_MODEL}models/{paths[new]}/", _canonical(site_url, paths[new])
        page = PAGE.format(name=words.shown(new), address=address, canonical=canonical)
        (target / "index.html").write_text(page, encoding="utf-8")
        written.append(old)
        taken.add(words.slug(old).lower())
    return written
