"""build/tables → build/site: prose pages by MkDocs, model and card pages stamped into their shells, slices for the matrix."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from markupsafe import escape

from pipeline import ROOT
from pipeline.base.progress import quiet, step
from pipeline.base.readonly import at_hand
from pipeline.book.packs import Packs
from pipeline.render import addresses, kept_prose, words
from pipeline.render.crew import Crew, hands
from pipeline.render.data import cards as card_facts
from pipeline.render.data import rules, shapes, slices, tables
from pipeline.render.environment import TEMPLATES, slug_gpu
from pipeline.render.kept_pages import KeptPages, write_page
from pipeline.render.pages import commands, finding, news, organisations, programs, redirects, search
from pipeline.render.pages.models import ModelPages
from pipeline.render.pages.prose import Prose
from pipeline.render.shell import Shell, secure, take_shells, with_theme_later

__all__ = ["render"]

ASSETS = ROOT / "site" / "assets"


def render(
    tables_dir: Path,
    site_dir: Path,
    progress: Callable = quiet,
    site_url: str | None = None,
    processes: int | None = None,
    packs: Packs | None = None,
) -> dict:
    """Write the whole site into `site_dir`, which must be empty or absent.

    `progress` is called as tqdm is: `progress(iterable, desc=…, total=…)`. The site's own address, for canonical links and
    the site map, is `site_url` or the environment's SITE_URL; without either there are none. `processes` write the pages of models beside this one (0: none do);
    by default as many as there are cores, where there are many models. What `packs` hold is not rendered again. Returns counts, bytes and
    seconds.
    """
    started = time.perf_counter()
    tables_dir, site_dir = Path(tables_dir), Path(site_dir)
    if site_dir.exists() and any(site_dir.iterdir()):
        raise FileExistsError(f"{site_dir} is not empty")
    where = addresses.known(site_url).of_release(_manifest(tables_dir).get("data_version", ""))
    with ExitStack() as held:
        held.enter_context(at_hand(tables_dir / "almanac.duckdb"))
        with step(progress, "reading tables"):
            pages = ModelPages(tables.read(tables_dir, packs), where.site, packs)
            book = pages.book
        crew = held.enter_context(Crew(pages, hands(len(book.models)) if processes is None else processes))
        with step(progress, "prose"):
            kept_prose.write(site_dir, where.site, packs)
        shutil.copytree(ASSETS, site_dir / "assets" / "almanac")
        with step(progress, "slices"):
            prose = Prose(book, pages, where=where)
            sliced = slices.Slices(book)
            data = {
                "scenarios.json": slices.scenarios(book, prose.opening(), pages.support),
                "support.json": slices.support(pages.support),
                "models.json": slices.models(book, pages.paths, sliced.rows, pages.held["sounds"]),
                "compare.json": prose.compare.data(),
                **prose.compare.files(),
                "cards.json": card_facts.data(book),
                "words.json": search.said_of_names(),
                "commands.json": commands.as_file(),
                "rules.js": rules.javascript(),
                **{f"window/{name}": text for name, text in prose.front.files().items()},
            } | pages.calculator.files(book)
            slice_bytes = sliced.write(site_dir)
        common = {"ALMANAC-VERSION": _version(book, data), "ALMANAC-SNAPSHOT": _snapshot(book, _manifest(tables_dir))}
        prose.version = common["ALMANAC-VERSION"]
        for file in site_dir.rglob("*.html"):
            file.write_text(_replace(file.read_text(encoding="utf-8"), common), encoding="utf-8")
        shells = take_shells(site_dir)
        for first in (site_dir / "index.html", site_dir / "calculator" / "index.html"):
            first.write_text(with_theme_later(first.read_text(encoding="utf-8")), encoding="utf-8")
        for folder in {Path(name).parent for name in data}:
            (site_dir / "data" / folder).mkdir(exist_ok=True)
        for name, text in data.items():
            (site_dir / "data" / name).write_text(text, encoding="utf-8")
        with step(progress, "figures"):
            for file in sorted(site_dir.rglob("*.html")):
                file.write_text(prose.fill(secure(file.read_text(encoding="utf-8"))), encoding="utf-8")
            _ = pages.held  # what all pages show is read once, by this process
            programs.write(site_dir, pages, _manifest(tables_dir))
        cards = partial(_cards, site_dir, shells["page"], pages, prose, progress)
        for _number in progress(
            crew.write(shells["model"], site_dir, cards, KeptPages(pages)), desc="model pages", total=len(book.models)
        ):
            pass
    shapes.gather(site_dir)

    _share(tables_dir, site_dir / "tables")
    with step(progress, "search"):
        search.write_index(site_dir, book, pages.paths)
        search.replace_worker(
            site_dir, (TEMPLATES / "search_worker.js").read_text(encoding="utf-8"), common["ALMANAC-VERSION"]
        )
        changed = news.read(tables_dir)
        page_count = search.write_sitemap(
            site_dir, where.site, _dates(book, pages.paths, changed, _manifest(tables_dir))
        )
        finding.write(site_dir, book, pages.paths, where, _manifest(tables_dir))
        # after the site map, which lists what is to be found
        redirects.write(site_dir, where.site, pages.paths, redirects.renamed(book["rejected"], pages.paths))
        redirects.write_gone(site_dir, where.site, pages.paths, changed.get("removed", []))
    sizes = [os.stat(os.path.join(top, name)).st_size for top, _folders, files in os.walk(site_dir) for name in files]
    return {
        "models": len(book.models),
        "gpus": len(book.gpus),
        "scenarios": len(book.scenarios),
        "pages": page_count,
        "slice_bytes": slice_bytes,
        "files": len(sizes),
        "bytes": sum(sizes),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _cards(site_dir: Path, shell: Shell, pages: ModelPages, prose: Prose, progress: Callable) -> None:
    """The pages of organisations and cards."""

    def write(path: str, title: str, description: str, body: str, files: dict[str, str]) -> None:
        html = shell.stamp(words.shown(title), words.shown(description), body, f"{pages.site_url}{path}/")
        write_page(site_dir / path, html, files)

    for folder, name, body in organisations.pages_of(pages):
        write(f"models/{folder}", name, f"GPU memory of the models of {name}.", body, {})
    gpus = pages.book.gpus
    for gpu in progress(gpus, desc="card pages", total=len(gpus)):
        told = f"What runs on {gpu['name']}, and the memory it really gives."
        write(f"gpus/{slug_gpu(gpu['gpu_id'])}", gpu["name"], told, prose.cards.render(gpu), {})


def _dates(book, paths: dict[str, str], changed: dict, manifest: dict) -> dict[str, str]:
    """When a page said something new, by its path: a model's when its facts are from, or with this release where its numbers moved. What is
    of no model is of the release, which stands under the empty path."""
    release = manifest.get("snapshot_date") or ""
    moved = {m["model_id"] for m in changed.get("models", ())} | set(changed.get("added", ()))
    of_models = {
        f"models/{paths[m['model_id']]}": release if m["model_id"] in moved else str(m["facts_as_of"] or "")
        for m in book.models
    }
    return of_models | {"": release}


def _replace(html: str, values: dict[str, str]) -> str:
    return re.sub("|".join(values), lambda m: values[m[0]], html)


def _version(book, data: dict[str, str]) -> str:
    """A name for what the browser may keep: it changes when a script, a style or a number does."""
    digest = hashlib.sha256()
    digest.update(book.array)
    digest.update(repr([book.row(model) for model in range(len(book.models))]).encode())
    for file in sorted(ASSETS.iterdir()):
        digest.update(file.read_bytes())
    for text in data.values():
        digest.update(text.encode())
    return digest.hexdigest()[:12]


def _manifest(folder: Path) -> dict:
    file = folder / "manifest.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _snapshot(book, manifest: dict) -> str:
    """The age of the facts, for every page."""
    dates = sorted({m["facts_as_of"] for m in book.models if m["facts_as_of"]})
    if not dates:
        return "Age of the facts unknown."
    last = words.shown(dates[-1])
    since = f"{words.shown(dates[0])} to " if dates[0] != dates[-1] else ""
    release = manifest.get("data_version")
    data = f" Data {escape(words.shown(release))}." if release else ""
    return f'Facts of {since}<time datetime="{last}" data-age>{last}</time>.{data}'


def _share(tables_dir: Path, target: Path) -> None:
    """The tables that a page host takes, in the site: hard links where the file system can, copies where not."""
    target.mkdir()
    for file in sorted(tables_dir.iterdir()):
        if file.is_file() and not addresses.is_beside_site(file):
            try:
                os.link(file, target / file.name)
            except OSError:
                shutil.copy2(file, target / file.name)
