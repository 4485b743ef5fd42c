"""What was published: a `manifest.json` in each folder (versions, files, checksums) and `datapackage.json` (every column's meaning).

A manifest is sealed: it holds its own checksum. So a folder is whole if its manifest is, and every file is what that says; whatever
is damaged, missing or edited shows, and the next publish makes it anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline import ROOT
from pipeline.base.sealed import sealed, unsealed
from pipeline.book.promise import SCHEMA_VERSION
from pipeline.book.schema import ENUMS, PUBLISHED, Column, Table
from pipeline.hub.snapshot import Snapshot
from pipeline.press.compatibility import DERIVED

FILE = "manifest.json"
_THREADS = 4  # hashing gives the interpreter free
_FRICTIONLESS = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}


def write(tables: Path, snapshot: Snapshot, row_counts: Mapping[str, int], fingerprint: str) -> None:
    """Writes both files beside the tables. `fingerprint` is that of all inputs and tells two data versions apart."""
    package = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "vram-almanac",
        "title": "VRAM Almanac",
        "description": "Tables as Parquet, and all of them with the formulas as macros in almanac.duckdb, to be saved and asked. Over a network "
        "remote.duckdb, beside the tables of a site, has each as a view over its Parquet file: of these a reader fetches what it needs.",
        "version": SCHEMA_VERSION,
        "licenses": [{"name": "CC-BY-4.0", "path": "https://creativecommons.org/licenses/by/4.0/"}],
        "resources": [_resource(PUBLISHED[name]) for name in row_counts],
    }
    (tables / "datapackage.json").write_text(_json(package), encoding="utf-8")
    manifest = {
        **versions(snapshot, fingerprint),
        "fingerprint": fingerprint,
        "snapshot_origin": snapshot.origin,
        "code_revision": _revision(),
        "row_counts": dict(row_counts),
        "files": _files(tables),
    }
    (tables / FILE).write_text(_json(sealed(manifest)), encoding="utf-8")


def write_site(site: Path, tables: Path, fingerprint: str, about: Mapping[str, Any]) -> None:
    """Writes the manifest of a site that was rendered from these tables."""
    manifest = {"fingerprint": fingerprint, "tables": tables_of(tables), **about, "files": _files(site)}
    # a line per file: there are thousands of them
    text = json.dumps(sealed(manifest), ensure_ascii=False).replace('"}, "', '"},\n"')
    (site / FILE).write_text(text + "\n", encoding="utf-8")


def tables_of(tables: Path) -> dict[str, str]:
    """The release of tables that a site is made from."""
    return {"data_version": read(tables).get("data_version", ""), "manifest_sha256": sha256(tables / FILE)}


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a folder; empty where there is none, or none that is as it was written."""
    try:
        return unsealed((folder / FILE).read_bytes())
    except OSError:
        return {}


def damage(folder: Path, progress: Callable[..., Iterable[Any]] | None = None) -> list[str]:
    """What is not as it was published, file by file: missing, of another size or of other content. Empty means whole."""
    found = read(folder)
    if not found:
        return [f"{folder.name}/{FILE}: {'damaged' if (folder / FILE).exists() else 'missing'}"]
    files = list(found["files"].items())
    with ThreadPoolExecutor(_THREADS) as pool:
        checked = pool.map(lambda item: _wrong(folder / item[0], item[1]), files)
        shown = progress(checked, desc=f"checksums of {folder.name}", total=len(files)) if progress else checked
        wrong = list(shown)
    return [f"{folder.name}/{name}: {what}" for (name, _), what in zip(files, wrong, strict=True) if what]


def unlisted(folder: Path) -> list[str]:
    """Files that lie in the folder and are none of those that were published there."""
    known = {FILE, *read(folder).get("files", ())}
    return sorted(name for name in _names(folder) if name not in known)


def _wrong(path: Path, told: Mapping[str, Any]) -> str:
    try:
        if path.stat().st_size != told["size_bytes"]:
            return f"{path.stat().st_size:,} bytes, published were {told['size_bytes']:,}"
        return "" if sha256(path) == told["sha256"] else "not what was published"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _files(folder: Path) -> dict[str, dict[str, Any]]:
    names = sorted(name for name in _names(folder) if name != FILE)
    with ThreadPoolExecutor(_THREADS) as pool:
        # (paths as text: taking them apart took as long as reading)
        sums = pool.map(lambda name: sha256(f"{folder}/{name}"), names)
        return {
            name: {"size_bytes": os.stat(f"{folder}/{name}").st_size, "sha256": found}
            for name, found in zip(names, sums, strict=True)
        }


def _names(folder: Path) -> list[str]:
    """Every file below a folder; a link is one, wherever it leads."""
    found = []
    for top, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(top, name))]
        found += [os.path.relpath(os.path.join(top, name), folder).replace(os.sep, "/") for name in (*files, *links)]
    return found


def versions(snapshot: Snapshot, fingerprint: str) -> dict[str, str]:
    """What tells this release from others."""
    return {
        "data_version": f"{snapshot.date.isoformat()}-{fingerprint[:12]}",
        "schema_version": SCHEMA_VERSION,
        "snapshot_date": snapshot.date.isoformat(),
    }


def _resource(table: Table) -> dict:
    return {
        "name": table.name.replace("_", "-"),
        "path": f"{table.name}.parquet",
        "format": "parquet",
        "description": table.meaning,
        "schema": {
            # the two limits of a verdict are in the view alone
            "fields": [
                _field(column, column.name in table.nullable)
                for column in table.columns
                if table.name != "compatibility" or column.name not in DERIVED
            ],
            "primaryKey": list(table.key),
        },
    }


def _field(column: Column, is_nullable: bool) -> dict:
    constraints: dict = {} if is_nullable else {"required": True}
    if column.least is not None:
        constraints["minimum"] = column.least
    if column.name in ENUMS:
        constraints["enum"] = list(ENUMS[column.name])
    return {
        "name": column.name,
        "type": _FRICTIONLESS[column.type],
        "description": column.meaning,
        **({"unit": column.unit} if column.unit else {}),
        **({"constraints": constraints} if constraints else {}),
    }


def _revision() -> str | None:
    """The commit that the code is from; unknown outside a checkout, and marked where files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return (
            subprocess.run(
                command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=10
            ).stdout.strip()
            or None
        )
    except (OSError, subprocess.SubprocessError):
        return None


def sha256(path: Path | str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(value: dict) -> str:
    return json.dumps(value, indent=1, sort_keys=False, ensure_ascii=False) + "\n"
