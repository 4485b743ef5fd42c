"""From the newest snapshot to `build/`: build beside it, check, and swap in only what is whole.

    build/tables/   the tables, manifest.json, datapackage.json
    build/site/     the site, with those tables under site/tables that a page host takes, and a manifest.json of its own

Tables come first and take their place as soon as they are whole and checked, so that they can be asked while the site is still being
rendered; the site follows when its last page is written, and its manifest names the tables that it was rendered from. An interrupted
or failing build leaves either as it was. Nothing is rebuilt that has not changed and is undamaged: each stage is told by a fingerprint of
all that it reads, and each file by its checksum.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline import ROOT, render
from pipeline.base import failures
from pipeline.base.collector import seldom_collected
from pipeline.base.progress import Progress, step
from pipeline.book.packs import Packs
from pipeline.book.schema import PUBLISHED
from pipeline.hub.snapshot import Snapshot
from pipeline.press import build, changes, checks, digest, gates, manifest, output, same_bytes
from pipeline.press.output import PublishError
from pipeline.render import addresses

__all__ = ["PublishError", "Published", "alone", "publish"]

# What each stage reads. A change in any of these files makes the stage, and those after it, run again.
TABLE_INPUTS = ("tables", "pipeline", "requirements.lock")
SITE_INPUTS = ("site", "mkdocs.yml")
RELEASE = Path("tables", "release")  # the digest of the last release, which the next is compared with


@dataclass(frozen=True)
class Published:
    """What a publish did. `rebuilt` names the stages that ran; `damaged` what was found broken, and is whole again."""

    rebuilt: tuple[str, ...]
    folder: Path
    damaged: tuple[str, ...] = ()


def _say_nothing(_line: str) -> None:
    pass


def publish(
    snapshot: Snapshot,
    progress: Progress,
    folder: Path = ROOT / "build",
    root: Path = ROOT,
    say: Callable[[str], None] = _say_nothing,
    accept: str = "",
    packs: Packs | None = None,
) -> Published:
    """Brings `folder` up to date. Raises PublishError, FactError or SnapshotError and leaves what is published there whole.

    `say` is told in a line when new tables can be asked. With a reason to `accept` them, tables take the place of the last release
    that a gate would keep out. `packs` keep from one build to the next what was worked out; without them all is worked out anew.
    """
    folder = output.resolved(folder)
    output.refuse(folder)
    with _telling_of_room(folder), alone(folder), seldom_collected():
        output.recover(folder)
        tables, site = folder / "tables", folder / "site"
        wanted = _fingerprints(root)
        damaged = _damage(tables, wanted["tables"], progress)
        has_tables = damaged == ()
        if has_tables:
            damaged = _damage(site, wanted["site"], progress)
            if damaged == () and manifest.read(site)["tables"] == manifest.tables_of(tables):
                return Published((), folder)
        with output.building(folder) as following:
            if not has_tables:
                _build_tables(following / "tables", snapshot, wanted["tables"], progress, root, accept, packs)
                output.put_in_place(following / "tables", folder)
                say(f"The tables are whole and can be asked: {tables / build.DATABASE}. The site follows.")
            try:
                _render_site(tables, following / "site", wanted["site"], progress, packs)
            except BaseException:
                if not has_tables:
                    say("The new tables stay where they are; the site is as it was, of the tables before.")
                raise
            output.put_in_place(following / "site", folder)
        return Published(("site",) if has_tables else ("tables", "site"), folder, damaged or ())


def _damage(part: Path, fingerprint: str, progress: Progress) -> tuple[str, ...] | None:
    """What is broken in a part that would else be kept; None for a part that is of other inputs, or not there."""
    if not part.exists():
        return None
    held = manifest.read(part)
    if held and held.get("fingerprint") != fingerprint:
        return None
    return tuple(manifest.damage(part, progress))


def _build_tables(
    tables: Path,
    snapshot: Snapshot,
    fingerprint: str,
    progress: Progress,
    root: Path,
    accept: str = "",
    packs: Packs | None = None,
) -> None:
    tables.mkdir()
    counts = build.build_tables(tables, snapshot, progress, packs)
    failures = checks.run_checks(tables / build.DATABASE, progress, packs)
    if failures:
        raise PublishError("the data did not pass its checks:\n" + "\n".join(failures))
    with step(progress, "changes"):
        versions, release = manifest.versions(snapshot, fingerprint), root / RELEASE
        now = changes.write(tables, root / "tables", versions, release, snapshot.records, packs)
        why = gates.refused(digest.last(release), now)
        if why and not accept:
            raise PublishError(gates.sentence(why))
        if why:
            changes.accept(tables, gates.accepted(accept, why))
    with step(progress, "manifest"):
        manifest.write(tables, snapshot, counts, fingerprint)
    output.make_readonly(tables)


def _render_site(tables: Path, site: Path, fingerprint: str, progress: Progress, packs: Packs | None = None) -> None:
    site.mkdir()
    render.render(tables, site, progress, packs=packs)
    if packs:
        packs.tidy()
    with step(progress, "manifest"):
        where = addresses.known().of_release(manifest.read(tables)["data_version"])
        write_far(tables, site, where)
        manifest.write_site(site, tables, fingerprint, {"site_url": where.site, "tables_url": where.large_tables})
    output.make_readonly(site)


def write_far(tables: Path, site: Path, where: addresses.Addresses) -> None:
    """The file by which tables are joined over a network, of those whose address is known."""
    files = {name: tables / f"{name}.parquet" for name in PUBLISHED}
    told = {name: (file, where.whole_of_table(file)) for name, file in files.items() if file.exists()}
    if where.site and told:
        path = site / "tables" / addresses.REMOTE
        path.parent.mkdir(exist_ok=True)
        same_bytes.write_remote(path, {name: (near, far) for name, (near, far) in told.items() if far})


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two builds at once would undo each other, and a release is of one build: the second is told so."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PublishError(f"another build of {folder}, or a release of it, is running") from None
        yield


@contextmanager
def _telling_of_room(folder: Path) -> Iterator[None]:
    """A disk that runs full is one sentence that names the folder: who meets it names a file of the build, or none."""
    try:
        yield
    except Exception as error:
        named = getattr(error, "filename", None)
        is_elsewhere = named is not None and folder.parent not in Path(os.path.abspath(os.fsdecode(named))).parents
        if is_elsewhere or not failures.is_out_of_room(error):
            raise
        problem = f"no space left on the disk of {folder}; {failures.ROOM} ({failures.WHOLE})"
        raise PublishError(problem) from error


def _fingerprints(root: Path) -> dict[str, str]:
    tables = _fingerprint(root, TABLE_INPUTS)
    try:
        where = addresses.known()
    except ValueError as error:
        raise PublishError(str(error)) from None
    # addresses stand on every page, and in no table
    site = json.dumps([tables, _fingerprint(root, SITE_INPUTS), asdict(where)])
    return {"tables": tables, "site": hashlib.sha256(site.encode()).hexdigest()}


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
