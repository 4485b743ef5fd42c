"""A release in a plain folder, as any web server serves it: the site at its root, all tables below `tables/`.

The folder changes at once, from one whole release to the next. Files that have not changed are shared with the release before (hard
links), so that only what changed is written; what is damaged there is written anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.base import swap
from pipeline.base.failures import Failure, stoppable
from pipeline.base.progress import Progress, quiet
from pipeline.press import manifest
from pipeline.release.build import Build, Files

_MARK = ".vram-almanac-release"  # says of a folder beside the release that it is ours to remove
_OURS = "assets/almanac"  # what no other site has
_NOTHING_LOST = (".DS_Store",)


@dataclass(frozen=True)
class Written:
    """How much of a release was not there already."""

    file_count: int
    byte_count: int
    kept_count: int


def write(build: Build, target: Path, progress: Progress = quiet) -> Written:
    """Brings a folder up to date. Raises Failure and OSError, and leaves what is there whole."""
    target = Path(os.path.abspath(target))
    wanted = build.of_site() | {f"tables/{name}": told for name, told in build.of_tables().items()}
    _refuse(target, wanted)
    with _alone(target), stoppable():
        swap.recover(target, _MARK)
        following = _following(target)
        swap.remove(following, _MARK)
        try:
            following.mkdir(parents=True)
            (following / _MARK).touch()
            done = _fill(following, target, wanted, progress)
            (following / _MARK).unlink()
            if done.file_count or _names(target) != wanted.keys():
                swap.put(following, target, _MARK)
        finally:
            swap.remove(following, _MARK)
    return done


def _fill(following: Path, target: Path, wanted: Files, progress: Progress) -> Written:
    file_count = byte_count = 0
    for name, (source, digest, size) in progress(sorted(wanted.items()), desc="files", total=len(wanted)):
        (following / name).parent.mkdir(parents=True, exist_ok=True)
        if _is(target / name, digest, size) and _linked(target / name, following / name):
            continue
        shutil.copyfile(source, following / name)
        # a disk that is full or fails may say so late: what cannot be read again was not written
        if not _is(following / name, digest, size):
            raise Failure(f"{name} is not what was written to {following}: the disk or the build has changed under it")
        os.chmod(following / name, 0o444)
        file_count, byte_count = file_count + 1, byte_count + size
    return Written(file_count, byte_count, len(wanted) - file_count)


def _is(path: Path, digest: str, size: int) -> bool:
    try:
        return path.stat().st_size == size and manifest.sha256(path) == digest
    except OSError:
        return False


def _linked(old: Path, new: Path) -> bool:
    try:
        os.link(old, new)
    except OSError:  # a file system without links, or of another one
        return False
    return True


def _refuse(target: Path, wanted: Files) -> None:
    """Raises Failure where somebody's files would be lost."""
    if target.is_symlink() or target.is_mount() or (target.exists() and not target.is_dir()):
        raise Failure(f"{target} is a link, a mount point or a file, and cannot be replaced: name a folder inside it")
    if strangers := _strangers(target, wanted):
        raise Failure(
            f"{target} holds {strangers[0]}, which is no part of a release and would be lost: move it away, or name another folder"
        )
    for beside in (_following(target), target.with_name(f".{target.name}-previous")):
        is_ours = (beside / _MARK).exists() or (beside / _OURS).is_dir()
        if beside.exists() and any(beside.iterdir()) and not is_ours:
            raise Failure(f"{beside} is in the way, and is none of ours: move it away")


def _strangers(target: Path, wanted: Files) -> list[str]:
    if not target.is_dir() or not any(target.iterdir()):
        return []
    if not (manifest.read(target) or (target / _OURS).is_dir()):
        return sorted(_names(target))
    # where a list is lost, what the new release has is known for ours
    tables = manifest.read(target / "tables").get("files")
    known = {manifest.FILE, f"tables/{manifest.FILE}", *manifest.read(target).get("files", wanted)}
    known |= set(wanted) if tables is None else {f"tables/{name}" for name in tables}
    return sorted(name for name in _names(target) - known if name.rpartition("/")[2] not in _NOTHING_LOST)


def _names(folder: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(top, name), folder) for top, _folders, names in os.walk(folder) for name in names
    }


def _following(target: Path) -> Path:
    return target.with_name(f".{target.name}-next")


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Two at once would undo each other: the second is told so."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"another release to {target} is under way") from None
        yield
