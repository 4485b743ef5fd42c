"""build/tables → build/site: prose pages by MkDocs, model and card pages stamped into their shells, slices for the matrix."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from markupsafe import escape

from pipeline.render import news, redirects, search, slices, tables, words
from pipeline.render.environment import TEMPLATES, short_names, slug_gpu
from pipeline.render.models import ModelPages
from pipeline.render.prose import Prose
from pipeline.render.shell import ROOT, mkdocs, secure, take_shells

__all__ = ["render"]

ASSETS = ROOT / "site" / "assets"
WRITERS, AHEAD = 2, 64  # threads that pack and write, and how many pages may wait for them
SITE_URL = "http://127.0.0.1:8000/"


def quiet(iterable, **_how):
    """A progress bar that shows nothing; the real one is tqdm."""
    return iterable


def render(tables_dir: Path, site_dir: Path, progress: Callable = quiet, site_url: str | None = None) -> dict:
    """Write the whole site into `site_dir`, which must be empty or absent.

    `progress` is called as tqdm is: `progress(iterable, desc=…, total=…)`. The site's own address, for canonical links and
    the site map, is `site_url` or the environment's SITE_URL. Returns counts, bytes and seconds.
    """
    started = time.perf_counter()
    tables_dir, site_dir = Path(tables_dir), Path(site_dir)
    if site_dir.exists() and any(site_dir.iterdir()):
        raise FileExistsError(f"{site_dir} is not empty")
    site_url = (site_url or os.environ.get("SITE_URL") or SITE_URL).rstrip("/") + "/"
    book = tables.read(tables_dir)
    for gpu, short in zip(book["gpu"], short_names([g["name"] for g in book["gpu"]]), strict=True):
        gpu["short"] = short
    with tempfile.TemporaryDirectory() as scratch:
        mkdocs(Path(scratch) / "prose", site_url)
        shutil.copytree(Path(scratch) / "prose", site_dir, dirs_exist_ok=True)
    shutil.copytree(ASSETS, site_dir / "assets" / "almanac")

    pages = ModelPages(book, site_url)
    prose = Prose(book, pages)
    data = {
        "scenarios.json": slices.scenarios(book, prose.opening()),
        "models.json": slices.models(book, pages.paths),
        "compare.json": prose.compare.data(),
    } | pages.calculator.files()
    slice_bytes = slices.write_slices(book, site_dir)
    for name, text in data.items():
        (site_dir / "data" / name).write_text(text)
    common = {"ALMANAC-VERSION": _version(book, data), "ALMANAC-SNAPSHOT": _snapshot(book, _manifest(tables_dir))}
    for file in site_dir.rglob("*.html"):
        file.write_text(_replace(file.read_text(), common))
    shells = take_shells(site_dir)
    prose.version = common["ALMANAC-VERSION"]
    for file in sorted(site_dir.rglob("*.html")):
        file.write_text(prose.fill(secure(file.read_text())))

    entries = _stamp(book, site_dir, site_url, shells, pages, prose, progress)
    _share(tables_dir, site_dir / "tables")
    search.extend_search(site_dir, entries)
    search.widen_search(site_dir, (TEMPLATES / "search_worker.js").read_text())
    addresses = search.write_sitemap(site_dir, site_url)
    # after the site map, which lists what is to be found
    redirects.write(site_dir, site_url, pages.paths)
    redirects.write_gone(site_dir, site_url, pages.paths, news.read(tables_dir).get("removed", []))
    files = [f for f in site_dir.rglob("*") if f.is_file()]
    return {
        "models": len(book.models),
        "gpus": len(book.gpus),
        "scenarios": len(book.scenarios),
        "pages": addresses,
        "slice_bytes": slice_bytes,
        "files": len(files),
        "bytes": sum(f.stat().st_size for f in files),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _stamp(
    book, site_dir: Path, site_url: str, shells, pages: ModelPages, prose: Prose, progress
) -> list[tuple[str, str]]:
    """Model, organisation and card pages; returns their entries for the search. Files are packed and written beside."""
    entries = []
    with ThreadPoolExecutor(WRITERS) as pool:
        writing: deque = deque()

        def write(path: str, shell: str, title: str, description: str, body: str, files: dict | None = None) -> None:
            image = "preview.png" if files and "preview.png" in files else None
            html = shells[shell].stamp(words.shown(title), words.shown(description), body, f"{site_url}{path}/", image)
            writing.append(pool.submit(_write, site_dir / path, {"index.html": html} | (files or {})))
            while len(writing) > AHEAD:
                writing.popleft().result()

        for number, model in enumerate(progress(book.models, desc="model pages", total=len(book.models))):
            path, name = f"models/{pages.paths[model['model_id']]}", model["model_id"]
            write(path, "model", name, pages.description(number), pages.render(number), pages.files(number))
            entries.append((f"{path}/", words.shown(name)))
        for folder, name, body in pages.organisations():
            write(f"models/{folder}", "page", name, f"GPU memory of the models of {name}.", body)
        for gpu in progress(book.gpus, desc="card pages", total=len(book.gpus)):
            path, name = f"gpus/{slug_gpu(gpu['gpu_id'])}", gpu["name"]
            told = f"What runs on {name}, and the memory it really gives."
            write(path, "page", name, told, prose.cards.render(gpu), prose.compare.of_card(gpu))
            entries.append((f"{path}/", words.shown(name)))
        while writing:
            writing.popleft().result()
    return entries


def _write(folder: Path, files: dict[str, str | bytes | Callable[[], bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        content = content() if callable(content) else content
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def _replace(html: str, values: dict[str, str]) -> str:
    return re.sub("|".join(values), lambda m: values[m[0]], html)


def _version(book, data: dict[str, str]) -> str:
    """A name for what the browser may keep: it changes when a script, a style or a number does."""
    digest = hashlib.sha256(book.array.tobytes())
    for file in sorted(ASSETS.iterdir()):
        digest.update(file.read_bytes())
    for text in data.values():
        digest.update(text.encode())
    return digest.hexdigest()[:12]


def _manifest(folder: Path) -> dict:
    file = folder / "manifest.json"
    return json.loads(file.read_text()) if file.exists() else {}


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
    """The tables beside the site: hard links where the file system can, copies where not."""
    target.mkdir()
    for file in sorted(tables_dir.iterdir()):
        if file.is_file():
            try:
                os.link(file, target / file.name)
            except OSError:
                shutil.copy2(file, target / file.name)
