"""A build that may be released: tables and site are whole, as they were published, and of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.base.failures import Failure
from pipeline.base.progress import Progress, quiet
from pipeline.press import manifest

Files = dict[str, tuple[Path, str, int]]  # by name in what is released: where it lies, SHA-256, bytes


@dataclass(frozen=True)
class Build:
    """`tables` and `site` are its two folders."""

    tables: Path
    site: Path
    data_version: str

    def of_tables(self) -> Files:
        return _files(self.tables)

    def of_site(self) -> Files:
        return _files(self.site)


def whole(folder: Path, progress: Progress = quiet) -> Build:
    """The build in a folder. Raises Failure where something of it is missing, damaged, or of another run."""
    tables, site = folder / "tables", folder / "site"
    for part in (tables, site):
        if not part.is_dir():
            raise Failure(f"{part} is not there; `make publish` builds it")
        if wrong := manifest.damage(part, progress):
            more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
            raise Failure(
                f"the build is damaged, and nothing of it is released: {'; '.join(wrong[:3])}{more}; `make publish` mends it"
            )
        if strangers := manifest.unlisted(part):
            raise Failure(f"{part / strangers[0]} is no part of the build, and nothing of it is released: move it away")
    version, held = manifest.tables_of(tables), manifest.read(site)["tables"]
    if version != held:
        raise Failure(
            f"the site is of the tables {held.get('data_version')}, and the tables are {version['data_version']}: two runs are never "
            "released together; `make publish` renders the site anew"
        )
    return Build(tables, site, version["data_version"])


def _files(folder: Path) -> Files:
    """Every file of a part, its manifest included."""
    found = {n: (folder / n, told["sha256"], told["size_bytes"]) for n, told in manifest.read(folder)["files"].items()}
    own = folder / manifest.FILE
    return found | {manifest.FILE: (own, manifest.sha256(own), own.stat().st_size)}
