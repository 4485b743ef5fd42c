"""The prose pages as MkDocs makes them, kept: with a new model they are what they were, and MkDocs takes as long as a thousand pages.

They are made of what lies in the checkout and of the libraries that are installed, whichever of these MkDocs reads, and of two addresses.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import distributions
from pathlib import Path

import pyarrow as pa

from pipeline.book.packs import Packs
from pipeline.render.data.kept import hashed, made_of
from pipeline.render.kept_pages import write_once
from pipeline.render.shell import mkdocs, repository

_WHAT = "prose"  # the table of a pack


def write(site_dir: Path, site_url: str, packs: Packs | None = None) -> None:
    """Writes all prose pages and what the theme brings. Raises MkDocsError."""
    for name, content in _files(site_url, packs).items():
        write_once(site_dir / name, content)


def _files(site_url: str, packs: Packs | None) -> dict[str, bytes]:
    if packs is None:
        return _made(site_url)
    installed = sorted(f"{one.name} {one.version}" for one in distributions())
    key = hashed(_WHAT, made_of(), installed, site_url, repository())
    for _found, tables in packs.taken([key]):
        names, contents = (tables[_WHAT][column].to_pylist() for column in ("name", "content"))
        return dict(zip(names, contents, strict=True))
    files = _made(site_url)
    columns = {
        "name": pa.array(list(files), pa.string()),
        "content": pa.array(list(files.values()), pa.large_binary()),
    }
    packs.put([key], {_WHAT: pa.table(columns)})
    return files


def _made(site_url: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, _WHAT)
        mkdocs(folder, site_url)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
