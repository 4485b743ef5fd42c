"""What MkDocs knows nothing of: models and cards in the search index, and the site map of every page."""

from __future__ import annotations

import json
from pathlib import Path
from xml.sax.saxutils import escape


def extend_search(folder: Path, entries: list[tuple[str, str]]) -> int:
    """Write `search/index.json`: the theme's index with title-only entries (address, title) after it. Full text of thousands of
    pages would take seconds to load. The file that the theme fetches on every page keeps the settings alone."""
    file = folder / "search" / "search_index.json"
    index = json.loads(file.read_text(encoding="utf-8"))
    docs = [d for d in index["docs"] if "ALMANAC" not in d["title"]]
    # Material writes text and titles as HTML.
    docs += [{"location": where, "title": escape(title), "text": ""} for where, title in entries]
    for name, content in (("index.json", docs), (file.name, [])):
        text = json.dumps(index | {"docs": content}, ensure_ascii=False, separators=(",", ":"))
        (folder / "search" / name).write_text(text, encoding="utf-8")
    return len(docs)


def widen_search(folder: Path, wrapper: str) -> None:
    """Put `wrapper` before the theme's search worker, under its name, so that it wakes late and finds words by their middle."""
    (worker,) = (folder / "assets" / "javascripts" / "workers").glob("search.*.js")
    original = worker.rename(worker.with_name(f"material-{worker.name}"))
    worker.write_text(wrapper.replace("WORKER", original.name), encoding="utf-8")


def write_sitemap(folder: Path, site_url: str) -> int:
    """Every page that the folder holds; returns how many. No dates: the same tables give the same file. A site that does not know its
    address has no site map."""
    pages = sorted(p.parent.relative_to(folder).as_posix() for p in folder.rglob("index.html"))
    (folder / "sitemap.xml.gz").unlink(missing_ok=True)  # MkDocs writes both; this one holds the time of writing
    if not site_url:
        (folder / "sitemap.xml").unlink(missing_ok=True)
        return len(pages)
    addresses = [site_url + ("" if page == "." else f"{page}/") for page in pages]
    rows = "".join(f"<url><loc>{escape(address)}</loc></url>\n" for address in addresses)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    (folder / "sitemap.xml").write_text(f"{head}{rows}</urlset>\n", encoding="utf-8")
    return len(addresses)
