"""The prose pages by MkDocs, and the shells that generated pages are stamped into.

MkDocs builds into a folder of its own, because it wipes what lies in its output. Each shell is an ordinary page of
the theme at the depth of the pages to come (so that its relative addresses hold) with markers for what varies:
30 to 50 times cheaper than feeding thousands of pages through Markdown.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from markupsafe import escape

from pipeline import ROOT

CONFIG = ROOT / "mkdocs.yml"
SHELLS = {"model": "models/_organisation/_model", "page": "gpus/_gpu"}
TITLE, DESCRIPTION, BODY = "ALMANAC-TITLE", "ALMANAC-DESCRIPTION", "<!--almanac:body-->"
SLOT = re.compile(r"<!--almanac:([a-z-]+)(?: ([\w.-]+))?-->")
_INLINE = re.compile(r"<script>(.*?)</script>", re.S)
_MARKERS = re.compile("|".join(map(re.escape, (TITLE, DESCRIPTION, BODY, "ALMANAC-CANONICAL", "ALMANAC-IMAGE"))))
_IDLE = (
    re.compile(r'<div class="md-sidebar md-sidebar--secondary".*?</nav>\n(?:</div>\n){3}', re.S),
    re.compile(r"<script>var target=document.getElementById\(.*?</script>\n", re.S),
    re.compile(
        r"(?<=>)\n(?=</?(?:div|nav|ul|li|header|footer|main|article|form|label|ol|meta|link|script|title|svg)\b)"
    ),
)
# What frames every page and stands in none of thousands: the header with its dialogs, the tabs, the menu, and the theme's scripts
_FRAME = re.compile(
    r'(?P<before><body[^>]*>)(?P<header>.*?)(?P<container><div class="md-container"[^>]*>)(?P<tabs>.*?)(?P<main><main .*?>'
    r'<div class="md-main__inner[^>]*>)(?P<side><div class="md-sidebar md-sidebar--primary".*?)(?P<content><div class="md-content")',
    re.S,
)
_CONFIG = re.compile(r'<script id="__config" type="application/json">.*?</script>', re.S)
_TOPIC = re.compile(r'(data-md-component="header-topic">\s*<span class="md-ellipsis">).*?(</span>)', re.S)
_TAB = re.compile(r'<a href="([^"]*)" class="md-tabs__link">\s*(.*?)\s*</a>', re.S)
_THEME = re.compile(r'<script src="(?P<path>[^"]*assets/javascripts/bundle[^"]*)"></script>')
_IMAGE = re.compile(r'(<meta property="og:image" content=")([^"]*)')


class MkDocsError(RuntimeError):
    """MkDocs did not build the prose pages; the message is what it says."""


@dataclass(frozen=True)
class Shell:
    """A page cut at its markers: text at even places, the marker's name at odd ones."""

    pieces: tuple[str, ...]
    image: str = ""  # the picture of pages that have none of their own

    @classmethod
    def of(cls, html: str) -> Shell:
        html = re.sub(
            r'(<link rel="canonical" href="|<meta property="og:url" content=")[^"]*', r"\1ALMANAC-CANONICAL", html
        )
        image = found[2] if (found := _IMAGE.search(html)) else ""
        html = _IMAGE.sub(r"\1ALMANAC-IMAGE", html)
        texts, markers = _MARKERS.split(html), _MARKERS.findall(html)
        return cls(tuple(p for pair in zip(texts, [*markers, ""], strict=True) for p in pair), image)

    def stamp(self, title: str, description: str, body: str, canonical: str, image: str | None = None) -> str:
        values = {
            TITLE: str(escape(title)),
            DESCRIPTION: str(escape(description)),
            BODY: body,
            "ALMANAC-CANONICAL": str(escape(canonical)),
            "ALMANAC-IMAGE": str(escape(image)) if image else self.image,
        }
        return "".join(values.get(p, "") if i % 2 else p for i, p in enumerate(self.pieces))


def repository() -> str:
    """Where the code lives: REPO_URL, or the repository that GitHub Actions runs in; nothing where neither tells. An address is never
    guessed from a checkout, whose origin may be private."""
    address = os.environ.get("REPO_URL", "")
    if not address and os.environ.get("GITHUB_REPOSITORY"):
        server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
        address = f"{server}/{os.environ['GITHUB_REPOSITORY']}"
    if address and not address.startswith(("https://", "http://")):
        raise ValueError(f"REPO_URL is the address of the repository's page and starts with https://, not {address!r}")
    return address.rstrip("/")


def mkdocs(folder: Path, site_url: str, config: Path = CONFIG) -> None:
    """Build the prose pages into `folder`, in a process of its own: MkDocs keeps global state and prints notices."""
    environment = os.environ | {
        "SITE_URL": site_url,
        "REPO_URL": repository(),
        "SOURCE_DATE_EPOCH": "0",
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONUTF8": "1",
    }
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(config), "-d", str(folder)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8")
    if run.returncode:
        raise MkDocsError(f"MkDocs could not build the prose pages:\n{run.stdout}{run.stderr}")


def take_shells(folder: Path) -> dict[str, Shell]:
    """Read the shells and remove them from the site. What frames their pages is written beside our scripts."""
    shells = {}
    for name, place in SHELLS.items():
        file = folder / place / "index.html"
        html, script = framed(_tight(file.read_text(encoding="utf-8")), name)
        for path, text in script.items():
            (folder / path).write_text(text, encoding="utf-8")
        shells[name] = Shell.of(secure(html))
        file.unlink()
        file.parent.rmdir()
    (folder / SHELLS["model"]).parent.rmdir()
    return shells


def with_theme_later(html: str) -> str:
    """A page that answers before the theme’s script is fetched (a fifth of the first screen’s bytes) and run: site/assets/page.js asks for it then."""
    html, count = _THEME.subn(r'<div data-later="\g<path>" hidden></div>', html)
    if not count:
        raise MkDocsError("the theme's pages changed: no script of its own at their end")
    return html


def framed(html: str, name: str) -> tuple[str, dict[str, str]]:
    """A page without its frame, and the script that puts it there while the page is read, before anything is drawn: a third of the bytes
    of thousands of pages. Readers without scripts have the links of the tabs."""
    scripts = "\n".join(_INLINE.findall(html))
    found = _FRAME.search(_INLINE.sub("", html))
    if found is None or not scripts:
        raise MkDocsError(
            "the theme's pages changed: nothing in them is like a header, tabs and a menu before the text"
        )
    root = found["header"].partition('href="')[2].partition('"')[0]
    config = _CONFIG.search(html)
    parts = [_TOPIC.sub(r"\1\2", found["header"]) + (config[0] if config else ""), found["tabs"], found["side"]]
    text = (
        "{\nconst here = document.currentScript, whole = here.closest('.md-container');\n"
        f"const [header, tabs, side] = {json.dumps(parts, ensure_ascii=False)};\n"
        "whole.insertAdjacentHTML('beforebegin', header);\nwhole.insertAdjacentHTML('afterbegin', tabs);\n"
        "here.insertAdjacentHTML('beforebegin', side);\n"
        "document.querySelector('[data-md-component=header-topic] .md-ellipsis').textContent = "
        "document.querySelector('meta[property=\"og:title\"]').content;\n}\n" + scripts + "\n"
    )
    path = f"assets/almanac/frame-{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.js"
    links = "".join(
        f'<a href="{href}">{said}</a> ' for href, said in [(root, "VRAM Almanac"), *_TAB.findall(found["tabs"])]
    )
    html = _CONFIG.sub("", _INLINE.sub("", html))
    html = _FRAME.sub(
        lambda m: (
            f'{m["before"]}{m["container"]}{m["main"]}<script src="{root}/{path}"></script>'
            f'<noscript><nav class="plain-nav" aria-label="Site">{links.strip()}</nav></noscript>{m["content"]}'
        ),
        html,
    )
    return html, {path: text}


def _tight(html: str) -> str:
    """Without the blank lines and indents that the theme's templates leave, what a drawing in HTML need not name, and what no generated
    page has a use for (a table of contents, tabs): thousands of pages repeat them."""
    html = re.sub(r"\s*\n\s*", "\n", html).replace('<svg xmlns="http://www.w3.org/2000/svg" ', "<svg ")
    for idle in _IDLE:
        html, count = idle.subn("", html)
        if not count:
            raise MkDocsError(f"the theme's pages changed: nothing in them is like {idle.pattern}")
    return html


def secure(html: str) -> str:
    """A Content-Security-Policy that allows our own files and the theme's inline scripts by their hashes, nothing else."""
    scripts = sorted({_hash(script) for script in _INLINE.findall(html)})
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {' '.join(scripts)}".rstrip(),
            "style-src 'self'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "worker-src 'self'",
            "manifest-src 'self'",
            "base-uri 'self'",
            "form-action 'self'",
        )
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return html.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n      {meta}', 1)


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
