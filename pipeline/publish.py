"""From the newest snapshot to `build/`: build beside it, check, and swap in only what is whole.

    build/tables/   the tables, manifest.json, datapackage.json
    build/site/     the site, with the same tables under site/tables

An interrupted or failing build leaves the last good `build/` as it was. Nothing is rebuilt that has not changed: each stage is
told by a fingerprint of all that it reads.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline import build, changes, checks, manifest, render
from pipeline.hub.snapshot import Snapshot
from pipeline.progress import Progress

ROOT = Path(__file__).resolve().parent.parent
# What each stage reads. A change in any of these files makes the stage, and those after it, run again.
TABLE_INPUTS = ("tables", "pipeline", "requirements.lock")
SITE_INPUTS = ("site", "mkdocs.yml")
FINGERPRINTS = "fingerprints.json"
RELEASE = Path("tables", "release")  # the digest of the last release, which the next is compared with


class PublishError(RuntimeError):
    """The build was not published; the message says why. `build/` is as it was."""


@dataclass(frozen=True)
class Published:
    """What a publish did. `rebuilt` names the stages that ran."""

    rebuilt: tuple[str, ...]
    folder: Path


def publish(snapshot: Snapshot, progress: Progress, output: Path = ROOT / "build", root: Path = ROOT) -> Published:
    """Brings `output` up to date. Raises PublishError, FactError or SnapshotError and leaves `output` untouched."""
    with _alone(output):
        _recover(output)
        wanted = _fingerprints(root)
        have = _read_json(output / FINGERPRINTS)
        if have == wanted and _is_whole(output):
            return Published((), output)
        following = output.with_name(f".{output.name}-next")
        shutil.rmtree(following, ignore_errors=True)
        (following / "site").mkdir(parents=True)
        try:
            rebuilt = _fill(following, output, have, wanted, snapshot, progress, root)
            (following / FINGERPRINTS).write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
            _swap(following, output)
        finally:
            shutil.rmtree(following, ignore_errors=True)
        return Published(rebuilt, output)


def _fill(
    following: Path, output: Path, have: dict, wanted: dict, snapshot: Snapshot, progress: Progress, root: Path
) -> tuple[str, ...]:
    tables = following / "tables"
    if have.get("tables") == wanted["tables"] and _is_whole(output):
        shutil.copytree(output / "tables", tables, copy_function=os.link)
        rebuilt: tuple[str, ...] = ()
    else:
        tables.mkdir()
        counts = build.build_tables(tables, snapshot, progress)
        failures = checks.run_checks(tables / build.DATABASE)
        if failures:
            raise PublishError("the data did not pass its checks:\n" + "\n".join(failures))
        changes.write(tables, root / "tables", manifest.versions(snapshot, wanted["tables"]), root / RELEASE)
        manifest.write(tables, snapshot, counts, wanted["tables"])
        rebuilt = ("tables",)
    render.render(tables, following / "site", progress)
    return (*rebuilt, "site")


def _swap(following: Path, output: Path) -> None:
    """Two renames; a stop between them is mended by `_recover` at the next run."""
    previous = output.with_name(f".{output.name}-previous")
    shutil.rmtree(previous, ignore_errors=True)
    if output.exists():
        output.rename(previous)
    following.rename(output)
    shutil.rmtree(previous, ignore_errors=True)


def _recover(output: Path) -> None:
    previous = output.with_name(f".{output.name}-previous")
    if previous.exists() and not output.exists():
        previous.rename(output)
    shutil.rmtree(previous, ignore_errors=True)


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Two builds at once would undo each other: the second is told so."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.with_name(f".{output.name}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PublishError(f"another build of {output} is running") from None
        yield


def _is_whole(output: Path) -> bool:
    return (output / "tables" / manifest.FILE).exists() and (output / "site" / "index.html").exists()


def _fingerprints(root: Path) -> dict[str, str]:
    tables = _fingerprint(root, TABLE_INPUTS)
    return {"tables": tables, "site": hashlib.sha256((tables + _fingerprint(root, SITE_INPUTS)).encode()).hexdigest()}


def _fingerprint(root: Path, names: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in names:
        top = root / name
        paths = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for path in paths:
            if "__pycache__" in path.parts:
                continue
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read_json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
