"""What a GitHub release is made of, in a folder: `assets/` (all tables), `notes.md`, and its `tag`, which names the data version."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from pipeline.base.failures import Failure
from pipeline.press import changes
from pipeline.release import notes
from pipeline.release.build import Build
from pipeline.render.addresses import RELEASE, VERSION


def tag_of(data_version: str) -> str:
    """The tag that the site's links to large tables lead to."""
    return RELEASE.replace(VERSION, data_version)


def lay_out(build: Build, folder: Path) -> str:
    """Fills a new or an empty folder. Returns the tag."""
    if folder.exists() and any(folder.iterdir()):
        raise Failure(f"{folder} is not empty")
    (folder / "assets").mkdir(parents=True)
    for name in build.of_tables():
        try:
            os.link(build.tables / name, folder / "assets" / name)
        except OSError:
            shutil.copyfile(build.tables / name, folder / "assets" / name)
    summary = json.loads((build.tables / changes.SUMMARY).read_text(encoding="utf-8"))
    (folder / "notes.md").write_text("\n".join(notes.lines(summary)) + "\n", encoding="utf-8")
    tag = tag_of(build.data_version)
    (folder / "tag").write_text(tag + "\n", encoding="utf-8")
    return tag
