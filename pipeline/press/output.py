"""The folder that is published to: what may be replaced in it, and how a finished part takes its place at once.

Publishing replaces whatever lies in `tables` and `site` of that folder. So it is asked first, before anything is built: a folder that
holds something else, or that cannot be swapped, is refused.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.base.failures import stoppable
from pipeline.base.swap import exchanged as _exchanged
from pipeline.book.schema import PUBLISHED
from pipeline.press import manifest

PARTS = ("tables", "site")
_MARK = ".vram-almanac"  # says of a folder beside the output that it is ours to remove
_MARKED = "VRAM Almanac builds here; the folder is removed when the build ends.\n"
_BEFORE = "fingerprints.json"  # of releases before 1.1
# left by a shell that has the database open, or by the desktop: nothing is lost with them
_NOTHING_LOST = ("almanac.duckdb.wal", ".DS_Store")
# what tells our folders from others of the same name where the manifest is lost
_SIGNS = {"tables": "almanac.duckdb", "site": "assets/almanac"}
_NOT_TABLES = ("almanac", "changed_verdicts", "changes", "datapackage", "digest")


class PublishError(RuntimeError):
    """Nothing was published; the message says why. What was published before is as it was."""


def following(output: Path) -> Path:
    return output.with_name(f".{output.name}-next")


def previous(output: Path) -> Path:
    return output.with_name(f".{output.name}-previous")


def resolved(output: Path) -> Path:
    """The folder by its whole path, links in its name kept."""
    return Path(os.path.abspath(output))


def refuse(output: Path) -> None:
    """Raises PublishError where publishing would delete what is not ours, or could not put the build in its place."""
    output = resolved(output)
    if not output.name:
        raise PublishError(f"{output} is no folder to publish to: name one inside it")
    for path in (output, *(output / part for part in PARTS)):
        _refuse_kind(path)
    if output.exists():
        _refuse_contents(output)
    for beside in (following(output), previous(output)):
        _refuse_kind(beside)
        if beside.exists() and any(beside.iterdir()) and not _is_marked(beside) and _foreign(beside):
            raise PublishError(
                f"{beside} is in the way: it is none of ours, and publishing to {output.name} would delete it; move it away"
            )


def _refuse_kind(path: Path) -> None:
    if path.is_symlink():
        raise PublishError(f"{path} is a symbolic link: name the folder that it leads to")
    if path.exists() and not path.is_dir():
        raise PublishError(f"{path} is a file: a build is published to a folder")
    if path.is_mount():
        raise PublishError(f"{path} is a mount point, which cannot be replaced: name a folder inside it")
    if path.exists() and not os.access(path, os.W_OK | os.X_OK):
        raise PublishError(f"{path} may not be written to")


def _refuse_contents(output: Path) -> None:
    foreign = _foreign(output)
    if foreign:
        raise PublishError(
            f"{output} holds {foreign}, which is no part of a release of the almanac and would be deleted: "
            "move it away, or name another folder (--output)"
        )


def _foreign(output: Path) -> str:
    """Something in the folder that no release of ours has; empty where all of it is one, or there is nothing."""
    for entry in sorted(output.iterdir()):
        if entry.name not in (*PARTS, _BEFORE, *_NOTHING_LOST):
            return entry.name
    held = [part for part in PARTS if (output / part).is_dir() and any((output / part).iterdir())]
    ours = [part for part in held if manifest.read(output / part) or (output / part / _SIGNS[part]).exists()]
    for part in held:
        if part not in ours:
            return f"a folder {part}"
        for name in _unlisted(output / part):
            if name.rpartition("/")[2] not in _NOTHING_LOST:
                return f"{part}/{name}"
    if not held and (output / _BEFORE).exists():
        return _BEFORE
    return ""


def _unlisted(part: Path) -> list[str]:
    """Files that no release of ours has put there. Where the manifest is lost, tables are still known by their names."""
    if manifest.read(part) or part.name != "tables":
        return manifest.unlisted(part) if manifest.read(part) else []
    return [name for name in manifest.unlisted(part) if name.partition(".")[0] not in {*PUBLISHED, *_NOT_TABLES}]


def _is_marked(folder: Path) -> bool:
    return (folder / _MARK).is_file()


@contextmanager
def building(output: Path) -> Iterator[Path]:
    """An empty folder beside the output, to build in; removed at the end, however it comes: SIGTERM and SIGHUP too."""
    folder = following(output)
    _remove(folder)
    with stoppable():
        try:
            _marked(folder)
            yield folder
        finally:
            _remove(folder)


def put_in_place(built: Path, output: Path) -> None:
    """A finished part (`tables`, `site`) takes the place of the one that is published, in one step where the system has one."""
    target = output / built.name
    output.mkdir(exist_ok=True)
    if not target.exists():
        built.rename(target)
    elif _exchanged(built, target):
        _remove(built)
    else:
        aside = _marked(previous(output))
        target.rename(aside / built.name)
        built.rename(target)
        _remove(aside)
    (output / _BEFORE).unlink(missing_ok=True)


def recover(output: Path) -> None:
    """Mends what a stop between two renames left."""
    aside = previous(output)
    for part in PARTS:
        if (aside / part).exists() and not (output / part).exists():
            output.mkdir(exist_ok=True)
            (aside / part).rename(output / part)
    _remove(aside)


def make_readonly(folder: Path) -> None:
    """Nobody writes into what is published by mistake; whoever may change the folder can still replace and remove it."""
    for top, _folders, files in os.walk(folder):
        for name in files:
            os.chmod(os.path.join(top, name), 0o444)


def _marked(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / _MARK).write_text(_MARKED, encoding="utf-8")
    return folder


def _remove(folder: Path) -> None:
    """The mark goes last: what is left of a removal that was stopped is still known for ours."""
    if not folder.exists():
        return
    for entry in folder.iterdir():
        if entry.name != _MARK:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
