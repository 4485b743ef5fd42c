"""What a person sees of releases: how two differ, what the gates say, and where one was put."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline import ROOT
from pipeline.base.failures import Failure, say
from pipeline.base.progress import bar
from pipeline.base.readonly import reading
from pipeline.book import promise
from pipeline.press import build as building
from pipeline.press import changes, digest, gates
from pipeline.press.publish import RELEASE, alone
from pipeline.release import assets, build, diff, folder, kept, notes

BUILD = ROOT / "build"


def compare(old: str, new: str, tables: Path | None) -> None:
    """Prints how two releases differ; with a folder for `tables`, writes it there too."""
    found = diff.between(old, new)
    say(diff.text(found))
    if tables is not None:
        say("\n" + "\n".join(f"written: {path}" for path in diff.write(found, tables)))


def judge() -> int:
    """Says whether the build may take the place of the last release. Returns the exit status."""
    before, now = digest.last(ROOT / RELEASE), _digest()
    why, accepted = gates.refused(before, now), _summary().get("accepted")
    if why and not accepted:
        raise Failure(gates.sentence(why))
    if before is None:
        say("no release is kept to compare with (make release keeps one, make last-release takes the published one)")
    else:
        how = f"refused by {len(why)} gates, accepted: {accepted['reason']}" if why else "no gate refuses it"
        say(f"{now.basis['data_version']} beside {before.basis['data_version']}: {how}")
    return 0


def keep() -> None:
    """Marks what is built as the last release, where the gates let it through."""
    judge()
    changes.keep(BUILD / "tables", ROOT / RELEASE)


def fetch_last(where: str) -> None:
    """Takes the digest of what is published as the last release."""
    say(kept.keep_last(where, ROOT / RELEASE))


def tell(file: Path | None) -> None:
    """Prints the notes of the build, or writes them to a file."""
    text = "\n".join(notes.lines(_summary()))
    if file is None:
        say(text)
    else:
        file.write_text(text + "\n", encoding="utf-8")


def lay_out(target: Path) -> None:
    """Puts what a GitHub release is made of into a folder."""
    with alone(BUILD):
        say(f"{assets.lay_out(build.whole(BUILD, bar), target)} lies in {target}")


def promise_now(is_release: bool) -> int:
    """Writes what is promised from now on; with `is_release`, that it is released. Returns the exit status."""
    with reading(BUILD / "tables" / building.DATABASE) as connection:
        now = promise.describe(connection)
    if wrong := promise.promise(now, is_release=is_release):
        raise Failure(
            "this breaks what is promised, and the schema's version does not say so:\n"
            + "\n".join(f"  {w}" for w in wrong)
        )
    say(f"{promise.PROMISED.relative_to(ROOT)} is schema {now['schema_version']}")
    return 0


def to_folder(target: Path) -> None:
    """Brings a plain folder up to date."""
    with alone(BUILD):
        whole = build.whole(BUILD, bar)
        done = folder.write(whole, target, bar)
    if not done.file_count:
        say(f"{target} is {whole.data_version} already")
    else:
        say(
            f"{target} is {whole.data_version}: {done.file_count:,} files written ({done.byte_count:,} bytes), {done.kept_count:,} as they were"
        )


def _digest() -> digest.Digest:
    found = digest.read(BUILD / "tables")
    if found is None:
        raise FileNotFoundError(f"{BUILD / 'tables'} holds no digest; `make publish` builds it")
    return found


def _summary() -> dict:
    file = BUILD / "tables" / changes.SUMMARY
    if not file.exists():
        raise FileNotFoundError(f"{file} is not there; `make publish` builds it")
    return json.loads(file.read_text(encoding="utf-8"))
