"""Prose pages that are kept are those that MkDocs would make: it is asked again as soon as anything is other than it was."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.book.packs import Packs
from pipeline.render import kept_prose

MADE = {"index.html": b"<p>\xc3\xa9</p>", "assets/deep/theme.css": b"", "picture.png": b"\x89PNG\x00"}


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The addresses that MkDocs was asked for."""
    addresses: list[str] = []

    def mkdocs(folder: Path, site_url: str) -> None:
        addresses.append(site_url)
        for name, content in MADE.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    monkeypatch.setattr(kept_prose, "mkdocs", mkdocs)
    return addresses


def written(folder: Path, packs: Packs | None, site_url: str = "https://a.example/") -> dict[str, bytes]:
    kept_prose.write(folder, site_url, packs)
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_what_is_kept_is_written_again_without_mkdocs(tmp_path, asked):
    packs = Packs(tmp_path / "packs")
    assert written(tmp_path / "one", packs) == written(tmp_path / "two", packs) == MADE
    assert len(asked) == 1
    assert written(tmp_path / "three", None) == MADE and len(asked) == 2, "nothing is kept where nothing may be"


@pytest.mark.parametrize("what", ["address", "repository", "checkout", "library", "damage"])
def test_mkdocs_is_asked_again_where_anything_is_other_than_it_was(tmp_path, asked, monkeypatch, what):
    packs = Packs(tmp_path / "packs")
    written(tmp_path / "one", packs)
    site_url = "https://b.example/" if what == "address" else "https://a.example/"
    if what == "repository":
        monkeypatch.setenv("REPO_URL", "https://code.example/x")
    elif what == "checkout":
        monkeypatch.setattr(kept_prose, "made_of", lambda: "another")
    elif what == "library":
        monkeypatch.setattr(kept_prose, "distributions", lambda: [SimpleNamespace(name="mkdocs", version="9")])
    elif what == "damage":
        (file,) = (tmp_path / "packs").glob("*/prose.parquet")
        file.write_bytes(file.read_bytes()[:-1])
    assert written(tmp_path / "two", packs, site_url) == MADE
    assert len(asked) == 2
