"""A small release: the two folders of a build with their manifests, as a publish leaves them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from pipeline.hub.snapshot import Snapshot
from pipeline.press import manifest

SITE = {
    "index.html": "<p>Which models fit?</p>",
    "assets/almanac/almanac.js": "1",
    "models/a/One/index.html": "<p>One</p>",
    "data/models.json": "[]",
}
TABLES = {
    "almanac.duckdb": "DUCK\0",
    "gpu.parquet": "PAR1\0gpu",
    "correction.parquet": "PAR1\0",
    "gpu.csv": "gpu_id\nl40s\n",
    "changes.json": '{"since": null}',
}


def make(
    folder: Path, version: str = "a", site: dict[str, str] | None = None, tables: dict[str, str] | None = None
) -> Path:
    """A whole build; `version` tells its data version from others."""
    snapshot = Snapshot(folder, datetime.date(2026, 1, 2), "test", (), {})
    for part, files in (("tables", TABLES | (tables or {})), ("site", SITE | (site or {}))):
        for name, text in files.items():
            (folder / part / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / part / name).write_text(text, encoding="utf-8")
    manifest.write(folder / "tables", snapshot, {"gpu": 1, "correction": 0, "model": 3}, version * 12)
    (folder / "site" / "tables").mkdir()
    for name in ("gpu.csv", "manifest.json"):
        (folder / "site" / "tables" / name).write_bytes((folder / "tables" / name).read_bytes())
    manifest.write_site(folder / "site", folder / "tables", "s" + version, {})
    return folder


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return make(tmp_path / "build")


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
